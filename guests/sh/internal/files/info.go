package files

import (
	"io/fs"
	"time"
)

const (
	owner   = "guest"
	ownerID = 1000
)

// info is what stat tells of a file: see the package comment for what is made up.
type info struct {
	fs.FileInfo
	dev, ino, nlink     uint64
	atime, ctime, mtime time.Time
}

// newInfo completes fi by what the system says.
func newInfo(fi fs.FileInfo) *info {
	in := &info{FileInfo: fi, nlink: 1, mtime: fi.ModTime(), atime: fi.ModTime(), ctime: fi.ModTime()}
	in.system()
	return in
}

func (in *info) link() bool { return in.Mode()&fs.ModeSymlink != 0 }

// perm is the mode that the file is shown with.
func (in *info) perm() fs.FileMode { return perm(in.Mode()) }

// blocks is the disk usage in blocks of 512 bytes.
func (in *info) blocks() int64 {
	switch {
	case in.IsDir():
		return max(8, (in.Size()+4095)/4096*8)
	case in.Mode().IsRegular():
		return (in.Size() + 4095) / 4096 * 8
	}
	return 0
}

// kind is the letter of the file's kind in ls -l and find -type.
func kind(m fs.FileMode) byte {
	switch {
	case m.IsRegular():
		return '-'
	case m.IsDir():
		return 'd'
	case m&fs.ModeSymlink != 0:
		return 'l'
	case m&fs.ModeNamedPipe != 0:
		return 'p'
	case m&fs.ModeSocket != 0:
		return 's'
	case m&fs.ModeCharDevice != 0:
		return 'c'
	}
	return 'b'
}

// modeBits is the mode as the C library has it, with the bits of the kind.
func (in *info) modeBits() uint32 {
	bits := uint32(in.perm())
	switch kind(in.Mode()) {
	case '-':
		bits |= 0o100000
	case 'd':
		bits |= 0o040000
	case 'l':
		bits |= 0o120000
	case 'p':
		bits |= 0o010000
	case 's':
		bits |= 0o140000
	case 'c':
		bits |= 0o020000
	default:
		bits |= 0o060000
	}
	return bits
}

// modeString is the mode as ls -l shows it.
func (in *info) modeString() string {
	return string(kind(in.Mode())) + in.perm().String()[1:]
}

// kindName is the kind as stat's %F has it.
func (in *info) kindName() string {
	switch kind(in.Mode()) {
	case '-':
		if in.Size() == 0 {
			return "regular empty file"
		}
		return "regular file"
	case 'd':
		return "directory"
	case 'l':
		return "symbolic link"
	case 'p':
		return "fifo"
	case 's':
		return "socket"
	case 'c':
		return "character special file"
	}
	return "block special file"
}
