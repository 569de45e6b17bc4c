package expand

import (
	"context"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/exthost/exthost/guests/sh/internal/vars"
	"mvdan.cc/sh/v3/syntax"
)

// seg is a piece of a word under expansion.
type seg struct {
	s      string
	quoted bool // no part of it is split or is a pattern; present also when it is empty
	split  bool // the result of an expansion outside of quotes: split at IFS
	end    bool // no text: the field ends here, between the elements of "$@"
}

// context of a literal: what a backslash means in it.
type quoting uint8

const (
	unquoted  quoting = iota
	double            // in double quotes
	document          // in a here-document: a double quote is a character
	alternate         // in the word of "${x:-word}"
)

// expansion is one word, or several that make fields, under way.
type expansion struct {
	*Expander
	ctx    context.Context
	fields bool // split and file names are wanted: else lists are joined
	segs   []seg
	tilde  bool // a tilde after a colon counts too: values of assignments
	assign bool // it is the value of an assignment
	empty  int  // how many lists without elements were in quotes
}

func (e *Expander) start(ctx context.Context) expansion { return expansion{Expander: e, ctx: ctx} }

// Fields expands words to fields: braces, tilde, parameters, commands, arithmetic, splitting, file names, quotes.
func (e *Expander) Fields(ctx context.Context, words ...*syntax.Word) ([]string, error) {
	out := make([]string, 0, len(words))
	var err error
	for _, w := range words {
		if s, ok := e.plain(w); ok {
			out = append(out, s)
			continue
		}
		if out, err = e.word(ctx, w, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// plain returns a word that stands for itself.
func (e *Expander) plain(w *syntax.Word) (string, bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	switch p := w.Parts[0].(type) {
	case *syntax.Lit:
		for i := range len(p.Value) {
			switch p.Value[i] {
			case '\\', '~', '*', '?', '{', '=':
				return "", false
			case '[':
				if len(p.Value) > 1 {
					return "", false
				}
			}
		}
		return p.Value, true
	case *syntax.SglQuoted:
		if !p.Dollar {
			return p.Value, true
		}
	case *syntax.DblQuoted:
		if len(p.Parts) == 1 {
			if lit, ok := p.Parts[0].(*syntax.Lit); ok && strings.IndexByte(lit.Value, '\\') < 0 {
				return lit.Value, true
			}
		}
	}
	return "", false
}

func (e *Expander) word(ctx context.Context, w *syntax.Word, out []string) ([]string, error) {
	words := []*syntax.Word{w}
	if e.Host.Option("braceexpand") {
		words = e.braces(w)
	}
	for _, w := range words {
		x := e.start(ctx)
		x.fields = true
		x.tilde = len(words) == 1 && assignment(w)
		if err := x.parts(w.Parts, unquoted); err != nil {
			return nil, err
		}
		for _, f := range x.split() {
			var err error
			if out, err = x.glob(f, out); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// assignment tells whether a word looks like NAME=VALUE.
func assignment(w *syntax.Word) bool {
	lit, ok := w.Parts[0].(*syntax.Lit)
	if !ok {
		return false
	}
	name, _, ok := strings.Cut(lit.Value, "=")
	return ok && vars.ValidName(strings.TrimSuffix(name, "+"))
}

// Literal expands a word to one string, without splitting and file names: values of assignments, targets of
// redirections, the word of case.
func (e *Expander) Literal(ctx context.Context, w *syntax.Word) (string, error) {
	return e.literal(ctx, w, false)
}

func (e *Expander) literal(ctx context.Context, w *syntax.Word, assign bool) (string, error) {
	if w == nil {
		return "", nil
	}
	x := e.start(ctx)
	x.tilde, x.assign = assign, assign
	if err := x.parts(w.Parts, unquoted); err != nil {
		return "", err
	}
	return join(x.segs), nil
}

func join(segs []seg) string {
	if len(segs) == 1 {
		return segs[0].s
	}
	var b strings.Builder
	for _, s := range segs {
		b.WriteString(s.s)
	}
	return b.String()
}

// Pattern is Literal with the quoted parts escaped, for [Expander.Match].
func (e *Expander) Pattern(ctx context.Context, w *syntax.Word) (string, error) {
	if w == nil {
		return "", nil
	}
	x := e.start(ctx)
	if err := x.parts(w.Parts, unquoted); err != nil {
		return "", err
	}
	return patternOf(x.segs), nil
}

func patternOf(segs []seg) string {
	if len(segs) == 1 && !segs[0].quoted {
		return segs[0].s
	}
	var b strings.Builder
	for _, s := range segs {
		if s.quoted {
			b.WriteString(escape(s.s))
		} else {
			b.WriteString(s.s)
		}
	}
	return b.String()
}

// Document expands the body of a here-document whose delimiter is not quoted.
func (e *Expander) Document(ctx context.Context, w *syntax.Word) (string, error) {
	if w == nil {
		return "", nil
	}
	x := e.start(ctx)
	if err := x.parts(w.Parts, document); err != nil {
		return "", err
	}
	return join(x.segs), nil
}

// RawDocument returns the body of a here-document whose delimiter is quoted: it is not expanded. False: it is to be.
func RawDocument(r *syntax.Redirect) (string, bool) {
	quoted := false
	for _, p := range r.Word.Parts {
		lit, ok := p.(*syntax.Lit)
		quoted = quoted || !ok || strings.IndexByte(lit.Value, '\\') >= 0
	}
	if !quoted {
		return "", false
	}
	var b strings.Builder
	if r.Hdoc != nil {
		for _, p := range r.Hdoc.Parts {
			if lit, ok := p.(*syntax.Lit); ok {
				b.WriteString(lit.Value)
			}
		}
	}
	return b.String(), true
}

func (x *expansion) add(s string, quoted bool) {
	x.segs = append(x.segs, seg{s: s, quoted: quoted})
}

// result adds the result of an expansion: a whole string that is split outside of quotes.
func (x *expansion) result(s string, q quoting) {
	x.segs = append(x.segs, seg{s: s, quoted: q != unquoted, split: q == unquoted})
}

func (x *expansion) parts(parts []syntax.WordPart, q quoting) error {
	for i, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			s := p.Value
			if q == unquoted && i == 0 && len(s) > 0 && (s[0] == '~' || x.tilde) {
				s = x.tildes(s, len(parts) == 1, false)
			} else if q == unquoted && x.tilde && strings.Contains(s, ":~") {
				s = x.tildes(s, i == len(parts)-1, true)
			}
			x.lit(s, q, false)
		default:
			if err := x.part(p, q); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *expansion) part(p syntax.WordPart, q quoting) error {
	switch p := p.(type) {
	case *syntax.SglQuoted:
		s := p.Value
		if p.Dollar {
			s = ansiC(s)
		} else if q == alternate {
			// Inside "${x:-'word'}" single quotes are characters.
			return x.inner("'"+s+"'", double)
		}
		x.add(s, true)
	case *syntax.DblQuoted:
		if len(p.Parts) == 0 {
			x.add("", true)
			return nil
		}
		from, empty := len(x.segs), x.empty
		if err := x.parts(p.Parts, double); err != nil {
			return err
		}
		if x.empty > empty {
			x.dropEmpty(from)
		}
	case *syntax.ParamExp:
		if p.Flags != nil || p.NestedParam != nil || p.Width || p.IsSet || p.Param == nil {
			return &BadSubst{source(p)}
		}
		return x.param(p, q)
	case *syntax.CmdSubst:
		s, err := x.Host.CommandSubst(x.ctx, p)
		if err != nil {
			return err
		}
		x.result(s, q)
	case *syntax.ArithmExp:
		n, err := x.Arithm(x.ctx, p.X)
		if err != nil {
			return err
		}
		x.result(formatInt(n), q)
	case *syntax.ProcSubst:
		s, err := x.Host.ProcessSubst(x.ctx, p)
		if err != nil {
			return err
		}
		x.add(s, true)
	case *syntax.ExtGlob:
		return x.extGlob(p, q)
	case *syntax.BraceExp:
		for _, w := range p.Elems {
			if err := x.parts(w.Parts, q); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropEmpty makes "$@" without elements no field, with everything in the same quotes when that is empty too.
func (x *expansion) dropEmpty(from int) {
	for _, s := range x.segs[from:] {
		if s.s != "" || s.end {
			return
		}
	}
	x.segs = x.segs[:from]
}

// lit adds literal text with its backslashes resolved. split: the text is in the word of ${x:-word} and is split.
func (x *expansion) lit(s string, q quoting, split bool) {
	if strings.IndexByte(s, '\\') < 0 {
		if s != "" {
			x.segs = append(x.segs, seg{s: s, quoted: q != unquoted, split: split})
		}
		return
	}
	if q != unquoted {
		var b strings.Builder
		for i := 0; i < len(s); i++ {
			if s[i] == '\\' && i+1 < len(s) && escapes(s[i+1], q) {
				i++
				if s[i] == '\n' {
					continue
				}
			}
			b.WriteByte(s[i])
		}
		x.add(b.String(), true)
		return
	}
	for s != "" {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			x.segs = append(x.segs, seg{s: s, split: split})
			return
		}
		if i > 0 {
			x.segs = append(x.segs, seg{s: s[:i], split: split})
		}
		if i+1 == len(s) {
			x.add("\\", true)
			return
		}
		_, n := utf8.DecodeRuneInString(s[i+1:])
		if s[i+1] != '\n' {
			x.add(s[i+1:i+1+n], true)
		}
		s = s[i+1+n:]
	}
}

func escapes(c byte, q quoting) bool {
	switch c {
	case '$', '`', '\\', '\n':
		return true
	case '"':
		return q != document
	case '}':
		return q == alternate
	}
	return false
}

// inner expands text as it stands in double quotes.
func (x *expansion) inner(text string, q quoting) error {
	if !strings.ContainsAny(text, "$`\\") {
		x.add(text, true)
		return nil
	}
	w, err := x.parser().Document(strings.NewReader(text))
	if err != nil {
		return &BadSubst{text}
	}
	if w == nil {
		return nil
	}
	return x.parts(w.Parts, q)
}

func (e *Expander) parser() *syntax.Parser {
	if e.parse == nil {
		e.parse = syntax.NewParser(syntax.Variant(syntax.LangBash))
	}
	return e.parse
}

// extGlob adds @(...) and its kin; what is in the parentheses the parser leaves as text.
func (x *expansion) extGlob(p *syntax.ExtGlob, q quoting) error {
	op := p.Op.String()
	x.add(op, q != unquoted)
	text := p.Pattern.Value
	for text != "" {
		i := strings.IndexAny(text, "'\"$`\\")
		if i < 0 {
			i = len(text)
		}
		if i > 0 {
			x.add(text[:i], q != unquoted)
			text = text[i:]
			continue
		}
		if text[0] == '\\' {
			x.lit(text[:min(2, len(text))], q, false)
			text = text[min(2, len(text)):]
			continue
		}
		var part syntax.WordPart
		// The parser stops with an error at what is no word, but only after it has given the word before it.
		for w, err := range x.parser().WordsSeq(strings.NewReader(text)) {
			if err == nil {
				part = w.Parts[0]
			}
			break
		}
		if part == nil {
			part = firstPart(text)
		}
		if part == nil {
			x.add(text[:1], q != unquoted)
			text = text[1:]
			continue
		}
		if _, ok := part.(*syntax.Lit); ok { // a lone dollar sign
			x.add(text[:1], q != unquoted)
			text = text[1:]
			continue
		}
		if err := x.part(part, q); err != nil {
			return err
		}
		text = text[int(part.End().Offset()):]
	}
	x.add(")", q != unquoted)
	return nil
}

// firstPart reads the quotes or the expansion that text begins with, when more of the text keeps the parser from it.
func firstPart(text string) syntax.WordPart {
	p := syntax.NewParser(syntax.Variant(syntax.LangBash))
	for end := 2; end <= len(text); end++ {
		var part syntax.WordPart
		var err error
		for w, e := range p.WordsSeq(strings.NewReader(text[:end])) {
			if err = e; e != nil {
				break
			}
			part = w.Parts[0]
		}
		if err == nil && part != nil && end < len(text) && isName(text[end]) && text[0] == '$' {
			continue // $na of $name
		}
		if err == nil && part != nil {
			return part
		}
	}
	return nil
}

func isName(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// tildes replaces the tildes of a literal: at its start, and for assignments after "=" and ":". Whole tells whether
// nothing follows the literal: a name that goes on in another part is not a user's. What is put in is escaped.
func (x *expansion) tildes(s string, whole, inside bool) string {
	var b strings.Builder
	from := 0
	if inside {
		i := strings.Index(s, ":~") + 1
		b.WriteString(s[:i])
		from = i
	} else if x.tilde {
		// In fields the name stands before: NAME=~. In values it does not.
		if i := strings.IndexByte(s, '='); i >= 0 && x.fields {
			b.WriteString(s[:i+1])
			from = i + 1
		}
	}
	for {
		end := len(s)
		stop := whole
		if i := strings.IndexAny(s[from:], "/:"); i >= 0 && (s[from+i] == '/' || x.tilde) {
			end, stop = from+i, true
		}
		if from < len(s) && s[from] == '~' && stop {
			if dir, ok := x.home(s[from+1 : end]); ok {
				b.WriteString(strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, " ", `\ `, "\t", "\\\t", "\n", "\\\n").Replace(dir))
				from = end
			}
		}
		if !x.tilde {
			break
		}
		i := strings.Index(s[from:], ":~")
		if i < 0 {
			break
		}
		b.WriteString(s[from : from+i+1])
		from += i + 1
	}
	b.WriteString(s[from:])
	return b.String()
}

func (x *expansion) home(name string) (string, bool) {
	switch name {
	case "":
		if v, ok := x.Vars.Get("HOME"); ok {
			s, _ := v.Scalar()
			return s, true
		}
		return homeOf("")
	case "+":
		v, ok := x.Vars.Get("PWD")
		return v.Str, ok
	case "-":
		v, ok := x.Vars.Get("OLDPWD")
		return v.Str, ok
	}
	for i := range len(name) {
		if !isName(name[i]) && name[i] != '-' && name[i] != '.' {
			return "", false
		}
	}
	return homeOf(name)
}

// homeOf looks a user up. In the guest there is no list of users, and the guest is the only one.
func homeOf(name string) (string, bool) {
	switch name {
	case "", "guest":
		return "/home/guest", true
	case "root":
		return "/root", true
	}
	users, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(users)) {
		if f := strings.Split(line, ":"); len(f) > 5 && f[0] == name {
			return f[5], true
		}
	}
	return "", false
}

// separators is what IFS says.
type separators struct {
	text  string
	class [256]byte // 1: white space, 2: other separator, 3: first byte of a longer one
	first string    // what joins "$*"
}

func (e *Expander) ifs() *separators {
	text, ok := " \t\n", true
	v, set := e.Vars.Get("IFS")
	if set {
		text, ok = v.Scalar()
		if !ok {
			text = ""
		}
	}
	if e.seps != nil && e.seps.text == text {
		return e.seps
	}
	s := &separators{text: text}
	for i, r := range text {
		n := utf8.RuneLen(r)
		if r == utf8.RuneError {
			n = 1
		}
		if i == 0 {
			s.first = text[:n]
		}
		switch {
		case r == ' ' || r == '\t' || r == '\n':
			s.class[r] = 1
		case n == 1:
			s.class[text[i]] = 2
		default:
			s.class[text[i]] = 3
		}
	}
	e.seps = s
	return s
}

// at tells what kind of separator s begins with, 0 for none, and its length.
func (s *separators) at(text string) (byte, int) {
	c := s.class[text[0]]
	if c != 3 {
		return c, 1
	}
	_, n := utf8.DecodeRuneInString(text)
	if strings.Contains(s.text, text[:n]) {
		return 2, n
	}
	return 0, n
}

// split makes fields of the segments.
func (x *expansion) split() [][]seg {
	if len(x.segs) == 1 && x.segs[0].quoted {
		return [][]seg{x.segs}
	}
	var (
		fields [][]seg
		field  []seg
		have   bool // there is a field, though it may be empty
		after  bool // the last field ended at white space: one more separator belongs to that
		ifs    = x.ifs()
	)
	end := func() {
		fields = append(fields, field)
		field, have = nil, false
	}
	for _, s := range x.segs {
		switch {
		case s.end:
			if have {
				end()
			}
			after = false
		case !s.split || s.s != "" && ifs.text == "":
			if s.quoted || s.s != "" {
				field = append(field, seg{s: s.s, quoted: s.quoted})
				have, after = true, false
			}
		default:
			text := s.s
			from := 0
			for i := 0; i < len(text); {
				class, n := ifs.at(text[i:])
				if class == 0 {
					i += n
					continue
				}
				if i > from {
					field = append(field, seg{s: text[from:i]})
					have, after = true, false
				}
				switch {
				case class == 1 && have:
					end()
					after = true
				case class == 1:
				case have:
					end()
					after = false
				case after:
					after = false
				default:
					have = true
					end()
				}
				i += n
				from = i
			}
			if from < len(text) {
				field = append(field, seg{s: text[from:]})
				have, after = true, false
			}
		}
	}
	if have {
		end()
	}
	return fields
}

// Separator tells what text begins with: 1, white space that separates words; 2, another separator of IFS; 0, neither.
// The second result is its length. Text must not be empty.
func (e *Expander) Separator(text string) (byte, int) {
	s := e.ifs()
	return s.at(text)
}
