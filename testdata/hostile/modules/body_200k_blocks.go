// One function of 200,000 blocks with a conditional branch each: 1.4 MB that keep a compiler busy for many seconds.
//
// class: hostdos
// expect: limit module
package modules

func init() {
	register("body_200k_blocks", func() []byte {
		s := command(repeat(200_000, opBlock, void, opLocalGet, 0, opBrIf, 0, opEnd)...)
		s.bodies[0].locals = 1
		return s.bytes()
	})
}
