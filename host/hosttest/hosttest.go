// Package hosttest helps to test programs that embed package host, and extensions.
//
//	func TestMain(m *testing.M) { hosttest.Main(m) }
//
//	func TestReport(t *testing.T) {
//		h := hosttest.New(t, host.Config{})
//		e := hosttest.Open(t, h, "./pdf-report", hosttest.Policy(t, "version: 1\nextension: pdf-report\n"), host.Bindings{})
//		r := hosttest.Run(t, e, host.Job{Script: "scripts/report.py"})
//		if r.Outcome != host.Exit || r.ExitCode != 0 {
//			t.Errorf("%s", r)
//		}
//	}
package hosttest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exthost/exthost/host"
	"github.com/exthost/exthost/policy"
)

// Main is for TestMain: it makes the test binary able to be a worker, runs the tests and exits.
func Main(m *testing.M) {
	host.WorkerMain()
	os.Exit(m.Run())
}

// New makes a host that is closed when the test ends. An empty Home is a folder of the test's own; an empty Cache is one
// shared by the tests of this process and removed by nobody but the system, so that a module is compiled once.
func New(t testing.TB, c host.Config) *host.Host {
	t.Helper()
	if c.Home == "" {
		c.Home = t.TempDir()
	}
	if c.Cache == "" {
		c.Cache = Cache(t)
	}
	h, err := host.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("close host: %v", err)
		}
	})
	return h
}

// CacheVar names the variable that holds the folder for the caches of tests, "" for one in the system's temporary folder.
const CacheVar = "EXTHOST_TEST_CACHE"

// Cache is the folder that New uses for compiled modules and runtimes.
func Cache(t testing.TB) string {
	t.Helper()
	dir := os.Getenv(CacheVar)
	if dir == "" {
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("exthost-test-cache-%d", os.Geteuid()))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Policy parses the text of a policy file.
func Policy(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Folder writes files below a new folder of the test's own and returns it. A name that ends in "@" is a link with the
// content as its target, one that ends in "/" is an empty folder.
func Folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		p := filepath.Join(dir, filepath.FromSlash(strings.TrimRight(name, "@/")))
		err := os.MkdirAll(filepath.Dir(p), 0o755)
		switch {
		case err != nil:
		case strings.HasSuffix(name, "@"):
			err = os.Symlink(content, p)
		case strings.HasSuffix(name, "/"):
			err = os.Mkdir(p, 0o755)
		default:
			err = os.WriteFile(p, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Open opens an extension that is closed when the test ends. An empty Workspace is a folder of the test's own.
func Open(t testing.TB, h *host.Host, path string, p *policy.Policy, b host.Bindings) *host.Extension {
	t.Helper()
	if b.Workspace == "" {
		b.Workspace = t.TempDir()
	}
	e, err := h.Open(t.Context(), path, p, b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close extension: %v", err)
		}
	})
	return e
}

// Result is a report with what the guest wrote.
type Result struct {
	*host.Report
	Stdout string
	Stderr string
}

// String is for messages of tests.
func (r Result) String() string {
	return fmt.Sprintf("%s, exit code %d, limit %q, trap %q, detail %q, denials %v\nstdout: %s\nstderr: %s",
		r.Outcome, r.ExitCode, r.Limit, r.Trap, r.Detail, r.Denials, r.Stdout, r.Stderr)
}

// Run runs a job whose Stdout and Stderr are nil and fails the test if exthost itself failed. A nil Env is an empty
// environment, so that a test does not depend on the caller's.
func Run(t testing.TB, e *host.Extension, job host.Job) Result {
	t.Helper()
	var out, errs bytes.Buffer
	job.Stdout, job.Stderr = &out, &errs
	if job.Env == nil {
		job.Env = []string{}
	}
	r, err := e.Run(t.Context(), job)
	if err != nil {
		t.Fatalf("run %q: %v", job.Script, err)
	}
	return Result{r, out.String(), errs.String()}
}

// Denied says whether the report has the denial of a capability, such as "read /etc/passwd".
func (r Result) Denied(capability string) bool {
	for _, d := range r.Denials {
		if d.Capability == capability {
			return true
		}
	}
	return false
}
