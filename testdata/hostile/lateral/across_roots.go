//go:build wasip1

// Hard links and renames from a root that may only be read into one that may be written, both on one disk.
//
// expect: denied EXDEV ENOTCAPABLE EROFS EPERM EACCES EBUSY EISDIR EEXIST ENOTSUP
package lateral

import . "github.com/exthost/exthost/testdata/hostile/attack"

func init() {
	Register("across_roots", func() {
		for _, from := range []string{"ro/file.txt", "skill/SKILL.md", "overlay/file.txt"} {
			for _, to := range []string{"workspace/taken", "tmp/taken", "home/guest/taken"} {
				Errnof(Link(from, to), "hard link %s -> %s", from, to)
				Errnof(Rename(from, to), "rename %s -> %s", from, to)
			}
		}
		for _, to := range []string{"ro/keep.txt", "ro/file.txt", "skill/SKILL.md", "skill/keep.txt"} {
			Errnof(Link("workspace/keep.txt", to), "hard link workspace/keep.txt -> %s", to)
			Errnof(Rename("workspace/keep.txt", to), "rename workspace/keep.txt -> %s", to)
		}
		Errnof(Rename("workspace/keep.txt", "workspace/sub"), "rename a file over a folder")
		Errnof(Rename("workspace", "workspace2"), "rename a mount point")
		Errnof(Rename("ro", "workspace/ro"), "rename a mount point into a root")
		Errnof(Rename("workspace/sub", "ro"), "rename onto a mount point")
		Errnof(Rmdir("workspace"), "remove a mount point")
		Errnof(Unlink("ro"), "unlink a mount point")
		// A hard link to a link copies the link, and with it where it points.
		Errnof(Link("ro/out", "workspace/outcopy"), "hard link to a link that leaves its root")
		Errnof(Link("workspace/out", "workspace/outcopy"), "hard link to a link that leaves its root, same root")
	})
}
