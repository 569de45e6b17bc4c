package expand

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/vars"
	"mvdan.cc/sh/v3/syntax"
)

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

// Arithm evaluates an arithmetic expression; nil is 0.
//
// As in bash, it is expanded to a text first and the text is evaluated: with b="1+2", $((2*$b)) is 4.
func (e *Expander) Arithm(ctx context.Context, expr syntax.ArithmExpr) (int64, error) {
	if expr == nil {
		return 0, nil
	}
	x := e.start(ctx)
	text, err := x.arithText(expr)
	if err != nil {
		return 0, err
	}
	return e.Eval(text)
}

// A subscript that was expanded stands between these bytes in the text: a key may hold brackets.
const mark = "\x01"

func (x *expansion) arithText(expr syntax.ArithmExpr) (string, error) {
	if w, ok := expr.(*syntax.Word); ok && len(w.Parts) == 1 {
		switch p := w.Parts[0].(type) {
		case *syntax.Lit:
			return p.Value, nil
		case *syntax.ParamExp:
			if p.Short && p.Index == nil {
				v, err := x.scalar(p.Param.Value)
				if err == nil && v.set && !v.list {
					return v.s, nil
				}
			}
		}
	}
	var b strings.Builder
	err := x.arithWrite(&b, expr)
	return b.String(), err
}

// gap writes the blanks that stood between two nodes: they count in the keys of associative arrays, whose text this
// is too.
func gap(b *strings.Builder, from, to syntax.Pos) {
	if !from.IsValid() || !to.IsValid() || to.Offset() <= from.Offset() {
		return
	}
	for n := to.Offset() - from.Offset(); n > 0 && n < 80; n-- {
		b.WriteByte(' ')
	}
}

func after(p syntax.Pos, n int) syntax.Pos {
	return syntax.NewPos(p.Offset()+uint(n), p.Line(), p.Col()+uint(n))
}

func (x *expansion) arithWrite(b *strings.Builder, expr syntax.ArithmExpr) error {
	switch n := expr.(type) {
	case *syntax.Word:
		if len(n.Parts) == 1 {
			switch p := n.Parts[0].(type) {
			case *syntax.Lit:
				b.WriteString(p.Value)
				return nil
			case *syntax.ParamExp:
				if p.Short && p.Index != nil && !p.Dollar.IsValid() {
					sub, err := x.arithText(p.Index)
					if err != nil {
						return err
					}
					b.WriteString(p.Param.Value + "[" + mark + sub + mark + "]")
					return nil
				}
			}
		}
		inner := x.Expander.start(x.ctx)
		for _, p := range n.Parts {
			switch p := p.(type) {
			case *syntax.Lit:
				inner.lit(p.Value, unquoted, false)
			case *syntax.SglQuoted, *syntax.ExtGlob:
				if err := inner.part(p, unquoted); err != nil {
					return err
				}
			default:
				if err := inner.part(p, double); err != nil {
					return err
				}
			}
		}
		b.WriteString(join(inner.segs))
	case *syntax.ParenArithm:
		b.WriteByte('(')
		gap(b, after(n.Lparen, 1), n.X.Pos())
		if err := x.arithWrite(b, n.X); err != nil {
			return err
		}
		gap(b, n.X.End(), n.Rparen)
		b.WriteByte(')')
	case *syntax.UnaryArithm:
		op := n.Op.String()
		if n.Post {
			if err := x.arithWrite(b, n.X); err != nil {
				return err
			}
			gap(b, n.X.End(), n.OpPos)
			b.WriteString(op)
			return nil
		}
		b.WriteString(op)
		gap(b, after(n.OpPos, len(op)), n.X.Pos())
		return x.arithWrite(b, n.X)
	case *syntax.BinaryArithm:
		if err := x.arithWrite(b, n.X); err != nil {
			return err
		}
		op := n.Op.String()
		gap(b, n.X.End(), n.OpPos)
		b.WriteString(op)
		gap(b, after(n.OpPos, len(op)), n.Y.Pos())
		return x.arithWrite(b, n.Y)
	default:
		return &ArithError{"syntax error in expression"}
	}
	return nil
}

// Eval evaluates the text of an arithmetic expression, in 64 bits that wrap around.
func (e *Expander) Eval(text string) (int64, error) { return e.eval(text, 0) }

func (e *Expander) eval(text string, depth int) (n int64, err error) {
	if n, ok := decimal(text); ok {
		return n, nil
	}
	a := arith{e: e, s: text, depth: depth}
	if depth > 1024 {
		return 0, a.fail("expression recursion level exceeded")
	}
	a.next()
	if a.err == nil && a.tok == end {
		return 0, nil
	}
	n = a.comma()
	if a.err == nil && a.tok != end {
		a.fail("syntax error in expression")
	}
	if a.err != nil {
		return 0, a.err
	}
	return n, nil
}

// decimal reads a plain decimal number, the most frequent expression.
func decimal(s string) (int64, bool) {
	if s == "" || len(s) > 18 {
		return 0, s == ""
	}
	if s[0] == '0' {
		return 0, len(s) == 1
	}
	neg := s[0] == '-'
	if neg {
		if s = s[1:]; s == "" || s[0] == '0' {
			return 0, false
		}
	}
	n := int64(0)
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	if neg {
		n = -n
	}
	return n, true
}

// arith evaluates while it parses.
type arith struct {
	e      *Expander
	s      string
	depth  int
	nest   int // of operands
	i      int // behind the token
	at     int // where the token begins
	before int // where the token before it begins
	tok    op
	num    int64 // tok == number
	name   string
	sub    string // tok == name: with a subscript
	hasSub bool
	skip   int // above 0: parsed, not evaluated
	err    error
}

// op is a token: an operator's characters, or one of these.
type op string

const (
	end    op = ""
	number op = "0"
	name   op = "a"
)

func (a *arith) fail(msg string) error {
	if a.err == nil {
		at := a.at
		if a.tok == end {
			at = a.before
		}
		text := func(s string) string { return strings.ReplaceAll(s, mark, "") }
		a.err = &ArithError{fmt.Sprintf("%s: %s (error token is \"%s\")", text(strings.TrimLeft(a.s, " \t\n")), msg, text(a.s[min(at, len(a.s)):]))}
	}
	a.tok = end
	return a.err
}

// operators, longest first for each first character.
var operators = [256][]op{
	'+': {"++", "+=", "+"}, '-': {"--", "-=", "-"}, '*': {"**", "*=", "*"}, '/': {"/=", "/"}, '%': {"%=", "%"},
	'<': {"<<=", "<<", "<=", "<"}, '>': {">>=", ">>", ">=", ">"}, '=': {"==", "="}, '!': {"!=", "!"},
	'&': {"&&", "&=", "&"}, '|': {"||", "|=", "|"}, '^': {"^=", "^"}, '~': {"~"}, '?': {"?"}, ':': {":"}, ',': {","},
	'(': {"("}, ')': {")"},
}

func (a *arith) next() {
	if a.err != nil {
		a.tok = end // whoever reads on after a mistake finds nothing more
		return
	}
	last := a.tok
	for a.i < len(a.s) && (a.s[a.i] == ' ' || a.s[a.i] == '\t' || a.s[a.i] == '\n') {
		a.i++
	}
	a.before, a.at = a.at, a.i
	if a.i == len(a.s) {
		a.tok = end
		return
	}
	c := a.s[a.i]
	switch {
	case '0' <= c && c <= '9':
		for a.i < len(a.s) && (isName(a.s[a.i]) || a.s[a.i] == '#' || a.s[a.i] == '@') {
			a.i++
		}
		a.tok = number
		a.num = a.constant(a.s[a.at:a.i])
		return
	case isName(c):
		for a.i < len(a.s) && isName(a.s[a.i]) {
			a.i++
		}
		a.name, a.hasSub, a.tok = a.s[a.at:a.i], false, name
		if a.i < len(a.s) && a.s[a.i] == '[' {
			a.subscript()
		}
		return
	}
	for _, o := range operators[c] {
		if !strings.HasPrefix(a.s[a.i:], string(o)) {
			continue
		}
		if (o == "++" || o == "--") && !a.increments(last) {
			continue
		}
		a.i += len(o)
		a.tok = o
		return
	}
	// No token of expressions: where an operand should be it is missing, else this is no operator.
	a.tok = op(a.s[a.i : a.i+1])
	a.i++
	if last == name || last == number || last == ")" {
		a.fail("syntax error: invalid arithmetic operator")
	}
}

// increments tells whether ++ or -- is one operator here: after a variable, or before one. Else it is two signs.
func (a *arith) increments(last op) bool {
	if last == name {
		return true
	}
	if last == number || last == ")" {
		return false
	}
	rest := strings.TrimLeft(a.s[a.i+2:], " \t\n")
	return rest != "" && isName(rest[0]) && (rest[0] < '0' || rest[0] > '9')
}

func (a *arith) subscript() {
	open := a.i
	if strings.HasPrefix(a.s[open:], "["+mark) {
		if end := strings.Index(a.s[open+2:], mark+"]"); end >= 0 {
			a.sub, a.hasSub = a.s[open+2:open+2+end], true
			a.i = open + 2 + end + 2
			return
		}
	}
	depth := 0
	for i := open; i < len(a.s); i++ {
		switch a.s[i] {
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				a.sub, a.hasSub = a.s[open+1:i], true
				a.i = i + 1
				return
			}
		}
	}
	a.fail("bad array subscript")
}

func (a *arith) constant(s string) int64 {
	base := int64(10)
	digits := s
	switch {
	case strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X"):
		base, digits = 16, s[2:]
	case strings.Contains(s, "#"):
		b, d, _ := strings.Cut(s, "#")
		n := int64(0)
		for i := range len(b) {
			if b[i] < '0' || b[i] > '9' {
				a.fail("invalid number")
				return 0
			}
			if n = n*10 + int64(b[i]-'0'); n > 64 {
				break
			}
		}
		if n < 2 || n > 64 {
			a.fail("invalid arithmetic base")
			return 0
		}
		if d == "" {
			a.fail("invalid integer constant")
			return 0
		}
		base, digits = n, d
	case s[0] == '0' && len(s) > 1:
		base, digits = 8, s[1:]
	}
	n := int64(0)
	for i := range len(digits) {
		c := digits[i]
		var d int64
		switch {
		case '0' <= c && c <= '9':
			d = int64(c - '0')
		case 'a' <= c && c <= 'z':
			d = int64(c-'a') + 10
		case 'A' <= c && c <= 'Z':
			if d = int64(c-'A') + 10; base > 36 {
				d += 26
			}
		case c == '@':
			d = 62
		case c == '_':
			d = 63
		default:
			a.fail("invalid number")
			return 0
		}
		if d >= base {
			a.fail("value too great for base")
			return 0
		}
		n = n*base + d
	}
	return n
}

func (a *arith) comma() int64 {
	n := a.assign()
	for a.tok == "," {
		a.next()
		n = a.assign()
	}
	return n
}

// variable is what a name token said.
type variable struct {
	name, sub string
	has       bool
}

func (a *arith) assign() int64 {
	isName, v := a.tok == name, variable{a.name, a.sub, a.hasSub}
	if isName {
		// A name before an assignment is not evaluated.
		save := *a
		a.next()
		switch a.tok {
		case "=":
			a.next()
			n := a.assign()
			return a.store(v, n)
		case "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "^=", "|=":
			o := a.tok[:len(a.tok)-1]
			a.next()
			old := a.load(v)
			n := a.assign()
			return a.store(v, a.binary(o, old, n))
		}
		if a.err != nil {
			// What follows the name is no token: the error is found again where it belongs.
			a.err = nil
		}
		*a = save
	}
	n := a.cond()
	switch a.tok {
	case "=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "^=", "|=":
		a.fail("attempted assignment to non-variable")
	}
	return n
}

func (a *arith) cond() int64 {
	n := a.or()
	if a.tok != "?" {
		return n
	}
	a.next()
	if a.tok == end || a.tok == ":" {
		a.fail("expression expected")
		return 0
	}
	yes := n != 0
	if !yes {
		a.skip++
	}
	x := a.comma()
	if !yes {
		a.skip--
	}
	if a.tok != ":" {
		a.fail("`:' expected for conditional expression")
		return 0
	}
	a.next()
	if a.tok == end {
		a.fail("expression expected")
		return 0
	}
	if yes {
		a.skip++
	}
	y := a.cond()
	if yes {
		a.skip--
		return x
	}
	return y
}

func (a *arith) or() int64 {
	n := a.and()
	for a.tok == "||" {
		a.next()
		if n != 0 {
			a.skip++
		}
		m := a.and()
		if n != 0 {
			a.skip--
		}
		n = truth(n != 0 || m != 0)
	}
	return n
}

func (a *arith) and() int64 {
	n := a.level(0)
	for a.tok == "&&" {
		a.next()
		if n == 0 {
			a.skip++
		}
		m := a.level(0)
		if n == 0 {
			a.skip--
		}
		n = truth(n != 0 && m != 0)
	}
	return n
}

// levels are the operators that are taken from the left, the weakest first.
var levels = [][]op{
	{"|"}, {"^"}, {"&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"},
}

func (a *arith) level(l int) int64 {
	if l == len(levels) {
		return a.power()
	}
	n := a.level(l + 1)
	for {
		o := a.tok
		found := false
		for _, x := range levels[l] {
			found = found || x == o
		}
		if !found || o == end {
			return n
		}
		a.next()
		at := a.at
		m := a.level(l + 1)
		if m == 0 && (o == "/" || o == "%") && a.skip == 0 && a.err == nil {
			a.at = at
			a.tok = o
			a.fail("division by 0")
			return 0
		}
		n = a.binary(o, n, m)
	}
}

func (a *arith) power() int64 {
	n := a.unary()
	if a.tok != "**" {
		return n
	}
	a.next()
	m := a.power()
	if m < 0 { // also where it is not evaluated
		a.fail("exponent less than 0")
		return 0
	}
	return pow(n, m)
}

func pow(n, m int64) int64 {
	r := int64(1)
	for ; m > 0; m >>= 1 {
		if m&1 != 0 {
			r *= n
		}
		n *= n
	}
	return r
}

// maxNest bounds parentheses and signs in an expression, which is data often enough: the stack of a guest ends it otherwise.
const maxNest = 4096

func (a *arith) unary() int64 {
	if a.nest >= maxNest {
		a.fail("expression recursion level exceeded")
		return 0
	}
	a.nest++
	defer func() { a.nest-- }()
	switch a.tok {
	case "!":
		a.next()
		return truth(a.unary() == 0)
	case "~":
		a.next()
		return ^a.unary()
	case "-":
		a.next()
		return -a.unary()
	case "+":
		a.next()
		return a.unary()
	case "++", "--":
		o := a.tok
		a.next()
		if a.tok != name {
			a.fail("syntax error: operand expected")
			return 0
		}
		v := variable{a.name, a.sub, a.hasSub}
		a.next()
		n := a.load(v) + 1
		if o == "--" {
			n -= 2
		}
		return a.store(v, n)
	case "(":
		a.next()
		n := a.comma()
		if a.tok != ")" {
			a.fail("missing `)'")
			return 0
		}
		a.next()
		return n
	case number:
		n := a.num
		a.next()
		return n
	case name:
		v := variable{a.name, a.sub, a.hasSub}
		a.next()
		n := a.load(v)
		switch a.tok {
		case "++":
			a.store(v, n+1)
			a.next()
		case "--":
			a.store(v, n-1)
			a.next()
		}
		return n
	}
	a.fail("syntax error: operand expected")
	return 0
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (a *arith) binary(o op, n, m int64) int64 {
	switch o {
	case "|":
		return n | m
	case "^":
		return n ^ m
	case "&":
		return n & m
	case "==":
		return truth(n == m)
	case "!=":
		return truth(n != m)
	case "<=":
		return truth(n <= m)
	case ">=":
		return truth(n >= m)
	case "<":
		return truth(n < m)
	case ">":
		return truth(n > m)
	case "<<":
		return n << uint64(m&63)
	case ">>":
		return n >> uint64(m&63)
	case "+":
		return n + m
	case "-":
		return n - m
	case "*":
		return n * m
	case "/", "%":
		switch {
		case m == 0:
			if a.skip == 0 {
				a.fail("division by 0")
			}
			return 0
		case m == -1: // the smallest number has no opposite
			if o == "%" {
				return 0
			}
			return -n
		case o == "%":
			return n % m
		}
		return n / m
	}
	return 0
}

func (a *arith) load(v variable) int64 {
	if a.skip > 0 || a.err != nil {
		return 0
	}
	var text string
	var ok bool
	x := a.e.start(context.Background())
	if !v.has {
		val, err := x.scalar(v.name)
		if err != nil {
			a.err = err
			return 0
		}
		text, ok = val.s, val.set
	} else {
		val, err := x.element(v.name, v.sub)
		if err != nil {
			a.err = err
			return 0
		}
		text, ok = val.s, val.set
	}
	if !ok {
		// Of an array that has a value, an element that is not there is nought, whatever the option says.
		_, whole := a.e.Vars.Get(v.name)
		if a.e.Host.Option("nounset") && !(v.has && whole) {
			a.err = &UnsetError{Name: v.name, Text: "unbound variable"}
		}
		return 0
	}
	n, err := a.e.eval(text, a.depth+1)
	if err != nil {
		a.err = err
	}
	return n
}

func (a *arith) store(v variable, n int64) int64 {
	if a.skip > 0 || a.err != nil {
		return n
	}
	var err error
	s := formatInt(n)
	if !v.has {
		err = a.e.Vars.Set(v.name, s)
	} else if old, _ := a.e.Vars.Get(v.name); old.Kind == vars.Assoc {
		err = a.e.Vars.SetKey(v.name, v.sub, s)
	} else {
		var i int64
		if i, err = a.e.eval(v.sub, a.depth+1); err == nil {
			err = a.e.Vars.SetIndex(v.name, i, s)
		}
	}
	if err != nil {
		a.err = err
	}
	return n
}
