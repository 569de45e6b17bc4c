package text

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

var catOpts = cmd.Opts{
	{Short: 'A', Long: "show-all"}, {Short: 'b', Long: "number-nonblank"}, {Short: 'e'}, {Short: 'E', Long: "show-ends"},
	{Short: 'n', Long: "number"}, {Short: 's', Long: "squeeze-blank"}, {Short: 't'}, {Short: 'T', Long: "show-tabs"},
	{Short: 'u'}, {Short: 'v', Long: "show-nonprinting"},
}

func cat(t *call) int {
	given, names, code := t.parse(catOpts, "[OPTION]... [FILE]...", 1, t.Args)
	if code >= 0 {
		return code
	}
	var p catPrinter
	for _, g := range given {
		switch g.Key {
		case "A":
			p.nonprinting, p.ends, p.tabs = true, true, true
		case "b":
			p.number, p.nonblank = true, true
		case "e":
			p.nonprinting, p.ends = true, true
		case "E":
			p.ends = true
		case "n":
			p.number = true
		case "s":
			p.squeeze = true
		case "t":
			p.nonprinting, p.tabs = true, true
		case "T":
			p.tabs = true
		case "v":
			p.nonprinting = true
		case "u": // output is never held back for long
		}
	}
	plain := !p.number && !p.squeeze && !p.ends && !p.tabs && !p.nonprinting
	p.start = true
	var to fs.FileInfo
	if st, ok := t.Stdout.(interface{ Stat() (fs.FileInfo, error) }); ok {
		if info, err := st.Stat(); err == nil && info.Mode().IsRegular() {
			to = info
		}
	}
	failed := t.each(names, func(name string, r *source) error {
		if to != nil {
			// Reading what is being written would never end, unless reading starts behind all that is there.
			if from, err := r.file.Stat(); err == nil && os.SameFile(from, to) && from.Size() > 0 {
				t.Errorf("%s: input file is output file", name)
				code = 1
				return nil
			}
		}
		if plain {
			t.flush()
			return blocks(r, func(b []byte) error { _, err := t.Stdout.Write(b); return err })
		}
		return blocks(r, func(b []byte) error {
			t.out.Write(p.add(b))
			t.flush()
			return nil
		})
	})
	if p.cr { // a CR at the very end of all input
		t.out.WriteByte('\r')
	}
	return max(code, failed, 0)
}

// catPrinter rewrites a stream; what it knows goes over the borders of blocks and of files.
type catPrinter struct {
	number, nonblank, squeeze, ends, tabs, nonprinting bool

	start bool // at the start of a line
	blank int  // empty lines so far
	cr    bool // a CR was held back, to see whether a line end follows
	n     int
	buf   []byte
}

func (p *catPrinter) add(in []byte) []byte {
	out := p.buf[:0]
	for _, b := range in {
		if p.cr {
			p.cr = false
			if b == '\n' {
				out = append(out, "^M"...)
			} else {
				out = append(out, '\r')
			}
		}
		if b == '\n' {
			if p.start {
				p.blank++
				if p.squeeze && p.blank > 1 {
					continue
				}
				if p.number && !p.nonblank {
					out = p.count(out)
				}
			}
			p.start = true
			if p.ends {
				out = append(out, '$')
			}
			out = append(out, '\n')
			continue
		}
		if p.start {
			p.start, p.blank = false, 0
			if p.number {
				out = p.count(out)
			}
		}
		switch {
		case b == '\t':
			if p.tabs {
				out = append(out, "^I"...)
			} else {
				out = append(out, b)
			}
		case p.nonprinting:
			out = appendVisible(out, b)
		case b == '\r' && p.ends:
			p.cr = true
		default:
			out = append(out, b)
		}
	}
	p.buf = out
	return out
}

func (p *catPrinter) count(out []byte) []byte {
	p.n++
	return fmt.Appendf(out, "%6d\t", p.n)
}

// appendVisible writes b as cat -v does: ^X and M-X.
func appendVisible(out []byte, b byte) []byte {
	if b >= 0x80 {
		out = append(out, "M-"...)
		b -= 0x80
	}
	switch {
	case b < ' ':
		return append(out, '^', b+'@')
	case b == 0x7f:
		return append(out, "^?"...)
	}
	return append(out, b)
}

var tacOpts = cmd.Opts{{Short: 'b', Long: "before"}, {Short: 'r', Long: "regex"}, {Short: 's', Long: "separator", Arg: cmd.Value}}

func tac(t *call) int {
	given, names, code := t.parse(tacOpts, "[OPTION]... [FILE]...", 1, t.Args)
	if code >= 0 {
		return code
	}
	sep, before, isRegex := "\n", false, false
	for _, g := range given {
		switch g.Key {
		case "b":
			before = true
		case "r":
			isRegex = true
		case "s":
			sep = g.Value
		}
	}
	if sep == "" {
		sep = "\x00"
	}
	var re *pattern
	if isRegex {
		var err error
		if re, err = t.pattern(sep); err != nil {
			return t.fail(1, "%v", err)
		}
	}
	return t.eachWith(names, "failed to open '%s' for reading: %s", func(_ string, r *source) error {
		if at, ok := r.seek(0, io.SeekCurrent); ok && re == nil && !before && len(sep) == 1 {
			return tacFile(t, r, at, sep[0])
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		// Positions where records start: behind a separator, or at one with --before.
		var starts []int
		if re != nil {
			for _, m := range re.all(data) {
				if before {
					starts = append(starts, m[0])
				} else {
					starts = append(starts, m[1])
				}
			}
		} else {
			for i := 0; ; {
				k := bytes.Index(data[i:], []byte(sep))
				if k < 0 {
					break
				}
				i += k + len(sep)
				if before {
					starts = append(starts, i-len(sep))
				} else {
					starts = append(starts, i)
				}
			}
		}
		end := len(data)
		for _, start := range slices.Backward(starts) {
			t.out.Write(data[start:end])
			end = start
		}
		t.out.Write(data[:end])
		return nil
	})
}

// tacFile reads a file from its end, so that no more than a few blocks, or a line, of it are held. What is before
// start is not to be seen.
func tacFile(t *call, r *source, start int64, sep byte) error {
	end, ok := r.seek(0, io.SeekEnd)
	if !ok {
		return fs.ErrInvalid
	}
	var line []byte // the start of what is not written yet: it may begin earlier
	for size := int64(64 << 10); end > start; {
		from := max(start, end-size)
		if _, ok := r.seek(from, io.SeekStart); !ok {
			return fs.ErrInvalid
		}
		data := make([]byte, end-from, int(end-from)+len(line))
		if _, err := io.ReadFull(r, data); err != nil {
			return err
		}
		stop := len(data) // before it, separators are looked for
		data = append(data, line...)
		tail := len(data)
		for {
			i := bytes.LastIndexByte(data[:stop], sep)
			if i < 0 {
				break
			}
			t.out.Write(data[i+1 : tail])
			stop, tail = i, i+1
		}
		line = data[:tail]
		if tail > int(end-from) {
			size *= 2 // a long line must not be copied again and again
		}
		end = from
	}
	t.out.Write(line)
	return nil
}

func rev(t *call) int {
	_, names, code := t.parse(nil, "[FILE]...", 1, t.Args)
	if code >= 0 {
		return code
	}
	return t.eachWith(names, "cannot open %s: %s", func(_ string, r *source) error {
		l := newLines(r, '\n')
		for {
			line, err := l.next()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			// By characters whatever the locale: half of a character is of no use to anybody.
			for len(line) > 0 {
				_, n := utf8.DecodeLastRune(line)
				t.out.Write(line[len(line)-n:])
				line = line[:len(line)-n]
			}
			if l.ended {
				t.out.WriteByte('\n')
			}
		}
	})
}

var nlOpts = cmd.Opts{
	{Short: 'b', Long: "body-numbering", Arg: cmd.Value}, {Short: 'd', Long: "section-delimiter", Arg: cmd.Value},
	{Short: 'f', Long: "footer-numbering", Arg: cmd.Value}, {Short: 'h', Long: "header-numbering", Arg: cmd.Value},
	{Short: 'i', Long: "line-increment", Arg: cmd.Value}, {Short: 'l', Long: "join-blank-lines", Arg: cmd.Value},
	{Short: 'n', Long: "number-format", Arg: cmd.Value}, {Short: 'p', Long: "no-renumber"},
	{Short: 's', Long: "number-separator", Arg: cmd.Value}, {Short: 'v', Long: "starting-line-number", Arg: cmd.Value},
	{Short: 'w', Long: "number-width", Arg: cmd.Value},
}

// nlStyle says which lines of a section are numbered: all, those with text, none, those that match.
type nlStyle struct {
	kind byte // a t n p
	re   *pattern
}

func nl(t *call) int {
	given, names, code := t.parse(nlOpts, "[OPTION]... [FILE]...", 1, t.Args)
	if code >= 0 {
		return code
	}
	var (
		styles    = [3]nlStyle{{kind: 'n'}, {kind: 't'}, {kind: 'n'}} // header, body, footer
		delim     = `\:`
		inc       = int64(1)
		first     = int64(1)
		joined    = int64(1)
		format    = "rn"
		renumber  = true
		sep       = "\t"
		width     = 6
		bad       bool // a word that is none: told with the usage
		failed    bool // a number that is none ends the command at once
		badOption = func(text, value string) {
			t.Errorf("invalid %s: %s", text, cmd.Quote(value))
			bad = true
		}
		number = func(text, value string, least int64) int64 {
			n, err := strconv.ParseInt(value, 10, 64)
			switch {
			case failed:
			case err != nil:
				t.Errorf("invalid %s: %s", text, cmd.Quote(value))
				failed = true
			case n < least:
				t.Errorf("invalid %s: %s: Numerical result out of range", text, cmd.Quote(value))
				failed = true
			}
			return n
		}
	)
	for _, g := range given {
		switch g.Key {
		case "h", "b", "f":
			i := map[string]int{"h": 0, "b": 1, "f": 2}[g.Key]
			switch {
			case g.Value == "a" || g.Value == "t" || g.Value == "n":
				styles[i] = nlStyle{kind: g.Value[0]}
			case len(g.Value) > 0 && g.Value[0] == 'p':
				re, err := t.pattern(g.Value[1:])
				if err != nil {
					return t.fail(1, "%v", err)
				}
				styles[i] = nlStyle{'p', re}
			default:
				badOption([...]string{"header", "body", "footer"}[i]+" numbering style", g.Value)
			}
		case "d":
			delim = g.Value
			if len(delim) == 1 {
				delim += ":"
			}
		case "i":
			inc = number("line number increment", g.Value, -1<<63)
		case "l":
			joined = number("line number of blank lines", g.Value, 1)
		case "n":
			if format = g.Value; format != "ln" && format != "rn" && format != "rz" {
				badOption("line numbering format", g.Value)
			}
		case "p":
			renumber = false
		case "s":
			sep = g.Value
		case "v":
			first = number("starting line number", g.Value, -1<<63)
		case "w":
			width = int(min(number("line number field width", g.Value, 1), 1<<20))
		}
	}
	if failed {
		return 1
	}
	if bad {
		fmt.Fprintf(t.Stderr, "Try '%s --help' for more information.\n", t.Name)
		return 1
	}
	verb := map[string]string{"ln": "%-*d%s", "rn": "%*d%s", "rz": "%0*d%s"}[format]
	in := t.inputs(names)
	l := newLines(in, '\n')
	section, n, blanks := 1, first, int64(0)
	for {
		line, err := l.next()
		if err != nil {
			break // inputs reports errors of its own
		}
		if delim != "" && len(line) > 0 {
			if next := nlSection(string(line), delim); next >= 0 {
				section = next
				if renumber {
					n = first
				}
				blanks = 0
				t.out.WriteByte('\n')
				continue
			}
		}
		style, numbered := styles[section], false
		switch style.kind {
		case 'a':
			if len(line) == 0 {
				blanks++
			}
			if numbered = len(line) > 0 || blanks >= joined; numbered {
				blanks = 0
			}
		case 't':
			numbered = len(line) > 0
		case 'p':
			numbered = style.re.match(line)
		}
		if numbered {
			fmt.Fprintf(t.out, verb, width, n, sep)
			n += inc
		} else {
			fmt.Fprintf(t.out, "%*s", width+len(sep), "")
		}
		t.out.Write(line)
		t.out.WriteByte('\n')
	}
	return in.code
}

// nlSection tells the section that a line of delimiters starts: 0 header, 1 body, 2 footer, -1 none.
func nlSection(line, delim string) int {
	switch line {
	case delim + delim + delim:
		return 0
	case delim + delim:
		return 1
	case delim:
		return 2
	}
	return -1
}
