//go:build linux

package cache

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exthost/exthost/host/internal/lock"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func artefact(t testing.TB, prepared, code string) *Artefact {
	t.Helper()
	p, err := Sealed("module", strings.NewReader(prepared), int64(len(prepared)))
	must(t, err)
	c, err := Sealed("code", strings.NewReader(code), int64(len(code)))
	must(t, err)
	a := &Artefact{Prepared: p, Code: c, CodeName: "name"}
	t.Cleanup(func() { a.Close() })
	return a
}

func content(t testing.TB, f *os.File) string {
	t.Helper()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
	must(t, err)
	return string(b)
}

var key = Key{Module: sha256.Sum256([]byte("m")), Code: "engine", Memory: 1 << 20, Table: 10, Owner: "sha256:1"}

func TestWhatWasPutIsGot(t *testing.T) {
	dir := t.TempDir()
	if _, err := open(t, dir, Options{}).Get(key); !errors.Is(err, ErrMiss) {
		t.Fatalf("an empty cache: %v", err)
	}
	must(t, open(t, dir, Options{}).Put(key, artefact(t, "prepared", "native")))
	for _, opt := range []Options{{}, {Verify: true}, {InPlace: true}} {
		a, err := open(t, dir, opt).Get(key)
		must(t, err)
		if a.InPlace != opt.InPlace {
			t.Errorf("%+v: in place %v", opt, a.InPlace)
		}
		if content(t, a.Prepared) != "prepared" || content(t, a.Code) != "native" || a.CodeName != "name" {
			t.Errorf("%+v: got %q %q %q", opt, content(t, a.Prepared), content(t, a.Code), a.CodeName)
		}
		must(t, a.Close())
	}
	for _, name := range []string{moduleFile, codeFile, indexFile} {
		fi, err := os.Stat(filepath.Join(dir, key.Name(), name))
		must(t, err)
		if fi.Mode().Perm() != 0o400 {
			t.Errorf("%s has mode %v", name, fi.Mode())
		}
	}
	if fi, err := os.Stat(filepath.Join(dir, keyFile)); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", fi, err)
	}
}

func TestEveryPartOfAKeyNamesAnotherEntry(t *testing.T) {
	names := map[string]bool{key.Name(): true}
	for _, k := range []Key{
		{sha256.Sum256(nil), key.Code, key.Memory, key.Table, key.Owner, ""},
		{key.Module, "other", key.Memory, key.Table, key.Owner, ""},
		{key.Module, key.Code, 1, key.Table, key.Owner, ""},
		{key.Module, key.Code, key.Memory, 1, key.Owner, ""},
		{key.Module, key.Code, key.Memory, key.Table, "sha256:2", ""},
	} {
		if names[k.Name()] {
			t.Errorf("%+v has the name of another", k)
		}
		names[k.Name()] = true
	}
}

// TestTamperedEntriesAreNeverUsed does to an entry what somebody with one write into the folder could do.
func TestTamperedEntriesAreNeverUsed(t *testing.T) {
	other := key
	other.Owner = "sha256:other"
	for _, tt := range []struct {
		name   string
		tamper func(t *testing.T, dir, code string)
	}{
		{"one byte patched", func(t *testing.T, _, code string) { write(t, code, "nativf") }},
		{"one byte patched and the times restored", func(t *testing.T, _, code string) {
			fi, err := os.Stat(code)
			must(t, err)
			write(t, code, "nativf")
			must(t, os.Chtimes(code, fi.ModTime(), fi.ModTime()))
		}},
		{"replaced by another file", func(t *testing.T, _, code string) {
			must(t, os.Remove(code))
			must(t, os.WriteFile(code, []byte("nativf"), 0o400))
		}},
		{"replaced by a symlink", func(t *testing.T, dir, code string) {
			must(t, os.WriteFile(filepath.Join(dir, "evil"), []byte("nativf"), 0o400))
			must(t, os.Remove(code))
			must(t, os.Symlink("../evil", code))
		}},
		{"replaced by a hard link", func(t *testing.T, dir, code string) {
			must(t, os.WriteFile(filepath.Join(dir, "evil"), []byte("nativf"), 0o400))
			must(t, os.Remove(code))
			must(t, os.Link(filepath.Join(dir, "evil"), code))
		}},
		{"the folder replaced by a symlink to another entry", func(t *testing.T, dir, _ string) {
			must(t, os.RemoveAll(filepath.Join(dir, key.Name())))
			must(t, os.Symlink(other.Name(), filepath.Join(dir, key.Name())))
		}},
		{"the folder replaced by another entry with its index", func(t *testing.T, dir, _ string) {
			must(t, os.RemoveAll(filepath.Join(dir, key.Name())))
			must(t, os.Rename(filepath.Join(dir, other.Name()), filepath.Join(dir, key.Name())))
		}},
		{"code and index rewritten without the key", func(t *testing.T, dir, code string) {
			write(t, code, "nativf")
			forger := &Store{dir: dir, key: make([]byte, 32)}
			var err error
			forger.root, err = os.OpenRoot(dir)
			must(t, err)
			defer forger.root.Close()
			ix := index{Version: 1, Name: key.Name(), Files: map[string]file{}}
			for _, part := range []string{moduleFile, codeFile} {
				b, err := os.ReadFile(filepath.Join(dir, key.Name(), part))
				must(t, err)
				f, err := os.Open(filepath.Join(dir, key.Name(), part))
				must(t, err)
				m, err := metaOf(f)
				must(t, err)
				f.Close()
				ix.Files[part] = file{fmt.Sprintf("%x", sha256.Sum256(b)), m}
			}
			must(t, forger.writeIndex(key.Name(), ix))
		}},
		{"the index truncated", func(t *testing.T, _, code string) {
			p := filepath.Join(filepath.Dir(code), indexFile)
			must(t, os.Chmod(p, 0o600))
			must(t, os.Truncate(p, 10))
			must(t, os.Chmod(p, 0o400))
		}},
		{"the index removed", func(t *testing.T, _, code string) {
			must(t, os.Remove(filepath.Join(filepath.Dir(code), indexFile)))
		}},
		{"a key that others may read", func(t *testing.T, dir, _ string) {
			must(t, os.Chmod(filepath.Join(dir, keyFile), 0o644))
		}},
	} {
		for mode, opt := range map[string]Options{"metadata": {}, "verify": {Verify: true}, "in place": {InPlace: true}} {
			t.Run(tt.name+", "+mode, func(t *testing.T) {
				dir := t.TempDir()
				s := open(t, dir, Options{})
				must(t, s.Put(key, artefact(t, "prepared", "native")))
				must(t, s.Put(other, artefact(t, "prepared", "native of another")))
				tt.tamper(t, dir, filepath.Join(dir, key.Name(), codeFile))
				s = open(t, dir, opt)
				if a, err := s.Get(key); !errors.Is(err, ErrMiss) {
					t.Fatalf("Get: %v, %v; want ErrMiss", a, err)
				}
				// It is made anew and then used.
				must(t, s.Put(key, artefact(t, "prepared", "native")))
				a, err := s.Get(key)
				must(t, err)
				defer a.Close()
				if content(t, a.Code) != "native" {
					t.Errorf("after the rebuild: %q", content(t, a.Code))
				}
			})
		}
	}
}

func write(t *testing.T, p, s string) {
	t.Helper()
	must(t, os.Chmod(p, 0o600))
	must(t, os.WriteFile(p, []byte(s), 0o600))
	must(t, os.Chmod(p, 0o400))
}

func TestAFileRewrittenInUseChangesNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	must(t, s.Put(key, artefact(t, "prepared", "native")))
	a, err := s.Get(key)
	must(t, err)
	defer a.Close()
	// A live mapping, as an engine makes one.
	b, err := unix.Mmap(int(a.Code.Fd()), 0, len("native"), unix.PROT_READ, unix.MAP_SHARED)
	must(t, err)
	defer unix.Munmap(b)
	f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", a.Code.Fd()), os.O_RDWR, 0)
	if err == nil {
		if _, err := f.WriteAt([]byte("evil"), 0); err == nil {
			t.Error("the sealed copy could be written")
		}
		f.Close()
	}
	write(t, filepath.Join(dir, key.Name(), codeFile), "nativf")
	if !bytes.Equal(b, []byte("native")) {
		t.Errorf("the mapping holds %q", b)
	}
}

func TestMovedFilesAreHashedOnceAndUsed(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	must(t, s.Put(key, artefact(t, "prepared", "native")))
	code := filepath.Join(dir, key.Name(), codeFile)
	now := time.Now().Add(time.Hour)
	must(t, os.Chtimes(code, now, now)) // as a restored backup
	a, err := s.Get(key)
	must(t, err)
	a.Close()
	ix, err := s.readIndex(key.Name())
	must(t, err)
	f, err := os.Open(code)
	must(t, err)
	defer f.Close()
	if m, err := metaOf(f); err != nil || ix.Files[codeFile].Meta != m {
		t.Errorf("the index was not brought up to date: %v, %v, %v", ix, m, err)
	}
}

func TestEvictionRemovesTheOldest(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{MaxBytes: 3000})
	var keys []Key
	for i := range 4 {
		k := key
		k.Owner = fmt.Sprint(i)
		keys = append(keys, k)
		must(t, s.Put(k, artefact(t, "p", strings.Repeat("x", 1000))))
		old := time.Now().Add(time.Duration(i-10) * time.Minute)
		must(t, os.Chtimes(filepath.Join(dir, k.Name()), old, old))
	}
	if _, err := s.Get(keys[0]); !errors.Is(err, ErrMiss) {
		t.Errorf("the oldest entry: %v", err)
	}
	a, err := s.Get(keys[3])
	must(t, err)
	a.Close()
}

func TestConcurrentPutAndGet(t *testing.T) {
	dir := t.TempDir()
	errs := make(chan error)
	a := artefact(t, "prepared", "native")
	for range 8 {
		go func() {
			s, err := Open(dir, Options{})
			if err != nil {
				errs <- err
				return
			}
			defer s.Close()
			var l *lock.Lock
			if l, err = s.Lock(t.Context(), key); err == nil {
				var got *Artefact
				if got, err = s.Get(key); errors.Is(err, ErrMiss) {
					err = s.Put(key, a)
				} else if err == nil {
					err = got.Close()
				}
				err = errors.Join(err, l.Close())
			}
			errs <- err
		}()
	}
	for range 8 {
		must(t, <-errs)
	}
	got, err := open(t, dir, Options{}).Get(key)
	must(t, err)
	defer got.Close()
}

func BenchmarkGet(b *testing.B) {
	for _, size := range []int{1 << 20, 36 << 20} {
		for mode, opt := range map[string]Options{"metadata": {}, "verify": {Verify: true}, "in place": {InPlace: true}} {
			b.Run(fmt.Sprintf("%dMiB/%s", size>>20, mode), func(b *testing.B) {
				s := open(b, b.TempDir(), opt)
				must(b, s.Put(key, artefact(b, "prepared", strings.Repeat("x", size))))
				for b.Loop() {
					a, err := s.Get(key)
					must(b, err)
					a.Close()
				}
			})
		}
	}
}
