// The same below the cap on a function's size: the compilation ends, or is ended, by itself.
//
// class: hostdos
// expect: exit 0|limit time|limit module
package modules

func init() {
	register("body_below_cap", func() []byte {
		s := command(repeat(140_000, opBlock, void, opLocalGet, 0, opBrIf, 0, opEnd)...)
		s.bodies[0].locals = 1
		return s.bytes()
	})
}
