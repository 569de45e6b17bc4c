package text

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

var cmpOpts = cmd.Opts{
	{Short: 'b', Long: "print-bytes"}, {Short: 'i', Long: "ignore-initial", Arg: cmd.Value}, {Short: 'l', Long: "verbose"},
	{Short: 'n', Long: "bytes", Arg: cmd.Value}, {Short: 's', Long: "quiet"}, {Long: "silent"},
}

func cmpCmd(t *call) int {
	given, names, code := t.parse(cmpOpts, "[OPTION]... FILE1 [FILE2 [SKIP1 [SKIP2]]]", 2, t.Args)
	if code >= 0 {
		return code
	}
	var (
		show, list, quiet bool
		limit             = int64(math.MaxInt64)
		skips             [2]int64
	)
	number := func(s string) (int64, bool) {
		n, ok := odNumber(s)
		if !ok {
			t.usage(2, "invalid --ignore-initial value '%s'", s)
		}
		return n, ok
	}
	for _, g := range given {
		switch g.Key {
		case "b":
			show = true
		case "i":
			a, b, two := strings.Cut(g.Value, ":")
			n, ok := number(a)
			if !ok {
				return 2
			}
			skips[0], skips[1] = max(skips[0], n), max(skips[1], n)
			if two {
				if skips[1], ok = number(b); !ok {
					return 2
				}
			}
		case "l":
			list = true
		case "n":
			n, ok := odNumber(g.Value)
			if !ok {
				return t.usage(2, "invalid --bytes value '%s'", g.Value)
			}
			limit = min(limit, n)
		case "s", "silent":
			quiet = true
		}
	}
	if quiet && list {
		return t.usage(2, "options -l and -s are incompatible")
	}
	switch {
	case len(names) == 0:
		return t.usage(2, "missing operand after '%s'", t.Name)
	case len(names) == 1:
		names = append(names, "-")
	case len(names) > 4:
		return t.usage(2, "extra operand '%s'", names[4])
	}
	for i, s := range names[2:] {
		n, ok := number(s)
		if !ok {
			return 2
		}
		skips[i] = n
	}
	names = names[:2]
	if names[0] == names[1] {
		return 0
	}
	var rs [2]*bufio.Reader
	var sources [2]*source
	for i, name := range names {
		r, err := t.open(name)
		if err == nil && name != "-" {
			if info, e := r.file.Stat(); e == nil && info.IsDir() {
				r.Close()
				return t.fail(2, "%s: Is a directory", name)
			}
		}
		if err != nil {
			if quiet {
				return 2
			}
			t.Fail(name, err)
			return 2
		}
		defer r.Close()
		sources[i] = r
		if skips[i] > 0 {
			if _, ok := r.seek(skips[i], io.SeekCurrent); !ok {
				io.CopyN(io.Discard, r, skips[i])
			}
		}
		rs[i] = bufio.NewReaderSize(r, 64<<10)
	}
	// The column of the numbers of -l is as wide as the largest number can be.
	width := 1
	if list {
		least := limit
		for i, r := range sources {
			if info, err := r.file.Stat(); err == nil && info.Mode().IsRegular() {
				least = min(least, max(info.Size()-skips[i], 0))
			}
		}
		width = len(fmt.Sprint(least))
	}
	unit := "char"
	if t.locale("LC_MESSAGES") {
		unit = "byte"
	}
	result := 0
	line := int64(1)
	var lastByte byte
	for n := int64(1); n <= limit; {
		// Equal blocks are passed over at once.
		_, errA := rs[0].Peek(1)
		_, errB := rs[1].Peek(1)
		for i, err := range []error{errA, errB} {
			if err != nil && err != io.EOF {
				t.Fail(names[i], err)
				return 2
			}
		}
		if errA == io.EOF || errB == io.EOF {
			if errA == errB {
				return result
			}
			name := names[0]
			if errB == io.EOF {
				name = names[1]
			}
			if !quiet {
				t.flush()
				where := fmt.Sprintf("after byte %d", n-1)
				if n == 1 {
					where = "which is empty"
				} else if !list {
					if lastByte == '\n' {
						where += fmt.Sprintf(", line %d", line-1)
					} else {
						where += fmt.Sprintf(", in line %d", line)
					}
				}
				t.Errorf("EOF on %s %s", name, where)
			}
			return 1
		}
		k := min(rs[0].Buffered(), rs[1].Buffered())
		k = int(min(int64(k), limit-n+1))
		a, _ := rs[0].Peek(k)
		b, _ := rs[1].Peek(k)
		for i := range k {
			if a[i] == b[i] {
				if a[i] == '\n' {
					line++
				}
				lastByte = a[i]
				continue
			}
			result = 1
			switch at := n + int64(i); {
			case quiet:
				return 1
			case list && show:
				fmt.Fprintf(t.out, "%*d %3o %-4s %3o %s\n", width, at, a[i], appendVisible(nil, a[i]), b[i], appendVisible(nil, b[i]))
			case list:
				fmt.Fprintf(t.out, "%*d %3o %3o\n", width, at, a[i], b[i])
			case show:
				fmt.Fprintf(t.out, "%s %s differ: %s %d, line %d is %3o %s %3o %s\n", names[0], names[1], "byte", at, line,
					a[i], appendVisible(nil, a[i]), b[i], appendVisible(nil, b[i]))
				return 1
			default:
				fmt.Fprintf(t.out, "%s %s differ: %s %d, line %d\n", names[0], names[1], unit, at, line)
				return 1
			}
			if a[i] == '\n' {
				line++
			}
			lastByte = a[i]
		}
		rs[0].Discard(k)
		rs[1].Discard(k)
		n += int64(k)
	}
	return result
}
