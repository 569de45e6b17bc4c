// Package scratch makes, walks and removes the folders that guests and workers write into.
//
// What lies in such a folder was made by untrusted code: it may be deep, wide, full of links, or change while it is
// read. Everything here goes by descriptor, follows no link and has a bound.
package scratch

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/exthost/exthost/host/internal/lock"
)

// Prefix of the names of the folders that Make makes.
const Prefix = "exthost-scratch-"

const (
	maxDepth   = 64        // deeper folders are moved up and removed later
	maxEntries = 1_000_000 // removed by one call
	maxWalk    = 20_000    // entries that Walk and Size look at
)

// ErrBound says that a folder holds more than one call removes.
var ErrBound = errors.New("too many files")

// Dir is a private folder in use.
type Dir struct {
	Path string
	File *os.File // to hand out; the caller must not close it
	lock *lock.Lock
}

// Make makes a folder of mode 0700 below base ("": the system's temporary folder).
func Make(base string) (*Dir, error) {
	// The lock has a descriptor of its own: one that is handed to a worker could be used to unlock it.
	p, l, err := lock.NewDir(base, Prefix)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(p)
	if err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(p))
	}
	return &Dir{p, f, l}, nil
}

// Remove removes the folder and all that is in it.
func (d *Dir) Remove() error {
	err := Remove(d.Path)
	return errors.Join(err, d.File.Close(), d.lock.Close())
}

// Sweep removes folders in base that ended processes of this user left behind, and returns how many.
func Sweep(base string) int {
	if base == "" {
		base = os.TempDir()
	}
	list, err := os.ReadDir(base)
	if err != nil {
		return 0
	}
	n := 0
	for _, d := range list {
		if !strings.HasPrefix(d.Name(), Prefix) || !d.IsDir() {
			continue
		}
		p := filepath.Join(base, d.Name())
		if fi, err := d.Info(); err != nil || !own(fi) || fi.Mode().Perm() != 0o700 {
			continue
		}
		l, err := lock.TryExclusive(p)
		if err != nil {
			continue
		}
		if Remove(p) == nil {
			n++
		}
		l.Close()
	}
	return n
}

// Remove removes the folder p, which may be missing, and all that is in it. It follows no link and stays below p even if
// somebody moves things about meanwhile.
func Remove(p string) error {
	parent, err := os.OpenRoot(filepath.Dir(p))
	if err != nil {
		return err
	}
	defer parent.Close()
	name := filepath.Base(p)
	fi, err := parent.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if fi.IsDir() {
		if err := empty(parent, name); err != nil {
			return err
		}
	}
	return parent.Remove(name)
}

// RemoveIn removes name, one component, and all that is in it from the folder dir.
func RemoveIn(dir *Dir, name string) error { return Remove(filepath.Join(dir.Path, name)) }

func empty(parent *os.Root, name string) error {
	root, err := openOwn(parent, name, 0o700)
	if err != nil {
		return err
	}
	defer root.Close()
	r := remover{top: root, left: maxEntries}
	return r.clear(root, 0)
}

// openOwn opens a folder that its owner may have shut, with at least the given rights.
func openOwn(parent *os.Root, name string, need fs.FileMode) (*os.Root, error) {
	fi, err := parent.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if fi.Mode().Perm()&need != need {
		if err := parent.Chmod(name, 0o700); err != nil {
			return nil, err
		}
	}
	return parent.OpenRoot(name)
}

type remover struct {
	top  *os.Root
	left int
}

func (r *remover) clear(dir *os.Root, depth int) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		// A folder is read again from its start after a batch was removed: on some file systems removing while reading
		// skips entries.
		list, err := f.ReadDir(1024)
		if len(list) == 0 {
			if err == nil || errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		for _, d := range list {
			if r.left--; r.left < 0 {
				return ErrBound
			}
			if err := r.one(dir, d, depth); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
}

func (r *remover) one(dir *os.Root, d fs.DirEntry, depth int) error {
	if !d.IsDir() {
		return dir.Remove(d.Name())
	}
	if depth >= maxDepth {
		// Each open folder is a descriptor, so depth is bounded by moving what lies deeper to the top, where clear finds
		// it when it reads on.
		return renameAcross(dir, d.Name(), r.top, "moved-"+rand.Text())
	}
	sub, err := openOwn(dir, d.Name(), 0o700)
	if err != nil {
		return err
	}
	err = r.clear(sub, depth+1)
	sub.Close()
	if err != nil {
		return err
	}
	return dir.Remove(d.Name())
}

// Size is the sum of the file sizes below p, as far as a bounded walk sees them.
func Size(p string) (sum int64) {
	_ = Walk(p, func(_ string, fi fs.FileInfo) error {
		if fi.Mode().IsRegular() {
			sum += fi.Size()
		}
		return nil
	})
	return sum
}

// Walk calls fn for everything below the folder p, parents first, with slash-separated paths relative to p. It stops
// with ErrBound after 20,000 entries or below 64 folders, and follows no link. A missing p is empty.
func Walk(p string, fn func(name string, fi fs.FileInfo) error) error {
	root, err := os.OpenRoot(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	left := maxWalk
	return walk(root, ".", 0, &left, fn)
}

func walk(dir *os.Root, prefix string, depth int, left *int, fn func(string, fs.FileInfo) error) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	list, err := f.ReadDir(*left + 1)
	f.Close()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, d := range list {
		if *left--; *left < 0 || depth >= maxDepth {
			return fmt.Errorf("%q: %w", prefix, ErrBound)
		}
		fi, err := dir.Lstat(d.Name())
		if err != nil {
			continue // removed meanwhile
		}
		name := path.Join(prefix, d.Name())
		if err := fn(name, fi); err != nil {
			return err
		}
		if !fi.IsDir() {
			continue
		}
		sub, err := openOwn(dir, d.Name(), 0o500)
		if err != nil {
			continue
		}
		err = walk(sub, name, depth+1, left, fn)
		sub.Close()
		if err != nil {
			return err
		}
	}
	return nil
}
