package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/exthost/exthost/host"
)

func TestMain(m *testing.M) {
	host.WorkerMain() // the test binary is its own worker
	testscript.Main(m, map[string]func(){"exthost": func() { os.Exit(run()) }})
}

// guest builds the Go guest of testdata/guest for wasip1, once.
var guest = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "guest-of-exthost-")
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, "guest.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, "./testdata/guest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the guest: %w\n%s", err, text)
	}
	return out, nil
})

// TestScripts runs the command line as a person would. One cache is shared, so that a guest is compiled once.
func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("runs guests")
	}
	wasm, err := guest()
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.MkdirTemp("", "cache-of-exthost-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, dir := range []string{cache, filepath.Dir(wasm)} {
			if err := removeAll(dir); err != nil {
				t.Error(err)
			}
		}
	})
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "jsonpath": jsonPath, "hex": writeHex, "onterminal": onTerminal},
		Setup: func(e *testscript.Env) error {
			e.Setenv("EXTHOST_HOME", filepath.Join(e.WorkDir, ".home"))
			e.Setenv("EXTHOST_CACHE", cache)
			e.Setenv("GUEST", wasm)
			e.Setenv("HI", "hi\n")
			e.Setenv("HOME", filepath.Join(e.WorkDir, "person"))
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "python", "sh":
				for _, r := range host.Runtimes() {
					if r.Name == cond {
						if r.State == "missing" && os.Getenv("EXTHOST_REQUIRE_GUESTS") != "" {
							return false, fmt.Errorf("the runtime %s is not embedded: run `make guests`", cond)
						}
						return r.State != "missing", nil
					}
				}
				return false, nil
			case "wasmtime":
				return hasEngine("wasmtime"), nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
	})
}

func hasEngine(name string) bool {
	for _, e := range host.Versions().Engines {
		if e.Name == name {
			return true
		}
	}
	return false
}

// removeAll removes a tree whose folders may be read-only.
func removeAll(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return err
	})
	return errors.Join(err, os.RemoveAll(dir))
}

// exits N cmd...: runs a command without a terminal and checks its exit code. "<FILE" as the last argument is stdin.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N cmd [arg...] [<file]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	args = args[1:]
	var stdin io.Reader
	if file, ok := strings.CutPrefix(args[len(args)-1], "<"); ok {
		f, err := os.Open(ts.MkAbs(file))
		ts.Check(err)
		defer f.Close()
		stdin, args = f, args[:len(args)-1]
	}
	path := args[0]
	if path == "exthost" {
		path = filepath.Join(strings.Split(ts.Getenv("PATH"), string(filepath.ListSeparator))[0], "exthost")
		if runtime.GOOS == "windows" {
			path += ".exe"
		}
	}
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = scriptEnv(ts)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, ts.Stdout(), ts.Stderr()
	noTerminal(cmd)
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("%s: %v", args[0], err)
	}
	if got := cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("%s: exit code %d, want %d", strings.Join(args, " "), got, want)
	}
}

// writeHex FILE HEX...: writes bytes, for modules that are too small for a compiler.
func writeHex(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: hex FILE HEX...")
	}
	data, err := hex.DecodeString(strings.Join(args[1:], ""))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o644))
}

// scriptEnv is what a script may have set and the command line reads.
func scriptEnv(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{
		"PATH", "HOME", "TMPDIR", "LANG", "TZ", "NO_COLOR", "TERM", "SystemRoot", "GUEST", "GOCOVERDIR", "GREETING",
		"EXTHOST_HOME", "EXTHOST_CACHE", "EXTHOST_ENGINE", "EXTHOST_WORKERS",
	} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}
