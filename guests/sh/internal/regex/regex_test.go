package regex

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func find(t testing.TB, pattern string, s Syntax, f Flags, text string) string {
	re, err := Compile(pattern, s, f)
	if err != nil {
		return "error: " + err.Error()
	}
	m := re.FindIndex(t.Context(), []byte(text), 0)
	if m == nil {
		return "no"
	}
	var out []string
	for i := 0; i < len(m); i += 2 {
		if m[i] < 0 {
			out = append(out, "-")
		} else {
			out = append(out, text[m[i]:m[i+1]])
		}
	}
	return strings.Join(out, "|")
}

func TestExpressionsMatchAsGNUsDo(t *testing.T) {
	for _, c := range []struct {
		pattern string
		syntax  Syntax
		flags   Flags
		text    string
		want    string
	}{
		{`\+a`, BRE, 0, "+a", "+a"},
		{`*a`, BRE, 0, "*a", "*a"},
		{`^*a`, BRE, 0, "*a", "*a"},
		{`\(*a\)`, BRE, 0, "*a", "*a|*a"},
		{`x\|*a`, BRE, 0, "*a", "*a"},
		{`a\+`, BRE, 0, "baa", "aa"},
		{`a\?b`, BRE, 0, "ab", "ab"},
		{`a|b`, BRE, 0, "a|b", "a|b"},
		{`a\{2\}`, BRE, 0, "aaa", "aa"},
		{`a^b`, BRE, 0, "a^b", "a^b"},
		{`a$b`, BRE, 0, "a$b", "a$b"},
		{`^^a`, BRE, 0, "^a", "^a"},
		{`\(^b\)`, BRE, 0, "b", "b|b"},
		{`b\(a$\)`, BRE, 0, "ba", "ba|a"},
		{`\(a*\)*`, BRE, 0, "aab", "aa|aa"},
		{`\(a\)\1`, BRE, 0, "baa", "aa|a"},
		{`\(a\)\1`, BRE, IgnoreCase, "baA", "aA|a"},
		{`a\{1`, BRE, 0, "", `error: Unmatched \{`},
		{`a\{1a\}`, BRE, 0, "", `error: Invalid content of \{\}`},
		{`a\{2,1\}`, BRE, 0, "", `error: Invalid content of \{\}`},
		{`\(\)\2`, BRE, 0, "", "error: Invalid back reference"},
		{`[b-a]`, BRE, 0, "", "error: Invalid range end"},
		{`[[:foo:]]`, BRE, 0, "", "error: Invalid character class name"},
		{`[:space:]`, BRE, 0, "", "error: character class syntax is [[:space:]], not [:space:]"},
		{`a\`, BRE, 0, "", "error: Trailing backslash"},
		{`\(a`, BRE, 0, "", `error: Unmatched ( or \(`},
		{`a\)`, BRE, 0, "", `error: Unmatched ) or \)`},
		{`[a`, BRE, 0, "", "error: Unmatched [, [^, [:, [., or [="},
		{`a{40000}`, ERE, 0, "", "error: Regular expression too big"},
		{`*a`, ERE, 0, "*a", "error: Invalid preceding regular expression"},
		{`^*a`, ERE, 0, "*a", "error: Invalid preceding regular expression"},
		{`a|*b`, ERE, 0, "*a", "error: Invalid preceding regular expression"},
		{`*a`, ERE, Lenient, "*a", "a"},
		{`^*a`, ERE, Lenient, "*a", "no"},
		{`a{x`, ERE, 0, "a{x", `error: Unmatched \{`},
		{`a{x`, ERE, Lenient, "a{x", "a{x"},
		{`a{,2}`, ERE, 0, "aaa", "aa"},
		{`)`, ERE, 0, ")", `error: Unmatched ) or \)`},
		{`)`, ERE, LoneParen, ")", ")"},
		{`(a))`, ERE, LoneParen, "a)", "a)|a"},
		{`()`, ERE, 0, "a", "|"},
		{`a||b`, ERE, 0, "b", "b"},
		{`a{1,2}{2}`, ERE, 0, "aaaa", "aaaa"},
		{`a+?`, ERE, 0, "aaa", "aaa"},
		{`(a|ab)(c|bcd)(d*)`, ERE, 0, "abcd", "abcd|a|bcd|"},
		{`(a*)+`, ERE, 0, "baa", "|"},
		{`(a*)(ab)*(b*)`, ERE, 0, "abb", "abb|a|-|bb"},
		{`((a)|(b))*`, ERE, 0, "ab", "ab|b|a|b"},
		{`(a)(b)\2`, ERE, 0, "abb", "abb|a|b"},
		{`(a|ab)\1`, ERE, 0, "ababab", "abab|ab"},
		{`\<a\b`, ERE, 0, "ba a", "a"},
		{`o\>`, ERE, 0, "foo bar", "o"},
		{`\w+`, ERE, 0, "..éa_1-", "éa_1"},
		{`\w+`, ERE, Bytes, "..\xc3\xa9a_1-", "a_1"},
		{`\bfoo`, ERE, 0, "éfoo", "no"},
		{`[a\]`, ERE, 0, `\`, `\`},
		{`[]a]+`, ERE, 0, "]a", "]a"},
		{`[^]a]`, ERE, 0, "]b", "b"},
		{`[a-]+`, ERE, 0, "-a", "-a"},
		{`[[.a.]]`, ERE, 0, "a", "a"},
		{`[[.-.]]`, ERE, 0, "-", "-"},
		{`[[=a=]b]+`, ERE, 0, "ab", "ab"},
		{`[[.space.]]`, ERE, 0, "", "error: Invalid collation character"},
		{`[[:alpha:]-z]`, ERE, 0, "", "error: Invalid range end"},
		{`[[:upper:]]+`, ERE, 0, "aBÉd", "BÉ"},
		{`[[:upper:]]+`, ERE, IgnoreCase, "1ab", "ab"},
		{`[^a]`, ERE, IgnoreCase, "Ab", "b"},
		{`straße`, ERE, IgnoreCase, "STRAßE", "STRAßE"},
		{`.`, ERE, 0, "\xff", "no"},
		{`[^a]`, ERE, 0, "\xff", "no"},
		{`.*`, ERE, 0, "ab\xff", "ab"},
		{`.`, ERE, Bytes, "\xff", "\xff"},
		{`\xff`, ERE, Escapes, "a\xffb", "\xff"},
		{"\xff+", ERE, 0, "a\xff\xffb", "\xff\xff"},
		{`é+`, ERE, 0, "aéé", "éé"},
		{`[é-ü]`, ERE, 0, "aû", "û"},
		{`^b`, ERE, Multiline, "a\nb", "b"},
		{`a$`, ERE, Multiline, "a\nb", "a"},
		{`^b`, ERE, 0, "a\nb", "no"},
		{"\\`b", ERE, Multiline, "a\nb", "no"},
		{`a.b`, ERE, NotNewline, "a\nb", "no"},
		{`[^a]`, ERE, NotNewline, "\nb", "b"},
		{`foo`, ERE, Word, "foobar foo", "foo"},
		{`foo|foobar`, ERE, Word, "foobar", "foobar"},
		{`fo*`, ERE, Line, "foo", "foo"},
		{`fo`, Fixed, Line, "foo", "no"},
		{`a.c`, Fixed, 0, "abc a.c", "a.c"},
		{`A.C`, Fixed, IgnoreCase, "abc a.c", "a.c"},
		{`[\n]`, ERE, Escapes, "n\n", "\n"},
		{`[\]]`, ERE, Awk, "]", "]"},
		{`a\/b`, ERE, Awk, "a/b", "a/b"},
		{`+`, ERE, Awk, "a+", "+"},
		{`\yfoo\y`, ERE, Awk, "a foo", "foo"},
		{`(?<=a)b`, PCRE, 0, "bab", "b"},
		{`(?<!a)b`, PCRE, 0, "abb", "b"},
		{`a(?=b)`, PCRE, 0, "acab", "a"},
		{`a(?!b)`, PCRE, 0, "abac", "a"},
		{`foo\Kbar`, PCRE, 0, "foobar", "bar"},
		{`a|ab`, PCRE, 0, "ab", "a"},
		{`a+?`, PCRE, 0, "aaa", "a"},
		{`a++a`, PCRE, 0, "aaa", "no"},
		{`(?>a+)b`, PCRE, 0, "aab", "aab"},
		{`(?i)abc`, PCRE, 0, "ABC", "ABC"},
		{`(?i:a)b`, PCRE, 0, "AB", "no"},
		{`(?<y>\d{4})-\k<y>`, PCRE, 0, "2024-2024", "2024-2024|2024"},
		{`(?P<n>a)(?P=n)`, PCRE, 0, "aa", "aa|a"},
		{`\Qa.b\E+`, PCRE, 0, "a.bb", "a.bb"},
		{`[\d\-]+`, PCRE, 0, "a1-2", "1-2"},
		{`\p{Lu}+`, PCRE, 0, "aÉB", "ÉB"},
		{`"\K[^"]*(?=")`, PCRE, 0, `x="abc"`, "abc"},
		{`[^\x00-\x7F]`, PCRE, 0, "aé", "é"},
		{`(a)|b\1`, PCRE, 0, "b", "no"},
		{`(?<=a+)b`, PCRE, 0, "", "error: lookbehind assertion is not fixed length"},
		{`(a`, PCRE, 0, "", "error: missing closing parenthesis"},
		{`a)`, PCRE, 0, "", "error: unmatched closing parenthesis"},
		{`*a`, PCRE, 0, "", "error: quantifier does not follow a repeatable item"},
		{`[a`, PCRE, 0, "", "error: missing terminating ] for character class"},
		{`a{2,1}`, PCRE, 0, "", "error: numbers out of order in {} quantifier"},
		{`(a*)*b`, PCRE, 0, "aaab", "aaab|"},
		{`x*`, PCRE, 0, "aax", ""},
	} {
		if got := find(t, c.pattern, c.syntax, c.flags, c.text); got != c.want {
			t.Errorf("%q (%d, %b) in %q: %q, want %q", c.pattern, c.syntax, c.flags, c.text, got, c.want)
		}
	}
}

// Expressions that make backtracking explode end in time, because places that failed are remembered.
func TestHarmlessWhereBacktrackingExplodes(t *testing.T) {
	text := strings.Repeat("a", 3000)
	start := time.Now()
	for _, p := range []string{`(a*)*b`, `(a|aa)+c`, `(a?){60}a{60}d`, `(x+x+)+y`, `.*.*.*e`} {
		for _, s := range []Syntax{ERE, PCRE} {
			if got := find(t, p, s, 0, text+"f"); got != "no" {
				t.Errorf("%s: %s", p, got)
			}
		}
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("took %v", d)
	}
}

// pattern writes a random expression in the language that ERE, PCRE and Go share.
func pattern(r *rand.Rand, depth int) string {
	switch n := r.IntN(12); {
	case depth <= 0 || n < 4:
		return []string{"a", "b", ".", "[ab]", "[^a]", "c", "^", "$", "é", "[é-ü]"}[r.IntN(10)]
	case n < 7:
		return pattern(r, depth-1) + pattern(r, depth-1)
	case n < 9:
		return "(" + pattern(r, depth-1) + "|" + pattern(r, depth-1) + ")"
	case n < 10:
		return "(" + pattern(r, depth-1) + ")"
	}
	return "(" + pattern(r, depth-1) + ")" + []string{"*", "+", "?", "{2}", "{0,2}", "{1,}"}[r.IntN(6)]
}

func sample(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(9) {
		b.WriteString([]string{"a", "b", "c", "é", "\n", "ab"}[r.IntN(6)])
	}
	return b.String()
}

// agree checks one expression against Go's engine, whose choice of match is defined alike: the match must be equal, and
// with memory and without; groups are compared where no loop can turn without taking anything, which Go defines otherwise.
func agree(t *testing.T, pattern, text string) {
	for _, syntax := range []Syntax{ERE, PCRE} {
		gp := "(?s:" + pattern + ")"
		if syntax == PCRE {
			gp = strings.ReplaceAll(pattern, "$", "(?:$)")
		}
		oracle, err := regexp.Compile(gp)
		if err != nil {
			return
		}
		if syntax == ERE {
			oracle.Longest()
		}
		re, err := Compile(pattern, syntax, 0)
		if err != nil {
			return
		}
		if syntax == PCRE && strings.HasSuffix(text, "\n") {
			text += "a" // Perl's $ also matches before a line end that ends the text
		}
		if syntax == PCRE && slices.ContainsFunc(re.prog, func(i inst) bool { return i.op == opLoop }) {
			return // a turn that takes nothing ends Perl's loops, but not Go's
		}
		want := oracle.FindStringSubmatchIndex(text)
		got := re.FindIndex(t.Context(), []byte(text), 0)
		if (got == nil) != (want == nil) || got != nil && (got[0] != want[0] || got[1] != want[1]) {
			t.Fatalf("%q (%d) in %q: %v, Go %v", pattern, syntax, text, got, want)
		}
		if got != nil && !strings.ContainsAny(pattern, "*+?{") && fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%q (%d) in %q: groups %v, Go %v", pattern, syntax, text, got, want)
		}
		if re.Match(t.Context(), []byte(text)) != (got != nil) {
			t.Fatalf("%q in %q: Match differs from FindIndex", pattern, text)
		}
		if req := re.Required(); got != nil && len(req) > 0 && !strings.Contains(text, string(req)) {
			t.Fatalf("%q in %q: matches without required %q", pattern, text, req)
		}
		// With memory from the first step.
		re.m.begin(t.Context(), re, []byte(text), false)
		re.m.seen = make([][]uint64, (len(text)+1)*len(re.prog)/page+1)
		ok := false
		for pos := 0; pos <= len(text) && !ok; pos++ {
			if pos < len(text) && inside([]byte(text), pos) && text[pos]&0xC0 == 0x80 {
				continue
			}
			ok = re.m.search(pos)
		}
		if ok != (got != nil) || ok && fmt.Sprint(re.m.best[:2]) != fmt.Sprint(got[:2]) {
			t.Fatalf("%q (%d) in %q: with memory %v %v, without %v", pattern, syntax, text, ok, re.m.best, got)
		}
	}
}

func TestAgreesWithGoOnRandomExpressions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 60000 {
		agree(t, pattern(r, 4), sample(r))
	}
}

func FuzzAgreesWithGo(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		r := rand.New(rand.NewPCG(a, b))
		agree(t, pattern(r, 5), sample(r))
	})
}

// Any text is an expression or an error, never a panic, and a match lies within the text.
func FuzzAnyPattern(f *testing.F) {
	for _, s := range []string{`\(a\)\1`, `[[:alpha:]]\{1,3\}`, `(?<=a)b(?i)c\K`, `a{1,2}{3}`, `[^]-]`, "\xff[\xfe-\xff]"} {
		f.Add(s, "aAbé\xff\n", uint8(1), uint16(0))
	}
	f.Fuzz(func(t *testing.T, pattern, text string, syntax uint8, flags uint16) {
		if len(pattern) > 60 || len(text) > 60 {
			return
		}
		re, err := Compile(pattern, Syntax(syntax%4), Flags(flags))
		if (re == nil) == (err == nil) {
			t.Fatalf("%v and %v", re, err)
		}
		if err != nil || !re.memo || len(re.prog) > 3000 {
			return
		}
		for from := 0; from <= len(text); {
			m := re.FindIndex(t.Context(), []byte(text), from)
			if m == nil {
				break
			}
			if m[1] < from || m[1] > len(text) || m[0] > len(text) || m[0] < 0 {
				t.Fatalf("%q in %q from %d: %v", pattern, text, from, m)
			}
			from = max(m[1], from) + 1
		}
	})
}

func BenchmarkFind(b *testing.B) {
	line := []byte("2024-05-01T12:00:00Z host app[123]: level=info msg=\"request done\" path=/api/v1/items status=200 ms=35")
	for _, p := range []string{`status=[0-9]+`, `[0-9]{4}-[0-9]{2}`, `(GET|POST|status).*ms`, `^.*level=([a-z]+).*status=(\d+)`, `error|warn`} {
		b.Run(p, func(b *testing.B) {
			re, err := Compile(p, PCRE, 0)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				re.FindIndex(b.Context(), line, 0)
			}
		})
		b.Run("go/"+p, func(b *testing.B) {
			re := regexp.MustCompile(p)
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				re.FindSubmatchIndex(line)
			}
		})
	}
}
