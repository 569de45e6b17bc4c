// Bytes that only begin like a module.
//
// class: selfdos
// expect: refused module
package modules

func init() {
	register("garbage", func() []byte {
		return []byte("\x00asm\x01\x00\x00\x00\x0a\xff\xff\xff\xff\x0f")
	})
}
