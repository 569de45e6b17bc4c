// A table of a hundred million entries, asked for in five bytes and paid for by the host.
//
// class: hostdos
// expect: limit module|limit memory
package modules

func init() {
	register("table_100m", func() []byte {
		s := command()
		s.tables = [][]byte{append([]byte{0x70, 0}, number(100_000_000)...)}
		return s.bytes()
	})
}
