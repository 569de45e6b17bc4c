//go:build wasip1

// A FIFO, a socket, and (planted where the machine allows it) a device in the workspace: none is opened, none blocks.
//
// expect: denied EPERM ENOTCAPABLE EACCES ENXIO ENODEV
package escape

import . "github.com/exthost/exthost/testdata/hostile/attack"

func init() {
	Register("special_files", func() {
		for _, root := range []string{"workspace", "ro", "overlay"} {
			for _, path := range []string{"fifo", "socket"} {
				path = root + "/" + path
				_, errno := Open(Root, path, 0, 0, RightRead, 0)
				Errnof(errno, "read %s", path)
				_, errno = Open(Root, path, 0, 0, RightRead|RightWrite, 0)
				Errnof(errno, "write %s", path)
				_, errno = Open(Root, path, 0, 0, RightRead, FlagNonblock)
				Errnof(errno, "read %s without blocking", path)
			}
		}
		if Lstat("workspace/device") == 0 {
			_, errno := Open(Root, "workspace/device", 0, 0, RightRead, 0)
			Errnof(errno, "read workspace/device")
			_, errno = Open(Root, "workspace/device", 0, 0, RightWrite, 0)
			Errnof(errno, "write workspace/device")
		}
	})
}
