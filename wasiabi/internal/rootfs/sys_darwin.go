package rootfs

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

const dirFlags = unix.O_RDONLY

func fstatfs(fd int, st *unix.Statfs_t) error { return unix.Fstatfs(fd, st) }

func fromStat(st *unix.Stat_t) info {
	return info{
		id:     fileID{uint64(uint32(st.Dev)), st.Ino},
		kind:   kindOfMode(uint32(st.Mode)),
		size:   st.Size,
		blocks: st.Blocks * 512,
		nlink:  uint64(st.Nlink),
		atim:   st.Atim.Nano(),
		mtim:   st.Mtim.Nano(),
		ctim:   st.Ctim.Nano(),
	}
}

func fstat(fd int) (info, Errno) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return info{}, fromSys(err)
	}
	return fromStat(&st), Success
}

func (d dirHandle) stat() (info, Errno)  { return fstat(d.n()) }
func (f fileHandle) stat() (info, Errno) { return fstat(f.n()) }

func (d dirHandle) lstat(name string) (info, Errno) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstatat(d.n(), name, &st, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
		return info{}, fromSys(err)
	}
	return fromStat(&st), Success
}

// allocate makes the file at least off+n bytes long.
func (f fileHandle) allocate(off, n int64) Errno {
	i, e := f.stat()
	if e != Success || i.size >= off+n {
		return e
	}
	return f.truncate(off + n)
}

func (f fileHandle) datasync() Errno { return f.sync() }

func fdSetTimes(fd int, t setTimes) Errno {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fromSys(err)
	}
	tv := []unix.Timeval{unix.NsecToTimeval(st.Atim.Nano()), unix.NsecToTimeval(st.Mtim.Nano())}
	for i, v := range []*int64{t.atim, t.mtim} {
		if v != nil {
			tv[i] = unix.NsecToTimeval(*v)
		}
	}
	return fromSys(unix.Futimes(fd, tv))
}

// hostPath is not asked for here: resolution alone decides.
func hostPath(int) (string, bool) { return "", false }

// parseDirent reads one struct dirent with 64-bit inodes.
func parseDirent(b []byte) (e listed, size int, ok bool) {
	const fixed = 21
	if len(b) < fixed {
		return e, 0, false
	}
	size = int(binary.NativeEndian.Uint16(b[16:]))
	n := int(binary.NativeEndian.Uint16(b[18:]))
	if size < fixed || size > len(b) || fixed+n > size {
		return e, 0, false
	}
	e = listed{name: string(b[fixed : fixed+n]), ino: binary.NativeEndian.Uint64(b)}
	if k, known := kindOfType(b[20]); known {
		e.kind = k
	} else {
		e.kind = kindUnknown
	}
	return e, size, true
}
