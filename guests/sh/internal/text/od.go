package text

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

var odOpts = cmd.Opts{
	{Short: 'A', Long: "address-radix", Arg: cmd.Value}, {Long: "endian", Arg: cmd.Value}, {Short: 'j', Long: "skip-bytes", Arg: cmd.Value},
	{Short: 'N', Long: "read-bytes", Arg: cmd.Value}, {Short: 'S', Arg: cmd.Value}, {Long: "strings", Arg: cmd.Optional},
	{Short: 't', Long: "format", Arg: cmd.Value}, {Short: 'v', Long: "output-duplicates"}, {Short: 'w', Long: "width", Arg: cmd.Optional},
	{Long: "traditional"}, {Short: 'a'}, {Short: 'b'}, {Short: 'c'}, {Short: 'd'}, {Short: 'f'}, {Short: 'i'}, {Short: 'l'},
	{Short: 'o'}, {Short: 's'}, {Short: 'x'},
}

// odType is one way to show a block: a line of it.
type odType struct {
	kind  byte // a c d o u x f
	size  int
	width int // of a value, without the blank before it
	text  bool
	pad   int // blanks to spread over a line, so that the lines of a block align
}

var odWidths = map[byte][9]int{
	'd': {1: 4, 2: 6, 4: 11, 8: 20}, 'u': {1: 3, 2: 5, 4: 10, 8: 20}, 'o': {1: 3, 2: 6, 4: 11, 8: 22}, 'x': {1: 2, 2: 4, 4: 8, 8: 16},
	'f': {4: 15, 8: 24}, 'a': {1: 3}, 'c': {1: 3},
}

// parseOdTypes reads the argument of -t.
func parseOdTypes(s string) ([]odType, error) {
	var list []odType
	for i := 0; i < len(s); {
		ty := odType{kind: s[i]}
		i++
		switch ty.kind {
		case 'a', 'c':
			ty.size = 1
		case 'd', 'o', 'u', 'x':
			ty.size = 4
			if i < len(s) {
				if k := strings.IndexByte("CSIL", s[i]); k >= 0 {
					ty.size = 1 << k
					i++
					break
				}
			}
			ty.size, i = odSize(s, i, ty.size)
		case 'f':
			ty.size = 8
			if i < len(s) && (s[i] == 'F' || s[i] == 'D') {
				ty.size = map[byte]int{'F': 4, 'D': 8}[s[i]]
				i++
				break
			}
			ty.size, i = odSize(s, i, ty.size)
			if ty.size != 4 && ty.size != 8 {
				return nil, fmt.Errorf("invalid type string %s;\nthis system doesn't provide a %d-byte floating point type", cmd.Quote(s), ty.size)
			}
		default:
			return nil, fmt.Errorf("invalid character '%c' in type string %s", ty.kind, cmd.Quote(s))
		}
		if ty.size > 8 || ty.size < 1 || odWidths[ty.kind][ty.size] == 0 {
			return nil, fmt.Errorf("invalid type string %s;\nthis system doesn't provide a %d-byte integral type", cmd.Quote(s), ty.size)
		}
		ty.width = odWidths[ty.kind][ty.size]
		if i < len(s) && s[i] == 'z' {
			ty.text = true
			i++
		}
		list = append(list, ty)
	}
	return list, nil
}

func odSize(s string, i, otherwise int) (int, int) {
	j := i
	n := 0
	for j < len(s) && isDigit(s[j]) {
		n = min(n*10+int(s[j]-'0'), 99)
		j++
	}
	if j == i {
		return otherwise, i
	}
	return n, j
}

// odNumber reads a count: decimal, 0octal or 0xhex, with a suffix.
func odNumber(s string) (int64, bool) {
	base, digits := 10, s
	switch {
	case strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X"):
		base, digits = 16, s[2:]
	case len(s) > 1 && s[0] == '0':
		base = 8
	}
	i := 0
	for i < len(digits) && (isDigit(digits[i]) || base == 16 && toLower(digits[i]) >= 'a' && toLower(digits[i]) <= 'f') {
		i++
	}
	n, err := strconv.ParseInt(digits[:i], base, 64)
	unit, ok := unitSize(digits[i:])
	if err != nil || !ok {
		return 0, false
	}
	if n > 0 && unit > math.MaxInt64/n {
		return math.MaxInt64, true
	}
	return n * unit, true
}

func od(t *call) int {
	given, names, code := t.parse(odOpts, "[OPTION]... [FILE]...", 1, t.Args)
	if code >= 0 {
		return code
	}
	var (
		types       []odType
		radix       = byte('o')
		skip        int64
		limit       = int64(-1)
		verbose     bool
		width       int
		stringsLen  = int64(-1)
		order       = binary.ByteOrder(binary.LittleEndian)
		traditional bool
		modern      bool // there are options that the old way to skip does not go with
	)
	for _, g := range given {
		modern = modern || strings.Contains("A j N S strings t v w", g.Key)
		bad := func(option string) int { return t.fail(1, "invalid %s argument '%s'", option, g.Value) }
		ok := true
		switch g.Key {
		case "A":
			if len(g.Value) == 0 || strings.IndexByte("doxn", g.Value[0]) < 0 {
				return t.fail(1, "invalid output address radix '%s'; it must be one character from [doxn]", g.Value)
			}
			radix = g.Value[0]
		case "endian":
			switch complete(g.Value, "big", "little") {
			case "big":
				order = binary.BigEndian
			case "little":
				order = binary.LittleEndian
			default:
				return t.badWord(g.Value, "--endian", "little", "big")
			}
		case "j":
			if skip, ok = odNumber(g.Value); !ok {
				return bad("-j")
			}
		case "N":
			if limit, ok = odNumber(g.Value); !ok {
				return bad("-N")
			}
		case "S", "strings":
			stringsLen = 3
			if g.Has {
				if stringsLen, ok = odNumber(g.Value); !ok {
					return bad("-S")
				}
			}
		case "t":
			list, err := parseOdTypes(g.Value)
			if err != nil {
				return t.fail(1, "%v", err)
			}
			types = append(types, list...)
		case "v":
			verbose = true
		case "w":
			width = 32
			if g.Has {
				n, ok := odNumber(g.Value)
				if !ok || n < 1 || n > 1<<20 {
					return bad("-w")
				}
				width = int(n)
			}
		case "traditional":
			traditional = true
		default:
			list, _ := parseOdTypes(map[string]string{
				"a": "a", "b": "o1", "c": "c", "d": "u2", "f": "fF", "i": "dI", "l": "dL", "o": "o2", "s": "d2", "x": "x2",
			}[g.Key])
			types = append(types, list...)
		}
	}
	// The old way to skip: od [FILE] +OFFSET[.][b], octal where no point follows.
	if n := len(names); n > 0 && n <= 2 && (!modern || traditional) {
		last := names[n-1]
		if off, ok := odOffset(last); ok && (traditional || last[0] == '+' || n == 2 && isDigit(last[0])) {
			skip, names = off, names[:n-1]
		}
	}
	in := t.inputs(names)
	if skip > 0 {
		n, err := io.CopyN(io.Discard, in, skip)
		if err != nil {
			if in.code == 0 {
				t.Errorf("cannot skip past end of combined input")
			}
			_ = n
			return 1
		}
	}
	var r io.Reader = in
	if limit >= 0 {
		r = io.LimitReader(in, limit)
	}
	address := func(n int64) string {
		switch radix {
		case 'o':
			return fmt.Sprintf("%07o", n)
		case 'd':
			return fmt.Sprintf("%07d", n)
		case 'x':
			return fmt.Sprintf("%06x", n)
		}
		return ""
	}
	if stringsLen >= 0 {
		odStrings(t, r, skip, stringsLen, address)
		return in.code
	}
	if len(types) == 0 {
		types, _ = parseOdTypes("o2")
	}
	unit := 1
	for _, ty := range types {
		unit = max(unit, ty.size)
	}
	switch {
	case width == 0:
		width = max(16/unit*unit, unit)
	case width%unit != 0:
		t.Errorf("warning: invalid width %d; using %d instead", width, unit)
		width = unit
	}
	most := 0
	for _, ty := range types {
		most = max(most, (ty.width+1)*(width/ty.size))
	}
	for i := range types {
		types[i].pad = most - types[i].width*(width/types[i].size)
	}
	block := make([]byte, width)
	last := make([]byte, width)
	blank := strings.Repeat(" ", len(address(0)))
	repeated := false
	pos := skip
	for first := true; ; first = false {
		n, err := io.ReadFull(r, block)
		if n == 0 {
			break
		}
		if !first && !verbose && n == width && bytes.Equal(block, last) {
			if !repeated {
				t.out.WriteString("*\n")
			}
			repeated = true
		} else {
			repeated = false
			clear(block[n:])
			for i, ty := range types {
				if i == 0 {
					t.out.WriteString(address(pos))
				} else {
					t.out.WriteString(blank)
				}
				ty.print(t, block, n, order)
			}
			copy(last, block)
		}
		pos += int64(n)
		if err != nil {
			break
		}
	}
	if radix != 'n' && (in.some || in.code == 0) {
		t.out.WriteString(address(pos) + "\n")
	}
	return in.code
}

// odOffset reads [+]OFFSET[.][b].
func odOffset(s string) (int64, bool) {
	s = strings.TrimPrefix(s, "+")
	s, blocks := strings.CutSuffix(s, "b")
	s, decimal := strings.CutSuffix(s, ".")
	base := 8
	if decimal {
		base = 10
	} else if strings.HasPrefix(s, "x") || strings.HasPrefix(s, "0x") {
		s = strings.TrimPrefix(strings.TrimPrefix(s, "0"), "x")
		base = 16
	}
	n, err := strconv.ParseInt(s, base, 48)
	if err != nil || n < 0 {
		return 0, false
	}
	if blocks {
		n *= 512
	}
	return n, true
}

var odNames = strings.Fields("nul soh stx etx eot enq ack bel bs ht nl vt ff cr so si dle dc1 dc2 dc3 dc4 nak syn etb can em sub esc fs gs rs us sp")

// print shows the first n bytes of a block.
func (ty odType) print(t *call, block []byte, n int, order binary.ByteOrder) {
	fields := len(block) / ty.size
	shown := (n + ty.size - 1) / ty.size
	left := ty.pad
	for i := range fields {
		next := ty.pad * (fields - i - 1) / fields
		width := left - next + ty.width
		left = next
		if i < shown {
			fmt.Fprintf(t.out, "%*s", width, ty.value(block[i*ty.size:(i+1)*ty.size], order))
		} else if ty.text {
			fmt.Fprintf(t.out, "%*s", width, "")
		}
	}
	if ty.text {
		t.out.WriteString("  >")
		for _, b := range block[:n] {
			if !isPrint(b) {
				b = '.'
			}
			t.out.WriteByte(b)
		}
		t.out.WriteByte('<')
	}
	t.out.WriteByte('\n')
}

func (ty odType) value(b []byte, order binary.ByteOrder) string {
	switch ty.kind {
	case 'a':
		c := b[0] & 0x7f
		switch {
		case c == 0x7f:
			return "del"
		case c <= ' ':
			return odNames[c]
		}
		return string([]byte{c})
	case 'c':
		switch c := b[0]; c {
		case 0:
			return `\0`
		case '\a', '\b', '\t', '\n', '\v', '\f', '\r':
			return `\` + "abtnvfr"[c-'\a':c-'\a'+1]
		default:
			if isPrint(c) {
				return string([]byte{c})
			}
			return fmt.Sprintf("%03o", c)
		}
	}
	var v uint64
	switch ty.size {
	case 1:
		v = uint64(b[0])
	case 2:
		v = uint64(order.Uint16(b))
	case 4:
		v = uint64(order.Uint32(b))
	case 8:
		v = order.Uint64(b)
	}
	switch ty.kind {
	case 'u':
		return strconv.FormatUint(v, 10)
	case 'o':
		return fmt.Sprintf("%0*o", ty.width, v)
	case 'x':
		return fmt.Sprintf("%0*x", ty.width, v)
	case 'f':
		if ty.size == 4 {
			return shortestFloat(float64(math.Float32frombits(uint32(v))), 32)
		}
		return shortestFloat(math.Float64frombits(v), 64)
	}
	shift := 64 - 8*ty.size
	return strconv.FormatInt(int64(v<<shift)>>shift, 10)
}

// shortestFloat prints with as few digits as tell the number from its neighbours, at least those that every decimal
// number of that many keeps.
func shortestFloat(x float64, bits int) string {
	digits := 15
	if bits == 32 {
		digits = 6
	}
	f := cFloat{precision: digits, verb: 'g'}
	for ; f.precision < 17; f.precision++ {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			break
		}
		s := f.format(x)
		if y, err := strconv.ParseFloat(s, bits); err == nil && y == x {
			return s
		}
	}
	return f.format(x)
}

// odStrings prints runs of at least n printable characters that a NUL ends.
func odStrings(t *call, r io.Reader, pos, n int64, address func(int64) string) {
	var run []byte
	start := pos
	blocks(r, func(b []byte) error {
		for _, c := range b {
			switch {
			case isPrint(c) || c >= '\a' && c <= '\r':
				if len(run) == 0 {
					start = pos
				}
				run = append(run, c)
			case c == 0 && int64(len(run)) >= n:
				if a := address(start); a != "" {
					t.out.WriteString(a + " ")
				}
				for _, c := range run {
					if isPrint(c) {
						t.out.WriteByte(c)
					} else {
						t.out.WriteString(`\` + "abtnvfr"[c-'\a':c-'\a'+1])
					}
				}
				t.out.WriteByte('\n')
				run = run[:0]
			default:
				run = run[:0]
			}
			pos++
		}
		return nil
	})
}

var stringsOpts = cmd.Opts{
	{Short: 'a', Long: "all"}, {Short: 'd', Long: "data"}, {Short: 'f', Long: "print-file-name"}, {Short: 'n', Long: "bytes", Arg: cmd.Value},
	{Short: 't', Long: "radix", Arg: cmd.Value}, {Short: 'o'}, {Short: 'w', Long: "include-all-whitespace"},
	{Short: 's', Long: "output-separator", Arg: cmd.Value}, {Short: 'e', Long: "encoding", Arg: cmd.Value},
}

func stringsCmd(t *call) int {
	given, names, code := t.parse(stringsOpts, "[option(s)] [file(s)]", 1, oldWidth(t.Args, "n", false))
	if code >= 0 {
		return code
	}
	least, radix, sep, eight := 4, byte(0), "\n", false
	names0, white := false, false
	unit, big := 1, false
	for _, g := range given {
		switch g.Key {
		case "a", "d": // files are not taken apart into sections: all of them is looked at
		case "f":
			names0 = true
		case "n":
			n, err := strconv.Atoi(g.Value)
			if err != nil {
				return t.fail(1, "invalid integer argument %s", g.Value)
			}
			if n < 1 {
				return t.fail(1, "invalid minimum string length %d", n)
			}
			least = n
		case "t":
			if g.Value != "o" && g.Value != "d" && g.Value != "x" {
				return t.usage(1, "invalid radix '%s'", g.Value)
			}
			radix = g.Value[0]
		case "o":
			radix = 'o'
		case "w":
			white = true
		case "s":
			sep = g.Value
		case "e":
			switch g.Value {
			case "s":
			case "S", "strings":
				eight = true
			case "b", "B":
				unit, big = map[string]int{"b": 2, "B": 4}[g.Value], true
			case "l", "L":
				unit, big = map[string]int{"l": 2, "L": 4}[g.Value], false
			default:
				return t.usage(1, "invalid encoding '%s'", g.Value)
			}
		}
	}
	show := func(c uint32) bool {
		return c < 0x7f && c >= ' ' || c == '\t' || white && c < 0x80 && isSpace(byte(c)) || eight && c > 0x7f
	}
	failed := 0
	if len(names) == 0 {
		names = []string{"-"}
	}
	for _, name := range names {
		r, err := t.open(name)
		if err != nil {
			failed = t.fail(1, "'%s': %s", name, strings.Replace(cmd.Reason(err), "No such file or directory", "No such file", 1))
			continue
		}
		var (
			run   []byte // of the current run; written as it grows once it is long enough
			start int64
			pos   int64
			long  bool
			part  []byte
		)
		prefix := func() {
			if names0 {
				shown := name
				if name == "-" {
					shown = "{standard input}"
				}
				t.out.WriteString(shown + ": ")
			}
			switch radix {
			case 'o':
				fmt.Fprintf(t.out, "%7o ", start)
			case 'd':
				fmt.Fprintf(t.out, "%7d ", start)
			case 'x':
				fmt.Fprintf(t.out, "%7x ", start)
			}
		}
		end := func() {
			if long {
				t.out.WriteString(sep)
			}
			run, long = run[:0], false
		}
		one := func(c uint32) {
			if !show(c) {
				end()
				return
			}
			if long {
				t.out.WriteByte(byte(c))
				return
			}
			if len(run) == 0 {
				start = pos
			}
			if run = append(run, byte(c)); len(run) >= least {
				prefix()
				t.out.Write(run)
				long = true
			}
		}
		err = blocks(r, func(b []byte) error {
			if unit == 1 {
				for _, c := range b {
					one(uint32(c))
					pos++
				}
				return nil
			}
			part = append(part, b...)
			for len(part) >= unit {
				var c uint32
				for i := range unit {
					if big {
						c = c<<8 | uint32(part[i])
					} else {
						c |= uint32(part[i]) << (8 * i)
					}
				}
				if show(c) {
					one(c)
					part = part[unit:]
					pos += int64(unit)
				} else {
					end()
					part = part[1:]
					pos++
				}
			}
			part = bytes.Clone(part)
			return nil
		})
		end()
		r.Close()
		if err != nil {
			failed = t.fail(1, "Warning: '%s' is a directory", name)
		}
	}
	return failed
}
