// A memory shared between threads.
//
// class: selfdos
// expect: refused module
package modules

func init() {
	register("memory_shared", func() []byte {
		s := command()
		s.memories = [][]byte{{3, 1, 2}}
		return s.bytes()
	})
}
