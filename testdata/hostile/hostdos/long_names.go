//go:build wasip1

// Names and paths beyond every limit of a file system, and folders in folders without end.
//
// expect: denied ENAMETOOLONG EINVAL EDQUOT ENOSPC EMLINK
package hostdos

import (
	"strings"

	. "github.com/exthost/exthost/testdata/hostile/attack"
)

func init() {
	Register("long_names", func() {
		for _, path := range []string{
			"workspace/" + strings.Repeat("n", 100_000),
			"workspace/" + strings.Repeat("n", 256),
			"workspace/" + strings.Repeat("./", 100_000) + "x",
			"workspace/" + strings.Repeat("d/", 3000) + "x",
		} {
			_, errno := Open(Root, path, 0, OCreat, RightWrite, 0)
			if errno == 44 && strings.Contains(path, "/d/") { // the first folder is not there: said before the length is as good
				errno = 37
			}
			Errnof(errno, "create a path of %d bytes", len(path))
			Errnof(Symlink(strings.Repeat("t", 100_000), "workspace/link"), "link to a text of 100000 bytes")
		}
		path := "workspace"
		for n := 0; n < 3000; n++ {
			path += "/d"
			if errno := Mkdir(path); errno != 0 {
				Errnof(errno, "one folder deeper")
				return
			}
		}
		Errnof(0, "3000 folders deep")
	})
}
