// A component interface for HTTP.
//
// class: exfil
// expect: refused import wasi:http
package modules

func init() {
	register("import_http", func() []byte {
		s := command()
		s.main = 1
		s.imports = []importEntry{{module: "wasi:http/outgoing-handler@0.2.0", name: "handle", kind: 0, rest: []byte{typeNothing}}}
		return s.bytes()
	})
}
