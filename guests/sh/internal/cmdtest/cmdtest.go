// Package cmdtest runs commands in tests, on the files of the machine.
package cmdtest

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// Result is what a command left.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Run runs the command argv[0] of table in dir, with stdin. The table is also where it finds its children.
func Run(t testing.TB, table map[string]cmd.Func, dir, stdin string, argv ...string) Result {
	t.Helper()
	var out, errs bytes.Buffer
	ctx := t.Context()
	c := &cmd.Call{
		Stdin: cmd.Reader(ctx, strings.NewReader(stdin)), Stdout: cmd.Writer(ctx, &out), Stderr: cmd.Writer(ctx, &errs),
		Dir: dir, Umask: 0o022, Environ: []string{"HOME=" + dir, "PATH=/usr/bin:/bin", "TZ=UTC"},
	}
	c.Shell = shell(table)
	code := c.Shell.Run(ctx, c, cmd.Child{Argv: argv})
	return Result{out.String(), errs.String(), code}
}

type shell map[string]cmd.Func

func (s shell) OpenFile(_ *cmd.Call, name string, flag int, perm fs.FileMode) (cmd.File, error) {
	return os.OpenFile(name, flag, perm)
}

func (s shell) Find(_ *cmd.Call, name string) (string, bool) {
	_, ok := s[name]
	return "/usr/bin/" + name, ok
}

func (s shell) Run(ctx context.Context, c *cmd.Call, child cmd.Child) int {
	f, ok := s[child.Argv[0]]
	if !ok {
		return 127
	}
	next := *c
	next.Name, next.Args = child.Argv[0], child.Argv[1:]
	if child.Stdin != nil {
		next.Stdin = child.Stdin
	}
	if child.Stdout != nil {
		next.Stdout = child.Stdout
	}
	if child.Stderr != nil {
		next.Stderr = child.Stderr
	}
	if child.Dir != "" {
		next.Dir = child.Dir
	}
	if child.Environ != nil {
		next.Environ = child.Environ
	}
	return cmd.Run(ctx, f, &next)
}
