package expand

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/exthost/exthost/guests/sh/internal/vars"
	"mvdan.cc/sh/v3/syntax"
)

// Parts of a word that are no literals stand in the text of a brace expansion as characters of a private area.
const placeholder = 0xF0000

// braces expands the braces of a word.
func (e *Expander) braces(w *syntax.Word) []*syntax.Word {
	found := false
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok && strings.IndexByte(lit.Value, '{') >= 0 {
			found = true
		}
	}
	if !found {
		return []*syntax.Word{w}
	}
	var b strings.Builder
	for i, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			for _, r := range lit.Value {
				if r >= placeholder {
					return []*syntax.Word{w}
				}
			}
			b.WriteString(lit.Value)
			continue
		}
		b.WriteRune(rune(placeholder + i))
	}
	texts := expandBraces(b.String())
	if len(texts) == 1 && texts[0] == b.String() {
		return []*syntax.Word{w}
	}
	words := make([]*syntax.Word, 0, len(texts))
	for _, text := range texts {
		word := &syntax.Word{}
		from := 0
		for i, r := range text {
			if r < placeholder {
				continue
			}
			word.Parts = addText(word.Parts, text[from:i])
			word.Parts = append(word.Parts, w.Parts[r-placeholder])
			from = i + utf8.RuneLen(r)
		}
		word.Parts = addText(word.Parts, text[from:])
		if len(word.Parts) > 0 { // {a,} has an empty word: it vanishes, as it is not quoted
			words = append(words, word)
		}
	}
	return words
}

// addText adds a literal to the parts of a word. Braces are expanded before names are read: $x{1,2} is $x1 $x2.
func addText(parts []syntax.WordPart, text string) []syntax.WordPart {
	if text == "" {
		return parts
	}
	if len(parts) > 0 && isName(text[0]) {
		if pe, ok := parts[len(parts)-1].(*syntax.ParamExp); ok && pe.Short && pe.Index == nil && vars.ValidName(pe.Param.Value) {
			n := 0
			for n < len(text) && isName(text[n]) {
				n++
			}
			longer := *pe
			longer.Param = &syntax.Lit{Value: pe.Param.Value + text[:n]}
			parts[len(parts)-1] = &longer
			if text = text[n:]; text == "" {
				return parts
			}
		}
	}
	return append(parts, &syntax.Lit{Value: text})
}

// BraceAssign expands the braces in the value of a declaration's operand: there, though not in assignments, they make
// several operands.
func (e *Expander) BraceAssign(a *syntax.Assign) []*syntax.Assign {
	if a.Value == nil || a.Index != nil || !e.Host.Option("braceexpand") {
		return []*syntax.Assign{a}
	}
	words := e.braces(a.Value)
	if len(words) == 1 && words[0] == a.Value {
		return []*syntax.Assign{a}
	}
	out := make([]*syntax.Assign, len(words))
	for i, w := range words {
		copied := *a
		copied.Value = w
		out[i] = &copied
	}
	return out
}

func expandBraces(s string) []string {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
			continue
		case '{':
		default:
			continue
		}
		alts, end := braceList(s[i:])
		if end < 0 {
			continue
		}
		var middle []string
		if len(alts) > 1 {
			for _, a := range alts {
				middle = append(middle, expandBraces(a)...)
			}
		} else if middle = sequence(alts[0]); middle == nil {
			continue
		}
		rest := expandBraces(s[i+end:])
		out := make([]string, 0, len(middle)*len(rest))
		for _, m := range middle {
			for _, r := range rest {
				out = append(out, s[:i]+m+r)
			}
		}
		return out
	}
	return []string{s}
}

// braceList splits what is between the brace s begins with and its end; -1 when it has none.
func braceList(s string) ([]string, int) {
	var alts []string
	depth, from := 0, 1
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			depth++
		case ',':
			if depth == 1 {
				alts = append(alts, s[from:i])
				from = i + 1
			}
		case '}':
			if depth--; depth == 0 {
				return append(alts, s[from:i]), i + 1
			}
		}
	}
	return nil, -1
}

// sequence is {X..Y} or {X..Y..STEP}; nil when s is none.
func sequence(s string) []string {
	parts := strings.Split(s, "..")
	if len(parts) != 2 && len(parts) != 3 {
		return nil
	}
	step := int64(0)
	if len(parts) == 3 {
		n, err := strconv.ParseInt(parts[2], 10, 64)
		if err != nil {
			return nil
		}
		step = n
	}
	from, err1 := strconv.ParseInt(parts[0], 10, 64)
	to, err2 := strconv.ParseInt(parts[1], 10, 64)
	letters := false
	if err1 != nil || err2 != nil {
		if len(parts[0]) != 1 || len(parts[1]) != 1 || !letter(parts[0][0]) || !letter(parts[1][0]) {
			return nil
		}
		letters = true
		from, to = int64(parts[0][0]), int64(parts[1][0])
	}
	width := 0
	if !letters && (padded(parts[0]) || padded(parts[1])) {
		width = max(len(parts[0]), len(parts[1]))
	}
	if step < 0 {
		step = -step
	}
	if step <= 0 {
		step = 1
	}
	if from > to {
		step = -step
	}
	var out []string
	for n := from; step > 0 && n <= to || step < 0 && n >= to; {
		switch {
		case letters:
			c := string(rune(n))
			if !letter(byte(n)) {
				c = `\` + c
			}
			out = append(out, c)
		case width > 0:
			out = append(out, pad(n, width))
		default:
			out = append(out, strconv.FormatInt(n, 10))
		}
		next := n + step
		if (next > n) != (step > 0) {
			break // over the end of the numbers
		}
		n = next
	}
	return out
}

func letter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func padded(s string) bool {
	s = strings.TrimLeft(s, "+-")
	return len(s) > 1 && s[0] == '0'
}

func pad(n int64, width int) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for len(sign)+len(s) < width {
		s = "0" + s
	}
	return sign + s
}
