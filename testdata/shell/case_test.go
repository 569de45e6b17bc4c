// Package shell_test holds the shell runtime against bash and Debian's tools.
//
// The cases are the *.txt files beside it; README.md says how they are written. TestReal replays them in bash, if this
// machine has the versions that they were recorded from, TestSandbox replays them in the sandbox on both engines.
package shell_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// case_ is one script and what it has to do.
type case_ struct {
	subject string // the name of its file, without ".txt"
	claim   string
	id      string // subject/slug-of-the-claim
	script  string
	want    string // as [outcome.String] writes it; "": not recorded yet
	line    int
}

// own says that there is nothing outside to compare the cases of a subject with: what was recorded is the sandbox's own
// answer, read by a person.
func own(subject string) bool { return strings.HasPrefix(subject, "own-") }

var nonWord = regexp.MustCompile(`[^a-z0-9]+`)

func slug(claim string) string {
	return strings.Trim(nonWord.ReplaceAllString(strings.ToLower(claim), "-"), "-")
}

// parse reads a file of cases: blocks of "== CLAIM", the script, and the outcome up to its "-- exit" line.
func parse(subject, text string) ([]*case_, error) {
	var cases []*case_
	var c *case_
	seen := map[string]bool{}
	wants, ended := false, true
	n := 0
	for line := range strings.Lines(text) {
		n++
		switch {
		case strings.HasPrefix(line, "== "):
			claim := strings.TrimSpace(line[3:])
			c = &case_{subject: subject, claim: claim, id: subject + "/" + slug(claim), line: n}
			if wants && !ended {
				return nil, fmt.Errorf("%s.txt:%d: the case before %q has no exit line", subject, n, claim)
			}
			if seen[c.id] {
				return nil, fmt.Errorf("%s.txt:%d: two cases are called %q", subject, n, claim)
			}
			seen[c.id] = true
			cases = append(cases, c)
			wants, ended = false, false
		case c == nil || ended:
			if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
				return nil, fmt.Errorf("%s.txt:%d: %q stands in no case", subject, n, line)
			}
		case strings.HasPrefix(line, "-- "):
			wants = true
			c.want += line
			ended = strings.HasPrefix(line, "-- exit ")
		case wants:
			c.want += line
		default:
			c.script += unescape(line)
		}
	}
	for _, c := range cases {
		if c.want == "" {
			c.script = strings.TrimRight(c.script, "\n") + "\n"
		}
		if strings.TrimSpace(c.script) == "" {
			return nil, fmt.Errorf("%s.txt:%d: no script", subject, c.line)
		}
	}
	if wants && !ended {
		return nil, fmt.Errorf("%s.txt: the last case has no exit line", subject)
	}
	return cases, nil
}

// format writes a file of cases that parse reads back. head is the text before the first case.
func format(head string, cases []*case_) string {
	var b strings.Builder
	b.WriteString(head)
	for i, c := range cases {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "== %s\n", c.claim)
		for line := range strings.Lines(c.script) {
			b.WriteString(escape(line))
		}
		b.WriteString(c.want)
	}
	return b.String()
}

func escape(line string) string {
	if strings.HasPrefix(line, "== ") || strings.HasPrefix(line, "-- ") || strings.HasPrefix(line, `\`) {
		return `\` + line
	}
	return line
}

func unescape(line string) string { return strings.TrimPrefix(line, `\`) }

// outcome is what a script did.
type outcome struct {
	stdout string
	stderr string // for messages; it is not compared
	exit   int
	left   map[string]string // what differs from the work folder it began with, by path: see leftover
	denied []string          // capabilities, only in subjects of the sandbox's own
}

func (o outcome) String() string {
	var b strings.Builder
	if o.stdout != "" {
		section(&b, "stdout", o.stdout)
	}
	var names []string
	for name := range o.left {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		title := name
		if strings.ContainsAny(name, ", \"") || !plain(name) {
			title = strconv.Quote(name)
		}
		kind, content, _ := strings.Cut(o.left[name], "\x00")
		switch kind {
		case "file":
			section(&b, "file "+title, content)
		case "link":
			fmt.Fprintf(&b, "-- link %s -> %s\n", title, content)
		default:
			fmt.Fprintf(&b, "-- %s %s\n", kind, title)
		}
	}
	for _, capability := range o.denied {
		fmt.Fprintf(&b, "-- denied %s\n", capability)
	}
	fmt.Fprintf(&b, "-- exit %d\n", o.exit)
	return b.String()
}

// maxText is the longest content that is written out.
const maxText = 6 << 10

func section(b *strings.Builder, title, content string) {
	switch {
	case len(content) > maxText:
		fmt.Fprintf(b, "-- %s, %d bytes, sha256 %x\n", title, len(content), sha256.Sum256([]byte(content)))
	case !plain(content):
		fmt.Fprintf(b, "-- %s, quoted\n", title)
		for line := range strings.Lines(content) {
			fmt.Fprintf(b, "%s\n", strconv.Quote(line))
		}
	default:
		if content != "" && !strings.HasSuffix(content, "\n") {
			title += ", no newline at the end"
			content += "\n"
		}
		fmt.Fprintf(b, "-- %s\n", title)
		for line := range strings.Lines(content) {
			b.WriteString(escape(line))
		}
	}
}

func plain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == 0xfeff
	})
}

// subjects reads all files of cases, in the order of their names.
func subjects(t testing.TB) (order []string, cases map[string][]*case_, heads map[string]string) {
	t.Helper()
	files, err := filepath.Glob("*.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases, heads = map[string][]*case_{}, map[string]string{}
	for _, file := range files {
		if file == differencesFile {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		subject := strings.TrimSuffix(file, ".txt")
		head, _, found := bytes.Cut(text, []byte("== "))
		if !found {
			t.Fatalf("%s: no case", file)
		}
		cs, err := parse(subject, string(text))
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, subject)
		cases[subject], heads[subject] = cs, string(head)
	}
	return order, cases, heads
}

// differencesFile lists the cases in which the sandbox is meant to differ: "== SUBJECT/SLUG", the reason, and the
// outcome that the sandbox has instead.
const differencesFile = "differences.txt"

type difference struct {
	reason string
	want   string
}

func differences(t testing.TB) map[string]*difference {
	t.Helper()
	text, err := os.ReadFile(differencesFile)
	if err != nil {
		t.Fatal(err)
	}
	list, err := parse("", string(text))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*difference{}
	for _, c := range list {
		all[c.claim] = &difference{reason: strings.TrimSpace(c.script), want: c.want}
	}
	return all
}

// Exactly the same text is what -update has to leave of a file in which nothing changed.
func TestFilesOfCasesAreWrittenAsTheyAreRead(t *testing.T) {
	order, cases, heads := subjects(t)
	count := 0
	for _, subject := range order {
		text, err := os.ReadFile(subject + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		if got := format(heads[subject], cases[subject]); got != string(text) {
			t.Errorf("%s.txt would be written in another way; run `go test ./testdata/shell -run Real -update`", subject)
		}
		for _, c := range cases[subject] {
			if c.want == "" {
				t.Errorf("%s.txt:%d: nothing is recorded for %q", subject, c.line, c.claim)
			}
		}
		count += len(cases[subject])
	}
	if count < 400 {
		t.Errorf("%d cases: files are missing", count)
	}
	listed := differences(t)
	for id, d := range listed {
		subject, _, _ := strings.Cut(id, "/")
		if !slices.ContainsFunc(cases[subject], func(c *case_) bool { return c.id == id }) {
			t.Errorf("%s: there is no case %q", differencesFile, id)
		}
		if len(strings.Fields(d.reason)) < 4 {
			t.Errorf("%s: %q has no reason", differencesFile, id)
		}
	}
}

func TestOutcomesThatDifferAreWrittenDifferently(t *testing.T) {
	outcomes := []outcome{
		{},
		{exit: 1},
		{stdout: "a"},
		{stdout: "a\n"},
		{stdout: "a\n\n"},
		{stdout: "-- exit 0\n"},
		{stdout: "\\-- exit 0\n"},
		{stdout: "a\x00b\n"},
		{stdout: `"a\x00b\n"` + "\n"},
		{stdout: strings.Repeat("x", maxText+1)},
		{stdout: strings.Repeat("y", maxText+1)},
		{left: map[string]string{"a": "file\x00"}},
		{left: map[string]string{"a": "folder\x00"}},
		{left: map[string]string{"a": "gone\x00"}},
		{left: map[string]string{"a": "link\x00b"}},
		{left: map[string]string{"a, quoted": "file\x00"}},
		{denied: []string{"program git"}},
	}
	seen := map[string]int{}
	for i, o := range outcomes {
		text := o.String()
		if j, ok := seen[text]; ok {
			t.Errorf("outcomes %d and %d are both %q", i, j, text)
		}
		seen[text] = i
		in := []*case_{{claim: "one", script: "echo\n", want: text}, {claim: "two", script: "== x\n-- y\n\\z\n", want: text}}
		back, err := parse("s", format("", in))
		if err != nil || len(back) != 2 || back[0].want != text || back[1].want != text || back[1].script != in[1].script {
			t.Errorf("outcome %d is not read back: %v", i, err)
		}
	}
}
