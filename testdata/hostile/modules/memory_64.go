// A memory with 64-bit addresses.
//
// class: selfdos
// expect: refused module
package modules

func init() {
	register("memory_64", func() []byte {
		s := command()
		s.memories = [][]byte{{4, 1}}
		return s.bytes()
	})
}
