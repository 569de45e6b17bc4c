package regex

import (
	"bytes"
	"context"
	"unicode"
	"unicode/utf8"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

type op uint8

const (
	opLit    op = iota // the bytes lit
	opSet              // one character of set
	opAny              // any character
	opMany             // set (or any, where it is nil), min to max times, as many as can be; nothing else can follow a lesser max
	opSplit            // x, else y
	opJump             // x
	opSave             // register n = position
	opLoop             // y, unless the position is what register n holds: a turn of a loop that took nothing
	opAssert           // kind n
	opBack             // what group n matched; y != 0: in any case
	opLook             // the program at the next instruction, up to opEnd; x behind it; n characters back; y: 1 not, 2 atomic
	opFail             // never
	opEnd              // of opLook
	opMatch            // of all
)

type inst struct {
	op       op
	x, y, n  int
	min, max int // max -1: no bound
	lit      []byte
	set      *set
}

// What opAssert looks for.
const (
	lineStart = iota
	lineEnd
	textStart
	textEnd
	textEndLine // before a line end that ends the text, too
	wordEdge
	notWordEdge
	wordStart
	wordEnd
	noWordBefore
	noWordBehind
)

type frame struct {
	kind     uint8
	pc       int
	pos, arg int
}

const (
	goOn    uint8 = iota // at pc and pos
	restore              // register pc to pos
	shorter              // opMany at pc ended at pos and may end down to arg
)

type machine struct {
	ctx   context.Context
	re    *Regexp
	b     []byte
	only  bool // whether there is a match is all that counts
	stack []frame
	reg   []int
	best  []int
	start int
	steps int // since Check
	spent int // since begin, while nothing is remembered
	seen  [][]uint64
}

const page = 1 << 14 // bits

func (m *machine) begin(ctx context.Context, re *Regexp, b []byte, only bool) {
	m.ctx, m.re, m.b, m.only = ctx, re, b, only
	m.spent, m.seen, m.stack = 0, nil, m.stack[:0] // a search that was ended may have left something
	if len(m.reg) < re.regs {
		m.reg = make([]int, re.regs)
		m.best = make([]int, re.regs)
	}
	m.best = m.best[:cap(m.best)]
}

// search looks for a match that starts at pos.
func (m *machine) search(pos int) bool {
	m.start = pos
	ok, slow := m.run(0, pos, true)
	if slow {
		n := (len(m.b) + 1) * len(m.re.prog)
		m.seen = make([][]uint64, n/page+1)
		ok, _ = m.run(0, pos, true)
	}
	return ok
}

// mark reports whether the matcher was at pc and pos before, and remembers that it was.
func (m *machine) mark(pc, pos int) bool {
	bit := pos*len(m.re.prog) + pc
	p := m.seen[bit/page]
	if p == nil {
		p = make([]uint64, page/64)
		m.seen[bit/page] = p
	}
	w, mask := bit%page/64, uint64(1)<<(bit%64)
	if p[w]&mask != 0 {
		return true
	}
	p[w] |= mask
	return false
}

// run runs the program from pc. top is false for the inside of opLook, which ends at opEnd with its position in m.best's
// place: see look.
func (m *machine) run(pc, pos int, top bool) (ok, slow bool) {
	re, b := m.re, m.b
	base := len(m.stack)
	limit := 64 + 8*len(re.prog) + 4*len(b)
	memo := top && m.seen != nil
	if top {
		for i := range re.regs {
			m.reg[i] = -1
		}
	}
	found := false
	for {
		// One step, or on to the next alternative.
		m.steps++
		if m.steps >= 1<<14 {
			m.steps = 0
			cmd.Check(m.ctx)
		}
		if top && m.seen == nil && re.memo {
			if m.spent++; m.spent > limit {
				m.stack = m.stack[:base]
				return false, true
			}
		}
		in := &re.prog[pc]
		alive := true
		switch in.op {
		case opLit:
			if len(b)-pos >= len(in.lit) && string(b[pos:pos+len(in.lit)]) == string(in.lit) {
				pos += len(in.lit)
				pc++
			} else {
				alive = false
			}
		case opSet:
			if pos >= len(b) {
				alive = false
				break
			}
			if c := b[pos]; c < utf8.RuneSelf {
				if alive = in.set.ascii[c>>6]&(1<<(c&63)) != 0; alive {
					pos++
					pc++
				}
				break
			}
			r, n := decode(b[pos:], re.bytes)
			if alive = in.set.has(r); alive {
				pos += n
				pc++
			}
		case opAny:
			if pos >= len(b) {
				alive = false
				break
			}
			r, n := decode(b[pos:], re.bytes)
			if alive = !isInvalid(r); alive {
				pos += n
				pc++
			}
		case opMany:
			end, low := m.many(in, pos)
			if end < 0 {
				alive = false
				break
			}
			if end > low {
				m.stack = append(m.stack, frame{shorter, pc, end, low})
			}
			pos = end
			pc++
			if memo && m.mark(pc, pos) {
				alive = false
			}
		case opSplit:
			if memo && m.mark(pc, pos) {
				alive = false
				break
			}
			m.stack = append(m.stack, frame{goOn, in.y, pos, 0})
			pc = in.x
		case opJump:
			pc = in.x
		case opSave:
			m.stack = append(m.stack, frame{restore, in.n, m.reg[in.n], 0})
			m.reg[in.n] = pos
			pc++
		case opLoop:
			switch {
			case m.reg[in.n] != pos:
				pc = in.y
			case re.longest:
				alive = false // glibc keeps the groups of the turn before
			default:
				pc = in.x
			}
		case opAssert:
			if alive = m.assert(in.n, pos); alive {
				pc++
			}
		case opBack:
			end := m.back(in, pos)
			if alive = end >= 0; alive {
				pos = end
				pc++
			}
		case opLook:
			end, ok := m.look(pc, pos)
			if alive = ok; ok {
				pos = end
				pc = in.x
			}
		case opFail:
			alive = false
		case opEnd:
			m.reg[re.regs-1] = pos
			m.stack = m.stack[:base]
			return true, false
		case opMatch:
			if !found || pos > m.best[1] {
				found = true
				copy(m.best, m.reg[:2*(re.groups+1)])
				m.best[1] = pos
				if m.best[0] < 0 {
					m.best[0] = m.start
				}
			}
			if !re.longest || m.only || pos == len(b) {
				m.stack = m.stack[:base]
				return true, false
			}
			alive = false
		}
		for !alive {
			if len(m.stack) == base {
				return found, false
			}
			f := &m.stack[len(m.stack)-1]
			switch f.kind {
			case restore:
				m.reg[f.pc] = f.pos
				m.stack = m.stack[:len(m.stack)-1]
				continue
			case goOn:
				pc, pos = f.pc, f.pos
				m.stack = m.stack[:len(m.stack)-1]
			case shorter:
				n := 1
				if !re.bytes && b[f.pos-1] >= utf8.RuneSelf {
					_, n = decodeLast(b[f.arg:f.pos], false)
				}
				f.pos -= n
				pc, pos = f.pc+1, f.pos
				if f.pos <= f.arg {
					m.stack = m.stack[:len(m.stack)-1]
				}
				m.steps++
				if top {
					m.spent++
				}
				// What must come next is cheap to see before the attempt.
				if next := &re.prog[pc]; next.op == opLit && (pos >= len(b) || b[pos] != next.lit[0]) {
					continue
				}
				if memo && m.mark(pc, pos) {
					continue
				}
			}
			alive = true
		}
	}
}

// many returns the furthest and the nearest end of opMany, -1 when it fails.
func (m *machine) many(in *inst, pos int) (end, low int) {
	b, single := m.b, m.re.bytes
	n := 0
	low = -1
	if in.min == 0 {
		low = pos
	}
	set := in.set
	for pos < len(b) && n != in.max {
		c := b[pos]
		if c < utf8.RuneSelf {
			if set != nil && set.ascii[c>>6]&(1<<(c&63)) == 0 {
				break
			}
			pos++
		} else {
			r, w := decode(b[pos:], single)
			if set == nil && isInvalid(r) || set != nil && !set.has(r) {
				break
			}
			pos += w
		}
		if n++; n == in.min {
			low = pos
		}
	}
	if n < in.min {
		return -1, -1
	}
	m.steps += n / 8
	return pos, low
}

func (m *machine) back(in *inst, pos int) int {
	from, to := m.reg[2*in.n], m.reg[2*in.n+1]
	if from < 0 || to < from {
		return -1
	}
	text := m.b[from:to]
	rest := m.b[pos:]
	if in.y == 0 {
		if !bytes.HasPrefix(rest, text) {
			return -1
		}
		return pos + len(text)
	}
	for len(text) > 0 {
		if len(rest) == 0 {
			return -1
		}
		r, n := decode(text, m.re.bytes)
		s, w := decode(rest, m.re.bytes)
		if !sameFold(r, s) {
			return -1
		}
		text, rest = text[n:], rest[w:]
	}
	return len(m.b) - len(rest)
}

func sameFold(r, s rune) bool {
	if r == s {
		return true
	}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		if f == s {
			return true
		}
	}
	return false
}

// look runs what is inside opLook at pc. Groups that it sets stay set, and are given back with the rest of the path.
func (m *machine) look(pc, pos int) (end int, ok bool) {
	in := &m.re.prog[pc]
	at := pos
	for range in.n {
		if at == 0 {
			return pos, in.y == 1
		}
		_, n := decodeLast(m.b[:at], m.re.bytes)
		at -= n
	}
	old := append([]int(nil), m.reg[:m.re.regs]...)
	ok, _ = m.run(pc+1, at, false)
	end = m.reg[m.re.regs-1]
	if in.y == 1 || !ok {
		copy(m.reg, old)
		return pos, ok != (in.y == 1)
	}
	for i, v := range old[:m.re.regs-1] {
		if m.reg[i] != v {
			m.stack = append(m.stack, frame{restore, i, v, 0})
		}
	}
	if in.y == 2 {
		return end, true
	}
	return pos, true
}

func (m *machine) assert(kind, pos int) bool {
	b := m.b
	switch kind {
	case lineStart:
		return pos == 0 || b[pos-1] == '\n'
	case lineEnd:
		return pos == len(b) || b[pos] == '\n'
	case textStart:
		return pos == 0
	case textEnd:
		return pos == len(b)
	case textEndLine:
		return pos == len(b) || pos == len(b)-1 && b[pos] == '\n'
	}
	before, behind := false, false
	if pos > 0 {
		r, _ := decodeLast(b[:pos], m.re.bytes)
		before = m.word(r)
	}
	if pos < len(b) {
		r, _ := decode(b[pos:], m.re.bytes)
		behind = m.word(r)
	}
	switch kind {
	case wordEdge:
		return before != behind
	case notWordEdge:
		return before == behind
	case wordStart:
		return !before && behind
	case wordEnd:
		return before && !behind
	case noWordBefore:
		return !before
	}
	return !behind // noWordBehind
}

func (m *machine) word(r rune) bool {
	if r < utf8.RuneSelf {
		return IsWord(r)
	}
	return m.re.wide && IsWord(r)
}

// IsWord reports whether \w matches r.
func IsWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}
