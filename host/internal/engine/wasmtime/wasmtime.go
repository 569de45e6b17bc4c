//go:build cgo && !exthost_nowasmtime && amd64 && (linux || darwin)

// Package wasmtime adapts the wasmtime engine. It needs cgo, and is built for amd64 only: the newest release that can
// be had lacks the fix of an escape on arm64 (see the advisory table of package engine).
//
// # Stacks
//
// On Linux a guest may use 8 MiB of native stack, as Go's own wasip1 runner sets it. Operating system threads often have
// no more, so guests run on a thread of the engine's own with a larger stack: a host function that is called near the
// end of the stack would else kill the process.
package wasmtime

import (
	"context"
	"errors"
	"fmt"
	"math"

	wt "github.com/bytecodealliance/wasmtime-go/v39"

	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/wasiabi"
)

// Engine is a wasmtime engine with a thread for guests.
type Engine struct {
	functions []wasiabi.Function
	engine    *wt.Engine
	stack     *stack
}

// New makes the engine. The caller closes it.
func New(functions []wasiabi.Function) (*Engine, error) {
	c := wt.NewConfig()
	c.SetStrategy(wt.StrategyCranelift) // never Winch
	c.SetMaxWasmStack(maxWasmStack)
	// The features of every guest, the same set as package wazero's: mutable globals, sign extension and saturating
	// conversions cannot be switched off, and package module refuses the instructions of all others anyhow.
	c.SetWasmBulkMemory(true)
	c.SetWasmMultiValue(true)
	c.SetWasmReferenceTypes(true)
	c.SetWasmRelaxedSIMD(false)
	c.SetWasmSIMD(false)
	c.SetWasmThreads(false)
	c.SetWasmMultiMemory(false)
	c.SetWasmMemory64(false)
	c.SetWasmTailCall(false)
	c.SetWasmFunctionReferences(false)
	c.SetWasmGC(false)
	c.SetWasmWideArithmetic(false)
	// A guest is stopped by killing its process, so it need not count.
	c.SetConsumeFuel(false)
	c.SetEpochInterruption(false)
	e := wt.NewEngineWithConfig(c)
	return &Engine{functions: functions, engine: e, stack: newStack()}, nil
}

// Name implements [engine.Engine].
func (e *Engine) Name() string { return engine.Wasmtime }

// Version implements [engine.Engine].
func (e *Engine) Version() string { return engine.Version(engine.Wasmtime) }

// Close implements [engine.Engine]. Modules are closed before.
func (e *Engine) Close() error {
	e.stack.close()
	e.engine.Close()
	return nil
}

// Compile implements [engine.Engine]. It cannot be interrupted.
func (e *Engine) Compile(ctx context.Context, prepared []byte, _ string) (code []byte, codeName string, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, "", err
	}
	m, err := wt.NewModule(e.engine, prepared)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %s", engine.ErrInvalid, engine.Clean(err.Error(), 500))
	}
	defer m.Close()
	if code, err = m.Serialize(); err != nil {
		return nil, "", fmt.Errorf("wasmtime: serialise: %w", err)
	}
	return code, "", nil
}

// Load implements [engine.Engine]. The code is mapped, not copied: it must not change while the module is loaded.
func (e *Engine) Load(_ context.Context, a engine.Artefact, l engine.Limits) (engine.Module, error) {
	m, err := wt.NewModuleDeserializeFile(e.engine, a.CodePath)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", engine.ErrCode, engine.Clean(err.Error(), 500))
	}
	mod := &module{engine: e, module: m, limits: l}
	if err := mod.bind(); err != nil {
		mod.Close()
		return nil, err
	}
	return mod, nil
}

// module is a loaded module. Its linker's functions serve the run under way.
type module struct {
	engine *Engine
	module *wt.Module
	linker *wt.Linker
	limits engine.Limits
	run    *run
}

// run is what the host functions of one run share.
type run struct {
	p     *wasiabi.Process
	store *wt.Store
	mem   *wt.Memory // nil: none
	exit  *wasiabi.Exit
	err   error // a host function failed
	args  [16]uint64
}

// Close implements [engine.Module].
func (m *module) Close() error {
	if m.linker != nil {
		m.linker.Close()
		m.linker = nil
	}
	if m.module != nil {
		m.module.Close()
		m.module = nil
	}
	return nil
}

// bind defines the functions that the module imports.
func (m *module) bind() error {
	type key struct{ module, name string }
	known := map[key]wasiabi.Function{}
	for _, f := range m.engine.functions {
		known[key{f.Module, f.Name}] = f
	}
	m.linker = wt.NewLinker(m.engine.engine)
	seen := map[key]bool{}
	for _, i := range m.module.Imports() {
		k := key{i.Module(), ""}
		if n := i.Name(); n != nil {
			k.name = *n
		}
		f, ok := known[k]
		if !ok {
			return fmt.Errorf("import %q %q: no such host function", engine.Clean(k.module, 100), engine.Clean(k.name, 100))
		}
		if seen[k] {
			continue
		}
		seen[k] = true
		if err := m.linker.FuncNew(k.module, k.name, wt.NewFuncType(types(f.Params), types(f.Results)), m.function(f)); err != nil {
			return fmt.Errorf("wasmtime: host function %s.%s: %w", f.Module, f.Name, err)
		}
	}
	return nil
}

func types(ts []wasiabi.ValueType) []*wt.ValType {
	out := make([]*wt.ValType, len(ts))
	for i, t := range ts {
		k := wt.KindI32
		if t == wasiabi.I64 {
			k = wt.KindI64
		}
		out[i] = wt.NewValType(k)
	}
	return out
}

func (m *module) function(f wasiabi.Function) func(*wt.Caller, []wt.Val) ([]wt.Val, *wt.Trap) {
	wide := make([]bool, len(f.Params))
	for i, t := range f.Params {
		wide[i] = t == wasiabi.I64
	}
	results := make([]wt.Val, len(f.Results)) // one guest at a time: the slice can be shared
	return func(_ *wt.Caller, vals []wt.Val) ([]wt.Val, *wt.Trap) {
		r := m.run
		args := r.args[:len(wide)]
		for i, w := range wide {
			if w {
				args[i] = uint64(vals[i].I64())
			} else {
				args[i] = uint64(uint32(vals[i].I32()))
			}
		}
		var mem []byte
		if r.mem != nil {
			mem = r.mem.UnsafeData(r.store)
		}
		errno, err := call(f, r.p, mem, args)
		if err != nil {
			if exit := (*wasiabi.Exit)(nil); errors.As(err, &exit) {
				r.exit = exit
			} else {
				r.err = &engine.HostError{Function: f.Module + "." + f.Name, Err: err}
			}
			return nil, wt.NewTrap("unwind") // what it stands for is in run
		}
		if len(results) > 0 {
			results[0] = wt.ValI32(int32(errno))
		}
		return results, nil
	}
}

// call turns a panic of a host function into an error, so that no engine meets it.
func call(f wasiabi.Function, p *wasiabi.Process, mem []byte, args []uint64) (errno uint32, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return f.Call(p, mem, args)
}

// Run implements [engine.Module].
func (m *module) Run(_ context.Context, p *wasiabi.Process) (end engine.Ending, err error) {
	if stackErr := m.engine.stack.do(func() { end, err = m.runGuest(p) }); stackErr != nil {
		return engine.Ending{}, stackErr
	}
	return end, err
}

func (m *module) runGuest(p *wasiabi.Process) (engine.Ending, error) {
	store := wt.NewStore(m.engine.engine)
	defer store.Close()
	r := &run{p: p, store: store}
	m.run = r
	defer func() { m.run = nil }()
	memory, elements := int64(math.MaxUint32), int64(-1)
	if m.limits.MemoryBytes > 0 {
		memory = m.limits.MemoryBytes
	}
	if m.limits.TableElements > 0 {
		elements = int64(m.limits.TableElements)
	}
	store.Limiter(memory, elements, 1, 4, 1)
	inst, err := m.linker.Instantiate(store, m.module)
	if err != nil {
		return r.ending(err)
	}
	if x := inst.GetExport(store, engine.ExportMemory); x != nil {
		r.mem = x.Memory()
	}
	entry := inst.GetFunc(store, "_start")
	if entry == nil {
		entry = inst.GetFunc(store, "_initialize")
	}
	if entry == nil {
		return engine.Ending{}, errors.New(`module exports neither "_start" nor "_initialize"`)
	}
	for _, f := range []*wt.Func{inst.GetFunc(store, engine.ExportStart), entry} {
		if f == nil {
			continue
		}
		if _, err = f.Call(store); err != nil {
			break
		}
	}
	end, err := r.ending(err)
	if err != nil {
		return end, err
	}
	if r.mem != nil {
		end.MemoryBytes = int64(r.mem.DataSize(store))
	}
	if x := inst.GetExport(store, engine.ExportGrowRefused); x != nil && x.Global() != nil {
		end.GrowRefused = x.Global().Get(store).I32() != 0
	}
	return end, nil
}

// ending tells how the guest ended from what its call returned.
func (r *run) ending(err error) (engine.Ending, error) {
	var t *wt.Trap
	switch {
	case r.err != nil:
		return engine.Ending{}, r.err
	case r.exit != nil:
		return engine.Ending{Kind: engine.Exit, Code: r.exit.Code}, nil
	case err == nil:
		return engine.Ending{Kind: engine.Exit}, nil
	case errors.As(err, &t) && t.Code() != nil:
		word, ok := traps[*t.Code()]
		if !ok {
			word = engine.TrapOther
		}
		return engine.Ending{Kind: engine.Trap, Trap: word, Detail: engine.Frames(frames(t))}, nil
	}
	return engine.Ending{}, fmt.Errorf("wasmtime: %w", err)
}

// traps maps wasmtime's trap codes.
var traps = map[wt.TrapCode]string{
	wt.StackOverflow:          engine.TrapStackOverflow,
	wt.MemoryOutOfBounds:      engine.TrapMemory,
	wt.TableOutOfBounds:       engine.TrapTable,
	wt.IndirectCallToNull:     engine.TrapTable,
	wt.BadSignature:           engine.TrapIndirectCall,
	wt.IntegerOverflow:        engine.TrapIntegerOverflow,
	wt.IntegerDivisionByZero:  engine.TrapDivideByZero,
	wt.BadConversionToInteger: engine.TrapInvalidConversion,
	wt.UnreachableCodeReached: engine.TrapUnreachable,
}

// frames are the guest's functions on the stack, innermost first, named as wazero names them.
func frames(t *wt.Trap) []string {
	var names []string
	for _, f := range t.Frames() {
		if n := f.FuncName(); n != nil {
			names = append(names, *n)
		} else {
			names = append(names, fmt.Sprintf("$%d", f.FuncIndex()))
		}
	}
	return names
}
