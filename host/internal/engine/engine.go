// Package engine is the seam between the host and the two WebAssembly engines.
//
// This package has the interface, the stable words for a guest's end, and what is known about the engines of this
// binary (names, versions, advisories) without loading one. Package engines makes an engine by name. The adapters know
// an engine and wasiabi, and nothing of policies, workers or files. They run only in worker processes: Compile in a
// compile worker that never runs a guest, Load and Run in a run worker.
package engine

import (
	"context"
	"errors"

	"github.com/exthost/exthost/wasiabi"
)

// Names of exports that package module adds to each prepared module. A guest's own export never begins with
// [ExportPrefix].
const (
	ExportPrefix      = "exthost:"
	ExportMemory      = "exthost:memory"       // memory 0, if there is one
	ExportStart       = "exthost:start"        // the function of the start section, which is taken out
	ExportGrowRefused = "exthost:grow-refused" // i32 global: 1 after a memory.grow that the lowered maximum refused
)

// ErrInvalid matches an error of [Engine.Compile] that says that the module is at fault, not exthost.
var ErrInvalid = errors.New("invalid module")

// ErrCode matches an error of [Engine.Load] that says that the compiled code is missing, damaged or made for another
// engine, version or processor. The broker makes it anew.
var ErrCode = errors.New("compiled code does not fit")

// Artefact is compiled code together with the prepared module that it was made from.
//
// Code is native code for wasmtime (a serialised module) and a cache entry for wazero. Both are opened by path,
// which on Linux is "/proc/self/fd/N" of a descriptor that the broker handed over. Whoever can write Code can make the
// worker run any native code: no engine checks it against an attacker.
type Artefact struct {
	ModulePath string // prepared module, see package module
	CodePath   string
	CodeName   string // wazero: the file name that its cache looks for
	Dir        string // wazero: a private, empty folder of this worker where a link to CodePath may be made
}

// Engine compiles and loads modules. Its methods may be called from several goroutines.
type Engine interface {
	Name() string    // "wazero", "wasmtime"
	Version() string // of the engine, for people; [CodeKey] is what names an artefact
	// Compile returns the code and its CodeName ("" for wasmtime). The module was prepared (package module) before.
	// dir is a private, empty scratch folder. An error matches [ErrInvalid] if the module is at fault.
	Compile(ctx context.Context, prepared []byte, dir string) (code []byte, codeName string, err error)
	// Load opens compiled code. A code file that does not fit is an error that matches [ErrCode], never a compilation.
	Load(ctx context.Context, a Artefact, limits Limits) (Module, error)
	Close() error
}

// Limits bound an instance beyond what the prepared module declares.
type Limits struct {
	MemoryBytes   int64  // linear memory, bytes; 0: what the module declares
	TableElements uint32 // of each table; 0: what the module declares
}

// Module is loaded code; Run makes a fresh instance each time. Not safe for concurrent use.
type Module interface {
	// Run instantiates, runs the start function and then _start, or _initialize if there is no _start, and returns how
	// the guest ended. An error means that exthost failed, not the guest: an instance that could not be made, or a
	// host function that failed ([HostError]).
	//
	// Run cannot be interrupted: ctx is handed to nobody. Who wants to end a guest kills the worker process.
	Run(ctx context.Context, p *wasiabi.Process) (Ending, error)
	Close() error
}

// HostError is a failure of a host function that unwound the guest.
type HostError struct {
	Function string // "wasi_snapshot_preview1.fd_read"
	Err      error
}

func (e *HostError) Error() string { return e.Function + ": " + e.Err.Error() }
func (e *HostError) Unwrap() error { return e.Err }

// EndKind is how a guest ended.
type EndKind uint8

const (
	Exit EndKind = iota + 1
	Trap
)

// Ending is a guest's end as the engine saw it.
type Ending struct {
	Kind        EndKind
	Code        uint32 // Exit: 0 if the guest returned; any 32 bits that it gave to proc_exit
	Trap        string // Trap: one of the stable words in traps.go, never an engine's own text
	Detail      string // Trap: the guest's own function names, innermost first, see [Frames]
	MemoryBytes int64  // linear memory at the end
	GrowRefused bool   // a memory.grow was refused by the lowered limit in the course of the run
}
