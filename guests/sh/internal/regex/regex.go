// Package regex matches the regular expressions of the shell's tools: POSIX basic and extended ones with GNU's
// extensions, and Perl's.
//
// The expressions run on a matcher of the package's own, because none of the engines at hand fits: Go's regexp knows
// neither back-references nor look-around nor \<, and those that do bound their time by a clock on another goroutine,
// which never runs while a match spins on the one thread of the guest. This one works on bytes, of which not all need be
// UTF-8, counts its steps, lets others run through [cmd.Check], and remembers where it has failed once an expression
// without back-references turns out to be slow, so that time is bounded by the product of expression and text.
//
// # Choice of the match
//
// BRE and ERE take the leftmost, longest match; of the ways to make it, groups show the one that backtracking finds
// first, as glibc does in nearly all cases. PCRE takes the first that backtracking finds.
//
// A byte that is not part of valid UTF-8 matches only itself: neither "." nor "[^x]" does, as GNU's tools have it.
package regex

import (
	"bytes"
	"context"
	"strings"
	"unicode/utf8"
)

// Syntax is the language of an expression.
type Syntax uint8

const (
	BRE   Syntax = iota // POSIX basic, with \+ \? \| \< \> \b \w \s and so on
	ERE                 // POSIX extended, likewise
	PCRE                // Perl's
	Fixed               // the text itself
)

// Flags change how an expression is read or matched.
type Flags uint16

const (
	IgnoreCase Flags = 1 << iota
	Word             // grep -w: no word character before or behind the match
	Line             // grep -x: the match is the whole text
	Multiline        // ^ and $ also match at line ends inside the text; \` and \' only at its ends
	NotNewline       // "." and "[^x]" do not match a line end
	Bytes            // the C locale: each byte is a character
	Lenient          // ERE as grep reads it: a * or { that repeats nothing, or is no interval, is no error
	LoneParen        // ERE: a ) without ( is a character, as bash and grep have it
	Escapes          // \n \t \f \v \a \r \d065 \o101 \x41 \cX, as sed has them
	Unicode          // PCRE: \w, \d, \s and \b go by Unicode
	Extended         // PCRE: (?x)
	DotAll           // PCRE: (?s)
	Awk              // ERE as awk reads it: C's escapes, also between brackets
)

// Regexp is a compiled expression. It may be used by one goroutine at a time.
type Regexp struct {
	prog     []inst
	groups   int
	names    map[string]int
	regs     int // capture slots and loop registers
	longest  bool
	wide     bool // word characters are Unicode's
	memo     bool // a place that failed once always fails: there are no back-references
	multi    bool
	bytes    bool
	anchored bool // it can match only where a line (the text, without Multiline) begins
	nullable bool
	first    [256]bool // which bytes can begin a match, unless nullable
	prefix   []byte    // every match begins with it
	whole    bool      // prefix is the whole expression
	required []byte    // every match has it somewhere
	warnings []string
	m        machine
}

// Error is why an expression is refused, in GNU's words.
type Error string

func (e Error) Error() string { return string(e) }

// Compile reads an expression.
func Compile(pattern string, syntax Syntax, flags Flags) (re *Regexp, err error) {
	defer func() {
		if p := recover(); p != nil {
			e, ok := p.(Error)
			if !ok {
				panic(p)
			}
			re, err = nil, e
		}
	}()
	p := &parser{src: runes(pattern, flags&Bytes != 0), syntax: syntax, flags: flags}
	if flags&Awk != 0 {
		p.flags |= Lenient
	}
	n := p.parse()
	return p.compile(n), nil
}

// Quote returns text as an expression that matches just it.
func Quote(text string, syntax Syntax) string {
	special := `\.[]*^$`
	switch syntax {
	case Fixed:
		return text
	case ERE, PCRE:
		special = `\.[]*^$+?(){}|`
	}
	var b strings.Builder
	for i := range len(text) {
		if strings.IndexByte(special, text[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// Groups is the number of groups that remember what they matched.
func (r *Regexp) Groups() int { return r.groups }

// Names returns the numbers of named groups.
func (r *Regexp) Names() map[string]int { return r.names }

// Warnings are what GNU grep says of an expression it accepts ("* at start of expression").
func (r *Regexp) Warnings() []string { return r.warnings }

// Required is text that every match contains, nil when none is known. It does not depend on case.
func (r *Regexp) Required() []byte { return r.required }

// Literal returns the text that is all the expression matches, and whether it is that simple.
func (r *Regexp) Literal() ([]byte, bool) { return r.prefix, r.whole }

// Match reports whether the expression matches somewhere in b.
func (r *Regexp) Match(ctx context.Context, b []byte) bool { return r.find(ctx, b, 0, true) }

// MatchString is Match for a string.
func (r *Regexp) MatchString(ctx context.Context, s string) bool { return r.Match(ctx, []byte(s)) }

// FindIndex returns the first match in b at or behind from: start and end, then start and end of each group, -1 for
// groups that took no part. It returns nil when there is no match. What is before from is seen by ^, \b and
// look-behind. The caller owns the result.
func (r *Regexp) FindIndex(ctx context.Context, b []byte, from int) []int {
	if !r.find(ctx, b, from, false) {
		return nil
	}
	return append([]int(nil), r.m.best[:2*(r.groups+1)]...)
}

// AppendIndex appends to dst what FindIndex returns, for callers that search often; it returns nil when there is no match.
func (r *Regexp) AppendIndex(ctx context.Context, dst []int, b []byte, from int) []int {
	if !r.find(ctx, b, from, false) {
		return nil
	}
	return append(dst, r.m.best[:2*(r.groups+1)]...)
}

// FindString returns the text of the first match and of its groups, nil when there is none.
func (r *Regexp) FindString(ctx context.Context, s string) []string {
	b := []byte(s)
	if !r.find(ctx, b, 0, false) {
		return nil
	}
	out := make([]string, r.groups+1)
	for i := range out {
		if from, to := r.m.best[2*i], r.m.best[2*i+1]; from >= 0 && to >= from {
			out[i] = s[from:to]
		}
	}
	return out
}

func (r *Regexp) find(ctx context.Context, b []byte, from int, only bool) bool {
	if from > len(b) {
		return false
	}
	if r.whole {
		i := bytes.Index(b[from:], r.prefix)
		if i < 0 {
			return false
		}
		r.m.best = append(r.m.best[:0], from+i, from+i+len(r.prefix))
		return true
	}
	if len(r.required) > 0 && !bytes.Contains(b[from:], r.required) {
		return false
	}
	m := &r.m
	m.begin(ctx, r, b, only)
	for pos := from; pos <= len(b); {
		switch {
		case r.anchored && !r.multi && pos > 0:
			return false
		case r.anchored && pos > 0 && b[pos-1] != '\n':
			i := bytes.IndexByte(b[pos:], '\n')
			if i < 0 {
				return false
			}
			pos += i + 1
		}
		if len(r.prefix) > 0 {
			i := bytes.Index(b[pos:], r.prefix)
			if i < 0 {
				return false
			}
			if r.anchored && i > 0 {
				pos++
				continue
			}
			pos += i
		} else if !r.nullable {
			for pos < len(b) && !r.first[b[pos]] {
				pos++
			}
			if pos == len(b) {
				return false
			}
		}
		if m.search(pos) {
			return true
		}
		pos++
		if !r.bytes {
			for pos < len(b) && !utf8.RuneStart(b[pos]) && inside(b, pos) {
				pos++
			}
		}
	}
	return false
}

// inside reports whether pos is within a valid character of b.
func inside(b []byte, pos int) bool {
	for i := 1; i < utf8.UTFMax && pos-i >= 0; i++ {
		if utf8.RuneStart(b[pos-i]) {
			_, n := utf8.DecodeRune(b[pos-i:])
			return n > i
		}
	}
	return false
}

// invalid is where bytes that are not UTF-8 stand among the runes: these are surrogates, which text cannot hold.
const invalid = 0xDC00

func runes(s string, single bool) []rune {
	out := make([]rune, 0, len(s))
	for len(s) > 0 {
		r, n := decode([]byte(s[:min(len(s), utf8.UTFMax)]), single)
		out, s = append(out, r), s[n:]
	}
	return out
}

func decode(b []byte, single bool) (rune, int) {
	if b[0] < utf8.RuneSelf || single {
		return rune(b[0]), 1
	}
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError && n == 1 {
		return invalid + rune(b[0]), 1
	}
	return r, n
}

func decodeLast(b []byte, single bool) (rune, int) {
	c := b[len(b)-1]
	if c < utf8.RuneSelf || single {
		return rune(c), 1
	}
	r, n := utf8.DecodeLastRune(b)
	if r == utf8.RuneError && n == 1 {
		return invalid + rune(c), 1
	}
	return r, n
}

func encode(r rune, single bool) []byte {
	if isInvalid(r) {
		return []byte{byte(r - invalid)}
	}
	if single && r < 256 {
		return []byte{byte(r)}
	}
	return utf8.AppendRune(nil, r)
}
