// A module without an entry: nothing runs, and it is said.
//
// class: selfdos
// expect: refused module|exit 0
package modules

func init() {
	register("no_entry", func() []byte {
		s := command()
		s.main = -1
		return s.bytes()
	})
}
