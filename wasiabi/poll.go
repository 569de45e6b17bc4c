package wasiabi

import (
	"context"
	"math"
	"time"

	"github.com/exthost/exthost/wasiabi/internal/rootfs"
)

const (
	maxSubscriptions = 1024

	eventClock = 0
	eventRead  = 1
	eventWrite = 2

	subscriptionSize = 48
	eventSize        = 32
)

// wait is one stream that a poll waits for.
type wait struct {
	s     *stream
	write bool
	index int // of the subscription

	ready, hangup bool
}

// pollOneoff waits until one of the subscriptions is due.
//
//	subscription, 48 bytes:  | u64 userdata | u8 tag | 7 pad | tag 0: u32 clock, 4 pad, u64 timeout, u64 precision,
//	                                                   u16 flags, 6 pad; tag 1 (read), 2 (write): u32 fd, 28 pad |
//	event, 32 bytes:         | u64 userdata | u16 errno | u8 tag | 5 pad | u64 nbytes | u16 flags | 6 pad |
func pollOneoff(p *Process, m memory, a []uint64) (errno, error) {
	n := a[2]
	if n == 0 || n > maxSubscriptions {
		return rootfs.EINVAL, nil
	}
	in, e := m.slice(a[0], n*subscriptionSize)
	if e != rootfs.Success {
		return e, nil
	}
	out, e := m.slice(a[1], n*eventSize)
	if e != rootfs.Success {
		return e, nil
	}
	if _, e := m.slice(a[3], 4); e != rootfs.Success {
		return e, nil
	}
	// The arrays may overlap: events are written at the end.
	var events []byte
	emit := func(sub []byte, e errno, nbytes uint64, hangup bool) {
		var b [eventSize]byte
		copy(b[:8], sub[:8])
		le.PutUint16(b[8:], uint16(e))
		b[10] = sub[8]
		le.PutUint64(b[16:], nbytes)
		if hangup {
			b[24] = 1
		}
		events = append(events, b[:]...)
	}
	begin := time.Now()
	type alarm struct {
		index int
		after time.Duration
	}
	var alarms []alarm
	var waits []*wait
	soonest := time.Duration(math.MaxInt64)
	for i := range int(n) {
		sub := in[i*subscriptionSize:][:subscriptionSize]
		switch sub[8] {
		case eventClock:
			after, e := p.alarm(sub)
			if e != rootfs.Success {
				emit(sub, e, 0, false)
				continue
			}
			alarms = append(alarms, alarm{i, after})
			soonest = min(soonest, after)
		case eventRead, eventWrite:
			w, nbytes, e := p.waitFor(sub)
			if w == nil {
				emit(sub, e, nbytes, false)
				continue
			}
			w.index = i
			waits = append(waits, w)
		default:
			return rootfs.EINVAL, nil
		}
	}
	if len(events) > 0 {
		soonest = 0
	}
	if len(alarms) == 0 && len(waits) == 0 && len(events) == 0 {
		return rootfs.EINVAL, nil
	}
	if err := p.pause(waits, soonest); err != nil {
		return 0, err
	}
	for _, w := range waits {
		if w.ready {
			emit(in[w.index*subscriptionSize:], rootfs.Success, 1, w.hangup)
		}
	}
	for _, al := range alarms {
		// What woke this call early must not make a timer late by one more call, nor fire it early.
		if time.Since(begin) >= al.after {
			emit(in[al.index*subscriptionSize:], rootfs.Success, 0, false)
		}
	}
	copy(out, events)
	return m.put32(a[3], uint32(len(events)/eventSize)), nil
}

// alarm tells how long a clock subscription still has to wait.
func (p *Process) alarm(sub []byte) (time.Duration, errno) {
	now, e := p.clock(uint64(le.Uint32(sub[16:])))
	if e != rootfs.Success {
		return 0, e
	}
	timeout := le.Uint64(sub[24:])
	switch le.Uint16(sub[40:]) {
	case 0:
	case 1: // absolute
		if timeout <= uint64(now) {
			return 0, rootfs.Success
		}
		timeout -= uint64(now)
	default:
		return 0, rootfs.EINVAL
	}
	return time.Duration(min(timeout, math.MaxInt64/2)), rootfs.Success
}

// waitFor gives the stream of a subscription; without one the subscription is due at once, with an errno.
func (p *Process) waitFor(sub []byte) (*wait, uint64, errno) {
	right := rightFdRead
	if sub[8] == eventWrite {
		right = rightFdWrite
	}
	d, e := p.get(uint64(le.Uint32(sub[16:])), rightPollFdReadwrite)
	if e != rootfs.Success {
		return nil, 0, e
	}
	if d.kind == kindDir || d.rights&right == 0 {
		return nil, 0, rootfs.EBADF
	}
	if d.kind == kindStream && d.stream != nil {
		return &wait{s: d.stream, write: sub[8] == eventWrite}, 0, rootfs.Success
	}
	nbytes := uint64(1)
	if d.kind == kindFile && sub[8] == eventRead {
		s, e := d.file.Stat()
		if e != rootfs.Success {
			return nil, 0, e
		}
		nbytes = uint64(max(s.Size-d.off, 0))
	}
	return nil, nbytes, rootfs.Success
}

// pause waits for one of the streams, at most for a time, and ends with an error if the run does.
func (p *Process) pause(waits []*wait, d time.Duration) error {
	if len(waits) > 0 {
		return p.waitStreams(waits, d)
	}
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}
