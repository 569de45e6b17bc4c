package snapshot

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Dir is a tree on disk. It is safe against entries being swapped while it is read: nothing outside root is read.
// The caller closes root after use.
func Dir(root *os.Root) Source { return dirSource{root} }

type dirSource struct{ root *os.Root }

func (s dirSource) ReadDir(name string) ([]fs.DirEntry, error) {
	f, err := s.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// One more than may be there, so that a folder with millions of entries is not read whole.
	list, err := f.ReadDir(MaxEntries + 1)
	if len(list) > 0 {
		return list, nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return nil, nil
}

func (s dirSource) Open(name string) (fs.File, error) {
	name = filepath.FromSlash(name)
	was, err := s.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !was.Mode().IsRegular() {
		return nil, fmt.Errorf("%q: %w: it is a %s", name, ErrUnsafe, special(was.Mode()))
	}
	// os.Root follows links inside the root, so whether this is what was just seen is judged by identity.
	f, err := s.root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, err
	}
	is, err := f.Stat()
	if err != nil || !os.SameFile(was, is) {
		f.Close()
		return nil, fmt.Errorf("%q: %w: it changed while it was read", name, ErrUnsafe)
	}
	return f, nil
}

func (s dirSource) Readlink(name string) (string, error) {
	return s.root.Readlink(filepath.FromSlash(name))
}
