//go:build wasip1

package attack

import (
	"strconv"
	"unsafe"
)

// The whole of WASI preview 1 that an attack calls, one level below Go's own syscall package: that package cleans
// paths and resolves them against a working directory, so "../" never reaches the host through it. Pointers are
// plain numbers here because many attacks pass one that is wrong.
//
// Every function returns an errno of preview 1; 0 is success.

// Root is the descriptor of the one preopened folder, "/".
const Root = 3

// Open flags, descriptor flags and rights of preview 1.
const (
	OCreat     = 1
	ODirectory = 2
	OExcl      = 4
	OTrunc     = 8

	FlagAppend   = 1
	FlagNonblock = 4

	Follow = 1 // lookup flag: follow a link in the last place

	RightRead     = 1 << 1
	RightWrite    = 1 << 6
	RightAllocate = 1 << 8
	RightSetSize  = 1 << 22
	RightTimes    = 1 << 23
	RightsAll     = 1<<30 - 1
)

//go:wasmimport wasi_snapshot_preview1 path_open
func PathOpen(fd int32, lookup, path, pathLen, oflags uint32, base, inheriting uint64, fdflags, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_symlink
func PathSymlink(target, targetLen uint32, fd int32, path, pathLen uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_readlink
func PathReadlink(fd int32, path, pathLen, buf, bufLen, used uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_link
func PathLink(oldFD int32, lookup, old, oldLen uint32, newFD int32, new, newLen uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_rename
func PathRename(oldFD int32, old, oldLen uint32, newFD int32, new, newLen uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_unlink_file
func PathUnlinkFile(fd int32, path, pathLen uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_remove_directory
func PathRemoveDirectory(fd int32, path, pathLen uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_create_directory
func PathCreateDirectory(fd int32, path, pathLen uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_filestat_get
func PathFilestatGet(fd int32, lookup, path, pathLen, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 path_filestat_set_times
func PathFilestatSetTimes(fd int32, lookup, path, pathLen uint32, atime, mtime uint64, which uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_filestat_set_size
func FDFilestatSetSize(fd int32, size uint64) uint32

//go:wasmimport wasi_snapshot_preview1 fd_filestat_set_times
func FDFilestatSetTimes(fd int32, atime, mtime uint64, which uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_allocate
func FDAllocate(fd int32, offset, length uint64) uint32

//go:wasmimport wasi_snapshot_preview1 fd_read
func FDRead(fd int32, iovecs, count, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_write
func FDWrite(fd int32, iovecs, count, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_pread
func FDPread(fd int32, iovecs, count uint32, offset uint64, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_pwrite
func FDPwrite(fd int32, iovecs, count uint32, offset uint64, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_readdir
func FDReaddir(fd int32, buf, bufLen uint32, cookie uint64, used uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_close
func FDClose(fd int32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_renumber
func FDRenumber(fd, to int32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_fdstat_set_rights
func FDSetRights(fd int32, base, inheriting uint64) uint32

//go:wasmimport wasi_snapshot_preview1 fd_fdstat_set_flags
func FDSetFlags(fd int32, flags uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_prestat_get
func FDPrestatGet(fd int32, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_prestat_dir_name
func FDPrestatDirName(fd int32, buf, bufLen uint32) uint32

//go:wasmimport wasi_snapshot_preview1 random_get
func RandomGet(buf, bufLen uint32) uint32

//go:wasmimport wasi_snapshot_preview1 poll_oneoff
func PollOneoff(in, out, count, events uint32) uint32

//go:wasmimport wasi_snapshot_preview1 sock_accept
func SockAccept(fd int32, flags, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 sock_recv
func SockRecv(fd int32, iovecs, count, flags, size, outFlags uint32) uint32

//go:wasmimport wasi_snapshot_preview1 sock_send
func SockSend(fd int32, iovecs, count, flags, size uint32) uint32

//go:wasmimport wasi_snapshot_preview1 sock_shutdown
func SockShutdown(fd int32, how uint32) uint32

// Slots that calls write their results to. Globals do not move, so their addresses stay good over a call.
var (
	cell   [8]byte
	result [64]byte
	iovec  [2]uint32
	bytes_ = [4096]byte{}
)

func address(p unsafe.Pointer) uint32 { return uint32(uintptr(p)) }

// Cell is the address of eight bytes for a call's result.
func Cell() uint32 { return address(unsafe.Pointer(&cell)) }

// CellValue is the 32-bit number that the last call left in the cell.
func CellValue() uint32 { return *(*uint32)(unsafe.Pointer(&cell)) }

// Stat is the address of 64 bytes for a filestat.
func Stat() uint32 { return address(unsafe.Pointer(&result)) }

// StatSize is the size in the filestat that the last call wrote.
func StatSize() uint64 { return *(*uint64)(unsafe.Pointer(&result[32])) }

// Path returns address and length of s, kept in a buffer of its own for the life of the guest.
func Path(s string) (uint32, uint32) {
	kept = append(kept, []byte(s+"\x00"))
	return address(unsafe.Pointer(&kept[len(kept)-1][0])), uint32(len(s))
}

var kept [][]byte

// Buffer returns address and length of a 4096-byte buffer.
func Buffer() (uint32, uint32) { return address(unsafe.Pointer(&bytes_)), uint32(len(bytes_)) }

// BufferText is the first n bytes of that buffer.
func BufferText(n uint32) string { return string(bytes_[:min(int(n), len(bytes_))]) }

// Vector is the address of one iovec over b.
func Vector(b []byte) uint32 {
	kept = append(kept, b)
	iovec = [2]uint32{address(unsafe.Pointer(unsafe.SliceData(b))), uint32(len(b))}
	return address(unsafe.Pointer(&iovec))
}

// Open opens path below a descriptor and returns the new descriptor.
func Open(fd int32, path string, lookup, oflags uint32, rights uint64, fdflags uint32) (int32, uint32) {
	p, n := Path(path)
	errno := PathOpen(fd, lookup, p, n, oflags, rights, rights, fdflags, Cell())
	return int32(CellValue()), errno
}

// Symlink makes a link named path with the text target.
func Symlink(target, path string) uint32 {
	t, tn := Path(target)
	p, n := Path(path)
	return PathSymlink(t, tn, Root, p, n)
}

// Readlink returns the text of a link.
func Readlink(path string) (string, uint32) {
	p, n := Path(path)
	buf, bufLen := Buffer()
	errno := PathReadlink(Root, p, n, buf, bufLen, Cell())
	if errno != 0 {
		return "", errno
	}
	return BufferText(CellValue()), 0
}

// Rename renames within the root.
func Rename(from, to string) uint32 {
	f, fn := Path(from)
	t, tn := Path(to)
	return PathRename(Root, f, fn, Root, t, tn)
}

// Link makes a hard link.
func Link(from, to string) uint32 {
	f, fn := Path(from)
	t, tn := Path(to)
	return PathLink(Root, 0, f, fn, Root, t, tn)
}

// Unlink removes a file, Rmdir a folder, Mkdir makes one.
func Unlink(path string) uint32 { p, n := Path(path); return PathUnlinkFile(Root, p, n) }

// Rmdir removes a folder.
func Rmdir(path string) uint32 { p, n := Path(path); return PathRemoveDirectory(Root, p, n) }

// Mkdir makes a folder.
func Mkdir(path string) uint32 { p, n := Path(path); return PathCreateDirectory(Root, p, n) }

// Lstat and StatPath look at a path without and with following a link in the last place.
func Lstat(path string) uint32 { p, n := Path(path); return PathFilestatGet(Root, 0, p, n, Stat()) }

// StatPath follows a link in the last place.
func StatPath(path string) uint32 {
	p, n := Path(path)
	return PathFilestatGet(Root, Follow, p, n, Stat())
}

// Write writes b to a descriptor.
func Write(fd int32, b []byte) uint32 { return FDWrite(fd, Vector(b), 1, Cell()) }

// Read reads at most 4096 bytes from a descriptor.
func Read(fd int32) (string, uint32) {
	b := make([]byte, 4096)
	if errno := FDRead(fd, Vector(b), 1, Cell()); errno != 0 {
		return "", errno
	}
	return string(b[:min(int(CellValue()), len(b))]), 0
}

// Errno is the name of an errno of preview 1.
func Errno(n uint32) string {
	if int(n) < len(errnos) {
		return errnos[n]
	}
	return "E" + strconv.Itoa(int(n))
}

var errnos = [...]string{
	"ESUCCESS", "E2BIG", "EACCES", "EADDRINUSE", "EADDRNOTAVAIL", "EAFNOSUPPORT", "EAGAIN", "EALREADY", "EBADF",
	"EBADMSG", "EBUSY", "ECANCELED", "ECHILD", "ECONNABORTED", "ECONNREFUSED", "ECONNRESET", "EDEADLK",
	"EDESTADDRREQ", "EDOM", "EDQUOT", "EEXIST", "EFAULT", "EFBIG", "EHOSTUNREACH", "EIDRM", "EILSEQ",
	"EINPROGRESS", "EINTR", "EINVAL", "EIO", "EISCONN", "EISDIR", "ELOOP", "EMFILE", "EMLINK", "EMSGSIZE",
	"EMULTIHOP", "ENAMETOOLONG", "ENETDOWN", "ENETRESET", "ENETUNREACH", "ENFILE", "ENOBUFS", "ENODEV", "ENOENT",
	"ENOEXEC", "ENOLCK", "ENOLINK", "ENOMEM", "ENOMSG", "ENOPROTOOPT", "ENOSPC", "ENOSYS", "ENOTCONN", "ENOTDIR",
	"ENOTEMPTY", "ENOTRECOVERABLE", "ENOTSOCK", "ENOTSUP", "ENOTTY", "ENXIO", "EOVERFLOW", "EOWNERDEAD", "EPERM",
	"EPIPE", "EPROTO", "EPROTONOSUPPORT", "EPROTOTYPE", "ERANGE", "EROFS", "ESPIPE", "ESRCH", "ESTALE",
	"ETIMEDOUT", "ETXTBSY", "EXDEV", "ENOTCAPABLE",
}

// Pointer is the address of b, which is kept for the life of the guest.
func Pointer(b []byte) uint32 {
	kept = append(kept, b)
	return address(unsafe.Pointer(unsafe.SliceData(b)))
}
