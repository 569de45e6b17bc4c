package worker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/wasiabi"
)

// A liar is a worker that a guest has taken over altogether: it answers honestly up to a point and then sends what it
// likes. It is this test binary under another name, which says what the lie is.

// lie is the main of a liar.
func lie(name string) {
	say := func(h header, m message) {
		b, err := encode(m)
		if err != nil {
			panic(err)
		}
		unix.Sendmsg(socketFD, appendFrame(nil, h, b), nil, nil, 0)
	}
	hear := func() packet {
		p, err := receivePacket(socketFD)
		if err != nil {
			os.Exit(0)
		}
		return p
	}
	p := hear()
	var hello msgHello
	if err := decode(p.payload, &hello); err != nil {
		panic(err)
	}
	ok := msgHelloOK{Version: protocolVersion, Nonce: hello.Nonce}
	switch name {
	case "silent":
		time.Sleep(time.Hour)
	case "quits":
		os.Exit(0)
	case "nonce":
		ok.Nonce = make([]byte, 32)
	case "version":
		ok.Version++
	case "hello-garbage":
		unix.Sendmsg(socketFD, []byte("HTTP/1.1 200 OK\r\n\r\n"), nil, nil, 0)
		time.Sleep(time.Hour)
	}
	say(header{typ: frameHelloOK, tag: p.tag}, &ok)
	p = hear()
	good := msgBound{Walls: []string{"landlock(abi=7)", "seccomp"}, Version: "liar"}
	switch name {
	case "no-walls":
		good.Walls = nil
	case "made-up-wall":
		good.Walls = append(good.Walls, "moat\x1b[2J")
	case "bind-result":
		say(header{typ: frameResult, tag: p.tag}, &msgResult{Ending: engine.Ending{Kind: engine.Exit}})
	}
	say(header{typ: frameBound, tag: p.tag}, &good)
	done := msgResult{Ending: engine.Ending{Kind: engine.Exit, Code: 3}}
	if name == "early" {
		say(header{typ: frameResult, tag: p.tag}, &done)
	}
	p = hear()
	result := header{typ: frameResult, tag: p.tag}
	switch name {
	case "unknown-type":
		say(header{typ: frameTypeEnd + 5, tag: p.tag}, &done)
	case "own-tag":
		say(header{typ: frameResult, tag: p.tag + 1}, &done)
	case "fragment":
		say(header{typ: frameResult, tag: p.tag, more: true}, &done)
	case "hello-again":
		say(header{typ: frameHelloOK, tag: p.tag}, &ok)
	case "broker-frame":
		say(header{typ: frameRun, tag: p.tag}, &msgRun{})
	case "oversize":
		unix.SetsockoptInt(socketFD, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<20)
		unix.Sendmsg(socketFD, appendFrame(nil, result, make([]byte, 150<<10)), nil, nil, 0)
	case "descriptors":
		b, _ := encode(&done)
		unix.Sendmsg(socketFD, appendFrame(nil, result, b), unix.UnixRights(0, 1, 2), nil, 0)
	case "long-list":
		unix.Sendmsg(socketFD, appendFrame(nil, header{typ: frameEvents, tag: p.tag}, binary.LittleEndian.AppendUint32(nil, 4096)), nil, nil, 0)
	case "trailing":
		b, _ := encode(&done)
		unix.Sendmsg(socketFD, appendFrame(nil, result, append(b, 0)), nil, nil, 0)
	case "no-kind":
		say(result, &msgResult{})
	case "no-events":
		say(header{typ: frameEvents, tag: p.tag}, &msgEvents{})
	case "events-after-removed":
		say(header{typ: frameRemoved, tag: p.tag}, &msgRemoved{Paths: []string{"/o/f"}})
		say(header{typ: frameEvents, tag: p.tag}, &msgEvents{Events: make([]wasiabi.Event, 1)})
	case "refuses-late":
		say(header{typ: frameEvents, tag: p.tag}, &msgEvents{Events: make([]wasiabi.Event, 1)})
		say(header{typ: frameRefused, tag: p.tag}, &msgRefused{Detail: "no"})
	case "floods-events":
		for {
			say(header{typ: frameEvents, tag: p.tag}, &msgEvents{Events: []wasiabi.Event{{Op: "open", Capability: strings.Repeat("x", maxCapability)}}})
		}
	case "floods-removed":
		for {
			say(header{typ: frameRemoved, tag: p.tag}, &msgRemoved{Paths: []string{strings.Repeat("/x", 2000), strings.Repeat("/y", 2000)}})
		}
	case "floods-short-removed":
		for {
			say(header{typ: frameRemoved, tag: p.tag}, &msgRemoved{Paths: make([]string, 4096)})
		}
	case "floods-stderr":
		for range 10_000 {
			if _, err := unix.Write(2, make([]byte, 64<<10)); err != nil {
				break
			}
		}
	case "gabby":
		done.Ending.Detail = strings.Repeat("\x1b]0;title\a\n", 500)
		done.Fault = strings.Repeat("\u202e", 500)
	case "twice":
		say(result, &done)
		p2 := result
		say(p2, &done)
		p = hear()
		result.tag = p.tag
	case "mute":
		time.Sleep(time.Hour)
	}
	say(result, &done)
	hear()
}

// liar puts the test binary under a name.
func liar(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "liar-"+name)
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if os.Link(self, path) == nil {
		return path
	}
	in, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAProgramThatIsNoWorkerIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name, exe string
		want      error
	}{
		{"ends at once", "/bin/true", ErrNoWorkerMain},
		{"says something else", liar(t, "hello-garbage"), ErrNoWorkerMain},
		{"ends after the question", liar(t, "quits"), ErrNoWorkerMain},
		{"does not know the nonce", liar(t, "nonce"), ErrNoWorkerMain},
		{"speaks another version", liar(t, "version"), ErrNoWorkerMain},
		{"never answers", liar(t, "silent"), ErrNoWorkerMain},
		{"does not exist", "/nonexistent/worker", os.ErrNotExist},
		{"is a folder", "/", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			w, err := Start(context.Background(), Options{Exe: tt.exe})
			if err == nil {
				w.Kill()
				t.Fatal("started")
			}
			if tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("%v", err)
			}
			if took := time.Since(begin); took > handshakeTime+2*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := Start(ctx, Options{Exe: liar(t, "silent")}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
}

// TestALyingWorkerIsKilledAndCostsLittle: the stated bound is 8 MiB of the broker's memory for one worker.
func TestALyingWorkerIsKilledAndCostsLittle(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	for _, tt := range []struct{ name, want string }{
		{"bind-result", "protocol"},
		{"early", "protocol"},
		{"unknown-type", "protocol"},
		{"own-tag", "protocol"},
		{"fragment", "protocol"},
		{"hello-again", "protocol"},
		{"broker-frame", "protocol"},
		{"oversize", "protocol"},
		{"descriptors", "protocol"},
		{"long-list", "protocol"},
		{"trailing", "protocol"},
		{"no-kind", "protocol"},
		{"no-events", "protocol"},
		{"events-after-removed", "protocol"},
		{"refuses-late", "protocol"},
		{"floods-events", "protocol"},
		{"floods-removed", "protocol"},
		{"floods-short-removed", "protocol"},
		{"floods-stderr", ""},
		{"gabby", ""},
		{"mute", "time"},
		{"twice", "second"},
		{"no-walls", "wall"},
		{"made-up-wall", "wall"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			exe := liar(t, tt.name)
			fds := len(openFiles(t))
			runtime.GC()
			var base, now runtime.MemStats
			runtime.ReadMemStats(&base)
			peak := make(chan uint64)
			stop := make(chan struct{})
			go func() {
				var most uint64
				for {
					select {
					case <-stop:
						peak <- most
						return
					case <-time.After(2 * time.Millisecond):
						runtime.ReadMemStats(&now)
						most = max(most, now.HeapAlloc)
					}
				}
			}()

			w := start(t, Options{Exe: exe})
			_, err := w.Bind(context.Background(), Bind{Role: RoleRun, Engine: "raw", Scratch: folder(t)})
			var result *Result
			j := job(t, "echo")
			if j.Time = 10 * time.Second; tt.want == "time" {
				j.Time = 300 * time.Millisecond
			}
			if err == nil {
				result, err = w.Run(context.Background(), j)
			}
			if tt.want == "second" && err == nil {
				_, err = w.Run(context.Background(), job(t, "echo"))
			}
			close(stop)
			if grew := int64(<-peak) - int64(base.HeapAlloc); grew > 8<<20 {
				t.Errorf("the heap grew by %d KiB", grew>>10)
			}

			var crash *CrashError
			var wall *WallError
			switch tt.want {
			case "":
				if err != nil || result.Ending.Code != 3 {
					t.Fatalf("%+v, %v", result, err)
				}
				if strings.ContainsAny(result.Ending.Detail+result.Fault, "\x1b\a\u202e") || len(result.Ending.Detail) > 4096 {
					t.Errorf("%+q", fmt.Sprint(*result))
				}
			case "protocol", "second":
				if !errors.As(err, &crash) || crash.Kind != "protocol" || !errors.Is(err, ErrWorker) || crash.Detail == "" {
					t.Errorf("%v %s", err, detail(err))
				}
			case "time":
				if !errors.Is(err, ErrTime) {
					t.Errorf("%v", err)
				}
			case "wall":
				if !errors.As(err, &wall) || strings.Contains(err.Error(), "\x1b") {
					t.Errorf("%v", err)
				}
			}
			if err != nil && !gone(w.PID(), time.Millisecond) {
				t.Error("it is alive")
			}
			w.Kill()
			// The folder of the bind is the test's own.
			if after := openFiles(t); len(after) > fds+1 {
				t.Errorf("%d descriptors before, now %q", fds, after)
			}
		})
	}
}

func openFiles(t *testing.T) (out []string) {
	t.Helper()
	names, err := readNames("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if target, err := os.Readlink("/proc/self/fd/" + n); err == nil && !strings.HasPrefix(target, "anon_inode:") && !strings.HasPrefix(target, "/memfd:test") {
			out = append(out, target)
		}
	}
	return out
}

func init() {
	rawGuests["start"] = func(string) string {
		_, err := Start(context.Background(), Options{})
		return result(err)
	}
}

func TestAWorkerStartsNoWorkers(t *testing.T) {
	w := start(t, Options{})
	bindRaw(t, w, nil)
	if got := run(t, w, "start").Ending.Detail; got != ErrRecursion.Error() {
		t.Errorf("%q", got)
	}
}

func TestTheWorkerModeIsForTheBroker(t *testing.T) {
	for name, args := range map[string][]string{
		"without a socket":    {workerName, workerMode},
		"with another word":   {workerName, "--help", "-test.run=^$"},
		"by the name of argv": {"exthost", workerMode, "-test.run=^$"},
	} {
		cmd := exec.Command("/proc/self/exe")
		cmd.Args = args
		out, err := cmd.CombinedOutput()
		switch {
		case name == "without a socket" && (err == nil || !strings.Contains(string(out), "for exthost's own use")):
			t.Errorf("%s: %v %s", name, err, out)
		case name != "without a socket" && strings.Contains(string(out), "for exthost's own use"):
			t.Errorf("%s: became a worker: %s", name, out)
		}
	}
}

func TestHowAWorkerDies(t *testing.T) {
	for _, tt := range []struct {
		guest string
		want  CrashError // Detail: a part
	}{
		{"panic", CrashError{Kind: "fatal", Code: 2, Detail: "panic: boom"}},
		{"segv", CrashError{Kind: "exit", Code: 2, Detail: "SIGSEGV"}},
		{"exit 3", CrashError{Kind: "exit", Code: 3}},
		{fmt.Sprint("alloc ", 2<<30), CrashError{Kind: "memory", Code: 2, Detail: "out of memory"}},
		{"spin", CrashError{Kind: "cpu", Signal: unix.SIGKILL}},
	} {
		t.Run(tt.guest, func(t *testing.T) {
			w := start(t, Options{})
			bindRaw(t, w, func(b *Bind) {
				b.Limits.Memory = 16 << 20
				if tt.guest == "spin" {
					b.Limits.CPU = time.Second
				}
			})
			_, err := w.Run(context.Background(), job(t, tt.guest))
			var got *CrashError
			if !errors.As(err, &got) || !errors.Is(err, ErrWorker) {
				t.Fatalf("%v", err)
			}
			if got.Kind != tt.want.Kind || got.Signal != tt.want.Signal || got.Code != tt.want.Code || !strings.Contains(got.Detail, tt.want.Detail) || len(got.Detail) > 512 {
				t.Errorf("%+v, want %+v", *got, tt.want)
			}
			if strings.Contains(got.Detail, "goroutine") || strings.ContainsAny(got.Detail, "\n\x1b") {
				t.Errorf("detail %q", got.Detail)
			}
			if _, err := w.Run(context.Background(), job(t, "echo")); !errors.Is(err, ErrWorker) {
				t.Errorf("then: %v", err)
			}
			select {
			case <-w.Done():
			default:
				t.Error("not done")
			}
		})
	}
}

func TestAWorkerThatTalksTooMuchIsNotListenedTo(t *testing.T) {
	w := start(t, Options{})
	bindRaw(t, w, nil)
	if got := run(t, w, fmt.Sprint("stderr ", 1<<20)).Ending.Detail; got != "EPIPE" {
		t.Errorf("%q", got)
	}
	if len(w.said) != keepCap {
		t.Errorf("kept %d bytes", len(w.said))
	}
}

func TestAWorkerIsRetiredBeforeItsProcessorTimeIsUsedUp(t *testing.T) {
	w := start(t, Options{})
	bindRaw(t, w, func(b *Bind) { b.Limits.CPU = 3 * time.Second })
	run(t, w, "echo") // the first is always tried, whatever its limit
	j := job(t, "echo")
	j.Time = 3 * time.Second
	if _, err := w.Run(context.Background(), j); !errors.Is(err, ErrRetired) {
		t.Errorf("%v", err)
	}
	<-w.Done()
}

func TestCallsOutOfTurnAreRefused(t *testing.T) {
	var refused *JobError
	w := start(t, Options{})
	if _, err := w.Run(context.Background(), job(t, "echo")); !errors.As(err, &refused) {
		t.Errorf("run before bind: %v", err)
	}
	for name, change := range map[string]func(*Bind){
		"no role":    func(b *Bind) { b.Role = 0 },
		"no engine":  func(b *Bind) { b.Engine = "" },
		"no scratch": func(b *Bind) { b.Scratch = nil },
		"compile and root": func(b *Bind) {
			b.Role = RoleCompile
			b.Mounts = []Mount{{Root: b.Scratch, Mount: wasiabi.Mount{Access: wasiabi.ReadOnly}}}
		},
		"no root": func(b *Bind) { b.Mounts = []Mount{{Mount: wasiabi.Mount{Access: wasiabi.ReadOnly}}} },
		"two roots": func(b *Bind) {
			b.Mounts = []Mount{{Root: b.Scratch, Sub: "x", Mount: wasiabi.Mount{Access: wasiabi.ReadOnly}}}
		},
		"climbing sub": func(b *Bind) { b.Mounts = []Mount{{Sub: "../x", Mount: wasiabi.Mount{Access: wasiabi.ReadOnly}}} },
		"no access":    func(b *Bind) { b.Mounts = []Mount{{Sub: "x"}} },
	} {
		b := Bind{Role: RoleRun, Engine: "raw", Scratch: folder(t)}
		change(&b)
		if _, err := w.Bind(context.Background(), b); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bindRaw(t, w, nil)
	if _, err := w.Bind(context.Background(), Bind{Role: RoleRun, Engine: "raw", Scratch: folder(t)}); !errors.As(err, &refused) {
		t.Errorf("bind twice: %v", err)
	}
	if _, err := w.Compile(context.Background(), CompileJob{Module: memfile(t, "x")}); !errors.As(err, &refused) {
		t.Errorf("compile in a run worker: %v", err)
	}
	j := job(t, "echo one")
	if _, err := w.Run(context.Background(), j); err != nil {
		t.Error(err)
	}
	if _, err := w.Run(context.Background(), j); !errors.As(err, &refused) {
		t.Errorf("same folder twice: %v", err)
	}
	j = job(t, "echo")
	j.Args = []string{strings.Repeat("x", maxMessage)}
	if _, err := w.Run(context.Background(), j); !errors.As(err, &refused) {
		t.Errorf("2 MiB of arguments: %v", err)
	}
	j = job(t, "echo long")
	for range 100 {
		j.Args = append(j.Args, strings.Repeat("x", 9000)) // many fragments
	}
	if _, err := w.Run(context.Background(), j); err != nil {
		t.Errorf("900 KB of arguments: %v", err)
	}
	w = start(t, Options{})
	_, err := w.Bind(context.Background(), Bind{Role: RoleRun, Engine: "steam", Scratch: folder(t)})
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "steam") {
		t.Errorf("unknown engine: %v", err)
	}
	<-w.Done()
}

func TestACompileWorkerGivesOneAnswer(t *testing.T) {
	for _, tt := range []struct {
		script string
		time   time.Duration
		check  func(*Compiled, error) bool
	}{
		{"echo hi", 0, func(c *Compiled, err error) bool {
			if err != nil {
				return false
			}
			a, err1 := io.ReadAll(c.Prepared)
			b, err2 := io.ReadAll(c.Code)
			return err1 == nil && err2 == nil && string(a) == "echo hi" && string(b) == "code of echo hi" && c.CodeName == "raw-code"
		}},
		{"invalid", 0, func(_ *Compiled, err error) bool {
			var e *ModuleError
			return errors.As(err, &e) && e.Kind == "invalid"
		}},
		{"engine-error", 0, func(_ *Compiled, err error) bool {
			var e *ModuleError
			return errors.As(err, &e) && e.Kind == "engine" && e.Detail == "no such instruction"
		}},
		{"compile-spin", 500 * time.Millisecond, func(_ *Compiled, err error) bool { return errors.Is(err, ErrTime) }},
		{"compile-sleep", 500 * time.Millisecond, func(_ *Compiled, err error) bool { return errors.Is(err, ErrTime) }},
	} {
		t.Run(tt.script, func(t *testing.T) {
			w := start(t, Options{})
			if _, err := w.Bind(context.Background(), Bind{Role: RoleCompile, Engine: "raw", Scratch: folder(t)}); err != nil {
				t.Fatal(err)
			}
			c, err := w.Compile(context.Background(), CompileJob{Module: memfile(t, tt.script), Time: tt.time})
			if !tt.check(c, err) {
				t.Errorf("%+v, %v", c, err)
			}
			if c != nil {
				c.Close()
			}
			<-w.Done()
			if _, err := w.Compile(context.Background(), CompileJob{Module: memfile(t, tt.script)}); !errors.Is(err, ErrWorker) {
				t.Errorf("again: %v", err)
			}
		})
	}
}
