package builtin

import (
	"context"
	"io"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/expand"
)

func echo(_ context.Context, c *Context, args []string) (int, error) {
	escapes := c.Host.Option("xpg_echo")
	line := true
	for ; len(args) > 0; args = args[1:] {
		a := args[0]
		if len(a) < 2 || a[0] != '-' || strings.Trim(a[1:], "neE") != "" {
			break
		}
		for _, r := range a[1:] {
			switch r {
			case 'n':
				line = false
			case 'e':
				escapes = true
			case 'E':
				escapes = false
			}
		}
	}
	var b strings.Builder
	for i, a := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		if !escapes {
			b.WriteString(a)
			continue
		}
		s, ended := expand.Escapes(a, expand.Echo)
		b.WriteString(s)
		if ended {
			return c.write("echo", b.String()), nil
		}
	}
	if line {
		b.WriteByte('\n')
	}
	return c.write("echo", b.String()), nil
}

// write writes a command's whole output.
func (c *Context) write(name, s string) int {
	if s == "" {
		return 0
	}
	if _, err := io.WriteString(c.Stdout, s); err != nil {
		c.errorf(name, "write error: %s", cmd.Reason(err))
		return 1
	}
	return 0
}
