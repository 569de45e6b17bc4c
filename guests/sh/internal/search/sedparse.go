package search

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/exthost/exthost/guests/sh/internal/regex"
)

type addrKind uint8

const (
	addrLine addrKind = iota
	addrLast
	addrRegexp
	addrStep // n~m
	addrPlus // ,+n
	addrMultiple
)

type addr struct {
	kind addrKind
	n, m int
	re   *regex.Regexp // nil: the one used last
}

type sedCommand struct {
	from, to *addr
	not      bool
	name     byte
	text     string // of a, i, c; the label; the file's name
	number   int    // of q, Q, l; -1 when not given
	jump     int    // b, t, T: index of the next command; {: of the one behind }
	sub      *substitution
	table    map[rune]rune // y
	out      *sedOutput    // w, W

	active bool // the range
	end    int  // line that ends it
}

type substitution struct {
	re     *regex.Regexp // nil: the one used last
	parts  []part
	global bool
	print  int // how often p was given
	nth    int
	out    *sedOutput
}

// part is a piece of a replacement: text, a group, or a change of case.
type part struct {
	text  string
	group int  // -1: text
	cases byte // one of L U l u E, 0: none
}

// sedSource is one -e or -f, for messages.
type sedSource struct {
	name  string // "-e expression #1" or the file
	file  bool
	start int
}

type sedParser struct {
	src      string
	pos      int
	sources  []sedSource
	commands []sedCommand
	blocks   []int
	labels   map[string]int
	extended bool
	posix    bool
	single   bool
	sandbox  bool
	sep      byte
	open     func(name string) (*sedOutput, error)
}

type sedError string

func (e sedError) Error() string { return string(e) }

type sedLabelError string

func (e sedLabelError) Error() string { return string(e) }

// fail ends the parsing with a message that tells where.
func (p *sedParser) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	i := len(p.sources) - 1
	for i > 0 && p.sources[i].start > max(p.pos-1, 0) {
		i--
	}
	s := p.sources[i]
	if s.file {
		panic(sedError(fmt.Sprintf("file %s line %d: %s", s.name, 1+strings.Count(p.src[s.start:min(p.pos, len(p.src))], "\n"), text)))
	}
	panic(sedError(fmt.Sprintf("%s, char %d: %s", s.name, p.pos-s.start, text)))
}

func (p *sedParser) parse() (err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(sedError)
			if !ok {
				panic(r)
			}
			err = e
		}
	}()
	p.labels = map[string]int{}
	for {
		p.skip(" \t\n\v\f\r;")
		if p.pos >= len(p.src) {
			break
		}
		p.command()
	}
	if len(p.blocks) > 0 {
		p.pos = 0
		p.fail("unmatched `{'")
	}
	for i := range p.commands {
		c := &p.commands[i]
		if strings.IndexByte("btT", c.name) < 0 {
			continue
		}
		to, ok := p.labels[c.text]
		if c.text == "" {
			to, ok = len(p.commands), true
		}
		if !ok {
			return sedLabelError(fmt.Sprintf("can't find label for jump to `%s'", c.text))
		}
		c.jump = to
	}
	return nil
}

func (p *sedParser) skip(chars string) {
	for p.pos < len(p.src) && strings.IndexByte(chars, p.src[p.pos]) >= 0 {
		p.pos++
	}
}

// peek is the next character, 0 at the end.
func (p *sedParser) peek() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

func (p *sedParser) number() (int, bool) {
	start := p.pos
	n := 0
	for p.pos < len(p.src) && '0' <= p.src[p.pos] && p.src[p.pos] <= '9' {
		n = min(n*10+int(p.src[p.pos]-'0'), 1<<40)
		p.pos++
	}
	return n, p.pos > start
}

func (p *sedParser) address() *addr {
	c := p.peek()
	switch {
	case '0' <= c && c <= '9':
		n, _ := p.number()
		p.skip(" \t")
		if p.peek() != '~' {
			return &addr{kind: addrLine, n: n}
		}
		p.pos++
		p.skip(" \t")
		m, _ := p.number()
		return &addr{kind: addrStep, n: n, m: m}
	case c == '$':
		p.pos++
		return &addr{kind: addrLast}
	case c == '/' || c == '\\':
		p.pos++
		if c == '\\' {
			if p.pos >= len(p.src) {
				p.fail("unexpected `,'")
			}
			c = p.src[p.pos]
			p.pos++
		}
		text, ok := p.delimited(c, true)
		if !ok {
			p.fail("unterminated address regex")
		}
		var flags regex.Flags
		for {
			switch p.peek() {
			case 'I':
				flags |= regex.IgnoreCase
			case 'M':
				flags |= regex.Multiline
			default:
				return &addr{kind: addrRegexp, re: p.regexp(text, flags)}
			}
			p.pos++
		}
	}
	return nil
}

// regexp compiles an expression; nil stands for the one used last.
func (p *sedParser) regexp(text string, flags regex.Flags) *regex.Regexp {
	if text == "" {
		if flags != 0 {
			p.fail("cannot specify modifiers on empty regexp")
		}
		return nil
	}
	if p.single {
		flags |= regex.Bytes
	}
	if p.sep != '\n' {
		flags &^= regex.Multiline // lines end in NUL, and those are no part of the text
	}
	if !p.posix {
		flags |= regex.Escapes
	}
	syntax := regex.BRE
	if p.extended {
		syntax = regex.ERE
	}
	re, err := regex.Compile(text, syntax, flags)
	if err == regex.MisplacedClass {
		panic(sedError(err.Error()))
	}
	if err != nil {
		p.fail("%v", err)
	}
	return re
}

// delimited reads up to the delimiter. A backslash before it is dropped, and before n it makes a line end in an
// expression; a delimiter within brackets is an ordinary character.
func (p *sedParser) delimited(delim byte, isRegexp bool) (string, bool) {
	var b strings.Builder
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		p.pos++
		switch {
		case c == delim:
			return b.String(), true
		case c == '\n' && isRegexp:
			return "", false
		case c == '\\':
			if p.pos >= len(p.src) {
				return "", false
			}
			n := p.src[p.pos]
			p.pos++
			switch {
			case n == delim && isRegexp:
				b.WriteByte(n) // and it means what it means without a backslash
			case n == delim && n != '&':
				b.WriteByte(n)
			case n == 'n' && isRegexp:
				b.WriteByte('\n')
			default:
				b.WriteByte('\\')
				b.WriteByte(n)
			}
		case c == '[' && isRegexp:
			b.WriteByte(c)
			p.bracket(&b)
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

// bracket copies a bracket expression behind its [, if it is one.
func (p *sedParser) bracket(b *strings.Builder) {
	i := p.pos
	at := func(s string) bool { return strings.HasPrefix(p.src[i:], s) }
	if at("^") {
		i++
	}
	if at("]") {
		i++
	}
	for i < len(p.src) && p.src[i] != ']' && p.src[i] != '\n' {
		if p.src[i] == '[' && i+1 < len(p.src) && strings.IndexByte(":.=", p.src[i+1]) >= 0 {
			if end := strings.Index(p.src[i+2:], string(p.src[i+1])+"]"); end >= 0 {
				i += 2 + end + 2
				continue
			}
		}
		i++
	}
	if i >= len(p.src) || p.src[i] != ']' {
		return
	}
	text := p.src[p.pos : i+1]
	p.pos = i + 1
	b.WriteString(strings.ReplaceAll(text, `\n`, "\n"))
}

func (p *sedParser) command() {
	c := sedCommand{number: -1}
	if c.from = p.address(); c.from != nil {
		p.skip(" \t")
		if p.peek() == ',' {
			p.pos++
			p.skip(" \t")
			switch p.peek() {
			case '+', '~':
				c.to = &addr{kind: addrPlus}
				if p.peek() == '~' {
					c.to.kind = addrMultiple
				}
				p.pos++
				n, ok := p.number()
				if !ok {
					p.fail("expected number")
				}
				c.to.n = n
			default:
				if c.to = p.address(); c.to == nil {
					p.fail("unexpected `,'")
				}
				if c.to.kind == addrStep {
					c.to.kind = addrLine
				}
			}
		}
		if c.from.kind == addrLine && c.from.n == 0 {
			if c.to == nil || c.to.kind != addrRegexp || p.posix {
				p.fail("invalid usage of line address 0")
			}
			c.active = true
		}
	} else if p.peek() == '+' || p.peek() == '~' {
		p.pos++
		p.fail("invalid usage of +N or ~N as first address")
	}
	p.skip(" \t")
	for p.peek() == '!' {
		c.not = true
		p.pos++
		p.skip(" \t")
	}
	if p.pos >= len(p.src) {
		p.fail("missing command")
	}
	c.name = p.src[p.pos]
	p.pos++
	switch c.name {
	case '#':
		if c.from != nil {
			p.fail("comments don't accept any addresses")
		}
		for p.pos < len(p.src) && p.src[p.pos] != '\n' {
			p.pos++
		}
		return
	case ':':
		if c.from != nil {
			p.fail(": doesn't want any addresses")
		}
		label := p.label()
		if label == "" {
			p.fail("\":\" lacks a label")
		}
		p.labels[label] = len(p.commands)
		return
	case '{':
		p.blocks = append(p.blocks, len(p.commands))
		p.commands = append(p.commands, c)
		return
	case '}':
		if c.from != nil {
			p.fail("} doesn't want any addresses")
		}
		if len(p.blocks) == 0 {
			p.fail("unexpected `}'")
		}
		last := len(p.blocks) - 1
		p.commands[p.blocks[last]].jump = len(p.commands)
		p.blocks = p.blocks[:last]
		p.end()
		return
	case '=', 'd', 'D', 'F', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z':
		p.end()
	case 'a', 'i', 'c':
		c.text = p.text()
	case 'b', 't', 'T':
		c.text = p.label()
	case 'q', 'Q', 'l', 'L':
		if c.to != nil && c.name != 'l' {
			p.fail("command only uses one address")
		}
		p.skip(" \t")
		if n, ok := p.number(); ok {
			c.number = n
		}
		p.end()
	case 'r', 'R', 'w', 'W':
		if p.sandbox {
			p.fail("e/r/w commands disabled in sandbox mode")
		}
		c.text = p.fileName()
		if c.name == 'w' || c.name == 'W' {
			c.out = p.output(c.text)
		}
	case 's':
		c.sub = p.substitution()
	case 'y':
		c.table = p.transliteration()
		p.end()
	case 'v':
		p.label()
		return
	case 'e':
		p.fail("the e command is not supported here: sed runs no other commands")
	default:
		p.fail("unknown command: `%c'", c.name)
	}
	p.commands = append(p.commands, c)
}

// end reads what may follow a command.
func (p *sedParser) end() {
	p.skip(" \t\r")
	switch p.peek() {
	case ';', '\n':
		p.pos++
	case '}', '#':
	default:
		if p.pos < len(p.src) {
			p.pos++
			p.fail("extra characters after command")
		}
	}
}

func (p *sedParser) label() string {
	p.skip(" \t")
	start := p.pos
	for p.pos < len(p.src) && strings.IndexByte(" \t\r\n;}", p.src[p.pos]) < 0 {
		p.pos++
	}
	return p.src[start:p.pos]
}

func (p *sedParser) fileName() string {
	p.skip(" \t")
	end := strings.IndexByte(p.src[p.pos:], '\n')
	if end < 0 {
		end = len(p.src) - p.pos
	}
	name := p.src[p.pos : p.pos+end]
	p.pos += end
	if name == "" {
		p.fail("missing filename in r/R/w/W commands")
	}
	return name
}

func (p *sedParser) output(name string) *sedOutput {
	out, err := p.open(name)
	if err != nil {
		panic(sedError(err.Error()))
	}
	return out
}

// text reads the text of a, i and c.
func (p *sedParser) text() string {
	p.skip(" \t")
	if p.pos >= len(p.src) {
		p.fail("expected \\ after `a', `c' or `i'")
	}
	if p.peek() == '\\' {
		p.pos++
		p.skip(" \t")
		if p.peek() == '\n' {
			p.pos++
		} else if p.pos >= len(p.src) {
			return "" // only a missing line end is added
		} else {
			// a\text: white space behind the backslash is kept.
			for p.src[p.pos-1] == ' ' || p.src[p.pos-1] == '\t' {
				p.pos--
			}
		}
	}
	var b strings.Builder
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		p.pos++
		if c == '\n' {
			break
		}
		if c != '\\' {
			b.WriteByte(c)
			continue
		}
		if p.pos >= len(p.src) {
			break
		}
		if text, n := p.special(p.src[p.pos:]); n > 0 {
			b.WriteString(text)
			p.pos += n
			continue
		}
		b.WriteByte(p.src[p.pos])
		p.pos++
	}
	return b.String() + "\n"
}

// special reads an escape behind its backslash: the text it stands for, and its length, 0 when it is none.
func (p *sedParser) special(s string) (string, int) {
	if p.posix {
		return "", 0
	}
	if i := strings.IndexByte("afnrtv", s[0]); i >= 0 {
		return "\a\f\n\r\t\v"[i : i+1], 1
	}
	base, most := 0, 0
	switch s[0] {
	case 'c':
		if len(s) > 1 {
			return string(rune(unicode.ToUpper(rune(s[1])) ^ 0x40)), 2
		}
	case 'd':
		base, most = 10, 3
	case 'o':
		base, most = 8, 3
	case 'x':
		base, most = 16, 2
	}
	n := 0
	for n < most && 1+n < len(s) {
		if _, err := strconv.ParseUint(s[1+n:2+n], base, 8); err != nil {
			break
		}
		n++
	}
	if n == 0 {
		return "", 0
	}
	v, _ := strconv.ParseUint(s[1:1+n], base, 32)
	return string([]byte{byte(v)}), 1 + n
}

func (p *sedParser) delimiter(command byte) byte {
	if p.pos >= len(p.src) {
		p.fail("unterminated `%c' command", command)
	}
	d := p.src[p.pos]
	if d == '\n' || d == '\\' {
		p.pos++
		p.fail("unterminated `%c' command", command)
	}
	if d >= utf8.RuneSelf {
		p.fail("delimiter character is not a single-byte character")
	}
	p.pos++
	return d
}

func (p *sedParser) substitution() *substitution {
	delim := p.delimiter('s')
	pattern, ok := p.delimited(delim, true)
	if !ok {
		p.fail("unterminated `s' command")
	}
	replacement, ok := p.delimited(delim, false)
	if !ok {
		p.fail("unterminated `s' command")
	}
	s := &substitution{nth: 1}
	var flags regex.Flags
	numbered := false
loop:
	for {
		c := p.peek()
		switch {
		case p.pos >= len(p.src):
			break loop
		case c == 'g':
			if s.global {
				p.pos++
				p.fail("multiple `g' options to `s' command")
			}
			s.global = true
		case c == 'p':
			s.print++
			if s.print > 1 {
				p.pos++
				p.fail("multiple `p' options to `s' command")
			}
		case c == 'i' || c == 'I':
			flags |= regex.IgnoreCase
		case c == 'm' || c == 'M':
			flags |= regex.Multiline
		case c == 'e':
			p.pos++
			p.fail("the e option of the s command is not supported here: sed runs no other commands")
		case '0' <= c && c <= '9':
			if numbered {
				p.fail("multiple number options to `s' command")
			}
			numbered = true
			s.nth, _ = p.number()
			if s.nth == 0 {
				p.fail("number option to `s' command may not be zero")
			}
			continue
		case c == 'w':
			if p.sandbox {
				p.fail("e/r/w commands disabled in sandbox mode")
			}
			p.pos++
			s.out = p.output(p.fileName())
			break loop
		case c == ' ' || c == '\t' || c == '\r':
		case c == '}' || c == '#':
			break loop
		case c == ';' || c == '\n':
			p.pos++
			break loop
		default:
			p.pos++
			p.fail("unknown option to `s'")
		}
		p.pos++
	}
	s.re = p.regexp(pattern, flags)
	s.parts = p.replacement(replacement)
	for _, part := range s.parts {
		if s.re != nil && part.group > s.re.Groups() {
			p.fail("invalid reference \\%d on `s' command's RHS", part.group)
		}
	}
	return s
}

func (p *sedParser) replacement(text string) []part {
	var parts []part
	var lit strings.Builder
	add := func(x part) {
		if lit.Len() > 0 {
			parts = append(parts, part{text: lit.String(), group: -1})
			lit.Reset()
		}
		parts = append(parts, x)
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '&':
			add(part{group: 0})
		case c != '\\' || i+1 == len(text):
			lit.WriteByte(c)
		default:
			i++
			c = text[i]
			switch {
			case '0' <= c && c <= '9':
				add(part{group: int(c - '0')})
			case strings.IndexByte("LUluE", c) >= 0 && !p.posix:
				add(part{group: -1, cases: c})
			default:
				if s, n := p.special(text[i:]); n > 0 {
					lit.WriteString(s)
					i += n - 1
				} else {
					lit.WriteByte(c)
				}
			}
		}
	}
	if lit.Len() > 0 {
		parts = append(parts, part{text: lit.String(), group: -1})
	}
	return parts
}

func (p *sedParser) transliteration() map[rune]rune {
	delim := p.delimiter('y')
	read := func() []rune {
		text, ok := p.delimited(delim, false)
		if !ok {
			p.fail("unterminated `y' command")
		}
		var out []rune
		for len(text) > 0 {
			if text[0] == '\\' && len(text) > 1 {
				if text[1] == '\\' {
					out, text = append(out, '\\'), text[2:]
					continue
				}
				if s, n := p.special(text[1:]); n > 0 {
					out, text = append(out, rune(s[0])), text[1+n:]
					continue
				}
			}
			r, n := p.char(text)
			out, text = append(out, r), text[n:]
		}
		return out
	}
	from, to := read(), read()
	if len(from) != len(to) {
		p.fail("strings for `y' command are different lengths")
	}
	table := map[rune]rune{}
	for i, r := range from {
		if !slices.Contains(from[:i], r) {
			table[r] = to[i]
		}
	}
	return table
}

// char decodes a character; bytes that are not UTF-8 become negative.
func (p *sedParser) char(s string) (rune, int) { return sedChar(s, p.single) }

func sedChar[T string | []byte](s T, single bool) (rune, int) {
	if s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	if !single {
		if r, n := utf8.DecodeRuneInString(string(s[:min(len(s), utf8.UTFMax)])); r != utf8.RuneError || n > 1 {
			return r, n
		}
	}
	return -rune(s[0]), 1
}
