//go:build wasip1

// Not an attack but the one who would suffer: it computes, writes and reads back, and must finish as if it were alone.
//
// expect: exit 0
package peerdos

import (
	"crypto/sha256"
	"fmt"
	"os"

	. "github.com/exthost/exthost/testdata/hostile/attack"
)

func init() {
	Register("neighbour", func() {
		sum := sha256.Sum256(nil)
		for n := range 200 {
			for range 100 {
				sum = sha256.Sum256(sum[:])
			}
			name := fmt.Sprintf("/workspace/part%d", n%10)
			if err := os.WriteFile(name, sum[:], 0o600); err != nil {
				Errorf(nil, "write: %v", err)
				os.Exit(1)
			}
			if b, err := os.ReadFile(name); err != nil || string(b) != string(sum[:]) {
				Errorf(nil, "read back: %v", err)
				os.Exit(1)
			}
		}
		fmt.Printf("%x\n", sum)
	})
}
