// Package glob matches names against patterns as the C library's fnmatch does.
package glob

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Flag changes how patterns match.
type Flag uint8

const (
	Fold     Flag = 1 << iota // capital and small letters are the same
	Path                      // no wildcard matches a slash
	NoEscape                  // a backslash is itself
)

// Match tells whether the whole of name matches pattern: * ? [a-z] [!a] [[:alpha:]] and \ before any of them.
// A dot at the start is matched as any other character.
func Match(pattern, name string, flags Flag) bool {
	// Only the last star needs another try: where an earlier one could match more, so can a later one.
	star, back := -1, 0
	p, n := 0, 0
	for n < len(name) || p < len(pattern) {
		if p < len(pattern) && pattern[p] == '*' {
			star, back = p, n
			p++
			continue
		}
		if p < len(pattern) && n < len(name) {
			if width, size := one(pattern[p:], name[n:], flags); width > 0 {
				p += width
				n += size
				continue
			}
		}
		if star < 0 || back >= len(name) || flags&Path != 0 && name[back] == '/' {
			return false
		}
		_, size := utf8.DecodeRuneInString(name[back:])
		back += size
		p, n = star+1, back
	}
	return true
}

// one matches the first element of pattern with the first character of name: the lengths of both, or 0.
func one(pattern, name string, flags Flag) (width, size int) {
	r, size := utf8.DecodeRuneInString(name)
	if r == utf8.RuneError && size == 1 {
		r = -rune(name[0]) // a byte that is no character equals only itself
	}
	switch pattern[0] {
	case '?':
		if r == '/' && flags&Path != 0 {
			return 0, 0
		}
		return 1, size
	case '[':
		if end, ok := class(pattern, r, flags); end > 0 {
			if !ok || r == '/' && flags&Path != 0 {
				return 0, 0
			}
			return end, size
		}
	case '\\':
		if flags&NoEscape == 0 {
			if len(pattern) == 1 {
				return 0, 0
			}
			width, pattern = 1, pattern[1:]
		}
	}
	want, n := utf8.DecodeRuneInString(pattern)
	if want == utf8.RuneError && n == 1 {
		want = -rune(pattern[0])
	}
	if want == r || flags&Fold != 0 && fold(want) == fold(r) {
		return width + n, size
	}
	return 0, 0
}

func fold(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }

// class matches a bracket expression: its length, 0 when it is none, and whether r is in it.
func class(pattern string, r rune, flags Flag) (end int, ok bool) {
	i := 1
	negate := false
	if i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^') {
		negate = true
		i++
	}
	in := func(lo, hi rune) bool {
		return lo <= r && r <= hi || flags&Fold != 0 && (lo <= unicode.ToLower(r) && unicode.ToLower(r) <= hi || lo <= unicode.ToUpper(r) && unicode.ToUpper(r) <= hi)
	}
	take := func() (rune, bool) {
		if i < len(pattern) && pattern[i] == '\\' && flags&NoEscape == 0 {
			i++
		}
		if i >= len(pattern) {
			return 0, false
		}
		if strings.HasPrefix(pattern[i:], "[.") || strings.HasPrefix(pattern[i:], "[=") {
			if at := strings.Index(pattern[i+2:], pattern[i+1:i+2]+"]"); at > 0 {
				c, _ := utf8.DecodeRuneInString(pattern[i+2:])
				i += at + 4
				return c, true
			}
		}
		c, n := utf8.DecodeRuneInString(pattern[i:])
		if c == utf8.RuneError && n == 1 {
			c = -rune(pattern[i])
		}
		i += n
		return c, true
	}
	for first := true; ; first = false {
		if i >= len(pattern) {
			return 0, false
		}
		if pattern[i] == ']' && !first {
			return i + 1, ok != negate
		}
		if strings.HasPrefix(pattern[i:], "[:") {
			if at := strings.Index(pattern[i+2:], ":]"); at >= 0 {
				if named(pattern[i+2:i+2+at], r, flags) {
					ok = true
				}
				i += at + 4
				continue
			}
		}
		lo, good := take()
		if !good {
			return 0, false
		}
		hi := lo
		if i+1 < len(pattern) && pattern[i] == '-' && pattern[i+1] != ']' {
			i++
			if hi, good = take(); !good {
				return 0, false
			}
		}
		if in(lo, hi) {
			ok = true
		}
	}
}

func named(name string, r rune, flags Flag) bool {
	if r < 0 {
		return false
	}
	switch name {
	case "alpha":
		return unicode.IsLetter(r)
	case "digit":
		return r >= '0' && r <= '9'
	case "alnum":
		return unicode.IsLetter(r) || unicode.IsDigit(r)
	case "upper":
		return unicode.IsUpper(r) || flags&Fold != 0 && unicode.IsLower(r)
	case "lower":
		return unicode.IsLower(r) || flags&Fold != 0 && unicode.IsUpper(r)
	case "space":
		return unicode.IsSpace(r)
	case "blank":
		return r == ' ' || r == '\t'
	case "punct":
		return r > ' ' && r < 0x7f && !unicode.IsLetter(r) && !unicode.IsDigit(r) || r >= 0x80 && (unicode.IsPunct(r) || unicode.IsSymbol(r))
	case "print":
		return unicode.IsPrint(r)
	case "graph":
		return unicode.IsPrint(r) && r != ' '
	case "cntrl":
		return unicode.IsControl(r)
	case "xdigit":
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F'
	}
	return false
}
