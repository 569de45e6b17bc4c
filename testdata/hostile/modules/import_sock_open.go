// A socket function that some other hosts add to preview 1.
//
// class: exfil
// expect: refused import sock_open
package modules

func init() {
	register("import_sock_open", func() []byte {
		s := command()
		s.main = 1
		s.imports = []importEntry{{module: "wasi_snapshot_preview1", name: "sock_open", kind: 0, rest: []byte{typeTwo}}}
		return s.bytes()
	})
}
