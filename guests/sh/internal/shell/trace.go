package shell

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/expand"
	"mvdan.cc/sh/v3/syntax"
)

// trace writes a line of set -x.
func (s *Shell) trace(format string, args ...any) { s.traceWith("", format, args...) }

// traceWith is trace with a PS4 that has been expanded.
func (s *Shell) traceWith(ps4, format string, args ...any) {
	fd := 2
	if v := s.vars.Str("BASH_XTRACEFD"); v != "" {
		if n, err := strconv.Atoi(v); err == nil && s.fd(n) != nil {
			fd = n
		}
	}
	if ps4 == "" {
		ps4 = s.ps4()
	}
	io.WriteString(s.stream(context.Background(), fd), ps4+fmt.Sprintf(format, args...)+"\n")
}

// ps4 expands PS4; its first character is repeated for each level of subshells.
func (s *Shell) ps4() string {
	v, ok := s.vars.Get("PS4")
	if !ok {
		return ""
	}
	text := v.Str
	if strings.ContainsAny(text, "$`\\") {
		if w, err := newParser().Document(strings.NewReader(text)); err == nil {
			// Its own expansion is not traced, and changes nothing that the script can see.
			on, status, subst, code := s.opts, s.status, s.subst, s.substCode
			s.opts.put(optXtrace, false)
			if out, err := s.exp.Document(context.Background(), w); err == nil {
				text = out
			}
			s.opts, s.status, s.subst, s.substCode = on, status, subst, code
		}
	}
	if text == "" {
		return ""
	}
	first := []rune(text)[0]
	return strings.Repeat(string(first), s.traceLevel) + text
}

func (s *Shell) traceFields(fields []string) {
	quoted := make([]string, len(fields))
	for i, f := range fields {
		quoted[i] = quoteTrace(f)
	}
	s.trace("%s", strings.Join(quoted, " "))
}

// traceAssign shows an assignment that has been made; ps4 is what PS4 was before.
func (s *Shell) traceAssign(a *syntax.Assign, ps4 string) {
	if a.Array != nil || a.Index != nil || a.Name == nil {
		s.traceWith(ps4, "%s", s.nodeText(a))
		return
	}
	if a.Append {
		if !pure(a.Value) {
			s.traceWith(ps4, "%s", s.nodeText(a))
			return
		}
		text, err := s.exp.Literal(context.Background(), a.Value)
		if err == nil {
			s.traceWith(ps4, "%s+=%s", a.Name.Value, quoteValue(text))
		}
		return
	}
	s.traceWith(ps4, "%s=%s", a.Name.Value, quoteValue(s.vars.Str(a.Name.Value)))
}

func quoteValue(v string) string {
	if v == "" {
		return ""
	}
	return quoteTrace(v)
}

// quoteTrace quotes a word as set -x does, which leaves tabs and line ends as they are.
func quoteTrace(word string) string {
	if word != "" && strings.ContainsAny(word, "\t\n") && !strings.ContainsFunc(word, func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' || r == 0x7f }) {
		return quoteSingle(word)
	}
	return expand.Quote(word, false)
}

func (s *Shell) traceDecl(c *syntax.DeclClause) {
	parts := []string{c.Variant.Value}
	for _, a := range c.Args {
		switch {
		case a.Array != nil || a.Index != nil || a.Value != nil && !pure(a.Value):
			parts = append(parts, s.nodeText(a))
		case a.Value == nil && a.Naked:
			parts = append(parts, a.Name.Value)
		default:
			text := ""
			if a.Value != nil {
				text, _ = s.exp.Literal(context.Background(), a.Value)
			}
			if a.Name != nil {
				eq := "="
				if a.Append {
					eq = "+="
				}
				text = a.Name.Value + eq + text
			}
			parts = append(parts, quoteTrace(text))
		}
	}
	s.trace("%s", strings.Join(parts, " "))
}

// pure tells whether a word can be expanded twice: it runs nothing and assigns nothing.
func pure(w *syntax.Word) bool {
	ok := true
	if w != nil {
		syntax.Walk(w, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ArithmExp:
				ok = false
			case *syntax.ParamExp:
				if n.Exp != nil || n.Index != nil || n.Slice != nil {
					ok = false
				}
			}
			return ok
		})
	}
	return ok
}

func (s *Shell) traceFor(loop *syntax.WordIter) {
	text := "for " + loop.Name.Value
	if loop.InPos.IsValid() {
		text += " in"
		for _, w := range loop.Items {
			text += " " + s.nodeText(w)
		}
	} else {
		text += ` in "$@"`
	}
	s.trace("%s", text)
}

// test evaluates [[ ]] part by part, with a line for each that is looked at.
func (s *Shell) test(ctx context.Context, x syntax.TestExpr) (bool, error) {
	switch x := x.(type) {
	case *syntax.ParenTest:
		return s.test(ctx, x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsNot {
			if u, isUnary := x.X.(*syntax.UnaryTest); isUnary && u.Op != syntax.TsNot {
				if w, isWord := u.X.(*syntax.Word); isWord {
					s.trace("[[ ! %v %s ]]", u.Op, s.traceWord(w, false))
					ok, err := s.exp.Test(ctx, u)
					return !ok, err
				}
			}
			ok, err := s.test(ctx, x.X)
			return !ok, err
		}
		if w, isWord := x.X.(*syntax.Word); isWord {
			s.trace("[[ %v %s ]]", x.Op, s.traceWord(w, false))
		}
	case *syntax.BinaryTest:
		if x.Op == syntax.AndTest || x.Op == syntax.OrTest {
			ok, err := s.test(ctx, x.X)
			if err != nil || ok == (x.Op == syntax.OrTest) {
				return ok, err
			}
			return s.test(ctx, x.Y)
		}
		left, isWord := x.X.(*syntax.Word)
		right, isWord2 := x.Y.(*syntax.Word)
		if isWord && isWord2 {
			pattern := x.Op == syntax.TsMatch || x.Op == syntax.TsMatchShort || x.Op == syntax.TsNoMatch
			s.trace("[[ %s %v %s ]]", s.traceWord(left, false), x.Op, s.traceWord(right, pattern))
		}
	case *syntax.Word:
		s.trace("[[ -n %s ]]", s.traceWord(x, false))
	}
	return s.exp.Test(ctx, x)
}

// traceWord is an operand of [[ ]]; of a pattern the quoted parts are shown with backslashes.
func (s *Shell) traceWord(w *syntax.Word, pattern bool) string {
	if !pure(w) {
		return s.nodeText(w)
	}
	expanded := s.exp.Literal
	if pattern {
		expanded = s.exp.Pattern
	}
	text, err := expanded(context.Background(), w)
	switch {
	case err != nil:
		return s.nodeText(w)
	case text == "":
		return "''"
	}
	return text
}
