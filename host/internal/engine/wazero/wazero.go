// Package wazero adapts the wazero engine, which is pure Go and in every binary.
//
// wazero's compiled code cannot be interrupted and stops Go's garbage collector while it runs: a guest belongs in a
// worker process that can be killed. Its own WASI is not used.
package wazero

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/wasiabi"
)

// Features are the WebAssembly features of every guest, the same set as package wasmtime's. Package module refuses
// instructions of any other before an engine sees them.
const Features = api.CoreFeatureMutableGlobal | api.CoreFeatureSignExtensionOps |
	api.CoreFeatureNonTrappingFloatToIntConversion | api.CoreFeatureBulkMemoryOperations | api.CoreFeatureMultiValue |
	api.CoreFeatureReferenceTypes

// compileWorkers is the number of goroutines that compile one module. It is at least 2, which Load counts on.
const compileWorkers = 2

// Engine is wazero's compiler or interpreter.
type Engine struct {
	functions   []wasiabi.Function
	interpreter bool
}

// New returns the compiler.
func New(functions []wasiabi.Function) *Engine { return &Engine{functions: functions} }

// NewInterpreter returns the interpreter, which has nothing to keep: Compile only validates, and Load decodes the module
// again. It is for tests.
func NewInterpreter(functions []wasiabi.Function) *Engine {
	return &Engine{functions: functions, interpreter: true}
}

// Name implements [engine.Engine].
func (e *Engine) Name() string {
	if e.interpreter {
		return engine.Wazero + "-interpreter"
	}
	return engine.Wazero
}

// Version implements [engine.Engine].
func (e *Engine) Version() string { return engine.Version(engine.Wazero) }

// Close implements [engine.Engine]. Loaded modules stay usable.
func (e *Engine) Close() error { return nil }

func (e *Engine) config(cache wazero.CompilationCache) wazero.RuntimeConfig {
	c := wazero.NewRuntimeConfigInterpreter()
	if !e.interpreter {
		c = wazero.NewRuntimeConfigCompiler()
	}
	if cache != nil {
		c = c.WithCompilationCache(cache)
	}
	return c.WithCoreFeatures(Features).WithDebugInfoEnabled(false).WithCloseOnContextDone(false)
}

// supported says whether the compiler runs here; wazero panics where it does not.
func (e *Engine) supported() error {
	if !e.interpreter && runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return fmt.Errorf("wazero has no compiler for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	return nil
}

// interpreted stands in the code file of a module that the interpreter runs.
const interpreted = "wazero interpreter\n"

// Compile implements [engine.Engine]. The code is the file that wazero's own compilation cache wrote into dir, and
// codeName that file's name.
func (e *Engine) Compile(ctx context.Context, prepared []byte, dir string) (code []byte, codeName string, err error) {
	if err := e.supported(); err != nil {
		return nil, "", err
	}
	var cache wazero.CompilationCache
	if !e.interpreter {
		if cache, err = wazero.NewCompilationCacheWithDir(dir); err != nil {
			return nil, "", fmt.Errorf("wazero: cache folder: %w", err)
		}
		defer cache.Close(ctx)
	}
	defer func() {
		if r := recover(); r != nil {
			code, codeName, err = nil, "", fmt.Errorf("%w: wazero gave up: %s", engine.ErrInvalid, engine.Clean(fmt.Sprint(r), 200))
		}
	}()
	ctx = experimental.WithCompilationWorkers(ctx, compileWorkers)
	rt := wazero.NewRuntimeWithConfig(ctx, e.config(cache))
	defer rt.Close(ctx)
	m, err := rt.CompileModule(ctx, prepared)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, "", cause
	}
	if err != nil {
		return nil, "", fmt.Errorf("%w: %s", engine.ErrInvalid, engine.Clean(err.Error(), 500))
	}
	defer m.Close(ctx)
	if e.interpreter {
		return []byte(interpreted), strings.Repeat("0", 64), nil
	}
	sub, err := cacheFolder(dir)
	if err != nil {
		return nil, "", err
	}
	files, err := os.ReadDir(sub)
	if err != nil {
		return nil, "", fmt.Errorf("wazero: cache folder: %w", err)
	}
	if len(files) != 1 || !codeNames.MatchString(files[0].Name()) {
		return nil, "", fmt.Errorf("wazero: cache folder has %d files, want one", len(files))
	}
	codeName = files[0].Name()
	if code, err = os.ReadFile(filepath.Join(sub, codeName)); err != nil {
		return nil, "", fmt.Errorf("wazero: compiled code: %w", err)
	}
	return code, codeName, nil
}

var codeNames = regexp.MustCompile(`^[0-9a-f]{64}$`)

// cacheFolder finds the folder, named after version and platform, that wazero makes in its cache folder.
func cacheFolder(dir string) (string, error) {
	subs, err := filepath.Glob(filepath.Join(dir, "wazero-*"))
	if err != nil || len(subs) != 1 {
		return "", fmt.Errorf("wazero: cache folder: %d sub-folders, want one", len(subs))
	}
	return subs[0], nil
}

// Load implements [engine.Engine].
//
// wazero compiles a module that is not in its cache. Load never lets it: the code file is checked before wazero looks,
// and wazero gets a cancelled context, which its lookup does not notice and its compiler obeys before the first
// function.
func (e *Engine) Load(ctx context.Context, a engine.Artefact, l engine.Limits) (_ engine.Module, err error) {
	if err := e.supported(); err != nil {
		return nil, err
	}
	prepared, err := os.ReadFile(a.ModulePath)
	if err != nil {
		return nil, fmt.Errorf("prepared module: %w", err)
	}
	m := &module{}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: wazero gave up: %s", engine.ErrCode, engine.Clean(fmt.Sprint(r), 200))
		}
		if err != nil {
			m.Close()
		}
	}()
	if e.interpreter {
		if b, err := os.ReadFile(a.CodePath); err != nil || string(b) != interpreted {
			return nil, fmt.Errorf("%w: not made for the interpreter", engine.ErrCode)
		}
	} else {
		if err := checkCode(a.CodePath, a.CodeName, prepared); err != nil {
			return nil, fmt.Errorf("%w: %w", engine.ErrCode, err)
		}
		if m.cache, err = wazero.NewCompilationCacheWithDir(a.Dir); err != nil {
			return nil, fmt.Errorf("wazero: cache folder: %w", err)
		}
		sub, err := cacheFolder(a.Dir)
		if err != nil {
			return nil, err
		}
		m.link = filepath.Join(sub, a.CodeName)
		if err := link(a.CodePath, m.link); err != nil {
			return nil, fmt.Errorf("wazero: compiled code: %w", err)
		}
	}
	cfg := e.config(m.cache)
	if pages := l.MemoryBytes / 65536; l.MemoryBytes > 0 {
		cfg = cfg.WithMemoryLimitPages(uint32(min(pages, 65535)))
	}
	m.rt = wazero.NewRuntimeWithConfig(ctx, cfg)
	lookup := ctx
	if !e.interpreter {
		cancelled, cancel := context.WithCancel(experimental.WithCompilationWorkers(ctx, compileWorkers))
		cancel()
		lookup = cancelled
	}
	if m.compiled, err = m.rt.CompileModule(lookup, prepared); err != nil {
		return nil, fmt.Errorf("%w: %s", engine.ErrCode, engine.Clean(err.Error(), 500))
	}
	if err := m.bind(ctx, e.functions); err != nil {
		return nil, err
	}
	return m, nil
}

// checkCode checks the frame of a cache file: wazero itself believes counts and lengths, and its checksum covers the
// native code only. This is against accidents, not against an attacker, whose file could have any code in it.
func checkCode(path, name string, prepared []byte) error {
	if !codeNames.MatchString(name) {
		return errors.New("bad file name")
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	// "WAZEVO", length of version, version, number of functions, their offsets, length of code, code, CRC-32C,
	// 0 (no source map), 0 (number of catch clauses).
	size := info.Size()
	head := make([]byte, min(size, 6+1+255+4))
	if _, err := f.ReadAt(head, 0); err != nil {
		return err
	}
	if len(head) < 7 || string(head[:6]) != "WAZEVO" || len(head) < 7+int(head[6])+4 {
		return errors.New("not a cache file")
	}
	at := int64(7 + int(head[6]))
	n := int64(binary.LittleEndian.Uint32(head[at:]))
	at += 4
	want, err := countFunctions(prepared)
	if err != nil {
		return err
	}
	if n != int64(want) || at+8*n+8+4+1+4 > size {
		return errors.New("wrong number of functions")
	}
	offsets := make([]byte, 8*n+8)
	if _, err := f.ReadAt(offsets, at); err != nil {
		return err
	}
	at += 8*n + 8
	length := binary.LittleEndian.Uint64(offsets[8*n:])
	if length != uint64(size-at-9) {
		return errors.New("wrong length")
	}
	last := uint64(0)
	for i := range n {
		o := binary.LittleEndian.Uint64(offsets[8*i:])
		if o < last || o >= length {
			return errors.New("wrong function offset")
		}
		last = o
	}
	tail := make([]byte, 5)
	if _, err := f.ReadAt(tail, size-5); err != nil {
		return err
	}
	if !bytes.Equal(tail, make([]byte, 5)) {
		return errors.New("unexpected tables")
	}
	return nil
}

// countFunctions reads the length of the function section.
func countFunctions(wasm []byte) (uint32, error) {
	for at := 8; at < len(wasm); {
		id := wasm[at]
		size, n := binary.Uvarint(wasm[at+1:])
		body := at + 1 + n
		if n <= 0 || size > uint64(len(wasm)-body) {
			break
		}
		if id == 3 {
			count, n := binary.Uvarint(wasm[body:])
			if n <= 0 || count > 1<<31 {
				break
			}
			return uint32(count), nil
		}
		at = body + int(size)
	}
	if len(wasm) < 8 {
		return 0, errors.New("not a module")
	}
	return 0, nil
}

// link makes name lead to path. Where links are refused (Windows without the right to make them) it copies.
func link(path, name string) error {
	if err := os.Symlink(path, name); err == nil || os.IsExist(err) || runtime.GOOS == "linux" {
		return err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(name, b, 0o400)
}

// module is a loaded module with its own runtime: the cache folder belongs to the artefact.
type module struct {
	cache    wazero.CompilationCache
	link     string
	rt       wazero.Runtime
	compiled wazero.CompiledModule
	run      *run // the run under way
}

// run is what the host functions of one run share.
type run struct {
	p    *wasiabi.Process
	mem  api.Memory // nil: none, or not instantiated yet
	exit *wasiabi.Exit
	err  error // a host function failed
	args [16]uint64
}

// Close implements [engine.Module].
func (m *module) Close() error {
	ctx := context.Background()
	var errs []error
	if m.rt != nil {
		errs = append(errs, m.rt.Close(ctx))
	}
	if m.cache != nil {
		errs = append(errs, m.cache.Close(ctx))
	}
	if m.link != "" {
		if err := os.Remove(m.link); !os.IsNotExist(err) {
			errs = append(errs, err)
		}
	}
	m.rt, m.cache, m.link = nil, nil, ""
	return errors.Join(errs...)
}

// bind defines the functions that the module imports.
func (m *module) bind(ctx context.Context, functions []wasiabi.Function) error {
	type key struct{ module, name string }
	known := map[key]wasiabi.Function{}
	for _, f := range functions {
		known[key{f.Module, f.Name}] = f
	}
	builders := map[string]wazero.HostModuleBuilder{}
	seen := map[key]bool{}
	for _, d := range m.compiled.ImportedFunctions() {
		mod, name, _ := d.Import()
		k := key{mod, name}
		f, ok := known[k]
		if !ok {
			return fmt.Errorf("import %q %q: no such host function", engine.Clean(mod, 100), engine.Clean(name, 100))
		}
		if seen[k] {
			continue
		}
		seen[k] = true
		b := builders[mod]
		if b == nil {
			b = m.rt.NewHostModuleBuilder(mod)
			builders[mod] = b
		}
		b.NewFunctionBuilder().WithGoModuleFunction(m.function(f), types(f.Params), types(f.Results)).Export(name)
	}
	for mod, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("wazero: host module %q: %w", mod, err)
		}
	}
	return nil
}

func types(ts []wasiabi.ValueType) []api.ValueType {
	out := make([]api.ValueType, len(ts))
	for i, t := range ts {
		out[i] = api.ValueType(t)
	}
	return out
}

// unwind is panicked with to leave the guest; wazero passes it on without a stack trace. What it stands for is in run.
var unwind = sys.NewExitError(0)

func (m *module) function(f wasiabi.Function) api.GoModuleFunc {
	var mask [16]uint64
	for i, t := range f.Params {
		mask[i] = ^uint64(0)
		if t == wasiabi.I32 {
			mask[i] = 0xffffffff // the upper half of an i32's slot is undefined
		}
	}
	n := len(f.Params)
	result := len(f.Results) > 0
	return func(_ context.Context, _ api.Module, stack []uint64) {
		r := m.run
		args := r.args[:n]
		for i := range args {
			args[i] = stack[i] & mask[i]
		}
		var mem []byte
		if r.mem != nil {
			mem, _ = r.mem.Read(0, r.mem.Size())
		}
		errno, err := call(f, r.p, mem, args)
		if err != nil {
			if exit := (*wasiabi.Exit)(nil); errors.As(err, &exit) {
				r.exit = exit
			} else {
				r.err = &engine.HostError{Function: f.Module + "." + f.Name, Err: err}
			}
			panic(unwind)
		}
		if result {
			stack[0] = uint64(errno)
		}
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
func (m *module) Run(ctx context.Context, p *wasiabi.Process) (_ engine.Ending, err error) {
	r := &run{p: p}
	m.run = r
	defer func() {
		m.run = nil
		if p := recover(); p != nil { // wazero, for instance without address space for the memory
			err = fmt.Errorf("wazero gave up: %v", p)
		}
	}()
	cfg := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	inst, err := m.rt.InstantiateModule(withAllocator(ctx), m.compiled, cfg)
	if err != nil {
		return r.ending(err)
	}
	defer inst.Close(ctx)
	r.mem = inst.ExportedMemory(engine.ExportMemory)
	entry := inst.ExportedFunction("_start")
	if entry == nil {
		entry = inst.ExportedFunction("_initialize")
	}
	if entry == nil {
		return engine.Ending{}, errors.New(`module exports neither "_start" nor "_initialize"`)
	}
	for _, f := range []api.Function{inst.ExportedFunction(engine.ExportStart), entry} {
		if f == nil {
			continue
		}
		if _, err = f.Call(ctx); err != nil {
			break
		}
	}
	end, err := r.ending(err)
	if err != nil {
		return end, err
	}
	if r.mem != nil {
		end.MemoryBytes = int64(r.mem.Size())
	}
	if g := inst.ExportedGlobal(engine.ExportGrowRefused); g != nil {
		end.GrowRefused = uint32(g.Get()) != 0
	}
	return end, nil
}

// ending tells how the guest ended from what its call returned.
func (r *run) ending(err error) (engine.Ending, error) {
	switch {
	case r.err != nil:
		return engine.Ending{}, r.err
	case r.exit != nil:
		return engine.Ending{Kind: engine.Exit, Code: r.exit.Code}, nil
	case err == nil:
		return engine.Ending{Kind: engine.Exit}, nil
	}
	if word, ok := trap(err); ok {
		return engine.Ending{Kind: engine.Trap, Trap: word, Detail: engine.Frames(frames(err.Error()))}, nil
	}
	return engine.Ending{}, fmt.Errorf("wazero: %w", err)
}

// traps maps the texts of wazero's own errors, whose type is internal to it.
var traps = map[string]string{
	"unreachable":                   engine.TrapUnreachable,
	"out of bounds memory access":   engine.TrapMemory,
	"invalid table access":          engine.TrapTable,
	"indirect call type mismatch":   engine.TrapIndirectCall,
	"integer divide by zero":        engine.TrapDivideByZero,
	"integer overflow":              engine.TrapIntegerOverflow,
	"invalid conversion to integer": engine.TrapInvalidConversion,
	"stack overflow":                engine.TrapStackOverflow,
	"null reference":                engine.TrapOther,
	"uncaught exception":            engine.TrapOther,
}

var dataSegment = regexp.MustCompile(`^data\[\d+\]: out of bounds memory access$`)

// trap finds the trap word of an error, if it is the guest's fault.
func trap(err error) (string, bool) {
	// A segment that does not fit is no error type of its own in wazero.
	if dataSegment.MatchString(err.Error()) {
		return engine.TrapMemory, true
	}
	for u := errors.Unwrap(err); u != nil; u = errors.Unwrap(err) {
		err = u
	}
	word, ok := traps[err.Error()]
	return word, ok
}

// signature is what wazero writes behind a function's name.
var signature = regexp.MustCompile(`\([a-z0-9,]*\)( \([a-z0-9,]*\)| [a-z0-9]+)?$`)

// frames takes the guest's function names out of the text of wazero's error. Package module cleaned the names of line
// ends, so that each line is one frame.
func frames(text string) []string {
	_, trace, ok := strings.Cut(text, "\nwasm stack trace:\n\t")
	if !ok {
		return nil
	}
	var names []string
	for line := range strings.SplitSeq(trace, "\n\t") {
		if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "...") {
			continue
		}
		names = append(names, strings.TrimPrefix(signature.ReplaceAllString(line, ""), "."))
	}
	return names
}
