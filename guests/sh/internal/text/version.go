package text

// compareVersions orders as version sort does: numbers within names by their value, "~" before everything, and file
// name extensions only where the rest is equal.
func compareVersions(a, b string) int {
	if a == "" || b == "" {
		return sign(len(a) - len(b))
	}
	// "." comes first, then "..", then other hidden names, then the others.
	if ra, rb := dotRank(a), dotRank(b); ra != rb {
		return ra - rb
	} else if ra < 2 {
		return 0
	}
	ap, bp := withoutExtension(a), withoutExtension(b)
	if c := compareRuns(ap, bp); c != 0 || len(ap) == len(a) && len(bp) == len(b) {
		return c
	}
	return compareRuns(a, b)
}

func sign(n int) int { return max(-1, min(1, n)) }

func dotRank(s string) int {
	switch {
	case s == ".":
		return 0
	case s == "..":
		return 1
	case s[0] == '.':
		return 2
	}
	return 3
}

// withoutExtension cuts off (\.[A-Za-z~][A-Za-z0-9~]*)*$.
func withoutExtension(s string) string {
	end := len(s)
	for i := len(s) - 1; i >= 0; i-- {
		switch c := s[i]; {
		case c == '.':
			if i+1 == end || isDigit(s[i+1]) {
				return s[:end]
			}
			end = i
		case !isDigit(c) && c != '~' && !(toUpper(c) >= 'A' && toUpper(c) <= 'Z'):
			return s[:end]
		}
	}
	return s[:end]
}

// weight orders the characters between numbers: "~", the end, digits, letters, the rest.
func weight(s string, i int) int {
	if i >= len(s) {
		return -1
	}
	switch c := s[i]; {
	case isDigit(c):
		return 0
	case c == '~':
		return -2
	case toUpper(c) >= 'A' && toUpper(c) <= 'Z':
		return int(c)
	default:
		return int(c) + 256
	}
}

// compareRuns compares text and numbers by turns.
func compareRuns(a, b string) int {
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		for i < len(a) && !isDigit(a[i]) || j < len(b) && !isDigit(b[j]) {
			if x, y := weight(a, i), weight(b, j); x != y {
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
		differ := 0
		for i < len(a) && j < len(b) && isDigit(a[i]) && isDigit(b[j]) {
			if differ == 0 {
				differ = int(a[i]) - int(b[j])
			}
			i++
			j++
		}
		switch {
		case i < len(a) && isDigit(a[i]):
			return 1
		case j < len(b) && isDigit(b[j]):
			return -1
		case differ != 0:
			return differ
		}
	}
	return 0
}
