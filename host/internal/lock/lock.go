// Package lock has advisory locks on folders and files, which end with the process that holds them.
package lock

import (
	"context"
	"errors"
	"os"
	"time"
)

// ErrHeld says that somebody else holds the lock.
var ErrHeld = errors.New("in use by another process")

// Lock is a held lock. It is released by Close or by the end of the process.
type Lock struct{ f *os.File }

// Close releases the lock.
func (l *Lock) Close() error { return l.f.Close() }

// Exclusive waits for an exclusive lock of path until ctx ends. Kernels have no wait that ends with a context, so it
// asks again and again, at most every 50 ms.
func Exclusive(ctx context.Context, path string) (*Lock, error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		l, err := TryExclusive(path)
		if !errors.Is(err, ErrHeld) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// Shared takes a shared lock of the folder or file path, or fails with ErrHeld.
func Shared(path string) (*Lock, error) { return try(path, false) }

// TryExclusive takes an exclusive lock of path, or fails with ErrHeld.
func TryExclusive(path string) (*Lock, error) { return try(path, true) }

func try(path string, exclusive bool) (*Lock, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := flock(f, exclusive); err != nil {
		f.Close()
		return nil, err
	}
	// Somebody may have removed or replaced path between the two calls; a lock of what nobody finds is worth nothing.
	was, err1 := f.Stat()
	is, err2 := os.Lstat(path)
	if err := errors.Join(err1, err2); err != nil {
		f.Close()
		return nil, err
	}
	if !os.SameFile(was, is) {
		f.Close()
		return nil, os.ErrNotExist
	}
	return &Lock{f}, nil
}

// NewDir makes a folder of mode 0700 in parent and takes a shared lock of it. Whoever removes folders that nobody holds
// may take a new one before it is locked; then another is made.
func NewDir(parent, prefix string) (string, *Lock, error) {
	for {
		p, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return "", nil, err
		}
		l, err := Shared(p)
		if err == nil {
			return p, l, nil
		}
		if !errors.Is(err, ErrHeld) && !errors.Is(err, os.ErrNotExist) {
			return "", nil, errors.Join(err, os.Remove(p))
		}
	}
}
