package jq

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// decoder reads values of JSON, one after the other.
type decoder struct {
	r     io.Reader
	buf   []byte
	pos   int
	end   int
	eof   bool
	err   error // of reading
	lines int   // line ends before pos
	col   int   // bytes since the last of them
	depth int
	text  []byte
}

// badJSON is an error in a text.
type badJSON string

func (e badJSON) Error() string { return string(e) }

const maxDepth = 10000

func decodeString(s string) (any, error) {
	d := &decoder{buf: []byte(s), end: len(s), eof: true}
	v, err := d.next()
	if err == io.EOF {
		return nil, io.EOF
	}
	if err != nil {
		return nil, err
	}
	if _, err := d.next(); err != io.EOF {
		return nil, badJSON("Unexpected extra JSON values")
	}
	return v, nil
}

func (d *decoder) fail(format string, args ...any) error {
	return badJSON(fmt.Sprintf(format, args...) + fmt.Sprintf(" at line %d, column %d", d.lines+1, d.col))
}

func (d *decoder) failEOF(what string) error {
	return badJSON(fmt.Sprintf("%s at EOF at line %d, column %d", what, d.lines+1, d.col))
}

// fill reads more; it keeps what is at and behind keep.
func (d *decoder) fill(keep int) bool {
	if d.eof {
		return false
	}
	if keep > 0 {
		copy(d.buf, d.buf[keep:d.end])
		d.pos -= keep
		d.end -= keep
	}
	if d.buf == nil {
		d.buf = make([]byte, 64<<10)
	}
	if d.end == len(d.buf) {
		d.buf = append(d.buf, make([]byte, len(d.buf))...)
	}
	n, err := d.r.Read(d.buf[d.end:])
	d.end += n
	if err != nil {
		d.eof = true
		if err != io.EOF {
			d.err = err
		}
	}
	return n > 0 || !d.eof
}

// peek is the next byte that is no white space, false at the end.
func (d *decoder) peek() (byte, bool) {
	for {
		for d.pos < d.end {
			c := d.buf[d.pos]
			switch c {
			case '\n':
				d.lines++
				d.col = 0
				d.pos++
			case ' ', '\t', '\r':
				d.col++
				d.pos++
			case 0x1e: // RS, which begins a text of a sequence
				d.col++
				d.pos++
			case 0xEF:
				if d.lines == 0 && d.col == 0 && bytes.HasPrefix(d.buf[d.pos:d.end], []byte("\uFEFF")) {
					d.pos += 3
					continue
				}
				return c, true
			default:
				return c, true
			}
		}
		if !d.fill(d.pos) {
			if d.pos == d.end {
				return 0, false
			}
		}
	}
}

func (d *decoder) skip() {
	d.pos++
	d.col++
}

// line is the number that messages give for the value read last: how many lines were read for it.
func (d *decoder) line() int {
	if bytes.IndexByte(d.buf[d.pos:d.end], '\n') >= 0 {
		return d.lines + 1
	}
	return d.lines
}

// next returns the next value, io.EOF behind the last.
func (d *decoder) next() (any, error) {
	if _, ok := d.peek(); !ok {
		if d.err != nil {
			return nil, d.err
		}
		return nil, io.EOF
	}
	d.depth = 0
	return d.value()
}

func (d *decoder) value() (any, error) {
	c, ok := d.peek()
	if !ok {
		return nil, d.failEOF("Unfinished JSON term")
	}
	switch c {
	case '{':
		return d.object()
	case '[':
		return d.array()
	case '"':
		return d.string()
	case ',':
		d.skip()
		return nil, d.fail("Expected value before ','")
	case ':':
		d.skip()
		return nil, d.fail("':' not as part of an object")
	case ']', '}':
		d.skip()
		return nil, d.fail("Unmatched '%c'", c)
	case '\'':
		d.skip()
		return nil, d.fail("Invalid string literal; expected \", but got '")
	}
	return d.word()
}

// word reads a number or one of null, true, false and nan.
func (d *decoder) word() (any, error) {
	i := d.pos
	for {
		for i < d.end && strings.IndexByte(" \t\r\n,:[]{}\"\x1e", d.buf[i]) < 0 {
			i++
		}
		if i < d.end {
			break
		}
		n := i - d.pos
		if !d.fill(d.pos) {
			break
		}
		i = d.pos + n
	}
	s := string(d.buf[d.pos:i])
	d.col += i - d.pos
	d.pos = i
	switch s {
	case "null":
		return nil, nil
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "nan", "NaN", "-nan", "-NaN":
		return math.NaN(), nil
	case "Infinity", "infinity":
		return math.Inf(1), nil
	case "-Infinity", "-infinity":
		return math.Inf(-1), nil
	}
	if v, ok := parseNumber(s); ok {
		return v, nil
	}
	if i == d.end && d.eof {
		return nil, d.failEOF("Invalid numeric literal")
	}
	if d.buf[i] == '\n' {
		d.lines++
		d.col = 0
		return nil, d.fail("Invalid numeric literal")
	}
	d.col++
	return nil, d.fail("Invalid numeric literal")
}

func (d *decoder) enter() error {
	if d.depth++; d.depth > maxDepth {
		return d.fail("Exceeds depth limit for parsing")
	}
	return nil
}

func (d *decoder) array() (any, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	d.skip()
	out := []any{}
	for {
		c, ok := d.peek()
		if ok && c == ']' {
			d.skip()
			if len(out) > 0 {
				return nil, d.fail("Expected another array element")
			}
			break
		}
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		if c, ok = d.peek(); !ok {
			return nil, d.failEOF("Unfinished JSON term")
		}
		d.skip()
		if c == ']' {
			break
		}
		if c != ',' {
			return nil, d.between(c)
		}
	}
	d.depth--
	return out, nil
}

func (d *decoder) between(c byte) error {
	switch c {
	case '}':
		return d.fail("Unmatched '}'")
	case ']':
		return d.fail("Unmatched ']'")
	case ':':
		return d.fail("':' not as part of an object")
	}
	return d.fail("Expected separator between values")
}

func (d *decoder) object() (any, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	d.skip()
	out := &object{}
	for {
		c, ok := d.peek()
		if ok && c == '}' {
			d.skip()
			if out.len() > 0 {
				return nil, d.fail("Expected another key-value pair")
			}
			break
		}
		k, err := d.value()
		if err != nil {
			return nil, err
		}
		key, isString := k.(string)
		c, ok = d.peek()
		if !ok {
			return nil, d.failEOF("Unfinished JSON term")
		}
		d.skip()
		if !isString {
			if c != ':' {
				return nil, d.fail("Objects must consist of key:value pairs")
			}
			return nil, d.fail("Object keys must be strings")
		}
		if c != ':' {
			return nil, d.fail("Objects must consist of key:value pairs")
		}
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		out.put(key, v)
		if c, ok = d.peek(); !ok {
			return nil, d.failEOF("Unfinished JSON term")
		}
		d.skip()
		if c == '}' {
			break
		}
		if c != ',' {
			return nil, d.between(c)
		}
	}
	d.depth--
	return out, nil
}

func (d *decoder) string() (any, error) {
	i := d.pos + 1
	escaped, control := false, false
	for {
		for i < d.end && d.buf[i] != '"' {
			switch b := d.buf[i]; {
			case b == '\\':
				escaped = true
				i++
			case b < ' ':
				control = true
			}
			i++
		}
		if i < d.end {
			break
		}
		n := i - d.pos
		if !d.fill(d.pos) {
			d.col += d.end - d.pos
			d.pos = d.end
			return nil, d.failEOF("Unfinished string")
		}
		i = d.pos + n
	}
	raw := d.buf[d.pos+1 : i]
	if n := bytes.Count(raw, []byte{'\n'}); n > 0 {
		d.lines += n
		d.col = len(raw) - bytes.LastIndexByte(raw, '\n')
	} else {
		d.col += i + 1 - d.pos
	}
	d.pos = i + 1
	if control {
		return nil, d.fail("Invalid string: control characters from U+0000 through U+001F must be escaped")
	}
	if !escaped {
		if !utf8.Valid(raw) {
			return strings.ToValidUTF8(string(raw), "\uFFFD"), nil
		}
		return string(raw), nil
	}
	out := d.text[:0]
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c != '\\' {
			out = append(out, c)
			continue
		}
		i++
		switch raw[i] {
		case '"', '\\', '/':
			out = append(out, raw[i])
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, ok := hex4(raw[i+1:])
			if !ok {
				return nil, d.fail("Invalid escape")
			}
			i += 4
			if utf16.IsSurrogate(r) {
				low, ok := rune(0), false
				if i+2 < len(raw) && raw[i+1] == '\\' && raw[i+2] == 'u' {
					low, ok = hex4(raw[i+3:])
				}
				if pair := utf16.DecodeRune(r, low); ok && pair != utf8.RuneError {
					r = pair
					i += 6
				} else {
					r = utf8.RuneError
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			return nil, d.fail("Invalid escape")
		}
	}
	d.text = out
	return strings.ToValidUTF8(string(out), "\uFFFD"), nil
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	r := rune(0)
	for _, c := range b[:4] {
		i := strings.IndexByte("0123456789abcdef", c|0x20)
		if c >= '0' && c <= '9' {
			i = int(c - '0')
		}
		if i < 0 {
			return 0, false
		}
		r = r*16 + rune(i)
	}
	return r, true
}
