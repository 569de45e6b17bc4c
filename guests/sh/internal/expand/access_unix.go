//go:build linux || darwin

package expand

import (
	"io/fs"
	"os"
	"syscall"
)

// access asks the system, as mode bits alone do not tell what the user may do.
func access(name string, op byte, _ fs.FileInfo) bool {
	mode := map[byte]uint32{'r': 4, 'w': 2, 'x': 1}[op]
	return syscall.Access(name, mode) == nil
}

func owned(info fs.FileInfo, group bool) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	if group {
		return int(st.Gid) == os.Getegid()
	}
	return int(st.Uid) == os.Geteuid()
}
