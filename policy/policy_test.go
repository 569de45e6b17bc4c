package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const examples = "../testdata/policies"

func mustParse(t testing.TB, text string) *Policy {
	t.Helper()
	p, err := Parse("p.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

const head = "version: 1\nextension: x\n"

func capability(t testing.TB, s string) Capability {
	t.Helper()
	c, err := ParseCapability(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// validFiles returns the example policies; there must be some.
func validFiles(t testing.TB) map[string][]byte {
	t.Helper()
	names, _ := filepath.Glob(examples + "/valid/*.yaml")
	if len(names) < 7 {
		t.Fatalf("only %d example policies", len(names))
	}
	out := map[string][]byte{}
	for _, n := range names {
		data, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		out[n] = data
	}
	return out
}

func TestExamplesParseAndPassTheirTests(t *testing.T) {
	for name, data := range validFiles(t) {
		p, err := Parse(name, data)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		results := RunTests(p)
		if len(results) == 0 && !strings.Contains(string(data), "# no tests") {
			t.Errorf("%s has no tests", name)
		}
		for _, r := range results {
			if !r.OK {
				t.Error(r)
			}
		}
	}
}

func TestFilesAreMintedFromTheGrantLessTheCeiling(t *testing.T) {
	grant := mustParse(t, head+"files: {/workspace: {host: '${workspace}', access: write}, /out: {host: ~/out, access: write, create: true}}\n")
	v := Vars{Workspace: "/w", Home: "/home/u", Denied: []string{"/w/.exthost"}}
	roots, err := New(grant).Files(v)
	if err != nil || len(roots) != 2 || roots[0].Host != "/home/u/out" || !roots[0].Create || roots[1].Host != "/w" || roots[1].Access != ReadWrite {
		t.Fatalf("%+v %v", roots, err)
	}
	if got := strings.Join(roots[1].Hide, " "); got != "**/.env* **/.git/config .exthost" {
		t.Errorf("hide %q", got)
	}
	ceiling := mustParse(t, head+"files: {/workspace: {host: '${workspace}', access: read}, /workspace/docs: {host: '${workspace}/docs', access: write}}\n")
	roots, err = New(grant, ceiling).Files(v)
	if err != nil || len(roots) != 2 || roots[0].Guest != "/workspace" || roots[0].Access != ReadOnly || roots[1].Guest != "/workspace/docs" || roots[1].Access != ReadWrite || !roots[1].Optional {
		t.Fatalf("%+v %v", roots, err)
	}
}

func TestEnvironHoldsOnlyWhatIsPassedOrSet(t *testing.T) {
	p := mustParse(t, head+"env: {pass: [LANG, 'LC_*', 'NODE_*', 'AWS_*'], set: {A: b}}\n")
	got := strings.Join(New(p).Environ([]string{"LANG=C", "LC_ALL=x", "LC_TOKEN=t", "NODE_OPTIONS=-r", "NODE_ENV=test", "AWS_SECRET_ACCESS_KEY=k", "AWS_REGION=r", "PATH=/bin", "A=host"}), " ")
	if want := "A=b AWS_REGION=r HOME=/home/guest LANG=C LC_ALL=x NODE_ENV=test TMPDIR=/tmp"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
