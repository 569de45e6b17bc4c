package module_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/exthost/exthost/host/internal/engine"
	adapter "github.com/exthost/exthost/host/internal/engine/wazero"
	"github.com/exthost/exthost/host/internal/module"
	wb "github.com/exthost/exthost/host/internal/module/wasmbuild"
	"github.com/exthost/exthost/wasiabi"
)

var functions = []wasiabi.Function{
	{Module: "wasi_snapshot_preview1", Name: "proc_exit", Params: []wasiabi.ValueType{wasiabi.I32}},
	{Module: "wasi_snapshot_preview1", Name: "fd_seek",
		Params:  []wasiabi.ValueType{wasiabi.I32, wasiabi.I64, wasiabi.I32, wasiabi.I32},
		Results: []wasiabi.ValueType{wasiabi.I32}},
}

var options = module.Options{MemoryBytes: 16 << 20, Functions: functions}

// runtime is wazero as a validator.
func runtime(t testing.TB) wazero.Runtime {
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(adapter.Features).WithDebugInfoEnabled(false))
	t.Cleanup(func() { rt.Close(ctx) })
	return rt
}

// minimal is a module with a _start that does nothing.
func minimal() *wb.Module {
	m := wb.New()
	m.Start(m.Func(wb.Sig(), nil))
	return m
}

// body is a module whose _start has this code.
func body(code ...[]byte) []byte {
	m := wb.New()
	m.Memory(1, wb.NoMax)
	m.Table(1, wb.NoMax)
	m.Start(m.Func(wb.Sig(), nil, code...))
	return m.Bytes()
}

func TestRefusals(t *testing.T) {
	header := "\x00asm\x01\x00\x00\x00"
	for name, c := range map[string]struct {
		wasm []byte
		kind module.Kind
		text string // part of the error
	}{
		"empty file":   {nil, module.Invalid, "not a WebAssembly module"},
		"text":         {[]byte("#!/bin/sh\necho hi\n"), module.Invalid, "not a WebAssembly module"},
		"component":    {[]byte("\x00asm\x0d\x00\x01\x00"), module.Invalid, "component"},
		"version 2":    {[]byte("\x00asm\x02\x00\x00\x00"), module.Invalid, "version"},
		"cut":          {minimal().Bytes()[:20], module.Invalid, "unexpected end"},
		"no entry":     {wb.New().Bytes(), module.Invalid, `"_start"`},
		"long section": {[]byte(header + "\x01\xff\xff\xff\xff\x0f"), module.Invalid, "unexpected end"},
		"long number":  {[]byte(header + "\x01\xff\xff\xff\xff\xff\x0f"), module.Invalid, "number too long"},
		"big number":   {[]byte(header + "\x01\xff\xff\xff\xff\x1f"), module.Invalid, "number too long"},
		"repeated section": {func() []byte {
			m := minimal()
			m.Raw(1, []byte{0})
			return m.Bytes()
		}(), module.Invalid, "repeated or out of order"},
		"unknown section": {func() []byte {
			m := minimal()
			m.Raw(14, nil)
			return m.Bytes()
		}(), module.Invalid, "unknown section"},
		"tag section": {[]byte(header + "\x0d\x01\x00"), module.Invalid, "exceptions are not enabled"},
		"left over": {func() []byte {
			m := minimal()
			m.Raw(11, []byte{0, 0})
			return m.Bytes()
		}(), module.Invalid, "left over"},

		"entry with a parameter": {func() []byte {
			m := wb.New()
			m.Start(m.Func(wb.Sig(wb.I32), nil))
			return m.Bytes()
		}(), module.Invalid, "without parameters"},
		"entry that is a global": {func() []byte {
			m := wb.New()
			m.Export("_start", 3, m.Global(false, 0))
			return m.Bytes()
		}(), module.Invalid, "without parameters"},
		"export with our prefix": {func() []byte {
			m := minimal()
			m.Export("exthost:memory", 0, 0)
			return m.Bytes()
		}(), module.Invalid, "reserved"},

		"imports, all at once": {func() []byte {
			m := wb.New()
			m.Import("env", "system", wb.Sig(wb.I32).Returns(wb.I32))
			m.Import("wasi_snapshot_preview1", "proc_exit", wb.Sig(wb.I64))
			m.Import("wasi_snapshot_preview1", "sock_open", wb.Sig())
			m.Start(m.Func(wb.Sig(), nil))
			return m.Bytes()
		}(), module.Imports, `"env" "system": no such function; "wasi_snapshot_preview1" "proc_exit": is (i32) -> (), not (i64) -> (); "wasi_snapshot_preview1" "sock_open": no such function`},
		"many imports": {func() []byte {
			m := wb.New()
			for i := range 100 {
				m.Import("env", fmt.Sprint("f", i), wb.Sig())
			}
			return m.Bytes()
		}(), module.Imports, "and 90 more"},
		"import names with controls": {func() []byte {
			m := wb.New()
			m.Import("e\x1b[2Jnv", "a\nb\u202e", wb.Sig())
			return m.Bytes()
		}(), module.Imports, `"e?[2Jnv" "a?b?"`},
		"imported memory": {func() []byte {
			m := minimal()
			m.ImportRaw("env", "memory", 2, 0, 1)
			return m.Bytes()
		}(), module.Imports, "a memory cannot be imported"},
		"imported table": {func() []byte {
			m := minimal()
			m.ImportRaw("env", "table", 1, 0x70, 0, 1)
			return m.Bytes()
		}(), module.Imports, "a table cannot be imported"},
		"imported global": {func() []byte {
			m := minimal()
			m.ImportRaw("env", "g", 3, wb.I32, 0)
			return m.Bytes()
		}(), module.Imports, "a global cannot be imported"},

		"two memories": {func() []byte {
			m := minimal()
			m.Memory(1, 1)
			m.Memory(1, 1)
			return m.Bytes()
		}(), module.Invalid, "multi-memory"},
		"shared memory":      {append(minimal().Bytes()[:8], "\x05\x04\x01\x03\x01\x01"...), module.Invalid, "threads"},
		"64-bit memory":      {append(minimal().Bytes()[:8], "\x05\x03\x01\x04\x01"...), module.Invalid, "memory64"},
		"other page size":    {append(minimal().Bytes()[:8], "\x05\x04\x01\x08\x01\x00"...), module.Invalid, "unknown limits"},
		"memory over 4 GiB":  {append(minimal().Bytes()[:8], "\x05\x06\x01\x00\xff\xff\xff\x0f"...), module.Invalid, "over 4 GiB"},
		"maximum below":      {append(minimal().Bytes()[:8], "\x05\x04\x01\x01\x02\x01"...), module.Invalid, "below its minimum"},
		"externref table":    {append(minimal().Bytes()[:8], "\x04\x04\x01\x6f\x00\x01"...), module.Invalid, "externref"},
		"struct type":        {append(minimal().Bytes()[:8], "\x01\x03\x01\x5f\x00"...), module.Invalid, "garbage collection"},
		"SIMD":               {body([]byte{0xfd, 0x0c}, make([]byte, 16), wb.Drop), module.Invalid, "SIMD is not enabled"},
		"atomics":            {body([]byte{0xfe, 0x03, 0x00}), module.Invalid, "threads are not enabled"},
		"tail call":          {body([]byte{0x12, 0x00}), module.Invalid, "tail calls are not enabled"},
		"call_ref":           {body([]byte{0x14, 0x00}), module.Invalid, "function references are not enabled"},
		"throw":              {body([]byte{0x08, 0x00}), module.Invalid, "exceptions are not enabled"},
		"try_table":          {body([]byte{0x1f, 0x40, 0x00}), module.Invalid, "exceptions are not enabled"},
		"struct.new":         {body([]byte{0xfb, 0x00, 0x00}), module.Invalid, "garbage collection is not enabled"},
		"extern null":        {body([]byte{0xd0, 0x6f}, wb.Drop), module.Invalid, "externref is not enabled"},
		"memory index":       {body([]byte{0x3f, 0x01}, wb.Drop), module.Invalid, "multi-memory"},
		"memory in memarg":   {body(wb.I32Const(0), []byte{0x28, 0x42, 0x00, 0x00}, wb.Drop), module.Invalid, "multi-memory"},
		"extended constant":  {append(minimal().Bytes()[:8], "\x06\x09\x01\x7f\x00\x41\x01\x41\x01\x6a\x0b"...), module.Invalid, "extended constant"},
		"relaxed SIMD":       {body([]byte{0xfd, 0x80, 0x02}), module.Invalid, "SIMD"},
		"wide arithmetic":    {body([]byte{0xfc, 19}), module.Invalid, "unknown instruction"},
		"unknown opcode":     {body([]byte{0x27}), module.Invalid, "unknown instruction"},
		"no end":             {func() []byte { m := minimal(); m.FuncRaw(0, []byte{0}); return m.Bytes() }(), module.Invalid, "unexpected end"},
		"code behind end":    {func() []byte { m := minimal(); m.FuncRaw(0, []byte{0, 0x0b, 1}); return m.Bytes() }(), module.Invalid, "left over"},
		"unknown type":       {func() []byte { m := minimal(); m.FuncRaw(7, []byte{0, 0x0b}); return m.Bytes() }(), module.Invalid, "type 7 does not exist"},
		"unknown function":   {body(wb.Call(9)), module.Invalid, "function 9 does not exist"},
		"data without count": {body(wb.Seq([]byte{0xfc, 9, 0})), module.Invalid, "data count"},
		"data behind the memory": {func() []byte {
			m := minimal()
			m.Memory(1, 2)
			m.Data(65535, []byte("ab"))
			return m.Bytes()
		}(), module.Invalid, "outside of the memory"},
		"data at -1": {func() []byte {
			m := minimal()
			m.Memory(1, 2)
			m.Data(-1, []byte("a"))
			return m.Bytes()
		}(), module.Invalid, "outside of the memory"},
		"elements behind the table": {func() []byte {
			m := minimal()
			m.Table(1, 2)
			m.Elements(1, 0)
			return m.Bytes()
		}(), module.Invalid, "outside of its table"},

		"more memory than the limit": {func() []byte {
			m := minimal()
			m.Memory(257, wb.NoMax)
			return m.Bytes()
		}(), module.Memory, "16842752 bytes"},
		"memory and table over the limit": {func() []byte {
			m := minimal()
			m.Memory(256, wb.NoMax)
			m.Table(1, 1)
			return m.Bytes()
		}(), module.Memory, "16 of tables"},

		"big table": {func() []byte {
			m := minimal()
			m.Table(module.MaxElements+1, wb.NoMax)
			return m.Bytes()
		}(), module.TooBig, "100001 elements"},
		"table of 100 million": {func() []byte {
			m := minimal()
			m.Table(100_000_000, wb.NoMax)
			return m.Bytes()
		}(), module.TooBig, "100000000 elements"},
		"five tables": {func() []byte {
			m := minimal()
			for range 5 {
				m.Table(1, 1)
			}
			return m.Bytes()
		}(), module.TooBig, "5 tables"},
		"big module": {append(minimal().Bytes(), make([]byte, module.MaxSize)...), module.TooBig, "most are 67108864"},
		"many functions": {func() []byte {
			m := minimal()
			for range module.MaxFunctions {
				m.FuncRaw(0, []byte{0, 0x0b})
			}
			return m.Bytes()
		}(), module.TooBig, "100001 functions"},
		"big body":      {body(wb.Repeat(module.MaxBody, wb.Nop)), module.TooBig, "bytes of code"},
		"many locals":   {localsOf(module.MaxLocals + 1), module.TooBig, "50001 locals"},
		"very many":     {localsOf(1<<32 - 1), module.TooBig, "locals"},
		"deep nesting":  {body(wb.Repeat(module.MaxNesting, wb.Block), wb.Repeat(module.MaxNesting, wb.End)), module.TooBig, "nested over 10000"},
		"many segments": {dataOf(module.MaxDataSegments + 1), module.TooBig, "100001 data segments"},
		"long name":     {func() []byte { m := minimal(); m.Export(strings.Repeat("a", 10_001), 0, 0); return m.Bytes() }(), module.TooBig, "name of 10001"},
		"wide signature": {func() []byte {
			m := minimal()
			m.Type(wb.Signature{Params: bytes.Repeat([]byte{wb.I32}, 1001)})
			return m.Bytes()
		}(), module.TooBig, "1001 parameters"},
		"element bomb":    {elementsOf(500_000), module.TooBig, "500000 element items"},
		"branch bomb":     {body(wb.Repeat(200_000, wb.Block, wb.I32Const(0), wb.BrIf(0), wb.End)), module.TooBig, "bytes of code"},
		"complex":         {body(wb.Repeat(60_000, wb.Block, wb.I32Const(0), wb.BrIf(0), wb.End), wb.Repeat(300_000, wb.Nop)), module.TooBig, "too complex"},
		"locals × blocks": {blocksAndLocals(2000, 5000), module.TooBig, "too complex"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := module.Prepare(c.wasm, options)
			var e *module.Error
			if !errors.As(err, &e) {
				t.Fatalf("prepared %v, error %v, want a refusal", p != nil, err)
			}
			if e.Kind != c.kind || !strings.Contains(e.Detail, c.text) {
				t.Errorf("%v, want %v with %q", e, c.kind, c.text)
			}
			if len(e.Detail) > 4096 {
				t.Errorf("detail has %d bytes", len(e.Detail))
			}
			if strings.ContainsAny(e.Detail, "\x1b\n\u202e") {
				t.Errorf("detail %q has control characters", e.Detail)
			}
		})
	}
}

func localsOf(n uint32) []byte {
	m := minimal()
	m.FuncRaw(0, append(append([]byte{1}, wb.U32(n)...), wb.I32, 0x0b))
	return m.Bytes()
}

func dataOf(n int) []byte {
	m := minimal()
	m.Memory(1, wb.NoMax)
	for range n {
		m.Data(0, nil)
	}
	return m.Bytes()
}

func elementsOf(n int) []byte {
	m := minimal()
	m.Table(module.MaxElements, wb.NoMax)
	m.Elements(0, make([]uint32, n)...)
	return m.Bytes()
}

func blocksAndLocals(blocks, locals int) []byte {
	m := minimal()
	m.Func(wb.Sig(), bytes.Repeat([]byte{wb.I32}, locals), wb.Repeat(blocks, wb.Block, wb.End))
	return m.Bytes()
}

// TestLimitsAreInclusive holds what compilers make just within a cap, Go's 100,000 data segments among it.
func TestLimitsAreInclusive(t *testing.T) {
	rt := runtime(t)
	for name, wasm := range map[string][]byte{
		"data segments": dataOf(module.MaxDataSegments),
		"locals":        localsOf(module.MaxLocals),
		"nesting":       body(wb.Repeat(module.MaxNesting-1, wb.Block), wb.Repeat(module.MaxNesting-1, wb.End)),
		"table":         elementsOf(module.MaxElements),
		"memory":        func() []byte { m := minimal(); m.Memory(256, 65536); return m.Bytes() }(),
		"functions": func() []byte {
			m := minimal()
			for range module.MaxFunctions - 1 {
				m.FuncRaw(0, []byte{0, 0x0b})
			}
			return m.Bytes()
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			p, err := module.Prepare(wasm, options)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := rt.CompileModule(context.Background(), p.Bytes); err != nil {
				t.Errorf("prepared module is not valid: %v", err)
			}
		})
	}
}

func TestMaximaAreLowered(t *testing.T) {
	const mib = 1 << 20
	memory := func(min uint32, max int64) *wb.Module { m := minimal(); m.Memory(min, max); return m }
	for name, c := range map[string]struct {
		m       *wb.Module
		max     int64
		lowered bool
	}{
		"none":      {memory(1, wb.NoMax), 16 * mib, true},
		"higher":    {memory(1, 65536), 16 * mib, true},
		"equal":     {memory(1, 256), 16 * mib, false},
		"lower":     {memory(1, 5), 5 * 65536, false},
		"no memory": {minimal(), 0, false},
		"beside a growing table": {func() *wb.Module {
			m := memory(1, wb.NoMax)
			t := m.Table(1, wb.NoMax)
			m.Func(wb.Sig(), nil, wb.RefNull(), wb.I32Const(1), wb.TableGrow(t), wb.Drop)
			return m
		}(), 231 * 65536, true}, // 1.6 MB of table
		"beside a table as it is":   {func() *wb.Module { m := memory(1, wb.NoMax); m.Table(4096, wb.NoMax); return m }(), 255 * 65536, true},
		"beside a table that can't": {func() *wb.Module { m := memory(1, wb.NoMax); m.Table(0, 100_000_000); return m }(), 16 * mib, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := module.Prepare(c.m.Bytes(), options)
			if err != nil {
				t.Fatal(err)
			}
			if p.MemoryMax != c.max || p.Lowered != c.lowered {
				t.Errorf("maximum %d, lowered %v, want %d, %v", p.MemoryMax, p.Lowered, c.max, c.lowered)
			}
			checkMaxima(t, runtime(t), p)
		})
	}
}

// checkMaxima reads the prepared module with an engine's decoder.
func checkMaxima(t testing.TB, rt wazero.Runtime, p *module.Prepared) wazero.CompiledModule {
	t.Helper()
	m, err := rt.CompileModule(context.Background(), p.Bytes)
	if err != nil {
		t.Fatalf("prepared module is not valid: %v", err)
	}
	mem, ok := m.ExportedMemories()[engine.ExportMemory]
	if !ok {
		if p.MemoryMax != 0 {
			t.Errorf("no memory, want a maximum of %d", p.MemoryMax)
		}
		return m
	}
	pages, encoded := mem.Max()
	if !encoded || int64(pages)*65536 != p.MemoryMax || p.MemoryMax+p.TableBytes > options.MemoryBytes {
		t.Errorf("maximum is %d pages (%v), reported %d and %d of tables, limit %d", pages, encoded, p.MemoryMax, p.TableBytes, options.MemoryBytes)
	}
	return m
}

func TestAllowedImportsAreListedOnce(t *testing.T) {
	m := wb.New()
	m.Import("wasi_snapshot_preview1", "proc_exit", wb.Sig(wb.I32))
	m.Import("wasi_snapshot_preview1", "fd_seek", wb.Sig(wb.I32, wb.I64, wb.I32, wb.I32).Returns(wb.I32))
	m.Import("wasi_snapshot_preview1", "proc_exit", wb.Sig(wb.I32))
	m.Start(m.Func(wb.Sig(), nil))
	p, err := module.Prepare(m.Bytes(), options)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(p.Imports, " "); got != "wasi_snapshot_preview1.proc_exit wasi_snapshot_preview1.fd_seek" {
		t.Errorf("imports %q", got)
	}
}

func TestNamesAreCleanedAndOtherCustomSectionsDropped(t *testing.T) {
	m := minimal()
	m.Names("a\x1b]0;title\x07b")
	m.Custom(".debug_info", bytes.Repeat([]byte("DWARF"), 1000))
	p, err := module.Prepare(m.Bytes(), options)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(p.Bytes, []byte("a?]0;title?b")) || bytes.Contains(p.Bytes, []byte("DWARF")) {
		t.Errorf("prepared module: %q", p.Bytes)
	}
}

func TestBrokenNamesAreDropped(t *testing.T) {
	for name, payload := range map[string][]byte{
		"cut":          {1, 5, 1, 0},
		"out of order": {1, 7, 2, 1, 1, 'a', 0, 1, 'b'},
		"no function":  {1, 4, 1, 9, 1, 'a'},
		"not UTF-8":    {1, 4, 1, 0, 1, 0xff},
		"long count":   {1, 5, 0xff, 0xff, 0xff, 0xff, 0x0f},
	} {
		t.Run(name, func(t *testing.T) {
			m := minimal()
			m.Custom("name", payload)
			p, err := module.Prepare(m.Bytes(), options)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(p.Bytes, []byte("name")) {
				t.Errorf("prepared module still has names: %q", p.Bytes)
			}
			if _, err := runtime(t).CompileModule(context.Background(), p.Bytes); err != nil {
				t.Errorf("prepared module is not valid: %v", err)
			}
		})
	}
}

func TestStartSectionBecomesAnExport(t *testing.T) {
	m := minimal()
	m.StartSection(m.Func(wb.Sig(), nil, wb.Unreachable))
	p, err := module.Prepare(m.Bytes(), options)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	inst, err := runtime(t).InstantiateWithConfig(ctx, p.Bytes, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		t.Fatalf("the start function ran while the module was instantiated: %v", err)
	}
	if f := inst.ExportedFunction(engine.ExportStart); !p.StartMoved || f == nil {
		t.Error("the start function is not exported")
	}
}

func TestPrepareDoesNotChangeOrKeepItsInput(t *testing.T) {
	wasm := body(wb.I32Const(1), wb.MemoryGrow, wb.Drop)
	before := bytes.Clone(wasm)
	p, err := module.Prepare(wasm, options)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(wasm, before) {
		t.Error("the input was changed")
	}
	out := bytes.Clone(p.Bytes)
	clear(wasm)
	if !bytes.Equal(p.Bytes, out) {
		t.Error("the output shares memory with the input")
	}
}

func TestMemoryLimitTooLow(t *testing.T) {
	_, err := module.Prepare(minimal().Bytes(), module.Options{})
	var e *module.Error
	if !errors.As(err, &e) || e.Kind != module.Memory {
		t.Errorf("error %v", err)
	}
}

// FuzzPrepare: Prepare never panics; what it accepts is valid for an engine whenever the source is; maxima hold; and
// the same answer comes twice.
func FuzzPrepare(f *testing.F) {
	f.Add(minimal().Bytes())
	f.Add(body(wb.I32Const(1), wb.MemoryGrow, wb.Drop, wb.Block, wb.I32Const(0), wb.BrIf(0), wb.End))
	f.Add(elementsOf(3))
	f.Add(dataOf(3))
	m := wb.New()
	m.Import("wasi_snapshot_preview1", "proc_exit", wb.Sig(wb.I32))
	m.Memory(1, 70)
	m.Table(3, 7)
	m.Global(true, -5)
	fn := m.Func(wb.Sig(wb.I32).Returns(wb.I32), []byte{wb.I64, wb.F32}, wb.LocalGet(0), wb.If, wb.Else, wb.End, wb.I32Const(7), wb.MemoryGrow)
	m.Func(wb.Sig(), nil, []byte{0x0e, 1, 0, 0}, wb.F64Const(3), wb.I32TruncF64, wb.Drop, wb.RefNull(), wb.I32Const(2), wb.TableGrow(0), wb.Drop)
	m.StartSection(m.Func(wb.Sig(), nil, wb.I32Const(1), wb.Call(fn), wb.Drop))
	m.Start(m.Func(wb.Sig(), nil))
	m.Elements(0, fn, fn)
	m.Data(5, []byte("hello"))
	m.DataCount()
	m.Names("exit", "grow")
	m.Custom("producers", []byte{0})
	f.Add(m.Bytes())
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(adapter.Features).WithDebugInfoEnabled(false))
	valid := func(wasm []byte) (ok bool, mems map[string]api.MemoryDefinition) {
		defer func() {
			if recover() != nil { // wazero itself: not ours to judge
				ok = false
			}
		}()
		m, err := rt.CompileModule(ctx, wasm)
		if err != nil {
			return false, nil
		}
		defer m.Close(ctx)
		return true, m.ExportedMemories()
	}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		p, err := module.Prepare(wasm, options)
		again, err2 := module.Prepare(bytes.Clone(wasm), options)
		if fmt.Sprint(err) != fmt.Sprint(err2) || err == nil && !bytes.Equal(p.Bytes, again.Bytes) {
			t.Fatalf("two answers: %v, %v", err, err2)
		}
		if err != nil {
			return
		}
		if p.MemoryMax+p.TableBytes > options.MemoryBytes || p.MemoryMin > p.MemoryMax {
			t.Errorf("memory %d to %d, tables %d", p.MemoryMin, p.MemoryMax, p.TableBytes)
		}
		if ok, _ := valid(wasm); !ok {
			return
		}
		ok, mems := valid(p.Bytes)
		if !ok {
			_, err := rt.CompileModule(ctx, p.Bytes)
			t.Fatalf("the source is valid, the prepared module is not: %v\n%x", err, p.Bytes)
		}
		if mem, ok := mems[engine.ExportMemory]; ok {
			if pages, encoded := mem.Max(); !encoded || int64(pages)*65536 != p.MemoryMax {
				t.Errorf("maximum %d, reported %d", pages, p.MemoryMax)
			}
		}
	})
}

func BenchmarkPrepare(b *testing.B) {
	m := wb.New()
	m.Memory(1, wb.NoMax)
	for range 20_000 {
		m.Func(wb.Sig(wb.I32).Returns(wb.I32), nil, wb.Repeat(40, wb.LocalGet(0), wb.I32Const(100_000), wb.I32Add, wb.LocalSet(0)), wb.LocalGet(0), wb.MemoryGrow)
	}
	m.Start(m.Func(wb.Sig(), nil))
	wasm := m.Bytes()
	b.SetBytes(int64(len(wasm)))
	for b.Loop() {
		if _, err := module.Prepare(wasm, options); err != nil {
			b.Fatal(err)
		}
	}
}
