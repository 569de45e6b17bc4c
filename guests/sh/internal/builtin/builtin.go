// Package builtin holds the built-in commands that work on data: variables, text, tests, input.
package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/expand"
	"github.com/exthost/exthost/guests/sh/internal/vars"
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
var Table = map[string]Func{
	":": yes, "true": yes, "false": no, "echo": echo, "printf": printf, "test": test, "[": bracket, "let": let,
	"read": read, "mapfile": mapfile, "readarray": mapfile, "getopts": getopts, "unset": unset,
	"export": plainDecl("export"), "readonly": plainDecl("readonly"), "declare": plainDecl("declare"),
	"typeset": plainDecl("typeset"), "local": plainDecl("local"),
}

func yes(context.Context, *Context, []string) (int, error) { return 0, nil }

func no(context.Context, *Context, []string) (int, error) { return 1, nil }

// errorf writes a message as bash does: "script: line 3: NAME: TEXT".
func (c *Context) errorf(name, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if name != "" {
		text = name + ": " + text
	}
	io.WriteString(c.Stderr, c.Sh.Prefix()+text+"\n")
}

// usage writes an invalid option with the command's usage, and returns its exit code.
func (c *Context) usage(name, option string) int {
	c.errorf(name, "%s: invalid option", option)
	return c.help(name)
}

func (c *Context) help(name string) int {
	io.WriteString(c.Stderr, name+": usage: "+usages[name]+"\n")
	return 2
}

var usages = map[string]string{
	"printf":   "printf [-v var] format [arguments]",
	"read":     "read [-ers] [-a array] [-d delim] [-i text] [-n nchars] [-N nchars] [-p prompt] [-t timeout] [-u fd] [name ...]",
	"mapfile":  "mapfile [-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [-C callback] [-c quantum] [array]",
	"getopts":  "getopts optstring name [arg ...]",
	"unset":    "unset [-f] [-v] [-n] [name ...]",
	"export":   "export [-fn] [name[=value] ...] or export -p",
	"readonly": "readonly [-aAf] [name[=value] ...] or readonly -p",
	"declare":  "declare [-aAfFgiIlnrtux] [name[=value] ...] or declare -p [-aAfFilnrtux] [name ...]",
	"typeset":  "typeset [-aAfFgiIlnrtux] name[=value] ... or typeset -p [-aAfFilnrtux] [name ...]",
	"local":    "local [option] name[=value] ...",
}

// recoverable tells whether an error ends the command only, after it was reported: refused assignments. Mistakes in
// expressions and parameters end more, which is for the executor.
func recoverable(err error) bool {
	var readonly *vars.ReadOnlyError
	var refused *vars.Error
	return errors.As(err, &readonly) || errors.As(err, &refused)
}

// let is the command, for arguments that the parser did not see as expressions.
func let(_ context.Context, c *Context, args []string) (int, error) {
	if len(args) == 0 {
		c.errorf("let", "expression expected")
		return 1, nil
	}
	var n int64
	for _, a := range args {
		var err error
		if n, err = c.Eval(a); err != nil {
			c.errorf("let", "%v", err)
			return 1, nil
		}
	}
	if n == 0 {
		return 1, nil
	}
	return 0, nil
}

// unset removes variables, elements and functions.
func unset(_ context.Context, c *Context, args []string) (int, error) {
	var variables, functions, refs bool
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for _, r := range a[1:] {
			switch r {
			case 'v':
				variables = true
			case 'f':
				functions = true
			case 'n':
				refs = true
			default:
				return c.usage("unset", "-"+string(r)), nil
			}
		}
	}
	if variables && functions {
		c.errorf("unset", "cannot simultaneously unset a function and a variable")
		return 1, nil
	}
	code := 0
	for _, name := range args {
		if functions {
			if _, err := c.Sh.UnsetFunction(name); err != nil {
				c.errorf("unset", "%v", err)
				code = 1
			}
			continue
		}
		if base, sub, has := vars.SplitRef(name); has {
			sub, err := c.Subscript(base, sub)
			if err == nil {
				err = c.Vars.UnsetElement(base, sub)
			}
			code = max(code, c.unsetError(err))
			continue
		}
		if !vars.ValidName(name) {
			if !variables && !refs {
				if found, err := c.Sh.UnsetFunction(name); err != nil || found {
					if err != nil {
						c.errorf("unset", "%v", err)
						code = 1
					}
					continue
				}
			}
			c.errorf("unset", "`%s': not a valid identifier", name)
			code = 1
			continue
		}
		if refs {
			code = max(code, c.unsetError(c.Vars.UnsetRaw(name)))
			continue
		}
		if _, ok := c.Vars.Raw(name); !ok && !variables {
			if found, err := c.Sh.UnsetFunction(name); err != nil || found {
				if err != nil {
					c.errorf("unset", "%v", err)
					code = 1
				}
				continue
			}
		}
		code = max(code, c.unsetError(c.Vars.Unset(name)))
	}
	return code, nil
}

func (c *Context) unsetError(err error) int {
	if err == nil {
		return 0
	}
	var readonly *vars.ReadOnlyError
	if errors.As(err, &readonly) {
		c.errorf("unset", "%s: cannot unset: readonly variable", readonly.Name)
	} else {
		c.errorf("unset", "%v", err)
	}
	return 1
}
