package regex

import "unicode/utf8"

const maxProgram = 200_000

type compiler struct {
	re     *Regexp
	single bool
	loops  int
}

func (p *parser) compile(n *node) *Regexp {
	re := &Regexp{
		groups: p.groups, names: p.names, warnings: p.warnings,
		longest: p.syntax != PCRE, wide: p.flags&Bytes == 0 && (p.syntax != PCRE || p.flags&Unicode != 0), bytes: p.flags&Bytes != 0, memo: true,
	}
	c := &compiler{re: re, single: re.bytes}
	c.loops = 2 * (re.groups + 1)
	c.emit(n)
	c.add(inst{op: opMatch})
	re.regs = c.loops + 1

	f := facts{single: re.bytes, exact: true, atStart: true}
	f.walk(n)
	f.flush()
	re.prefix, re.required = f.prefix, f.best
	re.whole = f.exact && len(f.prefix) > 0
	re.nullable = first(n, re.bytes, &re.first)
	re.anchored, re.multi = anchored(n)
	return re
}

func (c *compiler) add(in inst) int {
	if len(c.re.prog) >= maxProgram {
		panic(tooBig)
	}
	c.re.prog = append(c.re.prog, in)
	return len(c.re.prog) - 1
}

func (c *compiler) here() int { return len(c.re.prog) }

func (c *compiler) emit(n *node) {
	prog := func(i int) *inst { return &c.re.prog[i] }
	switch n.kind {
	case nEmpty:
	case nChar:
		c.add(inst{op: opLit, lit: encode(n.r, c.single)})
	case nSet:
		c.add(inst{op: opSet, set: n.set})
	case nAny:
		c.add(inst{op: opAny})
	case nCat:
		for i := 0; i < len(n.subs); i++ {
			var lit []byte
			for i < len(n.subs) && n.subs[i].kind == nChar {
				lit = append(lit, encode(n.subs[i].r, c.single)...)
				i++
			}
			if len(lit) > 0 {
				c.add(inst{op: opLit, lit: lit})
			}
			if i < len(n.subs) {
				c.emit(n.subs[i])
			}
		}
	case nAlt:
		var ends []int
		for i, s := range n.subs {
			if i == len(n.subs)-1 {
				c.emit(s)
				break
			}
			split := c.add(inst{op: opSplit})
			prog(split).x = c.here()
			c.emit(s)
			ends = append(ends, c.add(inst{op: opJump}))
			prog(split).y = c.here()
		}
		for _, e := range ends {
			prog(e).x = c.here()
		}
	case nGroup:
		c.add(inst{op: opSave, n: 2 * n.n})
		c.emit(n.subs[0])
		c.add(inst{op: opSave, n: 2*n.n + 1})
	case nBack:
		c.re.memo = false
		fold := 0
		if n.fold {
			fold = 1
		}
		c.add(inst{op: opBack, n: n.n, y: fold})
	case nAssert:
		c.add(inst{op: opAssert, n: n.n})
	case nKeep:
		c.add(inst{op: opSave, n: 0})
	case nFail:
		c.add(inst{op: opFail})
	case nLook, nAtomic:
		in := inst{op: opLook, n: n.n}
		switch {
		case n.kind == nAtomic:
			in.y = 2
		case n.not:
			in.y = 1
		}
		at := c.add(in)
		c.emit(n.subs[0])
		c.add(inst{op: opEnd})
		prog(at).x = c.here()
	case nRepeat:
		c.repeat(n)
	}
}

func (c *compiler) repeat(n *node) {
	sub := n.subs[0]
	if n.mode == possessive {
		again := *n
		again.mode = greedy
		c.emit(&node{kind: nAtomic, subs: []*node{&again}})
		return
	}
	if n.max == 0 {
		return
	}
	if n.mode == greedy {
		var set *set
		one := true
		switch sub.kind {
		case nChar:
			set = newChar(sub.r)
		case nSet:
			set = sub.set
		case nAny:
		default:
			one = false
		}
		if one {
			c.add(inst{op: opMany, set: set, min: n.min, max: n.max})
			return
		}
	}
	for range n.min {
		c.emit(sub)
	}
	split := func() int {
		return c.add(inst{op: opSplit})
	}
	set := func(at, in, out int) {
		if n.mode == lazy {
			in, out = out, in
		}
		c.re.prog[at].x, c.re.prog[at].y = in, out
	}
	if n.max >= 0 {
		var splits []int
		for range n.max - n.min {
			at := split()
			splits = append(splits, at)
			set(at, c.here(), 0)
			c.emit(sub)
		}
		for _, at := range splits {
			in := at + 1
			set(at, in, c.here())
		}
		return
	}
	at := split()
	in := c.here()
	if first(sub, c.single, new([256]bool)) {
		reg := c.loops
		c.loops++
		c.add(inst{op: opSave, n: reg})
		c.emit(sub)
		loop := c.add(inst{op: opLoop, n: reg, y: at})
		c.re.prog[loop].x = c.here()
	} else {
		c.emit(sub)
		c.add(inst{op: opJump, x: at})
	}
	set(at, in, c.here())
}

func newChar(r rune) *set {
	s := &set{}
	s.add(r, r)
	return s.finish(false)
}

// first adds to set the bytes a match of n can begin with, and reports whether a match can be empty.
func first(n *node, single bool, set *[256]bool) (nullable bool) {
	switch n.kind {
	case nChar:
		set[encode(n.r, single)[0]] = true
	case nSet:
		for r := range utf8.RuneSelf {
			if n.set.ascii[r>>6]&(1<<(r&63)) != 0 {
				set[r] = true
			}
		}
		for i := utf8.RuneSelf; i < 256; i++ {
			set[i] = true
		}
	case nAny:
		for i := range set {
			set[i] = true
		}
	case nCat:
		for _, s := range n.subs {
			if !first(s, single, set) {
				return false
			}
		}
		return true
	case nAlt:
		for _, s := range n.subs {
			nullable = first(s, single, set) || nullable
		}
		return nullable
	case nRepeat:
		return first(n.subs[0], single, set) || n.min == 0
	case nGroup, nAtomic:
		return first(n.subs[0], single, set)
	case nBack:
		for i := range set {
			set[i] = true
		}
		return true
	case nFail:
	default:
		return true
	}
	return false
}

// anchored reports whether a match can start only at the start of the text or, with lines, of a line.
func anchored(n *node) (ok, lines bool) {
	switch n.kind {
	case nAssert:
		return n.n == textStart || n.n == lineStart, n.n == lineStart
	case nCat:
		for _, s := range n.subs {
			if ok, lines := anchored(s); ok {
				return true, lines
			}
			if s.kind != nAssert && s.kind != nEmpty {
				return false, false
			}
		}
	case nAlt:
		for i, s := range n.subs {
			a, l := anchored(s)
			if !a || i > 0 && l != lines {
				return false, false
			}
			lines = l
		}
		return true, lines
	case nGroup, nAtomic:
		return anchored(n.subs[0])
	}
	return false, false
}

// facts finds texts that every match has.
type facts struct {
	single       bool
	exact        bool // so far, the expression is the text in prefix
	atStart      bool
	run          []byte
	prefix, best []byte
}

func (f *facts) flush() {
	if f.atStart {
		f.prefix, f.atStart = f.run, false
	}
	if len(f.run) > len(f.best) {
		f.best = f.run
	}
	f.run = nil
}

func (f *facts) walk(n *node) {
	switch n.kind {
	case nChar:
		f.run = append(f.run, encode(n.r, f.single)...)
	case nCat:
		for _, s := range n.subs {
			f.walk(s)
		}
	case nGroup:
		f.exact = false
		f.walk(n.subs[0])
	case nAssert, nKeep:
		f.exact = false
	case nEmpty:
	case nRepeat:
		f.exact = false
		if n.min > 0 {
			f.walk(n.subs[0])
		}
		f.flush()
	default:
		f.exact = false
		f.flush()
	}
}
