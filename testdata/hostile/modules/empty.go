// A file of no bytes.
//
// class: selfdos
// expect: refused module
package modules

func init() {
	register("empty", func() []byte {
		return []byte{}
	})
}
