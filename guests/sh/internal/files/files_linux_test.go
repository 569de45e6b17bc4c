package files

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/files/scripttest"
)

// table has also commands that others start in the cases.
func table() map[string]cmd.Func {
	all := map[string]cmd.Func{
		"echo": func(_ context.Context, c *cmd.Call) int {
			fmt.Fprintln(c.Stdout, strings.Join(c.Args, " "))
			return 0
		},
		"cat": func(_ context.Context, c *cmd.Call) int {
			if len(c.Args) == 0 {
				c.Args = []string{"-"}
			}
			for _, name := range c.Args {
				f, err := c.Open(name)
				if err != nil {
					return c.Fail(name, err)
				}
				_, _ = copyData(context.Background(), c.Stdout, f)
			}
			return 0
		},
		"test": func(_ context.Context, c *cmd.Call) int { // -f only
			if in, err := status(c, c.Args[1]); err == nil && in.Mode().IsRegular() {
				return 0
			}
			return 1
		},
		"false": func(context.Context, *cmd.Call) int { return 1 },
		"true":  func(context.Context, *cmd.Call) int { return 0 },
		"pwd": func(_ context.Context, c *cmd.Call) int {
			fmt.Fprintln(c.Stdout, filepath.Clean(c.Dir))
			return 0
		},
	}
	for name, f := range Commands {
		all[name] = f
	}
	return all
}

// TestScripts compares the commands with testdata, and testdata with the tools of the machine where they are.
func TestScripts(t *testing.T) {
	scripttest.Config{
		Table: table(),
		Normal: func(command, text string) string {
			// The owner of the test's files is shown as the guest's.
			switch command {
			case "ls":
				return strings.ReplaceAll(text, "root", "guest")
			case "stat":
				return strings.ReplaceAll(text, "(    0/    root)", "( 1000/   guest)")
			case "chown", "chgrp":
				return strings.ReplaceAll(text, "retained as root", "retained as guest")
			}
			return text
		},
		Quiet: func(line string) bool {
			command, _, _ := strings.Cut(line, " ")
			return !slices.Contains(strings.Fields("cp mv mkdir rmdir ls ln touch"), command)
		},
	}.Run(t)
}
