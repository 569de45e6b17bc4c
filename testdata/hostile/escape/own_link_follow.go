//go:build wasip1

// The guest makes a link that points out of its root and opens it: first to read, then to plant a file.
//
// denial: write /workspace/madea
// expect: denied EPERM ENOTCAPABLE ENOENT
package escape

import . "github.com/exthost/exthost/testdata/hostile/attack"

func init() {
	Register("own_link_follow", func() {
		for i, target := range []string{"../outside/secret.txt", "../../outside/secret.txt", "..", "../outside", "sub/../../outside",
			"./../outside", "/outside", "/etc/hostname", "/proc/self/root/etc/hostname", "../workspace/../outside"} {
			link := "workspace/made" + string(rune('a'+i))
			Errnof(Symlink(target, link), "link to %s", target)
			_, errno := Open(Root, link, Follow, 0, RightRead, 0)
			Errnof(errno, "read through the link to %s", target)
			_, errno = Open(Root, link+"/planted.txt", Follow, OCreat, RightWrite, 0)
			Errnof(errno, "create through the link to %s", target)
		}
	})
}
