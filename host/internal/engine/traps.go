package engine

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Traps: the closed set of words in [Ending.Trap]. Both engines give the same word for the same fault; where one of
// them cannot tell two faults apart, there is one word for both.
const (
	TrapUnreachable       = "unreachable"
	TrapMemory            = "memory-out-of-bounds" // also a data segment that does not fit
	TrapTable             = "bad-table-access"     // element out of bounds or uninitialized, element segment that does not fit
	TrapIndirectCall      = "indirect-call-type-mismatch"
	TrapDivideByZero      = "integer-divide-by-zero"
	TrapIntegerOverflow   = "integer-overflow"
	TrapInvalidConversion = "invalid-conversion-to-integer"
	TrapStackOverflow     = "stack-overflow"
	TrapOther             = "other" // a fault that no enabled feature can raise today
)

// Traps lists all trap words.
func Traps() []string {
	return []string{
		TrapUnreachable, TrapMemory, TrapTable, TrapIndirectCall, TrapDivideByZero, TrapIntegerOverflow,
		TrapInvalidConversion, TrapStackOverflow, TrapOther,
	}
}

// Caps of a trap's detail.
const (
	maxFrames    = 10
	maxFrameName = 100 // bytes
)

// Frames makes the text of [Ending.Detail] from function names, innermost first: at most 10, each at most 100 bytes,
// without control or other unprintable characters, joined by " < ".
func Frames(names []string) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteString(" < ")
		}
		if i == maxFrames {
			b.WriteString("...")
			break
		}
		b.WriteString(Clean(n, maxFrameName))
	}
	return b.String()
}

// Clean makes guest text fit for a log line: at most max bytes, valid UTF-8, printable ASCII and letters only; other
// characters become "?".
func Clean(s string, max int) string {
	var b strings.Builder
	for _, r := range s {
		if !printable(r) {
			r = '?'
		}
		if b.Len()+utf8.RuneLen(r) > max {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

// printable leaves out everything that can change how the rest of a line is shown: controls, format characters
// (bidirectional overrides, joiners), odd spaces, private use.
func printable(r rune) bool {
	if r < 0x80 {
		return r >= 0x20 && r != 0x7f
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '·')
}
