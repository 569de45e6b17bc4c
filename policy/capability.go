package policy

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// String returns the canonical spelling. Characters that do not belong on a terminal are shown as escapes, so that the
// result of a capability which [ParseCapability] would refuse is for reading only.
func (c Capability) String() string {
	switch c.Kind {
	case Read:
		return "read " + printable(c.Path)
	case Write:
		return "write " + printable(c.Path)
	case HTTP:
		return printable(c.Method) + " " + printable(c.URL)
	case Env:
		return "env " + printable(c.Name)
	case Secret:
		return "secret " + printable(c.Name) + " " + printable(c.Host)
	case Tool:
		return "tool " + printable(c.Server) + "/" + printable(c.Tool)
	case Program:
		return "program " + printable(c.Name)
	}
	return "nothing"
}

// ParseCapability reads one capability and brings it into its canonical form: paths clean, URLs normalised and without
// query and fragment, host names as lower-case A-labels.
//
// A path must be absolute; ".." is an error, never resolved. An error says what is wrong and does not name a position.
func ParseCapability(s string) (Capability, error) {
	if len(s) > 9000 {
		return Capability{}, fmt.Errorf("capability is longer than 9000 bytes")
	}
	if badText(s) {
		return Capability{}, fmt.Errorf("capability %q holds a control character", clip(s))
	}
	word, rest, _ := strings.Cut(s, " ")
	if rest == "" || strings.TrimSpace(rest) != rest {
		return Capability{}, fmt.Errorf("capability %q is not a word, one blank and what it is about", clip(s))
	}
	c := Capability{}
	var err error
	switch word {
	case "read", "write":
		c.Kind = Read
		if word == "write" {
			c.Kind = Write
		}
		c.Path, err = guestPath(rest)
		if err == nil && strings.TrimSpace(c.Path) != c.Path { // "/a /" is "/a ", which cannot be written
			err = fmt.Errorf("path %q ends in a blank", clip(c.Path))
		}
	case "env":
		c.Kind, c.Name = Env, rest
		if !envName(rest) {
			err = fmt.Errorf("%q is not the name of an environment variable", clip(rest))
		}
	case "secret":
		c.Kind = Secret
		var host string
		c.Name, host, _ = strings.Cut(rest, " ")
		if !envName(c.Name) {
			err = fmt.Errorf("%q is not the name of a secret", clip(c.Name))
		} else {
			c.Host, err = normalHost(host)
		}
	case "tool":
		c.Kind = Tool
		c.Server, c.Tool, _ = strings.Cut(rest, "/")
		if !serverName(c.Server) || !toolName(c.Tool) {
			err = fmt.Errorf("%q is not SERVER/TOOL", clip(rest))
		}
	case "program":
		c.Kind, c.Name = Program, rest
		if !serverName(rest) {
			err = fmt.Errorf("%q is not the name of a program", clip(rest))
		}
	default:
		if !methodName(word) {
			return Capability{}, fmt.Errorf("capability %q begins with neither read, write, env, secret, tool, program nor an HTTP method in capitals", clip(s))
		}
		c.Kind, c.Method = HTTP, word
		var t target
		if t, err = parseTarget(rest); err == nil {
			c.URL = t.String()
		}
	}
	if err != nil {
		return Capability{}, fmt.Errorf("capability %q: %w", clip(s), err)
	}
	return c, nil
}

// guestPath returns the clean form of an absolute guest path.
func guestPath(s string) (string, error) {
	if !strings.HasPrefix(s, "/") {
		return "", fmt.Errorf("path %q does not begin with \"/\"", clip(s))
	}
	if len(s) > 4096 || strings.IndexByte(s, 0) >= 0 {
		return "", fmt.Errorf("path is longer than 4096 bytes or holds a NUL")
	}
	for seg := range strings.SplitSeq(s, "/") {
		if seg == ".." {
			return "", fmt.Errorf("path %q holds \"..\"", clip(s))
		}
	}
	return path.Clean(s), nil
}

func nameOf(s string, maxLen int, extra string) bool {
	if s == "" || len(s) > maxLen {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(extra, c) >= 0) {
			return false
		}
	}
	return true
}

func envName(s string) bool {
	return nameOf(s, 256, "_") && !(s[0] >= '0' && s[0] <= '9')
}

func serverName(s string) bool { return nameOf(s, 64, "._-+") && s != "." && s != ".." }
func toolName(s string) bool   { return nameOf(s, 128, "_./:-") }

func methodName(s string) bool {
	if s == "" || len(s) > 32 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !(c >= 'A' && c <= 'Z' || c == '-' && i > 0) {
			return false
		}
	}
	return true
}

// badText reports whether s holds what no policy text needs: invalid UTF-8, control characters, and the marks that
// make a terminal or an editor show text in another order than it is read.
func badText(s string) bool {
	if !utf8.ValidString(s) {
		return true
	}
	for _, r := range s {
		if unicode.IsControl(r) || invisible(r) {
			return true
		}
	}
	return false
}

func invisible(r rune) bool {
	return r == 0x200b || r == 0x200e || r == 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2060 && r <= 0x206f || r == 0xfeff || r == 0x061c
}

// printable escapes what badText refuses.
func printable(s string) string {
	if !badText(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsControl(r) || invisible(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// clip bounds text that goes into a message.
func clip(s string) string {
	if len(s) <= 120 {
		return s
	}
	n := 120
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}
