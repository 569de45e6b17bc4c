package shell_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exthost/exthost/guests"
	"github.com/exthost/exthost/host"
	"github.com/exthost/exthost/host/hosttest"
)

var guest = flag.String("guest", "", "run the cases in this program, guests/sh built for this system, instead of the sandbox")

func TestMain(m *testing.M) { hosttest.Main(m) }

func itoa(n int) string { return strconv.Itoa(n) }

// rooms is a pool, so that no more of them are made than run at the same time.
type rooms struct{ free chan *room }

func newRooms(t testing.TB, cases map[string][]*case_) *rooms {
	t.Helper()
	p := &rooms{make(chan *room, runtime.GOMAXPROCS(0))}
	for range cap(p.free) {
		r := newRoom(t)
		if err := layScripts(r.in("skill"), cases); err != nil {
			t.Fatal(err)
		}
		p.give(r)
	}
	return p
}

func (p *rooms) take() *room  { return <-p.free }
func (p *rooms) give(r *room) { p.free <- r }

const shellPolicy = `version: 1
extension: shell
env:
  pass: [LC_ALL, TZ]
files:
  /workspace: {host: "${workspace}", access: write}
limits: {time: 60s, memory: 512MiB, output: 4MiB}
`

// needShell skips a test in a binary without the shell, which is an error where the runtimes are required.
func needShell(t testing.TB) {
	t.Helper()
	if r, _ := guests.Lookup("sh"); !r.Present() {
		if os.Getenv("EXTHOST_REQUIRE_GUESTS") != "" {
			t.Fatal(r.Err())
		}
		t.Skip(r.Err())
	}
}

// runner runs a case somewhere.
type runner func(t *testing.T, c *case_) outcome

func nativeRunner(t *testing.T, cases map[string][]*case_, program string) runner {
	t.Helper()
	rooms := newRooms(t, cases)
	return func(t *testing.T, c *case_) outcome {
		r := rooms.take()
		defer rooms.give(r)
		o, err := r.process(t.Context(), c, systemPath, program)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
}

func engineRunner(t *testing.T, cases map[string][]*case_, engine string) runner {
	t.Helper()
	h := hosttest.New(t, host.Config{Engine: engine, Spares: 1})
	p := hosttest.Policy(t, shellPolicy)
	rooms := newRooms(t, cases)
	extensions := map[*room]*host.Extension{}
	for range cap(rooms.free) {
		r := rooms.take()
		if err := r.clean(); err != nil {
			t.Fatal(err)
		}
		extensions[r] = hosttest.Open(t, h, r.in("skill"), p, host.Bindings{Name: "shell", Workspace: r.in("workspace")})
		defer rooms.give(r)
	}
	return func(t *testing.T, c *case_) outcome {
		r := rooms.take()
		defer rooms.give(r)
		if err := r.clean(); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		rep, err := extensions[r].Run(t.Context(), host.Job{Script: c.id + ".sh", Env: locale, Stdout: &out, Stderr: &errs})
		if err != nil {
			t.Fatal(err)
		}
		o := outcome{stdout: out.String(), stderr: errs.String(), exit: rep.ExitCode}
		if rep.Outcome != host.Exit {
			o.stderr += fmt.Sprintf("\n%s: limit %q, trap %q, %s", rep.Outcome, rep.Limit, rep.Trap, rep.Detail)
		}
		for _, d := range rep.Denials {
			o.denied = append(o.denied, d.Capability)
		}
		if o.left, err = r.leftover(); err != nil {
			t.Fatal(err)
		}
		return o
	}
}

func TestSandbox(t *testing.T) {
	_, cases, _ := subjects(t)
	listed := differences(t)
	if *guest != "" {
		delete(cases, "own-sandbox") // there is none
		for subject := range cases {
			for _, c := range cases[subject] { // nobody is asked outside the sandbox
				c.want = denials.ReplaceAllString(c.want, "")
			}
		}
		replay(t, cases, listed, nativeRunner(t, cases, *guest))
	} else {
		needShell(t)
		var engines []string
		for _, e := range host.Versions().Engines {
			engines = append(engines, e.Name)
		}
		if os.Getenv("REQUIRE_WASMTIME") != "" && !slices.Contains(engines, "wasmtime") {
			t.Fatal("wasmtime is not built in")
		}
		for _, engine := range engines {
			t.Run(engine, func(t *testing.T) { replay(t, cases, listed, engineRunner(t, cases, engine)) })
		}
	}
	if *update && *guest == "" {
		write(t, cases)
	}
	if *update {
		var list []*case_
		for _, id := range slices.Sorted(maps.Keys(listed)) {
			list = append(list, &case_{claim: id, script: listed[id].reason + "\n", want: listed[id].want})
		}
		text, err := os.ReadFile(differencesFile)
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(text), "== ")
		if err := os.WriteFile(differencesFile, []byte(format(head, list)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var denials = regexp.MustCompile(`(?m)^-- denied .*\n`)

// replay runs all cases and ends when the last has ended.
func replay(t *testing.T, cases map[string][]*case_, listed map[string]*difference, run runner) {
	begin := time.Now()
	var mu sync.Mutex
	equal := 0
	t.Run("all", func(t *testing.T) {
		for _, subject := range slices.Sorted(maps.Keys(cases)) {
			for _, c := range cases[subject] {
				t.Run(c.id, func(t *testing.T) {
					t.Parallel()
					got := run(t, c)
					if !own(subject) {
						got.denied = nil
					}
					d := listed[c.id]
					switch {
					case *update && own(subject) && *guest == "":
						c.want = got.String()
					case *update && d != nil:
						d.want = got.String()
					case d == nil && got.String() != c.want:
						t.Error(report(c, c.want, got))
					case d != nil && got.String() == c.want:
						t.Errorf("%s:%d: %s is listed in %s but does not differ any more", c.subject, c.line, c.id, differencesFile)
					case d != nil && got.String() != d.want:
						t.Errorf("differs in another way than listed\n%s", report(c, d.want, got))
					default:
						mu.Lock()
						equal++
						mu.Unlock()
					}
				})
			}
		}
	})
	t.Logf("%d cases as expected, %d of them listed differences, in %v", equal, len(listed), time.Since(begin).Round(time.Second))
}
