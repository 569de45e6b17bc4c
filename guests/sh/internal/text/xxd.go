package text

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// xxdOptions are what xxd was asked for. Its options are single words of which a start is enough, not letters.
type xxdOptions struct {
	bits, plain, include, reverse, upper, little, ebcdic, decimal, capitals, skipZeros bool
	columns, group                                                                     int
	hasColumns                                                                         bool
	length, seek, offset                                                               int64
	seekFromHere                                                                       bool
	name                                                                               string
}

const xxdUsage = `Usage:
       xxd [options] [infile [outfile]]
    or
       xxd -r [-s [-]offset] [-c cols] [-ps] [infile [outfile]]
Options:
    -a          toggle autoskip: A single '*' replaces nul-lines. Default off.
    -b          binary digit dump (incompatible with -ps,-i,-r). Default hex.
    -C          capitalize variable names in C include file style (-i).
    -c cols     format <cols> octets per line. Default 16 (-i: 12, -ps: 30).
    -E          show characters in EBCDIC. Default ASCII.
    -e          little-endian dump (incompatible with -ps,-i,-r).
    -g bytes    number of octets per group in normal output. Default 2 (-e: 4).
    -h          print this summary.
    -i          output in C include file style.
    -l len      stop after <len> octets.
    -n name     set the variable name used in C include output (-i).
    -o off      add <off> to the displayed file position.
    -ps         output in postscript plain hexdump style.
    -r          reverse operation: convert (or patch) hexdump into binary.
    -r -s off   revert with <off> added to file positions found in hexdump.
    -d          show offset in decimal instead of hex.
    -s [+][-]seek  start at <seek> bytes abs. (or +: rel.) infile offset.
    -u          use upper case hex letters.
    -v          show version: "xxd 2022-01-14".
`

// xxdNumber reads a number as strtol with base 0 does.
func xxdNumber(s string) (int64, bool) {
	s, negative := strings.CutPrefix(s, "-")
	base, digits := 10, s
	switch {
	case strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X"):
		base, digits = 16, s[2:]
	case len(s) > 1 && s[0] == '0':
		base, digits = 8, s[1:]
	}
	n, err := strconv.ParseInt(digits, base, 62)
	if negative {
		n = -n
	}
	return n, err == nil
}

func xxd(t *call) int {
	o := xxdOptions{length: -1}
	args := t.Args
	usage := func() int {
		fmt.Fprint(t.Stderr, xxdUsage)
		return 1
	}
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		word := strings.TrimPrefix(a[1:], "-")
		if word == "" {
			return usage()
		}
		// -c8 or -c 8; -cols 8 too.
		value := func(long string) (string, bool) {
			rest := word[1:]
			if rest == "" || strings.HasPrefix(long, word) && len(word) > 1 && !isDigit(rest[0]) {
				if len(args) == 0 {
					return "", false
				}
				v := args[0]
				args = args[1:]
				return v, true
			}
			return rest, true
		}
		number := func(long string, to *int64) bool {
			v, ok := value(long)
			if ok {
				*to, ok = xxdNumber(v)
			}
			return ok
		}
		var n int64
		ok := true
		switch word[0] {
		case 'a':
			o.skipZeros = !o.skipZeros
		case 'b':
			o.bits = true
		case 'e':
			o.little = true
		case 'u':
			o.upper = true
		case 'p':
			o.plain = true
		case 'i':
			o.include = true
		case 'C':
			o.capitals = true
		case 'd':
			o.decimal = true
		case 'r':
			o.reverse = true
		case 'E':
			o.ebcdic = true
		case 'v':
			fmt.Fprintln(t.Stderr, "xxd 2022-01-14")
			return 0
		case 'c':
			if word == "capitalize" {
				o.capitals = true
				break
			}
			if ok = number("cols", &n); ok && n >= 0 {
				o.columns, o.hasColumns = int(min(n, 1<<20)), n > 0
			}
		case 'g':
			if ok = number("groupsize", &n); ok {
				o.group = int(n)
				if n == 0 {
					o.group = -1
				}
			}
		case 'o':
			ok = number("offset", &o.offset)
		case 'l':
			ok = number("len", &o.length)
		case 'n':
			o.name, ok = value("name")
		case 's':
			var v string
			if v, ok = value("seek"); ok {
				v, o.seekFromHere = strings.CutPrefix(v, "+")
				o.seek, ok = xxdNumber(v)
			}
		default:
			return usage()
		}
		if !ok {
			return usage()
		}
	}
	if len(args) > 2 {
		return usage()
	}
	in := "-"
	if len(args) > 0 {
		in = args[0]
	}
	r, err := t.open(in)
	if err != nil {
		return t.Fail(in, err) + 1
	}
	defer r.Close()
	if len(args) > 1 && args[1] != "-" {
		flag := os.O_RDWR | os.O_CREATE
		if !o.reverse {
			flag |= os.O_TRUNC
		}
		f, err := t.OpenFile(args[1], flag, 0o666&^t.Umask)
		if err != nil {
			return t.Fail(args[1], err) + 2
		}
		t.own = f
		t.out.Reset(strict{f, args[1]})
		if o.reverse {
			return o.revert(t, r, f)
		}
	}
	if o.reverse {
		return o.revert(t, r, nil)
	}
	if o.seek != 0 || o.seekFromHere {
		if code := o.skip(t, r); code > 0 {
			return code
		}
	}
	var src io.Reader = r
	if o.length >= 0 {
		src = io.LimitReader(r, o.length)
	}
	switch {
	case o.include:
		err = o.dumpC(t, src, in)
	case o.plain:
		err = o.dumpPlain(t, src)
	default:
		err = o.dump(t, src)
	}
	if err != nil {
		return t.Fail(in, err) + 1
	}
	return 0
}

// skip goes to where the dump starts: from the end for a negative number.
func (o *xxdOptions) skip(t *call, r *source) int {
	if o.seek < 0 && !o.seekFromHere {
		end, ok := r.seek(0, io.SeekEnd)
		if !ok || end+o.seek < 0 {
			return t.fail(4, "Sorry, cannot seek.")
		}
		r.seek(end+o.seek, io.SeekStart)
		o.seek = end + o.seek
		return 0
	}
	if here, ok := r.seek(0, io.SeekCurrent); ok {
		to := o.seek
		if o.seekFromHere {
			to += here
		}
		if to < 0 {
			return t.fail(4, "Sorry, cannot seek.")
		}
		r.seek(to, io.SeekStart)
		o.seek = to
		return 0
	}
	if o.seek < 0 {
		return t.fail(4, "Sorry, cannot seek.")
	}
	if _, err := io.CopyN(io.Discard, r, o.seek); err != nil {
		return t.fail(4, "Sorry, cannot seek.")
	}
	return 0
}

func (o *xxdOptions) digits() string {
	if o.upper {
		return "0123456789ABCDEF"
	}
	return "0123456789abcdef"
}

func (o *xxdOptions) dumpPlain(t *call, r io.Reader) error {
	columns := 30
	if o.hasColumns {
		columns = o.columns
	}
	digits := o.digits()
	at := 0
	err := blocks(r, func(b []byte) error {
		for _, c := range b {
			t.out.WriteByte(digits[c>>4])
			t.out.WriteByte(digits[c&15])
			if at++; at == columns && (o.columns > 0 || !o.hasColumns) {
				t.out.WriteByte('\n')
				at = 0
			}
		}
		return nil
	})
	if at > 0 {
		t.out.WriteByte('\n')
	}
	return err
}

func (o *xxdOptions) dumpC(t *call, r io.Reader, in string) error {
	columns := 12
	if o.hasColumns {
		columns = o.columns
	}
	name := o.name
	if name == "" && in != "-" {
		name = in
	}
	ident := strings.Map(func(c rune) rune {
		if c < 0x80 && (isAlpha(byte(c)) || isDigit(byte(c))) {
			return c
		}
		return '_'
	}, name)
	if name != "" && isDigit(name[0]) {
		ident = "__" + ident
	}
	if o.capitals {
		ident = strings.ToUpper(ident)
	}
	if name != "" {
		fmt.Fprintf(t.out, "unsigned char %s[] = {\n", ident)
	}
	format := "0x%02x"
	if o.upper {
		format = "0X%02X"
	}
	n := 0
	err := blocks(r, func(b []byte) error {
		for _, c := range b {
			switch {
			case n == 0:
				t.out.WriteString("  ")
			case n%columns == 0:
				t.out.WriteString(",\n  ")
			default:
				t.out.WriteString(", ")
			}
			fmt.Fprintf(t.out, format, c)
			n++
		}
		return nil
	})
	if n > 0 {
		t.out.WriteByte('\n')
	}
	if name != "" {
		suffix := "len"
		if o.capitals {
			suffix = "LEN"
		}
		fmt.Fprintf(t.out, "};\nunsigned int %s_%s = %d;\n", ident, suffix, n)
	}
	return err
}

func (o *xxdOptions) dump(t *call, r io.Reader) error {
	columns, group := 16, 2
	if o.bits {
		columns, group = 6, 1
	}
	if o.little {
		group = 4
	}
	if o.hasColumns {
		columns = o.columns
	}
	if o.group != 0 {
		group = o.group
	}
	if group < 1 || group > columns {
		group = columns
	}
	perByte := 2
	if o.bits {
		perByte = 8
	}
	// Where the text starts: behind the groups of a whole line.
	wide := columns*perByte + (columns+group-1)/group - 1
	if o.little {
		wide = ((columns+group-1)/group)*(group*perByte+1) - 1
	}
	digits := o.digits()
	buf := make([]byte, columns)
	br := bufio.NewReaderSize(r, 64<<10)
	var line, held []byte
	zeros := 0 // lines of zeros since the last that was written
	for pos := o.seek + o.offset; ; {
		n, err := io.ReadFull(br, buf)
		if n == 0 {
			if err == io.EOF {
				err = nil
			}
			if zeros > 1 {
				t.out.Write(held)
			}
			return err
		}
		if o.decimal {
			line = fmt.Appendf(line[:0], "%08d: ", pos)
		} else if o.upper {
			line = fmt.Appendf(line[:0], "%08x: ", uint64(pos))
		} else {
			line = fmt.Appendf(line[:0], "%08x: ", uint64(pos))
		}
		start := len(line)
		for len(line) < start+wide+2 {
			line = append(line, ' ')
		}
		for i, c := range buf[:n] {
			at := i
			if o.little {
				at = i/group*group + group - 1 - i%group
			}
			to := line[start+at*perByte+at/group:]
			if o.bits {
				for k := range 8 {
					to[k] = '0' + c>>(7-k)&1
				}
			} else {
				to[0], to[1] = digits[c>>4], digits[c&15]
			}
		}
		zero := true
		for _, c := range buf[:n] {
			if c != 0 {
				zero = false
			}
			if o.ebcdic {
				c = ebcdic[c]
			}
			if c < ' ' || c >= 0x7f {
				c = '.'
			}
			line = append(line, c)
		}
		line = append(line, '\n')
		pos += int64(n)
		switch {
		case !o.skipZeros || !zero || n < columns:
			if zeros == 2 {
				t.out.Write(held)
			}
			zeros = 0
			t.out.Write(line)
		default:
			zeros++
			switch zeros {
			case 1:
				t.out.Write(line)
			case 2:
				held = append(held[:0], line...)
			case 3:
				t.out.WriteString("*\n")
				held = append(held[:0], line...)
			default:
				held = append(held[:0], line...)
			}
		}
		if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
			return err
		}
	}
}

// revert turns a dump back into bytes. Where the output is a file, an address moves in it.
func (o *xxdOptions) revert(t *call, r *source, out cmd.File) int {
	if o.plain {
		return revertPlain(t, r)
	}
	columns := 16
	if o.bits {
		columns = 6
	}
	if o.hasColumns {
		columns = o.columns
	}
	l := newLines(r, '\n')
	pos := int64(0)
	for {
		line, err := l.next()
		if err == io.EOF {
			return 0
		}
		if err != nil {
			return t.Fail("-", err) + 1
		}
		i := 0
		for i < len(line) && isBlank(line[i]) {
			i++
		}
		j := i
		addr := int64(0)
		for j < len(line) && hexValue(line[j]) >= 0 {
			if o.decimal {
				addr = addr*10 + int64(hexValue(line[j]))
			} else {
				addr = addr<<4 | int64(hexValue(line[j]))
			}
			j++
		}
		if j == i {
			continue // no line of a dump
		}
		if j < len(line) && line[j] == ':' {
			j++
		}
		want := addr + o.seek
		if want != pos {
			if s, ok := out.(io.Seeker); ok && out != nil {
				t.flush()
				if _, err := s.Seek(want, io.SeekStart); err == nil {
					pos = want
				}
			}
			if want < pos {
				return t.fail(5, "Sorry, cannot seek backwards.")
			}
			if want-pos > 1<<34 {
				return t.fail(5, "Sorry, cannot seek.")
			}
			zeros := make([]byte, 4096)
			for pos < want {
				k := min(want-pos, int64(len(zeros)))
				t.out.Write(zeros[:k])
				pos += k
			}
		}
		n := 0
		for j < len(line) && n < columns {
			for j < len(line) && line[j] == ' ' {
				// Two blanks end the bytes of a line.
				if j+1 < len(line) && line[j+1] == ' ' && n > 0 {
					j = len(line)
					break
				}
				j++
			}
			if o.bits {
				if j+8 > len(line) {
					break
				}
				v, err := strconv.ParseUint(string(line[j:j+8]), 2, 8)
				if err != nil {
					break
				}
				t.out.WriteByte(byte(v))
				j += 8
			} else {
				if j+2 > len(line) || hexValue(line[j]) < 0 || hexValue(line[j+1]) < 0 {
					break
				}
				t.out.WriteByte(byte(hexValue(line[j])<<4 | hexValue(line[j+1])))
				j += 2
			}
			n++
			pos++
		}
	}
}

func hexValue(b byte) int {
	switch {
	case isDigit(b):
		return int(b - '0')
	case b >= 'a' && b <= 'f':
		return int(b-'a') + 10
	case b >= 'A' && b <= 'F':
		return int(b-'A') + 10
	}
	return -1
}

// revertPlain takes pairs of digits wherever they stand, also over line ends. After three characters that are none, the
// rest of the line is no dump.
func revertPlain(t *call, r *source) int {
	now, before, earlier := -1, -1, -1
	skip := false
	err := blocks(r, func(b []byte) error {
		for _, c := range b {
			if c == '\n' {
				skip = false
			}
			if skip || c == ' ' || c == '\n' || c == '\t' {
				continue
			}
			now, before, earlier = hexValue(c), now, before
			switch {
			case now >= 0 && before >= 0:
				t.out.WriteByte(byte(before<<4 | now))
				now = -1
			case now < 0 && before < 0 && earlier < 0:
				skip = true
			}
		}
		return nil
	})
	if err != nil {
		return t.Fail("-", err) + 1
	}
	return 0
}

// ebcdic are the characters of EBCDIC as ASCII, those that are none as a point.
var ebcdic = func() (table [256]byte) {
	for i := range table {
		table[i] = '.'
	}
	for _, run := range []struct {
		at   byte
		text string
	}{
		{0x40, " "}, {0x4b, ".<(+|&"}, {0x5a, "!$*);~-/"}, {0x6b, ",%_>?"}, {0x79, "`:#@'=\""}, {0x81, "abcdefghi"},
		{0x91, "jklmnopqr^"}, {0xa2, "stuvwxyz"}, {0xad, "["}, {0xbd, "]"}, {0xc0, "{ABCDEFGHI"}, {0xd0, "}JKLMNOPQR"},
		{0xe0, "\\"}, {0xe2, "STUVWXYZ"}, {0xf0, "0123456789"},
	} {
		copy(table[run.at:], run.text)
	}
	return table
}()
