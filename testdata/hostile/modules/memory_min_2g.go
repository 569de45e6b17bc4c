// A module that cannot begin with less than 2 GiB.
//
// class: selfdos
// expect: limit memory
package modules

func init() {
	register("memory_min_2g", func() []byte {
		s := command()
		s.memories = [][]byte{append([]byte{0}, number(32768)...)}
		return s.bytes()
	})
}
