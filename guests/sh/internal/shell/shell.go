// Package shell runs bash scripts: the executor over the syntax tree of mvdan.cc/sh.
//
// All of it is one process. What bash forks for, subshells, pipelines, background jobs, is a [Shell] of its own on a
// goroutine, with its variables copied; what bash executes is a [cmd.Func] called. Pipes are in memory, descriptors are
// numbers in a table of the shell, process ids are counted, and a signal is the end of a context or a trap that is pending.
package shell

import (
	"context"
	"io"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/expand"
	"github.com/exthost/exthost/guests/sh/internal/vars"
	"mvdan.cc/sh/v3/syntax"
)

// World is what all shells of a process share.
type World struct {
	commands map[string]cmd.Func
	started  time.Time
	tty      [3]bool // which of the first descriptors are a terminal

	mu      sync.Mutex
	procs   map[int]*proc
	lastPID int
	orphans sync.WaitGroup // jobs and process substitutions, which go on when a shell has ended
}

// firstPID is the process id of the first shell; bash's are small numbers in a container too.
const firstPID = 1000

// New returns a world with the given commands. The shell adds itself to them: bash and sh.
func New(commands map[string]cmd.Func) *World {
	w := &World{started: time.Now(), procs: map[int]*proc{}, lastPID: firstPID - 1}
	w.commands = maps.Clone(commands)
	if w.commands == nil {
		w.commands = map[string]cmd.Func{}
	}
	for _, name := range []string{"bash", "sh", "dash"} {
		w.commands[name] = w.command
	}
	return w
}

// jump is why the statements that follow are not run.
type jump uint8

const (
	jumpNone     jump = iota
	jumpBreak         // jumpN loops
	jumpContinue      // jumpN loops
	jumpReturn
	jumpDiscard // an error of expansion: the rest of the line, whatever it is part of
	jumpExit
)

// Shell runs commands: a script, a subshell, an element of a pipeline.
type Shell struct {
	w    *World
	proc *proc // the process it is, as far as kill and $BASHPID are concerned
	pid  int   // $$
	ppid int

	vars *vars.Table
	exp  *expand.Expander
	host *host

	fds     []*desc
	procFds []int // of process substitutions, closed after the command that they are words of
	dir     string
	oldDirs []string // pushd's, the last pushed first
	umask   fs.FileMode

	opts     options
	params   []string
	setCount int // how often set changed params
	arg0     string
	command  string // of -c
	script   string // the file that is run; "" for -c and standard input

	funcs    map[string]*function
	aliases  map[string]string
	inAlias  map[string]bool
	hashed   map[string]*hashed
	shared   bool // the maps are another shell's too: copy before changing
	traps    map[string]string
	trapping map[string]bool   // traps that run now
	listed   map[string]string // the traps of the parent, which trap lists until one is set

	status     int
	pipestatus []int
	lastBg     int
	lastArg    string
	jump       jump
	jumpN      int
	loops      int // loops around the command, in this function
	quiet      int // >0: a failure is part of a condition, errexit does not count it
	subst      bool
	substCode  int // the code of the last command substitution, when subst

	frames     []frame
	line       int    // of the command that runs
	base       int    // added to the line of a node: text of eval begins where eval stands
	fixed      int    // LINENO while a trap runs for a command, else 0
	depth      int    // of functions, eval, source and substitutions, to end recursion with a message
	subshell   int    // BASH_SUBSHELL
	traceLevel int    // how often set -x repeats the first character of PS4
	src        string // the text that the nodes stand in

	current    syntax.Command // what runs, or what the trap that runs is for
	currentSrc string
	ticks      uint

	jobs    []*job
	lastJob int // highest number given

	random  uint32
	seconds time.Time
}

// frame is a function that runs, or a file that is sourced.
type frame struct {
	name   string // "source" for a file
	source string // where the function was defined, or the file
	line   int    // where it was called
	params []string
	isFunc bool
	opts   *options // what "local -" keeps
}

type function struct {
	name     string
	body     *syntax.Stmt
	source   string
	base     int
	src      string
	line     int
	export   bool
	readonly bool
}

type hashed struct {
	path string
	hits int
}

// maxDepth ends recursion: a level takes some kilobytes of the guest's memory, and when that is used up there is no message.
const maxDepth = 3000

// newShell makes a shell with its first variables. It has no descriptors yet.
func (w *World) newShell(environ []string, dir string) *Shell {
	s := &Shell{
		w: w, dir: dir, opts: defaultOptions(), vars: vars.New(nil), umask: 0o022, arg0: "bash",
		funcs: map[string]*function{}, aliases: map[string]string{}, hashed: map[string]*hashed{},
		traps: map[string]string{}, trapping: map[string]bool{}, seconds: time.Now(),
	}
	s.random = uint32(time.Now().UnixNano()) | 1
	environ = s.importFunctions(environ)
	s.vars = vars.New(environ)
	s.attach()
	return s
}

// attach gives s an expander of its own.
func (s *Shell) attach() {
	s.host = &host{s}
	s.exp = expand.New(s.vars, s.host)
	s.vars.Dynamic = s.host
	s.vars.Changed = s.changed
}

// changed is told of each variable that was set.
func (s *Shell) changed(name string) {
	if name == "PATH" && len(s.hashed) > 0 {
		s.hashed = map[string]*hashed{}
	}
}

// fork returns the shell of a subshell. Its descriptors are its own; who forks decides which.
func (s *Shell) fork() *Shell {
	s.shared = true
	c := &Shell{
		w: s.w, proc: s.w.newProc(nil), pid: s.pid, ppid: s.ppid,
		vars: s.vars.Clone(), dir: s.dir, oldDirs: slices.Clone(s.oldDirs), umask: s.umask,
		opts: s.opts, params: s.params, arg0: s.arg0, command: s.command, script: s.script,
		funcs: s.funcs, aliases: s.aliases, hashed: s.hashed, shared: true,
		traps: map[string]string{}, trapping: map[string]bool{},
		status: s.status, pipestatus: s.pipestatus, lastBg: s.lastBg, lastArg: s.lastArg,
		quiet: s.quiet, frames: slices.Clone(s.frames), line: s.line, base: s.base, fixed: s.fixed, depth: s.depth + 1,
		subshell: s.subshell + 1, seconds: s.seconds, random: s.random*2 + 1,
		src: s.src,
	}
	for _, j := range s.jobs {
		c.jobs = append(c.jobs, j.inherited())
	}
	if s.opts.has(optErrtrace) {
		c.copyTrap(s, "ERR")
	}
	if s.opts.has(optFunctrace) {
		c.copyTrap(s, "DEBUG")
		c.copyTrap(s, "RETURN")
	}
	for name, text := range s.traps {
		if text == "" && signalNumber(name) > 0 {
			c.traps[name] = ""
		}
	}
	if len(s.traps) > 0 {
		c.listed = maps.Clone(s.traps)
		c.inheritIgnored()
	}
	c.fds = make([]*desc, len(s.fds))
	for i, d := range s.fds {
		if d != nil {
			c.fds[i] = d.dup()
		}
	}
	c.attach()
	return c
}

func (s *Shell) copyTrap(from *Shell, name string) {
	if text, ok := from.traps[name]; ok {
		s.traps[name] = text
	}
}

// own copies what is shared with other shells, before it is changed.
func (s *Shell) own() {
	if s.shared {
		s.funcs, s.aliases, s.hashed = maps.Clone(s.funcs), maps.Clone(s.aliases), maps.Clone(s.hashed)
		s.shared = false
	}
}

// process runs f as a process: to its end, its exit, or the signal that ends it. It runs the EXIT trap, closes the
// descriptors, and returns the exit code.
func (s *Shell) process(ctx context.Context, f func(context.Context)) int {
	defer s.closeAll()
	sig := s.protect(ctx, f)
	if sig == cmd.SIGKILL {
		return sig.Code()
	}
	if text := s.traps["EXIT"]; text != "" {
		delete(s.traps, "EXIT")
		// The signal that ended the shell does not end its trap.
		ctx, cancel := s.proc.revive(ctx)
		defer cancel()
		s.jump, s.quiet, s.loops, s.frames = jumpNone, 0, 0, nil
		if again := s.protect(ctx, func(ctx context.Context) { s.runTrap(ctx, "EXIT", text, 0) }); again != 0 {
			sig = again
		}
	}
	if sig != 0 {
		return sig.Code()
	}
	return s.status
}

// protect runs f and returns the signal that ended it, 0 for none.
func (s *Shell) protect(ctx context.Context, f func(context.Context)) (sig cmd.Signal) {
	defer func() {
		if p := recover(); p != nil {
			var ok bool
			if sig, ok = p.(cmd.Signal); !ok {
				panic(p)
			}
			s.status = sig.Code()
		}
	}()
	f(ctx)
	return 0
}

func (s *Shell) closeAll() {
	for i, d := range s.fds {
		if d != nil {
			d.close()
			s.fds[i] = nil
		}
	}
}

// tick is called before each command: it lets other goroutines run now and then, ends the shell when it was killed, and
// runs the traps of signals.
func (s *Shell) tick(ctx context.Context) {
	s.ticks++
	if s.ticks&63 == 0 {
		runtime.Gosched()
	}
	if ctx.Err() != nil {
		cmd.Check(ctx)
	}
	if s.proc.signalled.Load() {
		s.runPending(ctx)
	}
}

// enter counts a level of recursion. It returns false, with a message, when there are too many.
func (s *Shell) enter(what string) bool {
	if s.depth >= maxDepth {
		s.errorf("%s: maximum nesting level exceeded (%d)", what, maxDepth)
		s.status = 1
		s.jump = jumpExit
		return false
	}
	s.depth++
	if s.depth%16 == 0 {
		// A goroutine that waits gives back the stack of the engine below it, which is much smaller than its own.
		runtime.Gosched()
	}
	return true
}

func (s *Shell) leave() { s.depth-- }

// fd returns a description, nil when the descriptor is closed.
func (s *Shell) fd(n int) *desc {
	if n < 0 || n >= len(s.fds) {
		return nil
	}
	return s.fds[n]
}

// setFd puts d, whose reference it takes over, into the table, and returns what was there.
func (s *Shell) setFd(n int, d *desc) *desc {
	for n >= len(s.fds) {
		s.fds = append(s.fds, nil)
	}
	old := s.fds[n]
	s.fds[n] = d
	return old
}

// stream returns a descriptor as a command sees it.
func (s *Shell) stream(ctx context.Context, n int) *stream {
	st := &stream{ctx: ctx, d: s.fd(n)}
	if text, ok := s.traps["PIPE"]; ok && text == "" {
		st.keep = true
	}
	return st
}

func (s *Shell) stderr() io.Writer { return s.stream(context.Background(), 2) }
