//go:build wasip1

// The same sleep asked of the host directly, with a clock time far in the future and in numbers near the end of their range.
//
// time: 1s
// expect: limit time
package hostdos

import (
	"encoding/binary"

	. "github.com/exthost/exthost/testdata/hostile/attack"
)

func init() {
	Register("sleep_absolute", func() {
		for _, when := range []uint64{1<<63 - 1, 1<<64 - 1, 1 << 62} {
			for {
				subscription := make([]byte, 48)
				binary.LittleEndian.PutUint32(subscription[16:], 1) // monotonic clock
				binary.LittleEndian.PutUint64(subscription[24:], when)
				binary.LittleEndian.PutUint16(subscription[40:], 1) // an absolute time
				in := Pointer(subscription)
				out := Pointer(make([]byte, 32))
				PollOneoff(in, out, 1, Cell())
			}
		}
	})
}
