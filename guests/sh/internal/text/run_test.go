package text

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/cmdtest"
)

// start runs a command with a context of its own.
func start(ctx context.Context, t *testing.T, dir string, out io.Writer, argv ...string) chan int {
	code := make(chan int, 1)
	c := &cmd.Call{
		Name: argv[0], Args: argv[1:], Stdin: strings.NewReader(""), Stdout: cmd.Writer(ctx, out), Stderr: io.Discard,
		Dir: dir, Shell: files{},
	}
	go func() { code <- cmd.Run(ctx, Commands[argv[0]], c) }()
	return code
}

type files struct{ cmd.Shell }

func (files) OpenFile(_ *cmd.Call, name string, flag int, perm os.FileMode) (cmd.File, error) {
	return os.OpenFile(name, flag, perm)
}

func waitFor(t *testing.T, code chan int) int {
	t.Helper()
	select {
	case c := <-code:
		return c
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on")
		return 0
	}
}

func TestTailFollowsUntilItIsEnded(t *testing.T) {
	for _, how := range []string{"-f", "-F", "-5f", "--follow=name"} {
		dir := t.TempDir()
		write(t, dir, map[string]string{"log": "one\n"})
		ctx, cancel := context.WithCancelCause(t.Context())
		r, w := io.Pipe()
		code := start(ctx, t, dir, w, "tail", how, "-s", "0.01", "log")
		expect := func(want string) {
			t.Helper()
			got := make([]byte, len(want))
			if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
				t.Fatalf("%s: %q, %v; want %q", how, got, err, want)
			}
		}
		expect("one\n")
		f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteString("two\n")
		f.Close()
		expect("two\n")
		if how == "-F" || how == "--follow=name" {
			write(t, dir, map[string]string{"next": "three\n"})
			if err := os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "log")); err != nil {
				t.Fatal(err)
			}
			expect("three\n")
		}
		cancel(cmd.SIGTERM)
		if c := waitFor(t, code); c != 143 {
			t.Errorf("%s: exit code %d", how, c)
		}
	}
}

// closed is a pipe that nobody reads.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestEndlessOutputEndsWithItsReader(t *testing.T) {
	for _, argv := range [][]string{
		{"yes"}, {"seq", "inf"}, {"shuf", "-r", "-i", "1-2"}, {"cat", "/dev/zero"}, {"tr", "a", "b"}, {"tail", "-c", "+1", "/dev/zero"},
		{"od", "-v", "/dev/zero"}, {"tee"},
	} {
		dir := t.TempDir()
		c := &cmd.Call{
			Name: argv[0], Args: argv[1:], Stdin: zeros{}, Stdout: cmd.Writer(t.Context(), closed{}), Stderr: io.Discard,
			Dir: dir, Shell: files{},
		}
		code := make(chan int, 1)
		go func() { code <- cmd.Run(t.Context(), Commands[argv[0]], c) }()
		if c := waitFor(t, code); c != 141 {
			t.Errorf("%q: exit code %d", argv, c)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestEndlessInputEndsWithTheRun: a command that only reads looks whether it has to end.
func TestEndlessInputEndsWithTheRun(t *testing.T) {
	for _, argv := range [][]string{
		{"wc", "/dev/zero"}, {"wc", "-l", "/dev/zero"}, {"md5sum", "/dev/zero"}, {"cksum", "/dev/zero"}, {"tail", "-c", "1", "/dev/zero"},
		{"cmp", "/dev/zero", "/dev/zero"}, {"strings", "/dev/zero"}, {"od", "/dev/zero"}, {"tr", "-d", `\0`},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		c := &cmd.Call{
			Name: argv[0], Args: argv[1:], Stdin: zeros{}, Stdout: cmd.Writer(ctx, io.Discard), Stderr: io.Discard, Dir: "/", Shell: files{},
		}
		if argv[0] == "cmp" {
			c.Args = []string{"/dev/zero", "-"}
		}
		code := make(chan int, 1)
		go func() { code <- cmd.Run(ctx, Commands[argv[0]], c) }()
		time.Sleep(20 * time.Millisecond)
		cancel(cmd.SIGALRM)
		if c := waitFor(t, code); c != 142 {
			t.Errorf("%q: exit code %d", argv, c)
		}
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, os.ErrPermission }

func TestFailedWritesAreReported(t *testing.T) {
	for name, want := range map[string]int{"sort": 2, "cat": 1, "wc": 1, "xxd": 3, "seq": 1, "tr": 1} {
		var errs bytes.Buffer
		args := map[string][]string{"seq": {"1000000"}, "tr": {"a", "b"}}[name]
		c := &cmd.Call{Name: name, Args: args, Stdin: strings.NewReader("text\n"), Stdout: full{}, Stderr: &errs, Dir: "/", Shell: files{}}
		if code := Commands[name](t.Context(), c); code != want || errs.String() == "" {
			t.Errorf("%s: exit code %d, %q", name, code, errs.String())
		}
	}
}

func TestCatDoesNotReadWhatItWrites(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"f": "text\n"})
	f, err := os.OpenFile(filepath.Join(dir, "f"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	code := waitFor(t, start(t.Context(), t, dir, f, "cat", "f"))
	if got := read(t, dir, "f"); code != 1 || got != "text\n" {
		t.Errorf("exit code %d, %q", code, got)
	}
}

// TestHeadLeavesTheRest: commands in a list share the position of a file.
func TestHeadLeavesTheRest(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"f": "1\n2\n3\n4\n"})
	f, err := os.Open(filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out bytes.Buffer
	for _, argv := range [][]string{{"head", "-1"}, {"head", "-c", "2"}, {"tail", "-1"}, {"cat"}} {
		c := &cmd.Call{Name: argv[0], Args: argv[1:], Stdin: cmd.Reader(t.Context(), f), Stdout: &out, Stderr: io.Discard, Dir: dir, Shell: files{}}
		if code := cmd.Run(t.Context(), Commands[argv[0]], c); code != 0 {
			t.Errorf("%q: exit code %d", argv, code)
		}
	}
	if got := out.String(); got != "1\n2\n4\n" {
		t.Errorf("%q", got)
	}
}

// TestSpellingsOfBSD are those that scripts for other systems use, which the real tools here do not have.
func TestSpellingsOfBSD(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"f": "hello", "c": "aGVsbG8=\n"})
	for _, test := range []struct{ line, in, want string }{
		{"base64 -D", "aGVsbG8=\n", "hello"},
		{"base64 -D -i c", "", "hello"},
		{"base64 -i f", "", "aGVsbG8=\n"},
		{"base64 -b 4", "hello", "aGVs\nbG8=\n"},
		{"base64 -i f -o out", "", ""},
		{"base64 -D -i out", "", "hello"},
	} {
		r := cmdtest.Run(t, Commands, dir, test.in, strings.Fields(test.line)...)
		if r.Code != 0 || r.Stdout != test.want {
			t.Errorf("%s: %d, %q, %s", test.line, r.Code, r.Stdout, r.Stderr)
		}
	}
}

func TestSumsAreChecked(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a": "a\n", "b": "b\n", "back\\slash": "c\n"})
	for _, tool := range []string{"md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "shasum", "shasum -a 256", "cksum -a sha1"} {
		argv := strings.Fields(tool)
		write(t, dir, map[string]string{"a": "a\n"})
		sums := run(t, dir, "", 0, append(argv, "a", "b", "back\\slash")...)
		if strings.HasPrefix(tool, "cksum") {
			argv = argv[:1]
		}
		check := func(code int, want string, args ...string) {
			t.Helper()
			r := cmdtest.Run(t, Commands, dir, sums, append(argv, args...)...)
			if r.Code != code || r.Stdout != want {
				t.Errorf("%s %q: %d, %q, %s", tool, args, r.Code, r.Stdout, r.Stderr)
			}
		}
		const name = `\back\\slash`
		check(0, "a: OK\nb: OK\n"+name+": OK\n", "-c")
		check(0, "", "-c", "--quiet")
		check(0, "", "-c", "--status")
		write(t, dir, map[string]string{"a": "changed\n"})
		check(1, "a: FAILED\nb: OK\n"+name+": OK\n", "-c")
		check(1, "a: FAILED\n", "-c", "--quiet")
		check(1, "", "-c", "--status")
		os.Remove(filepath.Join(dir, "a"))
		check(1, "a: FAILED open or read\nb: OK\n"+name+": OK\n", "-c", "-")
		check(0, "b: OK\n"+name+": OK\n", "-c", "--ignore-missing")
		sums += "rubbish\n"
		check(1, "b: OK\n"+name+": OK\n", "-c", "--ignore-missing", "--strict")
	}
}

// TestLongLines: no line is too long, and none makes a command slow.
func TestLongLines(t *testing.T) {
	line := strings.Repeat("word ", 100000)
	in := line + "\n" + line
	for _, test := range []struct{ line, want string }{
		{"wc -l", "1\n"}, {"cut -c 1-4", "word\nword\n"}, {"uniq -c", "      2 " + line + "\n"}, {"sort -u", line + "\n"},
		{"tail -n 1", line}, {"head -n 1", line + "\n"}, {"tac", line + line + "\n"},
	} {
		if got := run(t, ".", in, 0, strings.Fields(test.line)...); got != test.want {
			t.Errorf("%s: %d bytes, want %d", test.line, len(got), len(test.want))
		}
	}
	for _, line := range []string{"fold -s", "fmt", "rev", "column -t", "expand", "unexpand -a", "nl", "od", "xxd", "tr -s o", "paste -s"} {
		start := time.Now()
		run(t, ".", in, 0, strings.Fields(line)...)
		if d := time.Since(start); d > 30*time.Second {
			t.Errorf("%s took %v", line, d)
		}
	}
}

// TestTacOfAFile: a file is read from its end, a stream is not; what comes out is the same.
func TestTacOfAFile(t *testing.T) {
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(5, 6))
	for _, longest := range []int{10, 1000, 70000, 300000} {
		var b strings.Builder
		for b.Len() < 700000 {
			b.WriteString(strings.Repeat("x", r.IntN(longest)) + "\n")
		}
		text := b.String() + "end"
		write(t, dir, map[string]string{"f": text})
		if run(t, dir, "", 0, "tac", "f") != run(t, dir, text, 0, "tac") {
			t.Errorf("lines up to %d", longest)
		}
	}
}
