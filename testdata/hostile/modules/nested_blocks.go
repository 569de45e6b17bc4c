// Twenty thousand blocks in each other, which a recursive compiler answers with its stack.
//
// class: hostdos
// expect: limit module
package modules

func init() {
	register("nested_blocks", func() []byte {
		code := repeat(20_000, opBlock, void)
		return command(append(code, repeat(20_000, opEnd)...)...).bytes()
	})
}
