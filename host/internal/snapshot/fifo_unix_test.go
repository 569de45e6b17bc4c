//go:build unix

package snapshot

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
)

func mkfifo(p string) error { return syscall.Mkfifo(p, 0o600) }

func TestSpecialFilesAreRefused(t *testing.T) {
	dir := tree(t, map[string]string{"x": ""})
	must(t, mkfifo(filepath.Join(dir, "fifo")))
	if _, err := Hash(t.Context(), source(t, dir)); !errors.Is(err, ErrUnsafe) {
		t.Errorf("Hash: %v", err)
	}
}
