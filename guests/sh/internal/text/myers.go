package text

import (
	"context"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// edit is a change: deleted lines of the old text from line old on, inserted lines of the new one from line new on.
type edit struct {
	old, new          int
	deleted, inserted int
	ignore            bool // by -B or -I
}

// side is one of two sequences that are compared: a number for each line, the same for lines that count as equal.
type side struct {
	ids     []int
	changed []bool // with one more at each end, so that changed[i+1] is that of line i

	kept  []int // ids without the lines that take no part in the comparison
	index []int // and where they stand
}

func (s *side) is(i int) bool     { return s.changed[i+1] }
func (s *side) set(i int, v bool) { s.changed[i+1] = v }

// compareLines finds a small set of changes that turns old into new. Ids are below classes.
//
// It is the algorithm of Myers, "An O(ND) Difference Algorithm and Its Variations", in linear space, with what GNU diff
// does around it, so that the changes are GNU's: lines without a partner are left out first, with frequent ones among
// them; a search that becomes too expensive settles for a good split; changes are moved as far down as they can be.
func compareLines(ctx context.Context, oldIDs, newIDs []int, classes int, minimal bool) []edit {
	a := &side{ids: oldIDs, changed: make([]bool, len(oldIDs)+2)}
	b := &side{ids: newIDs, changed: make([]bool, len(newIDs)+2)}
	a.discard(counts(newIDs, classes), minimal)
	b.discard(counts(oldIDs, classes), minimal)
	n := len(a.kept) + len(b.kept) + 3
	m := &myers{ctx: ctx, a: a, b: b, forward: make([]int, n), backward: make([]int, n), zero: len(b.kept) + 1, costly: 1}
	for d := n; d > 0; d >>= 2 {
		m.costly <<= 1
	}
	m.costly = max(m.costly, 4096)
	m.compare(0, len(a.kept), 0, len(b.kept), minimal)
	slide(a, b)
	slide(b, a)
	var edits []edit
	for i, j := 0, 0; i < len(oldIDs) || j < len(newIDs); i, j = i+1, j+1 {
		e := edit{old: i, new: j}
		for i < len(oldIDs) && a.is(i) {
			i++
		}
		for j < len(newIDs) && b.is(j) {
			j++
		}
		if e.deleted, e.inserted = i-e.old, j-e.new; e.deleted+e.inserted > 0 {
			edits = append(edits, e)
		}
	}
	return edits
}

func counts(ids []int, classes int) []int {
	n := make([]int, classes)
	for _, id := range ids {
		n[id]++
	}
	return n
}

// discard marks lines as changed that the other side (other: how often it has each) does not have, and takes them out
// of the comparison. So it does with lines that are frequent there, but only in the midst of others that go.
func (s *side) discard(other []int, minimal bool) {
	const (
		keep = iota
		drop
		maybe
	)
	n := len(s.ids)
	fate := make([]byte, n)
	many := 5
	for t := n / 64 >> 2; t > 0; t >>= 2 {
		many *= 2
	}
	for i, id := range s.ids {
		switch c := other[id]; {
		case c == 0:
			fate[i] = drop
		case c > many:
			fate[i] = maybe
		}
	}
	for i := 0; i < n; i++ {
		if fate[i] == maybe {
			fate[i] = keep
		}
		if fate[i] == keep {
			continue
		}
		// A run of lines to drop; it starts and ends with sure ones.
		end, unsure := i, 0
		for end < n && fate[end] != keep {
			if fate[end] == maybe {
				unsure++
			}
			end++
		}
		for fate[end-1] == maybe {
			end--
			fate[end] = keep
			unsure--
		}
		run := fate[i:end]
		if unsure*4 > len(run) {
			for k := range run {
				if run[k] == maybe {
					run[k] = keep
				}
			}
			continue
		}
		// Too many unsure ones in a row stay: about the root of a quarter of the run.
		least := 1
		for t := len(run) >> 2 >> 2; t > 0; t >>= 2 {
			least <<= 1
		}
		least++
		for k := 0; k < len(run); {
			row := k
			for row < len(run) && run[row] == maybe {
				row++
			}
			if row-k >= least {
				clear(run[k:row])
			}
			k = row + 1
		}
		// So do unsure ones near the ends, before three sure ones in a row or the first sure one behind the eighth.
		near := func(at func(int) *byte) {
			sure := 0
			for k := range run {
				f := at(k)
				if k >= 8 && *f == drop {
					return
				}
				switch *f {
				case maybe:
					*f = keep
					sure = 0
				case keep:
					sure = 0
				default:
					if sure++; sure == 3 {
						return
					}
				}
			}
		}
		near(func(k int) *byte { return &run[k] })
		near(func(k int) *byte { return &run[len(run)-1-k] })
		i = end - 1
	}
	for i, id := range s.ids {
		if minimal || fate[i] == keep {
			s.kept = append(s.kept, id)
			s.index = append(s.index, i)
		} else {
			s.set(i, true)
		}
	}
}

// myers compares what is left. Diagonals are numbered x-y; diagonal d is at d+zero of forward and backward.
type myers struct {
	ctx               context.Context
	a, b              *side
	forward, backward []int
	zero              int
	costly            int
	steps             int
}

func (m *myers) compare(x0, x1, y0, y1 int, minimal bool) {
	xs, ys := m.a.kept, m.b.kept
	for {
		for x0 < x1 && y0 < y1 && xs[x0] == ys[y0] {
			x0++
			y0++
		}
		for x0 < x1 && y0 < y1 && xs[x1-1] == ys[y1-1] {
			x1--
			y1--
		}
		if x0 == x1 || y0 == y1 {
			for ; y0 < y1; y0++ {
				m.b.set(m.b.index[y0], true)
			}
			for ; x0 < x1; x0++ {
				m.a.set(m.a.index[x0], true)
			}
			return
		}
		x, y, lowMinimal, highMinimal := m.middle(x0, x1, y0, y1, minimal)
		m.compare(x0, x, y0, y, lowMinimal)
		x0, y0, minimal = x, y, highMinimal
	}
}

// middle finds a point that a shortest edit path goes through, by searches from both ends that meet. A search that has
// become too expensive returns the point that is farthest from its end, and says which part need be no shortest one.
func (m *myers) middle(x0, x1, y0, y1 int, minimal bool) (x, y int, lowMinimal, highMinimal bool) {
	const far = 1 << 62
	xs, ys := m.a.kept, m.b.kept
	f, b, z := m.forward, m.backward, m.zero
	least, most := x0-y1, x1-y0
	fmin, bmin := x0-y0, x1-y1
	fmax, bmax := fmin, bmin
	odd := (fmin-bmin)&1 != 0
	f[z+fmin], b[z+bmin] = x0, x1
	for cost := 1; ; cost++ {
		if fmin > least {
			fmin--
			f[z+fmin-1] = -1
		} else {
			fmin++
		}
		if fmax < most {
			fmax++
			f[z+fmax+1] = -1
		} else {
			fmax--
		}
		for d := fmax; d >= fmin; d -= 2 {
			x := max(f[z+d-1]+1, f[z+d+1])
			y := x - d
			for x < x1 && y < y1 && xs[x] == ys[y] {
				x++
				y++
			}
			f[z+d] = x
			if odd && bmin <= d && d <= bmax && b[z+d] <= x {
				return x, y, true, true
			}
		}
		if bmin > least {
			bmin--
			b[z+bmin-1] = far
		} else {
			bmin++
		}
		if bmax < most {
			bmax++
			b[z+bmax+1] = far
		} else {
			bmax--
		}
		for d := bmax; d >= bmin; d -= 2 {
			x := min(b[z+d-1], b[z+d+1]-1)
			y := x - d
			for x0 < x && y0 < y && xs[x-1] == ys[y-1] {
				x--
				y--
			}
			b[z+d] = x
			if !odd && fmin <= d && d <= fmax && x <= f[z+d] {
				return x, y, true, true
			}
		}
		if m.steps += fmax - fmin + bmax - bmin; m.steps > 1<<16 {
			m.steps = 0
			cmd.Check(m.ctx)
		}
		if minimal || cost < m.costly {
			continue
		}
		bestF, atF := -1, 0
		for d := fmax; d >= fmin; d -= 2 {
			x := min(f[z+d], x1)
			if x-d > y1 {
				x = y1 + d
			}
			if x+x-d > bestF {
				bestF, atF = x+x-d, x
			}
		}
		bestB, atB := far, 0
		for d := bmax; d >= bmin; d -= 2 {
			x := max(b[z+d], x0)
			if x-d < y0 {
				x = y0 + d
			}
			if x+x-d < bestB {
				bestB, atB = x+x-d, x
			}
		}
		if x1+y1-bestB < bestF-(x0+y0) {
			return atF, bestF - atF, true, false
		}
		return atB, bestB - atB, false, true
	}
}

// slide moves runs of changed lines: together, where they can be one; down as far as they go; but to where the other
// side is changed too, if there is such a place.
func slide(s, other *side) {
	n := len(s.ids)
	i, j := 0, 0 // j is where the other side is: behind its changes there
	for {
		for i < n && !s.is(i) {
			for other.is(j) {
				j++
			}
			j++
			i++
		}
		if i == n {
			return
		}
		start := i
		for s.is(i) {
			i++
		}
		for other.is(j) {
			j++
		}
		meets := n
		for {
			length := i - start
			for start > 0 && s.ids[start-1] == s.ids[i-1] {
				start--
				i--
				s.set(start, true)
				s.set(i, false)
				for s.is(start - 1) {
					start--
				}
				j--
				for other.is(j) {
					j--
				}
			}
			meets = n
			if other.is(j - 1) {
				meets = i
			}
			for i != n && s.ids[start] == s.ids[i] {
				s.set(start, false)
				s.set(i, true)
				start++
				i++
				for s.is(i) {
					i++
				}
				j++
				for other.is(j) {
					meets = i
					j++
				}
			}
			if length == i-start {
				break
			}
		}
		for meets < i {
			start--
			i--
			s.set(start, true)
			s.set(i, false)
			j--
			for other.is(j) {
				j--
			}
		}
	}
}
