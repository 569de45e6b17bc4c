package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Glob is a pattern over the segments of a slash-separated path: "*" stands for any characters within a segment (a
// segment that is only "*" for at least one), a segment "**" for any number of segments, none included. Nothing else is special.
//
// The zero Glob matches only the path without segments. One grammar and one matcher serve file and URL paths.
type Glob struct {
	segs []string
	abs  bool
}

const (
	maxGlob     = 1024
	maxSegments = 256
)

// ParseGlob reads a pattern that is relative to a file root, for instance "**/.env*".
func ParseGlob(s string) (Glob, error) { return parseGlob(s, false) }

// ParsePathGlob reads a pattern of URL paths, which begins with "/". It is written decoded: "/a b", not "/a%20b".
func ParsePathGlob(s string) (Glob, error) { return parseGlob(s, true) }

func parseGlob(s string, abs bool) (Glob, error) {
	switch {
	case s == "":
		return Glob{}, fmt.Errorf("pattern is empty")
	case len(s) > maxGlob:
		return Glob{}, fmt.Errorf("pattern is longer than %d bytes", maxGlob)
	case abs && s[0] != '/':
		return Glob{}, fmt.Errorf("pattern %q does not begin with \"/\"", s)
	case !abs && s[0] == '/':
		return Glob{}, fmt.Errorf("pattern %q begins with \"/\": it is relative to its root", s)
	case strings.Contains(s, `\`):
		return Glob{}, fmt.Errorf("pattern %q holds a backslash", s)
	case abs && strings.ContainsAny(s, "?#;"):
		return Glob{}, fmt.Errorf("pattern %q holds one of ? # ; (only the path is matched)", s)
	case badText(s):
		return Glob{}, fmt.Errorf("pattern %q holds a control character", s)
	}
	rest := s
	if abs {
		rest = s[1:]
	}
	segs := strings.Split(rest, "/")
	if len(segs) > maxSegments {
		return Glob{}, fmt.Errorf("pattern has more than %d segments", maxSegments)
	}
	for i, seg := range segs {
		switch {
		case seg == "" && !(abs && i == len(segs)-1):
			return Glob{}, fmt.Errorf("pattern %q holds an empty segment", s)
		case seg == "." || seg == "..":
			return Glob{}, fmt.Errorf("pattern %q holds a segment %q", s, seg)
		case seg != "**" && strings.Contains(seg, "**"):
			return Glob{}, fmt.Errorf("pattern %q: \"**\" must be a whole segment", s)
		case abs && hasEncodedSlash(seg):
			return Glob{}, fmt.Errorf("pattern %q: paths are matched decoded and an encoded slash, backslash or dot is refused", s)
		}
	}
	return Glob{segs: segs, abs: abs}, nil
}

// String returns the pattern as it was written.
func (g Glob) String() string {
	s := strings.Join(g.segs, "/")
	if g.abs {
		s = "/" + s
	}
	return s
}

// MarshalText is [Glob.String].
func (g Glob) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// Match reports whether the pattern matches all of path, given as its segments.
func (g Glob) Match(path []string) bool { return matchSegments(g.segs, path) }

// MatchPrefix returns the length of the shortest prefix of path, at least one segment, that the pattern matches; 0: none.
// A rule about a folder is a rule about what lies below it.
func (g Glob) MatchPrefix(path []string) int {
	for n := 1; n <= len(path); n++ {
		if matchSegments(g.segs, path[:n]) {
			return n
		}
	}
	return 0
}

// literal reports whether the pattern holds no wildcard.
func (g Glob) literal() bool {
	return !slices.ContainsFunc(g.segs, func(s string) bool { return strings.Contains(s, "*") })
}

// below returns the patterns that g becomes when its paths are taken relative to the folder dir. whole is true if g
// matches dir or a folder above it, so that it covers everything there.
func (g Glob) below(dir []string) (out []Glob, whole bool) {
	if g.MatchPrefix(dir) > 0 {
		return nil, true
	}
	rests := [][]string{g.segs}
	for _, name := range dir {
		var next [][]string
		for _, r := range rests {
			for len(r) > 0 && r[0] == "**" {
				next = append(next, r) // "**" takes the segment and stays
				r = r[1:]              // or stands for nothing
			}
			if len(r) > 0 && matchSegment(r[0], name) {
				next = append(next, r[1:])
			}
		}
		rests = next
	}
	for _, r := range rests {
		if len(r) > 0 {
			out = append(out, Glob{segs: r})
		}
	}
	return out, false
}

// matchSegments backtracks to the last "**" only, which is enough: a later "**" can take whatever an earlier one could.
func matchSegments(pat, path []string) bool {
	p, s, star, mark := 0, 0, -1, 0
	for s < len(path) {
		switch {
		case p < len(pat) && pat[p] == "**":
			star, mark = p, s
			p++
		case p < len(pat) && matchSegment(pat[p], path[s]):
			p++
			s++
		case star >= 0:
			mark++
			p, s = star+1, mark
		default:
			return false
		}
	}
	for p < len(pat) && pat[p] == "**" {
		p++
	}
	return p == len(pat)
}

func matchSegment(pat, name string) bool {
	if pat == "*" {
		return name != ""
	}
	return wildcard(pat, name)
}

// wildcard matches "*" against any run of bytes, the empty one included.
func wildcard(pat, s string) bool {
	p, i, star, mark := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case p < len(pat) && pat[p] == '*':
			star, mark = p, i
			p++
		case p < len(pat) && pat[p] == s[i]:
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	for p < len(pat) && pat[p] == '*' {
		p++
	}
	return p == len(pat)
}
