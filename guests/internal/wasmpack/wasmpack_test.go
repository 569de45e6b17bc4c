package wasmpack

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

func module(sections ...section) []byte { return join(sections) }

func custom(name, content string) section {
	return section{sectionCustom, append(append([]byte{byte(len(name))}, name...), content...)}
}

func TestStripDebugTakesDebugSectionsOnly(t *testing.T) {
	code := section{10, []byte{0}}
	in := module(custom("name", "n"), custom(".debug_info", "dd"), code, custom(".debug_str", ""), custom("producers", "p"))
	want := module(custom("name", "n"), code, custom("producers", "p"))
	got, err := StripDebug(in)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %x, %v; want %x", got, err, want)
	}
}

// packed is a module whose memory image holds one list {capacity 4, pointer, length lists} at 0x200 of one string
// {4, 0x100, 4} at 0x180 with text "/usr", a dead copy of the list at 0x40, and files at 0x300.
func packed(lists uint32) []byte {
	words := func(w ...uint32) (b []byte) {
		for _, v := range w {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		return b
	}
	return module(section{sectionData, encode([]segment{
		{0x40, words(4, 0x180, 1)},
		{0x100, []byte("/usr\x00")},
		{0x180, words(4, 0x100, 4)},
		{0x200, words(4, 0x180, lists)},
		{0x2f0, []byte("0123456789abcdefBEGINfilesENDtail")},
	})})
}

func TestUnmountEmptiesTheListAndDropsTheFiles(t *testing.T) {
	got, err := Unmount(packed(1), "/usr", []byte("BEGIN"), []byte("END"))
	if err != nil {
		t.Fatal(err)
	}
	sections, err := split(got)
	if err != nil {
		t.Fatal(err)
	}
	segments, err := decode(sections[0].body)
	if err != nil {
		t.Fatal(err)
	}
	image, err := lay(segments)
	if err != nil {
		t.Fatal(err)
	}
	before := func() []byte {
		sections, _ := split(packed(1))
		segments, _ := decode(sections[0].body)
		image, _ := lay(segments)
		return image
	}()
	before[0x208] = 0
	copy(before[0x300:], make([]byte, len("BEGINfilesEND")))
	if !bytes.Equal(image, before) {
		t.Errorf("memory image is\n%x, want\n%x", image, before)
	}
	if bytes.Contains(got, []byte("files")) {
		t.Error("the module still carries the files")
	}
}

func TestUnmountRefusesWhatItDoesNotKnow(t *testing.T) {
	for name, c := range map[string]struct {
		wasm         []byte
		folder, last string
		want         string
	}{
		"other folder":    {packed(1), "/lib", "END", "no list"},
		"files not found": {packed(1), "/usr", "NONE", "not found"},
		"no data section": {module(), "/usr", "END", "no data section"},
		"not a module":    {[]byte("PK"), "/usr", "END", "not a WebAssembly module"},
		"passive segment": {module(section{sectionData, []byte{1, 1, 0}}), "/usr", "END", "not an active one"},
		"cut":             {packed(1)[:60], "/usr", "END", "ends early"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Unmount(c.wasm, c.folder, []byte("BEGIN"), []byte(c.last))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// polls is a module that imports sched_yield and poll_oneoff, with functions functions that ask the host only if a word
// of memory is nought.
func polls(functions int) []byte {
	imports := []byte{2}
	for _, name := range []string{"sched_yield", "poll_oneoff"} {
		imports = append(imports, byte(len("wasi_snapshot_preview1")))
		imports = append(imports, "wasi_snapshot_preview1"...)
		imports = append(append(append(imports, byte(len(name))), name...), 0, 0)
	}
	var code []byte
	for range functions {
		code = append(code, 0x41, 0x80, 0x08, 0x28, 2, 0, 0x45, 0x04, 0x7f, 0x20, 0, 0x20, 1, 0x20, 2, 0x20, 3, 0x10, 1, 0x0c, 1, 0x0b)
	}
	return module(section{sectionImport, imports}, section{sectionCode, code})
}

func TestPassPollsAsksTheHostAlways(t *testing.T) {
	got, err := PassPolls(polls(1))
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Replace(polls(1), []byte{0x28, 2, 0, 0x45}, []byte{0x1a, 0x41, 1, 1}, 1)
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%x, want\n%x", got, want)
	}
}

func TestPassPollsRefusesWhatItDoesNotKnow(t *testing.T) {
	for name, c := range map[string]struct {
		wasm []byte
		want string
	}{
		"no function":      {polls(0), "0 functions"},
		"two functions":    {polls(2), "2 functions"},
		"no code":          {module(), "no code section"},
		"not imported":     {module(section{sectionCode, nil}), "not imported"},
		"imported memory":  {module(section{sectionImport, []byte{1, 1, 'a', 1, 'b', 2, 0, 1}}), "not a function"},
		"import cut":       {module(section{sectionImport, []byte{1, 9, 'a'}}), "ends early"},
		"not a module":     {[]byte("PK"), "not a WebAssembly module"},
		"an empty section": {module(section{sectionImport, nil}), "ends early"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := PassPolls(c.wasm)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func FuzzSplitThenJoin(f *testing.F) {
	f.Add(packed(1))
	f.Add(module(custom(".debug_info", "dd")))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		sections, err := split(wasm)
		if err != nil {
			return
		}
		again, err := split(join(sections))
		if err != nil || len(again) != len(sections) {
			t.Fatalf("%d sections became %d: %v", len(sections), len(again), err)
		}
		for i := range again {
			if again[i].id != sections[i].id || !bytes.Equal(again[i].body, sections[i].body) {
				t.Fatalf("section %d changed", i)
			}
		}
		for _, s := range sections {
			if s.id != sectionData {
				continue
			}
			if segments, err := decode(s.body); err == nil {
				again, err := decode(encode(segments))
				if err != nil || len(again) != len(segments) {
					t.Fatalf("%d segments became %d: %v", len(segments), len(again), err)
				}
			}
		}
	})
}
