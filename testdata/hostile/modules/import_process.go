// A function that starts programs on some other hosts.
//
// class: exfil
// expect: refused import proc_exec
package modules

func init() {
	register("import_process", func() []byte {
		s := command()
		s.main = 1
		s.imports = []importEntry{{module: "wasix_32v1", name: "proc_exec", kind: 0, rest: []byte{typeTwo}}}
		return s.bytes()
	})
}
