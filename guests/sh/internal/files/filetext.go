package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/exthost/exthost/guests/sh/internal/sys"
)

func stampText(seconds int64) string {
	return sys.Strftime("%a %b %e %H:%M:%S %Y", time.Unix(seconds, 0).UTC())
}

// sniffText tells the encoding of text and what kind of text it is.
func sniffText(b []byte) content {
	encoding, charset, text := encodingOf(b)
	if encoding == "" {
		return binary("data", "application/octet-stream")
	}
	t := content{encoding + " text", "text/plain", charset}
	if strings.HasPrefix(charset, "utf-16") {
		t.text += lineEnds(text)
		return t
	}
	kind, mime, whole := textKind(text)
	if mime != "" {
		t.mime = mime
	}
	switch {
	case whole:
		t.text = kind
		return t
	case strings.HasSuffix(kind, " executable") && !strings.HasPrefix(kind, "Node.js"):
		t.text = strings.TrimSuffix(kind, " executable") + ", " + t.text + " executable"
	case kind != "":
		t.text = kind + ", " + t.text
	}
	t.text += lineEnds(text)
	return t
}

// encodingOf names the encoding of text, "" when it is none, and returns it as UTF-8 or bytes of Latin 1.
func encodingOf(b []byte) (name, charset string, text []byte) {
	switch {
	case has(b, 0, "\xef\xbb\xbf") && utf8ish(b[3:]):
		return "Unicode text, UTF-8 (with BOM)", "utf-8", b[3:]
	case has(b, 0, "\xff\xfe"), has(b, 0, "\xfe\xff"):
		get, order := le, "little"
		if b[0] == 0xfe {
			get, order = be, "big"
		}
		var out []byte
		for i := 2; i+1 < len(b); i += 2 {
			r := rune(get(b, i, 2))
			if r < 0x80 && !textByte(byte(r)) {
				return "", "", nil
			}
			out = utf8.AppendRune(out, r)
		}
		return "Unicode text, UTF-16, " + order + "-endian", "utf-16" + order[:1] + "e", out
	}
	ascii, latin, extended := true, true, true
	for _, x := range b {
		switch {
		case x >= 0xa0:
			ascii = false
		case x >= 0x80:
			ascii = false
			if x != 0x85 {
				latin = false
			}
		case !textByte(x):
			return "", "", nil
		}
	}
	switch {
	case ascii:
		return "ASCII", "us-ascii", b
	case utf8ish(b):
		return "Unicode text, UTF-8", "utf-8", b
	case latin:
		return "ISO-8859", "iso-8859-1", b
	case extended:
		return "Non-ISO extended-ASCII", "unknown-8bit", b
	}
	return "", "", nil
}

// textByte tells whether an ASCII byte occurs in text.
func textByte(x byte) bool { return x >= ' ' && x < 0x7f || x >= 7 && x <= 13 || x == 0x1b }

// utf8ish is utf8.Valid but for a last character that the limit cut, with no byte that is not text.
func utf8ish(b []byte) bool {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 && (len(b) < sniffed || utf8.FullRune(b[i:])) {
			return false
		}
		if r < 0x80 && !textByte(byte(r)) {
			return false
		}
		i += n
	}
	return true
}

// lineEnds is what file says of the lines.
func lineEnds(b []byte) string {
	var crlf, lf, cr, nel, escapes, strikes bool
	longest, line := 0, 0
	for i, x := range b {
		switch x {
		case '\n':
			if i > 0 && b[i-1] == '\r' {
				crlf = true
			} else {
				lf = true
			}
		case '\r':
			if i+1 >= len(b) || b[i+1] != '\n' {
				cr = true
			}
		case 0x1b:
			escapes = true
		case '\b':
			strikes = true
		case 0x85:
			nel = nel || !utf8.Valid(b)
		}
		if x == '\n' || x == '\r' {
			longest = max(longest, line)
			line = 0
		} else {
			line++
		}
	}
	longest = max(longest, line)
	text := ""
	if longest >= 300 {
		text += fmt.Sprintf(", with very long lines (%d)", longest)
	}
	if !crlf && !lf && !cr && !nel {
		text += ", with no line terminators"
	} else if crlf || cr || nel {
		var ends []string
		for _, e := range []struct {
			have bool
			name string
		}{{crlf, "CRLF"}, {cr, "CR"}, {lf, "LF"}, {nel, "NEL"}} {
			if e.have {
				ends = append(ends, e.name)
			}
		}
		text += ", with " + strings.Join(ends, ", ") + " line terminators"
	}
	if escapes {
		text += ", with escape sequences"
	}
	if strikes {
		text += ", with overstriking"
	}
	return text
}

// textKind names a text by its content. whole is set when that says all.
func textKind(b []byte) (kind, mime string, whole bool) {
	if bytes.HasPrefix(b, []byte("#!")) {
		return shebang(b)
	}
	trimmed := bytes.TrimLeft(b, " \t\r\n")
	head := trimmed[:min(len(trimmed), 4096)]
	lower := bytes.ToLower(head)
	switch {
	case len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '['):
		switch documents(b) {
		case 1:
			return "JSON text data", "application/json", true
		case 2:
			return "New Line Delimited JSON text data", "application/x-ndjson", true
		}
	case bytes.HasPrefix(trimmed, []byte("<?xml")):
		if bytes.Contains(lower, []byte("<svg")) {
			return "SVG Scalable Vector Graphics image", "image/svg+xml", true
		}
		version := "1.0"
		if at := bytes.Index(head, []byte("version=")); at >= 0 && at+12 <= len(head) {
			version = string(head[at+9 : at+12])
		}
		if bytes.Contains(lower, []byte("<html")) {
			return "XML " + version + " document", "text/xml", false
		}
		return "XML " + version + " document", "text/xml", false
	case bytes.HasPrefix(trimmed, []byte("<svg")):
		return "SVG Scalable Vector Graphics image", "image/svg+xml", true
	case bytes.HasPrefix(lower, []byte("<!doctype html")), bytes.HasPrefix(lower, []byte("<html")), bytes.HasPrefix(lower, []byte("<head")),
		bytes.HasPrefix(lower, []byte("<title")), bytes.HasPrefix(lower, []byte("<body")):
		return "HTML document", "text/html", false
	case bytes.HasPrefix(b, []byte("-----BEGIN CERTIFICATE-----")):
		return "PEM certificate", "text/plain", true
	case bytes.HasPrefix(b, []byte("-----BEGIN RSA PRIVATE KEY-----")):
		return "PEM RSA private key", "text/plain", true
	case bytes.HasPrefix(b, []byte("-----BEGIN OPENSSH PRIVATE KEY-----")):
		return "OpenSSH private key", "text/plain", true
	case bytes.HasPrefix(b, []byte("-----BEGIN PGP PUBLIC KEY BLOCK-")):
		return "PGP public key block", "application/pgp-keys", true
	case bytes.HasPrefix(b, []byte("-----BEGIN PGP MESSAGE-")):
		return "PGP message", "application/pgp", true
	case bytes.HasPrefix(b, []byte("\\documentclass")):
		return "LaTeX 2e document", "text/x-tex", false
	case bytes.HasPrefix(b, []byte("--- ")) && bytes.Contains(head, []byte("\n+++ ")) && bytes.Contains(head, []byte("\n@@ -")):
		return "unified diff output", "text/x-diff", false
	case bytes.HasPrefix(b, []byte("diff ")):
		return "diff output", "text/x-diff", false
	case bytes.HasPrefix(b, []byte("BEGIN:VCALENDAR")):
		return "vCalendar calendar file", "text/calendar", false
	case bytes.HasPrefix(b, []byte("BEGIN:VCARD")):
		return "vCard visiting card", "text/vcard", false
	case bytes.HasPrefix(b, []byte("From: ")), bytes.HasPrefix(b, []byte("Received: ")), bytes.HasPrefix(b, []byte("Return-Path: ")):
		return "news or mail", "message/rfc822", false
	}
	if bytes.Contains(head, []byte("#include <")) || bytes.Contains(head, []byte("#include \"")) {
		return "C source", "text/x-c", false
	}
	for _, mark := range []string{"import ", "from ", "def "} {
		if at := bytes.Index(append([]byte("\n"), head...), []byte("\n"+mark)); at >= 0 && python(head) {
			return "Python script executable", "text/x-script.python", false
		}
	}
	if csv(b) {
		return "CSV text", "text/csv", true
	}
	return "", "", false
}

// python tells whether a text defines a function or a class as Python does.
func python(head []byte) bool {
	for _, line := range bytes.Split(head, []byte("\n")) {
		for _, word := range []string{"def ", "class "} {
			if rest, ok := bytes.CutPrefix(line, []byte(word)); ok && bytes.IndexByte(rest, ':') > 0 {
				return true
			}
		}
	}
	return false
}

// shebang names a program by its first line.
func shebang(b []byte) (kind, mime string, whole bool) {
	line, _, _ := bytes.Cut(b[2:], []byte("\n"))
	words := strings.Fields(strings.TrimSuffix(string(line), "\r"))
	if len(words) == 0 {
		return "", "", false
	}
	program := words[0]
	env := strings.HasSuffix(program, "/env") && len(words) > 1
	if env {
		program = words[1]
		if program == "-S" && len(words) > 2 {
			program = words[2]
		}
	}
	name := base(program)
	switch {
	case name == "bash":
		return "Bourne-Again shell script executable", "text/x-shellscript", false
	case name == "sh" || name == "dash":
		return "POSIX shell script executable", "text/x-shellscript", false
	case name == "zsh":
		return "Paul Falstad's zsh script executable", "text/x-shellscript", false
	case name == "ksh":
		return "Korn shell script executable", "text/x-shellscript", false
	case name == "csh":
		return "C shell script executable", "text/x-shellscript", false
	case name == "tcsh":
		return "Tenex C shell script executable", "text/x-shellscript", false
	case name == "fish":
		return "fish shell script executable", "text/x-shellscript", false
	case strings.HasPrefix(name, "python"):
		return "Python script executable", "text/x-script.python", false
	case name == "node" || name == "nodejs":
		return "Node.js script executable", "application/javascript", false
	case name == "perl":
		return "Perl script text executable", "text/x-perl", true
	case name == "ruby":
		return "Ruby script executable", "text/x-ruby", false
	case name == "php":
		return "PHP script executable", "text/x-php", false
	case name == "awk" || name == "gawk" || name == "mawk" || name == "nawk":
		what := map[string]string{"awk": "awk", "gawk": "GNU awk", "mawk": "new awk", "nawk": "new awk"}[name]
		return what + " script executable", "text/x-" + name, false
	case name == "lua":
		return "Lua script executable", "text/x-lua", false
	}
	return "a " + strings.Join(words, " ") + " script executable", "text/plain", false
}

// documents tells whether a text is one JSON document (1), several with one a line (2), or neither (0).
func documents(b []byte) int {
	cut := len(b) >= sniffed
	dec := json.NewDecoder(bytes.NewReader(b))
	n := 0
	for n < 3 {
		var v json.RawMessage
		err := dec.Decode(&v)
		if err == io.EOF {
			break
		}
		if err != nil {
			if cut && (err == io.ErrUnexpectedEOF) {
				return 1
			}
			return 0
		}
		n++
	}
	switch {
	case n == 0:
		return 0
	case n == 1:
		return 1
	}
	return 2
}

// csv tells whether a text is a table: at least two lines, all with the same number of commas.
func csv(b []byte) bool {
	lines, want, commas := 0, -1, 0
	quoted := false
	for _, x := range b {
		switch {
		case x == '"':
			quoted = !quoted
		case quoted:
		case x == ',':
			commas++
		case x == '\n':
			if want >= 0 && commas != want {
				return false
			}
			want, commas = commas, 0
			if lines++; lines == 10 {
				return want > 0
			}
		}
	}
	return lines >= 2 && want > 0 && !quoted
}
