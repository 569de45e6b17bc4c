package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// printable makes text that others wrote safe to print on a terminal: what is not a printable character, bidirectional
// controls and invalid UTF-8 among them, is spelt out. Text that is safe already is returned unchanged.
func printable(s string) string {
	safe := true
	for i, r := range s {
		if !unicode.IsPrint(r) || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
			safe = false
			break
		}
	}
	if safe {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case unicode.IsPrint(r):
			b.WriteString(s[:n])
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
		s = s[n:]
	}
	return b.String()
}

// shellQuote makes one word of s for a POSIX shell.
func shellQuote(s string) string {
	if s == "" {
		return "''"
	}
	plain := strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:@%+,", r))
	}) < 0
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// shellCommand joins quoted words.
func shellCommand(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shellQuote(w)
	}
	return strings.Join(quoted, " ")
}

// isTerminal reports whether a stream of ours is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminal is stderr: exthost's own lines, and on a terminal the guest's text between them.
//
// It remembers whether the last byte ended a line, so that a line of ours never continues one of the guest's.
type terminal struct {
	w     io.Writer
	tty   bool
	color bool

	mu   sync.Mutex
	open bool // the last byte written was not a newline
}

func newTerminal(w io.Writer, env environ) *terminal {
	tty := isTerminal(w)
	return &terminal{w: w, tty: tty, color: tty && env.get("NO_COLOR") == "" && env.get("TERM") != "dumb"}
}

// Write writes text as it is.
func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(p) > 0 {
		t.open = p[len(p)-1] != '\n'
	}
	return t.w.Write(p)
}

// line prints "exthost: kind: text". The text must be printable. Colour only repeats what the word says.
func (t *terminal) line(kind, text string) {
	label := kind
	if label != "" {
		label += ": "
	}
	if t.color && label != "" {
		code := map[string]string{"error": "31", "denied": "31", "warning": "33", "hint": "36"}[kind]
		if code != "" {
			label = "\x1b[" + code + "m" + kind + ":\x1b[0m "
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	start := ""
	if t.open {
		start = "\n"
	}
	t.open = false
	// A lost line of stderr cannot be reported anywhere.
	_, _ = io.WriteString(t.w, start+"exthost: "+label+text+"\n")
}

// progress tells on a terminal what takes long, once, and only when it takes more than a second. The function that it
// returns has the form of host.Config.Progress.
func (a *app) progress() func(string) {
	if !a.out.tty || a.global.quiet || a.global.json {
		return nil
	}
	var mu sync.Mutex
	var timer *time.Timer
	return func(what string) {
		mu.Lock()
		defer mu.Unlock()
		if timer != nil {
			timer.Stop()
			timer = nil
		}
		if what == "" {
			return
		}
		timer = time.AfterFunc(time.Second, func() { a.out.line("", printable(what)+" ...") })
	}
}

// cleaner passes a guest's text to a terminal without what would command the terminal: escape sequences, other
// control characters but newline, tab and carriage return, bidirectional overrides, invalid UTF-8.
//
// A string sequence (OSC, DCS, ...) that does not end is not allowed to swallow more than maxSequence bytes or a line.
type cleaner struct {
	w     io.Writer
	state cleanState
	seen  int    // bytes of the sequence so far
	part  []byte // an incomplete character at the end of the last write
	buf   []byte
}

type cleanState uint8

const (
	cleanText   cleanState = iota
	cleanEscape            // after ESC
	cleanCSI               // after ESC [
	cleanString            // after ESC ] P X ^ _
)

const maxSequence = 4096

// Write never reports fewer bytes than it got, unless the terminal failed.
func (c *cleaner) Write(p []byte) (int, error) {
	n := len(p)
	if len(c.part) > 0 {
		p = append(c.part, p...)
		c.part = nil
	}
	c.buf = c.buf[:0]
	for len(p) > 0 {
		if !utf8.FullRune(p) {
			c.part = append([]byte(nil), p...)
			break
		}
		r, size := utf8.DecodeRune(p)
		c.rune(r)
		p = p[size:]
	}
	if len(c.buf) == 0 {
		return n, nil
	}
	if _, err := c.w.Write(c.buf); err != nil {
		return 0, err
	}
	return n, nil
}

func (c *cleaner) rune(r rune) {
	if c.state != cleanText {
		c.seen++
		if c.seen > maxSequence || r == '\n' {
			c.state = cleanText
		}
	}
	switch c.state {
	case cleanEscape:
		switch {
		case r == '[':
			c.state = cleanCSI
		case strings.ContainsRune("]PX^_", r):
			c.state = cleanString
		case r >= 0x20 && r <= 0x2f: // intermediate bytes
		case r == 0x1b:
		default:
			c.state = cleanText
		}
		return
	case cleanCSI:
		if r == 0x1b {
			c.state = cleanEscape
		} else if r >= 0x40 && r <= 0x7e {
			c.state = cleanText
		}
		return
	case cleanString:
		switch r {
		case 0x07, 0x9c:
			c.state = cleanText
		case 0x1b:
			c.state = cleanEscape // ESC \ ends the string; anything else begins a sequence
		}
		return
	}
	switch {
	case r == 0x1b:
		c.state, c.seen = cleanEscape, 0
	case r == 0x9b:
		c.state, c.seen = cleanCSI, 0
	case r == 0x90 || r == 0x98 || r == 0x9d || r == 0x9e || r == 0x9f:
		c.state, c.seen = cleanString, 0
	case r == '\n' || r == '\t' || r == '\r':
		c.buf = append(c.buf, byte(r))
	case unicode.IsControl(r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
	default:
		c.buf = utf8.AppendRune(c.buf, r)
	}
}
