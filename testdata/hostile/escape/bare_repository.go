//go:build wasip1

// HEAD, objects and refs side by side make any folder a repository whose configuration git obeys. The piece that
// completes it is refused, in whatever order they come.
//
// expect: denied EPERM ENOTCAPABLE EACCES
package escape

import . "github.com/exthost/exthost/testdata/hostile/attack"

func file(path string) uint32 {
	fd, errno := Open(Root, path, 0, OCreat, RightWrite, 0)
	if errno == 0 {
		FDClose(fd)
	}
	return errno
}

func init() {
	Register("bare_repository", func() {
		Need(Mkdir("workspace/one"), "mkdir")
		Need(Mkdir("workspace/one/objects"), "mkdir objects")
		Need(Mkdir("workspace/one/refs"), "mkdir refs")
		Errnof(file("workspace/one/HEAD"), "HEAD beside objects and refs")

		Need(Mkdir("workspace/two"), "mkdir")
		Need(file("workspace/two/HEAD"), "HEAD")
		Need(Mkdir("workspace/two/objects"), "mkdir objects")
		Errnof(Mkdir("workspace/two/refs"), "refs beside HEAD and objects")
		Need(Mkdir("workspace/two/spare"), "mkdir spare")
		Errnof(Rename("workspace/two/spare", "workspace/two/refs"), "rename to refs beside HEAD and objects")
		Errnof(Symlink("spare", "workspace/two/refs"), "link refs beside HEAD and objects")
	})
}
