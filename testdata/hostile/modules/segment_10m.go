// An element segment of ten million entries, for a table as large.
//
// class: hostdos
// expect: limit module|limit memory
package modules

func init() {
	register("segment_10m", func() []byte {
		s := command()
		s.tables = [][]byte{append([]byte{0x70, 0}, number(10_000_000)...)}
		segment := append([]byte{0, opI32Const, 0, opEnd}, number(10_000_000)...)
		s.elements = [][]byte{append(segment, make([]byte, 10_000_000)...)}
		return s.bytes()
	})
}
