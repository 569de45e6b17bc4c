package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/ask"
	"github.com/exthost/exthost/guests/sh/internal/builtin"
	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/expand"
	"github.com/exthost/exthost/guests/sh/internal/vars"
	"mvdan.cc/sh/v3/syntax"
)

// call runs a simple command.
func (s *Shell) call(ctx context.Context, c *syntax.CallExpr, redirs []*syntax.Redirect) {
	s.debugTrap(ctx)
	s.subst = false
	if len(c.Args) == 0 {
		s.assignments(ctx, c.Assigns, redirs)
		return
	}
	args := c.Args
	assigns := c.Assigns
	if s.opts.has(optExpandAliases) {
		if done := s.expandAlias(ctx, c, redirs); done {
			return
		}
	}
	fields, err := s.exp.Fields(ctx, args...)
	if err != nil {
		s.fail(err)
		return
	}
	if len(fields) == 0 {
		s.assignments(ctx, assigns, redirs)
		return
	}
	saved, ok := s.redirect(ctx, redirs)
	if !ok {
		s.restore(saved)
		if s.jump == jumpNone {
			s.setStatus(1)
		}
		return
	}
	if len(assigns) > 0 {
		s.vars.PushTemp()
		for _, a := range assigns {
			ps4 := ""
			if s.opts.has(optXtrace) {
				ps4 = s.ps4()
			}
			err := s.exp.AssignTemp(ctx, a)
			var readOnly *vars.ReadOnlyError
			if errors.As(err, &readOnly) {
				// The command runs all the same, with the value that cannot be changed.
				s.errorf("%v", err)
				continue
			}
			if err != nil {
				s.vars.Pop()
				s.restore(saved)
				s.fail(err)
				return
			}
			if s.opts.has(optXtrace) {
				s.traceAssign(a, ps4)
			}
		}
		defer s.vars.Pop()
	}
	if s.opts.has(optXtrace) {
		s.traceFields(fields)
	}
	lasting := false
	defer func() {
		// Also when a signal unwinds: a trap of EXIT writes to where the shell writes.
		if lasting {
			s.forget(saved)
		} else {
			s.restore(saved)
		}
	}()
	code := s.runFields(ctx, fields, runAll)
	if fields[0] == "exec" && len(fields) == 1 {
		lasting = true
	}
	s.lastArg = fields[len(fields)-1]
	switch s.jump {
	case jumpDiscard, jumpExit, jumpReturn:
		code = s.status // a trap or an error said how it ends
	}
	s.setStatus(code)
}

// assignments runs a command that is nothing but assignments and redirections.
func (s *Shell) assignments(ctx context.Context, assigns []*syntax.Assign, redirs []*syntax.Redirect) {
	if len(redirs) > 0 {
		saved, ok := s.redirect(ctx, redirs)
		defer s.restore(saved)
		if !ok {
			if s.jump == jumpNone {
				s.setStatus(1)
			}
			return
		}
	}
	for _, a := range assigns {
		var d expand.Declare
		if s.opts.has(optAllexport) {
			d.Add = attrExport
		}
		ps4 := ""
		if s.opts.has(optXtrace) {
			ps4 = s.ps4()
		}
		if err := s.exp.Assign(ctx, a, d); err != nil {
			s.fail(err)
			return
		}
		if s.opts.has(optXtrace) {
			s.traceAssign(a, ps4)
		}
	}
	code := 0
	if s.subst {
		code = s.substCode
	}
	s.setStatus(code)
}

// declare runs declare, local, export and the like, as the parser knows them.
func (s *Shell) declare(ctx context.Context, c *syntax.DeclClause, redirs []*syntax.Redirect) {
	s.debugTrap(ctx)
	if _, ok := s.funcs[c.Variant.Value]; ok {
		// Somebody's own function of that name: its arguments are words.
		s.call(ctx, &syntax.CallExpr{Args: declWords(c)}, redirs)
		return
	}
	saved, ok := s.redirect(ctx, redirs)
	defer s.restore(saved)
	if !ok {
		if s.jump == jumpNone {
			s.setStatus(1)
		}
		return
	}
	if s.opts.has(optXtrace) {
		s.traceDecl(c)
	}
	if c.Variant.Value == "local" && s.vars.InFunction() {
		if c = s.localOptions(c); c == nil {
			s.setStatus(0)
			return
		}
	}
	code, err := builtin.Decl(ctx, s.context(ctx), c)
	if err != nil {
		s.fail(err)
		return
	}
	s.lastArg = c.Variant.Value
	s.setStatus(code)
}

// localOptions carries out "local -": the options are as they were when the function ends. It returns what else is local,
// nil for nothing.
func (s *Shell) localOptions(c *syntax.DeclClause) *syntax.DeclClause {
	rest := make([]*syntax.Assign, 0, len(c.Args))
	for _, a := range c.Args {
		if a.Name == nil && a.Value != nil && a.Value.Lit() == "-" {
			opts := s.opts
			for i := len(s.frames) - 1; i >= 0; i-- {
				if f := &s.frames[i]; f.isFunc {
					if f.opts == nil {
						f.opts = &opts
					}
					break
				}
			}
			continue
		}
		rest = append(rest, a)
	}
	if len(rest) == len(c.Args) {
		return c
	}
	if len(rest) == 0 {
		return nil
	}
	return &syntax.DeclClause{Variant: c.Variant, Args: rest}
}

func declWords(c *syntax.DeclClause) []*syntax.Word {
	words := []*syntax.Word{{Parts: []syntax.WordPart{c.Variant}}}
	for _, a := range c.Args {
		w := &syntax.Word{}
		if a.Name != nil {
			w.Parts = append(w.Parts, a.Name)
			if !a.Naked {
				eq := "="
				if a.Append {
					eq = "+="
				}
				w.Parts = append(w.Parts, &syntax.Lit{ValuePos: a.Name.ValueEnd, ValueEnd: a.Name.ValueEnd, Value: eq})
			}
		}
		if a.Value != nil {
			w.Parts = append(w.Parts, a.Value.Parts...)
		}
		words = append(words, w)
	}
	return words
}

// context is what the built-in commands on data run in.
func (s *Shell) context(ctx context.Context) *builtin.Context {
	return &builtin.Context{
		Expander: s.exp, Stdin: s.stream(ctx, 0), Stdout: s.stream(ctx, 1), Stderr: s.stream(ctx, 2),
		Fd: func(n int) (io.Reader, io.Writer, error) {
			d := s.fd(n)
			if d == nil {
				return nil, nil, syscall.EBADF
			}
			st := s.stream(ctx, n)
			var r io.Reader
			var w io.Writer
			if d.canRead {
				r = st
			}
			if d.canWrite {
				w = st
			}
			return r, w, nil
		},
		Sh: s,
	}
}

// kinds says what runFields may run.
type kinds uint8

const (
	runFunctions kinds = 1 << iota
	runBuiltins
	runFiles
	runAll = runFunctions | runBuiltins | runFiles
)

// runFields runs a command that has been expanded, and returns its code.
func (s *Shell) runFields(ctx context.Context, fields []string, what kinds) int {
	name := fields[0]
	if what&runFunctions != 0 {
		if f, ok := s.funcs[name]; ok {
			return s.callFunction(ctx, f, fields)
		}
	}
	if what&runBuiltins != 0 {
		if b := ownBuiltin(name); b != nil {
			return b(s, &callCtx{ctx, s}, fields[1:])
		}
		if b, ok := builtin.Table[name]; ok {
			code, err := b(ctx, s.context(ctx), fields[1:])
			if err != nil {
				s.fail(err)
				return s.status
			}
			return code
		}
	}
	if what&runFiles == 0 {
		s.errorf("builtin: %s: not a shell builtin", name)
		return 1
	}
	return s.external(ctx, fields, s.environ())
}

// callFunction calls a function; fields are its name and its arguments.
func (s *Shell) callFunction(ctx context.Context, f *function, fields []string) int {
	if !s.enter(f.name) {
		return s.status
	}
	s.vars.Push()
	s.frames = append(s.frames, frame{name: f.name, source: f.source, line: s.line, params: s.params, isFunc: true})
	params, sets, loops, base, line, src := s.params, s.setCount, s.loops, s.base, s.line, s.src
	s.params, s.loops, s.base, s.src = fields[1:], 0, f.base, f.src
	hidden := s.hideTraps()
	defer func() {
		s.vars.Pop()
		if opts := s.frames[len(s.frames)-1].opts; opts != nil {
			s.opts.set = opts.set
		}
		s.frames = s.frames[:len(s.frames)-1]
		s.params, s.setCount, s.loops, s.base, s.line, s.src = params, sets, loops, base, line, src
		s.leave()
	}()
	s.stmt(ctx, f.body)
	if s.jump == jumpReturn {
		s.jump = jumpNone
	}
	s.returnTrap(ctx)
	s.showTraps(hidden)
	return s.status
}

func (s *Shell) define(c *syntax.FuncDecl) {
	name := c.Name.Value
	if old, ok := s.funcs[name]; ok && old.readonly {
		s.errorf("%s: readonly function", name)
		s.setStatus(1)
		return
	}
	s.own()
	s.funcs[name] = &function{name: name, body: c.Body, source: s.source(), base: s.base, src: s.src, line: int(c.Pos().Line()) + s.base}
	s.setStatus(0)
}

// Commands that are files.

// bundled returns a command of the guest's own by the path where it would be.
func (w *World) bundled(file string) (cmd.Func, bool) {
	dir, name := path.Split(file)
	switch dir {
	case "/usr/bin/", "/bin/":
		f, ok := w.commands[name]
		return f, ok
	}
	return nil, false
}

// found is a command that is a file.
type found struct {
	path string
	run  cmd.Func // nil: a script
}

// errNotFound is a name that is not in PATH.
var errNotFound = errors.New("command not found")

// find looks for a command as execvp does.
func (s *Shell) find(name string) (found, error) {
	if strings.Contains(name, "/") {
		full := s.abs(name)
		info, err := os.Stat(full)
		if err != nil {
			if f, ok := s.w.bundled(path.Clean(full)); ok {
				return found{path.Clean(full), f}, nil
			}
			return found{}, err
		}
		if info.IsDir() {
			return found{}, syscall.EISDIR
		}
		if f, ok := s.w.bundled(full); ok && !info.Mode().IsRegular() {
			return found{full, f}, nil
		}
		return found{path: full}, nil
	}
	if h, ok := s.hashed[name]; ok {
		h.hits++
		f, _ := s.w.bundled(h.path)
		if f != nil || fileExists(h.path) {
			return found{h.path, f}, nil
		}
	}
	f, ok := s.search(name)
	if !ok {
		return found{}, errNotFound
	}
	s.own()
	s.hashed[name] = &hashed{path: f.path, hits: 1}
	return f, nil
}

func fileExists(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

// search goes through PATH.
func (s *Shell) search(name string) (found, bool) {
	if name == "" || name == "." || name == ".." {
		return found{}, false
	}
	for dir := range strings.SplitSeq(s.vars.Str("PATH"), ":") {
		if dir == "" {
			dir = "."
		}
		full := strings.TrimSuffix(s.abs(dir), "/") + "/" + name
		if f, ok := s.w.bundled(full); ok {
			return found{full, f}, true
		}
		if s.w.missing(s.abs(dir)) {
			continue
		}
		if fileExists(full) {
			return found{path: full}, true
		}
	}
	return found{}, false
}

// missing tells whether a folder of PATH that the system would have is not there: nobody makes those.
func (w *World) missing(dir string) bool {
	switch dir {
	case "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/sbin", "/usr/bin", "/bin":
		return true
	}
	return false
}

// external runs a command that is a file.
func (s *Shell) external(ctx context.Context, fields []string, environ []string) int {
	name := fields[0]
	f, err := s.find(name)
	if err != nil {
		return s.notFound(name, fields[1:], err)
	}
	c := &cmd.Call{
		Name: path.Base(name), Args: fields[1:],
		Stdin: s.stream(ctx, 0), Stdout: s.stream(ctx, 1), Stderr: s.stream(ctx, 2),
		Dir: s.dir, Environ: environ, Umask: s.umask, Shell: &caller{s},
	}
	return s.w.run(ctx, c, f, name)
}

// notFound reports a command that cannot be run, and returns 126 or 127.
func (s *Shell) notFound(name string, args []string, err error) int {
	switch {
	case errors.Is(err, errNotFound):
		if h, ok := s.funcs["command_not_found_handle"]; ok {
			return s.callFunction(context.Background(), h, append([]string{h.name, name}, args...))
		}
		if validName(name) {
			// The report of the run tells what the script wanted; the answer is always no.
			_ = ask.Program(name, nil) // its arguments are its own, and may be secret
		}
		s.errorf("%s: command not found", name)
		return 127
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		s.errorf("%s: %s", name, reason(err))
		if errors.Is(err, syscall.ENOTDIR) {
			return 126
		}
		return 127
	}
	s.errorf("%s: %s", name, reason(err))
	return 126
}

// validName tells whether a command's name is one that a program could have.
func validName(name string) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._+-", r):
		default:
			return false
		}
	}
	return true
}

// run runs a command or a script. A mistake in a command's code ends the command only.
func (w *World) run(ctx context.Context, c *cmd.Call, f found, name string) (code int) {
	if f.run == nil {
		return w.runScript(ctx, c, f.path, name)
	}
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(cmd.Signal); ok {
				panic(p)
			}
			fmt.Fprintf(c.Stderr, "%s: internal error: %v\n", c.Name, p)
			code = 70
		}
	}()
	return cmd.Run(ctx, f.run, c)
}

// runScript runs a file by its first line.
func (w *World) runScript(ctx context.Context, c *cmd.Call, file, name string) int {
	from := "bash: "
	if k, ok := c.Shell.(*caller); ok {
		from = k.s.Prefix()
	}
	refuse := func(format string, args ...any) int {
		fmt.Fprintf(c.Stderr, "%s%s: %s\n", from, name, fmt.Sprintf(format, args...))
		return 126
	}
	f, err := os.Open(file)
	if err != nil {
		return refuse("%s", reason(err))
	}
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	f.Close()
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return refuse("%s", reason(err))
	}
	head = head[:n]
	line, _, _ := strings.Cut(string(head), "\n")
	interpreter, option := "/bin/bash", ""
	if rest, ok := strings.CutPrefix(line, "#!"); ok {
		interpreter, option, _ = strings.Cut(strings.TrimSpace(strings.TrimSuffix(rest, "\r")), " ")
		option = strings.TrimSpace(option)
	} else if strings.IndexByte(line, 0) >= 0 {
		return refuse("cannot execute binary file: Exec format error")
	}
	argv := []string{interpreter}
	if option != "" {
		argv = append(argv, option)
	}
	if path.Base(interpreter) == "env" {
		// env NAME, env -S NAME ARGUMENTS: the rest of the line is one word for the system, but who writes more means more.
		words := strings.Fields(strings.TrimPrefix(option, "-S"))
		if len(words) == 0 {
			return refuse("%s: bad interpreter: no program is named", interpreter)
		}
		argv = words
	}
	program := path.Base(argv[0])
	switch program {
	case "zsh", "ksh", "ash":
		program = "bash"
	}
	run, ok := w.commands[program]
	if !ok {
		err := ask.Program(program, append(argv[1:], append([]string{name}, c.Args...)...))
		var denied *ask.Denied
		if errors.As(err, &denied) {
			return refuse("%s: bad interpreter: %s", argv[0], denied.Reason)
		}
		return refuse("%s: bad interpreter: No such file or directory", argv[0])
	}
	next := *c
	next.Name = program
	next.Args = append(append([]string{}, argv[1:]...), append([]string{nameForScript(name, file)}, c.Args...)...)
	return w.run(ctx, &next, found{path: "/usr/bin/" + program, run: run}, program)
}

// nameForScript is how a script is told its own name: as it was called, or where PATH led.
func nameForScript(name, file string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return file
}

// caller is the shell as the commands that it runs see it.
type caller struct{ s *Shell }

// OpenFile opens a file for a command.
func (k *caller) OpenFile(c *cmd.Call, name string, flag int, perm fs.FileMode) (cmd.File, error) {
	if strings.HasPrefix(name, "/dev/") {
		d, err := k.s.device(name, func(n int) *desc {
			switch n {
			case 0:
				return borrowed(descOf(c.Stdin, nil))
			case 1:
				return borrowed(descOf(nil, c.Stdout))
			case 2:
				return borrowed(descOf(nil, c.Stderr))
			}
			return k.s.fd(n)
		})
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		if d != nil {
			return &stream{ctx: streamContext(c), d: d, owned: true}, nil
		}
	}
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// borrowed gives back the reference that descOf took: device takes its own.
func borrowed(d *desc) *desc {
	if d != nil {
		d.refs.Add(-1)
	}
	return d
}

// streamContext is the context that the streams of c end with.
func streamContext(c *cmd.Call) context.Context {
	for _, of := range []any{c.Stdin, c.Stdout, c.Stderr} {
		if st, ok := of.(*stream); ok {
			return st.ctx
		}
	}
	return context.Background()
}

// Find tells what name would run.
func (k *caller) Find(c *cmd.Call, name string) (string, bool) {
	s := k.s
	if strings.Contains(name, "/") {
		f, err := s.find(name)
		return f.path, err == nil
	}
	for dir := range strings.SplitSeq(pathOf(c), ":") {
		if dir == "" {
			dir = "."
		}
		full := strings.TrimSuffix(c.Path(dir), "/") + "/" + name
		if _, ok := s.w.bundled(full); ok {
			return full, true
		}
		if !s.w.missing(dir) && fileExists(full) {
			return full, true
		}
	}
	return "", false
}

func pathOf(c *cmd.Call) string {
	if p := c.Getenv("PATH"); p != "" {
		return p
	}
	return defaultPath
}

// Run runs a command for another command.
func (k *caller) Run(ctx context.Context, c *cmd.Call, child cmd.Child) int {
	if len(child.Argv) == 0 {
		return 0
	}
	next := *c
	name := child.Argv[0]
	next.Name, next.Args = path.Base(name), child.Argv[1:]
	if child.Environ != nil {
		next.Environ = child.Environ
	}
	if child.Dir != "" {
		next.Dir = child.Dir
	}
	if child.Stdin != nil {
		next.Stdin = child.Stdin
	}
	if child.Stdout != nil {
		next.Stdout = child.Stdout
	}
	if child.Stderr != nil {
		next.Stderr = child.Stderr
	}
	next.Stdin, next.Stdout, next.Stderr = inReader(ctx, next.Stdin), inWriter(ctx, next.Stdout), inWriter(ctx, next.Stderr)
	var f found
	if strings.Contains(name, "/") {
		full := next.Path(name)
		info, err := os.Stat(full)
		run, ok := k.s.w.bundled(path.Clean(full))
		switch {
		case err == nil && info.IsDir():
			return 126
		case err == nil && !ok:
			f.path = full
		case ok:
			f = found{path.Clean(full), run}
		default:
			return 127
		}
	} else {
		file, ok := k.Find(&next, name)
		if !ok {
			if validName(name) {
				_ = ask.Program(name, nil)
			}
			return 127
		}
		f.path = file
		f.run, _ = k.s.w.bundled(file)
	}
	return k.s.w.run(ctx, &next, f, name)
}

// inReader makes a stream end with ctx.
func inReader(ctx context.Context, r io.Reader) io.Reader {
	if st, ok := r.(*stream); ok {
		if st.ctx == ctx {
			return st
		}
		return &stream{ctx: ctx, d: st.d, deadline: time.Time{}, keep: st.keep}
	}
	return cmd.Reader(ctx, r)
}

func inWriter(ctx context.Context, w io.Writer) io.Writer {
	if st, ok := w.(*stream); ok {
		if st.ctx == ctx {
			return st
		}
		return &stream{ctx: ctx, d: st.d, keep: st.keep}
	}
	return cmd.Writer(ctx, w)
}
