package jq

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Values are nil, bool, float64, literal, string, []any and *object. They never change once they are made.

// literal is a number as the input or the program wrote it, where a float64 would show it otherwise. It stays as it is until
// something is computed with it.
type literal struct {
	f    float64
	text string
}

// object keeps its keys in the order in which they came.
type object struct {
	keys  []string
	vals  []any
	index *keyIndex // from a size on
}

// keyIndex finds the keys of a large object. An object that got one more key shares it, and the memory of keys and vals, with
// the one that it came from: the older one looks no further than its own length. Only the newest of them can grow that
// way, else two would write to the same place. Without it a reduce that collects n keys copies n*n/2 of them.
type keyIndex struct {
	at   map[string]int
	used int // length of the newest object
}

const indexFrom = 12

func (o *object) len() int {
	if o == nil {
		return 0
	}
	return len(o.keys)
}

func (o *object) find(key string) int {
	if o.index != nil {
		if i, ok := o.index.at[key]; ok && i < len(o.keys) {
			return i
		}
		return -1
	}
	for i, k := range o.keys {
		if k == key {
			return i
		}
	}
	return -1
}

func (o *object) get(key string) (any, bool) {
	if i := o.find(key); i >= 0 {
		return o.vals[i], true
	}
	return nil, false
}

// put changes an object that nobody else has yet.
func (o *object) put(key string, v any) {
	if i := o.find(key); i >= 0 {
		o.vals[i] = v
		return
	}
	o.keys, o.vals = append(o.keys, key), append(o.vals, v)
	if o.index != nil {
		o.index.at[key], o.index.used = len(o.keys)-1, len(o.keys)
	} else if len(o.keys) == indexFrom {
		o.index = newIndex(o.keys, 2*indexFrom)
	}
}

func newIndex(keys []string, size int) *keyIndex {
	x := &keyIndex{make(map[string]int, size), len(keys)}
	for i, k := range keys {
		x.at[k] = i
	}
	return x
}

func (o *object) clone(more int) *object {
	c := &object{keys: make([]string, len(o.keys), len(o.keys)+more), vals: make([]any, len(o.vals), len(o.vals)+more)}
	copy(c.keys, o.keys)
	copy(c.vals, o.vals)
	if o.index != nil {
		c.index = newIndex(c.keys, len(o.keys)+more)
	}
	return c
}

func (o *object) with(key string, v any) *object {
	if i := o.find(key); i >= 0 {
		// The keys are the same, and so is where they are.
		c := &object{keys: o.keys, vals: slices.Clone(o.vals), index: o.index}
		c.vals[i] = v
		return c
	}
	if o.index != nil && o.index.used == len(o.keys) {
		c := *o
		c.put(key, v)
		return &c
	}
	c := o.clone(1)
	c.put(key, v)
	return c
}

func (o *object) without(keys map[string]bool) *object {
	c := &object{}
	for i, k := range o.keys {
		if !keys[k] {
			c.put(k, o.vals[i])
		}
	}
	return c
}

// sorted returns the keys in order.
func (o *object) sorted() []string {
	keys := slices.Clone(o.keys)
	sort.Strings(keys)
	return keys
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case literal:
		return v.f, true
	}
	return 0, false
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64, literal:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

func truth(v any) bool { return v != nil && v != false }

func rank(v any) int {
	switch v := v.(type) {
	case nil:
		return 0
	case bool:
		if v {
			return 2
		}
		return 1
	case float64, literal:
		return 3
	case string:
		return 4
	case []any:
		return 5
	}
	return 6
}

// compare orders values as sort does.
func compare(a, b any) int {
	if r, s := rank(a), rank(b); r != s {
		return cmp.Compare(r, s)
	}
	switch x := a.(type) {
	case float64, literal:
		f, _ := number(a)
		g, _ := number(b)
		switch {
		case f < g || f != f: // nan is below every number, itself too
			return -1
		case f == g:
			return 0
		}
		return 1
	case string:
		return strings.Compare(x, b.(string))
	case []any:
		return slices.CompareFunc(x, b.([]any), compare)
	case *object:
		y := b.(*object)
		k, l := x.sorted(), y.sorted()
		if c := slices.Compare(k, l); c != 0 {
			return c
		}
		for _, key := range k {
			v, _ := x.get(key)
			w, _ := y.get(key)
			if c := compare(v, w); c != 0 {
				return c
			}
		}
	}
	return 0
}

func equal(a, b any) bool { return compare(a, b) == 0 }

// Printing.

type printer struct {
	indent string // "": all in one line
	sort   bool
	ascii  bool
	color  *colors
	buf    []byte
}

type colors [8]string // null false true numbers strings arrays objects keys

func compact(v any) string {
	p := &printer{}
	p.value(v, 0)
	return string(p.buf)
}

func (p *printer) newline(depth int) {
	if p.indent == "" {
		return
	}
	p.buf = append(p.buf, '\n')
	for range depth {
		p.buf = append(p.buf, p.indent...)
	}
}

func (p *printer) value(v any, depth int) {
	if p.color != nil {
		p.colored(v, depth)
		return
	}
	switch v := v.(type) {
	case []any:
		if len(v) == 0 {
			p.buf = append(p.buf, "[]"...)
			return
		}
		p.buf = append(p.buf, '[')
		for i, e := range v {
			if i > 0 {
				p.buf = append(p.buf, ',')
			}
			p.newline(depth + 1)
			p.value(e, depth+1)
		}
		p.newline(depth)
		p.buf = append(p.buf, ']')
	case *object:
		if v.len() == 0 {
			p.buf = append(p.buf, "{}"...)
			return
		}
		p.buf = append(p.buf, '{')
		first := true
		p.members(v, func(k string, e any) {
			if !first {
				p.buf = append(p.buf, ',')
			}
			first = false
			p.newline(depth + 1)
			p.string(k)
			p.buf = append(p.buf, ':')
			if p.indent != "" {
				p.buf = append(p.buf, ' ')
			}
			p.value(e, depth+1)
		})
		p.newline(depth)
		p.buf = append(p.buf, '}')
	default:
		p.scalar(v)
	}
}

func (p *printer) members(o *object, f func(string, any)) {
	if !p.sort {
		for i, k := range o.keys {
			f(k, o.vals[i])
		}
		return
	}
	for _, k := range o.sorted() {
		v, _ := o.get(k)
		f(k, v)
	}
}

func (p *printer) scalar(v any) {
	switch v := v.(type) {
	case nil:
		p.buf = append(p.buf, "null"...)
	case bool:
		p.buf = strconv.AppendBool(p.buf, v)
	case float64:
		p.buf = appendNumber(p.buf, v)
	case literal:
		p.buf = append(p.buf, v.text...)
	case string:
		p.string(v)
	}
}

const reset = "\x1b[0m"

func (p *printer) colored(v any, depth int) {
	put := func(s string) { p.buf = append(p.buf, s...) }
	col := "\x1b[" + p.color[[]int{0, 1, 2, 3, 4, 5, 6}[rank(v)]] + "m"
	switch v := v.(type) {
	case []any:
		put(col)
		if len(v) == 0 {
			put("[]" + reset)
			return
		}
		put("[")
		for i, e := range v {
			if i > 0 {
				put(col + ",")
			}
			p.newline(depth + 1)
			p.value(e, depth+1)
		}
		put(col)
		p.newline(depth)
		put(col + "]" + reset)
	case *object:
		put(col)
		if v.len() == 0 {
			put("{}" + reset)
			return
		}
		put("{")
		first := true
		p.members(v, func(k string, e any) {
			if !first {
				put(col + ",")
			}
			p.newline(depth + 1)
			put(reset + "\x1b[" + p.color[7] + "m")
			p.string(k)
			put(reset + col + ":")
			if p.indent != "" {
				put(" ")
			}
			put(reset)
			p.value(e, depth+1)
			first = false
		})
		put(col)
		p.newline(depth)
		put(col + "}" + reset)
	default:
		put(col)
		p.scalar(v)
		put(reset)
	}
}

const hex = "0123456789abcdef"

func (p *printer) string(s string) {
	b := append(p.buf, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < 0x7f {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n > 1 {
				if p.ascii {
					b = append(b, s[from:i]...)
					if r >= 0x10000 {
						r -= 0x10000
						b = appendEscape(b, 0xD800+r>>10)
						r = 0xDC00 + r&0x3FF
					}
					b = appendEscape(b, r)
					from = i + n
				}
				i += n
				continue
			}
			b = append(b, s[from:i]...)
			if p.ascii {
				b = append(b, `\ufffd`...)
			} else {
				b = append(b, "\uFFFD"...)
			}
			i++
			from = i
			continue
		}
		b = append(b, s[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\t':
			b = append(b, `\t`...)
		case '\r':
			b = append(b, `\r`...)
		case '\b':
			b = append(b, `\b`...)
		case '\f':
			b = append(b, `\f`...)
		default:
			b = appendEscape(b, rune(c))
		}
		i++
		from = i
	}
	b = append(b, s[from:]...)
	p.buf = append(b, '"')
}

func appendEscape(b []byte, r rune) []byte {
	return append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}

func appendNumber(b []byte, f float64) []byte {
	switch {
	case f != f:
		return append(b, "null"...)
	case math.IsInf(f, 0):
		f = math.Copysign(math.MaxFloat64, f)
	case f == math.Trunc(f) && math.Abs(f) < 1e15:
		if f == 0 && math.Signbit(f) {
			return append(b, "-0"...)
		}
		return strconv.AppendInt(b, int64(f), 10)
	}
	var tmp [32]byte
	e := strconv.AppendFloat(tmp[:0], f, 'e', -1, 64)
	// Digits and the place of the decimal point decide which notation is used.
	at := strings.IndexByte(string(e), 'e')
	exp, _ := strconv.Atoi(string(e[at+1:]))
	digits := 0
	for _, c := range e[:at] {
		if '0' <= c && c <= '9' {
			digits++
		}
	}
	if point := exp + 1; point <= -4 || point > digits+15 {
		return append(b, e...)
	}
	return strconv.AppendFloat(b, f, 'f', -1, 64)
}

// parseNumber reads a number of JSON. A literal comes of those that a float64 would show otherwise.
func parseNumber(s string) (any, bool) {
	if len(s) < 16 {
		n, i := 0, 0
		if s != "" && s[0] == '-' {
			i = 1
		}
		for j := i; j < len(s); j++ {
			if s[j] < '0' || s[j] > '9' {
				n = -1
				break
			}
			n = n*10 + int(s[j]-'0')
		}
		if n > 0 && s[i] != '0' || n == 0 && s == "0" {
			if i == 1 {
				n = -n
			}
			return float64(n), true
		}
	}
	if !numeral(s) {
		return nil, false
	}
	f, _ := strconv.ParseFloat(s, 64)
	if math.IsInf(f, 0) {
		return math.Copysign(math.MaxFloat64, f), true
	}
	if text := canonical(s); text != string(appendNumber(nil, f)) {
		return literal{f, text}, true
	}
	return f, true
}

// numeral reports whether s is a number, as the parser of jq reads them: 1. and .5 and 007 are.
func numeral(s string) bool {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		s = s[1:]
	}
	digits := func() int {
		n := 0
		for n < len(s) && '0' <= s[n] && s[n] <= '9' {
			n++
		}
		s = s[n:]
		return n
	}
	n := digits()
	if s != "" && s[0] == '.' {
		s = s[1:]
		n += digits()
	}
	if n == 0 {
		return false
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '-' || s[0] == '+') {
			s = s[1:]
		}
		if digits() == 0 {
			return false
		}
	}
	return s == ""
}

// canonical writes a decimal number as decimal arithmetic does: all its digits stay, and the notation is scientific where
// there are too few or too many of them.
func canonical(s string) string {
	sign := ""
	if s[0] == '-' || s[0] == '+' {
		if s[0] == '-' {
			sign = "-"
		}
		s = s[1:]
	}
	exp := 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		exp, _ = strconv.Atoi(s[i+1:])
		s = s[:i]
	}
	if i := strings.IndexByte(s, '.'); i >= 0 {
		exp -= len(s) - i - 1
		s = s[:i] + s[i+1:]
	}
	if s = strings.TrimLeft(s, "0"); s == "" {
		s = "0"
	}
	adjusted := exp + len(s) - 1
	switch {
	case exp > 0 || adjusted < -6:
		out := s[:1]
		if len(s) > 1 {
			out += "." + s[1:]
		}
		return sign + out + "E" + signed(adjusted)
	case exp == 0:
		return sign + s
	}
	point := len(s) + exp
	if point <= 0 {
		return sign + "0." + strings.Repeat("0", -point) + s
	}
	return sign + s[:point] + "." + s[point:]
}

func signed(n int) string {
	if n < 0 {
		return strconv.Itoa(n)
	}
	return "+" + strconv.Itoa(n)
}
