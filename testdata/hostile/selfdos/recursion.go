//go:build wasip1

// A call of itself without end, in a language that grows its stack on the heap: memory ends it.
//
// expect: limit memory
package selfdos

import . "github.com/exthost/exthost/testdata/hostile/attack"

func deeper(n int, pad [256]byte) int {
	pad[n%256]++
	return deeper(n+1, pad) + int(pad[0])
}

func init() { Register("recursion", func() { deeper(0, [256]byte{}) }) }
