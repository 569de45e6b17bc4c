package jq

import (
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/itchyny/timefmt-go"

	"github.com/exthost/exthost/guests/sh/internal/regex"
)

// native is a function of its input and the values of its arguments.
type native func(m *machine, in any, args []any) (any, error)

func operator(op string) func(a, b any) (any, error) {
	order := func(ok func(int) bool) func(a, b any) (any, error) {
		return func(a, b any) (any, error) { return ok(compare(a, b)), nil }
	}
	switch op {
	case "==":
		return order(func(c int) bool { return c == 0 })
	case "!=":
		return order(func(c int) bool { return c != 0 })
	case "<":
		return order(func(c int) bool { return c < 0 })
	case "<=":
		return order(func(c int) bool { return c <= 0 })
	case ">":
		return order(func(c int) bool { return c > 0 })
	case ">=":
		return order(func(c int) bool { return c >= 0 })
	case "+":
		return add
	case "-":
		return subtract
	case "*":
		return multiply
	case "/":
		return divide
	}
	return modulo
}

func add(a, b any) (any, error) {
	if a == nil {
		return b, nil
	}
	if b == nil {
		return a, nil
	}
	if f, ok := number(a); ok {
		if g, ok := number(b); ok {
			return f + g, nil
		}
	}
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			return x + y, nil
		}
	case []any:
		if y, ok := b.([]any); ok {
			out := make([]any, 0, len(x)+len(y))
			return append(append(out, x...), y...), nil
		}
	case *object:
		if y, ok := b.(*object); ok {
			if y.len() == 1 {
				return x.with(y.keys[0], y.vals[0]), nil
			}
			out := x.clone(y.len())
			for i, k := range y.keys {
				out.put(k, y.vals[i])
			}
			return out, nil
		}
	}
	return nil, failf("%s and %s cannot be added", describe(a), describe(b))
}

func subtract(a, b any) (any, error) {
	if f, ok := number(a); ok {
		if g, ok := number(b); ok {
			return f - g, nil
		}
	}
	if x, ok := a.([]any); ok {
		if y, ok := b.([]any); ok {
			out := []any{}
			for _, v := range x {
				if !slices.ContainsFunc(y, func(w any) bool { return equal(v, w) }) {
					out = append(out, v)
				}
			}
			return out, nil
		}
	}
	return nil, failf("%s and %s cannot be subtracted", describe(a), describe(b))
}

const maxText = 256 << 20

func multiply(a, b any) (any, error) {
	f, fn := number(a)
	g, gn := number(b)
	if fn && gn {
		return f * g, nil
	}
	if fn {
		if _, ok := b.(string); ok {
			a, b, g, gn = b, a, f, true
		}
	}
	if s, ok := a.(string); ok && gn {
		if g <= 0 || g != g {
			return nil, nil
		}
		n := max(int(math.Ceil(g)), 1)
		if g < 1 {
			n = 1
		}
		if len(s)*n > maxText {
			return nil, failf("Repeat string result too long")
		}
		return strings.Repeat(s, n), nil
	}
	if x, ok := a.(*object); ok {
		if y, ok := b.(*object); ok {
			return merge(x, y), nil
		}
	}
	return nil, failf("%s and %s cannot be multiplied", describe(a), describe(b))
}

func merge(x, y *object) *object {
	out := x.clone(y.len())
	for i, k := range y.keys {
		old, _ := out.get(k)
		o, ok := old.(*object)
		p, ok2 := y.vals[i].(*object)
		if ok && ok2 {
			out.put(k, merge(o, p))
		} else {
			out.put(k, y.vals[i])
		}
	}
	return out
}

func divide(a, b any) (any, error) {
	f, fn := number(a)
	g, gn := number(b)
	if fn && gn {
		if g == 0 {
			return nil, failf("%s and %s cannot be divided because the divisor is zero", describe(a), describe(b))
		}
		return f / g, nil
	}
	if x, ok := a.(string); ok {
		if y, ok := b.(string); ok {
			return splitText(x, y), nil
		}
	}
	return nil, failf("%s and %s cannot be divided", describe(a), describe(b))
}

func splitText(s, sep string) []any {
	out := []any{}
	if s == "" {
		return out
	}
	for _, p := range strings.Split(s, sep) {
		out = append(out, p)
	}
	return out
}

func modulo(a, b any) (any, error) {
	f, fn := number(a)
	g, gn := number(b)
	if !fn || !gn {
		return nil, failf("%s and %s cannot be divided", describe(a), describe(b))
	}
	if f != f || g != g {
		return math.NaN(), nil
	}
	whole := func(f float64) int64 {
		if f >= math.MaxInt64 {
			return math.MaxInt64
		}
		if f <= math.MinInt64 {
			return math.MinInt64
		}
		return int64(f)
	}
	x, y := whole(f), whole(g)
	if y == 0 {
		return nil, failf("%s and %s cannot be divided (remainder) because the divisor is zero", describe(a), describe(b))
	}
	if y < 0 && y != math.MinInt64 {
		y = -y
	}
	return float64(x % y), nil
}

func indices(v, k any) any {
	out := []any{}
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		s, ok := k.(string)
		if !ok || s == "" {
			return nil
		}
		for i := 0; i+len(s) <= len(v); i++ {
			if strings.HasPrefix(v[i:], s) {
				out = append(out, float64(utf8.RuneCountInString(v[:i])))
			}
		}
		return out
	case []any:
		part, ok := k.([]any)
		if !ok {
			part = []any{k}
		}
		if len(part) == 0 {
			return nil
		}
		for i := 0; i+len(part) <= len(v); i++ {
			if slices.EqualFunc(v[i:i+len(part)], part, equal) {
				out = append(out, float64(i))
			}
		}
	}
	return out
}

func toString(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return compact(v)
}

// formatter returns @name, nil when there is none.
func formatter(name string) func(any) (string, error) {
	plain := func(f func(string) string) func(any) (string, error) {
		return func(v any) (string, error) { return f(toString(v)), nil }
	}
	row := func(what, sep string, cell func(string) string) func(any) (string, error) {
		return func(v any) (string, error) {
			a, ok := v.([]any)
			if !ok {
				return "", failf("%s cannot be %s-formatted, only an array can be", describe(v), what)
			}
			var b strings.Builder
			for i, x := range a {
				if i > 0 {
					b.WriteString(sep)
				}
				switch x := x.(type) {
				case nil:
				case string:
					b.WriteString(cell(x))
				case bool, float64, literal:
					b.WriteString(compact(x))
				default:
					return "", failf("%s is not valid in a csv row", describe(x))
				}
			}
			return b.String(), nil
		}
	}
	switch name {
	case "@text":
		return plain(func(s string) string { return s })
	case "@json":
		return func(v any) (string, error) { return compact(v), nil }
	case "@csv":
		return row("csv", ",", func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` })
	case "@tsv":
		return row("tsv", "\t", strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`).Replace)
	case "@html":
		return plain(strings.NewReplacer("<", "&lt;", ">", "&gt;", "&", "&amp;", "'", "&#39;", `"`, "&quot;").Replace)
	case "@uri":
		return plain(func(s string) string {
			var b strings.Builder
			for i := range len(s) {
				c := s[i]
				if isIdent(c, false) || strings.IndexByte("-.~", c) >= 0 {
					b.WriteByte(c)
				} else {
					fmt.Fprintf(&b, "%%%02X", c)
				}
			}
			return b.String()
		})
	case "@sh":
		return func(v any) (string, error) {
			list, ok := v.([]any)
			if !ok {
				list = []any{v}
			}
			var out []string
			for _, x := range list {
				switch x := x.(type) {
				case string:
					out = append(out, "'"+strings.ReplaceAll(x, "'", `'\''`)+"'")
				case []any, *object:
					return "", failf("%s can not be escaped for shell", describe(x))
				default:
					out = append(out, compact(x))
				}
			}
			return strings.Join(out, " "), nil
		}
	case "@base64":
		return plain(func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) })
	case "@base64d":
		return func(v any) (string, error) {
			s := toString(v)
			b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
			if err != nil || len(b) == 0 && s != "" {
				return "", failf("%s is not valid base64 data", describe(v))
			}
			return strings.ToValidUTF8(string(b), "\uFFFD"), nil
		}
	case "@base32":
		return plain(func(s string) string { return base32.StdEncoding.EncodeToString([]byte(s)) })
	case "@base32d":
		return func(v any) (string, error) {
			b, err := base32.StdEncoding.DecodeString(toString(v))
			if err != nil {
				return "", failf("%s is not valid base32 data", describe(v))
			}
			return strings.ToValidUTF8(string(b), "\uFFFD"), nil
		}
	}
	return nil
}

// specials are functions whose arguments are filters.
var specials map[string]func(c *compiler, args []filter) filter

func init() {
	specials = map[string]func(c *compiler, args []filter) filter{
		"empty/0": func(*compiler, []filter) filter {
			return func(*env, item, func(item) error) error { return nil }
		},
		"error/0": func(*compiler, []filter) filter {
			return func(_ *env, in item, _ func(item) error) error { return &failure{in.v} }
		},
		"error/1": func(_ *compiler, a []filter) filter {
			return func(e *env, in item, _ func(item) error) error {
				return a[0](e, item{v: in.v}, func(x item) error { return &failure{x.v} })
			}
		},
		"select/1": func(_ *compiler, a []filter) filter {
			return func(e *env, in item, yield func(item) error) error {
				return a[0](e, item{v: in.v}, func(x item) error {
					if truth(x.v) {
						return yield(in)
					}
					return nil
				})
			}
		},
		"recurse/0": func(*compiler, []filter) filter { return recurse },
		"recurse/1": func(c *compiler, a []filter) filter { return c.recurse(a[0], nil) },
		"recurse/2": func(c *compiler, a []filter) filter { return c.recurse(a[0], a[1]) },
		"map/1": func(c *compiler, a []filter) filter {
			return func(e *env, in item, yield func(item) error) error {
				out := []any{}
				err := c.m.iterate(item{v: in.v}, func(x item) error {
					return a[0](e, x, func(y item) error {
						out = append(out, y.v)
						return nil
					})
				})
				if err != nil {
					return err
				}
				return yield(made(in, out))
			}
		},
		"map_values/1": func(c *compiler, a []filter) filter {
			change := func(e *env, v any) (any, bool, error) {
				var out any
				got := false
				err := a[0](e, item{v: v}, func(y item) error {
					out, got = y.v, true
					return errStop
				})
				if err == errStop {
					err = nil
				}
				return out, got, err
			}
			return func(e *env, in item, yield func(item) error) error {
				if o, ok := in.v.(*object); ok {
					out := &object{}
					for i, k := range o.keys {
						v, got, err := change(e, o.vals[i])
						if err != nil {
							return err
						}
						if got {
							out.put(k, v)
						}
					}
					return yield(made(in, out))
				}
				out := []any{}
				err := c.m.iterate(item{v: in.v}, func(x item) error {
					v, got, err := change(e, x.v)
					if got {
						out = append(out, v)
					}
					return err
				})
				if err != nil {
					return err
				}
				return yield(made(in, out))
			}
		},
		"path/1": func(_ *compiler, a []filter) filter {
			return func(e *env, in item, yield func(item) error) error {
				return a[0](e, item{in.v, root}, func(x item) error {
					if x.p == lost {
						return failf("Invalid path expression with result %s", trunc(x.v))
					}
					return yield(made(in, x.p.list()))
				})
			}
		},
		"paths/0": func(_ *compiler, _ []filter) filter {
			return func(e *env, in item, yield func(item) error) error {
				return recurse(e, item{in.v, root}, func(x item) error {
					if x.p == root {
						return nil
					}
					return yield(made(in, x.p.list()))
				})
			}
		},
		"del/1": func(_ *compiler, a []filter) filter {
			return func(e *env, in item, yield func(item) error) error {
				var paths []any
				err := a[0](e, item{in.v, root}, func(x item) error {
					if x.p == lost {
						return failf("Invalid path expression with result %s", trunc(x.v))
					}
					paths = append(paths, x.p.list())
					return nil
				})
				if err != nil {
					return err
				}
				v := in.v
				if len(paths) > 0 {
					if v, err = deletePaths(v, paths); err != nil {
						return err
					}
				}
				return yield(made(in, v))
			}
		},
		"getpath/1": func(_ *compiler, a []filter) filter {
			return func(e *env, in item, yield func(item) error) error {
				return a[0](e, item{v: in.v}, func(k item) error {
					at, ok := k.v.([]any)
					if !ok {
						return failf("Path must be specified as an array")
					}
					v, err := getPath(in.v, at)
					if err != nil {
						return err
					}
					if in.p == nil {
						return yield(item{v: v})
					}
					if in.p == lost {
						return failf("Invalid path expression near attempt to access element %s of %s", trunc(k.v), trunc(in.v))
					}
					p := in.p
					for _, key := range at {
						p = &path{p, key}
					}
					return yield(item{v, p})
				})
			}
		},
		"first/1": func(_ *compiler, a []filter) filter {
			return func(e *env, in item, yield func(item) error) error {
				var out item
				got := false
				err := a[0](e, in, func(x item) error {
					out, got = x, true
					return errStop
				})
				if got {
					return yield(out)
				}
				return err
			}
		},
		"last/1": func(_ *compiler, a []filter) filter {
			return func(e *env, in item, yield func(item) error) error {
				var out item
				got := false
				err := a[0](e, in, func(x item) error {
					out, got = x, true
					return nil
				})
				if err != nil || !got {
					return err
				}
				return yield(out)
			}
		},
		"isempty/1": func(_ *compiler, a []filter) filter {
			return func(e *env, in item, yield func(item) error) error {
				empty := true
				err := a[0](e, item{v: in.v}, func(item) error {
					empty = false
					return errStop
				})
				if err != nil && empty {
					return err
				}
				return yield(made(in, empty))
			}
		},
		"limit/2": func(_ *compiler, a []filter) filter {
			return func(e *env, in item, yield func(item) error) error {
				return a[0](e, item{v: in.v}, func(k item) error {
					n, ok := number(k.v)
					if !ok {
						return failf("Invalid arguments to limit")
					}
					if n == 0 {
						return nil
					}
					done := false
					err := a[1](e, in, func(x item) error {
						n--
						if err := yield(x); err != nil {
							return err
						}
						if n == 0 {
							done = true
							return errStop
						}
						return nil
					})
					if done && err == errStop {
						return nil
					}
					return err
				})
			}
		},
		"until/2": func(c *compiler, a []filter) filter {
			var from func(e *env, in item, yield func(item) error) error
			from = func(e *env, in item, yield func(item) error) error {
				for {
					c.m.tick()
					stop := false
					if err := a[0](e, item{v: in.v}, func(x item) error {
						stop = truth(x.v)
						return nil
					}); err != nil {
						return err
					}
					if stop {
						return yield(in)
					}
					var next []item
					if err := a[1](e, in, func(x item) error {
						next = append(next, x)
						return nil
					}); err != nil || len(next) == 0 {
						return err
					}
					for _, x := range next[:len(next)-1] {
						if err := from(e, x, yield); err != nil {
							return err
						}
					}
					in = next[len(next)-1]
				}
			}
			return from
		},
		"while/2": func(c *compiler, a []filter) filter {
			return c.recurse(func(e *env, in item, yield func(item) error) error {
				return a[1](e, in, func(x item) error {
					return a[0](e, item{v: x.v}, func(t item) error {
						if truth(t.v) {
							return yield(x)
						}
						return nil
					})
				})
			}, a[0])
		},
		"repeat/1": func(c *compiler, a []filter) filter {
			on := c.recurse(a[0], nil)
			return func(e *env, in item, yield func(item) error) error {
				return a[0](e, in, func(x item) error { return on(e, x, yield) })
			}
		},
		"range/1": func(c *compiler, a []filter) filter { return c.numbers(constant(0.0), a[0], constant(1.0)) },
		"range/2": func(c *compiler, a []filter) filter { return c.numbers(a[0], a[1], constant(1.0)) },
		"range/3": func(c *compiler, a []filter) filter { return c.numbers(a[0], a[1], a[2]) },
		"any/0":   func(c *compiler, _ []filter) filter { return c.any(iterateInput(c), nil, true) },
		"all/0":   func(c *compiler, _ []filter) filter { return c.any(iterateInput(c), nil, false) },
		"any/1":   func(c *compiler, a []filter) filter { return c.any(iterateInput(c), a[0], true) },
		"all/1":   func(c *compiler, a []filter) filter { return c.any(iterateInput(c), a[0], false) },
		"any/2":   func(c *compiler, a []filter) filter { return c.any(a[0], a[1], true) },
		"all/2":   func(c *compiler, a []filter) filter { return c.any(a[0], a[1], false) },
		"add/1": func(c *compiler, a []filter) filter {
			return func(e *env, in item, yield func(item) error) error {
				var list []any
				if err := a[0](e, item{v: in.v}, func(x item) error {
					list = append(list, x.v)
					return nil
				}); err != nil {
					return err
				}
				v, err := sum(list)
				if err != nil {
					return err
				}
				return yield(made(in, v))
			}
		},
		"input/0": func(c *compiler, _ []filter) filter {
			return func(_ *env, in item, yield func(item) error) error {
				v, err := c.m.input()
				if err == io.EOF {
					return failf("No more inputs")
				}
				if err != nil {
					return err
				}
				return yield(made(in, v))
			}
		},
		"inputs/0": func(c *compiler, _ []filter) filter {
			return func(_ *env, in item, yield func(item) error) error {
				for {
					v, err := c.m.input()
					if err == io.EOF {
						return nil
					}
					if err != nil {
						return err
					}
					if err := yield(made(in, v)); err != nil {
						return err
					}
				}
			}
		},
		"debug/0": func(c *compiler, _ []filter) filter {
			return func(_ *env, in item, yield func(item) error) error {
				c.m.stderr(compact([]any{"DEBUG:", in.v}) + "\n")
				return yield(in)
			}
		},
		"debug/1": func(c *compiler, a []filter) filter {
			return func(e *env, in item, yield func(item) error) error {
				if err := a[0](e, item{v: in.v}, func(x item) error {
					c.m.stderr(compact([]any{"DEBUG:", x.v}) + "\n")
					return nil
				}); err != nil {
					return err
				}
				return yield(in)
			}
		},
		"stderr/0": func(c *compiler, _ []filter) filter {
			return func(_ *env, in item, yield func(item) error) error {
				c.m.stderr(toString(in.v))
				return yield(in)
			}
		},
		"sort_by/1": func(_ *compiler, a []filter) filter {
			return keyed(a[0], func(s []keyedValue) any { return valuesOf(s) })
		},
		"group_by/1": func(_ *compiler, a []filter) filter {
			return keyed(a[0], func(s []keyedValue) any { return groups(s) })
		},
		"unique_by/1": func(_ *compiler, a []filter) filter { return keyed(a[0], firsts) },
		"min_by/1": func(_ *compiler, a []filter) filter {
			return keyed(a[0], func(s []keyedValue) any {
				if len(s) == 0 {
					return nil
				}
				return s[0].v
			})
		},
		"max_by/1": func(_ *compiler, a []filter) filter {
			return keyed(a[0], func(s []keyedValue) any {
				if len(s) == 0 {
					return nil
				}
				return s[len(s)-1].v
			})
		},
		"with_entries/1": func(c *compiler, a []filter) filter {
			return func(e *env, in item, yield func(item) error) error {
				entries, err := toEntries(c.m, in.v, nil)
				if err != nil {
					return err
				}
				out := []any{}
				for _, x := range entries.([]any) {
					if err := a[0](e, item{v: x}, func(y item) error {
						out = append(out, y.v)
						return nil
					}); err != nil {
						return err
					}
				}
				v, err := fromEntries(c.m, out, nil)
				if err != nil {
					return err
				}
				return yield(made(in, v))
			}
		},
		"walk/1": func(c *compiler, a []filter) filter {
			var walk func(e *env, v any, yield func(any) error) error
			walk = func(e *env, v any, yield func(any) error) error {
				c.m.tick()
				switch x := v.(type) {
				case []any:
					out := make([]any, 0, len(x))
					for _, y := range x {
						if err := walk(e, y, func(z any) error {
							out = append(out, z)
							return nil
						}); err != nil {
							return err
						}
					}
					v = out
				case *object:
					out := &object{}
					for i, k := range x.keys {
						err := walk(e, x.vals[i], func(z any) error {
							out.put(k, z)
							return errStop
						})
						if err != nil && err != errStop {
							return err
						}
					}
					v = out
				}
				return a[0](e, item{v: v}, func(y item) error { return yield(y.v) })
			}
			return func(e *env, in item, yield func(item) error) error {
				return walk(e, in.v, func(v any) error { return yield(made(in, v)) })
			}
		},
		"sub/2":  func(c *compiler, a []filter) filter { return c.substitute(a[0], a[1], constant(""), false) },
		"sub/3":  func(c *compiler, a []filter) filter { return c.substitute(a[0], a[1], a[2], false) },
		"gsub/2": func(c *compiler, a []filter) filter { return c.substitute(a[0], a[1], constant(""), true) },
		"gsub/3": func(c *compiler, a []filter) filter { return c.substitute(a[0], a[1], a[2], true) },
		"env/0":  func(c *compiler, _ []filter) filter { return constant(c.m.environ) },
		"halt/0": func(*compiler, []filter) filter {
			return func(*env, item, func(item) error) error { return &halted{} }
		},
		"halt_error/0": func(*compiler, []filter) filter {
			return func(_ *env, in item, _ func(item) error) error { return &halted{5, in.v, true} }
		},
		"halt_error/1": func(_ *compiler, a []filter) filter {
			return func(e *env, in item, _ func(item) error) error {
				return a[0](e, item{v: in.v}, func(x item) error {
					f, ok := number(x.v)
					if !ok {
						return failf("halt_error/1: number required")
					}
					return &halted{int(f), in.v, true}
				})
			}
		},
		"builtins/0": func(*compiler, []filter) filter {
			return func(_ *env, in item, yield func(item) error) error { return yield(made(in, builtinNames())) }
		},
	}
}

func builtinNames() []any {
	var names []string
	for n := range specials {
		names = append(names, n)
	}
	for n := range natives {
		names = append(names, n)
	}
	for n := range library {
		names = append(names, n)
	}
	slices.Sort(names)
	out := make([]any, len(names))
	for i, n := range names {
		out[i] = n
	}
	return out
}

func iterateInput(c *compiler) filter {
	return func(_ *env, in item, yield func(item) error) error { return c.m.iterate(item{v: in.v}, yield) }
}

// recurse is recurse(f; cond). A filter with one output each does not nest.
func (c *compiler) recurse(f, cond filter) filter {
	var from filter
	from = func(e *env, in item, yield func(item) error) error {
		for {
			c.m.tick()
			if cond != nil {
				ok := false
				if err := cond(e, item{v: in.v}, func(x item) error {
					ok = truth(x.v)
					return nil
				}); err != nil || !ok {
					return err
				}
			}
			if err := yield(in); err != nil {
				return err
			}
			// The last output is gone on with here, those before it within.
			var last item
			n := 0
			if err := f(e, in, func(x item) error {
				if n++; n > 1 {
					old := last
					last = x
					return from(e, old, yield)
				}
				last = x
				return nil
			}); err != nil || n == 0 {
				return err
			}
			in = last
		}
	}
	return from
}

func (c *compiler) numbers(from, to, by filter) filter {
	return func(e *env, in item, yield func(item) error) error {
		plain := item{v: in.v}
		return from(e, plain, func(a item) error {
			return to(e, plain, func(b item) error {
				return by(e, plain, func(s item) error {
					x, ok1 := number(a.v)
					y, ok2 := number(b.v)
					z, ok3 := number(s.v)
					if !ok1 || !ok2 || !ok3 {
						return failf("Range bounds must be numeric")
					}
					for ; z > 0 && x < y || z < 0 && x > y || z == 0 && x < y; x += z {
						c.m.tick()
						if err := yield(made(in, x)); err != nil {
							return err
						}
					}
					return nil
				})
			})
		})
	}
}

// any is any or, unless want, all.
func (c *compiler) any(source, cond filter, want bool) filter {
	return func(e *env, in item, yield func(item) error) error {
		out := !want
		test := func(x item) error {
			if truth(x.v) == want {
				out = want
				return errStop
			}
			return nil
		}
		err := source(e, item{v: in.v}, func(x item) error {
			if cond == nil {
				return test(x)
			}
			return cond(e, x, test)
		})
		if err != nil && err != errStop {
			return err
		}
		return yield(made(in, out))
	}
}

type keyedValue struct {
	key []any
	v   any
}

// keyed sorts the elements of an array by what f makes of each.
func keyed(f filter, result func([]keyedValue) any) filter {
	return func(e *env, in item, yield func(item) error) error {
		a, ok := in.v.([]any)
		if !ok {
			return failf("Cannot index %s with number", typeOf(in.v))
		}
		list := make([]keyedValue, len(a))
		for i, v := range a {
			list[i].v = v
			if err := f(e, item{v: v}, func(k item) error {
				list[i].key = append(list[i].key, k.v)
				return nil
			}); err != nil {
				return err
			}
		}
		slices.SortStableFunc(list, func(x, y keyedValue) int { return slices.CompareFunc(x.key, y.key, compare) })
		return yield(made(in, result(list)))
	}
}

func valuesOf(s []keyedValue) any {
	out := make([]any, len(s))
	for i, x := range s {
		out[i] = x.v
	}
	return out
}

func groups(s []keyedValue) []any {
	out := []any{}
	for i, x := range s {
		if i > 0 && slices.CompareFunc(x.key, s[i-1].key, compare) == 0 {
			out[len(out)-1] = append(out[len(out)-1].([]any), x.v)
		} else {
			out = append(out, []any{x.v})
		}
	}
	return out
}

func firsts(s []keyedValue) any {
	out := []any{}
	for _, g := range groups(s) {
		out = append(out, g.([]any)[0])
	}
	return out
}

func sum(list []any) (any, error) {
	if len(list) == 0 {
		return nil, nil
	}
	// Texts, arrays and objects are put together at once.
	switch list[0].(type) {
	case string:
		var b strings.Builder
		for i, x := range list {
			s, ok := x.(string)
			if !ok {
				return sumFrom(b.String(), list[i:])
			}
			b.WriteString(s)
		}
		return b.String(), nil
	case []any:
		out := []any{}
		for i, x := range list {
			a, ok := x.([]any)
			if !ok {
				return sumFrom(out, list[i:])
			}
			out = append(out, a...)
		}
		return out, nil
	case *object:
		out := &object{}
		for i, x := range list {
			o, ok := x.(*object)
			if !ok {
				return sumFrom(out, list[i:])
			}
			for j, k := range o.keys {
				out.put(k, o.vals[j])
			}
		}
		return out, nil
	}
	return sumFrom(list[0], list[1:])
}

func sumFrom(v any, list []any) (any, error) {
	var err error
	for _, x := range list {
		if v, err = add(v, x); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func toEntries(_ *machine, in any, _ []any) (any, error) {
	out := []any{}
	entry := func(k, v any) { out = append(out, &object{keys: []string{"key", "value"}, vals: []any{k, v}}) }
	switch v := in.(type) {
	case *object:
		for i, k := range v.keys {
			entry(k, v.vals[i])
		}
	case []any:
		for i, x := range v {
			entry(float64(i), x)
		}
	default:
		return nil, failf("%s has no keys", describe(in))
	}
	return out, nil
}

func fromEntries(_ *machine, in any, _ []any) (any, error) {
	list, ok := in.([]any)
	if o, isObject := in.(*object); isObject {
		list, ok = o.vals, true
	}
	if !ok {
		return nil, failf("Cannot iterate over %s", describe(in))
	}
	out := &object{}
	for _, x := range list {
		var key, val any
		if x != nil {
			o, ok := x.(*object)
			if !ok {
				return nil, failf("Cannot index %s with \"key\"", typeOf(x))
			}
			for _, n := range []string{"key", "k", "name", "Name", "K", "Key"} {
				if v, ok := o.get(n); ok && v != nil && v != false {
					key = v
					break
				} else if ok && v == false && key == nil {
					key = v
				}
			}
			for _, n := range []string{"value", "v", "Value", "V"} {
				if v, ok := o.get(n); ok {
					val = v
					break
				}
			}
		}
		switch k := key.(type) {
		case string:
			out.put(k, val)
		case nil:
			out.put("null", val)
		case bool, float64, literal:
			out.put(compact(k), val)
		default:
			return nil, failf("Cannot use %s as object key", describe(key))
		}
	}
	return out, nil
}

// Expressions.

func (m *machine) regexp(pattern, flags any) (*regex.Regexp, bool, bool, error) {
	p, ok := pattern.(string)
	if !ok {
		return nil, false, false, failf("%s cannot be matched, as it is not a string", describe(pattern))
	}
	f := ""
	if flags != nil {
		if f, ok = flags.(string); !ok {
			return nil, false, false, failf("%s is not a string", describe(flags))
		}
	}
	global, skipEmpty := false, false
	set := regex.Unicode
	for _, c := range f {
		switch c {
		case 'g':
			global = true
		case 'i':
			set |= regex.IgnoreCase
		case 'x':
			set |= regex.Extended
		case 'p':
			set |= regex.DotAll
		case 's', 'l':
			// Single-line mode is how ^ and $ are already; the longest match is what there is but for alternatives.
		case 'n':
			skipEmpty = true
		default:
			return nil, false, false, failf("%s is not a valid modifier string", f)
		}
	}
	name := f + "/" + p
	re := m.regexps[name]
	if re == nil {
		var err error
		if re, err = regex.Compile(p, regex.PCRE, set); err != nil {
			return nil, false, false, failf("%s (at offset 0) is not a valid regex: %v", p, err)
		}
		m.regexps[name] = re
	}
	return re, global, skipEmpty, nil
}

// find calls f for each match in s.
func (m *machine) find(re *regex.Regexp, s string, global, skipEmpty bool, f func(at []int) error) error {
	b := []byte(s)
	for from := 0; from <= len(b); {
		at := re.FindIndex(m.ctx, b, from)
		if at == nil {
			return nil
		}
		if at[0] != at[1] || !skipEmpty {
			if err := f(at); err != nil {
				return err
			}
			if !global {
				return nil
			}
		}
		if from = at[1]; at[0] == at[1] {
			_, n := utf8.DecodeRune(b[from:])
			from += max(n, 1)
		}
	}
	return nil
}

func (m *machine) matchObject(re *regex.Regexp, s string, at []int) *object {
	names := map[int]string{}
	for n, i := range re.Names() {
		names[i] = n
	}
	captures := []any{}
	for i := 1; i <= re.Groups(); i++ {
		o := &object{}
		from, to := at[2*i], at[2*i+1]
		var text any
		offset := -1.0
		if from >= 0 {
			text = s[from:to]
			offset = float64(utf8.RuneCountInString(s[:from]))
		}
		o.put("offset", offset)
		length := 0.0
		if from >= 0 {
			length = float64(utf8.RuneCountInString(s[from:to]))
		}
		o.put("length", length)
		o.put("string", text)
		var name any
		if n, ok := names[i]; ok {
			name = n
		}
		o.put("name", name)
		captures = append(captures, o)
	}
	return &object{keys: []string{"offset", "length", "string", "captures"}, vals: []any{
		float64(utf8.RuneCountInString(s[:at[0]])), float64(utf8.RuneCountInString(s[at[0]:at[1]])), s[at[0]:at[1]], captures,
	}}
}

func subject(in any) (string, error) {
	s, ok := in.(string)
	if !ok {
		return "", failf("%s cannot be matched, as it is not a string", describe(in))
	}
	return s, nil
}

// matchAll is _match(pattern; flags): all matches, as an array. A pattern may be an array with its flags.
func matchAll(m *machine, in any, args []any) (any, error) {
	s, err := subject(in)
	if err != nil {
		return nil, err
	}
	pattern, flags := args[0], args[1]
	if a, ok := pattern.([]any); ok {
		if len(a) == 0 {
			return nil, failf("%s cannot be matched, as it is not a string", describe(pattern))
		}
		if pattern = a[0]; len(a) > 1 {
			flags = a[1]
		}
	}
	re, global, skip, err := m.regexp(pattern, flags)
	if err != nil {
		return nil, err
	}
	out := []any{}
	err = m.find(re, s, global, skip, func(at []int) error {
		out = append(out, m.matchObject(re, s, at))
		return nil
	})
	return out, err
}

func test(m *machine, in any, args []any) (any, error) {
	v, err := matchAll(m, in, args)
	if err != nil {
		return nil, err
	}
	return len(v.([]any)) > 0, nil
}

// substitute is sub and gsub. Each output of the replacement makes an output of its own.
func (c *compiler) substitute(pattern, repl, flags filter, global bool) filter {
	m := c.m
	return func(e *env, in item, yield func(item) error) error {
		plain := item{v: in.v}
		return pattern(e, plain, func(p item) error {
			return flags(e, plain, func(f item) error {
				s, err := subject(in.v)
				if err != nil {
					return err
				}
				re, g, skip, err := m.regexp(p.v, f.v)
				if err != nil {
					return err
				}
				outs := []string{""}
				done := 0
				names := re.Names()
				order := make([]string, re.Groups()+1)
				for n, i := range names {
					order[i] = n
				}
				err = m.find(re, s, g || global, skip, func(at []int) error {
					o := &object{}
					for i, n := range order {
						if n == "" {
							continue
						}
						var v any
						if at[2*i] >= 0 {
							v = s[at[2*i]:at[2*i+1]]
						}
						o.put(n, v)
					}
					var next []string
					err := repl(e, item{v: o}, func(r item) error {
						t, ok := r.v.(string)
						if !ok {
							return failf("%s cannot be added to a string", describe(r.v))
						}
						for _, old := range outs {
							next = append(next, old+s[done:at[0]]+t)
						}
						return nil
					})
					outs = next
					done = at[1]
					return err
				})
				if err != nil {
					return err
				}
				for _, o := range outs {
					if err := yield(made(in, o+s[done:])); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// Times.

func brokenDown(t time.Time) []any {
	sec := float64(t.Second()) + float64(t.Nanosecond())/1e9
	return []any{float64(t.Year()), float64(t.Month() - 1), float64(t.Day()), float64(t.Hour()), float64(t.Minute()), sec,
		float64(t.Weekday()), float64(t.YearDay() - 1)}
}

func toTime(v any, what string, zone *time.Location) (time.Time, error) {
	if f, ok := number(v); ok {
		return time.Unix(int64(math.Floor(f)), 0).In(zone), nil
	}
	a, ok := v.([]any)
	if !ok {
		return time.Time{}, failf("%s requires parsed datetime inputs", what)
	}
	var n [6]int
	for i := range n {
		if i >= len(a) {
			return time.Time{}, failf("%s requires parsed datetime inputs", what)
		}
		f, ok := number(a[i])
		if !ok {
			return time.Time{}, failf("%s requires parsed datetime inputs", what)
		}
		n[i] = int(f)
	}
	return time.Date(n[0], time.Month(n[1]+1), n[2], n[3], n[4], n[5], 0, zone), nil
}

func fromSeconds(v any, what string) (time.Time, error) {
	f, ok := number(v)
	if !ok {
		return time.Time{}, failf("%s() requires a number", what)
	}
	whole := math.Floor(f)
	return time.Unix(int64(whole), int64((f-whole)*1e9)), nil
}

func (m *machine) zone() *time.Location {
	if name := m.c.Getenv("TZ"); name != "" {
		if z, err := time.LoadLocation(strings.TrimPrefix(name, ":")); err == nil {
			return z
		}
		return time.UTC
	}
	return time.Local
}

func text1(what string, f func(string) (any, error)) native {
	return func(_ *machine, in any, _ []any) (any, error) {
		s, ok := in.(string)
		if !ok {
			return nil, failf("%s", what)
		}
		return f(s)
	}
}

func math1(name string, f func(float64) float64) native {
	return func(_ *machine, in any, _ []any) (any, error) {
		x, ok := number(in)
		if !ok {
			return nil, failf("%s number required", describe(in))
		}
		return f(x), nil
	}
}

func math2(f func(a, b float64) float64) native {
	return func(_ *machine, _ any, args []any) (any, error) {
		x, ok := number(args[0])
		if !ok {
			return nil, failf("%s number required", describe(args[0]))
		}
		y, ok := number(args[1])
		if !ok {
			return nil, failf("%s number required", describe(args[1]))
		}
		return f(x, y), nil
	}
}

func list(in any) ([]any, error) {
	a, ok := in.([]any)
	if !ok {
		return nil, failf("%s cannot be sorted, as it is not an array", describe(in))
	}
	return a, nil
}

func sorted(a []any) []any {
	out := slices.Clone(a)
	slices.SortStableFunc(out, compare)
	return out
}

func keysOf(in any, inOrder bool) (any, error) {
	out := []any{}
	switch v := in.(type) {
	case *object:
		names := v.keys
		if inOrder {
			names = v.sorted()
		}
		for _, k := range names {
			out = append(out, k)
		}
	case []any:
		for i := range v {
			out = append(out, float64(i))
		}
	default:
		return nil, failf("%s has no keys", describe(in))
	}
	return out, nil
}

func contains(a, b any) (bool, error) {
	switch x := a.(type) {
	case *object:
		if y, ok := b.(*object); ok {
			for i, k := range y.keys {
				v, ok := x.get(k)
				if !ok {
					return false, nil
				}
				if in, err := contains(v, y.vals[i]); !in || err != nil {
					return false, err
				}
			}
			return true, nil
		}
	case []any:
		if y, ok := b.([]any); ok {
			for _, w := range y {
				found := false
				for _, v := range x {
					if rank(v) != rank(w) && !(typeOf(v) == "boolean" && typeOf(w) == "boolean") {
						continue
					}
					in, err := contains(v, w)
					if err != nil {
						return false, err
					}
					found = found || in
				}
				if !found {
					return false, nil
				}
			}
			return true, nil
		}
	case string:
		if y, ok := b.(string); ok {
			return strings.Contains(x, y), nil
		}
	}
	if typeOf(a) == typeOf(b) {
		return equal(a, b), nil
	}
	return false, failf("%s and %s cannot have their containment checked", describe(a), describe(b))
}

func flatten(a []any, depth float64, out []any) []any {
	for _, x := range a {
		if sub, ok := x.([]any); ok && depth > 0 {
			out = flatten(sub, depth-1, out)
		} else {
			out = append(out, x)
		}
	}
	return out
}

func bound(in any, want int) (any, error) {
	a, err := list(in)
	if err != nil || len(a) == 0 {
		return nil, err
	}
	out := a[0]
	for _, x := range a[1:] {
		if c := compare(x, out); want < 0 && c < 0 || want > 0 && c >= 0 {
			out = x
		}
	}
	return out, nil
}

func trim(left, right bool) native {
	return text1("trim input must be a string", func(s string) (any, error) {
		const space = " \t\n\v\f\r"
		if left {
			s = strings.TrimLeft(s, space)
		}
		if right {
			s = strings.TrimRight(s, space)
		}
		return s, nil
	})
}

func mapASCII(what string, from, to byte, by int) native {
	return text1(what+" input must be a string", func(s string) (any, error) {
		b := []byte(s)
		for i, c := range b {
			if from <= c && c <= to {
				b[i] = byte(int(c) + by)
			}
		}
		return string(b), nil
	})
}

var natives = map[string]native{
	"not/0": func(_ *machine, in any, _ []any) (any, error) { return !truth(in), nil },
	"length/0": func(_ *machine, in any, _ []any) (any, error) {
		switch v := in.(type) {
		case nil:
			return 0.0, nil
		case string:
			return float64(utf8.RuneCountInString(v)), nil
		case []any:
			return float64(len(v)), nil
		case *object:
			return float64(v.len()), nil
		case float64, literal:
			f, _ := number(v)
			return math.Abs(f), nil
		}
		return nil, failf("%s has no length", describe(in))
	},
	"utf8bytelength/0": func(_ *machine, in any, _ []any) (any, error) {
		s, ok := in.(string)
		if !ok {
			return nil, failf("%s only strings have UTF-8 byte length", describe(in))
		}
		return float64(len(s)), nil
	},
	"keys/0":          func(_ *machine, in any, _ []any) (any, error) { return keysOf(in, true) },
	"keys_unsorted/0": func(_ *machine, in any, _ []any) (any, error) { return keysOf(in, false) },
	"to_entries/0":    toEntries,
	"from_entries/0":  fromEntries,
	"add/0": func(m *machine, in any, _ []any) (any, error) {
		switch v := in.(type) {
		case []any:
			return sum(v)
		case *object:
			return sum(v.vals)
		}
		return nil, m.iterate(item{v: in}, nil)
	},
	"type/0":     func(_ *machine, in any, _ []any) (any, error) { return typeOf(in), nil },
	"tostring/0": func(_ *machine, in any, _ []any) (any, error) { return toString(in), nil },
	"tojson/0":   func(_ *machine, in any, _ []any) (any, error) { return compact(in), nil },
	"fromjson/0": func(_ *machine, in any, _ []any) (any, error) {
		s, ok := in.(string)
		if !ok {
			return nil, failf("%s cannot be parsed as JSON", describe(in))
		}
		v, err := decodeString(s)
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return nil, failf("%v (while parsing '%s')", err, s)
		}
		return v, nil
	},
	"tonumber/0": func(_ *machine, in any, _ []any) (any, error) {
		switch v := in.(type) {
		case float64, literal:
			return v, nil
		case string:
			if n, ok := parseNumber(strings.TrimSpace(v)); ok {
				return n, nil
			}
			if v == "nan" {
				return math.NaN(), nil
			}
			return nil, failf("Cannot parse '%s' as JSON", v)
		}
		return nil, failf("%s cannot be parsed as a number", describe(in))
	},
	"infinite/0": func(*machine, any, []any) (any, error) { return math.Inf(1), nil },
	"nan/0":      func(*machine, any, []any) (any, error) { return math.NaN(), nil },
	"null/0":     func(*machine, any, []any) (any, error) { return nil, nil },
	"true/0":     func(*machine, any, []any) (any, error) { return true, nil },
	"false/0":    func(*machine, any, []any) (any, error) { return false, nil },
	"isinfinite/0": func(_ *machine, in any, _ []any) (any, error) {
		f, ok := number(in)
		if !ok {
			return nil, failf("%s number required", describe(in))
		}
		return math.IsInf(f, 0), nil
	},
	"isnan/0": func(_ *machine, in any, _ []any) (any, error) {
		f, ok := number(in)
		if !ok {
			return nil, failf("%s number required", describe(in))
		}
		return f != f, nil
	},
	"isnormal/0": func(_ *machine, in any, _ []any) (any, error) {
		f, ok := number(in)
		if !ok {
			return nil, failf("%s number required", describe(in))
		}
		return !math.IsInf(f, 0) && f == f && math.Abs(f) >= 0x1p-1022, nil
	},
	"sort/0": func(_ *machine, in any, _ []any) (any, error) {
		a, err := list(in)
		if err != nil {
			return nil, err
		}
		return sorted(a), nil
	},
	"unique/0": func(_ *machine, in any, _ []any) (any, error) {
		a, err := list(in)
		if err != nil {
			return nil, err
		}
		return slices.CompactFunc(sorted(a), equal), nil
	},
	"min/0": func(_ *machine, in any, _ []any) (any, error) { return bound(in, -1) },
	"max/0": func(_ *machine, in any, _ []any) (any, error) { return bound(in, 1) },
	"reverse/0": func(_ *machine, in any, _ []any) (any, error) {
		switch v := in.(type) {
		case nil:
			return []any{}, nil
		case string:
			r := []rune(v)
			slices.Reverse(r)
			return string(r), nil
		case []any:
			out := slices.Clone(v)
			slices.Reverse(out)
			return out, nil
		}
		return nil, failf("Cannot reverse %s", describe(in))
	},
	"contains/1": func(_ *machine, in any, args []any) (any, error) { return contains(in, args[0]) },
	"inside/1":   func(_ *machine, in any, args []any) (any, error) { return contains(args[0], in) },
	"has/1": func(_ *machine, in any, args []any) (any, error) {
		switch v := in.(type) {
		case *object:
			if k, ok := args[0].(string); ok {
				return v.find(k) >= 0, nil
			}
		case []any:
			if f, ok := number(args[0]); ok {
				return f >= 0 && f < float64(len(v)), nil
			}
		}
		return nil, failf("Cannot check whether %s has a %s key", typeOf(in), typeOf(args[0]))
	},
	"startswith/1": func(_ *machine, in any, args []any) (any, error) {
		s, ok := in.(string)
		p, ok2 := args[0].(string)
		if !ok || !ok2 {
			return nil, failf("startswith() requires string inputs")
		}
		return strings.HasPrefix(s, p), nil
	},
	"endswith/1": func(_ *machine, in any, args []any) (any, error) {
		s, ok := in.(string)
		p, ok2 := args[0].(string)
		if !ok || !ok2 {
			return nil, failf("endswith() requires string inputs")
		}
		return strings.HasSuffix(s, p), nil
	},
	"ltrimstr/1": func(_ *machine, in any, args []any) (any, error) {
		s, ok := in.(string)
		p, ok2 := args[0].(string)
		if !ok || !ok2 {
			return in, nil
		}
		return strings.TrimPrefix(s, p), nil
	},
	"rtrimstr/1": func(_ *machine, in any, args []any) (any, error) {
		s, ok := in.(string)
		p, ok2 := args[0].(string)
		if !ok || !ok2 {
			return in, nil
		}
		return strings.TrimSuffix(s, p), nil
	},
	"trim/0":           trim(true, true),
	"ltrim/0":          trim(true, false),
	"rtrim/0":          trim(false, true),
	"ascii_downcase/0": mapASCII("ascii_downcase", 'A', 'Z', 32),
	"ascii_upcase/0":   mapASCII("ascii_upcase", 'a', 'z', -32),
	"explode/0": text1("explode input must be a string", func(s string) (any, error) {
		out := []any{}
		for _, r := range s {
			out = append(out, float64(r))
		}
		return out, nil
	}),
	"implode/0": func(_ *machine, in any, _ []any) (any, error) {
		a, ok := in.([]any)
		if !ok {
			return nil, failf("implode input must be an array")
		}
		var b strings.Builder
		for _, x := range a {
			f, ok := number(x)
			if !ok {
				return nil, failf("Unicode codepoint must be numeric")
			}
			b.WriteRune(rune(f))
		}
		return b.String(), nil
	},
	"split/1": func(_ *machine, in any, args []any) (any, error) {
		s, ok := in.(string)
		p, ok2 := args[0].(string)
		if !ok || !ok2 {
			return nil, failf("split input and separator must be strings")
		}
		return splitText(s, p), nil
	},
	"split/2": func(m *machine, in any, args []any) (any, error) {
		s, err := subject(in)
		if err != nil {
			return nil, err
		}
		re, _, skip, err := m.regexp(args[0], args[1])
		if err != nil {
			return nil, err
		}
		out := []any{}
		from := 0
		err = m.find(re, s, true, skip, func(at []int) error {
			out = append(out, s[from:at[0]])
			from = at[1]
			return nil
		})
		return append(out, s[from:]), err
	},
	"join/1": func(_ *machine, in any, args []any) (any, error) {
		var a []any
		switch v := in.(type) {
		case []any:
			a = v
		case *object:
			a = v.vals
		default:
			return nil, failf("Cannot iterate over %s", describe(in))
		}
		if len(a) == 0 {
			return "", nil
		}
		sep, ok := args[0].(string)
		if !ok && (args[0] != nil || len(a) > 1) {
			return nil, failf("%s and %s cannot be added", describe(""), describe(args[0]))
		}
		var b strings.Builder
		for i, x := range a {
			if i > 0 {
				b.WriteString(sep)
			}
			switch x := x.(type) {
			case nil:
			case string:
				b.WriteString(x)
			case bool, float64, literal:
				b.WriteString(compact(x))
			default:
				return nil, failf("%s and %s cannot be added", describe(b.String()), describe(x))
			}
		}
		return b.String(), nil
	},
	"flatten/0": func(_ *machine, in any, _ []any) (any, error) {
		if o, ok := in.(*object); ok {
			in = o.vals
		}
		a, ok := in.([]any)
		if !ok {
			return nil, failf("Cannot iterate over %s", describe(in))
		}
		return flatten(a, math.Inf(1), []any{}), nil
	},
	"flatten/1": func(_ *machine, in any, args []any) (any, error) {
		if o, ok := in.(*object); ok {
			in = o.vals
		}
		a, ok := in.([]any)
		f, ok2 := number(args[0])
		if !ok || !ok2 {
			return nil, failf("Cannot iterate over %s", describe(in))
		}
		if f < 0 {
			return nil, failf("flatten depth must not be negative")
		}
		return flatten(a, f, []any{}), nil
	},
	"transpose/0": func(_ *machine, in any, _ []any) (any, error) {
		rows, err := list(in)
		if err != nil {
			return nil, err
		}
		n := 0
		for _, r := range rows {
			a, ok := r.([]any)
			if !ok {
				return nil, failf("Cannot index %s with number", typeOf(r))
			}
			n = max(n, len(a))
		}
		out := make([]any, n)
		for i := range out {
			col := make([]any, len(rows))
			for j, r := range rows {
				if a := r.([]any); i < len(a) {
					col[j] = a[i]
				}
			}
			out[i] = col
		}
		return out, nil
	},
	"indices/1": func(_ *machine, in any, args []any) (any, error) { return indices(in, args[0]), nil },
	"index/1": func(_ *machine, in any, args []any) (any, error) {
		a, _ := indices(in, args[0]).([]any)
		if len(a) == 0 {
			return nil, nil
		}
		return a[0], nil
	},
	"rindex/1": func(_ *machine, in any, args []any) (any, error) {
		a, _ := indices(in, args[0]).([]any)
		if len(a) == 0 {
			return nil, nil
		}
		return a[len(a)-1], nil
	},
	"setpath/2": func(_ *machine, in any, args []any) (any, error) {
		at, ok := args[0].([]any)
		if !ok {
			return nil, failf("Path must be specified as an array")
		}
		return setPath(in, at, args[1])
	},
	"delpaths/1": func(_ *machine, in any, args []any) (any, error) {
		paths, ok := args[0].([]any)
		if !ok {
			return nil, failf("Paths must be specified as an array")
		}
		for _, p := range paths {
			if _, ok := p.([]any); !ok {
				return nil, failf("Path must be specified as an array")
			}
		}
		if len(paths) == 0 {
			return in, nil
		}
		return deletePaths(in, paths)
	},
	"_match/2": matchAll,
	"test/1":   func(m *machine, in any, args []any) (any, error) { return test(m, in, []any{args[0], nil}) },
	"test/2":   test,
	"now/0": func(*machine, any, []any) (any, error) {
		return float64(time.Now().UnixMicro()) / 1e6, nil
	},
	"mktime/0": func(_ *machine, in any, _ []any) (any, error) {
		if _, ok := in.([]any); !ok {
			return nil, failf("mktime requires array of 6 numbers")
		}
		t, err := toTime(in, "mktime", time.UTC)
		if err != nil {
			return nil, err
		}
		return float64(t.Unix()), nil
	},
	"gmtime/0": func(_ *machine, in any, _ []any) (any, error) {
		t, err := fromSeconds(in, "gmtime")
		if err != nil {
			return nil, err
		}
		return brokenDown(t.UTC()), nil
	},
	"localtime/0": func(m *machine, in any, _ []any) (any, error) {
		t, err := fromSeconds(in, "localtime")
		if err != nil {
			return nil, err
		}
		return brokenDown(t.In(m.zone())), nil
	},
	"strftime/1": func(_ *machine, in any, args []any) (any, error) {
		t, err := toTime(in, "strftime/1", time.UTC)
		if err != nil {
			return nil, err
		}
		f, ok := args[0].(string)
		if !ok {
			return nil, failf("strftime/1 requires a string format")
		}
		return timefmt.Format(t, f), nil
	},
	"strflocaltime/1": func(m *machine, in any, args []any) (any, error) {
		t, err := toTime(in, "strflocaltime/1", m.zone())
		if err != nil {
			return nil, err
		}
		f, ok := args[0].(string)
		if !ok {
			return nil, failf("strflocaltime/1 requires a string format")
		}
		return timefmt.Format(t, f), nil
	},
	"strptime/1": func(_ *machine, in any, args []any) (any, error) {
		s, ok := in.(string)
		if !ok {
			return nil, failf("strptime/1 requires string inputs and arguments")
		}
		f, ok := args[0].(string)
		if !ok {
			return nil, failf("strptime/1 requires string inputs and arguments")
		}
		t, err := timefmt.Parse(s, f)
		if err != nil {
			return nil, failf("date \"%s\" does not match format \"%s\"", s, f)
		}
		return brokenDown(t), nil
	},
	"input_filename/0":       func(m *machine, _ any, _ []any) (any, error) { return m.name(), nil },
	"input_line_number/0":    func(m *machine, _ any, _ []any) (any, error) { return float64(m.line()), nil },
	"get_search_list/0":      func(m *machine, _ any, _ []any) (any, error) { return texts(m.library), nil },
	"have_literal_numbers/0": func(*machine, any, []any) (any, error) { return true, nil },
	"have_decnum/0":          func(*machine, any, []any) (any, error) { return false, nil },
	"toarray/0": func(_ *machine, in any, _ []any) (any, error) {
		if a, ok := in.([]any); ok {
			return a, nil
		}
		return []any{in}, nil
	},
	"abs/0": func(_ *machine, in any, _ []any) (any, error) {
		f, ok := number(in)
		if !ok {
			return nil, failf("%s has no absolute value", describe(in))
		}
		return math.Abs(f), nil
	},
	"ascii/0": func(_ *machine, in any, _ []any) (any, error) {
		f, ok := number(in)
		if !ok {
			return nil, failf("%s number required", describe(in))
		}
		return string(rune(f)), nil
	},
	"floor/0":       math1("floor", math.Floor),
	"ceil/0":        math1("ceil", math.Ceil),
	"round/0":       math1("round", math.Round),
	"trunc/0":       math1("trunc", math.Trunc),
	"rint/0":        math1("rint", math.RoundToEven),
	"nearbyint/0":   math1("nearbyint", math.RoundToEven),
	"fabs/0":        math1("fabs", math.Abs),
	"sqrt/0":        math1("sqrt", math.Sqrt),
	"cbrt/0":        math1("cbrt", math.Cbrt),
	"exp/0":         math1("exp", math.Exp),
	"exp2/0":        math1("exp2", math.Exp2),
	"exp10/0":       math1("exp10", func(f float64) float64 { return math.Pow(10, f) }),
	"expm1/0":       math1("expm1", math.Expm1),
	"log/0":         math1("log", math.Log),
	"log2/0":        math1("log2", math.Log2),
	"log10/0":       math1("log10", math.Log10),
	"log1p/0":       math1("log1p", math.Log1p),
	"sin/0":         math1("sin", math.Sin),
	"cos/0":         math1("cos", math.Cos),
	"tan/0":         math1("tan", math.Tan),
	"asin/0":        math1("asin", math.Asin),
	"acos/0":        math1("acos", math.Acos),
	"atan/0":        math1("atan", math.Atan),
	"sinh/0":        math1("sinh", math.Sinh),
	"cosh/0":        math1("cosh", math.Cosh),
	"tanh/0":        math1("tanh", math.Tanh),
	"asinh/0":       math1("asinh", math.Asinh),
	"acosh/0":       math1("acosh", math.Acosh),
	"atanh/0":       math1("atanh", math.Atanh),
	"gamma/0":       math1("gamma", func(f float64) float64 { g, _ := math.Lgamma(f); return g }),
	"lgamma/0":      math1("lgamma", func(f float64) float64 { g, _ := math.Lgamma(f); return g }),
	"tgamma/0":      math1("tgamma", math.Gamma),
	"logb/0":        math1("logb", math.Logb),
	"significand/0": math1("significand", func(f float64) float64 { m, _ := math.Frexp(f); return m * 2 }),
	"pow/2":         math2(math.Pow),
	"atan2/2":       math2(math.Atan2),
	"fmod/2":        math2(math.Mod),
	"fmin/2":        math2(math.Min),
	"fmax/2":        math2(math.Max),
	"hypot/2":       math2(math.Hypot),
	"copysign/2":    math2(math.Copysign),
	"drem/2":        math2(math.Remainder),
	"ldexp/2":       math2(func(a, b float64) float64 { return math.Ldexp(a, int(b)) }),
	"scalb/2":       math2(func(a, b float64) float64 { return a * math.Pow(2, b) }),
	"scalbln/2":     math2(func(a, b float64) float64 { return math.Ldexp(a, int(b)) }),
	"nextafter/2":   math2(math.Nextafter),
}

func texts(list []string) []any {
	out := []any{}
	for _, s := range list {
		out = append(out, s)
	}
	return out
}

// library are functions in jq's own language, compiled when they are first used.
var library = map[string]string{
	"values/0": `def values: select(. != null);`, "nulls/0": `def nulls: select(. == null);`,
	"booleans/0": `def booleans: select(type == "boolean");`, "numbers/0": `def numbers: select(type == "number");`,
	"strings/0": `def strings: select(type == "string");`, "arrays/0": `def arrays: select(type == "array");`,
	"objects/0":         `def objects: select(type == "object");`,
	"iterables/0":       `def iterables: select(type == "array" or type == "object");`,
	"scalars/0":         `def scalars: select(type != "array" and type != "object");`,
	"finites/0":         `def finites: select(isinfinite or isnan | not);`,
	"normals/0":         `def normals: select(isnormal);`,
	"recurse_down/0":    `def recurse_down: recurse;`,
	"paths/1":           `def paths(f): . as $dot | paths | select(. as $p | $dot | getpath($p) | f);`,
	"leaf_paths/0":      `def leaf_paths: paths(scalars);`,
	"first/0":           `def first: .[0];`,
	"last/0":            `def last: .[-1];`,
	"nth/1":             `def nth($n): .[$n];`,
	"nth/2":             `def nth($n; f): if $n < 0 then error("Out of bounds negative array index") else last(limit($n + 1; f)) end;`,
	"in/1":              `def in(xs): . as $x | xs | has($x);`,
	"combinations/0":    `def combinations: if length == 0 then [] else .[0][] as $x | (.[1:] | combinations) as $w | [$x] + $w end;`,
	"combinations/1":    `def combinations(n): . as $dot | [range(n)] | map($dot) | combinations;`,
	"match/1":           `def match($re): _match($re; null) | .[];`,
	"match/2":           `def match($re; $flags): _match($re; $flags) | .[];`,
	"capture/1":         `def capture($re): capture($re; null);`,
	"capture/2":         `def capture($re; $flags): match($re; $flags) | [.captures | .[] | select(.name != null) | {key: .name, value: .string}] | from_entries;`,
	"scan/1":            `def scan($re): scan($re; null);`,
	"scan/2":            `def scan($re; $flags): match($re; "g" + $flags) | if (.captures | length) > 0 then [.captures[].string] else .string end;`,
	"splits/1":          `def splits($re): split($re; null) | .[];`,
	"splits/2":          `def splits($re; $flags): split($re; $flags) | .[];`,
	"todate/0":          `def todate: strftime("%Y-%m-%dT%H:%M:%SZ");`,
	"fromdate/0":        `def fromdate: fromdateiso8601;`,
	"date/0":            `def date: todate;`,
	"fromdateiso8601/0": `def fromdateiso8601: strptime("%Y-%m-%dT%H:%M:%SZ") | mktime;`,
	"todateiso8601/0":   `def todateiso8601: strftime("%Y-%m-%dT%H:%M:%SZ");`,
	"dateadd/2":         `def dateadd(u; n): . + n;`,
	"datesub/2":         `def datesub(u; n): . - n;`,
	"tostream/0":        `def tostream: path(def r: (.[]? | r), .; r) as $p | getpath($p) | reduce path(.[]?) as $q ([$p, .]; [$p + $q]);`,
	"fromstream/1":      `def fromstream(f): {x: null, e: false} as $init | foreach f as $i ($init; if .e then $init else . end | if $i | length == 2 then setpath(["e"]; $i[0] | length == 0) | setpath(["x"] + $i[0]; $i[1]) else setpath(["e"]; $i[0] | length == 1) end; if .e then .x else empty end);`,
	"truncate_stream/1": `def truncate_stream(stream): . as $n | null | stream | . as $input | if (.[0] | length) > $n then setpath([0]; .[0][$n:]) else empty end;`,
	"IN/1":              `def IN(s): any(s == .; .);`,
	"IN/2":              `def IN(src; s): any(src == s; .);`,
	"INDEX/1":           `def INDEX(f): INDEX(.[]; f);`,
	"INDEX/2":           `def INDEX(stream; f): reduce stream as $row ({}; .[$row | f | tostring] |= $row);`,
	"UNIQUE_BY/1":       `def UNIQUE_BY(f): [group_by(f)[] | .[0]];`,
	"JOIN/2":            `def JOIN($idx; f): [.[] | [., $idx[f]]];`,
	"JOIN/3":            `def JOIN($idx; stream; f): stream | [., $idx[f]];`,
	"JOIN/4":            `def JOIN($idx; stream; f; g): stream | [., $idx[f]] | g;`,
	"pick/1":            `def pick(f): . as $top | reduce path(f) as $p (null; setpath($p; $top | getpath($p)));`,
	"bsearch/1":         `def bsearch($x): . as $list | {from: 0, to: length} | until(.from >= .to; (.from + .to | . / 2 | floor) as $mid | if $list[$mid] < $x then .from = $mid + 1 else .to = $mid end) | .from | if $list[.:] | length > 0 and .[0] == $x then . else -1 - . end;`,
	"isvalid/1":         `def isvalid(f): try (f | true) catch false;`,
	"frexp/0":           `def frexp: if . == 0 then [0, 0] else (fabs | log2 | floor + 1) as $e | [. / pow(2; $e), $e] end;`,
	"modf/0":            `def modf: [. - trunc, trunc];`,
	"fma/3":             `def fma($a; $b; $c): $a * $b + $c;`,
}

// fromLibrary compiles a function of the library.
func (c *compiler) fromLibrary(name string) *function {
	if f := c.lib[name]; f != nil {
		return f
	}
	src, ok := library[name]
	if !ok {
		return nil
	}
	m, err := parseProgram(src)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", name, err))
	}
	d := m.defs[0]
	// A place first, for those that call themselves.
	f := &function{global: true, id: c.id()}
	c.lib[name] = f
	s := &scope{name: name, id: f.id, fn: f}
	inner := s
	for _, p := range d.params {
		if p[0] == '$' {
			inner = c.bind(inner, p)
			v := inner.id
			inner = c.bind(inner, p[1:]+"/0")
			inner.param = true
			f.params = append(f.params, param{inner.id, v})
			continue
		}
		inner = c.bind(inner, p+"/0")
		inner.param = true
		f.params = append(f.params, param{id: inner.id})
	}
	f.body = c.compile(d.body, inner)
	return f
}
