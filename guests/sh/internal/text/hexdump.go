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

var hexdumpOpts = cmd.Opts{
	{Short: 'b', Long: "one-byte-octal"}, {Short: 'c', Long: "one-byte-char"}, {Short: 'C', Long: "canonical"},
	{Short: 'd', Long: "two-bytes-decimal"}, {Short: 'o', Long: "two-bytes-octal"}, {Short: 'x', Long: "two-bytes-hex"},
	{Short: 'e', Long: "format", Arg: cmd.Value}, {Short: 'f', Long: "format-file", Arg: cmd.Value},
	{Short: 'n', Long: "length", Arg: cmd.Value}, {Short: 's', Long: "skip", Arg: cmd.Value}, {Short: 'v', Long: "no-squeezing"},
}

// hexFormats are what the letters stand for, in the language of -e.
var hexFormats = map[string][]string{
	"b": {`"%07.7_Ax\n"`, `"%07.7_ax " 16/1 "%03o " "\n"`},
	"c": {`"%07.7_Ax\n"`, `"%07.7_ax " 16/1 "%3_c " "\n"`},
	"C": {`"%08.8_Ax\n"`, `"%08.8_ax  " 8/1 "%02x " "  " 8/1 "%02x " `, `"  |" 16/1 "%_p" "|\n"`},
	"d": {`"%07.7_Ax\n"`, `"%07.7_ax " 8/2 "  %05u " "\n"`},
	"o": {`"%07.7_Ax\n"`, `"%07.7_ax " 8/2 " %06o " "\n"`},
	"x": {`"%07.7_Ax\n"`, `"%07.7_ax " 8/2 "   %04x " "\n"`},
	"":  {`"%07.7_Ax\n"`, `"%07.7_ax " 8/2 "%04x " "\n"`},
}

// hexUnit is [iterations][/bytes] "format".
type hexUnit struct {
	times, bytes int
	fixed        bool // the iterations were given
	parts        []hexPart
}

// hexPart is text, then perhaps a conversion.
type hexPart struct {
	text   string // before it
	conv   string // "" none; d i o u x X c s e f g E G, or _a _A _c _p _u with a radix behind _a and _A
	flags  string
	width  int
	prec   int // -1: none
	bytes  int
	cutEnd bool // the blanks at the end of after are left out in the last iteration
	after  string
}

// parseHexFormat reads one argument of -e.
func parseHexFormat(s string) ([]hexUnit, error) {
	bad := fmt.Errorf("bad format {%s}", s)
	var units []hexUnit
	for {
		s = strings.TrimLeft(s, " \t\n")
		if s == "" {
			return units, nil
		}
		u := hexUnit{times: 1}
		i := 0
		for i < len(s) && isDigit(s[i]) {
			i++
		}
		if i > 0 {
			n, err := strconv.Atoi(s[:i])
			if err != nil || n > 1<<20 {
				return nil, bad
			}
			u.times, u.fixed = n, true
			s = strings.TrimLeft(s[i:], " \t")
		}
		if strings.HasPrefix(s, "/") {
			s = strings.TrimLeft(s[1:], " \t")
			i = 0
			for i < len(s) && isDigit(s[i]) {
				i++
			}
			n, err := strconv.Atoi(s[:i])
			if err != nil || n > 1<<20 {
				return nil, bad
			}
			u.bytes = n
			s = strings.TrimLeft(s[i:], " \t")
		}
		if !strings.HasPrefix(s, `"`) {
			return nil, bad
		}
		end := strings.IndexByte(s[1:], '"')
		if end < 0 {
			return nil, bad
		}
		if err := u.parse(s[1 : end+1]); err != nil {
			return nil, err
		}
		units = append(units, u)
		s = s[end+2:]
	}
}

func (u *hexUnit) parse(s string) error {
	s = hexEscapes(s)
	total := 0
	for {
		var text []byte
		i := 0
		for i < len(s) {
			if s[i] == '%' {
				if i+1 < len(s) && s[i+1] == '%' {
					text = append(text, '%')
					i += 2
					continue
				}
				break
			}
			text = append(text, s[i])
			i++
		}
		if i == len(s) {
			if n := len(u.parts); n > 0 {
				u.parts[n-1].after = string(text)
			} else {
				u.parts = append(u.parts, hexPart{text: string(text)})
			}
			break
		}
		p := hexPart{text: string(text), prec: -1}
		i++
		j := i
		for j < len(s) && strings.IndexByte("#-+ 0", s[j]) >= 0 {
			j++
		}
		p.flags = s[i:j]
		for ; j < len(s) && isDigit(s[j]); j++ {
			p.width = min(p.width*10+int(s[j]-'0'), 1<<20)
		}
		if j < len(s) && s[j] == '.' {
			p.prec = 0
			for j++; j < len(s) && isDigit(s[j]); j++ {
				p.prec = min(p.prec*10+int(s[j]-'0'), 1<<20)
			}
		}
		if j == len(s) {
			return fmt.Errorf("bad conversion character %%%s", s[i:])
		}
		size := 0
		switch c := s[j]; {
		case c == 'c':
			size = 1
		case strings.IndexByte("dioxXu", c) >= 0:
			size = 4
		case strings.IndexByte("eEfgG", c) >= 0:
			size = 8
		case c == 's':
			if p.prec <= 0 && u.bytes == 0 {
				return fmt.Errorf("%%s requires a precision or a byte count")
			}
			size = p.prec
			if size < 0 {
				size = u.bytes
			}
		case c == '_' && j+1 < len(s):
			j++
			switch s[j] {
			case 'A', 'a':
				if j+1 == len(s) || strings.IndexByte("dox", s[j+1]) < 0 {
					return fmt.Errorf("bad conversion character %%_%s", s[j:])
				}
				j++
				p.conv = "_" + s[j-1:j+1]
			case 'c', 'p', 'u':
				p.conv = "_" + s[j:j+1]
				size = 1
			default:
				return fmt.Errorf("bad conversion character %%_%c", s[j])
			}
		default:
			return fmt.Errorf("bad conversion character %%%c", c)
		}
		if p.conv == "" {
			p.conv = s[j : j+1]
		}
		if size > 0 && u.bytes > 0 {
			size = u.bytes
			ok := map[bool]string{true: "4 8", false: "1 2 4 8"}[strings.Contains("eEfgG", p.conv)]
			if p.conv != "s" && !strings.Contains(ok, strconv.Itoa(size)) || (p.conv == "c" || p.conv[0] == '_') && size != 1 {
				return fmt.Errorf("bad byte count for conversion character %s", p.conv)
			}
		}
		p.bytes = size
		total += size
		u.parts = append(u.parts, p)
		s = s[j+1:]
	}
	if u.bytes == 0 {
		u.bytes = total
	}
	return nil
}

func hexEscapes(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			if k := strings.IndexByte("abfnrtv", s[i]); k >= 0 {
				b.WriteByte("\a\b\f\n\r\t\v"[k])
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func hexdump(t *call) int {
	given, names, code := t.parse(hexdumpOpts, "[options] <file>...", 1, t.Args)
	if code >= 0 {
		return code
	}
	var (
		texts   []string
		limit   = int64(-1)
		skip    int64
		verbose bool
	)
	if t.Name == "hd" {
		texts = append(texts, hexFormats["C"]...)
	}
	for _, g := range given {
		switch g.Key {
		case "e":
			texts = append(texts, g.Value)
		case "f":
			r, err := t.open(g.Value)
			if err != nil {
				return t.fail(1, "can't read %s: %s", g.Value, cmd.Reason(err))
			}
			data, err := io.ReadAll(r)
			r.Close()
			if err != nil {
				return t.Fail(g.Value, err)
			}
			for _, line := range strings.Split(string(data), "\n") {
				if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
					texts = append(texts, line)
				}
			}
		case "n", "s":
			n, ok := odNumber(g.Value)
			if !ok {
				return t.fail(1, "failed to parse %s: '%s': Invalid argument", map[string]string{"n": "length", "s": "offset"}[g.Key], g.Value)
			}
			if g.Key == "n" {
				limit = n
			} else {
				skip = n
			}
		case "v":
			verbose = true
		default:
			texts = append(texts, hexFormats[g.Key]...)
		}
	}
	if len(texts) == 0 {
		texts = hexFormats[""]
	}
	var formats [][]hexUnit
	block := 0
	for _, text := range texts {
		f, err := parseHexFormat(text)
		if err != nil {
			return t.fail(1, "%v", err)
		}
		formats = append(formats, f)
		block = max(block, hexSize(f))
	}
	if block > 1<<20 {
		return t.fail(1, "format too large")
	}
	// The last unit that takes bytes is repeated up to the size of a block; blanks behind a repeated value go.
	for _, f := range formats {
		for i := range f {
			u := &f[i]
			if rest := block - hexSize(f); i == len(f)-1 && !u.fixed && u.bytes > 0 && rest > 0 {
				u.times += rest / u.bytes
			}
			if u.times > 1 && len(u.parts) > 0 {
				u.parts[len(u.parts)-1].cutEnd = true
			}
		}
	}
	in := t.inputs(names)
	pos := int64(0)
	if skip > 0 {
		n, err := io.CopyN(io.Discard, in, skip)
		pos = n
		if err != nil && in.code > 0 {
			return 1
		}
	}
	var r io.Reader = in
	if limit >= 0 {
		r = io.LimitReader(in, limit)
	}
	if block == 0 {
		return in.code
	}
	buf := make([]byte, block)
	last := make([]byte, block)
	repeated, printed := false, false
	for {
		n, err := io.ReadFull(r, buf)
		if n == 0 {
			break
		}
		if n == block && !verbose && printed && bytes.Equal(buf, last) {
			if !repeated {
				t.out.WriteString("*\n")
			}
			repeated = true
		} else {
			repeated, printed = false, true
			clear(buf[n:])
			for _, f := range formats {
				hexPrint(t, f, buf, n, pos)
			}
			copy(last, buf)
		}
		pos += int64(n)
		if err != nil {
			break
		}
	}
	if printed || pos > 0 {
		for _, f := range formats {
			for _, u := range f {
				for _, p := range u.parts {
					if strings.HasPrefix(p.conv, "_A") {
						t.out.WriteString(p.text + p.address(pos) + p.after)
					}
				}
			}
		}
	}
	if in.code > 0 && pos == 0 && len(names) > 0 {
		t.Errorf("all input file arguments failed")
	}
	return in.code
}

func hexSize(f []hexUnit) int {
	n := 0
	for _, u := range f {
		n += u.times * u.bytes
	}
	return n
}

// hexPrint shows a block of which n bytes are there: what stands for the others is blank.
func hexPrint(t *call, f []hexUnit, block []byte, n int, pos int64) {
	for _, u := range f {
		for _, p := range u.parts {
			if strings.HasPrefix(p.conv, "_A") {
				return // for the end only
			}
		}
	}
	at := 0
	for _, u := range f {
		for i := range u.times {
			start := at
			for _, p := range u.parts {
				t.out.WriteString(p.text)
				value := ""
				switch {
				case p.conv == "":
				case strings.HasPrefix(p.conv, "_a"):
					value = p.address(pos + int64(at))
				case at >= n:
					value = strings.Repeat(" ", p.width)
				default:
					value = p.value(block[at : at+p.bytes])
				}
				t.out.WriteString(value)
				at += p.bytes
				after := p.after
				if p.cutEnd && i == u.times-1 {
					after = strings.TrimRight(after, " \t\n")
				}
				t.out.WriteString(after)
			}
			at = start + u.bytes
		}
	}
}

func (p *hexPart) address(n int64) string {
	verb := p.conv[2:]
	return p.sprintf(verb, n)
}

func (p *hexPart) sprintf(verb string, v any) string {
	format := "%" + p.flags
	if p.width > 0 {
		format += strconv.Itoa(p.width)
	}
	if p.prec >= 0 {
		format += "." + strconv.Itoa(p.prec)
	}
	return fmt.Sprintf(format+verb, v)
}

var hexNames = []string{
	"nul", "soh", "stx", "etx", "eot", "enq", "ack", "bel", "bs", "ht", "lf", "vt", "ff", "cr", "so", "si", "dle", "dc1", "dc2",
	"dc3", "dc4", "nak", "syn", "etb", "can", "em", "sub", "esc", "fs", "gs", "rs", "us",
}

func (p *hexPart) value(b []byte) string {
	text := func(s string) string {
		return fmt.Sprintf("%"+strings.ReplaceAll(p.flags, "0", "")+"*s", p.width, s)
	}
	switch p.conv {
	case "c":
		return text(string(b))
	case "s":
		if i := bytes.IndexByte(b, 0); i >= 0 {
			b = b[:i]
		}
		return text(string(b))
	case "_p":
		if !isPrint(b[0]) {
			return text(".")
		}
		return text(string(b))
	case "_c":
		switch c := b[0]; {
		case c == 0:
			return text(`\0`)
		case c >= '\a' && c <= '\r':
			return text(`\` + "abtnvfr"[c-'\a':c-'\a'+1])
		case isPrint(c):
			return text(string(b))
		default:
			return text(fmt.Sprintf("%03o", c))
		}
	case "_u":
		switch c := b[0]; {
		case c < ' ':
			return text(hexNames[c])
		case c == 0x7f:
			return text("del")
		case isPrint(c):
			return text(string(b))
		default:
			return text(fmt.Sprintf("%02x", c))
		}
	}
	var v uint64
	switch len(b) {
	case 1:
		v = uint64(b[0])
	case 2:
		v = uint64(binary.LittleEndian.Uint16(b))
	case 4:
		v = uint64(binary.LittleEndian.Uint32(b))
	default:
		v = binary.LittleEndian.Uint64(b)
	}
	switch p.conv {
	case "e", "E", "f", "g", "G":
		f := cFloat{verb: p.conv[0], precision: p.prec, width: p.width}
		f.minus, f.plus = strings.Contains(p.flags, "-"), strings.Contains(p.flags, "+")
		f.space, f.zero, f.alt = strings.Contains(p.flags, " "), strings.Contains(p.flags, "0"), strings.Contains(p.flags, "#")
		if len(b) == 4 {
			return f.format(float64(math.Float32frombits(uint32(v))))
		}
		return f.format(math.Float64frombits(v))
	case "d", "i":
		shift := 64 - 8*len(b)
		return p.sprintf("d", int64(v<<shift)>>shift)
	case "u":
		return p.sprintf("d", v)
	}
	return p.sprintf(p.conv, v)
}
