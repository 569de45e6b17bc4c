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
func (s *Shell) trace(format string, args ...any) {
	fd := 2
	if v := s.vars.Str("BASH_XTRACEFD"); v != "" {
		if n, err := strconv.Atoi(v); err == nil && s.fd(n) != nil {
			fd = n
		}
	}
	io.WriteString(s.stream(context.Background(), fd), s.ps4()+fmt.Sprintf(format, args...)+"\n")
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
		quoted[i] = expand.Quote(f, false)
	}
	s.trace("%s", strings.Join(quoted, " "))
}

func (s *Shell) traceAssign(a *syntax.Assign) {
	if a.Array != nil || a.Index != nil || a.Name == nil {
		s.trace("%s", s.nodeText(a))
		return
	}
	if a.Append {
		if !pure(a.Value) {
			s.trace("%s", s.nodeText(a))
			return
		}
		text, err := s.exp.Literal(context.Background(), a.Value)
		if err == nil {
			s.trace("%s+=%s", a.Name.Value, quoteValue(text))
		}
		return
	}
	s.trace("%s=%s", a.Name.Value, quoteValue(s.vars.Str(a.Name.Value)))
}

func quoteValue(v string) string {
	if v == "" {
		return ""
	}
	return expand.Quote(v, false)
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
			parts = append(parts, expand.Quote(text, false))
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
			ok, err := s.test(ctx, x.X)
			return !ok, err
		}
		if w, isWord := x.X.(*syntax.Word); isWord {
			s.trace("[[ %v %s ]]", x.Op, s.traceWord(w))
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
			s.trace("[[ %s %v %s ]]", s.traceWord(left), x.Op, s.traceWord(right))
		}
	case *syntax.Word:
		s.trace("[[ -n %s ]]", s.traceWord(x))
	}
	return s.exp.Test(ctx, x)
}

func (s *Shell) traceWord(w *syntax.Word) string {
	if !pure(w) {
		return s.nodeText(w)
	}
	text, err := s.exp.Literal(context.Background(), w)
	if err != nil {
		return s.nodeText(w)
	}
	return expand.Quote(text, false)
}
