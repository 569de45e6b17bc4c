// A hundred thousand functions.
//
// class: hostdos
// expect: exit 0|limit module
package modules

func init() {
	register("functions_100k", func() []byte {
		s := shape{start: -1, memories: [][]byte{{0, 1}}}
		for range 100_000 {
			s.types = append(s.types, typeNothing)
			s.bodies = append(s.bodies, body{})
		}
		return s.bytes()
	})
}
