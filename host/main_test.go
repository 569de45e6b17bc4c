package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exthost/exthost/host"
	"github.com/exthost/exthost/host/hosttest"
)

// brokerEnv makes the test binary a broker of its own, for tests that kill one.
const brokerEnv = "EXTHOST_TEST_BROKER"

func TestMain(m *testing.M) {
	host.WorkerMain()
	if job := os.Getenv(brokerEnv); job != "" {
		os.Exit(broker(job))
	}
	os.Exit(m.Run())
}

// engines are those of this binary.
func engines() []string {
	var out []string
	for _, e := range host.Versions().Engines {
		out = append(out, e.Name)
	}
	return out
}

// onEngines runs a test on each engine.
func onEngines(t *testing.T, f func(t *testing.T, h *host.Host)) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("no worker processes on this system yet")
	}
	if os.Getenv("REQUIRE_WASMTIME") != "" && !slices.Contains(engines(), "wasmtime") {
		t.Fatal("wasmtime is required and not in this binary")
	}
	for _, name := range engines() {
		t.Run(name, func(t *testing.T) {
			f(t, hosttest.New(t, host.Config{Engine: name}))
		})
	}
}

// guestModule is the test guest, built once.
var guestModule = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "host-test-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "guest.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-o", out, "./testdata/guest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build guest: %w\n%s", err, text)
	}
	b, err := os.ReadFile(out)
	return string(b), err
})

// skill is a folder with the test guest as scripts/guest.wasm, and files.
func skill(t testing.TB, files map[string]string) string {
	t.Helper()
	m, err := guestModule()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"SKILL.md": "# test\n", "scripts/guest.wasm": m}
	for k, v := range files {
		all[k] = v
	}
	return hosttest.Folder(t, all)
}

const guestScript = "scripts/guest.wasm"

func job(args ...string) host.Job { return host.Job{Script: guestScript, Args: args} }

func withStdin(j host.Job, s string) host.Job {
	j.Stdin = strings.NewReader(s)
	return j
}

// grant is a policy with the given lines after the head.
func grant(lines ...string) string {
	return "version: 1\nextension: test\n" + strings.Join(lines, "\n") + "\n"
}

func TestRunPassesTheGuestThrough(t *testing.T) {
	onEngines(t, func(t *testing.T, h *host.Host) {
		ws := t.TempDir()
		e := hosttest.Open(t, h, skill(t, nil), hosttest.Policy(t, grant(
			`env: {pass: [LANG, "LC_*"], set: {MODE: test}}`, `files: {/workspace: {host: "${workspace}", access: read}}`,
		)), host.Bindings{Workspace: ws, Name: "test"})
		for _, tt := range []struct {
			name   string
			job    host.Job
			stdout string
			code   int
		}{
			{"arguments follow the script's guest path", job("args", "a b", ""), "/skill/scripts/guest.wasm args a b \n", 0},
			{"standard input reaches the guest whole", withStdin(job("cat"), strings.Repeat("x", 300_000)), strings.Repeat("x", 300_000), 0},
			{"no standard input is an end of file", job("cat"), "", 0},
			{"an exit code is passed on", job("exit", "42"), "", 42},
			{"an exit code over 255 becomes 1", job("exit", "256"), "", 1},
			{"it starts in the workspace", job("pwd"), "/workspace\n", 0},
			{"it starts where the job says", host.Job{Script: guestScript, Args: []string{"pwd"}, Dir: "/tmp"}, "/tmp\n", 0},
			{"the environment is what the policy says and no more", host.Job{
				Script: guestScript, Args: []string{"env"},
				Env: []string{"LANG=C.UTF-8", "LC_ALL=C", "SECRET=s", "PATH=/evil", "LD_PRELOAD=x", "MODE=outside", "HOME=/root", "PWD=/evil"},
			}, "HOME=/home/guest\nLANG=C.UTF-8\nLC_ALL=C\nMODE=test\nPATH=/usr/local/bin\nPWD=/workspace\nTMPDIR=/tmp\nUSER=guest\n", 0},
			{"HOME and /tmp are empty and can be written", job("write", "/home/guest/x", "y"), "", 0},
			{"and are empty again in the next run", job("ls", "/home/guest"), "", 0},
		} {
			t.Run(tt.name, func(t *testing.T) {
				r := hosttest.Run(t, e, tt.job)
				if r.Outcome != host.Exit || r.ExitCode != tt.code || r.Stdout != tt.stdout {
					t.Errorf("got %.2000s\nwant exit code %d and stdout %.200q", r, tt.code, tt.stdout)
				}
				if r.Version != 1 || r.Run == "" || r.Extension != "test" || r.Digest != e.Digest() || r.Engine != h.Engine() || r.Script != guestScript || r.Duration <= 0 {
					t.Errorf("report %+v", r.Report)
				}
				if len(r.Walls) != 2 {
					t.Errorf("walls %v", r.Walls)
				}
			})
		}
	})
}

func TestFilesAreReachedAsGrantedAndNoFurther(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	type file struct{ name, content string }
	onEngines(t, func(t *testing.T, h *host.Host) {
		for _, tt := range []struct {
			name    string
			files   string // of the policy
			job     host.Job
			code    int
			stdout  string
			denial  string
			reason  string
			changes string
			after   *file // in the workspace
		}{
			{"read root, read", "/workspace: {host: \"${workspace}\", access: read}", job("read", "in.txt"), 0, "input", "", "", "", nil},
			{"read root, write", "/workspace: {host: \"${workspace}\", access: read}", job("write", "in.txt", "x"), 1, "",
				"write /workspace/in.txt", "granted for reading only", "", &file{"in.txt", "input"}},
			{"write root", "/workspace: {host: \"${workspace}\", access: write}", job("write", "out.txt", "made"), 0, "", "", "",
				"created /workspace/out.txt write reported", &file{"out.txt", "made"}},
			{"write root, change", "/workspace: {host: \"${workspace}\", access: write}", job("write", "in.txt", "made"), 0, "", "", "",
				"modified /workspace/in.txt write reported", &file{"in.txt", "made"}},
			{"write root, remove", "/workspace: {host: \"${workspace}\", access: write}", job("remove", "in.txt"), 0, "", "", "",
				"removed /workspace/in.txt write reported", nil},
			{"overlay, change", "/workspace: {host: \"${workspace}\", access: overlay}", job("write", "in.txt", "made"), 0, "", "", "",
				"modified /workspace/in.txt overlay observed", &file{"in.txt", "input"}},
			{"overlay, create", "/workspace: {host: \"${workspace}\", access: overlay}", job("write", "d/new.txt", "made"), 0, "", "", "",
				"created /workspace/d/new.txt overlay observed", nil},
			{"overlay, remove", "/workspace: {host: \"${workspace}\", access: overlay}", job("remove", "in.txt"), 0, "", "", "",
				"removed /workspace/in.txt overlay reported", &file{"in.txt", "input"}},
			{"nothing granted", "{}", job("read", "/workspace/in.txt"), 1, "", "read /workspace/in.txt", "no files line", "", nil},
			{"host path", "{}", job("read", "/etc/hostname"), 1, "", "read /etc/hostname", "no files line", "", nil},
			{"hidden by default", "/workspace: {host: \"${workspace}\", access: read}", job("read", ".env"), 1, "", "read /workspace/.env", "hidden", "", nil},
			{"link out", "/workspace: {host: \"${workspace}\", access: read}", job("read", "out"), 1, "", "read /workspace/out", "", "", nil},
			{"protected name", "/workspace: {host: \"${workspace}\", access: write}", job("write", "CLAUDE.md", "x"), 1, "", "write /workspace/CLAUDE.md", "", "", nil},
			{"protected by the folder above the root", "/g: {host: \"${workspace}/.github\", access: write, create: true}", job("write", "/g/workflows", "x"), 1, "",
				"write /g/workflows", ".github/workflows", "", nil},
			{"a root that is protected itself, read", "/g: {host: \"${workspace}/.git/hooks\", access: read}", job("ls", "/g"), 0, "", "", "", "", nil},
			{"the skill itself", "{}", job("write", "/skill/SKILL.md", "x"), 1, "", "write /skill/SKILL.md", "can only be read", "", nil},
			{"a folder that is made", "/out: {host: \"${workspace}/made\", access: write, create: true}", job("write", "/out/x", "made"), 0, "", "", "",
				"created /out/x write reported", &file{"made/x", "made"}},
			{"one file", "/in: {host: \"${workspace}/in.txt\", access: read}", job("read", "/in"), 0, "input", "", "", "", nil},
			{"the kept folder", "/data: {host: \"${data}\", access: write}", job("write", "/data/x", "kept"), 0, "", "", "", "created /data/x write reported", nil},
		} {
			t.Run(tt.name, func(t *testing.T) {
				ws := hosttest.Folder(t, map[string]string{"in.txt": "input", ".env": "TOKEN=1", "out@": secret, "d/": "", ".git/hooks/": ""})
				e := hosttest.Open(t, h, skill(t, nil), hosttest.Policy(t, grant("files: {"+strings.Trim(tt.files, "{}")+braces(tt.files)+"}")), host.Bindings{Workspace: ws, Name: "test"})
				r := hosttest.Run(t, e, tt.job)
				if r.Outcome != host.Exit || r.ExitCode != tt.code || r.Stdout != tt.stdout {
					t.Fatalf("got %s", r)
				}
				switch {
				case tt.denial == "" && len(r.Denials) > 0:
					t.Errorf("denials %+v", r.Denials)
				case tt.denial != "" && (!r.Denied(tt.denial) || !strings.Contains(r.Denials[0].Reason, tt.reason) || r.Denials[0].Count < 1):
					t.Errorf("denials %+v, want %q because of %q", r.Denials, tt.denial, tt.reason)
				}
				var changes []string
				for _, c := range r.Changes {
					changes = append(changes, strings.Join([]string{c.Op, c.Path, c.Layer, c.Source}, " "))
				}
				if got := strings.Join(changes, "; "); got != tt.changes {
					t.Errorf("changes %q, want %q", got, tt.changes)
				}
				if tt.after != nil {
					b, err := os.ReadFile(filepath.Join(ws, tt.after.name))
					if err != nil || string(b) != tt.after.content {
						t.Errorf("%s holds %q, %v", tt.after.name, b, err)
					}
				}
			})
		}
	})
}

func TestAWriteRootIsNoProtectedFolder(t *testing.T) {
	onEngines(t, func(t *testing.T, h *host.Host) {
		ws := hosttest.Folder(t, map[string]string{".git/hooks/": "", "link@": ".git"})
		for _, root := range []string{"link", "link/hooks"} { // the plain spelling is refused by package policy
			for _, access := range []string{"write", "overlay"} {
				text := grant(fmt.Sprintf("files: {/g: {host: \"${workspace}/%s\", access: %s, create: true}}", root, access))
				e := hosttest.Open(t, h, skill(t, nil), hosttest.Policy(t, text), host.Bindings{Workspace: ws, Name: "test"})
				if r := hosttest.Run(t, e, job("args")); r.Outcome != host.Denied || r.ExitCode != 126 {
					t.Errorf("%s %s: %s", access, root, r)
				}
			}
		}
	})
}

// braces gives back the brace that Trim took from the end of a flow mapping.
func braces(s string) string {
	if s == "{}" {
		return ""
	}
	return "}"
}

func TestLimitsEndAGuest(t *testing.T) {
	onEngines(t, func(t *testing.T, h *host.Host) {
		e := hosttest.Open(t, h, skill(t, nil), hosttest.Policy(t, grant(
			"limits: {time: 1m, memory: 64MiB, output: 64KiB, disk: 4MiB, open-files: 32}",
		)), host.Bindings{Name: "test"})
		hosttest.Run(t, e, job("args")) // compiled: that takes its own time
		for _, tt := range []struct {
			args   []string
			limit  string
			stdout string // its beginning
		}{
			{[]string{"spin"}, "time", "spinning\n"},
			{[]string{"sleep", "1h"}, "time", "sleeping\n"},
			{[]string{"stdin"}, "time", "waiting\n"},
			{[]string{"alloc"}, "memory", ""},
			{[]string{"flood"}, "output", "0123456789abcde\n"},
			{[]string{"flood-stderr"}, "output", ""},
			{[]string{"fill", "/tmp/x"}, "disk", ""},
			{[]string{"files", "/tmp"}, "files", ""},
		} {
			t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
				j := job(tt.args...)
				if tt.args[0] == "stdin" {
					r, w, err := os.Pipe()
					if err != nil {
						t.Fatal(err)
					}
					defer w.Close()
					defer r.Close()
					j.Stdin = r
				}
				if tt.limit == "time" {
					j.Time = 3 * time.Second
				}
				r := hosttest.Run(t, e, j)
				if r.Outcome != host.Limit || r.Limit != tt.limit || r.ExitCode != 124 {
					t.Fatalf("got %.500s", r)
				}
				if !strings.HasPrefix(r.Stdout, tt.stdout) {
					t.Errorf("stdout %.100q", r.Stdout)
				}
				if tt.limit == "time" && !strings.Contains(r.Detail, "longer than 3s") {
					t.Errorf("the detail does not say how long: %q", r.Detail)
				}
				if tt.limit == "time" && (r.Duration < 2900*time.Millisecond || r.Duration > 4*time.Second) {
					t.Errorf("ended after %v", r.Duration)
				}
				if tt.limit == "output" {
					if n := r.Usage.StdoutBytes + r.Usage.StderrBytes; n != 64<<10 || len(r.Stdout)+len(r.Stderr) != 64<<10 || !r.Truncated {
						t.Errorf("kept %d and %d bytes, truncated %v", len(r.Stdout), len(r.Stderr), r.Truncated)
					}
				}
			})
		}
		t.Run("a run after them is as good as new", func(t *testing.T) {
			if r := hosttest.Run(t, e, job("args")); r.Outcome != host.Exit || r.ExitCode != 0 {
				t.Errorf("got %s", r)
			}
		})
	})
}

func TestAJobOnlyNarrows(t *testing.T) {
	onEngines(t, func(t *testing.T, h *host.Host) {
		e := hosttest.Open(t, h, skill(t, nil), hosttest.Policy(t, grant("limits: {time: 30s}")), host.Bindings{Name: "test"})
		hosttest.Run(t, e, job("args")) // compiled
		start := time.Now()
		j := job("sleep", "1h")
		j.Time = 300 * time.Millisecond
		if r := hosttest.Run(t, e, j); r.Limit != "time" || time.Since(start) > 3*time.Second {
			t.Errorf("after %v: %s", time.Since(start), r)
		}
		j = job("alloc")
		j.Memory = 32 << 20
		if r := hosttest.Run(t, e, j); r.Limit != "memory" || r.Usage.MemoryBytes > 32<<20 {
			t.Errorf("got %s, %d bytes", r, r.Usage.MemoryBytes)
		}
	})
}

// Other tests may hold all processors for a while, so the best of a few attempts has to keep the promise of Run, and none
// may take seconds.
func TestCancelKillsWithin100ms(t *testing.T) {
	onEngines(t, func(t *testing.T, h *host.Host) {
		e := hosttest.Open(t, h, skill(t, nil), nil, host.Bindings{Name: "test"})
		hosttest.Run(t, e, job("args")) // compiled and warm
		for _, what := range []string{"spin", "sleep"} {
			t.Run(what, func(t *testing.T) {
				best := time.Hour
				for range 5 {
					best = min(best, cancelled(t, e, what))
				}
				if best > 100*time.Millisecond {
					t.Errorf("returned %v after the cancel at best", best)
				}
			})
		}
	})
}

// cancelled runs a guest that never ends, cancels it and returns how long Run took from there.
func cancelled(t *testing.T, e *host.Extension, what string) time.Duration {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := make(chan struct{})
	var once sync.Once
	var at time.Time
	go func() {
		<-first
		time.Sleep(50 * time.Millisecond)
		at = time.Now()
		cancel()
	}()
	j := job(what, "1h")
	j.Stdout = writerFunc(func(b []byte) (int, error) {
		once.Do(func() { close(first) })
		return len(b), nil
	})
	r, err := e.Run(ctx, j)
	took := time.Since(at)
	if took > 3*time.Second {
		t.Errorf("returned %v after the cancel", took)
	}
	if !errors.Is(err, context.Canceled) || r == nil || r.Outcome != host.HostError {
		t.Errorf("got %+v, %v", r, err)
	}
	return took
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestStartTalksToTheGuest(t *testing.T) {
	onEngines(t, func(t *testing.T, h *host.Host) {
		e := hosttest.Open(t, h, skill(t, nil), nil, host.Bindings{Name: "test"})
		p, err := e.Start(t.Context(), job("lines"))
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		for _, line := range []string{"one", "two"} {
			if _, err := fmt.Fprintln(p.Stdin(), line); err != nil {
				t.Fatal(err)
			}
			n, err := p.Stdout().Read(buf)
			if err != nil || string(buf[:n]) != "got "+line+"\n" {
				t.Fatalf("read %q, %v", buf[:n], err)
			}
		}
		p.Stdin().Close()
		p.Stdout().Close()
		p.Stderr().Close()
		r, err := p.Wait()
		if err != nil || r.Outcome != host.Exit || r.ExitCode != 0 {
			t.Errorf("got %+v, %v", r, err)
		}

		if p, err = e.Start(t.Context(), job("sleep", "1h")); err != nil {
			t.Fatal(err)
		}
		p.Stdout().Close()
		p.Stderr().Close()
		p.Kill()
		if r, err := p.Wait(); err == nil {
			t.Errorf("a killed run ended with %+v", r)
		}
		if _, err := e.Start(t.Context(), host.Job{Script: guestScript, Stdout: &bytes.Buffer{}}); err == nil {
			t.Error("Start took a job with a stream")
		}
	})
}
