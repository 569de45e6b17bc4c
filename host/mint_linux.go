package host

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// openPath opens a folder or file as a handle only: that needs no right to read it, reads nothing and cannot block.
func openPath(path string) (*os.File, error) {
	// The path was resolved before, so a link in it now was put there since.
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err == unix.ENOSYS || err == unix.EPERM { // an old kernel, or a container whose filter does not know the call
		fd, err = openSteps(path)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openSteps is openat2 with RESOLVE_NO_SYMLINKS for an absolute path. A link at the end gives a handle of the link.
func openSteps(path string) (int, error) {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	names := strings.Split(strings.Trim(path, "/"), "/")
	for i, name := range names {
		if err != nil || name == "" {
			break
		}
		flags := unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
		if i < len(names)-1 {
			flags |= unix.O_DIRECTORY // with it, a link is none
		}
		next, nextErr := unix.Openat(fd, name, flags, 0)
		unix.Close(fd)
		fd, err = next, nextErr
	}
	return fd, err
}

// onProc says whether f lies in a /proc: what is there means the process that looks, so a guest would read and write
// its own worker.
func onProc(f *os.File) (bool, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return false, os.NewSyscallError("fstatfs", err)
	}
	return st.Type == unix.PROC_SUPER_MAGIC, nil
}

func identity(f *os.File) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return "", os.NewSyscallError("fstat", err)
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino), nil
}

// fdPath names an open folder in a way that leads to it whatever happens to its name.
func fdPath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
