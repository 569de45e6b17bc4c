//go:build wasip1

// A loop that never ends.
//
// time: 1s
// expect: limit time
package hostdos

import . "github.com/exthost/exthost/testdata/hostile/attack"

func init() {
	Register("spin", func() {
		for n := uint64(1); n != 0; n |= 1 {
		}
	})
}
