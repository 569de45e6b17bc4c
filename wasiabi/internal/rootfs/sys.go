package rootfs

// Kind is the kind of a file as the guest may see it.
type Kind uint8

const (
	KindOther Kind = iota // FIFO, and what has no name in WASI
	KindDir
	KindFile
	KindLink
	KindBlock
	KindChar
	KindSocket

	kindUnknown // a listing that did not say: ask for the file itself
)

// fileID is a file's identity on this machine.
type fileID struct{ dev, ino uint64 }

// info is what the operating system says of a file. Times are nanoseconds since 1970.
type info struct {
	id               fileID
	mount            uint64 // id of the mount that it lies on; 0 where the system has none: then dev counts
	kind             Kind
	size             int64
	blocks           int64 // bytes on disk; less than size where there are holes
	nlink            uint64
	atim, mtim, ctim int64
}

// sameMount tells whether two files lie on one host mount.
func (a info) sameMount(b info) bool {
	if a.mount != 0 && b.mount != 0 {
		return a.mount == b.mount
	}
	return a.id.dev == b.id.dev
}

// listed is one entry of a host folder.
type listed struct {
	name string
	kind Kind
	ino  uint64
}

// setTimes says what to do with a file's times; a nil pointer leaves one as it is.
type setTimes struct{ atim, mtim *int64 }

// FromSystem gives the guest's number for an error of the operating system.
func FromSystem(err error) Errno { return fromSys(err) }
