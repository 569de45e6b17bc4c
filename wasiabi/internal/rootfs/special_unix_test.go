//go:build linux || darwin

package rootfs

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestHolesFromBeforeAreCountedWhenTheyAreFilled(t *testing.T) {
	const mib = 1 << 20
	base := files(t, map[string]string{"dense": strings.Repeat("x", 3*mib)})
	for _, name := range []string{"sparse", "linked", "allocated"} {
		f, err := os.Create(filepath.Join(base, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(16 * mib); err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Blocks > 0 {
			t.Skipf("this file system has no holes: %d blocks, %v", st.Blocks, err)
		}
		f.Close()
	}
	open := func(tr *tree, name string) *File {
		t.Helper()
		got, e := tr.root.Open(name, OpenOptions{Write: true})
		if e != Success {
			t.Fatal(e)
		}
		t.Cleanup(got.File.Close)
		return got.File
	}
	block := make([]byte, mib)
	for i := range block {
		block[i] = 1
	}
	put := func(f *File, times int) (n int64) {
		for i := range times {
			done, e := f.WriteAt(block, int64(i)*mib)
			n += int64(done)
			if e != Success {
				return n
			}
		}
		return n
	}
	limited := func() *tree {
		cfg := rw(base)
		cfg.Disk = 4 * mib
		return newTree(t, cfg)
	}
	tr := limited()
	if n := put(open(tr, "w/sparse"), 16); n > 4*mib || n < 3*mib {
		t.Errorf("%d bytes of holes were filled", n)
	}
	tr = limited()
	tr.want("link", tr.root.Link("w/linked", false, tr.root, "w/more"), Success)
	if n := put(open(tr, "w/linked"), 16); n > 4*mib {
		t.Errorf("%d bytes of holes were filled in a file that was linked first", n)
	}
	tr = limited()
	tr.want("allocate", open(tr, "w/allocated").Allocate(0, 16*mib), EDQUOT)
	tr = limited()
	for range 5 {
		if n := put(open(tr, "w/dense"), 3); n != 3*mib {
			t.Errorf("%d bytes were written over", n)
		}
	}
	got, e := tr.root.Open("w/own", OpenOptions{Write: true, Create: true})
	if e != Success {
		t.Fatal(e)
	}
	defer got.File.Close()
	tr.want("a hole of its own", got.File.SetSize(3*mib), Success)
	if n := put(got.File, 3); n != 3*mib {
		t.Errorf("%d bytes of a hole that was paid for", n)
	}
}

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
