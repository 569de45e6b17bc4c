package text

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

var cutOpts = cmd.Opts{
	{Short: 'b', Long: "bytes", Arg: cmd.Value}, {Short: 'c', Long: "characters", Arg: cmd.Value},
	{Short: 'd', Long: "delimiter", Arg: cmd.Value}, {Short: 'f', Long: "fields", Arg: cmd.Value}, {Short: 'n'},
	{Long: "complement"}, {Short: 's', Long: "only-delimited"}, {Long: "output-delimiter", Arg: cmd.Value},
	{Short: 'z', Long: "zero-terminated"},
}

// span is a range of fields or bytes, counted from 1, both ends in it.
type span struct{ lo, hi int }

// parseSpans reads a list like 1,3-5,7-. What overlaps becomes one span.
func parseSpans(list string, fields, complement bool) ([]span, error) {
	what := "byte/character position"
	if fields {
		what = "field value"
	}
	zero := func() error {
		if fields {
			return fmt.Errorf("fields are numbered from 1")
		}
		return fmt.Errorf("byte/character positions are numbered from 1")
	}
	number := func(s string) (int, error) {
		n, err := strconv.ParseUint(s, 10, 63)
		switch {
		case err != nil && strings.Trim(s, "0123456789") == "":
			if fields {
				return 0, fmt.Errorf("field number %s is too large", cmd.Quote(s))
			}
			return 0, fmt.Errorf("byte/character offset %s is too large", cmd.Quote(s))
		case err != nil:
			return 0, fmt.Errorf("invalid %s %s", what, cmd.Quote(s))
		case n == 0:
			return 0, zero()
		}
		return int(min(n, math.MaxInt-1)), nil
	}
	var spans []span
	for _, part := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		from, to, isRange := strings.Cut(part, "-")
		s := span{1, math.MaxInt - 1}
		var err error
		if isRange && from == "" && to == "" {
			return nil, fmt.Errorf("invalid range with no endpoint: -")
		}
		if from != "" {
			if s.lo, err = number(from); err != nil {
				return nil, err
			}
			s.hi = s.lo
		}
		if isRange {
			s.hi = math.MaxInt - 1
			if to != "" {
				if s.hi, err = number(to); err != nil {
					return nil, err
				}
			}
		}
		if s.hi < s.lo {
			return nil, fmt.Errorf("invalid decreasing range")
		}
		spans = append(spans, s)
	}
	if len(spans) == 0 {
		return nil, zero()
	}
	slices.SortStableFunc(spans, func(a, b span) int { return a.lo - b.lo })
	merged := spans[:1]
	for _, s := range spans[1:] {
		if last := &merged[len(merged)-1]; s.lo <= last.hi {
			last.hi = max(last.hi, s.hi)
		} else {
			merged = append(merged, s)
		}
	}
	if !complement {
		return merged, nil
	}
	var rest []span
	next := 1
	for _, s := range merged {
		if s.lo > next {
			rest = append(rest, span{next, s.lo - 1})
		}
		next = s.hi + 1
	}
	if next < math.MaxInt-1 {
		rest = append(rest, span{next, math.MaxInt - 1})
	}
	return rest, nil
}

func cut(t *call) int {
	given, names, code := t.parse(cutOpts, "OPTION... [FILE]...", 1, t.Args)
	if code >= 0 {
		return code
	}
	var (
		list, mode       string
		delim            = "\t"
		outDelim         string
		hasDelim, hasOut bool
		complement, only bool
		sep              = byte('\n')
	)
	for _, g := range given {
		switch g.Key {
		case "b", "c", "f":
			if mode != "" {
				return t.usage(1, "only one list may be specified")
			}
			mode, list = g.Key, g.Value
		case "d":
			if len(g.Value) > 1 {
				return t.usage(1, "the delimiter must be a single character")
			}
			if delim, hasDelim = g.Value, true; delim == "" {
				delim = "\x00"
			}
		case "n": // characters are bytes: none is ever split
		case "complement":
			complement = true
		case "s":
			only = true
		case "output-delimiter":
			if outDelim, hasOut = g.Value, true; outDelim == "" {
				outDelim = "\x00"
			}
		case "z":
			sep = 0
		}
	}
	switch {
	case mode == "":
		return t.usage(1, "you must specify a list of bytes, characters, or fields")
	case mode != "f" && hasDelim:
		return t.usage(1, "an input delimiter may be specified only when operating on fields")
	case mode != "f" && only:
		return t.usage(1, "suppressing non-delimited lines makes sense\n\tonly when operating on fields")
	}
	spans, err := parseSpans(list, mode == "f", complement)
	if err != nil {
		return t.usage(1, "%v", err)
	}
	if !hasOut && mode == "f" {
		outDelim = delim
	}
	return t.each(names, func(_ string, r *source) error {
		l := newLines(r, sep)
		if mode == "f" && delim[0] == sep {
			return cutLines(t, l, spans, outDelim, only)
		}
		for {
			line, err := l.next()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			if mode == "f" {
				if !cutFields(t, line, spans, delim[0], outDelim, only) {
					continue
				}
			} else {
				for i, s := range spans {
					if s.lo > len(line) {
						break
					}
					if i > 0 && hasOut {
						t.out.WriteString(outDelim)
					}
					t.out.Write(line[s.lo-1 : min(s.hi, len(line))])
				}
			}
			t.out.WriteByte(sep)
		}
	})
}

// cutFields writes the fields of a line that are in spans. It returns false when the line is to be left out.
func cutFields(t *call, line []byte, spans []span, delim byte, outDelim string, only bool) bool {
	end := bytes.IndexByte(line, delim)
	if end < 0 {
		if !only {
			t.out.Write(line)
		}
		return !only
	}
	keep := len(outDelim) == 1 && outDelim[0] == delim // fields next to each other go out in one piece
	n, start, wrote := 1, 0, false
	for i := 0; i < len(spans); {
		s := spans[i]
		for n < s.lo {
			if end < 0 {
				return true
			}
			start = nextField(line, &end, delim)
			n++
		}
		if wrote {
			t.out.WriteString(outDelim)
		}
		wrote = true
		if keep {
			from := start
			for n < s.hi && end >= 0 {
				if s.hi >= math.MaxInt-1 {
					end = -1
					break
				}
				start = nextField(line, &end, delim)
				n++
			}
			if end < 0 {
				t.out.Write(line[from:])
				return true
			}
			t.out.Write(line[from:end])
		} else {
			for {
				if end < 0 {
					t.out.Write(line[start:])
					return true
				}
				t.out.Write(line[start:end])
				if n >= s.hi {
					break
				}
				t.out.WriteString(outDelim)
				start = nextField(line, &end, delim)
				n++
			}
		}
		i++
	}
	return true
}

// nextField moves end to the next delimiter, -1 when there is none, and returns where the field behind the last one starts.
func nextField(line []byte, end *int, delim byte) int {
	start := *end + 1
	if i := bytes.IndexByte(line[start:], delim); i >= 0 {
		*end = start + i
	} else {
		*end = -1
	}
	return start
}

// cutLines is cut where the delimiter is the end of lines: all of the input is one line.
func cutLines(t *call, l *lines, spans []span, outDelim string, only bool) error {
	wrote, i := false, 0
	var first []byte
	for n := 1; ; n++ {
		line, err := l.next()
		if err == io.EOF {
			if n == 2 && !wrote && !only {
				t.out.Write(first)
				wrote = true
			}
			if n > 1 && (wrote || n > 2) {
				t.out.WriteByte(l.sep)
			}
			return nil
		}
		if err != nil {
			return err
		}
		if n == 1 {
			first = bytes.Clone(line)
		}
		for i < len(spans) && spans[i].hi < n {
			i++
		}
		if i < len(spans) && spans[i].lo <= n {
			if wrote {
				t.out.WriteString(outDelim)
			}
			wrote = true
			t.out.Write(line)
		}
	}
}

var pasteOpts = cmd.Opts{
	{Short: 'd', Long: "delimiters", Arg: cmd.Value}, {Short: 's', Long: "serial"}, {Short: 'z', Long: "zero-terminated"},
}

func paste(t *call) int {
	given, names, code := t.parse(pasteOpts, "[OPTION]... [FILE]...", 1, t.Args)
	if code >= 0 {
		return code
	}
	delims, serial, sep := []string{"\t"}, false, byte('\n')
	for _, g := range given {
		switch g.Key {
		case "d":
			var ok bool
			if delims, ok = pasteDelims(g.Value); !ok {
				return t.fail(1, `delimiter list ends with an unescaped backslash: %s`, g.Value)
			}
		case "s":
			serial = true
		case "z":
			sep = 0
		}
	}
	if serial {
		return t.each(names, func(_ string, r *source) error {
			l := newLines(r, sep)
			for n := 0; ; n++ {
				line, err := l.next()
				if err != nil {
					t.out.WriteByte(sep)
					if err == io.EOF {
						return nil
					}
					return err
				}
				if n > 0 {
					t.out.WriteString(delims[(n-1)%len(delims)])
				}
				t.out.Write(line)
			}
		})
	}
	if len(names) == 0 {
		names = []string{"-"}
	}
	files := make([]*lines, len(names))
	var stdin *lines
	for i, name := range names {
		if name == "-" && stdin != nil {
			files[i] = stdin // paste - - takes its lines by turns
			continue
		}
		r, err := t.open(name)
		if err != nil {
			return t.Fail(name, err)
		}
		defer r.Close()
		files[i] = newLines(r, sep)
		if name == "-" {
			stdin = files[i]
		}
	}
	failed := 0
	var row []byte
	for open := len(files); open > 0; {
		row = row[:0]
		some := false
		for i, l := range files {
			if l != nil {
				line, err := l.next()
				if err == nil {
					some = true
					row = append(row, line...)
				} else {
					if err != io.EOF {
						failed = t.Fail(names[i], err)
					}
					files[i] = nil
					open--
				}
			}
			if i < len(files)-1 {
				row = append(row, delims[i%len(delims)]...)
			}
		}
		if some {
			t.out.Write(row)
			t.out.WriteByte(sep)
		}
	}
	return failed
}

// pasteDelims takes a list of delimiters apart. \0 is none at all.
func pasteDelims(s string) ([]string, bool) {
	var list []string
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '\\' {
			list = append(list, string([]byte{c}))
			continue
		}
		if i++; i == len(s) {
			return nil, false
		}
		switch s[i] {
		case '0':
			list = append(list, "")
		case 'b':
			list = append(list, "\b")
		case 'f':
			list = append(list, "\f")
		case 'n':
			list = append(list, "\n")
		case 'r':
			list = append(list, "\r")
		case 't':
			list = append(list, "\t")
		case 'v':
			list = append(list, "\v")
		default:
			list = append(list, string([]byte{s[i]}))
		}
	}
	if len(list) == 0 {
		list = []string{""}
	}
	return list, true
}
