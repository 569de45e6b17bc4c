// Two memories, of which only one is counted by whoever forgot that there can be two.
//
// class: selfdos
// expect: refused module
package modules

func init() {
	register("two_memories", func() []byte {
		s := command()
		s.memories = [][]byte{{0, 1}, {0, 1}}
		return s.bytes()
	})
}
