//go:build wasip1

// A slash, or a slash and a dot, behind a link that leaves the root.
//
// expect: denied EPERM ENOTCAPABLE ENOENT ENOTDIR EINVAL EROFS EXDEV EBUSY EISDIR EEXIST ELOOP
package escape

import . "github.com/exthost/exthost/testdata/hostile/attack"

func init() {
	Register("trailing_slash", func() {
		for _, root := range []string{"workspace", "ro", "overlay"} {
			for _, path := range []string{"out/", "outabs/", "dirout/", "dirout/.", "dirout//", "dirout/./", "up/", "up/.", "sub/out/.", "procl/"} {
				path = root + "/" + path
				for _, lookup := range []uint32{0, Follow} {
					_, errno := Open(Root, path, lookup, 0, RightRead, 0)
					Errnof(errno, "open %s", path)
					_, errno = Open(Root, path, lookup, ODirectory, RightsAll, 0)
					Errnof(errno, "open folder %s", path)
				}
				Errnof(StatPath(path), "stat %s", path)
				Errnof(Rename(path, "workspace/moved"), "rename %s", path)
				Errnof(Rename("workspace/keep.txt", path), "rename onto %s", path)
				Errnof(Unlink(path), "unlink %s", path)
				Errnof(Rmdir(path), "rmdir %s", path)
				Errnof(Mkdir(path), "mkdir %s", path)
				Errnof(Link(path, "workspace/linked"), "link %s", path)
				_, errno := Readlink(path)
				Errnof(errno, "readlink %s", path)
			}
		}
	})
}
