// A table grown in a loop until growing is refused: it ends early, or the instruction is not offered at all.
//
// class: hostdos
// expect: exit 0|refused module
package modules

func init() {
	register("table_grow", func() []byte {
		code := []byte{opLoop, void, 0xd0, 0x70, opI32Const}
		code = append(code, signed(1000)...)
		code = append(code, 0xfc, 15, 0, opI32Const)
		code = append(code, signed(-1)...)
		code = append(code, opI32Ne, opBrIf, 0, opEnd)
		s := command(code...)
		s.tables = [][]byte{{0x70, 0, 1}}
		return s.bytes()
	})
}
