package worker

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/host/internal/engine/engines"
	wb "github.com/exthost/exthost/host/internal/module/wasmbuild"
	"github.com/exthost/exthost/wasiabi"
)

// The tests here use the engines of this binary. testDeps, the dependencies of every worker of this test binary, know
// the raw engine beside them.
func testDeps() Deps {
	prepare := Prepare(wasiabi.Functions())
	return Deps{
		Engine: func(name string) (engine.Engine, error) {
			if name == "raw" {
				return rawEngine{}, nil
			}
			return engines.New(name, wasiabi.Functions())
		},
		Prepare: func(wasm []byte, l engine.Limits) ([]byte, error) {
			if s := string(wasm); !strings.HasPrefix(s, "\x00asm") && !strings.HasPrefix(s, "invalid") {
				return wasm, nil // of the raw engine
			}
			return prepare(wasm, l)
		},
	}
}

func engineNames() (names []string) {
	for _, i := range engine.All() {
		names = append(names, i.Name)
	}
	return names
}

// goGuest is testdata/guest built for wasip1, once.
var goGuest = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "guest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "guest.wasm")
	cmd := exec.Command("go", "build", "-o", out, "./testdata/guest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, b)
	}
	return os.ReadFile(out)
})

// compiled keeps what was compiled before, for the Go guest takes seconds.
var compiled sync.Map

func compile(t testing.TB, engineName string, wasm []byte, l Limits) *Compiled {
	t.Helper()
	key := fmt.Sprintf("%s %d %x", engineName, l.Memory, sha256.Sum256(wasm))
	if c, ok := compiled.Load(key); ok {
		for _, f := range []*os.File{c.(*Compiled).Prepared, c.(*Compiled).Code} {
			if _, err := f.Seek(0, io.SeekStart); err != nil {
				t.Fatal(err)
			}
		}
		again := *c.(*Compiled)
		return &again
	}
	w := start(t, Options{Engine: engineName})
	if _, err := w.Bind(context.Background(), Bind{Role: RoleCompile, Engine: engineName, Scratch: folder(t), Limits: l}); err != nil {
		t.Fatal(err)
	}
	c, err := w.Compile(context.Background(), CompileJob{Module: memfile(t, string(wasm)), Time: time.Minute})
	if err != nil {
		t.Fatalf("compile: %v\n%s", err, detail(err))
	}
	compiled.Store(key, c)
	return c
}

// do runs a compiled module and returns what it wrote.
func do(t testing.TB, w *Worker, c *Compiled, change func(*RunJob)) (*Result, string, error) {
	t.Helper()
	out, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	j := job(t, "")
	j.Module, j.Code, j.CodeName = c.Prepared, c.Code, c.CodeName
	j.Stdout, j.Stderr = out, out
	j.Args, j.Dir = []string{"guest"}, "/"
	if change != nil {
		change(&j)
	}
	r, err := w.Run(context.Background(), j)
	text, readErr := os.ReadFile(out.Name())
	if readErr != nil {
		t.Fatal(readErr)
	}
	return r, string(text), err
}

// TestGuestsRunConfined is also what the list of system calls was measured with: take one away that is needed and a case
// fails.
func TestGuestsRunConfined(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a guest")
	}
	wasm, err := goGuest()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range engineNames() {
		t.Run(name, func(t *testing.T) {
			c := compile(t, name, wasm, Limits{})
			dir, mounts := playground(t)
			mounts = append(mounts, Mount{Mount: wasiabi.Mount{Guest: "/tmp", Access: wasiabi.ReadWrite, Scratch: true}, Sub: "tmp"})
			w := start(t, Options{Engine: name})
			if b, err := w.Bind(context.Background(), Bind{Role: RoleRun, Engine: name, Scratch: folder(t), Mounts: mounts}); err != nil || len(b.Walls) != 2 {
				t.Fatalf("%+v, %v", b, err)
			}
			for _, tt := range []struct {
				name string
				args []string
				want string
				code uint32
			}{
				{"echo", []string{"echo", "a", "b c"}, "a b c\n", 0},
				{"environment", []string{"env"}, "A=1 B=2 PWD=/\n", 0},
				{"stdin", []string{"copy"}, "input", 0},
				{"list", []string{"ls", "/r"}, "d d/\nd d2/\n- f\n", 0},
				{"read", []string{"cat", "/r/f"}, "content", 0},
				{"all file calls in scratch", []string{"files", "/tmp"}, "hello 50 b  /b /s /x /x/y /x/y/c\n", 0},
				{"all file calls in a write root", []string{"files", "/w/d2"}, "hello 50 b  /b /s /x /x/y /x/y/c\n", 0},
				{"all file calls in an overlay", []string{"files", "/o/d2"}, "hello 50 b  /b /s /x /x/y /x/y/c\n", 0},
				{"write into a read root", []string{"write", "/r/new", "x"}, "open /r/new: Read-only file system\n", 9},
				{"garbage", []string{"collect"}, "collected 99\n", 0},
				{"goroutines", []string{"goroutines"}, "45\n", 0},
				{"nap", []string{"nap"}, "awake\n", 0},
				{"exit", []string{"exit", "a", "b"}, "", 5},
			} {
				t.Run(tt.name, func(t *testing.T) {
					var events []wasiabi.Event
					r, out, err := do(t, w, c, func(j *RunJob) {
						j.Args = append(j.Args, tt.args...)
						j.Env = []string{"A=1", "B=2"}
						j.Stdin = memfile(t, "input")
						j.Events = func(e wasiabi.Event) { events = append(events, e) }
					})
					if err != nil {
						t.Fatalf("%v\n%s", err, detail(err))
					}
					if out != tt.want || r.Fault != "" || r.Ending.Kind != engine.Exit || r.Ending.Code != tt.code {
						t.Errorf("output %q, result %+v, events %+v", out, r, events)
					}
				})
			}
			t.Run("removal in an overlay", func(t *testing.T) {
				r, out, err := do(t, w, c, func(j *RunJob) { j.Args = append(j.Args, "rm", "/o/f") })
				if err != nil || out != "" || !slices.Equal(r.Removed, []string{"/o/f"}) {
					t.Errorf("%+v, %q, %v", r, out, err)
				}
				if _, err := os.Stat(dir + "/o/f"); err != nil {
					t.Error(err)
				}
			})
			t.Run("panic", func(t *testing.T) {
				r, out, err := do(t, w, c, func(j *RunJob) { j.Args = append(j.Args, "panic") })
				if err != nil || r.Ending.Code != 2 || !strings.Contains(out, "panic: boom") {
					t.Errorf("%+v, %q, %v", r, out, err)
				}
			})
		})
	}
}

// TestTrapsAreEndsOfAGuestNotOfItsWorker: signal handlers, guard pages and unwinding work behind the walls.
func TestTrapsAreEndsOfAGuestNotOfItsWorker(t *testing.T) {
	trap := func(code ...[]byte) []byte {
		m := wb.New()
		m.Memory(1, 1)
		m.Table(2, 2)
		m.Start(m.Func(wb.Sig(), nil, code...))
		return m.Bytes()
	}
	endless := func() []byte {
		m := wb.New()
		m.Memory(1, 1)
		m.Start(m.Func(wb.Sig(), nil, wb.Call(0)))
		return m.Bytes()
	}()
	for _, name := range engineNames() {
		t.Run(name, func(t *testing.T) {
			w := start(t, Options{Engine: name})
			if _, err := w.Bind(context.Background(), Bind{Role: RoleRun, Engine: name, Scratch: folder(t)}); err != nil {
				t.Fatal(err)
			}
			for _, tt := range []struct {
				want string
				wasm []byte
			}{
				{engine.TrapUnreachable, trap(wb.Unreachable)},
				{engine.TrapDivideByZero, trap(wb.I32Const(1), wb.I32Const(0), wb.I32DivS, wb.Drop)},
				{engine.TrapMemory, trap(wb.I32Const(1<<20), wb.I32Load(0), wb.Drop)},
				{engine.TrapTable, trap(wb.I32Const(1), wb.CallIndirect(0))},
				{engine.TrapStackOverflow, endless},
			} {
				t.Run(tt.want, func(t *testing.T) {
					r, _, err := do(t, w, compile(t, name, tt.wasm, Limits{}), nil)
					if err != nil {
						t.Fatalf("%v\n%s", err, detail(err))
					}
					if r.Ending.Kind != engine.Trap || r.Ending.Trap != tt.want {
						t.Errorf("%+v", r)
					}
				})
			}
		})
	}
}

func TestAGuestIsKilledAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a guest")
	}
	wasm, err := goGuest()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range engineNames() {
		c := compile(t, name, wasm, Limits{})
		for _, guest := range []string{"spin", "sleep", "copy"} {
			t.Run(name+" in "+guest, func(t *testing.T) {
				for _, how := range []string{"deadline", "cancel"} {
					w := start(t, Options{Engine: name})
					if _, err := w.Bind(context.Background(), Bind{Role: RoleRun, Engine: name, Scratch: folder(t)}); err != nil {
						t.Fatal(err)
					}
					in, out, err := os.Pipe() // never written to
					if err != nil {
						t.Fatal(err)
					}
					defer in.Close()
					defer out.Close()
					j := job(t, "")
					j.Module, j.Code, j.CodeName, j.Stdin = c.Prepared, c.Code, c.CodeName, in
					j.Args = []string{"guest", guest}
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					want, after := ErrTime, 2*time.Second
					if j.Time = after; how == "cancel" {
						want = context.Canceled
						j.Time = time.Minute
						time.AfterFunc(after, cancel)
					}
					begin := time.Now()
					r, err := w.Run(ctx, j)
					took := time.Since(begin) - after
					t.Logf("%s: %v over", how, took)
					if !errors.Is(err, want) {
						t.Errorf("%s: %+v, %v", how, r, err)
					}
					// 100 ms is the aim on a quiet machine; other tests may hold both processors.
					if took > 400*time.Millisecond {
						t.Errorf("%s: ended %v late", how, took)
					}
					if !gone(w.PID(), time.Millisecond) {
						t.Errorf("%s: the worker is alive", how)
					}
				}
			})
		}
	}
}

func TestMemoryIsLimited(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a guest")
	}
	wasm, err := goGuest()
	if err != nil {
		t.Fatal(err)
	}
	limits := Limits{Memory: 64 << 20}
	for _, name := range engineNames() {
		t.Run(name, func(t *testing.T) {
			c := compile(t, name, wasm, limits)
			w := start(t, Options{Engine: name})
			if _, err := w.Bind(context.Background(), Bind{Role: RoleRun, Engine: name, Scratch: folder(t), Limits: limits}); err != nil {
				t.Fatal(err)
			}
			r, out, err := do(t, w, c, func(j *RunJob) { j.Args = append(j.Args, "hog") })
			if err != nil {
				t.Fatalf("%v\n%s", err, detail(err))
			}
			if !r.Ending.GrowRefused || r.Ending.MemoryBytes > limits.Memory || !strings.Contains(out, "out of memory") {
				t.Errorf("%+v, %.200q", r, out)
			}
			t.Logf("resident %d MiB at most", r.MaxRSS>>20)
		})
	}
}

func TestCompiledCodeIsSealed(t *testing.T) {
	m := wb.New()
	m.Memory(1, 1)
	m.Start(m.Func(wb.Sig(), nil))
	for _, name := range engineNames() {
		c := compile(t, name, m.Bytes(), Limits{})
		for _, f := range []*os.File{c.Prepared, c.Code} {
			if _, err := f.WriteAt([]byte("x"), 0); err == nil {
				t.Errorf("%s: %s can be written", name, f.Name())
			}
			b, err := io.ReadAll(f)
			if err != nil || len(b) == 0 {
				t.Errorf("%s: %s: %d bytes, %v", name, f.Name(), len(b), err)
			}
		}
	}
}

// TestCodeInACacheFileRuns: the file is named at the bind, and only it can be opened again.
func TestCodeInACacheFileRuns(t *testing.T) {
	m := wb.New()
	m.Memory(1, 1)
	m.Start(m.Func(wb.Sig(), nil))
	for _, name := range engineNames() {
		t.Run(name, func(t *testing.T) {
			c := compile(t, name, m.Bytes(), Limits{})
			dir := t.TempDir()
			store := func(f *os.File, name string) *os.File {
				b, err := io.ReadAll(f)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(dir+"/"+name, b, 0o400); err != nil {
					t.Fatal(err)
				}
				out, err := os.Open(dir + "/" + name)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { out.Close() })
				return out
			}
			module, code := store(c.Prepared, "module"), store(c.Code, "code")
			for _, named := range []bool{true, false} {
				w := start(t, Options{Engine: name})
				b := Bind{Role: RoleRun, Engine: name, Scratch: folder(t)}
				if named {
					b.Read = []*os.File{module, code}
				}
				if _, err := w.Bind(context.Background(), b); err != nil {
					t.Fatal(err)
				}
				r, _, err := do(t, w, &Compiled{Prepared: module, Code: code, CodeName: c.CodeName}, nil)
				var refused *JobError
				switch {
				case named && (err != nil || r.Fault != "" || r.Ending.Kind != engine.Exit):
					t.Errorf("named: %+v, %v", r, err)
				case !named && !errors.As(err, &refused):
					t.Errorf("not named: %+v, %v", r, err)
				}
			}
		})
	}
}

func TestCodeOfAnotherModuleIsRefused(t *testing.T) {
	m, other := wb.New(), wb.New()
	m.Start(m.Func(wb.Sig(), nil))
	other.Start(other.Func(wb.Sig(), nil, wb.Nop))
	other.Func(wb.Sig(), nil)
	for _, name := range engineNames() {
		c := compile(t, name, m.Bytes(), Limits{})
		c.Code = memfile(t, "\x7fELF nonsense")
		w := start(t, Options{Engine: name})
		if _, err := w.Bind(context.Background(), Bind{Role: RoleRun, Engine: name, Scratch: folder(t)}); err != nil {
			t.Fatal(err)
		}
		_, _, err := do(t, w, c, nil)
		var refused *JobError
		if !errors.As(err, &refused) || refused.Kind != kindCode {
			t.Errorf("%s: %v", name, err)
		}
		// The worker lives on.
		if r, _, err := do(t, w, compile(t, name, other.Bytes(), Limits{}), nil); err != nil || r.Ending.Kind != engine.Exit {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}
