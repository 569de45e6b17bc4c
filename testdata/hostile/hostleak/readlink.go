//go:build wasip1

// What a link says: a target inside may be told, a path of the host never.
//
// expect: denied EPERM ENOTCAPABLE ENOENT EINVAL EXDEV
package hostleak

import (
	"strings"

	. "github.com/exthost/exthost/testdata/hostile/attack"
)

func init() {
	Register("readlink", func() {
		for _, root := range []string{"workspace", "ro", "overlay"} {
			text, errno := Readlink(root + "/inner")
			Need(errno, "readlink of a link that stays inside")
			if text != "in.txt" {
				Errnof(0, "%s/inner reads as %q", root, text)
			}
			for _, path := range []string{"outabs", "procl"} {
				text, errno := Readlink(root + "/" + path)
				if errno == 0 && text == "" {
					errno = 63 // an empty text tells as little as a refusal
				}
				Errnof(errno, "readlink %s/%s", root, path)
				if strings.HasPrefix(text, "/") {
					Errnof(0, "%s/%s shows %q", root, path, text)
				}
			}
		}
	})
}
