package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/wasiabi"
)

// The raw engine stands for an engine that a guest has escaped from: a "module" names a Go function of this test binary
// and its argument, and "running" it calls the function in the worker, with the system calls at its free disposal. It is
// registered in this test binary only.
type rawEngine struct{}

func (rawEngine) Name() string    { return "raw" }
func (rawEngine) Version() string { return "test" }
func (rawEngine) Close() error    { return nil }

func (rawEngine) Compile(_ context.Context, prepared []byte, dir string) ([]byte, string, error) {
	name, arg, _ := strings.Cut(string(prepared), " ")
	switch f, ok := rawGuests[name]; {
	case name == "engine-error":
		return nil, "", errors.New("no such instruction")
	case ok && strings.HasPrefix(name, "compile-"):
		return nil, "", errors.New(f(arg))
	}
	if err := os.WriteFile(filepath.Join(dir, "tmp"), prepared, 0o600); err != nil {
		return nil, "", err
	}
	return []byte("code of " + string(prepared)), "raw-code", nil
}

func (rawEngine) Load(_ context.Context, a engine.Artefact, _ engine.Limits) (engine.Module, error) {
	script, err := os.ReadFile(a.ModulePath)
	if err != nil {
		return nil, err
	}
	code, err := os.ReadFile(a.CodePath)
	if err != nil {
		return nil, err
	}
	if want := "code of " + string(script); string(code) != want {
		return nil, fmt.Errorf("code does not fit: %q", code)
	}
	return rawModule(script), nil
}

type rawModule string

func (rawModule) Close() error { return nil }

func (m rawModule) Run(_ context.Context, p *wasiabi.Process) (engine.Ending, error) {
	name, arg, _ := strings.Cut(string(m), " ")
	f, ok := rawGuests[name]
	if !ok {
		return engine.Ending{}, fmt.Errorf("no guest %q", name)
	}
	return engine.Ending{Kind: engine.Exit, Code: 7, Detail: f(arg)}, nil
}

func result(err error) string {
	if err == nil {
		return "ok"
	}
	var e unix.Errno
	if errors.As(err, &e) {
		return unix.ErrnoName(e)
	}
	return err.Error()
}

// rawGuests are the guests. What they return comes back as Ending.Detail.
var rawGuests = map[string]func(arg string) string{
	"compile-spin": func(string) string {
		//lint:ignore SA5002 it is to spin
		for {
		}
	},
	"compile-sleep": func(string) string {
		time.Sleep(time.Hour)
		return ""
	},
	"echo": func(arg string) string { return arg },
	"spin": func(string) string {
		//lint:ignore SA5002 it is to spin
		for {
		}
	},
	"spin-quietly": func(string) string { // as compiled code does: no point where Go could stop it, all signals held off
		runtime.LockOSThread()
		var all unix.Sigset_t
		for i := range all.Val {
			all.Val[i] = ^uint64(0)
		}
		unix.PthreadSigmask(unix.SIG_SETMASK, &all, nil)
		go runtime.GC()
		//lint:ignore SA5002 it is to spin
		for {
		}
	},
	"sleep": func(string) string {
		time.Sleep(time.Hour)
		return ""
	},
	"read-stdin": func(string) string { // blocked in a system call
		r, w, _ := os.Pipe()
		defer w.Close()
		r.Read(make([]byte, 1))
		return ""
	},
	"panic": func(string) string { go func() { panic("boom") }(); select {} },
	"segv": func(string) string {
		unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGSEGV)
		select {}
	},
	"exit": func(arg string) string {
		n, _ := strconv.Atoi(arg)
		os.Exit(n)
		return ""
	},
	"alloc": func(arg string) string { // bytes, kept and touched
		n, _ := strconv.Atoi(arg)
		var keep [][]byte
		for got := 0; got < n; got += 16 << 20 {
			b := make([]byte, 16<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			keep = append(keep, b)
		}
		runtime.KeepAlive(keep)
		return "ok"
	},
	"stderr": func(arg string) string {
		n, _ := strconv.Atoi(arg)
		line := []byte(strings.Repeat("x", 99) + "\n")
		for i := 0; i < n; i += len(line) {
			if _, err := unix.Write(2, line); err != nil {
				return result(err)
			}
		}
		os.Exit(3)
		return ""
	},
}

// helpers are modes of the test binary other than a worker: argv[1] names one.
var helpers = map[string]func(args []string){}

func TestMain(m *testing.M) {
	if exe, err := os.Readlink("/proc/self/exe"); err == nil && strings.HasPrefix(filepath.Base(exe), "liar-") {
		lie(strings.TrimPrefix(filepath.Base(exe), "liar-"))
		return
	}
	Main(testDeps())
	if len(os.Args) > 1 {
		if f, ok := helpers[os.Args[1]]; ok {
			f(os.Args[2:])
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}
