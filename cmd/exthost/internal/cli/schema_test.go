package cli

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/exthost/exthost/host"
)

// fullRun is a run object with every field set.
func fullRun() runObject {
	o := runObject{Report: host.Report{
		Version: 1, Run: "r", Extension: "x", Digest: "sha256:0", Script: "s.py", Engine: "wazero", Outcome: host.Exit,
		Walls: []string{"seccomp"}, Started: time.Unix(0, 0).UTC(),
		Denials: []host.Denial{{Capability: "read /a", Reason: "r", Count: 1, Source: "observed"}},
		Changes: []host.Change{{Path: "/out/a", Op: "created", Layer: "write", Source: "reported"}},
	}, GrantedBy: []string{"p.yaml"}}
	o.setStreams([]byte("out"), []byte{0xff})
	return o
}

func TestPublishedSchemaFitsTheObjects(t *testing.T) {
	all, err := schemas()
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, v any, ok bool) {
		t.Helper()
		r, err := all[name].Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		if err := r.Validate(doc); (err == nil) != ok {
			t.Errorf("%s: %v for %s", name, err, data)
		}
	}
	o := fullRun()
	check("run", o, true)
	check("dry-run", binding{Mounts: []mount{{Guest: "/a"}}, GrantedBy: []string{}, Env: []string{}, Walls: []string{}}, true)
	o.Outcome = "vanished"
	check("run", o, false)
	check("run", map[string]any{"version": "one"}, false)
	check("run", map[string]any{}, false)
	var newer map[string]any
	data, _ := json.Marshal(fullRun())
	if err := json.Unmarshal(data, &newer); err != nil {
		t.Fatal(err)
	}
	newer["added_later"] = 1
	check("run", newer, true)
}

func TestPromisedFieldsAreThere(t *testing.T) {
	all, err := schemas()
	if err != nil {
		t.Fatal(err)
	}
	// Fields are only ever added: whoever takes one of these away breaks a promise.
	promised := []string{
		"version", "run", "extension", "digest", "engine", "outcome", "exit_code", "walls", "usage", "started", "duration_ns",
		"granted_by",
	}
	for _, name := range promised {
		if !slices.Contains(all["run"].Required, name) {
			t.Errorf("%q is not promised any more", name)
		}
	}
	for _, name := range []string{"script", "limit", "trap", "detail", "denials", "changes", "notes", "truncated", "strict", "stdout", "stdout_base64", "stderr", "stderr_base64"} {
		if all["run"].Properties[name] == nil {
			t.Errorf("%q is not in the schema any more", name)
		}
	}
}
