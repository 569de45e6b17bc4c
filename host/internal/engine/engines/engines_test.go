package engines_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/host/internal/engine/engines"
	"github.com/exthost/exthost/host/internal/module"
	wb "github.com/exthost/exthost/host/internal/module/wasmbuild"
	"github.com/exthost/exthost/wasiabi"
)

// names are the engines of this binary and the interpreter.
func names() []string {
	var out []string
	for _, i := range engine.All() {
		out = append(out, i.Name)
	}
	return append(out, engines.Interpreter)
}

// functions is a small table of host functions: engines are tested without WASI.
func functions() []wasiabi.Function {
	i32, i64 := wasiabi.I32, wasiabi.I64
	return []wasiabi.Function{
		{Module: "wasi_snapshot_preview1", Name: "proc_exit", Params: []wasiabi.ValueType{i32},
			Call: func(_ *wasiabi.Process, _ []byte, a []uint64) (uint32, error) {
				return 0, &wasiabi.Exit{Code: uint32(a[0])}
			}},
		{Module: "test", Name: "sum", Params: []wasiabi.ValueType{i32, i64, i32}, Results: []wasiabi.ValueType{i32},
			Call: func(_ *wasiabi.Process, _ []byte, a []uint64) (uint32, error) {
				return uint32(a[0] + a[1]>>32 + a[2]), nil
			}},
		{Module: "test", Name: "high", Params: []wasiabi.ValueType{i32}, Results: []wasiabi.ValueType{i32},
			Call: func(_ *wasiabi.Process, _ []byte, a []uint64) (uint32, error) {
				return uint32(a[0] >> 32), nil
			}},
		{Module: "test", Name: "memory", Params: []wasiabi.ValueType{i32}, Results: []wasiabi.ValueType{i32},
			Call: func(_ *wasiabi.Process, mem []byte, a []uint64) (uint32, error) {
				if a[0]+8 <= uint64(len(mem)) {
					binary.LittleEndian.PutUint32(mem[a[0]+4:], 0x01020304)
				}
				return uint32(len(mem)), nil
			}},
		{Module: "test", Name: "fault", Results: []wasiabi.ValueType{i32},
			Call: func(*wasiabi.Process, []byte, []uint64) (uint32, error) { return 0, errFault }},
		{Module: "test", Name: "panic", Results: []wasiabi.ValueType{i32},
			Call: func(*wasiabi.Process, []byte, []uint64) (uint32, error) { panic("a bug") }},
		{Module: "test", Name: "nop", Results: []wasiabi.ValueType{i32},
			Call: func(*wasiabi.Process, []byte, []uint64) (uint32, error) { return 7, nil }},
	}
}

var errFault = errors.New("disk on fire")

const limit = 4 << 20

// prepare prepares a module with a memory limit of 4 MiB.
func prepare(t testing.TB, wasm []byte) *module.Prepared {
	t.Helper()
	p, err := module.Prepare(wasm, module.Options{MemoryBytes: limit, Functions: functions()})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newEngine(t testing.TB, name string) engine.Engine {
	t.Helper()
	e, err := engines.New(name, functions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// compile writes the files of an artefact.
func compile(t testing.TB, e engine.Engine, prepared []byte) engine.Artefact {
	t.Helper()
	code, name, err := e.Compile(context.Background(), prepared, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	a := engine.Artefact{ModulePath: filepath.Join(dir, "module"), CodePath: filepath.Join(dir, "code"), CodeName: name,
		Dir: filepath.Join(dir, "engine")}
	for path, b := range map[string][]byte{a.ModulePath: prepared, a.CodePath: code} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(a.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return a
}

func load(t testing.TB, e engine.Engine, prepared []byte) engine.Module {
	t.Helper()
	m, err := e.Load(context.Background(), compile(t, e, prepared), engine.Limits{MemoryBytes: limit, TableElements: 1000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func run(t testing.TB, m engine.Module) engine.Ending {
	t.Helper()
	end, err := m.Run(context.Background(), &wasiabi.Process{})
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// each runs a test on every engine.
func each(t *testing.T, f func(t *testing.T, e engine.Engine)) {
	for _, name := range names() {
		t.Run(name, func(t *testing.T) { f(t, newEngine(t, name)) })
	}
}

// exitWith is a module whose _start leaves a number for proc_exit.
func exitWith(m *wb.Module, exit uint32, code ...[]byte) []byte {
	m.Start(m.Func(wb.Sig(), []byte{wb.I32}, append(code, wb.Call(exit))...))
	return m.Bytes()
}

func TestExitCodesAreKept(t *testing.T) {
	each(t, func(t *testing.T, e engine.Engine) {
		for _, code := range []uint32{0, 1, 2, 126, 127, 134, 255, 256, 1 << 31, 1<<32 - 1} {
			m := wb.New()
			exit := m.Import("wasi_snapshot_preview1", "proc_exit", wb.Sig(wb.I32))
			end := run(t, load(t, e, prepare(t, exitWith(m, exit, wb.I32Const(int32(code)))).Bytes))
			if end.Kind != engine.Exit || end.Code != code {
				t.Errorf("proc_exit(%d) ended as %+v", code, end)
			}
		}
		m := wb.New()
		m.Start(m.Func(wb.Sig(), nil))
		if end := run(t, load(t, e, prepare(t, m.Bytes()).Bytes)); end.Kind != engine.Exit || end.Code != 0 {
			t.Errorf("a guest that returns ended as %+v", end)
		}
	})
}

func TestTrapsHaveStableWords(t *testing.T) {
	type guest func(m *wb.Module) []byte
	start := func(code ...[]byte) guest {
		return func(m *wb.Module) []byte {
			m.Memory(1, 1)
			m.Table(2, 2)
			m.Start(m.Func(wb.Sig(), nil, code...))
			m.Names("main.main")
			return m.Bytes()
		}
	}
	for name, c := range map[string]struct {
		guest guest
		word  string
	}{
		"unreachable":           {start(wb.Unreachable), engine.TrapUnreachable},
		"load behind the end":   {start(wb.I32Const(65536), wb.I32Load(0), wb.Drop), engine.TrapMemory},
		"load far behind":       {start(wb.I32Const(-4), wb.I32Load(1<<31), wb.Drop), engine.TrapMemory},
		"memory.fill too long":  {start(wb.I32Const(0), wb.I32Const(0), wb.I32Const(65537), []byte{0xfc, 11, 0}), engine.TrapMemory},
		"division by zero":      {start(wb.I32Const(1), wb.I32Const(0), wb.I32DivS, wb.Drop), engine.TrapDivideByZero},
		"division overflow":     {start(wb.I32Const(-1<<31), wb.I32Const(-1), wb.I32DivS, wb.Drop), engine.TrapIntegerOverflow},
		"conversion overflow":   {start(wb.F64Const(0x43e0000000000000), wb.I32TruncF64, wb.Drop), engine.TrapIntegerOverflow},
		"conversion of NaN":     {start(wb.F64Const(0x7ff8000000000000), wb.I32TruncF64, wb.Drop), engine.TrapInvalidConversion},
		"uninitialized element": {start(wb.I32Const(1), wb.CallIndirect(0)), engine.TrapTable},
		"element out of bounds": {start(wb.I32Const(2), wb.CallIndirect(0)), engine.TrapTable},
		"table.get outside":     {start(wb.I32Const(2), []byte{0x25, 0}, wb.Drop), engine.TrapTable},
		"stack overflow":        {start(wb.Call(0)), engine.TrapStackOverflow},
		"indirect call mismatch": {func(m *wb.Module) []byte {
			m.Table(1, 1)
			f := m.Func(wb.Sig(wb.I32), nil)
			m.Elements(0, f)
			m.Start(m.Func(wb.Sig(), nil, wb.I32Const(0), wb.CallIndirect(m.Type(wb.Sig()))))
			return m.Bytes()
		}, engine.TrapIndirectCall},
		"start section": {func(m *wb.Module) []byte {
			m.StartSection(m.Func(wb.Sig(), nil, wb.Unreachable))
			m.Start(m.Func(wb.Sig(), nil))
			return m.Bytes()
		}, engine.TrapUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			prepared := prepare(t, c.guest(wb.New())).Bytes
			each(t, func(t *testing.T, e engine.Engine) {
				end := run(t, load(t, e, prepared))
				if end.Kind != engine.Trap || end.Trap != c.word {
					t.Errorf("ended as %+v, want trap %q", end, c.word)
				}
			})
		})
	}
}

func TestTrapDetailIsTheGuestsOwnFrames(t *testing.T) {
	m := wb.New()
	inner := m.Func(wb.Sig(wb.I32).Returns(wb.I32), nil, wb.Unreachable)
	middle := m.Func(wb.Sig(), nil, wb.I32Const(1), wb.Call(inner), wb.Drop)
	m.Start(m.Func(wb.Sig(), nil, wb.Call(middle)))
	m.Names("evil\x1b[2J\n\tname(i32) i32", "main.(*T).Middle")
	prepared := prepare(t, m.Bytes()).Bytes
	each(t, func(t *testing.T, e engine.Engine) {
		end := run(t, load(t, e, prepared))
		if want := "evil?[2J??name(i32) i32 < main.(*T).Middle < $2"; end.Detail != want {
			t.Errorf("detail %q, want %q", end.Detail, want)
		}
	})
}

func TestHostFunctionsGetArgumentsAndMemory(t *testing.T) {
	for name, c := range map[string]struct {
		code []byte // leaves an i32
		want uint32
	}{
		"arguments":           {wb.Seq(wb.I32Const(1), wb.I64Const(5<<32), wb.I32Const(2), wb.Call(1)), 8},
		"i32 zero-extended":   {wb.Seq(wb.I32Const(-1), wb.Call(2)), 0},
		"memory size":         {wb.Seq(wb.I32Const(-1), wb.Call(3)), 65536},
		"memory is the guest": {wb.Seq(wb.I32Const(16), wb.Call(3), wb.Drop, wb.I32Const(20), wb.I32Load(0)), 0x01020304},
		"memory after it grew": {wb.Seq(wb.I32Const(2), wb.MemoryGrow, wb.Drop, wb.I32Const(2*65536), wb.Call(3), wb.Drop,
			wb.I32Const(2*65536+4), wb.I32Load(0), wb.I32Const(-1), wb.Call(3), wb.I32Add), 0x01020304 + 3*65536},
	} {
		t.Run(name, func(t *testing.T) {
			m := wb.New()
			exit := m.Import("wasi_snapshot_preview1", "proc_exit", wb.Sig(wb.I32))
			m.Import("test", "sum", wb.Sig(wb.I32, wb.I64, wb.I32).Returns(wb.I32))
			m.Import("test", "high", wb.Sig(wb.I32).Returns(wb.I32))
			m.Import("test", "memory", wb.Sig(wb.I32).Returns(wb.I32))
			m.Memory(1, wb.NoMax)
			prepared := prepare(t, exitWith(m, exit, c.code)).Bytes
			each(t, func(t *testing.T, e engine.Engine) {
				if end := run(t, load(t, e, prepared)); end.Kind != engine.Exit || end.Code != c.want {
					t.Errorf("ended as %+v, want %#x", end, c.want)
				}
			})
		})
	}
}

func TestHostFunctionInAStartSectionFindsTheMemory(t *testing.T) {
	m := wb.New()
	exit := m.Import("wasi_snapshot_preview1", "proc_exit", wb.Sig(wb.I32))
	memory := m.Import("test", "memory", wb.Sig(wb.I32).Returns(wb.I32))
	m.Memory(3, 3)
	m.StartSection(m.Func(wb.Sig(), nil, wb.I32Const(0), wb.Call(memory), wb.Call(exit)))
	m.Start(m.Func(wb.Sig(), nil, wb.Unreachable))
	prepared := prepare(t, m.Bytes()).Bytes
	each(t, func(t *testing.T, e engine.Engine) {
		if end := run(t, load(t, e, prepared)); end.Kind != engine.Exit || end.Code != 3*65536 {
			t.Errorf("ended as %+v", end)
		}
	})
}

func TestHostFaultIsNoEndingOfTheGuest(t *testing.T) {
	each(t, func(t *testing.T, e engine.Engine) {
		for name, want := range map[string]string{"fault": "test.fault: disk on fire", "panic": "test.panic: panic: a bug"} {
			m := wb.New()
			f := m.Import("test", name, wb.Sig().Returns(wb.I32))
			m.Start(m.Func(wb.Sig(), nil, wb.Call(f), wb.Drop))
			_, err := load(t, e, prepare(t, m.Bytes()).Bytes).Run(context.Background(), &wasiabi.Process{})
			host := (*engine.HostError)(nil)
			if !errors.As(err, &host) || host.Error() != want {
				t.Errorf("error %v, want a HostError %q", err, want)
			}
			if name == "fault" && !errors.Is(err, errFault) {
				t.Errorf("error %v does not match its cause", err)
			}
		}
	})
}

func TestHostFunctionAtTheEndOfTheStack(t *testing.T) {
	// Calls itself until the stack ends, with a host call at each depth: the last one must not kill the process.
	m := wb.New()
	nop := m.Import("test", "nop", wb.Sig().Returns(wb.I32))
	f := m.Func(wb.Sig(), nil, wb.Call(nop), wb.Drop, wb.Call(1), wb.Call(nop), wb.Drop)
	m.Start(f)
	prepared := prepare(t, m.Bytes()).Bytes
	each(t, func(t *testing.T, e engine.Engine) {
		if e.Name() == engines.Interpreter {
			t.Skip("the interpreter has no native stack")
		}
		if end := run(t, load(t, e, prepared)); end.Trap != engine.TrapStackOverflow {
			t.Errorf("ended as %+v", end)
		}
	})
}

func TestMemoryStopsAtTheLimitAndARefusalIsNoted(t *testing.T) {
	grow := func(min uint32, max int64, pages int32) []byte {
		m := wb.New()
		exit := m.Import("wasi_snapshot_preview1", "proc_exit", wb.Sig(wb.I32))
		m.Memory(min, max)
		return exitWith(m, exit, wb.I32Const(pages), wb.MemoryGrow)
	}
	for _, c := range []struct {
		name    string
		wasm    []byte
		code    uint32
		refused bool
		memory  int64
	}{
		{"to the limit", grow(1, wb.NoMax, 63), 1, false, limit},
		{"over the limit", grow(1, wb.NoMax, 64), 1<<32 - 1, true, 65536},
		{"by zero", grow(1, wb.NoMax, 0), 1, false, 65536},
		{"with a higher maximum of its own", grow(2, 65536, 64), 1<<32 - 1, true, 2 * 65536},
		{"over its own lower maximum", grow(1, 2, 2), 1<<32 - 1, false, 65536},
		{"by a negative number", grow(1, wb.NoMax, -1), 1<<32 - 1, true, 65536},
	} {
		t.Run(c.name, func(t *testing.T) {
			prepared := prepare(t, c.wasm).Bytes
			each(t, func(t *testing.T, e engine.Engine) {
				end := run(t, load(t, e, prepared))
				if end.Code != c.code || end.GrowRefused != c.refused || end.MemoryBytes != c.memory {
					t.Errorf("ended as %+v, want code %d, refused %v, memory %d", end, c.code, c.refused, c.memory)
				}
			})
		})
	}
}

func TestTablesStopAtTheLimit(t *testing.T) {
	m := wb.New()
	exit := m.Import("wasi_snapshot_preview1", "proc_exit", wb.Sig(wb.I32))
	table := m.Table(0, wb.NoMax)
	wasm := exitWith(m, exit, wb.RefNull(), wb.I32Const(1000), wb.TableGrow(table), wb.Drop, wb.RefNull(), wb.I32Const(1), wb.TableGrow(table))
	p, err := module.Prepare(wasm, module.Options{MemoryBytes: limit, TableElements: 1000, Functions: functions()})
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, e engine.Engine) {
		if end := run(t, load(t, e, p.Bytes)); end.Code != 1<<32-1 {
			t.Errorf("table.grow behind the limit ended as %+v", end)
		}
	})
}

func TestEachRunHasAFreshInstance(t *testing.T) {
	m := wb.New()
	exit := m.Import("wasi_snapshot_preview1", "proc_exit", wb.Sig(wb.I32))
	m.Memory(1, 4)
	g := m.Global(true, 0)
	prepared := prepare(t, exitWith(m, exit,
		wb.GlobalGet(g), wb.I32Const(1), wb.I32Add, wb.GlobalSet(g),
		wb.I32Const(8), wb.I32Const(8), wb.I32Load(0), wb.I32Const(1), wb.I32Add, wb.I32Store(0),
		wb.I32Const(1), wb.MemoryGrow, wb.Drop,
		wb.I32Const(8), wb.I32Load(0), wb.GlobalGet(g), wb.I32Add, wb.MemorySize, wb.I32Add)).Bytes
	each(t, func(t *testing.T, e engine.Engine) {
		mod := load(t, e, prepared)
		for range 3 {
			if end := run(t, mod); end.Code != 1+1+2 {
				t.Errorf("ended as %+v, want 4", end)
			}
		}
	})
}

func TestReactorIsInitialised(t *testing.T) {
	m := wb.New()
	exit := m.Import("wasi_snapshot_preview1", "proc_exit", wb.Sig(wb.I32))
	m.Export("_initialize", 0, m.Func(wb.Sig(), nil, wb.I32Const(9), wb.Call(exit)))
	p := prepare(t, m.Bytes())
	if !p.Reactor {
		t.Error("not known as a reactor")
	}
	each(t, func(t *testing.T, e engine.Engine) {
		if end := run(t, load(t, e, p.Bytes)); end.Code != 9 {
			t.Errorf("ended as %+v", end)
		}
	})
}

func TestInvalidModuleIsTheModulesFault(t *testing.T) {
	m := wb.New()
	m.Start(m.Func(wb.Sig(), nil, wb.I32Add)) // nothing on the stack: only an engine notices
	prepared := prepare(t, m.Bytes()).Bytes
	each(t, func(t *testing.T, e engine.Engine) {
		if _, _, err := e.Compile(context.Background(), prepared, t.TempDir()); !errors.Is(err, engine.ErrInvalid) {
			t.Errorf("error %v, want ErrInvalid", err)
		}
	})
}

func TestCompileEndsWithItsContext(t *testing.T) {
	m := wb.New()
	m.Start(m.Func(wb.Sig(), nil))
	prepared := prepare(t, m.Bytes()).Bytes
	each(t, func(t *testing.T, e engine.Engine) {
		if e.Name() == engines.Interpreter {
			t.Skip("the interpreter does not compile")
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, _, err := e.Compile(ctx, prepared, t.TempDir()); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want Canceled", err)
		}
	})
}

func TestUnknownEngine(t *testing.T) {
	if _, err := engines.New("v8", nil); err == nil || !strings.Contains(err.Error(), "wazero") {
		t.Errorf("error %v does not list the engines", err)
	}
}

// TestUnfitCodeIsNeverRun patches the code of a module that exits with 1 by that of one that exits with 2, and by
// damage of every kind: each must be refused, not compiled anew.
func TestUnfitCodeIsNeverRun(t *testing.T) {
	guest := func(code int32) []byte {
		m := wb.New()
		exit := m.Import("wasi_snapshot_preview1", "proc_exit", wb.Sig(wb.I32))
		return exitWith(m, exit, wb.I32Const(code))
	}
	one, two := prepare(t, guest(0x11223344)).Bytes, prepare(t, guest(2)).Bytes
	each(t, func(t *testing.T, e engine.Engine) {
		if e.Name() == engines.Interpreter {
			t.Skip("the interpreter has no code")
		}
		try := func(name string, damage func(t *testing.T, a *engine.Artefact)) {
			t.Run(name, func(t *testing.T) {
				a := compile(t, e, one)
				damage(t, &a)
				m, err := e.Load(context.Background(), a, engine.Limits{})
				if err == nil {
					end, err := m.Run(context.Background(), &wasiabi.Process{})
					t.Fatalf("was loaded and ended as %+v, %v", end, err)
				}
				if !errors.Is(err, engine.ErrCode) {
					t.Errorf("error %v, want ErrCode", err)
				}
				if files, _ := filepath.Glob(filepath.Join(a.Dir, "*", "*")); len(files) > 0 {
					t.Errorf("left files behind: %v", files)
				}
			})
		}
		edit := func(f func(b []byte) []byte) func(*testing.T, *engine.Artefact) {
			return func(t *testing.T, a *engine.Artefact) {
				b, err := os.ReadFile(a.CodePath)
				if err == nil {
					err = os.WriteFile(a.CodePath, f(b), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		try("missing", func(_ *testing.T, a *engine.Artefact) { os.Remove(a.CodePath) })
		try("empty", edit(func([]byte) []byte { return nil }))
		try("not code", edit(func([]byte) []byte { return []byte(strings.Repeat("WAZEVO", 1000)) }))
		try("wasm", edit(func([]byte) []byte { return one }))
		try("cut", edit(func(b []byte) []byte { return b[:len(b)-100] }))
		try("another version", edit(func(b []byte) []byte {
			for i := range b {
				if e.Name() == engine.Wazero && i == 7 || e.Name() == engine.Wasmtime && strings.HasPrefix(string(b[i:]), "39") {
					b[i]++
					return b
				}
			}
			return nil
		}))
		try("a folder", func(t *testing.T, a *engine.Artefact) { a.CodePath = t.TempDir() })
		if e.Name() == engine.Wazero {
			try("a patched constant", edit(func(b []byte) []byte {
				s := strings.Replace(string(b), "\x44\x33\x22\x11", "\x55\x33\x22\x11", 1)
				if s == string(b) {
					t.Fatal("no constant to patch")
				}
				return []byte(s)
			}))
			try("the name of another module", func(_ *testing.T, a *engine.Artefact) { a.CodeName = strings.Repeat("0", 64) })
			try("no name", func(_ *testing.T, a *engine.Artefact) { a.CodeName = "" })
			try("a name that leads away", func(_ *testing.T, a *engine.Artefact) { a.CodeName = "../" + a.CodeName })
			try("another module", func(t *testing.T, a *engine.Artefact) { a.ModulePath = compile(t, e, two).ModulePath })
			try("appended", edit(func(b []byte) []byte { return append(b, 0) }))
			try("too many functions", edit(func(b []byte) []byte {
				binary.LittleEndian.PutUint32(b[7+int(b[6]):], 1<<31)
				return b
			}))
			try("a function outside", edit(func(b []byte) []byte {
				binary.LittleEndian.PutUint64(b[7+int(b[6])+4:], 1<<40)
				return b
			}))
		}
	})
}

func ExampleNew() {
	e, err := engines.New(engine.Wazero, functions())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	fmt.Println(e.Name())
	// Output: wazero
}
