package module

import (
	"unicode/utf8"

	"github.com/exthost/exthost/host/internal/engine"
)

// appendU32 appends an unsigned LEB128 number.
func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func sizeU32(v uint32) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

func appendName(b []byte, s string) []byte { return append(appendU32(b, uint32(len(s))), s...) }

// elements is the payload of a section behind its count.
func (s *scan) elements(id int) []byte {
	if s.raw[id] == nil {
		return nil
	}
	r := reader{b: s.raw[id]}
	r.u32()
	return r.b[r.at:]
}

// emit writes the module anew. size is that of the source.
func (s *scan) emit(size int) []byte {
	out := make([]byte, 0, size+4096)
	out = append(out, "\x00asm\x01\x00\x00\x00"...)
	section := func(id byte, parts ...[]byte) {
		n := 0
		for _, p := range parts {
			n += len(p)
		}
		out = appendU32(append(out, id), uint32(n))
		for _, p := range parts {
			out = append(out, p...)
		}
	}
	// grown writes a section that has an element more than before.
	grown := func(id byte, was int, added int, extra []byte) {
		section(id, appendU32(nil, uint32(was+added)), s.elements(int(id)), extra)
	}
	verbatim := func(id byte) {
		if s.raw[id] != nil {
			section(id, s.raw[id])
		}
	}
	growType, growFunction, growGlobal := uint32(len(s.types)), uint32(len(s.imported)+len(s.functions)), uint32(s.globals)

	if s.countGrow {
		grown(secType, len(s.types), 1, []byte{typeFunction, 1, typeI32, 1, typeI32})
	} else {
		verbatim(secType)
	}
	verbatim(secImport)
	if s.countGrow {
		grown(secFunction, len(s.functions), 1, appendU32(nil, growType))
	} else {
		verbatim(secFunction)
	}
	if len(s.tables) > 0 {
		b := appendU32(nil, uint32(len(s.tables)))
		for _, t := range s.tables {
			b = append(b, typeFuncref, 1)
			b = appendU32(appendU32(b, uint32(t.min)), uint32(t.max))
		}
		section(secTable, b)
	}
	if s.hasMemory {
		section(secMemory, appendU32(appendU32([]byte{1, 1}, uint32(s.memory.min)), uint32(s.memory.max)))
	}
	if s.countGrow {
		grown(secGlobal, s.globals, 1, []byte{typeI32, 1, 0x41, 0, 0x0b})
	} else {
		verbatim(secGlobal)
	}

	var exports []byte
	added := 0
	export := func(name string, kind byte, index uint32) {
		exports = appendU32(append(appendName(exports, name), kind), index)
		added++
	}
	if s.hasMemory {
		export(engine.ExportMemory, kindMemory, 0)
	}
	if s.start >= 0 {
		export(engine.ExportStart, kindFunction, uint32(s.start))
	}
	if s.countGrow {
		export(engine.ExportGrowRefused, kindGlobal, growGlobal)
	}
	grown(secExport, s.exports, added, exports)

	verbatim(secElement)
	verbatim(secDataCount)
	if s.countGrow {
		out = s.emitCode(out, growFunction, growGlobal)
	} else {
		verbatim(secCode)
	}
	verbatim(secData)
	if names := s.functionNames(); names != nil {
		section(secCustom, appendName(nil, "name"), appendU32([]byte{1}, uint32(len(names))), names)
	}
	return out
}

// emitCode writes the code section with each memory.grow replaced by a call of a function behind all others, which
// grows the memory and notes a refusal.
func (s *scan) emitCode(out []byte, function, global uint32) []byte {
	call := appendU32([]byte{0x10}, function)
	const was = 2                       // bytes of memory.grow
	grow := []byte{0x01, 0x01, typeI32, // one local
		0x20, 0x00, 0x40, 0x00, // memory.grow(delta)
		0x22, 0x01, 0x41, 0x7f, 0x46, // == -1
		0x04, typeEmpty, 0x41, 0x01, 0x24}
	grow = append(appendU32(grow, global), 0x0b, // if: refused = 1
		0x20, 0x01, 0x0b)

	size := func(b body) uint32 { return uint32(len(b.code) + len(b.grows)*(len(call)-was)) }
	total := sizeU32(uint32(len(s.bodies)+1)) + sizeU32(uint32(len(grow))) + len(grow)
	for _, b := range s.bodies {
		total += sizeU32(size(b)) + int(size(b))
	}
	out = appendU32(append(out, secCode), uint32(total))
	out = appendU32(out, uint32(len(s.bodies)+1))
	for _, b := range s.bodies {
		out = appendU32(out, size(b))
		from := uint32(0)
		for _, at := range b.grows {
			out = append(append(out, b.code[from:at]...), call...)
			from = at + was
		}
		out = append(out, b.code[from:]...)
	}
	return append(appendU32(out, uint32(len(grow))), grow...)
}

// functionNames makes the function names of the name section anew, cleaned; nil if there are none or they are not in
// order. Names are no part of a module's validity.
func (s *scan) functionNames() []byte {
	r := &reader{b: s.names}
	for r.more() {
		id := r.byte()
		sub := r.sub(r.u32())
		if r.err != nil {
			return nil
		}
		if id != 1 {
			continue
		}
		n := sub.count("function names", MaxFunctions)
		out := make([]byte, 0, len(sub.b))
		next := uint32(0)
		for range n {
			i := sub.u32()
			name := sub.bytes(sub.u32())
			if sub.err != nil || i < next || uint64(i) >= uint64(len(s.imported)+len(s.functions)) || !utf8.Valid(name) {
				return nil
			}
			next = i + 1
			out = appendName(appendU32(out, i), engine.Clean(string(name), maxFunctionName))
		}
		if sub.err != nil || n == 0 {
			return nil
		}
		return append(appendU32(nil, uint32(n)), out...)
	}
	return nil
}
