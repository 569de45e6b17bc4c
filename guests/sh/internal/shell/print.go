package shell

import (
	"strings"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/vars"
	"mvdan.cc/sh/v3/syntax"
)

// functionText is a function as declare -f prints it.
func (s *Shell) functionText(name string) (string, bool) {
	f, ok := s.funcs[name]
	if !ok {
		return "", false
	}
	p := &printer{src: f.src}
	p.function(name, f.body)
	return p.b.String(), true
}

// printer writes commands in the layout of bash: words as they stand in the script, everything else in lines of its own.
type printer struct {
	b      strings.Builder
	src    string
	indent int
	docs   []*syntax.Redirect // here-documents whose text follows the line
}

func (p *printer) text(n syntax.Node) string {
	from, to := n.Pos().Offset(), n.End().Offset()
	if from > to || int(to) > len(p.src) {
		return ""
	}
	return p.src[from:to]
}

func (p *printer) put(text string) { p.b.WriteString(text) }

func (p *printer) newline() {
	p.put("\n" + strings.Repeat(" ", p.indent))
}

func (p *printer) function(name string, body *syntax.Stmt) {
	p.put(name + " () ")
	p.newline()
	if _, ok := body.Cmd.(*syntax.Block); ok {
		p.stmt(body)
		return
	}
	p.put("{ ")
	p.indent += 4
	p.newline()
	p.stmt(body)
	p.indent -= 4
	p.newline()
	p.put("}")
}

// list writes statements, each on a line; the last one has a semicolon too where a reserved word follows.
func (p *printer) list(stmts []*syntax.Stmt, semicolon bool) {
	for i, st := range stmts {
		p.stmt(st)
		switch {
		case st.Background && i+1 < len(stmts):
			p.put(" ")
			continue
		case len(p.docs) > 0:
			p.documents()
			if i+1 < len(stmts) {
				p.newline()
			}
			continue
		case i+1 < len(stmts) || semicolon && !st.Background:
			p.put(";")
		}
		if i+1 < len(stmts) {
			p.newline()
		}
	}
}

func (p *printer) documents() {
	docs := p.docs
	p.docs = nil
	for _, r := range docs {
		p.put("\n")
		if r.Hdoc != nil {
			p.put(p.text(r.Hdoc))
		}
		stop := p.text(r.Word)
		p.put(strings.NewReplacer("'", "", `"`, "", `\`, "").Replace(stop) + "\n")
	}
}

// body writes a list one step to the right.
func (p *printer) body(stmts []*syntax.Stmt, semicolon bool) {
	if len(stmts) == 0 { // a pattern of case may have none
		p.put("\n")
		p.newline()
		return
	}
	p.indent += 4
	p.newline()
	p.list(stmts, semicolon)
	p.indent -= 4
	p.newline()
}

// line writes a list on one line: conditions.
func (p *printer) line(stmts []*syntax.Stmt) {
	for i, st := range stmts {
		if i > 0 {
			p.put("; ")
		}
		p.stmt(st)
	}
}

func (p *printer) stmt(st *syntax.Stmt) {
	if st.Negated {
		p.put("! ")
	}
	switch c := st.Cmd.(type) {
	case nil:
	case *syntax.Block:
		p.put("{ ")
		p.body(c.Stmts, false)
		p.put("}")
	case *syntax.Subshell:
		p.put("( ")
		p.list(c.Stmts, false)
		p.put(" )")
	case *syntax.IfClause:
		p.ifClause(c)
	case *syntax.WhileClause:
		word := "while "
		if c.Until {
			word = "until "
		}
		p.put(word)
		p.line(c.Cond)
		p.put("; do")
		p.body(c.Do, true)
		p.put("done")
	case *syntax.ForClause:
		switch loop := c.Loop.(type) {
		case *syntax.WordIter:
			word := "for "
			if c.Select {
				word = "select "
			}
			p.put(word + loop.Name.Value + " in ")
			if loop.InPos.IsValid() {
				for i, w := range loop.Items {
					if i > 0 {
						p.put(" ")
					}
					p.put(p.text(w))
				}
			} else {
				p.put(`"$@"`)
			}
			p.put(";")
		case *syntax.CStyleLoop:
			p.put("for ((")
			for i, x := range []syntax.ArithmExpr{loop.Init, loop.Cond, loop.Post} {
				if i > 0 {
					p.put("; ")
				}
				if x != nil {
					p.put(p.text(x))
				} else {
					p.put("1")
				}
			}
			p.put("))")
		}
		p.newline()
		p.put("do")
		p.body(c.Do, true)
		p.put("done")
	case *syntax.CaseClause:
		p.put("case " + p.text(c.Word) + " in ")
		p.indent += 4
		for _, item := range c.Items {
			p.newline()
			for i, w := range item.Patterns {
				if i > 0 {
					p.put(" | ")
				}
				p.put(p.text(w))
			}
			p.put(")")
			p.body(item.Stmts, false)
			p.put(item.Op.String())
		}
		p.indent -= 4
		p.newline()
		p.put("esac")
	case *syntax.BinaryCmd:
		p.stmt(c.X)
		switch c.Op {
		case syntax.PipeAll:
			p.put(" 2>&1 | ")
		default:
			p.put(" " + c.Op.String() + " ")
		}
		p.stmt(c.Y)
	case *syntax.FuncDecl:
		p.put("function ")
		p.function(c.Name.Value, c.Body)
	case *syntax.TimeClause:
		p.put("time ")
		if c.PosixFormat {
			p.put("-p ")
		}
		if c.Stmt != nil {
			p.stmt(c.Stmt)
		}
	case *syntax.CallExpr:
		for i, a := range c.Assigns {
			if i > 0 {
				p.put(" ")
			}
			p.put(p.text(a))
		}
		for i, w := range c.Args {
			if i > 0 || len(c.Assigns) > 0 {
				p.put(" ")
			}
			p.put(p.text(w))
		}
	default:
		p.put(p.text(c))
	}
	for i, r := range st.Redirs {
		if i > 0 || st.Cmd != nil {
			p.put(" ")
		}
		p.redirect(r)
	}
	if st.Background {
		p.put(" &")
	}
}

func (p *printer) ifClause(c *syntax.IfClause) {
	p.put("if ")
	p.line(c.Cond)
	p.put("; then")
	p.body(c.Then, true)
	if e := c.Else; e != nil {
		p.put("else")
		if len(e.Cond) == 0 {
			p.body(e.Then, true)
		} else {
			p.indent += 4
			p.newline()
			p.ifClause(e)
			p.put(";")
			p.indent -= 4
			p.newline()
		}
	}
	p.put("fi")
}

func (p *printer) redirect(r *syntax.Redirect) {
	if r.N != nil {
		p.put(r.N.Value)
	}
	switch r.Op {
	case syntax.DplIn, syntax.DplOut:
		if r.N == nil {
			p.put("01"[bit(r.Op == syntax.DplOut):][:1])
		}
		p.put(r.Op.String() + p.text(r.Word))
	case syntax.Hdoc, syntax.DashHdoc:
		p.put(r.Op.String() + p.text(r.Word))
		p.docs = append(p.docs, r)
	default:
		p.put(r.Op.String() + " " + p.text(r.Word))
	}
}

// Function returns the definition of a function.
func (s *Shell) Function(name string) (string, bool) { return s.functionText(name) }

// FunctionAttr tells whether there is a function; true arguments add attributes to it.
func (s *Shell) FunctionAttr(name string, export, readonly bool) bool {
	f, ok := s.funcs[name]
	if !ok {
		return false
	}
	if export || readonly {
		s.own()
		g := *f
		g.export = g.export || export
		g.readonly = g.readonly || readonly
		s.funcs[name] = &g
	}
	return true
}

// Functions returns the names of all functions.
func (s *Shell) Functions() []string { return sortedKeys(s.funcs) }

// UnsetFunction removes a function.
func (s *Shell) UnsetFunction(name string) (bool, error) {
	f, ok := s.funcs[name]
	if !ok {
		return false, nil
	}
	if f.readonly {
		return true, &vars.Error{Text: name + ": cannot unset: readonly function"}
	}
	s.own()
	delete(s.funcs, name)
	return true, nil
}

// Started is when the shell started.
func (s *Shell) Started() time.Time { return s.w.started }

// assignment is a variable as set lists it.
func (s *Shell) assignment(name string, v vars.Var) string {
	if v.Kind != vars.String {
		return ""
	}
	return name + "=" + quoteValue(v.Str) + "\n"
}

// commandText is BASH_COMMAND: the command that runs, or that the trap is for.
func (s *Shell) commandText() string {
	if s.current == nil {
		return ""
	}
	p := printer{src: s.currentSrc}
	return p.text(s.current)
}
