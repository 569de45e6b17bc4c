// A loop in an exported allocator, which a host that passes data through it would call.
//
// class: selfdos
// expect: exit 0
package modules

func init() {
	register("loop_allocator", func() []byte {
		s := command()
		s.types = append(s.types, typeTwo, typeNothing)
		s.bodies = append(s.bodies, body{code: []byte{opLoop, void, opBr, 0, opEnd, opUnreachable}}, body{code: []byte{opLoop, void, opBr, 0, opEnd}})
		s.exports = [][]byte{function("cabi_realloc", 1), function("malloc", 1), function("_dealloc", 2), function("__wasm_call_ctors", 2)}
		return s.bytes()
	})
}
