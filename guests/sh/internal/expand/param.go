package expand

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/exthost/exthost/guests/sh/internal/vars"
	"mvdan.cc/sh/v3/syntax"
)

// value is what a parameter stands for.
type value struct {
	name string // as messages name it: x, a[1], 1
	set  bool
	s    string
	list bool // $@, $*, ${a[@]}, ${a[*]}: vals
	star bool
	vals []string
	// Where a list is assigned bash joins "$@" with blanks, but with IFS what an operator made of it: outside
	// of quotes only some operators.
	changed, joined bool

	bad  bool     // the subscript is before the first element
	v    vars.Var // the variable, of a named one
	base string   // its name
	sub  string   // the subscript of an element, evaluated
}

func (x *expansion) param(pe *syntax.ParamExp, q quoting) error {
	name := pe.Param.Value
	if pe.Short && pe.Index == nil || simple(pe) {
		if v, err := x.lookup(name, nil); err != nil {
			return err
		} else if !v.set && !v.list {
			return x.unset(v, q)
		} else {
			x.emit(v, q)
			return nil
		}
	}
	v, done, err := x.indirect(pe, q)
	if err != nil || done {
		return err
	}
	switch {
	case pe.Length:
		if v.list {
			if v.base != "" && !v.set && v.v.List == nil && v.v.Map == nil {
				v.name = v.base
				if x.Host.Option("nounset") {
					return &UnsetError{Name: shown(v.name), Text: "unbound variable", Length: true}
				}
			}
			x.result(strconv.Itoa(len(v.vals)), q)
			return nil
		}
		if v.bad {
			return &vars.Error{Text: v.name + ": bad array subscript"}
		}
		if !v.set {
			if err := x.nounset(v); err != nil {
				return err
			}
		}
		x.result(strconv.Itoa(length(v.s)), q)
		return nil
	case pe.Slice != nil:
		return x.slice(pe, v, q)
	case pe.Repl != nil:
		return x.replace(pe, v, q)
	case pe.Exp != nil:
		return x.operator(pe, v, q)
	}
	if !v.set && !v.list {
		return x.unset(v, q)
	}
	x.emit(v, q)
	return nil
}

func simple(pe *syntax.ParamExp) bool {
	return !pe.Excl && !pe.Length && pe.Index == nil && pe.Slice == nil && pe.Repl == nil && pe.Names == 0 && pe.Exp == nil
}

// unset adds an unset parameter, or is the error that it is one.
func (x *expansion) unset(v value, q quoting) error {
	if err := x.nounset(v); err != nil {
		return err
	}
	x.result("", q)
	return nil
}

func (x *expansion) nounset(v value) error {
	if !x.Host.Option("nounset") {
		return nil
	}
	return &UnsetError{Name: shown(v.name), Text: "unbound variable"}
}

// shown is a parameter's name in messages: the positional and special ones have their dollar sign.
func shown(name string) string {
	if name != "" && !vars.ValidName(name) && !strings.Contains(name, "[") {
		return "$" + name
	}
	return name
}

// emit adds a value to the word.
func (x *expansion) emit(v value, q quoting) {
	switch {
	case !v.list:
		x.result(v.s, q)
	case v.star && (q != unquoted || !x.fields):
		x.result(strings.Join(v.vals, x.ifs().first), q)
	case x.assign && (q == unquoted && v.joined || q != unquoted && v.changed):
		x.result(strings.Join(v.vals, x.ifs().first), q)
	case !x.fields:
		x.result(strings.Join(v.vals, " "), q)
	default:
		if len(v.vals) == 0 && q != unquoted {
			x.empty++
		}
		if sep := x.ifs(); q == unquoted && sep.first != "" && sep.class[sep.first[0]] != 1 {
			// As in bash the elements are joined and split again: empty ones are fields then.
			x.result(strings.Join(v.vals, sep.first), q)
			return
		}
		for i, s := range v.vals {
			if i > 0 {
				x.segs = append(x.segs, seg{end: true})
			}
			x.result(s, q)
		}
	}
}

// indirect looks the parameter of pe up, through ${!...}. Done: it was the ${!prefix*} or ${!a[@]} and is added.
func (x *expansion) indirect(pe *syntax.ParamExp, q quoting) (v value, done bool, err error) {
	name := pe.Param.Value
	if !pe.Excl {
		v, err = x.lookup(name, pe.Index)
		return v, false, err
	}
	if pe.Names != 0 {
		v = value{list: true, star: pe.Names == syntax.NamesPrefix, vals: x.Vars.Names(name), changed: true, joined: true}
		x.emit(v, q)
		return v, true, nil
	}
	if all, star := wholeArray(pe.Index); all && pe.Exp == nil && pe.Slice == nil && pe.Repl == nil {
		variable, _ := x.Vars.Get(name)
		v = value{list: true, star: star, vals: variable.Keys(), changed: true}
		x.emit(v, q)
		return v, true, nil
	}
	if raw, ok := x.Vars.Raw(name); ok && pe.Index == nil && raw.Attr&vars.NameRef != 0 {
		return value{name: name, set: raw.Kind != vars.Unset, s: raw.Str, base: name, v: raw}, false, nil
	}
	if v, err = x.lookup(name, pe.Index); err != nil {
		return v, false, err
	}
	if !v.set && !v.list {
		return v, false, &vars.Error{Text: shown(v.name) + ": invalid indirect expansion"}
	}
	target := v.s
	if v.list {
		target = strings.Join(v.vals, " ")
	}
	v, err = x.lookupText(target)
	return v, false, err
}

func wholeArray(idx syntax.ArithmExpr) (all, star bool) {
	w, ok := idx.(*syntax.Word)
	if !ok || len(w.Parts) != 1 {
		return false, false
	}
	lit, ok := w.Parts[0].(*syntax.Lit)
	if !ok {
		return false, false
	}
	return lit.Value == "@" || lit.Value == "*", lit.Value == "*"
}

// lookup returns the value of a parameter, with the subscript that the parser found.
func (x *expansion) lookup(name string, idx syntax.ArithmExpr) (value, error) {
	if idx == nil {
		return x.scalar(name)
	}
	if all, star := wholeArray(idx); all {
		sub := "@"
		if star {
			sub = "*"
		}
		return x.element(name, sub)
	}
	sub, err := x.arithText(idx)
	if err != nil {
		return value{}, err
	}
	if sub == "@" || sub == "*" {
		// Quoted, it is a key.
		v, ok := x.Vars.Get(name)
		if ok && v.Kind == vars.Assoc {
			s, ok := v.Map.Get(sub)
			return value{name: name + "[" + sub + "]", set: ok, s: s, v: v, base: name, sub: sub}, nil
		}
	}
	return x.element(name, sub)
}

// lookupText returns the value of a parameter that a text names: "x", "a[1]", "1", "@".
func (x *expansion) lookupText(ref string) (value, error) {
	if name, sub, has := vars.SplitRef(ref); has {
		if sub != "@" && sub != "*" {
			inner := x.start(x.ctx)
			if err := inner.inner(sub, double); err != nil {
				return value{}, err
			}
			sub = join(inner.segs)
		}
		return x.element(name, sub)
	}
	if !vars.ValidName(ref) && !isParam(ref) {
		return value{}, &vars.Error{Text: ref + ": invalid variable name"}
	}
	return x.scalar(ref)
}

func isParam(s string) bool {
	if len(s) == 1 && strings.Contains("@*#?-$!", s) {
		return true
	}
	_, err := strconv.ParseUint(s, 10, 31)
	return err == nil
}

func (x *expansion) scalar(name string) (value, error) {
	c := byte(0)
	if name != "" {
		c = name[0]
	}
	switch {
	case c == '@' || c == '*':
		vals := x.Host.Params()
		return value{name: name, set: len(vals) > 0, list: true, star: c == '*', vals: vals}, nil
	case c == '#':
		return value{name: name, set: true, s: strconv.Itoa(len(x.Host.Params()))}, nil
	case '1' <= c && c <= '9' || c == '0' && len(name) > 1:
		n, err := strconv.Atoi(name)
		params := x.Host.Params()
		if err != nil || n > len(params) || n == 0 {
			if n == 0 && err == nil {
				s, ok := x.Host.Special("0")
				return value{name: "0", set: ok, s: s}, nil
			}
			return value{name: name}, nil
		}
		return value{name: name, set: true, s: params[n-1]}, nil
	case !isName(c) || c == '0' || name == "_":
		s, ok := x.Host.Special(name)
		return value{name: name, set: ok, s: s}, nil
	}
	v, ok := x.Vars.Get(name)
	if v.Kind == vars.String {
		return value{name: name, set: ok, s: v.Str, v: v, base: name}, nil
	}
	if base, sub, is := x.Vars.Resolve(name); is && sub != "" {
		return x.element(base, sub)
	}
	s, set := v.Scalar()
	if !ok && !vars.IsDynamic(name) {
		s, set = x.Host.Special(name)
		if set {
			v = vars.Var{Kind: vars.String, Str: s}
		}
	}
	return value{name: name, set: set, s: s, v: v, base: name}, nil
}

// element returns an element of an array, or all of them when the subscript is "@" or "*".
func (x *expansion) element(name, sub string) (value, error) {
	v, ok := x.Vars.Get(name)
	if !ok && v.Kind == vars.Unset && !vars.IsDynamic(name) {
		if s, set := x.Host.Special(name); set {
			v, ok = vars.Var{Kind: vars.String, Str: s}, true
		}
	}
	out := value{name: name + "[" + sub + "]", v: v, base: name, sub: sub}
	if sub == "@" || sub == "*" {
		out.list, out.star = true, sub == "*"
		out.vals = v.Values()
		out.set = len(out.vals) > 0
		return out, nil
	}
	if v.Kind == vars.Assoc {
		out.s, out.set = v.Map.Get(sub)
		return out, nil
	}
	i, err := x.Eval(sub)
	if err != nil {
		return out, err
	}
	if i < 0 {
		last := int64(-1)
		switch v.Kind {
		case vars.String:
			last = 0
		case vars.Indexed:
			last = v.List.Last()
		}
		if i+last+1 < 0 {
			// A warning: the expansion goes on with nothing, but for the length of it.
			x.Host.Warn(name + ": bad array subscript")
			out.bad = true
			return out, nil
		}
	}
	if ok {
		out.s, out.set = v.At(i)
	}
	out.sub = formatInt(i)
	return out, nil
}

// set assigns to the parameter a value was looked up from.
func (x *expansion) set(v value, s string) error {
	switch {
	case v.base == "":
		return &vars.Error{Text: shown(v.name) + ": cannot assign in this way"}
	case v.sub == "" || v.sub == "@" || v.sub == "*":
		return x.Vars.Set(v.base, s)
	case v.v.Kind == vars.Assoc:
		return x.Vars.SetKey(v.base, v.sub, s)
	}
	i, err := strconv.ParseInt(v.sub, 10, 64)
	if err != nil {
		return &vars.Error{Text: v.name + ": bad array subscript"}
	}
	return x.Vars.SetIndex(v.base, i, s)
}

// each applies f to a value or to all its elements, and adds what comes out.
func (x *expansion) each(v value, q quoting, f func(string) (string, error)) error {
	if !v.list {
		if !v.set {
			return x.unset(v, q)
		}
		s, err := f(v.s)
		if err != nil {
			return err
		}
		x.result(s, q)
		return nil
	}
	vals := make([]string, len(v.vals))
	for i, s := range v.vals {
		var err error
		if vals[i], err = f(s); err != nil {
			return err
		}
	}
	v.vals, v.changed = vals, true
	x.emit(v, q)
	return nil
}

// operand adds the word of ${x:-word}: what is not quoted in it is split as if it came out of the parameter.
func (x *expansion) operand(w *syntax.Word, q quoting) error {
	if w == nil {
		x.result("", q)
		return nil
	}
	if q != unquoted {
		from := len(x.segs)
		if err := x.parts(w.Parts, alternate); err != nil {
			return err
		}
		if len(x.segs) == from && x.empty == 0 {
			x.add("", true)
		}
		return nil
	}
	for i, p := range w.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			if err := x.part(p, unquoted); err != nil {
				return err
			}
			continue
		}
		s := lit.Value
		if i == 0 && s != "" && s[0] == '~' {
			s = x.tildes(s, len(w.Parts) == 1, false)
		}
		x.lit(s, unquoted, true)
	}
	return nil
}

func (x *expansion) operator(pe *syntax.ParamExp, v value, q quoting) error {
	op, w := pe.Exp.Op, pe.Exp.Word
	text := v.s
	if v.list {
		text = strings.Join(v.vals, " ")
	}
	null := !v.set || text == ""
	switch op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if !v.set || op == syntax.AlternateUnsetOrNull && null {
			if !v.list || v.star {
				x.result("", q)
			} else if q != unquoted {
				x.empty++
			}
			return nil
		}
		return x.operand(w, q)
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		if !v.set || op == syntax.DefaultUnsetOrNull && null {
			return x.operand(w, q)
		}
		x.emit(v, q)
		return nil
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if !v.set || op == syntax.AssignUnsetOrNull && null {
			s, err := x.sub(w, q)
			if err != nil {
				return err
			}
			if err := x.set(v, s); err != nil {
				return err
			}
			if got, ok := x.Vars.Get(v.base); ok && v.sub == "" && got.Attr != 0 {
				s, _ = got.Scalar() // the attributes had their say
			}
			x.result(s, q)
			return nil
		}
		x.emit(v, q)
		return nil
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		if v.set && (op == syntax.ErrorUnset || !null) {
			x.emit(v, q)
			return nil
		}
		msg := "parameter not set"
		if op == syntax.ErrorUnsetOrNull {
			msg = "parameter null or not set"
		}
		if w != nil {
			s, err := x.sub(w, q)
			if err != nil {
				return err
			}
			msg = s
		}
		return &UnsetError{Name: v.name, Text: msg, Asked: true}
	case syntax.OtherParamOps:
		v.joined = true
		return x.transform(w.Lit(), v, q)
	}
	if !v.set && !v.list {
		return x.unset(v, q)
	}
	pat := ""
	if w != nil {
		var err error
		if pat, err = x.Pattern(x.ctx, w); err != nil {
			return err
		}
	}
	switch op {
	case syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll:
		return x.changeCase(op, pat, w != nil, v, q)
	}
	p := x.pattern(pat, x.Host.Option("extglob"), false)
	v.joined = true
	return x.each(v, q, func(s string) (string, error) {
		switch op {
		case syntax.RemSmallPrefix, syntax.RemLargePrefix:
			if n := p.prefix(s, op == syntax.RemLargePrefix); n > 0 {
				s = s[n:]
			}
		case syntax.RemSmallSuffix, syntax.RemLargeSuffix:
			if n := p.suffix(s, op == syntax.RemLargeSuffix); n > 0 {
				s = s[:len(s)-n]
			}
		}
		return s, nil
	})
}

// sub expands the word of an operator to one string.
func (x *expansion) sub(w *syntax.Word, q quoting) (string, error) {
	inner := x.start(x.ctx)
	if err := inner.operand(w, q); err != nil {
		return "", err
	}
	return join(inner.segs), nil
}

func (x *expansion) changeCase(op syntax.ParExpOperator, pat string, has bool, v value, q quoting) error {
	to := unicode.ToUpper
	if op == syntax.LowerFirst || op == syntax.LowerAll {
		to = unicode.ToLower
	}
	p := x.pattern(pat, x.Host.Option("extglob"), false)
	return x.each(v, q, func(s string) (string, error) {
		var b strings.Builder
		for i, r := range s {
			n := utf8.RuneLen(r)
			if r == utf8.RuneError {
				_, n = utf8.DecodeRuneInString(s[i:])
			}
			c := s[i : i+n]
			if n > 0 && r != utf8.RuneError && (!has || p.match(c)) {
				b.WriteRune(to(r))
			} else {
				b.WriteString(c)
			}
			if op == syntax.UpperFirst || op == syntax.LowerFirst {
				b.WriteString(s[i+n:])
				break
			}
		}
		return b.String(), nil
	})
}

func length(s string) int {
	n := 0
	for s != "" {
		_, w := decode(s)
		s = s[w:]
		n++
	}
	return n
}

// offset returns the byte where the nth character of s begins.
func offset(s string, n int64) int {
	i := 0
	for ; n > 0 && i < len(s); n-- {
		_, w := decode(s[i:])
		i += w
	}
	return i
}

func (x *expansion) slice(pe *syntax.ParamExp, v value, q quoting) error {
	if !v.set && !v.list {
		return x.unset(v, q)
	}
	var from, count int64
	var err error
	if pe.Slice.Offset != nil {
		if from, err = x.Arithm(x.ctx, pe.Slice.Offset); err != nil {
			return err
		}
	}
	has := pe.Slice.Length != nil
	if has {
		if count, err = x.Arithm(x.ctx, pe.Slice.Length); err != nil {
			return err
		}
	}
	tooShort := func(n int64) error { return &vars.Error{Text: formatInt(n) + ": substring expression < 0"} }
	if !v.list {
		size := int64(length(v.s))
		if from < 0 {
			from += size
		}
		if from < 0 || from > size {
			x.result("", q)
			return nil
		}
		end := size
		if has {
			if count < 0 {
				if end = size + count; end < from {
					return tooShort(count)
				}
			} else if count < size-from {
				end = from + count
			}
		}
		i := offset(v.s, from)
		x.result(v.s[i:i+offset(v.s[i:], end-from)], q)
		return nil
	}
	vals := v.vals
	switch {
	case v.base == "": // $@ begins with $1, but :0 has $0 too
		if from == 0 {
			zero, _ := x.Host.Special("0")
			vals = append([]string{zero}, vals...)
		} else if from > 0 {
			from--
		} else {
			// From the end: $0 counts, but only when it is reached.
			if from += int64(len(vals)) + 1; from == 0 {
				zero, _ := x.Host.Special("0")
				vals = append([]string{zero}, vals...)
			} else {
				from--
			}
			if from < 0 {
				vals = nil
			}
		}
	case v.v.Kind == vars.Indexed:
		if from < 0 {
			from += v.v.List.Last() + 1
		}
		if from < 0 {
			vals = nil
		} else {
			from = int64(v.v.List.From(from))
		}
	default:
		// bash counts the pairs of an associative array from 1, and 0 is the first too.
		assoc := v.v.Kind == vars.Assoc
		if from < 0 {
			from += int64(len(vals)) + truth(assoc)
		}
		if from > 0 && assoc {
			from--
		}
		if from < 0 {
			vals = nil
		}
	}
	if from > int64(len(vals)) || from < 0 {
		from = int64(len(vals))
	}
	vals = vals[from:]
	if has && count < 0 && len(vals) > 0 {
		return tooShort(count)
	}
	if has && count >= 0 && count < int64(len(vals)) {
		vals = vals[:count]
	}
	v.vals, v.changed = vals, true
	x.emit(v, q)
	return nil
}

// piece is a part of a replacement: a text, or what matched.
type piece struct {
	s     string
	match bool
}

func (x *expansion) replace(pe *syntax.ParamExp, v value, q quoting) error {
	if !v.set && !v.list {
		return x.unset(v, q)
	}
	r := pe.Repl
	inner := x.start(x.ctx)
	if r.Orig != nil {
		if err := inner.parts(r.Orig.Parts, unquoted); err != nil {
			return err
		}
	} else if r.All {
		if r = slashes(pe); r.Orig != nil {
			if err := inner.parts(r.Orig.Parts, unquoted); err != nil {
				return err
			}
		}
	}
	var anchor byte
	if len(inner.segs) > 0 && !r.All {
		if s := inner.segs[0]; !s.quoted && s.s != "" && (s.s[0] == '#' || s.s[0] == '%') {
			anchor = s.s[0]
			inner.segs[0].s = s.s[1:]
		}
	}
	pat := patternOf(inner.segs)
	with, err := x.replacement(r.With)
	if err != nil {
		return err
	}
	if pat == "" && anchor == 0 {
		return x.each(v, q, func(s string) (string, error) { return s, nil })
	}
	p := x.pattern(pat, x.Host.Option("extglob"), x.Host.Option("nocasematch"))
	if lit, ok := p.literal(); ok && len(with) <= 1 && anchor == 0 && lit != "" && (len(with) == 0 || !with[0].match) {
		to, n := "", 1
		if len(with) == 1 {
			to = with[0].s
		}
		if r.All {
			n = -1
		}
		return x.each(v, q, func(s string) (string, error) { return strings.Replace(s, lit, to, n), nil })
	}
	return x.each(v, q, func(s string) (string, error) {
		var b strings.Builder
		put := func(match string) {
			for _, w := range with {
				if w.match {
					b.WriteString(match)
				} else {
					b.WriteString(w.s)
				}
			}
		}
		switch anchor {
		case '#':
			n := p.prefix(s, true)
			if n < 0 {
				return s, nil
			}
			put(s[:n])
			b.WriteString(s[n:])
			return b.String(), nil
		case '%':
			n := p.suffix(s, true)
			if n < 0 {
				return s, nil
			}
			b.WriteString(s[:len(s)-n])
			put(s[len(s)-n:])
			return b.String(), nil
		}
		at := 0
		for at < len(s) || at == 0 {
			i, end := p.find(s, at)
			if i < 0 || i == len(s) && at > 0 {
				break
			}
			b.WriteString(s[at:i])
			put(s[i:end])
			at = end
			if end == i { // an empty match: one character passes
				if i == len(s) {
					break
				}
				_, n := decode(s[i:])
				b.WriteString(s[i : i+n])
				at += n
			}
			if !r.All {
				break
			}
		}
		b.WriteString(s[at:])
		return b.String(), nil
	})
}

// slashes reads ${x///...}, where the third slash begins the pattern: the next one ends it.
func slashes(pe *syntax.ParamExp) *syntax.Replace {
	slash := &syntax.Lit{Value: `\/`}
	r := &syntax.Replace{All: true}
	if pe.Repl.With == nil {
		if name := pe.Param.ValueEnd; pe.Index == nil && pe.Rbrace.Offset()-name.Offset() > 2 {
			r.Orig = &syntax.Word{Parts: []syntax.WordPart{slash}}
		}
		return r
	}
	pattern := []syntax.WordPart{slash}
	for i, p := range pe.Repl.With.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			if before, after, found := strings.Cut(lit.Value, "/"); found {
				pattern = append(pattern, &syntax.Lit{Value: before})
				with := append([]syntax.WordPart{&syntax.Lit{Value: after}}, pe.Repl.With.Parts[i+1:]...)
				r.With = &syntax.Word{Parts: with}
				break
			}
		}
		pattern = append(pattern, p)
	}
	r.Orig = &syntax.Word{Parts: pattern}
	return r
}

// replacement expands what replaces a match: an & that is not quoted is the match.
func (x *expansion) replacement(w *syntax.Word) ([]piece, error) {
	if w == nil {
		return nil, nil
	}
	inner := x.start(x.ctx)
	if err := inner.parts(w.Parts, unquoted); err != nil {
		return nil, err
	}
	ampersand := x.Host.Option("patsub_replacement")
	if !ampersand || !slices.ContainsFunc(inner.segs, func(s seg) bool { return !s.quoted && strings.Contains(s.s, "&") }) {
		if s := join(inner.segs); s != "" {
			return []piece{{s: s}}, nil
		}
		return nil, nil
	}
	var out []piece
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			out = append(out, piece{s: b.String()})
			b.Reset()
		}
	}
	for _, s := range inner.segs {
		if s.quoted {
			b.WriteString(s.s)
			continue
		}
		for i := 0; i < len(s.s); i++ {
			switch c := s.s[i]; {
			case c == '\\' && i+1 < len(s.s) && (s.s[i+1] == '&' || s.s[i+1] == '\\'):
				i++
				b.WriteByte(s.s[i])
			case c == '&':
				flush()
				out = append(out, piece{match: true})
			default:
				b.WriteByte(c)
			}
		}
	}
	flush()
	return out, nil
}

// transform is ${x@OP}.
func (x *expansion) transform(op string, v value, q quoting) error {
	switch op {
	case "A":
		return x.declaration(v, q)
	case "a":
		if v.base == "" {
			x.result("", q)
			return nil
		}
		raw, _ := x.Vars.Raw(v.base)
		flags := Flags(raw)
		if v.list {
			v.vals, v.changed = slices.Repeat([]string{flags}, len(v.vals)), true
			x.emit(v, q)
			return nil
		}
		if !v.set && raw.Kind == vars.Unset && flags == "" {
			return x.unset(v, q)
		}
		x.result(flags, q)
		return nil
	case "K", "k":
		if v.list && v.base != "" {
			return x.pairs(op, v, q)
		}
		op = "Q"
	}
	if !v.set && !v.list {
		return x.unset(v, q)
	}
	return x.each(v, q, func(s string) (string, error) {
		switch op {
		case "Q":
			return Quote(s, true), nil
		case "E":
			return ansiC(s), nil
		case "U":
			return strings.ToUpper(s), nil
		case "L":
			return strings.ToLower(s), nil
		case "u":
			r, n := utf8.DecodeRuneInString(s)
			if n > 0 && r != utf8.RuneError {
				s = string(unicode.ToUpper(r)) + s[n:]
			}
			return s, nil
		case "P":
			return x.prompt(s)
		}
		return "", &BadSubst{"${" + v.name + "@" + op + "}"}
	})
}

func (x *expansion) pairs(op string, v value, q quoting) error {
	keys := v.v.Keys()
	var words []string
	for i, s := range v.vals {
		if op == "K" {
			k := keys[i]
			if v.v.Kind == vars.Assoc {
				k = quoteKey(k)
			}
			words = append(words, k+" "+quoteDouble(s))
		} else {
			words = append(words, keys[i], s)
		}
	}
	if op == "K" {
		text := strings.Join(words, " ")
		if v.v.Kind == vars.Assoc && text != "" {
			text += " " // as bash has it
		}
		x.result(text, q)
		return nil
	}
	v.vals = words
	x.emit(v, q)
	return nil
}

// declaration is ${x@A}: the statement that makes the variable.
func (x *expansion) declaration(v value, q quoting) error {
	if v.base == "" {
		if v.list {
			words := make([]string, len(v.vals))
			for i, s := range v.vals {
				words[i] = Quote(s, true)
			}
			x.result("set -- "+strings.Join(words, " "), q)
		}
		return nil
	}
	raw, ok := x.Vars.Raw(v.base)
	if !ok || !v.set && Flags(raw) == "" {
		if v.list {
			x.emit(v, q)
			return nil
		}
		return x.unset(v, q)
	}
	flags := Flags(raw)
	switch {
	case v.list && raw.Kind != vars.String:
		x.result(Declaration(v.base, raw), q)
	case flags != "":
		s := "declare -" + flags + " " + v.base
		if v.set {
			s += "=" + Quote(v.s, true)
		}
		x.result(s, q)
	default:
		x.result(v.base+"="+Quote(v.s, true), q)
	}
	return nil
}

// prompt is ${x@P}: the escapes of prompts that mean something without a terminal, then expansion as in double quotes.
func (x *expansion) prompt(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'a':
			b.WriteByte('\a')
		case 'e':
			b.WriteByte(0x1b)
		case '\\':
			b.WriteString(`\\`)
		case 'u':
			user := x.Vars.Str("USER")
			if user == "" {
				user = "guest"
			}
			b.WriteString(user)
		case 'h', 'H':
			host := x.Vars.Str("HOSTNAME")
			if s[i] == 'h' {
				host, _, _ = strings.Cut(host, ".")
			}
			b.WriteString(host)
		case 'w', 'W':
			dir := x.Host.Dir()
			if home := x.Vars.Str("HOME"); home != "" && (dir == home || strings.HasPrefix(dir, home+"/")) {
				dir = "~" + dir[len(home):]
			}
			if s[i] == 'W' && dir != "/" && dir != "~" {
				dir = dir[strings.LastIndexByte(dir, '/')+1:]
			}
			b.WriteString(dir)
		case 's':
			zero, _ := x.Host.Special("0")
			b.WriteString(zero[strings.LastIndexByte(zero, '/')+1:])
		case 'v':
			b.WriteString("5.2")
		case 'V':
			b.WriteString("5.2.15")
		case '$':
			b.WriteByte('$')
		case '[', ']':
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n := 0
			j := i
			for ; j < len(s) && j < i+3 && '0' <= s[j] && s[j] <= '7'; j++ {
				n = n*8 + int(s[j]-'0')
			}
			i = j - 1
			b.WriteByte(byte(n))
		default:
			b.WriteByte('\\')
			b.WriteByte(s[i])
		}
	}
	inner := x.start(x.ctx)
	if err := inner.inner(b.String(), double); err != nil {
		return "", err
	}
	return join(inner.segs), nil
}
