package expand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/exthost/exthost/guests/sh/internal/vars"
	"mvdan.cc/sh/v3/syntax"
)

// host is a shell of which only the data is there.
type host struct {
	params   []string
	options  map[string]bool
	dir      string
	warnings []string
}

var errNone = errors.New("there is no executor here")

func (h *host) Special(name string) (string, bool) {
	s, ok := map[string]string{"0": "sh", "?": "0", "$": "42"}[name]
	return s, ok
}
func (h *host) SpecialList(string) ([]string, bool) { return nil, false }
func (h *host) SetSpecial(string, string)           {}
func (h *host) Params() []string                    { return h.params }
func (h *host) Option(name string) bool             { return h.options[name] }
func (h *host) Dir() string                         { return h.dir }
func (h *host) Warn(text string)                    { h.warnings = append(h.warnings, text) }
func (h *host) Executable(name string) bool         { return name == "/usr/bin/bundled" }
func (h *host) Terminal(int) bool                   { return false }
func (h *host) StatFd(int) (fs.FileInfo, error)     { return nil, fs.ErrNotExist }

func (h *host) CommandSubst(context.Context, *syntax.CmdSubst) (string, error)  { return "", errNone }
func (h *host) ProcessSubst(context.Context, *syntax.ProcSubst) (string, error) { return "", errNone }

func newExpander(dir string, options ...string) (*Expander, *host) {
	h := &host{dir: dir, options: map[string]bool{"braceexpand": true, "patsub_replacement": true}}
	for _, o := range options {
		h.options[o] = true
	}
	return New(vars.New(nil), h), h
}

func parseWords(t testing.TB, text string) []*syntax.Word {
	t.Helper()
	var words []*syntax.Word
	for w, err := range syntax.NewParser().WordsSeq(strings.NewReader(text)) {
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		words = append(words, w)
	}
	return words
}

func TestFileNamesMatch(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.txt", "b.txt", "B.TXT", ".hidden", "d/x.txt", "d/.y", "d/e/z.txt", "a-b/x", "a/x", "sp ace", "[q]"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("d", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ claim, options, words, want string }{
		{"a star passes hidden names", "", "*", "B.TXT|[q]|a|a-b|a.txt|b.txt|d|link|sp ace"},
		{"dotglob takes hidden names", "dotglob", ".h* *dden", ".hidden|.hidden"},
		{"a dot that is written finds hidden names", "", ".* d/.*", ".hidden|d/.y"},
		{"whole paths are sorted", "", "a*/x", "a-b/x|a/x"},
		{"a slash at the end takes folders, also through links", "", "*/", "a-b/|a/|d/|link/"},
		{"two stars go down and not through links", "globstar", "**/*.txt", "a.txt|b.txt|d/e/z.txt|d/x.txt"},
		{"two stars are one without globstar", "", "**/*.txt", "d/x.txt|link/x.txt"},
		{"nocaseglob", "nocaseglob", "b.*", "B.TXT|b.txt"},
		{"no match leaves the pattern", "", "no*pe", "no*pe"},
		{"nullglob leaves nothing", "nullglob", "no*pe x", "x"},
		{"noglob leaves patterns", "noglob", "*.txt", "*.txt"},
		{"quoted patterns are names", "", `"*".txt \*.txt '['q*`, "*.txt|*.txt|[q]"},
		{"a bracket without end is a character", "", "[q", "[q"},
		{"names with blanks are one field", "", "sp*", "sp ace"},
		{"groups", "extglob", "@(a|b).txt !(*.*|*a*)", "a.txt|b.txt|[q]|d|link"},
		{"absolute patterns", "", dir + "/d/*.txt", dir + "/d/x.txt"},
	} {
		t.Run(test.claim, func(t *testing.T) {
			e, _ := newExpander(dir, strings.Fields(test.options)...)
			fields, err := e.Fields(t.Context(), parseWords(t, test.words)...)
			if got := strings.Join(fields, "|"); err != nil || got != test.want {
				t.Errorf("%s is %q, want %q (%v)", test.words, got, test.want, err)
			}
		})
	}
	t.Run("failglob is an error", func(t *testing.T) {
		e, _ := newExpander(dir, "failglob")
		_, err := e.Fields(t.Context(), parseWords(t, "no*pe")...)
		var none *NoMatch
		if !errors.As(err, &none) || none.Error() != "no match: no*pe" {
			t.Errorf("error %v", err)
		}
	})
}

func TestFilesAreTested(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "full"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "empty"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	e, _ := newExpander(dir)
	for _, test := range []struct {
		op, arg string
		want    bool
	}{
		{"-e", "full", true}, {"-f", "full", true}, {"-d", "full", false}, {"-s", "full", true}, {"-s", "empty", false},
		{"-d", ".", true}, {"-e", "nope", false}, {"-e", "", false}, {"-L", "dangling", true}, {"-h", "full", false},
		{"-e", "dangling", false}, {"-r", "full", true}, {"-w", "full", true}, {"-x", "/usr/bin/bundled", true},
		{"-f", "/usr/bin/bundled", true}, {"-x", "/usr/bin/other-than-bundled", false}, {"-t", "0", false}, {"-z", "", true},
		{"-n", "", false}, {"-c", "/dev/null", true}, {"-p", "full", false}, {"-S", "full", false}, {"-O", "full", true},
	} {
		if got, err := e.Unary(test.op, test.arg); err != nil || got != test.want {
			t.Errorf("%s %q is %v (%v)", test.op, test.arg, got, err)
		}
	}
	if !e.Files("-ef", "full", "./full") || e.Files("-ef", "full", "empty") || e.Files("-nt", "nope", "full") || !e.Files("-ot", "nope", "full") {
		t.Error("files are compared wrongly")
	}
}

func TestScriptsAreMended(t *testing.T) {
	for _, test := range []struct{ claim, text, want string }{
		{"a key with a dot", "m[a.b]=1\n", "m[\"a.b\"]=1\n"},
		{"a key with a blank", "echo ${m[a b]} [x]\n", "echo ${m[\"a b\"]} [x]\n"},
		{"an operator in a variable", "echo $((x $op y))\n", "echo $((\"x $op y\"))\n"},
		{"quotes go, those of commands stay", "echo $((\"$a\" $op $(f \"b\")))\n", "echo $((\"$a $op $(f \"b\")\"))\n"},
		{"an element of a list", "declare -A m=([x y]=1)\n", "declare -A m=([\"x y\"]=1)\n"},
	} {
		t.Run(test.claim, func(t *testing.T) {
			_, err := syntax.NewParser().Parse(strings.NewReader(test.text), "")
			if err == nil {
				t.Fatal("the parser takes it")
			}
			got, ok := Mend(test.text, err)
			if !ok || got != test.want {
				t.Fatalf("mended to %q, %v", got, ok)
			}
			if _, err := syntax.NewParser().Parse(strings.NewReader(got), ""); err != nil {
				t.Errorf("still refused: %v", err)
			}
		})
	}
	for _, text := range []string{"if", "echo \"", "f( { x; }\n", "echo $((a; b c))\n"} {
		_, err := syntax.NewParser().Parse(strings.NewReader(text), "")
		if got, ok := Mend(text, err); ok {
			t.Errorf("%q was mended to %q", text, got)
		}
	}
}

// Patterns that take a backtracking matcher for ever.
func TestNoPatternTakesLong(t *testing.T) {
	s := strings.Repeat("a", 2000)
	for _, p := range []string{strings.Repeat("*a", 40) + "b", "+(+(+(a)))b", "*(a|aa|aaa)b", strings.Repeat("?(a)", 100) + "b"} {
		if compile(p, true, false).match(s) {
			t.Errorf("%s matches", p)
		}
	}
}

func BenchmarkArithm(b *testing.B) {
	e, _ := newExpander("/")
	w := parseWords(b, "$((x + y * 2))")[0]
	e.Vars.Set("x", "3")
	e.Vars.Set("y", "4")
	for b.Loop() {
		if s, err := e.Literal(b.Context(), w); s != "11" || err != nil {
			b.Fatal(s, err)
		}
	}
}

// FuzzArithm: no text makes the evaluation panic or run for long, and a number is itself.
func FuzzArithm(f *testing.F) {
	for _, s := range []string{"1+2", "x++ + ++x", "a[1]=2,a[0]", "1?2:3", "-9223372036854775808/-1", "0x", "2#2", "x", "(((", "a[a[a[0]]]", "1**-1", "\x01[\x01", "a[\x01]\x01]"} {
		f.Add(s, int64(7))
	}
	f.Fuzz(func(t *testing.T, text string, n int64) {
		e, _ := newExpander("/")
		e.Vars.Set("x", "5")
		e.Vars.SetList("a", []string{"1", "x", "2"})
		_, err := e.Eval(text)
		var arith *ArithError
		var unset *UnsetError
		var refused *vars.Error
		if err != nil && !errors.As(err, &arith) && !errors.As(err, &unset) && !errors.As(err, &refused) {
			t.Errorf("%q: error %T: %v", text, err, err)
		}
		if n != math.MinInt64 { // its digits alone are too great
			if got, err := e.Eval(fmt.Sprint(n)); got != n || err != nil {
				t.Errorf("%d is %d (%v)", n, got, err)
			}
		}
	})
}

// FuzzQuote: what is quoted reads as itself, in each of the ways to quote.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "a b", "it's", "$x `y` \"z\" \\", "a\nb\x01\x7f", "\xff\xfe", "é\u00a0\U0001f600", "~", "#x", "{a,b}", "*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsAny(s, "\x00\r") {
			t.Skip("no shell string has a NUL, and the parser drops carriage returns")
		}
		e, _ := newExpander(t.TempDir())
		for _, quoted := range []string{Quote(s, true), Quote(s, false), Backslash(s), quoteDouble(s), quoteAnsi(s)} {
			fields, err := e.Fields(t.Context(), parseWords(t, quoted)...)
			if err != nil || !slices.Equal(fields, []string{s}) {
				t.Errorf("%q quoted as %s is %q (%v)", s, quoted, fields, err)
			}
		}
		pattern := compile(escape(s), true, false)
		if !pattern.match(s) || pattern.match(s+"x") || pattern.match("x"+s) {
			t.Errorf("%q escaped as a pattern is %q, which matches wrongly", s, escape(s))
		}
	})
}

// TestPatternOfBytes: a byte outside UTF-8 in a pattern matches the end of a character behind "*", as in bash.
func TestPatternOfBytes(t *testing.T) {
	if p := compile("*\xa9", true, false); !p.match("é") || !p.match("\xa9") || p.match("e") {
		t.Error("\"*\\xa9\" does not match as in bash")
	}
}

// FuzzMatch: the matcher agrees with one that tries everything, and with its own prefix, suffix and find.
func FuzzMatch(f *testing.F) {
	for _, p := range []string{"a*b", "?[ab]*", "[!a-c]", "@(a|b*)c", "!(a)", "*(ab|c)", "+(a)?(b)", "[[:alpha:]]", "[]a]", "\\*", "!(*a*)b", "[^", "[a-", "é*"} {
		f.Add(p, "abc")
		f.Add(p, "aéb*")
	}
	f.Fuzz(func(t *testing.T, p, s string) {
		if len(p) > 12 || len(s) > 12 {
			t.Skip("the oracle takes exponential time")
		}
		if !utf8.ValidString(p) {
			t.Skip("bash compares such patterns by bytes, the oracle by characters; see TestPatternOfBytes")
		}
		pat := compile(p, true, false)
		want := naive(pat.tokens, s)
		if got := pat.match(s); got != want {
			t.Errorf("%q matches %q: %v, want %v", p, s, got, want)
		}
		if n := pat.prefix(s, true); n >= 0 && !naive(pat.tokens, s[:n]) {
			t.Errorf("%q: the prefix %q of %q does not match", p, s[:n], s)
		}
		if n := pat.suffix(s, true); n >= 0 && !naive(pat.tokens, s[len(s)-n:]) {
			t.Errorf("%q: the suffix %q of %q does not match", p, s[len(s)-n:], s)
		}
		if want != (pat.prefix(s, true) == len(s)) || want != (pat.suffix(s, true) == len(s)) {
			t.Errorf("%q against %q: whole %v, prefix %d, suffix %d", p, s, want, pat.prefix(s, true), pat.suffix(s, true))
		}
		if from, to := pat.find(s, 0); from >= 0 && !naive(pat.tokens, s[from:to]) {
			t.Errorf("%q: found %q in %q, which does not match", p, s[from:to], s)
		}
	})
}

// naive matches by trying every way to split s.
func naive(tokens []token, s string) bool {
	if len(tokens) == 0 {
		return s == ""
	}
	t, rest := tokens[0], tokens[1:]
	if t.kind == literal {
		return strings.HasPrefix(s, t.lit) && naive(rest, s[len(t.lit):])
	}
	for i := 0; ; {
		if one(t, s[:i]) && naive(rest, s[i:]) {
			return true
		}
		if i == len(s) {
			return false
		}
		_, n := decode(s[i:])
		i += n
	}
}

func one(t token, s string) bool {
	switch t.kind {
	case anyString:
		return true
	case anyChar, bracket:
		if s == "" {
			return false
		}
		r, n := decode(s)
		return n == len(s) && (t.kind == anyChar || t.set.has(r, false))
	}
	any := func(s string) bool {
		return slices.ContainsFunc(t.alts, func(alt []token) bool { return naive(alt, s) })
	}
	switch t.op {
	case '!':
		return !any(s)
	case '@':
		return any(s)
	case '?':
		return s == "" || any(s)
	}
	if s == "" {
		return t.op == '*' || any(s)
	}
	for i := 1; i <= len(s); i++ {
		if any(s[:i]) && (i == len(s) || one(token{kind: group, op: '*', alts: t.alts}, s[i:])) {
			return true
		}
	}
	return false
}
