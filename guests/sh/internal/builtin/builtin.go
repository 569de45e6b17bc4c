// Package builtin holds the built-in commands that work on data: variables, text, tests, input.
package builtin

import (
	"context"
	"io"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Context is what a built-in command runs in.
type Context struct {
	*expand.Expander
	Stdin          io.Reader // may be an [Unreader] and a [Deadliner]
	Stdout, Stderr io.Writer
	// Fd returns the reader and the writer of an open descriptor; one that the descriptor is not for is nil.
	Fd func(n int) (io.Reader, io.Writer, error)
	Sh Shell
}

// Shell is what built-in commands need of the executor.
type Shell interface {
	// Prefix is what bash puts before messages: "script.sh: line 12: ".
	Prefix() string
	// Function returns the definition of a function as declare -f prints it.
	Function(name string) (string, bool)
	// FunctionAttr returns and changes what declare -Fp, export -f and readonly -f show: Export and ReadOnly.
	FunctionAttr(name string, export, readonly bool) bool
	// Functions returns the names of all functions, sorted.
	Functions() []string
	// UnsetFunction removes a function; false: there is none. An error when it is read-only.
	UnsetFunction(name string) (bool, error)
	// Started is when the shell started, for printf's %(...)T.
	Started() time.Time
	// Eval runs text as commands: mapfile -C.
	Eval(ctx context.Context, text string) (int, error)
}

// Unreader is an input that takes back what was read too far.
type Unreader interface{ Unread(p []byte) }

// Deadliner is an input whose reads can be given a time to end; they return os.ErrDeadlineExceeded then.
type Deadliner interface{ SetReadDeadline(t time.Time) error }

// Func runs a built-in command. Its error is one that ends more than the command (an error of expansion); the executor
// reports it and decides.
type Func func(ctx context.Context, c *Context, args []string) (int, error)

// Table holds the commands by name. Args are without the name.
var Table = map[string]Func{}

// Decl runs declare, typeset, local, export, readonly and nameref as the parser found them.
func Decl(ctx context.Context, c *Context, d *syntax.DeclClause) (int, error) { return 0, nil }

// Commands are echo, printf, test and [ for other commands to run: xargs printf, find -exec test.
var Commands = map[string]cmd.Func{}
