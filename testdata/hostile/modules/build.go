// Package modules makes the hostile modules that no compiler would: chains of calls without a loop, tables of a
// hundred million entries, functions of a megabyte, imports of what nobody offers.
//
// Each file holds one module, registered under the file's name, with the class of attack and the class of failure that
// it must meet in its header.
package modules

import "slices"

var all = map[string]func() []byte{}

func register(name string, build func() []byte) { all[name] = build }

// Names lists the modules.
func Names() []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Build returns a module's bytes, nil if there is none of that name.
func Build(name string) []byte {
	if build := all[name]; build != nil {
		return build()
	}
	return nil
}

// Types that every module made here declares, in this order.
const (
	typeNothing = iota // () -> ()
	typeI32            // () -> i32
	typeExit           // (i32) -> ()
	typeTwo            // (i32 i32) -> i32
)

// Instructions used by more than one module.
const (
	opUnreachable = 0x00
	opBlock       = 0x02
	opLoop        = 0x03
	opEnd         = 0x0b
	opBr          = 0x0c
	opBrIf        = 0x0d
	opCall        = 0x10
	opDrop        = 0x1a
	opLocalGet    = 0x20
	opI32Load     = 0x28
	opMemoryGrow  = 0x40
	opI32Const    = 0x41
	opI32Ne       = 0x47
	opI32DivS     = 0x6d
	void          = 0x40
)

type importEntry struct {
	module, name string
	kind         byte   // 0 function, 1 table, 2 memory, 3 global
	rest         []byte // type index or limits
}

type body struct {
	locals uint64 // of type i32
	code   []byte // without the final end
}

// shape is a module under construction. Only what is set is written.
type shape struct {
	imports  []importEntry
	types    []uint64 // type of each function
	bodies   []body
	tables   [][]byte
	memories [][]byte
	start    int // index of the start function, -1 if none
	main     int // index of the function exported as _start, -1 if none
	elements [][]byte
	data     [][]byte
	exports  [][]byte // beside _start and memory
	custom   []byte
}

func (s shape) bytes() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, content []byte) {
		out = append(out, id)
		out = append(out, number(uint64(len(content)))...)
		out = append(out, content...)
	}
	vector := func(items [][]byte) []byte {
		b := number(uint64(len(items)))
		for _, item := range items {
			b = append(b, item...)
		}
		return b
	}
	if s.custom != nil {
		section(0, append(text("padding"), s.custom...))
	}
	section(1, vector([][]byte{
		{0x60, 0, 0},
		{0x60, 0, 1, 0x7f},
		{0x60, 1, 0x7f, 0},
		{0x60, 2, 0x7f, 0x7f, 1, 0x7f},
	}))
	if len(s.imports) > 0 {
		var items [][]byte
		for _, im := range s.imports {
			item := append(text(im.module), text(im.name)...)
			items = append(items, append(append(item, im.kind), im.rest...))
		}
		section(2, vector(items))
	}
	functions := number(uint64(len(s.types)))
	for _, t := range s.types {
		functions = append(functions, number(t)...)
	}
	section(3, functions)
	if len(s.tables) > 0 {
		section(4, vector(s.tables))
	}
	if len(s.memories) > 0 {
		section(5, vector(s.memories))
	}
	exports := slices.Clone(s.exports)
	if s.main >= 0 {
		exports = append(exports, append(append(text("_start"), 0), number(uint64(s.main))...))
	}
	if len(s.memories) > 0 {
		exports = append(exports, append(text("memory"), 2, 0))
	}
	section(7, vector(exports))
	if s.start >= 0 {
		section(8, number(uint64(s.start)))
	}
	if len(s.elements) > 0 {
		section(9, vector(s.elements))
	}
	code := number(uint64(len(s.bodies)))
	for _, b := range s.bodies {
		var content []byte
		if b.locals == 0 {
			content = append(content, 0)
		} else {
			content = append(append(append(content, 1), number(b.locals)...), 0x7f)
		}
		content = append(append(content, b.code...), opEnd)
		code = append(append(code, number(uint64(len(content)))...), content...)
	}
	section(10, code)
	if len(s.data) > 0 {
		section(11, vector(s.data))
	}
	return out
}

// function is an export of a function.
func function(name string, index int) []byte {
	return append(append(text(name), 0), number(uint64(index))...)
}

// command is a module whose _start is one body and that has a page of memory.
func command(code ...byte) shape {
	return shape{types: []uint64{typeNothing}, bodies: []body{{code: code}}, memories: [][]byte{{0, 1}}, start: -1}
}

// chain is a module of n functions where each calls the next one twice, so that the first one makes 2^n calls.
func chain(n int) shape {
	s := shape{memories: [][]byte{{0, 1}}, start: -1, main: -1}
	for i := range n {
		var code []byte
		if i < n-1 {
			call := append([]byte{opCall}, number(uint64(i+1))...)
			code = append(append(code, call...), call...)
		}
		s.types = append(s.types, typeNothing)
		s.bodies = append(s.bodies, body{code: code})
	}
	return s
}

// number is an unsigned LEB128 number.
func number(n uint64) []byte {
	var b []byte
	for n >= 0x80 {
		b = append(b, byte(n)|0x80)
		n >>= 7
	}
	return append(b, byte(n))
}

// signed is a signed LEB128 number.
func signed(n int64) []byte {
	var b []byte
	for {
		c := byte(n & 0x7f)
		n >>= 7
		if n == 0 && c&0x40 == 0 || n == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func text(s string) []byte { return append(number(uint64(len(s))), s...) }

func repeat(n int, code ...byte) []byte { return slices.Repeat(code, n) }
