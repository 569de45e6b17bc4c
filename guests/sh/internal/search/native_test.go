package search

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exthost/exthost/guests/sh/internal/cmdtest"
)

// native is a call that must give the same output, exit code and files as the machine's own tool.
type native struct {
	argv  string // words, separated by a space; '…' may hold spaces
	stdin string
	files map[string]string // besides those of sampleFiles
	after []string          // files that must be equal afterwards
}

func words1(line string) []string {
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

func sample(t testing.TB, more map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"t":            "x foo foo\nyfoo\n\nz\n",
		"nums":         "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n",
		"log":          "2024-01-02 ERROR disk full\n2024-01-03 INFO ok\n2024-01-04 WARN slow: 35ms\n2024-01-05 ERROR net down\n",
		"noeol":        "a\nb",
		"bin":          "a\x00foo\nb\n",
		"latin":        "caf\xe9\nfoo\n",
		"uni":          "été\nÜber straße\nfoo é\n",
		"empty":        "",
		"zeros":        "a\nb\x00c\x00",
		"conf":         "# comment\nname = value\n[section]\nkey=1\nkey2 = \"two\"\n\n[other]\nkey=3\n",
		"pats":         "foo\nz\n",
		"d/f1":         "a\nfoo\nb\n",
		"d/sub/f2.txt": "foo bar\n",
		"d/sub/f3.md":  "bar\n",
		"json":         "{\"name\": \"demo\", \"version\": \"1.2.3\"}\n",
		"script.sh":    "#!/bin/bash\nset -e\n# a comment\necho \"$1\"\nfunction f() {\n  return 1\n}\n",
	}
	for n, text := range more {
		files[n] = text
	}
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

// compare runs calls here and by the machine's tool.
func compare(t *testing.T, tool, version string, calls []native) {
	out, err := exec.Command(tool, "--version").Output()
	if err != nil || !strings.Contains(string(out), version) {
		if os.Getenv("REQUIRE_SHELLS") != "" {
			t.Fatalf("%s is not %s: %v %s", tool, version, err, out)
		}
		t.Skipf("%s is not %s", tool, version)
	}
	for _, c := range calls {
		argv := words1(c.argv)
		theirs, ours := sample(t, c.files), sample(t, c.files)
		run := exec.Command(argv[0], argv[1:]...)
		run.Dir = theirs
		run.Env = []string{"HOME=" + theirs, "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "TZ=UTC"}
		run.Stdin = strings.NewReader(c.stdin)
		var stdout, stderr bytes.Buffer
		run.Stdout, run.Stderr = &stdout, &stderr
		err := run.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		got := cmdtest.Run(t, Commands, ours, c.stdin, argv...)
		if got.Stdout != stdout.String() || got.Code != run.ProcessState.ExitCode() || (got.Stderr == "") != (stderr.Len() == 0) {
			t.Errorf("%s <<< %q\n got %d %q %q\nwant %d %q %q", c.argv, c.stdin, got.Code, got.Stdout, got.Stderr, run.ProcessState.ExitCode(), stdout.String(), stderr.String())
		} else if got.Stderr != stderr.String() {
			t.Logf("%s: says %q, not %q", c.argv, got.Stderr, stderr.String())
		}
		for _, f := range c.after {
			want, err1 := os.ReadFile(filepath.Join(theirs, f))
			have, err2 := os.ReadFile(filepath.Join(ours, f))
			if string(want) != string(have) || (err1 == nil) != (err2 == nil) {
				t.Errorf("%s: file %s is %q (%v), not %q (%v)", c.argv, f, have, err2, want, err1)
			}
		}
	}
}
