//go:build !windows

package archive

import (
	"io/fs"
	"syscall"
)

// identity tells which file fi is, and whether it has several names.
func identity(fi fs.FileInfo) (id [2]uint64, many bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return id, false
	}
	return [2]uint64{uint64(st.Dev), uint64(st.Ino)}, st.Nlink > 1 && st.Ino != 0
}
