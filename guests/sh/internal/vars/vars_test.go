package vars

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func number(expr string) (int64, error) { return strconv.ParseInt(expr, 10, 64) }

func newTable(environ ...string) *Table {
	t := New(environ)
	t.Eval = number
	return t
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFunctionsHideVariablesAndGiveThemBack(t *testing.T) {
	v := newTable()
	must(t, v.Set("x", "outer"))
	v.Push()
	must(t, v.Local("x", false))
	must(t, v.Set("x", "inner"))
	must(t, v.Set("global", "1"))
	v.Push()
	must(t, v.Set("x", "from below")) // the caller's
	v.Pop()
	if v.Str("x") != "from below" {
		t.Errorf("the callee did not find its caller's variable: %q", v.Str("x"))
	}
	must(t, v.AtGlobal("x", func() error { return v.Set("x", "changed") }))
	if v.Str("x") != "from below" {
		t.Errorf("the global variable was set in place of the local one")
	}
	v.Pop()
	if v.Str("x") != "changed" || v.Str("global") != "1" {
		t.Errorf("after the function x is %q, global is %q", v.Str("x"), v.Str("global"))
	}
	if err := v.Local("x", false); err == nil {
		t.Error("local outside of a function")
	}
}

func TestUnsetLocalStaysLocalAndTheCallersComesBack(t *testing.T) {
	v := newTable()
	must(t, v.Set("x", "global"))
	v.Push()
	must(t, v.Local("x", false))
	must(t, v.Set("x", "caller"))
	must(t, v.Unset("x"))
	if _, ok := v.Get("x"); ok {
		t.Error("set after unset")
	}
	must(t, v.Set("x", "caller"))
	v.Push()
	must(t, v.Unset("x")) // the caller's: what it hid is seen
	if v.Str("x") != "global" {
		t.Errorf("x is %q", v.Str("x"))
	}
	v.Pop()
	v.Pop()
	if v.Str("x") != "global" {
		t.Errorf("x is %q at last", v.Str("x"))
	}
}

func TestAssignmentsBeforeACommandAreItsOwn(t *testing.T) {
	v := newTable("PATH=/bin")
	must(t, v.Set("x", "1"))
	v.PushTemp()
	must(t, v.SetTemp("x", "2", false))
	must(t, v.SetTemp("PATH", ":/usr/bin", true))
	if got := v.Environ(); !slices.Equal(got, []string{"PATH=/bin:/usr/bin", "x=2"}) {
		t.Errorf("environment %q", got)
	}
	v.Pop()
	if got := v.Environ(); !slices.Equal(got, []string{"PATH=/bin"}) || v.Str("x") != "1" {
		t.Errorf("environment %q, x %q afterwards", got, v.Str("x"))
	}
}

func TestReadOnlyRefusesEveryChange(t *testing.T) {
	v := newTable()
	must(t, v.SetList("a", []string{"1", "2"}))
	must(t, v.SetAttr("a", ReadOnly, 0))
	for name, change := range map[string]func() error{
		"Set":          func() error { return v.Set("a", "x") },
		"Set element":  func() error { return v.Set("a[1]", "x") },
		"Append":       func() error { return v.Append("a", "x") },
		"SetIndex":     func() error { return v.SetIndex("a", 5, "x") },
		"SetList":      func() error { return v.SetList("a", nil) },
		"Clear":        func() error { return v.Clear("a", Indexed) },
		"Unset":        func() error { return v.Unset("a") },
		"UnsetElement": func() error { return v.UnsetElement("a", "0") },
		"SetTemp":      func() error { v.PushTemp(); defer v.Pop(); return v.SetTemp("a", "x", false) },
		"SetAttr":      func() error { return v.SetAttr("a", 0, ReadOnly) },
	} {
		var readonly *ReadOnlyError
		if err := change(); !errors.As(err, &readonly) || err.Error() != "a: readonly variable" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, _ := v.Get("a"); !slices.Equal(got.Values(), []string{"1", "2"}) {
		t.Errorf("it has changed to %q", got.Values())
	}
}

func TestReferences(t *testing.T) {
	v := newTable()
	must(t, v.Point("ref", "target"))
	must(t, v.Set("ref", "1"))
	must(t, v.Append("ref", "2"))
	if v.Str("target") != "12" || v.Str("ref") != "12" {
		t.Errorf("target is %q", v.Str("target"))
	}
	must(t, v.SetList("a", []string{"x", "y"}))
	must(t, v.Point("element", "a[1]"))
	must(t, v.Set("element", "z"))
	if got, _ := v.Get("a"); !slices.Equal(got.Values(), []string{"x", "z"}) || v.Str("element") != "z" {
		t.Errorf("a is %q", got.Values())
	}
	if err := v.Point("self", "self"); err == nil {
		t.Error("a reference to itself")
	}
	if err := v.Point("bad", "1x"); err == nil {
		t.Error("a reference to no name")
	}
	warned := ""
	v.Warn = func(text string) { warned = text }
	must(t, v.Point("p", "q"))
	must(t, v.Point("q", "p"))
	if _, ok := v.Get("p"); ok || !strings.Contains(warned, "circular") {
		t.Errorf("a circle: %v, %q", ok, warned)
	}
	must(t, v.Unset("ref"))
	if _, ok := v.Get("target"); ok {
		t.Error("unset did not follow the reference")
	}
}

func TestAttributesChangeValues(t *testing.T) {
	v := newTable()
	must(t, v.SetAttr("n", Integer, 0))
	must(t, v.Set("n", "5"))
	must(t, v.Append("n", "3"))
	must(t, v.SetAttr("low", Lower, 0))
	must(t, v.Set("low", "ABC"))
	must(t, v.SetAttr("low", Upper, 0)) // takes the place of Lower
	must(t, v.Append("low", "d"))
	if v.Str("n") != "8" || v.Str("low") != "ABCD" {
		t.Errorf("n %q, low %q", v.Str("n"), v.Str("low"))
	}
	if err := v.Set("n", "x"); err == nil {
		t.Error("an integer that is none")
	}
}

func TestSubshellsChangeTheirOwnCopies(t *testing.T) {
	v := newTable("E=1")
	must(t, v.SetList("a", []string{"1", "2"}))
	must(t, v.Convert("m", Assoc))
	must(t, v.SetKey("m", "k", "v"))
	v.Push()
	must(t, v.Local("l", false))
	must(t, v.Set("l", "local"))
	c := v.Clone()
	c.Eval = number
	must(t, c.SetIndex("a", 0, "changed"))
	must(t, c.SetKey("m", "k", "changed"))
	must(t, c.Set("l", "changed"))
	must(t, c.Set("E", "changed"))
	must(t, v.Set("a[1]", "parent"))
	c.Pop()
	a, _ := v.Get("a")
	m, _ := v.Get("m")
	if !slices.Equal(a.Values(), []string{"1", "parent"}) || !slices.Equal(m.Values(), []string{"v"}) || v.Str("l") != "local" || v.Str("E") != "1" {
		t.Errorf("parent: a %q m %q l %q E %q", a.Values(), m.Values(), v.Str("l"), v.Str("E"))
	}
	b, _ := c.Get("a")
	if !slices.Equal(b.Values(), []string{"changed", "2"}) {
		t.Errorf("child: a %q", b.Values())
	}
	if _, ok := c.Get("l"); ok {
		t.Error("the child's function has ended, its local variable has not")
	}
}

type dynamicValues map[string]string

func (d dynamicValues) Special(name string) (string, bool) { s, ok := d[name]; return s, ok }
func (d dynamicValues) SpecialList(name string) ([]string, bool) {
	if name == "PIPESTATUS" {
		return []string{"0", "1"}, true
	}
	return nil, false
}
func (d dynamicValues) SetSpecial(name, value string) { d[name] = "seeded " + value }

func TestComputedVariablesAreComputedUntilUnset(t *testing.T) {
	v := newTable("RANDOM=from the environment")
	d := dynamicValues{"RANDOM": "4"}
	v.Dynamic = d
	must(t, v.Set("RANDOM", "7"))
	p, ok := v.Get("PIPESTATUS")
	if v.Str("RANDOM") != "seeded 7" || !ok || p.Kind != Indexed || p.List.Len() != 2 {
		t.Errorf("RANDOM %q, PIPESTATUS %v", v.Str("RANDOM"), p.Values())
	}
	must(t, v.Unset("RANDOM"))
	if _, ok := v.Get("RANDOM"); ok {
		t.Error("RANDOM is set after unset")
	}
	must(t, v.Set("RANDOM", "plain"))
	if v.Str("RANDOM") != "plain" {
		t.Errorf("RANDOM is %q", v.Str("RANDOM"))
	}
}

// The order of an associative array is bash's: recorded from bash 5.2.
func TestAssociativeArraysHaveBashsOrder(t *testing.T) {
	m := NewMap()
	for _, k := range strings.Fields("apple banana cherry date x one two three") {
		m.set(k, k)
	}
	var keys []string
	for k := range m.All {
		keys = append(keys, k)
	}
	if got := strings.Join(keys, " "); got != "cherry x two apple three one date banana" {
		t.Errorf("order %s", got)
	}
}

// FuzzList: a sparse array is a map from numbers with an order.
func FuzzList(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 131, 5, 128, 200, 7})
	f.Add([]byte{10, 5, 133, 138, 0, 1, 2})
	f.Fuzz(func(t *testing.T, steps []byte) {
		l := &List{}
		want := map[int64]string{}
		for n, s := range steps {
			i := int64(s & 0x7f % 24)
			if s&0x80 == 0 {
				l.set(i, fmt.Sprint(n))
				want[i] = fmt.Sprint(n)
			} else {
				l.unset(i)
				delete(want, i)
			}
			keys := slices.Sorted(maps.Keys(want))
			if l.Len() != len(keys) {
				t.Fatalf("after %v: %d elements, want %d", steps[:n+1], l.Len(), len(keys))
			}
			for j, k := range keys {
				if v, ok := l.Get(k); !ok || v != want[k] || l.Index(j) != k || l.From(k) != j {
					t.Fatalf("after %v: element %d is %q, %v", steps[:n+1], k, v, ok)
				}
			}
			last := int64(-1)
			if len(keys) > 0 {
				last = keys[len(keys)-1]
			}
			if l.Last() != last {
				t.Fatalf("after %v: last %d, want %d", steps[:n+1], l.Last(), last)
			}
			if _, ok := l.Get(1000); ok {
				t.Fatal("an element that was never set")
			}
		}
	})
}
