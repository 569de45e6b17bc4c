package wasiabi

import "unicode/utf8"

// events passes each kind of event on once and counts its repeats, so that a guest in a loop costs the host a number.
type events struct {
	sink    func(Event)
	seen    map[Event]int
	done    int // kinds of effects seen
	denied  int // kinds of refusals seen
	dropped [2]int
}

// Kinds that are kept apart; refusals have a budget of their own, so that opening many files does not drown them.
const (
	maxEffects  = 8192
	maxRefusals = 1024
	maxDetail   = 512
)

func (l *events) add(e Event) {
	if l.sink == nil {
		return
	}
	e.Detail = cut(e.Detail, maxDetail)
	e.Capability = cut(e.Capability, 4200)
	if n, ok := l.seen[e]; ok {
		l.seen[e] = n + 1
		return
	}
	if e.Denied {
		if l.denied >= maxRefusals {
			l.dropped[1]++
			return
		}
		l.denied++
	} else {
		if l.done >= maxEffects {
			l.dropped[0]++
			return
		}
		l.done++
	}
	if l.seen == nil {
		l.seen = map[Event]int{}
	}
	l.seen[e] = 0
	e.Count = 1
	l.sink(e)
}

// flush tells the repeats.
func (l *events) flush() {
	if l.sink == nil {
		return
	}
	for e, n := range l.seen {
		if n > 0 {
			e.Count = n
			l.sink(e)
		}
	}
	for i, n := range l.dropped {
		if n > 0 {
			l.sink(Event{Op: "limit", Capability: "limit events", Denied: i == 1, Count: n})
		}
	}
	l.seen = nil
}

// cut shortens s to at most n bytes, between characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
