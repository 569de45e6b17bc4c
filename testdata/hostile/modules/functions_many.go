// More functions than any real program has.
//
// class: hostdos
// expect: limit module
package modules

func init() {
	register("functions_many", func() []byte {
		s := shape{start: -1, memories: [][]byte{{0, 1}}}
		for range 1_000_000 {
			s.types = append(s.types, typeNothing)
			s.bodies = append(s.bodies, body{})
		}
		return s.bytes()
	})
}
