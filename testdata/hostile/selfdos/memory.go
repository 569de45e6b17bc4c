//go:build wasip1

// Memory taken until there is none: the report says memory, not "exit 2".
//
// expect: limit memory
package selfdos

import . "github.com/exthost/exthost/testdata/hostile/attack"

func init() {
	Register("memory", func() {
		var all [][]byte
		for {
			b := make([]byte, 1<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			all = append(all, b)
		}
	})
}
