package host_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exthost/exthost/host"
	"github.com/exthost/exthost/host/hosttest"
)

// broker is a program that embeds package host: it runs one job and says on stdout when the guest began.
func broker(spec string) int {
	engine, path, _ := strings.Cut(spec, ":")
	args := strings.Fields(os.Getenv(brokerEnv + "_ARGS"))
	h, err := host.New(host.Config{Engine: engine, Cache: os.Getenv(brokerEnv + "_CACHE")})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	e, err := h.Open(context.Background(), path, nil, host.Bindings{Name: "test"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	r, err := e.Run(context.Background(), host.Job{Script: guestScript, Args: args, Stdout: os.Stdout, Stderr: os.Stderr, Env: []string{}})
	fmt.Fprintln(os.Stderr, r, err)
	return 0
}

func TestNothingOutlivesTheBroker(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	onEngines(t, func(t *testing.T, h *host.Host) {
		path := skill(t, nil)
		e := hosttest.Open(t, h, path, nil, host.Bindings{Name: "test"})
		hosttest.Run(t, e, job("args")) // compiled, so that the broker is quick
		for _, args := range []string{"spin", "sleep 1h", "compile"} {
			t.Run(args, func(t *testing.T) {
				cmd := exec.Command(self)
				dir := t.TempDir()
				tmp := filepath.Join(dir, "tmp")
				if err := os.Mkdir(tmp, 0o700); err != nil {
					t.Fatal(err)
				}
				cache := hosttest.Cache(t)
				if args == "compile" {
					cache = filepath.Join(dir, "cache") // empty: it compiles
				}
				cmd.Env = append(os.Environ(), brokerEnv+"="+h.Engine()+":"+path, brokerEnv+"_ARGS="+args, brokerEnv+"_CACHE="+cache, "TMPDIR="+tmp)
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				if args == "compile" {
					time.Sleep(time.Second)
				} else if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
					t.Fatal(err)
				}
				workers := childrenOf(t, cmd.Process.Pid)
				if len(workers) == 0 {
					t.Fatal("the broker has no worker")
				}
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait() // killed
				deadline := time.Now().Add(2 * time.Second)
				for _, pid := range workers {
					for alive(pid) {
						if time.Now().After(deadline) {
							t.Fatalf("worker %d is alive 2 s after its broker was killed", pid)
						}
						time.Sleep(10 * time.Millisecond)
					}
				}
				// What it left in its scratch folder goes when the next host of this user starts.
				t.Setenv("TMPDIR", tmp)
				next, err := host.New(host.Config{Engine: h.Engine(), Cache: cache})
				if err != nil {
					t.Fatal(err)
				}
				if err := next.Close(); err != nil {
					t.Fatal(err)
				}
				if left, _ := filepath.Glob(filepath.Join(tmp, "exthost-*")); len(left) > 0 {
					t.Errorf("left in the temporary folder: %v", left)
				}
			})
		}
	})
}

func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z") && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// childrenOf lists the processes whose parent is pid.
func childrenOf(t *testing.T, pid int) (out []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range stats {
		b, err := os.ReadFile(p)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(pid) {
			n, _ := strconv.Atoi(filepath.Base(filepath.Dir(p)))
			out = append(out, n)
		}
	}
	return out
}

// TestAWorkerThatDiesIsAnOutcome kills the worker of a guest that runs, as the kernel's memory killer would.
func TestAWorkerThatDiesIsAnOutcome(t *testing.T) {
	onEngines(t, func(t *testing.T, h *host.Host) {
		e := hosttest.Open(t, h, skill(t, nil), nil, host.Bindings{Name: "test"})
		p, err := e.Start(t.Context(), job("sleep", "1h"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Stdout().Read(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		p.Stdout().Close()
		p.Stderr().Close()
		for _, pid := range childrenOf(t, os.Getpid()) {
			if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.HasPrefix(string(b), "exthost-worker") {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		r, err := p.Wait()
		if err != nil || r.Outcome != host.HostError || r.ExitCode != 125 {
			t.Fatalf("got %+v, %v", r, err)
		}
		if r := hosttest.Run(t, e, job("args")); r.Outcome != host.Exit {
			t.Errorf("the next run: %s", r)
		}
	})
}
