//go:build wasip1

// Paths that begin with a slash, hold a NUL byte, a backslash, a drive letter or bytes that are not UTF-8.
//
// expect: denied EPERM ENOTCAPABLE EACCES ENOENT EINVAL EILSEQ
package escape

import (
	"strings"

	. "github.com/exthost/exthost/testdata/hostile/attack"
)

func init() {
	Register("absolute_path", func() {
		for _, path := range []string{"/etc/passwd", "//etc/passwd", "/../etc/passwd", "/proc/self/environ", "etc/passwd", "proc/self/environ",
			"workspace/in.txt\x00/../../outside/secret.txt", "workspace\\..\\..\\outside\\secret.txt", "C:\\outside\\secret.txt", "C:outside",
			"workspace/\xff\xfe/../../../outside/secret.txt", "", "workspace/..\x00", "\x00"} {
			_, errno := Open(Root, path, Follow, 0, RightRead, 0)
			Errnof(errno, "open %q", path)
			if strings.ContainsAny(path, "\\:") {
				continue // on a Unix host an ordinary name, which may be made in the working folder
			}
			_, errno = Open(Root, path, Follow, OCreat, RightWrite, 0)
			Errnof(errno, "create %q", path)
		}
	})
}
