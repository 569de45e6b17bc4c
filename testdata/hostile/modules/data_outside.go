// A data segment for an address beyond the memory.
//
// class: escape
// expect: refused outside of the memory
package modules

func init() {
	register("data_outside", func() []byte {
		s := command()
		s.data = [][]byte{append(append([]byte{0, opI32Const}, signed(-8)...), opEnd, 4, 1, 2, 3, 4)}
		return s.bytes()
	})
}
