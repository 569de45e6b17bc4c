// Package expand expands words, patterns, here-documents, arithmetic and conditional expressions as bash 5.2 does.
package expand

import (
	"context"

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
}

// New returns an expander, and makes it the one that evaluates arithmetic for v.
func New(v *vars.Table, h Host) *Expander { return &Expander{Vars: v, Host: h} }

// Fields expands words to fields: braces, tilde, parameters, commands, arithmetic, splitting, file names, quotes.
func (e *Expander) Fields(ctx context.Context, words ...*syntax.Word) ([]string, error) {
	return nil, nil
}

// Literal expands a word to one string, without splitting and file names: assignments, redirections' targets after
// their own check, the word of case.
func (e *Expander) Literal(ctx context.Context, w *syntax.Word) (string, error) { return "", nil }

// Pattern is Literal with the quoted parts escaped, for [Expander.Match].
func (e *Expander) Pattern(ctx context.Context, w *syntax.Word) (string, error) { return "", nil }

// Document expands the body of a here-document.
func (e *Expander) Document(ctx context.Context, w *syntax.Word) (string, error) { return "", nil }

// Arithm evaluates an arithmetic expression; nil is 0.
func (e *Expander) Arithm(ctx context.Context, x syntax.ArithmExpr) (int64, error) { return 0, nil }

// Test evaluates the expression of [[ ]].
func (e *Expander) Test(ctx context.Context, x syntax.TestExpr) (bool, error) { return false, nil }

// Match tells whether a pattern matches the whole of s (case, with nocasematch).
func (e *Expander) Match(pattern, s string) bool { return false }

// Declare says what a declaration does to the variables it names.
type Declare struct {
	Add, Remove   vars.Attr
	Kind          vars.Kind // Indexed for -a, Assoc for -A
	Local, Global bool
}

// Assign carries out an assignment, with what the declaration around it says (the zero Declare: none).
func (e *Expander) Assign(ctx context.Context, a *syntax.Assign, d Declare) error { return nil }

// AssignTemp carries out an assignment before a command, in the scope that [vars.Table.PushTemp] began.
func (e *Expander) AssignTemp(ctx context.Context, a *syntax.Assign) error { return nil }

// Quote returns s as ${s@Q} and set -x write it: quoted only where it is needed when always is false.
func Quote(s string, always bool) string { return s }

// UnsetError is the use of an unset parameter: under nounset, or by ${x?}. It ends a shell that is not interactive.
type UnsetError struct{ Name, Text string }

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

// RegexError is a malformed regular expression of =~, on which [[ ]] has the exit code 2.
type RegexError struct{ Text string }

func (e *RegexError) Error() string { return e.Text }
