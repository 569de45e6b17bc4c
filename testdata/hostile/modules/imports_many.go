// A hundred thousand imports of one function that is offered.
//
// class: hostdos
// expect: exit 0|limit module
package modules

func init() {
	register("imports_many", func() []byte {
		s := command()
		s.main = 100_000
		for range 100_000 {
			s.imports = append(s.imports, importEntry{module: "wasi_snapshot_preview1", name: "sched_yield", kind: 0, rest: []byte{typeI32}})
		}
		return s.bytes()
	})
}
