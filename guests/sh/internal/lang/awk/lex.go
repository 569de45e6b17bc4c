package awk

import (
	"fmt"
	"strconv"
	"strings"
)

type token uint8

const (
	tEOF token = iota
	tNewline
	tNumber
	tString
	tName
	tFuncName // a name with ( right behind it
	tBuiltin
	tPunct // text holds it: + - == && and so on
	tPipeGetline

	tBEGIN
	tEND
	tBEGINFILE
	tENDFILE
	tFunction
	tIf
	tElse
	tWhile
	tFor
	tDo
	tBreak
	tContinue
	tNext
	tNextFile
	tExit
	tReturn
	tDelete
	tIn
	tGetline
	tPrint
	tPrintf
	tSwitch
	tCase
	tDefault
)

var keywords = map[string]token{
	"BEGIN": tBEGIN, "END": tEND, "BEGINFILE": tBEGINFILE, "ENDFILE": tENDFILE, "function": tFunction, "func": tFunction,
	"if": tIf, "else": tElse, "while": tWhile, "for": tFor, "do": tDo, "break": tBreak, "continue": tContinue,
	"next": tNext, "nextfile": tNextFile, "exit": tExit, "return": tReturn, "delete": tDelete, "in": tIn,
	"getline": tGetline, "print": tPrint, "printf": tPrintf, "switch": tSwitch, "case": tCase, "default": tDefault,
}

type lexer struct {
	src  string
	pos  int
	line int

	tok   token
	text  string
	num   float64
	start int             // of tok
	own   map[string]bool // functions of gawk's that the program defines itself
}

// syntaxError is why a program is refused.
type syntaxError string

func (e syntaxError) Error() string { return string(e) }

func (l *lexer) fail(format string, args ...any) {
	panic(syntaxError(fmt.Sprintf("line %d: ", l.line) + fmt.Sprintf(format, args...)))
}

func (l *lexer) near() string {
	switch l.tok {
	case tEOF:
		return "end of file"
	case tNewline:
		return "end of line"
	}
	if l.start < l.pos {
		return l.src[l.start:l.pos]
	}
	return l.text
}

func isLetter(c byte) bool { return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }

func (l *lexer) at(i int) byte {
	if i < len(l.src) {
		return l.src[i]
	}
	return 0
}

func (l *lexer) next() {
	for {
		switch c := l.at(l.pos); {
		case c == ' ' || c == '\t' || c == '\r' && l.pos < len(l.src):
			l.pos++
			continue
		case c == '\\' && l.at(l.pos+1) == '\n':
			l.pos += 2
			l.line++
			continue
		case c == '\\' && l.at(l.pos+1) == '\r' && l.at(l.pos+2) == '\n':
			l.pos += 3
			l.line++
			continue
		case c == '#':
			for l.pos < len(l.src) && l.src[l.pos] != '\n' {
				l.pos++
			}
			continue
		}
		break
	}
	l.start = l.pos
	if l.pos >= len(l.src) {
		l.tok = tEOF
		return
	}
	c := l.src[l.pos]
	switch {
	case c == '\n':
		l.pos++
		l.line++
		l.tok = tNewline
	case isLetter(c):
		for isLetter(l.at(l.pos)) || isDigit(l.at(l.pos)) {
			l.pos++
		}
		l.text = l.src[l.start:l.pos]
		if k, ok := keywords[l.text]; ok {
			l.tok = k
			return
		}
		if _, ok := builtins[l.text]; ok && !l.own[l.text] {
			l.tok = tBuiltin
			return
		}
		l.tok = tName
		if l.at(l.pos) == '(' {
			l.tok = tFuncName
		}
	case isDigit(c) || c == '.' && isDigit(l.at(l.pos+1)):
		n := numberPrefix(l.src[l.pos:])
		l.num, _ = strconv.ParseFloat(l.src[l.pos:l.pos+n], 64)
		l.pos += n
		if l.at(l.pos) == 'e' || l.at(l.pos) == 'E' {
			if next := l.at(l.pos + 1); !isLetter(next) && !isDigit(next) {
				l.pos++ // 1e, as mawk reads it
			}
		}
		l.tok = tNumber
	case c == '"':
		l.pos++
		l.tok, l.text = tString, l.str()
	case c == '|':
		rest := strings.TrimLeft(l.src[l.pos+1:], " \t")
		if after, ok := strings.CutPrefix(rest, "getline"); ok && (after == "" || !isLetter(after[0]) && !isDigit(after[0])) {
			l.pos = len(l.src) - len(after)
			l.tok = tPipeGetline
			return
		}
		l.punct()
	case c == '@':
		l.fail("indirect calls and directives (@) are not supported")
	default:
		l.punct()
	}
}

func (l *lexer) punct() {
	l.tok = tPunct
	for n := 3; n > 0; n-- {
		if l.pos+n > len(l.src) {
			continue
		}
		text := l.src[l.pos : l.pos+n]
		switch text {
		case "**=":
			l.text = "^="
		case "**":
			l.text = "^"
		case "==", "<=", ">=", "!=", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "&&", "||", "!~", ">>",
			"{", "}", "(", ")", "[", "]", ";", ",", "+", "-", "*", "/", "%", "^", "!", ">", "<", "|", "?", ":", "~", "$", "=":
			l.text = text
		default:
			continue
		}
		l.pos += n
		return
	}
	l.pos++
	l.fail("unexpected character '%c'", l.src[l.start])
}

// str reads a string behind its opening quote.
func (l *lexer) str() string {
	var b strings.Builder
	for {
		if l.pos >= len(l.src) || l.src[l.pos] == '\n' {
			l.fail("runaway string constant \"%.10s ...", b.String())
		}
		c := l.src[l.pos]
		l.pos++
		switch {
		case c == '"':
			return b.String()
		case c == '\\' && l.at(l.pos) == '\n':
			l.pos++
			l.line++
		case c == '\\' && l.pos < len(l.src):
			n := escape(&b, l.src[l.pos:])
			l.pos += n
		default:
			b.WriteByte(c)
		}
	}
}

// escape writes what the text behind a backslash stands for, and returns its length.
func escape(b *strings.Builder, s string) int {
	if i := strings.IndexByte(`"\abfnrtv`, s[0]); i >= 0 {
		b.WriteByte("\"\\\a\b\f\n\r\t\v"[i])
		return 1
	}
	if '0' <= s[0] && s[0] <= '7' {
		v, n := 0, 0
		for n < 3 && n < len(s) && '0' <= s[n] && s[n] <= '7' {
			v = v*8 + int(s[n]-'0')
			n++
		}
		b.WriteByte(byte(v))
		return n
	}
	if s[0] == 'x' && len(s) > 1 {
		n := 1
		for n < 3 && n < len(s) {
			if _, err := strconv.ParseUint(s[n:n+1], 16, 8); err != nil {
				break
			}
			n++
		}
		if n > 1 {
			v, _ := strconv.ParseUint(s[1:n], 16, 8)
			b.WriteByte(byte(v))
			return n
		}
	}
	// Both stay, so that "\." is a full stop as an expression.
	b.WriteByte('\\')
	b.WriteByte(s[0])
	return 1
}

// unescape is for -v and assignments among the operands.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i += escape(&b, s[i+1:])
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// regexp reads an expression whose first / or /= is the current token.
func (l *lexer) regexp() string {
	start := l.start + 1
	l.pos = start
	bracket := false
	for i := start; ; i++ {
		if i >= len(l.src) || l.src[i] == '\n' {
			if bracket {
				// The [ was none of a bracket expression.
				bracket = false
				for i = start; l.at(i) != '/' || l.src[i-1] == '\\'; i++ {
					if i >= len(l.src) || l.src[i] == '\n' {
						l.fail("runaway regular expression /%.10s ...", l.src[start:min(i, len(l.src))])
					}
				}
			} else {
				l.fail("runaway regular expression /%.10s ...", l.src[start:min(i, len(l.src))])
			}
		}
		switch c := l.src[i]; {
		case c == '\\':
			i++
			continue
		case bracket:
			if c == '[' && l.at(i+1) == ':' {
				if end := strings.Index(l.src[i:], ":]"); end > 0 {
					i += end + 1
				}
			} else if c == ']' {
				bracket = false
			}
			continue
		case c == '[':
			bracket = true
			if l.at(i+1) == '^' {
				i++
			}
			if l.at(i+1) == ']' {
				i++
			}
			continue
		case c != '/':
			continue
		}
		text := l.src[start:i]
		l.pos = i + 1
		return text
	}
}

// numberPrefix is the length of the decimal number that s begins with.
func numberPrefix(s string) int {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	digits := i
	if i < len(s) && s[i] == '.' {
		i++
		for i < len(s) && isDigit(s[i]) {
			i++
			digits++
		}
	}
	if digits == 0 {
		return 0
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if j < len(s) && isDigit(s[j]) {
			for j < len(s) && isDigit(s[j]) {
				j++
			}
			i = j
		}
	}
	return i
}
