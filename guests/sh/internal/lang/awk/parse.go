package awk

import (
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/regex"
)

// An awk program is turned into functions at once, without a tree between.

type expr func(*interp) value

// ctl is how a statement ends.
type ctl uint8

const (
	ctlOn ctl = iota
	ctlBreak
	ctlContinue
	ctlNext
	ctlNextFile
	ctlExit
	ctlReturn
)

type stmt func(*interp) ctl

// node is an expression with what else its place in the program may need of it.
type node struct {
	eval   expr
	number func(*interp) float64 // nil: by way of eval
	test   func(*interp) bool    // nil: by way of eval
	assign func(*interp, value)  // nil: no variable
	// place returns what a and b of a later assign to the same variable are, so that side effects of subscripts come once.
	place func(*interp) (get func() value, set func(value))
	cell  func(*interp) *cell // a bare name
	re    *literal            // a bare /expression/
	list  []node              // (a, b)
	paren bool
}

// literal is an expression in the program's text.
type literal struct {
	text string
	re   *regex.Regexp
}

func (n node) num(it *interp) float64 {
	if n.number != nil {
		return n.number(it)
	}
	return it.num(n.eval(it))
}

func (n node) bool(it *interp) bool {
	if n.test != nil {
		return n.test(it)
	}
	return it.bool(n.eval(it))
}

func numeric(f func(*interp) float64) node {
	return node{number: f, eval: func(it *interp) value { return num(f(it)) }}
}

func logical(f func(*interp) bool) node {
	return node{test: f, eval: func(it *interp) value { return truth(f(it)) },
		number: func(it *interp) float64 {
			if f(it) {
				return 1
			}
			return 0
		}}
}

type function struct {
	name    string
	params  int
	body    stmt
	defined bool
	line    int
}

type rule struct {
	always   bool
	from, to node // to.eval nil: no range
	active   bool
	body     stmt // nil: print
}

type program struct {
	begin, end, beginFile, endFile []stmt
	rules                          []*rule
	globals                        map[string]int
	usesMain                       bool
}

type parser struct {
	lexer
	prog   *program
	funcs  map[string]*function
	locals map[string]int
	inFunc bool
	loops  int
	inRule bool
	noIn   bool
	noGT   bool
	regexp func(string) (*regex.Regexp, error)
	depth  int
	gawk   bool
}

func (p *parser) is(s string) bool { return p.tok == tPunct && p.text == s }

func (p *parser) accept(s string) bool {
	if p.is(s) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expect(s string) {
	if !p.accept(s) {
		p.fail("syntax error at or near %s", p.near())
	}
}

func (p *parser) newlines() {
	for p.tok == tNewline {
		p.next()
	}
}

// ends skips what may stand between statements and rules.
func (p *parser) ends() {
	for p.tok == tNewline || p.is(";") {
		p.next()
	}
}

func (p *parser) program() (err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(syntaxError)
			if !ok {
				panic(r)
			}
			err = e
		}
	}()
	p.line = 1
	p.next()
	for p.ends(); p.tok != tEOF; p.ends() {
		p.item()
	}
	for _, f := range p.funcs {
		if !f.defined {
			p.line = f.line
			p.fail("function %s never defined", f.name)
		}
	}
	return nil
}

func (p *parser) item() {
	switch p.tok {
	case tBEGIN, tEND, tBEGINFILE, tENDFILE:
		kind := p.tok
		p.next()
		if !p.is("{") {
			p.fail("syntax error at or near %s", p.near())
		}
		p.inRule = false
		body := p.block()
		switch kind {
		case tBEGIN:
			p.prog.begin = append(p.prog.begin, body)
		case tEND:
			p.prog.end = append(p.prog.end, body)
			p.prog.usesMain = true
		case tBEGINFILE:
			p.prog.beginFile = append(p.prog.beginFile, body)
			p.prog.usesMain = true
		case tENDFILE:
			p.prog.endFile = append(p.prog.endFile, body)
			p.prog.usesMain = true
		}
	case tFunction:
		p.function()
	default:
		p.inRule = true
		p.prog.usesMain = true
		r := &rule{}
		if p.is("{") {
			r.always = true
			r.body = p.block()
		} else {
			r.from = p.expr()
			if p.accept(",") {
				p.newlines()
				r.to = p.expr()
			}
			if p.is("{") {
				r.body = p.block()
			}
		}
		p.prog.rules = append(p.prog.rules, r)
	}
}

func (p *parser) function() {
	p.next()
	if p.tok != tName && p.tok != tFuncName {
		p.fail("syntax error at or near %s", p.near())
	}
	f := p.funcNamed(p.text)
	if f.defined {
		p.fail("function %s was defined before", p.text)
	}
	f.defined = true
	p.next()
	p.expect("(")
	p.locals = map[string]int{}
	for !p.is(")") {
		p.newlines()
		if p.tok != tName {
			p.fail("syntax error at or near %s", p.near())
		}
		p.locals[p.text] = len(p.locals)
		p.next()
		p.newlines()
		if !p.is(")") {
			p.expect(",")
		}
	}
	p.next()
	p.newlines()
	f.params = len(p.locals)
	p.inFunc, p.inRule = true, true
	f.body = p.block()
	p.inFunc, p.locals = false, nil
}

func (p *parser) funcNamed(name string) *function {
	f := p.funcs[name]
	if f == nil {
		f = &function{name: name, line: p.line}
		p.funcs[name] = f
	}
	return f
}

func (p *parser) enter() {
	if p.depth++; p.depth > 1000 {
		p.fail("program nests too deep")
	}
}

// Statements.

func (p *parser) block() stmt {
	p.enter()
	defer func() { p.depth-- }()
	p.expect("{")
	var list []stmt
	for {
		p.ends()
		if p.accept("}") {
			break
		}
		if p.tok == tEOF {
			p.fail("missing } near end of file")
		}
		list = append(list, p.statement())
	}
	return sequence(list)
}

func sequence(list []stmt) stmt {
	switch len(list) {
	case 0:
		return func(*interp) ctl { return ctlOn }
	case 1:
		return list[0]
	}
	return func(it *interp) ctl {
		for _, s := range list {
			if c := s(it); c != ctlOn {
				return c
			}
		}
		return ctlOn
	}
}

// end reads the end of a simple statement.
func (p *parser) end() {
	switch {
	case p.tok == tNewline, p.is(";"):
		p.next()
	case p.is("}"), p.tok == tEOF:
	default:
		p.fail("syntax error at or near %s", p.near())
	}
}

// body is the statement that a loop or branch rules.
func (p *parser) body() stmt {
	p.newlines()
	if p.accept(";") {
		return sequence(nil)
	}
	return p.statement()
}

func (p *parser) statement() stmt {
	p.enter()
	defer func() { p.depth-- }()
	switch p.tok {
	case tIf:
		p.next()
		p.expect("(")
		cond := p.grouped()
		p.expect(")")
		then := p.body()
		// An else may follow line ends and one semicolon; without else these are put back by starting the next statement.
		save := p.lexer
		p.ends()
		if p.tok != tElse {
			p.lexer = save
			return func(it *interp) ctl {
				if cond.bool(it) {
					return then(it)
				}
				return ctlOn
			}
		}
		p.next()
		other := p.body()
		return func(it *interp) ctl {
			if cond.bool(it) {
				return then(it)
			}
			return other(it)
		}
	case tWhile:
		p.next()
		p.expect("(")
		cond := p.grouped()
		p.expect(")")
		return p.loop(nil, &cond, nil)
	case tDo:
		p.next()
		p.loops++
		body := p.body()
		p.loops--
		p.ends()
		if p.tok != tWhile {
			p.fail("syntax error at or near %s", p.near())
		}
		p.next()
		p.expect("(")
		cond := p.grouped()
		p.expect(")")
		p.end()
		return func(it *interp) ctl {
			for {
				it.tick()
				if c := body(it); c == ctlBreak {
					return ctlOn
				} else if c > ctlContinue {
					return c
				}
				if !cond.bool(it) {
					return ctlOn
				}
			}
		}
	case tFor:
		return p.forLoop()
	case tSwitch:
		return p.switchStatement()
	}
	if p.is("{") {
		return p.block()
	}
	if p.accept(";") {
		return sequence(nil)
	}
	s := p.simple()
	p.end()
	return s
}

func (p *parser) loop(first stmt, cond *node, step stmt) stmt {
	p.loops++
	body := p.body()
	p.loops--
	return func(it *interp) ctl {
		if first != nil {
			first(it)
		}
		for cond == nil || cond.bool(it) {
			it.tick()
			if c := body(it); c == ctlBreak {
				break
			} else if c > ctlContinue {
				return c
			}
			if step != nil {
				step(it)
			}
		}
		return ctlOn
	}
}

func (p *parser) forLoop() stmt {
	p.next()
	p.expect("(")
	// for (name in array)
	if p.tok == tName {
		save := p.lexer
		name := p.text
		p.next()
		if p.tok == tIn {
			p.next()
			if p.tok == tName {
				array := p.text
				p.next()
				if p.accept(")") {
					v := p.variable(name)
					arr := p.cell(array)
					return p.each(v, arr)
				}
			}
		}
		p.lexer = save
	}
	var first, step stmt
	var cond *node
	if !p.is(";") {
		first = p.simple()
	}
	p.expect(";")
	p.newlines()
	if !p.is(";") {
		c := p.expr()
		cond = &c
	}
	p.expect(";")
	p.newlines()
	if !p.is(")") {
		step = p.simple()
	}
	p.expect(")")
	return p.loop(first, cond, step)
}

func (p *parser) each(v node, arr func(*interp) *cell) stmt {
	p.loops++
	body := p.body()
	p.loops--
	return func(it *interp) ctl {
		a := arr(it).array()
		for _, key := range it.order(a) {
			it.tick()
			v.assign(it, given(key))
			if c := body(it); c == ctlBreak {
				break
			} else if c > ctlContinue {
				return c
			}
		}
		return ctlOn
	}
}

func (p *parser) switchStatement() stmt {
	p.next()
	p.expect("(")
	subject := p.grouped()
	p.expect(")")
	p.newlines()
	p.expect("{")
	type arm struct {
		match func(*interp, value) bool // nil: default
		body  stmt
	}
	var arms []arm
	p.loops++
	for p.ends(); !p.accept("}"); p.ends() {
		var a arm
		switch p.tok {
		case tCase:
			p.next()
			n := p.unary()
			if n.re != nil {
				re := n.re
				a.match = func(it *interp, v value) bool { return it.matches(it.literal(re), it.str(v)) }
			} else {
				a.match = func(it *interp, v value) bool { return it.compare(v, n.eval(it)) == 0 }
			}
		case tDefault:
			p.next()
		default:
			p.fail("syntax error at or near %s", p.near())
		}
		p.expect(":")
		var list []stmt
		for p.ends(); p.tok != tCase && p.tok != tDefault && !p.is("}"); p.ends() {
			if p.tok == tEOF {
				p.fail("missing } near end of file")
			}
			list = append(list, p.statement())
		}
		a.body = sequence(list)
		arms = append(arms, a)
	}
	p.loops--
	return func(it *interp) ctl {
		v := subject.eval(it)
		from := -1
		for i, a := range arms {
			if a.match != nil && a.match(it, v) {
				from = i
				break
			}
		}
		for i := 0; from < 0 && i < len(arms); i++ {
			if arms[i].match == nil {
				from = i
			}
		}
		if from < 0 {
			return ctlOn
		}
		for _, a := range arms[from:] {
			if c := a.body(it); c == ctlBreak {
				return ctlOn
			} else if c != ctlOn {
				return c
			}
		}
		return ctlOn
	}
}

func (p *parser) simple() stmt {
	ret := func(c ctl) stmt { return func(*interp) ctl { return c } }
	switch p.tok {
	case tBreak, tContinue:
		c := ctlBreak
		if p.tok == tContinue {
			c = ctlContinue
		}
		if p.loops == 0 {
			p.fail("%s outside a loop", p.near())
		}
		p.next()
		return ret(c)
	case tNext, tNextFile:
		if !p.inRule {
			p.fail("improper use of %s", p.near())
		}
		c := ctlNext
		if p.tok == tNextFile {
			c = ctlNextFile
		}
		p.next()
		return ret(c)
	case tExit, tReturn:
		isReturn := p.tok == tReturn
		if isReturn && !p.inFunc {
			p.fail("return outside function body")
		}
		p.next()
		var n node
		if p.tok != tNewline && p.tok != tEOF && !p.is(";") && !p.is("}") {
			n = p.expr()
		}
		if isReturn {
			if n.eval == nil {
				return func(it *interp) ctl {
					it.result = value{}
					return ctlReturn
				}
			}
			return func(it *interp) ctl {
				it.result = n.eval(it)
				return ctlReturn
			}
		}
		return func(it *interp) ctl {
			if n.eval != nil {
				it.code = int(n.num(it)) & 255
			}
			return ctlExit
		}
	case tDelete:
		p.next()
		paren := p.accept("(")
		if p.tok != tName {
			p.fail("syntax error at or near %s", p.near())
		}
		arr := p.cell(p.text)
		p.next()
		var s stmt
		if p.accept("[") {
			key := p.subscript()
			s = func(it *interp) ctl {
				k := key(it)
				arr(it).array().remove(k)
				return ctlOn
			}
		} else {
			s = func(it *interp) ctl {
				arr(it).array().clear()
				return ctlOn
			}
		}
		if paren {
			p.expect(")")
		}
		return s
	case tPrint, tPrintf:
		return p.print()
	}
	n := p.expr()
	if n.number != nil {
		return func(it *interp) ctl {
			n.number(it)
			return ctlOn
		}
	}
	return func(it *interp) ctl {
		n.eval(it)
		return ctlOn
	}
}

func (p *parser) print() stmt {
	isPrintf := p.tok == tPrintf
	p.next()
	noGT := p.noGT
	p.noGT = true
	var args []node
	if p.tok != tNewline && p.tok != tEOF && p.tok != tPipeGetline && !p.is(";") && !p.is("}") && !p.is(">") && !p.is(">>") && !p.is("|") {
		args = p.list()
		if len(args) == 1 && args[0].list != nil {
			args = args[0].list
		}
	}
	p.noGT = noGT
	var target node
	how := ""
	if p.is(">") || p.is(">>") || p.is("|") {
		how = p.text
		p.next()
		save := p.noGT
		p.noGT = true
		target = p.ternary()
		p.noGT = save
	}
	if isPrintf && len(args) == 0 {
		p.fail("no arguments in call to printf")
	}
	return func(it *interp) ctl {
		var b []byte
		if isPrintf {
			values := make([]value, len(args)-1)
			format := it.str(args[0].eval(it))
			for i := range values {
				values[i] = args[i+1].eval(it)
			}
			b = append(it.line[:0], it.sprintf(format, values)...)
		} else {
			b = it.line[:0]
			if len(args) == 0 {
				b = append(b, it.record0()...)
			} else if len(args) == 1 {
				b = append(b, it.out(args[0].eval(it))...)
			} else {
				// All are evaluated before the first is printed, since they may print themselves.
				values := make([]value, len(args))
				for i, a := range args {
					values[i] = a.eval(it)
				}
				b = it.line[:0]
				for i, v := range values {
					if i > 0 {
						b = append(b, it.ofs...)
					}
					b = append(b, it.out(v)...)
				}
			}
			b = append(b, it.ors...)
		}
		if how == "" {
			it.line = b
			it.stdout.Write(b)
			return ctlOn
		}
		text := string(b)
		it.line = b
		it.output(how, it.str(target.eval(it)), text)
		return ctlOn
	}
}

func (p *parser) list() []node {
	list := []node{p.expr()}
	for p.accept(",") {
		p.newlines()
		list = append(list, p.expr())
	}
	return list
}

// Expressions, from those that bind least.

func (p *parser) grouped() node {
	noIn, noGT := p.noIn, p.noGT
	p.noIn, p.noGT = false, false
	p.newlines()
	n := p.expr()
	p.newlines()
	p.noIn, p.noGT = noIn, noGT
	return n
}

func (p *parser) expr() node {
	p.enter()
	defer func() { p.depth-- }()
	return p.ternary()
}

func (p *parser) ternary() node {
	cond := p.or()
	if !p.is("?") {
		return cond
	}
	p.next()
	p.newlines()
	noGT := p.noGT
	yes := p.expr()
	p.newlines()
	p.expect(":")
	p.newlines()
	no := p.expr()
	p.noGT = noGT
	return node{eval: func(it *interp) value {
		if cond.bool(it) {
			return yes.eval(it)
		}
		return no.eval(it)
	}}
}

func (p *parser) or() node {
	a := p.and()
	for p.is("||") {
		p.next()
		p.newlines()
		x, y := a, p.and()
		a = logical(func(it *interp) bool { return x.bool(it) || y.bool(it) })
	}
	return a
}

func (p *parser) and() node {
	a := p.membership()
	for p.is("&&") {
		p.next()
		p.newlines()
		x, y := a, p.membership()
		a = logical(func(it *interp) bool { return x.bool(it) && y.bool(it) })
	}
	return a
}

func (p *parser) membership() node {
	a := p.match()
	for p.tok == tIn && !p.noIn {
		p.next()
		if p.tok != tName {
			p.fail("syntax error at or near %s", p.near())
		}
		arr := p.cell(p.text)
		p.next()
		key := p.key([]node{a})
		if a.list != nil {
			key = p.key(a.list)
		}
		a = logical(func(it *interp) bool {
			k := key(it)
			return arr(it).array().has(k)
		})
	}
	if a.list != nil && !p.noGT {
		p.fail("syntax error at or near %s", p.near())
	}
	return a
}

func (p *parser) match() node {
	a := p.comparison()
	for p.is("~") || p.is("!~") {
		want := p.text == "~"
		p.next()
		x, y := a, p.comparison()
		re := p.dynamic(y)
		a = logical(func(it *interp) bool {
			s := it.str(x.eval(it))
			return it.matches(re(it), s) == want
		})
	}
	return a
}

// dynamic is the expression that n stands for where one is expected.
func (p *parser) dynamic(n node) func(*interp) *regex.Regexp {
	if n.re != nil {
		re := n.re
		return func(it *interp) *regex.Regexp { return it.literal(re) }
	}
	return func(it *interp) *regex.Regexp { return it.regexp(it.str(n.eval(it))) }
}

func (p *parser) comparison() node {
	a := p.pipe()
	for p.tok == tPunct {
		op := p.text
		switch op {
		case ">":
			if p.noGT {
				return a
			}
		case "<", "<=", "==", "!=", ">=":
		default:
			return a
		}
		p.next()
		x, y := a, p.pipe()
		var ok [3]bool // below, equal, above
		switch op {
		case "<":
			ok = [3]bool{true, false, false}
		case "<=":
			ok = [3]bool{true, true, false}
		case "==":
			ok = [3]bool{false, true, false}
		case "!=":
			ok = [3]bool{true, false, true}
		case ">":
			ok = [3]bool{false, false, true}
		case ">=":
			ok = [3]bool{false, true, true}
		}
		a = logical(func(it *interp) bool {
			l := x.eval(it)
			r := y.eval(it)
			if l.kind == number && r.kind == number {
				switch {
				case l.n < r.n:
					return ok[0]
				case l.n == r.n:
					return ok[1]
				}
				return ok[2]
			}
			return ok[it.compare(l, r)+1]
		})
	}
	return a
}

// pipe reads "command" | getline.
func (p *parser) pipe() node {
	a := p.concat()
	for p.tok == tPipeGetline {
		p.next()
		command := a
		target := p.getlineTarget()
		a = numeric(func(it *interp) float64 { return it.getlineCommand(it.str(command.eval(it)), target) })
	}
	return a
}

// getlineTarget reads the variable that a getline may have; its assign is nil without one.
func (p *parser) getlineTarget() node {
	if p.tok == tName || p.is("$") {
		return p.primary(true)
	}
	return node{}
}

func (p *parser) concatStarts() bool {
	switch p.tok {
	case tNumber, tString, tName, tFuncName, tBuiltin:
		return true
	case tPunct:
		switch p.text {
		case "$", "!", "(", "++", "--":
			return true
		case "-", "+":
			return true
		}
	}
	return false
}

func (p *parser) concat() node {
	a := p.additive()
	if !p.concatStarts() || p.is("!") {
		return a
	}
	parts := []node{a}
	for p.concatStarts() && !p.is("!") {
		if p.tok == tIn {
			break
		}
		parts = append(parts, p.additive())
	}
	if len(parts) == 2 {
		x, y := parts[0], parts[1]
		return node{eval: func(it *interp) value {
			l := it.str(x.eval(it))
			return str(l + it.str(y.eval(it)))
		}}
	}
	return node{eval: func(it *interp) value {
		texts := make([]string, len(parts))
		for i, x := range parts {
			texts[i] = it.str(x.eval(it))
		}
		return str(strings.Join(texts, ""))
	}}
}

func (p *parser) additive() node {
	a := p.multiplicative()
	for p.is("+") || p.is("-") {
		plus := p.text == "+"
		p.next()
		x, y := a, p.multiplicative()
		if plus {
			a = numeric(func(it *interp) float64 {
				l := x.num(it)
				return l + y.num(it)
			})
		} else {
			a = numeric(func(it *interp) float64 {
				l := x.num(it)
				return l - y.num(it)
			})
		}
	}
	return a
}

func (p *parser) multiplicative() node {
	a := p.unary()
	for p.is("*") || p.is("/") || p.is("%") {
		op := p.text
		p.next()
		x, y := a, p.unary()
		a = numeric(func(it *interp) float64 {
			l := x.num(it)
			return it.arith(op[0], l, y.num(it))
		})
	}
	return a
}

func (p *parser) unary() node {
	p.enter()
	defer func() { p.depth-- }()
	switch {
	case p.accept("!"):
		x := p.unary()
		return logical(func(it *interp) bool { return !x.bool(it) })
	case p.accept("-"):
		x := p.unary()
		return numeric(func(it *interp) float64 {
			f := x.num(it)
			if f == 0 {
				return 0
			}
			return -f
		})
	case p.accept("+"):
		x := p.unary()
		return numeric(func(it *interp) float64 { return x.num(it) })
	}
	return p.power()
}

func (p *parser) power() node {
	a := p.primary(false)
	if !p.is("^") {
		return a
	}
	p.next()
	x := a
	var y node
	if p.is("-") || p.is("+") || p.is("!") {
		y = p.unary()
	} else {
		y = p.power()
	}
	return numeric(func(it *interp) float64 {
		l := x.num(it)
		return it.arith('^', l, y.num(it))
	})
}

var assignOps = map[string]byte{"=": '=', "+=": '+', "-=": '-', "*=": '*', "/=": '/', "%=": '%', "^=": '^'}

// primary reads an operand with what binds closest to it. bare leaves out assignment and increments, for the targets of
// getline and the operand of $.
func (p *parser) primary(bare bool) node {
	p.enter()
	defer func() { p.depth-- }()
	n := p.operand()
	if n.assign == nil || bare || p.tok != tPunct {
		return n
	}
	if p.is("++") || p.is("--") {
		by := 1.0
		if p.text == "--" {
			by = -1
		}
		p.next()
		return increment(n, by, true)
	}
	op, ok := assignOps[p.text]
	if !ok {
		return n
	}
	p.next()
	p.newlines()
	right := p.expr()
	if op == '=' {
		return node{eval: func(it *interp) value {
			if n.place != nil {
				v := right.eval(it)
				_, set := n.place(it)
				set(v)
				return v
			}
			v := right.eval(it)
			n.assign(it, v)
			return v
		}}
	}
	return numeric(func(it *interp) float64 {
		r := right.num(it)
		if n.place != nil {
			get, set := n.place(it)
			f := it.arith(op, it.num(get()), r)
			set(num(f))
			return f
		}
		f := it.arith(op, it.num(n.eval(it)), r)
		n.assign(it, num(f))
		return f
	})
}

func increment(n node, by float64, post bool) node {
	return numeric(func(it *interp) float64 {
		var old float64
		if n.place != nil {
			get, set := n.place(it)
			old = it.num(get())
			set(num(old + by))
		} else {
			old = it.num(n.eval(it))
			n.assign(it, num(old+by))
		}
		if post {
			return old
		}
		return old + by
	})
}

func (p *parser) operand() node {
	switch p.tok {
	case tNumber:
		f := p.num
		v := num(f)
		p.next()
		return node{eval: func(*interp) value { return v }, number: func(*interp) float64 { return f }}
	case tString:
		v := str(p.text)
		p.next()
		return node{eval: func(*interp) value { return v }}
	case tName:
		name := p.text
		p.next()
		if p.is("[") {
			p.next()
			return p.element(name, p.subscript())
		}
		return p.variable(name)
	case tFuncName:
		return p.call()
	case tBuiltin:
		return p.builtin()
	case tGetline:
		p.next()
		target := p.getlineTarget()
		if p.accept("<") {
			file := p.primary(true)
			return numeric(func(it *interp) float64 { return it.getlineFile(it.str(file.eval(it)), target) })
		}
		return numeric(func(it *interp) float64 { return it.getline(target) })
	case tPunct:
		switch p.text {
		case "$":
			p.next()
			var index node
			if p.is("++") || p.is("--") {
				by := 1.0
				if p.text == "--" {
					by = -1
				}
				p.next()
				index = increment(p.primary(true), by, false)
			} else if p.is("-") || p.is("+") || p.is("!") {
				index = p.unary()
			} else {
				index = p.primary(true)
			}
			return node{
				eval:   func(it *interp) value { return it.field(it.fieldNumber(index.num(it))) },
				assign: func(it *interp, v value) { it.setField(it.fieldNumber(index.num(it)), v) },
				place: func(it *interp) (func() value, func(value)) {
					i := it.fieldNumber(index.num(it))
					return func() value { return it.field(i) }, func(v value) { it.setField(i, v) }
				},
			}
		case "++", "--":
			by := 1.0
			if p.text == "--" {
				by = -1
			}
			p.next()
			n := p.primary(true)
			if n.assign == nil {
				p.fail("syntax error at or near %s", p.near())
			}
			return increment(n, by, false)
		case "/", "/=":
			lit := &literal{text: p.lexer.regexp()}
			re, err := p.regexp(lit.text)
			if err != nil {
				p.fail("regular expression compile failed (%v)\n%s", err, lit.text)
			}
			lit.re = re
			p.next()
			n := logical(func(it *interp) bool { return it.matches(it.literal(lit), it.record0()) })
			n.re = lit
			return n
		case "(":
			p.next()
			noIn, noGT := p.noIn, p.noGT
			p.noIn, p.noGT = false, false
			p.newlines()
			n := p.expr()
			p.newlines()
			if p.is(",") {
				list := []node{n}
				for p.accept(",") {
					p.newlines()
					list = append(list, p.expr())
					p.newlines()
				}
				n = node{list: list, eval: func(it *interp) value { return list[len(list)-1].eval(it) }}
			}
			p.noIn, p.noGT = noIn, noGT
			if p.tok == tNewline || p.tok == tEOF {
				p.fail("missing ) near %s", p.near())
			}
			p.expect(")")
			if n.list != nil {
				if p.tok != tIn && !p.noGT {
					p.fail("syntax error at or near %s", p.near())
				}
				return n
			}
			// A variable in parentheses is no place for getline's target or an assignment, but mawk and gawk take it.
			return node{eval: n.eval, number: n.number, test: n.test, paren: true, assign: n.assign, place: n.place}
		case "-", "+", "!":
			return p.unary()
		}
	}
	if p.tok == tNewline || p.tok == tEOF {
		p.fail("syntax error at or near %s", p.near())
	}
	p.fail("syntax error at or near %s", p.near())
	return node{}
}

// subscript reads the key of an element behind its [.
func (p *parser) subscript() func(*interp) string {
	noIn, noGT := p.noIn, p.noGT
	p.noIn, p.noGT = false, false
	list := p.list()
	p.noIn, p.noGT = noIn, noGT
	p.expect("]")
	return p.key(list)
}

func (p *parser) key(list []node) func(*interp) string {
	if len(list) == 1 {
		n := list[0]
		return func(it *interp) string { return it.str(n.eval(it)) }
	}
	return func(it *interp) string {
		var b strings.Builder
		for i, n := range list {
			if i > 0 {
				b.WriteString(it.subsep)
			}
			b.WriteString(it.str(n.eval(it)))
		}
		return b.String()
	}
}

func (p *parser) element(name string, key func(*interp) string) node {
	arr := p.cell(name)
	return node{
		eval: func(it *interp) value {
			k := key(it)
			return arr(it).array().at(k).v
		},
		assign: func(it *interp, v value) {
			k := key(it)
			arr(it).array().set(k, v)
		},
		place: func(it *interp) (func() value, func(value)) {
			k := key(it)
			a := arr(it).array()
			return func() value { return a.at(k).v }, func(v value) { a.set(k, v) }
		},
	}
}

// cell returns where a variable is kept.
func (p *parser) cell(name string) func(*interp) *cell {
	if i, ok := p.locals[name]; ok {
		return func(it *interp) *cell { return &it.frame[i] }
	}
	if s, ok := specials[name]; ok && (p.gawk || s < sRT) {
		p.fail("illegal reference to variable %s", name)
	}
	if f := p.funcs[name]; f != nil && f.defined {
		p.fail("syntax error at or near %s", name)
	}
	i, ok := p.prog.globals[name]
	if !ok {
		i = len(p.prog.globals)
		p.prog.globals[name] = i
	}
	return func(it *interp) *cell { return &it.globals[i] }
}

func (p *parser) variable(name string) node {
	if _, local := p.locals[name]; !local {
		if s, ok := specials[name]; ok && (p.gawk || s < sRT) {
			return node{
				eval:   func(it *interp) value { return it.special(s) },
				assign: func(it *interp, v value) { it.setSpecial(s, v) },
			}
		}
	}
	c := p.cell(name)
	return node{
		cell: c,
		eval: func(it *interp) value { return c(it).v },
		assign: func(it *interp, v value) {
			x := c(it)
			if x.arr != nil {
				it.fail("attempt to use array %s in a scalar context", name)
			}
			x.v = v
		},
	}
}

func (p *parser) call() node {
	name := p.text
	f := p.funcNamed(name)
	p.next()
	args := p.arguments()
	line := p.line
	return node{eval: func(it *interp) value {
		if len(args) > f.params {
			it.fail("line %d: too many arguments in call to %s", line, name)
		}
		frame := make([]cell, f.params)
		for i, a := range args {
			if a.cell == nil {
				frame[i].v = a.eval(it)
				continue
			}
			c := a.cell(it)
			switch {
			case c.arr != nil:
				frame[i].arr = c.arr
			case c.v.kind == uninit:
				frame[i].up = c
			default:
				frame[i].v = c.v
			}
		}
		return it.call(f, frame)
	}}
}

func (p *parser) arguments() []node {
	p.expect("(")
	noIn, noGT := p.noIn, p.noGT
	p.noIn, p.noGT = false, false
	var args []node
	p.newlines()
	for !p.is(")") {
		args = append(args, p.expr())
		p.newlines()
		if p.tok == tEOF {
			p.fail("missing ) near end of file")
		}
		if !p.is(")") {
			p.expect(",")
			p.newlines()
		}
	}
	p.noIn, p.noGT = noIn, noGT
	p.next()
	return args
}
