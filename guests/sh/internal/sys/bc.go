package sys

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// bc is GNU's: lines are run as soon as they are complete, a line with an error is left out, and the exit code is 0 all the
// same. Other than GNU's, s and c are right to the last digit also for a small scale.
func bc(ctx context.Context, c *cmd.Call) int {
	given, files, err := cmd.Opts{
		{Short: 'l', Long: "mathlib"}, {Short: 'q', Long: "quiet"}, {Short: 's', Long: "standard"}, {Short: 'w', Long: "warn"},
		{Short: 'i', Long: "interactive"}, {Short: 'v', Long: "version"}, {Short: 'h', Long: "help"},
	}.Parse(c.Args)
	const usage = "usage: bc [options] [file ...]\n" +
		"  -h  --help         print this usage and exit\n  -i  --interactive  force interactive mode\n  -l  --mathlib      use the predefined math routines\n" +
		"  -q  --quiet        don't print initial banner\n  -s  --standard     non-standard bc constructs are errors\n" +
		"  -w  --warn         warn about non-standard bc constructs\n  -v  --version      print version information and exit\n"
	if err != nil {
		c.Errorf("%v", err)
		io.WriteString(c.Stdout, usage)
		return 1
	}
	b := &bcRun{ctx: ctx, c: c, out: bufio.NewWriterSize(c.Stdout, 4096), vars: map[string]*bcVar{}, functions: map[string]*bcFunction{}, ibase: 10, obase: 10, lineLength: 70, last: bcInt(0)}
	for _, g := range given {
		switch g.Key {
		case "l":
			b.math, b.scale = true, 20
		case "s", "w", "i":
			// Nothing here needs to be refused, warned of or prompted for.
		case "v":
			io.WriteString(c.Stdout, "bc (exthost, compatible with GNU bc) 1.07.1\n")
			return 0
		case "h":
			io.WriteString(c.Stdout, usage)
			return 0
		}
	}
	if s := c.Getenv("BC_LINE_LENGTH"); s != "" {
		n, err := strconv.Atoi(s)
		if err == nil && (n == 0 || n >= 2) {
			b.lineLength = n
		}
		if n == 2 {
			b.lineLength = 0
		}
	}
	defer b.out.Flush()
	stdin := bufio.NewReader(c.Stdin)
	b.stdin = stdin
	for _, name := range files {
		f, err := c.OpenFile(name, 0, 0)
		if err != nil {
			fmt.Fprintf(c.Stderr, "File %s is unavailable.\n", name)
			return 1
		}
		halted := b.source(name, bufio.NewReader(cmd.Reader(ctx, f)))
		f.Close()
		if halted {
			return 0
		}
	}
	b.source("(standard_in)", stdin)
	return 0
}

type bcVar struct {
	value    bcNum
	elements *map[int]bcNum
}

type bcFunction struct {
	params, autos []bcParam
	body          []bcStatement
	void          bool
}

type bcParam struct {
	name       string
	array, ref bool
}

type bcRun struct {
	ctx                       context.Context
	c                         *cmd.Call
	out                       *bufio.Writer
	stdin                     *bufio.Reader
	vars                      map[string]*bcVar // arrays as "name[]"
	functions                 map[string]*bcFunction
	scale, ibase, obase       int
	last                      bcNum
	math                      bool
	lineLength, column, depth int
	steps                     int

	// The parser's state.
	file     string
	in       *bufio.Reader
	line     int
	tok      bcToken
	tokText  string
	inLoop   int
	inFunc   bool
	nesting  int
	returned bcNum
	head     *bcExpr // what primary returns next: it was read already
}

type bcToken byte

const (
	bcEOF bcToken = iota
	bcNewline
	bcNumber
	bcName
	bcWord // a reserved word
	bcString
	bcOp
	bcBad
)

// Errors: the line is given up.
type bcSyntax struct{ text string }
type bcRuntime struct{ err error }
type bcHalt struct{}

// A statement, and what it did to the flow.
type bcStatement func() bcFlow
type bcFlow byte

const (
	bcNext bcFlow = iota
	bcBreak
	bcContinue
	bcReturn
)

// bcExpr is an expression. assigns marks one whose value is not printed, place one that can be assigned to.
type bcExpr struct {
	eval    func() bcNum
	assigns bool
	place   *bcPlace
	void    string // a call of this function, which may be void
}

type bcPlace struct {
	get func() bcNum
	set func(bcNum)
}

// source runs a file to its end, and reports whether it ended bc.
func (b *bcRun) source(name string, in *bufio.Reader) (halted bool) {
	b.file, b.in, b.line = name, in, 1
	for {
		more, stop := b.item()
		if stop {
			return true
		}
		if !more {
			return false
		}
	}
}

// item reads one line, with what its blocks need, and runs it.
func (b *bcRun) item() (more, halted bool) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case bcHalt:
			halted = true
		case bcSyntax:
			b.out.Flush()
			fmt.Fprintf(b.c.Stderr, "%s %d: %s\n", b.file, b.line, p.text)
			more = b.resync()
		case bcRuntime:
			b.out.Flush()
			fmt.Fprintf(b.c.Stderr, "Runtime error (func=(main), adr=0): %v\n", p.err)
			more = true
		default:
			panic(p)
		}
	}()
	b.inLoop, b.inFunc, b.nesting, b.depth, b.head = 0, false, 0, 0, nil
	b.next()
	if b.tok == bcEOF {
		return false, false
	}
	statements := b.list()
	if b.tok != bcNewline { // bc wants the end of the last line, too
		b.syntaxError()
	}
	for _, s := range statements {
		s()
	}
	b.out.Flush()
	return true, false
}

// resync skips the rest of a line with an error.
func (b *bcRun) resync() bool {
	for b.tok != bcNewline && b.tok != bcEOF {
		b.next()
	}
	return b.tok == bcNewline
}

func (b *bcRun) syntaxError() { panic(bcSyntax{"syntax error"}) }

func (b *bcRun) fail(format string, args ...any) { panic(bcRuntime{fmt.Errorf(format, args...)}) }

func (b *bcRun) warn(format string, args ...any) {
	b.out.Flush()
	fmt.Fprintf(b.c.Stderr, "Runtime warning (func=(main), adr=0): %s\n", fmt.Sprintf(format, args...))
}

// step lets others run now and then.
func (b *bcRun) step() {
	if b.steps++; b.steps%128 == 0 {
		cmd.Check(b.ctx)
	}
}

// The scanner.

const bcWords = " auto break continue define else for halt ibase if last length limits obase print quit read return scale sqrt void warranty while "

func (b *bcRun) byte() (byte, bool) {
	ch, err := b.in.ReadByte()
	return ch, err == nil
}

func (b *bcRun) next() {
	if b.tok == bcNewline {
		b.line++
	}
	for {
		ch, ok := b.byte()
		if !ok {
			b.tok, b.tokText = bcEOF, ""
			return
		}
		switch {
		case ch == '\n':
			b.tok, b.tokText = bcNewline, "\n"
			return
		case isSpace(ch):
		case ch == '\\':
			if p, _ := b.in.Peek(1); len(p) == 1 && p[0] == '\n' {
				b.byte()
				b.line++
				continue
			}
			b.illegal(ch)
			return
		case ch == '#':
			for ok && ch != '\n' {
				ch, ok = b.byte()
			}
			if ok {
				b.in.UnreadByte()
			}
		case ch == '/' && b.peek() == '*':
			b.byte()
			for last := byte(0); ; {
				ch, ok = b.byte()
				if !ok {
					b.tok = bcEOF
					return
				}
				if ch == '\n' {
					b.line++
				}
				if last == '*' && ch == '/' {
					break
				}
				last = ch
			}
		case bcDigit(ch) >= 0 || ch == '.':
			b.number(ch)
			return
		case 'a' <= ch && ch <= 'z':
			text := []byte{ch}
			for p := b.peek(); 'a' <= p && p <= 'z' || isDigit(p) || p == '_'; p = b.peek() {
				b.byte()
				text = append(text, p)
			}
			b.tok, b.tokText = bcName, string(text)
			if strings.Contains(bcWords, " "+b.tokText+" ") {
				b.tok = bcWord
			}
			if b.tokText == "quit" {
				panic(bcHalt{}) // it ends bc as soon as it is read
			}
			return
		case ch == '"':
			var text []byte
			for {
				ch, ok = b.byte()
				if !ok {
					b.illegal('"')
					return
				}
				if ch == '"' {
					break
				}
				if ch == '\n' {
					b.line++
				}
				text = append(text, ch)
			}
			b.tok, b.tokText = bcString, string(text)
			return
		case strings.IndexByte("+-*/%^=<>!&|", ch) >= 0:
			b.tok, b.tokText = bcOp, string(ch)
			p := b.peek()
			switch {
			case p == '=' && strings.IndexByte("+-*/%^=<>!", ch) >= 0, p == ch && strings.IndexByte("+-&|", ch) >= 0:
				b.byte()
				b.tokText += string(p)
			case ch == '&' || ch == '|':
				b.illegal(ch)
			}
			return
		case strings.IndexByte("()[]{},;", ch) >= 0:
			b.tok, b.tokText = bcOp, string(ch)
			return
		default:
			b.illegal(ch)
			return
		}
	}
}

func (b *bcRun) illegal(ch byte) {
	b.tok, b.tokText = bcBad, ""
	b.out.Flush()
	fmt.Fprintf(b.c.Stderr, "%s %d: illegal character: %c\n", b.file, b.line, ch)
}

func (b *bcRun) peek() byte {
	p, err := b.in.Peek(1)
	if err != nil {
		return 0
	}
	return p[0]
}

func (b *bcRun) number(ch byte) {
	text := []byte{ch}
	point := ch == '.'
	for {
		p := b.peek()
		switch {
		case bcDigit(p) >= 0:
		case p == '.' && !point:
			point = true
		case p == '\\':
			// A number may go on behind a line end that is escaped.
			if two, _ := b.in.Peek(2); len(two) == 2 && two[1] == '\n' {
				b.byte()
				b.byte()
				b.line++
				continue
			}
			fallthrough
		default:
			b.tok, b.tokText = bcNumber, string(text)
			if b.tokText == "." {
				b.tok, b.tokText = bcWord, "last"
			}
			return
		}
		b.byte()
		text = append(text, p)
	}
}

func (b *bcRun) is(text string) bool {
	return (b.tok == bcOp || b.tok == bcWord) && b.tokText == text
}

func (b *bcRun) accept(text string) bool {
	if b.is(text) {
		b.next()
		return true
	}
	return false
}

func (b *bcRun) expect(text string) {
	if !b.accept(text) {
		b.syntaxError()
	}
}

func (b *bcRun) newlines() {
	for b.tok == bcNewline {
		b.next()
	}
}

// The parser.

// list reads statements up to the end of the line.
func (b *bcRun) list() []bcStatement {
	var list []bcStatement
	for b.tok != bcNewline && b.tok != bcEOF && !b.is("}") {
		if b.accept(";") {
			continue
		}
		if b.is("define") && !b.inFunc && b.nesting == 0 {
			b.define()
			continue
		}
		list = append(list, b.statement())
		if b.tok != bcNewline && b.tok != bcEOF && !b.is(";") && !b.is("}") {
			b.syntaxError()
		}
	}
	return list
}

func (b *bcRun) block() []bcStatement {
	b.expect("{")
	list := b.rest()
	b.next()
	return list
}

// rest reads the statements of a block up to its brace, which it leaves.
func (b *bcRun) rest() []bcStatement {
	var list []bcStatement
	for !b.is("}") {
		if b.tok == bcEOF {
			b.syntaxError()
		}
		b.nesting++
		list = append(list, b.list()...)
		b.nesting--
		b.newlines()
	}
	return list
}

func runAll(list []bcStatement) bcFlow {
	for _, s := range list {
		if f := s(); f != bcNext {
			return f
		}
	}
	return bcNext
}

func (b *bcRun) statement() bcStatement {
	if b.nesting++; b.nesting > 500 {
		panic(bcSyntax{"too deeply nested"})
	}
	defer func() { b.nesting-- }()
	switch {
	case b.is("{"):
		list := b.block()
		return func() bcFlow { return runAll(list) }
	case b.tok == bcString:
		text := b.tokText
		b.next()
		return func() bcFlow {
			b.print(text)
			return bcNext
		}
	case b.accept("if"):
		b.expect("(")
		condition := b.value()
		b.expect(")")
		b.newlines()
		yes := b.statement()
		no := func() bcFlow { return bcNext }
		if b.accept("else") {
			b.newlines()
			no = b.statement()
		}
		return func() bcFlow {
			if !condition().zero() {
				return yes()
			}
			return no()
		}
	case b.accept("while"):
		b.expect("(")
		condition := b.value()
		b.expect(")")
		b.newlines()
		return b.loop(nil, condition, nil)
	case b.accept("for"):
		b.expect("(")
		part := func(end string) func() bcNum {
			if b.accept(end) {
				return nil
			}
			v := b.value()
			b.expect(end)
			return v
		}
		first, condition := part(";"), part(";")
		step := part(")")
		b.newlines()
		return b.loop(first, condition, step)
	case b.is("break") || b.is("continue"):
		flow := bcBreak
		word := "Break"
		if b.is("continue") {
			flow, word = bcContinue, "Continue"
		}
		if b.inLoop == 0 {
			panic(bcSyntax{word + " outside a for/while"})
		}
		b.next()
		return func() bcFlow { return flow }
	case b.accept("halt"):
		return func() bcFlow { panic(bcHalt{}) }
	case b.accept("return"):
		if !b.inFunc {
			panic(bcSyntax{"Return outside of a function."})
		}
		value := func() bcNum { return bcInt(0) }
		if b.tok != bcNewline && b.tok != bcEOF && !b.is(";") && !b.is("}") {
			// return (a) + b is an expression, return () is none.
			if b.is("(") && b.peekPast(')') {
				b.next()
				b.next()
			} else {
				value = b.value()
			}
		}
		return func() bcFlow {
			b.returned = value()
			return bcReturn
		}
	case b.accept("print"):
		var parts []func()
		for {
			if b.tok == bcString {
				text := b.tokText
				b.next()
				parts = append(parts, func() { b.print(bcEscapes(text)) })
			} else {
				value := b.value()
				parts = append(parts, func() {
					v := value()
					b.last = v
					b.printNumber(v)
				})
			}
			if !b.accept(",") {
				break
			}
		}
		return func() bcFlow {
			for _, p := range parts {
				p()
			}
			return bcNext
		}
	case b.accept("limits"):
		return func() bcFlow {
			b.print("BC_BASE_MAX     = 2147483647\nBC_DIM_MAX      = 16777215\nBC_SCALE_MAX    = 2147483647\nBC_STRING_MAX   = 2147483647\nMAX Exponent    = 9223372036854775807\nNumber of vars  = 32767\n")
			return bcNext
		}
	case b.accept("warranty"):
		return func() bcFlow {
			b.print("\nbc (exthost), without any warranty.\n\n")
			return bcNext
		}
	}
	e := b.expression()
	return func() bcFlow {
		v := e.eval()
		if f := b.functions[e.void]; !e.assigns && (f == nil || !f.void) {
			b.last = v
			b.printNumber(v)
			b.print("\n")
		}
		return bcNext
	}
}

// peekPast tells whether the next byte that is no blank is want.
func (b *bcRun) peekPast(want byte) bool {
	for n := 1; n < 64; n++ {
		p, err := b.in.Peek(n)
		if err != nil {
			return false
		}
		if ch := p[n-1]; ch != ' ' && ch != '\t' {
			return ch == want
		}
	}
	return false
}

func (b *bcRun) loop(first, condition, step func() bcNum) bcStatement {
	b.inLoop++
	body := b.statement()
	b.inLoop--
	return func() bcFlow {
		if first != nil {
			first()
		}
		for condition == nil || !condition().zero() {
			b.step()
			switch body() {
			case bcBreak:
				return bcNext
			case bcReturn:
				return bcReturn
			}
			if step != nil {
				step()
			}
		}
		return bcNext
	}
}

func (b *bcRun) define() {
	b.next()
	f := &bcFunction{}
	if b.is("void") {
		f.void = true
		b.next()
	}
	if b.tok != bcName {
		b.syntaxError()
	}
	name := b.tokText
	b.next()
	b.expect("(")
	if !b.is(")") {
		f.params = b.params()
	}
	b.expect(")")
	b.newlines()
	b.expect("{")
	b.newlines()
	loops := b.inLoop
	b.inFunc, b.inLoop = true, 0
	if b.accept("auto") {
		f.autos = b.params()
		if b.tok != bcNewline && !b.accept(";") {
			b.syntaxError()
		}
	}
	f.body = b.rest()
	b.inFunc, b.inLoop = false, loops
	b.next()
	b.functions[name] = f
}

func (b *bcRun) params() []bcParam {
	var params []bcParam
	for {
		p := bcParam{}
		if b.accept("*") || b.accept("&") {
			p.ref = true
		}
		if b.tok != bcName {
			b.syntaxError()
		}
		p.name = b.tokText
		b.next()
		if b.accept("[") {
			b.expect("]")
			p.array = true
			p.name += "[]"
		} else if p.ref {
			b.syntaxError()
		}
		params = append(params, p)
		if !b.accept(",") {
			return params
		}
	}
}

func (b *bcRun) value() func() bcNum { return b.expression().eval }

// expression reads with the precedence of GNU's bc, in which an assignment binds tighter than a comparison.
func (b *bcRun) expression() bcExpr {
	if b.nesting++; b.nesting > 500 {
		panic(bcSyntax{"too deeply nested"})
	}
	defer func() { b.nesting-- }()
	l := b.and()
	for b.accept("||") {
		x, y := l.eval, b.and().eval
		l = bcExpr{eval: func() bcNum { return bcBool(!x().zero() || !y().zero()) }}
	}
	return l
}

func (b *bcRun) and() bcExpr {
	l := b.not()
	for b.accept("&&") {
		x, y := l.eval, b.not().eval
		l = bcExpr{eval: func() bcNum { return bcBool(!x().zero() && !y().zero()) }}
	}
	return l
}

func (b *bcRun) not() bcExpr {
	if b.head == nil && b.accept("!") {
		b.nest()
		x := b.not().eval
		b.nesting--
		return bcExpr{eval: func() bcNum { return bcBool(x().zero()) }}
	}
	l := b.sum()
	for {
		op := ""
		for _, o := range []string{"<", "<=", ">", ">=", "==", "!="} {
			if b.is(o) {
				op = o
			}
		}
		if op == "" {
			return l
		}
		b.next()
		x, y := l.eval, b.sum().eval
		l = bcExpr{eval: func() bcNum {
			a := x()
			order := a.cmp(y())
			switch op {
			case "<":
				return bcBool(order < 0)
			case "<=":
				return bcBool(order <= 0)
			case ">":
				return bcBool(order > 0)
			case ">=":
				return bcBool(order >= 0)
			case "==":
				return bcBool(order == 0)
			}
			return bcBool(order != 0)
		}}
	}
}

func (b *bcRun) nest() {
	if b.nesting++; b.nesting > 500 {
		panic(bcSyntax{"too deeply nested"})
	}
}

// assigned reads the assignment that may follow a place, wherever that stands: 1 + a = 2 is 1 + (a = 2).
func (b *bcRun) assigned(l bcExpr) bcExpr {
	if l.place == nil {
		return l
	}
	for _, op := range []string{"=", "+=", "-=", "*=", "/=", "%=", "^="} {
		if !b.is(op) {
			continue
		}
		b.next()
		place, value := l.place, b.sum().eval
		if op == "=" {
			return bcExpr{assigns: true, eval: func() bcNum {
				place.set(value())
				return place.get()
			}}
		}
		return bcExpr{assigns: true, eval: func() bcNum {
			old := place.get()
			place.set(b.binary(op[:1], old, value()))
			return place.get()
		}}
	}
	return l
}

func (b *bcRun) binary(op string, x, y bcNum) bcNum {
	switch op {
	case "+":
		return x.add(y)
	case "-":
		return x.sub(y)
	case "*":
		return x.mul(y, b.scale)
	case "^":
		if y.scale > 0 && y.cmp(bcNum{y.integer(), 0}) != 0 {
			b.warn("non-zero scale in exponent")
		}
		cmd.Check(b.ctx)
		v, err := x.raise(y.integer(), b.scale)
		if err != nil {
			panic(bcRuntime{err})
		}
		return v
	}
	if y.zero() {
		word := "Divide"
		if op == "%" {
			word = "Modulo"
		}
		b.fail("%s by zero", word)
	}
	if op == "/" {
		return x.div(y, b.scale)
	}
	return x.mod(y, b.scale)
}

func (b *bcRun) chain(inner func() bcExpr, ops ...string) bcExpr {
	l := inner()
	for {
		op := ""
		for _, o := range ops {
			if b.is(o) {
				op = o
			}
		}
		if op == "" {
			return l
		}
		b.next()
		x, y := l.eval, inner().eval
		l = bcExpr{eval: func() bcNum {
			a := x()
			return b.binary(op, a, y())
		}}
	}
}

func (b *bcRun) sum() bcExpr     { return b.chain(b.product, "+", "-") }
func (b *bcRun) product() bcExpr { return b.chain(b.power, "*", "/", "%") }

func (b *bcRun) power() bcExpr {
	l := b.unary()
	if !b.accept("^") {
		return l
	}
	b.nest()
	x, y := l.eval, b.power().eval
	b.nesting--
	return bcExpr{eval: func() bcNum {
		a := x()
		return b.binary("^", a, y())
	}}
}

func (b *bcRun) unary() bcExpr {
	b.nest()
	defer func() { b.nesting-- }()
	switch {
	case b.head != nil:
	case b.is("!"):
		return b.not()
	case b.accept("-"):
		x := b.unary()
		return bcExpr{assigns: x.assigns, eval: func() bcNum { return x.eval().neg() }}
	case b.is("++") || b.is("--"):
		op := b.tokText[:1]
		b.next()
		place := b.unary().place
		if place == nil {
			b.syntaxError()
		}
		return bcExpr{eval: func() bcNum {
			place.set(b.binary(op, place.get(), bcInt(1)))
			return place.get()
		}}
	}
	e := b.primary()
	if b.is("++") || b.is("--") {
		if e.place == nil {
			b.syntaxError()
		}
		op := b.tokText[:1]
		place := e.place
		b.next()
		return bcExpr{eval: func() bcNum {
			old := place.get()
			place.set(b.binary(op, old, bcInt(1)))
			return old
		}}
	}
	return b.assigned(e)
}

func (b *bcRun) primary() bcExpr {
	if e := b.head; e != nil {
		b.head = nil
		return *e
	}
	switch {
	case b.tok == bcNumber:
		text := b.tokText
		b.next()
		if strings.Trim(text, "0123456789.") == "" {
			decimal := bcParse(text, 10)
			return bcExpr{eval: func() bcNum {
				if b.ibase == 10 {
					return decimal
				}
				return bcParse(text, b.ibase)
			}}
		}
		return bcExpr{eval: func() bcNum { return bcParse(text, b.ibase) }}
	case b.accept("("):
		e := b.expression()
		b.expect(")")
		return bcExpr{eval: e.eval}
	case b.is("length") || b.is("sqrt") || b.is("scale") && b.peekPast('('):
		word := b.tokText
		b.next()
		b.expect("(")
		x := b.value()
		b.expect(")")
		return bcExpr{eval: func() bcNum {
			v := x()
			switch word {
			case "length":
				return bcInt(int64(v.length()))
			case "scale":
				return bcInt(int64(v.scale))
			}
			if v.v.Sign() < 0 {
				b.fail("Square root of a negative number")
			}
			return v.sqrt(b.scale)
		}}
	case b.accept("read"):
		b.expect("(")
		b.expect(")")
		return bcExpr{eval: b.read}
	case b.is("scale") || b.is("ibase") || b.is("obase") || b.is("last"):
		word := b.tokText
		b.next()
		place := b.special(word)
		return bcExpr{eval: place.get, place: place}
	case b.tok == bcName:
		name := b.tokText
		b.next()
		switch {
		case b.accept("("):
			return b.call(name)
		case b.accept("["):
			index := b.value()
			b.expect("]")
			place := b.element(name, index)
			return bcExpr{eval: place.get, place: place}
		}
		v := b.variable(name)
		place := &bcPlace{get: func() bcNum { return v.value }, set: func(n bcNum) { v.value = n }}
		return bcExpr{eval: place.get, place: place}
	}
	b.syntaxError()
	return bcExpr{}
}

func (b *bcRun) variable(name string) *bcVar {
	v := b.vars[name]
	if v == nil {
		v = &bcVar{value: bcInt(0), elements: &map[int]bcNum{}}
		b.vars[name] = v
	}
	return v
}

func (b *bcRun) element(name string, index func() bcNum) *bcPlace {
	v := b.variable(name + "[]")
	at := func() int {
		n := index().integer()
		if !n.IsInt64() || n.Sign() < 0 || n.Int64() > 16777215 {
			b.fail("Array %s subscript out of bounds.", name)
		}
		return int(n.Int64())
	}
	return &bcPlace{
		get: func() bcNum {
			if n, ok := (*v.elements)[at()]; ok {
				return n
			}
			return bcInt(0)
		},
		set: func(n bcNum) { (*v.elements)[at()] = n },
	}
}

func (b *bcRun) special(word string) *bcPlace {
	whole := func(n bcNum) int {
		v := n.integer()
		if !v.IsInt64() || v.Int64() > 1<<31-1 {
			return 1<<31 - 1
		}
		if v.Int64() < -1 {
			return -1
		}
		return int(v.Int64())
	}
	switch word {
	case "scale":
		return &bcPlace{get: func() bcNum { return bcInt(int64(b.scale)) }, set: func(n bcNum) {
			if b.scale = whole(n); b.scale < 0 {
				b.warn("negative scale, set to 0")
				b.scale = 0
			}
			if b.scale > bcMostDigits {
				b.scale = bcMostDigits
				b.warn("scale too large, set to %d", b.scale)
			}
		}}
	case "ibase":
		return &bcPlace{get: func() bcNum { return bcInt(int64(b.ibase)) }, set: func(n bcNum) {
			switch b.ibase = whole(n); {
			case b.ibase < 2:
				b.warn("ibase too small, set to 2")
				b.ibase = 2
			case b.ibase > 36:
				b.warn("ibase too large, set to 36")
				b.ibase = 36
			}
		}}
	case "obase":
		return &bcPlace{get: func() bcNum { return bcInt(int64(b.obase)) }, set: func(n bcNum) {
			if b.obase = whole(n); b.obase < 2 {
				b.warn("obase too small, set to 2")
				b.obase = 2
			}
		}}
	}
	return &bcPlace{get: func() bcNum { return b.last }, set: func(n bcNum) { b.last = n }}
}

type bcArgument struct {
	value func() bcNum
	array string // "name[]"
}

func (b *bcRun) call(name string) bcExpr {
	var args []bcArgument
	for !b.is(")") {
		arg := bcArgument{}
		if b.tok == bcName && b.peekPast('[') {
			// Either a whole array or one element: the bracket tells.
			array := b.tokText
			b.next()
			b.next()
			if b.accept("]") {
				arg.array = array + "[]"
				b.variable(arg.array)
			} else {
				arg.value = b.elementExpression(array)
			}
		} else {
			arg.value = b.value()
		}
		args = append(args, arg)
		if !b.accept(",") {
			break
		}
	}
	b.expect(")")
	return bcExpr{void: name, eval: func() bcNum { return b.apply(name, args) }}
}

// elementExpression reads an expression that begins with an element, behind the bracket.
func (b *bcRun) elementExpression(array string) func() bcNum {
	index := b.value()
	b.expect("]")
	place := b.element(array, index)
	b.head = &bcExpr{eval: place.get, place: place}
	return b.value()
}

func (b *bcRun) apply(name string, args []bcArgument) bcNum {
	f := b.functions[name]
	if f == nil && b.math && len(name) == 1 && strings.Contains("scalej", name) {
		return b.library(name, args)
	}
	if f == nil {
		b.fail("Function %s not defined.", name)
	}
	if len(args) != len(f.params) {
		b.fail("Parameter number mismatch.")
	}
	if b.depth++; b.depth > 5000 {
		b.fail("Function call too deep.")
	}
	b.step()
	values := make([]bcNum, len(args))
	arrays := make([]*map[int]bcNum, len(args))
	for i, p := range f.params {
		if p.array != (args[i].array != "") {
			b.fail("Parameter type mismatch, parameter %s.", p.name)
		}
		if !p.array {
			values[i] = args[i].value()
			continue
		}
		arrays[i] = b.variable(args[i].array).elements
		if !p.ref {
			copied := maps.Clone(*arrays[i])
			arrays[i] = &copied
		}
	}
	type saved struct {
		v   *bcVar
		old bcVar
	}
	var stack []saved
	push := func(name string) *bcVar {
		v := b.variable(name)
		stack = append(stack, saved{v, *v})
		return v
	}
	defer func() {
		for i := len(stack) - 1; i >= 0; i-- {
			*stack[i].v = stack[i].old
		}
		b.depth--
	}()
	for i, p := range f.params {
		v := push(p.name)
		if p.array {
			v.elements = arrays[i]
		} else {
			v.value = values[i]
		}
	}
	for _, p := range f.autos {
		v := push(p.name)
		v.value, v.elements = bcInt(0), &map[int]bcNum{}
	}
	if runAll(f.body) == bcReturn {
		return b.returned
	}
	return bcInt(0)
}

func (b *bcRun) library(name string, args []bcArgument) bcNum {
	want := 1
	if name == "j" {
		want = 2
	}
	if len(args) != want {
		b.fail("Parameter number mismatch.")
	}
	var v [2]bcNum
	for i, a := range args {
		if a.array != "" {
			b.fail("Parameter type mismatch, parameter x.")
		}
		v[i] = a.value()
	}
	var n bcNum
	var err error
	switch name {
	case "s":
		n = bcSin(b.ctx, v[0], b.scale, false)
	case "c":
		n = bcSin(b.ctx, v[0], b.scale, true)
	case "a":
		n = bcAtan(b.ctx, v[0], b.scale)
	case "l":
		n = bcLog(b.ctx, v[0], b.scale)
	case "e":
		n, err = bcExp(b.ctx, v[0], b.scale)
	case "j":
		n, err = bcBessel(b.ctx, v[0], v[1], b.scale)
	}
	if err != nil {
		panic(bcRuntime{err})
	}
	return n
}

// read reads a number from standard input, which may be where the program itself comes from.
func (b *bcRun) read() bcNum {
	b.out.Flush()
	for {
		text, err := b.stdin.ReadString('\n')
		text = strings.TrimSpace(text)
		if text == "" && err == nil {
			continue
		}
		digits := strings.TrimPrefix(text, "-")
		for i := range len(digits) {
			if bcDigit(digits[i]) < 0 && digits[i] != '.' {
				return bcInt(0)
			}
		}
		if digits == "" || strings.Count(digits, ".") > 1 {
			return bcInt(0)
		}
		n := bcParse(digits, b.ibase)
		if digits != text {
			return n.neg()
		}
		return n
	}
}

// Output.

func (b *bcRun) print(text string) {
	b.out.WriteString(text)
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		b.column = len(text) - i - 1
	} else {
		b.column += len(text)
	}
}

// printNumber folds long lines by a backslash.
func (b *bcRun) printNumber(n bcNum) {
	text := n.text(b.obase)
	if b.lineLength == 0 {
		b.print(text)
		return
	}
	for i := range len(text) {
		if b.column++; b.column == b.lineLength-1 {
			b.out.WriteString("\\\n")
			b.column = 1
		}
		b.out.WriteByte(text[i])
	}
}

func bcEscapes(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'a':
			b.WriteByte('\a')
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'q':
			b.WriteByte('"')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case '\\':
			b.WriteByte('\\')
		}
	}
	return b.String()
}
