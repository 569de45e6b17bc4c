package files

import (
	"os"
	"syscall"
	"time"
)

func (in *info) system() {
	if st, ok := in.Sys().(*syscall.Stat_t); ok {
		in.dev, in.ino, in.nlink = uint64(uint32(st.Dev)), st.Ino, uint64(st.Nlink)
		in.atime, in.ctime = time.Unix(st.Atimespec.Unix()), time.Unix(st.Ctimespec.Unix())
	}
}

// setTimes sets the times of the file name. Those of a link itself are left.
func setTimes(name string, link bool, atime, mtime time.Time) error {
	if link {
		return syscall.ENOSYS
	}
	return os.Chtimes(name, atime, mtime)
}
