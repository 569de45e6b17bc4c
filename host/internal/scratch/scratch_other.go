//go:build !unix

package scratch

import (
	"errors"
	"io/fs"
	"os"
)

func own(fs.FileInfo) bool { return true }

func renameAcross(*os.Root, string, *os.Root, string) error { return errors.ErrUnsupported }
