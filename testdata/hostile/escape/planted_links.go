//go:build wasip1

// Links that lay in the folders before the guest came: relative and absolute ones, to a file, to a folder, into /proc.
// A link that stays inside still works, and stat, listing and open agree.
//
// denial: read /workspace/procl
// expect: denied EPERM ENOTCAPABLE ENOENT ELOOP EXDEV
package escape

import . "github.com/exthost/exthost/testdata/hostile/attack"

func init() {
	Register("planted_links", func() {
		for _, root := range []string{"workspace", "ro", "overlay"} {
			fd, errno := Open(Root, root+"/inner", Follow, 0, RightRead, 0)
			Need(errno, "open a link that stays inside %s", root)
			text, errno := Read(fd)
			Need(errno, "read a link that stays inside %s", root)
			if text != "inside\n" {
				Errnof(0, "%s/inner holds %q", root, text)
			}
			for _, path := range []string{"out", "outabs", "dirout/secret.txt", "up/outside/secret.txt", "procl/etc/hostname", "chain", "sub/out"} {
				_, errno := Open(Root, root+"/"+path, Follow, 0, RightRead, 0)
				Errnof(errno, "read %s/%s", root, path)
				if errno := StatPath(root + "/" + path); errno == 0 {
					Errnof(0, "stat %s/%s: %d bytes", root, path, StatSize())
				}
			}
			for _, path := range []string{"dirout", "up", "procl"} {
				_, errno := Open(Root, root+"/"+path, Follow, ODirectory, RightsAll, 0)
				Errnof(errno, "open folder %s/%s", root, path)
				_, errno = Open(Root, root+"/"+path+"/planted.txt", Follow, OCreat|OExcl, RightWrite, 0)
				Errnof(errno, "create in %s/%s", root, path)
				Errnof(Mkdir(root+"/"+path+"/planted"), "mkdir in %s/%s", root, path)
				Errnof(Unlink(root+"/"+path+"/secret.txt"), "unlink in %s/%s", root, path)
			}
			_, errno = Open(Root, root+"/dangling", Follow, OCreat, RightWrite, 0)
			Errnof(errno, "create through a dangling link in %s", root)
		}
	})
}
