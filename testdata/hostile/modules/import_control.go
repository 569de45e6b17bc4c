// Names with control bytes, for whoever prints them to a terminal.
//
// class: exfil
// expect: refused import
package modules

func init() {
	register("import_control", func() []byte {
		s := command()
		s.main = 1
		s.imports = []importEntry{{module: "env\x1b[2J", name: "x\x07\n\r", kind: 0, rest: []byte{typeNothing}}}
		return s.bytes()
	})
}
