// A global that the host is to bring along.
//
// class: exfil
// expect: refused import env base
package modules

func init() {
	register("import_global", func() []byte {
		s := command()
		s.imports = []importEntry{{module: "env", name: "base", kind: 3, rest: []byte{0x7f, 0}}}
		return s.bytes()
	})
}
