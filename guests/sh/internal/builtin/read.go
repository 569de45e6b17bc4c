package builtin

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/expand"
	"github.com/exthost/exthost/guests/sh/internal/vars"
)

// input reads no further than a command needs: what comes after is the next command's. Where the input takes bytes
// back it is read in blocks, else byte by byte.
type input struct {
	r    io.Reader
	back Unreader
	buf  []byte
	rest []byte
	err  error

	blocks int
}

func newInput(r io.Reader) *input {
	in := &input{r: r, buf: make([]byte, 1)}
	if u, ok := r.(Unreader); ok {
		in.back = u
		in.buf = make([]byte, 512)
	}
	return in
}

func (in *input) next() (byte, error) {
	for len(in.rest) == 0 {
		if in.err != nil {
			return 0, in.err
		}
		if in.blocks++; in.back != nil && in.blocks == 2 {
			in.buf = make([]byte, 16<<10) // more than a line or two
		}
		n, err := in.r.Read(in.buf)
		in.rest, in.err = in.buf[:n], err
	}
	c := in.rest[0]
	in.rest = in.rest[1:]
	return c, nil
}

// done gives back what was read too far.
func (in *input) done() {
	if len(in.rest) > 0 && in.back != nil {
		in.back.Unread(in.rest)
	}
	in.rest = nil
}

// letters reads single-letter options as bash's built-in commands take them; an option with an argument is in valued.
func (c *Context) letters(name string, args []string, flags, valued string, take func(o byte, value string) error) ([]string, int) {
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for i := 1; i < len(a); i++ {
			o := a[i]
			value := ""
			switch {
			case strings.IndexByte(flags, o) >= 0:
			case strings.IndexByte(valued, o) >= 0:
				if value = a[i+1:]; value == "" {
					if len(args) == 0 {
						c.errorf(name, "-%c: option requires an argument", o)
						return nil, c.help(name)
					}
					value, args = args[0], args[1:]
				}
				i = len(a)
			default:
				return nil, c.usage(name, "-"+a[i:i+1])
			}
			if err := take(o, value); err != nil {
				c.errorf(name, "%v", err)
				return nil, 1
			}
		}
	}
	return args, 0
}

type invalid string

func (i invalid) Error() string { return string(i) }

// stream returns the input that -u names, standard input by default.
func (c *Context) stream(name string, fd int) (io.Reader, int) {
	if fd < 0 {
		if c.Stdin == nil {
			c.errorf(name, "read error: 0: Bad file descriptor")
			return nil, 1
		}
		return c.Stdin, 0
	}
	r, _, err := c.Fd(fd)
	if err != nil || r == nil {
		c.errorf(name, "%d: invalid file descriptor: Bad file descriptor", fd)
		return nil, 1
	}
	return r, 0
}

func read(ctx context.Context, c *Context, args []string) (int, error) {
	var raw, exact, timed bool
	var array, prompt string
	delim := byte('\n')
	limit := -1
	fd := -1
	var timeout time.Duration
	args, code := c.letters("read", args, "ers", "adinNptu", func(o byte, v string) error {
		switch o {
		case 'r':
			raw = true
		case 'a':
			array = v
		case 'd':
			delim = 0
			if v != "" {
				delim = v[0]
			}
		case 'n', 'N':
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 {
				return invalid(v + ": invalid number")
			}
			limit, exact = n, o == 'N'
		case 'p':
			prompt = v
		case 't':
			s, err := strconv.ParseFloat(v, 64)
			if err != nil || s < 0 {
				return invalid(v + ": invalid timeout specification")
			}
			timed, timeout = true, time.Duration(s*float64(time.Second))
		case 'u':
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 {
				return invalid(v + ": invalid file descriptor specification")
			}
			fd = n
		}
		// -e, -i and -s are about typing at a terminal, of which this shell has none.
		return nil
	})
	if code != 0 {
		return code, nil
	}
	names := args
	for _, n := range append(names[:len(names):len(names)], array) {
		base, _, _ := vars.SplitRef(n)
		if n != "" && !vars.ValidName(base) || n == "" && len(names) > 0 && array != "" {
			c.errorf("read", "`%s': not a valid identifier", n)
			return 1, nil
		}
	}
	r, code := c.stream("read", fd)
	if code != 0 {
		return code, nil
	}
	if prompt != "" && c.Host.Terminal(max(fd, 0)) {
		io.WriteString(c.Stderr, prompt)
	}
	if timed && timeout == 0 {
		return c.poll(r), nil
	}
	if d, ok := r.(Deadliner); ok && timed {
		if err := d.SetReadDeadline(time.Now().Add(timeout)); err == nil {
			defer d.SetReadDeadline(time.Time{})
		}
	}
	line, quoted, code, err := c.line(newInput(r), delim, limit, raw, exact)
	if err != nil {
		c.errorf("read", "read error: %d: %s", max(fd, 0), cmd.Reason(err))
		code = 1
	}
	s := &splitter{c: c, line: line, quoted: quoted}
	var failed error
	switch {
	case array != "":
		failed = c.setArray(array, s.all())
	case len(names) == 0:
		failed = c.Vars.Set("REPLY", line)
	case exact:
		for i, n := range names {
			if i > 0 {
				line = ""
			}
			if failed = c.Vars.Set(n, line); failed != nil {
				break
			}
		}
	default:
		s.leading()
		for i, n := range names {
			v := ""
			if i == len(names)-1 {
				v = s.last()
			} else {
				v, _ = s.next()
			}
			if failed = c.Vars.Set(n, v); failed != nil {
				break
			}
		}
	}
	if failed != nil {
		if !recoverable(failed) {
			return 1, failed
		}
		c.errorf("", "%v", failed)
		return 1, nil
	}
	return code, nil
}

// setArray replaces an array; one that is associative stays what it is, and cannot be.
func (c *Context) setArray(name string, values []string) error {
	if v, _ := c.Vars.Get(name); v.Kind == vars.Assoc {
		return &vars.Error{Text: name + ": cannot convert associative to indexed array"}
	}
	return c.Vars.SetList(name, values)
}

// poll is read -t 0: it tells whether there is something to read, also the end.
func (c *Context) poll(r io.Reader) int {
	d, ok := r.(Deadliner)
	u, back := r.(Unreader)
	if !ok || !back {
		return 0
	}
	if err := d.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return 0
	}
	defer d.SetReadDeadline(time.Time{})
	buf := make([]byte, 1)
	n, err := r.Read(buf)
	if n > 0 {
		u.Unread(buf[:n])
		return 0
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return 1
	}
	return 0
}

// line reads up to the delimiter, or limit characters. It returns which bytes were escaped (nil: none), and 1 at the
// end of the input, 142 when the time was over.
func (c *Context) line(in *input, delim byte, limit int, raw, exact bool) (string, []bool, int, error) {
	defer in.done()
	var line []byte
	var quoted []bool
	chars := 0
	escape := false
	if limit == 0 {
		return "", nil, 0, nil
	}
	add := func(b byte) {
		if escape && quoted == nil {
			quoted = make([]bool, len(line), len(line)+64)
		}
		line = append(line, b)
		if quoted != nil {
			quoted = append(quoted, escape)
		}
	}
	for {
		b, err := in.next()
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return string(line), quoted, 1, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return string(line), quoted, 142, nil
		default:
			return string(line), quoted, 1, err
		}
		if escape {
			if b == '\n' {
				escape = false
				continue
			}
		} else {
			if b == delim && !exact {
				return string(line), quoted, 0, nil
			}
			if b == '\\' && !raw {
				escape = true
				continue
			}
		}
		if b == 0 {
			escape = false
			continue
		}
		add(b)
		escape = false
		if limit > 0 {
			// A character of several bytes counts once it is complete.
			if b < utf8.RuneSelf || utf8.FullRune(line[lastStart(line):]) {
				chars++
			}
			if chars == limit {
				return string(line), quoted, 0, nil
			}
		}
	}
}

// lastStart returns where the last character of b begins, complete or not.
func lastStart(b []byte) int {
	i := len(b) - 1
	for i > 0 && len(b)-i < utf8.UTFMax && !utf8.RuneStart(b[i]) {
		i--
	}
	return i
}

// splitter splits a line for read, where escaped characters separate nothing.
type splitter struct {
	c      *Context
	line   string
	quoted []bool
	i      int
}

func (s *splitter) class(i int) (byte, int) {
	if s.quoted != nil && s.quoted[i] {
		return 0, 1
	}
	return s.c.Separator(s.line[i:])
}

// leading skips white space that separates.
func (s *splitter) leading() {
	for s.i < len(s.line) {
		class, n := s.class(s.i)
		if class != 1 {
			return
		}
		s.i += n
	}
}

// next returns the next word and passes what separates it from the one after.
func (s *splitter) next() (string, bool) {
	s.leading()
	if s.i == len(s.line) {
		return "", false
	}
	from := s.i
	for s.i < len(s.line) {
		class, n := s.class(s.i)
		if class != 0 {
			break
		}
		s.i += n
	}
	word := s.line[from:s.i]
	if s.i < len(s.line) {
		class, n := s.class(s.i)
		s.i += n
		s.leading()
		if class == 1 && s.i < len(s.line) {
			if class, n = s.class(s.i); class == 2 {
				s.i += n
				s.leading()
			}
		}
	}
	return word, true
}

// last returns the rest for the last variable: without white space at its end, and without a separator at its end
// when it is a single word.
func (s *splitter) last() string {
	s.leading()
	from := s.i
	word, _ := s.next()
	if s.i == len(s.line) {
		return word
	}
	to := len(s.line)
	for to > from {
		if class, _ := s.class(to - 1); class != 1 {
			break
		}
		to--
	}
	return s.line[from:to]
}

func (s *splitter) all() []string {
	var words []string
	for {
		w, ok := s.next()
		if !ok {
			return words
		}
		words = append(words, w)
	}
}

func mapfile(ctx context.Context, c *Context, args []string) (int, error) {
	delim := byte('\n')
	var trim bool
	var callback string
	count, origin, skip, every, fd := -1, -1, 0, 5000, -1
	number := func(v, what string) (int, error) {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return 0, invalid(v + ": invalid " + what)
		}
		return n, nil
	}
	args, code := c.letters("mapfile", args, "t", "dnOsuCc", func(o byte, v string) (err error) {
		switch o {
		case 't':
			trim = true
		case 'd':
			delim = 0
			if v != "" {
				delim = v[0]
			}
		case 'n':
			if count, err = number(v, "line count"); count == 0 {
				count = -1
			}
		case 'O':
			origin, err = number(v, "array origin")
		case 's':
			skip, err = number(v, "line count")
		case 'u':
			fd, err = number(v, "file descriptor specification")
		case 'C':
			callback = v
		case 'c':
			if every, err = number(v, "callback quantum"); err == nil && every == 0 {
				err = invalid(v + ": invalid callback quantum")
			}
		}
		return err
	})
	if code != 0 {
		return code, nil
	}
	name := "MAPFILE"
	if len(args) > 0 {
		name = args[0]
	}
	if !vars.ValidName(name) {
		c.errorf("mapfile", "`%s': not a valid identifier", name)
		return 1, nil
	}
	if v, _ := c.Vars.Get(name); v.Kind == vars.Assoc {
		c.errorf("mapfile", "%s: not an indexed array", name)
		return 1, nil
	}
	r, code := c.stream("mapfile", fd)
	if code != 0 {
		return code, nil
	}
	in := newInput(r)
	defer in.done()
	var lines []string
	set := func(i int, line string) error { lines = append(lines, line); return nil }
	if origin >= 0 || callback != "" {
		// Into an array that is there, or that the callback may look at.
		if origin < 0 {
			origin = 0
			if err := c.Vars.SetList(name, nil); err != nil {
				c.errorf("", "%v", err)
				return 1, nil
			}
		}
		set = func(i int, line string) error { return c.Vars.SetIndex(name, int64(origin+i), line) }
	}
	var line []byte
	n := 0
	for ended := false; !ended && n != count; {
		b, err := in.next()
		switch {
		case errors.Is(err, io.EOF):
			if ended = true; len(line) == 0 {
				continue
			}
		case err != nil:
			c.errorf("mapfile", "read error: %d: %s", max(fd, 0), cmd.Reason(err))
			return 1, nil
		case b != delim:
			if b != 0 {
				line = append(line, b)
			}
			continue
		case !trim && delim != 0:
			line = append(line, delim)
		}
		text := string(line)
		line = line[:0]
		if skip > 0 {
			skip--
			continue
		}
		if callback != "" && (n+1)%every == 0 {
			in.done()
			if _, err := c.Sh.Eval(ctx, callback+" "+strconv.Itoa(max(origin, 0)+n)+" "+expand.Quote(text, true)); err != nil {
				return 1, err
			}
		}
		if err := set(n, text); err != nil {
			c.errorf("", "%v", err)
			return 1, nil
		}
		n++
	}
	if origin < 0 {
		if err := c.Vars.SetList(name, lines); err != nil {
			c.errorf("", "%v", err)
			return 1, nil
		}
	}
	return 0, nil
}
