package engines_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/host/internal/engine/engines"
	"github.com/exthost/exthost/host/internal/module"
	"github.com/exthost/exthost/wasiabi"
)

// buildGuest builds a program of testdata for wasip1 once.
var buildGuest = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "guest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "guest.wasm")
	cmd := exec.Command("go", "build", "-o", out, "./testdata/guest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.New(err.Error() + ": " + string(text))
	}
	return os.ReadFile(out)
})

func guest(t testing.TB) []byte {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a Go program")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command")
	}
	wasm, err := buildGuest()
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// runWASI runs a prepared module with the real host functions and returns what it printed.
func runWASI(t testing.TB, e engine.Engine, prepared []byte, limit int64, args ...string) (string, engine.Ending) {
	t.Helper()
	m, err := e.Load(context.Background(), compile(t, e, prepared), engine.Limits{MemoryBytes: limit})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	return runProcess(t, m, args...)
}

func runProcess(t testing.TB, m engine.Module, args ...string) (string, engine.Ending) {
	t.Helper()
	out, err := os.CreateTemp(t.TempDir(), "stdout")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p, err := wasiabi.NewProcess(context.Background(), wasiabi.Config{Args: append([]string{"guest"}, args...), Stdout: out, Stderr: out})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	end, err := m.Run(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(b), end
}

// TestGoProgramBehavesAsItDidUnprepared compares each engine, with the module prepared and our WASI, with the unchanged
// module on wazero and its WASI.
func TestGoProgramBehavesAsItDidUnprepared(t *testing.T) {
	wasm := guest(t)
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer rt.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	var want bytes.Buffer
	_, err := rt.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithArgs("guest", "a", "b").WithStdout(&want).WithStderr(&want))
	exit := (*sys.ExitError)(nil)
	if !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if !strings.Contains(want.String(), "recovered: assignment to entry in nil map") || exit.ExitCode() != 7 {
		t.Fatalf("the oracle itself ended with %d: %s", exit.ExitCode(), &want)
	}

	const limit = 256 << 20
	p, err := module.Prepare(wasm, module.Options{MemoryBytes: limit, Functions: wasiabi.Functions()})
	if err != nil {
		t.Fatal(err)
	}
	if !p.GrowCounted {
		t.Error("the program's memory.grow is not counted")
	}
	for _, name := range names() {
		t.Run(name, func(t *testing.T) {
			e := newWASI(t, name)
			out, end := runWASI(t, e, p.Bytes, limit, "a", "b")
			if out != want.String() || end.Kind != engine.Exit || end.Code != 7 || end.GrowRefused {
				t.Errorf("ended as %+v with %q, want %q", end, out, &want)
			}
			if end.MemoryBytes < 24<<20 || end.MemoryBytes > limit {
				t.Errorf("memory at the end: %d", end.MemoryBytes)
			}
		})
	}
}

func newWASI(t testing.TB, name string) engine.Engine {
	t.Helper()
	e, err := engines.New(name, wasiabi.Functions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// TestGoProgramOutOfMemoryIsToldFromItsExitCode: Go's runtime exits with 2 when memory.grow fails, as it does when it
// panics.
func TestGoProgramOutOfMemoryIsToldFromItsExitCode(t *testing.T) {
	wasm := guest(t)
	const limit = 16 << 20
	p, err := module.Prepare(wasm, module.Options{MemoryBytes: limit, Functions: wasiabi.Functions()})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names() {
		t.Run(name, func(t *testing.T) {
			out, end := runWASI(t, newWASI(t, name), p.Bytes, limit)
			if end.Kind != engine.Exit || end.Code != 2 || !end.GrowRefused || !strings.Contains(out, "out of memory") {
				t.Errorf("ended as %+v with %q", end, out)
			}
			if end.MemoryBytes > limit {
				t.Errorf("memory at the end: %d", end.MemoryBytes)
			}
		})
	}
}

func BenchmarkHostCall(b *testing.B) {
	for _, name := range names() {
		b.Run(name, func(b *testing.B) {
			const calls = 100_000
			mod := load(b, newEngine(b, name), prepare(b, callLoop(calls)).Bytes)
			for b.Loop() {
				run(b, mod)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/calls, "ns/call")
		})
	}
}

func BenchmarkInstantiate(b *testing.B) {
	for _, name := range names() {
		b.Run(name+"/tiny", func(b *testing.B) {
			mod := load(b, newEngine(b, name), prepare(b, callLoop(1)).Bytes)
			for b.Loop() {
				run(b, mod)
			}
		})
		b.Run(name+"/go", func(b *testing.B) {
			const limit = 256 << 20
			p, err := module.Prepare(bigGuest(b), module.Options{MemoryBytes: limit, Functions: wasiabi.Functions()})
			if err != nil {
				b.Fatal(err)
			}
			e := newWASI(b, name)
			mod, err := e.Load(context.Background(), compile(b, e, p.Bytes), engine.Limits{MemoryBytes: limit})
			if err != nil {
				b.Fatal(err)
			}
			defer mod.Close()
			for b.Loop() {
				runProcess(b, mod)
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, name := range names() {
		if name == engines.Interpreter {
			continue
		}
		e := newWASI(b, name)
		one := func(b *testing.B, wasm []byte) {
			p, err := module.Prepare(wasm, module.Options{MemoryBytes: 256 << 20, Functions: append(functions(), wasiabi.Functions()...)})
			if err != nil {
				b.Fatal(err)
			}
			a := compile(b, e, p.Bytes)
			for b.Loop() {
				m, err := e.Load(context.Background(), a, engine.Limits{})
				if err != nil {
					b.Fatal(err)
				}
				m.Close()
			}
		}
		b.Run(name+"/tiny", func(b *testing.B) { one(b, exitLoop()) })
		b.Run(name+"/go", func(b *testing.B) { one(b, bigGuest(b)) })
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, name := range names() {
		if name == engines.Interpreter {
			continue
		}
		e := newWASI(b, name)
		b.Run(name+"/go", func(b *testing.B) {
			p, err := module.Prepare(bigGuest(b), module.Options{MemoryBytes: 256 << 20, Functions: wasiabi.Functions()})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, _, err := e.Compile(context.Background(), p.Bytes, b.TempDir()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
