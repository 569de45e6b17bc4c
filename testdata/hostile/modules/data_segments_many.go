// A million data segments of one byte.
//
// class: hostdos
// expect: limit module
package modules

func init() {
	register("data_segments_many", func() []byte {
		s := command()
		for range 1_000_000 {
			s.data = append(s.data, []byte{0, opI32Const, 0, opEnd, 1, 'x'})
		}
		return s.bytes()
	})
}
