package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/builtin"
	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"mvdan.cc/sh/v3/syntax"
)

// callCtx is what the executor's own built-in commands run in.
type callCtx struct {
	ctx context.Context
	s   *Shell
}

func (c *callCtx) stdout() io.Writer { return c.s.stream(c.ctx, 1) }

// errorf writes a message with the name of the script and the line.
func (c *callCtx) errorf(format string, args ...any) { c.s.errorf(format, args...) }

// plain writes a line to standard error.
func (c *callCtx) plain(text string) { io.WriteString(c.s.stderr(), text+"\n") }

type builtinFunc func(s *Shell, c *callCtx, args []string) int

// builtinNames are the commands that need the executor.
var builtinNames = []string{
	":", ".", "alias", "bg", "break", "builtin", "caller", "cd", "command", "continue", "dirs", "disown",
	"enable", "eval", "exec", "exit", "fg", "hash", "help", "history", "jobs", "kill", "logout", "popd", "pushd", "pwd",
	"return", "set", "shift", "shopt", "source", "suspend", "times", "trap", "type", "ulimit", "umask",
	"unalias", "wait",
}

// ownBuiltin returns one of them, nil for another name. (No table: its functions would refer to it.)
func ownBuiltin(name string) builtinFunc {
	switch name {
	case ":":
		return func(*Shell, *callCtx, []string) int { return 0 }
	case ".", "source":
		return (*Shell).sourceBuiltin
	case "alias":
		return (*Shell).aliasBuiltin
	case "bg":
		return noJobControl("bg")
	case "break":
		return breakBuiltin("break", jumpBreak)
	case "builtin":
		return (*Shell).builtinBuiltin
	case "caller":
		return (*Shell).callerBuiltin
	case "cd":
		return (*Shell).cdBuiltin
	case "command":
		return (*Shell).commandBuiltin
	case "continue":
		return breakBuiltin("continue", jumpContinue)
	case "dirs":
		return (*Shell).dirsBuiltin
	case "disown":
		return (*Shell).disownBuiltin
	case "enable":
		return (*Shell).enableBuiltin
	case "eval":
		return (*Shell).evalBuiltin
	case "exec":
		return (*Shell).execBuiltin
	case "exit":
		return (*Shell).exitBuiltin
	case "fg":
		return (*Shell).foreground
	case "hash":
		return (*Shell).hashBuiltin
	case "help":
		return (*Shell).helpBuiltin
	case "history":
		return func(*Shell, *callCtx, []string) int { return 0 } // a script has no history to list
	case "jobs":
		return (*Shell).jobsBuiltin
	case "kill":
		return (*Shell).killBuiltin
	case "logout":
		return (*Shell).logoutBuiltin
	case "popd":
		return (*Shell).popdBuiltin
	case "pushd":
		return (*Shell).pushdBuiltin
	case "pwd":
		return (*Shell).pwdBuiltin
	case "return":
		return (*Shell).returnBuiltin
	case "set":
		return (*Shell).setBuiltin
	case "shift":
		return (*Shell).shiftBuiltin
	case "shopt":
		return (*Shell).shoptBuiltin
	case "suspend":
		return noJobControl("suspend")
	case "times":
		return (*Shell).timesBuiltin
	case "trap":
		return (*Shell).trapBuiltin
	case "type":
		return (*Shell).typeBuiltin
	case "ulimit":
		return (*Shell).ulimitBuiltin
	case "umask":
		return (*Shell).umaskBuiltin
	case "unalias":
		return (*Shell).unaliasBuiltin
	case "wait":
		return (*Shell).waitBuiltin
	}
	return nil
}

// IsBuiltin tells whether a name is a built-in command, of either package.
func isBuiltin(name string) bool {
	if ownBuiltin(name) != nil {
		return true
	}
	_, ok := builtin.Table[name]
	return ok || isDeclaration(name)
}

func isDeclaration(name string) bool {
	switch name {
	case "declare", "typeset", "local", "export", "readonly":
		return true
	}
	return false
}

func noJobControl(name string) builtinFunc {
	return func(_ *Shell, c *callCtx, _ []string) int {
		c.errorf("%s: no job control", name)
		return 1
	}
}

// exitCode reads the argument of exit and return.
func (s *Shell) exitCode(c *callCtx, name string, args []string) (int, bool) {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return s.status, true
	}
	n, err := strconv.ParseInt(strings.TrimSpace(args[0]), 10, 64)
	if err != nil {
		c.errorf("%s: %s: numeric argument required", name, args[0])
		return 2, true
	}
	if len(args) > 1 {
		c.errorf("%s: too many arguments", name)
		return 1, false
	}
	return int(n & 255), true
}

func (s *Shell) exitBuiltin(c *callCtx, args []string) int {
	code, ok := s.exitCode(c, "exit", args)
	if ok {
		s.status = code
		s.jump = jumpExit
	}
	return code
}

func (s *Shell) logoutBuiltin(c *callCtx, args []string) int {
	if !s.opts.has(optLoginShell) {
		c.errorf("logout: not login shell: use `exit'")
		return 1
	}
	return s.exitBuiltin(c, args)
}

func (s *Shell) returnBuiltin(c *callCtx, args []string) int {
	if len(s.frames) == 0 {
		c.errorf("return: can only `return' from a function or sourced script")
		return 2
	}
	code, ok := s.exitCode(c, "return", args)
	if ok {
		s.status = code
		s.jump = jumpReturn
	}
	return code
}

func breakBuiltin(name string, kind jump) builtinFunc {
	return func(s *Shell, c *callCtx, args []string) int {
		n := 1
		if len(args) > 0 {
			k, err := strconv.Atoi(args[0])
			if err != nil {
				c.errorf("%s: %s: numeric argument required", name, args[0])
				s.status, s.jump = 128, jumpExit
				return 128
			}
			if k < 1 {
				c.errorf("%s: %s: loop count out of range", name, args[0])
				s.jump, s.jumpN = jumpBreak, s.loops
				return 1
			}
			n = k
		}
		if s.loops == 0 {
			c.errorf("%s: only meaningful in a `for', `while', or `until' loop", name)
			return 0
		}
		s.jump, s.jumpN = kind, min(n, s.loops)
		return 0
	}
}

func (s *Shell) shiftBuiltin(c *callCtx, args []string) int {
	n := 1
	if len(args) > 0 {
		k, err := strconv.Atoi(args[0])
		if err != nil {
			c.errorf("shift: %s: numeric argument required", args[0])
			return 1
		}
		n = k
	}
	if n < 0 {
		c.errorf("shift: %d: shift count out of range", n)
		return 1
	}
	if n > len(s.params) {
		return 1
	}
	s.params = s.params[n:]
	return 0
}

func (s *Shell) evalBuiltin(c *callCtx, args []string) int {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	text := strings.Join(args, " ")
	if strings.TrimSpace(text) == "" {
		return 0
	}
	if !s.enter("eval") {
		return s.status
	}
	defer s.leave()
	s.traceLevel++
	defer func() { s.traceLevel-- }()
	s.status = 0
	line := s.line
	s.runText(c.ctx, s.source()+": eval", text, max(line-1, 0))
	s.line = line
	return s.status
}

// Eval runs text as commands, for built-in commands on data.
func (s *Shell) Eval(ctx context.Context, text string) (int, error) {
	code := s.evalBuiltin(&callCtx{ctx, s}, []string{text})
	return code, nil
}

func (s *Shell) sourceBuiltin(c *callCtx, args []string) int {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		c.errorf("source: filename argument required")
		c.plain("source: usage: source filename [arguments]")
		return 2
	}
	name := args[0]
	var text []byte
	var err error
	full := s.abs(name)
	if !strings.Contains(name, "/") && s.opts.has(optSourcepath) {
		for dir := range strings.SplitSeq(s.vars.Str("PATH"), ":") {
			if file := strings.TrimSuffix(s.abs(dir), "/") + "/" + name; dir != "" && !s.w.missing(dir) && fileExists(file) {
				full = file
				break
			}
		}
	}
	if d, derr := s.device(full, s.fd); d != nil || derr != nil {
		err = derr
		if d != nil {
			text, err = io.ReadAll(&stream{ctx: c.ctx, d: d})
			d.close()
		}
	} else if info, serr := os.Stat(full); isDir(serr, info) {
		c.errorf("source: %s: is a directory", name)
		return 1
	} else {
		text, err = os.ReadFile(full)
	}
	if err != nil {
		c.errorf("%s: %s", name, reason(err))
		return 1
	}
	if why := scriptError(string(text)); why != "" {
		fmt.Fprintf(s.stderr(), "%s: %s\n", name, strings.ReplaceAll(why, "FILE", name))
		return 2
	}
	if !s.enter("source") {
		return s.status
	}
	s.frames = append(s.frames, frame{name: "source", source: name, line: s.line})
	params, line, loops, sets := s.params, s.line, s.loops, s.setCount
	if len(args) > 1 {
		s.params = args[1:]
	}
	s.traceLevel++
	hidden := s.hideTrap("RETURN")
	s.status = 0
	defer func() {
		s.traceLevel--
		s.frames = s.frames[:len(s.frames)-1]
		if len(args) > 1 && s.setCount == sets {
			s.params = params
		}
		s.line, s.loops = line, loops
		s.leave()
	}()
	s.runText(c.ctx, name, string(text), 0)
	if s.jump == jumpReturn {
		s.jump = jumpNone
	}
	s.returnTrap(c.ctx)
	s.showTraps(hidden)
	return s.status
}

// hideTrap takes away one trap unless functrace is on.
func (s *Shell) hideTrap(name string) map[string]string {
	text, ok := s.traps[name]
	if !ok || s.opts.has(optFunctrace) {
		return nil
	}
	delete(s.traps, name)
	return map[string]string{name: text}
}

func (s *Shell) execBuiltin(c *callCtx, args []string) int {
	clean, name, login := false, "", false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for i := 1; i < len(a); i++ {
			switch a[i] {
			case 'c':
				clean = true
			case 'l':
				login = true
			case 'a':
				if name = a[i+1:]; name == "" {
					if len(args) == 0 {
						c.errorf("exec: -a: option requires an argument")
						return 2
					}
					name, args = args[0], args[1:]
				}
				i = len(a)
			default:
				c.errorf("exec: -%c: invalid option", a[i])
				c.plain("exec: usage: exec [-cl] [-a name] [command [argument ...]] [redirection ...]")
				return 2
			}
		}
	}
	if len(args) == 0 {
		return 0
	}
	f, err := s.find(args[0])
	if err != nil {
		code := 126
		if errors.Is(err, errNotFound) || errors.Is(err, fs.ErrNotExist) {
			c.errorf("exec: %s: not found", args[0])
			code = 127
		} else {
			c.errorf("%s: %s", args[0], reason(err))
			c.errorf("exec: %s: cannot execute: %s", args[0], reason(err))
		}
		if !s.Option("execfail") {
			s.status, s.jump = code, jumpExit
		}
		return code
	}
	environ := s.environ()
	if clean {
		environ = nil
	}
	call := &cmd.Call{
		Name: path.Base(args[0]), Args: args[1:],
		Stdin: s.stream(c.ctx, 0), Stdout: s.stream(c.ctx, 1), Stderr: s.stream(c.ctx, 2),
		Dir: s.dir, Environ: environ, Umask: s.umask, Shell: &caller{s},
	}
	if name != "" && f.run == nil {
		call.Name = name
	}
	if login {
		call.Name = "-" + call.Name
	}
	// The shell is that command from now on: its traps are gone, its number stays.
	s.traps = map[string]string{}
	s.proc.replace()
	s.status = s.w.run(c.ctx, call, f, args[0])
	s.jump = jumpExit
	return s.status
}

func (s *Shell) builtinBuiltin(c *callCtx, args []string) int {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return 0
	}
	return s.runFields(c.ctx, args, runBuiltins)
}

func (s *Shell) commandBuiltin(c *callCtx, args []string) int {
	var verbose, short, standard bool
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for _, l := range a[1:] {
			switch l {
			case 'v':
				short = true
			case 'V':
				verbose = true
			case 'p':
				standard = true
			default:
				c.errorf("command: -%c: invalid option", l)
				c.plain("command: usage: command [-pVv] command [arg ...]")
				return 2
			}
		}
	}
	if len(args) == 0 {
		return 0
	}
	if short || verbose {
		code := 1
		for _, name := range args {
			if s.describe(c, name, verbose) {
				code = 0
			} else if verbose {
				c.errorf("command: %s: not found", name)
			}
		}
		return code
	}
	if standard {
		s.vars.PushTemp()
		defer s.vars.Pop()
		s.vars.SetTemp("PATH", defaultPath, false)
	}
	return s.runFields(c.ctx, args, runBuiltins|runFiles)
}

// describe writes what a name is, as command -v and -V do.
func (s *Shell) describe(c *callCtx, name string, long bool) bool {
	out := c.stdout()
	say := func(short, format string, args ...any) bool {
		if long {
			fmt.Fprintf(out, format+"\n", args...)
		} else {
			fmt.Fprintln(out, short)
		}
		return true
	}
	if text, ok := s.aliases[name]; ok && s.opts.has(optExpandAliases) {
		return say("alias "+name+"="+quoteSingle(text), "%s is aliased to `%s'", name, text)
	}
	if syntax.IsKeyword(name) {
		return say(name, "%s is a shell keyword", name)
	}
	if _, ok := s.funcs[name]; ok {
		if long {
			fmt.Fprintf(out, "%s is a function\n", name)
			text, _ := s.functionText(name)
			fmt.Fprintln(out, text)
			return true
		}
		return say(name, "")
	}
	if isBuiltin(name) {
		return say(name, "%s is a shell builtin", name)
	}
	if file, hashed, ok := s.where(name); ok {
		if hashed && long {
			return say("", "%s is hashed (%s)", name, file)
		}
		return say(file, "%s is %s", name, file)
	}
	return false
}

// where finds a command's file, without running or remembering it.
func (s *Shell) where(name string) (file string, fromHash, ok bool) {
	if strings.Contains(name, "/") {
		full := s.abs(name)
		info, err := os.Stat(full)
		if err == nil && !info.IsDir() {
			return name, false, true
		}
		_, ok := s.w.bundled(path.Clean(full))
		return name, false, ok && err != nil
	}
	if h, ok := s.hashed[name]; ok {
		return h.path, true, true
	}
	f, ok := s.search(name)
	return f.path, false, ok
}

func (s *Shell) typeBuiltin(c *callCtx, args []string) int {
	var word, file, all, force, noFunc bool
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for _, l := range a[1:] {
			switch l {
			case 't':
				word = true
			case 'p':
				file = true
			case 'P':
				file, force = true, true
			case 'a':
				all = true
			case 'f':
				noFunc = true
			default:
				c.errorf("type: -%c: invalid option", l)
				c.plain("type: usage: type [-afptP] name [name ...]")
				return 2
			}
		}
	}
	out := c.stdout()
	code := 0
	for _, name := range args {
		found := false
		say := func(kind, format string, args ...any) {
			found = true
			switch {
			case word:
				fmt.Fprintln(out, kind)
			case file:
			default:
				fmt.Fprintf(out, format+"\n", args...)
			}
		}
		if !force {
			if text, ok := s.aliases[name]; ok && s.opts.has(optExpandAliases) {
				say("alias", "%s is aliased to `%s'", name, text)
			}
			if (!found || all) && syntax.IsKeyword(name) {
				say("keyword", "%s is a shell keyword", name)
			}
			if _, ok := s.funcs[name]; ok && (!found || all) && !noFunc {
				text, _ := s.functionText(name)
				say("function", "%s is a function\n%s", name, text)
			}
			if (!found || all) && isBuiltin(name) {
				say("builtin", "%s is a shell builtin", name)
			}
		}
		if !found || all {
			if path, hashed, ok := s.where(name); ok {
				switch {
				case file:
					found = true
					fmt.Fprintln(out, path)
				case hashed && !all:
					say("file", "%s is hashed (%s)", name, path)
				default:
					say("file", "%s is %s", name, path)
				}
			}
		}
		if !found {
			code = 1
			if !word && !file {
				c.errorf("type: %s: not found", name)
			}
		}
	}
	return code
}

func (s *Shell) hashBuiltin(c *callCtx, args []string) int {
	if len(args) == 0 {
		if len(s.hashed) == 0 {
			fmt.Fprintln(c.stdout(), "hash: hash table empty")
			return 0
		}
		fmt.Fprintln(c.stdout(), "hits\tcommand")
		for _, name := range sortedKeys(s.hashed) {
			fmt.Fprintf(c.stdout(), "%4d\t%s\n", s.hashed[name].hits, s.hashed[name].path)
		}
		return 0
	}
	var show, forget bool
	file := ""
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		for _, l := range a[1:] {
			switch l {
			case 'r':
				s.own()
				s.hashed = map[string]*hashed{}
			case 't':
				show = true
			case 'd':
				forget = true
			case 'l':
				for _, name := range sortedKeys(s.hashed) {
					fmt.Fprintf(c.stdout(), "builtin hash -p %s %s\n", s.hashed[name].path, name)
				}
			case 'p':
				if len(args) == 0 {
					c.errorf("hash: -p: option requires an argument")
					return 1
				}
				file, args = args[0], args[1:]
			default:
				c.errorf("hash: -%c: invalid option", l)
				c.plain("hash: usage: hash [-lr] [-p pathname] [-dt] [name ...]")
				return 2
			}
		}
	}
	code := 0
	for _, name := range args {
		h, known := s.hashed[name]
		switch {
		case forget && known:
			s.own()
			delete(s.hashed, name)
		case show && known:
			if len(args) > 1 {
				fmt.Fprintf(c.stdout(), "%s\t", name)
			}
			fmt.Fprintln(c.stdout(), h.path)
		case forget, show:
			c.errorf("hash: %s: not found", name)
			code = 1
		case file != "":
			s.own()
			s.hashed[name] = &hashed{path: file}
		default:
			if _, ok := s.funcs[name]; ok || isBuiltin(name) {
				continue
			}
			f, ok := s.search(name)
			if !ok {
				c.errorf("hash: %s: not found", name)
				code = 1
				continue
			}
			s.own()
			s.hashed[name] = &hashed{path: f.path}
		}
	}
	return code
}

func (s *Shell) enableBuiltin(c *callCtx, args []string) int {
	if len(args) == 0 || args[0] == "-a" || args[0] == "-p" {
		for _, name := range allBuiltins() {
			fmt.Fprintf(c.stdout(), "enable %s\n", name)
		}
		return 0
	}
	if args[0] == "-n" || args[0] == "-f" || args[0] == "-d" {
		if args[0] == "-n" && len(args) == 1 {
			return 0 // none is disabled
		}
		c.errorf("enable: %s: built-in commands cannot be disabled or loaded in the sandbox", args[0])
		return 1
	}
	code := 0
	for _, name := range args {
		if !isBuiltin(name) {
			c.errorf("enable: %s: not a shell builtin", name)
			code = 1
		}
	}
	return code
}

func allBuiltins() []string {
	names := slices.Clone(builtinNames)
	names = append(names, sortedKeys(builtin.Table)...)
	names = append(names, "declare", "typeset", "local", "export", "readonly")
	sort.Strings(names)
	return slices.Compact(names)
}

// helpBuiltin is help: there is no text on each command here, but which there are can be asked.
func (s *Shell) helpBuiltin(c *callCtx, args []string) int {
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintf(c.stdout(), "GNU bash, version %s (%s-pc-linux-gnu), as the sandbox has it.\nBuilt-in commands:\n", version, machine())
		for _, name := range allBuiltins() {
			fmt.Fprintln(c.stdout(), " "+name)
		}
		return 0
	}
	code := 1
	for _, name := range args {
		if isBuiltin(name) || syntax.IsKeyword(name) {
			fmt.Fprintf(c.stdout(), "%s: a shell builtin; its manual is that of bash 5.2\n", name)
			code = 0
		}
	}
	if code != 0 {
		c.errorf("help: no help topics match `%s'.  Try `help help' or `man -k %s' or `info %s'.", args[len(args)-1], args[len(args)-1], args[len(args)-1])
	}
	return code
}

// Folders.

func (s *Shell) cdBuiltin(c *callCtx, args []string) int {
	physical := s.opts.has(optPhysical)
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for _, l := range a[1:] {
			switch l {
			case 'P':
				physical = true
			case 'L':
				physical = false
			case 'e', '@':
			default:
				c.errorf("cd: -%c: invalid option", l)
				c.plain("cd: usage: cd [-L|[-P [-e]] [-@]] [dir]")
				return 2
			}
		}
	}
	if len(args) > 1 {
		c.errorf("cd: too many arguments")
		return 1
	}
	show := false
	dir := ""
	switch {
	case len(args) == 0:
		v, ok := s.vars.Get("HOME")
		if !ok {
			c.errorf("cd: HOME not set")
			return 1
		}
		dir = v.Str
	case args[0] == "-":
		v, ok := s.vars.Get("OLDPWD")
		if !ok || v.Str == "" {
			c.errorf("cd: OLDPWD not set")
			return 1
		}
		dir, show = v.Str, true
	default:
		dir = args[0]
	}
	if dir == "" {
		return 0
	}
	if cdpath := s.vars.Str("CDPATH"); cdpath != "" && !strings.HasPrefix(dir, "/") && dir != "." && dir != ".." &&
		!strings.HasPrefix(dir, "./") && !strings.HasPrefix(dir, "../") {
		for base := range strings.SplitSeq(cdpath, ":") {
			try := dir
			if base != "" {
				try = strings.TrimSuffix(base, "/") + "/" + dir
			}
			if info, err := os.Stat(s.abs(try)); isDir(err, info) {
				show = show || base != "" && base != "."
				dir = try
				break
			}
		}
	}
	if err := s.chdir(dir, physical); err != nil {
		c.errorf("cd: %s: %s", dir, reason(err))
		return 1
	}
	if show {
		fmt.Fprintln(c.stdout(), s.dir)
	}
	return 0
}

// chdir goes to a folder, by the way that was said (so that .. leads back) or, when physical, without links in it.
func (s *Shell) chdir(dir string, physical bool) error {
	full := s.abs(dir)
	info, err := os.Stat(path.Clean(full))
	if err != nil || physical {
		// What is behind a link may have another .. than its name says.
		if info, err = os.Stat(full); err != nil {
			return err
		}
	}
	if !info.IsDir() {
		return syscall.ENOTDIR
	}
	to := path.Clean(full)
	if physical {
		if to, err = filepath.EvalSymlinks(full); err != nil {
			return err
		}
	}
	old := s.dir
	s.dir = to
	if err := s.vars.Set("OLDPWD", old); err != nil {
		return err
	}
	s.vars.SetAttr("OLDPWD", attrExport, 0)
	if err := s.vars.Set("PWD", to); err != nil {
		return err
	}
	return nil
}

func (s *Shell) pwdBuiltin(c *callCtx, args []string) int {
	physical := s.opts.has(optPhysical)
	for _, a := range args {
		switch a {
		case "-P":
			physical = true
		case "-L":
			physical = false
		default:
			if strings.HasPrefix(a, "-") && len(a) > 1 && a != "--" {
				c.errorf("pwd: %s: invalid option", a[:2])
				c.plain("pwd: usage: pwd [-LP]")
				return 2
			}
		}
	}
	dir := s.dir
	if physical {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
	}
	fmt.Fprintln(c.stdout(), dir)
	return 0
}

func (s *Shell) dirsBuiltin(c *callCtx, args []string) int {
	var long, lines, numbers bool
	index, has := 0, false
	for _, a := range args {
		switch {
		case a == "-c":
			s.oldDirs = nil
			return 0
		case len(a) > 1 && (a[0] == '+' || a[0] == '-') && a[1] >= '0' && a[1] <= '9':
			n, ok := s.dirIndex(a)
			if !ok {
				c.errorf("dirs: %s: directory stack index out of range", a)
				return 1
			}
			index, has = n, true
		case strings.HasPrefix(a, "-"):
			for _, l := range a[1:] {
				switch l {
				case 'l':
					long = true
				case 'p':
					lines = true
				case 'v':
					lines, numbers = true, true
				default:
					c.errorf("dirs: -%c: invalid option", l)
					c.plain("dirs: usage: dirs [-clpv] [+N] [-N]")
					return 2
				}
			}
		}
	}
	list := append([]string{s.dir}, s.oldDirs...)
	if !long {
		for i := range list {
			list[i] = s.tilde(list[i])
		}
	}
	if has {
		fmt.Fprintln(c.stdout(), list[index])
		return 0
	}
	if !lines {
		fmt.Fprintln(c.stdout(), strings.Join(list, " "))
		return 0
	}
	for i, d := range list {
		if numbers {
			fmt.Fprintf(c.stdout(), "%2d  %s\n", i, d)
		} else {
			fmt.Fprintln(c.stdout(), d)
		}
	}
	return 0
}

// dirIndex reads +N and -N as places in the list that dirs shows.
func (s *Shell) dirIndex(a string) (int, bool) {
	n, err := strconv.Atoi(a[1:])
	if err != nil || n > len(s.oldDirs) {
		return 0, false
	}
	if a[0] == '-' {
		n = len(s.oldDirs) - n
	}
	return n, true
}

func isIndex(a string) bool {
	if len(a) < 2 || a[0] != '+' && a[0] != '-' {
		return false
	}
	_, err := strconv.Atoi(a[1:])
	return err == nil
}

func (s *Shell) pushdBuiltin(c *callCtx, args []string) int {
	noCd := false
	if len(args) > 0 && args[0] == "-n" {
		noCd, args = true, args[1:]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	old := s.dir
	switch {
	case len(args) == 0:
		if len(s.oldDirs) == 0 {
			c.errorf("pushd: no other directory")
			return 1
		}
		if err := s.chdir(s.oldDirs[0], false); err != nil {
			c.errorf("pushd: %s: %s", s.oldDirs[0], reason(err))
			return 1
		}
		s.oldDirs[0] = old
	case isIndex(args[0]):
		n, ok := s.dirIndex(args[0])
		if !ok {
			c.errorf("pushd: %s: directory stack index out of range", args[0])
			return 1
		}
		list := append([]string{s.dir}, s.oldDirs...)
		list = append(append([]string{}, list[n:]...), list[:n]...)
		if err := s.chdir(list[0], false); err != nil {
			c.errorf("pushd: %s: %s", list[0], reason(err))
			return 1
		}
		s.oldDirs = list[1:]
	case noCd:
		s.oldDirs = append([]string{s.abs(args[0])}, s.oldDirs...)
	default:
		dir := args[0]
		if dir == "-" {
			dir = s.vars.Str("OLDPWD")
		}
		if err := s.chdir(dir, false); err != nil {
			c.errorf("pushd: %s: %s", dir, reason(err))
			return 1
		}
		s.oldDirs = append([]string{old}, s.oldDirs...)
	}
	return s.dirsBuiltin(c, nil)
}

func (s *Shell) popdBuiltin(c *callCtx, args []string) int {
	noCd := false
	if len(args) > 0 && args[0] == "-n" {
		noCd, args = true, args[1:]
	}
	n := 0
	if len(args) > 0 {
		if !isIndex(args[0]) {
			c.errorf("popd: %s: invalid argument", args[0])
			return 2
		}
		var ok bool
		if n, ok = s.dirIndex(args[0]); !ok {
			c.errorf("popd: %s: directory stack index out of range", args[0])
			return 1
		}
	}
	if len(s.oldDirs) == 0 {
		c.errorf("popd: directory stack empty")
		return 1
	}
	switch {
	case n > 0:
		s.oldDirs = slices.Delete(slices.Clone(s.oldDirs), n-1, n)
	case noCd:
		s.oldDirs = s.oldDirs[1:]
	default:
		if err := s.chdir(s.oldDirs[0], false); err != nil {
			c.errorf("popd: %s: %s", s.oldDirs[0], reason(err))
			return 1
		}
		s.oldDirs = s.oldDirs[1:]
	}
	return s.dirsBuiltin(c, nil)
}

// Traps.

func (s *Shell) trapBuiltin(c *callCtx, args []string) int {
	show := false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		switch a {
		case "-p":
			show = true
		case "-l":
			return s.listSignals(c, nil)
		default:
			c.errorf("trap: %s: invalid option", a)
			c.plain("trap: usage: trap [-lp] [[arg] signal_spec ...]")
			return 2
		}
	}
	if show || len(args) == 0 {
		traps := s.traps
		if s.listed != nil {
			traps = s.listed
		}
		names := sortedKeys(traps)
		if len(args) > 0 {
			names = nil
		}
		code := 0
		for _, a := range args {
			name := trapName(a)
			if name == "" {
				c.errorf("trap: %s: invalid signal specification", a)
				code = 1
				continue
			}
			if _, ok := traps[name]; ok {
				names = append(names, name)
			}
		}
		trapOrder(names)
		for _, name := range names {
			label := name
			if signalNumber(name) > 0 {
				label = "SIG" + name
			}
			fmt.Fprintf(c.stdout(), "trap -- %s %s\n", quoteSingle(traps[name]), label)
		}
		return code
	}
	text, set := args[0], true
	names := args[1:]
	if len(args) == 1 || isNumber(args[0]) {
		// `trap INT` and `trap 2 3` bring back what was there.
		if trapName(args[0]) == "" && len(args) == 1 {
			c.plain("trap: usage: trap [-lp] [[arg] signal_spec ...]")
			return 2
		}
		names, set = args, false
	}
	if text == "-" {
		set = false
	}
	code := 0
	for _, a := range names {
		name := trapName(a)
		if name == "" {
			c.errorf("trap: %s: invalid signal specification", a)
			code = 1
			continue
		}
		s.setTrap(name, text, set)
	}
	return code
}

func isNumber(a string) bool {
	_, err := strconv.ParseUint(a, 10, 32)
	return err == nil
}

// quoteSingle puts text into single quotes.
func quoteSingle(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

func (s *Shell) callerBuiltin(c *callCtx, args []string) int {
	n := 0
	if len(args) > 0 {
		k, err := strconv.Atoi(args[0])
		if err != nil {
			c.errorf("caller: %s: invalid number", args[0])
			c.plain("caller: usage: caller [expr]")
			return 2
		}
		n = k
	}
	if len(s.frames) == 0 {
		if len(args) == 0 {
			fmt.Fprintln(c.stdout(), "0 NULL")
			return 0
		}
		return 1
	}
	i := len(s.frames) - 1 - n
	if i < 0 {
		return 1
	}
	source, name := s.script, "main"
	if source == "" {
		source = "NULL"
	}
	if i > 0 {
		source, name = s.frames[i-1].source, s.frames[i-1].name
	}
	if len(args) == 0 {
		fmt.Fprintf(c.stdout(), "%d %s\n", s.frames[i].line, source)
	} else {
		fmt.Fprintf(c.stdout(), "%d %s %s\n", s.frames[i].line, name, source)
	}
	return 0
}

// The rest.

func (s *Shell) aliasBuiltin(c *callCtx, args []string) int {
	if len(args) > 0 && args[0] == "-p" {
		args = args[1:]
	}
	if len(args) == 0 {
		for _, name := range sortedKeys(s.aliases) {
			fmt.Fprintf(c.stdout(), "alias %s=%s\n", name, quoteSingle(s.aliases[name]))
		}
		return 0
	}
	code := 0
	for _, a := range args {
		name, text, ok := strings.Cut(a, "=")
		if ok && name != "" {
			s.own()
			s.aliases[name] = text
			continue
		}
		if text, ok := s.aliases[a]; ok {
			fmt.Fprintf(c.stdout(), "alias %s=%s\n", a, quoteSingle(text))
			continue
		}
		c.errorf("alias: %s: not found", a)
		code = 1
	}
	return code
}

func (s *Shell) unaliasBuiltin(c *callCtx, args []string) int {
	if len(args) == 0 {
		c.plain("unalias: usage: unalias [-a] name [name ...]")
		return 2
	}
	s.own()
	if args[0] == "-a" {
		s.aliases = map[string]string{}
		return 0
	}
	code := 0
	for _, a := range args {
		if _, ok := s.aliases[a]; !ok {
			c.errorf("unalias: %s: not found", a)
			code = 1
		}
		delete(s.aliases, a)
	}
	return code
}

// expandAlias runs a command whose first word is an alias. Bash does it while it reads; here the text of the command is
// put together again and read as one.
func (s *Shell) expandAlias(ctx context.Context, c *syntax.CallExpr, redirs []*syntax.Redirect) bool {
	name := c.Args[0].Lit()
	text, ok := s.aliases[name]
	if !ok || name == "" || s.inAlias[name] {
		return false
	}
	var b strings.Builder
	for _, a := range c.Assigns {
		b.WriteString(s.nodeText(a) + " ")
	}
	b.WriteString(text)
	for _, w := range c.Args[1:] {
		b.WriteString(" " + s.nodeText(w))
	}
	for _, r := range redirs {
		if r.Hdoc != nil || r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc {
			return false
		}
		b.WriteString(" " + s.nodeText(r))
	}
	if s.inAlias == nil {
		s.inAlias = map[string]bool{}
	}
	s.inAlias[name] = true
	defer delete(s.inAlias, name)
	s.runText(ctx, s.source(), b.String(), s.line-1)
	return true
}

func (s *Shell) umaskBuiltin(c *callCtx, args []string) int {
	symbolic, reusable := false, false
	for len(args) > 0 && (args[0] == "-S" || args[0] == "-p") {
		symbolic = symbolic || args[0] == "-S"
		reusable = reusable || args[0] == "-p"
		args = args[1:]
	}
	if len(args) > 0 {
		mask, ok := parseMask(args[0], s.umask)
		if !ok {
			if args[0][:1] >= "0" && args[0][:1] <= "9" {
				c.errorf("umask: %s: octal number out of range", args[0])
			} else {
				c.errorf("umask: `%s': invalid symbolic mode operator", args[0])
			}
			return 1
		}
		s.umask = mask
		if !symbolic {
			return 0
		}
	}
	text := fmt.Sprintf("%04o", s.umask)
	if symbolic {
		var parts []string
		for i, who := range []string{"u", "g", "o"} {
			bits := ^s.umask >> (6 - 3*i) & 7
			perm := ""
			for j, l := range []string{"r", "w", "x"} {
				if bits>>(2-j)&1 != 0 {
					perm += l
				}
			}
			parts = append(parts, who+"="+perm)
		}
		text = strings.Join(parts, ",")
	}
	switch {
	case reusable && symbolic:
		text = "umask -S " + text
	case reusable:
		text = "umask " + text
	}
	fmt.Fprintln(c.stdout(), text)
	return 0
}

// parseMask reads 022 and u=rwx,go-w.
func parseMask(text string, old fs.FileMode) (fs.FileMode, bool) {
	if text == "" {
		return 0, false
	}
	if text[0] >= '0' && text[0] <= '9' {
		n, err := strconv.ParseUint(text, 8, 16)
		return fs.FileMode(n), err == nil && n <= 0o777
	}
	allowed := ^old & 0o777
	for part := range strings.SplitSeq(text, ",") {
		i := strings.IndexAny(part, "=+-")
		if i < 0 {
			return 0, false
		}
		var who fs.FileMode
		for _, r := range part[:i] {
			switch r {
			case 'u':
				who |= 0o700
			case 'g':
				who |= 0o070
			case 'o':
				who |= 0o007
			case 'a':
				who |= 0o777
			default:
				return 0, false
			}
		}
		if who == 0 {
			who = 0o777
		}
		var perm fs.FileMode
		for _, r := range part[i+1:] {
			switch r {
			case 'r':
				perm |= 0o444
			case 'w':
				perm |= 0o222
			case 'x', 'X':
				perm |= 0o111
			default:
				return 0, false
			}
		}
		switch part[i] {
		case '=':
			allowed = allowed&^who | perm&who
		case '+':
			allowed |= perm & who
		case '-':
			allowed &^= perm & who
		}
	}
	return ^allowed & 0o777, true
}

// limits are the resources of ulimit. The host sets what really holds; these are what a system shows.
var limits = []struct {
	letter     byte
	text, unit string
	value      string
}{
	{'R', "real-time non-blocking time", "(microseconds, -R)", "unlimited"},
	{'c', "core file size", "(blocks, -c)", "0"},
	{'d', "data seg size", "(kbytes, -d)", "unlimited"},
	{'e', "scheduling priority", "(-e)", "0"},
	{'f', "file size", "(blocks, -f)", "unlimited"},
	{'i', "pending signals", "(-i)", "127228"},
	{'l', "max locked memory", "(kbytes, -l)", "8192"},
	{'m', "max memory size", "(kbytes, -m)", "unlimited"},
	{'n', "open files", "(-n)", strconv.Itoa(maxFd)},
	{'p', "pipe size", "(512 bytes, -p)", "8"},
	{'q', "POSIX message queues", "(bytes, -q)", "819200"},
	{'r', "real-time priority", "(-r)", "0"},
	{'s', "stack size", "(kbytes, -s)", "8192"},
	{'t', "cpu time", "(seconds, -t)", "unlimited"},
	{'u', "max user processes", "(-u)", "127228"},
	{'v', "virtual memory", "(kbytes, -v)", "unlimited"},
	{'x', "file locks", "(-x)", "unlimited"},
}

func (s *Shell) ulimitBuiltin(c *callCtx, args []string) int {
	which := ""
	all := false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		for _, l := range args[0][1:] {
			switch l {
			case 'H', 'S':
			case 'a':
				all = true
			default:
				which += string(l)
			}
		}
		args = args[1:]
	}
	if all {
		for _, l := range limits {
			fmt.Fprintf(c.stdout(), "%-*s%s %s\n", 40-len(l.unit)-1, l.text, l.unit, l.value)
		}
		return 0
	}
	if which == "" {
		which = "f"
	}
	for i := range which {
		known := false
		for _, l := range limits {
			if l.letter != which[i] {
				continue
			}
			known = true
			switch {
			case len(args) == 0:
				if len(which) > 1 {
					fmt.Fprintf(c.stdout(), "%-*s%s %s\n", 40-len(l.unit)-1, l.text, l.unit, l.value)
				} else {
					fmt.Fprintln(c.stdout(), l.value)
				}
			case args[0] == l.value || args[0] == "unlimited" && l.value == "unlimited" || args[0] == "hard" || args[0] == "soft":
				// It is so already.
			case args[0] == "unlimited":
				c.errorf("ulimit: %s: cannot modify limit: Operation not permitted", l.text)
				return 1
			default:
				n, err := strconv.ParseUint(args[0], 10, 63)
				if err != nil {
					c.errorf("ulimit: %s: invalid number", args[0])
					return 1
				}
				if have, err := strconv.ParseUint(l.value, 10, 63); err == nil && n > have {
					c.errorf("ulimit: %s: cannot modify limit: Operation not permitted", l.text)
					return 1
				}
				// A lower limit than the host's is a promise of the script to itself; the host's are set from outside.
			}
		}
		if !known {
			c.errorf("ulimit: -%c: invalid option", which[i])
			c.plain("ulimit: usage: ulimit [-SHabcdefiklmnpqrstuvxPRT] [limit]")
			return 2
		}
	}
	return 0
}

func (s *Shell) timesBuiltin(c *callCtx, _ []string) int {
	d := time.Since(s.w.started)
	fmt.Fprintf(c.stdout(), "%dm%.3fs 0m0.000s\n0m0.000s 0m0.000s\n", int(d.Minutes()), (d % time.Minute).Seconds())
	return 0
}

// listVariables is set without arguments.
func (s *Shell) listVariables(c *callCtx) int {
	var b strings.Builder
	for _, name := range s.vars.Names("") {
		v, ok := s.vars.Get(name)
		if !ok {
			continue
		}
		b.WriteString(s.assignment(name, v))
	}
	for _, name := range sortedKeys(s.funcs) {
		text, _ := s.functionText(name)
		b.WriteString(text + "\n")
	}
	io.WriteString(c.stdout(), b.String())
	return 0
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
