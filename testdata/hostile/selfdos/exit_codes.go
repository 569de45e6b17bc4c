//go:build wasip1

// An exit code beyond 255 must not become a 0 for whoever asked.
//
// expect: exit 1
package selfdos

import (
	"os"

	. "github.com/exthost/exthost/testdata/hostile/attack"
)

func init() { Register("exit_codes", func() { os.Exit(256) }) }
