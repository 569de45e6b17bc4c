package awk

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/itchyny/timefmt-go"

	"github.com/exthost/exthost/guests/sh/internal/regex"
)

// builtins are the names of functions: false for those that awk has always had, true for gawk's, which a program may
// define itself.
var builtins = map[string]bool{
	"length": false, "substr": false, "index": false, "split": false, "sub": false, "gsub": false, "match": false,
	"sprintf": false, "sin": false, "cos": false, "atan2": false, "exp": false, "log": false, "sqrt": false, "int": false,
	"rand": false, "srand": false, "tolower": false, "toupper": false, "system": false, "close": false, "fflush": false,
	"gensub": true, "strftime": true, "systime": true, "mktime": true, "asort": true, "asorti": true, "strtonum": true,
	"and": true, "or": true, "xor": true, "lshift": true, "rshift": true, "compl": true, "patsplit": true,
	"isarray": true, "typeof": true,
}

func (p *parser) builtin() node {
	name := p.text
	p.next()
	if name == "length" && !p.is("(") {
		return numeric(func(it *interp) float64 { return float64(it.len(it.record0())) })
	}
	args := p.arguments()
	need := func(low, high int) {
		if len(args) < low || len(args) > high {
			p.fail("wrong number of arguments in call to %s", name)
		}
	}
	arg := func(it *interp, i int) string { return it.str(args[i].eval(it)) }
	f := func(it *interp, i int) float64 { return args[i].num(it) }
	arrayArg := func(i int) func(*interp) *array {
		c := args[i].cell
		if c == nil {
			p.fail("syntax error at or near %s: argument %d has to be an array", name, i+1)
		}
		return func(it *interp) *array { return c(it).array() }
	}
	text := func(g func(it *interp) string) node {
		return node{eval: func(it *interp) value { return str(g(it)) }}
	}
	math1 := func(g func(float64) float64) node {
		need(1, 1)
		return numeric(func(it *interp) float64 { return g(f(it, 0)) })
	}
	bits := func(g func(a, b uint64) uint64) node {
		need(2, 99)
		return numeric(func(it *interp) float64 {
			v := uint64(f(it, 0))
			for i := 1; i < len(args); i++ {
				v = g(v, uint64(f(it, i)))
			}
			return float64(v)
		})
	}
	switch name {
	case "length":
		need(0, 1)
		if len(args) == 0 {
			return numeric(func(it *interp) float64 { return float64(it.len(it.record0())) })
		}
		if c := args[0].cell; c != nil {
			return numeric(func(it *interp) float64 {
				x := c(it)
				for x.arr == nil && x.up != nil {
					x = x.up
				}
				if x.arr != nil {
					return float64(x.arr.len())
				}
				return float64(it.len(it.str(x.v)))
			})
		}
		return numeric(func(it *interp) float64 { return float64(it.len(arg(it, 0))) })
	case "substr":
		need(2, 3)
		return text(func(it *interp) string {
			s := arg(it, 0)
			from := f(it, 1)
			length := math.Inf(1)
			if len(args) > 2 {
				length = f(it, 2)
			}
			return it.substr(s, from, length)
		})
	case "index":
		need(2, 2)
		return numeric(func(it *interp) float64 {
			s := arg(it, 0)
			i := strings.Index(s, arg(it, 1))
			if i < 0 {
				return 0
			}
			return float64(it.len(s[:i]) + 1)
		})
	case "split":
		need(2, 4)
		arr := arrayArg(1)
		var seps func(*interp) *array
		if len(args) > 3 {
			seps = arrayArg(3)
		}
		return numeric(func(it *interp) float64 {
			s := arg(it, 0)
			sp := it.splitter
			sp.para = false
			if len(args) > 2 {
				if re := args[2].re; re != nil {
					sp = splitter{re: it.literal(re)}
				} else {
					sp = it.newSplitter(arg(it, 2), false)
				}
			}
			var parts []string
			sp.split(it, s, func(x string) { parts = append(parts, strings.Clone(x)) })
			if seps != nil {
				a := seps(it)
				a.clear()
				at := 0
				for i, x := range parts {
					next := strings.Index(s[at:], x) + at
					if i > 0 {
						a.set(strconv.Itoa(i), str(s[at:next]))
					}
					at = next + len(x)
				}
			}
			a := arr(it)
			a.clear()
			for i, x := range parts {
				a.set(strconv.Itoa(i+1), given(x))
			}
			return float64(len(parts))
		})
	case "sub", "gsub":
		need(2, 3)
		re := p.dynamic(args[0])
		target := node{
			eval:   func(it *interp) value { return it.field(0) },
			assign: func(it *interp, v value) { it.setField(0, v) },
		}
		if len(args) > 2 {
			target = args[2]
		}
		global := name == "gsub"
		return numeric(func(it *interp) float64 {
			r := re(it)
			repl := arg(it, 1)
			get, set := func() value { return target.eval(it) }, func(v value) {}
			if target.place != nil {
				get, set = target.place(it)
			} else if target.assign != nil {
				set = func(v value) { target.assign(it, v) }
			}
			out, n := it.substitute(r, it.str(get()), repl, global)
			if n > 0 {
				set(str(out))
			}
			return float64(n)
		})
	case "gensub":
		need(3, 4)
		re := p.dynamic(args[0])
		return text(func(it *interp) string {
			r := re(it)
			repl := arg(it, 1)
			how := arg(it, 2)
			s := it.record0()
			if len(args) > 3 {
				s = arg(it, 3)
			}
			return it.gensub(r, s, repl, how)
		})
	case "match":
		need(2, 3)
		re := p.dynamic(args[1])
		var arr func(*interp) *array
		if len(args) > 2 {
			arr = arrayArg(2)
		}
		return numeric(func(it *interp) float64 {
			s := arg(it, 0)
			m := re(it).FindIndex(it.ctx, []byte(s), 0)
			it.rstart, it.rlength = 0, -1
			if m != nil {
				it.rstart, it.rlength = float64(it.len(s[:m[0]])+1), float64(it.len(s[m[0]:m[1]]))
			}
			if arr != nil {
				a := arr(it)
				a.clear()
				for i := 0; i+1 < len(m); i += 2 {
					if m[i] < 0 {
						continue
					}
					key := strconv.Itoa(i / 2)
					a.set(key, given(s[m[i]:m[i+1]]))
					a.set(key+it.subsep+"start", num(float64(it.len(s[:m[i]])+1)))
					a.set(key+it.subsep+"length", num(float64(it.len(s[m[i]:m[i+1]]))))
				}
			}
			return it.rstart
		})
	case "sprintf":
		need(1, 999)
		return text(func(it *interp) string {
			format := arg(it, 0)
			values := make([]value, len(args)-1)
			for i := range values {
				values[i] = args[i+1].eval(it)
			}
			return it.sprintf(format, values)
		})
	case "sin":
		return math1(math.Sin)
	case "cos":
		return math1(math.Cos)
	case "exp":
		return math1(math.Exp)
	case "log":
		return math1(func(f float64) float64 {
			if f < 0 {
				return math.Copysign(math.NaN(), -1)
			}
			return math.Log(f)
		})
	case "sqrt":
		return math1(func(f float64) float64 {
			if f < 0 {
				return math.Copysign(math.NaN(), -1)
			}
			return math.Sqrt(f)
		})
	case "int":
		return math1(math.Trunc)
	case "atan2":
		need(2, 2)
		return numeric(func(it *interp) float64 { return math.Atan2(f(it, 0), f(it, 1)) })
	case "rand":
		need(0, 0)
		return numeric(func(it *interp) float64 {
			// splitmix64
			it.rng += 0x9E3779B97F4A7C15
			z := it.rng
			z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
			z = (z ^ z>>27) * 0x94D049BB133111EB
			z ^= z >> 31
			return float64(z>>11) / (1 << 53)
		})
	case "srand":
		need(0, 1)
		return numeric(func(it *interp) float64 {
			old := it.seed
			if len(args) > 0 {
				it.seed = f(it, 0)
			} else {
				it.seed = float64(time.Now().Unix())
			}
			it.rng = math.Float64bits(it.seed)
			return old
		})
	case "tolower", "toupper":
		need(1, 1)
		upper := name == "toupper"
		return text(func(it *interp) string { return it.mapCase(arg(it, 0), upper) })
	case "system":
		need(1, 1)
		return numeric(func(it *interp) float64 { return it.system(arg(it, 0)) })
	case "close":
		need(1, 2)
		return numeric(func(it *interp) float64 { return it.close(arg(it, 0)) })
	case "fflush":
		need(0, 1)
		return numeric(func(it *interp) float64 {
			it.flush()
			return 0
		})
	case "systime":
		need(0, 0)
		return numeric(func(*interp) float64 { return float64(time.Now().Unix()) })
	case "strftime":
		need(0, 3)
		return text(func(it *interp) string {
			format := "%a %b %e %H:%M:%S %Z %Y"
			when := time.Now()
			if len(args) > 0 {
				format = arg(it, 0)
			}
			if len(args) > 1 {
				when = time.Unix(int64(f(it, 1)), 0)
			}
			if len(args) > 2 && it.bool(args[2].eval(it)) {
				return timefmt.Format(when.UTC(), format)
			}
			return timefmt.Format(when.In(it.zone()), format)
		})
	case "mktime":
		need(1, 2)
		return numeric(func(it *interp) float64 {
			var n [6]int
			parts := strings.Fields(arg(it, 0))
			if len(parts) < 6 {
				return -1
			}
			for i := range n {
				v, _ := it.parse(parts[i])
				n[i] = int(v)
			}
			zone := it.zone()
			if len(args) > 1 && it.bool(args[1].eval(it)) {
				zone = time.UTC
			}
			return float64(time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], 0, zone).Unix())
		})
	case "asort", "asorti":
		need(1, 3)
		src := arrayArg(0)
		dest := src
		if len(args) > 1 {
			dest = arrayArg(1)
		}
		return numeric(func(it *interp) float64 {
			a := src(it)
			how := "@val_type_asc"
			if name == "asorti" {
				how = "@ind_str_asc"
			}
			if len(args) > 2 {
				how = arg(it, 2)
			}
			keys := it.sort(a, how)
			values := make([]value, len(keys))
			for i, k := range keys {
				values[i] = str(k)
				if name == "asort" {
					values[i] = a.at(k).v
				}
			}
			d := dest(it)
			d.clear()
			for i, v := range values {
				d.set(strconv.Itoa(i+1), v)
			}
			return float64(len(values))
		})
	case "strtonum":
		need(1, 1)
		return numeric(func(it *interp) float64 {
			v := args[0].eval(it)
			if v.kind == number {
				return v.n
			}
			s := strings.TrimSpace(v.s)
			if len(s) > 1 && s[0] == '0' {
				if n, err := strconv.ParseUint(s, 0, 64); err == nil {
					return float64(n)
				}
			}
			return it.num(v)
		})
	case "and":
		return bits(func(a, b uint64) uint64 { return a & b })
	case "or":
		return bits(func(a, b uint64) uint64 { return a | b })
	case "xor":
		return bits(func(a, b uint64) uint64 { return a ^ b })
	case "lshift":
		return bits(func(a, b uint64) uint64 { return a << b })
	case "rshift":
		return bits(func(a, b uint64) uint64 { return a >> b })
	case "compl":
		need(1, 1)
		return numeric(func(it *interp) float64 { return float64(^uint64(f(it, 0)) & (1<<53 - 1)) })
	case "patsplit":
		need(2, 3)
		arr := arrayArg(1)
		re := func(it *interp) *regex.Regexp { return it.regexp("[^[:space:]]+") }
		if len(args) > 2 {
			re = p.dynamic(args[2])
		}
		return numeric(func(it *interp) float64 {
			s := []byte(arg(it, 0))
			r := re(it)
			a := arr(it)
			a.clear()
			n := 0
			for from := 0; from <= len(s); {
				m := r.FindIndex(it.ctx, s, from)
				if m == nil {
					break
				}
				if from = m[1]; m[0] == m[1] {
					from++
					continue
				}
				n++
				a.set(strconv.Itoa(n), given(string(s[m[0]:m[1]])))
			}
			return float64(n)
		})
	case "isarray", "typeof":
		need(1, 1)
		what := func(it *interp) string {
			if c := args[0].cell; c != nil {
				x := c(it)
				for x.arr == nil && x.up != nil {
					x = x.up
				}
				if x.arr != nil {
					return "array"
				}
			}
			v := args[0].eval(it)
			switch v.kind {
			case uninit:
				return "untyped"
			case number:
				return "number"
			case input:
				if _, ok := it.parse(v.s); ok {
					return "strnum"
				}
			}
			return "string"
		}
		if name == "typeof" {
			return text(what)
		}
		return logical(func(it *interp) bool { return what(it) == "array" })
	}
	panic("no such function " + name)
}

func (it *interp) len(s string) int {
	if it.gawk {
		return utf8.RuneCountInString(s)
	}
	return len(s)
}

func (it *interp) mapCase(s string, upper bool) string {
	if it.gawk {
		if upper {
			return strings.ToUpper(s)
		}
		return strings.ToLower(s)
	}
	b := []byte(s)
	for i, c := range b {
		switch {
		case upper && 'a' <= c && c <= 'z':
			b[i] = c - 32
		case !upper && 'A' <= c && c <= 'Z':
			b[i] = c + 32
		}
	}
	return string(b)
}

// substr takes length characters from the one numbered from. Where mawk and gawk differ, each has its way: mawk cuts
// fractions off, and counts a start below 1 to the length instead of against it.
func (it *interp) substr(s string, from, length float64) string {
	if math.IsNaN(from) || math.IsNaN(length) {
		return ""
	}
	n := float64(it.len(s))
	if it.gawk {
		end := n + 1
		if !math.IsInf(length, 1) {
			end = math.RoundToEven(from) + math.RoundToEven(length)
		}
		from = math.RoundToEven(from)
		length = end - max(from, 1)
		from = max(from, 1)
	} else {
		from = math.Trunc(from)
		length = math.Trunc(length)
		if from < 1 {
			length -= from
			from = 1
		}
	}
	end := min(from+length, n+1)
	if from > n || end <= from {
		return ""
	}
	if !it.gawk {
		return s[int(from)-1 : int(end)-1]
	}
	i, j, k := 0, len(s), 1
	for at := range s {
		if k == int(from) {
			i = at
		}
		if k == int(end) {
			j = at
			break
		}
		k++
	}
	return s[i:j]
}

// substitute replaces the first match or all; in repl, & is the match and \& an ampersand.
func (it *interp) substitute(re *regex.Regexp, s, repl string, global bool) (string, int) {
	b := []byte(s)
	type piece struct {
		text  string
		match bool
	}
	var pieces []piece
	var lit strings.Builder
	for i := 0; i < len(repl); i++ {
		switch {
		case repl[i] == '&':
			pieces = append(pieces, piece{text: lit.String()}, piece{match: true})
			lit.Reset()
		case repl[i] == '\\' && i+1 < len(repl) && (repl[i+1] == '&' || repl[i+1] == '\\'):
			i++
			lit.WriteByte(repl[i])
		default:
			lit.WriteByte(repl[i])
		}
	}
	pieces = append(pieces, piece{text: lit.String()})
	return it.replace(re, b, func(out *strings.Builder, m []int, n int) bool {
		for _, p := range pieces {
			if p.match {
				out.Write(b[m[0]:m[1]])
			} else {
				out.WriteString(p.text)
			}
		}
		return global
	})
}

// replace walks over the matches in b. f writes what takes the place of the nth, and says whether to go on.
func (it *interp) replace(re *regex.Regexp, b []byte, f func(out *strings.Builder, m []int, n int) bool) (string, int) {
	var out strings.Builder
	count := 0
	at, start := 0, 0 // copied up to, look from
	prev := -1
	for start <= len(b) {
		m := re.FindIndex(it.ctx, b, start)
		if m == nil {
			break
		}
		if m[0] == m[1] && m[0] == prev {
			start = m[1] + it.width(b, m[1])
			prev = -1
			continue
		}
		count++
		out.Write(b[at:m[0]])
		more := f(&out, m, count)
		at, prev = m[1], m[1]
		start = m[1]
		if m[0] == m[1] {
			start += it.width(b, m[1])
			prev = -1
		}
		if !more {
			break
		}
	}
	if count == 0 {
		return string(b), 0
	}
	out.Write(b[at:])
	return out.String(), count
}

func (it *interp) width(b []byte, at int) int {
	if !it.gawk || at >= len(b) {
		return 1
	}
	_, n := utf8.DecodeRune(b[at:])
	return n
}

func (it *interp) gensub(re *regex.Regexp, s, repl, how string) string {
	b := []byte(s)
	all := how != "" && (how[0] == 'g' || how[0] == 'G')
	nth := 1
	if !all {
		f, _ := it.parse(how)
		nth = max(int(f), 1)
	}
	out, _ := it.replace(re, b, func(out *strings.Builder, m []int, n int) bool {
		if !all && n != nth {
			out.Write(b[m[0]:m[1]])
			return n < nth
		}
		for i := 0; i < len(repl); i++ {
			switch {
			case repl[i] == '&':
				out.Write(b[m[0]:m[1]])
			case repl[i] == '\\' && i+1 < len(repl):
				i++
				g := int(repl[i] - '0')
				switch {
				case isDigit(repl[i]):
					if 2*g+1 < len(m) && m[2*g] >= 0 {
						out.Write(b[m[2*g]:m[2*g+1]])
					}
				default:
					out.WriteByte(repl[i])
				}
			default:
				out.WriteByte(repl[i])
			}
		}
		return all
	})
	return out
}

// sprintf formats as C does.
func (it *interp) sprintf(format string, args []value) string {
	var b strings.Builder
	next := 0
	arg := func() value {
		if next >= len(args) {
			if it.gawk {
				it.fail("fatal: not enough arguments to satisfy format string\n\t`%s'", format)
			}
			it.fail("run time error: not enough arguments passed to sprintf(%q)", format)
		}
		next++
		return args[next-1]
	}
	for i := 0; i < len(format); {
		c := format[i]
		if c != '%' {
			j := strings.IndexByte(format[i:], '%')
			if j < 0 {
				j = len(format) - i
			}
			b.WriteString(format[i : i+j])
			i += j
			continue
		}
		start := i
		i++
		var flags []byte
		for i < len(format) && strings.IndexByte("-+ #0'", format[i]) >= 0 {
			if format[i] != '\'' {
				flags = append(flags, format[i])
			}
			i++
		}
		number := func() (int, bool) {
			if i < len(format) && format[i] == '*' {
				i++
				return int(it.num(arg())), true
			}
			n, from := 0, i
			for i < len(format) && isDigit(format[i]) {
				n = min(n*10+int(format[i]-'0'), 1<<20)
				i++
			}
			return n, i > from
		}
		width, _ := number()
		if width < 0 {
			flags, width = append(flags, '-'), -width
		}
		prec, hasPrec := 0, false
		if i < len(format) && format[i] == '.' {
			i++
			prec, _ = number()
			hasPrec = prec >= 0
		}
		for i < len(format) && strings.IndexByte("hlLqjzt", format[i]) >= 0 {
			i++
		}
		if i >= len(format) {
			b.WriteString(format[start:])
			break
		}
		verb := format[i]
		i++
		left := slices.Contains(flags, '-')
		pad := func(s string, n int) {
			fill := strings.Repeat(" ", max(width-n, 0))
			if left {
				b.WriteString(s + fill)
			} else {
				b.WriteString(fill + s)
			}
		}
		spec := func() string {
			s := "%" + string(flags)
			if width > 0 {
				s += strconv.Itoa(width)
			}
			if hasPrec {
				s += "." + strconv.Itoa(prec)
			}
			return s
		}
		switch verb {
		case '%':
			b.WriteByte('%')
		case 'c':
			v := arg()
			s := v.s
			if f, ok := it.numeric(v); ok && v.kind != uninit {
				if it.gawk && f >= 128 && f <= unicode.MaxRune {
					s = string(rune(f))
				} else {
					s = string([]byte{byte(int64(f))})
				}
			} else if s != "" {
				n := 1
				if it.gawk {
					_, n = utf8.DecodeRuneInString(s)
				}
				s = s[:n]
			}
			pad(s, it.len(s))
		case 's':
			s := it.str(arg())
			if hasPrec {
				s = it.substr(s, 1, float64(prec))
			}
			pad(s, it.len(s))
		case 'd', 'i', 'o', 'x', 'X', 'u':
			f := it.num(arg())
			if math.IsNaN(f) || math.IsInf(f, 0) {
				pad(notFinite(f), len(notFinite(f)))
				break
			}
			f = math.Trunc(f)
			switch {
			case verb == 'd' || verb == 'i':
				if math.Abs(f) < 1<<63 {
					if hasPrec { // which leaves no room for zeros of the width
						flags = slices.DeleteFunc(flags, func(c byte) bool { return c == '0' })
					}
					fmt.Fprintf(&b, spec()+"d", int64(f))
				} else {
					s := strconv.FormatFloat(f, 'f', 0, 64)
					pad(s, len(s))
				}
			case f < 0:
				fmt.Fprintf(&b, spec()+unsigned(verb), uint64(int64(f)))
			default:
				if f >= 1<<64 {
					s := strconv.FormatFloat(f, 'f', 0, 64)
					pad(s, len(s))
					break
				}
				fmt.Fprintf(&b, spec()+unsigned(verb), uint64(f))
			}
		case 'e', 'E', 'f', 'F', 'g', 'G', 'a', 'A':
			f := it.num(arg())
			if math.IsNaN(f) || math.IsInf(f, 0) {
				pad(notFinite(f), len(notFinite(f)))
				break
			}
			switch verb {
			case 'a':
				verb = 'x'
			case 'A':
				verb = 'X'
			}
			if !hasPrec && verb != 'x' && verb != 'X' {
				prec, hasPrec = 6, true
			}
			if (verb == 'g' || verb == 'G') && prec == 0 {
				prec = 1
			}
			fmt.Fprintf(&b, spec()+string(verb), f)
		default:
			b.WriteString(format[start:i])
		}
	}
	return b.String()
}

func unsigned(verb byte) string {
	if verb == 'u' {
		return "d"
	}
	return string(verb)
}
