//go:build !linux

package cache

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// No worker runs on these platforms yet, so nothing is compiled and no entry is ever made or used.

func metaOf(*os.File) (meta, error) { return meta{}, errors.ErrUnsupported }

func oneOwnName(fs.FileInfo) bool { return true }

// Sealed is not supported here.
func Sealed(string, io.Reader, int64) (*os.File, error) { return nil, errors.ErrUnsupported }

func sealed(string, io.Reader, int64, io.Writer) (*os.File, error) {
	return nil, errors.ErrUnsupported
}
