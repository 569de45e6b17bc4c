package host_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exthost/exthost/host"
	"github.com/exthost/exthost/policy"
	"github.com/exthost/exthost/testdata/hostile/modules"
)

const (
	hostileDir = "../testdata/hostile"

	// canary is in every place outside that a guest must not read.
	canary = "CANARY-0d5e1c"

	// Limits of a hostile run that names none. Disk and descriptors are small so that filling them is quick.
	hostileTime   = time.Minute
	hostileOutput = 256 << 10
	hostilePolicy = `version: 1
extension: hostile
files:
  /workspace: {host: "${workspace}", access: write}
  /ro: {host: %q, access: read}
  /overlay: {host: %q, access: overlay}
limits: {time: 1m, memory: 128MiB, output: 256KiB, disk: 8MiB, open-files: 64}
`
	// grace is what a run may take beyond its limit: the end of the worker, the report, a slow machine.
	grace = 5 * time.Second
	// compileGrace is added where a module is compiled in the course of the run.
	compileGrace = 2 * time.Minute
)

// hostile is one attack of the corpus.
type hostile struct {
	name   string
	class  string
	kind   string // go, python, module
	time   time.Duration
	stdin  string
	stdout string
	denial []string // capabilities that the report must name
	expect []string // alternatives
}

var headerLine = regexp.MustCompile(`^(?://|#) (class|time|stdin|stdout|denial|expect): (.+)$`)

// hostileCorpus reads the headers. A file without an expectation fails: it would test nothing.
func hostileCorpus(t *testing.T) []hostile {
	t.Helper()
	var corpus []hostile
	for _, pattern := range []string{"*/*.go", "*/*.py"} {
		files, err := filepath.Glob(filepath.Join(hostileDir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			folder, base := filepath.Base(filepath.Dir(file)), filepath.Base(file)
			if folder == "attack" || folder == "guest" || base == "build.go" {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			h := hostile{name: strings.TrimSuffix(base, filepath.Ext(base)), class: folder, kind: "go", time: hostileTime}
			if filepath.Ext(base) == ".py" {
				h.kind = "python"
			}
			if folder == "modules" {
				h.kind = "module"
			}
			for line := range strings.Lines(string(text)) {
				m := headerLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
				if m == nil {
					continue
				}
				switch m[1] {
				case "class":
					h.class = m[2]
				case "time":
					if h.time, err = time.ParseDuration(m[2]); err != nil {
						t.Fatalf("%s: %v", file, err)
					}
				case "stdin":
					h.stdin = m[2]
				case "stdout":
					h.stdout = m[2]
				case "denial":
					h.denial = append(h.denial, m[2])
				case "expect":
					h.expect = strings.Split(m[2], "|")
				}
			}
			if len(h.expect) == 0 {
				t.Fatalf("%s: no expectation in the header", file)
			}
			corpus = append(corpus, h)
		}
	}
	names := map[string]bool{}
	for _, h := range corpus {
		if names[h.name] {
			t.Fatalf("two attacks are called %q", h.name)
		}
		names[h.name] = true
	}
	if len(corpus) < 80 {
		t.Fatalf("the corpus has %d attacks: files are missing", len(corpus))
	}
	return corpus
}

// hostileWorld is what lies around a hostile guest, on one file system.
type hostileWorld struct {
	base      string
	workspace string
	policy    *policy.Policy
	before    map[string]string
}

// newHostileWorld lays out roots with links out of them, a hard link, special files and secrets.
func newHostileWorld(t *testing.T) *hostileWorld {
	t.Helper()
	// Not t.TempDir: its path has the test's name in it, which the guest prints for good reasons.
	base, err := os.MkdirTemp("", "outer-"+canary)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		t.Helper()
		must(os.MkdirAll(filepath.Dir(filepath.Join(base, name)), 0o755))
		must(os.WriteFile(filepath.Join(base, name), []byte(text), 0o644))
	}
	write("outside/secret.txt", canary+" secret\n")
	write("outside/linked.txt", canary+" one file with two names\n")
	for _, root := range []string{"workspace", "ro", "overlay"} {
		in := func(name string) string { return filepath.Join(base, root, name) }
		write(root+"/in.txt", "inside\n")
		write(root+"/keep.txt", "keep\n")
		write(root+"/file.txt", "file\n")
		write(root+"/sub/f.txt", "f\n")
		write(root+"/.env", canary+" hidden\n")
		write(root+"/.env.local", canary+" hidden\n")
		write(root+"/sub/.env", canary+" hidden\n")
		write(root+"/.git/HEAD", "ref: refs/heads/main\n")
		write(root+"/.git/config", canary+" hidden\n")
		must(os.Mkdir(in("empty"), 0o755))
		for name, target := range map[string]string{
			"inner":    "in.txt",
			"out":      "../outside/secret.txt",
			"outabs":   filepath.Join(base, "outside/secret.txt"),
			"dirout":   "../outside",
			"up":       "..",
			"procl":    "/proc/self/root",
			"chain":    "out",
			"dangling": "../outside/planted.txt",
			"tolink":   ".env",
			"sub/out":  "../../outside/secret.txt",
		} {
			must(os.Symlink(target, in(name)))
		}
		must(unix.Mkfifo(in("fifo"), 0o666))
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: in("socket"), Net: "unix"})
		must(err)
		t.Cleanup(func() { _ = listener.Close() })
	}
	must(os.Link(filepath.Join(base, "outside/linked.txt"), filepath.Join(base, "workspace/hard.txt")))
	// Only root can make a device; everyone else is spared the attack.
	_ = unix.Mknod(filepath.Join(base, "workspace/device"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3)))

	w := &hostileWorld{base: base, workspace: filepath.Join(base, "workspace")}
	w.policy, err = policy.Parse("hostile.yaml",
		fmt.Appendf(nil, hostilePolicy, filepath.Join(base, "ro"), filepath.Join(base, "overlay")))
	must(err)
	w.before = w.state(t)
	return w
}

// state tells all that a guest must not change: what is beside the roots, the roots that may only be read, the lower
// of the overlay, and in the workspace the files that are protected, hidden or shared with the outside.
func (w *hostileWorld) state(t *testing.T) map[string]string {
	t.Helper()
	state := map[string]string{}
	err := filepath.WalkDir(w.base, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(w.base, path)
		if err != nil {
			return err
		}
		if below, ok := strings.CutPrefix(rel, "workspace/"); ok {
			first, _, _ := strings.Cut(below, "/")
			switch first {
			case ".git", ".env", ".env.local", "hard.txt", "keep.txt", "in.txt", "fifo", "device":
			default:
				return nil
			}
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %x %d", sha256.Sum256(b), info.ModTime().UnixNano())
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " -> " + target
		}
		state[rel] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func (w *hostileWorld) checkUnchanged(t *testing.T) {
	t.Helper()
	after := w.state(t)
	for path, was := range w.before {
		if is, ok := after[path]; !ok {
			t.Errorf("outside: %s is gone", path)
		} else if is != was {
			t.Errorf("outside: %s changed: %s, was %s", path, is, was)
		}
	}
	for path := range after {
		if _, ok := w.before[path]; !ok {
			t.Errorf("outside: %s appeared", path)
		}
	}
}

// hostileExtension is a skill folder that holds every Go and Python attack.
func hostileExtension(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "hostile")
	if err := os.MkdirAll(filepath.Join(dir, "scripts"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\nname: hostile\ndescription: Attacks its host.\n---\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "keep.txt"), []byte("keep\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, "guest.wasm"), "./guest")
	build.Dir = hostileDir
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the hostile guest: %v\n%s", err, out)
	}
	scripts, err := filepath.Glob(filepath.Join(hostileDir, "*/*.py"))
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "scripts", filepath.Base(script)), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// ending is what a run left behind, as far as two engines must agree on it.
type ending struct {
	report *host.Report
	err    error
	stdout string
	stderr string
	took   time.Duration
}

func (h hostile) run(t *testing.T, hst *host.Host, w *hostileWorld, extension string) ending {
	t.Helper()
	path, script, args := extension, "scripts/"+h.name+".py", []string(nil)
	switch h.kind {
	case "go":
		script, args = "guest.wasm", []string{h.name}
	case "module":
		path, script = filepath.Join(t.TempDir(), h.name+".wasm"), ""
		if err := os.WriteFile(path, modules.Build(h.name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	job := host.Job{
		Script: script, Args: args, Time: h.time,
		Env: []string{
			"CANARY_SECRET=" + canary, "AWS_SECRET_ACCESS_KEY=" + canary, "PATH=/" + canary + "/bin", "HOME=/" + canary, "LD_PRELOAD=" + canary,
			"PYTHONPATH=/" + canary, "HTTP_PROXY=http://" + canary + ".invalid", "EXTHOST_HOME=/" + canary,
		},
	}
	var stdout, stderr bytes.Buffer
	job.Stdout, job.Stderr = &stdout, &stderr
	pipe := func() (r, w *os.File) {
		t.Helper()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
		return r, w
	}
	if h.stdin == "silent" {
		r, _ := pipe()
		job.Stdin = r
	}
	if h.stdout == "unread" {
		_, w := pipe()
		job.Stdout = w
	}
	began := time.Now()
	var e ending
	x, err := hst.Open(ctx, path, w.policy, host.Bindings{Name: "hostile", Workspace: w.workspace})
	if err == nil {
		e.report, err = x.Run(ctx, job)
		if closeErr := x.Close(); closeErr != nil {
			t.Errorf("closing the extension: %v", closeErr)
		}
	}
	e.err, e.took = err, time.Since(began)
	e.stdout, e.stderr = stdout.String(), stderr.String()
	return e
}

// attempts parses the lines that attacks print.
var attemptLine = regexp.MustCompile(`(?m)^ATTEMPT (ALLOWED|DENIED) (\S+) (.*)$`)

// meets returns "" if the run ended in the way that one alternative asks for.
func (h hostile) meets(e ending) string {
	var why []string
	for _, alternative := range h.expect {
		fault := h.meetsOne(strings.Fields(alternative), e)
		if fault == "" {
			return ""
		}
		why = append(why, fault)
	}
	return strings.Join(why, "; ")
}

func (h hostile) meetsOne(want []string, e ending) string {
	if want[0] == "refused" {
		reason := ""
		switch {
		case e.err != nil:
			reason = e.err.Error()
		case e.report.Outcome == host.Denied || e.report.Outcome == host.HostError:
			reason = e.report.Detail
		default:
			return fmt.Sprintf("not refused: outcome %s", e.report.Outcome)
		}
		for _, word := range want[1:] {
			if !strings.Contains(reason, word) {
				return fmt.Sprintf("refused with %q, which does not name %q", reason, word)
			}
		}
		return ""
	}
	if e.err != nil {
		return fmt.Sprintf("error: %v", e.err)
	}
	r := e.report
	attempts := attemptLine.FindAllStringSubmatch(e.stdout, -1)
	for _, a := range attempts {
		if a[1] == "ALLOWED" {
			return "allowed: " + a[3]
		}
	}
	seen := map[string]bool{}
	for _, d := range r.Denials {
		if seen[d.Capability] {
			return fmt.Sprintf("%s is reported twice", d.Capability)
		}
		seen[d.Capability] = true
		if d.Reason == "" || d.Count < 1 {
			return fmt.Sprintf("a denial without reason or count: %+v", d)
		}
	}
	for _, capability := range h.denial {
		if !seen[capability] {
			return fmt.Sprintf("%s is not reported", capability)
		}
	}
	switch want[0] {
	case "denied":
		if r.Outcome != host.Exit || r.ExitCode != 0 {
			return fmt.Sprintf("outcome %s, exit code %d", r.Outcome, r.ExitCode)
		}
		if len(attempts) == 0 {
			return "no attempt was made"
		}
		refused := false
		for _, a := range attempts {
			if !slices.Contains(want[1:], a[2]) {
				return fmt.Sprintf("%s met %s", a[3], a[2])
			}
			refused = refused || a[2] == "ENOTCAPABLE" || a[2] == "EROFS" || a[2] == "EPERM"
		}
		if refused && len(r.Denials) == 0 && h.class != "exfil" {
			return "the report has no denial"
		}
	case "exit":
		if code, err := strconv.Atoi(want[1]); err != nil || r.Outcome != host.Exit || r.ExitCode != code {
			return fmt.Sprintf("outcome %s, exit code %d", r.Outcome, r.ExitCode)
		}
	case "limit":
		if r.Outcome != host.Limit || r.Limit != want[1] {
			return fmt.Sprintf("outcome %s, limit %q", r.Outcome, r.Limit)
		}
		// What fits is kept, and the report says that it is not all.
		if n := max(len(e.stdout), len(e.stderr)); want[1] == "output" && (n != hostileOutput || !r.Truncated) {
			return fmt.Sprintf("%d bytes of output were kept, truncated: %v", n, r.Truncated)
		}
	case "trap":
		if r.Outcome != host.Trap || r.Trap != want[1] {
			return fmt.Sprintf("outcome %s, trap %q", r.Outcome, r.Trap)
		}
	default:
		return fmt.Sprintf("unknown expectation %q", want)
	}
	return ""
}

// verdict is what both engines must agree on. Outputs are compared where they do not depend on when a run was ended, and
// nothing where the faster engine may get further before the time is up.
func (h hostile) verdict(e ending) string {
	if len(h.expect) > 1 && slices.Contains(h.expect, "limit time") {
		return ""
	}
	if e.err != nil {
		return "error " + e.err.Error()
	}
	r := e.report
	text := fmt.Sprintf("%s limit=%q trap=%q", r.Outcome, r.Limit, r.Trap)
	if r.Outcome == host.Exit {
		var denials []string
		for _, d := range r.Denials {
			denials = append(denials, d.Capability)
		}
		slices.Sort(denials)
		text += fmt.Sprintf(" exit=%d\ndenials:\n%s\n", r.ExitCode, strings.Join(denials, "\n"))
		if h.kind == "go" && h.expect[0][:6] == "denied" {
			text += e.stdout
		}
	}
	return text
}

func hostileEngines(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, e := range host.Versions().Engines {
		names = append(names, e.Name)
	}
	if !slices.Contains(names, "wazero") {
		t.Fatalf("engines %v: wazero is missing", names)
	}
	if slices.Contains(names, "wasmtime") != wantWasmtime {
		t.Fatalf("engines %v: wasmtime in this build: want %v", names, wantWasmtime)
	}
	return names
}

func havePython(t *testing.T) bool {
	t.Helper()
	for _, r := range host.Runtimes() {
		if r.Name == "python" {
			return r.State == "embedded"
		}
	}
	t.Fatal("no python runtime is listed")
	return false
}

// TestHostileCorpus runs every attack on every engine: it ends as its header says, nothing outside changed, nothing of
// the host is in its output, it ended in time, and the engines agree.
func TestHostileCorpus(t *testing.T) {
	corpus := hostileCorpus(t)
	engines := hostileEngines(t)
	python := havePython(t)
	if !python && os.Getenv("EXTHOST_REQUIRE_GUESTS") != "" {
		t.Fatal("the python runtime is not embedded: run `make guests`")
	}
	extension := hostileExtension(t)
	extensionBefore := digestTree(t, extension)

	var mu sync.Mutex
	verdicts := map[string]map[string]string{} // attack -> engine -> verdict
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			hst := newHostileHost(t, engine)
			// The guest and the interpreter are compiled here, so that the attacks below are measured without it.
			warm := hostile{name: "exit_codes", kind: "go", time: hostileTime}
			if e := warm.run(t, hst, newHostileWorld(t), extension); e.err != nil {
				t.Fatal(e.err)
			}
			if python {
				warm := hostile{name: "py_stdin_closed", kind: "python", time: hostileTime}
				if e := warm.run(t, hst, newHostileWorld(t), extension); e.err != nil {
					t.Fatal(e.err)
				}
			}
			descriptors := openDescriptors(t)
			t.Run("attacks", func(t *testing.T) {
				for _, h := range corpus {
					t.Run(h.class+"/"+h.name, func(t *testing.T) {
						if h.kind == "python" && !python {
							t.Skip("the python runtime is not embedded: run `make guests`")
						}
						t.Parallel()
						w := newHostileWorld(t)
						e := h.run(t, hst, w, extension)
						if fault := h.meets(e); fault != "" {
							t.Errorf("want %s: %s", strings.Join(h.expect, " or "), fault)
						}
						limit := h.time + grace
						if h.kind == "module" {
							limit += compileGrace
						}
						if e.took > limit {
							t.Errorf("took %v, limit %v and %v of grace", e.took, h.time, limit-h.time)
						}
						for name, text := range map[string]string{"stdout": e.stdout, "stderr": e.stderr} {
							if i := strings.Index(text, canary); i >= 0 {
								t.Errorf("%s tells of the host: %q", name, text[max(0, i-80):min(len(text), i+80)])
							}
						}
						if e.report != nil && len(e.report.Denials) > 1000 {
							t.Errorf("the report has %d denials", len(e.report.Denials))
						}
						w.checkUnchanged(t)
						if t.Failed() {
							t.Logf("report: %+v\nerror: %v\nstdout: %s\nstderr: %s", e.report, e.err, clip(e.stdout), clip(e.stderr))
						}
						mu.Lock()
						defer mu.Unlock()
						if verdicts[h.name] == nil {
							verdicts[h.name] = map[string]string{}
						}
						verdicts[h.name][engine] = h.verdict(e)
					})
				}
			})
			// Compiled code of the last few modules is kept open.
			if now := openDescriptors(t); now > descriptors+24 {
				t.Errorf("descriptors of the host: %d before the attacks, %d after", descriptors, now)
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(verdicts)) {
		first, ok := verdicts[name][engines[0]]
		for _, engine := range engines[1:] {
			if other, both := verdicts[name][engine]; ok && both && other != first {
				t.Errorf("%s: the engines disagree\n%s: %s\n%s: %s", name, engines[0], clip(first), engine, clip(other))
			}
		}
	}
	if after := digestTree(t, extension); after != extensionBefore {
		t.Error("the extension's own folder changed")
	}
}

// TestHostilePeers lets a guest work while others spin, sleep, and fill memory, disk and output on the same host.
func TestHostilePeers(t *testing.T) {
	corpus := hostileCorpus(t)
	extension := hostileExtension(t)
	for _, engine := range hostileEngines(t) {
		t.Run(engine, func(t *testing.T) {
			hst := newHostileHost(t, engine)
			neighbour := hostile{name: "neighbour", kind: "go", time: hostileTime, expect: []string{"exit 0"}}
			alone := neighbour.run(t, hst, newHostileWorld(t), extension)
			if fault := neighbour.meets(alone); fault != "" {
				t.Fatalf("alone: %s\n%s", fault, alone.stderr)
			}
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for _, h := range corpus {
				switch h.name {
				case "spin", "sleep", "memory", "disk", "output_storm", "chain_start", "table_grow":
				default:
					continue
				}
				wg.Go(func() {
					for ctx.Err() == nil {
						if e := h.run(t, hst, newHostileWorld(t), extension); h.meets(e) != "" {
							t.Errorf("%s beside a neighbour: %s", h.name, h.meets(e))
							return
						}
					}
				})
			}
			for range 3 {
				e := neighbour.run(t, hst, newHostileWorld(t), extension)
				if fault := neighbour.meets(e); fault != "" || e.stdout != alone.stdout {
					t.Errorf("beside attacks: %s, output %q, alone %q", fault, e.stdout, alone.stdout)
				}
			}
			stop()
			wg.Wait()
		})
	}
}

func newHostileHost(t *testing.T, engine string) *host.Host {
	t.Helper()
	hst, err := host.New(host.Config{Engine: engine, Cache: t.TempDir(), Workers: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hst.Close(); err != nil {
			t.Errorf("closing the host: %v", err)
		}
		if left := children(t); len(left) > 0 {
			t.Errorf("processes left after the host was closed: %v", left)
		}
	})
	return hst
}

// children are the live child processes of this one.
func children(t *testing.T) []string {
	t.Helper()
	var found []string
	for range 20 {
		found = nil
		stats, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range stats {
			b, err := os.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) || err != nil {
				continue // it ended meanwhile
			}
			_, rest, _ := strings.Cut(string(b), ") ")
			if fields := strings.Fields(rest); len(fields) > 1 && fields[0] != "Z" && fields[1] == strconv.Itoa(os.Getpid()) {
				found = append(found, string(b[:min(len(b), 60)]))
			}
		}
		if found == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return found
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func digestTree(t *testing.T, dir string) string {
	t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(sum, path, info.Mode(), info.Size())
		if info.Mode().IsRegular() {
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = io.Copy(sum, f)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

func clip(s string) string {
	if len(s) > 3000 {
		return s[:1500] + "\n...\n" + s[len(s)-1500:]
	}
	return s
}
