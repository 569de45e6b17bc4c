package sys

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

const envUsage = "[OPTION]... [-] [NAME=VALUE]... [COMMAND [ARG]...]"

func env(ctx context.Context, c *cmd.Call) int {
	opts := options(
		cmd.Opt{Short: 'i', Long: "ignore-environment"}, cmd.Opt{Short: '0', Long: "null"}, cmd.Opt{Short: 'u', Long: "unset", Arg: cmd.Value},
		cmd.Opt{Short: 'C', Long: "chdir", Arg: cmd.Value}, cmd.Opt{Short: 'S', Long: "split-string", Arg: cmd.Value},
		cmd.Opt{Short: 'v', Long: "debug"},
	)
	var given []cmd.Given
	args := c.Args
	// What -S splits takes the place of the option, and may hold options itself.
	for {
		g, rest, err := opts.ParseLeading(args)
		if err != nil {
			return c.BadUsage(err, 125)
		}
		split := -1
		for i, one := range g {
			if one.Key == "S" {
				split = i
				break
			}
		}
		if split < 0 {
			given, args = append(given, g...), rest
			break
		}
		// Options behind -S are part of what was split off by the kernel: they come after its words.
		words, err := splitString(g[split].Value, c.Getenv)
		if err != nil {
			c.Errorf("%v", err)
			return 125
		}
		given = append(given, g[:split]...)
		tail, ok := afterSplit(opts, args, split)
		if !ok {
			tail = rest
		}
		args = append(words, tail...)
	}
	if help(c, given, envUsage) {
		return 0
	}
	var environ []string
	environ = append(environ, c.Environ...)
	zero, debug, dir := false, false, ""
	var unset []string
	for _, g := range given {
		switch g.Key {
		case "i":
			environ = nil
		case "0":
			zero = true
		case "u":
			unset = append(unset, g.Value)
		case "C":
			dir = g.Value
		case "v":
			debug = true
		}
	}
	if len(args) > 0 && args[0] == "-" {
		environ, args = nil, args[1:]
	}
	for _, name := range unset {
		if name == "" || strings.Contains(name, "=") {
			c.Errorf("cannot unset %s: Invalid argument", cmd.Quote(name))
			return 125
		}
		environ = without(environ, name)
		if debug {
			fmt.Fprintf(c.Stderr, "unset:    %s\n", name)
		}
	}
	for len(args) > 0 {
		name, value, ok := strings.Cut(args[0], "=")
		if !ok {
			break
		}
		if debug {
			fmt.Fprintf(c.Stderr, "setenv:   %s=%s\n", name, value)
		}
		environ = set(environ, name, value)
		args = args[1:]
	}
	if len(args) == 0 {
		if dir != "" {
			return c.BadUsage(errors.New("must specify command with --chdir (-C)"), 125)
		}
		end := "\n"
		if zero {
			end = "\x00"
		}
		out := c.Buffered()
		for _, v := range environ {
			out.WriteString(v + end)
		}
		out.Flush()
		return 0
	}
	if zero {
		return c.BadUsage(errors.New("cannot specify --null (-0) with command"), 125)
	}
	next := *c
	next.Environ = environ
	if environ == nil {
		next.Environ = []string{}
	}
	if dir != "" {
		next.Dir = c.Path(dir)
		if err := isDirectory(c, dir); err != nil {
			c.Errorf("cannot change directory to '%s': %s", dir, cmd.Reason(err))
			return 125
		}
	}
	return start(ctx, c, &next, args)
}

// start runs a command that another one was asked to run, and words its absence as GNU's env, timeout, nice and nohup do.
// The message is by's, whose locale need not be the command's.
func start(ctx context.Context, by, c *cmd.Call, argv []string) int {
	child := cmd.Child{Argv: argv, Dir: c.Dir, Environ: c.Environ}
	if _, ok := c.Shell.Find(c, argv[0]); ok {
		code := c.Shell.Run(ctx, c, child)
		cmd.Check(ctx)
		return code
	}
	// The shell is asked all the same: it reports what is missing. Its words are replaced.
	child.Stderr = io.Discard
	code := c.Shell.Run(ctx, c, child)
	cmd.Check(ctx)
	word := "No such file or directory"
	switch {
	case code == 126:
		word = "Permission denied"
	case code != 127:
		return code
	}
	switch by.Name {
	case "timeout", "time":
		by.Errorf("failed to run command %s: %s", cmd.Quote(argv[0]), word)
	case "nohup":
		by.Errorf("failed to run command '%s': %s", argv[0], word)
	default:
		by.Errorf("%s: %s", cmd.Quote(argv[0]), word)
	}
	return code
}

func isDirectory(c *cmd.Call, name string) error {
	f, err := c.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return syscall.ENOTDIR
	}
	return nil
}

// afterSplit returns the arguments behind the option -S, which is the n-th of args.
func afterSplit(opts cmd.Opts, args []string, n int) ([]string, bool) {
	for i := range args {
		g, _, err := opts.ParseLeading(args[:i+1])
		if err == nil && len(g) == n+1 {
			return args[i+1:], true
		}
	}
	return nil, false
}

func without(environ []string, name string) []string {
	var kept []string
	for _, v := range environ {
		if !strings.HasPrefix(v, name+"=") {
			kept = append(kept, v)
		}
	}
	return kept
}

func set(environ []string, name, value string) []string {
	for i, v := range environ {
		if strings.HasPrefix(v, name+"=") {
			kept := append([]string{}, environ...)
			kept[i] = name + "=" + value
			return kept
		}
	}
	return append(environ[:len(environ):len(environ)], name+"="+value)
}

// splitString splits the argument of env -S: blanks, quotes, escapes, ${NAME} and comments.
func splitString(s string, getenv func(string) string) ([]string, error) {
	var words []string
	var word strings.Builder
	in, quote := false, byte(0)
	flush := func() {
		if in {
			words = append(words, word.String())
			word.Reset()
			in = false
		}
	}
	for i := 0; i < len(s); i++ {
		b := s[i]
		switch {
		case b == '\'' && quote != '"':
			in = true
			if quote == b {
				quote = 0
			} else {
				quote = b
			}
		case b == '"' && quote != '\'':
			in = true
			if quote == b {
				quote = 0
			} else {
				quote = b
			}
		case isSpace(b) && quote == 0:
			flush()
		case b == '#' && quote == 0 && !in:
			i = len(s)
		case b == '\\' && (quote != '\'' || i+1 < len(s) && (s[i+1] == '\\' || s[i+1] == '\'')):
			i++
			if i == len(s) {
				return nil, errors.New("invalid backslash at end of string in -S")
			}
			in = true
			switch s[i] {
			case '"', '#', '$', '\'', '\\':
				word.WriteByte(s[i])
			case '_':
				if quote == '"' {
					word.WriteByte(' ')
				} else {
					in = word.Len() > 0
					flush()
				}
			case 'c':
				if quote == '"' {
					return nil, errors.New("'\\c' must not appear in double-quoted -S string")
				}
				in = word.Len() > 0
				i = len(s)
			case 'f':
				word.WriteByte('\f')
			case 'n':
				word.WriteByte('\n')
			case 'r':
				word.WriteByte('\r')
			case 't':
				word.WriteByte('\t')
			case 'v':
				word.WriteByte('\v')
			default:
				return nil, fmt.Errorf("invalid sequence '\\%c' in -S", s[i])
			}
		case b == '$' && quote != '\'':
			name, _, ok := strings.Cut(s[i+1:], "}")
			if !ok || !strings.HasPrefix(name, "{") || len(name) < 2 {
				return nil, fmt.Errorf("only ${VARNAME} expansion is supported, error at: %s", s[i:])
			}
			in = true
			word.WriteString(getenv(name[1:]))
			i += len(name) + 1
		default:
			in = true
			word.WriteByte(b)
		}
	}
	if quote != 0 {
		return nil, errors.New("no terminating quote in -S string")
	}
	flush()
	return words, nil
}

func printenv(_ context.Context, c *cmd.Call) int {
	given, names, err := options(cmd.Opt{Short: '0', Long: "null"}).ParseLeading(c.Args)
	if err != nil {
		return c.BadUsage(err, 2)
	}
	if help(c, given, "[OPTION]... [VARIABLE]...") {
		return 0
	}
	end := "\n"
	if len(given) > 0 {
		end = "\x00"
	}
	out := c.Buffered()
	defer out.Flush()
	if len(names) == 0 {
		for _, v := range c.Environ {
			out.WriteString(v + end)
		}
		return 0
	}
	code := 0
	for _, name := range names {
		found := false
		for _, v := range c.Environ {
			if value, ok := strings.CutPrefix(v, name+"="); ok && !strings.Contains(name, "=") {
				out.WriteString(value + end)
				found = true
			}
		}
		if !found {
			code = 1
		}
	}
	return code
}
