//go:build wasip1

// One line of 300 MiB, written in pieces with no newline.
//
// expect: limit output
package hostdos

import (
	"bytes"
	"os"

	. "github.com/exthost/exthost/testdata/hostile/attack"
)

func init() {
	Register("one_line", func() {
		piece := bytes.Repeat([]byte("z"), 1<<20)
		for range 300 {
			_, _ = os.Stdout.Write(piece) // all of it: a raw write takes what the pipe holds
		}
	})
}
