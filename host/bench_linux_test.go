package host

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/exthost/exthost/guests"
	"github.com/exthost/exthost/host/internal/engine"
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
