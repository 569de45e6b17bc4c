//go:build wasip1

// Descriptors that the guest did not open: one preopen named "/", three streams, nothing else.
//
// expect: denied EBADF
package hostleak

import . "github.com/exthost/exthost/testdata/hostile/attack"

func init() {
	Register("preopens", func() {
		Need(FDPrestatGet(Root, Cell()), "prestat of the preopen")
		buf, bufLen := Buffer()
		Need(FDPrestatDirName(Root, buf, min(bufLen, 1)), "name of the preopen")
		if name := BufferText(1); name != "/" {
			Errnof(0, "the preopen is called %q", name)
		}
		for fd := int32(4); fd < 64; fd++ {
			Errnof(FDPrestatGet(fd, Cell()), "prestat of %d", fd)
			Errnof(FDReaddir(fd, buf, bufLen, 0, Cell()), "readdir of %d", fd)
		}
		for _, fd := range []int32{-1, -2147483648, 2147483647, 1 << 20} {
			Errnof(FDPrestatGet(fd, Cell()), "prestat of %d", fd)
			Errnof(FDClose(fd), "close of %d", fd)
		}
	})
}
