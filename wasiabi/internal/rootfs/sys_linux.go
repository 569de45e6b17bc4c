package rootfs

import (
	"encoding/binary"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A lookup needs no right to read the folder, and opening one by path alone has no side effects.
const dirFlags = unix.O_PATH

func fstatfs(fd int, st *unix.Statfs_t) error {
	// fstatfs refuses nothing that O_PATH allows since Linux 3.12.
	return unix.Fstatfs(fd, st)
}

func statAt(fd int, name string, flags int) (info, Errno) {
	var st unix.Statx_t
	err := retry(func() error {
		return unix.Statx(fd, name, flags|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &st)
	})
	if err != nil {
		return info{}, fromSys(err)
	}
	i := info{
		id:     fileID{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino},
		kind:   kindOfMode(uint32(st.Mode)),
		size:   int64(st.Size),
		blocks: int64(st.Blocks) * 512,
		nlink:  uint64(st.Nlink),
		atim:   st.Atime.Sec*1e9 + int64(st.Atime.Nsec),
		mtim:   st.Mtime.Sec*1e9 + int64(st.Mtime.Nsec),
		ctim:   st.Ctime.Sec*1e9 + int64(st.Ctime.Nsec),
	}
	if st.Mask&unix.STATX_MNT_ID != 0 {
		i.mount = st.Mnt_id
	}
	return i, Success
}

func (d dirHandle) stat() (info, Errno)  { return statAt(d.n(), "", unix.AT_EMPTY_PATH) }
func (f fileHandle) stat() (info, Errno) { return statAt(f.n(), "", unix.AT_EMPTY_PATH) }

func (d dirHandle) lstat(name string) (info, Errno) {
	return statAt(d.n(), name, unix.AT_SYMLINK_NOFOLLOW)
}

// allocate makes the file at least off+n bytes long and reserves the space where the file system can.
func (f fileHandle) allocate(off, n int64) Errno {
	err := retry(func() error { return unix.Fallocate(f.n(), 0, off, n) })
	if err != unix.ENOTSUP {
		return fromSys(err)
	}
	i, e := f.stat()
	if e != Success || i.size >= off+n {
		return e
	}
	return f.truncate(off + n)
}

func (f fileHandle) datasync() Errno {
	return fromSys(retry(func() error { return unix.Fdatasync(f.n()) }))
}

// fdSetTimes passes no name: the worker's system call filter allows only that form.
func fdSetTimes(fd int, t setTimes) Errno {
	ts := [2]unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Nsec: unix.UTIME_OMIT}}
	for i, v := range []*int64{t.atim, t.mtim} {
		if v != nil {
			ts[i] = unix.NsecToTimespec(*v)
		}
	}
	_, _, e := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&ts[0])), 0, 0, 0)
	if e != 0 {
		return fromSys(e)
	}
	return Success
}

// hostPath is where the descriptor's file is now, for comparison with another descriptor's only.
func hostPath(fd int) (string, bool) {
	var buf [8 << 10]byte
	n, err := unix.Readlinkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), buf[:])
	if err != nil || n == len(buf) || n == 0 || buf[0] != '/' {
		return "", false
	}
	place := string(buf[:n])
	if rest, ok := strings.CutSuffix(place, " (deleted)"); ok { // which may be a name as well
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Nlink == 0 {
			place = rest
		}
	}
	return place, true
}

// parseDirent reads one struct linux_dirent64.
func parseDirent(b []byte) (e listed, size int, ok bool) {
	const fixed = 19
	if len(b) < fixed {
		return e, 0, false
	}
	size = int(binary.NativeEndian.Uint16(b[16:]))
	if size < fixed || size > len(b) {
		return e, 0, false
	}
	name := b[fixed:size]
	for i, c := range name {
		if c == 0 {
			name = name[:i]
			break
		}
	}
	e = listed{name: string(name), ino: binary.NativeEndian.Uint64(b)}
	if k, known := kindOfType(b[18]); known {
		e.kind = k
	} else {
		e.kind = kindUnknown
	}
	return e, size, true
}
