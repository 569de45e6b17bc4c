// A loop in the function that a library's host calls first.
//
// class: hostdos
// time: 1s
// expect: limit time
package modules

func init() {
	register("loop_initialize", func() []byte {
		s := command(opLoop, void, opBr, 0, opEnd)
		s.main = -1
		s.exports = [][]byte{function("_initialize", 0)}
		return s.bytes()
	})
}
