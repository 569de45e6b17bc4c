// A memory that the host is to bring along.
//
// class: exfil
// expect: refused import env memory
package modules

func init() {
	register("import_memory", func() []byte {
		s := command()
		s.memories = nil
		s.imports = []importEntry{{module: "env", name: "memory", kind: 2, rest: []byte{0, 1}}}
		return s.bytes()
	})
}
