// A loop in the start function: instantiation counts into the run's time.
//
// class: hostdos
// time: 1s
// expect: limit time
package modules

func init() {
	register("loop_start", func() []byte {
		s := command(opLoop, void, opBr, 0, opEnd)
		s.types, s.bodies = append(s.types, typeNothing), append(s.bodies, body{})
		s.start, s.main = 0, 1
		return s.bytes()
	})
}
