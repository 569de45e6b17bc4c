//go:build !linux && !darwin

package wasiabi

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/exthost/exthost/wasiabi/internal/rootfs"
)

// pipeAtom is what is written to a stream as one piece.
const pipeAtom = 4096

// stream is one standard stream. A goroutine reads ahead, at most one buffer, because nothing else here can tell
// whether a read would wait; it ends when the caller closes the file.
type stream struct {
	file *os.File

	mu      sync.Mutex
	started bool
	buf     []byte
	err     error
	more    chan struct{} // asks the reader for the next buffer
	got     chan struct{} // closed when buf or err is there; made anew for each buffer
}

func openStream(f *os.File) (*stream, error) {
	if f == nil {
		return nil, nil
	}
	return &stream{file: f}, nil
}

func (s *stream) close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		close(s.more)
		s.started = false
	}
}

// waker is not needed: every wait is a select.
type waker struct{}

func (*waker) open(context.Context) error { return nil }
func (*waker) close()                     {}

// ahead starts reading if nothing is there and gives the channel that tells when something is.
func (s *stream) ahead() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		s.started = true
		s.more, s.got = make(chan struct{}, 1), make(chan struct{})
		go s.pump(s.more)
		s.more <- struct{}{}
	}
	return s.got
}

func (s *stream) pump(more <-chan struct{}) {
	for range more {
		b := make([]byte, 32<<10)
		n, err := s.file.Read(b)
		s.mu.Lock()
		s.buf, s.err = b[:n], err
		close(s.got)
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *stream) take(b []byte) (int, errno) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := copy(b, s.buf)
	s.buf = s.buf[n:]
	switch {
	case n > 0 && len(s.buf) == 0 && s.err == nil:
		s.got = make(chan struct{})
		s.more <- struct{}{}
	case n == 0 && s.err != nil && !errors.Is(s.err, io.EOF) && !errors.Is(s.err, io.ErrClosedPipe):
		return 0, rootfs.EIO
	}
	return n, rootfs.Success
}

func (p *Process) waitStreams(waits []*wait, d time.Duration) error {
	var timeout <-chan time.Time
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	timeout = t.C
	any := make(chan struct{}, 1)
	stop := make(chan struct{})
	defer close(stop)
	for _, w := range waits {
		if w.write {
			w.ready = true // a write is done in the background
			continue
		}
		got := w.s.ahead()
		select {
		case <-got:
			w.ready = true
			continue
		default:
		}
		go func() {
			select {
			case <-got:
				select {
				case any <- struct{}{}:
				default:
				}
			case <-stop:
			}
		}()
	}
	for _, w := range waits {
		if w.ready {
			return nil
		}
	}
	select {
	case <-any:
	case <-timeout:
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
	for _, w := range waits {
		select {
		case <-w.s.ahead():
			w.ready = true
		default:
		}
	}
	return nil
}

func (p *Process) readStream(d *desc, b []byte) (int, errno, error) {
	s := d.stream
	if s == nil || len(b) == 0 {
		return 0, rootfs.Success, nil
	}
	got := s.ahead()
	if d.flags&flagNonblock != 0 {
		select {
		case <-got:
		default:
			return 0, rootfs.EAGAIN, nil
		}
	}
	select {
	case <-got:
	case <-p.ctx.Done():
		return 0, 0, context.Cause(p.ctx)
	}
	n, e := s.take(b)
	return n, e, nil
}

func (p *Process) writeStream(d *desc, b []byte) (int, errno, error) {
	s := d.stream
	if s == nil {
		return len(b), rootfs.Success, nil
	}
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	own := append([]byte(nil), b...) // the guest's memory must not be read after the call
	go func() {
		n, err := s.file.Write(own)
		done <- result{n, err}
	}()
	select {
	case r := <-done:
		if r.err != nil && r.n == 0 {
			return 0, rootfs.FromSystem(r.err), nil
		}
		return r.n, rootfs.Success, nil
	case <-p.ctx.Done():
		return 0, 0, context.Cause(p.ctx)
	}
}

var began = time.Now()

// processorTime has no portable source: the time that went by stands in for it.
func processorTime() int64 { return int64(time.Since(began)) }
