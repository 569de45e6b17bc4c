// Package private makes and checks folders that only the user may write.
//
// Compiled code is native code, so whoever can write the folder that holds it can run anything as the user. A folder
// is private if it and each of its parents belong to the user or to root, no other user may write them (a sticky
// folder such as /tmp counts as safe for what lies in it), and the folder itself is no symlink.
package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrUnsafe matches every refusal of a folder that others could change.
var ErrUnsafe = errors.New("folder is not private")

// Dir makes path if it is missing, with mode 0700, checks it and its parents, and returns it absolute and with the
// symlinks of its parents resolved, so that later use does not depend on them.
func Dir(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if err := mkdirs(abs); err != nil {
		return "", err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", err
	}
	abs = filepath.Join(parent, filepath.Base(abs))
	fi, err := os.Lstat(abs)
	if err != nil {
		return "", err
	}
	if !fi.IsDir() {
		return "", fmt.Errorf("%q: %w: it is a %s", abs, ErrUnsafe, kind(fi.Mode()))
	}
	if err := ours(abs, fi, true); err != nil {
		return "", err
	}
	for p := parent; ; p = filepath.Dir(p) {
		fi, err := os.Lstat(p)
		if err != nil {
			return "", err
		}
		if err := ours(p, fi, false); err != nil {
			return "", err
		}
		if filepath.Dir(p) == p {
			return abs, nil
		}
	}
}

// mkdirs makes the missing folders of path, each for the user alone.
func mkdirs(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if parent := filepath.Dir(path); parent != path {
		if err := mkdirs(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "symlink"
	case m.IsRegular():
		return "file"
	}
	return "special file"
}
