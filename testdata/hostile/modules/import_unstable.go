// The forerunner of preview 1.
//
// class: exfil
// expect: refused import wasi_unstable
package modules

func init() {
	register("import_unstable", func() []byte {
		s := command()
		s.main = 1
		s.imports = []importEntry{{module: "wasi_unstable", name: "args_sizes_get", kind: 0, rest: []byte{typeTwo}}}
		return s.bytes()
	})
}
