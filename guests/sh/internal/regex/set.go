package regex

import (
	"unicode"
	"unicode/utf8"
)

// set is a set of characters.
type set struct {
	ascii   [2]uint64 // the answer for ASCII, with neg and fold in it
	ranges  []rune    // from, to, from, to
	classes []class
	neg     bool
	fold    bool
}

type class struct {
	is  func(rune) bool
	not bool
}

func (s *set) add(from, to rune) { s.ranges = append(s.ranges, from, to) }

// finish computes the part for ASCII. But a set that excludes characters may not match a line end.
func (s *set) finish(notNewline bool) *set {
	for r := range rune(utf8.RuneSelf) {
		if s.has(r) && !(s.neg && notNewline && r == '\n') {
			s.ascii[r>>6] |= 1 << (r & 63)
		}
	}
	return s
}

func (s *set) has(r rune) bool {
	if s.in(r) {
		return !s.neg
	}
	if isInvalid(r) {
		return false
	}
	if s.fold {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			if s.in(f) {
				return !s.neg
			}
		}
	}
	return s.neg
}

// isInvalid reports whether r stands for a byte that is not UTF-8.
func isInvalid(r rune) bool { return r >= invalid && r < invalid+256 }

func (s *set) in(r rune) bool {
	for i := 0; i < len(s.ranges); i += 2 {
		if s.ranges[i] <= r && r <= s.ranges[i+1] {
			return true
		}
	}
	for _, c := range s.classes {
		if c.is(r) != c.not {
			return true
		}
	}
	return false
}

// single is the only character of the set, for sets that are one.
func (s *set) single() (rune, bool) {
	if len(s.ranges) == 2 && s.ranges[0] == s.ranges[1] && len(s.classes) == 0 && !s.neg && !s.fold {
		return s.ranges[0], true
	}
	return 0, false
}

// named returns a POSIX class. Outside ASCII it is Unicode's, unless ascii.
func named(name string, ascii bool) (func(rune) bool, bool) {
	var narrow func(rune) bool
	var wide func(rune) bool
	between := func(pairs ...rune) func(rune) bool {
		return func(r rune) bool {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] <= r && r <= pairs[i+1] {
					return true
				}
			}
			return false
		}
	}
	switch name {
	case "alpha":
		narrow, wide = between('a', 'z', 'A', 'Z'), unicode.IsLetter
	case "digit":
		narrow = between('0', '9')
	case "alnum":
		narrow, wide = between('a', 'z', 'A', 'Z', '0', '9'), func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	case "upper":
		narrow, wide = between('A', 'Z'), unicode.IsUpper
	case "lower":
		narrow, wide = between('a', 'z'), unicode.IsLower
	case "space":
		narrow, wide = between('\t', '\r', ' ', ' '), func(r rune) bool { return unicode.IsSpace(r) && r != 0x85 && r != 0xA0 }
	case "blank":
		narrow, wide = between('\t', '\t', ' ', ' '), func(r rune) bool { return unicode.Is(unicode.Zs, r) && r != 0xA0 }
	case "punct":
		narrow, wide = between('!', '/', ':', '@', '[', '`', '{', '~'), func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }
	case "print":
		narrow, wide = between(' ', '~'), unicode.IsPrint
	case "graph":
		narrow, wide = between('!', '~'), unicode.IsGraphic
	case "cntrl":
		narrow, wide = between(0, 31, 127, 127), unicode.IsControl
	case "xdigit":
		narrow = between('0', '9', 'a', 'f', 'A', 'F')
	case "word":
		narrow = IsWord
	default:
		return nil, false
	}
	return func(r rune) bool {
		if r < utf8.RuneSelf || ascii || wide == nil {
			return r < utf8.RuneSelf && narrow(r)
		}
		return !isInvalid(r) && wide(r)
	}, true
}

// shorthand returns the set of \w, \d, \s and so on; upper case excludes. ascii is Perl's way.
func shorthand(letter rune, ascii, single bool) (*set, bool) {
	s := &set{}
	var is func(rune) bool
	switch unicode.ToLower(letter) {
	case 'w':
		is = func(r rune) bool { return IsWord(r) && (r < utf8.RuneSelf || !ascii && !single) }
	case 's':
		is, _ = named("space", ascii || single)
	case 'd':
		is, _ = named("digit", true)
	case 'h':
		is, _ = named("blank", ascii || single)
	case 'v':
		is = func(r rune) bool { return '\n' <= r && r <= '\r' }
	default:
		return nil, false
	}
	s.classes = []class{{is, false}}
	s.neg = unicode.IsUpper(letter)
	return s, true
}

// property returns the characters of Unicode's category or script.
func property(name string) (func(rune) bool, bool) {
	if name == "Any" {
		return func(rune) bool { return true }, true
	}
	if name == "L&" {
		return func(r rune) bool { return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt) }, true
	}
	t := unicode.Categories[name]
	if t == nil {
		t = unicode.Scripts[name]
	}
	if t == nil {
		return nil, false
	}
	return func(r rune) bool { return unicode.Is(t, r) }, true
}
