// Package cmd is what the commands of the shell guest are made of: how they are called, their streams, their options.
//
// A command is a [Func]. It runs on a goroutine of the shell, not in a process of its own: it must not change the
// working directory, the environment or anything else of the process, and finds files only through its [Call].
// A command that the shell ends (SIGPIPE, kill, timeout) is unwound by a panic with a [Signal] out of its next read,
// write or [Call.Check]; it must let it pass, and must not read or write its streams from other goroutines.
package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"syscall"
)

// Func runs a command and returns its exit code, 0 to 255.
type Func func(ctx context.Context, c *Call) int

// Call is one call of a command.
type Call struct {
	Name    string   // what it was called by, without folder
	Args    []string // without the name
	Stdin   io.Reader
	Stdout  io.Writer // unbuffered: use [Call.Buffered]
	Stderr  io.Writer
	Dir     string   // absolute working directory
	Environ []string // NAME=VALUE, the exported variables
	Umask   fs.FileMode
	Shell   Shell
}

// Shell is what a command may ask of the shell that runs it.
type Shell interface {
	// OpenFile opens an absolute path as os.OpenFile does. /dev/stdin, /dev/stdout, /dev/stderr and /dev/fd/N are the
	// caller's own descriptors. What is opened need not be an *os.File.
	OpenFile(c *Call, name string, flag int, perm fs.FileMode) (File, error)
	// Run runs another command to its end, as a child with c's streams, folder and environment where child has none.
	// Argv[0] is looked up as the shell does: 127 when there is no such command, 126 when it cannot be run.
	Run(ctx context.Context, c *Call, child Child) int
	// Find tells what name would run: the path that `which` prints and true, or false.
	Find(c *Call, name string) (string, bool)
}

// Child is a command that another command starts (xargs, find -exec, env, timeout).
type Child struct {
	Argv    []string
	Stdin   io.Reader // nil: the caller's
	Stdout  io.Writer
	Stderr  io.Writer
	Dir     string
	Environ []string // nil: the caller's
}

// File is an open file or one of the caller's descriptors.
type File interface {
	io.ReadWriteCloser
	Stat() (fs.FileInfo, error)
}

// Signal is why a command was ended: it is the panic that unwinds it, and the cause of a context that ends it.
type Signal int

// Signals by their numbers on Linux.
const (
	SIGHUP  Signal = 1
	SIGINT  Signal = 2
	SIGQUIT Signal = 3
	SIGKILL Signal = 9
	SIGPIPE Signal = 13
	SIGALRM Signal = 14
	SIGTERM Signal = 15
)

func (s Signal) Error() string { return fmt.Sprintf("ended by signal %d", int(s)) }

// Code is the exit code of a command that the signal ended.
func (s Signal) Code() int { return 128 + int(s) }

// Run calls f and turns the panic of a [Signal] into its exit code. Other panics are of f's own making and pass.
func Run(ctx context.Context, f Func, c *Call) (code int) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case Signal:
			code = p.Code()
		default:
			panic(p)
		}
	}()
	Check(ctx)
	return f(ctx, c)
}

// Check lets other goroutines run and panics with a [Signal] when ctx has ended. Commands call it in loops that may run
// for long without reading or writing: the guest has one thread, and nothing takes it away from a goroutine.
func Check(ctx context.Context) {
	runtime.Gosched()
	if ctx.Err() == nil {
		return
	}
	var s Signal
	if !errors.As(context.Cause(ctx), &s) {
		s = SIGTERM
	}
	panic(s)
}

// Reader makes reads panic once ctx has ended.
func Reader(ctx context.Context, r io.Reader) io.Reader { return &reader{ctx, r} }

type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	Check(r.ctx)
	n, err := r.r.Read(p)
	if err != nil && err != io.EOF {
		Check(r.ctx)
	}
	return n, err
}

// Stat tells what r reads from, where r knows.
func (r *reader) Stat() (fs.FileInfo, error) { return stat(r.r) }

// Seek moves within what r reads from, where it can be moved in: head leaves the rest of a file to the next command.
func (r *reader) Seek(offset int64, whence int) (int64, error) {
	if s, ok := r.r.(io.Seeker); ok {
		return s.Seek(offset, whence)
	}
	return 0, syscall.ESPIPE
}

func stat(of any) (fs.FileInfo, error) {
	if s, ok := of.(interface{ Stat() (fs.FileInfo, error) }); ok {
		return s.Stat()
	}
	return nil, syscall.ESPIPE
}

// Writer makes writes panic once ctx has ended, and with [SIGPIPE] when nobody reads any more.
func Writer(ctx context.Context, w io.Writer) io.Writer { return &writer{ctx, w} }

type writer struct {
	ctx context.Context
	w   io.Writer
}

func (w *writer) Write(p []byte) (int, error) {
	Check(w.ctx)
	n, err := w.w.Write(p)
	if errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE) {
		panic(SIGPIPE)
	}
	if err != nil {
		Check(w.ctx)
	}
	return n, err
}

// Stat tells what w writes to, where w knows.
func (w *writer) Stat() (fs.FileInfo, error) { return stat(w.w) }

// Path makes name absolute, without touching links: "" stays "".
func (c *Call) Path(name string) string {
	if name == "" || path.IsAbs(name) {
		return name
	}
	// Not path.Join: a slash at the end and ".." behind a link mean something.
	return strings.TrimSuffix(c.Dir, "/") + "/" + name
}

// Open opens a file for reading; "-" is standard input, whose Close does nothing.
func (c *Call) Open(name string) (File, error) {
	if name == "-" {
		return input{c.Stdin}, nil
	}
	return c.OpenFile(name, os.O_RDONLY, 0)
}

// OpenFile opens a file by its path; "-" is no special name.
func (c *Call) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	if name == "" {
		return nil, syscall.ENOENT
	}
	return c.Shell.OpenFile(c, c.Path(name), flag, perm)
}

type input struct{ io.Reader }

func (input) Write([]byte) (int, error)    { return 0, syscall.EBADF }
func (input) Close() error                 { return nil }
func (i input) Stat() (fs.FileInfo, error) { return stat(i.Reader) }

func (i input) Seek(offset int64, whence int) (int64, error) {
	if s, ok := i.Reader.(io.Seeker); ok {
		return s.Seek(offset, whence)
	}
	return 0, syscall.ESPIPE
}

// Getenv returns the value of an exported variable, "" when there is none.
func (c *Call) Getenv(name string) string {
	for i := len(c.Environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(c.Environ[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// Buffered returns a buffered standard output; the command flushes it before it returns, and before it runs a child.
func (c *Call) Buffered() *bufio.Writer { return bufio.NewWriterSize(c.Stdout, 32<<10) }

// Written makes a command fail with a code when something of its standard output could not be written and it did not say
// so itself: a full disk is no success. It knows from outputs that have WriteFailure, as those of the shell do.
func Written(f Func, failed int) Func {
	return func(ctx context.Context, c *Call) int {
		code := f(ctx, c)
		if out, ok := c.Stdout.(interface{ WriteFailure() error }); ok && code == 0 && out.WriteFailure() != nil {
			c.Errorf("write error: %s", Reason(out.WriteFailure()))
			return failed
		}
		return code
	}
}

// Errorf writes "NAME: TEXT" and a line end to standard error. Causes are written as the C library words them: see [Reason].
func (c *Call) Errorf(format string, args ...any) {
	fmt.Fprintf(c.Stderr, "%s: %s\n", c.Name, c.Localized(fmt.Sprintf(format, args...)))
}

// Fail is Errorf for a file, "NAME: FILE: REASON", and returns 1.
func (c *Call) Fail(name string, err error) int {
	c.Errorf("%s: %s", name, Reason(err))
	return 1
}

// Reason words the cause of err as the C library does ("No such file or directory"), without operation and path.
func Reason(err error) string {
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		if text, ok := reasons[errno]; ok {
			return text
		}
		return errno.Error()
	case errors.Is(err, fs.ErrNotExist):
		return reasons[syscall.ENOENT]
	case errors.Is(err, fs.ErrExist):
		return reasons[syscall.EEXIST]
	case errors.Is(err, fs.ErrPermission):
		return reasons[syscall.EACCES]
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

var reasons = map[syscall.Errno]string{
	syscall.EACCES:       "Permission denied",
	syscall.EBADF:        "Bad file descriptor",
	syscall.EBUSY:        "Device or resource busy",
	syscall.EDQUOT:       "Disk quota exceeded",
	syscall.EEXIST:       "File exists",
	syscall.EFBIG:        "File too large",
	syscall.EINVAL:       "Invalid argument",
	syscall.EIO:          "Input/output error",
	syscall.EISDIR:       "Is a directory",
	syscall.ELOOP:        "Too many levels of symbolic links",
	syscall.EMFILE:       "Too many open files",
	syscall.EMLINK:       "Too many links",
	syscall.ENAMETOOLONG: "File name too long",
	syscall.ENOENT:       "No such file or directory",
	syscall.ENOSPC:       "No space left on device",
	syscall.ENOSYS:       "Function not implemented",
	syscall.ENOTDIR:      "Not a directory",
	syscall.ENOTEMPTY:    "Directory not empty",
	syscall.EPERM:        "Operation not permitted",
	syscall.EPIPE:        "Broken pipe",
	syscall.EROFS:        "Read-only file system",
	syscall.ESPIPE:       "Illegal seek",
	syscall.EXDEV:        "Invalid cross-device link",
}
