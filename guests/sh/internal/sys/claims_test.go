package sys

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/exthost/exthost/guests/sh/internal/cmdtest"
)

// A claim is a command line with what it writes and returns. Files of testdata hold them, with the marks
//
//	$ NAME=VALUE command arg 'quoted arg'
//	< a line of standard input ("<\" alone: the last line has no end)
//	> a line of standard output (likewise; in quotes when it has control characters)
//	? exit code
//	! why the real tool may say something else, which is then not compared
type claim struct {
	file, line    string
	env, argv     []string
	stdin, stdout string
	code          int
	differs       string
}

func claims(t *testing.T) []claim {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no claims", err)
	}
	var all []claim
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(text), "\n") {
			if line == "" {
				continue
			}
			if line[0] == '$' {
				c := claim{file: filepath.Base(file), line: line[2:]}
				for _, w := range words(t, line[2:]) {
					if name, _, ok := strings.Cut(w, "="); ok && len(c.argv) == 0 && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "" {
						c.env = append(c.env, w)
					} else {
						c.argv = append(c.argv, w)
					}
				}
				all = append(all, c)
				continue
			}
			c := &all[len(all)-1]
			switch {
			case line == `<\`:
				c.stdin = strings.TrimSuffix(c.stdin, "\n")
			case line == `>\`:
				c.stdout = strings.TrimSuffix(c.stdout, "\n")
			case line[0] == '<':
				c.stdin += line[2:] + "\n"
			case strings.HasPrefix(line, `>"`):
				s, err := strconv.Unquote(line[1:])
				if err != nil {
					t.Fatalf("%s: %q: %v", file, line, err)
				}
				c.stdout += s + "\n"
			case line[0] == '>':
				c.stdout += line[2:] + "\n"
			case line[0] == '?':
				c.code, err = strconv.Atoi(line[2:])
				if err != nil {
					t.Fatalf("%s: %q", file, line)
				}
			case line[0] == '!':
				c.differs = line[2:]
			default:
				t.Fatalf("%s: %q", file, line)
			}
		}
	}
	return all
}

// words splits a line at blanks outside of single quotes.
func words(t *testing.T, line string) []string {
	var list []string
	var b strings.Builder
	in, quoted := false, false
	for i := 0; i < len(line); i++ {
		switch ch := line[i]; {
		case ch == '\'':
			quoted, in = !quoted, true
		case ch == '\\' && !quoted && i+1 < len(line):
			i++
			b.WriteByte(line[i])
			in = true
		case ch == ' ' && !quoted:
			if in {
				list = append(list, b.String())
				b.Reset()
			}
			in = false
		default:
			b.WriteByte(ch)
			in = true
		}
	}
	if quoted {
		t.Fatalf("%q: quote", line)
	}
	if in {
		list = append(list, b.String())
	}
	return list
}

func (c claim) environ() []string {
	e := []string{"HOME=/tmp", "PATH=/usr/bin:/bin", "TZ=UTC", "LC_ALL=C.UTF-8"}
	for _, v := range c.env {
		name, value, _ := strings.Cut(v, "=")
		e = set(e, name, value)
	}
	return e
}

func TestClaims(t *testing.T) {
	table := maps.Clone(Commands)
	for _, c := range claims(t) {
		t.Run(c.file+"/"+c.line, func(t *testing.T) {
			// The environment is given by the command env, as cmdtest has its own.
			argv := append([]string{"env", "-i"}, append(c.environ(), c.argv...)...)
			got := cmdtest.Run(t, table, t.TempDir(), c.stdin, argv...)
			if got.Stdout != c.stdout || got.Code != c.code {
				t.Errorf("%s\n got %q, exit code %d, %s\nwant %q, exit code %d", c.line, got.Stdout, got.Code, got.Stderr, c.stdout, c.code)
			}
			if got.Code == 0 && got.Stderr != "" && !strings.HasPrefix(c.argv[0], "bc") && !strings.Contains(c.line, "warn") && !strings.Contains(c.line, "-v") {
				t.Errorf("%s\nsucceeded, with errors: %s", c.line, got.Stderr)
			}
		})
	}
}

// TestClaimsHoldForRealTools replays the claims against the tools of the machine, which are GNU's on Debian 12.
func TestClaimsHoldForRealTools(t *testing.T) {
	required := os.Getenv("REQUIRE_SHELLS") != ""
	if v, err := exec.Command("date", "--version").Output(); err != nil || !strings.Contains(string(v), "GNU coreutils") {
		if required {
			t.Fatal("no GNU coreutils")
		}
		t.Skip("no GNU coreutils")
	}
	for _, c := range claims(t) {
		if c.differs != "" {
			continue
		}
		t.Run(c.file+"/"+c.line, func(t *testing.T) {
			path, err := exec.LookPath(c.argv[0])
			if err != nil {
				if required {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			run := exec.Command(path, c.argv[1:]...)
			run.Args[0] = c.argv[0]
			run.Env, run.Dir, run.Stdin = c.environ(), t.TempDir(), strings.NewReader(c.stdin)
			var out bytes.Buffer
			run.Stdout = &out
			err = run.Run()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := run.ProcessState.ExitCode(); code == -1 && c.code == 137 {
				// timeout -s KILL ends itself so.
			} else if out.String() != c.stdout || code != c.code {
				t.Errorf("%s\nreal %q, exit code %d\nwant %q, exit code %d", c.line, out.String(), code, c.stdout, c.code)
			}
		})
	}
}
