package host_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/exthost/exthost/host"
	"github.com/exthost/exthost/host/hosttest"
	"github.com/exthost/exthost/policy"
)

// anyHost is a host for tests that run nothing.
func anyHost(t testing.TB) *host.Host {
	t.Helper()
	return hosttest.New(t, host.Config{Cache: filepath.Join(t.TempDir(), "cache")})
}

func TestOpenHoldsAPolicyToItsDigest(t *testing.T) {
	h := anyHost(t)
	dir := hosttest.Folder(t, map[string]string{"SKILL.md": "# s", "scripts/x.py": "print(1)"})
	digest, err := host.TreeDigest(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	other := "sha256:" + hex.EncodeToString(make([]byte, 32))
	open := func(text string, pin bool) (*host.Extension, error) {
		return h.Open(t.Context(), dir, hosttest.Policy(t, text), host.Bindings{Workspace: dir, PinDigest: pin})
	}
	e, err := open(grant("digest: "+digest), true)
	if err != nil {
		t.Fatal(err)
	}
	if e.Digest() != digest || len(e.Notes()) != 0 {
		t.Errorf("digest %s, notes %v; want %s and none", e.Digest(), e.Notes(), digest)
	}
	for _, tt := range []struct {
		name, text string
		pin        bool
		reason     string // "": it is opened
	}{
		{"another digest", grant("digest: " + other), false, "the extension changed since the grant"},
		{"no digest where one is needed", grant(), true, "the grant names no digest"},
		{"no digest", grant(), false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := open(tt.text, tt.pin)
			if tt.reason == "" {
				if err != nil || len(e.Notes()) != 1 {
					t.Fatalf("Open: %v; want an extension with a note", err)
				}
				return
			}
			var refused *host.RefusedError
			if !errors.As(err, &refused) || !errors.Is(err, host.ErrDenied) || !strings.Contains(err.Error(), tt.reason) || refused.Digest != digest {
				t.Fatalf("Open: %v", err)
			}
			if host.ExitCode(nil, err, false) != 126 {
				t.Error("exit code")
			}
		})
	}
	t.Run("a changed file", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(dir, "scripts", "x.py"), []byte("print(2)"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := open(grant("digest: "+digest), true); !errors.Is(err, host.ErrDenied) {
			t.Errorf("Open: %v", err)
		}
		if e.Digest() != digest {
			t.Error("the extension that is open changed with its source")
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	h := anyHost(t)
	good := map[string]string{"SKILL.md": "# s"}
	for _, tt := range []struct {
		name  string
		files map[string]string
		path  string // below the folder
		text  string
		bind  host.Bindings
		is    error
		says  string
	}{
		{"what is not there", good, "missing", grant(), host.Bindings{}, host.ErrNotFound, ""},
		{"a link that leads out", map[string]string{"l@": "../../etc"}, "", grant(), host.Bindings{}, nil, "leads out"},
		{"a name that is no name", good, "", grant(), host.Bindings{Name: "../x"}, nil, "extension name"},
		{"fields that are not enforced", good, "", grant("network: [{host: example.com}]"), host.Bindings{}, nil, "not enforced by this version: network, line 3"},
		{"a workspace that is no folder", good, "", grant(), host.Bindings{Workspace: "/dev/null"}, nil, "not a folder"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := hosttest.Folder(t, tt.files)
			if tt.bind.Workspace == "" {
				tt.bind.Workspace = dir
			}
			e, err := h.Open(t.Context(), filepath.Join(dir, tt.path), hosttest.Policy(t, tt.text), tt.bind)
			if err == nil {
				e.Close()
				t.Fatal("Open succeeded")
			}
			if tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Open: %v", err)
			}
		})
	}
}

func TestScripts(t *testing.T) {
	h := anyHost(t)
	dir := hosttest.Folder(t, map[string]string{
		"SKILL.md": "# s", "a.py": "", "tool.wasm": "\x00asm\x01\x00\x00\x00", "b.sh": "", "c.ts": "", "data.csv": "a,b",
		"env": "#!/usr/bin/env -S uv run --script\n", "crlf": "#!/usr/bin/python3\r\n", "venv": "#!/home/me/.venv/bin/python3.12\n",
		"x.tool": "#!/usr/bin/env python3\n", "bash": "#!/bin/bash -e\n", "lost.sh": "#!/bin/bash\\nset -e\\necho x", "z.zsh": "", "module": "\x00asm\x01\x00\x00\x00", "binary": "\x7fELF", "link@": "a.py",
	})
	e := hosttest.Open(t, h, dir, nil, host.Bindings{Name: "s"})
	var got []string
	for _, s := range e.Scripts() {
		line := s.Path + " " + s.Language
		if s.Missing != "" && !strings.Contains(s.Missing, "not in this binary") { // a fresh clone has no Python and no shell
			line += " missing"
		}
		got = append(got, line)
	}
	want := []string{
		"a.py python", "b.sh shell", "bash shell", "c.ts typescript missing", "crlf python", "env python", "lost.sh shell missing",
		"module wasm", "tool.wasm wasm", "venv python", "x.tool python", "z.zsh shell",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("scripts\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, tt := range []struct {
		script string
		is     error
		says   string
	}{
		{"gone.py", host.ErrNotFound, "tool.wasm"},
		{"", host.ErrNotFound, "no script was named"},
		{"../../../etc/passwd", host.ErrNotFound, ""},
		{"lost.sh", host.ErrDamaged, `holds "\n" as text`},
		{"c.ts", host.ErrNoRuntime, "no runtime for typescript"},
		{"data.csv", host.ErrNoRuntime, "neither its extension nor its first line"},
	} {
		if _, err := e.Run(t.Context(), host.Job{Script: tt.script}); !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("run %q: %v", tt.script, err)
		}
	}
}

func TestRootsThatNoPolicyCanOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no worker processes on this system yet")
	}
	home, denied := t.TempDir(), t.TempDir()
	cache := filepath.Join(t.TempDir(), "cache")
	alias := filepath.Join(t.TempDir(), "alias")
	if err := os.Symlink(denied, alias); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(denied, "secret"), []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := hosttest.New(t, host.Config{Home: home, Cache: cache, Deny: []string{denied}})
	dir := skill(t, nil)
	digest, err := host.TreeDigest(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{
		home, home + "/policies", denied, denied + "/secret", alias, cache, cache + "/modules",
		filepath.Join(cache, "snapshots", strings.TrimPrefix(digest, "sha256:")[:10]),
	} {
		for _, access := range []string{"read", "write", "overlay"} {
			e := hosttest.Open(t, h, dir, hosttest.Policy(t, grant(fmt.Sprintf("files: {/x: {host: %q, access: %s}}", root, access))), host.Bindings{Name: "test"})
			r, err := e.Run(t.Context(), job("args"))
			if err == nil && r.Outcome != host.Denied && r.Outcome != host.HostError || err == nil && r.Outcome == host.Exit {
				t.Errorf("%s %s: ran: %+v", access, root, r)
			}
			var errs policy.Errors
			if err != nil && !errors.As(err, &errs) && !errors.Is(err, host.ErrDenied) {
				t.Errorf("%s %s: %v", access, root, err)
			}
		}
	}
	t.Run("the processes of the machine", func(t *testing.T) {
		for _, root := range []string{"/proc", "/proc/self", "/proc/self/status"} {
			e := hosttest.Open(t, h, dir, hosttest.Policy(t, grant(fmt.Sprintf("files: {/x: {host: %q, access: read}}", root))), host.Bindings{Name: "test"})
			if r, err := e.Run(t.Context(), job("args")); err != nil || r.Outcome != host.Denied || !strings.Contains(r.Detail, "processes") {
				t.Errorf("%s: %+v, %v", root, r, err)
			}
		}
	})
	t.Run("links do not lead out of the workspace or into protected folders", func(t *testing.T) {
		ws, out := t.TempDir(), t.TempDir()
		for _, d := range []string{".git/hooks", "real"} {
			if err := os.MkdirAll(filepath.Join(ws, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for name, to := range map[string]string{"out": out, "hooks": ".git/hooks", "in": "real"} {
			if err := os.Symlink(to, filepath.Join(ws, name)); err != nil {
				t.Fatal(err)
			}
		}
		for _, tt := range []struct{ root, access, says string }{
			{"out", "read", "leads out"}, {"out", "write", "leads out"}, {"out/new", "write, create: true", "leads out"},
			{"hooks", "write", "protected"}, {"hooks", "overlay", "protected"}, {"hooks", "read", ""}, {"in", "write", ""},
		} {
			e := hosttest.Open(t, h, dir, hosttest.Policy(t, grant(fmt.Sprintf("files: {/x: {host: '${workspace}/%s', access: %s}}", tt.root, tt.access))), host.Bindings{Name: "test", Workspace: ws})
			r, err := e.Run(t.Context(), job("ls", "/x"))
			switch {
			case err != nil:
				t.Errorf("%+v: %v", tt, err)
			case tt.says == "" && r.Outcome != host.Exit, tt.says != "" && (r.Outcome != host.Denied || !strings.Contains(r.Detail, tt.says)):
				t.Errorf("%+v: %s %s", tt, r.Outcome, r.Detail)
			}
		}
		if list, err := os.ReadDir(out); err != nil || len(list) != 0 {
			t.Errorf("outside the workspace: %v, %v", list, err)
		}
	})
	t.Run("a root above them hides them", func(t *testing.T) {
		above := filepath.Dir(denied)
		e := hosttest.Open(t, h, dir, hosttest.Policy(t, grant(fmt.Sprintf("files: {/x: {host: %q, access: read}}", above))), host.Bindings{Name: "test"})
		rel := "/x/" + filepath.Base(denied)
		r := hosttest.Run(t, e, job("ls", "/x"))
		if r.ExitCode != 0 || strings.Contains(r.Stdout, filepath.Base(denied)) {
			t.Errorf("the listing shows a denied folder: %s", r)
		}
		if r := hosttest.Run(t, e, job("read", rel+"/secret")); r.ExitCode == 0 {
			t.Errorf("read: %s", r)
		}
	})
	t.Run("scratch folders of other runs are hidden", func(t *testing.T) {
		e := hosttest.Open(t, h, dir, hosttest.Policy(t, grant(fmt.Sprintf("files: {/x: {host: %q, access: read}}", os.TempDir()))), host.Bindings{Name: "test"})
		if r := hosttest.Run(t, e, job("ls", "/x")); r.ExitCode != 0 || strings.Contains(r.Stdout, "exthost-scratch-") {
			t.Errorf("%.300s", r)
		}
	})
	t.Run("the extension's own copy can be read", func(t *testing.T) {
		e := hosttest.Open(t, h, dir, hosttest.Policy(t, grant(`files: {/x: {host: "${skill}", access: read}}`)), host.Bindings{Name: "test"})
		if r := hosttest.Run(t, e, job("read", "/x/SKILL.md")); r.Stdout != "# test\n" {
			t.Errorf("got %s", r)
		}
	})
}

func TestOpenFS(t *testing.T) {
	m, err := guestModule()
	if err != nil {
		t.Fatal(err)
	}
	onEngines(t, func(t *testing.T, h *host.Host) {
		e, err := h.OpenFS(t.Context(), fstest.MapFS{"scripts/guest.wasm": {Data: []byte(m)}}, nil, host.Bindings{Name: "embedded", Workspace: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if r := hosttest.Run(t, e, job("pwd")); r.Stdout != "/skill\n" {
			t.Errorf("got %s", r)
		}
		if _, err := h.OpenFS(t.Context(), fstest.MapFS{}, nil, host.Bindings{}); err == nil {
			t.Error("OpenFS took no name")
		}
	})
}

func TestAnExtensionOfOneFile(t *testing.T) {
	onEngines(t, func(t *testing.T, h *host.Host) {
		file := filepath.Join(skill(t, nil), "scripts", "guest.wasm")
		e := hosttest.Open(t, h, file, nil, host.Bindings{})
		r := hosttest.Run(t, e, host.Job{Args: []string{"ls", "/skill"}})
		if r.Stdout != "guest.wasm\n" || r.Extension != "guest.wasm" {
			t.Errorf("got %s, extension %s", r, r.Extension)
		}
	})
}

func TestCloseEndsUse(t *testing.T) {
	h, err := host.New(host.Config{Cache: filepath.Join(t.TempDir(), "cache")})
	if err != nil {
		t.Fatal(err)
	}
	dir := hosttest.Folder(t, map[string]string{"x.py": ""})
	e, err := h.Open(t.Context(), dir, nil, host.Bindings{Name: "s", Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(h.Close(), h.Close(), e.Close()); err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := e.Run(t.Context(), host.Job{Script: "x.py"}); !errors.Is(err, host.ErrClosed) {
		t.Errorf("Run: %v", err)
	}
	if _, err := h.Open(t.Context(), dir, nil, host.Bindings{}); !errors.Is(err, host.ErrClosed) {
		t.Errorf("Open: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := host.New(host.Config{Engine: "v8"}); !errors.Is(err, host.ErrNoEngine) {
		t.Errorf("an unknown engine: %v", err)
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := host.New(host.Config{Cache: open}); err == nil {
		t.Error("a cache folder that others may write was accepted")
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if _, err := host.New(host.Config{Cache: link}); err == nil {
		t.Error("a cache folder that is a link was accepted")
	}
}

func TestWithoutAHomeTheCacheIsTheHostsOwn(t *testing.T) {
	for _, v := range []string{"HOME", "XDG_CACHE_HOME"} {
		t.Setenv(v, "")
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	h, err := host.New(host.Config{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := h.Open(t.Context(), hosttest.Folder(t, map[string]string{"x.py": ""}), nil, host.Bindings{Workspace: tmp})
	if err != nil {
		t.Fatal(err)
	}
	_ = e.Close()
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(tmp, "exthost-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestCleanCache(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	h := hosttest.New(t, host.Config{Cache: cache})
	e := hosttest.Open(t, h, hosttest.Folder(t, map[string]string{"x.py": "1"}), nil, host.Bindings{Name: "s"})
	gone, err := h.Open(context.Background(), hosttest.Folder(t, map[string]string{"x.py": "22"}), nil, host.Bindings{Name: "s"})
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	c, err := host.CleanCache(cache)
	if err != nil || c.Files < 2 || c.Bytes < 34 { // the key, and the copy that nobody uses
		t.Errorf("cleaned %+v, %v", c, err)
	}
	list, err := os.ReadDir(filepath.Join(cache, "snapshots"))
	if err != nil || len(list) != 1 || !strings.HasSuffix(e.Digest(), list[0].Name()) {
		t.Errorf("left %v, %v; want the copy that is in use", list, err)
	}
	if _, err := host.CleanCache(filepath.Join(cache, "missing")); err != nil {
		t.Errorf("a missing folder: %v", err)
	}
	if _, err := os.Stat(filepath.Join(cache, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("cleaning made the folder")
	}
}
