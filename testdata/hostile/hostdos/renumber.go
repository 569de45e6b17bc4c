//go:build wasip1

// Descriptors moved to huge and negative numbers, which must not make the host's table as large.
//
// expect: denied EBADF EMFILE EINVAL ENOTSUP ENOTCAPABLE
package hostdos

import . "github.com/exthost/exthost/testdata/hostile/attack"

func init() {
	Register("renumber", func() {
		fd, errno := Open(Root, "workspace/keep.txt", 0, 0, RightRead, 0)
		Need(errno, "open")
		for _, to := range []int32{2147483647, 1 << 28, 1 << 20, -1, -2147483648} {
			Errnof(FDRenumber(fd, to), "renumber to %d", to)
		}
		_, errno = Read(fd)
		Need(errno, "read after refused renumbers")
	})
}
