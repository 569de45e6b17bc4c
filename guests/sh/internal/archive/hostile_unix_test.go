//go:build unix

package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exthost/exthost/guests/sh/internal/cmdtest"
)

// jail is a folder "in" to unpack to, beside files that must not change.
type jail struct{ outer, in, before string }

func newJail(t testing.TB) jail {
	t.Helper()
	j := jail{outer: t.TempDir()}
	j.in = filepath.Join(j.outer, "in")
	for name, text := range map[string]string{"secret": "secret\n", "dir/file": "file\n"} {
		p := filepath.Join(j.outer, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(j.in, 0o755); err != nil {
		t.Fatal(err)
	}
	j.before = j.outside(t)
	return j
}

// outside describes all but what is in the jail and the archive.
func (j jail) outside(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(j.outer, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == j.in {
			if p == j.in {
				return fs.SkipDir
			}
			return err
		}
		if filepath.Base(p) == "archive" {
			return nil
		}
		b.WriteString(p)
		if d.Type().IsRegular() {
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			b.Write(text)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// check fails when anything outside changed, or a link leads out.
func (j jail) check(t testing.TB) {
	t.Helper()
	if after := j.outside(t); after != j.before {
		t.Fatalf("outside changed: before\n%s\nafter\n%s", j.before, after)
	}
	root, err := filepath.EvalSymlinks(j.in)
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(j.in, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink == 0 {
			return err
		}
		if to, err := filepath.EvalSymlinks(p); err == nil && to != root && !strings.HasPrefix(to, root+string(filepath.Separator)) {
			t.Errorf("%s leads out, to %s", p, to)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// entry is a member of a hostile archive. A link when to is set; hard when that begins with "=".
type entry struct{ name, to, text string }

func tarOf(t testing.TB, entries []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: 0o644, Typeflag: tar.TypeReg, Size: int64(len(e.text))}
		switch {
		case strings.HasPrefix(e.to, "="):
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, e.to[1:], 0
		case e.to != "":
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, e.to, 0
		case strings.HasSuffix(e.name, "/"):
			h.Typeflag, h.Size = tar.TypeDir, 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Skip(err) // the format cannot say it
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte(e.text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipOf(t testing.TB, entries []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		text := e.text
		h.SetMode(0o644)
		if e.to != "" {
			h.SetMode(fs.ModeSymlink | 0o777)
			text = strings.TrimPrefix(e.to, "=")
		}
		if strings.HasSuffix(e.name, "/") {
			h.Method, text = zip.Store, ""
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Skip(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unpackBoth unpacks entries as tar and as zip.
func unpackBoth(t *testing.T, entries []entry) (tarResult, zipResult cmdtest.Result) {
	t.Helper()
	run := func(data []byte, argv ...string) cmdtest.Result {
		j := newJail(t)
		if err := os.WriteFile(filepath.Join(j.outer, "archive"), data, 0o644); err != nil {
			t.Fatal(err)
		}
		r := cmdtest.Run(t, Commands, j.outer, "", argv...)
		j.check(t)
		return r
	}
	return run(tarOf(t, entries), "tar", "xf", "archive", "-C", "in"), run(zipOf(t, entries), "unzip", "-o", "archive", "-d", "in")
}

func TestHostileArchiveStaysInside(t *testing.T) {
	tests := map[string]struct {
		entries []entry
		refused bool // at least one member is
	}{
		"a name with ..":                      {[]entry{{name: "../evil", text: "x"}, {name: "a/../../evil", text: "x"}}, false},
		"an absolute name":                    {[]entry{{name: "/tmp/evil-absolute", text: "x"}}, false},
		"an absolute link":                    {[]entry{{name: "l", to: "/etc"}, {name: "l/evil", text: "x"}}, true},
		"a link up":                           {[]entry{{name: "l", to: ".."}, {name: "l/evil", text: "x"}}, true},
		"a file through a link up":            {[]entry{{name: "l", to: "../secret"}, {name: "l", text: "evil"}}, true},
		"a link that is up by way of another": {[]entry{{name: "d", to: "."}, {name: "e", to: "d/.."}, {name: "e/evil", text: "x"}}, true},
		"a link below a link":                 {[]entry{{name: "a/"}, {name: "s", to: "."}, {name: "s/l", to: "../secret"}, {name: "s/l", text: "evil"}}, true},
		"a deep link":                         {[]entry{{name: "a/b/c/l", to: "../../../../secret"}, {name: "a/b/c/l", text: "evil"}}, true},
		"a hard link out":                     {[]entry{{name: "l", to: "=../secret"}, {name: "l", text: "evil"}}, false},
		"a hard link to a link":               {[]entry{{name: "a/l", to: "../x"}, {name: "m", to: "=a/l"}, {name: "m", text: "evil"}}, false},
		"a folder in the place of a link":     {[]entry{{name: "l", to: "x"}, {name: "l/"}, {name: "l/f", text: "x"}}, false},
		"the folder itself":                   {[]entry{{name: "./"}, {name: ".", text: "x"}, {name: "..", text: "x"}, {name: "/", text: ""}}, false},
		"a link in the place of a folder":     {[]entry{{name: "d/f", text: "x"}, {name: "d", to: ".."}, {name: "d/secret", text: "evil"}}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := unpackBoth(t, tt.entries)
			if tt.refused && (a.Code == 0 || a.Stderr == "") {
				t.Errorf("tar refuses nothing: %d %s", a.Code, a.Stderr)
			}
			if tt.refused && b.Code == 0 {
				t.Errorf("unzip refuses nothing: %s", b.Stdout)
			}
		})
	}
	if _, err := os.Lstat("/tmp/evil-absolute"); err == nil {
		t.Error("an absolute name was written to")
	}
}

func TestLinkThatStaysIsMade(t *testing.T) {
	j := newJail(t)
	data := tarOf(t, []entry{{name: "a/b/f", text: "f"}, {name: "a/l", to: "b/f"}, {name: "a/b/up", to: "../l"}, {name: "top", to: "a/b"}, {name: "top/g", text: "g"}, {name: "bad", to: "../secret"}})
	if err := os.WriteFile(filepath.Join(j.outer, "archive"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	r := cmdtest.Run(t, Commands, j.outer, "", "tar", "xf", "archive", "-C", "in")
	if r.Code != 2 || !strings.Contains(r.Stderr, "tar: bad: Cannot create symlink to '../secret': it would lead out") {
		t.Errorf("%d %s", r.Code, r.Stderr)
	}
	for name, want := range map[string]string{"a/l": "f", "a/b/up": "f", "a/b/g": "g", "top/f": "f"} {
		if got, err := os.ReadFile(filepath.Join(j.in, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	j.check(t)
}

// FuzzHostileArchive: members of any names and links, unpacked, leave all outside as it was.
func FuzzHostileArchive(f *testing.F) {
	f.Add("../x\na|..\na/b\n")
	f.Add("d|.\ne|d/..\ne/x\n")
	f.Add("l|=../secret\nl\n/abs\na/./../b\n")
	f.Fuzz(func(t *testing.T, text string) {
		var entries []entry
		for line := range strings.Lines(text) {
			name, to, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "|")
			if name == "" || len(entries) > 20 || strings.ContainsRune(line, 0) {
				continue
			}
			entries = append(entries, entry{name: name, to: to, text: "evil"})
		}
		unpackBoth(t, entries)
	})
}

// FuzzTar: no bytes make tar or unzip panic, or write outside.
func FuzzTar(f *testing.F) {
	f.Add(tarOf(f, []entry{{name: "a", text: "x"}, {name: "l", to: "a"}}))
	f.Add(zipOf(f, []entry{{name: "a", text: "x"}, {name: "l", to: "a"}}))
	f.Add([]byte("\x1f\x8b\x08"))
	f.Add([]byte("BZh9"))
	f.Fuzz(func(t *testing.T, data []byte) {
		j := newJail(t)
		if err := os.WriteFile(filepath.Join(j.outer, "archive"), data, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, argv := range [][]string{{"tar", "xf", "archive", "-C", "in"}, {"tar", "tvf", "archive"}, {"unzip", "-o", "archive", "-d", "in"}, {"unzip", "-v", "archive"},
			{"gzip", "-l", "archive"}, {"zcat", "archive"}, {"bzcat", "archive"}} {
			cmdtest.Run(t, Commands, j.outer, "", argv...)
			j.check(t)
		}
	})
}

// FuzzRoundTrip: what is packed comes out again.
func FuzzRoundTrip(f *testing.F) {
	f.Add("name", []byte("text"))
	f.Add("a b/\u00e9", []byte{0, 1, 255})
	f.Add(strings.Repeat("long/", 50)+"x", bytes.Repeat([]byte("z"), 3000))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if !fs.ValidPath(name) || name == "." || len(name) > 300 || strings.ContainsAny(name, "\x00\\|") {
			t.Skip()
		}
		for part := range strings.SplitSeq(name, "/") {
			if len(part) > 200 {
				t.Skip()
			}
		}
		j := newJail(t)
		src := filepath.Join(j.outer, "src")
		p := filepath.Join(src, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Skip(err)
		}
		if err := os.WriteFile(p, data, 0o644); err != nil {
			t.Skip(err)
		}
		for _, argv := range [][]string{
			{"tar", "cf", "../o.tar", "."}, {"tar", "xf", "../o.tar", "-C", "../in"},
			{"tar", "czf", "../o.tgz", "."}, {"tar", "xf", "../o.tgz", "-C", "../in"},
			{"zip", "-qr", "../o.zip", "."}, {"unzip", "-qo", "../o.zip", "-d", "../in"},
		} {
			out := argv[1] == "xf" || argv[0] == "unzip"
			if out {
				if err := os.RemoveAll(j.in); err != nil {
					t.Fatal(err)
				}
				if err := os.Mkdir(j.in, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if r := cmdtest.Run(t, Commands, src, "", argv...); r.Code != 0 {
				t.Fatalf("%q: %d %s %s", argv, r.Code, r.Stdout, r.Stderr)
			}
			if !out {
				continue
			}
			got, err := os.ReadFile(filepath.Join(j.in, filepath.FromSlash(name)))
			if err != nil || !bytes.Equal(got, data) {
				t.Fatalf("%q: %q, %v", argv, got, err)
			}
		}
	})
}

// TestRandomArchiveStaysInside tries what parts of hostile archives do together.
func TestRandomArchiveStaysInside(t *testing.T) {
	names := []string{"a", "b", "a/b", "a/b/c", "b/a", "../x", "a/../b", "./a", "a/", "b/c/", "/a", "c/../../secret", "secret", "dir/file", "a/secret"}
	links := []string{"", "", "", "..", ".", "a", "b", "../secret", "a/..", "b/..", "../a", "../..", "../../secret", "/etc", "=a", "=a/b", "=../secret", "a/b", "./..", "b/../.."}
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var entries []entry
		for range 2 + r.IntN(6) {
			entries = append(entries, entry{name: names[r.IntN(len(names))], to: links[r.IntN(len(links))], text: "evil"})
		}
		if unpackBoth(t, entries); t.Failed() {
			t.Fatalf("by %+v", entries)
		}
	}
}
