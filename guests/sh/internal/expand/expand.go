// Package expand expands words, patterns, here-documents, arithmetic and conditional expressions as bash 5.2 does.
package expand

import (
	"context"

	"github.com/exthost/exthost/guests/sh/internal/regex"
	"github.com/exthost/exthost/guests/sh/internal/vars"
	"mvdan.cc/sh/v3/syntax"
)

// Host is the shell that words are expanded for.
type Host interface {
	vars.Dynamic

	// Params returns the positional parameters from $1.
	Params() []string
	// Option tells whether an option of set or shopt is on, by its long name: nounset, noglob, nullglob, dotglob, extglob,
	// globstar, failglob, nocaseglob, nocasematch, patsub_replacement, globskipdots, noglob, braceexpand, posix, allexport, xpg_echo ...
	Option(name string) bool
	// CommandSubst runs a command substitution and returns its output without the line ends at its end.
	CommandSubst(ctx context.Context, c *syntax.CmdSubst) (string, error)
	// ProcessSubst starts a process substitution and returns the path that names its pipe.
	ProcessSubst(ctx context.Context, p *syntax.ProcSubst) (string, error)
	// Dir is the absolute working directory.
	Dir() string
	// Warn writes a warning ("warning: ...") to standard error, after the shell's own "NAME: line N: ".
	Warn(text string)
	// Executable tells whether an absolute path names a bundled command; there is no such file, but it can be run.
	Executable(path string) bool
	// Terminal tells whether a descriptor is a terminal.
	Terminal(fd int) bool
}

// Expander expands for one shell. It is not safe for concurrent use; a subshell has its own.
type Expander struct {
	Vars *vars.Table
	Host Host

	patterns map[patternKey]*pattern
	regexes  map[regexKey]*regex.Regexp
	seps     *separators
	parse    *syntax.Parser

	// Getopts is how far getopts has come in a word of several options.
	Getopts struct {
		Pos    int
		Writes uint // [vars.Table.OptindWrites] after its own
	}
}

// New returns an expander, and makes it the one that evaluates arithmetic and warns for v.
func New(v *vars.Table, h Host) *Expander {
	e := &Expander{Vars: v, Host: h}
	v.Eval = func(text string) (int64, error) {
		text, err := e.Subscript("", text)
		if err != nil {
			return 0, err
		}
		return e.Eval(text)
	}
	v.Warn = h.Warn
	return e
}

// UnsetError is the use of an unset parameter: under nounset, or by ${x?}. It ends a shell that is not interactive.
type UnsetError struct {
	Name, Text string
	Asked      bool // ${x?}
	Length     bool // ${#x[@]}: not the exit code of others with -c
}

func (e *UnsetError) Error() string { return e.Name + ": " + e.Text }

// BadSubst is a parameter expansion that has no meaning.
type BadSubst struct{ Text string }

func (e *BadSubst) Error() string { return e.Text + ": bad substitution" }

// ArithError is a mistake in an arithmetic expression, worded as bash does.
type ArithError struct{ Text string }

func (e *ArithError) Error() string { return e.Text }

// NoMatch is a pattern without a match under failglob.
type NoMatch struct{ Pattern string }

func (e *NoMatch) Error() string { return "no match: " + e.Pattern }

// RegexError is a malformed regular expression of =~, on which [[ ]] has the exit code 2. As in bash it says nothing.
type RegexError struct{}

func (e *RegexError) Error() string { return "" }
