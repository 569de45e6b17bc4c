//go:build !linux && !darwin

package rootfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"
)

// This is the portable form of sys_unix.go: os.Root does every lookup, one component at a time, below the root of
// the mount. It cannot tell how many names a file has, which mount a file lies on, or where a folder was moved to;
// the drive is taken for one mount.

// openRoot is one open folder; mount is the root of its mount and rel its path there, for the calls that name two.
type openRoot struct {
	root  *os.Root
	mount *os.Root
	rel   string
	owner bool // also closes mount
}

// dirHandle is an open host folder. The zero value is no folder.
type dirHandle struct{ r *openRoot }

// fileHandle is an open regular file.
type fileHandle struct{ f *openFile }

type openFile struct {
	*os.File
	app bool
}

func (d dirHandle) ok() bool  { return d.r != nil }
func (f fileHandle) ok() bool { return f.f != nil }

func openMount(p string) (dirHandle, error) {
	root, err := os.OpenRoot(p)
	if err != nil {
		return dirHandle{}, err
	}
	return dirHandle{&openRoot{root: root, mount: root, rel: ".", owner: true}}, nil
}

func openMountFile(p string, write bool) (fileHandle, error) {
	flags := os.O_RDONLY
	if write {
		flags = os.O_RDWR
	}
	f, err := os.OpenFile(p, flags, 0)
	if err != nil {
		return fileHandle{}, err
	}
	return fileHandle{&openFile{File: f}}, nil
}

func (d dirHandle) close() {
	if d.r != nil {
		_ = d.r.root.Close()
	}
}

func (d dirHandle) openDir(name string) (dirHandle, Errno) {
	i, err := d.r.root.Lstat(name)
	if err != nil {
		return dirHandle{}, fromSys(err)
	}
	if !i.IsDir() {
		return dirHandle{}, ENOTDIR
	}
	root, err := d.r.root.OpenRoot(name)
	if err != nil {
		return dirHandle{}, fromSys(err)
	}
	// What was opened may not be what was looked at: a link could have taken its place.
	now, err := root.Stat(".")
	if err != nil || !os.SameFile(i, now) {
		_ = root.Close()
		return dirHandle{}, ELOOP
	}
	return dirHandle{&openRoot{root: root, mount: d.r.mount, rel: path.Join(d.r.rel, name)}}, Success
}

func (d dirHandle) openFile(name string, read, write, app, create bool) (fileHandle, Errno) {
	flags := os.O_RDONLY
	if write {
		flags = os.O_RDWR
	}
	if create {
		f, err := d.r.root.OpenFile(name, flags|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			return fileHandle{}, fromSys(err)
		}
		return fileHandle{&openFile{File: f, app: app}}, Success
	}
	i, err := d.r.root.Lstat(name)
	if err != nil {
		return fileHandle{}, fromSys(err)
	}
	if !i.Mode().IsRegular() {
		return fileHandle{}, ELOOP
	}
	f, err := d.r.root.OpenFile(name, flags, 0)
	if err != nil {
		return fileHandle{}, fromSys(err)
	}
	now, err := f.Stat()
	if err != nil || !os.SameFile(i, now) {
		_ = f.Close()
		return fileHandle{}, ELOOP
	}
	return fileHandle{&openFile{File: f, app: app}}, Success
}

func (d dirHandle) readlink(name string) (string, Errno) {
	to, err := d.r.root.Readlink(name)
	if len(to) > MaxPath {
		return "", ENAMETOOLONG
	}
	return to, fromSys(err)
}

func (d dirHandle) mkdir(name string) Errno  { return fromSys(d.r.root.Mkdir(name, 0o777)) }
func (d dirHandle) unlink(name string) Errno { return d.remove(name, false) }
func (d dirHandle) rmdir(name string) Errno  { return d.remove(name, true) }

func (d dirHandle) remove(name string, dir bool) Errno {
	i, err := d.r.root.Lstat(name)
	switch {
	case err != nil:
		return fromSys(err)
	case dir && !i.IsDir():
		return ENOTDIR
	case !dir && i.IsDir():
		return EISDIR
	}
	return fromSys(d.r.root.Remove(name))
}

func (d dirHandle) symlink(target, name string) Errno { return fromSys(d.r.root.Symlink(target, name)) }

func (d dirHandle) link(name string, to dirHandle, newName string) Errno {
	return fromSys(d.r.mount.Link(path.Join(d.r.rel, name), path.Join(to.r.rel, newName)))
}

func (d dirHandle) rename(name string, to dirHandle, newName string) Errno {
	return fromSys(d.r.mount.Rename(path.Join(d.r.rel, name), path.Join(to.r.rel, newName)))
}

func (d dirHandle) list(limit int) ([]listed, Errno) {
	f, err := d.r.root.Open(".")
	if err != nil {
		return nil, fromSys(err)
	}
	defer f.Close()
	var out []listed
	for {
		entries, err := f.ReadDir(1024)
		for _, e := range entries {
			if len(out) == limit {
				return nil, EOVERFLOW
			}
			out = append(out, listed{e.Name(), kindOf(e.Type()), 1})
		}
		if errors.Is(err, io.EOF) {
			return out, Success
		}
		if err != nil {
			return nil, fromSys(err)
		}
	}
}

func kindOf(m fs.FileMode) Kind {
	switch {
	case m.IsDir():
		return KindDir
	case m.IsRegular():
		return KindFile
	case m&fs.ModeSymlink != 0:
		return KindLink
	case m&fs.ModeSocket != 0:
		return KindSocket
	case m&fs.ModeCharDevice != 0:
		return KindChar
	case m&fs.ModeDevice != 0:
		return KindBlock
	}
	return KindOther
}

// infoOf has no identity to give, so nothing is given back to the quota; the time of the last change stands in for
// the others.
func infoOf(i fs.FileInfo) info {
	t := i.ModTime().UnixNano()
	return info{kind: kindOf(i.Mode()), size: i.Size(), blocks: i.Size(), nlink: 1, atim: t, mtim: t, ctim: t}
}

func (d dirHandle) stat() (info, Errno) {
	i, err := d.r.root.Stat(".")
	if err != nil {
		return info{}, fromSys(err)
	}
	return infoOf(i), Success
}

func (d dirHandle) lstat(name string) (info, Errno) {
	i, err := d.r.root.Lstat(name)
	if err != nil {
		return info{}, fromSys(err)
	}
	return infoOf(i), Success
}

func (d dirHandle) sync() Errno { return Success }

func (d dirHandle) setTimes(t setTimes) Errno {
	a, m := times(t)
	return fromSys(d.r.root.Chtimes(".", a, m))
}

func times(t setTimes) (a, m time.Time) {
	if t.atim != nil {
		a = time.Unix(0, *t.atim)
	}
	if t.mtim != nil {
		m = time.Unix(0, *t.mtim)
	}
	return a, m
}

// free is not known here: the floor is not enforced.
func (d dirHandle) free() (int64, Errno) { return 0, ENOTSUP }

func (d dirHandle) where() (string, bool)  { return "", false }
func (f fileHandle) where() (string, bool) { return "", false }

func (f fileHandle) close() {
	if f.f != nil {
		_ = f.f.Close()
	}
}

func (f fileHandle) pread(p []byte, off int64) (int, Errno) {
	n, err := f.f.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, fromSys(err)
}

func (f fileHandle) pwrite(p []byte, off int64) (int, Errno) {
	n, err := f.f.WriteAt(p, off)
	return n, fromSys(err)
}

func (f fileHandle) append(p []byte) (int, Errno) {
	i, e := f.stat()
	if e != Success {
		return 0, e
	}
	return f.pwrite(p, i.size)
}

func (f fileHandle) setAppend(on bool) Errno {
	f.f.app = on
	return Success
}

func (f fileHandle) truncate(size int64) Errno { return fromSys(f.f.Truncate(size)) }
func (f fileHandle) sync() Errno               { return fromSys(f.f.Sync()) }
func (f fileHandle) datasync() Errno           { return fromSys(f.f.Sync()) }

func (f fileHandle) allocate(off, n int64) Errno {
	i, e := f.stat()
	if e != Success || i.size >= off+n {
		return e
	}
	return f.truncate(off + n)
}

func (f fileHandle) stat() (info, Errno) {
	i, err := f.f.Stat()
	if err != nil {
		return info{}, fromSys(err)
	}
	return infoOf(i), Success
}

// setTimes has no form without a name here.
func (f fileHandle) setTimes(setTimes) Errno { return ENOTSUP }

// fromSys is the one table from the system's errors to the guest's numbers.
func fromSys(err error) Errno {
	for _, r := range []struct {
		err error
		e   Errno
	}{
		{fs.ErrNotExist, ENOENT}, {fs.ErrExist, EEXIST}, {fs.ErrPermission, EACCES}, {syscall.ENOTDIR, ENOTDIR},
		{syscall.EISDIR, EISDIR}, {syscall.ENOTEMPTY, ENOTEMPTY}, {syscall.ENOSPC, ENOSPC}, {syscall.EINVAL, EINVAL},
		{syscall.EPIPE, EPIPE}, {syscall.ELOOP, ELOOP}, {syscall.EXDEV, EXDEV}, {errors.ErrUnsupported, ENOTSUP},
	} {
		if errors.Is(err, r.err) {
			return r.e
		}
	}
	if err != nil {
		return EIO
	}
	return Success
}
