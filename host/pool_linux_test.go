package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/exthost/exthost/guests"
	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/policy"
)

// exitModule is a WebAssembly module that calls proc_exit with a code below 64.
func exitModule(code byte) []byte {
	section := func(id byte, body ...byte) []byte { return append([]byte{id, byte(len(body))}, body...) }
	name := func(s string) []byte { return append([]byte{byte(len(s))}, s...) }
	return bytes.Join([][]byte{
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, 2, 0x60, 1, 0x7f, 0, 0x60, 0, 0), // types: (i32) -> (), () -> ()
		section(2, append(append(append([]byte{1}, name("wasi_snapshot_preview1")...), name("proc_exit")...), 0, 0)...),
		section(3, 1, 1),    // one function of type 1
		section(5, 1, 0, 1), // one memory of one page
		section(7, append(append(append([]byte{2}, name("memory")...), 2, 0), append(name("_start"), 0, 1)...)...),
		section(10, 1, 6, 0, 0x41, code, 0x10, 0, 0x0b), // i32.const code; call 0; end
	}, nil)
}

func testHost(t testing.TB, c Config) *Host {
	t.Helper()
	if c.Cache == "" {
		c.Cache = filepath.Join(t.TempDir(), "cache")
	}
	h, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func testOpen(t testing.TB, h *Host, module []byte, text, workspace string) *Extension {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "m.wasm"), module, 0o644); err != nil {
		t.Fatal(err)
	}
	var p *policy.Policy
	if text != "" {
		var err error
		if p, err = policy.Parse("p.yaml", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	e, err := h.Open(t.Context(), dir, p, Bindings{Name: "m", Workspace: workspace})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func wantExit(t testing.TB, e *Extension, job Job, code int) {
	t.Helper()
	job.Script, job.Env = "m.wasm", []string{}
	r, err := e.Run(context.Background(), job)
	if err != nil {
		t.Fatal(err)
	}
	if r.Outcome != Exit || r.ExitCode != code {
		t.Fatalf("got %+v, want exit code %d", r, code)
	}
}

// idle is the worker that waits, if just one does.
func idle(t *testing.T, h *Host) *bound {
	t.Helper()
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	if len(h.pool.idle) != 1 {
		t.Fatalf("%d idle workers, want 1", len(h.pool.idle))
	}
	return h.pool.idle[0]
}

func TestAWorkerServesOneBinding(t *testing.T) {
	const files = "version: 1\nextension: m\nfiles: {/workspace: {host: \"${workspace}\", access: read}}\n"
	base := t.TempDir()
	ws := filepath.Join(base, "ws")
	if err := os.Mkdir(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, i := range engine.All() {
		t.Run(i.Name, func(t *testing.T) {
			h := testHost(t, Config{Engine: i.Name})
			e := testOpen(t, h, exitModule(3), files, ws)
			wantExit(t, e, Job{}, 3)
			first := idle(t, h)
			wantExit(t, e, Job{}, 3)
			if idle(t, h) != first {
				t.Error("the second run did not use the first one's worker")
			}
			// Other limits of the engine are another binding. A shorter time is not: the host keeps that.
			wantExit(t, e, Job{Time: time.Second}, 3)
			wantExit(t, e, Job{Memory: 128 << 20}, 3)
			h.pool.mu.Lock()
			n := len(h.pool.idle)
			h.pool.mu.Unlock()
			if n < 2 {
				t.Errorf("%d idle workers: one of another binding was used", n)
			}
			h.pool.drop(e)
			wantExit(t, e, Job{}, 3)
			before := idle(t, h)
			// The same name for another folder is another root.
			if err := errors.Join(os.Rename(ws, ws+"-old"), os.Mkdir(ws, 0o700)); err != nil {
				t.Fatal(err)
			}
			wantExit(t, e, Job{}, 3)
			if take := h.pool.take(e, before.key); take != before {
				t.Error("a worker was used whose root is another folder")
			} else {
				h.pool.put(take)
			}
			if err := errors.Join(os.Remove(ws), os.Rename(ws+"-old", ws)); err != nil {
				t.Fatal(err)
			}
			// Two extensions of the same content do not share one either.
			other := testOpen(t, h, exitModule(3), files, ws)
			wantExit(t, other, Job{}, 3)
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			h.pool.mu.Lock()
			defer h.pool.mu.Unlock()
			if len(h.pool.idle) != 0 {
				t.Errorf("%d workers outlived their extension", len(h.pool.idle))
			}
		})
	}
}

func TestRunsAreBoundedByWorkersAndAllGetTheirTurn(t *testing.T) {
	h := testHost(t, Config{Workers: 2, Spares: 1})
	var all []*Extension
	for i := range 3 {
		e := testOpen(t, h, exitModule(byte(i)), "", t.TempDir())
		all = append(all, e)
	}
	var wg sync.WaitGroup
	errs := make(chan error, 100)
	for n := range 24 {
		wg.Go(func() {
			i := n % len(all)
			r, err := all[i].Run(context.Background(), Job{Script: "m.wasm", Env: []string{}})
			switch {
			case err != nil:
				errs <- err
			case r.Outcome != Exit || r.ExitCode != i:
				errs <- fmt.Errorf("extension %d: %+v", i, r)
			}
			if n := len(h.pool.slots); n > 2 {
				errs <- fmt.Errorf("%d workers at once", n)
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for range 2 {
		if err := h.pool.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer h.pool.release()
	}
	if _, err := all[0].Run(ctx, Job{Script: "m.wasm"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a run without a free worker: %v", err)
	}
}

// TestTamperedCodeIsNeverExecuted patches what the cache holds in ways that keep it valid for an engine.
func TestTamperedCodeIsNeverExecuted(t *testing.T) {
	for _, i := range engine.All() {
		for _, oneRun := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, one run %v", i.Name, oneRun), func(t *testing.T) {
				cache := filepath.Join(t.TempDir(), "cache")
				c := Config{Engine: i.Name, Cache: cache, OneRun: oneRun}
				h := testHost(t, c)
				wantExit(t, testOpen(t, h, exitModule(7), "", t.TempDir()), Job{}, 7)
				wantExit(t, testOpen(t, h, exitModule(9), "", t.TempDir()), Job{}, 9)
				codes, err := filepath.Glob(filepath.Join(cache, "modules", "*", "code"))
				if err != nil || len(codes) != 2 {
					t.Fatalf("code in the cache: %v, %v", codes, err)
				}
				// Each gets the other's code, which an engine would run: only the cache can tell.
				var content [2][]byte
				for n, p := range codes {
					if content[n], err = os.ReadFile(p); err != nil {
						t.Fatal(err)
					}
				}
				for n, p := range codes {
					if err := errors.Join(os.Chmod(p, 0o600), os.WriteFile(p, content[1-n], 0o600), os.Chmod(p, 0o400)); err != nil {
						t.Fatal(err)
					}
				}
				t.Run("by a host that loaded it before", func(t *testing.T) {
					wantExit(t, testOpen(t, h, exitModule(7), "", t.TempDir()), Job{}, 7)
				})
				t.Run("by a host that comes later", func(t *testing.T) {
					h := testHost(t, c)
					wantExit(t, testOpen(t, h, exitModule(7), "", t.TempDir()), Job{}, 7)
					wantExit(t, testOpen(t, h, exitModule(9), "", t.TempDir()), Job{}, 9)
				})
			})
		}
	}
}

func TestWorkspaceIsReadThroughADescriptor(t *testing.T) {
	h := testHost(t, Config{})
	dir := t.TempDir()
	for _, n := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, n), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("a", link); err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("p.yaml", fmt.Appendf(nil, "version: 1\nextension: m\nfiles: {/x: {host: %q, access: write}}\n", link))
	if err != nil {
		t.Fatal(err)
	}
	e, err := h.Open(t.Context(), mustFile(t, exitModule(0)), p, Bindings{Name: "m", Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var keys []string
	for _, target := range []string{"a", "b", "a"} {
		if err := errors.Join(os.Remove(link), os.Symlink(target, link)); err != nil {
			t.Fatal(err)
		}
		b, err := e.mint(Job{}, e.scripts[0].runtime, guests.Unpacked{})
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, b.key)
		b.Close()
	}
	if keys[0] != keys[2] || keys[0] == keys[1] {
		t.Errorf("the binding does not follow what the link leads to: %v", keys)
	}
}

func mustFile(t *testing.T, module []byte) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "m.wasm")
	if err := os.WriteFile(p, module, 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}
