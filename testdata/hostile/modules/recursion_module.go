// A function that calls itself: the engine's own stack ends it.
//
// class: selfdos
// expect: trap stack-overflow
package modules

func init() {
	register("recursion_module", func() []byte {
		return command(opCall, 0).bytes()
	})
}
