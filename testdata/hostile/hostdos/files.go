//go:build wasip1

// Empty files and folders made without end: entries are counted, not only bytes.
//
// expect: denied EDQUOT ENOSPC
package hostdos

import (
	"strconv"

	. "github.com/exthost/exthost/testdata/hostile/attack"
)

func init() {
	Register("files", func() {
		for n := 0; n < 200_000; n++ {
			fd, errno := Open(Root, "tmp/f"+strconv.Itoa(n), 0, OCreat|OExcl, RightWrite, 0)
			if errno != 0 {
				Errnof(errno, "one more file")
				Errnof(Mkdir("workspace/one-more"), "one more folder elsewhere")
				return
			}
			FDClose(fd)
		}
		Errnof(0, "200000 files")
	})
}
