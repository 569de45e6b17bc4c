package module

import (
	"fmt"
	"strings"

	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/wasiabi"
)

// Section ids.
const (
	secCustom = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData
	secDataCount
	sections
)

// order is the place of each section in a module.
var order = [sections]int{secType: 1, secImport: 2, secFunction: 3, secTable: 4, secMemory: 5, secGlobal: 6, secExport: 7,
	secStart: 8, secElement: 9, secDataCount: 10, secCode: 11, secData: 12}

var sectionNames = [sections]string{"custom section", "type section", "import section", "function section", "table section",
	"memory section", "global section", "export section", "start section", "element section", "code section", "data section",
	"data count section"}

// Value types.
const (
	typeI32       = 0x7f
	typeI64       = 0x7e
	typeF32       = 0x7d
	typeF64       = 0x7c
	typeV128      = 0x7b
	typeFuncref   = 0x70
	typeExternref = 0x6f
	typeFunction  = 0x60
	typeEmpty     = 0x40
)

// Kinds of imports and exports.
const (
	kindFunction = iota
	kindTable
	kindMemory
	kindGlobal
)

type limits struct {
	min, max uint64
	hasMax   bool
	grows    bool // tables: there is a table.grow
}

type signature struct{ params, results []byte }

func (s signature) equal(t signature) bool {
	return string(s.params) == string(t.params) && string(s.results) == string(t.results)
}

func (s signature) String() string {
	return "(" + typeNames(s.params) + ") -> (" + typeNames(s.results) + ")"
}

func typeNames(ts []byte) string {
	var names []string
	for i, t := range ts {
		if i == 20 {
			names = append(names, "...")
			break
		}
		names = append(names, map[byte]string{typeI32: "i32", typeI64: "i64", typeF32: "f32", typeF64: "f64", typeFuncref: "funcref"}[t])
	}
	return strings.Join(names, ", ")
}

// scan is what was read of a module. Slices lead into the module itself.
type scan struct {
	options Options
	raw     [sections][]byte // payloads; nil: not there
	offset  [sections]int

	types       []signature
	importNames []string
	imported    []uint32 // types of imported functions
	functions   []uint32 // types of defined functions
	tables      []limits
	hasMemory   bool
	memory      limits
	globals     int
	exports     int
	hasStart    bool // exports _start
	hasInit     bool // exports _initialize
	start       int64
	names       []byte
	dataCount   int64 // -1: no section

	bodies     []body
	grows      bool // there is a memory.grow
	tableBytes int64
	lowered    bool
	countGrow  bool
}

// body is a function body and where its memory.grow instructions are.
type body struct {
	code  []byte
	grows []uint32
}

// module reads everything but names.
func (s *scan) module(wasm []byte) error {
	s.start, s.dataCount = -1, -1
	r := &reader{b: wasm}
	if string(r.bytes(4)) != "\x00asm" {
		return &Error{Invalid, "not a WebAssembly module"}
	}
	if v := string(r.bytes(4)); v != "\x01\x00\x00\x00" {
		if v == "\x0d\x00\x01\x00" {
			return &Error{Invalid, "a WebAssembly component, not a module: build for wasip1 (WASI preview 1)"}
		}
		return &Error{Invalid, "unknown version of WebAssembly"}
	}
	last := 0
	for r.more() {
		id := r.byte()
		size := r.u32()
		sec := r.sub(size)
		if r.err != nil {
			break
		}
		if id == secCustom {
			if sec.name() == "name" && s.names == nil {
				s.names = sec.b[sec.at:]
			}
			if sec.err != nil {
				return sec.err
			}
			continue
		}
		if id >= sections {
			what := "unknown section"
			if id == 13 {
				what = "exceptions are not enabled: tag section"
			}
			r.fail(Invalid, "%s (id %d)", what, id)
			break
		}
		if order[id] <= last {
			r.fail(Invalid, "%s is repeated or out of order", sectionNames[id])
			break
		}
		last = order[id]
		s.raw[id] = sec.b
		s.offset[id] = sec.base
	}
	if r.err != nil {
		return r.err
	}
	// In the order of the ids each needs only what came before, but for the count of data segments.
	for _, f := range []struct {
		id   int
		read func(*reader)
	}{
		{secType, s.readTypes}, {secImport, s.readImports}, {secFunction, s.readFunctions}, {secTable, s.readTables},
		{secMemory, s.readMemory}, {secGlobal, s.readGlobals}, {secExport, s.readExports}, {secStart, s.readStart},
		{secElement, s.readElements}, {secDataCount, s.readDataCount}, {secCode, s.readCode}, {secData, s.readData},
	} {
		if s.raw[f.id] == nil {
			continue
		}
		sec := &reader{b: s.raw[f.id], base: s.offset[f.id]}
		f.read(sec)
		sec.end(sectionNames[f.id])
		if sec.err != nil {
			return sec.err
		}
	}
	if len(s.bodies) != len(s.functions) {
		return &Error{Invalid, fmt.Sprintf("%d functions are declared, %d are defined", len(s.functions), len(s.bodies))}
	}
	if s.dataCount > 0 && s.raw[secData] == nil {
		return &Error{Invalid, "data count section without data section"}
	}
	if !s.hasStart && !s.hasInit {
		return &Error{Invalid, `module exports neither "_start" (a WASI command: a program with main) nor "_initialize" (a WASI reactor: a library)`}
	}
	return nil
}

func (s *scan) valueType(r *reader) byte {
	switch t := r.byte(); t {
	case typeI32, typeI64, typeF32, typeF64, typeFuncref:
		return t
	case typeV128:
		r.fail(Invalid, "SIMD is not enabled: v128 value")
	case typeExternref:
		r.fail(Invalid, "externref is not enabled")
	default:
		r.fail(Invalid, "unknown value type %#x", t)
	}
	return 0
}

func (s *scan) valueTypes(r *reader, what string) []byte {
	n := r.count(what, maxValues)
	from := r.at
	for range n {
		if s.valueType(r); r.err != nil {
			return nil
		}
	}
	return r.b[from:r.at:r.at]
}

func (s *scan) readTypes(r *reader) {
	n := r.count("types", maxTypes)
	s.types = make([]signature, 0, n+1)
	for range n {
		if c := r.byte(); c != typeFunction {
			r.fail(Invalid, "type %#x is not a function type; garbage collection is not enabled", c)
			return
		}
		t := signature{s.valueTypes(r, "parameters"), s.valueTypes(r, "results")}
		if r.err != nil {
			return
		}
		s.types = append(s.types, t)
	}
}

func (s *scan) typeIndex(r *reader) uint32 {
	i := r.u32()
	if r.err == nil && uint64(i) >= uint64(len(s.types)) {
		r.fail(Invalid, "type %d does not exist", i)
		return 0
	}
	return i
}

// readImports refuses what is not allowed, all in one error.
func (s *scan) readImports(r *reader) {
	known := make(map[string]signature, len(s.options.Functions))
	for _, f := range s.options.Functions {
		known[f.Module+"\x00"+f.Name] = signature{bytesOf(f.Params), bytesOf(f.Results)}
	}
	seen := map[string]bool{}
	var refused []string
	for range r.count("imports", maxImports) {
		mod, name := r.name(), r.name()
		what := ""
		switch kind := r.byte(); kind {
		case kindFunction:
			t := s.typeIndex(r)
			if r.err != nil {
				return
			}
			s.imported = append(s.imported, t)
			want, ok := known[mod+"\x00"+name]
			if !ok {
				what = "no such function"
			} else if !want.equal(s.types[t]) {
				what = fmt.Sprintf("is %v, not %v", want, s.types[t])
			}
		case kindTable:
			s.tableType(r)
			what = "a table cannot be imported"
		case kindMemory:
			s.memoryType(r)
			what = "a memory cannot be imported"
		case kindGlobal:
			s.globalType(r)
			what = "a global cannot be imported"
		default:
			r.fail(Invalid, "unknown kind of import %#x", kind)
		}
		if r.err != nil {
			return
		}
		if key := mod + "\x00" + name; what != "" {
			refused = append(refused, fmt.Sprintf("%s %s: %s", quote(mod), quote(name), what))
		} else if !seen[key] {
			seen[key] = true
			s.importNames = append(s.importNames, mod+"."+name)
		}
	}
	if len(refused) > 0 {
		more := ""
		if n := len(refused) - 10; n > 0 {
			refused, more = refused[:10], fmt.Sprintf("; and %d more", n)
		}
		r.err = &Error{Imports, "imports that this host does not give: " + strings.Join(refused, "; ") + more}
	}
}

func bytesOf(ts []wasiabi.ValueType) []byte {
	b := make([]byte, len(ts))
	for i, t := range ts {
		b[i] = byte(t)
	}
	return b
}

func (s *scan) readFunctions(r *reader) {
	n := r.count("functions", MaxFunctions-len(s.imported))
	s.functions = make([]uint32, 0, n+1)
	for range n {
		t := s.typeIndex(r)
		if r.err != nil {
			return
		}
		s.functions = append(s.functions, t)
	}
}

// functionType answers the type of a function by its index.
func (s *scan) functionType(r *reader, i uint32) signature {
	if uint64(i) < uint64(len(s.imported)) {
		return s.types[s.imported[i]]
	}
	if j := uint64(i) - uint64(len(s.imported)); j < uint64(len(s.functions)) {
		return s.types[s.functions[j]]
	}
	r.fail(Invalid, "function %d does not exist", i)
	return signature{}
}

func (s *scan) limits(r *reader, what string) limits {
	var l limits
	switch flags := r.byte(); flags {
	case 0:
		l.min = uint64(r.u32())
	case 1:
		l.min = uint64(r.u32())
		l.max, l.hasMax = uint64(r.u32()), true
	case 2, 3:
		r.fail(Invalid, "threads are not enabled: shared %s", what)
	case 4, 5, 6, 7:
		r.fail(Invalid, "memory64 is not enabled: 64-bit %s", what)
	default:
		r.fail(Invalid, "unknown limits %#x of a %s", flags, what)
	}
	if l.hasMax && l.max < l.min {
		r.fail(Invalid, "maximum of a %s is below its minimum", what)
	}
	return l
}

func (s *scan) tableType(r *reader) limits {
	switch t := r.byte(); t {
	case typeFuncref:
	case typeExternref:
		r.fail(Invalid, "externref is not enabled")
	default:
		r.fail(Invalid, "table of unknown type %#x; function references are not enabled", t)
	}
	return s.limits(r, "table")
}

func (s *scan) memoryType(r *reader) limits {
	l := s.limits(r, "memory")
	if l.min > 65536 || l.max > 65536 {
		r.fail(Invalid, "memory over 4 GiB")
	}
	return l
}

// globalType reads a type and its mutability.
func (s *scan) globalType(r *reader) {
	s.valueType(r)
	if m := r.byte(); m > 1 {
		r.fail(Invalid, "unknown mutability %#x of a global", m)
	}
}

func (s *scan) readTables(r *reader) {
	for range r.count("tables", MaxTables) {
		s.tables = append(s.tables, s.tableType(r))
		if r.err != nil {
			return
		}
	}
}

func (s *scan) readMemory(r *reader) {
	if n := r.count("memories", maxImports); n > 1 {
		r.fail(Invalid, "multi-memory is not enabled: %d memories", n)
	} else if n == 1 {
		s.memory, s.hasMemory = s.memoryType(r), true
	}
}

func (s *scan) readGlobals(r *reader) {
	s.globals = r.count("globals", maxGlobals)
	for range s.globals {
		s.globalType(r)
		s.constant(r)
		if r.err != nil {
			return
		}
	}
}

// constant reads a constant expression: one instruction and end. There is no global that it could get, since none can
// be imported. It answers the instruction and the number of an i32.const.
func (s *scan) constant(r *reader) (op byte, v uint32) {
	op = r.byte()
	switch op {
	case 0x41:
		v = uint32(r.signed(32))
	case 0x42:
		r.signed(64)
	case 0x43:
		r.bytes(4)
	case 0x44:
		r.bytes(8)
	case 0xd0:
		s.heapType(r)
	case 0xd2:
		s.functionType(r, r.u32())
	default:
		r.fail(Invalid, "instruction %#x in a constant expression; extended constant expressions are not enabled", op)
	}
	if op := r.byte(); op != 0x0b {
		r.fail(Invalid, "constant expression of several instructions; extended constant expressions are not enabled")
	}
	return op, v
}

// place reads the offset of an active segment, which is a number: nothing but imports could make it anything else.
func (s *scan) place(r *reader) uint64 {
	op, v := s.constant(r)
	if r.err == nil && op != 0x41 {
		r.fail(Invalid, "offset of a segment is not an i32.const")
	}
	return uint64(v)
}

func (s *scan) heapType(r *reader) {
	switch t := r.byte(); t {
	case typeFuncref:
	case typeExternref:
		r.fail(Invalid, "externref is not enabled")
	default:
		r.fail(Invalid, "unknown reference type %#x; function references are not enabled", t)
	}
}

func (s *scan) readExports(r *reader) {
	s.exports = r.count("exports", maxExports)
	for range s.exports {
		name := r.name()
		kind := r.byte()
		index := r.u32()
		if r.err != nil {
			return
		}
		if kind > kindGlobal {
			r.fail(Invalid, "unknown kind of export %#x", kind)
			return
		}
		if strings.HasPrefix(name, engine.ExportPrefix) {
			r.fail(Invalid, "export name %s is reserved", quote(name))
			return
		}
		if name != "_start" && name != "_initialize" {
			continue
		}
		if kind != kindFunction || !s.functionType(r, index).equal(signature{}) {
			r.fail(Invalid, "export %q must be a function without parameters and results", name)
			return
		}
		if name == "_start" {
			s.hasStart = true
		} else {
			s.hasInit = true
		}
	}
}

func (s *scan) readStart(r *reader) {
	i := r.u32()
	if !s.functionType(r, i).equal(signature{}) {
		r.fail(Invalid, "start function must have no parameters and results")
	}
	s.start = int64(i)
}

func (s *scan) tableIndex(r *reader) uint32 {
	i := r.u32()
	if r.err == nil && uint64(i) >= uint64(len(s.tables)) {
		r.fail(Invalid, "table %d does not exist", i)
		return 0
	}
	return i
}

func (s *scan) readElements(r *reader) {
	left := maxElementItems
	for range r.count("element segments", maxElementSegments) {
		flags := r.u32()
		if flags > 7 {
			r.fail(Invalid, "unknown element segment %#x", flags)
			return
		}
		active := flags&1 == 0
		table, offset := uint32(0), uint64(0)
		if active {
			if flags&2 != 0 {
				table = s.tableIndex(r)
			} else if len(s.tables) == 0 {
				r.fail(Invalid, "element segment without a table")
			}
			offset = s.place(r)
		}
		expressions := flags&4 != 0
		if flags&3 != 0 { // a kind is written
			if expressions {
				s.heapType(r)
			} else if k := r.byte(); k != 0 {
				r.fail(Invalid, "unknown element kind %#x", k)
			}
		}
		n := r.count("element items", left)
		left -= n
		// Every instance would trap, except that wazero lets it pass.
		if active && r.err == nil && offset+uint64(n) > s.tables[table].min {
			r.fail(Invalid, "element segment of %d items at %d is outside of its table", n, offset)
		}
		for range n {
			if expressions {
				s.constant(r)
			} else {
				s.functionType(r, r.u32())
			}
			if r.err != nil {
				return
			}
		}
		if r.err != nil {
			return
		}
	}
}

func (s *scan) readDataCount(r *reader) {
	n := r.u32()
	if n > MaxDataSegments {
		r.fail(TooBig, "%d data segments, most are %d", n, MaxDataSegments)
	}
	s.dataCount = int64(n)
}

func (s *scan) readData(r *reader) {
	n := r.count("data segments", MaxDataSegments)
	if s.dataCount >= 0 && s.dataCount != int64(n) {
		r.fail(Invalid, "%d data segments, but %d are declared", n, s.dataCount)
	}
	for range n {
		active, offset := true, uint64(0)
		switch flags := r.u32(); flags {
		case 2:
			if r.u32() != 0 {
				r.fail(Invalid, "multi-memory is not enabled: data segment")
			}
			fallthrough
		case 0:
			if !s.hasMemory {
				r.fail(Invalid, "data segment without a memory")
			}
			offset = s.place(r)
		case 1:
			active = false
		default:
			r.fail(Invalid, "unknown data segment %#x", flags)
		}
		size := r.u32()
		if active && r.err == nil && offset+uint64(size) > s.memory.min*pageSize {
			r.fail(Invalid, "data segment of %d bytes at %d is outside of the memory", size, offset)
		}
		r.bytes(size)
		if r.err != nil {
			return
		}
	}
}
