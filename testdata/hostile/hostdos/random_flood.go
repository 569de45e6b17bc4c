//go:build wasip1

// Random bytes asked for in the largest pieces that fit, without end: the work counts against the guest's own time.
//
// time: 1s
// expect: limit time
package hostdos

import . "github.com/exthost/exthost/testdata/hostile/attack"

func init() {
	Register("random_flood", func() {
		b := Pointer(make([]byte, 32<<20))
		for {
			RandomGet(b, 32<<20)
		}
	})
}
