package wasiabi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/exthost/exthost/wasiabi/internal/rootfs"
)

const (
	maxAsking  = 8        // requests that are open at once
	maxRequest = 16 << 10 // bytes of a request's line, its newline included
	maxURL     = 8192
	maxProgram = 255
	maxMethod  = 32
	maxTarget  = 200 // bytes of a program's arguments that an event keeps
	maxNotes   = 64  // notes of one process, repeats of one text not counted
)

// Reasons of the answers to what this version refuses.
const (
	noNetwork = "there is no network in the sandbox"
	noProgram = "no such program in the sandbox"
)

// request is one open of a device that asks the host: one line in, one line out.
type request struct {
	device rootfs.Device
	line   []byte // what was written so far
	answer []byte // nil until the line is whole
	read   int
	open   *int
}

func asks(d rootfs.Device) bool {
	return d == rootfs.AskHTTP || d == rootfs.AskRun || d == rootfs.AskLog
}

// newRequest opens a request, or returns nil when as many as there may be are open.
func (p *Process) newRequest(d rootfs.Device) *request {
	if p.asking >= maxAsking {
		return nil
	}
	p.asking++
	return &request{device: d, open: &p.asking}
}

func (r *request) close() {
	if r != nil {
		*r.open--
	}
}

// writeRequest takes bytes up to the newline, which sends the request; nothing can be written after it.
func (p *Process) writeRequest(r *request, b []byte) (int, errno) {
	if r.answer != nil {
		return 0, rootfs.EPIPE
	}
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		b = b[:i+1]
	}
	n := min(len(b), maxRequest-len(r.line))
	r.line = append(r.line, b[:n]...)
	switch {
	case bytes.HasSuffix(r.line, []byte("\n")):
		p.answer(r, p.handle(r.device, r.line))
	case len(r.line) == maxRequest:
		p.answer(r, invalid(fmt.Errorf("the line is longer than %d bytes", maxRequest)))
	}
	return n, rootfs.Success
}

// readAnswer gives the answer. Whoever reads before the line is whole would wait for himself, so a line that was begun
// ends there and is wrong; one that was not begun has no answer.
func (p *Process) readAnswer(r *request, b []byte) int {
	if r.answer == nil {
		if len(r.line) == 0 {
			return 0
		}
		p.answer(r, invalid(errors.New("the line does not end with a newline")))
	}
	n := copy(b, r.answer[r.read:])
	r.read += n
	return n
}

// reply is the answer to a request.
type reply struct {
	OK     bool   `json:"ok,omitempty"`
	Error  string `json:"error,omitempty"`
	Reason string `json:"reason,omitempty"`
}

func invalid(err error) reply { return reply{Error: "invalid", Reason: err.Error()} }

func (p *Process) answer(r *request, a reply) {
	b, err := json.Marshal(a)
	if err != nil { // a struct of strings: cannot happen
		b = []byte(`{"error":"invalid"}`)
	}
	r.answer, r.line = append(b, '\n'), nil
}

// handle parses a line and decides it. In this version nothing is granted: an attempt is an event, and refused.
func (p *Process) handle(d rootfs.Device, line []byte) reply {
	switch d {
	case rootfs.AskHTTP:
		capability, err := parseHTTP(line)
		if err != nil {
			return invalid(err)
		}
		p.events.add(Event{Op: "http", Capability: capability, Denied: true, Errno: rootfs.EACCES.Name()})
		return reply{Error: "denied", Reason: noNetwork}
	case rootfs.AskRun:
		capability, args, err := parseRun(line)
		if err != nil {
			return invalid(err)
		}
		target := cut(strings.Join(args, " "), maxTarget)
		p.events.add(Event{Op: "run", Capability: capability, Denied: true, Errno: rootfs.ENOENT.Name(), Detail: target})
		return reply{Error: "denied", Reason: noProgram}
	default:
		text, err := parseLog(line)
		if err != nil {
			return invalid(err)
		}
		e := Event{Op: "log", Capability: "log", Detail: cut(text, maxDetail)}
		if _, known := p.events.seen[e]; !known {
			if p.logged >= maxNotes {
				return reply{Error: "limit", Reason: fmt.Sprintf("a run has %d notes", maxNotes)}
			}
			p.logged++
		}
		p.events.add(e)
		return reply{OK: true}
	}
}

// parseHTTP reads {"method":M,"url":U} and gives the capability "M U", without what may be secret: user information,
// query and fragment.
func parseHTTP(line []byte) (string, error) {
	var method, url string
	if err := decode(line, fields{"method": &method, "url": &url}, "method", "url"); err != nil {
		return "", err
	}
	method = strings.ToUpper(method)
	if !methodName(method) {
		return "", fmt.Errorf("method: want 1 to %d letters", maxMethod)
	}
	target, err := bareURL(url)
	if err != nil {
		return "", fmt.Errorf("url: %w", err)
	}
	return method + " " + target, nil
}

func methodName(s string) bool {
	if s == "" || len(s) > maxMethod {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !(c >= 'A' && c <= 'Z' || c == '-' && i > 0) {
			return false
		}
	}
	return true
}

// bareURL is a URL less user information, query, fragment and default port, its scheme and host in lower case. It is
// no judge of URLs: whoever decides about the result parses it again.
func bareURL(s string) (string, error) {
	if len(s) > maxURL {
		return "", fmt.Errorf("longer than %d bytes", maxURL)
	}
	for _, c := range s {
		if c <= ' ' || c == 0x7f || c == '\\' {
			return "", errors.New("it holds a blank, a control character or a backslash")
		}
	}
	scheme, rest, ok := strings.Cut(s, "://")
	if scheme = strings.ToLower(scheme); !ok || !schemeName(scheme) {
		return "", errors.New("it does not begin with a scheme and ://")
	}
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i]
	}
	authority, file := rest, "/"
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		authority, file = rest[:i], rest[i:]
	}
	authority = strings.ToLower(authority[strings.LastIndexByte(authority, '@')+1:])
	switch scheme {
	case "http":
		authority = strings.TrimSuffix(authority, ":80")
	case "https":
		authority = strings.TrimSuffix(authority, ":443")
	}
	if authority == "" || authority[0] == ':' {
		return "", errors.New("it names no host")
	}
	return scheme + "://" + authority + file, nil
}

func schemeName(s string) bool {
	if s == "" || len(s) > 32 || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.') {
			return false
		}
	}
	return true
}

// parseRun reads {"program":NAME,"args":[ARG,...]} and gives the capability "program NAME". Of a path the last name
// counts. The arguments say nothing about what is granted; they tell the operator what was wanted of the program.
func parseRun(line []byte) (capability string, args []string, err error) {
	var program string
	if err := decode(line, fields{"program": &program, "args": &args}, "program"); err != nil {
		return "", nil, err
	}
	for _, s := range append(args[:len(args):len(args)], program) {
		if strings.IndexByte(s, 0) >= 0 {
			return "", nil, errors.New("a string holds a NUL")
		}
	}
	name := path.Base(program)
	if program == "" || name == "/" || name == "." || name == ".." || len(name) > maxProgram {
		return "", nil, fmt.Errorf("program: want the name of one, of at most %d bytes", maxProgram)
	}
	return "program " + name, args, nil
}

// parseLog reads {"text":TEXT}.
func parseLog(line []byte) (string, error) {
	var text string
	if err := decode(line, fields{"text": &text}, "text"); err != nil {
		return "", err
	}
	if strings.TrimSpace(text) == "" {
		return "", errors.New("text: it is empty")
	}
	return text, nil
}

// fields says where the values of an object's keys go: *string or *[]string.
type fields map[string]any

// decode reads one JSON object. Keys are compared exactly; a key that is unknown or comes twice is an error, and so is
// a value of another type, null too, and text that is not UTF-8.
func decode(line []byte, to fields, required ...string) error {
	if !utf8.Valid(line) {
		return errors.New("the line is not UTF-8")
	}
	if !json.Valid(line) {
		return errors.New("the line is not one JSON value")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("the line is not a JSON object")
	}
	var have []string
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return errors.New("the line is not JSON")
		}
		key, _ := t.(string) // of an object's key the type is sure
		value, known := to[key]
		switch {
		case !known:
			return fmt.Errorf("key %q is not known", cut(key, 64))
		case slices.Contains(have, key):
			return fmt.Errorf("key %q comes twice", key)
		}
		have = append(have, key)
		switch v := value.(type) {
		case *string:
			err = decodeString(d, v)
		case *[]string:
			err = decodeStrings(d, v)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return errors.New("the line is not JSON")
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("the line holds more than one JSON value")
	}
	for _, key := range required {
		if !slices.Contains(have, key) {
			return fmt.Errorf("key %q is missing", key)
		}
	}
	return nil
}

func decodeString(d *json.Decoder, to *string) error {
	t, err := d.Token()
	s, ok := t.(string)
	if err != nil || !ok {
		return errors.New("it is not a string")
	}
	*to = s
	return nil
}

func decodeStrings(d *json.Decoder, to *[]string) error {
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return errors.New("it is not a list")
	}
	for d.More() {
		var s string
		if err := decodeString(d, &s); err != nil {
			return fmt.Errorf("entry %d: %w", len(*to)+1, err)
		}
		*to = append(*to, s)
	}
	_, err := d.Token() // the closing bracket
	return err
}
