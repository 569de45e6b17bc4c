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
	} {
		tr.reported(ev)
	}
	if len(tr.denials()) != 0 || tr.bad != 7 {
		t.Errorf("kept %v, dropped %d", tr.denials(), tr.bad)
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
			if _, err := policy.ParseCapability(d.Capability); err != nil {
				t.Errorf("denial %q: %v", d.Capability, err)
			}
		}
	})
}
