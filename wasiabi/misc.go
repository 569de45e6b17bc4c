package wasiabi

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/exthost/exthost/wasiabi/internal/rootfs"
)

func argsGet(p *Process, m memory, a []uint64) errno      { return m.putStrings(a[0], a[1], p.args) }
func argsSizesGet(p *Process, m memory, a []uint64) errno { return m.putSizes(a[0], a[1], p.args) }
func environGet(p *Process, m memory, a []uint64) errno   { return m.putStrings(a[0], a[1], p.env) }
func environSizesGet(p *Process, m memory, a []uint64) errno {
	return m.putSizes(a[0], a[1], p.env)
}

func sizes(list []string) (total uint64) {
	for _, s := range list {
		total += uint64(len(s)) + 1
	}
	return total
}

func (m memory) putSizes(count, size uint64, list []string) errno {
	if _, e := m.slice(size, 4); e != rootfs.Success {
		return e
	}
	if e := m.put32(count, uint32(len(list))); e != rootfs.Success {
		return e
	}
	return m.put32(size, uint32(sizes(list)))
}

// putStrings writes the addresses to table and the strings, each with a NUL, to buf:
//
//	table: | u32 buf | u32 buf+len(list[0])+1 | ...
//	buf:   | list[0] NUL | list[1] NUL | ...
func (m memory) putStrings(table, buf uint64, list []string) errno {
	t, e := m.slice(table, 4*uint64(len(list)))
	if e != rootfs.Success {
		return e
	}
	b, e := m.slice(buf, sizes(list))
	if e != rootfs.Success {
		return e
	}
	at := uint32(buf)
	for i, s := range list {
		le.PutUint32(t[4*i:], at)
		n := copy(b, s)
		b[n] = 0
		b = b[n+1:]
		at += uint32(n) + 1
	}
	return rootfs.Success
}

// Clocks of WASI preview 1.
const (
	clockRealtime = iota
	clockMonotonic
	clockProcess
	clockThread
)

func (p *Process) now() int64 { return time.Now().UnixNano() }

// clock reads a clock in nanoseconds. The monotonic one begins a second after zero: some guests take 0 for "none".
func (p *Process) clock(id uint64) (int64, errno) {
	switch id {
	case clockRealtime:
		return p.now(), rootfs.Success
	case clockMonotonic:
		return int64(time.Since(p.start) + time.Second), rootfs.Success
	case clockProcess, clockThread:
		return max(processorTime()-p.cpu, 0), rootfs.Success
	}
	return 0, rootfs.EINVAL
}

func clockResGet(p *Process, m memory, a []uint64) errno {
	if _, e := p.clock(a[0]); e != rootfs.Success {
		return e
	}
	return m.put64(a[1], 1)
}

func clockTimeGet(p *Process, m memory, a []uint64) errno {
	t, e := p.clock(a[0])
	if e != rootfs.Success {
		return e
	}
	return m.put64(a[2], uint64(t))
}

func random(b []byte) {
	// The reader of crypto/rand never fails: it ends the program.
	_, _ = rand.Read(b)
}

const (
	maxRandom   = 16 << 20 // bytes of one random_get
	randomChunk = 64 << 10
)

func randomGet(p *Process, m memory, a []uint64) (errno, error) {
	b, e := m.slice(a[0], a[1])
	if e != rootfs.Success {
		return e, nil
	}
	if len(b) > maxRandom {
		return rootfs.EINVAL, nil
	}
	for len(b) > 0 {
		if !running(p.ctx) {
			return 0, context.Cause(p.ctx)
		}
		n := min(len(b), randomChunk)
		random(b[:n])
		b = b[n:]
	}
	return rootfs.Success, nil
}

func schedYield(*Process, memory, []uint64) errno { return rootfs.Success }

func procExit(_ *Process, _ memory, a []uint64) (errno, error) {
	return 0, &Exit{Code: uint32(a[0])}
}

// procRaise ends the guest for the signals whose default action is to end it, ignores those that are ignored by
// default, and has no job control.
func procRaise(_ *Process, _ memory, a []uint64) (errno, error) {
	const (
		chld, cont, stop, tstp, ttin, ttou, urg, winch, last = 16, 17, 18, 19, 20, 21, 22, 27, 30
	)
	switch sig := a[0]; {
	case sig > last:
		return rootfs.EINVAL, nil
	case sig == 0, sig == chld, sig == cont, sig == urg, sig == winch:
		return rootfs.Success, nil
	case sig >= stop && sig <= ttou:
		return rootfs.ENOTSUP, nil
	default:
		return 0, &Exit{Code: 128 + uint32(sig)}
	}
}

// sock answers for all of sock_accept, sock_recv, sock_send and sock_shutdown: there is no way to get a socket.
func sock(p *Process, _ memory, a []uint64) errno {
	if _, e := p.get(a[0], 0); e != rootfs.Success {
		return e
	}
	return rootfs.ENOTSUP
}
