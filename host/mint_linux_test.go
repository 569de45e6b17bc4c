package host

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRootsAreOpenedWithoutLinksOnOldKernelsToo(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(base, "real/below"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"dir": "real", "end": "real/below"} {
		if err := os.Symlink(to, filepath.Join(base, name)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]error{
		"/": nil, base: nil, base + "/real/below": nil, base + "/dir/below": unix.ENOTDIR, base + "/missing/x": unix.ENOENT,
	} {
		fd, err := openSteps(path)
		if !errors.Is(err, want) || err == nil != (want == nil) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
		if err != nil {
			continue
		}
		if to, err := os.Readlink(fdPath(os.NewFile(uintptr(fd), path))); err != nil || to != path {
			t.Errorf("%s leads to %q, %v", path, to, err)
		}
	}
	fd, err := openSteps(base + "/end")
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		t.Errorf("a link at the end was followed: mode %o, %v", st.Mode, err)
	}
}
