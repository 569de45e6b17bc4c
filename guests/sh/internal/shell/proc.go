package shell

import (
	"context"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// proc is what has a process id: a shell, a subshell, a job.
type proc struct {
	w         *World
	signalled atomic.Bool // there is something in pending or doomed

	mu      sync.Mutex
	pid     int
	cancel  context.CancelCauseFunc // nil: a subshell that its parent waits for; it looks at doomed
	doomed  cmd.Signal
	caught  map[cmd.Signal]bool // true: there is a trap; false: ignored
	pending []cmd.Signal
	notify  chan struct{} // wakes `wait`
	simple  bool          // a job that is one simple command: a shell that this command is, is the process itself
}

func (w *World) newProc(cancel context.CancelCauseFunc) *proc {
	p := &proc{w: w, cancel: cancel}
	if cancel != nil {
		p.id()
	}
	return p
}

// id gives the process a number when somebody asks for it.
func (p *proc) id() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid == 0 {
		p.w.mu.Lock()
		p.w.lastPID++
		p.pid = p.w.lastPID
		p.w.procs[p.pid] = p
		p.w.mu.Unlock()
	}
	return p.pid
}

// end forgets the process.
func (p *proc) end() {
	p.mu.Lock()
	pid := p.pid
	p.mu.Unlock()
	if pid != 0 {
		p.w.mu.Lock()
		delete(p.w.procs, pid)
		p.w.mu.Unlock()
	}
}

// startProc makes s a process of its own: the child of parent, or what parent has become.
func (w *World) startProc(ctx context.Context, s, parent *Shell) (context.Context, func()) {
	if parent != nil && parent.proc.takeOver() {
		s.proc = parent.proc
		s.pid = s.proc.id()
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s.proc = w.newProc(cancel)
	s.pid = s.proc.id()
	if s.ppid == 0 {
		s.ppid = 1
	}
	return ctx, func() {
		s.proc.end()
		cancel(nil)
	}
}

// takeOver tells whether the command that runs in p is all that p is.
func (p *proc) takeOver() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	ok := p.simple
	p.simple = false
	return ok
}

// replace makes p what the command is that exec runs: signals do to it what they do by default.
func (p *proc) replace() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for sig, trapped := range p.caught {
		if trapped {
			delete(p.caught, sig)
		}
	}
	p.simple = true
}

// kill sends a signal to p.
func (p *proc) kill(sig cmd.Signal) {
	if sig == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if sig != cmd.SIGKILL {
		if trapped, ok := p.caught[sig]; ok {
			if trapped {
				p.pending = append(p.pending, sig)
				p.signalled.Store(true)
				if p.notify != nil {
					close(p.notify)
					p.notify = nil
				}
			}
			return
		}
	}
	switch sig {
	case 17, 18, 19, 20, 21, 22, 23, 28:
		// CHLD, CONT, URG and WINCH do nothing unless there is a trap; nothing here can be stopped.
		return
	}
	if p.cancel != nil {
		p.cancel(sig)
		return
	}
	p.doomed = sig
	p.signalled.Store(true)
}

// wakeup returns a channel that is closed by the next signal with a trap; nil when there is one already.
func (p *proc) wakeup() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pending) > 0 {
		return nil
	}
	if p.notify == nil {
		p.notify = make(chan struct{})
	}
	return p.notify
}

// take returns what is pending.
func (p *proc) take() ([]cmd.Signal, cmd.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signalled.Store(false)
	pending := p.pending
	p.pending = nil
	return pending, p.doomed
}

// catch says what a signal does from now on.
func (p *proc) catch(sig cmd.Signal, trap string, set bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !set {
		delete(p.caught, sig)
		return
	}
	if p.caught == nil {
		p.caught = map[cmd.Signal]bool{}
	}
	p.caught[sig] = trap != ""
}

// revive returns a context in which the EXIT trap of a process that a signal has ended can run.
func (p *proc) revive(ctx context.Context) (context.Context, func()) {
	if ctx.Err() == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancel, p.doomed = cancel, 0
	return ctx, func() { cancel(nil) }
}

// runPending runs the traps of the signals that came.
func (s *Shell) runPending(ctx context.Context) {
	pending, doomed := s.proc.take()
	if doomed != 0 {
		panic(doomed)
	}
	for _, sig := range pending {
		name := signalName(sig)
		if text := s.traps[name]; text != "" {
			s.runTrap(ctx, name, text, 0)
			if s.jump != jumpNone {
				return
			}
		}
	}
}

// Names of the signals of Linux, from 1.
var signalNames = [...]string{
	1: "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
	"STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
}

func signalName(sig cmd.Signal) string {
	if sig > 0 && int(sig) < len(signalNames) {
		return signalNames[sig]
	}
	if sig >= 34 && sig <= 64 {
		switch {
		case sig == 34:
			return "RTMIN"
		case sig == 64:
			return "RTMAX"
		case sig <= 49:
			return "RTMIN+" + strconv.Itoa(int(sig)-34)
		}
		return "RTMAX-" + strconv.Itoa(64-int(sig))
	}
	return ""
}

// signalNumber understands TERM, SIGTERM, sigterm and 15; -1: no signal.
func signalNumber(name string) cmd.Signal {
	if n, err := strconv.Atoi(name); err == nil {
		if n == 0 || signalName(cmd.Signal(n)) != "" {
			return cmd.Signal(n)
		}
		return -1
	}
	name = strings.TrimPrefix(strings.ToUpper(name), "SIG")
	for n := cmd.Signal(1); n <= 64; n++ {
		if signalName(n) == name && name != "" {
			return n
		}
	}
	return -1
}

// trapName is the key of a trap: EXIT, ERR, DEBUG, RETURN or a signal without SIG; "" for what is none.
func trapName(name string) string {
	switch up := strings.ToUpper(name); up {
	case "EXIT", "ERR", "DEBUG", "RETURN":
		return up
	case "0":
		return "EXIT"
	}
	if n := signalNumber(name); n > 0 {
		return signalName(n)
	}
	return ""
}

// trapOrder sorts traps as `trap` lists them.
func trapOrder(names []string) {
	rank := func(name string) int {
		switch name {
		case "EXIT":
			return 0
		case "DEBUG":
			return 65
		case "ERR":
			return 66
		case "RETURN":
			return 67
		}
		return int(signalNumber(name))
	}
	sort.Slice(names, func(i, j int) bool { return rank(names[i]) < rank(names[j]) })
}

// setTrap changes a trap.
func (s *Shell) setTrap(name, text string, set bool) {
	s.listed = nil
	if set {
		s.traps[name] = text
	} else {
		delete(s.traps, name)
	}
	if sig := signalNumber(name); sig > 0 {
		s.proc.catch(sig, text, set)
	}
}

// runTrap runs the text of a trap. Line is what LINENO is in it, 0: its own lines.
func (s *Shell) runTrap(ctx context.Context, name, text string, line int) {
	if s.trapping[name] {
		return
	}
	s.trapping[name] = true
	status, pipes, fixed, subst, code, last := s.status, s.pipestatus, s.fixed, s.subst, s.substCode, s.lastArg
	at := s.line
	if line > 0 {
		s.fixed = line
	}
	s.traceLevel++
	defer func() {
		s.traceLevel--
		s.trapping[name] = false
		s.fixed, s.line = fixed, at
		s.subst, s.substCode, s.lastArg = subst, code, last
	}()
	s.runText(ctx, s.source(), text, 0)
	if s.jump == jumpNone {
		s.status, s.pipestatus = status, pipes
	}
}

func (s *Shell) debugTrap(ctx context.Context) {
	if len(s.traps) == 0 {
		return
	}
	if text := s.traps["DEBUG"]; text != "" {
		s.runTrap(ctx, "DEBUG", text, s.line)
	}
}

func (s *Shell) returnTrap(ctx context.Context) {
	if text := s.traps["RETURN"]; text != "" && (s.jump == jumpNone || s.jump == jumpReturn) {
		jump := s.jump
		s.jump = jumpNone
		s.runTrap(ctx, "RETURN", text, s.lineno())
		if s.jump == jumpNone {
			s.jump = jump
		}
	}
}

// hideTraps takes away the traps that a function does not inherit, and returns them.
func (s *Shell) hideTraps() map[string]string {
	if len(s.traps) == 0 {
		return nil
	}
	var hidden map[string]string
	hide := func(name string, unless opt) {
		if text, ok := s.traps[name]; ok && !s.opts.has(unless) {
			if hidden == nil {
				hidden = map[string]string{}
			}
			hidden[name] = text
			delete(s.traps, name)
		}
	}
	hide("ERR", optErrtrace)
	hide("DEBUG", optFunctrace)
	hide("RETURN", optFunctrace)
	return hidden
}

// showTraps brings back what was hidden, but where the function set its own.
func (s *Shell) showTraps(hidden map[string]string) {
	for name, text := range hidden {
		if _, ok := s.traps[name]; !ok {
			s.traps[name] = text
		}
	}
}
