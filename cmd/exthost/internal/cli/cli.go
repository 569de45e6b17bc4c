// Package cli is the command line of exthost: one table of commands over package host and package policy.
//
// stdout carries the answer or nothing; warnings, hints and progress go to stderr. Text that a guest, a skill or a
// policy file supplied is escaped before it is printed. Nothing here is authority: a command turns what a person asked
// for into a policy and hands it to package host, which decides.
package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Exit codes of exthost itself. run and wasi pass a guest's 0..255 through; their own are the codes from 124 on.
const (
	exitOK        = 0
	exitFinding   = 1   // a finding: the policy has errors, a test of it failed, authority grew
	exitCannot    = 2   // the command could not run
	exitLimit     = 124 // a limit was reached
	exitUnable    = 125 // run, wasi: exthost could not run it; grant: no terminal
	exitDenied    = 126 // denied before the start, or --strict with a denial
	exitNotFound  = 127 // no such extension or script
	exitTrap      = 134
	maxGuestCodes = 255
)

// command is one row of the table.
type command struct {
	name     string   // "run", "policy check"
	args     string   // for the usage line
	short    string   // one line, lower case
	long     string   // optional paragraphs
	examples []string // without the leading "exthost "
	guest    bool     // exit codes of run and wasi: its own failures are 125, not 2
	stop     bool     // flags end at the first argument
	flags    func(fs *pflag.FlagSet)
	run      func(a *app, args []string) error
	dash     *int // set to the number of arguments before "--", or -1
}

// app is one invocation.
type app struct {
	ctx    context.Context
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	env    environ
	global globals
	cfg    config
	out    *terminal // stderr, with what has to be known to print on it
}

// globals are the flags that every command has.
type globals struct {
	home    string
	json    bool
	quiet   bool
	verbose bool
	noColor bool
	help    bool
}

func (g *globals) register(fs *pflag.FlagSet) {
	fs.StringVar(&g.home, "home", g.home, "`DIR` with policies and state (default $EXTHOST_HOME, else ~/.exthost)")
	fs.BoolVar(&g.json, "json", g.json, "print one JSON object on stdout; an error is one on stderr")
	fs.BoolVarP(&g.quiet, "quiet", "q", g.quiet, "no notes, hints and progress")
	fs.BoolVarP(&g.verbose, "verbose", "v", g.verbose, "say more on stderr")
	fs.BoolVar(&g.noColor, "no-color", g.noColor, "no colour on a terminal (also NO_COLOR)")
	fs.BoolVarP(&g.help, "help", "h", g.help, "print help")
}

// failure is an error with an exit code and hints for the person.
type failure struct {
	code int // 0: the command's own code for "could not run"
	err  error
	hint []string
	// silent: everything was already said.
	silent bool
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// fail makes a failure. code 0 means the command's own code for "could not run".
func fail(code int, hint, format string, args ...any) *failure {
	f := &failure{code: code, err: fmt.Errorf(format, args...)}
	if hint != "" {
		f.hint = []string{hint}
	}
	return f
}

// exit ends a command with a code and without a word.
func exit(code int) error {
	if code == exitOK {
		return nil
	}
	return &failure{code: code, err: fmt.Errorf("exit %d", code), silent: true}
}

// Main runs one command line and returns its exit code. args does not hold the program's name; env is in the form of
// os.Environ. It may be called in-process, but host.WorkerMain must have been called first thing in main.
//
// When ctx ends, a running guest is killed.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) int {
	a := &app{ctx: ctx, stdin: stdin, stdout: stdout, env: parseEnviron(env)}
	a.out = newTerminal(stderr, a.env)
	a.stderr = a.out
	cmd, err := a.dispatch(args)
	return a.finish(cmd, err)
}

// dispatch finds the command, parses its flags and runs it.
func (a *app) dispatch(args []string) (*command, error) {
	lead := newFlagSet()
	lead.SetInterspersed(false)
	a.global.register(lead)
	if err := lead.Parse(args); err != nil {
		return nil, usage(nil, err)
	}
	a.out.color = a.out.color && !a.global.noColor
	args = lead.Args()
	if len(args) == 0 {
		if a.global.help {
			return nil, a.printOverview(a.stdout)
		}
		if err := a.printOverview(a.stderr); err != nil {
			return nil, err
		}
		return nil, exit(exitCannot)
	}
	cmd, rest, err := find(args)
	if err != nil {
		return nil, err
	}
	if cmd == nil { // a noun alone: "policy", "cache", "runtime"
		if a.global.help || slices.Contains(rest, "-h") || slices.Contains(rest, "--help") {
			return nil, a.printNoun(a.stdout, args[0])
		}
		if err := a.printNoun(a.stderr, args[0]); err != nil {
			return nil, err
		}
		return nil, exit(exitCannot)
	}

	fs := newFlagSet()
	fs.SetInterspersed(!cmd.stop)
	a.global.register(fs)
	if cmd.flags != nil {
		cmd.flags(fs)
	}
	if err := fs.Parse(rest); err != nil {
		before, _, _ := cutDash(rest) // parsing stopped before it saw all flags
		a.global.json = a.global.json || slices.Contains(before, "--json")
		return cmd, usage(cmd, err)
	}
	a.out.color = a.out.color && !a.global.noColor
	if a.global.help {
		return cmd, a.printCommand(a.stdout, cmd)
	}
	if a.global.quiet && a.global.verbose {
		return cmd, usage(cmd, errors.New("-q and -v exclude each other"))
	}
	if cmd.dash != nil {
		*cmd.dash = fs.ArgsLenAtDash()
	}
	if a.cfg, err = loadConfig(a.env, a.global, fs); err != nil {
		return cmd, &failure{err: err}
	}
	return cmd, cmd.run(a, fs.Args())
}

// cutDash splits arguments at "--".
func cutDash(args []string) (before, after []string, found bool) {
	if i := slices.Index(args, "--"); i >= 0 {
		return args[:i], args[i+1:], true
	}
	return args, nil, false
}

func newFlagSet() *pflag.FlagSet {
	fs := pflag.NewFlagSet("exthost", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.SortFlags = false
	fs.Usage = func() {}
	return fs
}

// usage makes the error for a wrong command line.
func usage(cmd *command, err error) error {
	hint := "exthost help"
	if cmd != nil {
		hint = "exthost " + cmd.name + " --help"
	}
	return &failure{err: err, hint: []string{hint}}
}

// finish prints an error and returns the exit code.
func (a *app) finish(cmd *command, err error) int {
	if err == nil {
		return exitOK
	}
	own := exitCannot
	if cmd != nil && cmd.guest {
		own = exitUnable
	}
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{err: err}
	}
	code := f.code
	if code == 0 {
		code = own
	}
	if f.silent {
		return code
	}
	if a.global.json {
		a.printJSON(a.stderr, struct {
			Error    string   `json:"error"`
			ExitCode int      `json:"exit_code"`
			Hints    []string `json:"hints,omitempty"`
		}{f.err.Error(), code, f.hint})
		return code
	}
	text := f.err.Error()
	for i, line := range strings.Split(text, "\n") {
		if i == 0 {
			a.out.line("error", printable(line))
		} else {
			a.out.line("", "  "+printable(line))
		}
	}
	for _, h := range f.hint {
		a.hint(h)
	}
	return code
}

// hint prints a command or a sentence that helps. A hint that cannot be shown as it is is not shown at all.
func (a *app) hint(text string) {
	if a.global.quiet || text == "" || printable(text) != text {
		return
	}
	a.out.line("hint", text)
}

// note prints information that is not an error.
func (a *app) note(format string, args ...any) {
	if !a.global.quiet {
		a.out.line("note", printable(fmt.Sprintf(format, args...)))
	}
}

// warn prints what a person must see, whatever -q says.
func (a *app) warn(format string, args ...any) {
	a.out.line("warning", printable(fmt.Sprintf(format, args...)))
}

// debug prints under -v.
func (a *app) debug(format string, args ...any) {
	if a.global.verbose {
		a.out.line("debug", printable(fmt.Sprintf(format, args...)))
	}
}

// printJSON writes one indented object. Go's encoder escapes control bytes and makes valid UTF-8 of everything.
func (a *app) printJSON(w io.Writer, v any) error {
	data, err := encodeJSON(v)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

func encodeJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// say writes text to stdout; the first failed write ends the command.
func (a *app) say(format string, args ...any) error {
	if _, err := fmt.Fprintf(a.stdout, format, args...); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}
