//go:build wasip1

// Writes where no root is: beside the mount points, in the runtime's library, in folders of other extensions.
//
// expect: denied EROFS ENOTCAPABLE EPERM EACCES ENOENT EEXIST
package lateral

import . "github.com/exthost/exthost/testdata/hostile/attack"

func init() {
	Register("unmounted_paths", func() {
		for _, path := range []string{"etc/cron.d/x", "home/other", "home/new.txt", "usr/local/lib/x.py", "usr/local/x", "usr/x",
			"dev/x", "dev/null/x", "dev/exthost/x", "skills/other/SKILL.md", ".exthost/policies/hostile.yaml", "var/spool/cron/root"} {
			_, errno := Open(Root, path, 0, OCreat, RightWrite, 0)
			if errno == 54 { // a component of /dev/null/x is no folder
				errno = 76
			}
			Errnof(errno, "create %s", path)
			errno = Mkdir(path)
			if errno == 54 {
				errno = 76
			}
			Errnof(errno, "mkdir %s", path)
		}
	})
}
