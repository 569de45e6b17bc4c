package builtin

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/expand"
	"github.com/exthost/exthost/guests/sh/internal/vars"
	"mvdan.cc/sh/v3/syntax"
)

// Commands are echo, printf, test and [ as programs, for other commands to run: xargs printf, find -exec test.
var Commands = map[string]cmd.Func{
	"echo": program(echo), "printf": program(printf), "test": program(test), "[": program(bracket),
}

func program(f Func) cmd.Func {
	return func(ctx context.Context, call *cmd.Call) int {
		h := &lone{call}
		c := &Context{
			Expander: expand.New(vars.New(call.Environ), h), Sh: h,
			Stdin: call.Stdin, Stdout: call.Stdout, Stderr: call.Stderr,
		}
		code, err := f(ctx, c, call.Args)
		if err != nil {
			call.Errorf("%v", err)
			return 1
		}
		return code
	}
}

// lone stands in for the shell of a command that has none around it.
type lone struct{ call *cmd.Call }

var errNoShell = errors.New("there is no shell")

func (l *lone) Special(string) (string, bool)       { return "", false }
func (l *lone) SpecialList(string) ([]string, bool) { return nil, false }
func (l *lone) SetSpecial(string, string)           {}
func (l *lone) Params() []string                    { return nil }
func (l *lone) Option(string) bool                  { return false }
func (l *lone) Dir() string                         { return l.call.Dir }
func (l *lone) Warn(text string)                    { l.call.Errorf("%s", text) }
func (l *lone) Terminal(int) bool                   { return false }

func (l *lone) CommandSubst(context.Context, *syntax.CmdSubst) (string, error) { return "", errNoShell }
func (l *lone) ProcessSubst(context.Context, *syntax.ProcSubst) (string, error) {
	return "", errNoShell
}

func (l *lone) Executable(name string) bool {
	if l.call.Shell == nil {
		return false
	}
	found, ok := l.call.Shell.Find(l.call, name[strings.LastIndexByte(name, '/')+1:])
	return ok && found == name
}

func (l *lone) Prefix() string                            { return "" }
func (l *lone) Function(string) (string, bool)            { return "", false }
func (l *lone) FunctionAttr(string, bool, bool) bool      { return false }
func (l *lone) Functions() []string                       { return nil }
func (l *lone) UnsetFunction(string) (bool, error)        { return false, nil }
func (l *lone) Started() time.Time                        { return time.Now() }
func (l *lone) Eval(context.Context, string) (int, error) { return 0, errNoShell }
