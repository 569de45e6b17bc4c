//go:build unix

package private

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestDir(t *testing.T) {
	for _, tt := range []struct {
		name  string
		setup func(t *testing.T, dir string) string
		ok    bool
	}{
		{"a missing folder is made with its parents", func(t *testing.T, dir string) string {
			return filepath.Join(dir, "a", "b")
		}, true},
		{"a folder that the group may write is refused", func(t *testing.T, dir string) string {
			p := filepath.Join(dir, "g")
			must(t, os.Mkdir(p, 0o700))
			must(t, os.Chmod(p, 0o770))
			return p
		}, false},
		{"a folder below one that others may write is refused", func(t *testing.T, dir string) string {
			must(t, os.Mkdir(filepath.Join(dir, "w"), 0o700))
			must(t, os.Mkdir(filepath.Join(dir, "w", "c"), 0o700))
			must(t, os.Chmod(filepath.Join(dir, "w"), 0o777))
			return filepath.Join(dir, "w", "c")
		}, false},
		{"a folder below a sticky one is fine", func(t *testing.T, dir string) string {
			must(t, os.Mkdir(filepath.Join(dir, "s"), 0o700))
			must(t, os.Chmod(filepath.Join(dir, "s"), 0o777|os.ModeSticky))
			return filepath.Join(dir, "s", "c")
		}, true},
		{"a symlink to a private folder is refused", func(t *testing.T, dir string) string {
			must(t, os.Mkdir(filepath.Join(dir, "real"), 0o700))
			must(t, os.Symlink("real", filepath.Join(dir, "link")))
			return filepath.Join(dir, "link")
		}, false},
		{"a file is refused", func(t *testing.T, dir string) string {
			must(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o600))
			return filepath.Join(dir, "f")
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := tt.setup(t, t.TempDir())
			got, err := Dir(path)
			if tt.ok {
				if err != nil {
					t.Fatal(err)
				}
				fi, err := os.Lstat(got)
				if err != nil || fi.Mode().Perm() != 0o700 {
					t.Fatalf("made with %v, %v; want mode 0700", fi, err)
				}
				return
			}
			if !errors.Is(err, ErrUnsafe) {
				t.Fatalf("Dir = %q, %v; want ErrUnsafe", got, err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
