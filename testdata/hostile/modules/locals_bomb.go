// A function of fifty million locals, declared in six bytes.
//
// class: hostdos
// expect: limit module
package modules

func init() {
	register("locals_bomb", func() []byte {
		s := command()
		s.bodies[0].locals = 50_000_000
		return s.bytes()
	})
}
