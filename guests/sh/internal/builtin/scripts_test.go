package builtin_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/builtin"
	"github.com/exthost/exthost/guests/sh/internal/cmd"
	filetools "github.com/exthost/exthost/guests/sh/internal/files"
	"github.com/exthost/exthost/guests/sh/internal/search"
	"github.com/exthost/exthost/guests/sh/internal/shell"
	"github.com/exthost/exthost/guests/sh/internal/sys"
	"github.com/exthost/exthost/guests/sh/internal/text"
)

var update = flag.Bool("update", false, "record in testdata what bash does")

// The test program is the shell that its tests run, when it is told so.
const asShell = "EXTHOST_TEST_AS_SHELL"

func TestMain(m *testing.M) {
	if os.Getenv(asShell) != "" {
		os.Unsetenv(asShell)
		table := map[string]cmd.Func{}
		for _, t := range []map[string]cmd.Func{text.Commands, filetools.Commands, search.Commands, sys.Commands, builtin.Commands} {
			maps.Copy(table, t)
		}
		os.Exit(shell.New(table).Main(os.Args))
	}
	os.Exit(m.Run())
}

// script is a case: what it claims, its text, and what it writes and exits with.
type script struct{ claim, text, want string }

func scripts(t *testing.T, file string) []script {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rest, ok := strings.CutPrefix(string(data), "== ")
	if !ok {
		t.Fatalf("%s does not begin with a claim", file)
	}
	var list []script
	for block := range strings.SplitSeq(rest, "\n== ") {
		claim, body, _ := strings.Cut(block, "\n")
		text, want, _ := strings.Cut(body, "-- stdout\n")
		list = append(list, script{claim, strings.TrimRight(text, "\n") + "\n", strings.TrimRight(want, "\n")})
	}
	return list
}

func files(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	return names
}

// run runs a script with program and returns its result as the files hold it.
func run(t *testing.T, program, text string, more ...string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "script.sh")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, program, file)
	c.Dir = work
	c.Env = append([]string{"HOME=/home/guest", "PATH=/usr/bin:/bin", "PWD=" + work, "TZ=UTC", "LC_ALL=C.UTF-8"}, more...)
	out, err := c.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatal("it did not end within a minute")
	}
	stdout := strings.ReplaceAll(string(out), file, "SCRIPT")
	stdout = strings.ReplaceAll(stdout, work, "DIR")
	if stdout != "" && !strings.HasSuffix(stdout, "\n") {
		stdout += "\\\n"
	}
	return fmt.Sprintf("%s-- exit %d", stdout, c.ProcessState.ExitCode())
}

func TestScriptsDoWhatBashDoes(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files(t) {
		for _, s := range scripts(t, file) {
			t.Run(s.claim, func(t *testing.T) {
				if got := run(t, self, s.text, asShell+"=1"); got != s.want {
					t.Errorf("%s\n--- got\n%s\n--- want\n%s", s.text, got, s.want)
				}
			})
		}
	}
}

// The expectations are bash's own. Without a bash 5.2 they cannot be checked; REQUIRE_SHELLS=1 makes that an error.
func TestBashDoesWhatIsRecorded(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err == nil {
		out, _ := exec.Command(bash, "--version").Output()
		if !bytes.Contains(out, []byte("version 5.2")) {
			err = errors.New("bash is not version 5.2")
		}
	}
	if err != nil {
		if os.Getenv("REQUIRE_SHELLS") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	for _, file := range files(t) {
		var b strings.Builder
		var claims []string
		for _, s := range scripts(t, file) {
			if slices.Contains(claims, s.claim) {
				t.Errorf("%s: %q is claimed twice", file, s.claim)
			}
			claims = append(claims, s.claim)
			got := run(t, bash, s.text)
			if got != s.want && !*update {
				t.Errorf("%s\n--- bash\n%s\n--- recorded\n%s", s.claim, got, s.want)
			}
			if b.Len() > 0 {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "== %s\n%s-- stdout\n%s\n", s.claim, s.text, got)
		}
		if *update {
			if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Loops over arithmetic, replacement and conditions are what scripts spend their time in.
func BenchmarkLoop(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	text := `y=banana; for ((i = 0; i < 100000; i++)); do x=$((x+1)); y=${y/a/b}; [[ $y == x* ]] && z=$i; done`
	for b.Loop() {
		c := exec.Command(self, "-c", text)
		c.Env = []string{asShell + "=1"}
		if out, err := c.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
}
