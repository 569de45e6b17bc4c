//go:build wasip1

// Bytes written until the disk is full: by writing, by a hole, by allocating, in every place that may be written.
//
// expect: denied EDQUOT ENOSPC EFBIG ENOTSUP
package hostdos

import (
	"bytes"

	. "github.com/exthost/exthost/testdata/hostile/attack"
)

func init() {
	Register("disk", func() {
		block := bytes.Repeat([]byte("0"), 1<<16)
		for _, folder := range []string{"workspace", "overlay", "tmp", "home/guest"} {
			fd, errno := Open(Root, folder+"/sparse", 0, OCreat, RightsAll, 0)
			Need(errno, "create")
			Errnof(FDFilestatSetSize(fd, 1<<40), "a hole of 1 TiB in %s", folder)
			Errnof(FDAllocate(fd, 0, 1<<40), "1 TiB allocated in %s", folder)
			Errnof(FDPwrite(fd, Vector([]byte("x")), 1, 1<<40, Cell()), "a byte at 1 TiB in %s", folder)
		}
		for _, folder := range []string{"workspace", "overlay", "tmp", "home/guest"} {
			fd, errno := Open(Root, folder+"/big", 0, OCreat, RightWrite, 0)
			Need(errno, "create")
			for n := 0; ; n++ {
				if errno := Write(fd, block); errno != 0 {
					Errnof(errno, "one more block in %s", folder)
					break
				}
				if n > 1<<14 {
					Errnof(0, "1 GiB in %s", folder)
					break
				}
			}
		}
	})
}
