//go:build wasip1

// A read of a standard input that stays open and says nothing.
//
// stdin: silent
// time: 1s
// expect: limit time
package hostdos

import (
	"io"
	"os"

	. "github.com/exthost/exthost/testdata/hostile/attack"
)

func init() { Register("silent_stdin", func() { _, _ = io.ReadAll(os.Stdin) }) }
