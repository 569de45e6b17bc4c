// A module of seventy megabytes, nearly all of it padding.
//
// class: hostdos
// expect: limit module|refused too big
package modules

func init() {
	register("module_70m", func() []byte {
		s := command()
		s.custom = make([]byte, 70<<20)
		return s.bytes()
	})
}
