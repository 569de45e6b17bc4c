package expand

import (
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Mend makes a script that the parser refuses for an arithmetic expression one that it takes, if it can.
//
// The parser reads expressions and subscripts when it reads the script, bash when it runs it: $((x $op y)) and
// conf[server.port]=1 mean something there. In double quotes they are text to the parser too, which is evaluated when
// it is expanded, and a mistake in it is found only then, as in bash.
func Mend(src string, err error) (string, bool) {
	var pe syntax.ParseError
	var le syntax.LangError
	var pos syntax.Pos
	switch {
	case errors.As(err, &pe):
		pos = pe.Pos
	case errors.As(err, &le):
		pos = le.Pos
	default:
		return "", false
	}
	if strings.HasPrefix(pe.Text, "not a valid parameter expansion operator") {
		return mendBad(src, int(pos.Offset()))
	}
	from, end, ok := enclosing(src, int(pos.Offset()))
	if !ok {
		return "", false
	}
	text, ok := withoutQuotes(src[from:end])
	if !ok {
		return "", false
	}
	return src[:from] + `"` + text + `"` + src[end:], true
}

// enclosing finds the innermost subscript or (( )) around a place: where its content begins and ends.
func enclosing(src string, at int) (from, end int, ok bool) {
	brackets, parens := 0, 0
	for i := min(at, len(src)-1); i > 0 && i > at-4096; i-- {
		switch src[i] {
		case ']':
			if i < at {
				brackets++
			}
		case ')':
			if i < at {
				parens++
			}
		case '[':
			if brackets > 0 {
				brackets--
				continue
			}
			end := closing(src, i+1, ']')
			if end < 0 || end < at {
				continue
			}
			before := src[i-1]
			assigned := strings.HasPrefix(src[end:], "]=") || strings.HasPrefix(src[end:], "]+=")
			if isName(before) || assigned && strings.IndexByte("( \t\n", before) >= 0 {
				return i + 1, end, true
			}
		case '(':
			if parens > 0 {
				parens--
				continue
			}
			if src[i-1] != '(' {
				continue
			}
			end := closing(src, i+1, ')')
			if end >= 0 && end+1 < len(src) && src[end+1] == ')' && end+1 >= at {
				return i + 1, end, true
			}
		}
	}
	return 0, 0, false
}

// closing finds the bracket that closes the one before i, past quotes and nested ones.
func closing(src string, i int, bracket byte) int {
	depth := 0
	for ; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '\'', '"', '`':
			end := strings.IndexByte(src[i+1:], src[i])
			if end < 0 {
				return -1
			}
			i += end + 1
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth == 0 {
				if src[i] == bracket {
					return i
				}
				return -1
			}
			depth--
		}
	}
	return -1
}

// withoutQuotes removes the double quotes of a text that comes into double quotes. What is in $( ) keeps its own.
func withoutQuotes(text string) (string, bool) {
	if trimmed := strings.TrimSpace(text); trimmed == "" || strings.ContainsAny(text, "';`") {
		return "", false
	} else if trimmed[0] == '"' && strings.IndexByte(trimmed[1:], '"') == len(trimmed)-2 {
		return "", false // it was that before
	}
	var b strings.Builder
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			b.WriteByte(c)
			i++
		case (c == '(' || c == '{') && (depth > 0 || i > 0 && text[i-1] == '$'):
			depth++
		case (c == ')' || c == '}') && depth > 0:
			depth--
		case c == '"' && depth == 0:
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String(), true
}

// mendBad makes ${a b} a substitution that is found bad when it is expanded, and shown as it was.
func mendBad(src string, at int) (string, bool) {
	from := strings.LastIndex(src[:min(at+1, len(src))], "${")
	if from < 0 {
		return "", false
	}
	end := closing(src, from+2, '}')
	if end < at || strings.ContainsAny(src[from+2:end], "'\"\\`$\n") {
		return "", false
	}
	return src[:from] + "${ " + badMark + "'" + src[from+2:end] + "'; }" + src[end+1:], true
}

// badMark is the name of no command.
const badMark = "bad-substitution/"

// BadCommand is the error of a ${ command; }: there are none in this bash.
func BadCommand(text string) *BadSubst {
	if bad, ok := strings.CutPrefix(text, "${ "+badMark+"'"); ok {
		bad, _, _ = strings.Cut(bad, "'")
		text = "${" + bad + "}"
	}
	return &BadSubst{text}
}
