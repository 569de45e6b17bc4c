package expand

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A pattern is matched by following the set of positions it can have reached, token by token: no pattern takes more
// than polynomial time, also not nested @(...) and !(...), and it is known at once where a match may end.
type pattern struct {
	tokens []token
	fold   bool // without regard to case
}

type token struct {
	kind tokenKind
	lit  string    // literal
	set  *charset  // bracket
	op   byte      // group: ? * + @ !
	alts [][]token // group
}

type tokenKind uint8

const (
	literal tokenKind = iota
	anyChar
	anyString
	bracket
	group
)

// compile reads a pattern. It cannot fail: what is malformed stands for itself.
func compile(s string, ext, fold bool) *pattern {
	if fold {
		s = foldCase(s)
	}
	p := parser{s: s, ext: ext}
	return &pattern{p.sequence(0), fold}
}

type parser struct {
	s   string
	i   int
	ext bool
}

// sequence reads tokens to the end; in a group to its "|" or ")".
func (p *parser) sequence(depth int) []token {
	var tokens []token
	var lit []byte
	flush := func() {
		if len(lit) > 0 {
			tokens = append(tokens, token{kind: literal, lit: string(lit)})
			lit = lit[:0]
		}
	}
	for p.i < len(p.s) {
		c := p.s[p.i]
		if depth > 0 && (c == '|' || c == ')') {
			break
		}
		if p.ext && p.i+1 < len(p.s) && p.s[p.i+1] == '(' && strings.IndexByte("?*+@!", c) >= 0 {
			if end := p.groupEnd(p.i + 1); end >= 0 {
				flush()
				p.i += 2
				t := token{kind: group, op: c}
				for {
					t.alts = append(t.alts, p.sequence(depth+1))
					p.i++
					if p.s[p.i-1] == ')' {
						break
					}
				}
				tokens = append(tokens, t)
				continue
			}
		}
		switch c {
		case '\\':
			p.i++
			if p.i == len(p.s) {
				lit = append(lit, '\\')
				continue
			}
			_, n := utf8.DecodeRuneInString(p.s[p.i:])
			lit = append(lit, p.s[p.i:p.i+n]...)
			p.i += n
		case '*':
			flush()
			p.i++
			if len(tokens) == 0 || tokens[len(tokens)-1].kind != anyString {
				tokens = append(tokens, token{kind: anyString})
			}
		case '?':
			flush()
			p.i++
			tokens = append(tokens, token{kind: anyChar})
		case '[':
			if set, n := parseSet(p.s[p.i:]); n > 0 {
				flush()
				p.i += n
				tokens = append(tokens, token{kind: bracket, set: set})
				continue
			}
			lit = append(lit, c)
			p.i++
		default:
			lit = append(lit, c)
			p.i++
		}
	}
	flush()
	return tokens
}

// groupEnd finds the ")" of the group whose "(" stands at i; -1 when there is none.
func (p *parser) groupEnd(i int) int {
	depth := 0
	for ; i < len(p.s); i++ {
		switch p.s[i] {
		case '\\':
			i++
		case '[':
			if _, n := parseSet(p.s[i:]); n > 0 {
				i += n - 1
			}
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

type charset struct {
	not    bool
	never  bool // a range from high to low: nothing matches, also not with ^
	ranges [][2]rune
	class  []func(rune) bool
}

// parseSet reads a bracket expression and tells its length; 0 when it has no end.
func parseSet(s string) (*charset, int) {
	set := &charset{}
	i := 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		set.not = true
		i++
	}
	one := func() rune { // one character: the end of a range too
		if s[i] == '[' && i+1 < len(s) && (s[i+1] == '.' || s[i+1] == '=') {
			if end := strings.Index(s[i+2:], s[i+1:i+2]+"]"); end > 0 {
				r, n := utf8.DecodeRuneInString(s[i+2:])
				if n == end {
					i += end + 4
					return r
				}
			}
		}
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		r, n := decode(s[i:])
		i += n
		return r
	}
	for first := true; ; first = false {
		if i >= len(s) {
			return nil, 0
		}
		if s[i] == ']' && !first {
			return set, i + 1
		}
		if s[i] == '/' {
			// A slash is never matched by a bracket of a file name; elsewhere it is a character like others.
			set.ranges = append(set.ranges, [2]rune{'/', '/'})
			i++
			continue
		}
		if strings.HasPrefix(s[i:], "[:") {
			if end := strings.Index(s[i+2:], ":]"); end >= 0 {
				if f, ok := classes[s[i+2:i+2+end]]; ok {
					set.class = append(set.class, f)
				}
				i += end + 4
				continue
			}
		}
		lo := one()
		hi := lo
		if i+1 < len(s) && s[i] == '-' && s[i+1] != ']' {
			i++
			if hi = one(); hi < lo {
				set.never = true
			}
		}
		set.ranges = append(set.ranges, [2]rune{lo, hi})
	}
}

// classes are the character classes, as the C.UTF-8 locale has them.
var classes = map[string]func(rune) bool{
	"alnum":  func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) },
	"alpha":  unicode.IsLetter,
	"ascii":  func(r rune) bool { return r < 0x80 },
	"blank":  func(r rune) bool { return r == ' ' || r == '\t' },
	"cntrl":  unicode.IsControl,
	"digit":  func(r rune) bool { return r >= '0' && r <= '9' },
	"graph":  func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) },
	"lower":  unicode.IsLower,
	"print":  unicode.IsPrint,
	"punct":  func(r rune) bool { return r > ' ' && unicode.IsPrint(r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) },
	"space":  unicode.IsSpace,
	"upper":  unicode.IsUpper,
	"word":   func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) },
	"xdigit": func(r rune) bool { return r < 0x80 && strings.IndexByte("0123456789abcdefABCDEF", byte(r)) >= 0 },
}

func (c *charset) has(r rune, fold bool) bool {
	if c.never {
		return false
	}
	in := c.in(r) || fold && (c.in(unicode.ToUpper(r)) || c.in(unicode.ToLower(r)))
	return in != c.not
}

func (c *charset) in(r rune) bool {
	for _, x := range c.ranges {
		if x[0] <= r && r <= x[1] {
			return true
		}
	}
	for _, f := range c.class {
		if f(r) {
			return true
		}
	}
	return false
}

// decode is utf8.DecodeRuneInString, but a byte that is no character is one of its own beyond all characters.
func decode(s string) (rune, int) {
	if s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && n == 1 {
		return unicode.MaxRune + 1 + rune(s[0]), 1
	}
	return r, n
}

func decodeLast(s string) (rune, int) {
	if c := s[len(s)-1]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	r, n := utf8.DecodeLastRuneInString(s)
	if r == utf8.RuneError && n == 1 {
		return unicode.MaxRune + 1 + rune(s[len(s)-1]), 1
	}
	return r, n
}

func foldCase(s string) string { return strings.ToLower(s) }

// positions are offsets into the string, rising: those of list, or all from lo to the end.
type positions struct {
	list []int
	lo   int // with all
	all  bool
}

func (p positions) empty() bool { return !p.all && len(p.list) == 0 }

// run follows tokens from the positions at; back goes from the end of s to its start.
func (m *matcher) run(tokens []token, at positions) positions {
	for i := range tokens {
		if at.empty() {
			return at
		}
		at = m.step(&tokens[i], at)
	}
	return at
}

// matcher matches one string. Going back, positions still count the bytes that are passed: from the end.
type matcher struct {
	s    string
	fold bool
	back bool
}

// next returns the character after position p and its length; 0 at the end.
func (m *matcher) next(p int) (rune, int) {
	if p == len(m.s) {
		return 0, 0
	}
	if m.back {
		return decodeLast(m.s[:len(m.s)-p])
	}
	return decode(m.s[p:])
}

func (m *matcher) each(at positions, f func(p int)) {
	if !at.all {
		for _, p := range at.list {
			f(p)
		}
		return
	}
	for p := at.lo; ; {
		f(p)
		_, n := m.next(p)
		if n == 0 {
			return
		}
		p += n
	}
}

func (m *matcher) step(t *token, at positions) positions {
	var out []int
	switch t.kind {
	case anyString:
		if at.all {
			return at
		}
		return positions{all: true, lo: at.list[0]}
	case literal:
		if at.all && !m.back {
			for p := at.lo; ; p++ {
				n := strings.Index(m.s[p:], t.lit)
				if n < 0 {
					break
				}
				p += n
				out = append(out, p+len(t.lit))
			}
			return positions{list: out}
		}
		m.each(at, func(p int) {
			if m.back && strings.HasSuffix(m.s[:len(m.s)-p], t.lit) || !m.back && strings.HasPrefix(m.s[p:], t.lit) {
				out = append(out, p+len(t.lit))
			}
		})
	case anyChar, bracket:
		m.each(at, func(p int) {
			if r, n := m.next(p); n > 0 && (t.kind == anyChar || t.set.has(r, m.fold)) {
				out = append(out, p+n)
			}
		})
	case group:
		return m.group(t, at)
	}
	return positions{list: out}
}

func (m *matcher) group(t *token, at positions) positions {
	once := func(at positions) map[int]bool {
		set := map[int]bool{}
		for _, alt := range t.alts {
			m.each(m.run(alt, at), func(p int) { set[p] = true })
		}
		return set
	}
	switch t.op {
	case '!':
		set := map[int]bool{}
		m.each(at, func(p int) {
			not := once(positions{list: []int{p}})
			m.each(positions{all: true, lo: p}, func(q int) {
				if !not[q] {
					set[q] = true
				}
			})
		})
		return sorted(set)
	case '*', '+':
		set := map[int]bool{}
		if t.op == '*' {
			m.each(at, func(p int) { set[p] = true })
		}
		for frontier := at; ; {
			var fresh []int
			for p := range once(frontier) {
				if !set[p] {
					set[p] = true
					fresh = append(fresh, p)
				}
			}
			if len(fresh) == 0 {
				return sorted(set)
			}
			slices.Sort(fresh)
			frontier = positions{list: fresh}
		}
	}
	set := once(at)
	if t.op == '?' {
		m.each(at, func(p int) { set[p] = true })
	}
	return sorted(set)
}

func sorted(set map[int]bool) positions {
	list := make([]int, 0, len(set))
	for p := range set {
		list = append(list, p)
	}
	slices.Sort(list)
	return positions{list: list}
}

// literal returns the string that the pattern stands for when it has nothing special.
func (p *pattern) literal() (string, bool) {
	switch {
	case p.fold:
	case len(p.tokens) == 0:
		return "", true
	case len(p.tokens) == 1 && p.tokens[0].kind == literal:
		return p.tokens[0].lit, true
	}
	return "", false
}

func (p *pattern) subject(s string) string {
	if p.fold {
		return foldCase(s)
	}
	return s
}

// match tells whether the pattern matches the whole of s.
func (p *pattern) match(s string) bool {
	s = p.subject(s)
	switch len(p.tokens) {
	case 0:
		return s == ""
	case 1:
		switch t := p.tokens[0]; t.kind {
		case literal:
			return s == t.lit
		case anyString:
			return true
		}
	}
	// The ends are compared first: most patterns that do not match fail there.
	if t := p.tokens[0]; t.kind == literal && !strings.HasPrefix(s, t.lit) {
		return false
	}
	if t := p.tokens[len(p.tokens)-1]; t.kind == literal && !strings.HasSuffix(s, t.lit) {
		return false
	}
	m := matcher{s: s, fold: p.fold}
	end := m.run(p.tokens, start)
	return end.all || len(end.list) > 0 && end.list[len(end.list)-1] == len(s)
}

var start = positions{list: []int{0}}

// prefix returns the length of the longest or the shortest prefix of s that matches, -1 when none does.
func (p *pattern) prefix(s string, longest bool) int {
	m := matcher{s: p.subject(s), fold: p.fold}
	if len(m.s) != len(s) {
		m.s = s // folding changed lengths: positions would mean nothing
	}
	return m.reach(p.tokens, longest)
}

func (m *matcher) reach(tokens []token, longest bool) int {
	end := m.run(tokens, start)
	switch {
	case end.empty():
		return -1
	case end.all && longest:
		return len(m.s)
	case end.all:
		return end.lo
	case longest:
		return end.list[len(end.list)-1]
	}
	return end.list[0]
}

// suffix is prefix from the end of s.
func (p *pattern) suffix(s string, longest bool) int {
	m := matcher{s: p.subject(s), fold: p.fold, back: true}
	if len(m.s) != len(s) {
		m.s = s
	}
	return m.reach(reverse(p.tokens), longest)
}

func reverse(tokens []token) []token {
	out := slices.Clone(tokens)
	slices.Reverse(out)
	for i, t := range out {
		if t.kind != group {
			continue
		}
		alts := make([][]token, len(t.alts))
		for j, alt := range t.alts {
			alts[j] = reverse(alt)
		}
		out[i].alts = alts
	}
	return out
}

// find returns the first place at or after from where the pattern matches, and the end of its longest match there.
func (p *pattern) find(s string, from int) (int, int) {
	if lit, ok := p.literal(); ok {
		if i := strings.Index(s[from:], lit); i >= 0 && lit != "" {
			return from + i, from + i + len(lit)
		}
		return -1, -1
	}
	subject := p.subject(s)
	if len(subject) != len(s) {
		subject = s
	}
	if len(p.tokens) == 0 {
		return -1, -1
	}
	first := &p.tokens[0]
	for i := from; i <= len(s); {
		switch first.kind {
		case literal:
			n := strings.Index(subject[i:], first.lit)
			if n < 0 {
				return -1, -1
			}
			i += n
		case bracket:
			for i < len(s) {
				r, n := decode(subject[i:])
				if first.set.has(r, p.fold) {
					break
				}
				i += n
			}
			if i == len(s) {
				return -1, -1
			}
		}
		var end int
		if len(p.tokens) == 1 && (first.kind == bracket || first.kind == anyChar) {
			end = -1
			if i < len(s) {
				_, end = decode(subject[i:])
			}
		} else {
			m := matcher{s: subject[i:], fold: p.fold}
			end = m.reach(p.tokens, true)
		}
		if end >= 0 {
			return i, i + end
		}
		if first.kind == anyString || i == len(s) {
			return -1, -1 // what did not match from here does not match from further on
		}
		_, n := decode(subject[i:])
		i += n
	}
	return -1, -1
}

// special tells whether s has characters that mean something in a pattern.
func special(s string, ext bool) bool {
	for i := range len(s) {
		switch s[i] {
		case '*', '?', '[', '\\':
			return true
		case '(':
			if ext && i > 0 && (s[i-1] == '+' || s[i-1] == '@' || s[i-1] == '!') {
				return true
			}
		}
	}
	return false
}

// escape quotes what means something in a pattern.
func escape(s string) string {
	if !strings.ContainsAny(s, `*?[]\()|!^-+@`) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	for i := range len(s) {
		if strings.IndexByte(`*?[]\()|!^-+@`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// unescape removes the quotes of a pattern: its literal meaning.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
