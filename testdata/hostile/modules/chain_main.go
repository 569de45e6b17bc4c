// The same chain of calls from _start.
//
// class: hostdos
// time: 1s
// expect: limit time
package modules

func init() {
	register("chain_main", func() []byte {
		s := chain(60)
		s.main = 0
		return s.bytes()
	})
}
