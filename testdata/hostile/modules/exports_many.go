// Half a million exports of one function.
//
// class: hostdos
// expect: exit 0|limit module
package modules

import "strconv"

func init() {
	register("exports_many", func() []byte {
		s := command()
		for i := range 500_000 {
			s.exports = append(s.exports, function(strconv.Itoa(i), 0))
		}
		return s.bytes()
	})
}
