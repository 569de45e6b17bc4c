//go:build !linux && !darwin && !wasip1

package files

import (
	"os"
	"syscall"
	"time"
)

func (in *info) system() {}

// setTimes sets the times of the file name. Those of a link itself are left.
func setTimes(name string, link bool, atime, mtime time.Time) error {
	if link {
		return syscall.ENOSYS
	}
	return os.Chtimes(name, atime, mtime)
}
