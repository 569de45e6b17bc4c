package jq

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/regex"
)

// A program becomes a filter: a function that is given an input and hands each output to yield. An error that yield returns
// ends it, and comes out of it.
type filter func(e *env, in item, yield func(item) error) error

// item is a value and, where paths are wanted, how it was reached.
type item struct {
	v any
	p *path // nil: nobody wants to know
}

type path struct {
	up  *path
	key any
}

var (
	root = &path{} // the start of a path
	lost = &path{} // of a value that was not reached by a path, where one is wanted
)

func (p *path) list() []any {
	n := 0
	for q := p; q != root; q = q.up {
		n++
	}
	out := make([]any, n)
	for q := p; q != root; q = q.up {
		n--
		out[n] = q.key
	}
	return out
}

// made is a value that in's path does not lead to.
func made(in item, v any) item {
	if in.p != nil {
		return item{v, lost}
	}
	return item{v, nil}
}

// env is a chain of what is bound: variables, closures and labels.
type env struct {
	up  *env
	id  int
	val any
	fn  *closure
}

type closure struct {
	body filter
	env  *env
}

// function is a definition of the program.
type function struct {
	id     int
	global bool // it stands at the top, and sees nothing around it
	params []param
	body   filter
}

type param struct {
	id    int // of the closure
	value int // of the variable, 0: none
}

func (e *env) variable(id int) any {
	for ; e.id != id; e = e.up {
	}
	return e.val
}

func (e *env) find(id int) *env {
	for ; e.id != id; e = e.up {
	}
	return e
}

// failure is an error of the program's, with its value.
type failure struct{ v any }

func (f *failure) Error() string {
	if s, ok := f.v.(string); ok {
		return s
	}
	return compact(f.v)
}

// broken is break on its way to its label.
type broken struct{ label *env }

func (*broken) Error() string { return "break" }

// halted ends the run.
type halted struct {
	code int
	v    any
	show bool
}

func (*halted) Error() string { return "halt" }

// passing wraps an error of what follows try, which is none of its own.
type passing struct{ err error }

func (p *passing) Error() string { return p.err.Error() }

var errStop = errors.New("stop")

func failf(format string, args ...any) error { return &failure{fmt.Sprintf(format, args...)} }

// trunc shows a value in a message.
func trunc(v any) string {
	s := compact(v)
	if len(s) > 14 {
		return s[:11] + "..."
	}
	return s
}

// describe is a value with its type, as messages have it.
func describe(v any) string { return typeOf(v) + " (" + trunc(v) + ")" }

const maxCalls = 12_000

// machine is what a running program shares.
type machine struct {
	ctx     context.Context
	c       *cmd.Call
	named   *object
	args    []any // $__prog_args
	environ *object
	input   func() (any, error)
	name    func() any // of the file at hand
	line    func() int
	depth   int
	ticks   int
	regexps map[string]*regex.Regexp
	stderr  func(string)
	library []string
}

func (m *machine) tick() {
	if m.ticks++; m.ticks&1023 == 0 {
		cmd.Check(m.ctx)
	}
}

// Compilation.

type scope struct {
	up    *scope
	name  string // "$x", "f/0", "*label"
	id    int
	fn    *function
	param bool
}

func (s *scope) find(name string) *scope {
	for ; s != nil; s = s.up {
		if s.name == name {
			return s
		}
	}
	return nil
}

type compiler struct {
	m       *machine
	ids     int
	lib     map[string]*function // definitions in jq's language, as they are used
	modules map[string]*scope
}

// compileError is why a program is refused.
type compileError struct {
	text string
	line int
}

func (e *compileError) Error() string {
	return fmt.Sprintf("%s at <top-level>, line %d:", e.text, e.line)
}

func (c *compiler) fail(line int, format string, args ...any) {
	panic(&compileError{fmt.Sprintf(format, args...), max(line, 1)})
}

func (c *compiler) id() int {
	c.ids++
	return c.ids
}

func (c *compiler) bind(s *scope, name string) *scope { return &scope{up: s, name: name, id: c.id()} }

// define compiles a definition, and returns the scope in which it can be used.
func (c *compiler) define(s *scope, d *definition, global bool) *scope {
	f := &function{id: c.id(), global: global}
	out := &scope{up: s, name: fmt.Sprintf("%s/%d", d.name, len(d.params)), id: f.id, fn: f}
	inner := out
	for _, p := range d.params {
		if p[0] == '$' {
			inner = c.bind(inner, p)
			v := inner.id
			inner = c.bind(inner, p[1:]+"/0")
			inner.param = true
			f.params = append(f.params, param{id: inner.id, value: v})
			continue
		}
		inner = c.bind(inner, p+"/0")
		inner.param = true
		f.params = append(f.params, param{id: inner.id})
	}
	f.body = c.compile(d.body, inner)
	return out
}

func (c *compiler) compile(n *node, s *scope) filter {
	m := c.m
	switch n.kind {
	case nIdentity:
		return func(_ *env, in item, yield func(item) error) error { return yield(in) }
	case nRecurse:
		return recurse
	case nLiteral:
		v := n.value
		return func(_ *env, in item, yield func(item) error) error { return yield(made(in, v)) }
	case nField:
		return c.access(n, s, func(_ *env, in item, yield func(any) error) error { return yield(n.text) })
	case nIndex:
		key := c.compile(n.right, s)
		return c.access(n, s, func(e *env, in item, yield func(any) error) error {
			return key(e, item{v: in.v}, func(k item) error { return yield(k.v) })
		})
	case nSlice:
		var from, to filter = constant(nil), constant(nil)
		if n.right != nil {
			from = c.compile(n.right, s)
		}
		if n.third != nil {
			to = c.compile(n.third, s)
		}
		return c.access(n, s, func(e *env, in item, yield func(any) error) error {
			return to(e, item{v: in.v}, func(t item) error {
				return from(e, item{v: in.v}, func(f item) error {
					return yield(&object{keys: []string{"start", "end"}, vals: []any{f.v, t.v}})
				})
			})
		})
	case nIterate:
		left := c.compile(n.left, s)
		return func(e *env, in item, yield func(item) error) error {
			return left(e, in, func(x item) error { return m.iterate(x, yield) })
		}
	case nString:
		return c.str(n, s)
	case nFormat:
		format := formatter(n.text)
		if format == nil {
			c.fail(n.line, "error: %s is not a valid format", n.text[1:])
		}
		return func(_ *env, in item, yield func(item) error) error {
			v, err := format(in.v)
			if err != nil {
				return err
			}
			return yield(made(in, v))
		}
	case nArray:
		if n.left == nil {
			return constant([]any{})
		}
		body := c.compile(n.left, s)
		return func(e *env, in item, yield func(item) error) error {
			out := []any{}
			err := body(e, item{v: in.v}, func(x item) error {
				m.tick()
				out = append(out, x.v)
				return nil
			})
			if err != nil {
				return err
			}
			return yield(made(in, out))
		}
	case nObject:
		return c.object(n, s)
	case nNegate:
		x := c.compile(n.left, s)
		return func(e *env, in item, yield func(item) error) error {
			return x(e, item{v: in.v}, func(v item) error {
				if l, ok := v.v.(literal); ok {
					if l.text[0] == '-' {
						return yield(made(in, literal{-l.f, l.text[1:]}))
					}
					return yield(made(in, literal{-l.f, "-" + l.text}))
				}
				f, ok := number(v.v)
				if !ok {
					return failf("%s cannot be negated", describe(v.v))
				}
				return yield(made(in, -f))
			})
		}
	case nPipe:
		left, right := c.compile(n.left, s), c.compile(n.right, s)
		return func(e *env, in item, yield func(item) error) error {
			return left(e, in, func(x item) error { return right(e, x, yield) })
		}
	case nComma:
		left, right := c.compile(n.left, s), c.compile(n.right, s)
		return func(e *env, in item, yield func(item) error) error {
			if err := left(e, in, yield); err != nil {
				return err
			}
			return right(e, in, yield)
		}
	case nBinary:
		if _, ok := number(n.left.value); ok && n.left.kind == nLiteral && n.right.kind == nLiteral {
			if g, ok := number(n.right.value); ok && g == 0 && (n.text == "/" || n.text == "%") {
				c.fail(n.line, "error: Division by zero?")
			}
		}
		left, right, op := c.compile(n.left, s), c.compile(n.right, s), operator(n.text)
		return func(e *env, in item, yield func(item) error) error {
			plain := item{v: in.v}
			return right(e, plain, func(r item) error {
				return left(e, plain, func(l item) error {
					v, err := op(l.v, r.v)
					if err != nil {
						return err
					}
					return yield(made(in, v))
				})
			})
		}
	case nAnd, nOr:
		left, right, and := c.compile(n.left, s), c.compile(n.right, s), n.kind == nAnd
		return func(e *env, in item, yield func(item) error) error {
			plain := item{v: in.v}
			return left(e, plain, func(l item) error {
				if truth(l.v) != and {
					return yield(made(in, !and))
				}
				return right(e, plain, func(r item) error { return yield(made(in, truth(r.v))) })
			})
		}
	case nAlt:
		left, right := c.compile(n.left, s), c.compile(n.right, s)
		return func(e *env, in item, yield func(item) error) error {
			any := false
			err := left(e, in, func(x item) error {
				if !truth(x.v) {
					return nil
				}
				any = true
				if err := yield(x); err != nil {
					return &passing{err}
				}
				return nil
			})
			var p *passing
			if errors.As(err, &p) {
				return p.err
			}
			if err != nil && !catchable(err) {
				return err
			}
			if any {
				return nil
			}
			return right(e, in, yield)
		}
	case nAssign:
		return c.assign(n, s)
	case nIf:
		cond, then := c.compile(n.left, s), c.compile(n.right, s)
		other := filter(func(_ *env, in item, yield func(item) error) error { return yield(in) })
		if n.third != nil {
			other = c.compile(n.third, s)
		}
		return func(e *env, in item, yield func(item) error) error {
			return cond(e, item{v: in.v}, func(x item) error {
				if truth(x.v) {
					return then(e, in, yield)
				}
				return other(e, in, yield)
			})
		}
	case nTry:
		body := c.compile(n.left, s)
		var handler filter
		if n.right != nil {
			handler = c.compile(n.right, s)
		}
		return func(e *env, in item, yield func(item) error) error {
			depth := m.depth
			err := body(e, in, func(x item) error {
				if err := yield(x); err != nil {
					return &passing{err}
				}
				return nil
			})
			if err == nil {
				return nil
			}
			if p, ok := err.(*passing); ok {
				return p.err
			}
			if !catchable(err) {
				return err
			}
			m.depth = depth
			v := message(err)
			if o, ok := v.(*object); ok {
				if b, _ := o.get("__jq"); b != nil {
					return err
				}
			}
			if handler == nil {
				return nil
			}
			return handler(e, made(in, v), yield)
		}
	case nReduce, nForeach:
		return c.fold(n, s)
	case nAs:
		source := c.compile(n.left, s)
		bound, inner := c.destructure(n.patterns, s)
		body := c.compile(n.right, inner)
		return func(e *env, in item, yield func(item) error) error {
			return source(e, item{v: in.v}, func(x item) error {
				return bound(e, in, x.v, func(e *env) error { return body(e, in, yield) })
			})
		}
	case nDef:
		inner := c.define(s, n.def, false)
		rest := c.compile(n.right, inner)
		id := inner.id
		return func(e *env, in item, yield func(item) error) error {
			return rest(&env{up: e, id: id}, in, yield)
		}
	case nCall:
		return c.call(n, s)
	case nVariable:
		return c.variable(n, s)
	case nLabel:
		inner := c.bind(s, "*"+n.text)
		body := c.compile(n.right, inner)
		return func(e *env, in item, yield func(item) error) error {
			here := &env{up: e, id: inner.id}
			err := body(here, in, yield)
			if b, ok := err.(*broken); ok && b.label == here {
				return nil
			}
			return err
		}
	case nBreak:
		l := s.find("*" + n.text)
		if l == nil {
			c.fail(n.line, "error: $*label-%s is not defined", n.text)
		}
		return func(e *env, _ item, _ func(item) error) error { return &broken{e.find(l.id)} }
	case nLoc:
		return constant(&object{keys: []string{"file", "line"}, vals: []any{"<top-level>", float64(n.line)}})
	}
	panic("no such node")
}

func constant(v any) filter {
	return func(_ *env, in item, yield func(item) error) error { return yield(made(in, v)) }
}

func catchable(err error) bool {
	switch err.(type) {
	case *broken, *halted, *passing:
		return false
	}
	return err != errStop
}

// message is what catch is given of an error.
func message(err error) any {
	if f, ok := err.(*failure); ok {
		return f.v
	}
	return err.Error()
}

// access compiles n.left[key], where keys makes the keys.
func (c *compiler) access(n *node, s *scope, keys func(*env, item, func(any) error) error) filter {
	left := c.compile(n.left, s)
	if n.kind == nField {
		key := any(n.text)
		return func(e *env, in item, yield func(item) error) error {
			return left(e, in, func(x item) error { return step(x, key, yield) })
		}
	}
	return func(e *env, in item, yield func(item) error) error {
		return keys(e, in, func(k any) error {
			return left(e, in, func(x item) error { return step(x, k, yield) })
		})
	}
}

// step goes from a value to what is at key.
func step(x item, key any, yield func(item) error) error {
	if x.p == lost {
		return failf("Invalid path expression near attempt to access element %s of %s", trunc(key), trunc(x.v))
	}
	v, err := index(x.v, key)
	if err != nil {
		return err
	}
	if x.p == nil {
		return yield(item{v: v})
	}
	return yield(item{v, &path{x.p, key}})
}

func (m *machine) iterate(x item, yield func(item) error) error {
	if x.p == lost {
		return failf("Invalid path expression near attempt to iterate through %s", trunc(x.v))
	}
	switch v := x.v.(type) {
	case []any:
		for i, e := range v {
			m.tick()
			it := item{v: e}
			if x.p != nil {
				it.p = &path{x.p, float64(i)}
			}
			if err := yield(it); err != nil {
				return err
			}
		}
		return nil
	case *object:
		for i, k := range v.keys {
			m.tick()
			it := item{v: v.vals[i]}
			if x.p != nil {
				it.p = &path{x.p, k}
			}
			if err := yield(it); err != nil {
				return err
			}
		}
		return nil
	case nil:
		return failf("Cannot iterate over null")
	}
	return failf("Cannot iterate over %s", describe(x.v))
}

func recurse(e *env, in item, yield func(item) error) error {
	if err := yield(in); err != nil {
		return err
	}
	switch v := in.v.(type) {
	case []any:
		for i, x := range v {
			it := item{v: x}
			if in.p != nil {
				it.p = &path{in.p, float64(i)}
			}
			if err := recurse(e, it, yield); err != nil {
				return err
			}
		}
	case *object:
		for i, k := range v.keys {
			it := item{v: v.vals[i]}
			if in.p != nil {
				it.p = &path{in.p, k}
			}
			if err := recurse(e, it, yield); err != nil {
				return err
			}
		}
	}
	return nil
}

// str compiles a string with parts in it, from the last: that one varies least.
func (c *compiler) str(n *node, s *scope) filter {
	format := formatter(n.text)
	if format == nil {
		c.fail(n.line, "error: %s is not a valid format", n.text[1:])
	}
	parts := make([]filter, len(n.args))
	for i, a := range n.args {
		if a.kind != nLiteral || a.text != rawText {
			parts[i] = c.compile(a, s)
		}
	}
	return func(e *env, in item, yield func(item) error) error {
		texts := make([]string, len(parts))
		var from func(i int) error
		from = func(i int) error {
			if i < 0 {
				n := 0
				for _, t := range texts {
					n += len(t)
				}
				out := make([]byte, 0, n)
				for _, t := range texts {
					out = append(out, t...)
				}
				return yield(made(in, string(out)))
			}
			if parts[i] == nil {
				texts[i] = n.args[i].value.(string)
				return from(i - 1)
			}
			return parts[i](e, item{v: in.v}, func(x item) error {
				v, err := format(x.v)
				if err != nil {
					return err
				}
				texts[i] = v
				return from(i - 1)
			})
		}
		return from(len(parts) - 1)
	}
}

func (c *compiler) object(n *node, s *scope) filter {
	type member struct{ key, value filter }
	members := make([]member, len(n.pairs))
	for i, p := range n.pairs {
		if p.key.kind == nLiteral {
			if _, ok := p.key.value.(string); !ok {
				c.fail(p.key.line, "error: Object keys must be strings")
			}
		}
		members[i].key = c.compile(p.key, s)
		members[i].value = c.compile(p.value, s)
	}
	return func(e *env, in item, yield func(item) error) error {
		plain := item{v: in.v}
		var from func(i int, o *object) error
		from = func(i int, o *object) error {
			if i == len(members) {
				return yield(made(in, o))
			}
			return members[i].key(e, plain, func(k item) error {
				key, ok := k.v.(string)
				if !ok {
					return failf("Object keys must be strings")
				}
				return members[i].value(e, plain, func(v item) error {
					next := o.clone(len(members) - i)
					next.put(key, v.v)
					return from(i+1, next)
				})
			})
		}
		return from(0, &object{})
	}
}

// destructure compiles patterns. Several of them are alternatives, of which the first that raises no error is taken; they
// all bind the variables of any of them.
func (c *compiler) destructure(pats []*pattern, s *scope) (func(e *env, in item, v any, next func(*env) error) error, *scope) {
	ids := map[string]int{}
	var names []string
	inner := s
	var declare func(p *pattern)
	add := func(name string) {
		if _, ok := ids[name]; !ok && name != "" {
			inner = c.bind(inner, "$"+name)
			ids[name] = inner.id
			names = append(names, name)
		}
	}
	declare = func(p *pattern) {
		add(p.name)
		for _, a := range p.array {
			declare(a)
		}
		for _, o := range p.object {
			add(o.name)
			if o.value != nil {
				declare(o.value)
			}
		}
	}
	for _, p := range pats {
		declare(p)
	}
	binders := make([]binder, len(pats))
	for i, p := range pats {
		binders[i] = c.binder(p, ids, inner)
	}
	empty := func(e *env) *env {
		for _, n := range names {
			e = &env{up: e, id: ids[n]}
		}
		return e
	}
	if len(pats) == 1 {
		b := binders[0]
		if p := pats[0]; p.name != "" {
			id := ids[p.name]
			return func(e *env, _ item, v any, next func(*env) error) error { return next(&env{up: e, id: id, val: v}) }, inner
		}
		return func(e *env, in item, v any, next func(*env) error) error { return b(empty(e), in, v, next) }, inner
	}
	return func(e *env, in item, v any, next func(*env) error) error {
		var err error
		for i, b := range binders {
			err = b(empty(e), in, v, next)
			if err == nil || !catchable(err) || i == len(binders)-1 {
				break
			}
		}
		return err
	}, inner
}

type binder func(e *env, in item, v any, next func(*env) error) error

func (c *compiler) binder(p *pattern, ids map[string]int, s *scope) binder {
	if p.name != "" {
		id := ids[p.name]
		return func(e *env, _ item, v any, next func(*env) error) error { return next(&env{up: e, id: id, val: v}) }
	}
	if p.array != nil {
		subs := make([]binder, len(p.array))
		for i, a := range p.array {
			subs[i] = c.binder(a, ids, s)
		}
		return func(e *env, in item, v any, next func(*env) error) error {
			var from func(e *env, i int) error
			from = func(e *env, i int) error {
				if i == len(subs) {
					return next(e)
				}
				if _, ok := v.([]any); !ok && v != nil {
					_, err := index(v, float64(i))
					return err
				}
				x, err := index(v, float64(i))
				if err != nil {
					return err
				}
				return subs[i](e, in, x, func(e *env) error { return from(e, i+1) })
			}
			return from(e, 0)
		}
	}
	type member struct {
		key   filter
		name  int
		value binder
	}
	members := make([]member, len(p.object))
	for i, o := range p.object {
		members[i].key = c.compile(o.key, s)
		if o.name != "" {
			members[i].name = ids[o.name]
		}
		if o.value != nil {
			members[i].value = c.binder(o.value, ids, s)
		}
	}
	return func(e *env, in item, v any, next func(*env) error) error {
		var from func(e *env, i int) error
		from = func(e *env, i int) error {
			if i == len(members) {
				return next(e)
			}
			m := members[i]
			return m.key(e, item{v: in.v}, func(k item) error {
				key, ok := k.v.(string)
				if !ok {
					return failf("Cannot index %s with %s", typeOf(v), typeOf(k.v))
				}
				x, err := index(v, key)
				if err != nil {
					return err
				}
				e := e
				if m.name != 0 {
					e = &env{up: e, id: m.name, val: x}
				}
				if m.value == nil {
					return from(e, i+1)
				}
				return m.value(e, in, x, func(e *env) error { return from(e, i+1) })
			})
		}
		return from(e, 0)
	}
}

func (c *compiler) fold(n *node, s *scope) filter {
	m := c.m
	source, init := c.compile(n.left, s), c.compile(n.right, s)
	bound, inner := c.destructure(n.patterns, s)
	update := c.compile(n.third, inner)
	if n.kind == nReduce {
		return func(e *env, in item, yield func(item) error) error {
			return init(e, in, func(state item) error {
				err := source(e, item{v: in.v}, func(x item) error {
					m.tick()
					return bound(e, in, x.v, func(e *env) error {
						last := made(in, nil)
						old := state
						state = last
						return update(e, old, func(y item) error {
							state = y
							return nil
						})
					})
				})
				if err != nil {
					return err
				}
				return yield(state)
			})
		}
	}
	extract := filter(func(_ *env, in item, yield func(item) error) error { return yield(in) })
	if n.fourth != nil {
		extract = c.compile(n.fourth, inner)
	}
	return func(e *env, in item, yield func(item) error) error {
		return init(e, in, func(state item) error {
			return source(e, item{v: in.v}, func(x item) error {
				m.tick()
				return bound(e, in, x.v, func(e *env) error {
					old := state
					return update(e, old, func(y item) error {
						state = y
						return extract(e, y, yield)
					})
				})
			})
		})
	}
}

func (c *compiler) variable(n *node, s *scope) filter {
	if b := s.find("$" + n.text); b != nil {
		return func(e *env, in item, yield func(item) error) error { return yield(made(in, e.variable(b.id))) }
	}
	m := c.m
	switch n.text {
	case "ENV":
		return func(_ *env, in item, yield func(item) error) error { return yield(made(in, m.environ)) }
	case "__prog_args":
		return func(_ *env, in item, yield func(item) error) error { return yield(made(in, m.args)) }
	}
	if v, ok := m.named.get(n.text); ok {
		return constant(v)
	}
	c.fail(n.line, "error: $%s is not defined", n.text)
	return nil
}

func (c *compiler) call(n *node, s *scope) filter {
	m := c.m
	name := fmt.Sprintf("%s/%d", n.text, len(n.args))
	b := s.find(name)
	var f *function
	if b == nil {
		if special, ok := specials[name]; ok {
			args := make([]filter, len(n.args))
			for i, a := range n.args {
				args[i] = c.compile(a, s)
			}
			return special(c, args)
		}
		if native, ok := natives[name]; ok {
			return c.native(native, n, s)
		}
		if f = c.fromLibrary(name); f == nil {
			c.fail(n.line, "error: %s is not defined", name)
		}
	} else if b.param {
		id := b.id
		return func(e *env, in item, yield func(item) error) error {
			fn := e.find(id).fn
			return fn.body(fn.env, in, yield)
		}
	} else {
		f = b.fn
	}
	args := make([]filter, len(n.args))
	for i, a := range n.args {
		args[i] = c.compile(a, s)
	}
	return func(e *env, in item, yield func(item) error) error {
		if m.depth++; m.depth > maxCalls {
			return failf("function calls nest too deep (%s)", name)
		}
		m.tick()
		var outer *env
		if !f.global {
			outer = e.find(f.id)
		}
		err := m.bindArgs(f, args, 0, e, outer, in, func(inner *env) error {
			return f.body(inner, in, func(x item) error {
				// What takes the output is no part of the call.
				m.depth--
				err := yield(x)
				m.depth++
				return err
			})
		})
		m.depth--
		return err
	}
}

// bindArgs binds the arguments from the ith; each value of one that is wanted as a value is a call of its own.
func (m *machine) bindArgs(f *function, args []filter, i int, e, inner *env, in item, next func(*env) error) error {
	for ; i < len(args); i++ {
		p := f.params[i]
		if p.value == 0 {
			inner = &env{up: inner, id: p.id, fn: &closure{args[i], e}}
			continue
		}
		up, i := inner, i
		return args[i](e, item{v: in.v}, func(x item) error {
			here := &env{up: up, id: p.value, val: x.v}
			here = &env{up: here, id: p.id, fn: &closure{constant(x.v), nil}}
			return m.bindArgs(f, args, i+1, e, here, in, next)
		})
	}
	return next(inner)
}

// native compiles a call of a function in Go; of its arguments the last varies least.
func (c *compiler) native(f native, n *node, s *scope) filter {
	m := c.m
	args := make([]filter, len(n.args))
	for i, a := range n.args {
		args[i] = c.compile(a, s)
	}
	if len(args) == 0 {
		return func(_ *env, in item, yield func(item) error) error {
			v, err := f(m, in.v, nil)
			if err != nil {
				return err
			}
			return yield(made(in, v))
		}
	}
	return func(e *env, in item, yield func(item) error) error {
		return values(args, len(args)-1, make([]any, len(args)), e, in, func(vals []any) error {
			v, err := f(m, in.v, vals)
			if err != nil {
				return err
			}
			return yield(made(in, v))
		})
	}
}

func values(args []filter, i int, vals []any, e *env, in item, next func([]any) error) error {
	if i < 0 {
		return next(vals)
	}
	return args[i](e, item{v: in.v}, func(x item) error {
		vals[i] = x.v
		return values(args, i-1, vals, e, in, next)
	})
}

// Assignment.

func (c *compiler) assign(n *node, s *scope) filter {
	target, right := c.compile(n.left, s), c.compile(n.right, s)
	change := c.modifier(n.left, s)
	if n.text == "|=" {
		return func(e *env, in item, yield func(item) error) error {
			v, gone, err := change(e, in.v, func(x any) (any, bool, error) {
				var out any
				got := false
				err := right(e, item{v: x}, func(y item) error {
					out, got = y.v, true
					return errStop
				})
				if err == errStop {
					err = nil
				}
				return out, !got, err
			})
			if err != nil {
				return err
			}
			if gone {
				v = nil
			}
			return yield(made(in, v))
		}
	}
	if n.text == "=" {
		return func(e *env, in item, yield func(item) error) error {
			return right(e, item{v: in.v}, func(r item) error {
				out := in.v
				err := target(e, item{in.v, root}, func(x item) error {
					if x.p == lost {
						return failf("Invalid path expression with result %s", trunc(x.v))
					}
					var err error
					out, err = setPath(out, x.p.list(), r.v)
					return err
				})
				if err != nil {
					return err
				}
				return yield(made(in, out))
			})
		}
	}
	var op func(a, b any) (any, error)
	if n.text == "//=" {
		op = func(a, b any) (any, error) {
			if truth(a) {
				return a, nil
			}
			return b, nil
		}
	} else {
		op = operator(n.text[:len(n.text)-1])
	}
	return func(e *env, in item, yield func(item) error) error {
		return right(e, item{v: in.v}, func(r item) error {
			v, _, err := change(e, in.v, func(x any) (any, bool, error) {
				v, err := op(x, r.v)
				return v, false, err
			})
			if err != nil {
				return err
			}
			return yield(made(in, v))
		})
	}
}

// modifier compiles a path expression to a function that changes what it leads to, in one walk where its form allows. What
// f says is gone is deleted.
type modifier func(e *env, v any, f func(any) (any, bool, error)) (any, bool, error)

func (c *compiler) modifier(n *node, s *scope) modifier {
	switch n.kind {
	case nIdentity:
		return func(_ *env, v any, f func(any) (any, bool, error)) (any, bool, error) { return f(v) }
	case nPipe:
		left, right := c.modifier(n.left, s), c.modifier(n.right, s)
		return func(e *env, v any, f func(any) (any, bool, error)) (any, bool, error) {
			return left(e, v, func(x any) (any, bool, error) { return right(e, x, f) })
		}
	case nField:
		left := c.modifier(n.left, s)
		return func(e *env, v any, f func(any) (any, bool, error)) (any, bool, error) {
			return left(e, v, func(x any) (any, bool, error) {
				old, err := index(x, n.text)
				if err != nil {
					return nil, false, err
				}
				y, gone, err := f(old)
				if err != nil {
					return nil, false, err
				}
				o, _ := x.(*object)
				switch {
				case gone && o == nil:
					return x, false, nil
				case gone:
					return o.without(map[string]bool{n.text: true}), false, nil
				case o == nil:
					o = &object{}
				}
				return o.with(n.text, y), false, nil
			})
		}
	case nIterate:
		left := c.modifier(n.left, s)
		return func(e *env, v any, f func(any) (any, bool, error)) (any, bool, error) {
			return left(e, v, func(x any) (any, bool, error) {
				switch x := x.(type) {
				case []any:
					out := make([]any, 0, len(x))
					for _, y := range x {
						c.m.tick()
						z, gone, err := f(y)
						if err != nil {
							return nil, false, err
						}
						if !gone {
							out = append(out, z)
						}
					}
					return out, false, nil
				case *object:
					out := &object{}
					for i, k := range x.keys {
						c.m.tick()
						z, gone, err := f(x.vals[i])
						if err != nil {
							return nil, false, err
						}
						if !gone {
							out.put(k, z)
						}
					}
					return out, false, nil
				}
				return nil, false, c.m.iterate(item{v: x}, nil)
			})
		}
	}
	paths := c.compile(n, s)
	return func(e *env, v any, f func(any) (any, bool, error)) (any, bool, error) {
		out := v
		var dead []any
		whole := false
		err := paths(e, item{v, root}, func(x item) error {
			if x.p == lost {
				return failf("Invalid path expression with result %s", trunc(x.v))
			}
			at := x.p.list()
			old, err := getPath(out, at)
			if err != nil {
				return err
			}
			y, gone, err := f(old)
			if err != nil {
				return err
			}
			if gone && len(at) == 0 {
				whole = true
				return nil
			}
			if gone {
				dead = append(dead, at)
				return nil
			}
			out, err = setPath(out, at, y)
			return err
		})
		if err == nil && dead != nil {
			out, err = deletePaths(out, dead)
		}
		return out, whole, err
	}
}

// Access.

func index(v, key any) (any, error) {
	switch k := key.(type) {
	case string:
		switch v := v.(type) {
		case *object:
			x, _ := v.get(k)
			return x, nil
		case nil:
			return nil, nil
		}
		return nil, failf("Cannot index %s with \"%s\"", typeOf(v), k)
	case float64, literal:
		f, _ := number(key)
		switch v := v.(type) {
		case []any:
			if f != f {
				return nil, nil
			}
			i := int(math.Floor(f))
			if i < 0 {
				i += len(v)
			}
			if i < 0 || i >= len(v) {
				return nil, nil
			}
			return v[i], nil
		case nil:
			return nil, nil
		}
	case *object:
		switch v := v.(type) {
		case nil:
			return nil, nil
		case []any:
			from, to, err := slice(k, len(v))
			if err != nil {
				return nil, err
			}
			return v[from:to:to], nil
		case string:
			r := []rune(v)
			from, to, err := slice(k, len(r))
			if err != nil {
				return nil, err
			}
			return string(r[from:to]), nil
		}
	case []any:
		if v, ok := v.([]any); ok {
			return indices(v, k), nil
		}
	}
	return nil, failf("Cannot index %s with %s", typeOf(v), typeOf(key))
}

// slice reads the ends of a slice of n elements.
func slice(o *object, n int) (from, to int, err error) {
	get := func(name string, or int, up bool) (int, error) {
		x, _ := o.get(name)
		if x == nil {
			return or, nil
		}
		f, ok := number(x)
		if !ok {
			return 0, failf("Start and end indices of an array slice must be numbers")
		}
		if f < 0 {
			f += float64(n)
		}
		if up {
			f = math.Ceil(f)
		} else {
			f = math.Floor(f)
		}
		return int(min(max(f, 0), float64(n))), nil
	}
	if from, err = get("start", 0, false); err != nil {
		return
	}
	if to, err = get("end", n, true); err != nil {
		return
	}
	return from, max(from, to), nil
}

func getPath(v any, at []any) (any, error) {
	for _, k := range at {
		if v == nil {
			return nil, nil
		}
		var err error
		if v, err = index(v, k); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func setPath(v any, at []any, to any) (any, error) {
	if len(at) == 0 {
		return to, nil
	}
	key := at[0]
	switch k := key.(type) {
	case string:
		o, ok := v.(*object)
		if !ok {
			if v != nil {
				return nil, failf("Cannot index %s with \"%s\"", typeOf(v), k)
			}
			o = &object{}
		}
		old, _ := o.get(k)
		x, err := setPath(old, at[1:], to)
		if err != nil {
			return nil, err
		}
		return o.with(k, x), nil
	case float64, literal:
		f, _ := number(key)
		a, ok := v.([]any)
		if !ok && v != nil {
			return nil, failf("Cannot index %s with number", typeOf(v))
		}
		i := int(math.Floor(f))
		if i < 0 {
			if i += len(a); i < 0 {
				return nil, failf("Out of bounds negative array index")
			}
		}
		if i > 1<<28 {
			return nil, failf("Array index too large")
		}
		var old any
		if i < len(a) {
			old = a[i]
		}
		x, err := setPath(old, at[1:], to)
		if err != nil {
			return nil, err
		}
		out := make([]any, max(len(a), i+1))
		copy(out, a)
		out[i] = x
		return out, nil
	case *object:
		a, ok := v.([]any)
		if !ok && v != nil {
			return nil, failf("Cannot update field at object index of %s", typeOf(v))
		}
		from, end, err := slice(k, len(a))
		if err != nil {
			return nil, err
		}
		var old any
		if v != nil {
			old = a[from:end:end]
		}
		x, err := setPath(old, at[1:], to)
		if err != nil {
			return nil, err
		}
		part, ok := x.([]any)
		if !ok {
			return nil, failf("A slice of an array can only be assigned another array")
		}
		out := append([]any{}, a[:from]...)
		return append(append(out, part...), a[end:]...), nil
	}
	if _, ok := v.([]any); ok {
		return nil, failf("Cannot update field at array index of array")
	}
	return nil, failf("Cannot index %s with %s", typeOf(v), typeOf(key))
}

// deletePaths deletes what paths lead to, all at once.
func deletePaths(v any, paths []any) (any, error) {
	if v == nil {
		return nil, nil
	}
	// Paths with the same first step go on together.
	var order []any
	rest := map[string][]any{}
	gone := map[string]bool{}
	for _, p := range paths {
		at := p.([]any)
		if len(at) == 0 {
			return nil, nil
		}
		k := at[0]
		if f, ok := number(k); ok {
			if a, isArray := v.([]any); isArray {
				i := math.Floor(f)
				if i < 0 {
					i += float64(len(a))
				}
				k = i
			}
		}
		name := compact(k)
		if _, ok := rest[name]; !ok && !gone[name] {
			order = append(order, k)
		}
		if len(at) == 1 {
			gone[name] = true
		} else {
			rest[name] = append(rest[name], at[1:])
		}
	}
	for _, k := range order {
		name := compact(k)
		if gone[name] {
			continue
		}
		old, err := index(v, k)
		if err != nil {
			return nil, err
		}
		if old == nil {
			continue
		}
		x, err := deletePaths(old, rest[name])
		if err != nil {
			return nil, err
		}
		if v, err = setPath(v, []any{k}, x); err != nil {
			return nil, err
		}
	}
	keys := map[string]bool{}
	places := map[int]bool{}
	for _, k := range order {
		if !gone[compact(k)] {
			continue
		}
		switch k := k.(type) {
		case string:
			if _, ok := v.(*object); !ok {
				return nil, failf("Cannot delete field at object index of %s", typeOf(v))
			}
			keys[k] = true
		case float64, literal:
			if _, ok := v.([]any); !ok {
				return nil, failf("Cannot delete field at array index of %s", typeOf(v))
			}
			f, _ := number(k)
			places[int(f)] = true
		case *object:
			a, ok := v.([]any)
			if !ok {
				return nil, failf("Cannot delete field at object index of %s", typeOf(v))
			}
			from, to, err := slice(k, len(a))
			if err != nil {
				return nil, err
			}
			for i := from; i < to; i++ {
				places[i] = true
			}
		default:
			return nil, failf("Cannot delete field at %s index of %s", typeOf(k), typeOf(v))
		}
	}
	if len(keys) > 0 {
		return v.(*object).without(keys), nil
	}
	if len(places) > 0 {
		a := v.([]any)
		out := make([]any, 0, len(a))
		for i, x := range a {
			if !places[i] {
				out = append(out, x)
			}
		}
		return out, nil
	}
	return v, nil
}
