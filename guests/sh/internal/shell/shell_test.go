package shell

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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/builtin"
	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/files"
	"github.com/exthost/exthost/guests/sh/internal/lang"
	"github.com/exthost/exthost/guests/sh/internal/search"
	"github.com/exthost/exthost/guests/sh/internal/sys"
	"github.com/exthost/exthost/guests/sh/internal/text"
)

var update = flag.Bool("update", false, "record in testdata/scripts.txt what bash does")

// script is a case of testdata/scripts.txt.
type script struct{ claim, text, want string }

const scriptsFile = "testdata/scripts.txt"

func scripts(t *testing.T) (head string, list []script) {
	t.Helper()
	data, err := os.ReadFile(scriptsFile)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(data), "== ")
	if !ok {
		t.Fatal("no scripts")
	}
	for block := range strings.SplitSeq(rest, "\n== ") {
		claim, body, _ := strings.Cut(block, "\n")
		text, want, _ := strings.Cut(body, "-- stdout\n")
		list = append(list, script{claim, strings.TrimRight(text, "\n") + "\n", strings.TrimRight(want, "\n")})
	}
	return head, list
}

// result is what a script leaves, as it stands in the file.
func result(out string, code int) string {
	if out != "" && !strings.HasSuffix(out, "\n") {
		out += "\\\n"
	}
	return fmt.Sprintf("%s-- exit %d", out, code)
}

// environment is what the scripts run in, here and in bash.
func environment(dir string) []string {
	return []string{"HOME=" + dir, "PATH=/usr/bin:/bin", "PWD=" + dir, "TZ=UTC", "LC_ALL=C.UTF-8", "TERM=dumb"}
}

func commands() map[string]cmd.Func {
	table := map[string]cmd.Func{}
	for _, t := range []map[string]cmd.Func{text.Commands, files.Commands, search.Commands, sys.Commands, lang.Commands(), builtin.Commands} {
		maps.Copy(table, t)
	}
	return table
}

// run runs the shell as a command, with args, in dir.
func run(t *testing.T, dir, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var out, errs syncBuffer
	w := New(commands())
	code = w.command(ctx, &cmd.Call{
		Name: "bash", Args: args, Dir: dir, Environ: environment(dir), Umask: 0o022,
		Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs,
	})
	w.orphans.Wait()
	if ctx.Err() != nil {
		t.Errorf("it took longer than 20 s")
	}
	return out.String(), errs.String(), code
}

// syncBuffer is a buffer that jobs may write to beside the shell.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestScriptsDoWhatBashDoes(t *testing.T) {
	_, list := scripts(t)
	for _, s := range list {
		t.Run(s.claim, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "script.sh")
			if err := os.WriteFile(file, []byte(s.text), 0o644); err != nil {
				t.Fatal(err)
			}
			out, errs, code := run(t, dir, "", file)
			if got := result(strings.ReplaceAll(out, dir, "DIR"), code); got != s.want {
				t.Errorf("%s\n--- got\n%s\n--- want\n%s\n--- stderr\n%s", s.text, got, s.want, errs)
			}
		})
	}
}

// The expectations are bash's own. Where there is no bash 5.2 they cannot be checked; REQUIRE_SHELLS=1 makes that an error.
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
	head, list := scripts(t)
	var b strings.Builder
	b.WriteString(head)
	for i, s := range list {
		dir := t.TempDir()
		file := filepath.Join(dir, "script.sh")
		if err := os.WriteFile(file, []byte(s.text), 0o644); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		c := exec.CommandContext(ctx, bash, file)
		c.Dir, c.Env = dir, environment(dir)
		out, err := c.Output()
		cancel()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		code := c.ProcessState.ExitCode()
		if code < 0 {
			// A signal ended bash itself; the sandbox's shell can only say so in its exit code.
			code = 143
		}
		got := result(strings.ReplaceAll(string(out), dir, "DIR"), code)
		if got != s.want && !*update {
			t.Errorf("%s\n--- bash\n%s\n--- recorded\n%s", s.claim, got, s.want)
		}
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "== %s\n%s-- stdout\n%s\n", s.claim, s.text, got)
	}
	if *update {
		if err := os.WriteFile(scriptsFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
