package host

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/exthost/exthost/guests"
	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/host/internal/module/wasmbuild"
)

// bigGuest is a Go program of about 14 MB as a WASI module: Go's own vet.
var bigGuest = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "host-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "vet.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-o", out, "cmd/vet")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
})

type benchGuest struct {
	name string
	open func(b *testing.B, h *Host) *Extension
	job  Job
}

func benchGuests(b *testing.B) []benchGuest {
	script := func(name, content string) func(*testing.B, *Host) *Extension {
		return func(b *testing.B, h *Host) *Extension {
			dir := b.TempDir()
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
				b.Fatal(err)
			}
			e, err := h.Open(b.Context(), dir, nil, Bindings{Name: "bench", Workspace: dir})
			if err != nil {
				b.Fatal(err)
			}
			return e
		}
	}
	big, err := bigGuest()
	if err != nil {
		b.Fatal(err)
	}
	out := []benchGuest{
		{"tiny", script("m.wasm", string(exitModule(0))), Job{Script: "m.wasm"}},
		{"go14MB", script("m.wasm", string(big)), Job{Script: "m.wasm", Args: []string{"-V=full"}}},
	}
	if r, ok := guests.Lookup("python"); ok && r.Present() {
		out = append(out, benchGuest{"python", script("m.py", "print(1)\n"), Job{Script: "m.py"}})
	}
	return out
}

// BenchmarkRunWarm is a run in a worker that has run the guest before.
func BenchmarkRunWarm(b *testing.B) {
	for _, i := range engine.All() {
		for _, g := range benchGuests(b) {
			b.Run(i.Name+"/"+g.name, func(b *testing.B) {
				h := testHost(b, Config{Engine: i.Name, Cache: benchCache(b)})
				e := g.open(b, h)
				benchRun(b, e, g.job)
				for b.Loop() {
					benchRun(b, e, g.job)
				}
			})
		}
	}
}

// BenchmarkRunCold is all that a command line does after its own start: a host, the extension's copy, a worker, compiled
// code from the cache, and the run.
func BenchmarkRunCold(b *testing.B) {
	for _, i := range engine.All() {
		for _, g := range benchGuests(b) {
			b.Run(i.Name+"/"+g.name, func(b *testing.B) {
				c := Config{Engine: i.Name, Cache: benchCache(b), OneRun: true, Spares: 1}
				run := func() {
					h, err := New(c)
					if err != nil {
						b.Fatal(err)
					}
					benchRun(b, g.open(b, h), g.job)
					if err := h.Close(); err != nil {
						b.Fatal(err)
					}
				}
				run()
				for b.Loop() {
					run()
				}
			})
		}
	}
}

// BenchmarkKill is the time from the end of a run's context to the return of Run, with the worker gone. It is to stay
// below 100 ms.
func BenchmarkKill(b *testing.B) {
	spin := []byte{0x03, 0x40, 0x0c, 0x00, 0x0b} // loop; br 0; end
	for _, i := range engine.All() {
		b.Run(i.Name, func(b *testing.B) {
			h := testHost(b, Config{Engine: i.Name, Cache: benchCache(b)})
			m := wasmbuild.New()
			m.Memory(1, 1)
			m.Start(m.Func(wasmbuild.Sig(), nil, spin))
			path := filepath.Join(b.TempDir(), "spin.wasm")
			if err := os.WriteFile(path, m.Bytes(), 0o644); err != nil {
				b.Fatal(err)
			}
			e, err := h.Open(context.Background(), path, nil, Bindings{})
			if err != nil {
				b.Fatal(err)
			}
			var late time.Duration
			n := 0
			for b.Loop() {
				ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
				if n == 0 {
					// the first compiles
					cancel()
					ctx, cancel = context.WithTimeout(context.Background(), 2*time.Second)
				}
				deadline, _ := ctx.Deadline()
				if _, err := e.Run(ctx, Job{Env: []string{}}); err == nil {
					b.Fatal("an endless loop ended")
				}
				late += time.Since(deadline)
				n++
				cancel()
			}
			b.ReportMetric(float64(late.Microseconds())/1000/float64(n), "ms-late")
		})
	}
}

func benchRun(b *testing.B, e *Extension, job Job) {
	b.Helper()
	job.Env, job.Stdout = []string{}, io.Discard
	r, err := e.Run(context.Background(), job)
	if err != nil {
		b.Fatal(err)
	}
	if r.Outcome != Exit || r.ExitCode != 0 {
		b.Fatalf("%+v", r)
	}
}

// benchCache is one folder for all runs of the benchmarks, so that each module is compiled once.
func benchCache(b *testing.B) string {
	b.Helper()
	if dir := os.Getenv("EXTHOST_TEST_CACHE"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		b.Skip("no cache folder")
	}
	return filepath.Join(dir, "exthost-bench")
}
