// Sixty functions, each calling the next one twice: a loop without a loop, as the start function, before anything else runs.
//
// class: hostdos
// time: 1s
// expect: limit time
package modules

func init() {
	register("chain_start", func() []byte {
		s := chain(60)
		s.start, s.main = 0, 59
		return s.bytes()
	})
}
