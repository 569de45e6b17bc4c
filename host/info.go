package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/exthost/exthost/guests"
	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/host/internal/lock"
	"github.com/exthost/exthost/host/internal/private"
	"github.com/exthost/exthost/host/internal/scratch"
	"github.com/exthost/exthost/host/internal/snapshot"
)

// VersionInfo says what is in this binary.
type VersionInfo struct {
	Version string       `json:"version"`          // of exthost's module; "devel" for a build of a work tree
	Commit  string       `json:"commit,omitempty"` // "-dirty" at its end: with changes on top
	Go      string       `json:"go"`
	OS      string       `json:"os"`
	Arch    string       `json:"arch"`
	Cgo     bool         `json:"cgo"`
	Engines []EngineInfo `json:"engines"` // the default first
}

// EngineInfo is an engine of this binary.
type EngineInfo struct {
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Default    bool       `json:"default"`
	Advisories []Advisory `json:"advisories,omitempty"` // the known ones of its version
}

// AdvisoryOpen is the verdict on an advisory that nothing in the first wall answers.
const AdvisoryOpen = "affected"

// Advisory is a known fault of an engine and what it means here.
type Advisory struct {
	ID       string `json:"id"`
	CVE      string `json:"cve,omitempty"`
	Title    string `json:"title"`
	Severity string `json:"severity"` // "low", "medium", "high", "critical"
	Verdict  string `json:"verdict"`  // [AdvisoryOpen], "not reachable" or "mitigated"
	Why      string `json:"why"`
}

const modulePath = "github.com/exthost/exthost"

// Versions says what is in this binary. It starts nothing.
func Versions() VersionInfo {
	v := VersionInfo{Version: "devel", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
			if m.Path == modulePath && m.Version != "" && m.Version != "(devel)" {
				v.Version = m.Version
			}
		}
		dirty := ""
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.modified":
				if s.Value == "true" {
					dirty = "-dirty"
				}
			case "CGO_ENABLED":
				v.Cgo = s.Value == "1"
			}
		}
		if v.Commit != "" {
			v.Commit += dirty
		}
	}
	for _, i := range engine.All() {
		v.Engines = append(v.Engines, EngineInfo{Name: i.Name, Version: i.Version, Default: i.Default, Advisories: advisories(i.Name)})
	}
	return v
}

// RuntimeInfo is a language runtime.
type RuntimeInfo struct {
	Name       string   `json:"name"`
	Version    string   `json:"version"`
	Extensions []string `json:"extensions"`        // of script names, with the dot
	State      string   `json:"state"`             // "embedded", "built-in" (needs no files) or "missing"
	Digest     string   `json:"digest,omitempty"`  // names its content
	Bytes      int64    `json:"bytes,omitempty"`   // unpacked
	License    string   `json:"license,omitempty"` // SPDX expression
	Hint       string   `json:"hint,omitempty"`    // missing: the command that gets it
}

// Runtimes lists the language runtimes that this version knows.
func Runtimes() []RuntimeInfo {
	var out []RuntimeInfo
	for _, r := range guests.All() {
		i := RuntimeInfo{
			Name: r.Name, Version: r.Version, Extensions: slices.Clone(r.Extensions), State: "embedded", License: r.Licence, Hint: r.Hint(),
		}
		switch {
		case !r.Present():
			i.State = "missing"
		case r.Archive() == "":
			i.State = "built-in"
		}
		if len(r.Files) > 0 {
			i.Digest = r.ID()
		}
		for _, f := range r.Files {
			i.Bytes += f.Size
		}
		out = append(out, i)
	}
	return out
}

// Cleaned says what CleanCache removed.
type Cleaned struct {
	Dir   string `json:"dir"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
}

// CleanCache removes the compiled modules, unpacked runtimes and snapshots in dir; "" is the default cache folder. What a
// running host uses stays usable for it; copies of extensions in use are kept.
func CleanCache(dir string) (Cleaned, error) {
	dir, err := cacheDir(dir)
	if err != nil {
		return Cleaned{}, err
	}
	c := Cleaned{Dir: dir}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	// A folder that others can write may hold links to what is not a cache.
	if c.Dir, err = private.Dir(dir); err != nil {
		return c, err
	}
	var errs []error
	for _, name := range cacheFolders {
		p := filepath.Join(c.Dir, name)
		list, err := os.ReadDir(p)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
			continue
		}
		for _, d := range list {
			sub := filepath.Join(p, d.Name())
			n, size := 0, int64(0)
			count := func(fi fs.FileInfo) {
				if !fi.IsDir() {
					n, size = n+1, size+fi.Size()
				}
			}
			if fi, err := d.Info(); err == nil {
				count(fi)
			}
			if d.IsDir() {
				_ = scratch.Walk(sub, func(_ string, fi fs.FileInfo) error { count(fi); return nil })
			}
			remove := scratch.Remove
			if name == "snapshots" {
				remove = snapshot.RemoveUnused
			}
			if err := remove(sub); errors.Is(err, lock.ErrHeld) {
				continue
			} else if err != nil {
				errs = append(errs, err)
				continue
			}
			c.Files, c.Bytes = c.Files+n, c.Bytes+size
		}
	}
	return c, errors.Join(errs...)
}

// Check is one finding of Doctor.
type Check struct {
	Name   string `json:"name"`
	State  string `json:"state"` // "ok", "warn" or "fail"
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

// emptyModule is a WebAssembly module whose _start returns at once.
const emptyModule = "\x00asm\x01\x00\x00\x00" + // header
	"\x01\x04\x01\x60\x00\x00" + // type 0: no parameters, no results
	"\x03\x02\x01\x00" + // function 0 of type 0
	"\x05\x03\x01\x00\x01" + // one memory, of one page
	"\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x00" + // exports
	"\x0a\x04\x01\x02\x00\x0b" // its body: end

// Doctor checks what exthost needs on this machine: it runs a guest on each engine of this binary, behind the walls, and
// looks at the cache folder and the runtimes. It writes nothing but the cache.
func Doctor(ctx context.Context, c Config) []Check {
	var out []Check
	add := func(name, state, detail, hint string) { out = append(out, Check{name, state, detail, hint}) }
	c.WeakWalls, c.Spares, c.OneRun = false, 0, true
	preferred := c.Engine
	if preferred == "" {
		preferred = engine.Default()
	}
	var walls []string
	for _, i := range engine.All() {
		c.Engine = i.Name
		took, w, err := tryEngine(ctx, c)
		name := "engine " + i.Name
		switch {
		case errors.Is(err, ErrWalls):
			add("walls", "fail", err.Error(), "run on a kernel with Landlock (5.19 or later), outside a container that forbids it")
		case errors.Is(err, private.ErrUnsafe):
			add("cache", "fail", err.Error(), "")
		case err != nil:
			add(name, "fail", err.Error(), "")
		default:
			walls = w
			detail := fmt.Sprintf("%s, ran a guest in %v", i.Version, took.Round(time.Millisecond))
			if i.Name == preferred {
				detail += ", in use"
			}
			add(name, "ok", detail, "")
		}
		for _, a := range advisories(i.Name) {
			if a.Verdict == "affected" {
				add(name, "warn", fmt.Sprintf("%s (%s): %s: %s", a.ID, a.Severity, a.Title, a.Why), "")
			}
		}
	}
	if len(walls) > 0 {
		add("walls", "ok", strings.Join(walls, ", ")+", proved by self-test", "")
	}
	if dir, err := cacheDir(c.Cache); err != nil {
		add("cache", "warn", err.Error()+": modules are compiled each time", "set HOME or XDG_CACHE_HOME")
	} else if _, err := private.Dir(dir); err == nil {
		add("cache", "ok", dir, "")
	} else if !errors.Is(err, private.ErrUnsafe) {
		add("cache", "warn", err.Error()+": modules are compiled each time", "")
	}
	for _, r := range Runtimes() {
		if r.State == "missing" {
			add("runtime "+r.Name, "warn", r.Version+" is not in this binary", r.Hint)
		} else {
			add("runtime "+r.Name, "ok", r.Version+", "+r.State, "")
		}
	}
	return out
}

// tryEngine runs an empty guest.
func tryEngine(ctx context.Context, c Config) (took time.Duration, walls []string, err error) {
	h, err := New(c)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	dir, err := scratch.Make("")
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, dir.Remove()) }()
	p := filepath.Join(dir.Path, "doctor.wasm")
	if err := os.WriteFile(p, []byte(emptyModule), 0o600); err != nil {
		return 0, nil, err
	}
	e, err := h.Open(ctx, p, nil, Bindings{Workspace: dir.Path})
	if err != nil {
		return 0, nil, err
	}
	start := time.Now()
	r, err := e.Run(ctx, Job{Env: []string{}})
	if err != nil {
		return 0, nil, err
	}
	if r.Outcome != Exit || r.ExitCode != 0 {
		return 0, nil, fmt.Errorf("an empty guest ended with %s: %s", r.Outcome, r.Detail)
	}
	return time.Since(start), r.Walls, nil
}
