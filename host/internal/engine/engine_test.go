package engine

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestAdvisoryTableIsWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range advisories {
		if seen[a.ID] {
			t.Errorf("%s is there twice", a.ID)
		}
		seen[a.ID] = true
		if a.Engine != Wasmtime && a.Engine != Wazero || a.Title == "" || a.Why == "" {
			t.Errorf("%+v is not complete", a)
		}
		if !slices.Contains([]Status{Affected, Mitigated, NotReachable}, a.Status) {
			t.Errorf("%s: status %q", a.ID, a.Status)
		}
		if !slices.Contains([]string{Low, Medium, High, Critical}, a.Severity) {
			t.Errorf("%s: severity %q", a.ID, a.Severity)
		}
		for _, v := range append(slices.Clone(a.Fixed), a.Since) {
			if _, ok := parseVersion(v); !ok && v != "" {
				t.Errorf("%s: version %q", a.ID, v)
			}
		}
		if !slices.IsSortedFunc(a.Fixed, func(x, y string) int {
			v, _ := parseVersion(x)
			w, _ := parseVersion(y)
			return slices.Compare(v[:], w[:])
		}) {
			t.Errorf("%s: fixed versions %v are not in order", a.ID, a.Fixed)
		}
	}
}

func TestAdvisoryApplies(t *testing.T) {
	a := Advisory{Since: "30.0.0", Fixed: []string{"36.0.5", "40.0.3", "41.0.1"}}
	for v, want := range map[string]bool{
		"29.9.9": false, "30.0.0": true, "36.0.4": true, "36.0.5": false, "36.1.0": false, "37.0.0": true, "39.0.1": true,
		"40.0.2": true, "40.0.3": false, "41.0.0": true, "41.0.1": false, "50.0.0": false,
		"41.0.0+incompatible": true, "39.0.1-rc.1": true, "unknown": true, "": true, "39": true, "39.0.x": true,
	} {
		if got := a.Has(v); got != want {
			t.Errorf("version %q has it: %v, want %v", v, got, want)
		}
	}
	if !(Advisory{}).Has("50.0.0") {
		t.Error("an advisory without a fix does not apply to a new version")
	}
}

// TestOpenAdvisories fails when a new version of an engine, or of the table, changes what users are told.
func TestOpenAdvisories(t *testing.T) {
	ids := func(name string) string {
		var out []string
		for _, a := range Open(name) {
			out = append(out, a.ID)
		}
		return strings.Join(out, ", ")
	}
	if got := ids(Wasmtime); got != "releases of 2026-10-14, GHSA-897f-g5gm-fmxm" {
		t.Errorf("open for wasmtime: %s", got)
	}
	if got := ids(Wazero); got != "wazero #2516" {
		t.Errorf("open for wazero: %s", got)
	}
	if !RequiresWalls(Wasmtime) {
		t.Error("wasmtime may run without the second wall, with a critical advisory open")
	}
	if RequiresWalls(Wazero) {
		t.Error("wazero must not run without the second wall, with no critical advisory open")
	}
}

func TestDefaultEngine(t *testing.T) {
	want := Wazero
	if hasWasmtime {
		want = Wasmtime
	}
	if got := Default(); got != want {
		t.Errorf("default %q, want %q", got, want)
	}
	if hasWasmtime && runtime.GOARCH != "amd64" {
		t.Error("wasmtime is built in on an architecture whose fix it lacks")
	}
	all := All()
	if !all[0].Default || len(all) > 1 && all[1].Default {
		t.Errorf("engines %+v", all)
	}
}

func TestCodeKeyTellsEnginesApart(t *testing.T) {
	if a, b := CodeKey(Wazero), CodeKey(Wasmtime); a == b || len(a) != 32 || a != CodeKey(Wazero) {
		t.Errorf("keys %q, %q", a, b)
	}
}

func TestTrapTextIsBoundedAndClean(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"main.main", "main.main"},
		{"a\x1b[31m\n\tb\r", "a?[31m??b?"},
		{"main.(*T[go.shape.int]).Größe·f", "main.(*T[go.shape.int]).Größe·f"},
		{"\u202egnp.exe\u200b\u00a0", "?gnp.exe??"},
		{"\xff\xfe", "??"},
		{strings.Repeat("é", 100), strings.Repeat("é", 50)},
		{"", ""},
	} {
		if got := Clean(c.in, 100); got != c.want {
			t.Errorf("Clean(%q) = %q, want %q", c.in, got, c.want)
		}
	}
	if got := Frames([]string{"a", "b"}); got != "a < b" {
		t.Errorf("frames %q", got)
	}
	many := Frames(slices.Repeat([]string{strings.Repeat("x", 1000)}, 1000))
	if !strings.HasSuffix(many, " < ...") || len(many) != 10*100+10*len(" < ")+len("...") {
		t.Errorf("many frames make %d bytes", len(many))
	}
	if got := Frames(nil); got != "" {
		t.Errorf("no frames make %q", got)
	}
}
