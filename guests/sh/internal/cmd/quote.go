package cmd

import (
	"fmt"
	"strings"
)

// Quote quotes an operand in a message as GNU's tools do by locale: ‘x’. [Call.Errorf] and [Call.BadUsage] make it 'x'
// where the caller's locale is not of UTF-8. Names of files that could be copied into a shell are not quoted by this.
func Quote(s string) string {
	var b strings.Builder
	b.WriteString("‘")
	for _, r := range s {
		switch i := strings.IndexRune("\a\b\t\n\v\f\r\\", r); {
		case i >= 0:
			b.WriteByte('\\')
			b.WriteByte(`abtnvfr\`[i])
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, "\\%03o", r)
		case r == '’':
			b.WriteString("\\’")
		default:
			b.WriteRune(r)
		}
	}
	b.WriteString("’")
	return b.String()
}

// Localized is a message as the caller's locale has it: its quotes are ASCII where characters are not UTF-8.
func (c *Call) Localized(text string) string {
	if !strings.ContainsAny(text, "‘’") || c.utf8() {
		return text
	}
	var b strings.Builder
	inside := false
	for _, r := range text {
		switch {
		case r == '‘':
			inside = true
			b.WriteByte('\'')
		case r == '’':
			inside = false
			b.WriteByte('\'')
		case r == '\'' && inside:
			b.WriteString(`\'`)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (c *Call) utf8() bool {
	for _, name := range [...]string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := c.Getenv(name); v != "" {
			v = strings.ToLower(v)
			return strings.HasSuffix(v, "utf-8") || strings.HasSuffix(v, "utf8")
		}
	}
	return false
}

// BadWord is the error for the value of an option that is none of its words, or the start of several. Words that mean
// the same stand in one group, with a space between them.
func BadWord(value, option string, groups ...string) error {
	kind, text := "invalid", ""
	for _, g := range groups {
		var words []string
		for _, w := range strings.Fields(g) {
			words = append(words, Quote(w))
			if value != "" && strings.HasPrefix(w, value) {
				kind = "ambiguous"
			}
		}
		text += "\n  - " + strings.Join(words, ", ")
	}
	return fmt.Errorf("%s argument %s for %s\nValid arguments are:%s", kind, Quote(value), Quote(option), text)
}
