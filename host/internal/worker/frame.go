package worker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A frame is one packet of the SOCK_SEQPACKET pair: a fixed header and a payload.
//
//	offset 0  u32 LE  magic "exw1"
//	       4  u8      type
//	       5  u8      flags: bit 0, more fragments follow (broker to worker only)
//	       6  u16 LE  0
//	       8  u64 LE  tag
//	      16  u32 LE  length of the payload
//
// The broker draws a new random tag for each exchange (hello, bind, compile, run), and every frame of the worker repeats
// it: a worker cannot answer a question before it was asked, nor speak after it has answered.
//
// A packet that is longer or shorter than its header says is an error. Descriptors travel with the first fragment, and
// only from the broker to the worker.
const (
	frameMagic  = 0x31777865
	frameHeader = 20
	// maxFrame is below the default socket buffer (208 KiB), for a packet has to fit into it whole.
	maxFrame = 64 << 10
	// maxMessage bounds a message put together from fragments.
	maxMessage = 1 << 20
	// maxFDs is the kernel's SCM_MAX_FD.
	maxFDs = 253

	flagMore = 1
)

// protocolVersion is answered by the worker in the handshake; another one is refused (an Options.Exe of another build).
const protocolVersion = 1

type frameType uint8

const (
	frameHello    frameType = iota + 1 // B->W
	frameHelloOK                       // W->B
	frameBind                          // B->W, fds
	frameBound                         // W->B
	frameWall                          // W->B: a required wall is missing; the worker ends
	frameCompile                       // B->W, fds
	frameCompiled                      // W->B
	frameModule                        // W->B: module refused
	frameRun                           // B->W, fds
	frameEvents                        // W->B, any number while a guest runs
	frameRemoved                       // W->B, any number before the result
	frameResult                        // W->B
	frameRefused                       // W->B: the job cannot be done
	frameTypeEnd
)

var errFrame = errors.New("bad frame")

// header is what a frame says beside its payload.
type header struct {
	typ  frameType
	more bool
	tag  uint64
}

// appendFrame appends one frame.
func appendFrame(b []byte, h header, payload []byte) []byte {
	var flags byte
	if h.more {
		flags = flagMore
	}
	b = binary.LittleEndian.AppendUint32(b, frameMagic)
	b = append(b, byte(h.typ), flags, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, h.tag)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// parseFrame takes a packet apart. payload aliases p.
func parseFrame(p []byte) (h header, payload []byte, err error) {
	switch {
	case len(p) < frameHeader:
		return h, nil, fmt.Errorf("%w: %d bytes", errFrame, len(p))
	case len(p) > maxFrame:
		return h, nil, fmt.Errorf("%w: over %d bytes", errFrame, maxFrame)
	case binary.LittleEndian.Uint32(p) != frameMagic:
		return h, nil, fmt.Errorf("%w: magic", errFrame)
	case p[4] == 0 || p[4] >= byte(frameTypeEnd):
		return h, nil, fmt.Errorf("%w: type %d", errFrame, p[4])
	case p[5]&^flagMore != 0 || p[6] != 0 || p[7] != 0:
		return h, nil, fmt.Errorf("%w: flags", errFrame)
	case uint64(binary.LittleEndian.Uint32(p[16:])) != uint64(len(p)-frameHeader):
		return h, nil, fmt.Errorf("%w: length", errFrame)
	}
	h = header{typ: frameType(p[4]), more: p[5] != 0, tag: binary.LittleEndian.Uint64(p[8:])}
	return h, p[frameHeader:], nil
}

// coder reads or writes the fields of a message. One function for each message serves both directions, so the two can
// not drift apart. After an error everything is a no-op.
//
// Integers are unsigned LEB-free fixed 8 bytes little endian, strings a u32 length and UTF-8 or raw bytes, lists a u32
// count and the items. There is one encoding for each value, so decoding and encoding again gives the same bytes.
type coder struct {
	buf    []byte
	decode bool
	err    error
}

// Bounds of the fields of messages.
const (
	maxString = 256 << 10
	maxShort  = 4096
	maxList   = 16 << 10
)

func (c *coder) fail(what string) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s", errFrame, what)
	}
}

func (c *coder) take(n int) []byte {
	if c.err != nil {
		return nil
	}
	if n > len(c.buf) {
		c.fail("short")
		return nil
	}
	p := c.buf[:n]
	c.buf = c.buf[n:]
	return p
}

func (c *coder) u64(v *uint64) {
	if !c.decode {
		c.buf = binary.LittleEndian.AppendUint64(c.buf, *v)
		return
	}
	if p := c.take(8); p != nil {
		*v = binary.LittleEndian.Uint64(p)
	}
}

func (c *coder) u32(v *uint32) {
	if !c.decode {
		c.buf = binary.LittleEndian.AppendUint32(c.buf, *v)
		return
	}
	if p := c.take(4); p != nil {
		*v = binary.LittleEndian.Uint32(p)
	}
}

func (c *coder) u8(v *uint8) {
	if !c.decode {
		c.buf = append(c.buf, *v)
		return
	}
	if p := c.take(1); p != nil {
		*v = p[0]
	}
}

// integer codes any signed integer that must not be negative.
func integer[T ~int | ~int64](c *coder, v *T) {
	u := uint64(*v)
	if !c.decode && *v < 0 {
		c.fail("negative")
		return
	}
	c.u64(&u)
	if c.decode && c.err == nil {
		if u > 1<<62 {
			c.fail("number")
			return
		}
		*v = T(u)
	}
}

// index codes a small integer that may be -1.
func (c *coder) index(v *int) {
	u := uint32(*v + 1)
	c.u32(&u)
	if c.decode && c.err == nil {
		if u > 1<<20 {
			c.fail("index")
			return
		}
		*v = int(u) - 1
	}
}

func (c *coder) boolean(v *bool) {
	var u uint8
	if *v {
		u = 1
	}
	c.u8(&u)
	if c.decode && c.err == nil {
		if u > 1 {
			c.fail("boolean")
			return
		}
		*v = u == 1
	}
}

func (c *coder) bytes(v *[]byte, limit int) {
	n := uint32(len(*v))
	if !c.decode && len(*v) > limit {
		c.fail("long")
		return
	}
	c.u32(&n)
	if !c.decode {
		c.buf = append(c.buf, *v...)
		return
	}
	if c.err == nil && n > uint32(limit) {
		c.fail("long")
	}
	if p := c.take(int(n)); p != nil {
		*v = append([]byte(nil), p...)
	}
}

// str codes text; limit bounds its bytes. Text need not be UTF-8: names of files are not.
func (c *coder) str(v *string, limit int) {
	n := uint32(len(*v))
	if !c.decode && len(*v) > limit {
		c.fail("long")
		return
	}
	c.u32(&n)
	if !c.decode {
		c.buf = append(c.buf, *v...)
		return
	}
	if c.err == nil && n > uint32(limit) {
		c.fail("long")
	}
	if p := c.take(int(n)); p != nil {
		*v = string(p)
	}
}

// list codes a slice of at most limit items.
func list[T any](c *coder, v *[]T, limit int, item func(*T)) {
	n := uint32(len(*v))
	if !c.decode && len(*v) > limit {
		c.fail("list")
		return
	}
	c.u32(&n)
	if c.decode {
		// Each item takes at least one byte, so a count is never worth more memory than the bytes that were sent.
		if c.err == nil && (n > uint32(limit) || int(n) > len(c.buf)) {
			c.fail("list")
		}
		if c.err != nil {
			return
		}
		*v = nil
		if n > 0 {
			*v = make([]T, n)
		}
	}
	for i := range *v {
		if c.err != nil {
			return
		}
		item(&(*v)[i])
	}
}

func (c *coder) strs(v *[]string, limit, each int) {
	list(c, v, limit, func(s *string) { c.str(s, each) })
}

// message is anything with a code method.
type message interface{ code(c *coder) }

func encode(m message) ([]byte, error) {
	c := coder{}
	m.code(&c)
	if c.err == nil && len(c.buf) > maxMessage {
		c.fail("message over 1 MiB")
	}
	return c.buf, c.err
}

func decode(p []byte, m message) error {
	c := coder{buf: p, decode: true}
	m.code(&c)
	if c.err == nil && len(c.buf) != 0 {
		c.fail("trailing bytes")
	}
	return c.err
}

// clip bounds text that a worker said, and makes it one line of valid UTF-8 without control characters.
func clip(s string, limit int) string {
	out := make([]byte, 0, min(len(s), limit))
	for _, r := range s {
		if r == utf8.RuneError || r < 0x20 || (r >= 0x7f && r < 0xa0) || (r >= 0x2028 && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069) || r == 0x200e || r == 0x200f || r == 0x61c {
			r = '?'
			if len(out) > 0 && out[len(out)-1] == '?' {
				continue
			}
		}
		if len(out)+utf8.RuneLen(r) > limit {
			break
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out)
}

// clipLines is clip for text of several lines.
func clipLines(s string, limit int) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = clip(lines[i], 512)
	}
	out := strings.Join(lines[:min(len(lines), 64)], "\n")
	for len(out) > limit {
		i := strings.LastIndexByte(out, '\n')
		if i < 0 {
			return clip(out, limit)
		}
		out = out[:i]
	}
	return out
}
