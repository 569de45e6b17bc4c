// A load just below 4 GiB, where an engine without bounds checks relies on unmapped pages.
//
// class: escape
// expect: trap memory-out-of-bounds
package modules

func init() {
	register("trap_load", func() []byte {
		code := append([]byte{opI32Const}, signed(-4)...)
		code = append(code, opI32Load, 2)
		return command(append(append(code, number(0xffff_fff0)...), opDrop)...).bytes()
	})
}
