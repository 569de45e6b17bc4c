package regex

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

type kind uint8

const (
	nEmpty kind = iota
	nChar
	nSet
	nAny
	nCat
	nAlt
	nRepeat
	nGroup // n: number
	nBack  // n: number
	nAssert
	nLook   // n: characters back; not
	nAtomic // subs[0]
	nKeep
	nFail
)

type mode uint8

const (
	greedy mode = iota
	lazy
	possessive
)

type node struct {
	kind     kind
	r        rune
	set      *set
	subs     []*node
	n        int
	min, max int
	mode     mode
	fold     bool
	not      bool
}

type parser struct {
	src      []rune
	pos      int
	syntax   Syntax
	flags    Flags
	groups   int
	closed   []bool // by number: the group is complete
	depth    int
	names    map[string]int
	backs    []int // numbers of PCRE's references, which may point ahead
	dotAll   bool
	multi    bool
	extended bool
	quoted   bool // between \Q and \E
	warnings []string
}

const (
	badPreceding = Error("Invalid preceding regular expression")
	badBackRef   = Error("Invalid back reference")
	badContent   = Error(`Invalid content of \{\}`)
	badRange     = Error("Invalid range end")
	badClass     = Error("Invalid character class name")
	badCollation = Error("Invalid collation character")
	openBrace    = Error(`Unmatched \{`)
	openParen    = Error(`Unmatched ( or \(`)
	closeParen   = Error(`Unmatched ) or \)`)
	openBracket  = Error("Unmatched [, [^, [:, [., or [=")
	trailing     = Error("Trailing backslash")
	tooBig       = Error("Regular expression too big")
	// MisplacedClass is said of [:space:] without a second pair of brackets.
	MisplacedClass = Error("character class syntax is [[:space:]], not [:space:]")
)

const (
	maxRepeat = 32767
	maxDepth  = 500
)

func (p *parser) parse() *node {
	p.closed = []bool{true}
	p.multi = p.flags&Multiline != 0
	p.extended, p.dotAll = p.flags&Extended != 0, p.flags&DotAll != 0
	var n *node
	switch p.syntax {
	case Fixed:
		n = &node{kind: nCat}
		for _, r := range p.src {
			n.subs = append(n.subs, p.char(r))
		}
	case PCRE:
		n = p.perlAlt()
		if p.pos < len(p.src) {
			panic(Error("unmatched closing parenthesis"))
		}
		for _, b := range p.backs {
			if b > p.groups {
				panic(Error("reference to non-existent subpattern"))
			}
		}
	default:
		n = p.alt()
		if p.pos < len(p.src) {
			panic(closeParen)
		}
	}
	if p.flags&Line != 0 {
		n = &node{kind: nCat, subs: []*node{assert(textStart), n, assert(textEnd)}}
	}
	if p.flags&Word != 0 {
		n = &node{kind: nCat, subs: []*node{assert(noWordBefore), n, assert(noWordBehind)}}
	}
	return n
}

func assert(k int) *node { return &node{kind: nAssert, n: k} }

func (p *parser) fold() bool { return p.flags&IgnoreCase != 0 }

func (p *parser) char(r rune) *node {
	if p.fold() && unicode.SimpleFold(r) != r && (p.flags&Bytes == 0 || r < 0x80) {
		s := &set{fold: true}
		s.add(r, r)
		return &node{kind: nSet, set: s.finish(false)}
	}
	return &node{kind: nChar, r: r}
}

func (p *parser) ofSet(s *set) *node {
	s.fold = s.fold || p.fold()
	return &node{kind: nSet, set: s.finish(p.flags&NotNewline != 0)}
}

func (p *parser) any() *node {
	if p.flags&NotNewline != 0 {
		s := &set{neg: true}
		s.add('\n', '\n')
		return &node{kind: nSet, set: s.finish(true)}
	}
	return &node{kind: nAny}
}

func (p *parser) has(s string) bool {
	for i, r := range []rune(s) {
		if p.pos+i >= len(p.src) || p.src[p.pos+i] != r {
			return false
		}
	}
	return true
}

func (p *parser) take(s string) bool {
	if !p.has(s) {
		return false
	}
	p.pos += len([]rune(s))
	return true
}

func (p *parser) ere() bool { return p.syntax == ERE }

// token returns how the operator is spelled in the syntax.
func (p *parser) token(op string) string {
	if p.ere() {
		return op
	}
	return `\` + op
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		panic(tooBig)
	}
}

func (p *parser) alt() *node {
	p.enter()
	defer func() { p.depth-- }()
	n := p.cat()
	if !p.has(p.token("|")) {
		return n
	}
	alt := &node{kind: nAlt, subs: []*node{n}}
	for p.take(p.token("|")) {
		alt.subs = append(alt.subs, p.cat())
	}
	return alt
}

func (p *parser) cat() *node {
	n := &node{kind: nCat}
	start := atBranch
	for p.pos < len(p.src) && !p.has(p.token("|")) {
		if p.has(p.token(")")) {
			if p.depth > 1 || !p.ere() || p.flags&LoneParen == 0 {
				break
			}
		}
		piece := p.piece(start)
		if piece == nil {
			continue
		}
		start = elsewhere
		if piece.kind == nAssert && p.src[p.pos-1] == '^' {
			start = behindAnchor
		}
		n.subs = append(n.subs, piece)
	}
	return n
}

// place is where in a branch a piece stands: at its start there is nothing to repeat, and behind ^ neither.
type place uint8

const (
	atBranch place = iota
	behindAnchor
	elsewhere
)

// piece reads one atom with what repeats it; nil for something that stands for nothing.
func (p *parser) piece(start place) *node {
	r := p.src[p.pos]
	if start != elsewhere {
		switch {
		case p.flags&Awk != 0 && strings.ContainsRune("*+?{", r):
			p.pos++
			return p.repeats(p.char(r))
		case p.ere() && strings.ContainsRune("*+?{", r):
			if p.flags&Lenient == 0 {
				panic(badPreceding)
			}
			p.pos++
			what := string(r)
			if r == '{' {
				what = "{...}"
			}
			p.warn(what + " at start of expression")
			return nil
		case !p.ere() && p.has(`\{`):
			panic(badPreceding)
		case !p.ere() && (r == '*' || p.has(`\+`) || p.has(`\?`)):
			if r == '\\' {
				p.pos++
				r = p.src[p.pos]
			}
			p.pos++
			return p.repeats(p.char(r))
		}
	}
	a := p.atom(start)
	if a.kind == nAssert && r == '^' {
		return a // what follows cannot repeat it: see start
	}
	return p.repeats(a)
}

func (p *parser) warn(s string) {
	if !slices.Contains(p.warnings, s) {
		p.warnings = append(p.warnings, s)
	}
}

func (p *parser) repeats(a *node) *node {
	for p.pos < len(p.src) {
		switch {
		case p.take("*"):
			a = repeat(a, 0, -1)
		case p.take(p.token("+")):
			a = repeat(a, 1, -1)
		case p.take(p.token("?")):
			a = repeat(a, 0, 1)
		case p.has(p.token("{")):
			low, high, ok := p.interval()
			if !ok {
				return a
			}
			a = repeat(a, low, high)
		default:
			return a
		}
	}
	return a
}

func repeat(a *node, low, high int) *node {
	if a.kind == nRepeat && a.mode == greedy && a.min == 0 && a.max == -1 && low <= 1 && high != 0 {
		return a // a** is a*
	}
	return &node{kind: nRepeat, subs: []*node{a}, min: low, max: high}
}

// interval reads {n,m}. It is false, and nothing is read, where a { is an ordinary character.
func (p *parser) interval() (low, high int, ok bool) {
	at := p.pos
	p.take(p.token("{"))
	number := func() int {
		n := -1
		for p.pos < len(p.src) && '0' <= p.src[p.pos] && p.src[p.pos] <= '9' {
			n = min(max(n, 0)*10+int(p.src[p.pos]-'0'), maxRepeat+1)
			p.pos++
		}
		return n
	}
	low = number()
	high = low
	comma := p.take(",")
	if comma {
		high = number()
	}
	if !p.take(p.token("}")) || low < 0 && !comma {
		if p.ere() && p.flags&Lenient != 0 {
			p.pos = at
			return 0, 0, false
		}
		if p.pos >= len(p.src) || !slices.Contains(p.src[p.pos:], '}') {
			panic(openBrace)
		}
		panic(badContent)
	}
	low = max(low, 0)
	if low > maxRepeat || high > maxRepeat {
		panic(tooBig)
	}
	if high >= 0 && low > high {
		panic(badContent)
	}
	return low, high, true
}

func (p *parser) atom(start place) *node {
	if p.take(p.token("(")) {
		p.groups++
		n := p.groups
		p.closed = append(p.closed, false)
		sub := p.alt()
		if !p.take(p.token(")")) {
			panic(openParen)
		}
		p.closed[n] = true
		return &node{kind: nGroup, n: n, subs: []*node{sub}}
	}
	r := p.src[p.pos]
	p.pos++
	switch {
	case r == '.':
		return p.any()
	case r == '[':
		return p.bracket()
	case r == '^' && (p.ere() || start == atBranch):
		return assert(p.begin())
	case r == '$' && (p.ere() || p.pos == len(p.src) || p.has(`\)`) || p.has(`\|`)):
		return assert(p.end())
	case r == '\\':
		return p.escape()
	}
	return p.char(r)
}

func (p *parser) begin() int {
	if p.multi {
		return lineStart
	}
	return textStart
}

func (p *parser) end() int {
	if p.multi {
		return lineEnd
	}
	return textEnd
}

func (p *parser) escape() *node {
	if p.pos >= len(p.src) {
		panic(trailing)
	}
	if p.flags&(Escapes|Awk) != 0 {
		if r, ok := p.control(); ok {
			return p.char(r)
		}
	}
	r := p.src[p.pos]
	p.pos++
	switch r {
	case '<':
		return assert(wordStart)
	case '>':
		return assert(wordEnd)
	case 'b':
		return assert(wordEdge)
	case 'y':
		if p.flags&Awk != 0 {
			return assert(wordEdge)
		}
	case 'B':
		return assert(notWordEdge)
	case '`':
		return assert(textStart)
	case '\'':
		return assert(textEnd)
	case 'w', 'W', 's', 'S':
		s, _ := shorthand(r, false, p.flags&Bytes != 0)
		return p.ofSet(s)
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		n := int(r - '0')
		if p.flags&Awk != 0 {
			return p.char(r)
		}
		if n >= len(p.closed) || !p.closed[n] {
			panic(badBackRef)
		}
		return &node{kind: nBack, n: n, fold: p.fold()}
	}
	return p.char(r)
}

// control reads what follows a backslash in sed's and awk's spellings of single characters.
func (p *parser) control() (rune, bool) {
	digits := func(at, base, most int) (rune, int) {
		n := 0
		for n < most && at+n < len(p.src) {
			if _, err := strconv.ParseUint(string(p.src[at+n]), base, 8); err != nil {
				break
			}
			n++
		}
		v, _ := strconv.ParseUint(string(p.src[at:at+n]), base, 32)
		return p.byteRune(rune(v & 255)), n
	}
	r := p.src[p.pos]
	switch i := strings.IndexRune("afnrtv", r); {
	case i >= 0:
		p.pos++
		return rune("\a\f\n\r\t\v"[i]), true
	}
	if p.flags&Awk != 0 {
		switch {
		case r == '/' || r == '"':
			p.pos++
			return r, true
		case '0' <= r && r <= '7':
			v, n := digits(p.pos, 8, 3)
			p.pos += n
			return v, true
		}
		return 0, false
	}
	base, most := 0, 0
	switch r {
	case 'x':
		base, most = 16, 2
	case 'd':
		base, most = 10, 3
	case 'o':
		base, most = 8, 3
	case 'c':
		if p.pos+1 < len(p.src) {
			v := unicode.ToUpper(p.src[p.pos+1]) ^ 0x40
			p.pos += 2
			return v, true
		}
		return 0, false
	default:
		return 0, false
	}
	v, n := digits(p.pos+1, base, most)
	if n == 0 {
		return 0, false
	}
	p.pos += 1 + n
	return v, true
}

// byteRune is the character for a byte given by number.
func (p *parser) byteRune(v rune) rune {
	if v >= 0x80 && p.flags&Bytes == 0 {
		return invalid + v
	}
	return v
}

// bracket reads a bracket expression behind its [.
func (p *parser) bracket() *node {
	s := &set{}
	if p.take("^") {
		s.neg = true
	}
	if !s.neg && p.take(":") {
		// [:space:] instead of [[:space:]]: GNU's tools refuse it, since nobody means the set of its letters.
		if i := slices.Index(p.src[p.pos:], ']'); i > 1 && p.src[p.pos+i-1] == ':' {
			panic(MisplacedClass)
		}
		p.pos--
	}
	for first := true; ; first = false {
		if p.pos >= len(p.src) {
			panic(openBracket)
		}
		if !first && p.take("]") {
			break
		}
		from, isChar := p.member(s)
		if !p.has("-") || p.pos+1 >= len(p.src) || p.src[p.pos+1] == ']' {
			if isChar {
				s.add(from, from)
			}
			continue
		}
		p.pos++
		if !isChar {
			panic(badRange)
		}
		to, isChar := p.member(s)
		if !isChar || to < from {
			panic(badRange)
		}
		s.add(from, to)
	}
	if r, ok := s.single(); ok && !p.fold() {
		return p.char(r)
	}
	return p.ofSet(s)
}

// member reads a member of a bracket expression: a character, or a class, which it adds to s.
func (p *parser) member(s *set) (rune, bool) {
	r := p.src[p.pos]
	if r == '[' && p.pos+1 < len(p.src) && strings.ContainsRune(":.=", p.src[p.pos+1]) {
		sort := p.src[p.pos+1]
		for i := p.pos + 2; i+1 < len(p.src); i++ {
			if p.src[i] != sort || p.src[i+1] != ']' {
				continue
			}
			name := p.src[p.pos+2 : i]
			p.pos = i + 2
			if sort != ':' {
				if len(name) != 1 {
					panic(badCollation)
				}
				if sort == '=' {
					s.add(name[0], name[0])
					return 0, false
				}
				return name[0], true
			}
			is, ok := named(string(name), p.flags&Bytes != 0)
			if !ok || string(name) == "word" {
				panic(badClass)
			}
			if p.fold() && (string(name) == "upper" || string(name) == "lower") {
				is, _ = named("alpha", p.flags&Bytes != 0)
			}
			s.classes = append(s.classes, class{is, false})
			return 0, false
		}
		panic(openBracket)
	}
	p.pos++
	if r == '\\' && p.pos < len(p.src) {
		if p.flags&(Escapes|Awk) != 0 {
			if c, ok := p.control(); ok {
				return c, true
			}
		}
		if p.flags&Awk != 0 {
			r = p.src[p.pos]
			p.pos++
		}
	}
	return r, true
}

// Perl's expressions.

func (p *parser) perlAlt() *node {
	p.enter()
	defer func() { p.depth-- }()
	flags, dotAll, multi, extended := p.flags, p.dotAll, p.multi, p.extended
	defer func() { p.flags, p.dotAll, p.multi, p.extended = flags, dotAll, multi, extended }()
	alt := &node{kind: nAlt, subs: []*node{p.perlCat()}}
	for p.take("|") {
		alt.subs = append(alt.subs, p.perlCat())
	}
	if len(alt.subs) == 1 {
		return alt.subs[0]
	}
	return alt
}

func (p *parser) perlCat() *node {
	n := &node{kind: nCat}
	for p.pos < len(p.src) && (p.quoted || !p.has("|") && !p.has(")")) {
		if p.take(`\E`) {
			p.quoted = false
			continue
		}
		if !p.quoted && p.take(`\Q`) {
			p.quoted = true
			continue
		}
		if p.extended && !p.quoted {
			r := p.src[p.pos]
			if unicode.IsSpace(r) {
				p.pos++
				continue
			}
			if r == '#' {
				for p.pos < len(p.src) && p.src[p.pos] != '\n' {
					p.pos++
				}
				continue
			}
		}
		if !p.quoted && p.take("(?#") {
			for p.pos < len(p.src) && p.src[p.pos] != ')' {
				p.pos++
			}
			if !p.take(")") {
				panic(Error("missing ) after (?# comment"))
			}
			continue
		}
		a := p.perlAtom()
		if p.quoted && p.take(`\E`) {
			p.quoted = false
		}
		for p.pos < len(p.src) && !p.quoted {
			low, high := 0, -1
			switch {
			case p.take("*"):
			case p.take("+"):
				low = 1
			case p.take("?"):
				high = 1
			case p.has("{"):
				var ok bool
				if low, high, ok = p.perlInterval(); !ok {
					low = -1
				}
			default:
				low = -1
			}
			if low < 0 {
				break
			}
			a = &node{kind: nRepeat, subs: []*node{a}, min: low, max: high}
			if p.take("?") {
				a.mode = lazy
			} else if p.take("+") {
				a.mode = possessive
			}
		}
		n.subs = append(n.subs, a)
	}
	return n
}

func (p *parser) perlInterval() (low, high int, ok bool) {
	i := slices.Index(p.src[p.pos:], '}')
	if i < 0 {
		return 0, 0, false
	}
	a, b, comma := strings.Cut(string(p.src[p.pos+1:p.pos+i]), ",")
	low, err := strconv.Atoi(a)
	if err != nil || low < 0 || a[0] == '+' {
		return 0, 0, false
	}
	high = low
	if comma {
		high = -1
		if b != "" {
			if high, err = strconv.Atoi(b); err != nil || high < 0 || b[0] == '+' {
				return 0, 0, false
			}
		}
	}
	if low > 65535 || high > 65535 {
		panic(Error("number too big in {} quantifier"))
	}
	if high >= 0 && high < low {
		panic(Error("numbers out of order in {} quantifier"))
	}
	p.pos += i + 1
	return low, high, true
}

func (p *parser) perlAny() *node {
	if p.dotAll {
		return &node{kind: nAny}
	}
	s := &set{neg: true}
	s.add('\n', '\n')
	return &node{kind: nSet, set: s.finish(false)}
}

func (p *parser) perlAtom() *node {
	r := p.src[p.pos]
	p.pos++
	if p.quoted {
		return p.char(r)
	}
	switch r {
	case '*', '+', '?':
		panic(Error("quantifier does not follow a repeatable item"))
	case '(':
		return p.perlGroup()
	case '.':
		return p.perlAny()
	case '^':
		return assert(p.begin())
	case '$':
		if p.multi {
			return assert(lineEnd)
		}
		return assert(textEndLine)
	case '[':
		return p.perlBracket()
	case '\\':
		return p.perlEscape()
	}
	return p.char(r)
}

func (p *parser) until(end string) string {
	from := p.pos
	for !p.has(end) {
		if p.pos >= len(p.src) {
			panic(Error(fmt.Sprintf("missing %s", end)))
		}
		p.pos++
	}
	s := string(p.src[from:p.pos])
	p.take(end)
	return s
}

func (p *parser) perlGroup() *node {
	close := func(n *node) *node {
		if !p.take(")") {
			panic(Error("missing closing parenthesis"))
		}
		return n
	}
	capture := func(name string) *node {
		p.groups++
		n := p.groups
		if name != "" {
			if p.names == nil {
				p.names = map[string]int{}
			}
			if _, ok := p.names[name]; ok {
				panic(Error("two named subpatterns have the same name (PCRE2_DUPNAMES not set)"))
			}
			p.names[name] = n
		}
		return close(&node{kind: nGroup, n: n, subs: []*node{p.perlAlt()}})
	}
	if !p.take("?") {
		if p.has("*") {
			panic(Error("(*VERB) not recognized or malformed"))
		}
		return capture("")
	}
	look := func(behind, not bool) *node {
		sub := close(p.perlAlt())
		if !behind {
			return &node{kind: nLook, not: not, subs: []*node{sub}}
		}
		branches := []*node{sub}
		if sub.kind == nAlt {
			branches = sub.subs
		}
		all := &node{kind: nAlt}
		if not {
			all.kind = nCat
		}
		for _, b := range branches {
			n, ok := fixed(b)
			if !ok {
				panic(Error("lookbehind assertion is not fixed length"))
			}
			all.subs = append(all.subs, &node{kind: nLook, n: n, not: not, subs: []*node{b}})
		}
		return all
	}
	switch {
	case p.take(":"):
		return close(p.perlAlt())
	case p.take("="):
		return look(false, false)
	case p.take("!"):
		return look(false, true)
	case p.take("<="):
		return look(true, false)
	case p.take("<!"):
		return look(true, true)
	case p.take(">"):
		return close(&node{kind: nAtomic, subs: []*node{p.perlAlt()}})
	case p.take("P<"), p.has("<") && p.take("<"):
		return capture(p.until(">"))
	case p.take("'"):
		return capture(p.until("'"))
	case p.take("P="):
		return p.reference(p.until(")"))
	}
	flags, dotAll, multi, extended := p.flags, p.dotAll, p.multi, p.extended
	on := true
	for p.pos < len(p.src) {
		r := p.src[p.pos]
		p.pos++
		set := func(f *bool) { *f = on }
		switch r {
		case '-':
			on = false
		case 'i':
			if on {
				p.flags |= IgnoreCase
			} else {
				p.flags &^= IgnoreCase
			}
		case 's':
			set(&p.dotAll)
		case 'm':
			set(&p.multi)
		case 'x':
			set(&p.extended)
		case ')':
			return &node{kind: nEmpty}
		case ':':
			n := close(p.perlAlt())
			p.flags, p.dotAll, p.multi, p.extended = flags, dotAll, multi, extended
			return n
		default:
			if r == 'R' || r == '|' || r == '(' || r == '&' || '0' <= r && r <= '9' {
				panic(Error("recursion, conditions and branch reset are not supported in (?"))
			}
			panic(Error("unrecognized character after (? or (?-"))
		}
	}
	panic(Error("missing closing parenthesis"))
}

func (p *parser) reference(name string) *node {
	n, ok := p.names[name]
	if !ok {
		var err error
		if n, err = strconv.Atoi(name); err != nil || n == 0 {
			panic(Error("reference to non-existent subpattern"))
		}
		if n < 0 {
			n += p.groups + 1
		}
		if n < 1 {
			panic(Error("reference to non-existent subpattern"))
		}
	}
	p.backs = append(p.backs, n)
	return &node{kind: nBack, n: n, fold: p.fold()}
}

func (p *parser) perlEscape() *node {
	if p.pos >= len(p.src) {
		panic(Error(`\ at end of pattern`))
	}
	r := p.src[p.pos]
	p.pos++
	switch r {
	case 'b':
		return assert(wordEdge)
	case 'B':
		return assert(notWordEdge)
	case 'A':
		return assert(textStart)
	case 'z':
		return assert(textEnd)
	case 'Z':
		return assert(textEndLine)
	case 'K':
		return &node{kind: nKeep}
	case 'N':
		s := &set{neg: true}
		s.add('\n', '\n')
		return &node{kind: nSet, set: s.finish(false)}
	case 'R':
		s, _ := shorthand('v', true, true)
		crlf := &node{kind: nCat, subs: []*node{{kind: nChar, r: '\r'}, {kind: nChar, r: '\n'}}}
		return &node{kind: nAtomic, subs: []*node{{kind: nAlt, subs: []*node{crlf, {kind: nSet, set: s.finish(false)}}}}}
	case 'X':
		return &node{kind: nAny}
	case 'k':
		switch {
		case p.take("{"):
			return p.reference(p.until("}"))
		case p.take("<"):
			return p.reference(p.until(">"))
		case p.take("'"):
			return p.reference(p.until("'"))
		}
		panic(Error(`\k is not followed by a braced, angle-bracketed, or quoted name`))
	case 'g':
		if p.take("{") {
			return p.reference(p.until("}"))
		}
		from := p.pos
		p.take("-")
		for p.pos < len(p.src) && '0' <= p.src[p.pos] && p.src[p.pos] <= '9' {
			p.pos++
		}
		return p.reference(string(p.src[from:p.pos]))
	}
	if '1' <= r && r <= '9' {
		from := p.pos - 1
		for p.pos < len(p.src) && '0' <= p.src[p.pos] && p.src[p.pos] <= '9' && p.pos-from < 3 {
			p.pos++
		}
		n, _ := strconv.Atoi(string(p.src[from:p.pos]))
		if n < 10 || n <= p.groups {
			return p.reference(strconv.Itoa(n))
		}
		p.pos = from + 1
	}
	p.pos--
	if s, ok := p.perlSet(); ok {
		return p.ofPerl(s)
	}
	return p.char(p.perlChar())
}

func (p *parser) ofPerl(s *set) *node {
	s.fold = p.fold()
	return &node{kind: nSet, set: s.finish(false)}
}

// perlSet reads \d and its like, and \p, behind the backslash.
func (p *parser) perlSet() (*set, bool) {
	r := p.src[p.pos]
	if s, ok := shorthand(r, p.flags&Unicode == 0, false); ok {
		p.pos++
		return s, true
	}
	if r != 'p' && r != 'P' {
		return nil, false
	}
	p.pos++
	name := ""
	if p.take("{") {
		name = p.until("}")
	} else if p.pos < len(p.src) {
		name = string(p.src[p.pos])
		p.pos++
	}
	s := &set{neg: r == 'P'}
	if strings.HasPrefix(name, "^") {
		name, s.neg = name[1:], !s.neg
	}
	is, ok := property(name)
	if !ok {
		panic(Error(`unknown property after \P or \p`))
	}
	s.classes = []class{{is, false}}
	return s, true
}

// perlChar reads one character behind a backslash.
func (p *parser) perlChar() rune {
	r := p.src[p.pos]
	p.pos++
	switch r {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'f':
		return '\f'
	case 'a':
		return '\a'
	case 'e':
		return 27
	case 'c':
		if p.pos < len(p.src) {
			r = unicode.ToUpper(p.src[p.pos]) ^ 0x40
			p.pos++
		}
		return r
	case 'x':
		if p.take("{") {
			v, err := strconv.ParseUint(p.until("}"), 16, 32)
			if err != nil || v > unicode.MaxRune {
				panic(Error(`character code point value in \x{} or \o{} is too large`))
			}
			return rune(v)
		}
		v := rune(0)
		for range 2 {
			if p.pos >= len(p.src) {
				break
			}
			d, err := strconv.ParseUint(string(p.src[p.pos]), 16, 8)
			if err != nil {
				break
			}
			v = v*16 + rune(d)
			p.pos++
		}
		return v
	}
	if '0' <= r && r <= '7' {
		v := r - '0'
		for range 2 {
			if p.pos >= len(p.src) || p.src[p.pos] < '0' || p.src[p.pos] > '7' {
				break
			}
			v = v*8 + p.src[p.pos] - '0'
			p.pos++
		}
		return v
	}
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		panic(Error(`unrecognized character follows \`))
	}
	return r
}

func (p *parser) perlBracket() *node {
	s := &set{neg: p.take("^")}
	member := func() (rune, bool) {
		r := p.src[p.pos]
		if p.has("[:") {
			if i := strings.Index(string(p.src[p.pos:]), ":]"); i > 0 {
				at := p.pos
				p.pos += 2
				not := p.take("^")
				name := p.until(":]")
				if is, ok := named(name, p.flags&Unicode == 0); ok {
					s.classes = append(s.classes, class{is, not})
					return 0, false
				}
				if strings.IndexFunc(name, func(r rune) bool { return !unicode.IsLetter(r) }) < 0 {
					panic(Error("unknown POSIX class name"))
				}
				p.pos = at
			}
		}
		p.pos++
		if r != '\\' {
			return r, true
		}
		if p.pos >= len(p.src) {
			panic(Error("missing terminating ] for character class"))
		}
		if sub, ok := p.perlSet(); ok {
			for _, c := range sub.classes {
				s.classes = append(s.classes, class{c.is, sub.neg})
			}
			return 0, false
		}
		if p.take("b") {
			return '\b', true
		}
		return p.perlChar(), true
	}
	for first := true; ; first = false {
		if p.pos >= len(p.src) {
			panic(Error("missing terminating ] for character class"))
		}
		if !first && p.take("]") {
			break
		}
		from, isChar := member()
		if !isChar {
			continue
		}
		if !p.has("-") || p.pos+1 >= len(p.src) || p.src[p.pos+1] == ']' {
			s.add(from, from)
			continue
		}
		p.pos++
		to, isChar := member()
		switch {
		case !isChar:
			s.add(from, from)
			s.add('-', '-')
		case to < from:
			panic(Error("range out of order in character class"))
		default:
			s.add(from, to)
		}
	}
	return p.ofPerl(s)
}

// fixed is how many characters n matches, if that is always the same.
func fixed(n *node) (int, bool) {
	switch n.kind {
	case nEmpty, nAssert, nLook, nFail:
		return 0, true
	case nChar, nSet, nAny:
		return 1, true
	case nCat:
		sum := 0
		for _, s := range n.subs {
			w, ok := fixed(s)
			if !ok {
				return 0, false
			}
			sum += w
		}
		return sum, true
	case nAlt:
		w, ok := fixed(n.subs[0])
		for _, s := range n.subs[1:] {
			v, same := fixed(s)
			ok = ok && same && v == w
		}
		return w, ok
	case nRepeat:
		w, ok := fixed(n.subs[0])
		return w * n.min, ok && n.min == n.max
	case nGroup, nAtomic:
		return fixed(n.subs[0])
	}
	return 0, false
}
