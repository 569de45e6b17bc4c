package policy

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestEveryKeyHasItsRowAndEveryRowItsKey(t *testing.T) {
	var rows []string
	for _, f := range Fields() {
		rows = append(rows, f.Name)
		if f.Test == "" {
			t.Errorf("%s: no test", f.Name)
		}
	}
	if keys := keyNames(); !slices.Equal(rows, keys) {
		t.Errorf("rows %q\nkeys %q", rows, keys)
	}
}

// TestEveryEnforcerAndTestOfTheTableExists looks them up in the source of the module.
func TestEveryEnforcerAndTestOfTheTableExists(t *testing.T) {
	tests := map[string]bool{}
	fn := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(p, "_test.go") {
			return err
		}
		data, err := os.ReadFile(p)
		for _, m := range fn.FindAllSubmatch(data, -1) {
			tests[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Fields() {
		for _, e := range parts(f.Enforcer) {
			i := strings.LastIndexByte(e, '.')
			if !hasFunction(t, filepath.Join("..", e[:i]), e[i+1:]) {
				t.Errorf("%s: there is no function %s", f.Name, e)
			}
		}
		for _, name := range parts(f.Test) {
			ok := tests[name]
			switch {
			case strings.HasSuffix(name, ".txtar"):
				ok = exists("../cmd/exthost/testdata/script/" + name)
			case strings.HasPrefix(name, "hostile/"):
				ok = exists("../testdata/" + name)
			}
			if !ok {
				t.Errorf("%s: there is no test %s", f.Name, name)
			}
		}
	}
}

func exists(p string) bool {
	_, err := os.Stat(p)
	return err == nil
}

func hasFunction(t *testing.T, dir, name string) bool {
	decl := regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + regexp.QuoteMeta(name) + `\(`)
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(f string) bool {
		if strings.HasSuffix(f, "_test.go") {
			return false
		}
		data, err := os.ReadFile(f)
		return err == nil && decl.Match(data)
	})
}

// TestUnenforcedRowsAreThoseThatARunIsRefusedFor ties the table to the code: a policy that uses one key is refused if
// and only if the key's row names no enforcer.
func TestUnenforcedRowsAreThoseThatARunIsRefusedFor(t *testing.T) {
	for section, text := range map[string]string{
		"env": "env: {pass: [LANG], set: {A: b}}", "files": "files: {/w: {host: /w, access: write, hide: [], create: true, protected: [a]}}",
		"network": "network: [{host: a.test}]", "secrets": "network: [{host: a.test}]\nsecrets: {A: {from: 'env:A', to: [a.test]}}", "tools": "tools: [{server: s, allow: [t]}]",
		"shared": "shared: true", "walls": "walls: [userns]", "digest": "digest: sha256:" + strings.Repeat("0", 64), "tests": "tests: {deny: ['env A']}",
		"limits.time": "limits: {time: 1s}", "limits.memory": "limits: {memory: 1MiB}", "limits.output": "limits: {output: 1KiB}", "limits.disk": "limits: {disk: 1KiB}", "limits.open-files": "limits: {open-files: 9}",
		"limits.processes": "limits: {processes: 9}", "limits.requests": "limits: {requests: 9}", "limits.upload": "limits: {upload: 9KiB}", "limits.download": "limits: {download: 9KiB}", "limits.calls": "limits: {calls: 9}",
	} {
		refused := slices.ContainsFunc(New(mustParse(t, head+text)).Unenforced(), func(e Error) bool { return strings.Contains(e.Msg, ": "+section+",") })
		rows := 0
		for _, f := range Fields() {
			if f.Name == section || strings.HasPrefix(f.Name, section+".") || strings.HasPrefix(f.Name, section+"[") {
				rows++
				if (f.Enforcer == "") != refused {
					t.Errorf("%s: enforced by %q, but a run is refused: %v", f.Name, f.Enforcer, refused)
				}
			}
		}
		if rows == 0 {
			t.Errorf("%s has no row", section)
		}
	}
}
