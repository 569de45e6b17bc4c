package wasmpack

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
)

// memories is a module of one memory of some pages, exported as "memory", with data.
func memories(pages uint64, segments []segment) []byte {
	return module(
		section{sectionMemory, binary.AppendUvarint([]byte{1, 0}, pages)},
		section{7, append(append([]byte{1, 6}, "memory"...), 2, 0)},
		section{sectionData, encode(segments)},
	)
}

// memoryOf instantiates a module and returns its whole memory.
func memoryOf(t *testing.T, r wazero.Runtime, wasm []byte) []byte {
	t.Helper()
	ctx := context.Background()
	m, err := r.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(ctx)
	b, ok := m.Memory().Read(0, m.Memory().Size())
	if !ok {
		t.Fatal("the memory cannot be read")
	}
	return bytes.Clone(b)
}

func dataOf(t *testing.T, wasm []byte) []segment {
	t.Helper()
	sections, err := split(wasm)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sections {
		if s.id == sectionData {
			segments, err := decode(s.body)
			if err != nil {
				t.Fatal(err)
			}
			return segments
		}
	}
	t.Fatal("no data section")
	return nil
}

func TestStripCustomKeepsTheRest(t *testing.T) {
	code := section{10, []byte{0}}
	got, err := StripCustom(module(custom("name", "n"), code, custom("producers", "p")))
	if want := module(code); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %x, %v; want %x", got, err, want)
	}
}

func TestMergeDataJoinsWhatLiesClose(t *testing.T) {
	in := []segment{{0x100, []byte("abc")}, {0x107, []byte("de")}, {0x10d, []byte("f")}, {0x20000, nil}, {0x1000, []byte("far")}}
	for _, c := range []struct {
		gap  int
		want []segment
	}{
		{5, []segment{{0x100, []byte("abc\x00\x00\x00\x00de\x00\x00\x00\x00f")}, {0x1000, []byte("far")}}},
		{4, []segment{{0x100, []byte("abc")}, {0x107, []byte("de")}, {0x10d, []byte("f")}, {0x1000, []byte("far")}}},
		{0, []segment{{0x100, []byte("abc")}, {0x107, []byte("de")}, {0x10d, []byte("f")}, {0x1000, []byte("far")}}},
	} {
		got, err := MergeData(memories(2, in), c.gap)
		if err != nil {
			t.Fatal(err)
		}
		same := func(a, b segment) bool { return a.at == b.at && bytes.Equal(a.bytes, b.bytes) }
		if s := dataOf(t, got); !slices.EqualFunc(s, c.want, same) {
			t.Errorf("gap %d: %v, want %v", c.gap, s, c.want)
		}
	}
}

func TestMergeDataRefusesWhatItDoesNotKnow(t *testing.T) {
	memory := section{sectionMemory, []byte{1, 0, 1}}
	data := section{sectionData, encode([]segment{{0, []byte("x")}})}
	for name, c := range map[string]struct {
		wasm []byte
		want string
	}{
		"not a module":         {[]byte("PK"), "not a WebAssembly module"},
		"no data":              {module(memory), "no data section"},
		"two data sections":    {module(memory, data, data), "two data sections"},
		"an imported memory":   {module(section{sectionImport, []byte{1, 1, 'a', 1, 'b', 2, 0, 1}}, data), "does not make its own memory"},
		"two memories":         {module(section{sectionMemory, []byte{2, 0, 1, 0, 1}}, data), "not one plain memory"},
		"a shared memory":      {module(section{sectionMemory, []byte{1, 3, 1, 2}}, data), "not one plain memory"},
		"segments used later":  {module(memory, section{sectionDataCount, []byte{1}}, data), "after the start"},
		"a passive segment":    {module(memory, section{sectionData, []byte{1, 1, 0}}), "not an active one"},
		"data past the memory": {memories(1, []segment{{pageSize - 1, []byte("xy")}}), "does not fit"},
		"data at the very end": {memories(1, []segment{{1 << 30, []byte("x")}}), "does not fit"},
		"an image without end": {memories(1<<16, []segment{{maxImage, []byte("x")}}), "memory image"},
		"an address too long":  {module(memory, section{sectionData, []byte{1, 0, 0x41, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0b, 0}}), "ends early"},
		"a negative address":   {module(memory, section{sectionData, []byte{1, 0, 0x41, 0x7f, 0x0b, 1, 'x'}}), "at 0xffffffff does not fit"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := MergeData(c.wasm, 16)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// FuzzMergeData: an engine that instantiates the module before and after has the same memory, and no two segments are
// left that should be one.
func FuzzMergeData(f *testing.F) {
	f.Add([]byte("\x10\x00\x03abc\x14\x00\x02de\xff\xff\x01x"), uint16(8))
	f.Add([]byte("\x10\x00\x03abc\x11\x00\x03xyz\x10\x00\x01q"), uint16(0))
	f.Add([]byte{0, 0, 0, 1, 0, 0}, uint16(1))
	r := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigInterpreter())
	f.Fuzz(func(t *testing.T, script []byte, gap uint16) {
		var segments []segment
		for len(script) >= 3 {
			at, n := binary.LittleEndian.Uint16(script), int(script[2])
			script = script[3:]
			n = min(n, len(script), pageSize-int(at))
			segments = append(segments, segment{uint32(at), script[:n]})
			script = script[n:]
		}
		before := memories(1, segments)
		after, err := MergeData(before, int(gap))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(memoryOf(t, r, before), memoryOf(t, r, after)) {
			t.Fatalf("another memory: %v became %v", segments, dataOf(t, after))
		}
		end := -1
		for _, s := range dataOf(t, after) {
			if end >= 0 && int(s.at)-end < int(gap) || int(s.at) < end || len(s.bytes) == 0 {
				t.Fatalf("gap %d: %v", gap, dataOf(t, after))
			}
			end = int(s.at) + len(s.bytes)
		}
	})
}
