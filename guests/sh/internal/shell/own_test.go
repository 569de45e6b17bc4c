package shell

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// These are what bash has no answer to that could be recorded.

func TestRecursionEndsWithAMessage(t *testing.T) {
	for _, text := range []string{
		"f() { f; }; f", "f() { eval f; }; f", "f() { x=$(f); }; f", "f() { (f); }; f", "echo '. ./a' > a; . ./a",
		"f() { bash -c 'f'; }; export -f f; f",
	} {
		dir := t.TempDir()
		_, errs, code := run(t, dir, "", "-c", text)
		if code == 0 && !strings.Contains(text, "$(") || !strings.Contains(errs, "maximum nesting level exceeded") {
			t.Errorf("%s: code %d, %.300s", text, code, errs)
		}
	}
}

func TestDeepExpressionsEndWithAMessage(t *testing.T) {
	for _, text := range []string{"((", "!", "- ", "1?2:("} {
		_, errs, code := run(t, t.TempDir(), strings.Repeat(text, 300_000)+"1\n", "-c", "read -r x; echo $((x))")
		if code != 1 || !strings.Contains(errs, "expression recursion level exceeded") {
			t.Errorf("%s...: code %d, %.200s", text, code, errs)
		}
	}
	if out, errs, _ := run(t, t.TempDir(), "", "-c", "echo $(("+strings.Repeat("(", 1000)+"7"+strings.Repeat(")", 1000)+"))"); out != "7\n" {
		t.Errorf("1000 parentheses: %q, %.200s", out, errs)
	}
}

func TestFilesThatAreNoScriptsSayWhatToDo(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"crlf.sh", "#!/bin/bash\r\necho a\r\n", "sed -i 's/\\r$//' crlf.sh"},
		{"line.sh", `#!/bin/bash\nset -e\necho hi\n`, "one line with \\n in it"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, c.name), []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{c.name}, {"-c", ". ./" + c.name}} {
			out, errs, code := run(t, dir, "", args...)
			if code != 2 || out != "" || !strings.Contains(errs, c.name+": line 1: ") || !strings.Contains(errs, strings.ReplaceAll(c.want, c.name, "")) {
				t.Errorf("%s %v: code %d, stdout %q, stderr %q", c.name, args, code, out, errs)
			}
		}
	}
}

func TestOtherInterpretersAreDenied(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.py": "#!/usr/bin/env python3\nprint(1)\n", "b.js": "#!/usr/bin/node\n", "c.rb": "#!/usr/bin/ruby -w\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		_, errs, code := run(t, dir, "", "-c", "./"+name)
		if code != 126 || !strings.Contains(errs, "bad interpreter") || !strings.Contains(errs, name) {
			t.Errorf("%s: code %d, %q", name, code, errs)
		}
	}
}

// A mistake in a command's own code ends the command.
func TestCommandsThatPanicEndAlone(t *testing.T) {
	var out, errs syncBuffer
	w := New(map[string]cmd.Func{"broken": func(context.Context, *cmd.Call) int { panic("index out of range") }})
	code := w.command(t.Context(), &cmd.Call{
		Name: "bash", Args: []string{"-c", "broken; echo $?"}, Dir: t.TempDir(), Environ: environment("/"),
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
	})
	if code != 0 || out.String() != "70\n" || !strings.Contains(errs.String(), "broken: internal error") {
		t.Errorf("code %d, %q, %q", code, out.String(), errs.String())
	}
}

// timeout and the end of the host's patience come as the end of a context: everything that waits ends by it.
func TestContextEndsWhatWaits(t *testing.T) {
	for _, text := range []string{
		"while :; do :; done", "sleep 100", "sleep 100 | cat", "wait_for() { sleep 100 & wait; }; wait_for", "x=$(sleep 100)", "( sleep 100 )",
		"cat < <(sleep 100)", "for ((;;)); do true; done", "until false; do echo; done > /dev/null", "yes > /dev/null", "read x",
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(50*time.Millisecond, func() { cancel(cmd.SIGTERM) })
		in, _ := newPipe()
		var out, errs syncBuffer
		w := New(commands())
		start := time.Now()
		code := w.command(ctx, &cmd.Call{
			Name: "bash", Args: []string{"-c", text + "; echo went on"}, Dir: t.TempDir(), Environ: environment("/"),
			Stdin: &stream{ctx: ctx, d: in}, Stdout: &out, Stderr: &errs,
		})
		if code != 143 || strings.Contains(out.String(), "went on") || time.Since(start) > 5*time.Second {
			t.Errorf("%s: code %d after %v, %.100q %q", text, code, time.Since(start), out.String(), errs.String())
		}
	}
}

func TestTextsOfErrorsAreThoseOfBash(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ text, want string }{
		{"nonexistent-command", "s.sh: line 1: nonexistent-command: command not found\n"},
		{"\nset -u; echo $x", "s.sh: line 2: x: unbound variable\n"},
		{"./none", "s.sh: line 1: ./none: No such file or directory\n"},
		{"cat < none", "s.sh: line 1: none: No such file or directory\n"},
		{"cd none", "s.sh: line 1: cd: none: No such file or directory\n"},
		{"/", "s.sh: line 1: /: Is a directory\n"},
		{"echo a >&7", "s.sh: line 1: 7: Bad file descriptor\n"},
		{"echo ${x:?is missing}", "s.sh: line 1: x: is missing\n"},
		{"readonly r=1\nr=2", "s.sh: line 2: r: readonly variable\n"},
		{"f() {\n  nope\n}\n\nf", "s.sh: line 2: nope: command not found\n"},
		{"eval 'nope'", "s.sh: line 1: nope: command not found\n"},
		{"exec nope", "s.sh: line 1: exec: nope: not found\n"},
		{". none", "s.sh: line 1: none: No such file or directory\n"},
		{"kill 99999", "s.sh: line 1: kill: (99999) - No such process\n"},
		{"wait 99999", "s.sh: line 1: wait: pid 99999 is not a child of this shell\n"},
		{"local x", "s.sh: line 1: local: can only be used in a function\n"},
		{"a='x y'; cat < $a", "s.sh: line 1: $a: ambiguous redirect\n"},
		{"set -C; : > f; : > f", "s.sh: line 1: f: cannot overwrite existing file\n"},
		{"if true; then\necho a\n", "s.sh: line 4: syntax error: unexpected end of file"},
	} {
		if err := os.WriteFile(filepath.Join(dir, "s.sh"), []byte(c.text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, errs, _ := run(t, dir, "", "s.sh"); !strings.HasPrefix(errs, c.want) {
			t.Errorf("%s\n got %q\nwant %q", c.text, errs, c.want)
		}
	}
}

func TestReadHasATimeLimitAndEndsAtTheEndOfInput(t *testing.T) {
	in, end := newPipe()
	var out, errs syncBuffer
	w := New(commands())
	start := time.Now()
	time.AfterFunc(300*time.Millisecond, end.close)
	code := w.command(t.Context(), &cmd.Call{
		Name: "bash", Args: []string{"-c", `read -t 0.05 x; [ $? -gt 128 ] && echo late; read -p "? " y; echo "$? [$y]"; read z; echo $?`},
		Dir: t.TempDir(), Environ: environment("/"), Stdin: &stream{ctx: t.Context(), d: in}, Stdout: &out, Stderr: &errs,
	})
	if want := "late\n1 []\n1\n"; code != 0 || out.String() != want || time.Since(start) > 5*time.Second {
		t.Errorf("code %d, %q, want %q; %s", code, out.String(), want, errs.String())
	}
}

func TestDevicesOfCommandsAreTheirOwnStreams(t *testing.T) {
	dir := t.TempDir()
	out, errs, code := run(t, dir, "from stdin\n", "-c",
		`cat /dev/stdin; echo text > f; exec 5< f; cat /dev/fd/5; echo x | cat - /dev/fd/0; cat /dev/null; echo to | tee /dev/stderr >/dev/null; xargs -n1 echo < f`)
	if want := "from stdin\ntext\nx\ntext\n"; code != 0 || out != want || errs != "to\n" {
		t.Errorf("code %d, %q, %q, want %q", code, out, errs, want)
	}
}

func BenchmarkLoop(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"for", "for i in {1..10000}; do :; done"},
		{"arithmetic", "for ((i=0;i<10000;i++)); do (( x += i )); done"},
		{"substitution", "f() { echo $1; }; for i in {1..1000}; do x=$(f $i); done"},
		{"pipeline", "for i in {1..300}; do echo $i | cat; done"},
		{"read", "while read -r l; do n=$((n+l)); done < <(seq 10000)"},
		{"test", "for i in {1..5000}; do if [ $i -gt 5 ] && [[ a$i == a* ]]; then x=${i%0}; fi; done"},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				w := New(commands())
				w.command(b.Context(), &cmd.Call{
					Name: "bash", Args: []string{"-c", c.text}, Dir: "/", Environ: environment("/"),
					Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
				})
			}
		})
	}
}
