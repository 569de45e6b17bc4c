// A branch table of half a million targets.
//
// class: hostdos
// expect: exit 0|limit module|limit time
package modules

func init() {
	register("branch_table", func() []byte {
		code := append([]byte{opBlock, void, opI32Const, 0, 0x0e}, number(500_000)...)
		code = append(append(code, make([]byte, 500_000)...), 0, opEnd)
		return command(code...).bytes()
	})
}
