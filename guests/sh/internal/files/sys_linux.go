package files

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func (in *info) system() {
	if st, ok := in.Sys().(*syscall.Stat_t); ok {
		in.dev, in.ino, in.nlink = uint64(st.Dev), st.Ino, uint64(st.Nlink)
		in.atime, in.ctime = time.Unix(st.Atim.Unix()), time.Unix(st.Ctim.Unix())
	}
}

// setTimes sets the times of the file name, or of the link itself.
func setTimes(name string, link bool, atime, mtime time.Time) error {
	flag := 0
	if link {
		flag = unix.AT_SYMLINK_NOFOLLOW
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{unix.NsecToTimespec(atime.UnixNano()), unix.NsecToTimespec(mtime.UnixNano())}, flag)
}
