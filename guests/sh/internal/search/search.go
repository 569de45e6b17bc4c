// Package search has the commands that search and edit lines: grep, egrep, fgrep and sed.
package search

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/regex"
)

// Commands are the commands of the package.
var Commands = map[string]cmd.Func{
	"grep":  cmd.Written(grep, 2),
	"egrep": cmd.Written(grep, 2),
	"fgrep": cmd.Written(grep, 2),
	"sed":   cmd.Written(sed, 4),
}

// singleBytes reports whether the caller's locale is C or POSIX, where each byte is a character. Without a locale it
// is UTF-8's: there is no other that scripts expect.
func singleBytes(c *cmd.Call) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := c.Getenv(name); v != "" {
			return v == "C" || v == "POSIX"
		}
	}
	return false
}

// chunks reads text in runs of whole lines.
type chunks struct {
	r    io.Reader
	sep  byte
	buf  []byte
	from int // what was handed out ends here
	end  int
	eof  bool
}

const chunkSize = 32 << 10

// next returns the next whole lines, the last of which need not have its end when the text ends. They are valid until
// the call after. At the end it returns io.EOF.
func (c *chunks) next() ([]byte, error) {
	if c.buf == nil {
		c.buf = make([]byte, chunkSize)
	}
	c.end = copy(c.buf, c.buf[c.from:c.end])
	c.from = 0
	seen := 0
	for !c.eof {
		if c.end == len(c.buf) {
			c.buf = append(c.buf, make([]byte, len(c.buf))...)
		}
		n, err := c.r.Read(c.buf[c.end:])
		c.end += n
		if err != nil {
			if err != io.EOF {
				return nil, err
			}
			c.eof = true
			break
		}
		if i := bytes.LastIndexByte(c.buf[seen:c.end], c.sep); i >= 0 {
			c.from = seen + i + 1
			return c.buf[:c.from], nil
		}
		seen = c.end
	}
	if c.end == 0 {
		return nil, io.EOF
	}
	c.from = c.end
	return c.buf[:c.end], nil
}

// globRegexp turns a file pattern into an expression for all of a name.
func globRegexp(glob string) (*regex.Regexp, error) {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; c {
		case '*':
			b.WriteString(".*")
		case '?':
			b.WriteByte('.')
		case '\\':
			if i++; i < len(glob) {
				b.WriteString(regex.Quote(glob[i:i+1], regex.ERE))
			}
		case '[':
			end := strings.IndexByte(glob[min(i+2, len(glob)):], ']')
			if end < 0 {
				b.WriteString(`\[`)
				break
			}
			end += i + 2
			in := glob[i+1 : end]
			if in[0] == '!' {
				in = "^" + in[1:]
			}
			b.WriteString("[" + in + "]")
			i = end
		default:
			b.WriteString(regex.Quote(string(c), regex.ERE))
		}
	}
	return regex.Compile(b.String(), regex.ERE, regex.Line|regex.Bytes)
}

func matches(ctx context.Context, globs []*regex.Regexp, name string) bool {
	for _, g := range globs {
		if g.MatchString(ctx, name) {
			return true
		}
	}
	return false
}

// options reads a list of options: letter, comma, long name ("-" for no letter), then = for those with an argument and
// ? for those that may have one.
func options(list string) cmd.Opts {
	var opts cmd.Opts
	for _, f := range strings.Fields(list) {
		letter, long, _ := strings.Cut(f, ",")
		o := cmd.Opt{Long: strings.TrimRight(long, "=?")}
		if letter != "-" {
			o.Short = rune(letter[0])
		}
		switch {
		case strings.HasSuffix(long, "="):
			o.Arg = cmd.Value
		case strings.HasSuffix(long, "?"):
			o.Arg = cmd.Optional
		}
		opts = append(opts, o)
	}
	return opts
}
