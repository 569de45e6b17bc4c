//go:build wasip1

// A hundred thousand different refusals: the report stays small and says so.
//
// expect: denied ENOTCAPABLE EPERM EROFS EACCES ENOENT
package hostdos

import (
	"strconv"

	. "github.com/exthost/exthost/testdata/hostile/attack"
)

func init() {
	Register("refusal_storm", func() {
		var errno uint32
		for n := range 100_000 {
			_, errno = Open(Root, "etc/"+strconv.Itoa(n), 0, OCreat, RightWrite, 0)
			if errno == 0 {
				break
			}
		}
		Errnof(errno, "the last of many")
	})
}
