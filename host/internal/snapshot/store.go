package snapshot

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/exthost/exthost/host/internal/lock"
	"github.com/exthost/exthost/host/internal/scratch"
)

// Store keeps copies of trees by digest in a private folder. It is safe for concurrent use, by several processes too.
type Store struct {
	dir      string
	maxBytes int64
}

// NewStore uses dir, which must exist and be private. When all copies together are over maxBytes, those that were not
// used for longest and are not in use are removed.
func NewStore(dir string, maxBytes int64) *Store { return &Store{dir, maxBytes} }

// Snapshot is a copy in use. It stays on disk at least until Close.
type Snapshot struct {
	Digest  string  // "sha256:..."
	Entries []Entry // sorted by path
	Dir     string  // host path
	Root    *os.File
	lock    *lock.Lock
}

// Close ends the use of the copy.
func (s *Snapshot) Close() error { return errors.Join(s.Root.Close(), s.lock.Close()) }

const (
	tmpPrefix   = "tmp-"
	trashPrefix = "trash-"
)

// Take returns the copy of src, made now unless the store has it. The digest is that of the copy, so a source that
// changes meanwhile gives the digest of what will run or an error, never a mixture.
func (s *Store) Take(ctx context.Context, src Source) (*Snapshot, error) {
	entries, err := Hash(ctx, src)
	if err != nil {
		return nil, err
	}
	if snap, err := s.open(ctx, Digest(entries)); err == nil {
		return snap, nil
	}
	tmp, held, err := lock.NewDir(s.dir, tmpPrefix)
	if err != nil {
		return nil, err
	}
	defer func() { _ = scratch.Remove(tmp) }() // gone after a rename; else what is left of a failed copy
	// The lock tells a sweep that somebody works here; it stays on the folder when that is renamed.
	keep := false
	defer func() {
		if !keep {
			held.Close()
		}
	}()
	if entries, err = s.copy(ctx, src, tmp); err != nil {
		return nil, err
	}
	digest := Digest(entries)
	path := s.path(digest)
	if err := os.Rename(tmp, path); err != nil {
		if !errors.Is(err, fs.ErrExist) && !isNotEmpty(err) {
			return nil, err
		}
		// Another process was faster, or what is there is damaged; open tells which.
		if snap, err := s.open(ctx, digest); err == nil {
			return snap, nil
		}
		if err := s.trash(path); err != nil {
			return nil, err
		}
		if err := os.Rename(tmp, path); err != nil {
			return nil, err
		}
	}
	root, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	keep = true
	s.evict(path)
	return &Snapshot{Digest: digest, Entries: entries, Dir: path, Root: root, lock: held}, nil
}

func (s *Store) path(digest string) string {
	return filepath.Join(s.dir, strings.TrimPrefix(digest, "sha256:"))
}

// open uses the copy that is there, if it still has the digest that it is named by.
func (s *Store) open(ctx context.Context, digest string) (*Snapshot, error) {
	path := s.path(digest)
	held, err := lock.Shared(path)
	if err != nil {
		return nil, err
	}
	snap, err := verify(ctx, path, digest)
	if err != nil {
		held.Close()
		return nil, err
	}
	snap.lock = held
	now := time.Now()
	_ = os.Chtimes(path, now, now) // for evict; a failure only makes the copy look older
	return snap, nil
}

func verify(ctx context.Context, path, digest string) (*Snapshot, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, fmt.Errorf("%q: %w", path, ErrUnsafe)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	entries, err := Hash(ctx, Dir(root))
	if err != nil {
		return nil, err
	}
	if Digest(entries) != digest {
		return nil, fmt.Errorf("%q: the copy was changed", path)
	}
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	return &Snapshot{Digest: digest, Entries: entries, Dir: path, Root: f}, nil
}

func (s *Store) copy(ctx context.Context, src Source, tmp string) ([]Entry, error) {
	root, err := os.OpenRoot(tmp)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return walk(ctx, src, &diskSink{root})
}

// trash takes a damaged copy out of the way. Whoever uses it keeps its descriptor.
func (s *Store) trash(path string) error {
	to := filepath.Join(s.dir, trashPrefix+rand.Text())
	if err := os.Rename(path, to); err != nil {
		return err
	}
	return scratch.Remove(to)
}

// evict removes the copies that were not used for longest until the rest fits, and what dead processes left.
func (s *Store) evict(keep string) {
	list, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	type item struct {
		path string
		used time.Time
		size int64
	}
	var items []item
	var sum int64
	for _, d := range list {
		path := filepath.Join(s.dir, d.Name())
		fi, err := d.Info()
		if err != nil || !fi.IsDir() || path == keep {
			continue
		}
		if strings.HasPrefix(d.Name(), tmpPrefix) || strings.HasPrefix(d.Name(), trashPrefix) {
			_ = RemoveUnused(path) // in use, or next time
			continue
		}
		size := scratch.Size(path)
		items = append(items, item{path, fi.ModTime(), size})
		sum += size
	}
	slices.SortFunc(items, func(a, b item) int { return a.used.Compare(b.used) })
	for _, it := range items {
		if sum <= s.maxBytes {
			return
		}
		if RemoveUnused(it.path) == nil {
			sum -= it.size
		}
	}
}

// diskSink writes read-only files. Its folders stay writable for their owner, so that the cache can be removed by any
// means; only the host itself has access to them.
type diskSink struct{ root *os.Root }

func (d *diskSink) mkdir(name string) error {
	return d.root.Mkdir(filepath.FromSlash(name), 0o700)
}

func (d *diskSink) file(name string, exec bool, src fs.File, h hash.Hash, max int64) (n int64, err error) {
	f, err := d.root.OpenFile(filepath.FromSlash(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if sf, ok := src.(*os.File); ok && clone(f, sf) {
		n, err = copyMax(h, f, max) // the copy is read, not the source: they can differ by now
	} else {
		n, err = copyMax(io.MultiWriter(f, h), src, max)
	}
	if err != nil {
		return n, err
	}
	mode := fs.FileMode(0o400)
	if exec {
		mode = 0o500
	}
	return n, f.Chmod(mode)
}

func (d *diskSink) link(name, target string) error {
	return d.root.Symlink(target, filepath.FromSlash(name))
}

// RemoveUnused removes a copy, or fails with [lock.ErrHeld] if somebody uses it.
func RemoveUnused(path string) error {
	l, err := lock.TryExclusive(path)
	if err != nil {
		return err
	}
	defer l.Close()
	return scratch.Remove(path)
}
