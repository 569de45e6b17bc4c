//go:build linux || darwin

package rootfs

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// The functions of this file take one path component at a time, relative to an open folder, and never follow a
// link: what a name means is decided by resolve.go, and a link that appears after a look makes the call fail.

// dirHandle is an open host folder. The zero value is no folder.
type dirHandle struct{ fd int32 } // the descriptor plus one, so that the zero value is none

// fileHandle is an open regular file.
type fileHandle struct{ fd int32 }

func (d dirHandle) ok() bool  { return d.fd != 0 }
func (f fileHandle) ok() bool { return f.fd != 0 }
func (d dirHandle) n() int    { return int(d.fd) - 1 }
func (f fileHandle) n() int   { return int(f.fd) - 1 }

func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// openMount opens the root of a mount through os.Root, whose refusals thus hold for the root itself.
func openMount(path string) (dirHandle, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return dirHandle{}, err
	}
	defer root.Close()
	f, err := root.Open(".")
	if err != nil {
		return dirHandle{}, err
	}
	defer f.Close()
	fd, err := dup(f)
	return dirHandle{int32(fd) + 1}, err
}

// openMountFile opens the one file of a single-file mount.
func openMountFile(path string, write bool) (fileHandle, error) {
	flags := unix.O_RDONLY
	if write {
		flags = unix.O_RDWR
	}
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Open(path, flags|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return fileHandle{}, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fileHandle{int32(fd) + 1}, nil
}

func dup(f *os.File) (int, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd, dupErr := -1, error(nil)
	if err := conn.Control(func(u uintptr) { fd, dupErr = unix.FcntlInt(u, unix.F_DUPFD_CLOEXEC, 3) }); err != nil {
		return -1, err
	}
	return fd, dupErr
}

func (d dirHandle) close() {
	if d.ok() {
		_ = unix.Close(d.n())
	}
}

// openDir opens a folder for lookups; list needs openList.
func (d dirHandle) openDir(name string) (dirHandle, Errno) {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(d.n(), name, dirFlags|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return dirHandle{}, fromSys(err)
	}
	return dirHandle{int32(fd) + 1}, Success
}

// openFile opens a regular file. It never blocks, never truncates and never follows a link; create makes the file
// and fails if there is one.
func (d dirHandle) openFile(name string, read, write, app, create bool) (fileHandle, Errno) {
	flags := unix.O_RDONLY
	switch {
	case read && write:
		flags = unix.O_RDWR
	case write:
		flags = unix.O_WRONLY
	}
	if app {
		flags |= unix.O_APPEND
	}
	if create {
		flags |= unix.O_CREAT | unix.O_EXCL
	}
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(d.n(), name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0o666)
		return err
	})
	if err != nil {
		return fileHandle{}, fromSys(err)
	}
	return fileHandle{int32(fd) + 1}, Success
}

func (d dirHandle) readlink(name string) (string, Errno) {
	buf := make([]byte, MaxPath+1)
	n, err := unix.Readlinkat(d.n(), name, buf)
	if err != nil {
		return "", fromSys(err)
	}
	if n > MaxPath {
		return "", ENAMETOOLONG
	}
	return string(buf[:n]), Success
}

func (d dirHandle) mkdir(name string) Errno {
	return fromSys(retry(func() error { return unix.Mkdirat(d.n(), name, 0o777) }))
}

func (d dirHandle) unlink(name string) Errno {
	return fromSys(retry(func() error { return unix.Unlinkat(d.n(), name, 0) }))
}

func (d dirHandle) rmdir(name string) Errno {
	return fromSys(retry(func() error { return unix.Unlinkat(d.n(), name, unix.AT_REMOVEDIR) }))
}

func (d dirHandle) symlink(target, name string) Errno {
	return fromSys(retry(func() error { return unix.Symlinkat(target, d.n(), name) }))
}

func (d dirHandle) link(name string, to dirHandle, newName string) Errno {
	return fromSys(retry(func() error { return unix.Linkat(d.n(), name, to.n(), newName, 0) }))
}

func (d dirHandle) rename(name string, to dirHandle, newName string) Errno {
	return fromSys(retry(func() error { return unix.Renameat(d.n(), name, to.n(), newName) }))
}

// list reads a whole folder, at most limit entries; more answers EOVERFLOW.
func (d dirHandle) list(limit int) ([]listed, Errno) {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(d.n(), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, fromSys(err)
	}
	defer unix.Close(fd)
	var out []listed
	buf := make([]byte, 32<<10)
	for {
		var n int
		err := retry(func() (err error) {
			n, err = unix.ReadDirent(fd, buf)
			return err
		})
		if err != nil {
			return nil, fromSys(err)
		}
		if n <= 0 {
			return out, Success
		}
		for rest := buf[:n]; len(rest) > 0; {
			e, size, ok := parseDirent(rest)
			if !ok {
				return nil, EIO
			}
			rest = rest[size:]
			if e.name == "." || e.name == ".." || e.ino == 0 {
				continue
			}
			if len(out) == limit {
				return nil, EOVERFLOW
			}
			out = append(out, e)
		}
	}
}

func kindOfType(t uint8) (Kind, bool) {
	switch t {
	case unix.DT_DIR:
		return KindDir, true
	case unix.DT_REG:
		return KindFile, true
	case unix.DT_LNK:
		return KindLink, true
	case unix.DT_BLK:
		return KindBlock, true
	case unix.DT_CHR:
		return KindChar, true
	case unix.DT_SOCK:
		return KindSocket, true
	case unix.DT_FIFO:
		return KindOther, true
	}
	return KindOther, false
}

func kindOfMode(mode uint32) Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return KindDir
	case unix.S_IFREG:
		return KindFile
	case unix.S_IFLNK:
		return KindLink
	case unix.S_IFBLK:
		return KindBlock
	case unix.S_IFCHR:
		return KindChar
	case unix.S_IFSOCK:
		return KindSocket
	}
	return KindOther
}

func (d dirHandle) sync() Errno {
	// The descriptor of a lookup cannot be synced.
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(d.n(), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return fromSys(err)
	}
	defer unix.Close(fd)
	return fromSys(retry(func() error { return unix.Fsync(fd) }))
}

// setTimes sets the times of a folder.
func (d dirHandle) setTimes(t setTimes) Errno {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(d.n(), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return fromSys(err)
	}
	defer unix.Close(fd)
	return fdSetTimes(fd, t)
}

// free is the space on the folder's file system that an ordinary user may still take, in bytes.
func (d dirHandle) free() (int64, Errno) {
	var st unix.Statfs_t
	if err := retry(func() error { return fstatfs(d.n(), &st) }); err != nil {
		return 0, fromSys(err)
	}
	return int64(st.Bavail) * int64(st.Bsize), Success
}

func (f fileHandle) close() {
	if f.ok() {
		_ = unix.Close(f.n())
	}
}

func (f fileHandle) pread(p []byte, off int64) (int, Errno) {
	var n int
	err := retry(func() (err error) {
		n, err = unix.Pread(f.n(), p, off)
		return err
	})
	return max(n, 0), fromSys(err)
}

func (f fileHandle) pwrite(p []byte, off int64) (int, Errno) {
	var n int
	err := retry(func() (err error) {
		n, err = unix.Pwrite(f.n(), p, off)
		return err
	})
	return max(n, 0), fromSys(err)
}

// append writes at the end, wherever that is now; the handle was opened with app or setAppend.
func (f fileHandle) append(p []byte) (int, Errno) {
	var n int
	err := retry(func() (err error) {
		n, err = unix.Write(f.n(), p)
		return err
	})
	return max(n, 0), fromSys(err)
}

func (f fileHandle) setAppend(on bool) Errno {
	flags, err := unix.FcntlInt(uintptr(f.n()), unix.F_GETFL, 0)
	if err != nil {
		return fromSys(err)
	}
	flags &^= unix.O_APPEND
	if on {
		flags |= unix.O_APPEND
	}
	_, err = unix.FcntlInt(uintptr(f.n()), unix.F_SETFL, flags)
	return fromSys(err)
}

func (f fileHandle) truncate(size int64) Errno {
	return fromSys(retry(func() error { return unix.Ftruncate(f.n(), size) }))
}

func (f fileHandle) sync() Errno {
	return fromSys(retry(func() error { return unix.Fsync(f.n()) }))
}

func (f fileHandle) setTimes(t setTimes) Errno { return fdSetTimes(f.n(), t) }

// fromSys is the one table from the system's error numbers to the guest's.
func fromSys(err error) Errno {
	if err == nil {
		return Success
	}
	var e unix.Errno
	if !errors.As(err, &e) {
		return EIO
	}
	switch e {
	case unix.EACCES:
		return EACCES
	case unix.EAGAIN:
		return EAGAIN
	case unix.EBADF:
		return EBADF
	case unix.EBUSY:
		return EBUSY
	case unix.EDQUOT:
		return EDQUOT
	case unix.EEXIST:
		return EEXIST
	case unix.EFBIG:
		return EFBIG
	case unix.EILSEQ:
		return EILSEQ
	case unix.EINVAL:
		return EINVAL
	case unix.EISDIR:
		return EISDIR
	case unix.ELOOP:
		return ELOOP
	case unix.EMFILE, unix.ENFILE:
		return ENFILE // the host's table, not the guest's
	case unix.EMLINK:
		return EMLINK
	case unix.ENAMETOOLONG:
		return ENAMETOOLONG
	case unix.ENODEV:
		return ENODEV
	case unix.ENOENT:
		return ENOENT
	case unix.ENOMEM:
		return ENOMEM
	case unix.ENOSPC:
		return ENOSPC
	case unix.ENOTDIR:
		return ENOTDIR
	case unix.ENOTEMPTY:
		return ENOTEMPTY
	case unix.ENOTSUP:
		return ENOTSUP
	case unix.ENXIO:
		return ENXIO
	case unix.EOVERFLOW:
		return EOVERFLOW
	case unix.EPERM:
		return EPERM
	case unix.EPIPE:
		return EPIPE
	case unix.EROFS:
		return EROFS
	case unix.ESPIPE:
		return ESPIPE
	case unix.ETXTBSY:
		return ETXTBSY
	case unix.EXDEV:
		return EXDEV
	}
	return EIO
}

// where is the folder's place on the host now, only for comparison with another's; false where it is not known.
func (d dirHandle) where() (string, bool)  { return hostPath(d.n()) }
func (f fileHandle) where() (string, bool) { return hostPath(f.n()) }
