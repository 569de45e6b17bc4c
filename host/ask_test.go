package host_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/exthost/exthost/guests"
	"github.com/exthost/exthost/host"
	"github.com/exthost/exthost/host/hosttest"
)

// refusals are the denials of a run, one a line: capability, how often, reason.
func refusals(r hosttest.Result) []string {
	var out []string
	for _, d := range r.Denials {
		out = append(out, fmt.Sprintf("%s (%d): %s", d.Capability, d.Count, d.Reason))
	}
	return out
}

const (
	askNoNetwork = `{"error":"denied","reason":"there is no network in the sandbox"}` + "\n"
	askNoProgram = `{"error":"denied","reason":"no such program in the sandbox"}` + "\n"
)

func TestWhatAGuestAsksForIsRefusedAndReportedOnce(t *testing.T) {
	onEngines(t, func(t *testing.T, h *host.Host) {
		e := hosttest.Open(t, h, skill(t, nil), hosttest.Policy(t, grant("files: {}")), host.Bindings{Name: "test"})
		for _, tt := range []struct {
			name    string
			job     host.Job
			stdout  string
			denials []string
			notes   []string
		}{
			{"requests", job("ask", "http", `{"method":"GET","url":"http://u:p@192.0.2.10/i?k=1"}`, `{"method":"GET","url":"HTTP://192.0.2.10:80/i"}`,
				`{"method":"POST","url":"https://api.example.test/v1"}`), strings.Repeat(askNoNetwork, 3), []string{
				"GET http://192.0.2.10/i (2): no network line in policy.yaml covers it; this version has no network",
				"POST https://api.example.test/v1 (1): no network line in policy.yaml covers it; this version has no network",
			}, nil},
			{"programs", job("ask", "run", `{"program":"git","args":["status"]}`, `{"program":"/usr/bin/git"}`, `{"program":"docker"}`),
				strings.Repeat(askNoProgram, 3),
				[]string{"program git (2): no such program in the sandbox", "program docker (1): no such program in the sandbox"}, nil},
			{"notes", job("ask", "log", `{"text":"half\u001b[2J way\nexthost: hint: x"}`, `{"text":"half\u001b[2J way\nexthost: hint: x"}`),
				strings.Repeat(`{"ok":true}`+"\n", 2), nil, []string{"the script says: half?[2J way?exthost: hint: x"}},
			{"a request that makes no sense", job("ask", "http", `{"method":"GET"}`),
				`{"error":"invalid","reason":"key \"url\" is missing"}` + "\n", nil, nil},
		} {
			t.Run(tt.name, func(t *testing.T) {
				r := hosttest.Run(t, e, tt.job)
				if r.Outcome != host.Exit || r.ExitCode != 0 || r.Stdout != tt.stdout {
					t.Errorf("got %s", r)
				}
				if got := refusals(r); !slices.Equal(got, tt.denials) {
					t.Errorf("denials %q, want %q", got, tt.denials)
				}
				if got := slices.DeleteFunc(r.Notes, func(n string) bool { return !strings.HasPrefix(n, "the script") }); !slices.Equal(got, tt.notes) {
					t.Errorf("notes %q, want %q", got, tt.notes)
				}
			})
		}
	})
}

// askProgram uses the devices as a Python script would, with nothing but open.
const askProgram = `
import json, os
print(sorted(os.listdir("/dev/exthost")))
with open("/dev/exthost/http", "r+") as f:
    f.write(json.dumps({"method": "GET", "url": "https://example.test/a"}) + "\n")
    f.flush()
    print(json.loads(f.readline())["error"])
with open("/dev/exthost/run", "r+b", buffering=0) as f:
    f.write(b'{"program":"gcc","args":["-c","x.c"]}\n')
    print(json.loads(f.read())["error"])
`

func TestPythonAsksByPlainFiles(t *testing.T) {
	if r, _ := guests.Lookup("python"); !r.Present() {
		t.Skip(r.Err())
	}
	onEngines(t, func(t *testing.T, h *host.Host) {
		e := hosttest.Open(t, h, skill(t, map[string]string{"ask.py": askProgram}), nil, host.Bindings{Name: "test"})
		r := hosttest.Run(t, e, host.Job{Script: "ask.py"})
		if r.ExitCode != 0 || r.Stdout != "['http', 'log', 'run']\ndenied\ndenied\n" {
			t.Fatalf("got %s", r)
		}
		if got := refusals(r); len(got) != 2 || !r.Denied("GET https://example.test/a") || !r.Denied("program gcc") {
			t.Errorf("denials %q", got)
		}
	})
}
