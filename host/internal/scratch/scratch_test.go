//go:build unix

package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRemoveFollowsNoLink(t *testing.T) {
	base := t.TempDir()
	outside := filepath.Join(base, "outside")
	must(t, os.Mkdir(outside, 0o700))
	must(t, os.WriteFile(filepath.Join(outside, "f"), nil, 0o600))
	p := filepath.Join(base, "p")
	must(t, os.Mkdir(p, 0o700))
	must(t, os.Symlink(outside, filepath.Join(p, "l")))
	must(t, Remove(p))
	if _, err := os.Stat(filepath.Join(outside, "f")); err != nil {
		t.Error(err)
	}
	must(t, os.Symlink(outside, p))
	must(t, Remove(p))
	if _, err := os.Stat(filepath.Join(outside, "f")); err != nil {
		t.Errorf("removing a link removed what it led to: %v", err)
	}
	must(t, Remove(p)) // gone already
}

func TestRemoveCopesWithWhatAGuestLeaves(t *testing.T) {
	for _, tt := range []struct {
		name  string
		setup func(t *testing.T, p string)
	}{
		{"folders deeper than a path may be long", func(t *testing.T, p string) {
			fd, err := unix.Open(p, unix.O_DIRECTORY|unix.O_RDONLY, 0)
			must(t, err)
			for range 5000 {
				must(t, unix.Mkdirat(fd, "dddd", 0o700))
				next, err := unix.Openat(fd, "dddd", unix.O_DIRECTORY|unix.O_RDONLY, 0)
				must(t, err)
				unix.Close(fd)
				fd = next
			}
			unix.Close(fd)
		}},
		{"more files than one reading gives", func(t *testing.T, p string) {
			for i := range 3000 {
				must(t, os.WriteFile(filepath.Join(p, fmt.Sprint(i)), nil, 0o600))
			}
		}},
		{"folders and files without rights", func(t *testing.T, p string) {
			must(t, os.MkdirAll(filepath.Join(p, "a/b"), 0o700))
			must(t, os.WriteFile(filepath.Join(p, "a/b/f"), nil, 0))
			must(t, os.Chmod(filepath.Join(p, "a/b"), 0))
			must(t, os.Chmod(filepath.Join(p, "a"), 0o500))
		}},
		{"FIFOs", func(t *testing.T, p string) { must(t, syscall.Mkfifo(filepath.Join(p, "f"), 0o600)) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := filepath.Join(t.TempDir(), "p")
			must(t, os.Mkdir(p, 0o700))
			tt.setup(t, p)
			must(t, Remove(p))
			if _, err := os.Lstat(p); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("left: %v", err)
			}
		})
	}
}

func TestSweepTakesOnlyWhatNobodyHolds(t *testing.T) {
	base := t.TempDir()
	live, err := Make(base)
	must(t, err)
	dead := filepath.Join(base, Prefix+"dead")
	must(t, os.MkdirAll(filepath.Join(dead, "run"), 0o700))
	other := filepath.Join(base, "other")
	must(t, os.Mkdir(other, 0o700))
	must(t, os.Symlink(other, filepath.Join(base, Prefix+"link")))
	if n := Sweep(base); n != 1 {
		t.Errorf("Sweep removed %d folders, want 1", n)
	}
	for p, want := range map[string]bool{live.Path: true, dead: false, other: true} {
		if _, err := os.Stat(p); (err == nil) != want {
			t.Errorf("%s: %v, want there %v", p, err, want)
		}
	}
	must(t, live.Remove())
	if _, err := os.Stat(live.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Remove left the folder: %v", err)
	}
}

func TestWalkIsBounded(t *testing.T) {
	p := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(p, strings.Repeat("d/", maxDepth+2)), 0o700))
	if err := Walk(p, func(string, fs.FileInfo) error { return nil }); !errors.Is(err, ErrBound) {
		t.Errorf("Walk: %v, want ErrBound", err)
	}
	must(t, Walk(filepath.Join(p, "missing"), nil))
}
