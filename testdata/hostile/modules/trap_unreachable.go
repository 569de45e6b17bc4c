// The instruction that ends a program.
//
// class: selfdos
// expect: trap unreachable
package modules

func init() {
	register("trap_unreachable", func() []byte {
		return command(opUnreachable).bytes()
	})
}
