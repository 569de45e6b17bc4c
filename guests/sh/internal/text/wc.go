package text

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

var wcOpts = cmd.Opts{
	{Short: 'c', Long: "bytes"}, {Short: 'm', Long: "chars"}, {Short: 'l', Long: "lines"}, {Long: "files0-from", Arg: cmd.Value},
	{Short: 'L', Long: "max-line-length"}, {Short: 'w', Long: "words"},
}

// wcCount is what wc counts: lines, words, characters, bytes, the longest line.
type wcCount [5]int64

func wc(t *call) int {
	given, names, code := t.parse(wcOpts, "[OPTION]... [FILE]...", 1, t.Args)
	if code >= 0 {
		return code
	}
	var show [5]bool
	from0, hasFrom, listed := "", false, false
	for _, g := range given {
		if g.Key == "files0-from" {
			from0, hasFrom = g.Value, true
			continue
		}
		show[strings.Index("lwmcL", g.Key)] = true
	}
	columns := 0
	for _, on := range show {
		if on {
			columns++
		}
	}
	if columns == 0 {
		show[0], show[1], show[3] = true, true, true
		columns = 3
	}
	if hasFrom {
		if len(names) > 0 {
			t.Errorf("extra operand '%s'", names[0])
			fmt.Fprintf(t.Stderr, "file operands cannot be combined with --files0-from\nTry 'wc --help' for more information.\n")
			return 1
		}
		r, err := t.open(from0)
		if err != nil {
			return t.fail(1, "cannot open '%s' for reading: %s", from0, cmd.Reason(err))
		}
		// As in GNU wc, which does not look at the files of a list that comes through a pipe before it reads them.
		info, err := r.file.Stat()
		listed = err != nil || !info.Mode().IsRegular()
		data, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			return t.fail(1, "%s: read error: %s", from0, cmd.Reason(err))
		}
		if len(data) > 0 {
			names = strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
		}
	}
	named := len(names) > 0
	if !named && !hasFrom {
		names = []string{"-"}
	}
	digits := 1
	if !listed {
		digits = t.wcWidth(names, columns)
	}
	put := func(c wcCount, name string) {
		sep := ""
		for i, on := range show {
			if on {
				fmt.Fprintf(t.out, "%s%*d", sep, digits, c[i])
				sep = " "
			}
		}
		if name != "" {
			if strings.Contains(name, "\n") {
				name = shellQuote(name)
			}
			t.out.WriteString(" " + name)
		}
		t.out.WriteByte('\n')
	}
	counter := wcCounter{show: show, utf8: t.utf8()}
	var total wcCount
	failed := 0
	for _, name := range names {
		r, err := t.open(name)
		if err != nil {
			failed = t.Fail(name, err)
			continue
		}
		c, err := counter.count(r)
		r.Close()
		if err != nil {
			failed = t.Fail(name, err)
		}
		if named {
			put(c, name)
		} else {
			put(c, "")
		}
		for i := range total {
			if i < 4 {
				total[i] += c[i]
			} else {
				total[i] = max(total[i], c[i])
			}
		}
	}
	if len(names) > 1 {
		put(total, "total")
	}
	return failed
}

// wcWidth is how wide the columns are: as wide as the sizes of the files need it, 7 where sizes are not known.
func (t *call) wcWidth(names []string, columns int) int {
	if len(names) == 1 && columns == 1 {
		return 1
	}
	least, sum := 1, int64(0)
	for _, name := range names {
		r, err := t.open(name)
		if err != nil {
			continue
		}
		info, err := r.file.Stat()
		if err != nil || !info.Mode().IsRegular() {
			least = 7
		} else {
			sum += info.Size()
		}
		r.Close()
	}
	return max(least, len(fmt.Sprint(sum)))
}

type wcCounter struct {
	show [5]bool
	utf8 bool
}

func (w *wcCounter) count(r *source) (c wcCount, err error) {
	switch {
	case !w.show[0] && !w.show[1] && !w.show[4] && (!w.show[2] || !w.utf8):
		// Only bytes: a file knows how many it has, but for files that say 0 (devices).
		if end, ok := r.seek(0, io.SeekEnd); ok && end > 0 {
			c[2], c[3] = end, end
			return c, nil
		}
		err = blocks(r, func(b []byte) error {
			c[3] += int64(len(b))
			return nil
		})
		c[2] = c[3]
	case !w.show[1] && !w.show[4] && (!w.show[2] || !w.utf8):
		err = blocks(r, func(b []byte) error {
			c[3] += int64(len(b))
			c[0] += int64(bytes.Count(b, []byte{'\n'}))
			return nil
		})
		c[2] = c[3]
	default:
		err = w.all(r, &c)
	}
	return c, err
}

// all counts everything, a character at a time.
func (w *wcCounter) all(r io.Reader, c *wcCount) error {
	var (
		inWord bool
		column int64
		part   []byte // the start of a character that the last block ended in
	)
	one := func(b byte) {
		switch b {
		case '\n':
			c[0]++
			fallthrough
		case '\r', '\f':
			c[4] = max(c[4], column)
			column = 0
			inWord = false
		case '\t':
			column += 8 - column%8
			inWord = false
		case ' ':
			column++
			fallthrough
		case '\v':
			inWord = false
		default:
			if isPrint(b) {
				column++
				if !inWord {
					c[1]++
					inWord = true
				}
			}
		}
	}
	err := blocks(r, func(b []byte) error {
		c[3] += int64(len(b))
		if !w.utf8 {
			c[2] += int64(len(b))
			for _, x := range b {
				one(x)
			}
			return nil
		}
		if len(part) > 0 {
			b = append(part, b...)
			part = nil
		}
		for len(b) > 0 {
			if b[0] < utf8.RuneSelf {
				one(b[0])
				c[2]++
				b = b[1:]
				continue
			}
			if !utf8.FullRune(b) {
				part = bytes.Clone(b)
				return nil
			}
			x, n := utf8.DecodeRune(b)
			b = b[n:]
			if x == utf8.RuneError && n == 1 {
				continue // no character
			}
			c[2]++
			switch {
			case unicode.IsSpace(x) || x == '\u2060':
				column += int64(runeWidth(x))
				inWord = false
			case unicode.IsGraphic(x) || unicode.Is(unicode.Cf, x) || unicode.Is(unicode.Co, x):
				column += int64(runeWidth(x))
				if !inWord {
					c[1]++
					inWord = true
				}
			}
		}
		return nil
	})
	c[4] = max(c[4], column)
	return err
}

// runeWidth is how many columns a character takes: 0, 1 or 2.
func runeWidth(r rune) int {
	switch {
	case r < ' ' || r >= 0x7f && r < 0xa0:
		return 0
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// textWidth is how many columns s takes.
func textWidth(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// shellQuote quotes a name so that it stays on one line.
func shellQuote(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range s {
		switch r {
		case '\'':
			b.WriteString(`'\''`)
		case '\n':
			b.WriteString(`'$'\n''`)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('\'')
	return b.String()
}
