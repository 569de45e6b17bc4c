package expand

import (
	"io/fs"
	"syscall"
	"time"
)

func accessTime(info fs.FileInfo) (time.Time, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(0, int64(st.Atime)), true
}
