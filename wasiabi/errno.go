package wasiabi

import "github.com/exthost/exthost/wasiabi/internal/rootfs"

type errno = rootfs.Errno

// memory is the guest's linear memory during one call. Each access is checked: an address is 32 bits, a sum of two
// is not.
type memory []byte

func (m memory) slice(ptr, n uint64) ([]byte, errno) {
	if end := ptr + n; ptr > 1<<32 || n > 1<<32 || end > uint64(len(m)) {
		return nil, rootfs.EFAULT
	}
	return m[ptr : ptr+n : ptr+n], rootfs.Success
}

func (m memory) put32(ptr uint64, v uint32) errno {
	b, e := m.slice(ptr, 4)
	if e == rootfs.Success {
		le.PutUint32(b, v)
	}
	return e
}

func (m memory) put64(ptr uint64, v uint64) errno {
	b, e := m.slice(ptr, 8)
	if e == rootfs.Success {
		le.PutUint64(b, v)
	}
	return e
}

// path copies a path out: the guest's memory may be changed by nobody during a call, but a string must not change
// after it.
func (m memory) path(ptr, n uint64) (string, errno) {
	b, e := m.slice(ptr, n)
	if e != rootfs.Success {
		return "", e
	}
	if n > rootfs.MaxPath {
		return "", rootfs.ENAMETOOLONG
	}
	return string(b), rootfs.Success
}
