// A thousand tables just below what one may be.
//
// class: hostdos
// expect: limit module|limit memory
package modules

func init() {
	register("table_many", func() []byte {
		s := command()
		for range 1000 {
			s.tables = append(s.tables, append([]byte{0x70, 0}, number(99_999)...))
		}
		return s.bytes()
	})
}
