package text

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

var splitOpts = cmd.Opts{
	{Short: 'a', Long: "suffix-length", Arg: cmd.Value}, {Long: "additional-suffix", Arg: cmd.Value},
	{Short: 'b', Long: "bytes", Arg: cmd.Value}, {Short: 'C', Long: "line-bytes", Arg: cmd.Value}, {Short: 'd'},
	{Long: "numeric-suffixes", Arg: cmd.Optional}, {Short: 'x'}, {Long: "hex-suffixes", Arg: cmd.Optional},
	{Short: 'e', Long: "elide-empty-files"}, {Long: "filter", Arg: cmd.Value}, {Short: 'l', Long: "lines", Arg: cmd.Value},
	{Short: 'n', Long: "number", Arg: cmd.Value}, {Short: 't', Long: "separator", Arg: cmd.Value}, {Short: 'u', Long: "unbuffered"},
	{Long: "verbose"},
}

// pieces are the files that split writes, one after the other.
type pieces struct {
	t        *call
	prefix   string
	extra    string
	alphabet string
	length   int // of suffixes
	fixed    bool
	start    int
	count    int
	verbose  bool
	filter   string

	w    *bufio.Writer
	done func() error
}

// suffix makes the nth name. ok is false when there are no more. Where the length is free, the last suffixes that
// start with the last letter are longer: yz, zaaa.
func (p *pieces) suffix(n int) (string, bool) {
	base := len(p.alphabet)
	length, head := p.length, ""
	limit := 1
	for range length {
		limit *= base
		if limit > 1<<50 {
			break
		}
	}
	if p.fixed {
		if n >= limit {
			return "", false
		}
	} else {
		// Each time, the last letter alone is kept for longer names.
		for span := limit / base * (base - 1); n >= span; span = limit / base * (base - 1) {
			n -= span
			head += p.alphabet[base-1:]
			length++
			limit *= base
			if limit > 1<<50 {
				return "", false
			}
		}
	}
	b := make([]byte, length)
	for i := length - 1; i >= 0; i-- {
		b[i] = p.alphabet[n%base]
		n /= base
	}
	if head != "" {
		return head + string(b), true
	}
	return string(b), true
}

// next starts a new piece. It returns false when there are no more names, or the file cannot be made.
func (p *pieces) next() bool {
	cmd.Check(p.t.ctx) // there may be very many
	if !p.close() {
		return false
	}
	s, ok := p.suffix(p.start + p.count)
	if !ok {
		p.t.Errorf("output file suffixes exhausted")
		return false
	}
	name := p.prefix + s + p.extra
	p.count++
	if p.filter != "" {
		p.runFilter(name)
		return true
	}
	if p.verbose {
		fmt.Fprintf(p.t.out, "creating file '%s'\n", name)
	}
	f, err := p.t.create(name)
	if err != nil {
		p.t.Fail(name, err)
		return false
	}
	p.w = bufio.NewWriterSize(strict{f, name}, 32<<10)
	p.done = f.Close
	return true
}

// runFilter gives a piece to a command instead of a file.
func (p *pieces) runFilter(name string) {
	var piece bytes.Buffer
	p.w = bufio.NewWriter(&piece)
	p.done = func() error {
		p.t.flush()
		code := p.t.Shell.Run(p.t.ctx, p.t.Call, cmd.Child{
			Argv: []string{"sh", "-c", p.filter}, Stdin: &piece, Environ: append(p.t.Environ[:len(p.t.Environ):len(p.t.Environ)], "FILE="+name),
		})
		if code != 0 {
			return fmt.Errorf("with FILE=%s, exit %d from command: %s", name, code, p.filter)
		}
		return nil
	}
}

func (p *pieces) close() bool {
	if p.w == nil {
		return true
	}
	p.w.Flush()
	p.w = nil
	if err := p.done(); err != nil {
		p.t.Errorf("%s", cmd.Reason(err))
		return false
	}
	return true
}

func split(t *call) int {
	given, names, code := t.parse(splitOpts, "[OPTION]... [FILE [PREFIX]]", 1, oldWidth(t.Args, "l", false))
	if code >= 0 {
		return code
	}
	p := &pieces{t: t, prefix: "x", alphabet: "abcdefghijklmnopqrstuvwxyz"}
	mode, n, chunks := "", int64(0), ""
	sep := byte('\n')
	elide, sepSet := false, false
	for _, g := range given {
		switch g.Key {
		case "a":
			k, err := strconv.Atoi(g.Value)
			if err != nil || k < 0 {
				return t.fail(1, "invalid suffix length: %s", cmd.Quote(g.Value))
			}
			p.length, p.fixed = k, k > 0
		case "additional-suffix":
			if strings.Contains(g.Value, "/") {
				return t.usage(1, "invalid suffix %s, contains directory separator", cmd.Quote(g.Value))
			}
			p.extra = g.Value
		case "b", "C", "l":
			if mode != "" {
				return t.usage(1, "cannot split in more than one way")
			}
			mode = g.Key
			var ok bool
			if n, ok = size(g.Value); !ok || n == 0 {
				return t.fail(1, "invalid number of %s: %s%s", map[string]string{"b": "bytes", "C": "bytes", "l": "lines"}[mode], cmd.Quote(g.Value), outOfRange(ok))
			}
		case "n":
			if mode != "" {
				return t.usage(1, "cannot split in more than one way")
			}
			mode, chunks = "n", g.Value
		case "d", "numeric-suffixes", "x", "hex-suffixes":
			p.alphabet = "0123456789"
			base := 10
			if g.Key == "x" || g.Key == "hex-suffixes" {
				p.alphabet, base = "0123456789abcdef", 16
			}
			if g.Has {
				from, err := strconv.ParseInt(g.Value, base, 31)
				if err != nil || from < 0 {
					return t.usage(1, "%s: invalid start value for numerical suffix", g.Value)
				}
				p.start, p.fixed = int(from), true
			}
		case "e":
			elide = true
		case "filter":
			p.filter = g.Value
		case "t":
			s := g.Value
			if s == `\0` {
				s = "\x00"
			}
			switch {
			case s == "":
				return t.fail(1, "empty record separator")
			case len(s) > 1:
				return t.fail(1, "multi-character separator %s", cmd.Quote(g.Value))
			case sepSet && s[0] != sep:
				return t.fail(1, "multiple separator characters specified")
			}
			sep, sepSet = s[0], true
		case "u": // pieces are whole when the command ends; only -n r/K/N could show a difference, and writes at once
		case "verbose":
			p.verbose = true
		}
	}
	if len(names) > 2 {
		return t.usage(1, "extra operand %s", cmd.Quote(names[2]))
	}
	if mode == "" {
		mode, n = "l", 1000
	}
	if len(names) > 1 {
		p.prefix = names[1]
	}
	in := "-"
	if len(names) > 0 {
		in = names[0]
	}
	r, err := t.open(in)
	if err != nil {
		return t.fail(1, "cannot open '%s' for reading: %s", in, cmd.Reason(err))
	}
	defer r.Close()
	if mode == "n" {
		return splitChunks(t, p, r, in, chunks, sep, elide)
	}
	if p.length == 0 {
		p.length = 2
	}
	ok := true
	switch mode {
	case "b":
		left := int64(0)
		err = blocks(r, func(b []byte) error {
			for len(b) > 0 {
				if left == 0 {
					if ok = p.next(); !ok {
						return errStop
					}
					left = n
				}
				k := min(left, int64(len(b)))
				p.w.Write(b[:k])
				b, left = b[k:], left-k
			}
			return nil
		})
	case "l":
		left := int64(0)
		err = blocks(r, func(b []byte) error {
			for len(b) > 0 {
				if left == 0 {
					if ok = p.next(); !ok {
						return errStop
					}
					left = n
				}
				end := 0
				for left > 0 {
					i := bytes.IndexByte(b[end:], sep)
					if i < 0 {
						end = len(b)
						break
					}
					end += i + 1
					left--
				}
				p.w.Write(b[:end])
				b = b[end:]
			}
			return nil
		})
	default:
		err = splitLineBytes(p, r, n, sep, &ok)
	}
	if !p.close() {
		ok = false
	}
	switch {
	case ignoreStop(err) != nil:
		return t.Fail(in, err)
	case !ok:
		return 1
	}
	return 0
}

// outOfRange is what is wrong with a number that is one.
func outOfRange(isNumber bool) string {
	if isNumber {
		return ": Numerical result out of range"
	}
	return ""
}

// splitLineBytes fills pieces of at most n bytes with whole lines; only a line that is longer is broken.
func splitLineBytes(p *pieces, r io.Reader, n int64, sep byte, ok *bool) error {
	br := bufio.NewReaderSize(r, int(min(n, 1<<16)))
	var line []byte
	left := int64(0)
	put := func(b []byte) bool {
		for len(b) > 0 {
			if int64(len(b)) > left {
				if left == 0 || left < n {
					if *ok = p.next(); !*ok {
						return false
					}
					left = n
				}
			}
			k := min(left, int64(len(b)))
			p.w.Write(b[:k])
			b, left = b[k:], left-k
		}
		return true
	}
	for {
		b, err := br.ReadSlice(sep)
		line = append(line, b...)
		ended := err == nil || err == io.EOF
		for int64(len(line)) >= n || ended && len(line) > 0 {
			k := min(int64(len(line)), n)
			if !put(line[:k]) {
				return errStop
			}
			line = append(line[:0], line[k:]...)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil && err != bufio.ErrBufferFull {
			return err
		}
	}
}

// splitChunks is split -n: N, K/N, l/N, l/K/N, r/N, r/K/N.
func splitChunks(t *call, p *pieces, r *source, in, spec string, sep byte, elide bool) int {
	rest, kind := spec, byte('b')
	if len(rest) > 1 && (rest[0] == 'l' || rest[0] == 'r') && rest[1] == '/' {
		kind, rest = rest[0], rest[2:]
	}
	only := int64(0)
	if k, total, ok := strings.Cut(rest, "/"); ok {
		v, ok := size(k)
		if !ok || v == 0 {
			return t.fail(1, "invalid chunk number: %s%s", cmd.Quote(k), outOfRange(ok))
		}
		only, rest = v, total
	}
	n, ok := size(rest)
	if !ok || n == 0 {
		return t.fail(1, "invalid number of chunks: %s%s", cmd.Quote(rest), outOfRange(ok))
	}
	if only > n {
		return t.fail(1, "invalid chunk number: '%d'%s", only, outOfRange(true))
	}
	if !p.fixed || p.length == 0 {
		need := 1
		for limit := int64(len(p.alphabet)); limit < n+int64(p.start); limit *= int64(len(p.alphabet)) {
			need++
		}
		p.length = max(need, 2)
		p.fixed = true
	}
	if kind == 'r' {
		return splitRoundRobin(t, p, r, in, only, n, sep, elide)
	}
	from, seekable := r.seek(0, io.SeekCurrent)
	var total int64
	var src io.Reader = r
	if seekable {
		end, _ := r.seek(0, io.SeekEnd)
		total = end - from
		r.seek(from, io.SeekStart)
	} else {
		data, err := io.ReadAll(r)
		if err != nil {
			return t.Fail(in, err)
		}
		total = int64(len(data))
		src = bytes.NewReader(data)
	}
	// The ends of the chunks; the last takes what is left over.
	end := func(i int64) int64 {
		if i == n {
			return total
		}
		return min(total, max(total/n, 1)*i)
	}
	chunk, pos := int64(1), int64(0)
	failed := false
	started := int64(0)
	startTo := func(i int64) bool { // pieces up to the ith exist
		for started < i {
			started++
			if only > 0 {
				continue
			}
			if elide && started < i {
				continue
			}
			if !p.next() {
				failed = true
				return false
			}
		}
		return true
	}
	write := func(b []byte) {
		switch {
		case only == 0:
			p.w.Write(b)
		case only == started:
			t.out.Write(b)
		}
	}
	inLine := false
	err := blocks(src, func(b []byte) error {
		for len(b) > 0 {
			if !inLine {
				for chunk < n && pos >= end(chunk) {
					chunk++
				}
				if !startTo(chunk) {
					return errStop
				}
			}
			k := min(int64(len(b)), max(end(chunk)-pos, 0))
			if kind == 'l' {
				// A line belongs to the chunk that its start is in.
				at := max(end(chunk)-pos-1, 0)
				if chunk == n || at >= int64(len(b)) {
					k = int64(len(b))
					inLine = false
				} else if i := bytes.IndexByte(b[at:], sep); i >= 0 {
					k = at + int64(i) + 1
					inLine = false
				} else {
					k = int64(len(b))
					inLine = true
				}
			}
			write(b[:k])
			b = b[k:]
			pos += k
		}
		return nil
	})
	if ignoreStop(err) != nil {
		return t.Fail(in, err)
	}
	if !failed && !elide && only == 0 {
		startTo(n)
	}
	if !p.close() || failed {
		return 1
	}
	return 0
}

func splitRoundRobin(t *call, p *pieces, r *source, in string, only, n int64, sep byte, elide bool) int {
	l := newLines(r, sep)
	if only == 0 && n > 4096 {
		return t.fail(1, "too many output files: %d", n)
	}
	var outs []*bufio.Writer
	if only == 0 {
		for i := range int(n) {
			s, ok := p.suffix(p.start + i)
			if !ok {
				return t.fail(1, "output file suffixes exhausted")
			}
			name := p.prefix + s + p.extra
			if p.filter != "" {
				return t.fail(1, "--filter cannot be combined with -n r/N here")
			}
			f := &lateFile{t: t, name: name, verbose: p.verbose}
			defer f.close()
			if !elide {
				if err := f.open(); err != nil {
					return t.Fail(name, err)
				}
			}
			outs = append(outs, bufio.NewWriterSize(strict{f, name}, 4096))
		}
	}
	for i := int64(0); ; i++ {
		line, err := l.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return t.Fail(in, err)
		}
		w := t.out
		if only == 0 {
			w = outs[i%n]
		} else if i%n != only-1 {
			continue
		}
		w.Write(line)
		if l.ended {
			w.WriteByte(sep)
		}
	}
	for _, w := range outs {
		w.Flush()
	}
	return 0
}

// lateFile is a file that is made when something is written to it.
type lateFile struct {
	t       *call
	name    string
	verbose bool
	f       cmd.File
}

func (l *lateFile) open() (err error) {
	if l.verbose {
		fmt.Fprintf(l.t.out, "creating file '%s'\n", l.name)
	}
	l.f, err = l.t.create(l.name)
	return err
}

func (l *lateFile) Write(b []byte) (int, error) {
	if l.f == nil {
		if err := l.open(); err != nil {
			return 0, err
		}
	}
	return l.f.Write(b)
}

func (l *lateFile) close() {
	if l.f != nil {
		l.f.Close()
	}
}

var csplitOpts = cmd.Opts{
	{Short: 'b', Long: "suffix-format", Arg: cmd.Value}, {Short: 'f', Long: "prefix", Arg: cmd.Value}, {Short: 'k', Long: "keep-files"},
	{Long: "suppress-matched"}, {Short: 'n', Long: "digits", Arg: cmd.Value}, {Short: 's', Long: "quiet"}, {Long: "silent"}, {Short: 'q'},
	{Short: 'z', Long: "elide-empty-files"},
}

// csplitter is one call of csplit. Lines that a negative offset may go back to are held: those of one piece.
type csplitter struct {
	t        *call
	l        *lines
	held     [][]byte // lines that were read and not written yet, with their ends
	at       int      // number of the first of them, from 1
	eof      bool
	prefix   string
	format   string
	keep     bool
	suppress bool
	quiet    bool
	elide    bool
	made     []string
	size     int64
	f        cmd.File
	w        *bufio.Writer
	count    int
}

// csplitArg is a pattern of csplit.
type csplitArg struct {
	text    string
	line    int // a line number
	re      *pattern
	skip    bool
	offset  int
	repeat  int
	forever bool
}

func csplit(t *call) int {
	given, names, code := t.parse(csplitOpts, "[OPTION]... FILE PATTERN...", 1, t.Args)
	if code >= 0 {
		return code
	}
	c := &csplitter{t: t, at: 1, prefix: "xx"}
	digits := 2
	for _, g := range given {
		switch g.Key {
		case "b":
			if !csplitFormat(g.Value) {
				return t.fail(1, "invalid conversion specification in suffix: %s", g.Value)
			}
			c.format = g.Value
		case "f":
			c.prefix = g.Value
		case "k":
			c.keep = true
		case "suppress-matched":
			c.suppress = true
		case "n":
			n, err := strconv.Atoi(g.Value)
			if err != nil || n < 0 || n > 200 {
				return t.fail(1, "invalid number: %s", cmd.Quote(g.Value))
			}
			digits = n
		case "s", "q", "silent":
			c.quiet = true
		case "z":
			c.elide = true
		}
	}
	if len(names) < 2 {
		if len(names) == 0 {
			return t.usage(1, "missing operand")
		}
		return t.usage(1, "missing operand after %s", cmd.Quote(names[0]))
	}
	if c.format == "" {
		c.format = fmt.Sprintf("%%0%dd", digits)
	}
	args, err := c.parse(names[1:])
	if err != nil {
		return t.fail(1, "%v", err)
	}
	r, err := t.open(names[0])
	if err != nil {
		return t.fail(1, "cannot open '%s' for reading: %s", names[0], cmd.Reason(err))
	}
	defer r.Close()
	c.l = newLines(r, '\n')
	if err := c.run(args); err != nil {
		t.flush()
		if err != errStop {
			t.Errorf("%v", err)
		}
		c.finish()
		if !c.keep {
			for _, name := range c.made {
				os.Remove(t.Path(name))
			}
		}
		return 1
	}
	return 0
}

func csplitFormat(s string) bool {
	i := strings.IndexByte(s, '%')
	if i < 0 || strings.Count(strings.ReplaceAll(s, "%%", ""), "%") != 1 {
		return false
	}
	rest := strings.TrimLeft(strings.ReplaceAll(s, "%%", "")[strings.IndexByte(strings.ReplaceAll(s, "%%", ""), '%')+1:], "0123456789-+ #.")
	return rest != "" && strings.IndexByte("diouxX", rest[0]) >= 0
}

func (c *csplitter) parse(words []string) ([]csplitArg, error) {
	var args []csplitArg
	last := 0
	for _, w := range words {
		switch {
		case len(w) > 0 && (w[0] == '/' || w[0] == '%'):
			end := strings.LastIndexByte(w, w[0])
			if end == 0 {
				return nil, fmt.Errorf("%s: closing delimiter '%c' missing", w, w[0])
			}
			a := csplitArg{text: w, skip: w[0] == '%'}
			if s := w[end+1:]; s != "" {
				n, err := strconv.Atoi(s)
				if err != nil {
					return nil, fmt.Errorf("%s: integer expected after delimiter", w)
				}
				a.offset = n
			}
			re, err := c.t.pattern(strings.ReplaceAll(w[1:end], `\`+w[:1], w[:1]))
			if err != nil {
				return nil, fmt.Errorf("%s: invalid regular expression: %v", w, err)
			}
			a.re = re
			args = append(args, a)
		case len(w) > 2 && w[0] == '{' && w[len(w)-1] == '}':
			if len(args) == 0 {
				return nil, fmt.Errorf("%s: invalid pattern", w)
			}
			a := &args[len(args)-1]
			if w == "{*}" {
				a.forever = true
				continue
			}
			n, err := strconv.Atoi(w[1 : len(w)-1])
			if err != nil || n < 0 {
				return nil, fmt.Errorf("%s}: integer required between '{' and '}'", w[:len(w)-1])
			}
			a.repeat = n
		default:
			n, err := strconv.Atoi(w)
			if err != nil {
				return nil, fmt.Errorf("%s: invalid pattern", cmd.Quote(w))
			}
			switch {
			case n <= 0:
				return nil, fmt.Errorf("%s: line number must be greater than zero", w)
			case n < last:
				return nil, fmt.Errorf("line number %s is smaller than preceding line number, %d", cmd.Quote(w), last)
			case n == last:
				c.t.Errorf("warning: line number %s is the same as preceding line number", cmd.Quote(w))
			}
			last = n
			args = append(args, csplitArg{text: w, line: n})
		}
	}
	return args, nil
}

// peek returns line n (counted from 1), which must not be written yet: nil behind the end.
func (c *csplitter) peek(n int) ([]byte, error) {
	for n >= c.at+len(c.held) {
		if c.eof {
			return nil, nil
		}
		line, err := c.l.next()
		if err == io.EOF {
			c.eof = true
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read error: %s", cmd.Reason(err))
		}
		b := append(make([]byte, 0, len(line)+1), line...)
		if c.l.ended {
			b = append(b, '\n')
		}
		c.held = append(c.held, b)
	}
	return c.held[n-c.at], nil
}

// take writes the lines before n, or drops them.
func (c *csplitter) take(n int, write bool) error {
	for c.at < n {
		b, err := c.peek(c.at)
		if err != nil {
			return err
		}
		if b == nil {
			return nil
		}
		if write {
			c.w.Write(b)
			c.size += int64(len(b))
		}
		c.held = c.held[1:]
		c.at++
	}
	return nil
}

func (c *csplitter) start() error {
	name := c.prefix + fmt.Sprintf(c.goFormat(), c.count)
	f, err := c.t.create(name)
	if err != nil {
		return fmt.Errorf("%s: %s", name, cmd.Reason(err))
	}
	c.made = append(c.made, name)
	c.f, c.w, c.size = f, bufio.NewWriterSize(strict{f, name}, 32<<10), 0
	c.count++
	return nil
}

func (c *csplitter) goFormat() string {
	return strings.NewReplacer("%%", "%%", "i", "d", "u", "d").Replace(c.format)
}

// finish closes a piece and says how large it is.
func (c *csplitter) finish() {
	if c.w == nil {
		return
	}
	c.w.Flush()
	c.w = nil
	c.f.Close()
	if c.size == 0 && c.elide {
		c.count--
		name := c.made[len(c.made)-1]
		c.made = c.made[:len(c.made)-1]
		os.Remove(c.t.Path(name))
		return
	}
	if !c.quiet {
		fmt.Fprintf(c.t.out, "%d\n", c.size)
	}
}

func (c *csplitter) run(args []csplitArg) error {
	current := 0 // the line that the last pattern matched: the next search starts behind it
	for _, a := range args {
		for i := 0; a.forever || i <= a.repeat; i++ {
			var err error
			done := false
			if a.re == nil {
				done, err = c.toLine(a, i)
			} else {
				done, err = c.toMatch(a, i, &current)
			}
			if err != nil || done {
				return err
			}
		}
	}
	if err := c.start(); err != nil {
		return err
	}
	if err := c.take(1<<62, true); err != nil {
		return err
	}
	c.finish()
	return nil
}

func (c *csplitter) toLine(a csplitArg, i int) (bool, error) {
	n := a.line * (i + 1)
	if err := c.start(); err != nil {
		return false, err
	}
	b, err := c.peek(n)
	if err == nil && b == nil {
		err2 := c.take(n, true)
		c.finish()
		if err2 != nil {
			return false, err2
		}
		if i > 0 {
			return false, fmt.Errorf("%s: line number out of range on repetition %d", cmd.Quote(a.text), i)
		}
		return false, fmt.Errorf("%s: line number out of range", cmd.Quote(a.text))
	}
	if err == nil {
		err = c.take(n, true)
	}
	c.finish()
	if c.suppress {
		c.take(n+1, false)
	}
	return false, err
}

func (c *csplitter) toMatch(a csplitArg, i int, current *int) (bool, error) {
	if !a.skip {
		if err := c.start(); err != nil {
			return false, err
		}
	}
	n := max(c.at, *current+1)
	for ; ; n++ {
		b, err := c.peek(n)
		if err != nil {
			return false, err
		}
		if b == nil {
			if a.forever {
				if !a.skip {
					err = c.take(1<<62, true)
					c.finish()
				} else {
					err = c.take(1<<62, false)
				}
				return true, err
			}
			if !a.skip {
				err = c.take(1<<62, true)
				c.finish()
			}
			if err != nil {
				return false, err
			}
			if i > 0 {
				return false, fmt.Errorf("%s: match not found on repetition %d", cmd.Quote(a.text), i)
			}
			return false, fmt.Errorf("%s: match not found", cmd.Quote(a.text))
		}
		if a.re.match(bytes.TrimSuffix(b, []byte{'\n'})) {
			break
		}
		if n%1024 == 0 {
			cmd.Check(c.t.ctx)
		}
	}
	*current = n
	to := n + a.offset
	if to < c.at {
		return false, fmt.Errorf("%s: line number out of range", cmd.Quote(a.text))
	}
	if a.offset > 0 {
		if b, err := c.peek(to - 1); err != nil || b == nil {
			if err == nil {
				c.take(1<<62, !a.skip)
				c.finish()
				err = fmt.Errorf("%s: line number out of range", cmd.Quote(a.text))
			}
			return false, err
		}
	}
	err := c.take(to, !a.skip)
	c.finish()
	if c.suppress && err == nil {
		err = c.take(to+1, false)
	}
	return false, err
}
