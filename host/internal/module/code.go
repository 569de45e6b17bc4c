package module

// immediate is what follows an opcode.
type immediate uint8

const (
	immUnknown immediate = iota
	immNone
	immBlock // block type; nests
	immElse
	immEnd
	immIndex // any u32
	immBranchTable
	immCallIndirect // type, table
	immSelect       // vector of one value type
	immTable
	immMemory // align, offset
	immMemorySize
	immMemoryGrow
	immI32
	immI64
	immF32
	immF64
	immHeapType
	immFunction
	immPrefix // 0xfc
)

// immediates is indexed by opcode.
var immediates = func() (t [256]immediate) {
	span := func(from, to int, i immediate) {
		for op := from; op <= to; op++ {
			t[op] = i
		}
	}
	span(0x00, 0x01, immNone) // unreachable, nop
	span(0x02, 0x04, immBlock)
	t[0x05] = immElse
	t[0x0b] = immEnd
	span(0x0c, 0x0d, immIndex) // br, br_if
	t[0x0e] = immBranchTable
	t[0x0f] = immNone
	t[0x10] = immFunction
	t[0x11] = immCallIndirect
	span(0x1a, 0x1b, immNone) // drop, select
	t[0x1c] = immSelect
	span(0x20, 0x24, immIndex) // locals, globals
	span(0x25, 0x26, immTable)
	span(0x28, 0x3e, immMemory)
	t[0x3f] = immMemorySize
	t[0x40] = immMemoryGrow
	t[0x41], t[0x42], t[0x43], t[0x44] = immI32, immI64, immF32, immF64
	span(0x45, 0xc4, immNone) // numbers, with sign extension
	t[0xd0] = immHeapType
	t[0xd1] = immNone
	t[0xd2] = immFunction
	t[0xfc] = immPrefix
	return t
}()

// features names what an unknown opcode belongs to.
func feature(op byte) string {
	switch {
	case op >= 0x06 && op <= 0x0a, op == 0x18, op == 0x19, op == 0x1f:
		return "exceptions are not enabled"
	case op == 0x12, op == 0x13, op == 0x15:
		return "tail calls are not enabled"
	case op == 0x14, op >= 0xd3 && op <= 0xd6:
		return "function references are not enabled"
	case op == 0xfb:
		return "garbage collection is not enabled"
	case op == 0xfd:
		return "SIMD is not enabled"
	case op == 0xfe:
		return "threads are not enabled"
	}
	return "unknown instruction"
}

func (s *scan) readCode(r *reader) {
	n := r.count("function bodies", MaxFunctions)
	if n != len(s.functions) {
		r.fail(Invalid, "%d functions are declared, %d are defined", len(s.functions), n)
		return
	}
	s.bodies = make([]body, n)
	for i := range s.bodies {
		size := r.u32()
		if size > MaxBody {
			r.fail(TooBig, "function %d has %d bytes of code, most are %d", len(s.imported)+i, size, MaxBody)
			return
		}
		// One reader for all functions: it ends where the function does.
		code := r.bytes(size)
		if r.err != nil {
			return
		}
		f := reader{b: code, base: r.base + r.at - int(size)}
		s.bodies[i].code = code
		s.function(&f, &s.bodies[i], len(s.types[s.functions[i]].params))
		if f.err != nil {
			r.err = f.err
			return
		}
	}
}

// function reads locals and instructions.
func (s *scan) function(r *reader, b *body, params int) {
	locals := uint64(params)
	for range r.count("groups of locals", MaxLocals) {
		if locals += uint64(r.u32()); locals > MaxLocals {
			r.fail(TooBig, "function with %d locals, most are %d", locals, MaxLocals)
		}
		if s.valueType(r); r.err != nil {
			return
		}
	}
	// work bounds the values that a compiler makes of the function, see maxWork.
	work, blocks := uint64(0), uint64(1)
	for depth := 1; depth > 0; {
		at := r.at
		op := r.byte()
		work += instructionWork
		switch immediates[op] {
		case immNone, immElse:
		case immBlock:
			if depth++; depth > MaxNesting {
				r.fail(TooBig, "blocks are nested over %d deep", MaxNesting)
			}
			work += s.blockType(r)
			blocks++
		case immEnd:
			depth--
		case immIndex:
			r.u32()
		case immBranchTable:
			for range r.count("branch targets", maxBranches) {
				r.u32()
			}
			r.u32()
		case immCallIndirect:
			if t := s.typeIndex(r); r.err == nil {
				work += uint64(len(s.types[t].results))
			}
			s.tableIndex(r)
		case immSelect:
			if r.u32() != 1 {
				r.fail(Invalid, "select of several values")
			}
			s.valueType(r)
		case immTable:
			s.tableIndex(r)
		case immMemory:
			if !s.hasMemory {
				r.fail(Invalid, "instruction %#x without a memory", op)
			}
			if align := r.u32(); align > 3 {
				r.fail(Invalid, "alignment of 2^%d; multi-memory is not enabled", align)
			}
			r.u32()
		case immMemorySize, immMemoryGrow:
			s.memoryIndex(r)
			if op == 0x40 {
				b.grows = append(b.grows, uint32(at))
				s.grows = true
			}
		case immI32:
			r.signed(32)
		case immI64:
			r.signed(64)
		case immF32:
			r.bytes(4)
		case immF64:
			r.bytes(8)
		case immHeapType:
			s.heapType(r)
		case immFunction:
			work += uint64(len(s.functionType(r, r.u32()).results))
		case immPrefix:
			s.prefixed(r)
		default:
			r.fail(Invalid, "%s: instruction %#x", feature(op), op)
		}
		if r.err != nil {
			return
		}
	}
	r.end("function body")
	if work += 2 * blocks * locals; work > maxWork {
		r.fail(TooBig, "function is too complex for the compilers: its instructions, blocks and locals make %d units, most are %d", work, maxWork)
	}
}

// memoryIndex reads the only index there is.
func (s *scan) memoryIndex(r *reader) {
	if r.byte() != 0 {
		r.fail(Invalid, "multi-memory is not enabled: memory index")
	}
	if !s.hasMemory {
		r.fail(Invalid, "memory instruction without a memory")
	}
}

// blockType answers the number of parameters and results.
func (s *scan) blockType(r *reader) uint64 {
	switch c := r.peek(); c {
	case typeEmpty:
		r.byte()
		return 0
	case typeI32, typeI64, typeF32, typeF64, typeFuncref, typeV128, typeExternref:
		s.valueType(r)
		return 1
	}
	i := r.signed(33)
	if r.err == nil && (i < 0 || i >= int64(len(s.types))) {
		r.fail(Invalid, "unknown block type %d", i)
	}
	if r.err != nil {
		return 0
	}
	return uint64(len(s.types[i].params) + len(s.types[i].results))
}

func (s *scan) segment(r *reader) {
	i := r.u32()
	if s.dataCount < 0 {
		r.fail(Invalid, "data segment instruction without a data count section")
	} else if int64(i) >= s.dataCount {
		r.fail(Invalid, "data segment %d does not exist", i)
	}
}

// prefixed reads instructions of the 0xfc page: saturating conversions, bulk memory, tables.
func (s *scan) prefixed(r *reader) {
	switch op := r.u32(); op {
	case 0, 1, 2, 3, 4, 5, 6, 7:
	case 8: // memory.init
		s.segment(r)
		s.memoryIndex(r)
	case 9: // data.drop
		s.segment(r)
	case 10: // memory.copy
		s.memoryIndex(r)
		s.memoryIndex(r)
	case 11: // memory.fill
		s.memoryIndex(r)
	case 12: // table.init
		r.u32()
		s.tableIndex(r)
	case 13: // elem.drop
		r.u32()
	case 14: // table.copy
		s.tableIndex(r)
		s.tableIndex(r)
	case 15: // table.grow
		if i := s.tableIndex(r); r.err == nil {
			s.tables[i].grows = true
		}
	case 16, 17: // table.size, table.fill
		s.tableIndex(r)
	default:
		r.fail(Invalid, "unknown instruction 0xfc %#x", op)
	}
}
