package shell

import (
	"context"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	pipeSize = 64 << 10
	pipeBuf  = 4 << 10 // a write of at most this many bytes is not torn
)

// pipe joins two commands of the shell. It is a ring of bytes in memory: WASI has no pipes, and a native one would need
// a thread for each that waits.
type pipe struct {
	mu     sync.Mutex
	ring   []byte
	start  int
	n      int
	closed [2]bool       // the end for reading, the end for writing
	wake   chan struct{} // made by who waits, closed by the next change
}

func newPipe() (r, w *desc) {
	p := &pipe{}
	r = newDesc(&desc{pipe: p, canRead: true, onClose: func() { p.close(0) }})
	w = newDesc(&desc{pipe: p, canWrite: true, onClose: func() { p.close(1) }})
	return r, w
}

func (p *pipe) close(end int) {
	p.mu.Lock()
	p.closed[end] = true
	p.changed()
	p.mu.Unlock()
}

func (p *pipe) changed() {
	if p.wake != nil {
		close(p.wake)
		p.wake = nil
	}
}

// wait lets go of the lock until something changed, ctx ended or the time came.
func (p *pipe) wait(ctx context.Context, deadline time.Time) error {
	if p.wake == nil {
		p.wake = make(chan struct{})
	}
	wake := p.wake
	p.mu.Unlock()
	defer p.mu.Lock()
	var late <-chan time.Time
	if !deadline.IsZero() {
		t := time.NewTimer(time.Until(deadline))
		defer t.Stop()
		late = t.C
	}
	select {
	case <-wake:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-late:
		return os.ErrDeadlineExceeded
	}
}

func (p *pipe) read(ctx context.Context, deadline time.Time, b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(b) == 0 {
		return 0, nil
	}
	for p.n == 0 {
		if p.closed[1] {
			return 0, io.EOF
		}
		if err := p.wait(ctx, deadline); err != nil {
			return 0, err
		}
	}
	total := 0
	for len(b) > 0 && p.n > 0 {
		n := copy(b, p.ring[p.start:min(p.start+p.n, len(p.ring))])
		p.start = (p.start + n) % len(p.ring)
		p.n -= n
		total += n
		b = b[n:]
	}
	p.changed()
	return total, nil
}

func (p *pipe) write(ctx context.Context, b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	whole := len(b) <= pipeBuf
	total := 0
	for {
		if p.closed[0] {
			return total, syscall.EPIPE
		}
		room := max(0, pipeSize-p.n) // what was put back may be more than fits
		if len(b) == 0 {
			return total, nil
		}
		if room == 0 || whole && room < len(b) {
			if err := p.wait(ctx, time.Time{}); err != nil {
				return total, err
			}
			continue
		}
		n := min(room, len(b))
		p.grow(p.n + n)
		end := (p.start + p.n) % len(p.ring)
		k := copy(p.ring[end:], b[:n])
		copy(p.ring, b[k:n])
		p.n += n
		total += n
		b = b[n:]
		p.changed()
	}
}

// grow makes room for n bytes in all. Most pipes carry a line or two.
func (p *pipe) grow(n int) {
	if n <= len(p.ring) {
		return
	}
	size := max(512, len(p.ring))
	for size < n {
		size *= 2
	}
	ring := make([]byte, size)
	k := copy(ring, p.ring[p.start:min(p.start+p.n, len(p.ring))])
	if k < p.n {
		copy(ring[k:], p.ring[:p.n-k])
	}
	p.ring, p.start = ring, 0
}

// unread puts b back in front.
func (p *pipe) unread(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if size := len(p.ring); p.n+len(b) <= size {
		p.start = (p.start - len(b) + size) % size
		k := copy(p.ring[p.start:], b)
		copy(p.ring, b[k:])
		p.n += len(b)
		p.changed()
		return
	}
	// What was read made the room, unless a writer has filled it since: then the ring grows beyond a pipe's size.
	p.grow(p.n + len(b))
	p.start = (p.start - len(b) + len(p.ring)) % len(p.ring)
	k := copy(p.ring[p.start:], b)
	copy(p.ring, b[k:])
	p.n += len(b)
	p.changed()
}
