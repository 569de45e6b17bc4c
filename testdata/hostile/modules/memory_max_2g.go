// A module that may have 2 GiB under a smaller limit: it loads, and growing says no at the limit.
//
// class: selfdos
// expect: exit 0
package modules

func init() {
	register("memory_max_2g", func() []byte {
		code := []byte{opLoop, void, opI32Const, 1, opMemoryGrow, 0, opI32Const}
		code = append(code, signed(-1)...)
		code = append(code, opI32Ne, opBrIf, 0, opEnd)
		s := command(code...)
		s.memories = [][]byte{append([]byte{1, 1}, number(32768)...)}
		return s.bytes()
	})
}
