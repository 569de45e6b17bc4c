// Package wasmbuild writes small WebAssembly modules for tests, good ones and hostile ones.
//
//	m := wasmbuild.New()
//	exit := m.Import("wasi_snapshot_preview1", "proc_exit", wasmbuild.Sig(wasmbuild.I32))
//	m.Memory(1, 2)
//	m.Start(m.Func(wasmbuild.Sig(), nil, wasmbuild.I32Const(3), wasmbuild.Call(exit)))
//	wasm := m.Bytes()
//
// Imports come before functions. Nothing is validated, so that broken modules can be made; [Module.Raw] adds any
// section.
package wasmbuild

// Value types.
const (
	I32     = 0x7f
	I64     = 0x7e
	F32     = 0x7d
	F64     = 0x7c
	Funcref = 0x70
)

// Signature is a function type.
type Signature struct{ Params, Results []byte }

// Sig is a signature with these parameters and no results.
func Sig(params ...byte) Signature { return Signature{Params: params} }

// Returns adds results.
func (s Signature) Returns(results ...byte) Signature { s.Results = results; return s }

// NoMax stands for a memory or table without a maximum.
const NoMax = -1

// Module collects the parts of a module. The zero value is empty; use New.
type Module struct {
	types, imports, functions, tables, memories, globals, exports, elements, bodies, data vector
	imported, defined                                                                     uint32
	start                                                                                 []byte
	dataCount                                                                             bool
	raw                                                                                   []section
}

type vector struct {
	n uint32
	b []byte
}

func (v *vector) add(parts ...[]byte) uint32 {
	v.n++
	for _, p := range parts {
		v.b = append(v.b, p...)
	}
	return v.n - 1
}

type section struct {
	id      byte
	payload []byte
}

// New begins a module.
func New() *Module { return &Module{} }

// U32 is an unsigned LEB128 number.
func U32(v uint32) []byte {
	var b []byte
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// S64 is a signed LEB128 number.
func S64(v int64) []byte {
	var b []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// Name is a length and the bytes of s.
func Name(s string) []byte { return append(U32(uint32(len(s))), s...) }

// Limits are flags, minimum and maximum; max may be NoMax.
func Limits(min uint32, max int64) []byte {
	if max == NoMax {
		return append([]byte{0}, U32(min)...)
	}
	return append(append([]byte{1}, U32(min)...), U32(uint32(max))...)
}

// Type adds a function type and returns its index. Equal types are not merged.
func (m *Module) Type(s Signature) uint32 {
	return m.types.add([]byte{0x60}, U32(uint32(len(s.Params))), s.Params, U32(uint32(len(s.Results))), s.Results)
}

// Import imports a function and returns its index.
func (m *Module) Import(module, name string, s Signature) uint32 {
	m.imports.add(Name(module), Name(name), []byte{0}, U32(m.Type(s)))
	m.imported++
	return m.imported - 1
}

// ImportRaw imports anything: desc is a kind and what belongs to it.
func (m *Module) ImportRaw(module, name string, desc ...byte) {
	m.imports.add(Name(module), Name(name), desc)
}

// Func adds a function and returns its index. locals has a type for each local; code needs no final end.
func (m *Module) Func(s Signature, locals []byte, code ...[]byte) uint32 {
	groups := U32(uint32(len(locals)))
	for _, l := range locals {
		groups = append(groups, 1, l)
	}
	return m.FuncRaw(m.Type(s), append(append(groups, Seq(code...)...), 0x0b))
}

// FuncRaw adds a function of a type by its index with a whole body: locals, code and end.
func (m *Module) FuncRaw(typ uint32, body []byte) uint32 {
	m.functions.add(U32(typ))
	m.bodies.add(U32(uint32(len(body))), body)
	m.defined++
	return m.imported + m.defined - 1
}

// Memory adds a memory, in pages of 64 KiB, and exports the first as "memory".
func (m *Module) Memory(min uint32, max int64) {
	if i := m.memories.add(Limits(min, max)); i == 0 {
		m.Export("memory", 2, 0)
	}
}

// Table adds a table of functions.
func (m *Module) Table(min uint32, max int64) uint32 {
	return m.tables.add([]byte{Funcref}, Limits(min, max))
}

// Global adds an i32 global and returns its index.
func (m *Module) Global(mutable bool, v int32) uint32 {
	mut := byte(0)
	if mutable {
		mut = 1
	}
	return m.globals.add([]byte{I32, mut}, I32Const(v), []byte{0x0b})
}

// Elements fills table 0 from offset with functions.
func (m *Module) Elements(offset int32, functions ...uint32) {
	b := append(append([]byte{0}, I32Const(offset)...), 0x0b)
	b = append(b, U32(uint32(len(functions)))...)
	for _, f := range functions {
		b = append(b, U32(f)...)
	}
	m.elements.add(b)
}

// Data puts bytes into memory 0.
func (m *Module) Data(offset int32, b []byte) {
	m.data.add([]byte{0}, I32Const(offset), []byte{0x0b}, U32(uint32(len(b))), b)
}

// DataCount adds a data count section.
func (m *Module) DataCount() { m.dataCount = true }

// Export exports something: kind 0 function, 1 table, 2 memory, 3 global.
func (m *Module) Export(name string, kind byte, index uint32) {
	m.exports.add(Name(name), []byte{kind}, U32(index))
}

// Start exports a function as "_start".
func (m *Module) Start(f uint32) { m.Export("_start", 0, f) }

// StartSection makes a function the start function, which runs while the module is instantiated.
func (m *Module) StartSection(f uint32) { m.start = U32(f) }

// Names adds a name section with the names of functions 0, 1, ...
func (m *Module) Names(names ...string) {
	b := U32(uint32(len(names)))
	for i, n := range names {
		b = append(append(b, U32(uint32(i))...), Name(n)...)
	}
	m.Custom("name", append(append([]byte{1}, U32(uint32(len(b)))...), b...))
}

// Custom adds a custom section at the end.
func (m *Module) Custom(name string, payload []byte) {
	m.Raw(0, append(Name(name), payload...))
}

// Raw adds a section at the end.
func (m *Module) Raw(id byte, payload []byte) { m.raw = append(m.raw, section{id, payload}) }

// Bytes is the module.
func (m *Module) Bytes() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, payload []byte) {
		out = append(append(append(out, id), U32(uint32(len(payload)))...), payload...)
	}
	vec := func(id byte, v vector) {
		if v.n > 0 {
			section(id, append(U32(v.n), v.b...))
		}
	}
	vec(1, m.types)
	vec(2, m.imports)
	vec(3, m.functions)
	vec(4, m.tables)
	vec(5, m.memories)
	vec(6, m.globals)
	vec(7, m.exports)
	if m.start != nil {
		section(8, m.start)
	}
	vec(9, m.elements)
	if m.dataCount {
		section(12, U32(m.data.n))
	}
	vec(10, m.bodies)
	vec(11, m.data)
	for _, s := range m.raw {
		section(s.id, s.payload)
	}
	return out
}

// Seq joins instructions.
func Seq(code ...[]byte) []byte {
	var b []byte
	for _, c := range code {
		b = append(b, c...)
	}
	return b
}

// Instructions.
var (
	Unreachable = []byte{0x00}
	Nop         = []byte{0x01}
	Else        = []byte{0x05}
	End         = []byte{0x0b}
	Return      = []byte{0x0f}
	Drop        = []byte{0x1a}
	MemorySize  = []byte{0x3f, 0x00}
	MemoryGrow  = []byte{0x40, 0x00}
	I32Eqz      = []byte{0x45}
	I32Eq       = []byte{0x46}
	I32Ne       = []byte{0x47}
	I32Add      = []byte{0x6a}
	I32Sub      = []byte{0x6b}
	I32Mul      = []byte{0x6c}
	I32DivS     = []byte{0x6d}
	I32TruncF64 = []byte{0xaa}
	Block       = []byte{0x02, 0x40} // without results, like Loop and If
	Loop        = []byte{0x03, 0x40}
	If          = []byte{0x04, 0x40}
)

// I32Const, I64Const push a number.
func I32Const(v int32) []byte { return append([]byte{0x41}, S64(int64(v))...) }
func I64Const(v int64) []byte { return append([]byte{0x42}, S64(v)...) }

// F64Const pushes the number with these bits.
func F64Const(bits uint64) []byte {
	b := []byte{0x44}
	for i := range 8 {
		b = append(b, byte(bits>>(8*i)))
	}
	return b
}

// Call calls a function, CallIndirect one of table 0 by the index on the stack.
func Call(f uint32) []byte           { return append([]byte{0x10}, U32(f)...) }
func CallIndirect(typ uint32) []byte { return append(append([]byte{0x11}, U32(typ)...), 0) }

// Br, BrIf jump.
func Br(depth uint32) []byte   { return append([]byte{0x0c}, U32(depth)...) }
func BrIf(depth uint32) []byte { return append([]byte{0x0d}, U32(depth)...) }

// Locals and globals.
func LocalGet(i uint32) []byte  { return append([]byte{0x20}, U32(i)...) }
func LocalSet(i uint32) []byte  { return append([]byte{0x21}, U32(i)...) }
func LocalTee(i uint32) []byte  { return append([]byte{0x22}, U32(i)...) }
func GlobalGet(i uint32) []byte { return append([]byte{0x23}, U32(i)...) }
func GlobalSet(i uint32) []byte { return append([]byte{0x24}, U32(i)...) }

// I32Load and I32Store use a constant offset.
func I32Load(offset uint32) []byte  { return append([]byte{0x28, 2}, U32(offset)...) }
func I32Store(offset uint32) []byte { return append([]byte{0x36, 2}, U32(offset)...) }

// RefNull pushes a null function, TableGrow grows a table.
func RefNull() []byte           { return []byte{0xd0, Funcref} }
func TableGrow(t uint32) []byte { return append([]byte{0xfc, 15}, U32(t)...) }

// Repeat is code n times.
func Repeat(n int, code ...[]byte) []byte {
	one := Seq(code...)
	b := make([]byte, 0, n*len(one))
	for range n {
		b = append(b, one...)
	}
	return b
}
