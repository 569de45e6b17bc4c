package jq

import (
	"fmt"
	"testing"
)

func TestObjectsThatShareMemoryDoNotSeeEachOther(t *testing.T) {
	base := &object{}
	for i := range 20 {
		base.put(fmt.Sprint("k", i), i)
	}
	first := base.with("new", 1.0)
	second := base.with("new", 2.0) // base has been grown already
	third := base.with("other", 3.0)
	changed := base.with("k0", "x")
	grown := changed.with("late", 4.0)
	longer := first.with("more", 5.0).with("new", 6.0)
	for _, c := range []struct {
		what string
		o    *object
		key  string
		want any
		n    int
	}{
		{"base", base, "new", nil, 20}, {"base", base, "other", nil, 20}, {"base", base, "k0", 0, 20}, {"base", base, "more", nil, 20},
		{"first", first, "new", 1.0, 21}, {"first", first, "other", nil, 21}, {"first", first, "more", nil, 21},
		{"second", second, "new", 2.0, 21}, {"third", third, "other", 3.0, 21}, {"third", third, "new", nil, 21},
		{"changed", changed, "k0", "x", 20}, {"changed", changed, "late", nil, 20},
		{"grown", grown, "late", 4.0, 21}, {"grown", grown, "k0", "x", 21}, {"grown", grown, "new", nil, 21},
		{"longer", longer, "new", 6.0, 22}, {"longer", longer, "more", 5.0, 22},
	} {
		got, _ := c.o.get(c.key)
		if got != c.want || c.o.len() != c.n {
			t.Errorf("%s: %s = %v of %d keys, want %v of %d", c.what, c.key, got, c.o.len(), c.want, c.n)
		}
	}
}

func TestCollectingKeysDoesNotCopyThem(t *testing.T) {
	o := &object{}
	for i := range 20 {
		o = o.with(fmt.Sprint(i), i)
	}
	index := o.index
	for range 1000 {
		o = o.with(fmt.Sprint(o.len()), 0)
	}
	if o.index != index {
		t.Error("the keys were copied")
	}
	if len(index.at) != o.len() {
		t.Errorf("%d keys, %d in the index", o.len(), len(index.at))
	}
}
