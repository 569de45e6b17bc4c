// A loop in _start that calls nothing.
//
// class: hostdos
// time: 1s
// expect: limit time
package modules

func init() {
	register("loop_main", func() []byte {
		return command(opLoop, void, opBr, 0, opEnd).bytes()
	})
}
