// Package module checks a guest's WebAssembly module and lowers its limits before an engine sees a byte of it.
//
// # What it is for
//
// Engines accept modules that take minutes to compile, ask for tables of gigabytes, or use features with a history of
// escapes. [Prepare] reads the module with a small scanner of its own, whose work and memory are bounded by the
// module's size, applies the caps of this file, and answers the same for every engine. It does not type-check function
// bodies: engines do, and say so when they compile.
//
// # What it changes
//
//   - The maxima of the memory and the tables are lowered to the limits.
//   - If that lowered the memory's maximum, each memory.grow becomes a call of an added function that does the same and
//     notes a refusal in an added global, so that a guest that died of too little memory can be told from one that failed.
//   - The start section becomes an export ([engine.ExportStart]) that the engine adapters call first: a host function
//     that is called by it finds the memory in place.
//   - The memory is exported under a name of its own ([engine.ExportMemory]).
//   - Custom sections are dropped, except for function names, which are cleaned of unprintable characters.
//
// Data segments are left as they are.
package module

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/wasiabi"
)

// Caps on a module. They leave room above what compilers make: Go's own vet tool has a nesting of 1,152, a table of
// 10,668 elements and exactly 100,000 data segments.
const (
	MaxSize         = 64 << 20 // bytes
	MaxFunctions    = 100_000  // imported and defined
	MaxBody         = 1 << 20  // bytes of one function
	MaxLocals       = 50_000   // of one function, with its parameters
	MaxNesting      = 10_000   // blocks in blocks
	MaxTables       = 4
	MaxElements     = 100_000 // of one table; [Options] may say less
	MaxDataSegments = 100_000

	// maxWork caps an estimate of the values that a compiler makes of one function: instructionWork for an instruction,
	// one for each result of a call and each parameter and result of a block, two for each local in each block. Compilers
	// need time and memory for them, and wasmtime before 43 miscompiles functions of more than 2^24 (CVE-2026-115889).
	// The heaviest function of CPython, Ruby, PHP and clang has 2,000,000 units.
	maxWork         = 1 << 23
	instructionWork = 16

	maxTypes           = 50_000
	maxValues          = 1_000 // parameters, or results, of one type
	maxImports         = 1_000
	maxGlobals         = 50_000
	maxExports         = 50_000
	maxElementSegments = 10_000
	maxElementItems    = 400_000 // all segments together
	maxBranches        = 100_000 // of one br_table
	maxName            = 10_000  // bytes of an import's or export's name
	maxFunctionName    = 200     // bytes of a name that is kept for traces
)

const (
	pageSize     = 64 << 10
	maxPages     = 65_535  // one less than the address space has: sizes fit in 32 bits everywhere
	elementBytes = 16      // host memory that one table element takes
	minMemory    = 1 << 20 // of Options
)

// Kind is why a module is refused.
type Kind uint8

const (
	Invalid Kind = iota + 1 // not a module, or one that uses a feature that is off
	TooBig                  // over a cap
	Imports                 // imports what this host does not give
	Memory                  // needs more memory at its start than its limit
)

// String is "invalid", "too-big", "imports" or "memory".
func (k Kind) String() string {
	switch k {
	case Invalid:
		return "invalid"
	case TooBig:
		return "too-big"
	case Imports:
		return "imports"
	case Memory:
		return "memory"
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Error says why a module is refused. Every error of [Prepare] is one.
type Error struct {
	Kind   Kind
	Detail string // bounded; guest text in it is cleaned
}

func (e *Error) Error() string { return fmt.Sprintf("module refused (%s): %s", e.Kind, e.Detail) }

// Options say what a module may have.
type Options struct {
	// MemoryBytes bounds the linear memory together with the tables, at 16 bytes an element. At least 1 MiB.
	MemoryBytes int64
	// TableElements bounds each table; 0 means [MaxElements], which it cannot exceed.
	TableElements uint32
	// Functions are what the module may import, normally [wasiabi.Functions].
	Functions []wasiabi.Function
}

// Prepared is a checked module with lowered limits.
type Prepared struct {
	Bytes       []byte   // the module for the engine
	Imports     []string // "wasi_snapshot_preview1.fd_write", in the module's order, without repetition
	MemoryMin   int64    // bytes at the start
	MemoryMax   int64    // bytes, lowered
	TableBytes  int64    // host memory that the tables may take, counted in the memory limit
	Lowered     bool     // the memory's maximum was lowered
	Functions   int      // defined by the module itself
	Reactor     bool     // exports _initialize and no _start: nothing runs after it was initialised
	StartMoved  bool     // had a start section
	GrowCounted bool     // a refused memory.grow is noted
}

// Prepare checks a module and lowers its limits. It keeps no reference to wasm. The error is an [*Error].
func Prepare(wasm []byte, o Options) (*Prepared, error) {
	if o.TableElements == 0 || o.TableElements > MaxElements {
		o.TableElements = MaxElements
	}
	if o.MemoryBytes < minMemory {
		return nil, &Error{Memory, fmt.Sprintf("memory limit of %d bytes is below the least, %d", o.MemoryBytes, minMemory)}
	}
	if len(wasm) > MaxSize {
		return nil, &Error{TooBig, fmt.Sprintf("module has %d bytes, most are %d", len(wasm), MaxSize)}
	}
	s := &scan{options: o}
	if err := s.module(wasm); err != nil {
		return nil, err
	}
	if err := s.lower(); err != nil {
		return nil, err
	}
	p := &Prepared{
		Imports:     s.importNames,
		MemoryMin:   int64(s.memory.min) * pageSize,
		MemoryMax:   int64(s.memory.max) * pageSize,
		TableBytes:  s.tableBytes,
		Lowered:     s.lowered,
		Functions:   len(s.functions),
		Reactor:     !s.hasStart,
		StartMoved:  s.start >= 0,
		GrowCounted: s.countGrow,
	}
	p.Bytes = s.emit(len(wasm))
	return p, nil
}

// lower computes the maxima.
func (s *scan) lower() error {
	for i := range s.tables {
		t := &s.tables[i]
		if t.min > uint64(s.options.TableElements) {
			return &Error{TooBig, fmt.Sprintf("table %d has %d elements, most are %d", i, t.min, s.options.TableElements)}
		}
		top := uint64(s.options.TableElements)
		if !t.grows {
			top = t.min
		}
		if !t.hasMax || t.max > top {
			t.max = top
		}
		t.hasMax = true
		s.tableBytes += int64(t.max) * elementBytes
	}
	if !s.hasMemory {
		if s.tableBytes > s.options.MemoryBytes {
			return &Error{Memory, fmt.Sprintf("tables may take %d bytes, the memory limit is %d", s.tableBytes, s.options.MemoryBytes)}
		}
		return nil
	}
	pages := uint64(min(max(0, s.options.MemoryBytes-s.tableBytes)/pageSize, maxPages))
	if s.memory.min > pages {
		return &Error{Memory, fmt.Sprintf("module needs %d bytes of memory and %d of tables at its start, the memory limit is %d",
			s.memory.min*pageSize, s.tableBytes, s.options.MemoryBytes)}
	}
	if !s.memory.hasMax || s.memory.max > pages {
		s.memory.max, s.memory.hasMax = pages, true
		s.lowered = true
	}
	s.countGrow = s.lowered && s.grows
	return nil
}

// quote shows guest text in an error.
func quote(s string) string {
	c := engine.Clean(s, 80)
	if utf8.RuneCountInString(c) < utf8.RuneCountInString(s) {
		c += "..."
	}
	return `"` + strings.ReplaceAll(c, `"`, "'") + `"`
}
