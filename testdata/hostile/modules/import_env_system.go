// A function of the host's C library.
//
// class: exfil
// expect: refused import env system
package modules

func init() {
	register("import_env_system", func() []byte {
		s := command()
		s.main = 1
		s.imports = []importEntry{{module: "env", name: "system", kind: 0, rest: []byte{typeTwo}}}
		return s.bytes()
	})
}
