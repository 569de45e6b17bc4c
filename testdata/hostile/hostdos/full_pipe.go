//go:build wasip1

// A write to a standard output that nobody reads.
//
// stdout: unread
// time: 1s
// expect: limit time
package hostdos

import (
	"bytes"

	. "github.com/exthost/exthost/testdata/hostile/attack"
)

func init() {
	Register("full_pipe", func() {
		// Below the cap on output, above what a pipe and the host's buffers hold; then silence.
		line := bytes.Repeat([]byte("y"), 1024)
		for range 200 {
			Write(1, line)
		}
		for {
			PollOneoff(Pointer(sleepHour()), Pointer(make([]byte, 32)), 1, Cell())
		}
	})
}

func sleepHour() []byte {
	s := make([]byte, 48)
	s[16] = 1
	s[30] = 3 // 3<<48 nanoseconds
	return s
}
