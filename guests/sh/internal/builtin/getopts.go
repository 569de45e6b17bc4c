package builtin

import (
	"context"
	"strconv"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/vars"
)

func getopts(_ context.Context, c *Context, args []string) (int, error) {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		return c.usage("getopts", args[0][:2]), nil
	}
	if len(args) < 2 {
		return c.help("getopts"), nil
	}
	options, name, words := args[0], args[1], args[2:]
	if len(args) == 2 {
		words = c.Host.Params()
	}
	silent := strings.HasPrefix(options, ":")
	options = strings.TrimPrefix(options, ":")
	index, err := strconv.Atoi(c.Vars.Str("OPTIND"))
	if err != nil || index < 1 {
		index = 1
	}
	// Within a word of several letters the place is not in OPTIND; who sets that starts a new word.
	pos := 0
	if c.Getopts.Writes == c.Vars.OptindWrites {
		pos = c.Getopts.Pos
	}
	letter := ""
	finish := func(value, arg string, hasArg bool, code int) (int, error) {
		if err := c.Vars.Set("OPTIND", strconv.Itoa(index)); err != nil {
			c.errorf("getopts", "%v", err)
			return 1, nil
		}
		c.Getopts.Pos, c.Getopts.Writes = pos, c.Vars.OptindWrites
		if hasArg {
			err = c.Vars.Set("OPTARG", arg)
		} else {
			err = c.Vars.Unset("OPTARG")
		}
		if err != nil {
			c.errorf("getopts", "%v", err)
			return 1, nil
		}
		if !vars.ValidName(name) {
			c.errorf("getopts", "`%s': not a valid identifier", name)
			return 1, nil
		}
		if err := c.Vars.Set(name, value); err != nil {
			c.errorf("", "%v", err)
			return 2, nil
		}
		return code, nil
	}
	w := word(words, index)
	if pos >= len(w) {
		pos = 0
	}
	if pos == 0 {
		if len(w) < 2 || w[0] != '-' {
			return finish("?", "", false, 1)
		}
		if w == "--" {
			index++
			return finish("?", "", false, 1)
		}
		pos = 1
	}
	letter = w[pos : pos+1]
	pos++
	i := strings.Index(options, letter)
	wants := i >= 0 && i+1 < len(options) && options[i+1] == ':'
	next := func() {
		if pos >= len(w) {
			index++
			pos = 0
		}
	}
	if i < 0 || letter == ":" {
		next()
		if silent {
			return finish("?", letter, true, 0)
		}
		c.complain("illegal option -- " + letter)
		return finish("?", "", false, 0)
	}
	if !wants {
		next()
		return finish(letter, "", false, 0)
	}
	rest := w[pos:]
	index++
	pos = 0
	if rest == "" {
		if index > len(words) {
			if silent {
				return finish(":", letter, true, 0)
			}
			c.complain("option requires an argument -- " + letter)
			return finish("?", "", false, 0)
		}
		rest = word(words, index)
		index++
	}
	return finish(letter, rest, true, 0)
}

// complain writes a mistake in the options of the script, under its name.
func (c *Context) complain(text string) {
	if c.Vars.Str("OPTERR") == "0" {
		return
	}
	zero, _ := c.Host.Special("0")
	c.Stderr.Write([]byte(zero + ": " + text + "\n"))
}

func word(words []string, index int) string {
	if index < 1 || index > len(words) {
		return ""
	}
	return words[index-1]
}
