//go:build wasip1

// A file on a read root keeps its bytes and its times, whichever function is asked to change them.
//
// denial: write /ro/file.txt
// denial: write /skill/SKILL.md
// denial: write /ro/new.txt
// expect: denied EROFS ENOTCAPABLE EPERM EBADF EACCES EINVAL
package lateral

import . "github.com/exthost/exthost/testdata/hostile/attack"

func init() {
	Register("truncate_read_root", func() {
		for _, path := range []string{"ro/file.txt", "skill/SKILL.md"} {
			for _, rights := range []uint64{RightRead, 0, RightRead | RightWrite, RightsAll} {
				_, errno := Open(Root, path, 0, OTrunc, rights, 0)
				Errnof(errno, "open %s truncating, rights %#x", path, rights)
				_, errno = Open(Root, path, 0, OCreat|OTrunc, rights, 0)
				Errnof(errno, "open %s creating and truncating, rights %#x", path, rights)
			}
			_, errno := Open(Root, path, 0, OCreat, RightWrite, 0)
			Errnof(errno, "open %s creating", path)
			_, errno = Open(Root, path, 0, 0, RightWrite, FlagAppend)
			Errnof(errno, "open %s appending", path)
			p, n := Path(path)
			Errnof(PathFilestatSetTimes(Root, 0, p, n, 1e9, 1e9, 1|4), "set times of %s by path", path)
			Errnof(PathFilestatSetTimes(Root, Follow, p, n, 0, 0, 2|8), "touch %s by path", path)

			// Descriptors that were opened to read, and that ask for more once they are there.
			for _, rights := range []uint64{RightRead, RightRead | RightSetSize | RightTimes | RightAllocate} {
				fd, errno := Open(Root, path, 0, 0, rights, 0)
				if errno != 0 {
					continue // a refusal of the rights themselves is as good
				}
				FDSetRights(fd, RightsAll, RightsAll)
				FDSetFlags(fd, FlagAppend)
				Errnof(FDFilestatSetSize(fd, 0), "set size of %s", path)
				Errnof(FDFilestatSetSize(fd, 1<<20), "enlarge %s", path)
				Errnof(FDAllocate(fd, 0, 1<<20), "allocate in %s", path)
				Errnof(FDFilestatSetTimes(fd, 1e9, 1e9, 1|4), "set times of %s", path)
				Errnof(Write(fd, []byte("x")), "write to %s", path)
				Errnof(FDPwrite(fd, Vector([]byte("x")), 1, 0, Cell()), "write at an offset to %s", path)
			}
		}
		for _, path := range []string{"ro/new.txt", "ro/sub/new.txt", "skill/new.txt", "skill/scripts/new.py"} {
			_, errno := Open(Root, path, 0, OCreat|OExcl, RightWrite, 0)
			Errnof(errno, "create %s", path)
			Errnof(Mkdir(path), "mkdir %s", path)
			Errnof(Symlink("file.txt", path), "link %s", path)
		}
		Errnof(Unlink("ro/file.txt"), "unlink ro/file.txt")
		Errnof(Rmdir("ro/empty"), "rmdir ro/empty")
		Errnof(Rename("ro/file.txt", "ro/file2.txt"), "rename within ro")
		Errnof(Unlink("skill/SKILL.md"), "unlink skill/SKILL.md")
	})
}
