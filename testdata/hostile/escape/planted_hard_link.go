//go:build wasip1

// A file of the workspace that is one file with another outside (a package store does this): it may be read, not written.
//
// expect: denied EPERM ENOTCAPABLE EACCES EMLINK EROFS
package escape

import . "github.com/exthost/exthost/testdata/hostile/attack"

func init() {
	Register("planted_hard_link", func() {
		path := "workspace/hard.txt"
		_, errno := Open(Root, path, 0, 0, RightRead, 0)
		Need(errno, "read %s", path)
		_, errno = Open(Root, path, 0, 0, RightWrite, 0)
		Errnof(errno, "write %s", path)
		_, errno = Open(Root, path, 0, OTrunc, RightRead|RightWrite, 0)
		Errnof(errno, "truncate %s", path)
		_, errno = Open(Root, path, 0, OTrunc, RightRead, 0)
		Errnof(errno, "truncate %s opened to read", path)
		_, errno = Open(Root, path, 0, 0, RightWrite, FlagAppend)
		Errnof(errno, "append to %s", path)
	})
}
