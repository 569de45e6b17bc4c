// Package ask asks the host for what a guest cannot do itself: an HTTP request, a program outside the sandbox, a line in
// the report of the run.
//
// A request is a file that is opened for it alone: one line of JSON is written to it, one line is read back
// (wasiabi/ABI.md, "Asking the host"). In this version the host refuses requests and programs; asking is what puts the
// attempt into its report. Where nobody can be asked the answer is the same.
package ask

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxLine is what the host takes as one line, its newline included.
const maxLine = 16 << 10

// Denied is the answer to what the host does not grant.
type Denied struct {
	// Reason is one line for the person who reads the guest's error output.
	Reason string
}

func (d *Denied) Error() string { return "denied: " + d.Reason }

// HTTP asks for a request. In this version it returns a *Denied or an error that says why asking failed.
func HTTP(method, url string) error {
	line, err := json.Marshal(struct {
		Method string `json:"method"`
		URL    string `json:"url"`
	}{clean(method), clean(url)})
	if err != nil {
		return fmt.Errorf("ask for %s %s: %w", method, url, err)
	}
	if len(line) >= maxLine {
		// The host would not read it to the end; what it has to know is the origin.
		return HTTP(method[:min(len(method), 64)], cut(url, 2048))
	}
	return verdict("http", line, "there is no network in the sandbox")
}

// Program asks for a program that the guest does not have. In this version it returns a *Denied or an error that says
// why asking failed. Arguments that make the request too long are left out: what is granted or not is the program.
func Program(name string, args []string) error {
	name = cut(clean(name), 255)
	kept := make([]string, 0, len(args))
	for size := len(name); len(kept) < len(args) && len(kept) < 256; {
		arg := clean(args[len(kept)])
		// Escaped, a byte takes up to six.
		if size += 6*len(arg) + 3; size > maxLine-1024 {
			break
		}
		kept = append(kept, arg)
	}
	line, err := json.Marshal(struct {
		Program string   `json:"program"`
		Args    []string `json:"args"`
	}{name, kept})
	if err != nil {
		return fmt.Errorf("ask for the program %s: %w", name, err)
	}
	return verdict("run", line, "no such program in the sandbox")
}

// Log puts a note into the report of the run. A long text is cut.
func Log(text string) {
	line, err := json.Marshal(struct {
		Text string `json:"text"`
	}{cut(clean(text), 2048)})
	if err != nil {
		return
	}
	// A note that nobody takes is no failure of the program that wrote it.
	_, _ = exchange("log", append(line, '\n'))
}

// verdict sends a line to a device and turns the answer into an error. Without a device the answer is refused.
func verdict(device string, line []byte, refused string) error {
	answer, err := exchange(device, append(line, '\n'))
	if err != nil {
		return &Denied{Reason: refused}
	}
	var a struct{ Error, Reason string }
	if err := json.Unmarshal(answer, &a); err != nil {
		return fmt.Errorf("ask %s: the host's answer: %w", device, err)
	}
	switch a.Error {
	case "denied":
		return &Denied{Reason: a.Reason}
	case "":
		return fmt.Errorf("ask %s: the host's answer has no verdict", device)
	default:
		return fmt.Errorf("ask %s: %s: %s", device, a.Error, a.Reason)
	}
}

// clean replaces what is no UTF-8: the host takes no other text.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// cut shortens s to at most n bytes of whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
