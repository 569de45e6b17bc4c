package module

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// reader reads a module. The first fault sticks; later reads answer zero and move nothing.
type reader struct {
	b    []byte
	at   int
	base int // offset of b in the module, for errors
	err  *Error
}

func (r *reader) more() bool { return r.err == nil && r.at < len(r.b) }

func (r *reader) fail(k Kind, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{k, fmt.Sprintf(format, args...) + fmt.Sprintf(" (offset %#x)", r.base+r.at)}
	}
}

func (r *reader) byte() byte {
	if r.err != nil {
		return 0
	}
	if r.at >= len(r.b) {
		r.fail(Invalid, "unexpected end")
		return 0
	}
	c := r.b[r.at]
	r.at++
	return c
}

// bytes answers the next n bytes, not a copy.
func (r *reader) bytes(n uint32) []byte {
	if r.err != nil {
		return nil
	}
	if uint64(n) > uint64(len(r.b)-r.at) {
		r.fail(Invalid, "unexpected end")
		return nil
	}
	b := r.b[r.at : r.at+int(n)]
	r.at += int(n)
	return b
}

// sub answers a reader of the next n bytes and moves behind them.
func (r *reader) sub(n uint32) *reader {
	base := r.base + r.at
	return &reader{b: r.bytes(n), base: base, err: r.err}
}

// u32 reads an unsigned LEB128 number of at most 5 bytes.
func (r *reader) u32() uint32 {
	if r.err == nil && r.at < len(r.b) && r.b[r.at] < 0x80 { // almost always
		r.at++
		return uint32(r.b[r.at-1])
	}
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v > math.MaxUint32 {
				break
			}
			return uint32(v)
		}
	}
	r.fail(Invalid, "number too long")
	return 0
}

// signed reads a signed LEB128 number of the given width in bits.
func (r *reader) signed(bits int) int64 {
	var v int64
	for shift := 0; shift < bits; shift += 7 {
		c := r.byte()
		if r.err != nil {
			return 0
		}
		v |= int64(c&0x7f) << shift
		if c >= 0x80 {
			continue
		}
		if left := bits - shift; left < 7 {
			// The bits above the width repeat the sign.
			if top := int8(c<<1) >> left; top != 0 && top != -1 {
				break
			}
		}
		if shift += 7; shift < 64 && c&0x40 != 0 {
			v |= -1 << shift
		}
		return v
	}
	r.fail(Invalid, "number too long")
	return 0
}

// count reads the length of a vector whose elements take at least one byte each.
func (r *reader) count(what string, most int) int {
	n := r.u32()
	if uint64(n) > uint64(most) {
		r.fail(TooBig, "%d %s, most are %d", n, what, most)
		return 0
	}
	if r.err == nil && int(n) > len(r.b)-r.at {
		r.fail(Invalid, "unexpected end in %s", what)
		return 0
	}
	return int(n)
}

// name reads a UTF-8 name.
func (r *reader) name() string {
	n := r.u32()
	if n > maxName {
		r.fail(TooBig, "name of %d bytes, most are %d", n, maxName)
		return ""
	}
	b := r.bytes(n)
	if !utf8.Valid(b) {
		r.fail(Invalid, "name is not UTF-8")
		return ""
	}
	return string(b)
}

// end fails unless all bytes were read.
func (r *reader) end(what string) {
	if r.err == nil && r.at != len(r.b) {
		r.fail(Invalid, "%d bytes left over in %s", len(r.b)-r.at, what)
	}
}

// peek answers the next byte without moving, 0 at the end.
func (r *reader) peek() byte {
	if r.more() {
		return r.b[r.at]
	}
	return 0
}
