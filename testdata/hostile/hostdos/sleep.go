//go:build wasip1

// A sleep of an hour ends with the run.
//
// time: 1s
// expect: limit time
package hostdos

import (
	"time"

	. "github.com/exthost/exthost/testdata/hostile/attack"
)

func init() { Register("sleep", func() { time.Sleep(time.Hour) }) }
