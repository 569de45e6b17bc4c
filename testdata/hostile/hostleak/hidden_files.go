//go:build wasip1

// Files that the policy hides are not there: not by name, not in a listing, not by link, and cannot be replaced.
//
// expect: denied ENOENT EPERM ENOTCAPABLE EACCES
package hostleak

import (
	"os"

	. "github.com/exthost/exthost/testdata/hostile/attack"
)

func init() {
	Register("hidden_files", func() {
		for _, root := range []string{"workspace", "ro", "overlay"} {
			for _, path := range []string{".env", "sub/.env", ".env.local", "tolink", ".git/config", ".git/../.env", "./.env"} {
				path = root + "/" + path
				_, errno := Open(Root, path, Follow, 0, RightRead, 0)
				Errnof(errno, "read %s", path)
				Errnof(StatPath(path), "stat %s", path)
			}
			for _, folder := range []string{root, root + "/sub"} {
				entries, err := os.ReadDir("/" + folder)
				if err != nil {
					Errorf(nil, "listing %s: %v", folder, err)
				}
				for _, e := range entries {
					if e.Name() == ".env" || e.Name() == ".env.local" {
						Errorf(nil, "listing of %s shows %s", folder, e.Name())
					}
				}
			}
			Errnof(Rename(root+"/.env", "workspace/shown.txt"), "rename %s/.env", root)
			Errnof(Link(root+"/.env", "workspace/shown.txt"), "hard link to %s/.env", root)
		}
		Errnof(Rename("workspace/sub", "workspace/sub2"), "rename a folder that holds a hidden file")
	})
}
