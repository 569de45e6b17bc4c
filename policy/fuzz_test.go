package policy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// FuzzParse: a policy comes back if and only if there is no error; errors have positions inside the file and are
// printable; what was accepted survives being written and read again, and grants no more as its own ceiling.
func FuzzParse(f *testing.F) {
	for _, dir := range []string{"valid", "invalid"} {
		names, err := filepath.Glob(examples + "/" + dir + "/*.yaml")
		if err != nil || len(names) == 0 {
			f.Fatal(err)
		}
		for _, n := range names {
			data, err := os.ReadFile(n)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("f", data)
		if (p == nil) == (err == nil) {
			t.Fatalf("policy %v, error %v", p, err)
		}
		if err != nil {
			var errs Errors
			if !errors.As(err, &errs) || len(errs) == 0 || len(errs) > maxErrors+1 {
				t.Fatalf("not a list of errors: %v", err)
			}
			lines := strings.Count(string(data), "\n") + strings.Count(string(data), "\r") + 1
			last := Position{}
			for i, e := range errs {
				if i < maxErrors && (e.Line < 1 || e.Line > lines*3+1 || e.Line < last.Line) {
					t.Fatalf("error %v is not in order or not in a file of %d lines", e, lines)
				}
				last = e.Position
				for _, r := range e.Error() {
					if r != '\n' && unicode.IsControl(r) {
						t.Fatalf("control character in %q", e.Error())
					}
				}
			}
			return
		}
		roundTrip(t, p)
		alone, capped := New(p), New(p, p)
		for _, test := range append(append([]Test{}, p.Tests.Allow...), p.Tests.Deny...) {
			a, b := alone.Decide(test.Capability), capped.Decide(test.Capability)
			if a.Allowed != b.Allowed {
				t.Fatalf("%s: %s, under itself as a ceiling %s", test.Capability, a, b)
			}
		}
		if _, err := alone.Files(lawVars); err == nil {
			alone.Environ([]string{"A=b"})
		}
		alone.Explain()
		Lint(p)
	})
}

// FuzzCapability: the canonical spelling is read back as the same capability, holds no control character, and an
// accepted path or URL has nothing left to normalise.
func FuzzCapability(f *testing.F) {
	for _, s := range []string{"read /a/b", "write /out/./x//y", "GET https://A.test:443/a/%62/../c?d#e", "PATCH https://api.test/%2e", "env LANG", "secret T a.test.", "tool s/t/u", "program sh", "GET https://[::1]:8080/", "GET https://bücher.test/é", "write / /"} {
		f.Add(s)
	}
	everything, err := Parse("all", []byte(head+"files: {/: {host: /, access: write}}\nnetwork: [{host: '*', methods: ['*']}]\n"))
	if err != nil {
		f.Fatal(err)
	}
	e := New(everything)
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseCapability(s)
		if err != nil {
			if c != (Capability{}) {
				t.Fatalf("%q: a capability and an error", s)
			}
			return
		}
		text := c.String()
		again, err := ParseCapability(text)
		if err != nil || again != c {
			t.Fatalf("%q is written as %q and read as %+v, %v", s, text, again, err)
		}
		if badText(text) {
			t.Fatalf("%q holds a control character", text)
		}
		if strings.Contains(c.Path, "..") && strings.Contains(c.Path+"/", "/../") || c.Kind == HTTP && strings.ContainsAny(c.URL, "?#@\\ ") && !strings.Contains(c.URL, "/@") && !strings.Contains(c.URL[8:], "@") {
			t.Fatalf("%q is not normal", text)
		}
		if d := e.Decide(c); d.Reason == "" || d.Allowed == (d.Layer == LayerNone) {
			t.Fatalf("%q: %+v", text, d)
		}
	})
}

// FuzzGlob: the matcher agrees with the plain definition, a pattern survives being written, and taking a pattern below
// a folder changes nothing about what it matches.
func FuzzGlob(f *testing.F) {
	for _, s := range [][2]string{{"**/.env*", "a/.env"}, {"a/**/b", "a/b"}, {"*a*b*", "xaxb"}, {"**", "a"}, {"**/a/**/b", "a/a/b/b"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		g, err := ParseGlob(pattern)
		if err != nil || len(pattern) > 60 || len(name) > 60 || strings.Count(pattern, "**") > 4 {
			return
		}
		again, err := ParseGlob(g.String())
		if err != nil || again.String() != pattern {
			t.Fatalf("%q is written as %q: %v", pattern, g, err)
		}
		path := segments(name)
		if got, want := g.Match(path), plainMatch(g.segs, path); got != want {
			t.Fatalf("%q matches %q: %v, want %v", pattern, name, got, want)
		}
		prefix := g.MatchPrefix(path)
		for cut := 1; cut < len(path); cut++ {
			rests, whole := g.below(path[:cut])
			got := whole
			for _, r := range rests {
				got = got || r.MatchPrefix(path[cut:]) > 0
			}
			if got != (prefix > 0) {
				t.Fatalf("%q covers %q: %v, but taken below %q: %v", pattern, name, prefix > 0, path[:cut], got)
			}
		}
	})
}

// plainMatch is the definition of the grammar, without regard for time.
func plainMatch(pat, path []string) bool {
	switch {
	case len(pat) == 0:
		return len(path) == 0
	case pat[0] == "**":
		return plainMatch(pat[1:], path) || len(path) > 0 && plainMatch(pat, path[1:])
	case len(path) == 0:
		return false
	case pat[0] == "*":
		return path[0] != "" && plainMatch(pat[1:], path[1:])
	}
	return plainText(pat[0], path[0]) && plainMatch(pat[1:], path[1:])
}

func plainText(pat, s string) bool {
	switch {
	case pat == "":
		return s == ""
	case pat[0] == '*':
		return plainText(pat[1:], s) || s != "" && plainText(pat, s[1:])
	}
	return s != "" && s[0] == pat[0] && plainText(pat[1:], s[1:])
}
