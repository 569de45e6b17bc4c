// A division by zero.
//
// class: selfdos
// expect: trap integer-divide-by-zero
package modules

func init() {
	register("trap_divide", func() []byte {
		return command(opI32Const, 1, opI32Const, 0, opI32DivS, opDrop).bytes()
	})
}
