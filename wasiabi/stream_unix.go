//go:build linux || darwin

package wasiabi

import (
	"context"
	"math"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/exthost/exthost/wasiabi/internal/rootfs"
)

// pipeAtom is what may be written to a pipe that is ready without waiting, and is written as one piece (PIPE_BUF).
const pipeAtom = 4096

// stream is a duplicate of one standard stream.
type stream struct {
	fd      int
	regular bool
	burst   int // bytes of one write that cannot block once the stream is ready
}

// openStream duplicates f, whose mode stays as it is: it may be shared with another process.
func openStream(f *os.File) (*stream, error) {
	if f == nil {
		return nil, nil
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	var dupErr error
	if err := conn.Control(func(u uintptr) { fd, dupErr = unix.FcntlInt(u, unix.F_DUPFD_CLOEXEC, 3) }); err != nil {
		return nil, err
	}
	if dupErr != nil {
		return nil, os.NewSyscallError("fcntl", dupErr)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("fstat", err)
	}
	s := &stream{fd: fd, burst: pipeAtom, regular: uint32(st.Mode)&unix.S_IFMT == unix.S_IFREG}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err == nil && flags&unix.O_NONBLOCK != 0 || s.regular {
		s.burst = 64 << 10
	}
	return s, nil
}

func (s *stream) close() {
	if s != nil {
		_ = unix.Close(s.fd)
	}
}

// waker is a pipe that becomes readable when the run ends.
type waker struct {
	mu   sync.Mutex
	r, w int
	stop func() bool
}

func (k *waker) open(ctx context.Context) error {
	var fds [2]int
	if err := pipe(&fds); err != nil {
		return os.NewSyscallError("pipe", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.r, k.w = fds[0], fds[1]
	k.stop = context.AfterFunc(ctx, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.w != 0 {
			_, _ = unix.Write(k.w, []byte{0})
		}
	})
	return nil
}

func (k *waker) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stop == nil {
		return
	}
	k.stop()
	_ = unix.Close(k.r)
	_ = unix.Close(k.w)
	k.r, k.w, k.stop = 0, 0, nil
}

// waitStreams waits until a stream is ready, at most for d.
func (p *Process) waitStreams(waits []*wait, d time.Duration) error {
	fds := make([]unix.PollFd, len(waits)+1)
	for i, w := range waits {
		fds[i] = unix.PollFd{Fd: int32(w.s.fd), Events: unix.POLLIN}
		if w.write {
			fds[i].Events = unix.POLLOUT
		}
	}
	fds[len(waits)] = unix.PollFd{Fd: int32(p.wake.r), Events: unix.POLLIN}
	until := time.Now().Add(d)
	for {
		if !running(p.ctx) {
			return context.Cause(p.ctx)
		}
		// Rounded up, so that a timer is due when the wait is over.
		ms := (max(time.Until(until), 0) + time.Millisecond - 1) / time.Millisecond
		if d <= 0 {
			ms = 0
		}
		n, err := unix.Poll(fds, int(min(ms, math.MaxInt32)))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return os.NewSyscallError("poll", err)
		}
		if !running(p.ctx) {
			return context.Cause(p.ctx)
		}
		for i, w := range waits {
			if r := fds[i].Revents; r != 0 {
				w.ready = true
				w.hangup = r&(unix.POLLHUP|unix.POLLERR) != 0
			}
		}
		if n > 0 || !time.Now().Before(until) {
			return nil
		}
	}
}

// ready waits until the stream is; without waiting it answers EAGAIN.
func (p *Process) ready(s *stream, write, nonblock bool) (errno, error) {
	if s.regular {
		return rootfs.Success, nil
	}
	w := &wait{s: s, write: write}
	d := time.Duration(math.MaxInt64 / 2)
	if nonblock {
		d = 0
	}
	for {
		if err := p.waitStreams([]*wait{w}, d); err != nil {
			return 0, err
		}
		if w.ready {
			return rootfs.Success, nil
		}
		if nonblock {
			return rootfs.EAGAIN, nil
		}
	}
}

func (p *Process) readStream(d *desc, b []byte) (int, errno, error) {
	s, nonblock := d.stream, d.flags&flagNonblock != 0
	if s == nil || len(b) == 0 {
		return 0, rootfs.Success, nil
	}
	for {
		if e, err := p.ready(s, false, nonblock); err != nil || e != rootfs.Success {
			return 0, e, err
		}
		n, err := unix.Read(s.fd, b)
		switch err {
		case nil:
			return n, rootfs.Success, nil
		case unix.EINTR:
		case unix.EAGAIN: // another reader was quicker
			if nonblock {
				return 0, rootfs.EAGAIN, nil
			}
		default:
			return 0, rootfs.FromSystem(err), nil
		}
	}
}

func (p *Process) writeStream(d *desc, b []byte) (int, errno, error) {
	s, nonblock := d.stream, d.flags&flagNonblock != 0
	if s == nil {
		return len(b), rootfs.Success, nil
	}
	done := 0
	for done < len(b) {
		e, err := p.ready(s, true, nonblock)
		if err != nil {
			return done, 0, err
		}
		if e != rootfs.Success {
			if done > 0 {
				e = rootfs.Success
			}
			return done, e, nil
		}
		n, err := unix.Write(s.fd, b[done:min(len(b), done+s.burst)])
		switch err {
		case nil:
			done += n
		case unix.EINTR:
		case unix.EAGAIN:
			if nonblock && done > 0 {
				return done, rootfs.Success, nil
			}
			if nonblock {
				return 0, rootfs.EAGAIN, nil
			}
		default:
			if done > 0 {
				return done, rootfs.Success, nil
			}
			return 0, rootfs.FromSystem(err), nil
		}
	}
	return done, rootfs.Success, nil
}
