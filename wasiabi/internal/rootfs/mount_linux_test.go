package rootfs

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMountPointsOfTheHostAreNotCrossed(t *testing.T) {
	base := files(t, map[string]string{"m/": "", "b/": "", "src/f": "f"})
	if err := unix.Mount("tmpfs", filepath.Join(base, "m"), "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("mounting needs a privilege that this user lacks:", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(filepath.Join(base, "m"), unix.MNT_DETACH) })
	// A bind mount has the device of the folder around it: only the mount's id tells.
	if err := unix.Mount(filepath.Join(base, "src"), filepath.Join(base, "b"), "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(filepath.Join(base, "b"), unix.MNT_DETACH) })
	if err := os.WriteFile(filepath.Join(base, "m/f"), []byte("f"), 0o644); err != nil {
		t.Fatal(err)
	}
	tr := newTree(t, rw(base))
	for _, p := range []string{"w/m", "w/m/f", "w/b", "w/b/f", "w/b/"} {
		tr.want("open "+p, tr.open(p, OpenOptions{Read: true}), EACCES)
		_, e := tr.root.StatAt(p, true)
		tr.want("stat "+p, e, EACCES)
	}
	tr.want("create", tr.write("w/b/x", "x"), EACCES)
	if !tr.refused("read /w/m", EACCES) {
		t.Error("no event")
	}
	cfg := rw(base)
	cfg.Mounts[0].Cross = true
	tr = newTree(t, cfg)
	if got, e := tr.read("w/m/f"); got != "f" || e != Success {
		t.Errorf("a mount that may be crossed: %q %v", got, e)
	}
}

func TestDevicesAreRefused(t *testing.T) {
	base := t.TempDir()
	if err := unix.Mknod(filepath.Join(base, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
		t.Skip("making a device needs a privilege that this user lacks:", err)
	}
	tr := newTree(t, rw(base))
	for _, o := range []OpenOptions{{Read: true}, {Write: true}} {
		tr.want("open", tr.open("w/null", o), EACCES)
	}
}
