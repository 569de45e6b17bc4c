//go:build wasip1

// Lengths of 2 GiB, pointers at and beyond the end of memory, a million iovecs, ranges that wrap around.
//
// expect: denied EFAULT EINVAL ENAMETOOLONG E2BIG EMSGSIZE
package hostdos

import . "github.com/exthost/exthost/testdata/hostile/attack"

func init() {
	Register("wild_pointers", func() {
		const far = 0xffff_fff0
		path, n := Path("workspace/keep.txt")
		buf, _ := Buffer()

		Errnof(RandomGet(buf, 1<<30), "1 GiB of random bytes")
		Errnof(RandomGet(far, 64), "random bytes at the end of memory")
		Errnof(RandomGet(0xffff_ffff, 1), "a random byte at the last address")
		Errnof(PathOpen(Root, 0, path, 1<<31, 0, RightRead, 0, 0, Cell()), "a path of 2 GiB")
		Errnof(PathOpen(Root, 0, path, 1<<32-1, 0, RightRead, 0, 0, Cell()), "a path of 4 GiB less one")
		Errnof(PathOpen(Root, 0, far, 64, 0, RightRead, 0, 0, Cell()), "a path that wraps around")
		Errnof(PathOpen(Root, 0, path, n, 0, RightRead, 0, 0, far+14), "a descriptor to half beyond the end")
		Errnof(PathFilestatGet(Root, 0, path, n, far), "a filestat beyond the end")
		Errnof(PathReadlink(Root, path, n, far, 4096, Cell()), "a link's text beyond the end")
		Errnof(FDReaddir(Root, far, 4096, 0, Cell()), "a listing beyond the end")
		Errnof(FDReaddir(Root, buf, 1<<31, 0, Cell()), "a listing of 2 GiB")
		Errnof(FDPrestatDirName(Root, far, 1), "a name beyond the end")
		Errnof(FDWrite(1, far, 1, Cell()), "an iovec beyond the end")
		Errnof(FDWrite(1, Pointer([]byte{0xf0, 0xff, 0xff, 0xff, 64, 0, 0, 0}), 1, Cell()), "an iovec that points beyond the end")
		Errnof(FDWrite(1, Pointer([]byte{0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}), 1, Cell()), "an iovec of 4 GiB")
		Errnof(FDWrite(1, buf, 1_000_000_000, Cell()), "a thousand million iovecs")
		Errnof(FDWrite(1, buf, 1<<29, Cell()), "iovecs whose size wraps to nothing")
		Errnof(FDRead(0, buf, 1<<29, Cell()), "iovecs to read into whose size wraps to nothing")
		fd, errno := Open(Root, "workspace/wild", 0, OCreat, RightsAll, 0)
		Need(errno, "create")
		Errnof(FDPwrite(fd, far, 1, 0, Cell()), "an iovec to write at an offset beyond the end")
		Errnof(PollOneoff(far, buf, 1, Cell()), "a subscription beyond the end")
		Errnof(PollOneoff(buf, far, 1, Cell()), "events beyond the end")
		Errnof(PollOneoff(buf, buf, 1<<28, Cell()), "subscriptions whose size wraps around")
		million := make([]byte, 8_000_000)
		Errnof(FDWrite(1, Pointer(million), 1_000_000, Cell()), "a million empty iovecs")
		Errnof(PollOneoff(Pointer(million), buf, 100_000, Cell()), "100000 subscriptions")
	})
}
