package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/exthost/exthost/guests"
	"github.com/exthost/exthost/guests/internal/wasmpack"
)

// mergeGap is how many zeros may come into a module's data to make two segments one: less than a page, so that pages
// which hold nothing stay untouched in an instance.
const mergeGap = 4096

const (
	moduleFile  = "module.wasm"
	licenceFile = "root/share/licenses/sh/LICENSES"
)

// compile makes the archive of a runtime that is a Go program of this tree. The same sources and the same Go give the same
// bytes, so what an earlier call made of them is used again: from dist, else from the cache.
func compile(ctx context.Context, cache, src string, r guests.Runtime) (guests.Archive, []byte, error) {
	var a guests.Archive
	b := builder{ctx: ctx, root: filepath.Dir(src), pkg: "./" + r.Package}
	var err error
	if a.Inputs, err = b.inputs(r.Package); err != nil {
		return a, nil, err
	}
	if old, packed, ok := current(src, r); ok && old.Inputs == a.Inputs {
		return old, packed, nil
	}
	dir := filepath.Join(cache, r.Name+"-"+a.Inputs[:16])
	files, err := b.kept(dir)
	if err != nil {
		fmt.Printf("%s %s: building %s\n", r.Name, r.Version, r.Package)
		if files, err = b.build(); err != nil {
			return a, nil, err
		}
		if err := keep(dir, files); err != nil {
			return a, nil, err
		}
		if err := prune(cache, r.Name); err != nil {
			return a, nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		a.Files = append(a.Files, guests.File{Path: name, Size: int64(len(files[name])), SHA256: sum(files[name])})
	}
	packed, err := archive(a.Files, files)
	return a, packed, err
}

// builder builds one Go program for wasip1.
type builder struct {
	ctx  context.Context
	root string // of the module
	pkg  string
}

// run runs the go command for wasip1 with nothing from the environment that changes what it makes.
func (b builder) run(args ...string) ([]byte, error) {
	cmd := exec.CommandContext(b.ctx, "go", args...)
	cmd.Dir = b.root
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=", "GOWASM=", "GOEXPERIMENT=")
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, bytes.TrimSpace(problem.Bytes()))
	}
	return out, nil
}

// inputs is the digest of all that decides the bytes of the module: the sources, the versions of the modules that they
// use, the compiler, and the code here that edits its work.
func (b builder) inputs(folder string) (string, error) {
	version, err := b.run("version")
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", version)
	add := func(name string) error {
		text, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(name)))
		fmt.Fprintf(h, "%s %s\n", name, sum(text))
		return err
	}
	for _, name := range []string{
		"go.mod", "go.sum", "LICENSE", "guests/internal/fetch/compile.go", "guests/internal/wasmpack/wasmpack.go",
	} {
		if err := add(name); err != nil {
			return "", err
		}
	}
	tree := os.DirFS(b.root)
	err = fs.WalkDir(tree, folder, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "testdata":
			return fs.SkipDir
		case d.IsDir() || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		return add(name)
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// build compiles the program and edits the module; with it come the licences of what is linked into it.
func (b builder) build() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "exthost-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, moduleFile)
	if _, err := b.run("build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", out, b.pkg); err != nil {
		return nil, err
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	if wasm, err = wasmpack.StripCustom(wasm); err != nil {
		return nil, err
	}
	if wasm, err = wasmpack.MergeData(wasm, mergeGap); err != nil {
		return nil, err
	}
	licences, err := b.licences()
	return map[string][]byte{moduleFile: wasm, licenceFile: licences}, err
}

// licences joins the licence files of this module, of Go and of each module that the program uses.
func (b builder) licences() ([]byte, error) {
	list, err := b.run("list", "-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}", b.pkg)
	if err != nil {
		return nil, err
	}
	goroot, err := b.run("env", "GOROOT")
	if err != nil {
		return nil, err
	}
	lines := append(strings.Split(string(list), "\n"), "Go\t\t"+strings.TrimSpace(string(goroot)))
	slices.Sort(lines)
	var out bytes.Buffer
	for _, line := range slices.Compact(lines) {
		if line == "" {
			continue
		}
		part := strings.Split(line, "\t")
		text, err := licence(part[2])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part[0], err)
		}
		fmt.Fprintf(&out, "== %s\n\n%s\n\n", strings.TrimSpace(part[0]+" "+part[1]), bytes.TrimSpace(text))
	}
	return out.Bytes(), nil
}

func licence(dir string) ([]byte, error) {
	for _, name := range []string{"LICENSE", "LICENSE.txt", "LICENSE.md", "COPYING"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			return text, nil
		}
	}
	return nil, fmt.Errorf("no licence file in %s", dir)
}

// kept returns the files of an earlier build, whose digests are in the file "sum" beside them.
func (b builder) kept(dir string) (map[string][]byte, error) {
	want, err := os.ReadFile(filepath.Join(dir, "sum"))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, name := range []string{moduleFile, licenceFile} {
		if files[name], err = os.ReadFile(filepath.Join(dir, path.Base(name))); err != nil {
			return nil, err
		}
	}
	if sums(files) != string(want) {
		return nil, fmt.Errorf("%s is damaged", dir)
	}
	return files, nil
}

func keep(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := write(filepath.Join(dir, path.Base(name)), text); err != nil {
			return err
		}
	}
	return write(filepath.Join(dir, "sum"), []byte(sums(files)))
}

// maxKept is how many builds of a runtime the cache keeps: those of a few branches.
const maxKept = 4

// prune removes the builds of a runtime that were made longest ago.
func prune(cache, name string) error {
	dirs, err := filepath.Glob(filepath.Join(cache, name+"-????????????????"))
	if err != nil {
		return err
	}
	made := map[string]time.Time{}
	for _, dir := range dirs {
		if info, err := os.Stat(filepath.Join(dir, "sum")); err == nil {
			made[dir] = info.ModTime()
		}
	}
	slices.SortFunc(dirs, func(a, b string) int { return made[b].Compare(made[a]) })
	for _, dir := range dirs[min(maxKept, len(dirs)):] {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

func sums(files map[string][]byte) string {
	out := ""
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out += sum(files[name]) + "  " + name + "\n"
	}
	return out
}
