// Package scripttest runs files of cases: commands with what they print, which are also run on the tools of the machine.
//
// "## name" begins a case, "$ words" is a command, with <<'text' for its standard input; what follows is its output, and [N] its exit
// code when it is not 0. "!" instead of "$": the tool of the machine differs on purpose, and does not count. "~": it may
// print its lines in another order. DIR is the folder that all happens in. An empty line ends a case.
//
// The tools are those of Debian 12, run by root, as the cases were recorded; elsewhere the recordings stand alone.
package scripttest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/cmdtest"
)

var update = flag.Bool("update", false, "write what the tools of the machine print into testdata")

// Config is what the cases of a package need.
type Config struct {
	Table map[string]cmd.Func
	// Normal takes from what a tool prints that which depends on the machine.
	Normal func(command, text string) string
	// Quiet are commands that may fail without a word.
	Quiet func(line string) bool
	// Opaque are files of which only the name has to be the tool's.
	Opaque func(name string) bool
}

// script is a case.
type script struct {
	name  string
	steps []step
}

type step struct {
	line string
	want string
}

// scripts reads a file of cases.
func scripts(t *testing.T, file string) []script {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []script
	for _, line := range strings.SplitAfter(string(text), "\n") {
		switch {
		case strings.HasPrefix(line, "## "):
			list = append(list, script{name: strings.TrimSpace(line[3:])})
		case len(list) == 0:
		case strings.HasPrefix(line, "$ "), strings.HasPrefix(line, "! "), strings.HasPrefix(line, "~ "):
			s := &list[len(list)-1]
			s.steps = append(s.steps, step{line: strings.TrimSuffix(line, "\n")})
		default:
			if s := &list[len(list)-1]; len(s.steps) > 0 {
				s.steps[len(s.steps)-1].want += line
			}
		}
	}
	for _, s := range list {
		// An empty line ends a case.
		if n := len(s.steps); n > 0 {
			s.steps[n-1].want = strings.TrimSuffix(s.steps[n-1].want, "\n")
			if w := s.steps[n-1].want; w != "" && !strings.HasSuffix(w, "\n") {
				s.steps[n-1].want += "\n"
			}
		}
	}
	return list
}

// words splits a command line: '...' and "..." quote, $'...' has escapes.
func words(t *testing.T, line string) (argv []string, stdin string) {
	t.Helper()
	var b strings.Builder
	started := false
	for i := 0; i < len(line); i++ {
		switch x := line[i]; {
		case x == ' ':
			if started {
				argv = append(argv, b.String())
				b.Reset()
				started = false
			}
		case x == '\'' || x == '"':
			end := strings.IndexByte(line[i+1:], x)
			if end < 0 {
				t.Fatalf("no end of quotes: %s", line)
			}
			text := line[i+1 : i+1+end]
			if s := b.String(); strings.HasSuffix(s, "$") {
				b.Reset()
				b.WriteString(s[:len(s)-1])
				text = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\0`, "\x00", `\\`, `\`, `\q`, "'").Replace(text)
			}
			b.WriteString(text)
			started = true
			i += end + 1
		default:
			b.WriteByte(x)
			started = true
		}
	}
	if started {
		argv = append(argv, b.String())
	}
	if n := len(argv); n > 0 && strings.HasPrefix(argv[n-1], "<<") {
		argv, stdin = argv[:n-1], argv[n-1][2:]
	}
	return argv, stdin
}

// Fixture makes the files that the cases work on.
func Fixture(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	old := time.Date(2024, 1, 2, 3, 4, 5, 678901234, time.UTC)
	for _, f := range []struct {
		name, text string
		days       int
	}{
		{"a.txt", "hello\n", 0}, {"b.txt", "", 1}, {"c.md", strings.Repeat("line\n", 2000), 2}, {".hidden", "secret\n", 3},
		{"sp ace", "x", 4}, {"it's", "y", 5}, {"d/e.sh", "#!/bin/sh\necho e\n", 6}, {"d/f.log", "log\n", 7}, {"d/sub/deep.log", strings.Repeat("z", 5000), 8},
		{"d/sub/.h", "", 9}, {"file10", "10", 10}, {"file9", "9", 11}, {"Upper.TXT", "U", 12},
	} {
		p := filepath.Join(dir, f.name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(f.text), 0o644); err != nil {
			t.Fatal(err)
		}
		when := old.AddDate(0, 0, f.days)
		if err := os.Chtimes(p, when, when); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for to, from := range map[string]string{"link": "a.txt", "dlink": "d", "broken": "nope", "d/up": "../a.txt"} {
		p := filepath.Join(dir, to)
		if err := os.Symlink(from, p); err != nil {
			t.Fatal(err)
		}
		linkTimes(t, p, old)
	}
	for _, d := range []string{"empty", "d/sub", "d", "."} {
		if err := os.Chtimes(filepath.Join(dir, d), old, old); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tree describes all files below dir.
func (cfg Config) tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, p)
		switch {
		case d.IsDir():
			fmt.Fprintf(&b, "%s/\n", name)
		case d.Type()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(p)
			fmt.Fprintf(&b, "%s -> %s\n", name, to)
		default:
			if cfg.Opaque != nil && cfg.Opaque(name) {
				fmt.Fprintf(&b, "%s\n", name)
				return nil
			}
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s %d %x\n", name, len(text), sha256.Sum256(text))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func outcome(stdout string, code int, dir string) string {
	out := strings.ReplaceAll(stdout, dir, "DIR")
	if out != "" && !strings.HasSuffix(out, "\n") {
		out += "\\\n"
	}
	out = strings.ReplaceAll(out, "\x00", "^@")
	if code != 0 {
		out += fmt.Sprintf("[%d]\n", code)
	}
	return out
}

// without are the lines of a that are not in b.
func without(a, b string) string {
	have := strings.SplitAfter(b, "\n")
	return strings.Join(slices.DeleteFunc(strings.SplitAfter(a, "\n"), func(l string) bool { return slices.Contains(have, l) }), "")
}

func ordered(text string) string {
	lines := strings.SplitAfter(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// real runs a command of the machine as the cases want it.
func (cfg Config) real(t *testing.T, dir, stdin string, argv []string) (string, string, bool) {
	t.Helper()
	p, err := exec.LookPath(argv[0])
	if err != nil {
		return "", "", false
	}
	var out, errs bytes.Buffer
	c := exec.Command(p, argv[1:]...)
	c.Args[0] = argv[0]
	c.Dir, c.Stdin, c.Stdout, c.Stderr = dir, strings.NewReader(stdin), &out, &errs
	c.Env = []string{"LC_ALL=C.UTF-8", "TZ=UTC", "HOME=" + dir, "PATH=" + os.Getenv("PATH"), "PWD=" + dir}
	code := 0
	if err := c.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Fatal(err)
		}
		code = exit.ExitCode()
	}
	text := out.String()
	if cfg.Normal != nil {
		text = cfg.Normal(argv[0], text)
	}
	return outcome(text, code, dir), errs.String(), true
}

// recorded tells whether the tools of this machine are those that the cases were recorded from.
var recorded = sync.OnceValue(func() bool {
	version, err := os.ReadFile("/etc/debian_version")
	return err == nil && strings.HasPrefix(string(version), "12") && os.Geteuid() == 0
})

// Run runs the cases of testdata/*.txt. REQUIRE_SHELLS=1 makes it a failure when a tool of the machine is not there.
func (cfg Config) Run(t *testing.T) {
	list, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(list) == 0 {
		t.Fatal(err, "no cases")
	}
	for _, file := range list {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { cfg.file(t, file) })
	}
}

func (cfg Config) file(t *testing.T, file string) {
	var fresh strings.Builder
	for _, s := range scripts(t, file) {
		fmt.Fprintf(&fresh, "## %s\n", s.name)
		t.Run(s.name, func(t *testing.T) {
			ours, theirs := Fixture(t), Fixture(t)
			oracle := recorded()
			if !oracle && os.Getenv("REQUIRE_SHELLS") != "" {
				t.Error("these are not the tools of Debian 12, run by root")
			}
			for _, step := range s.steps {
				argv, stdin := words(t, step.line[2:])
				differs := step.line[0] == '!'
				sub := func(dir string) []string {
					var list []string
					for _, a := range argv {
						list = append(list, strings.ReplaceAll(a, "DIR", dir))
					}
					return list
				}
				want := step.want
				if oracle {
					out, errs, ok := cfg.real(t, theirs, stdin, sub(theirs))
					if step.line[0] == '~' {
						out = ordered(out)
					}
					switch {
					case !ok:
						oracle = false
						if os.Getenv("REQUIRE_SHELLS") != "" {
							t.Errorf("%s is not there", argv[0])
						}
					case *update && !differs:
						want = out
					case !differs && out != want:
						t.Errorf("%s\nthe tool prints\n%s%s\nexpected\n%s", step.line, out, errs, want)
					case differs && out == want:
						t.Errorf("%s\nthe tool does the same: it is no difference", step.line)
					}
				}
				fmt.Fprintf(&fresh, "%s\n%s", step.line, want)
				r := cmdtest.Run(t, cfg.Table, ours, stdin, sub(ours)...)
				got := outcome(r.Stdout, r.Code, ours)
				if step.line[0] == '~' {
					got = ordered(got)
				}
				if got != want {
					t.Errorf("%s\ngot\n%s%s\nwant\n%s", step.line, got, r.Stderr, want)
				}
				if r.Code != 0 && r.Stderr == "" && !cfg.Quiet(step.line[2:]) {
					t.Errorf("%s fails without a word", step.line)
				}
				if oracle && !differs {
					if a, b := cfg.tree(t, ours), cfg.tree(t, theirs); a != b {
						t.Errorf("%s\nleaves\n%s\nthe tool\n%s", step.line, without(a, b), without(b, a))
					}
				}
			}
		})
		fresh.WriteString("\n")
	}
	if *update {
		if err := os.WriteFile(file, []byte(fresh.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
