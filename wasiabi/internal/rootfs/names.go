package rootfs

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Limits of one path, the same on every host.
const (
	MaxPath  = 4096 // bytes of a path or a link's target
	MaxName  = 255  // bytes of one component
	MaxDepth = 64   // folders below a mount that a guest may make
	maxLinks = 40   // links followed in one resolution
)

// fold is the key by which names are compared when a rule depends on it: what any file system of any system might
// take for the same name has the same key. It drops what can be ignored (format characters, trailing dots and blanks),
// and folds compatibility forms and case. What follows a colon stays: see withoutStream.
func fold(name string) string {
	if plain(name) {
		return name
	}
	name = norm.NFKC.String(name)
	name = cases.Fold().String(name)
	// Folding can undo a composition and the other way round.
	name = norm.NFKC.String(name)
	name = strings.Map(func(r rune) rune {
		if ignorable(r) {
			return -1
		}
		return r
	}, name)
	return strings.TrimRight(name, ". \t\u00a0")
}

// withoutStream is the file of which key names an alternate data stream, on file systems that have them, else key. On
// the others a colon is a character like any other, so a rule has to hold for both: "x:y.pth" is read for its ending.
func withoutStream(key string) string {
	if i := strings.IndexByte(key, ':'); i > 0 {
		return strings.TrimRight(key[:i], ". \t\u00a0")
	}
	return key
}

// plain tells whether name is its own key: the common case costs no allocation.
func plain(name string) bool {
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c >= utf8.RuneSelf || c >= 'A' && c <= 'Z' || c == ':' || c < 0x20 || c == 0x7f {
			return false
		}
	}
	return name != "" && name[len(name)-1] != '.' && name[len(name)-1] != ' '
}

// ignorable covers Default_Ignorable_Code_Point, which HFS+ and some tools skip, and control characters.
func ignorable(r rune) bool {
	switch {
	case r == 0x00ad, r == 0x034f, r == 0x061c, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5,
		r >= 0x180b && r <= 0x180f, r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e,
		r >= 0x2060 && r <= 0x206f, r == 0x3164, r >= 0xfe00 && r <= 0xfe0f, r == 0xfeff, r == 0xffa0,
		r >= 0xfff0 && r <= 0xfff8, r >= 0x1bca0 && r <= 0x1bca3, r >= 0x1d173 && r <= 0x1d17a,
		r >= 0xe0000 && r <= 0xe0fff, r == utf8.RuneError:
		return true
	}
	return unicode.IsControl(r)
}

// glob is one pattern: segments in which "*" stands for any run of characters, and "**" as a whole segment for any
// number of segments. The segments are folded.
type glob []string

func parseGlob(p string) glob {
	var g glob
	for _, seg := range strings.Split(strings.Trim(p, "/"), "/") {
		if seg == "" || seg == "." {
			continue
		}
		if seg != "**" {
			seg = foldPattern(seg)
		}
		g = append(g, seg)
	}
	return g
}

// foldPattern folds the text between the stars: a pattern such as "*.pth" must keep its own dots.
func foldPattern(seg string) string {
	parts := strings.Split(seg, "*")
	for i, p := range parts {
		f := fold(p)
		if i < len(parts)-1 && p != "" { // what precedes a star is not the end of the name
			f = strings.TrimSuffix(fold(p+"x"), "x")
		}
		parts[i] = f
	}
	return strings.Join(parts, "*")
}

func parseGlobs(ps []string) []glob {
	var out []glob
	for _, p := range ps {
		if g := parseGlob(p); len(g) > 0 {
			out = append(out, g)
		}
	}
	return out
}

// match tells whether the whole of keys fits.
func (g glob) match(keys []string) bool {
	for len(g) > 0 {
		if g[0] == "**" {
			for len(g) > 1 && g[1] == "**" {
				g = g[1:]
			}
			for i := 0; i <= len(keys); i++ {
				if g[1:].match(keys[i:]) {
					return true
				}
			}
			return false
		}
		if len(keys) == 0 || !matchKey(g[0], keys[0]) {
			return false
		}
		g, keys = g[1:], keys[1:]
	}
	return len(keys) == 0
}

func matchKey(p, key string) bool {
	if matchSegment(p, key) {
		return true
	}
	file := withoutStream(key)
	return file != key && matchSegment(p, file)
}

// matchSegment is linear in the length of both: it backtracks to the last star only.
func matchSegment(p, s string) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(s) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && p[i] == s[j]:
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

func matchAny(gs []glob, keys []string) bool {
	for _, g := range gs {
		if g.match(keys) {
			return true
		}
	}
	return false
}

// nameSet is a list of protected names: "NAME" anywhere, or "A/B", the name B directly in a folder A. A name stands
// for everything below it as well.
type nameSet struct {
	globs    []glob
	literals []string // names of one segment without a star
	shorts   []string // their letters and digits, for the short forms of FAT and NTFS
}

func parseNames(names []string) *nameSet {
	s := &nameSet{}
	for _, n := range names {
		g := parseGlob(n)
		for len(g) > 0 && g[0] == "**" {
			g = g[1:]
		}
		for len(g) > 0 && g[len(g)-1] == "**" {
			g = g[:len(g)-1]
		}
		if len(g) == 0 {
			continue
		}
		s.globs = append(s.globs, g)
		for _, seg := range g {
			if strings.Contains(seg, "*") {
				continue
			}
			if len(g) == 1 {
				s.literals = append(s.literals, seg)
			}
			if sh := shortStem(seg); sh != "" {
				s.shorts = append(s.shorts, sh)
			}
		}
	}
	return s
}

// shortStem is what an 8.3 name is made of: the letters and digits before the last dot.
func shortStem(key string) string {
	key = strings.TrimLeft(key, ".")
	if i := strings.LastIndexByte(key, '.'); i > 0 {
		key = key[:i]
	}
	return strings.Map(func(r rune) rune {
		if r == '.' || r == ' ' {
			return -1
		}
		return r
	}, key)
}

// short tells whether key looks like the 8.3 form of a protected name, such as git~1 or, after collisions, gi7d29~1.
func (s *nameSet) short(key string) bool {
	i := strings.IndexByte(key, '~')
	if i <= 0 || i+1 >= len(key) || key[i+1] < '0' || key[i+1] > '9' {
		return false
	}
	stem := key[:i]
	for _, full := range s.shorts {
		if stem == full[:min(6, len(full))] || len(stem) < 6 && strings.HasPrefix(full, stem) && len(stem) >= 3 {
			return true
		}
		if len(stem) == 6 && strings.HasPrefix(full, stem[:min(2, len(full))]) && isHex(stem[2:]) {
			return true
		}
	}
	return false
}

func isHex(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
