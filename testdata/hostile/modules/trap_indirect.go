// An indirect call through an entry that was never set.
//
// class: escape
// expect: trap bad-table-access
package modules

func init() {
	register("trap_indirect", func() []byte {
		s := command(opI32Const, 0, 0x11, typeNothing, 0)
		s.tables = [][]byte{{0x70, 0, 1}}
		return s.bytes()
	})
}
