package files

import (
	"os"
	"syscall"
	"time"
)

func (in *info) system() {
	if st, ok := in.Sys().(*syscall.Stat_t); ok {
		in.dev, in.ino, in.nlink = st.Dev, st.Ino, max(1, st.Nlink)
		in.atime, in.ctime = time.Unix(0, int64(st.Atime)), time.Unix(0, int64(st.Ctime))
	}
}

// setTimes sets the times of the file name. Those of a link itself cannot be set.
func setTimes(name string, link bool, atime, mtime time.Time) error {
	if link {
		return syscall.ENOSYS
	}
	return os.Chtimes(name, atime, mtime)
}
