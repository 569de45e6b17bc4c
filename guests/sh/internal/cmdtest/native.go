package cmdtest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// Native is a call that is to do what the machine's own tool does.
type Native struct {
	Argv  string // words, as [Words] takes them apart
	Stdin string
	After []string // files that have to be equal afterwards
	Skip  string   // why the outcomes differ, when they are meant to; the test then fails where they do not
}

// Words takes a line apart at its spaces; '…' keeps what is in it together.
func Words(line string) []string {
	var out []string
	var b strings.Builder
	quoted, any := false, false
	for _, r := range line {
		switch {
		case r == '\'':
			quoted, any = !quoted, true
		case r == ' ' && !quoted:
			if any {
				out = append(out, b.String())
				b.Reset()
				any = false
			}
		default:
			b.WriteRune(r)
			any = true
		}
	}
	if any {
		out = append(out, b.String())
	}
	return out
}

// Calls makes a call of each line of text; a quoted line end belongs to its line.
func Calls(text, stdin string) []Native {
	var calls []Native
	open := false
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(l, "\n")
		switch {
		case open:
			calls[len(calls)-1].Argv += "\n" + l
		case l == "":
			continue
		default:
			calls = append(calls, Native{Argv: l, Stdin: stdin})
		}
		open = strings.Count(calls[len(calls)-1].Argv, "'")%2 == 1
	}
	return calls
}

// Files writes files, by their names in a new folder.
func Files(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for n, text := range files {
		p := filepath.Join(dir, n)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Require skips the test where the machine's tool is not of the version, which is what its --version (or -W version) says
// somewhere; with REQUIRE_SHELLS set, that fails the test.
func Require(t testing.TB, tool, version string, ask ...string) {
	t.Helper()
	if len(ask) == 0 {
		ask = []string{"--version"}
	}
	out, err := exec.Command(tool, ask...).CombinedOutput()
	if err == nil && strings.Contains(string(out), version) {
		return
	}
	if os.Getenv("REQUIRE_SHELLS") != "" {
		t.Fatalf("%s is not %s: %v %s", tool, version, err, out)
	}
	t.Skipf("%s is not %s", tool, version)
}

// Compare runs each call through table and through the machine's tool, each in a folder of its own with the files, and
// compares standard output, exit code and whether anything was said on standard error.
func Compare(t *testing.T, table map[string]cmd.Func, files map[string]string, calls []Native) {
	t.Helper()
	for _, c := range calls {
		argv := Words(c.Argv)
		theirs, ours := Files(t, files), Files(t, files)
		run := exec.Command(argv[0], argv[1:]...)
		run.Dir = theirs
		run.Env = []string{"HOME=" + theirs, "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "TZ=UTC"}
		run.Stdin = strings.NewReader(c.Stdin)
		var stdout, stderr bytes.Buffer
		run.Stdout, run.Stderr = &stdout, &stderr
		err := run.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		got := Run(t, table, ours, c.Stdin, argv...)
		same := got.Stdout == stdout.String() && got.Code == run.ProcessState.ExitCode() && (got.Stderr == "") == (stderr.Len() == 0)
		switch {
		case c.Skip != "" && same:
			t.Errorf("%s: is meant to differ (%s), but does not", c.Argv, c.Skip)
		case c.Skip == "" && !same:
			t.Errorf("%s <<< %q\n got %d %q %q\nwant %d %q %q", c.Argv, c.Stdin, got.Code, got.Stdout, got.Stderr,
				run.ProcessState.ExitCode(), stdout.String(), stderr.String())
		case got.Stderr != stderr.String():
			t.Logf("%s: says %q, not %q", c.Argv, got.Stderr, stderr.String())
		}
		for _, f := range c.After {
			want, err1 := os.ReadFile(filepath.Join(theirs, f))
			have, err2 := os.ReadFile(filepath.Join(ours, f))
			if string(want) != string(have) || (err1 == nil) != (err2 == nil) {
				t.Errorf("%s: file %s is %q (%v), not %q (%v)", c.Argv, f, have, err2, want, err1)
			}
		}
	}
}
