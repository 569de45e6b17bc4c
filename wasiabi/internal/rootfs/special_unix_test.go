//go:build linux || darwin

package rootfs

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// special makes a FIFO and a socket.
func special(t *testing.T, base string) {
	t.Helper()
	if err := unix.Mkfifo(filepath.Join(base, "fifo"), 0o666); err != nil {
		t.Fatal(err)
	}
	// A socket's path is short: it is made in a folder of its own and moved.
	dir, err := os.MkdirTemp("/tmp", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if err := os.Rename(filepath.Join(dir, "s"), filepath.Join(base, "socket")); err != nil {
		t.Skip("a socket cannot be moved there:", err)
	}
}
