package expand

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/exthost/exthost/guests/sh/internal/vars"
	"mvdan.cc/sh/v3/syntax"
)

// ansiC resolves the escapes of $'...'. A NUL ends the string, as strings of a shell have none.
func ansiC(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	out, _ := Escapes(s, Ansi)
	if i := strings.IndexByte(out, 0); i >= 0 {
		out = out[:i]
	}
	return out
}

// Dialect says which backslash escapes there are.
type Dialect uint8

const (
	Ansi    Dialect = iota // $'...' and the format of printf
	Echo                   // echo -e: octal numbers begin with 0, \c ends everything
	Percent                // printf %b: as Echo, but octal numbers need no 0
)

// Escapes resolves backslash escapes. The second result is true when \c ended them.
func Escapes(s string, d Dialect) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '\\' || i+1 == len(s) {
			b.WriteByte(c)
			continue
		}
		i++
		switch c = s[i]; c {
		case 'a':
			b.WriteByte('\a')
		case 'b':
			b.WriteByte('\b')
		case 'e', 'E':
			b.WriteByte(0x1b)
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'v':
			b.WriteByte('\v')
		case '\\':
			b.WriteByte('\\')
		case '\'', '"', '?':
			if d != Ansi {
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		case '0', '1', '2', '3', '4', '5', '6', '7':
			if d == Echo && c != '0' {
				b.WriteByte('\\')
				b.WriteByte(c)
				continue
			}
			n, digits := 0, 3
			if d != Ansi && c == '0' {
				digits = 4 // the 0 is one of them
			}
			j := i
			for ; j < len(s) && j < i+digits && '0' <= s[j] && s[j] <= '7'; j++ {
				n = n*8 + int(s[j]-'0')
			}
			i = j - 1
			b.WriteByte(byte(n))
		case 'x', 'u', 'U':
			digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			n, j := hex(s, i+1, digits)
			if j == i+1 {
				b.WriteByte('\\')
				b.WriteByte(c)
				continue
			}
			i = j - 1
			if c == 'x' {
				b.WriteByte(byte(n))
			} else {
				b.WriteString(character(n))
			}
		case 'c':
			if d != Ansi {
				return b.String(), true
			}
			if i+1 == len(s) {
				b.WriteString(`\c`)
				continue
			}
			i++
			if s[i] == '\\' && i+1 < len(s) && s[i+1] == '\\' {
				i++
			}
			if s[i] == '?' {
				b.WriteByte(0x7f)
			} else {
				b.WriteByte(upper(s[i]) & 0x1f)
			}
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String(), false
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		c -= 'a' - 'A'
	}
	return c
}

func hex(s string, i, digits int) (uint32, int) {
	n := uint32(0)
	for end := i + digits; i < len(s) && i < end; i++ {
		switch c := s[i] | 0x20; {
		case '0' <= s[i] && s[i] <= '9':
			n = n<<4 | uint32(s[i]-'0')
		case 'a' <= c && c <= 'f':
			n = n<<4 | uint32(c-'a'+10)
		default:
			return n, i
		}
	}
	return n, i
}

// character encodes a code point; also one that Go does not take for a character, as the C library does.
func character(n uint32) string {
	if r := rune(n); n <= unicode.MaxRune && utf8.ValidRune(r) {
		return string(r)
	}
	switch {
	case n < 0x10000:
		return string([]byte{0xe0 | byte(n>>12), 0x80 | byte(n>>6)&0x3f, 0x80 | byte(n)&0x3f})
	case n < 0x200000:
		return string([]byte{0xf0 | byte(n>>18), 0x80 | byte(n>>12)&0x3f, 0x80 | byte(n>>6)&0x3f, 0x80 | byte(n)&0x3f})
	case n < 0x4000000:
		return string([]byte{0xf8 | byte(n>>24), 0x80 | byte(n>>18)&0x3f, 0x80 | byte(n>>12)&0x3f, 0x80 | byte(n>>6)&0x3f, 0x80 | byte(n)&0x3f})
	}
	return string([]byte{0xfc | byte(n>>30)&1, 0x80 | byte(n>>24)&0x3f, 0x80 | byte(n>>18)&0x3f, 0x80 | byte(n>>12)&0x3f, 0x80 | byte(n>>6)&0x3f, 0x80 | byte(n)&0x3f})
}

// printable tells whether s needs no escapes to be read.
func printable(s string) bool {
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			if s[i] < ' ' || s[i] == 0x7f {
				return false
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || !unicode.IsGraphic(r) {
			return false
		}
		i += n
	}
	return true
}

// Quote returns s as ${s@Q} writes it; or as set and set -x do, quoted only where it is needed, when always is false.
func Quote(s string, always bool) string {
	switch {
	case !printable(s):
		return quoteAnsi(s)
	case s == "" || always || needsQuotes(s):
		return quoteSingle(s)
	}
	return s
}

func quoteSingle(s string) string {
	if s == "'" {
		return `\'`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func needsQuotes(s string) bool {
	for i := range len(s) {
		switch s[i] {
		case ' ', '\t', '\n', '\'', '"', '\\', '|', '&', ';', '(', ')', '<', '>', '!', '{', '}', '*', '[', ']', '?', '^', '$', '`':
			return true
		case '#':
			if i == 0 {
				return true
			}
		case '~':
			if i == 0 || s[i-1] == '=' || s[i-1] == ':' {
				return true
			}
		}
	}
	return false
}

// quoteAnsi writes s as $'...'.
func quoteAnsi(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 || !unicode.IsGraphic(r) {
				for range n {
					fmt.Fprintf(&b, `\%03o`, s[i])
					i++
				}
				continue
			}
			b.WriteString(s[i : i+n])
			i += n
			continue
		}
		i++
		switch c {
		case 0x1b:
			b.WriteString(`\E`)
		case '\a':
			b.WriteString(`\a`)
		case '\b':
			b.WriteString(`\b`)
		case '\f':
			b.WriteString(`\f`)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		case '\v':
			b.WriteString(`\v`)
		case '\\', '\'':
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			if c < ' ' || c == 0x7f {
				fmt.Fprintf(&b, `\%03o`, c)
			} else {
				b.WriteByte(c)
			}
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// quoteDouble writes s in double quotes, as declare -p does.
func quoteDouble(s string) string {
	if !printable(s) {
		return quoteAnsi(s)
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch s[i] {
		case '"', '$', '`', '\\':
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	b.WriteByte('"')
	return b.String()
}

func quoteKey(k string) string {
	if needsQuotes(k) || !printable(k) || k == "@" || k == "*" {
		return quoteDouble(k)
	}
	return k
}

// Backslash quotes s as printf %q does.
func Backslash(s string) string {
	if s == "" {
		return "''"
	}
	if !printable(s) {
		return quoteAnsi(s)
	}
	var b strings.Builder
	for i := range len(s) {
		switch s[i] {
		case ' ', '\t', '\n', '\'', '"', '\\', '|', '&', ';', '(', ')', '<', '>', '!', '{', '}', '*', '[', ']', '?', '^', '$', '`', ',':
			b.WriteByte('\\')
		case '#':
			if i == 0 {
				b.WriteByte('\\')
			}
		case '~':
			if i == 0 || s[i-1] == '=' || s[i-1] == ':' {
				b.WriteByte('\\')
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// Flags are the attributes of a variable as ${x@a} and declare -p write them.
func Flags(v vars.Var) string {
	var b strings.Builder
	put := func(on bool, c byte) {
		if on {
			b.WriteByte(c)
		}
	}
	put(v.Kind == vars.Indexed, 'a')
	put(v.Kind == vars.Assoc, 'A')
	put(v.Attr&vars.Integer != 0, 'i')
	put(v.Attr&vars.NameRef != 0, 'n')
	put(v.Attr&vars.ReadOnly != 0, 'r')
	put(v.Attr&vars.Trace != 0, 't')
	put(v.Attr&vars.Export != 0, 'x')
	put(v.Attr&vars.Capital != 0, 'c')
	put(v.Attr&vars.Lower != 0, 'l')
	put(v.Attr&vars.Upper != 0, 'u')
	return b.String()
}

// Declaration is the line that declare -p writes for a variable.
func Declaration(name string, v vars.Var) string {
	flags := Flags(v)
	if flags == "" {
		flags = "-"
	}
	s := "declare -" + flags + " " + name
	switch v.Kind {
	case vars.String:
		s += "=" + quoteDouble(v.Str)
	case vars.Indexed, vars.Assoc:
		if v.List == nil && v.Map == nil {
			return s
		}
		s += "=" + Compound(v)
	}
	return s
}

// Compound is the value of an array as it is written in declarations.
func Compound(v vars.Var) string {
	var b strings.Builder
	b.WriteByte('(')
	keys, vals := v.Keys(), v.Values()
	for i, k := range keys {
		if v.Kind == vars.Assoc {
			k = quoteKey(k)
		} else if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString("[" + k + "]=" + quoteDouble(vals[i]))
		if v.Kind == vars.Assoc {
			b.WriteByte(' ')
		}
	}
	b.WriteByte(')')
	return b.String()
}

// source writes a part of a word as it stood.
func source(p syntax.WordPart) string {
	var b strings.Builder
	if err := syntax.NewPrinter().Print(&b, &syntax.Word{Parts: []syntax.WordPart{p}}); err != nil {
		return "${"
	}
	return b.String()
}

// Line is the line that set writes for a variable.
func Line(name string, v vars.Var) string {
	switch v.Kind {
	case vars.Indexed, vars.Assoc:
		return name + "=" + Compound(v)
	case vars.Unset:
		return name
	}
	if v.Str == "" {
		return name + "="
	}
	return name + "=" + Quote(v.Str, false)
}
