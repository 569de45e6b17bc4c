package vars

import (
	"slices"
	"sort"
)

// List is an indexed array. While it has no holes, elements stand at their index; else keys holds their indexes.
type List struct {
	keys   []int64 // nil: 0, 1, 2 ...
	vals   []string
	shared bool // in more than one table: copied before it is changed
}

// NewList returns a list of the values, which it keeps.
func NewList(values []string) *List { return &List{vals: values} }

// Len is the number of elements that are set. A nil list is empty.
func (l *List) Len() int {
	if l == nil {
		return 0
	}
	return len(l.vals)
}

// Values returns the elements in order; they must not be changed.
func (l *List) Values() []string {
	if l == nil {
		return nil
	}
	return l.vals
}

// Index returns the index of the nth element that is set.
func (l *List) Index(n int) int64 {
	if l.keys == nil {
		return int64(n)
	}
	return l.keys[n]
}

// Last is the highest index that is set, -1 when there is none.
func (l *List) Last() int64 {
	if l.Len() == 0 {
		return -1
	}
	return l.Index(len(l.vals) - 1)
}

// Get returns an element.
func (l *List) Get(i int64) (string, bool) {
	n, ok := l.find(i)
	if !ok {
		return "", false
	}
	return l.vals[n], true
}

// From returns the position of the first element that is set at index i or above it.
func (l *List) From(i int64) int {
	if l == nil {
		return 0
	}
	n, _ := l.find(i)
	return n
}

func (l *List) find(i int64) (int, bool) {
	if l == nil || len(l.vals) == 0 {
		return 0, false
	}
	if l.keys == nil {
		if i >= int64(len(l.vals)) {
			return len(l.vals), false
		}
		if i < 0 {
			return 0, false
		}
		return int(i), true
	}
	n := sort.Search(len(l.keys), func(n int) bool { return l.keys[n] >= i })
	return n, n < len(l.keys) && l.keys[n] == i
}

func (l *List) set(i int64, value string) {
	n, ok := l.find(i)
	switch {
	case ok:
		l.vals[n] = value
		return
	case l.keys == nil && i == int64(len(l.vals)):
		l.vals = append(l.vals, value)
		return
	}
	l.sparse()
	l.keys = slices.Insert(l.keys, n, i)
	l.vals = slices.Insert(l.vals, n, value)
	l.dense()
}

func (l *List) unset(i int64) {
	n, ok := l.find(i)
	if !ok {
		return
	}
	if l.keys == nil && n == len(l.vals)-1 {
		l.vals = l.vals[:n]
		return
	}
	l.sparse()
	l.keys = slices.Delete(l.keys, n, n+1)
	l.vals = slices.Delete(l.vals, n, n+1)
	l.dense()
}

func (l *List) sparse() {
	if l.keys != nil {
		return
	}
	l.keys = make([]int64, len(l.vals), len(l.vals)+1)
	for n := range l.keys {
		l.keys[n] = int64(n)
	}
}

// dense drops the indexes when they say nothing: they rise, so the last one tells.
func (l *List) dense() {
	if len(l.keys) == 0 || l.keys[len(l.keys)-1] == int64(len(l.keys)-1) {
		l.keys = nil
	}
}

func (l *List) clone() *List {
	return &List{keys: slices.Clone(l.keys), vals: slices.Clone(l.vals)}
}
