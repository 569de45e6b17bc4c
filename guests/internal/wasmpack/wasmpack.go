// Package wasmpack edits what a WebAssembly module carries beside its code: debug and other custom sections, a file
// system that wasi-vfs packed into its memory image, the cut of that image into segments.
//
// It works on modules whose digest is pinned or that this project built itself, so it refuses what it does not expect
// instead of being general.
package wasmpack

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

var header = []byte{0, 'a', 's', 'm', 1, 0, 0, 0}

const (
	sectionCustom    = 0
	sectionImport    = 2
	sectionMemory    = 5
	sectionCode      = 10
	sectionData      = 11
	sectionDataCount = 12

	maxImage = 64 << 20 // bytes of memory image that are laid out
	pageSize = 64 << 10
)

var errShort = errors.New("module ends early")

type section struct {
	id   byte
	body []byte
}

// segment is an active data segment of memory 0.
type segment struct {
	at    uint32
	bytes []byte
}

// StripDebug returns wasm without its custom sections whose name begins with ".debug".
func StripDebug(wasm []byte) ([]byte, error) {
	sections, err := split(wasm)
	if err != nil {
		return nil, err
	}
	var kept []section
	for _, s := range sections {
		if s.id == sectionCustom {
			n, k, err := uleb(s.body)
			if err != nil || uint64(n) > uint64(len(s.body)-k) {
				return nil, errors.New("custom section: bad name")
			}
			if strings.HasPrefix(string(s.body[k:k+int(n)]), ".debug") {
				continue
			}
		}
		kept = append(kept, s)
	}
	return join(kept), nil
}

// StripCustom returns wasm without its custom sections. They carry no meaning for a module that runs.
func StripCustom(wasm []byte) ([]byte, error) {
	sections, err := split(wasm)
	if err != nil {
		return nil, err
	}
	return join(slices.DeleteFunc(sections, func(s section) bool { return s.id == sectionCustom })), nil
}

// MergeData returns wasm with segments of data that lie less than gap bytes apart made one.
//
// Go's linker leaves out each run of a few zeros, which makes tens of thousands of segments: an engine then copies each
// of them at every start, where it could map a few. The memory of an instance is the same after it was made: what is
// between two segments is zero either way, because the module makes its memory itself. MergeData fails if it does
// not, if a segment could not be applied, or if the module may use its segments after the start.
func MergeData(wasm []byte, gap int) ([]byte, error) {
	sections, err := split(wasm)
	if err != nil {
		return nil, err
	}
	data, room := -1, int64(-1)
	for i, s := range sections {
		switch s.id {
		case sectionMemory:
			if room, err = memorySize(s.body); err != nil {
				return nil, err
			}
		case sectionDataCount:
			return nil, errors.New("the module has a count of its data segments, so it may use them after the start")
		case sectionData:
			if data >= 0 {
				return nil, errors.New("two data sections")
			}
			data = i
		}
	}
	if data < 0 {
		return nil, errors.New("no data section")
	}
	if room < 0 {
		return nil, errors.New("the module does not make its own memory")
	}
	segments, err := decode(sections[data].body)
	if err != nil {
		return nil, err
	}
	for _, s := range segments {
		if int64(s.at)+int64(len(s.bytes)) > room {
			return nil, fmt.Errorf("data segment at %#x does not fit into the memory", s.at)
		}
	}
	image, err := lay(segments)
	if err != nil {
		return nil, err
	}
	sections[data].body = encode(merge(segments, image, gap))
	return join(sections), nil
}

// merge cuts the image into as few segments as gap allows.
func merge(segments []segment, image []byte, gap int) []segment {
	segments = slices.Clone(segments)
	slices.SortFunc(segments, func(a, b segment) int { return cmp.Compare(a.at, b.at) })
	var out []segment
	from, to := 0, -1
	for _, s := range segments {
		at, end := int(s.at), int(s.at)+len(s.bytes)
		switch {
		case at == end:
		case to < 0:
			from, to = at, end
		case at-to < gap:
			to = max(to, end)
		default:
			out = append(out, segment{uint32(from), image[from:to]})
			from, to = at, end
		}
	}
	if to >= 0 {
		out = append(out, segment{uint32(from), image[from:to]})
	}
	return out
}

// memorySize is what the one memory of a memory section has at the start, in bytes.
func memorySize(body []byte) (int64, error) {
	// A count, the kind of limits (without a maximum, or with one), the smallest number of pages.
	if len(body) < 3 || body[0] != 1 || body[1] > 1 {
		return 0, errors.New("memory section is not one plain memory")
	}
	pages, _, err := uleb(body[2:])
	if err != nil {
		return 0, err
	}
	return int64(pages) * pageSize, nil
}

// Unmount returns wasm without the files that wasi-vfs packed below the folder named folder ("/usr").
//
// wasi-vfs keeps, in the memory image, a list of the folders that it serves itself; a lookup below one of them never
// reaches the host. Unmount sets the length of that list from one to nought, so that the module sees the host's
// folders only, and takes the packed bytes, which nothing reaches any more, out of the image: they are found by
// their first and last bytes above the list, a zip archive by its signature and its end record.
// It fails unless it finds exactly one list of one folder.
func Unmount(wasm []byte, folder string, first, last []byte) ([]byte, error) {
	sections, err := split(wasm)
	if err != nil {
		return nil, err
	}
	for i, s := range sections {
		if s.id != sectionData {
			continue
		}
		segments, err := decode(s.body)
		if err != nil {
			return nil, err
		}
		image, err := lay(segments)
		if err != nil {
			return nil, err
		}
		at, err := findList(image, folder)
		if err != nil {
			return nil, err
		}
		from := bytes.Index(image[at:], first)
		to := bytes.LastIndex(image, last)
		if from < 0 || to < at+from {
			return nil, fmt.Errorf("packed folder %q: its files were not found", folder)
		}
		if segments, err = clear(segments, uint32(at), uint32(at)+1); err != nil {
			return nil, err
		}
		if segments, err = clear(segments, uint32(at+from), uint32(to+len(last))); err != nil {
			return nil, err
		}
		sections[i].body = encode(segments)
		return join(sections), nil
	}
	return nil, errors.New("no data section")
}

// PassPolls returns wasm with poll_oneoff as the host answers it.
//
// wasi-vfs stands between the module and the host. For polls its function is "if there is no file system of mine, ask
// the host, else not supported", and a file system is there even if it is empty: time.sleep, select and poll all fail.
// Waiting needs no file system, so the condition becomes "always". Standard streams have the same numbers on both
// sides; nothing else can be waited for. It fails unless it finds exactly one such function.
func PassPolls(wasm []byte) ([]byte, error) {
	sections, err := split(wasm)
	if err != nil {
		return nil, err
	}
	index := -1
	for i, s := range sections {
		switch s.id {
		case sectionImport:
			if index, err = importedFunction(s.body, "wasi_snapshot_preview1", "poll_oneoff"); err != nil {
				return nil, err
			}
		case sectionCode:
			if index < 0 {
				return nil, errors.New("poll_oneoff is not imported")
			}
			// i32.load; i32.eqz; if (result i32); the four parameters; call poll_oneoff
			load, rest := []byte{0x28, 2, 0, 0x45}, []byte{0x20, 0, 0x20, 1, 0x20, 2, 0x20, 3, 0x10}
			rest = binary.AppendUvarint(rest, uint64(index))
			var found []int
			for _, at := range all(s.body, rest) {
				if at >= 6 && bytes.Equal(s.body[at-6:at-2], load) && s.body[at-2] == 0x04 {
					found = append(found, at-6)
				}
			}
			if len(found) != 1 {
				return nil, fmt.Errorf("%d functions that stand before poll_oneoff, not one", len(found))
			}
			body := bytes.Clone(s.body)
			copy(body[found[0]:], []byte{0x1a, 0x41, 1, 0x01}) // drop; i32.const 1; nop
			sections[i].body = body
			return join(sections), nil
		}
	}
	return nil, errors.New("no code section")
}

// importedFunction returns the index of an imported function. The import section must hold functions only.
func importedFunction(body []byte, module, name string) (int, error) {
	count, n, err := uleb(body)
	if err != nil {
		return 0, err
	}
	body = body[n:]
	text := func() (string, error) {
		size, n, err := uleb(body)
		if err != nil || uint64(size) > uint64(len(body)-n) {
			return "", errShort
		}
		s := string(body[n : n+int(size)])
		body = body[n+int(size):]
		return s, nil
	}
	for i := range int(count) {
		m, err := text()
		if err != nil {
			return 0, err
		}
		f, err := text()
		if err != nil {
			return 0, err
		}
		if len(body) == 0 || body[0] != 0 {
			return 0, errors.New("an import is not a function")
		}
		_, n, err := uleb(body[1:])
		if err != nil {
			return 0, err
		}
		body = body[1+n:]
		if m == module && f == name {
			return i, nil
		}
	}
	return -1, nil
}

// findList returns the address of the length of the list of packed folders.
//
// The list is a Rust vector {capacity, pointer, length} of strings of the same shape, 32 bits each. Copies of the
// vector may lie in dead stack frames below the data: the one at the highest address is live.
func findList(image []byte, folder string) (int, error) {
	found := -1
	for _, text := range all(image, append([]byte(folder), 0)) {
		for _, str := range all(image, pair(text, len(folder))) {
			vec := bytes.LastIndex(image, pair(str-4, 1))
			if vec < 0 {
				continue
			}
			if found >= 0 && found != vec+4 {
				return 0, fmt.Errorf("packed folder %q: more than one list", folder)
			}
			found = vec + 4
		}
	}
	if found < 0 {
		return 0, fmt.Errorf("packed folder %q: no list", folder)
	}
	return found, nil
}

// pair is two little-endian words as they lie in memory.
func pair(a, b int) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, uint32(a)), uint32(b))
}

func all(b, sub []byte) []int {
	var at []int
	for from := 0; ; {
		k := bytes.Index(b[from:], sub)
		if k < 0 {
			return at
		}
		at = append(at, from+k)
		from += k + 1
	}
}

// clear makes [from, to) of the memory image zero by leaving it out of the segments.
func clear(segments []segment, from, to uint32) ([]segment, error) {
	var out []segment
	hit := false
	for _, s := range segments {
		end := s.at + uint32(len(s.bytes))
		if end <= from || s.at >= to {
			out = append(out, s)
			continue
		}
		hit = true
		if s.at < from {
			out = append(out, segment{s.at, s.bytes[:from-s.at]})
		}
		if end > to {
			out = append(out, segment{to, s.bytes[to-s.at:]})
		}
	}
	if !hit {
		return nil, fmt.Errorf("memory %#x to %#x is in no data segment", from, to)
	}
	return out, nil
}

// lay writes the segments into one image.
func lay(segments []segment) ([]byte, error) {
	size := 0
	for _, s := range segments {
		size = max(size, int(s.at)+len(s.bytes))
	}
	if size > maxImage {
		return nil, fmt.Errorf("memory image of %d bytes, more than %d", size, maxImage)
	}
	image := make([]byte, size)
	for _, s := range segments {
		copy(image[s.at:], s.bytes)
	}
	return image, nil
}

func decode(body []byte) ([]segment, error) {
	count, p, err := uleb(body)
	if err != nil {
		return nil, err
	}
	var out []segment
	for range count {
		if len(body)-p < 3 || body[p] != 0 || body[p+1] != 0x41 {
			return nil, errors.New("data segment is not an active one at a constant address")
		}
		at, k, err := sleb(body[p+2:]) // an address, but the format has only signed constants
		if err != nil {
			return nil, err
		}
		p += 2 + k
		if p >= len(body) || body[p] != 0x0b {
			return nil, errors.New("data segment is not an active one at a constant address")
		}
		n, k, err := uleb(body[p+1:])
		if err != nil {
			return nil, err
		}
		p += 1 + k
		if uint64(n) > uint64(len(body)-p) {
			return nil, errShort
		}
		out = append(out, segment{at, body[p : p+int(n)]})
		p += int(n)
	}
	if p != len(body) {
		return nil, errors.New("bytes after the last data segment")
	}
	return out, nil
}

func encode(segments []segment) []byte {
	b := binary.AppendUvarint(nil, uint64(len(segments)))
	for _, s := range segments {
		b = append(b, 0, 0x41)
		b = appendSleb(b, int32(s.at))
		b = append(b, 0x0b)
		b = binary.AppendUvarint(b, uint64(len(s.bytes)))
		b = append(b, s.bytes...)
	}
	return b
}

func split(wasm []byte) ([]section, error) {
	if !bytes.HasPrefix(wasm, header) {
		return nil, errors.New("not a WebAssembly module")
	}
	var out []section
	for b := wasm[len(header):]; len(b) > 0; {
		n, k, err := uleb(b[1:])
		if err != nil {
			return nil, err
		}
		if uint64(n) > uint64(len(b)-1-k) {
			return nil, errShort
		}
		out = append(out, section{b[0], b[1+k : 1+k+int(n)]})
		b = b[1+k+int(n):]
	}
	return out, nil
}

func join(sections []section) []byte {
	b := bytes.Clone(header)
	for _, s := range sections {
		b = append(b, s.id)
		b = binary.AppendUvarint(b, uint64(len(s.body)))
		b = append(b, s.body...)
	}
	return b
}

func uleb(b []byte) (uint32, int, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 || v > 1<<32-1 {
		return 0, 0, errShort
	}
	return uint32(v), n, nil
}

// sleb reads a signed number of 32 bits.
func sleb(b []byte) (uint32, int, error) {
	var v uint64
	for i, c := range b[:min(len(b), 5)] {
		v |= uint64(c&0x7f) << (7 * i)
		if c&0x80 != 0 {
			continue
		}
		if c&0x40 != 0 && i < 4 {
			v |= ^uint64(0) << (7 * (i + 1))
		}
		return uint32(v), i + 1, nil
	}
	return 0, 0, errShort
}

func appendSleb(b []byte, v int32) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
