//go:build wasip1

// A loop of host calls that each return at once.
//
// time: 1s
// expect: limit time
package hostdos

import . "github.com/exthost/exthost/testdata/hostile/attack"

func init() {
	Register("busy_poll", func() {
		for {
			Lstat("workspace/keep.txt")
			Lstat("workspace/../../../outside/secret.txt")
		}
	})
}
