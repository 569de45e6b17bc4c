package files

import (
	"strconv"
	"strings"
)

// validMode tells whether chmod would understand mode. Modes are not kept: see the package comment.
func validMode(mode string) bool {
	_, ok := modeOf(mode)
	return ok
}

// modeOf is what chmod would make of a file without any bits.
func modeOf(mode string) (bits uint32, ok bool) {
	if mode == "" {
		return 0, false
	}
	if strings.Trim(mode, "01234567") == "" {
		n, err := strconv.ParseUint(mode, 8, 32)
		return uint32(n), err == nil && n <= 0o7777
	}
	for _, clause := range strings.Split(mode, ",") {
		rest := strings.TrimLeft(clause, "ugoa")
		who := classes(clause[:len(clause)-len(rest)])
		if rest == "" {
			return 0, false
		}
		for rest != "" {
			op := rest[0]
			if op != '+' && op != '-' && op != '=' {
				return 0, false
			}
			rest = rest[1:]
			var set uint32
			switch {
			case rest != "" && strings.IndexByte("ugo", rest[0]) >= 0:
				from := bits >> (3 * strings.IndexByte("ogu", rest[0]))
				set = from & 7 * 0o111 & who
				rest = rest[1:]
			case rest != "" && rest[0] >= '0' && rest[0] <= '7':
				digits := rest[:len(rest)-len(strings.TrimLeft(rest, "01234567"))]
				n, err := strconv.ParseUint(digits, 8, 32)
				if err != nil || n > 0o7777 {
					return 0, false
				}
				set, rest = uint32(n), rest[len(digits):]
			default:
				letters := rest[:len(rest)-len(strings.TrimLeft(rest, "rwxXst"))]
				rest = rest[len(letters):]
				for i := range len(letters) {
					switch letters[i] {
					case 'r':
						set |= 0o444 & who
					case 'w':
						set |= 0o222 & who
					case 'x', 'X':
						set |= 0o111 & who
					case 's':
						set |= 0o6000 & who
					case 't':
						set |= 0o1000
					}
				}
			}
			switch op {
			case '+':
				bits |= set
			case '-':
				bits &^= set
			default:
				bits = bits&^(who&0o777) | set
			}
		}
	}
	return bits, true
}

// classes are the bits that u, g, o and a stand for; none is all.
func classes(who string) uint32 {
	if who == "" || strings.Contains(who, "a") {
		return 0o6777
	}
	var bits uint32
	for i := range len(who) {
		switch who[i] {
		case 'u':
			bits |= 0o4700
		case 'g':
			bits |= 0o2070
		case 'o':
			bits |= 0o007
		}
	}
	return bits
}
