//go:build wasip1

// One file opened in a loop: the guest's own cap ends it, and a closed descriptor can be had again.
//
// expect: denied EMFILE
package hostdos

import . "github.com/exthost/exthost/testdata/hostile/attack"

func init() {
	Register("descriptors", func() {
		var last int32
		for n := 0; n < 100_000; n++ {
			fd, errno := Open(Root, "workspace/keep.txt", 0, 0, RightRead, 0)
			if errno != 0 {
				Errnof(errno, "one more descriptor")
				if n > 1024 {
					Errnof(0, "%d descriptors before that", n)
				}
				Need(FDClose(last), "close")
				_, errno = Open(Root, "workspace/keep.txt", 0, 0, RightRead, 0)
				Need(errno, "open after a close")
				return
			}
			last = fd
		}
		Errnof(0, "100000 descriptors")
	})
}
