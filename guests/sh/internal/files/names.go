package files

import (
	"context"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

func basename(_ context.Context, c *cmd.Call) int {
	given, operands, code, ok := leading(c, "a,multiple s,suffix= z,zero",
		"NAME [SUFFIX]\n  or:  basename OPTION... NAME...")
	if !ok {
		return code
	}
	many, suffix, end := false, "", "\n"
	for _, g := range given {
		switch g.Key {
		case "a":
			many = true
		case "s":
			many, suffix = true, g.Value
		case "z":
			end = "\x00"
		}
	}
	if len(operands) == 0 {
		return usage(c, "missing operand")
	}
	if !many {
		if len(operands) > 2 {
			return usage(c, "extra operand %s", cmd.Quote(operands[2]))
		}
		if len(operands) == 2 {
			suffix, operands = operands[1], operands[:1]
		}
	}
	out := c.Buffered()
	defer out.Flush()
	for _, name := range operands {
		b := base(name)
		if b != suffix && b != "/" {
			b = strings.TrimSuffix(b, suffix)
		}
		out.WriteString(b + end)
	}
	return 0
}

func dirname(_ context.Context, c *cmd.Call) int {
	given, operands, code, ok := options(c, "z,zero", "[OPTION] NAME...", 1)
	if !ok {
		return code
	}
	if len(operands) == 0 {
		return usage(c, "missing operand")
	}
	end := "\n"
	if len(given) > 0 {
		end = "\x00"
	}
	out := c.Buffered()
	defer out.Flush()
	for _, name := range operands {
		out.WriteString(parent(name) + end)
	}
	return 0
}

// leading is options for commands whose first operand ends the options.
func leading(c *cmd.Call, list, text string) ([]cmd.Given, []string, int, bool) {
	_, operands, err := cmd.Options(list).ParseLeading(c.Args)
	if err != nil {
		// Let options word it, and answer --help.
		return options(c, list, text, 1)
	}
	short := *c
	short.Args = c.Args[:len(c.Args)-len(operands)]
	given, _, code, ok := options(&short, list, text, 1)
	return given, operands, code, ok
}
