// A function that is offered, with a type that it does not have.
//
// class: exfil
// expect: refused import path_open
package modules

func init() {
	register("import_signature", func() []byte {
		s := command()
		s.main = 1
		s.imports = []importEntry{{module: "wasi_snapshot_preview1", name: "path_open", kind: 0, rest: []byte{typeNothing}}}
		return s.bytes()
	})
}
