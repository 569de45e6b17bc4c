package wazero

import (
	"context"
	"math"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// withAllocator makes linear memory a mapping of its own.
//
// On Go's heap a growing memory is copied, and both copies count against RLIMIT_DATA, the kernel's memory wall: a guest
// within its limit could end the worker. A mapping grows in place.
func withAllocator(ctx context.Context) context.Context {
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(allocate))
}

// mapping reserves max bytes of address space, of which len(b) can be used.
type mapping struct {
	all []byte
	b   []byte
}

// allocate answers nil memory if the address space cannot be had; the instance is then refused.
func allocate(_, max uint64) experimental.LinearMemory {
	if max == 0 || max > math.MaxInt {
		return &mapping{}
	}
	all, err := unix.Mmap(-1, 0, int(max), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return &mapping{}
	}
	return &mapping{all: all, b: all[:0]}
}

// Reallocate implements [experimental.LinearMemory]. New bytes are zero; nil says that the kernel refused.
func (m *mapping) Reallocate(size uint64) []byte {
	if size > uint64(len(m.all)) {
		return nil
	}
	if n := uint64(len(m.b)); size > n {
		if err := unix.Mprotect(m.all[n:size], unix.PROT_READ|unix.PROT_WRITE); err != nil {
			return nil
		}
	}
	m.b = m.all[:size:size]
	return m.b
}

// Free implements [experimental.LinearMemory].
func (m *mapping) Free() {
	if m.all != nil {
		_ = unix.Munmap(m.all) // the same slice that Mmap returned: it cannot fail
	}
	m.all, m.b = nil, nil
}
