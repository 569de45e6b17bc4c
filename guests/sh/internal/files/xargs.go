package files

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

const xargsOpts = "0,null a,arg-file= d,delimiter= E= e,eof? I= i,replace? L,max-lines= l? n,max-args= o,open-tty P,max-procs= p,interactive " +
	",process-slot-var= r,no-run-if-empty s,max-chars= ,show-limits t,verbose x,exit ,help ,version"

// xargsRun is one run of xargs.
type xargsRun struct {
	ctx context.Context
	c   *cmd.Call
	in  *bufio.Reader

	argv            []string
	delimiter       int // -1: blanks, with quotes
	end             string
	hasEnd          bool
	replace         string
	lines, args     int
	chars           int
	skipEmpty       bool
	verbose, strict bool
	stdin           io.Reader
	code, run       int
	stop            bool
}

func xargs(ctx context.Context, c *cmd.Call) int {
	given, operands, err := cmd.Options(xargsOpts).ParseLeading(c.Args)
	if err != nil {
		return c.BadUsage(err, 1)
	}
	x := &xargsRun{ctx: ctx, c: c, delimiter: -1, chars: 128 << 10, argv: operands, stdin: strings.NewReader("")}
	if len(operands) == 0 {
		x.argv = []string{"echo"}
	}
	file := ""
	number := func(g cmd.Given, what string, least int) (int, bool) {
		n, err := strconv.Atoi(g.Value)
		if err != nil {
			c.Errorf("invalid number \"%s\" for %s option", g.Value, what)
			return 0, false
		}
		if n < least {
			c.Errorf("value %s for %s option should be >= %d", g.Value, what, least)
			return 0, false
		}
		return n, true
	}
	for _, g := range given {
		ok := true
		switch g.Key {
		case "help":
			fmt.Fprintln(c.Stdout, "Usage: xargs [OPTION]... COMMAND [INITIAL-ARGS]...")
			return 0
		case "version":
			fmt.Fprintln(c.Stdout, "xargs (exthost, after GNU findutils 4.9.0)")
			return 0
		case "0":
			x.delimiter = 0
		case "a":
			file = g.Value
		case "d":
			d, good := delimiter(g.Value)
			if !good {
				c.Errorf("Invalid input delimiter specification %s: the delimiter must be either a single character or an escape sequence starting with \\.", g.Value)
				return 1
			}
			x.delimiter = int(d)
		case "E", "e":
			x.end, x.hasEnd = g.Value, g.Value != ""
		case "I", "i":
			x.replace = g.Value
			if g.Key == "i" && !g.Has {
				x.replace = "{}"
			}
			x.args, x.lines = 0, 0
		case "L", "l":
			if x.lines = 1; g.Has {
				x.lines, ok = number(g, "-"+g.Key, 1)
			}
			x.args, x.replace = 0, ""
		case "n":
			if x.args, ok = number(g, "-n", 1); x.replace != "" && x.args == 1 {
				x.args = 0 // as POSIX has it: -n 1 does not end -I
				break
			}
			x.lines, x.replace = 0, ""
		case "P":
			_, ok = number(g, "-P", 0)
		case "p":
			c.Errorf("-p is not supported: nobody is there to ask")
			return 1
		case "o":
			x.stdin = nil
		case "process-slot-var":
			c.Errorf("--process-slot-var is not supported")
			return 1
		case "r":
			x.skipEmpty = true
		case "s":
			x.chars, ok = number(g, "-s", 1)
			x.chars = min(x.chars, 128<<10)
		case "show-limits":
			fmt.Fprintf(c.Stderr, "Size of command buffer we are actually using: %d\n", x.chars)
		case "t":
			x.verbose = true
		case "x":
			x.strict = true
		}
		if !ok {
			return c.BadUsage(errors.New("invalid option value"), 1)
		}
	}
	if x.replace != "" {
		x.strict = true
	}
	source := c.Stdin
	if file != "" && file != "-" {
		f, err := c.OpenFile(file, os.O_RDONLY, 0)
		if err != nil {
			c.Errorf("Cannot open input file %s: %s", cmd.Quote(file), cmd.Reason(err))
			return 1
		}
		defer f.Close()
		source, x.stdin = f, nil
	}
	x.in = bufio.NewReader(cmd.Reader(ctx, source))
	x.all()
	return x.code
}

func delimiter(text string) (byte, bool) {
	if len(text) == 1 {
		return text[0], true
	}
	if len(text) < 2 || text[0] != '\\' {
		return 0, false
	}
	if at := strings.IndexByte("abfnrtv\\", text[1]); at >= 0 && len(text) == 2 {
		return "\a\b\f\n\r\t\v\\"[at], true
	}
	digits, base := text[1:], 8
	if digits[0] == 'x' {
		digits, base = digits[1:], 16
	}
	n, err := strconv.ParseUint(digits, base, 8)
	return byte(n), err == nil
}

// errQuote is an input that ends inside quotes.
var errQuote = errors.New("unmatched quote")

// next reads an argument. line is set when a line of input ends behind it.
func (x *xargsRun) next() (arg string, line bool, err error) {
	var b []byte
	if x.delimiter >= 0 {
		b, err = x.in.ReadBytes(byte(x.delimiter))
		if err == io.EOF && len(b) > 0 {
			return string(b), true, nil
		}
		if err != nil {
			return "", false, err
		}
		return string(b[:len(b)-1]), true, nil
	}
	started := false
	blank := byte(0)
	for {
		ch, err := x.in.ReadByte()
		switch {
		case err == io.EOF && started:
			return string(b), true, nil
		case err != nil:
			return "", false, err
		case ch == '\n':
			if !started {
				blank = 0
				continue
			}
			// A blank at its end continues the line with the next one, where lines count.
			return string(b), blank == 0, nil
		case (ch == ' ' || ch == '\t') && x.replace == "":
			if !started {
				continue
			}
			// See whether the line ends here.
			for {
				p, err := x.in.Peek(1)
				if err != nil || p[0] != ' ' && p[0] != '\t' {
					break
				}
				_, _ = x.in.ReadByte()
			}
			if p, err := x.in.Peek(1); err == nil && p[0] == '\n' {
				_, _ = x.in.ReadByte()
				return string(b), x.lines == 0, nil
			}
			return string(b), false, nil
		case (ch == ' ' || ch == '\t') && !started:
		case ch == '\'' || ch == '"':
			started = true
			for {
				q, err := x.in.ReadByte()
				if err != nil || q == '\n' {
					kind := "single"
					if ch == '"' {
						kind = "double"
					}
					return kind, false, errQuote
				}
				if q == ch {
					break
				}
				b = append(b, q)
			}
		case ch == '\\':
			started = true
			q, err := x.in.ReadByte()
			if err == nil {
				b = append(b, q)
			}
		default:
			started = true
			b = append(b, ch)
		}
	}
}

func (x *xargsRun) all() {
	var list []string
	size := 0
	for _, a := range x.argv {
		size += len(a) + 1
	}
	fixed, lines := size, 0
	flush := func() {
		if len(list) > 0 {
			x.start(append(append([]string{}, x.argv...), list...))
		}
		list, size, lines = nil, fixed, 0
	}
	for !x.stop {
		arg, line, err := x.next()
		if err == errQuote {
			flush()
			if x.stop {
				return
			}
			x.c.Errorf("unmatched %s quote; by default quotes are special to xargs unless you use the -0 option", arg)
			x.code = 1
			return
		}
		if err != nil {
			if err != io.EOF {
				x.c.Errorf("read error: %s", cmd.Reason(err))
				x.code = max(x.code, 1)
			}
			break
		}
		if x.delimiter < 0 && x.hasEnd && arg == x.end {
			break
		}
		if x.replace != "" {
			x.substitute(arg)
			continue
		}
		if fixed+len(arg)+1 > x.chars {
			flush()
			x.c.Errorf("argument line too long")
			x.code = 1
			return
		}
		if size+len(arg)+1 > x.chars {
			if x.strict && (x.lines > 0 || x.args > 0) {
				x.c.Errorf("argument list too long")
				x.code = 1
				return
			}
			flush()
		}
		list = append(list, arg)
		size += len(arg) + 1
		if line {
			lines++
		}
		if x.args > 0 && len(list) == x.args || x.lines > 0 && lines == x.lines {
			flush()
		}
	}
	if len(list) > 0 {
		flush()
	} else if x.run == 0 && !x.skipEmpty && x.replace == "" && !x.stop {
		x.start(x.argv)
	}
}

// substitute runs the command with arg in the place of the replacement text.
func (x *xargsRun) substitute(arg string) {
	argv := make([]string, len(x.argv))
	size := 0
	for i, a := range x.argv {
		argv[i] = a
		if i > 0 {
			argv[i] = strings.ReplaceAll(a, x.replace, arg)
		}
		size += len(argv[i]) + 1
	}
	if size > x.chars {
		x.c.Errorf("argument list too long")
		x.code, x.stop = 1, true
		return
	}
	x.start(argv)
}

func (x *xargsRun) start(argv []string) {
	cmd.Check(x.ctx)
	x.run++
	if x.verbose {
		var words []string
		for _, a := range argv {
			words = append(words, shellWord(a))
		}
		fmt.Fprintln(x.c.Stderr, strings.Join(words, " "))
	}
	if _, ok := x.c.Shell.Find(x.c, argv[0]); !ok {
		x.c.Errorf("%s: No such file or directory", argv[0])
		x.code, x.stop = 127, true
		return
	}
	code := x.c.Shell.Run(x.ctx, x.c, cmd.Child{Argv: argv, Stdin: x.stdin})
	cmd.Check(x.ctx)
	switch {
	case code == 0:
	case code == 255:
		x.c.Errorf("%s: exited with status 255; aborting", argv[0])
		x.code, x.stop = 124, true
	default:
		x.code = 123
	}
}

// shellWord quotes a word where a shell would need it.
func shellWord(word string) string {
	if word != "" && strings.IndexFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:,+@%=", r))
	}) < 0 {
		return word
	}
	return cmd.Quote(word)
}
