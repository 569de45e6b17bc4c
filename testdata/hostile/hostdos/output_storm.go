//go:build wasip1

// Lines of 64 KiB without end.
//
// expect: limit output
package hostdos

import (
	"bytes"

	. "github.com/exthost/exthost/testdata/hostile/attack"
)

func init() {
	Register("output_storm", func() {
		line := append(bytes.Repeat([]byte("y"), 64<<10), '\n')
		for {
			Write(1, line)
		}
	})
}
