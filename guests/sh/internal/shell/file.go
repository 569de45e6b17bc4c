package shell

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// desc is an open file description: descriptors of any number of shells refer to it, and the last that is closed closes it.
type desc struct {
	refs     atomic.Int32
	canRead  bool
	canWrite bool

	// One of these is behind it; none: it reads what is in ahead, and then its end, and writes to nothing (/dev/null).
	pipe    *pipe
	file    *os.File
	reader  io.Reader // a stream that a command was given
	writer  io.Writer
	capture *bytes.Buffer // the output of a command substitution

	mu      sync.Mutex
	ahead   []byte // read from file; what is before at has been taken
	at      int
	regular bool // file can be moved in
	onClose func()
	atEnd   []func() // what else ends with the last descriptor: locks
}

// newDesc counts the first descriptor of d.
func newDesc(d *desc) *desc {
	d.refs.Store(1)
	return d
}

func nullDesc() *desc { return newDesc(&desc{canRead: true, canWrite: true}) }

// textDesc reads text: a here-document.
func textDesc(text string) *desc { return newDesc(&desc{canRead: true, ahead: []byte(text)}) }

func fileDesc(f *os.File, flag int) *desc {
	d := &desc{file: f, onClose: func() { f.Close() }}
	switch flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR) {
	case os.O_RDONLY:
		d.canRead = true
	case os.O_WRONLY:
		d.canWrite = true
	default:
		d.canRead, d.canWrite = true, true
	}
	if info, err := f.Stat(); err == nil {
		d.regular = info.Mode().IsRegular()
	}
	return newDesc(d)
}

func (d *desc) dup() *desc {
	d.refs.Add(1)
	return d
}

func (d *desc) close() {
	if d.refs.Add(-1) != 0 {
		return
	}
	if d.onClose != nil {
		d.onClose()
	}
	d.mu.Lock()
	ends := d.atEnd
	d.atEnd = nil
	d.mu.Unlock()
	for _, end := range ends {
		end()
	}
}

// read reads as much as there is, and at least a byte.
func (d *desc) read(ctx context.Context, deadline time.Time, p []byte) (int, error) {
	if !d.canRead {
		return 0, syscall.EBADF
	}
	if d.pipe != nil {
		return d.pipe.read(ctx, deadline, p)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	if d.at < len(d.ahead) {
		n := copy(p, d.ahead[d.at:])
		d.at += n
		return n, nil
	}
	switch {
	case d.file != nil:
		// `read` takes a byte at a time, so as to leave the rest to others. They all read through this, so it can read ahead;
		// but not where the place in the file is also that of a writer.
		if len(p) < 512 && !d.canWrite {
			if cap(d.ahead) < 4096 {
				d.ahead = make([]byte, 0, 4096)
			}
			n, err := d.readFile(ctx, deadline, d.ahead[:4096])
			if n > 0 {
				d.ahead, d.at = d.ahead[:n], copy(p, d.ahead[:n])
				return d.at, nil
			}
			return 0, err
		}
		return d.readFile(ctx, deadline, p)
	case d.reader != nil:
		return d.reader.Read(p)
	}
	return 0, io.EOF
}

func (d *desc) readFile(ctx context.Context, deadline time.Time, p []byte) (int, error) {
	if d.regular {
		return d.file.Read(p)
	}
	if err := d.file.SetReadDeadline(deadline); err == nil && ctx.Done() != nil {
		interrupted := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			d.file.SetReadDeadline(time.Unix(1, 0))
			close(interrupted)
		})
		defer func() {
			if !stop() {
				<-interrupted
			}
			d.file.SetReadDeadline(time.Time{})
		}()
	}
	return d.file.Read(p)
}

func (d *desc) write(ctx context.Context, p []byte) (int, error) {
	switch {
	case !d.canWrite:
		return 0, syscall.EBADF
	case d.pipe != nil:
		return d.pipe.write(ctx, p)
	case d.file != nil:
		return d.file.Write(p)
	case d.writer != nil:
		return d.writer.Write(p)
	case d.capture != nil:
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.capture.Write(p)
	}
	return len(p), nil
}

func (d *desc) unread(p []byte) {
	if d.pipe != nil {
		d.pipe.unread(p)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.regular && d.canWrite {
		// Writers stand where readers do.
		d.file.Seek(-int64(len(p)), io.SeekCurrent)
		return
	}
	if d.at < len(p) {
		rest := d.ahead[d.at:]
		buf := make([]byte, max(4096, len(p)+len(rest)))
		d.at = len(buf) - len(rest)
		copy(buf[d.at:], rest)
		d.ahead = buf
	}
	d.at -= len(p)
	copy(d.ahead[d.at:], p)
}

func (d *desc) seek(offset int64, whence int) (int64, error) {
	if d.file == nil || !d.regular {
		if s, ok := d.reader.(io.Seeker); ok && d.reader != nil {
			return s.Seek(offset, whence)
		}
		return 0, syscall.ESPIPE
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if whence == io.SeekCurrent {
		offset -= int64(len(d.ahead) - d.at)
	}
	d.ahead, d.at = d.ahead[:0], 0
	return d.file.Seek(offset, whence)
}

func (d *desc) stat() (fs.FileInfo, error) {
	switch {
	case d.file != nil:
		fi, err := d.file.Stat()
		if err == nil && fi.Mode().IsRegular() && !d.regular {
			return info{"pipe", fs.ModeNamedPipe | 0o600}, nil
		}
		return fi, err
	case d.pipe != nil, d.capture != nil:
		return info{"pipe", fs.ModeNamedPipe | 0o600}, nil
	case d.reader != nil:
		return statOf(d.reader)
	case d.writer != nil:
		return statOf(d.writer)
	case d.canWrite:
		return info{"null", fs.ModeDevice | fs.ModeCharDevice | 0o666}, nil
	}
	return info{"here-document", fs.ModeNamedPipe | 0o600}, nil
}

func statOf(of any) (fs.FileInfo, error) {
	if s, ok := of.(interface{ Stat() (fs.FileInfo, error) }); ok {
		return s.Stat()
	}
	return info{"pipe", fs.ModeNamedPipe | 0o600}, nil
}

// info describes what is no file of the file system.
type info struct {
	name string
	mode fs.FileMode
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return 0 }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return false }
func (i info) Sys() any           { return nil }

// stream is a descriptor as a command sees it: its reads and writes end when ctx ends, by the panic of a [cmd.Signal].
type stream struct {
	ctx      context.Context
	d        *desc // nil: the descriptor is closed
	deadline time.Time
	keep     bool  // SIGPIPE is ignored: a write nobody reads is an error
	owned    bool  // Close gives up a reference of d
	failed   error // of the first write that failed
}

func (s *stream) Read(p []byte) (int, error) {
	s.check()
	if s.d == nil {
		return 0, syscall.EBADF
	}
	n, err := s.d.read(s.ctx, s.deadline, p)
	if err != nil && err != io.EOF {
		s.check()
	}
	return n, err
}

func (s *stream) Write(p []byte) (int, error) {
	s.check()
	if s.d == nil {
		return 0, syscall.EBADF
	}
	n, err := s.d.write(s.ctx, p)
	if err != nil {
		if !s.keep && (errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)) {
			panic(cmd.SIGPIPE)
		}
		s.check()
		if s.failed == nil {
			s.failed = err
		}
	}
	return n, err
}

// WriteFailure is why a write failed, nil when none did.
func (s *stream) WriteFailure() error { return s.failed }

func (s *stream) check() {
	if s.ctx.Err() != nil {
		cmd.Check(s.ctx)
	}
}

func (s *stream) Stat() (fs.FileInfo, error) {
	if s.d == nil {
		return nil, syscall.EBADF
	}
	return s.d.stat()
}

func (s *stream) Seek(offset int64, whence int) (int64, error) {
	if s.d == nil {
		return 0, syscall.EBADF
	}
	return s.d.seek(offset, whence)
}

// Unread gives back what was read too far.
func (s *stream) Unread(p []byte) {
	if s.d != nil && len(p) > 0 {
		s.d.unread(p)
	}
}

// SetReadDeadline sets when a read that waits gives up; it returns os.ErrDeadlineExceeded then.
func (s *stream) SetReadDeadline(t time.Time) error {
	s.deadline = t
	return nil
}

func (s *stream) Close() error {
	if s.owned && s.d != nil {
		s.d.close()
		s.d = nil
	}
	return nil
}

// descOf makes a description of a stream that a command was given.
func descOf(r io.Reader, w io.Writer) *desc {
	var of any = r
	if r == nil {
		of = w
	}
	switch f := of.(type) {
	case *stream:
		if f.d == nil {
			return nil
		}
		return f.d.dup()
	case *os.File:
		d := fileDesc(f, os.O_RDWR)
		d.canRead, d.canWrite = r != nil, w != nil
		d.onClose = nil
		return d
	}
	return newDesc(&desc{reader: r, writer: w, canRead: r != nil, canWrite: w != nil})
}

// Description is what tells the open file from others: descriptors that were made from each other share it.
func (s *stream) Description() any { return s.d }

// AtEnd has f called when the last descriptor of the open file is closed.
func (s *stream) AtEnd(f func()) {
	s.d.mu.Lock()
	s.d.atEnd = append(s.d.atEnd, f)
	s.d.mu.Unlock()
}
