package cli

import (
	"bytes"
	"io"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/exthost/exthost/policy"
)

func TestPrintableSpellsOutWhatATerminalWouldObey(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain text is unchanged", "read /workspace/q3 ü.csv", "read /workspace/q3 ü.csv"},
		{"an escape sequence is spelt", "a\x1b[31mb", `a\x1b[31mb`},
		{"a new line cannot forge a line of ours", "x\nexthost: hint: y", `x\nexthost: hint: y`},
		{"a bidirectional override is spelt", "a\u202eb", `a\u{202e}b`},
		{"a zero-width character is spelt", "a\u200bb", `a\u{200b}b`},
		{"invalid UTF-8 is spelt", "a\xffb", `a\xffb`},
		{"a C1 control is spelt", "a\u009bb", `a\u{9b}b`},
		{"the replacement character itself is text", "a\ufffdb", "a\ufffdb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := printable(c.in); got != c.want {
				t.Errorf("printable(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestCleanerTakesSequencesOut(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"text, tabs and lines pass", "a\tb\r\nü\n", "a\tb\r\nü\n"},
		{"a colour is taken out", "\x1b[1;31mred\x1b[0m", "red"},
		{"a window title is taken out", "\x1b]0;title\x07text", "text"},
		{"a title that ends with ST is taken out", "\x1b]0;title\x1b\\text", "text"},
		{"a device string is taken out", "\x1bP1$r\x1b\\text", "text"},
		{"a charset switch is taken out", "\x1b(0text", "text"},
		{"an eight-bit sequence is taken out", "\u009b31mtext", "text"},
		{"a string sequence ends with its line", "\x1b]0;never\nnext", "\nnext"},
		{"bells and backspaces are taken out", "a\x07\x08b\x00c\x7f", "abc"},
		{"an override of direction is taken out", "a\u202eb\u2066c", "abc"},
		{"invalid UTF-8 becomes the replacement character", "a\xffb", "a\ufffdb"},
		{"an unfinished escape takes nothing else", "a\x1b", "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for size := 1; size <= len(c.in); size++ { // whatever way it is cut into writes
				var out bytes.Buffer
				w := &cleaner{w: &out}
				for in := c.in; in != ""; {
					n := min(size, len(in))
					if _, err := io.WriteString(w, in[:n]); err != nil {
						t.Fatal(err)
					}
					in = in[n:]
				}
				if out.String() != c.want {
					t.Fatalf("in writes of %d: %q, want %q", size, out.String(), c.want)
				}
			}
		})
	}
}

func TestCleanerDoesNotSwallowWithoutBound(t *testing.T) {
	var out bytes.Buffer
	w := &cleaner{w: &out}
	if _, err := io.WriteString(w, "\x1b]0;"+strings.Repeat("x", 2*maxSequence)+"end"); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(out.String(), "end") {
		t.Error("a sequence that does not end swallowed the text after it")
	}
}

func FuzzCleaner(f *testing.F) {
	f.Add([]byte("a\x1b[31mb\x1b]0;t\x07c\xff\xc2"), 3)
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		var whole, parts bytes.Buffer
		w := &cleaner{w: &whole}
		_, _ = w.Write(bytes.Clone(in))
		cut = min(max(cut, 0), len(in))
		p := &cleaner{w: &parts}
		_, _ = p.Write(bytes.Clone(in[:cut]))
		_, _ = p.Write(bytes.Clone(in[cut:]))
		if whole.String() != parts.String() {
			t.Errorf("one write: %q, two writes: %q", whole.String(), parts.String())
		}
		if !utf8.Valid(whole.Bytes()) {
			t.Errorf("not UTF-8: %q", whole.String())
		}
		if strings.ContainsFunc(whole.String(), func(r rune) bool {
			return r < 0x20 && r != '\n' && r != '\t' && r != '\r' || r >= 0x7f && r < 0xa0
		}) {
			t.Errorf("a control character came through: %q", whole.String())
		}
	})
}

func TestShellQuoteMakesOneWord(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell")
	}
	for _, s := range []string{"", "plain", "a b", "it's", `"q"`, "${workspace}/x", "$(id)", "`id`", "a\\b", "~", "*", "-x", "ü", "a=b", "!x", "#x", "a;b", "a\tb"} {
		out, err := exec.Command(sh, "-c", "printf %s "+shellQuote(s)).Output()
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if string(out) != s {
			t.Errorf("%q came out as %q", s, out)
		}
	}
}

func TestParseGrantFindsTheHostFolder(t *testing.T) {
	for _, c := range []struct{ in, capability, host string }{
		{"read /workspace", "read /workspace", ""},
		{"write /out=${workspace}/reports", "write /out", "${workspace}/reports"},
		{"read /in=~/x", "read /in", "~/x"},
		{"read /in=/srv/a=b", "read /in", "/srv/a=b"},
		{"read /workspace/a=b.txt", "read /workspace/a=b.txt", ""},
		{"env LANG", "env LANG", ""},
	} {
		got, host, err := parseGrant(c.in)
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
		} else if got.String() != c.capability || host != c.host {
			t.Errorf("%q is %q at %q, want %q at %q", c.in, got, host, c.capability, c.host)
		}
	}
	for _, in := range []string{"read out", "write /workspace/../x", "sing /x", ""} {
		if c, host, err := parseGrant(in); err == nil {
			t.Errorf("%q is %q at %q, want an error", in, c, host)
		}
	}
}

func TestScriptCannotChooseTheHostFolderOfASuggestion(t *testing.T) {
	s := &session{workspace: t.TempDir()}
	for in, want := range map[string]string{
		"read /workspace/x=/etc/passwd":       "",
		"write /workspace/x=~/.ssh/keys":      "",
		"read /workspace/x=${workspace}/a/b":  "",
		"write /out=/etc/x":                   "",
		"write /data/x=~/y/z":                 "",
		"write /o=/root=/k":                   "",
		"read /workspace/a=b/c":               "read /workspace/a=b",
		"write /out/report.pdf":               "write /out=${workspace}/out",
		"write /a=b/report.pdf":               "write /a=b=${workspace}/a=b",
		"write /workspace/reports/report.pdf": "write /workspace/reports",
	} {
		c, err := policy.ParseCapability(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.suggest(c); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func TestGrantAsksForTheHostFolderWhenItMustBeTold(t *testing.T) {
	for _, c := range []struct {
		in string
		ok bool
	}{
		{"read /workspace", true}, {"write /workspace/reports", true}, {"write /data/x", true}, {"read /in=/srv/in", true},
		{"write /out=${workspace}/out", true}, {"read /workspacex", false}, {"write /out", false}, {"read /out=reports", false},
		{"write /skill/x", false}, {"env PATH", false}, {"env LANG", true},
	} {
		data, err := addLines("x", nil, []string{c.in})
		if (err == nil) != c.ok {
			t.Errorf("%q: %v", c.in, err)
			continue
		}
		if !c.ok {
			continue
		}
		p, err := policy.Parse("x", data)
		if err != nil {
			t.Fatal(err)
		}
		want, _, _ := parseGrant(c.in)
		if d := policy.New(p).Decide(want); !d.Allowed {
			t.Errorf("%q is not allowed by\n%s", c.in, data)
		}
	}
}

func TestEveryLaterCommandIsAnsweredPlainly(t *testing.T) {
	for _, name := range later {
		var out, errOut bytes.Buffer
		code := Main(t.Context(), append(strings.Fields(name), "x"), strings.NewReader(""), &out, &errOut, nil)
		if code != exitCannot || !strings.Contains(errOut.String(), "this version does not have") {
			t.Errorf("%s: exit code %d, %q", name, code, errOut.String())
		}
		out.Reset()
		if Main(t.Context(), nil, strings.NewReader(""), &out, &out, nil); strings.Contains(out.String(), "  "+name+" ") {
			t.Errorf("%s is listed", name)
		}
	}
}

func TestEveryCommandHasHelp(t *testing.T) {
	for _, c := range table() {
		var out, errOut bytes.Buffer
		code := Main(t.Context(), append(strings.Fields(c.name), "--help"), strings.NewReader(""), &out, &errOut, nil)
		if code != exitOK || errOut.Len() > 0 || !strings.HasPrefix(out.String(), "usage: exthost "+c.name) {
			t.Errorf("%s --help: exit code %d, stderr %q, stdout %q", c.name, code, errOut.String(), out.String())
		}
		for _, e := range c.examples {
			if cmd, _, err := find(strings.Fields(e)); err != nil || cmd.name != c.name {
				t.Errorf("example %q is not one of %q", e, c.name)
			}
		}
	}
}

func TestHelpTopicsFitAScreen(t *testing.T) {
	for _, name := range topics {
		var out, errOut bytes.Buffer
		if code := Main(t.Context(), []string{"help", name}, strings.NewReader(""), &out, &errOut, nil); code != exitOK {
			t.Errorf("help %s: exit code %d, %q", name, code, errOut.String())
		}
		for line := range strings.Lines(out.String()) {
			if name != "json" && utf8.RuneCountInString(line) > 121 {
				t.Errorf("help %s: a line of %d characters: %q", name, utf8.RuneCountInString(line), line)
			}
		}
	}
}

func TestDistanceCountsEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"run", "run", 0}, {"rnu", "run", 2}, {"grnt", "grant", 1}, {"", "abc", 3}, {"policy chek", "policy check", 1}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
