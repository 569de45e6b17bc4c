// A table that the host is to bring along.
//
// class: exfil
// expect: refused import env table
package modules

func init() {
	register("import_table", func() []byte {
		s := command()
		s.imports = []importEntry{{module: "env", name: "table", kind: 1, rest: []byte{0x70, 0, 1}}}
		return s.bytes()
	})
}
