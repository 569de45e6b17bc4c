package shell

import (
	"strings"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/expand"
	"github.com/exthost/exthost/guests/sh/internal/vars"
	"mvdan.cc/sh/v3/syntax"
)

// functionText is a function as declare -f prints it.
func (s *Shell) functionText(name string) (string, bool) {
	f, ok := s.funcs[name]
	if !ok {
		return "", false
	}
	var b strings.Builder
	syntax.NewPrinter(syntax.Indent(4), syntax.SwitchCaseIndent(true), syntax.FunctionNextLine(true)).Print(&b, f.body)
	return name + " () \n" + strings.TrimSuffix(b.String(), "\n"), true
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

func (s *Shell) commandText() string { return "" }

var _ = expand.Quote
