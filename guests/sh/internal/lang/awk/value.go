package awk

import (
	"math"
	"strconv"
	"strings"
)

type kind uint8

const (
	uninit kind = iota
	number
	text
	input // text that counts as a number where it looks like one
)

type value struct {
	s    string
	n    float64
	kind kind
}

func num(f float64) value  { return value{n: f, kind: number} }
func str(s string) value   { return value{s: s, kind: text} }
func given(s string) value { return value{s: s, kind: input} }

func truth(b bool) value {
	if b {
		return num(1)
	}
	return num(0)
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// parse returns the number that s begins with, and whether it is all of s but white space around it.
func (it *interp) parse(s string) (float64, bool) {
	i := 0
	for i < len(s) && isSpace(s[i]) {
		i++
	}
	j := len(s)
	for j > i && isSpace(s[j-1]) {
		j--
	}
	if s = s[i:j]; s == "" {
		return 0, false
	}
	// Most are short whole numbers.
	n := 0
	for k := 0; k < len(s) && k < 15; k++ {
		if !isDigit(s[k]) {
			break
		}
		n = n*10 + int(s[k]-'0')
		if k == len(s)-1 {
			return float64(n), true
		}
	}
	sign, rest := 1.0, s
	if s[0] == '+' || s[0] == '-' {
		if s[0] == '-' {
			sign = -1
		}
		rest = s[1:]
	}
	if rest == "" {
		return 0, false
	}
	if c := rest[0]; !isDigit(c) && c != '.' {
		if it.gawk && len(rest) == len(s) {
			return 0, false // gawk takes only +nan and its like
		}
		switch strings.ToLower(rest) {
		case "inf", "infinity":
			return math.Inf(int(sign)), true
		case "nan":
			return math.Copysign(math.NaN(), sign), true
		}
		return 0, false
	}
	if len(rest) > 2 && rest[0] == '0' && rest[1]|32 == 'x' && !it.gawk {
		k := 2
		v := 0.0
		for k < len(rest) {
			d, err := strconv.ParseUint(rest[k:k+1], 16, 8)
			if err != nil {
				break
			}
			v = v*16 + float64(d)
			k++
		}
		if k > 2 {
			return sign * v, k == len(rest)
		}
	}
	k := numberPrefix(rest)
	if k == 0 {
		return 0, false
	}
	f, _ := strconv.ParseFloat(rest[:k], 64)
	return sign * f, k == len(rest)
}

func (it *interp) num(v value) float64 {
	switch v.kind {
	case number:
		return v.n
	case uninit:
		return 0
	}
	f, _ := it.parse(v.s)
	return f
}

// numeric returns v's number when it counts as one.
func (it *interp) numeric(v value) (float64, bool) {
	switch v.kind {
	case number:
		return v.n, true
	case uninit:
		return 0, true
	case input:
		return it.parse(v.s)
	}
	return 0, false
}

func (it *interp) bool(v value) bool {
	switch v.kind {
	case number:
		return v.n != 0
	case uninit:
		return false
	case input:
		if f, ok := it.parse(v.s); ok {
			return f != 0
		}
	}
	return v.s != ""
}

// str is v as text; numbers that are not whole go through CONVFMT.
func (it *interp) str(v value) string {
	if v.kind == number {
		return it.format(v.n, it.convfmt)
	}
	return v.s
}

// out is v as print shows it.
func (it *interp) out(v value) string {
	if v.kind == number {
		return it.format(v.n, it.ofmt)
	}
	return v.s
}

func (it *interp) format(f float64, how string) string {
	if f == math.Trunc(f) && math.Abs(f) < 1e16 {
		return strconv.FormatInt(int64(f), 10)
	}
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return notFinite(f)
	}
	if f == math.Trunc(f) && it.gawk {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	if how == "%.6g" {
		return strconv.FormatFloat(f, 'g', 6, 64)
	}
	return it.sprintf(how, []value{num(f)})
}

func notFinite(f float64) string {
	s := "nan"
	if math.IsInf(f, 0) {
		s = "inf"
	}
	if math.Signbit(f) {
		s = "-" + s
	}
	return s
}

// compare is below, at or above 0 as a comes before b.
func (it *interp) compare(a, b value) int {
	if x, ok := it.numeric(a); ok {
		if y, ok := it.numeric(b); ok {
			switch {
			case x < y:
				return -1
			case x == y:
				return 0
			}
			return 1
		}
	}
	return strings.Compare(it.str(a), it.str(b))
}

// cell is a variable: a value, or an array. What it is shows when it is used.
type cell struct {
	v   value
	arr *array
	up  *cell // the caller's variable that becomes an array when this one does
}

func (c *cell) array() *array {
	if c.arr == nil {
		if c.up != nil {
			c.arr = c.up.array()
		} else {
			c.arr = &array{}
		}
	}
	return c.arr
}

// array keeps its elements in the order in which they came.
type array struct {
	index map[string]int
	list  []element
	holes int
}

type element struct {
	key  string
	v    value
	gone bool
}

func (a *array) len() int { return len(a.index) }

func (a *array) has(key string) bool {
	_, ok := a.index[key]
	return ok
}

// at returns the element, which it makes when it is not there. The pointer holds until the next element is made.
func (a *array) at(key string) *element {
	i, ok := a.index[key]
	if !ok {
		if a.index == nil {
			a.index = map[string]int{}
		}
		i = len(a.list)
		a.index[key] = i
		a.list = append(a.list, element{key: key})
	}
	return &a.list[i]
}

func (a *array) set(key string, v value) { a.at(key).v = v }

func (a *array) remove(key string) {
	i, ok := a.index[key]
	if !ok {
		return
	}
	delete(a.index, key)
	a.list[i] = element{gone: true}
	if a.holes++; a.holes > 32 && a.holes > len(a.list)/2 {
		kept := make([]element, 0, len(a.index))
		for _, e := range a.list {
			if !e.gone {
				a.index[e.key] = len(kept)
				kept = append(kept, e)
			}
		}
		a.list, a.holes = kept, 0
	}
}

func (a *array) clear() { *a = array{} }

func (a *array) keys() []string {
	keys := make([]string, 0, len(a.index))
	for _, e := range a.list {
		if !e.gone {
			keys = append(keys, e.key)
		}
	}
	return keys
}
