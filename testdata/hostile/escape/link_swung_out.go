//go:build wasip1

// A link that is harmless where it is made is moved to where it points out of the root.
//
// expect: denied EPERM ENOTCAPABLE ENOENT EXDEV
package escape

import . "github.com/exthost/exthost/testdata/hostile/attack"

func init() {
	Register("link_swung_out", func() {
		Need(Mkdir("workspace/d1"), "mkdir")
		Need(Mkdir("workspace/d1/d2"), "mkdir")
		// Below d1/d2 the target stays inside; two folders up it is the folder beside the root.
		Need(Symlink("../../outside/secret.txt", "workspace/d1/d2/l"), "link that stays inside")
		if errno := Rename("workspace/d1/d2/l", "workspace/l"); errno != 0 {
			Errnof(errno, "move the link up")
		}
		_, errno := Open(Root, "workspace/l", Follow, 0, RightRead, 0)
		Errnof(errno, "open the link after it moved")
		Need(Symlink("../../outside", "workspace/d1/d2/m"), "link that stays inside")
		if errno := Rename("workspace/d1/d2", "workspace/d3"); errno != 0 {
			Errnof(errno, "move the folder of the link up")
		}
		_, errno = Open(Root, "workspace/d3/m/secret.txt", Follow, 0, RightRead, 0)
		Errnof(errno, "open below the link after its folder moved")
		_, errno = Open(Root, "workspace/d3/m/planted.txt", Follow, OCreat, RightWrite, 0)
		Errnof(errno, "create below the link after its folder moved")
	})
}
