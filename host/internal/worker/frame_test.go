package worker

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/exthost/exthost/host/internal/engine"
	"github.com/exthost/exthost/wasiabi"
)

func TestEveryFieldOfAMountReachesTheWorker(t *testing.T) {
	m := reflect.ValueOf(messages()[frameBind].(*msgBind).Mounts[0].M)
	for i := range m.NumField() {
		// The worker fills in where its descriptors are.
		if name := m.Type().Field(i).Name; m.Field(i).IsZero() && name != "Dir" && name != "Upper" {
			t.Errorf("%s is not in the message that the round trip is tested with", name)
		}
	}
}

// messages are a filled-in one of each.
func messages() map[frameType]message {
	return map[frameType]message{
		frameHello:   &msgHello{Version: 1, Nonce: []byte("nonce"), Parent: 7, Engine: "wazero"},
		frameHelloOK: &msgHelloOK{Version: 1, Nonce: []byte("nonce")},
		frameBind: &msgBind{
			Role: RoleRun, Engine: "wazero", Scratch: 0, Read: []int{2}, Names: []string{".git"}, WeakWalls: true, Exe: "/bin/x",
			Limits: Limits{Memory: 1, TableElements: 2, OpenFiles: 3, Disk: 4, Entries: 5, MinFree: 6, CPU: time.Second},
			Mounts: []bindMount{{FD: 1, M: wasiabi.Mount{
				Guest: "/w", File: true, Access: wasiabi.ReadWrite, Hide: []string{"*.key"}, Protected: []string{"x"}, Above: []string{"y"},
				Narrow: []wasiabi.Narrow{{Guest: "/w/a", Access: wasiabi.ReadOnly}}, Scratch: true, Immutable: true, Cross: true,
			}}, {FD: -1, Sub: "home"}},
		},
		frameBound:    &msgBound{Walls: []string{"seccomp"}, Missing: []string{"landlock: no"}, Version: "1.2"},
		frameWall:     &msgWall{Wall: "landlock", Reason: "no"},
		frameCompile:  &msgCompile{Module: 0, Prepared: 1, Code: 2, Time: 3},
		frameCompiled: &msgCompiled{CodeName: "abc"},
		frameModule:   &msgModule{Kind: "invalid", Detail: "d"},
		frameRun: &msgRun{
			Folder: "r1", Module: 0, Code: 1, CodeName: "c", Args: []string{"a"}, Env: []string{"A=1"}, Dir: "/", Stdin: -1,
			Stdout: 2, Stderr: 2, Exact: true, Nonblock: true, Time: time.Minute,
		},
		frameEvents:  &msgEvents{Events: []wasiabi.Event{{Op: "open", Capability: "read /x", Denied: true, Errno: "ACCES", Detail: "d", Count: 2}}},
		frameRemoved: &msgRemoved{Paths: []string{"/o/f"}},
		frameResult: &msgResult{
			Ending: engine.Ending{Kind: engine.Trap, Code: 1, Trap: "unreachable", Detail: "f < g", MemoryBytes: 65536, GrowRefused: true},
			Fault:  "f", Usage: wasiabi.Usage{Written: 1, Disk: 2, Entries: 3}, EventsDropped: 4,
		},
		frameRefused: &msgRefused{Kind: kindCode, Detail: "no"},
	}
}

func TestEveryMessageIsCodedWhole(t *testing.T) {
	all := messages()
	if len(all) != int(frameTypeEnd)-1 {
		t.Fatalf("%d messages, %d types", len(all), frameTypeEnd-1)
	}
	for typ, m := range all {
		noZeroField(t, reflect.ValueOf(m).Elem(), reflect.TypeOf(m).Elem().Name())
		b, err := encode(m)
		if err != nil {
			t.Fatal(err)
		}
		back := reflect.New(reflect.TypeOf(m).Elem()).Interface().(message)
		if err := decode(b, back); err != nil || !reflect.DeepEqual(m, back) {
			t.Errorf("type %d: %v\n%+v\n%+v", typ, err, m, back)
		}
		for n := range b {
			if err := decode(b[:n], reflect.New(reflect.TypeOf(m).Elem()).Interface().(message)); !errors.Is(err, errFrame) {
				t.Errorf("type %d cut to %d bytes: %v", typ, n, err)
			}
		}
		if err := decode(append(b, 0), back); !errors.Is(err, errFrame) {
			t.Errorf("type %d with a byte more: %v", typ, err)
		}
	}
}

// noZeroField keeps messages complete: a field that the table above leaves out would not be tested.
func noZeroField(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			noZeroField(t, v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	case reflect.Slice:
		if v.Len() == 0 {
			t.Errorf("%s is empty", path)
		} else if v.Index(0).Kind() == reflect.Struct {
			noZeroField(t, v.Index(0), path)
		}
	default:
		// A path of the host is never sent, and index 0 and -1 are values like others.
		if v.IsZero() && v.Kind() != reflect.Int && !strings.HasSuffix(path, ".Dir") && !strings.HasSuffix(path, ".Upper") && !strings.HasSuffix(path, ".Sub") {
			t.Errorf("%s is zero", path)
		}
	}
}

func TestBadPacketsAreRefused(t *testing.T) {
	good := appendFrame(nil, header{typ: frameRefused, tag: 9}, []byte("x"))
	if h, p, err := parseFrame(good); err != nil || h.typ != frameRefused || h.tag != 9 || h.more || string(p) != "x" {
		t.Fatalf("%+v %q %v", h, p, err)
	}
	change := func(i int, b byte) []byte {
		c := bytes.Clone(good)
		c[i] = b
		return c
	}
	for name, p := range map[string][]byte{
		"empty":     nil,
		"short":     good[:frameHeader-1],
		"magic":     change(0, 'X'),
		"type 0":    change(4, 0),
		"type high": change(4, byte(frameTypeEnd)),
		"flags":     change(5, 2),
		"reserved":  change(6, 1),
		"long":      append(bytes.Clone(good), 0),
		"length":    change(16, 0),
		"oversize":  appendFrame(nil, header{typ: frameRefused}, make([]byte, maxFrame)),
	} {
		if _, _, err := parseFrame(p); !errors.Is(err, errFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestACountIsWorthNoMoreMemoryThanItsBytes(t *testing.T) {
	b := []byte{0xff, 0xff, 0, 0} // 65535 events, none there
	if n := testing.AllocsPerRun(10, func() {
		if err := decode(b, &msgEvents{}); !errors.Is(err, errFrame) {
			t.Fatal(err)
		}
	}); n > 10 {
		t.Errorf("%v allocations", n)
	}
}

func TestTextOfAWorkerIsMadeHarmless(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                 "plain",
		"\x1b[31mred\x1b[0m":    "?[31mred?[0m",
		"a\nb":                  "a?b",
		"bad \xff\xfe utf8":     "bad ? utf8",
		"turn \u202e round":     "turn ? round",
		strings.Repeat("é", 10): "éééééééé", // 16 bytes
		"a\x00\x00\x00b":        "a?b",
		"\u2028line":            "?line",
		"the snowman is \u2603": "the snowman is ", // it would not fit whole
	} {
		if got := clip(in, 16); got != want || !utf8.ValidString(got) {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := clipLines("a\n"+strings.Repeat("x", 600)+"\nb", 600); got != "a\n"+strings.Repeat("x", 512)+"\nb" {
		t.Errorf("%q", got)
	}
	if got := clipLines(strings.Repeat("y\n", 5000), 100); len(got) > 100 {
		t.Errorf("%d bytes", len(got))
	}
}

// FuzzDecode: whatever bytes come, the decoder neither panics nor takes more memory than a small multiple of them, and
// what it takes is written back as the very same bytes.
func FuzzDecode(f *testing.F) {
	for typ, m := range messages() {
		b, err := encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(appendFrame(nil, header{typ: typ}, b))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		h, payload, err := parseFrame(p)
		if err != nil {
			return
		}
		m := messages()[h.typ]
		m = reflect.New(reflect.TypeOf(m).Elem()).Interface().(message)
		if err := decode(payload, m); err != nil {
			return
		}
		b, err := encode(m)
		if err != nil {
			t.Fatalf("decoded but not encoded: %v", err)
		}
		if again := appendFrame(nil, h, b); !bytes.Equal(again, p) {
			t.Fatalf("%x became %x", p, again)
		}
	})
}

func TestNamesThatGoIntoPathsAreChecked(t *testing.T) {
	for s, want := range map[string][2]bool{ // folder, code
		"r1": {true, true}, "upper-0": {true, true}, "a.b_c": {false, true}, "ABC": {false, true},
		"": {}, ".": {}, "..": {}, "a/b": {}, "-a": {}, ".a": {}, "a b": {}, "a\x00": {}, "é": {},
		strings.Repeat("a", 63): {true, true}, strings.Repeat("a", 64): {false, true}, strings.Repeat("a", 256): {},
	} {
		if got := [2]bool{folderName(s), codeName(s)}; got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}
