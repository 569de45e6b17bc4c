package search

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/regex"
)

const sedOpts = `n,quiet n,silent -,debug e,expression= f,file= -,follow-symlinks i,in-place? l,line-length= b,binary
	-,posix E,regexp-extended r, s,separate -,sandbox u,unbuffered z,null-data -,help -,version`

const sedHelp = `Usage: sed [OPTION]... {script-only-if-no-other-script} [input-file]...

  -n, --quiet, --silent      suppress automatic printing of pattern space
  -e, --expression=SCRIPT    add the script to the commands to be executed
  -f, --file=FILE            add the contents of the file to the commands to be executed
  -i[SUFFIX], --in-place[=SUFFIX]
                             edit files in place (makes backup if SUFFIX supplied)
  --follow-symlinks          follow symlinks when processing in place
  -l N, --line-length=N      specify desired line-wrap length for the 'l' command
  --posix                    disable all GNU extensions
  -E, -r, --regexp-extended  use extended regular expressions in the script
  -s, --separate             consider files as separate
  --sandbox                  reject the e/r/w commands
  -u, --unbuffered           flush the output after every line
  -z, --null-data            separate lines by NUL characters

If no -e, --expression, -f, or --file option is given, then the first non-option argument is taken as the sed
script to interpret. All remaining arguments are names of input files; if no input files are specified, then the
standard input is read.
`

type editor struct {
	ctx context.Context
	c   *cmd.Call

	quiet, separate, inPlace, unbuffered, posix, follow bool
	suffix                                              string
	width                                               int
	sep                                                 byte
	single                                              bool
	code                                                int

	commands []sedCommand
	stdout   *sedOutput
	out      *sedOutput // where pattern spaces go: stdout, or the file edited in place
	outputs  map[string]*sedOutput
	readers  map[string]*sedLines // of R

	files []string // not opened yet
	in    *sedLines
	edit  *inPlace
	name  string
	line  int
	ended bool // by q or Q

	space, hold, spare []byte
	chomped            bool // what is in space had its end, and is printed with one
	holdChomped        bool
	replaced           bool
	again              bool // D: the next cycle reads no line
	appends            []sedAppend
	last               *regex.Regexp
	index              []int
}

type sedAppend struct {
	text string
	file string // r: the text of this file
}

// sedOutput is a file that text goes to. A last line without its end gets it only when something follows.
type sedOutput struct {
	w       *bufio.Writer
	f       io.Closer
	missing bool
	sep     byte
}

func (o *sedOutput) text(b []byte, end bool) {
	o.flushMissing()
	o.w.Write(b)
	if end {
		o.w.WriteByte(o.sep)
	} else {
		o.missing = true
	}
}

func (o *sedOutput) flushMissing() {
	if o.missing {
		o.w.WriteByte(o.sep)
		o.missing = false
	}
}

// sedLines reads lines.
type sedLines struct {
	chunks
	rest   []byte
	closer io.Closer
	err    error
}

// more reports whether there is another line.
func (l *sedLines) more() bool {
	if len(l.rest) == 0 && l.err == nil {
		l.rest, l.err = l.next()
	}
	return len(l.rest) > 0
}

func (l *sedLines) line() (line []byte, chomped bool) {
	i := bytes.IndexByte(l.rest, l.sep)
	if i < 0 {
		line, l.rest = l.rest, nil
		return line, false
	}
	line, l.rest = l.rest[:i], l.rest[i+1:]
	return line, true
}

// inPlace is a file being edited.
type inPlace struct {
	path string // absolute
	name string
	temp string
	out  *sedOutput
	mode fs.FileMode
}

// bsdSuffix takes the separate suffix of BSD's -i out of the arguments. GNU's sed has it attached, and would read an
// empty argument, or one such as .bak, as a script; neither can be one that does anything.
func bsdSuffix(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			return append(out, args[i:]...)
		}
		if len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.HasSuffix(a, "i") && i+1 < len(args) &&
			strings.Trim(a[1:], "nErsuzi") == "" {
			next := args[i+1]
			if next == "" || next[0] == '.' && len(next) > 1 && strings.Trim(next[1:], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_~") == "" {
				out = append(out, a+next)
				i++
				continue
			}
		}
		out = append(out, a)
		if (a == "-e" || a == "-f" || a == "-l") && i+1 < len(args) {
			i++
			out = append(out, args[i])
		}
	}
	return out
}

func sed(ctx context.Context, c *cmd.Call) (code int) {
	given, operands, err := options(sedOpts).Parse(bsdSuffix(c.Args))
	if err != nil {
		c.Errorf("%v", err)
		io.WriteString(c.Stderr, sedHelp)
		return 1
	}
	e := &editor{ctx: ctx, c: c, width: 70, sep: '\n', holdChomped: true, single: singleBytes(c), outputs: map[string]*sedOutput{}, readers: map[string]*sedLines{}}
	p := &sedParser{single: e.single, open: e.openOutput}
	add := func(name, text string, file bool) {
		if len(p.sources) > 0 {
			p.src += "\n"
		}
		p.sources = append(p.sources, sedSource{name, file, len(p.src)})
		p.src += text
	}
	expressions := 0
	for _, o := range given {
		switch o.Key {
		case "n":
			e.quiet = true
		case "e":
			expressions++
			// A backslash at the end continues in the next expression.
			add(fmt.Sprintf("-e expression #%d", expressions), o.Value, false)
		case "f":
			f, err := c.Open(o.Value)
			if err != nil {
				c.Errorf("couldn't open file %s: %s", o.Value, cmd.Reason(err))
				return 1
			}
			b, err := io.ReadAll(f)
			f.Close()
			if err != nil {
				c.Errorf("read error on %s: %s", o.Value, cmd.Reason(err))
				return 4
			}
			add(o.Value, strings.TrimSuffix(string(b), "\n"), true)
		case "i":
			e.inPlace, e.separate, e.suffix = true, true, o.Value
		case "follow-symlinks":
			e.follow = true
		case "l":
			if e.width, err = strconv.Atoi(o.Value); err != nil || e.width < 0 {
				c.Errorf("invalid line length: %s", o.Value)
				return 1
			}
		case "posix":
			e.posix, p.posix = true, true
		case "E", "r":
			p.extended = true
		case "s":
			e.separate = true
		case "sandbox":
			p.sandbox = true
		case "u":
			e.unbuffered = true
		case "z":
			e.sep = 0
		case "b":
			// Line ends are never changed.
		case "debug":
			c.Errorf("--debug is not supported here")
			return 1
		case "help":
			io.WriteString(c.Stdout, sedHelp)
			return 0
		case "version":
			io.WriteString(c.Stdout, "sed (GNU sed) 4.9\n")
			return 0
		}
	}
	if len(p.sources) == 0 {
		if len(operands) == 0 {
			io.WriteString(c.Stderr, sedHelp)
			return 1
		}
		add("-e expression #1", operands[0], false)
		operands = operands[1:]
	}
	if strings.HasPrefix(p.src, "#n") && (len(p.src) == 2 || p.src[2] == '\n') {
		e.quiet = true
	}
	p.sep = e.sep
	e.stdout = &sedOutput{w: c.Buffered(), sep: e.sep}
	e.out = e.stdout
	if err := p.parse(); err != nil {
		e.close()
		c.Errorf("%v", err)
		var label sedLabelError
		if errors.As(err, &label) {
			return 4
		}
		return 1
	}
	e.commands = p.commands
	if e.files = operands; len(operands) == 0 {
		e.files = []string{"-"}
	}
	defer func() { code = e.code }() // what is left may not be writable: closing says so
	defer e.close()
	e.run()
	return e.code
}

// openOutput opens a file that the script writes to.
func (e *editor) openOutput(name string) (*sedOutput, error) {
	if o := e.outputs[name]; o != nil {
		return o, nil
	}
	var o *sedOutput
	switch name {
	case "/dev/stdout":
		o = &sedOutput{w: e.stdout.w, sep: e.sep}
	case "/dev/stderr":
		o = &sedOutput{w: bufio.NewWriterSize(e.c.Stderr, 16), sep: e.sep}
	default:
		f, err := e.c.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
		if err != nil {
			return nil, fmt.Errorf("couldn't open file %s: %s", name, cmd.Reason(err))
		}
		o = &sedOutput{w: bufio.NewWriter(f), f: f, sep: e.sep}
	}
	e.outputs[name] = o
	return o, nil
}

// close writes out and closes everything; a file whose editing did not end keeps its old text.
func (e *editor) close() {
	if e.edit != nil {
		e.edit.out.f.Close()
		os.Remove(e.edit.temp)
	}
	e.stdout.w.Flush()
	for name, o := range e.outputs {
		if err := o.w.Flush(); err != nil && o.f != nil {
			e.c.Errorf("couldn't write to %s: %s", name, cmd.Reason(err))
			e.code = 4
		}
		if o.f != nil {
			o.f.Close()
		}
	}
	for _, r := range e.readers {
		if r.closer != nil {
			r.closer.Close()
		}
	}
	if e.in != nil && e.in.closer != nil {
		e.in.closer.Close()
	}
}

// openNext opens the next file, false when none is left.
func (e *editor) openNext() bool {
	for len(e.files) > 0 {
		name := e.files[0]
		e.files = e.files[1:]
		if e.separate {
			e.line = 0
		}
		e.name = name
		if name == "-" && !e.inPlace {
			e.in = &sedLines{chunks: chunks{r: e.c.Stdin, sep: e.sep}}
			return true
		}
		full := e.c.Path(name)
		info, err := os.Stat(full)
		switch {
		case err == nil && info.IsDir() && e.inPlace:
			e.c.Errorf("couldn't edit %s: not a regular file", name)
			e.code = 4
			continue
		case err == nil && info.IsDir():
			e.c.Errorf("read error on %s: Is a directory", name)
			e.code, e.ended, e.files = 4, true, nil
			return false
		}
		f, err := e.c.OpenFile(name, os.O_RDONLY, 0)
		if err != nil {
			e.c.Errorf("can't read %s: %s", name, cmd.Reason(err))
			e.code = 2
			continue
		}
		if e.inPlace {
			if err := e.begin(name, full, info.Mode().Perm()); err != nil {
				f.Close()
				e.c.Errorf("couldn't open temporary file %s: %s", path.Dir(name)+"/sed", cmd.Reason(err))
				e.code = 4
				e.files = nil
				return false
			}
		}
		e.in = &sedLines{chunks: chunks{r: f, sep: e.sep}, closer: f}
		return true
	}
	return false
}

// begin starts the new text of a file that is edited in place, beside it.
func (e *editor) begin(name, full string, mode fs.FileMode) error {
	if e.follow {
		for range 40 {
			to, err := os.Readlink(full)
			if err != nil {
				break
			}
			if !path.IsAbs(to) {
				to = path.Dir(full) + "/" + to
			}
			full = to
		}
	}
	for n := 0; ; n++ {
		temp := fmt.Sprintf("%s/sed%06d", path.Dir(full), (os.Getpid()*1009+n)%1_000_000)
		f, err := e.c.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) && n < 1000 {
			continue
		}
		if err != nil {
			return err
		}
		e.edit = &inPlace{path: full, name: name, temp: temp, mode: mode, out: &sedOutput{w: bufio.NewWriterSize(f, 32<<10), f: f, sep: e.sep}}
		e.out = e.edit.out
		return nil
	}
}

// finish puts the new text in the place of the file.
func (e *editor) finish() {
	if e.in != nil {
		if e.in.err != nil && e.in.err != io.EOF {
			e.c.Errorf("read error on %s: %s", e.name, cmd.Reason(e.in.err))
			e.code = 4
		}
		if e.in.closer != nil {
			e.in.closer.Close()
		}
		e.in = nil
	}
	ed := e.edit
	if ed == nil {
		return
	}
	e.edit, e.out = nil, e.stdout
	err := ed.out.w.Flush()
	if cerr := ed.out.f.Close(); err == nil {
		err = cerr
	}
	if err == nil && e.suffix != "" {
		base := path.Base(ed.path)
		backup := base + e.suffix
		if strings.Contains(e.suffix, "*") {
			backup = strings.ReplaceAll(e.suffix, "*", base)
		}
		if !strings.Contains(backup, "/") {
			backup = path.Dir(ed.path) + "/" + backup
		}
		err = os.Rename(ed.path, e.c.Path(backup))
	}
	if err == nil {
		err = os.Rename(ed.temp, ed.path)
	}
	if err != nil {
		os.Remove(ed.temp)
		e.c.Errorf("cannot rename %s: %s", ed.temp, cmd.Reason(err))
		e.code = 4
	}
}

// more reports whether a line follows, in this file or, unless files are separate, in another.
func (e *editor) more() bool {
	for {
		if e.in != nil {
			if e.in.more() {
				return true
			}
			if e.in.err != nil && e.in.err != io.EOF {
				e.c.Errorf("couldn't read %s: %s", e.name, cmd.Reason(e.in.err))
				e.code = 2
				e.in.err = io.EOF
			}
		}
		if e.edit != nil {
			return false // its end is written before the next file begins: see read
		}
		if e.separate && e.in != nil {
			return false
		}
		if e.in != nil {
			e.finish()
		}
		if !e.openNext() {
			return false
		}
	}
}

// read reads the next line into the pattern space, or behind what is there.
func (e *editor) read(join bool) bool {
	e.dump()
	e.replaced = false
	for !e.more() {
		if !e.separate || join {
			return false
		}
		e.finish()
		if !e.openNext() {
			return false
		}
	}
	line, chomped := e.in.line()
	if join {
		e.space = append(append(e.space, e.sep), line...)
	} else {
		e.space = append(e.space[:0], line...)
	}
	e.chomped = chomped
	e.line++
	return true
}

// dump writes what a, r and R have put off to the end of the cycle.
func (e *editor) dump() {
	for _, a := range e.appends {
		if a.file == "" {
			e.out.flushMissing()
			e.out.w.WriteString(a.text)
			continue
		}
		var r io.Reader
		if a.file == "/dev/stdin" {
			r = e.c.Stdin
		} else {
			f, err := e.c.OpenFile(a.file, os.O_RDONLY, 0)
			if err != nil {
				continue
			}
			defer f.Close()
			r = f
		}
		first := true
		buf := make([]byte, 32<<10)
		for {
			n, err := r.Read(buf)
			if n > 0 {
				if first {
					e.out.flushMissing()
					first = false
				}
				e.out.w.Write(buf[:n])
			}
			if err != nil {
				break
			}
		}
	}
	e.appends = e.appends[:0]
	if e.unbuffered {
		e.out.w.Flush()
	}
}

func (e *editor) print() { e.out.text(e.space, e.chomped) }

func (e *editor) run() {
	for !e.ended {
		if e.again {
			e.again = false
			e.dump()
		} else if !e.read(false) {
			break
		}
		e.cycle()
	}
	e.dump()
	e.finish()
}

// matches reports whether the command applies to the line.
func (e *editor) matches(c *sedCommand) bool {
	if c.from == nil {
		return true
	}
	if c.to == nil {
		return e.at(c.from)
	}
	if c.active {
		switch c.to.kind {
		case addrLine, addrPlus, addrMultiple:
			end := c.end
			if c.to.kind == addrLine {
				end = c.to.n
			}
			c.active = e.line < end
			if e.line > end {
				return c.from.kind != addrLine && e.at(c.from) && e.start(c)
			}
			return true
		}
		if e.at(c.to) {
			c.active = false
		}
		return true
	}
	return e.at(c.from) && e.start(c)
}

// start begins a range at the line.
func (e *editor) start(c *sedCommand) bool {
	c.active = true
	switch c.to.kind {
	case addrLine:
		c.active = e.line < c.to.n
	case addrPlus:
		c.end = e.line + c.to.n
		c.active = c.to.n > 0
	case addrMultiple:
		c.end = e.line
		if c.to.n > 0 {
			c.end = (e.line + c.to.n - 1) / c.to.n * c.to.n
		}
		c.active = c.end > e.line
	}
	return true
}

func (e *editor) at(a *addr) bool {
	switch a.kind {
	case addrLine:
		return e.line == a.n
	case addrLast:
		return !e.more()
	case addrStep:
		if a.m <= 0 {
			return e.line == a.n
		}
		return e.line >= a.n && (e.line-a.n)%a.m == 0
	}
	return e.regexp(a.re).Match(e.ctx, e.space)
}

type noRegexp struct{}

// regexp is re, or the expression used last when it is empty.
func (e *editor) regexp(re *regex.Regexp) *regex.Regexp {
	if re == nil {
		re = e.last
	}
	if re == nil {
		panic(noRegexp{})
	}
	e.last = re
	return re
}

// cycle runs the script on the pattern space.
func (e *editor) cycle() {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(noRegexp); !ok {
				panic(p)
			}
			e.c.Errorf("-e expression #1, char 0: no previous regular expression")
			e.code, e.ended = 1, true
		}
	}()
	printed := e.script()
	if printed && !e.quiet {
		e.print()
	}
	if e.ended {
		e.dump()
	}
	if e.unbuffered {
		e.out.w.Flush()
	}
}

// script reports whether the pattern space is to be printed at the end of the cycle.
func (e *editor) script() bool {
	steps := 0
	for i := 0; i < len(e.commands); {
		if steps++; steps%1024 == 0 {
			cmd.Check(e.ctx)
		}
		c := &e.commands[i]
		i++
		if e.matches(c) == c.not {
			if c.name == '{' {
				i = c.jump
			}
			continue
		}
		switch c.name {
		case '{':
		case '=':
			e.out.flushMissing()
			fmt.Fprintf(e.out.w, "%d\n", e.line)
		case 'a':
			e.appends = append(e.appends, sedAppend{text: c.text})
		case 'i':
			e.out.flushMissing()
			e.out.w.WriteString(c.text)
		case 'c':
			if c.to == nil || !c.active || c.not {
				e.out.flushMissing()
				e.out.w.WriteString(c.text)
			}
			return false
		case 'b':
			i = c.jump
		case 't':
			if e.replaced {
				e.replaced = false
				i = c.jump
			}
		case 'T':
			if !e.replaced {
				i = c.jump
			}
			e.replaced = false
		case 'd':
			return false
		case 'D':
			n := bytes.IndexByte(e.space, e.sep)
			if n < 0 {
				return false
			}
			e.space = append(e.space[:0], e.space[n+1:]...)
			e.again = true
			return false
		case 'F':
			e.out.flushMissing()
			e.out.w.WriteString(e.name + "\n")
		case 'g':
			e.space = append(e.space[:0], e.hold...)
			e.chomped = e.holdChomped
		case 'G':
			e.space = append(append(e.space, e.sep), e.hold...)
			e.chomped = e.holdChomped
		case 'h':
			e.hold = append(e.hold[:0], e.space...)
			e.holdChomped = e.chomped
		case 'H':
			e.hold = append(append(e.hold, e.sep), e.space...)
			e.holdChomped = e.chomped
		case 'x':
			e.space, e.hold = e.hold, e.space
			e.chomped, e.holdChomped = e.holdChomped, e.chomped
		case 'l':
			width := c.number
			if width < 0 {
				width = e.width
			}
			e.list(width)
		case 'n':
			if !e.more() {
				return true
			}
			if !e.quiet {
				e.print()
			}
			e.read(false)
		case 'N':
			if !e.more() {
				return !e.posix
			}
			e.read(true)
		case 'p':
			e.print()
		case 'P':
			n := bytes.IndexByte(e.space, e.sep)
			if n < 0 {
				n = len(e.space)
			}
			e.out.text(e.space[:n], true)
		case 'q', 'Q':
			e.ended = true
			if c.number >= 0 {
				e.code = c.number & 255
			}
			return c.name == 'q'
		case 'r':
			e.appends = append(e.appends, sedAppend{file: c.text})
		case 'R':
			e.readLine(c.text)
		case 'w':
			c.out.text(e.space, e.chomped)
		case 'W':
			n := bytes.IndexByte(e.space, e.sep)
			if n < 0 {
				n = len(e.space)
			}
			c.out.text(e.space[:n], true)
		case 's':
			e.substitute(c.sub)
		case 'y':
			e.transliterate(c.table)
		case 'z':
			e.space = e.space[:0]
		}
	}
	return true
}

func (e *editor) readLine(name string) {
	r := e.readers[name]
	if r == nil {
		r = &sedLines{chunks: chunks{sep: e.sep}}
		if name == "/dev/stdin" {
			r.r = e.c.Stdin
		} else if f, err := e.c.OpenFile(name, os.O_RDONLY, 0); err == nil {
			r.r, r.closer = f, f
		} else {
			r.err = err
		}
		e.readers[name] = r
	}
	if r.more() {
		line, chomped := r.line()
		text := string(line)
		if chomped {
			text += string(e.sep)
		}
		e.appends = append(e.appends, sedAppend{text: text})
	}
}

// list prints the pattern space for l.
func (e *editor) list(width int) {
	e.out.flushMissing()
	w := e.out.w
	col := 0
	for _, c := range e.space {
		var s string
		switch i := strings.IndexByte("\a\b\f\n\r\t\v\\", c); {
		case i >= 0:
			s = "\\" + `abfnrtv\`[i:i+1]
		case c < 32 || c >= 127:
			s = fmt.Sprintf("\\%03o", c)
		default:
			s = string(rune(c))
		}
		if width > 0 && col+len(s) > width-1 {
			w.WriteString("\\\n")
			col = 0
		}
		w.WriteString(s)
		col += len(s)
	}
	w.WriteString("$\n")
}

func (e *editor) transliterate(table map[rune]rune) {
	out := e.spare[:0]
	for b := e.space; len(b) > 0; {
		r, n := sedChar(b, e.single)
		if to, ok := table[r]; ok {
			if to < 0 {
				out = append(out, byte(-to))
			} else {
				out = utf8.AppendRune(out, to)
			}
		} else {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	e.spare, e.space = e.space, out
}

func (e *editor) substitute(s *substitution) {
	re := e.regexp(s.re)
	out := e.spare[:0]
	start, count := 0, 0
	prev := -1 // end of the match before
	done := false
	for start <= len(e.space) {
		m := re.AppendIndex(e.ctx, e.index[:0], e.space, start)
		if m == nil {
			break
		}
		e.index = m
		from, to := m[0], m[1]
		out = append(out, e.space[start:from]...)
		if from == to && from == prev {
			// Nothing, right behind a match: that place is taken.
			n := e.width1(from)
			out = append(out, e.space[from:from+n]...)
			start = from + max(n, 1)
			prev = -1
			continue
		}
		count++
		if count < s.nth {
			out = append(out, e.space[from:to]...)
		} else {
			done = true
			out = e.replace(out, s.parts, m)
		}
		start, prev = to, to
		if done && !s.global {
			break
		}
		if from == to {
			n := e.width1(from)
			out = append(out, e.space[from:from+n]...)
			start = from + max(n, 1)
			prev = -1
		}
	}
	if !done {
		e.spare = out
		return
	}
	if start < len(e.space) {
		out = append(out, e.space[start:]...)
	}
	e.spare, e.space = e.space, out
	e.replaced = true
	if s.print > 0 {
		e.print()
	}
	if s.out != nil {
		s.out.text(e.space, e.chomped)
	}
}

// width1 is the length of the character at pos, 0 at the end.
func (e *editor) width1(pos int) int {
	if pos >= len(e.space) {
		return 0
	}
	_, n := sedChar(e.space[pos:], e.single)
	return n
}

func (e *editor) replace(out []byte, parts []part, m []int) []byte {
	var all, one byte // \U or \L in force, \u or \l for the next character
	for _, p := range parts {
		if p.cases != 0 {
			switch p.cases {
			case 'E':
				all, one = 0, 0
			case 'U', 'L':
				all = p.cases
			default:
				one = p.cases
			}
			continue
		}
		text := []byte(p.text)
		if p.group >= 0 {
			text = nil
			if 2*p.group+1 < len(m) && m[2*p.group] >= 0 {
				text = e.space[m[2*p.group]:m[2*p.group+1]]
			}
		}
		if all == 0 && one == 0 {
			out = append(out, text...)
			continue
		}
		for len(text) > 0 {
			r, n := sedChar(text, e.single)
			to := r
			if r > 0 {
				switch {
				case one == 'u' || one == 0 && all == 'U':
					to = unicode.ToUpper(r)
				case one == 'l' || one == 0 && all == 'L':
					to = unicode.ToLower(r)
				}
			}
			one = 0
			if to == r {
				out = append(out, text[:n]...)
			} else {
				out = utf8.AppendRune(out, to)
			}
			text = text[n:]
		}
	}
	return out
}
