package jq

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

type nodeKind uint8

const (
	nIdentity nodeKind = iota
	nRecurse
	nField    // left.text
	nIndex    // left[right]
	nSlice    // left[right:third]
	nIterate  // left[]
	nLiteral  // value
	nString   // text with parts; format in text
	nFormat   // @text
	nArray    // [left]
	nObject   // pairs
	nNegate   // -left
	nPipe     // left | right
	nComma    // left , right
	nBinary   // left text right
	nAnd      // left and right
	nOr       // left or right
	nAlt      // left // right
	nAssign   // left text right, where text is = |= += and so on
	nIf       // left then right else third (nil)
	nTry      // left catch right (nil)
	nReduce   // left as patterns (right; third)
	nForeach  // left as patterns (right; third; fourth)
	nAs       // left as patterns | right
	nDef      // def | right
	nCall     // text(args)
	nVariable // $text
	nLabel    // label $text | right
	nBreak    // break $text
	nLoc      // $__loc__
)

type node struct {
	kind                       nodeKind
	text                       string
	value                      any
	left, right, third, fourth *node
	args                       []*node
	pairs                      []pair
	patterns                   []*pattern
	def                        *definition
	line                       int
}

// rawText marks the literals that are the text of a string between its \( ).
const rawText = "raw"

type pair struct{ key, value *node }

// pattern is what a value is taken apart by: a variable, an array or an object.
type pattern struct {
	name   string
	array  []*pattern
	object []patternPair
}

type patternPair struct {
	name  string // $name: also a variable
	key   *node
	value *pattern // nil: none
}

type definition struct {
	name   string
	params []string // with $ in front for those that are values
	body   *node
	line   int
}

type tok uint8

const (
	kEOF tok = iota
	kIdent
	kField // .name
	kVar
	kNumber
	kString
	kFormat
	kOp
	kKeyword
)

type token struct {
	kind  tok
	text  string
	num   any
	parts []*node // of a string with \( )
	line  int
	pos   int
}

type parser struct {
	src   string
	pos   int
	line  int
	t     token
	depth int
}

type syntaxError string

func (e syntaxError) Error() string { return string(e) }

var keywords = map[string]bool{
	"def": true, "if": true, "then": true, "elif": true, "else": true, "end": true, "as": true, "reduce": true, "foreach": true,
	"try": true, "catch": true, "label": true, "import": true, "include": true, "and": true, "or": true, "__loc__": true,
}

func (p *parser) fail(what string) {
	if what == "" {
		switch {
		case p.t.kind == kEOF:
			what = "unexpected end of file"
		case p.t.kind == kIdent:
			what = "unexpected IDENT"
		case p.t.kind == kField:
			what = "unexpected FIELD"
		case p.t.kind == kNumber:
			what = "unexpected LITERAL"
		case p.t.kind == kString:
			what = "unexpected QQSTRING_START"
		case p.t.kind == kOp && len(p.t.text) == 1:
			what = "unexpected '" + p.t.text + "'"
		default:
			what = "unexpected " + p.t.text
		}
	}
	panic(syntaxError(fmt.Sprintf("syntax error, %s (Unix shell quoting issues?) at <top-level>, line %d:", what, p.t.line)))
}

func (p *parser) enter() {
	if p.depth++; p.depth > 2000 {
		p.fail("memory exhausted")
	}
}

func isIdent(c byte, first bool) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || !first && '0' <= c && c <= '9'
}

func (p *parser) at(i int) byte {
	if i < len(p.src) {
		return p.src[i]
	}
	return 0
}

// name reads a name, which may have :: in it.
func (p *parser) name() string {
	start := p.pos
	for {
		for isIdent(p.at(p.pos), p.pos == start) {
			p.pos++
		}
		if strings.HasPrefix(p.src[p.pos:], "::") && isIdent(p.at(p.pos+2), true) {
			p.pos += 2
			continue
		}
		return p.src[start:p.pos]
	}
}

func (p *parser) next() {
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		if c == '\n' {
			p.line++
		} else if c == '#' {
			for p.pos < len(p.src) && p.src[p.pos] != '\n' {
				p.pos++
			}
			continue
		} else if c != ' ' && c != '\t' && c != '\r' {
			break
		}
		p.pos++
	}
	p.t = token{line: p.line, pos: p.pos}
	if p.pos >= len(p.src) {
		p.t.kind = kEOF
		return
	}
	c := p.src[p.pos]
	switch {
	case c == '"':
		p.pos++
		p.t.kind = kString
		p.stringBody()
		return
	case c == '.' && isIdent(p.at(p.pos+1), true):
		p.pos++
		start := p.pos
		for isIdent(p.at(p.pos), p.pos == start) {
			p.pos++
		}
		p.t.kind, p.t.text = kField, p.src[start:p.pos]
		return
	case c == '.' && '0' <= p.at(p.pos+1) && p.at(p.pos+1) <= '9', '0' <= c && c <= '9':
		start := p.pos
		digits := func() {
			for '0' <= p.at(p.pos) && p.at(p.pos) <= '9' {
				p.pos++
			}
		}
		digits()
		if p.at(p.pos) == '.' {
			p.pos++
			digits()
		}
		if e := p.at(p.pos); e == 'e' || e == 'E' {
			i := p.pos + 1
			if s := p.at(i); s == '+' || s == '-' {
				i++
			}
			if d := p.at(i); '0' <= d && d <= '9' {
				p.pos = i
				digits()
			}
		}
		p.t.kind, p.t.text = kNumber, p.src[start:p.pos]
		p.t.num, _ = parseNumber(p.t.text)
		return
	case c == '$' && (isIdent(p.at(p.pos+1), true) || p.at(p.pos+1) == ' '):
		p.pos++
		for p.at(p.pos) == ' ' {
			p.pos++
		}
		p.t.kind, p.t.text = kVar, p.name()
		return
	case c == '@' && isIdent(p.at(p.pos+1), false):
		start := p.pos
		p.pos++
		for isIdent(p.at(p.pos), false) {
			p.pos++
		}
		p.t.kind, p.t.text = kFormat, p.src[start:p.pos]
		return
	case isIdent(c, true):
		p.t.kind, p.t.text = kIdent, p.name()
		if keywords[p.t.text] {
			p.t.kind = kKeyword
		}
		return
	}
	p.t.kind = kOp
	for _, op := range []string{"?//", "//=", "|=", "+=", "-=", "*=", "/=", "%=", "==", "!=", "<=", ">=", "//", ".."} {
		if strings.HasPrefix(p.src[p.pos:], op) && !strings.HasPrefix(p.src[p.pos:], "?//=") {
			p.t.text = op
			p.pos += len(op)
			return
		}
	}
	if strings.IndexByte("|,()[]{}:;=<>+-*/%?.$", c) < 0 {
		p.fail("unexpected INVALID_CHARACTER")
	}
	p.t.text = string(c)
	p.pos++
}

// stringBody reads a string behind its opening quote into the token.
func (p *parser) stringBody() {
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			p.t.parts = append(p.t.parts, &node{kind: nLiteral, text: rawText, value: b.String()})
			b.Reset()
		}
	}
	interpolated := false
	for {
		if p.pos >= len(p.src) {
			p.fail("unexpected end of file, expecting QQSTRING_TEXT or QQSTRING_INTERP_START or QQSTRING_END")
		}
		c := p.src[p.pos]
		p.pos++
		if c == '\n' {
			p.line++
		}
		if c == '"' {
			break
		}
		if c != '\\' {
			b.WriteByte(c)
			continue
		}
		e := p.at(p.pos)
		p.pos++
		switch e {
		case '(':
			flush()
			interpolated = true
			save := p.t
			p.enter()
			p.next()
			n := p.pipe()
			if !p.is(")") {
				p.fail("")
			}
			p.depth--
			p.t = save
			p.t.parts = append(p.t.parts, n)
		case '"', '\\', '/':
			b.WriteByte(e)
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'u':
			quoted := `"\u` + p.src[p.pos:min(p.pos+4, len(p.src))]
			n := 4
			if strings.HasPrefix(p.src[min(p.pos+4, len(p.src)):], `\u`) {
				quoted += p.src[p.pos+4 : min(p.pos+10, len(p.src))]
				if r, ok := hex4([]byte(quoted[3:])); ok && r >= 0xD800 && r < 0xDC00 {
					n = 10
				} else {
					quoted = quoted[:7]
				}
			}
			v, err := decodeString(quoted + `"`)
			if err != nil {
				p.fail("invalid escape")
			}
			b.WriteString(v.(string))
			p.pos += n
		default:
			p.fail("invalid escape")
		}
	}
	text := b.String()
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if !interpolated {
		p.t.text = text
		p.t.parts = nil
		return
	}
	if text != "" {
		p.t.parts = append(p.t.parts, &node{kind: nLiteral, text: rawText, value: text})
	}
}

func (p *parser) is(op string) bool { return p.t.kind == kOp && p.t.text == op }
func (p *parser) word(w string) bool {
	return (p.t.kind == kKeyword || p.t.kind == kIdent) && p.t.text == w
}

func (p *parser) accept(op string) bool {
	if p.is(op) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expect(op string) {
	if !p.accept(op) {
		p.fail("")
	}
}

func (p *parser) expectWord(w string) {
	if !p.word(w) {
		p.fail("")
	}
	p.next()
}

// module is a program or a file of definitions.
type module struct {
	imports []moduleImport
	defs    []*definition
	main    *node // nil: none
}

type moduleImport struct {
	path string
	name string // "": include
	data bool
	meta *node
}

func parseProgram(src string) (m *module, err error) {
	p := &parser{src: src, line: 1}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(syntaxError)
			if !ok {
				panic(r)
			}
			m, err = nil, e
		}
	}()
	p.next()
	m = &module{}
	if p.t.kind == kIdent && p.t.text == "module" {
		p.next()
		p.postfix()
		p.expect(";")
	}
	for p.word("import") || p.word("include") {
		include := p.t.text == "include"
		p.next()
		if p.t.kind != kString {
			p.fail("")
		}
		im := moduleImport{path: p.t.text}
		p.next()
		if !include {
			p.expectWord("as")
			if p.t.kind != kIdent && p.t.kind != kVar {
				p.fail("")
			}
			im.data = p.t.kind == kVar
			im.name = p.t.text
			p.next()
		}
		if !p.is(";") {
			im.meta = p.postfix()
		}
		p.expect(";")
		m.imports = append(m.imports, im)
	}
	for p.word("def") {
		m.defs = append(m.defs, p.definition())
	}
	if p.t.kind != kEOF {
		m.main = p.pipe()
	}
	if p.t.kind != kEOF {
		p.fail("")
	}
	return m, nil
}

func (p *parser) definition() *definition {
	d := &definition{line: p.t.line}
	p.next()
	if p.t.kind != kIdent && p.t.kind != kKeyword {
		p.fail("")
	}
	d.name = p.t.text
	p.next()
	if p.accept("(") {
		for {
			switch p.t.kind {
			case kVar:
				d.params = append(d.params, "$"+p.t.text)
			case kIdent, kKeyword:
				d.params = append(d.params, p.t.text)
			default:
				p.fail("")
			}
			p.next()
			if !p.accept(";") {
				break
			}
		}
		p.expect(")")
	}
	p.expect(":")
	d.body = p.pipe()
	p.expect(";")
	return d
}

func (p *parser) pipe() *node {
	p.enter()
	defer func() { p.depth-- }()
	if p.word("def") {
		d := p.definition()
		return &node{kind: nDef, def: d, right: p.pipe(), line: d.line}
	}
	if p.word("label") {
		line := p.t.line
		p.next()
		if p.t.kind != kVar {
			p.fail("")
		}
		name := p.t.text
		p.next()
		p.expect("|")
		return &node{kind: nLabel, text: name, right: p.pipe(), line: line}
	}
	left := p.comma()
	if p.word("as") {
		return p.as(left)
	}
	if p.is("|") {
		p.next()
		return &node{kind: nPipe, left: left, right: p.pipe()}
	}
	return left
}

func (p *parser) as(left *node) *node {
	line := p.t.line
	p.next()
	pats := []*pattern{p.pattern()}
	for p.accept("?//") {
		pats = append(pats, p.pattern())
	}
	p.expect("|")
	return &node{kind: nAs, left: left, patterns: pats, right: p.pipe(), line: line}
}

func (p *parser) comma() *node {
	left := p.binary(0)
	for p.is(",") {
		p.next()
		left = &node{kind: nComma, left: left, right: p.binary(0)}
	}
	return left
}

// levels are the binary operators, from those that bind least.
var levels = []struct {
	ops   string
	assoc byte // l(eft), r(ight), n(one)
}{
	{" // ", 'r'},
	{" = |= += -= *= /= %= //= ", 'n'},
	{" or ", 'l'},
	{" and ", 'l'},
	{" == != < <= > >= ", 'n'},
	{" + - ", 'l'},
	{" * / % ", 'l'},
}

func (p *parser) binary(level int) *node {
	if level == len(levels) {
		return p.unary()
	}
	left := p.binary(level + 1)
	for {
		if p.t.kind != kOp && p.t.kind != kKeyword {
			return left
		}
		op := p.t.text
		if !strings.Contains(levels[level].ops, " "+op+" ") {
			return left
		}
		line := p.t.line
		p.next()
		var right *node
		if levels[level].assoc == 'r' {
			p.enter()
			right = p.binary(level)
			p.depth--
		} else {
			right = p.binary(level + 1)
		}
		n := &node{kind: nBinary, text: op, left: left, right: right, line: line}
		switch level {
		case 0:
			n.kind = nAlt
		case 1:
			n.kind = nAssign
		case 2:
			n.kind = nOr
		case 3:
			n.kind = nAnd
		}
		left = n
		if levels[level].assoc == 'n' && p.t.kind == kOp && strings.Contains(levels[level].ops, " "+p.t.text+" ") {
			p.fail("")
		}
	}
}

func (p *parser) unary() *node {
	if p.is("-") {
		p.enter()
		defer func() { p.depth-- }()
		line := p.t.line
		p.next()
		return &node{kind: nNegate, left: p.unary(), line: line}
	}
	n := p.postfix()
	if p.word("as") {
		return p.as(n)
	}
	return n
}

// postfix reads a term with its suffixes.
func (p *parser) postfix() *node {
	p.enter()
	defer func() { p.depth-- }()
	n := p.term()
	for {
		line := p.t.line
		switch {
		case p.t.kind == kField:
			n = &node{kind: nField, left: n, text: p.t.text, line: line}
			p.next()
		case p.is("."):
			p.next()
			switch {
			case p.t.kind == kString:
				n = &node{kind: nIndex, left: n, right: p.str("@text"), line: line}
			case p.is("["):
				n = p.bracket(n)
			default:
				p.fail("")
			}
		case p.is("["):
			n = p.bracket(n)
		case p.is("?"):
			p.next()
			n = &node{kind: nTry, left: n, line: line}
		case p.is("?//"):
			// .a?//x is .a? // x: patterns have no such operands.
			n = &node{kind: nTry, left: n, line: line}
			p.t.text = "//"
			return n
		default:
			return n
		}
	}
}

func (p *parser) bracket(left *node) *node {
	line := p.t.line
	p.next()
	switch {
	case p.accept("]"):
		return &node{kind: nIterate, left: left, line: line}
	case p.accept(":"):
		to := p.pipe()
		p.expect("]")
		return &node{kind: nSlice, left: left, third: to, line: line}
	}
	from := p.pipe()
	if p.accept(":") {
		n := &node{kind: nSlice, left: left, right: from, line: line}
		if !p.is("]") {
			n.third = p.pipe()
		}
		p.expect("]")
		return n
	}
	p.expect("]")
	return &node{kind: nIndex, left: left, right: from, line: line}
}

// str makes a node of a string token.
func (p *parser) str(format string) *node {
	t := p.t
	p.next()
	if t.parts == nil {
		return &node{kind: nLiteral, value: t.text, line: t.line}
	}
	return &node{kind: nString, text: format, args: t.parts, line: t.line}
}

func (p *parser) term() *node {
	t := p.t
	switch t.kind {
	case kNumber:
		p.next()
		return &node{kind: nLiteral, value: t.num}
	case kString:
		return p.str("@text")
	case kFormat:
		p.next()
		if p.t.kind == kString {
			return p.str(t.text)
		}
		return &node{kind: nFormat, text: t.text, line: t.line}
	case kField:
		p.next()
		return &node{kind: nField, left: &node{kind: nIdentity}, text: t.text, line: t.line}
	case kVar:
		p.next()
		if t.text == "__loc__" {
			return &node{kind: nLoc, line: t.line}
		}
		return &node{kind: nVariable, text: t.text, line: t.line}
	case kIdent:
		p.next()
		if t.text == "break" && p.t.kind == kVar {
			name := p.t.text
			p.next()
			return &node{kind: nBreak, text: name, line: t.line}
		}
		n := &node{kind: nCall, text: t.text, line: t.line}
		if p.accept("(") {
			for {
				n.args = append(n.args, p.pipe())
				if !p.accept(";") {
					break
				}
			}
			p.expect(")")
		}
		return n
	case kKeyword:
		switch t.text {
		case "if":
			return p.ifThen()
		case "try":
			p.next()
			n := &node{kind: nTry, left: p.tryBody(), line: t.line}
			if p.word("catch") {
				p.next()
				n.right = p.tryBody()
			}
			return n
		case "reduce", "foreach":
			return p.fold()
		case "label":
			return p.pipe()
		case "def":
			return p.pipe()
		}
	case kOp:
		switch t.text {
		case ".":
			p.next()
			if p.t.kind == kString {
				return &node{kind: nIndex, left: &node{kind: nIdentity}, right: p.str("@text"), line: t.line}
			}
			return &node{kind: nIdentity}
		case "..":
			p.next()
			return &node{kind: nRecurse, line: t.line}
		case "(":
			p.next()
			n := p.pipe()
			p.expect(")")
			return n
		case "[":
			p.next()
			n := &node{kind: nArray, line: t.line}
			if !p.is("]") {
				n.left = p.pipe()
			}
			p.expect("]")
			return n
		case "{":
			return p.object()
		case "-":
			return p.unary()
		}
	}
	p.fail("")
	return nil
}

// tryBody is what try and catch rule: a term with its suffixes.
func (p *parser) tryBody() *node {
	if p.is("-") {
		return p.unary()
	}
	return p.postfix()
}

func (p *parser) ifThen() *node {
	n := &node{kind: nIf, line: p.t.line}
	p.next()
	n.left = p.pipe()
	p.expectWord("then")
	n.right = p.pipe()
	switch {
	case p.word("elif"):
		p.enter()
		n.third = p.ifThen()
		p.depth--
		return n
	case p.word("else"):
		p.next()
		n.third = p.pipe()
	}
	p.expectWord("end")
	return n
}

func (p *parser) fold() *node {
	n := &node{kind: nReduce, line: p.t.line}
	if p.t.text == "foreach" {
		n.kind = nForeach
	}
	p.next()
	n.left = p.postfix()
	p.expectWord("as")
	n.patterns = []*pattern{p.pattern()}
	for p.accept("?//") {
		n.patterns = append(n.patterns, p.pattern())
	}
	p.expect("(")
	n.right = p.pipe()
	p.expect(";")
	n.third = p.pipe()
	if n.kind == nForeach && p.accept(";") {
		n.fourth = p.pipe()
	}
	p.expect(")")
	return n
}

func (p *parser) object() *node {
	n := &node{kind: nObject, line: p.t.line}
	p.next()
	for !p.is("}") {
		t := p.t
		var e pair
		switch t.kind {
		case kVar:
			p.next()
			e.key = &node{kind: nLiteral, value: t.text}
			if t.text == "__loc__" {
				e.value = &node{kind: nLoc, line: t.line}
			} else {
				e.value = &node{kind: nVariable, text: t.text, line: t.line}
			}
			if p.is(":") {
				// {$x: value} has the value of the variable as its key.
				e.key = e.value
				e.value = nil
			}
		case kIdent, kKeyword:
			p.next()
			e.key = &node{kind: nLiteral, value: t.text}
		case kNumber:
			p.next()
			e.key = &node{kind: nLiteral, value: t.num, line: t.line}
		case kString:
			e.key = p.str("@text")
		case kFormat:
			p.next()
			if p.t.kind == kString {
				e.key = p.str(t.text)
			} else {
				e.key = &node{kind: nFormat, text: t.text, line: t.line}
			}
		case kOp:
			if t.text != "(" {
				p.fail("")
			}
			p.next()
			e.key = p.pipe()
			p.expect(")")
			if !p.is(":") {
				p.fail("")
			}
		default:
			p.fail("")
		}
		if e.value == nil {
			if p.accept(":") {
				e.value = p.member()
			} else {
				// {a} and {"a b"} are {a: .a} and {"a b": ."a b"}.
				e.value = &node{kind: nIndex, left: &node{kind: nIdentity}, right: e.key, line: t.line}
			}
		}
		n.pairs = append(n.pairs, e)
		if !p.accept(",") {
			break
		}
	}
	p.expect("}")
	return n
}

// member is the value of a pair: anything but a comma.
func (p *parser) member() *node {
	n := p.binary(0)
	for p.is("|") {
		p.next()
		n = &node{kind: nPipe, left: n, right: p.binary(0)}
	}
	return n
}

func (p *parser) pattern() *pattern {
	p.enter()
	defer func() { p.depth-- }()
	switch {
	case p.t.kind == kVar:
		name := p.t.text
		p.next()
		return &pattern{name: name}
	case p.accept("["):
		pat := &pattern{}
		for {
			pat.array = append(pat.array, p.pattern())
			if !p.accept(",") {
				break
			}
		}
		p.expect("]")
		return pat
	case p.accept("{"):
		pat := &pattern{}
		for {
			t := p.t
			var e patternPair
			switch t.kind {
			case kVar:
				p.next()
				e.name = t.text
				e.key = &node{kind: nLiteral, value: t.text}
			case kIdent, kKeyword:
				p.next()
				e.key = &node{kind: nLiteral, value: t.text}
			case kString:
				e.key = p.str("@text")
			default:
				if !p.accept("(") {
					p.fail("")
				}
				e.key = p.pipe()
				p.expect(")")
			}
			if p.accept(":") {
				e.value = p.pattern()
			} else if e.name == "" {
				p.fail("")
			}
			pat.object = append(pat.object, e)
			if !p.accept(",") {
				break
			}
		}
		p.expect("}")
		return pat
	}
	p.fail("")
	return nil
}
