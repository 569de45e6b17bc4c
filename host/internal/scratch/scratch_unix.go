//go:build unix

package scratch

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func own(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && st.Uid == uint32(os.Geteuid())
}

// renameAcross moves a folder from one root to another on the same file system.
func renameAcross(from *os.Root, name string, to *os.Root, as string) (err error) {
	f, err := from.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	t, err := to.Open(".")
	if err != nil {
		return err
	}
	defer t.Close()
	err = unix.Renameat(int(f.Fd()), name, int(t.Fd()), as)
	if errors.Is(err, unix.EACCES) { // renaming a folder into another parent writes its ".."
		if err = from.Chmod(name, 0o700); err == nil {
			err = unix.Renameat(int(f.Fd()), name, int(t.Fd()), as)
		}
	}
	return err
}
