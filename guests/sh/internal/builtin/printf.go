package builtin

import (
	"context"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/exthost/exthost/guests/sh/internal/expand"
	"github.com/exthost/exthost/guests/sh/internal/vars"
)

func printf(_ context.Context, c *Context, args []string) (int, error) {
	variable := ""
	if len(args) > 0 && strings.HasPrefix(args[0], "-v") {
		if variable = args[0][2:]; variable == "" {
			if len(args) < 2 {
				c.errorf("printf", "-v: option requires an argument")
				return c.help("printf"), nil
			}
			variable, args = args[1], args[1:]
		}
		args = args[1:]
		base, _, _ := vars.SplitRef(variable)
		if !vars.ValidName(base) {
			c.errorf("printf", "`%s': not a valid identifier", variable)
			return 2, nil
		}
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	} else if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		return c.usage("printf", args[0][:2]), nil
	}
	if len(args) == 0 {
		return c.help("printf"), nil
	}
	f := &formatter{c: c, format: args[0], args: args[1:]}
	f.run()
	if variable == "" {
		return max(c.write("printf", f.out.String()), f.code), nil
	}
	if base, sub, has := vars.SplitRef(variable); has {
		s, err := c.Subscript(base, sub)
		if err != nil {
			return 1, err
		}
		variable = base + "[" + s + "]"
	}
	if err := c.Vars.Set(variable, f.out.String()); err != nil {
		if !recoverable(err) {
			return 1, err
		}
		c.errorf("", "%v", err)
		return 1, nil
	}
	return f.code, nil
}

// formatter runs a format over arguments, again while there are any left.
type formatter struct {
	c      *Context
	format string
	args   []string
	used   int // how many arguments this pass took
	out    strings.Builder
	code   int
	stop   bool // \c in an argument of %b, or a mistake in the format
}

func (f *formatter) fail(format string, args ...any) {
	f.c.errorf("printf", format, args...)
	f.code = 1
}

func (f *formatter) run() {
	for {
		f.used = 0
		f.pass()
		if f.stop || f.used == 0 || len(f.args) == 0 {
			return
		}
	}
}

func (f *formatter) arg() (string, bool) {
	f.used++
	if len(f.args) == 0 {
		return "", false
	}
	a := f.args[0]
	f.args = f.args[1:]
	return a, true
}

// conversion is one %... of the format.
type conversion struct {
	minus, plus, space, zero, alt, group bool
	width                                int
	prec                                 int // -1: none
	verb                                 byte
}

func (f *formatter) pass() {
	s := f.format
	for i := 0; i < len(s) && !f.stop; {
		switch s[i] {
		case '\\':
			j := i + 2
			if j > len(s) {
				f.out.WriteByte('\\')
				return
			}
			// Numbers take up to three octal or eight hexadecimal digits.
			switch c := s[i+1]; {
			case '0' <= c && c <= '7':
				for ; j < len(s) && j < i+4 && '0' <= s[j] && s[j] <= '7'; j++ {
				}
			case c == 'x' || c == 'u' || c == 'U':
				digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
				for ; j < len(s) && j < i+2+digits && isHex(s[j]); j++ {
				}
				if j == i+2 {
					f.c.errorf("printf", "missing %s digit for \\%c", map[bool]string{true: "hex", false: "unicode"}[c == 'x'], c)
				}
			case c == 'c':
				f.out.WriteString(`\c`)
				i = j
				continue
			}
			text, _ := expand.Escapes(s[i:j], expand.Ansi)
			f.out.WriteString(text)
			i = j
		case '%':
			i = f.convert(s, i+1)
		default:
			n := strings.IndexAny(s[i:], `\%`)
			if n < 0 {
				n = len(s) - i
			}
			f.out.WriteString(s[i : i+n])
			i += n
		}
	}
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// convert takes the conversion that begins behind the percent sign at i, and returns where it ends.
func (f *formatter) convert(s string, i int) int {
	if i < len(s) && s[i] == '%' {
		f.out.WriteByte('%')
		return i + 1
	}
	v := conversion{prec: -1}
flags:
	for ; i < len(s); i++ {
		switch s[i] {
		case '-':
			v.minus = true
		case '+':
			v.plus = true
		case ' ':
			v.space = true
		case '0':
			v.zero = true
		case '#':
			v.alt = true
		case '\'':
			v.group = true // thousands: the C locale has no sign for them
		default:
			break flags
		}
	}
	number := func() int {
		if i < len(s) && s[i] == '*' {
			i++
			a, ok := f.arg()
			if !ok {
				return 0
			}
			return int(f.integer(a, false))
		}
		n := 0
		for ; i < len(s) && '0' <= s[i] && s[i] <= '9'; i++ {
			if n < 1<<27 {
				n = n*10 + int(s[i]-'0')
			}
		}
		return n
	}
	if v.width = number(); v.width < 0 {
		v.minus, v.width = true, -v.width
	}
	if i < len(s) && s[i] == '.' {
		i++
		v.prec = max(-1, number())
	}
	if i < len(s) && s[i] == '(' {
		if end := strings.Index(s[i:], ")T"); end >= 0 {
			f.pad(v, f.date(s[i+1:i+end], v.prec))
			return i + end + 2
		}
		f.fail("`(': invalid format character")
		f.stop = true
		return i
	}
	for i < len(s) && strings.IndexByte("hlLjzt", s[i]) >= 0 {
		i++
	}
	if i == len(s) {
		f.fail("`%s': missing format character", s[strings.LastIndexByte(s, '%'):])
		f.stop = true
		return i
	}
	v.verb = s[i]
	i++
	switch v.verb {
	case 's':
		a, _ := f.arg()
		f.text(v, a)
	case 'c':
		a, _ := f.arg()
		if a == "" {
			a = "\x00"
		}
		f.pad(v, a[:1])
	case 'b':
		a, _ := f.arg()
		text, ended := expand.Escapes(a, expand.Percent)
		f.text(v, text)
		f.stop = ended
	case 'q', 'Q':
		a, _ := f.arg()
		if v.verb == 'Q' && v.prec >= 0 {
			a, v.prec = a[:min(v.prec, len(a))], -1
		}
		f.text(v, expand.Backslash(a))
	case 'd', 'i', 'o', 'u', 'x', 'X':
		a, _ := f.arg()
		f.pad(v, v.integer(f.integer(a, strings.IndexByte("ouxX", v.verb) >= 0)))
	case 'e', 'E', 'f', 'F', 'g', 'G', 'a', 'A':
		a, _ := f.arg()
		f.pad(v, v.float(f.float(a)))
	case 'n':
		a, ok := f.arg()
		if ok && vars.ValidName(a) {
			_ = f.c.Vars.Set(a, strconv.Itoa(f.out.Len()))
		}
	default:
		f.fail("`%c': invalid format character", v.verb)
		f.stop = true
	}
	return i
}

// text pads a string, cut at the precision, both in bytes.
func (f *formatter) text(v conversion, s string) {
	if v.prec >= 0 && v.prec < len(s) {
		s = s[:v.prec]
	}
	f.pad(v, s)
}

func (f *formatter) pad(v conversion, s string) {
	n := v.width - len(s)
	if n > 0 && !v.minus {
		f.out.WriteString(strings.Repeat(" ", n))
	}
	f.out.WriteString(s)
	if n > 0 && v.minus {
		f.out.WriteString(strings.Repeat(" ", n))
	}
}

// zeros fills a number up to the width, behind its sign and 0x.
func (v conversion) zeros(prefix, digits string) string {
	if n := v.width - len(prefix) - len(digits); v.zero && !v.minus && n > 0 {
		digits = strings.Repeat("0", n) + digits
	}
	return prefix + digits
}

func (v conversion) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case v.plus:
		return "+"
	case v.space:
		return " "
	}
	return ""
}

func (v conversion) integer(n int64) string {
	var prefix, digits string
	switch v.verb {
	case 'd', 'i':
		prefix = v.sign(n < 0)
		u := uint64(n)
		if n < 0 {
			u = -u
		}
		digits = strconv.FormatUint(u, 10)
	case 'u':
		digits = strconv.FormatUint(uint64(n), 10)
	case 'o':
		digits = strconv.FormatUint(uint64(n), 8)
		if v.alt && digits[0] != '0' {
			digits = "0" + digits
		}
	default:
		digits = strconv.FormatUint(uint64(n), 16)
		if v.alt && n != 0 {
			prefix = "0x"
		}
		if v.verb == 'X' {
			prefix, digits = strings.ToUpper(prefix), strings.ToUpper(digits)
		}
	}
	if v.prec >= 0 {
		v.zero = false
		if n == 0 && v.prec == 0 {
			digits = ""
			if v.verb == 'o' && v.alt {
				digits = "0"
			}
		}
		if len(digits) < v.prec {
			digits = strings.Repeat("0", v.prec-len(digits)) + digits
		}
	}
	return v.zeros(prefix, digits)
}

// character is the value of 'c: of the character behind a quote.
func character(s string) (int64, bool) {
	if s == "" || s[0] != '\'' && s[0] != '"' {
		return 0, false
	}
	if len(s) == 1 {
		return 0, true
	}
	r, n := utf8.DecodeRuneInString(s[1:])
	if r == utf8.RuneError && n == 1 {
		return int64(int8(s[1])), true
	}
	return int64(r), true
}

// integer reads a number as C's strtoimax does, or strtoumax; what is wrong is reported, and what could be read is the
// number.
func (f *formatter) integer(s string, unsigned bool) int64 {
	if n, ok := character(s); ok || s == "" {
		return n
	}
	t := strings.TrimLeft(s, " \t\n\v\f\r")
	neg := false
	if t != "" && (t[0] == '-' || t[0] == '+') {
		neg = t[0] == '-'
		t = t[1:]
	}
	base := uint64(10)
	kind := "number"
	switch {
	case len(t) > 1 && t[0] == '0' && (t[1] == 'x' || t[1] == 'X'):
		base, kind = 16, "hex number"
		t = t[2:]
	case len(t) > 1 && t[0] == '0' && '0' <= t[1] && t[1] <= '9':
		base, kind = 8, "octal number"
	}
	n := uint64(0)
	over := false
	i := 0
	for ; i < len(t); i++ {
		d := uint64(99)
		switch c := t[i] | 0x20; {
		case '0' <= t[i] && t[i] <= '9':
			d = uint64(t[i] - '0')
		case 'a' <= c && c <= 'f':
			d = uint64(c-'a') + 10
		}
		if d >= base {
			break
		}
		over = over || n > (math.MaxUint64-d)/base
		n = n*base + d
	}
	limit := uint64(math.MaxInt64)
	switch {
	case unsigned:
		limit = math.MaxUint64
	case neg:
		limit++
	}
	if i < len(t) || i == 0 {
		f.fail("%s: invalid %s", s, kind)
	} else if over || n > limit {
		f.c.errorf("printf", "warning: %s: Numerical result out of range", s)
	}
	switch {
	case over && unsigned:
		return -1
	case (over || n > limit) && neg:
		return math.MinInt64
	case over || n > limit:
		return math.MaxInt64
	case neg:
		return -int64(n)
	}
	return int64(n)
}

// number is a floating point number with the 64 bits of precision that bash's has, which its digits show.
type number struct {
	f        *big.Float
	nan, neg bool
}

func (f *formatter) float(s string) number {
	if n, ok := character(s); ok || s == "" {
		return number{f: new(big.Float).SetPrec(64).SetInt64(n)}
	}
	t := strings.TrimLeft(s, " \t\n\v\f\r")
	i := 0
	if i < len(t) && (t[i] == '+' || t[i] == '-') {
		i++
	}
	neg := strings.HasPrefix(t, "-")
	word := strings.ToLower(t[i:])
	switch {
	case strings.HasPrefix(word, "inf"):
		n := 3
		if strings.HasPrefix(word, "infinity") {
			n = 8
		}
		if len(word) > n {
			f.fail("%s: invalid number", s)
		}
		return number{f: new(big.Float).SetInf(neg)}
	case strings.HasPrefix(word, "nan"):
		if len(word) > 3 {
			f.fail("%s: invalid number", s)
		}
		return number{nan: true, neg: neg, f: new(big.Float)}
	}
	digits := func(hex bool) int {
		from := i
		for i < len(t) && ('0' <= t[i] && t[i] <= '9' || hex && isHex(t[i])) {
			i++
		}
		return i - from
	}
	hex := strings.HasPrefix(word, "0x") && len(word) > 2 && (isHex(word[2]) || word[2] == '.')
	if hex {
		i += 2
	}
	found := digits(hex)
	if i < len(t) && t[i] == '.' {
		i++
		found += digits(hex)
	}
	if found == 0 {
		f.fail("%s: invalid number", s)
		return number{f: new(big.Float).SetPrec(64)}
	}
	if i < len(t) && (hex && t[i]|0x20 == 'p' || !hex && t[i]|0x20 == 'e') {
		mark := i
		i++
		if i < len(t) && (t[i] == '+' || t[i] == '-') {
			i++
		}
		if digits(false) == 0 {
			i = mark
		}
	}
	if i < len(t) {
		f.fail("%s: invalid number", s)
	}
	text := t[:i]
	if hex && !strings.ContainsAny(text, "pP") {
		text += "p0"
	}
	n, _, err := big.ParseFloat(text, 0, 64, big.ToNearestEven)
	if !hex {
		n, _, err = big.ParseFloat(text, 10, 64, big.ToNearestEven)
	}
	if err != nil || n == nil {
		n = new(big.Float).SetPrec(64)
	}
	// Beyond the exponents of a long double a number is infinite, or nothing.
	if e := n.MantExp(nil); e > 16384 {
		f.c.errorf("printf", "warning: %s: Numerical result out of range", s)
		n = new(big.Float).SetInf(neg)
	} else if n.Sign() != 0 && e < -16445 {
		f.c.errorf("printf", "warning: %s: Numerical result out of range", s)
		n = new(big.Float).SetPrec(64)
	}
	return number{f: n}
}

func (v conversion) float(n number) string {
	verb := v.verb | 0x20
	var prefix, digits string
	switch {
	case n.nan || n.f.IsInf():
		v.zero = false
		prefix = v.sign(n.neg || n.f.Signbit())
		digits = "inf"
		if n.nan {
			digits = "nan"
		}
	case verb == 'a':
		prefix = v.sign(n.f.Signbit()) + "0x"
		digits = v.hexFloat(n.f)
	default:
		prefix = v.sign(n.f.Signbit())
		prec := v.prec
		if prec < 0 {
			prec = 6
		}
		abs := new(big.Float).Abs(n.f)
		if verb == 'g' {
			digits = v.general(abs, max(1, prec))
		} else {
			digits = abs.Text(verb, prec)
			if v.alt && prec == 0 {
				digits = point(digits)
			}
		}
	}
	out := v.zeros(prefix, digits)
	if v.verb < 'a' {
		out = strings.ToUpper(out)
	}
	return out
}

// point adds the point that # keeps to digits without one.
func point(digits string) string {
	if i := strings.IndexByte(digits, 'e'); i >= 0 {
		return digits[:i] + "." + digits[i:]
	}
	return digits + "."
}

// general is %g: the shorter of %e and %f, without zeros at the end unless # keeps them.
func (v conversion) general(f *big.Float, prec int) string {
	exp := 0
	mantissa := f.Text('e', prec-1)
	if i := strings.IndexByte(mantissa, 'e'); i >= 0 {
		exp, _ = strconv.Atoi(mantissa[i+1:])
	}
	tail := ""
	if exp < -4 || exp >= prec {
		i := strings.IndexByte(mantissa, 'e')
		mantissa, tail = mantissa[:i], mantissa[i:]
	} else {
		mantissa = f.Text('f', prec-1-exp)
	}
	if v.alt {
		if strings.IndexByte(mantissa, '.') < 0 {
			mantissa += "."
		}
	} else if strings.IndexByte(mantissa, '.') >= 0 {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	return mantissa + tail
}

// hexFloat is %a as for a long double on x86: the digit before the point holds four bits.
func (v conversion) hexFloat(f *big.Float) string {
	if f.Sign() == 0 {
		s := "0"
		if v.prec > 0 {
			s += "." + strings.Repeat("0", v.prec)
		} else if v.alt {
			s += "."
		}
		return s + "p+0"
	}
	exp := f.MantExp(nil)
	m, _ := new(big.Float).SetMantExp(new(big.Float).Abs(f), 64-exp).Uint64() // the 64 bits of the mantissa
	exp -= 4
	if v.prec >= 0 && v.prec < 15 {
		shift := uint(4 * (15 - v.prec))
		half := uint64(1) << (shift - 1)
		low := m & (1<<shift - 1)
		m >>= shift
		if low > half || low == half && m&1 != 0 {
			m++
		}
		if m>>(4*uint(v.prec)) > 0xf {
			m >>= 1
			exp++
		}
		m <<= shift
	}
	digits := strconv.FormatUint(m, 16)
	frac := digits[1:]
	switch {
	case v.prec < 0:
		frac = strings.TrimRight(frac, "0")
	case v.prec < len(frac):
		frac = frac[:v.prec]
	default:
		frac += strings.Repeat("0", v.prec-len(frac))
	}
	if frac != "" || v.alt {
		frac = "." + frac
	}
	sign := "+"
	if exp < 0 {
		sign, exp = "-", -exp
	}
	return digits[:1] + frac + "p" + sign + strconv.Itoa(exp)
}

// date is %(FORMAT)T: the argument is seconds since 1970, -1 now, -2 when the shell started.
func (f *formatter) date(format string, prec int) string {
	a, ok := f.arg()
	n := int64(-1)
	if ok {
		n = f.integer(a, false)
	}
	var t time.Time
	switch n {
	case -1:
		t = time.Now()
	case -2:
		t = f.c.Sh.Started()
	default:
		t = time.Unix(n, 0)
	}
	if format == "" {
		format = "%X"
	}
	text := strftime(format, t.In(f.c.zone()))
	if prec >= 0 && prec < len(text) {
		text = text[:prec]
	}
	return text
}

// zone is the time zone that TZ names.
func (c *Context) zone() *time.Location {
	v, ok := c.Vars.Get("TZ")
	if !ok {
		return time.Local
	}
	name := strings.TrimPrefix(v.Str, ":")
	if name == "" {
		return time.UTC
	}
	if loc, err := time.LoadLocation(name); err == nil {
		return loc
	}
	return time.UTC
}
