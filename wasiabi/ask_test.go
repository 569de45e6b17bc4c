package wasiabi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/exthost/exthost/wasiabi/internal/rootfs"
)

// ask sends a line to a device and gives the answer.
func (g *guest) ask(device, line string) string {
	g.Helper()
	fd := g.mustOpen("dev/exthost/"+device, 0, readWrite, 0)
	defer g.want("", "fd_close", fd)
	if e := g.write(fd, line); e != "" {
		g.Fatalf("write %q: %s", line, e)
	}
	got, e := g.read(fd, 4096)
	if e != "" {
		g.Fatalf("read: %s", e)
	}
	return got
}

func TestAskingIsRefusedAndTold(t *testing.T) {
	const denied = `{"error":"denied","reason":`
	for _, tt := range []struct{ name, device, line, answer, event string }{
		{"a request", "http", `{"method":"GET","url":"http://192.0.2.10/i"}`, denied, "http GET http://192.0.2.10/i"},
		{"its spelling", "http", ` { "url" : "HTTPS://Api.Example.TEST:443/A?key=1#f" , "method" : "post" } ` + "\r", denied, "http POST https://api.example.test/A"},
		{"user information", "http", `{"method":"GET","url":"http://me:secret@example.test"}`, denied, "http GET http://example.test/"},
		{"a query without a path", "http", `{"method":"GET","url":"http://example.test?token=1@x"}`, denied, "http GET http://example.test/"},
		{"another scheme", "http", `{"method":"GET","url":"ftp://example.test:80/a"}`, denied, "http GET ftp://example.test:80/a"},
		{"an escaped string", "http", `{"method":"G\u0045T","url":"http://example.test\u002fa"}`, denied, "http GET http://example.test/a"},
		{"a program", "run", `{"program":"git","args":["clone","--depth=1"]}`, denied, "run program git clone --depth=1"},
		{"a program with much to say", "run", `{"program":"git","args":["` + strings.Repeat("x", 300) + `"]}`, denied, "run program git " + strings.Repeat("x", 200)},
		{"a program by its path", "run", `{"program":"/usr/bin/sudo"}`, denied, "run program sudo"},
		{"a note", "log", `{"text":"half way"}`, `{"ok":true}`, "log log half way"},
		{"an escape in a note", "log", `{"text":"\u001b[2J"}`, `{"ok":true}`, "log log \x1b[2J"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGuest(t, Config{})
			for range 3 {
				got := g.ask(tt.device, tt.line+"\n")
				if !strings.HasPrefix(got, tt.answer) || strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "\n") {
					t.Errorf("answer %q, want %q", got, tt.answer)
				}
			}
			g.p.Close()
			var events []string
			for _, e := range g.events {
				events = append(events, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Op, e.Capability, e.Detail)))
				if e.Denied != (tt.device != "log") {
					t.Errorf("event %+v", e)
				}
			}
			if want := []string{tt.event, tt.event}; !slices.Equal(events, want) || g.events[1].Count != 2 {
				t.Errorf("events %+v, want %q once and its two repeats", g.events, tt.event)
			}
		})
	}
}

func TestRequestsThatAreNotAsDescribedAreInvalid(t *testing.T) {
	g := newGuest(t, Config{})
	for _, tt := range []struct{ device, line, reason string }{
		{"http", ``, "not one JSON value"},
		{"http", `{`, "not one JSON value"},
		{"http", `{} {}`, "not one JSON value"},
		{"http", `[]`, "not a JSON object"},
		{"http", `"GET http://example.test/"`, "not a JSON object"},
		{"http", `{}`, `key "method" is missing`},
		{"http", `{"method":"GET"}`, `key "url" is missing`},
		{"http", `{"method":"GET","URL":"http://example.test/"}`, `key "URL" is not known`},
		{"http", `{"method":"GET","url":"http://a.test/","url":"http://b.test/"}`, `key "url" comes twice`},
		{"http", `{"method":"GET","url":"http://a.test/","principal":"x"}`, `key "principal" is not known`},
		{"http", `{"method":null,"url":"http://a.test/"}`, "method: it is not a string"},
		{"http", `{"method":1,"url":"http://a.test/"}`, "method: it is not a string"},
		{"http", `{"method":["GET"],"url":"http://a.test/"}`, "method: it is not a string"},
		{"http", `{"method":"","url":"http://a.test/"}`, "method: want"},
		{"http", `{"method":"read /etc","url":"http://a.test/"}`, "method: want"},
		{"http", `{"method":"` + strings.Repeat("G", 33) + `","url":"http://a.test/"}`, "method: want"},
		{"http", `{"method":"GET","url":"a.test"}`, "a scheme and ://"},
		{"http", `{"method":"GET","url":"http://"}`, "names no host"},
		{"http", `{"method":"GET","url":"http://me@/x"}`, "names no host"},
		{"http", `{"method":"GET","url":"http://:80/x"}`, "names no host"},
		{"http", `{"method":"GET","url":"http://a.test/b c"}`, "a blank"},
		{"http", `{"method":"GET","url":"http://a.test\\@b.test/"}`, "a backslash"},
		{"http", `{"method":"GET","url":"http://a.test/\u0000"}`, "a control character"},
		{"http", `{"method":"GET","url":"http://` + strings.Repeat("a", 8192) + `"}`, "longer than 8192"},
		{"http", "{\"method\":\"GET\",\"url\":\"http://a.test/\xff\"}", "not UTF-8"},
		{"run", `{"args":[]}`, `key "program" is missing`},
		{"run", `{"program":""}`, "program: want"},
		{"run", `{"program":"a/.."}`, "program: want"},
		{"run", `{"program":"/"}`, "program: want"},
		{"run", `{"program":"` + strings.Repeat("g", 256) + `"}`, "program: want"},
		{"run", `{"program":"git","args":"clone"}`, "args: it is not a list"},
		{"run", `{"program":"git","args":[1]}`, "args: entry 1: it is not a string"},
		{"run", `{"program":"git","args":["a",["b"]]}`, "args: entry 2: it is not a string"},
		{"run", `{"program":"git","args":["\u0000"]}`, "a NUL"},
		{"log", `{"text":" \n "}`, "it is empty"},
		{"log", `{"note":"x"}`, `key "note" is not known`},
		{"log", `{"text":"` + strings.Repeat("x", maxRequest) + `"}`, "longer than 16384"},
	} {
		line := tt.line + "\n"
		fd := g.mustOpen("dev/exthost/"+tt.device, 0, readWrite, 0)
		g.writeUpTo(fd, line)
		got, _ := g.read(fd, 4096)
		g.want("", "fd_close", fd)
		var answer struct{ Error, Reason string }
		if err := json.Unmarshal([]byte(got), &answer); err != nil || answer.Error != "invalid" || !strings.Contains(answer.Reason, tt.reason) {
			t.Errorf("%s %.80q: answer %q, want invalid: %s", tt.device, tt.line, got, tt.reason)
		}
	}
	if len(g.events) != 0 {
		t.Errorf("events %+v", g.events)
	}
}

// writeUpTo writes what one call takes of s.
func (g *guest) writeUpTo(fd uint64, s string) int {
	g.Helper()
	if e := g.write(fd, s); e != "" {
		g.Fatalf("write: %s", e)
	}
	return int(g.u32(atOut))
}

func TestARequestIsOneLineAndOneAnswer(t *testing.T) {
	g := newGuest(t, Config{})
	const line = `{"program":"git"}` + "\n"
	fd := g.mustOpen("dev/exthost/run", 0, readWrite, 0)
	if got, e := g.read(fd, 10); got != "" || e != "" {
		t.Errorf("before anything is written: %q %q", got, e)
	}
	for _, c := range line[:5] {
		if n := g.writeUpTo(fd, string(c)); n != 1 {
			t.Fatalf("%d bytes written", n)
		}
	}
	if n := g.writeUpTo(fd, line[5:]+"more"); n != len(line)-5 {
		t.Errorf("%d bytes written, want those of the line", n)
	}
	if e := g.write(fd, "more"); e != "EPIPE" {
		t.Errorf("a write after the line: %q", e)
	}
	whole := ""
	for {
		got, e := g.read(fd, 7)
		if e != "" {
			t.Fatal(e)
		}
		if got == "" {
			break
		}
		whole += got
	}
	if want := `{"error":"denied","reason":"` + noProgram + `"}` + "\n"; whole != want {
		t.Errorf("answer in pieces %q, want %q", whole, want)
	}
	g.want("ESPIPE", "fd_pread", fd, atIov, 0, 0, atOut)
	g.want("ESPIPE", "fd_pwrite", fd, atIov, 0, 0, atOut)
	g.want("", "fd_seek", fd, 5, 0, atOut)
	if g.u64(atOut) != 0 {
		t.Errorf("seek gave %d", g.u64(atOut))
	}
	g.want("", "fd_close", fd)

	fd = g.mustOpen("dev/exthost/run", 0, readWrite, 0)
	g.writeUpTo(fd, line[:8])
	if got, _ := g.read(fd, 4096); !strings.Contains(got, "does not end with a newline") {
		t.Errorf("a line without an end: %q", got)
	}
	g.want("", "fd_close", fd)
	fd = g.mustOpen("dev/exthost/run", 0, readWrite, 0)
	g.writeUpTo(fd, line[:8])
	g.want("", "fd_close", fd)
	if len(g.events) != 1 {
		t.Errorf("events %+v, want one", g.events)
	}
}

func TestFewRequestsAreOpenAtOnce(t *testing.T) {
	g := newGuest(t, Config{})
	var open []uint64
	for range maxAsking {
		open = append(open, g.mustOpen("dev/exthost/log", 0, readWrite, 0))
	}
	if _, e := g.open(3, "dev/exthost/http", 0, readWrite, 0); e != "EBUSY" {
		t.Errorf("one more: %q", e)
	}
	g.want("", "fd_renumber", open[0], open[1])
	g.want("", "fd_close", open[2])
	for range 2 {
		g.mustOpen("dev/exthost/http", 0, readWrite, 0)
	}
	if _, e := g.open(3, "dev/exthost/http", 0, readWrite, 0); e != "EBUSY" {
		t.Errorf("one more, after two were closed: %q", e)
	}
}

func TestNotesAreFew(t *testing.T) {
	g := newGuest(t, Config{})
	for i := range maxNotes + 10 {
		if got := g.ask("log", `{"text":"again"}`+"\n"); got != `{"ok":true}`+"\n" {
			t.Errorf("a repeat: %q", got)
		}
		got := g.ask("log", fmt.Sprintf(`{"text":"note %d %s"}`, i, strings.Repeat("ä", 2000))+"\n")
		if want := i < maxNotes-1; strings.HasPrefix(got, `{"ok":true}`) != want || strings.Contains(got, "limit") == want {
			t.Errorf("note %d: %q", i, got)
		}
	}
	if len(g.events) != maxNotes {
		t.Errorf("%d events", len(g.events))
	}
	for _, e := range g.events {
		if len(e.Detail) > maxDetail || !utf8.ValidString(e.Detail) {
			t.Errorf("a note of %d bytes", len(e.Detail))
		}
	}
}

func TestDevicesThatAskAreListed(t *testing.T) {
	g := newGuest(t, Config{})
	for name, want := range map[string]byte{"dev/exthost": typeDirectory, "dev/exthost/http": typeCharacter, "dev/exthost/run": typeCharacter, "dev/exthost/log": typeCharacter} {
		ptr, n := g.path(atPath, name)
		g.want("", "path_filestat_get", 3, 0, ptr, n, atOut)
		if g.mem[atOut+16] != want {
			t.Errorf("%s has file type %d, want %d", name, g.mem[atOut+16], want)
		}
	}
	for name, want := range map[string]string{"dev/exthost/mcp": "EACCES", "dev/exthost/http/x": "ENOTDIR"} {
		if _, e := g.open(3, name, openCreat, readWrite, 0); e != want {
			t.Errorf("making %s: %q, want %q", name, e, want)
		}
	}
	fd := g.mustOpen("dev/exthost/http", 0, readWrite, 0)
	g.want("", "fd_fdstat_get", fd, atOut)
	if g.mem[atOut] != typeCharacter || g.u64(atOut+8)&rightFdSeek == 0 {
		t.Error("it looks like a terminal to a libc")
	}
	g.want("", "fd_fdstat_set_flags", fd, flagNonblock)
}

// FuzzRequest: whatever is written to a device, the answer is one line of JSON with a verdict, and what is told of an
// attempt is bounded, free of what may be secret, and only there when the strict reading and a lenient one agree.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		`{"method":"GET","url":"http://u:p@a.test:80/b?c#d"}`, `{"program":"git","args":["a","b"]}`, `{"text":"x"}`,
		`{"method":"GET","url":"http://a.test/","url":""}`, `{"Text":"x"}`, `{"text":"\ud800"}`, "{\"text\":\"\xff\"}", `{"args":[],"program":"a/b"}`,
	} {
		for device := range 3 {
			f.Add(byte(device), []byte(s+"\n"))
		}
	}
	f.Fuzz(func(t *testing.T, which byte, line []byte) {
		var events []Event
		p := &Process{events: events1(&events)}
		r := p.newRequest([]rootfs.Device{rootfs.AskHTTP, rootfs.AskRun, rootfs.AskLog}[which%3])
		for rest := line; len(rest) > 0; {
			n, e := p.writeRequest(r, rest)
			if e == rootfs.EPIPE {
				break
			}
			if e != rootfs.Success || n <= 0 {
				t.Fatalf("wrote %d bytes: %v", n, e)
			}
			rest = rest[n:]
		}
		buf := make([]byte, 32<<10)
		answer := buf[:p.readAnswer(r, buf)]
		if len(answer) == 0 {
			if len(line) != 0 || len(events) != 0 {
				t.Fatalf("no answer to %q", line)
			}
			return
		}
		var a reply
		if err := json.Unmarshal(answer, &a); err != nil || bytes.IndexByte(answer, '\n') != len(answer)-1 || a.OK == (a.Error != "") {
			t.Fatalf("answer %q: %v", answer, err)
		}
		if (len(events) == 1) != (a.OK || a.Error == "denied") {
			t.Fatalf("answer %q with events %+v", answer, events)
		}
		if len(events) == 0 {
			return
		}
		e := events[0]
		if len(e.Capability) > 4200 || len(e.Detail) > maxDetail || !utf8.ValidString(e.Capability) || !utf8.ValidString(e.Detail) {
			t.Fatalf("event %+v", e)
		}
		first, _, _ := bytes.Cut(line, []byte("\n"))
		var lenient map[string]any
		if err := json.Unmarshal(first, &lenient); err != nil {
			t.Fatalf("%q was taken and is not JSON: %v", first, err)
		}
		for key := range lenient {
			if !slices.Contains([]string{"method", "url", "program", "args", "text"}, key) {
				t.Fatalf("%q was taken with key %q", first, key)
			}
		}
		if method, target, ok := strings.Cut(e.Capability, " "); e.Op == "http" {
			if !ok || !methodName(method) || !strings.Contains(target, "://") || strings.ContainsAny(target, "?#") {
				t.Fatalf("capability %q", e.Capability)
			}
			authority, _, _ := strings.Cut(target[strings.Index(target, "://")+3:], "/")
			if strings.Contains(authority, "@") {
				t.Fatalf("capability %q holds user information", e.Capability)
			}
			if again, err := bareURL(target); len(target) < maxURL && (err != nil || again != target) {
				t.Fatalf("%q is not canonical: %q, %v", target, again, err)
			}
		}
		if name, ok := strings.CutPrefix(e.Capability, "program "); e.Op == "run" && (!ok || strings.Contains(name, "/") || name == "") {
			t.Fatalf("capability %q", e.Capability)
		}
	})
}

// events1 keeps what is told.
func events1(to *[]Event) events {
	return events{sink: func(e Event) { *to = append(*to, e) }}
}
