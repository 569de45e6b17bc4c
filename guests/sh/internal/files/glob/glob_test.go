package glob

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	tests := []struct {
		pattern, name string
		flags         Flag
		want          bool
	}{
		{"*", "", 0, true},
		{"*", ".hidden", 0, true},
		{"*.txt", "a.txt", 0, true},
		{"*.txt", "a.txt.gz", 0, false},
		{"a*b*c", "a-b-b-c", 0, true},
		{"a*b*c", "a-b-b", 0, false},
		{"?", "\u00e9", 0, true},
		{"?", "", 0, false},
		{"[a-c]x", "bx", 0, true},
		{"[!a-c]x", "bx", 0, false},
		{"[^a-c]x", "dx", 0, true},
		{"[]a]", "]", 0, true},
		{"[a-]", "-", 0, true},
		{"[[:digit:]]*", "7up", 0, true},
		{"[[:upper:]]", "a", 0, false},
		{"[a", "[a", 0, true},
		{`\*`, "*", 0, true},
		{`\*`, "a", 0, false},
		{`[\]]`, "]", 0, true},
		{`a\`, `a\`, 0, false},
		{`\*`, `\x`, NoEscape, true},
		{"A?", "ab", 0, false},
		{"A?", "ab", Fold, true},
		{"[A-C]", "b", Fold, true},
		{"\u00c9", "\u00e9", Fold, true},
		{"d/*", "d/a/b", 0, true},
		{"d/*", "d/a/b", Path, false},
		{"d?a", "d/a", Path, false},
		{"d[/]a", "d/a", Path, false},
		{"*/b", "a/b", Path, true},
		{"\xff", "\xff", 0, true},
		{"\xff", "\xfe", 0, false},
	}
	for _, tt := range tests {
		if got := Match(tt.pattern, tt.name, tt.flags); got != tt.want {
			t.Errorf("Match(%q, %q, %d) = %v", tt.pattern, tt.name, tt.flags, got)
		}
	}
}

// FuzzMatch: a name matches itself when it is quoted, and also a star; no pattern takes long.
func FuzzMatch(f *testing.F) {
	f.Add("a*b?c[d]", "a")
	f.Add("[[:alpha:]-[.x.]", "\xff")
	f.Add(strings.Repeat("*a", 50), strings.Repeat("a", 200))
	f.Fuzz(func(t *testing.T, pattern, name string) {
		Match(pattern, name, 0)
		Match(pattern, name, Fold|Path)
		var quoted strings.Builder
		for i := range len(name) {
			if strings.IndexByte(`*?[\`, name[i]) >= 0 {
				quoted.WriteByte('\\')
			}
			quoted.WriteByte(name[i])
		}
		if !Match(quoted.String(), name, 0) {
			t.Errorf("%q does not match itself", name)
		}
		if !Match("*", name, 0) || !Match("*"+quoted.String()+"*", name, 0) {
			t.Errorf("a star does not match %q", name)
		}
	})
}
