package vars

import (
	"cmp"
	"maps"
	"slices"
)

// Map is an associative array. Its order is bash's, which scripts see in "${m[@]}": by hash bucket, the newest first
// in each.
type Map struct {
	at     map[string]*entry
	seq    uint
	order  []*entry // nil: to be sorted
	shared bool     // in more than one table: copied before it is changed
}

type entry struct {
	key, value string
	hash       uint32
	seq        uint
}

// NewMap returns an empty map.
func NewMap() *Map { return &Map{at: map[string]*entry{}} }

// Len is the number of keys. A nil map is empty.
func (m *Map) Len() int {
	if m == nil {
		return 0
	}
	return len(m.at)
}

// Get returns the value of a key.
func (m *Map) Get(key string) (string, bool) {
	if m == nil {
		return "", false
	}
	e, ok := m.at[key]
	if !ok {
		return "", false
	}
	return e.value, true
}

// All calls yield for each key and value in order.
func (m *Map) All(yield func(key, value string) bool) {
	if m == nil {
		return
	}
	for _, e := range m.sorted() {
		if !yield(e.key, e.value) {
			return
		}
	}
}

func (m *Map) sorted() []*entry {
	if m.order != nil && len(m.order) == len(m.at) {
		return m.order
	}
	mask := uint32(1023)
	for n := len(m.at); n > 2*int(mask+1); {
		mask = mask<<2 | 3
	}
	order := slices.SortedFunc(maps.Values(m.at), func(a, b *entry) int {
		if c := cmp.Compare(a.hash&mask, b.hash&mask); c != 0 {
			return c
		}
		return cmp.Compare(b.seq, a.seq)
	})
	if !m.shared {
		m.order = order
	}
	return order
}

func (m *Map) set(key, value string) {
	if e, ok := m.at[key]; ok {
		e.value = value
		return
	}
	m.seq++
	m.order = nil
	m.at[key] = &entry{key, value, hash(key), m.seq}
}

func (m *Map) unset(key string) {
	delete(m.at, key)
	m.order = nil
}

func (m *Map) clone() *Map {
	c := &Map{at: make(map[string]*entry, len(m.at)), seq: m.seq}
	for k, e := range m.at {
		copied := *e
		c.at[k] = &copied
	}
	return c
}

// hash is FNV-1, as bash uses it for its tables.
func hash(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h *= 16777619
		h ^= uint32(s[i])
	}
	return h
}
