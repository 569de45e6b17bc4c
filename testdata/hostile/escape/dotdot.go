//go:build wasip1

// "../" as the whole path and in the middle of one, from the preopen and from a descriptor of a folder.
//
// expect: denied EPERM ENOTCAPABLE EACCES ENOENT
package escape

import . "github.com/exthost/exthost/testdata/hostile/attack"

func init() {
	Register("dotdot", func() {
		for _, path := range []string{"..", "../", "../.", "./..", "./../", "workspace/../..", "workspace/../../", "workspace/sub/../../../x",
			"workspace/sub/../../..", "../outside/secret.txt", "workspace/../../outside/secret.txt"} {
			_, errno := Open(Root, path, Follow, ODirectory, RightsAll, 0)
			Errnof(errno, "open folder %s from /", path)
			_, errno = Open(Root, path, Follow, 0, RightRead, 0)
			Errnof(errno, "open %s from /", path)
		}
		// /workspace/.. is the virtual root: what it must not be is the host's folder above the workspace.
		for _, path := range []string{"workspace/../outside/secret.txt", "workspace/sub/../../outside/secret.txt"} {
			_, errno := Open(Root, path, Follow, 0, RightRead, 0)
			Errnof(errno, "open %s from /", path)
		}
		for _, folder := range []string{"workspace", "ro", "overlay"} {
			fd, errno := Open(Root, folder, 0, ODirectory, RightsAll&^RightWrite, 0)
			Need(errno, "open %s", folder)
			sub, errno := Open(fd, "sub", 0, ODirectory, RightsAll&^RightWrite, 0)
			Need(errno, "open %s/sub", folder)
			for _, path := range []string{"../", "..", "./../", "../outside/secret.txt", "sub/../..", "sub/../../outside/secret.txt"} {
				_, errno := Open(fd, path, Follow, 0, RightRead, 0)
				Errnof(errno, "open %s from %s", path, folder)
			}
			for _, path := range []string{"../..", "../../", "../../outside/secret.txt", "../../ro/../outside/secret.txt"} {
				_, errno := Open(sub, path, Follow, 0, RightRead, 0)
				Errnof(errno, "open %s from %s/sub", path, folder)
			}
		}
	})
}
