//go:build wasip1

// The same on standard error, in bytes that are not UTF-8 and would move a terminal.
//
// expect: limit output
package hostdos

import (
	"bytes"

	. "github.com/exthost/exthost/testdata/hostile/attack"
)

func init() {
	Register("error_storm", func() {
		line := bytes.Repeat([]byte("\x1b[2J\x1b]0;owned\x07\xff\xfe\x00"), 4096)
		for {
			Write(2, line)
		}
	})
}
