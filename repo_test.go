// Package exthost_test holds the rules of the repository as tests, so that they hold wherever `go test ./...` runs.
package exthost_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/exthost/exthost"

// goTool runs the go command and returns what it printed.
func goTool(t *testing.T, args ...string) []byte {
	t.Helper()
	var problem bytes.Buffer
	cmd := exec.Command("go", args...)
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &problem)
	}
	return out
}

// tracked lists the files of the source tree: those that git knows, or all of them where there is no repository.
func tracked(t *testing.T) []string {
	t.Helper()
	if out, err := exec.Command("git", "ls-files", "-z").Output(); err == nil && len(out) > 0 {
		files := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		return slices.DeleteFunc(files, func(f string) bool { _, err := os.Lstat(f); return err != nil })
	}
	var files []string
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (name == ".git" || name == "bin") {
			return filepath.SkipDir
		}
		if err == nil && d.Type().IsRegular() {
			files = append(files, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

type pkg struct {
	ImportPath string
	Doc        string
	Imports    []string
	Deps       []string
	GoFiles    []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	var all []pkg
	dec := json.NewDecoder(bytes.NewReader(goTool(t, "list", "-json=ImportPath,Doc,Imports,Deps,GoFiles", "./...")))
	for dec.More() {
		var p pkg
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if len(p.GoFiles) > 0 {
			all = append(all, p)
		}
	}
	if len(all) < 8 {
		t.Fatalf("go list found %d packages only", len(all))
	}
	return all
}

// mayImport says for each top-level folder which others its packages may use, directly or through others.
var mayImport = map[string][]string{
	"cmd":     {"cmd", "host", "policy", "wasiabi", "guests"}, // wasiabi and guests come with host
	"host":    {"host", "wasiabi", "policy", "guests"},
	"wasiabi": {"wasiabi"},
	"policy":  {"policy"},
	"guests":  {"guests"},
}

// mayName narrows mayImport for direct imports.
var mayName = map[string][]string{
	"cmd": {"cmd", "host", "policy", "guests"},
}

// neverBelow lists standard packages that must not come into a folder, with the reason.
var neverBelow = map[string]map[string]string{
	"policy":  {"net/http": "a decision asks nobody", "os/exec": "a decision starts nothing", "net": "a decision asks nobody"},
	"wasiabi": {"net/http": "the network lives in the broker", "os/exec": "a guest's program is never a host process"},
	"guests":  {"net/http": "packages come by the npm client only"},
}

func TestDependenciesPointDownwards(t *testing.T) {
	for _, p := range packages(t) {
		folder := top(p.ImportPath)
		allowed, ok := mayImport[folder]
		if !ok {
			t.Errorf("%s lies in a folder without a rule", p.ImportPath)
			continue
		}
		for _, dep := range p.Deps {
			if strings.HasPrefix(dep, module+"/") && !slices.Contains(allowed, top(dep)) {
				t.Errorf("%s depends on %s", p.ImportPath, dep)
			}
			if why, bad := neverBelow[folder][dep]; bad {
				t.Errorf("%s depends on %s: %s", p.ImportPath, dep, why)
			}
		}
		for _, dep := range p.Imports {
			if narrow, ok := mayName[folder]; ok && strings.HasPrefix(dep, module+"/") && !slices.Contains(narrow, top(dep)) {
				t.Errorf("%s imports %s itself", p.ImportPath, dep)
			}
		}
	}
}

// top is the first folder of a package of ours.
func top(importPath string) string {
	rest := strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
	first, _, _ := strings.Cut(rest, "/")
	return first
}

func TestPackagesHaveComments(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

// opening are the functions that turn a name into access to a file.
var opening = []string{"Open", "OpenFile", "OpenRoot", "Create", "CreateTemp", "ReadFile", "WriteFile", "ReadDir", "DirFS",
	"Remove", "RemoveAll", "Rename", "Link", "Symlink", "Readlink", "Mkdir", "MkdirAll", "Truncate", "Chmod", "Chtimes", "Stat", "Lstat"}

func TestOnlyRootfsOpensAGuestsFiles(t *testing.T) {
	seen := 0
	for _, file := range tracked(t) {
		if path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") || !strings.HasPrefix(file, "wasiabi/") ||
			strings.Contains(file, "/testdata/") {
			continue
		}
		seen++
		if strings.HasPrefix(file, "wasiabi/internal/rootfs/") {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "os" && slices.Contains(opening, s.Sel.Name) {
					t.Errorf("%s: os.%s outside wasiabi/internal/rootfs", set.Position(s.Pos()), s.Sel.Name)
				}
			}
			return true
		})
	}
	if seen == 0 {
		t.Error("no file of wasiabi was looked at")
	}
}

func TestGoFilesAreFormatted(t *testing.T) {
	for _, file := range tracked(t) {
		if path.Ext(file) != ".go" {
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if want, err := format.Source(src); err != nil || !bytes.Equal(src, want) {
			t.Errorf("%s is not formatted (%v)", file, err)
		}
	}
}

type goMod struct {
	Go      string
	Require []struct{ Path, Version string }
	Replace []struct{ Old struct{ Path string } }
	Exclude []struct{ Path string }
}

func modFile(t *testing.T) goMod {
	t.Helper()
	var m goMod
	if err := json.Unmarshal(goTool(t, "mod", "edit", "-json"), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// Go 1.26.5 is the first of its line whose os.Root refuses a trailing slash behind a link that leaves the root.
func TestGoModAsksForASafeGoAndReplacesNothing(t *testing.T) {
	m := modFile(t)
	if len(m.Replace)+len(m.Exclude) != 0 {
		t.Errorf("go.mod replaces %v and excludes %v", m.Replace, m.Exclude)
	}
	want, got := []int{1, 26, 5}, []int{}
	for _, part := range strings.Split(m.Go, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			t.Fatalf("go version %q in go.mod", m.Go)
		}
		got = append(got, n)
	}
	if slices.Compare(got, want) < 0 {
		t.Errorf("go.mod asks for Go %s, want 1.26.5 or later", m.Go)
	}
}

// The patterns are put together here so that this file does not match them.
func TestFilesNameNoMachineAndNoRegistry(t *testing.T) {
	var words []string
	for _, host := range [][]string{{"registry", "npmjs"}, {"proxy", "golang"}, {"sum", "golang"}, {"deb", "debian"},
		{"security", "debian"}, {"pypi", "org"}, {"files", "pythonhosted"}} {
		words = append(words, strings.Join(host, `\.`))
	}
	paths := `(^|[^[:alnum:]_.$}-])/(` + strings.Join([]string{"wo" + "rk", "ro" + "ot"}, "|") + `)/`
	bad := regexp.MustCompile(paths + `|` + strings.Join(words, "|"))
	for _, file := range tracked(t) {
		b, err := os.ReadFile(file)
		if err != nil || bytes.IndexByte(b, 0) >= 0 {
			continue
		}
		for n, line := range strings.Split(string(b), "\n") {
			hit := bad.FindString(line)
			if strings.HasPrefix(file, "testdata/hostile/") && strings.Contains(hit, "/") {
				continue // an attack names the paths that it tries
			}
			if hit != "" {
				t.Errorf("%s:%d names %q", file, n+1, hit)
			}
		}
	}
}

func TestTrackedFilesAreSmall(t *testing.T) {
	for _, file := range tracked(t) {
		if info, err := os.Stat(file); err == nil && info.Size() > 512<<10 {
			t.Errorf("%s has %d bytes: what is built or fetched does not belong in git", file, info.Size())
		}
	}
}

// Each row of THIRD_PARTY.md is: module, version, licence, use.
func TestThirdPartyListsEachModule(t *testing.T) {
	b, err := os.ReadFile("THIRD_PARTY.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string][]string{}
	for line := range strings.Lines(string(b)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " `")
		}
		if len(cells) == 4 && strings.Contains(cells[0], "/") || len(cells) == 4 && strings.Contains(cells[0], ".") {
			listed[cells[0]] = cells[1:]
		}
	}
	for _, r := range modFile(t).Require {
		cells, ok := listed[r.Path]
		if !ok {
			t.Errorf("THIRD_PARTY.md lacks %s %s", r.Path, r.Version)
			continue
		}
		delete(listed, r.Path)
		if cells[0] != r.Version {
			t.Errorf("THIRD_PARTY.md has %s %s, go.mod has %s", r.Path, cells[0], r.Version)
		}
		if cells[1] == "" || cells[2] == "" {
			t.Errorf("THIRD_PARTY.md says nothing about the licence or the use of %s", r.Path)
		}
	}
	for name := range listed {
		if !strings.HasPrefix(name, "npm:") {
			t.Errorf("THIRD_PARTY.md lists %s, which go.mod does not require", name)
		}
	}
}

var (
	mdLink   = regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)]*)?\)`)
	mdPath   = regexp.MustCompile("`((?:cmd|host|wasiabi|policy|guests|testdata|\\.ci)/[A-Za-z0-9_./-]*)`")
	mdTarget = regexp.MustCompile("`make ([a-z]+)[^`]*`")
	target   = regexp.MustCompile(`(?m)^([a-z]+):`)
)

// built is what a document may name though it is not in the tree.
var built = []string{"guests/dist/manifest.json", "testdata/skills/thumbs/scripts/thumbs.wasm"}

func TestDocumentsNameFilesAndTargetsThatExist(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, m := range target.FindAllStringSubmatch(string(makefile), -1) {
		targets = append(targets, m[1])
	}
	named := 0
	for _, file := range tracked(t) {
		if path.Ext(file) != ".md" || strings.HasPrefix(file, "testdata/") && !strings.HasPrefix(file, "testdata/skills/sales-report/") {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mdLink.FindAllStringSubmatch(string(b), -1) {
			named++
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", file, m[1], err)
			}
		}
		for _, m := range mdPath.FindAllStringSubmatch(string(b), -1) {
			named++
			if _, err := os.Stat(m[1]); err != nil && !slices.Contains(built, m[1]) {
				t.Errorf("%s names %s: %v", file, m[1], err)
			}
		}
		for _, m := range mdTarget.FindAllStringSubmatch(string(b), -1) {
			named++
			if !slices.Contains(targets, m[1]) {
				t.Errorf("%s names `make %s`, which the Makefile lacks", file, m[1])
			}
		}
	}
	if named == 0 {
		t.Error("no document names anything")
	}
}

func TestMakefileHasThePromisedTargets(t *testing.T) {
	b, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"demo", "test", "guests", "lint", "bench", "fuzz", "ci", "build"} {
		if !regexp.MustCompile(`(?m)^` + want + `:`).Match(b) {
			t.Errorf("Makefile has no target %s", want)
		}
	}
}

func TestScriptsParse(t *testing.T) {
	seen := 0
	for _, file := range tracked(t) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(string(b[:min(len(b), 64)]), "\n")
		shell := ""
		switch {
		case strings.HasPrefix(file, "testdata/hostile/"), strings.Contains(file, "testdata/") && path.Ext(file) == ".txtar":
			continue
		case strings.HasPrefix(line, "#!") && strings.HasSuffix(line, "bash"):
			shell = "bash"
		case line == "#!/bin/sh":
			shell = "sh"
		default:
			continue
		}
		seen++
		if out, err := exec.Command(shell, "-n", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
		// Scripts of skills need no mode bit, and most real ones have none.
		guest := strings.HasPrefix(file, "testdata/skills/") || strings.HasPrefix(file, "testdata/shell/skill/")
		if info, err := os.Stat(file); err == nil && info.Mode()&0o111 == 0 && !guest {
			t.Errorf("%s is not executable", file)
		}
	}
	if seen < 3 {
		t.Errorf("only %d scripts were found", seen)
	}
}
