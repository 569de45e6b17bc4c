package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/exthost/exthost/host/internal/scratch"
)

// tree writes files: "path" -> content, "path@" -> link target, "path*" -> content of an executable.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		p := filepath.Join(dir, strings.TrimRight(name, "@*"))
		must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		switch name[len(name)-1] {
		case '@':
			must(t, os.Symlink(content, p))
		case '*':
			must(t, os.WriteFile(p, []byte(content), 0o755))
		default:
			must(t, os.WriteFile(p, []byte(content), 0o644))
		}
	}
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func source(t *testing.T, dir string) Source {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must(t, err)
	t.Cleanup(func() { root.Close() })
	return Dir(root)
}

func newStore(t *testing.T, max int64) *Store {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "snapshots")
	must(t, os.Mkdir(dir, 0o700))
	t.Cleanup(func() { must(t, scratch.Remove(dir)) })
	return NewStore(dir, max)
}

func TestDigestIsSha256OverSortedLines(t *testing.T) {
	dir := tree(t, map[string]string{"b": "two", "a/x*": "one", "a/l@": "../b", "a.txt": "", ".git/HEAD": "ref", "sub/.GIT": "gitdir: x"})
	entries, err := Hash(t.Context(), source(t, dir))
	must(t, err)
	// The lines are written out here, as the policy file's format states them. "a.txt" sorts before "a/l": '.' < '/'.
	var lines strings.Builder
	for _, l := range [][3]string{{"-", "a.txt", ""}, {"l", "a/l", "../b"}, {"x", "a/x", "one"}, {"-", "b", "two"}} {
		fmt.Fprintf(&lines, "%s\x00%s\x00%x\n", l[0], l[1], sha256.Sum256([]byte(l[2])))
	}
	if want := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(lines.String()))); Digest(entries) != want {
		t.Errorf("Digest = %s, want %s over\n%q", Digest(entries), want, lines.String())
	}
}

func TestDigestTellsTreesApart(t *testing.T) {
	seen := map[string]string{}
	for _, files := range []map[string]string{
		{"a": "1"}, {"a": "2"}, {"b": "1"}, {"a*": "1"}, {"d/a": "1"}, {"a": "1", "l@": "a"}, {"a": "1", "l@": "./a"}, {"a": "1", "l": "a"}, {},
	} {
		entries, err := Hash(t.Context(), source(t, tree(t, files)))
		must(t, err)
		d := Digest(entries)
		if other, ok := seen[d]; ok {
			t.Errorf("%v and %s have the same digest", files, other)
		}
		seen[d] = fmt.Sprint(files)
	}
}

func TestLinks(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		ok    bool
	}{
		{"a link inside is kept", map[string]string{"d/l@": "../f", "f": ""}, true},
		{"a link to nothing inside is kept", map[string]string{"l@": "gone"}, true},
		{"a circle is kept, nobody can open it", map[string]string{"a@": "b", "b@": "a"}, true},
		{"a link up through a deep folder is judged by where it leads", map[string]string{"a/b/c/f": "", "d@": "a/b/c", "l@": "d/../../x"}, true},
		{"an absolute link is refused", map[string]string{"l@": "/etc/passwd"}, false},
		{"a link to the parent is refused", map[string]string{"l@": ".."}, false},
		{"a link that leaves from a folder is refused", map[string]string{"d/l@": "../../f"}, false},
		{"a link that leaves and comes back is refused", map[string]string{"l@": "../x/f", "f": ""}, false},
		{"a link that leaves by way of another link is refused", map[string]string{"p/q@": "..", "l@": "p/q/../x", "p/f": ""}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Hash(t.Context(), source(t, tree(t, tt.files)))
			if tt.ok && err != nil || !tt.ok && !errors.Is(err, ErrUnsafe) {
				t.Errorf("Hash: %v, want ok %v", err, tt.ok)
			}
			st := newStore(t, 1<<30)
			snap, err := st.Take(t.Context(), source(t, tree(t, tt.files)))
			if tt.ok != (err == nil) {
				t.Errorf("Take: %v, want ok %v", err, tt.ok)
			}
			if err == nil {
				must(t, snap.Close())
			} else if list, _ := os.ReadDir(st.dir); len(list) != 0 {
				t.Errorf("a refused copy left %v", list)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	t.Run("a tree of too many files is refused", func(t *testing.T) {
		m := fstest.MapFS{}
		for i := range MaxEntries + 1 {
			m[fmt.Sprintf("f%d", i)] = &fstest.MapFile{}
		}
		if _, err := Hash(t.Context(), FS(m)); !errors.Is(err, ErrTooBig) {
			t.Errorf("Hash: %v", err)
		}
	})
	t.Run("a tree of too many bytes is refused", func(t *testing.T) {
		dir := tree(t, nil)
		f, err := os.Create(filepath.Join(dir, "sparse"))
		must(t, err)
		must(t, f.Truncate(MaxBytes+1))
		must(t, f.Close())
		if _, err := Hash(t.Context(), source(t, dir)); !errors.Is(err, ErrTooBig) {
			t.Errorf("Hash: %v", err)
		}
	})
	t.Run("a file that grows while it is read is refused", func(t *testing.T) {
		if _, err := Hash(t.Context(), growing{FS(fstest.MapFS{"f": {Data: []byte("x")}})}); !errors.Is(err, ErrTooBig) {
			t.Errorf("Hash: %v", err)
		}
	})
	t.Run("a tree that is too deep is refused", func(t *testing.T) {
		m := fstest.MapFS{strings.Repeat("d/", MaxDepth+1) + "f": {}}
		if _, err := Hash(t.Context(), FS(m)); !errors.Is(err, ErrTooBig) {
			t.Errorf("Hash: %v", err)
		}
	})
	t.Run("a cancelled context ends the walk", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Hash(ctx, FS(fstest.MapFS{"f": {}})); !errors.Is(err, context.Canceled) {
			t.Errorf("Hash: %v", err)
		}
	})
}

// growing serves files without an end.
type growing struct{ Source }

func (g growing) Open(name string) (fs.File, error) {
	f, err := g.Source.Open(name)
	return endless{f}, err
}

type endless struct{ fs.File }

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// swapping does something to the source just after an entry was listed.
type swapping struct {
	Source
	before func(name string)
}

func (s swapping) Open(name string) (fs.File, error) {
	s.before(name)
	return s.Source.Open(name)
}

func TestTakeCopiesWhatItHashed(t *testing.T) {
	dir := tree(t, map[string]string{"SKILL.md": "# s", "scripts/x.py*": "print(1)", "l@": "scripts/x.py", "empty/.git/x": ""})
	st := newStore(t, 1<<30)
	snap, err := st.Take(t.Context(), source(t, dir))
	must(t, err)
	defer snap.Close()
	must(t, os.WriteFile(filepath.Join(dir, "scripts/x.py"), []byte("print(2)"), 0o755))
	got, err := os.ReadFile(filepath.Join(snap.Dir, "l"))
	must(t, err)
	if string(got) != "print(1)" {
		t.Errorf("the copy changed with its source: %q", got)
	}
	for p, want := range map[string]fs.FileMode{"SKILL.md": 0o400, "scripts/x.py": 0o500, "scripts": 0o700 | fs.ModeDir, ".": 0o700 | fs.ModeDir} {
		fi, err := os.Stat(filepath.Join(snap.Dir, p))
		must(t, err)
		if fi.Mode() != want {
			t.Errorf("%s has mode %v, want %v", p, fi.Mode(), want)
		}
	}
	if _, err := os.Stat(filepath.Join(snap.Dir, "empty")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that the digest does not cover was copied: %v", err)
	}

	again, err := st.Take(t.Context(), source(t, dir))
	must(t, err)
	defer again.Close()
	if again.Digest == snap.Digest || again.Dir == snap.Dir {
		t.Error("a changed source gave the same copy")
	}
}

func TestTakeWhileTheSourceIsSwapped(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(outside, []byte("secret"), 0o600))
	for _, tt := range []struct {
		name string
		swap func(p string) error
	}{
		{"for a link to a file outside", func(p string) error { return os.Symlink(outside, p) }},
		{"for a link to a file inside", func(p string) error { return os.Symlink("other", p) }},
		{"for a folder", func(p string) error { return os.Mkdir(p, 0o755) }},
		{"for nothing", func(string) error { return nil }},
		{"for a FIFO", mkfifo},
	} {
		t.Run("a file is swapped "+tt.name, func(t *testing.T) {
			dir := tree(t, map[string]string{"x": "good", "other": "good too"})
			st := newStore(t, 1<<30)
			src := swapping{source(t, dir), func(name string) {
				if name == "x" {
					must(t, os.Remove(filepath.Join(dir, "x")))
					must(t, tt.swap(filepath.Join(dir, "x")))
				}
			}}
			snap, err := st.Take(t.Context(), src)
			if err == nil {
				snap.Close()
				t.Fatal("Take followed a swapped entry")
			}
		})
	}
}

func TestTakeWhenTheFileIsRewrittenBetweenTheTwoReads(t *testing.T) {
	dir := tree(t, map[string]string{"x": "good"})
	n := 0
	src := swapping{source(t, dir), func(string) {
		if n++; n == 2 {
			must(t, os.WriteFile(filepath.Join(dir, "x"), []byte("evil"), 0o644))
		}
	}}
	snap, err := newStore(t, 1<<30).Take(t.Context(), src)
	must(t, err)
	defer snap.Close()
	root, err := os.OpenRoot(snap.Dir)
	must(t, err)
	defer root.Close()
	entries, err := Hash(t.Context(), Dir(root))
	must(t, err)
	if Digest(entries) != snap.Digest {
		t.Errorf("the digest %s is not that of the copy, %s", snap.Digest, Digest(entries))
	}
}

func TestADamagedCopyIsReplaced(t *testing.T) {
	dir := tree(t, map[string]string{"x": "good"})
	st := newStore(t, 1<<30)
	snap, err := st.Take(t.Context(), source(t, dir))
	must(t, err)
	must(t, snap.Close())
	p := filepath.Join(snap.Dir, "x")
	must(t, os.Chmod(p, 0o600))
	must(t, os.WriteFile(p, []byte("evil"), 0o600))
	snap, err = st.Take(t.Context(), source(t, dir))
	must(t, err)
	defer snap.Close()
	if got, err := os.ReadFile(filepath.Join(snap.Dir, "x")); err != nil || string(got) != "good" {
		t.Errorf("the copy holds %q, %v", got, err)
	}
}

func TestEvictionKeepsWhatIsInUse(t *testing.T) {
	st := newStore(t, 10)
	var used *Snapshot
	for i := range 4 {
		snap, err := st.Take(t.Context(), source(t, tree(t, map[string]string{"x": fmt.Sprintf("12345678%d", i)})))
		must(t, err)
		if i == 0 {
			used = snap
			defer used.Close()
			continue
		}
		must(t, snap.Close())
	}
	if _, err := os.Stat(filepath.Join(used.Dir, "x")); err != nil {
		t.Errorf("a copy in use was removed: %v", err)
	}
	if list, _ := os.ReadDir(st.dir); len(list) > 2 {
		t.Errorf("%d copies are left, want the one in use and the last one", len(list))
	}
}

func TestTakeConcurrently(t *testing.T) {
	dir := tree(t, map[string]string{"x": "good", "d/y": "too"})
	st := newStore(t, 1<<30)
	errs := make(chan error)
	for range 8 {
		go func() {
			root, err := os.OpenRoot(dir)
			if err == nil {
				defer root.Close()
				var snap *Snapshot
				if snap, err = st.Take(context.Background(), Dir(root)); err == nil {
					_, err = os.ReadFile(filepath.Join(snap.Dir, "x"))
					err = errors.Join(err, snap.Close())
				}
			}
			errs <- err
		}()
	}
	for range 8 {
		must(t, <-errs)
	}
	if list, _ := os.ReadDir(st.dir); len(list) != 1 {
		t.Errorf("the store holds %v", list)
	}
}

func TestOneFile(t *testing.T) {
	dir := tree(t, map[string]string{"a.py": "1", "secret": "2"})
	entries, err := Hash(t.Context(), FileOf(source(t, dir), "a.py"))
	must(t, err)
	if len(entries) != 1 || entries[0].Path != "a.py" {
		t.Errorf("entries %v", entries)
	}
	if _, err := Hash(t.Context(), FileOf(source(t, dir), "gone.py")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func FuzzFollow(f *testing.F) {
	f.Add("a/../b", "../x", "..")
	f.Fuzz(func(t *testing.T, one, two, three string) {
		// Whatever the links say, a walk that follow accepts stays inside: the same links on disk, resolved by os.Root,
		// open or are missing but never escape.
		files := map[string]string{}
		for name, target := range map[string]string{"l1": one, "d/l2": two, "d/e/l3": three} {
			if target == "" || len(target) > 200 || strings.ContainsAny(target, "\x00") {
				return
			}
			files[name+"@"] = target
		}
		dir := tree(t, files)
		entries, err := Hash(t.Context(), source(t, dir))
		if err != nil {
			return
		}
		root, err := os.OpenRoot(dir)
		must(t, err)
		defer root.Close()
		for _, e := range entries {
			fh, err := root.Open(e.Path)
			if err == nil {
				_, _ = io.Copy(io.Discard, fh)
				fh.Close()
			} else if strings.Contains(err.Error(), "escapes") {
				t.Errorf("%v: accepted, but %v", files, err)
			}
		}
	})
}
