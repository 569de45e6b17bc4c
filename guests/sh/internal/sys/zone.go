package sys

import (
	"bufio"
	"bytes"
	"compress/flate"
	_ "embed"
	"encoding/binary"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// The time zone database: 598 names in 58 KB. Package time/tzdata would be 450 KB, all of it in the memory of each
// instance, and package time would first look for files that the guest does not have: each would be one refusal in the
// report.
//
//go:generate go run zones_gen.go
//go:embed zones.deflate
var zonesDeflated string

type zoneTable struct {
	names map[string]int
	data  [][]byte
}

var zones = sync.OnceValue(func() zoneTable {
	r := bufio.NewReader(flate.NewReader(strings.NewReader(zonesDeflated)))
	t := zoneTable{names: map[string]int{}}
	text := func() []byte {
		n, err := binary.ReadUvarint(r)
		if err != nil {
			return nil
		}
		b := make([]byte, n)
		io.ReadFull(r, b)
		return b
	}
	n, _ := binary.ReadUvarint(r)
	for range n {
		name := text()
		i, _ := binary.ReadUvarint(r)
		t.names[string(name)] = int(i)
	}
	for b := text(); b != nil; b = text() {
		t.data = append(t.data, b)
	}
	return t
})

// local is the time zone that TZ asks for: UTC when it is not set. A name that is no zone is UTC under that name, as the
// C library has it.
func local(c *cmd.Call) *time.Location { return zone(c.Getenv("TZ")) }

func zone(name string) *time.Location {
	name = strings.TrimPrefix(name, ":")
	switch name {
	case "", "UTC", "UTC0":
		return time.UTC
	}
	name = strings.TrimPrefix(name, "/usr/share/zoneinfo/")
	t := zones()
	if i, ok := t.names[name]; ok && i < len(t.data) {
		if l, err := time.LoadLocationFromTZData(name, t.data[i]); err == nil {
			return l
		}
	}
	if l := posixZone(name); l != nil {
		return l
	}
	n := 0
	for n < len(name) && isAlpha(name[n]) {
		n++
	}
	if n < 3 {
		n = 0
	}
	return time.FixedZone(name[:n], 0)
}

// posixZone reads a rule such as "CET-1CEST,M3.5.0,M10.5.0/3". It becomes a zone file without transitions, whose last
// line is the rule: so package time has but one reader of rules.
func posixZone(rule string) *time.Location {
	std, rest, ok := zoneName(rule)
	if !ok {
		return nil
	}
	offset, rest, ok := zoneOffset(rest)
	if !ok {
		return nil
	}
	if rest == "" {
		return time.FixedZone(std, offset)
	}
	if _, after, ok := zoneName(rest); !ok {
		return nil
	} else if _, more, ok := zoneOffset(after); ok {
		rest = more
	} else {
		rest = after
	}
	if rest == "" {
		rule += ",M3.2.0,M11.1.0"
	}
	var b bytes.Buffer
	header := func(times, types, chars uint32) {
		b.WriteString("TZif2")
		b.Write(make([]byte, 15))
		for _, n := range []uint32{0, 0, 0, times, types, chars} {
			binary.Write(&b, binary.BigEndian, n)
		}
	}
	header(0, 0, 0)
	header(1, 1, uint32(len(std)+1))
	binary.Write(&b, binary.BigEndian, int64(-1<<40))
	b.WriteByte(0)
	binary.Write(&b, binary.BigEndian, int32(offset))
	b.Write([]byte{0, 0})
	b.WriteString(std + "\x00\n" + rule + "\n")
	l, err := time.LoadLocationFromTZData(rule, b.Bytes())
	if err != nil {
		return nil
	}
	return l
}

func zoneName(s string) (name, rest string, ok bool) {
	if strings.HasPrefix(s, "<") {
		name, rest, ok = strings.Cut(s[1:], ">")
		return name, rest, ok && len(name) >= 3
	}
	n := 0
	for n < len(s) && isAlpha(s[n]) {
		n++
	}
	return s[:n], s[n:], n >= 3
}

// zoneOffset reads [+-]HH[:MM[:SS]], west of Greenwich, and returns seconds east of it.
func zoneOffset(s string) (seconds int, rest string, ok bool) {
	sign := -1
	if s != "" && (s[0] == '+' || s[0] == '-') {
		if s[0] == '-' {
			sign = 1
		}
		s = s[1:]
	}
	for unit := 3600; unit > 0; unit /= 60 {
		n, digits := 0, 0
		for digits < len(s) && digits < 3 && isDigit(s[digits]) {
			n = n*10 + int(s[digits]-'0')
			digits++
		}
		if digits == 0 || unit == 3600 && n > 167 || unit < 3600 && n > 59 {
			return 0, "", false
		}
		seconds += n * unit
		s = s[digits:]
		if !strings.HasPrefix(s, ":") {
			break
		}
		s = s[1:]
	}
	return sign * seconds, s, true
}

func isAlpha(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }
func isDigit(b byte) bool { return '0' <= b && b <= '9' }
func isSpace(b byte) bool { return b == ' ' || '\t' <= b && b <= '\r' }
