package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/exthost/exthost/host/internal/snapshot"
	"github.com/exthost/exthost/policy"
	"github.com/exthost/exthost/wasiabi"
)

// fakeExtension is bound to a policy and has no files.
func fakeExtension(t testing.TB, text string, c Config) *Extension {
	t.Helper()
	p, err := policy.Parse("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &Extension{h: &Host{cfg: c}, name: "x", snap: &snapshot.Snapshot{Digest: "sha256:0"}, grant: p, eff: policy.New(p)}
}

const readWorkspace = "version: 1\nextension: x\nfiles:\n  /workspace: {host: \"${workspace}\", access: read}\n"

func TestTrailDecidesAgainWhatAWorkerClaims(t *testing.T) {
	var events []Event
	tr := newTrail(fakeExtension(t, readWorkspace, Config{Events: func(e Event) { events = append(events, e) }}), "r1")
	for _, ev := range []wasiabi.Event{
		{Op: "open", Capability: "read /workspace/a", Count: 1},
		{Op: "open", Capability: "write /workspace/a", Denied: true, Errno: "EROFS", Count: 2},
		{Op: "open", Capability: "write /workspace/a", Denied: true, Errno: "EROFS", Count: 3},
		{Op: "open", Capability: "read /workspace/../etc/passwd", Denied: true, Errno: "EACCES"},
		{Op: "open", Capability: "read /workspace/l", Denied: true, Errno: "EACCES", Detail: "a link\x1b[2J leaves"},
		{Op: "open", Capability: "read /workspace/m", Denied: true, Errno: "EPERM"},
	} {
		tr.reported(ev)
	}
	var got []string
	for _, d := range tr.denials() {
		got = append(got, fmt.Sprintf("%s|%s|%s|%d|%s", d.Capability, d.Reason, d.Rule, d.Count, d.Source))
	}
	want := []string{
		"write /workspace/a|/workspace is granted for reading only|p.yaml:4:3|5|reported",
		"read /etc/passwd|no files line in p.yaml covers it||1|reported",
		"read /workspace/l|a link?[2J leaves||1|reported",
		"read /workspace/m|refused for what the file is, not for its name (EPERM)||1|reported",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("denials\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(events) != 6 || events[0].Source != "reported" || events[0].Run != "r1" || events[0].Principal != "guest:x@sha256:0" {
		t.Errorf("events %+v", events)
	}
}

func TestTrailIsQuietAboutWhatARuntimeDoesByItself(t *testing.T) {
	tr := newTrail(fakeExtension(t, readWorkspace, Config{}), "r1")
	tr.quiet = []string{"/built/here"}
	for _, capability := range []string{"read /built/here/os.py", "write /built/here/os.py", "read /built/herein", "read /built/here/../x"} {
		tr.reported(wasiabi.Event{Op: "open", Capability: capability, Denied: true, Errno: "EACCES"})
	}
	var got []string
	for _, d := range tr.denials() {
		got = append(got, d.Capability)
	}
	if want := []string{"write /built/here/os.py", "read /built/herein", "read /built/x"}; !slices.Equal(got, want) {
		t.Errorf("denials %q, want %q", got, want)
	}
}

func TestTrailDropsWhatMakesNoSense(t *testing.T) {
	tr := newTrail(fakeExtension(t, readWorkspace, Config{}), "r1")
	for _, ev := range []wasiabi.Event{
		{Op: "open", Capability: "", Denied: true},
		{Op: "open", Capability: "GET https://example.com/", Denied: true},
		{Op: "open", Capability: "secret TOKEN example.com", Denied: true},
		{Op: "open", Capability: "read relative", Denied: true},
		{Op: "open\n", Capability: "read /x", Denied: true},
		{Op: strings.Repeat("o", 100), Capability: "read /x", Denied: true},
		{Op: "open", Capability: "read /x\x00y", Denied: true},
		{Op: "open", Capability: "program git", Denied: true},
		{Op: "http", Capability: "read /x", Denied: true},
		{Op: "http", Capability: "read https://example.com/", Denied: true},
		{Op: "http", Capability: "program git", Denied: true},
		{Op: "http", Capability: "GET ", Denied: true},
		{Op: "http", Capability: "GET example.com", Denied: true},
		{Op: "http", Capability: "GET https://example.com/"},
		{Op: "run", Capability: "GET https://example.com/", Denied: true},
		{Op: "run", Capability: "program ", Denied: true},
		{Op: "run", Capability: "write /x", Denied: true},
		{Op: "run", Capability: "program git"},
	} {
		tr.reported(ev)
	}
	if len(tr.denials()) != 0 || tr.bad != 18 {
		t.Errorf("kept %v, dropped %d", tr.denials(), tr.bad)
	}
}

func TestTrailJudgesRequestsAndPrograms(t *testing.T) {
	var events []Event
	tr := newTrail(fakeExtension(t, readWorkspace, Config{Events: func(e Event) { events = append(events, e) }}), "r1")
	for _, ev := range []wasiabi.Event{
		{Op: "http", Capability: "GET http://192.0.2.10/i", Denied: true, Count: 1},
		{Op: "http", Capability: "GET http://192.0.2.10:80/./i?key=1", Denied: true, Count: 2},
		{Op: "http", Capability: "POST https://api.example.test/a/../b", Denied: true},
		{Op: "http", Capability: "GET ftp://example.test/\x1b[2J", Denied: true},
		{Op: "run", Capability: "program git", Denied: true, Count: 3, Detail: "clone https://example.test/\x1b[2J"},
		{Op: "run", Capability: "program git", Denied: true, Count: 2, Detail: "push origin"},
		{Op: "run", Capability: "program git", Denied: true, Count: 2, Detail: strings.Repeat("x", 500)},
		{Op: "run", Capability: "program odd name", Denied: true},
	} {
		tr.reported(ev)
	}
	var got []string
	for _, d := range tr.denials() {
		got = append(got, strings.TrimRight(fmt.Sprintf("%s|%s|%d|%s|%s", d.Capability, d.Reason, d.Count, d.Source, strings.Join(d.Targets, ";")), "|"))
	}
	want := []string{
		"GET http://192.0.2.10/i|no network line in p.yaml covers it; this version has no network|3|reported",
		"POST https://api.example.test/a/../b|it is not a target that a policy can name|1|reported",
		"GET ftp://example.test/?[2J|it is not a target that a policy can name|1|reported",
		"program git|no such program in the sandbox|7|reported|clone https://example.test/?[2J;push origin;" + strings.Repeat("x", 200),
		"program odd name|no such program in the sandbox|1|reported",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("denials\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(events) != 8 || tr.bad != 0 {
		t.Errorf("%d events, %d dropped", len(events), tr.bad)
	}
}

func TestTrailTakesFewNotesAndMarksThem(t *testing.T) {
	tr := newTrail(fakeExtension(t, readWorkspace, Config{}), "r1")
	tr.reported(wasiabi.Event{Op: "log", Capability: "log", Detail: " \n"})
	for i := range 100 {
		tr.reported(wasiabi.Event{Op: "log", Capability: "log", Detail: fmt.Sprintf("half\x1b[2J\n way %d%s", i/2, strings.Repeat("x", 2000))})
	}
	if len(tr.notes) != maxScriptNotes || !strings.HasPrefix(tr.notes[1], "the script says: half?[2J? way 1xxx") || len(tr.notes[1]) > 600 {
		t.Errorf("%d notes, %.700q", len(tr.notes), tr.notes)
	}
	if len(tr.denials()) != 0 || tr.bad != 0 {
		t.Errorf("denials %v, %d dropped", tr.denials(), tr.bad)
	}
}

func TestTrailIsBounded(t *testing.T) {
	tr := newTrail(fakeExtension(t, readWorkspace, Config{}), "r1")
	for i := range 10_000 {
		tr.reported(wasiabi.Event{Op: "open", Capability: fmt.Sprintf("read /d/%d", i), Denied: true, Count: 1 << 62})
		tr.reported(wasiabi.Event{Op: "create", Capability: fmt.Sprintf("write /d/%d", i)})
		tr.reported(wasiabi.Event{Op: "limit", Capability: fmt.Sprintf("limit %d", i), Denied: true})
	}
	if len(tr.denied) > maxDenials || len(tr.touched) > maxTouched || len(tr.met) > 16 {
		t.Errorf("kept %d denials, %d files, %d limits", len(tr.denied), len(tr.touched), len(tr.met))
	}
	for _, d := range tr.denials() {
		if d.Count < 0 {
			t.Fatalf("count %d", d.Count)
		}
	}
}

func FuzzTrail(f *testing.F) {
	f.Add("open", "read /x", "EACCES", "detail", true, 3)
	f.Add("limit", "limit disk", "", "", true, -1)
	f.Add("http", "GET https://example.com/a", "EACCES", "", true, 1)
	f.Add("run", "program git", "ENOENT", "", true, 1)
	f.Add("log", "log", "", "text", false, 1)
	e := fakeExtension(f, readWorkspace, Config{Events: func(ev Event) {
		if strings.ContainsAny(ev.Detail+ev.Op+ev.Capability, "\x00\x1b\n\r\x7f") {
			panic(fmt.Sprintf("a control character was passed on: %+v", ev))
		}
	}})
	f.Fuzz(func(t *testing.T, op, capability, errno, detail string, denied bool, count int) {
		tr := newTrail(e, "r")
		ev := wasiabi.Event{Op: op, Capability: capability, Errno: errno, Detail: detail, Denied: denied, Count: count}
		tr.reported(ev)
		tr.reported(ev)
		for _, d := range tr.denials() {
			if d.Count < 1 || strings.ContainsAny(d.Reason+d.Capability, "\x00\x1b\n\r\x7f") {
				t.Errorf("denial %+v", d)
			}
			kinds := map[string][]policy.Kind{"http": {policy.HTTP}, "run": {policy.Program}}[op]
			shown := kinds != nil // a target that no policy could name is shown as it is
			if kinds == nil {
				kinds = []policy.Kind{policy.Read, policy.Write}
			}
			if c, err := policy.ParseCapability(d.Capability); err != nil && !shown || err == nil && !slices.Contains(kinds, c.Kind) {
				t.Errorf("denial %q of %q: %v", d.Capability, op, err)
			}
		}
	})
}
