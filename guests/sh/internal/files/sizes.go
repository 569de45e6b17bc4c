package files

import (
	"strconv"
	"strings"
	"unicode"
)

// human writes a size as -h does: rounded up, one decimal below ten.
func human(n int64, si bool) string {
	base := int64(1024)
	letters := "KMGTPE"
	if si {
		base, letters = 1000, "kMGTPE"
	}
	if n < base {
		return strconv.FormatInt(n, 10)
	}
	unit, at := base, 0
	for at+1 < len(letters) && n/unit >= base {
		unit *= base
		at++
	}
	for {
		whole, rest := n/unit, n%unit
		if whole < 10 {
			// Rounded up to a tenth; the product cannot overflow before exabytes.
			tenths := whole*10 + int64((float64(rest)*10+float64(unit)-1)/float64(unit))
			if tenths < 100 {
				return strconv.FormatInt(tenths/10, 10) + "." + strconv.FormatInt(tenths%10, 10) + letters[at:at+1]
			}
			return "10" + letters[at:at+1]
		}
		if rest > 0 {
			whole++
		}
		if whole < base || at+1 == len(letters) {
			return strconv.FormatInt(whole, 10) + letters[at:at+1]
		}
		unit *= base
		at++
	}
}

// blockSize reads a size like 1K, 10MB, 512 or M.
func blockSize(text string) (int64, bool) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	n := int64(1)
	if digits > 0 {
		var err error
		if n, err = strconv.ParseInt(text[:digits], 10, 64); err != nil {
			return 0, false
		}
	} else if text == "" {
		return 0, false
	}
	factor, ok := unitOf(text[digits:])
	if !ok || n <= 0 || n > (1<<63-1)/factor {
		return 0, false
	}
	return n * factor, true
}

// unitOf is the factor of a unit of GNU's: K and KiB are 1024, KB is 1000.
func unitOf(unit string) (int64, bool) {
	if unit == "" {
		return 1, true
	}
	at := strings.IndexByte("KMGTPE", unit[0]&^0x20)
	if at < 0 || unit[0] == 'e' {
		return 0, false
	}
	base := int64(1024)
	switch unit[1:] {
	case "", "iB":
	case "B":
		base = 1000
	default:
		return 0, false
	}
	n := int64(1)
	for range at + 1 {
		n *= base
	}
	return n, true
}

// width is how many columns text takes on a terminal.
func width(text string) int {
	n := 0
	for _, r := range text {
		switch {
		case r < ' ' || r == 0x7f || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case wide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

// wide tells whether r takes two columns: East Asian letters and pictures.
func wide(r rune) bool {
	return r >= 0x1100 && (r <= 0x115f || r == 0x2329 || r == 0x232a || r >= 0x2e80 && r <= 0xa4cf && r != 0x303f ||
		r >= 0xac00 && r <= 0xd7a3 || r >= 0xf900 && r <= 0xfaff || r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 ||
		r >= 0xffe0 && r <= 0xffe6 || r >= 0x1f300 && r <= 0x1f64f || r >= 0x1f900 && r <= 0x1f9ff || r >= 0x20000 && r <= 0x3fffd)
}

// compareVersions orders names as ls -v and sort -V do.
func compareVersions(a, b string) int {
	if a == b {
		return 0
	}
	if n := compareDots(a, b); n != 0 {
		return n
	}
	pa, pb := a[:len(a)-suffixLen(a)], b[:len(b)-suffixLen(b)]
	if pa == pb {
		pa, pb = a, b
	}
	if n := compareVersionParts(pa, pb); n != 0 {
		return n
	}
	return strings.Compare(a, b)
}

// compareDots puts "", ".", ".." and hidden names before others.
func compareDots(a, b string) int {
	rank := func(s string) int {
		switch {
		case s == "":
			return 0
		case s == ".":
			return 1
		case s == "..":
			return 2
		case s[0] == '.':
			return 3
		}
		return 4
	}
	return rank(a) - rank(b)
}

// suffixLen is the length of what looks like extensions: (\.[A-Za-z~][A-Za-z0-9~]*)*$.
func suffixLen(s string) int {
	end := len(s)
	for {
		at := strings.LastIndexByte(s[:end], '.')
		if at < 0 || at+1 >= end {
			break
		}
		part := s[at+1 : end]
		if !(letter(part[0]) || part[0] == '~') || strings.IndexFunc(part, func(r rune) bool {
			return !(r < 0x80 && (letter(byte(r)) || digit(byte(r))) || r == '~')
		}) >= 0 {
			break
		}
		end = at
	}
	return len(s) - end
}

func letter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }
func digit(b byte) bool  { return b >= '0' && b <= '9' }

func compareVersionParts(a, b string) int {
	rank := func(s string, i int) int {
		switch {
		case i == len(s):
			return -1
		case s[i] == '~':
			return -2
		case digit(s[i]):
			return 0
		case letter(s[i]):
			return int(s[i])
		}
		return int(s[i]) + 256
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		for i < len(a) && !digit(a[i]) || j < len(b) && !digit(b[j]) {
			x, y := rank(a, i), rank(b, j)
			if x != y {
				return x - y
			}
			i++
			j++
		}
		for i < len(a) && a[i] == '0' {
			i++
		}
		for j < len(b) && b[j] == '0' {
			j++
		}
		first := 0
		for i < len(a) && j < len(b) && digit(a[i]) && digit(b[j]) {
			if first == 0 {
				first = int(a[i]) - int(b[j])
			}
			i++
			j++
		}
		if i < len(a) && digit(a[i]) {
			return 1
		}
		if j < len(b) && digit(b[j]) {
			return -1
		}
		if first != 0 {
			return first
		}
	}
	return 0
}
