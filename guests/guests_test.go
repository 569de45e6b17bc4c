package guests

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"
)

func digest(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// pack makes a compressed archive of name, content pairs.
func pack(t *testing.T, pairs ...string) []byte {
	t.Helper()
	var plain bytes.Buffer
	w := tar.NewWriter(&plain)
	for i := 0; i < len(pairs); i += 2 {
		h := &tar.Header{Name: pairs[i], Size: int64(len(pairs[i+1])), Mode: 0o444, Typeflag: tar.TypeReg}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(pairs[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	return enc.EncodeAll(plain.Bytes(), nil)
}

const module, library = "\x00asm module", "a library"

// toy is a runtime of two files, held by a dist of its own.
func toy(t *testing.T, pairs ...string) Runtime {
	t.Helper()
	if pairs == nil {
		pairs = []string{"module.wasm", module, "root/lib/a.py", library}
	}
	return Runtime{
		Name: "toy", Version: "1.0", archive: "toy.tar.zst",
		Files: []File{
			{"module.wasm", int64(len(module)), digest([]byte(module))},
			{"root/lib/a.py", int64(len(library)), digest([]byte(library))},
		},
		dist: fstest.MapFS{"dist/toy.tar.zst": {Data: pack(t, pairs...)}},
	}
}

func TestUnpackMakesExactlyThePinnedFiles(t *testing.T) {
	r, parent := toy(t), filepath.Join(t.TempDir(), "runtimes")
	u, err := r.Unpack(parent)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(u.Module); string(b) != module {
		t.Errorf("module holds %q", b)
	}
	if b, _ := os.ReadFile(filepath.Join(u.Root, "lib", "a.py")); string(b) != library {
		t.Errorf("library holds %q", b)
	}
	left, err := os.ReadDir(parent)
	if err != nil || len(left) != 1 || left[0].Name() != r.ID() {
		t.Errorf("folder holds %v, %v; want only %s", left, err, r.ID())
	}
	if info, _ := os.Stat(parent); info.Mode().Perm() != 0o700 && os.PathSeparator == '/' {
		t.Errorf("folder has mode %v, want 0700", info.Mode())
	}
}

func TestUnpackReplacesWhatWasTamperedWith(t *testing.T) {
	for name, tamper := range map[string]func(u Unpacked) error{
		"byte changed": func(u Unpacked) error { return rewrite(u.Module, strings.ToUpper(module)) },
		"file grown":   func(u Unpacked) error { return rewrite(u.Module, module+"x") },
		"file missing": func(u Unpacked) error { return os.Remove(u.Module) },
		"file added":   func(u Unpacked) error { return os.WriteFile(filepath.Join(u.Root, "lib", "b.py"), nil, 0o600) },
		"file is a link": func(u Unpacked) error {
			copied := u.Dir + "-elsewhere"
			return errors.Join(os.Rename(u.Module, copied), os.Symlink(copied, u.Module))
		},
		"folder is a file": func(u Unpacked) error {
			return errors.Join(os.RemoveAll(u.Dir), os.WriteFile(u.Dir, nil, 0o600))
		},
		"folder is empty": func(u Unpacked) error {
			return errors.Join(os.RemoveAll(u.Dir), os.Mkdir(u.Dir, 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, parent := toy(t), t.TempDir()
			u, err := r.Unpack(parent)
			if err != nil {
				t.Fatal(err)
			}
			if err := tamper(u); err != nil {
				t.Fatal(err)
			}
			if r.Verify(u.Dir) == nil {
				t.Error("Verify accepted it")
			}
			if _, err := r.Unpack(parent); err != nil {
				t.Fatal(err)
			}
			if err := r.Verify(u.Dir); err != nil {
				t.Errorf("still wrong: %v", err)
			}
		})
	}
}

func rewrite(file, text string) error {
	return errors.Join(os.Chmod(file, 0o600), os.WriteFile(file, []byte(text), 0o600))
}

func TestUnpackRefusesAnArchiveThatIsNotThePinnedOne(t *testing.T) {
	for name, pairs := range map[string][]string{
		"other content": {"module.wasm", strings.ToUpper(module), "root/lib/a.py", library},
		"file missing":  {"module.wasm", module},
		"file added":    {"module.wasm", module, "root/lib/a.py", library, "root/lib/b.py", ""},
		"file twice":    {"module.wasm", module, "module.wasm", module, "root/lib/a.py", library},
		"path outside":  {"../module.wasm", module, "root/lib/a.py", library},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			if _, err := toy(t, pairs...).Unpack(parent); err == nil {
				t.Error("accepted")
			}
			if left, _ := os.ReadDir(parent); len(left) != 0 {
				t.Errorf("left %v behind", left)
			}
		})
	}
}

func TestUnpackByManyAtOnceGivesEachAWholeRuntime(t *testing.T) {
	r, parent := toy(t), t.TempDir()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			u, err := r.Unpack(parent)
			if err == nil {
				err = r.Verify(u.Dir)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestRuntimeIsPresentOnlyWhenDistFitsThePins(t *testing.T) {
	python, _ := lookup(load(fstest.MapFS{}), "python")
	whole := Manifest{Version: 1, Archives: []Archive{{Runtime: "python", Version: python.Version, Name: python.archive, Size: 3, Files: python.Files}}}
	other := whole
	other.Archives = []Archive{whole.Archives[0]}
	other.Archives[0].Files = python.Files[1:]
	for name, c := range map[string]struct {
		manifest any
		archive  string
		want     string // "" : present
	}{
		"fits":                 {whole, "abc", ""},
		"only a README":        {nil, "", "make guests"},
		"other files":          {other, "abc", "another version"},
		"archive is cut":       {whole, "ab", "2 bytes"},
		"archive is not there": {whole, "", "not exist"},
		"runtime not listed":   {Manifest{Version: 1}, "abc", "does not hold it"},
		"newer manifest":       {Manifest{Version: 2}, "abc", "version 2"},
		"manifest is no JSON":  {json.RawMessage("1"), "abc", "manifest.json"},
	} {
		t.Run(name, func(t *testing.T) {
			dist := fstest.MapFS{"dist/README.md": {}}
			if c.manifest != nil {
				b, err := json.Marshal(c.manifest)
				if err != nil {
					t.Fatal(err)
				}
				dist["dist/manifest.json"] = &fstest.MapFile{Data: b}
			}
			if c.archive != "" {
				dist["dist/"+python.archive] = &fstest.MapFile{Data: []byte(c.archive)}
			}
			r, ok := lookup(load(dist), "python")
			if !ok || r.Present() != (c.want == "") {
				t.Fatalf("present: %v, error %v; want %q", r.Present(), r.Err(), c.want)
			}
			if r.Present() {
				return
			}
			if !errors.Is(r.Err(), ErrMissing) || !strings.Contains(r.Err().Error(), c.want) || r.Hint() == "" {
				t.Errorf("error %v, hint %q; want %q and a hint", r.Err(), r.Hint(), c.want)
			}
			if _, err := r.Unpack(t.TempDir()); !errors.Is(err, ErrMissing) {
				t.Errorf("Unpack: %v, want ErrMissing", err)
			}
		})
	}
}

func TestABuiltRuntimeTakesItsDigestsFromTheManifest(t *testing.T) {
	missing, _ := lookup(load(fstest.MapFS{}), "sh")
	if missing.Present() || len(missing.Files) != 0 || missing.Hint() == "" {
		t.Errorf("without dist: %v, %v", missing.Err(), missing.Files)
	}
	files := []File{{"module.wasm", int64(len(module)), digest([]byte(module))}}
	packed := pack(t, "module.wasm", module)
	whole := Archive{Runtime: "sh", Version: missing.Version, Name: missing.archive, Size: int64(len(packed)), Files: files}
	older, empty := whole, whole
	older.Version = "4.4"
	empty.Files = nil
	for name, c := range map[string]struct {
		a    Archive
		want string
	}{"fits": {whole, ""}, "another version": {older, "another version"}, "no module": {empty, "without its module"}} {
		t.Run(name, func(t *testing.T) {
			b, err := json.Marshal(Manifest{Version: 1, Archives: []Archive{c.a}})
			if err != nil {
				t.Fatal(err)
			}
			r, _ := lookup(load(fstest.MapFS{"dist/manifest.json": {Data: b}, "dist/" + missing.archive: {Data: packed}}), "sh")
			if r.Present() != (c.want == "") {
				t.Fatalf("present: %v, %v", r.Present(), r.Err())
			}
			if !r.Present() {
				if !strings.Contains(r.Err().Error(), c.want) {
					t.Errorf("error %v, want %q", r.Err(), c.want)
				}
				return
			}
			u, err := r.Unpack(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if b, _ := os.ReadFile(u.Module); string(b) != module {
				t.Errorf("module holds %q", b)
			}
		})
	}
}

func lookup(all []Runtime, name string) (Runtime, bool) {
	for _, r := range all {
		if r.Name == name {
			return r, true
		}
	}
	return Runtime{}, false
}

// The binary under test may or may not hold the runtimes; what it says must be so in both cases.
func TestEmbeddedRuntimesAreWhatTheyClaim(t *testing.T) {
	for _, r := range All() {
		if len(r.Files) == 0 {
			continue
		}
		_, err := fs.Stat(embedded, "dist/"+r.Archive())
		if r.Present() != (err == nil) {
			t.Errorf("%s: present: %v (%v), but its archive: %v", r.Name, r.Present(), r.Err(), err)
		}
		if !r.Present() {
			continue
		}
		u, err := r.Unpack(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if head, _ := os.ReadFile(u.Module); !bytes.HasPrefix(head, []byte("\x00asm\x01\x00\x00\x00")) {
			t.Errorf("%s: module.wasm is no module", r.Name)
		}
	}
}

func TestScriptsFindTheirRuntime(t *testing.T) {
	for _, c := range []struct{ name, head, want string }{
		{"scripts/a.py", "", "python"},
		{"scripts/A.PY", "", "python"},
		{"scripts/a.wasm", "\x00asm", "wasm"},
		{"scripts/a", "#!/usr/bin/env python3\n", "python"},
		{"scripts/a", "#!/usr/bin/python3.12 -u\n", "python"},
		{"scripts/a", "#!/usr/bin/env -S uv run --script\n", "python"},
		{"scripts/a", "#!/usr/bin/env -S LANG=C python\r\n", "python"},
		{"scripts/a", "#!/home/x/venv/bin/python", "python"},
		{"scripts/a", "#! /usr/bin/python3\n", "python"},
		{"scripts/a", "#!/bin/bash\n", "sh"},
		{"scripts/a", "#!/bin/sh -e\r\n", "sh"},
		{"scripts/a", "#!/usr/bin/env zsh\n", "sh"},
		{"scripts/a", "#!/usr/bin/env fish\n", ""},
		{"scripts/a", "#!/bin/bash\\nset -e\\n", ""},
		{"scripts/a", "#!/usr/bin/env pythonista\n", ""},
		{"scripts/a", "python3\n", ""},
		{"scripts/a", "#!\n", ""},
		{"scripts/a", "", ""},
		{"scripts/a.tool", "#!/usr/bin/env python3\n", "python"},
		{"scripts/a.sh", "#!/bin/sh\n", "sh"},
		{"scripts/a.bash", "", "sh"},
		{"scripts/a.py", "#!/bin/sh\n", "python"},
	} {
		r, ok := ForScript(c.name, []byte(c.head))
		if r.Name != c.want || ok != (c.want != "") {
			t.Errorf("%s with %q: %q, want %q", c.name, c.head, r.Name, c.want)
		}
	}
}

func TestRegistryIsWhole(t *testing.T) {
	for _, r := range All() {
		if got, ok := Lookup(r.Name); !ok || got.ID() != r.ID() {
			t.Errorf("Lookup(%q) gives %q", r.Name, got.ID())
		}
		if r.archive == "" {
			continue
		}
		if r.Licence == "" || len(r.Argv) == 0 || (r.Source == nil) == (r.Package == "") {
			t.Errorf("%s: its entry is not whole: %+v", r.Name, r)
		}
		if r.Source != nil && (!strings.HasPrefix(r.Source.Integrity, "sha512-") || r.Mount == "" || len(r.Files) == 0) {
			t.Errorf("%s: its entry is not whole: %+v", r.Name, r)
		}
		if r.Package != "" && r.Present() == (len(r.Files) == 0) {
			t.Errorf("%s: present: %v, with files %v", r.Name, r.Present(), r.Files)
		}
		for i, f := range r.Files {
			if len(f.SHA256) != 64 || !fs.ValidPath(f.Path) || i > 0 && r.Files[i-1].Path >= f.Path {
				t.Errorf("%s: bad or unsorted file entry %+v", r.Name, f)
			}
		}
	}
	if _, ok := Lookup("cobol"); ok {
		t.Error("Lookup found a runtime that is not there")
	}
}

// FuzzInterpreter: whatever a first line holds, the answer is one plain word, and only "#!" gives one.
func TestOptionsOfAFirstLine(t *testing.T) {
	for line, want := range map[string][]string{
		"#!/bin/bash\n":    nil,
		"#!/bin/bash -e\n": {"-e"},
		"#! /usr/bin/env -S bash -eu -o pipefail\r\n": {"-eu", "-o", "pipefail"},
		"#!/usr/bin/env A=1 sh +x\necho":              {"+x"},
		"echo -e\n":                                   nil,
	} {
		if got := Options([]byte(line)); !slices.Equal(got, want) {
			t.Errorf("%q: options %q, want %q", line, got, want)
		}
	}
}

func FuzzInterpreter(f *testing.F) {
	for _, line := range []string{"#!/usr/bin/env python3", "#!/usr/bin/env -S uv run --script", "#! /bin/sh -e\r\n", "#!", "python"} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		program := Interpreter(head)
		if program != "" && !bytes.HasPrefix(head, []byte("#!")) {
			t.Errorf("%q names %q", head, program)
		}
		if program != "/" && strings.Contains(program, "/") || len(strings.Fields(program)) > 1 || len(program) > 256 {
			t.Errorf("%q names %q", head, program)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	r, _ := Lookup("python")
	if !r.Present() {
		b.Skip(r.Err())
	}
	u, err := r.Unpack(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := r.Verify(u.Dir); err != nil {
			b.Fatal(err)
		}
	}
}
