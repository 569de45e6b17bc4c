package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"mvdan.cc/sh/v3/syntax"
)

// job is a command in the background.
type job struct {
	num    int
	pid    int
	proc   *proc
	text   string
	done   chan struct{}
	code   *int // once done is closed
	other  bool // it is a job of the shell that this one was forked off
	waited bool // somebody waited for it, or was told of its end
	gone   bool // disowned, or listed as done
}

func (j *job) ended() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// inherited is the job as a subshell lists it.
func (j *job) inherited() *job {
	k := *j
	k.other = true
	return &k
}

// fork for something that runs beside its parent.
func (s *Shell) forkAsync(ctx context.Context) (context.Context, *Shell) {
	child := s.fork()
	ctx, cancel := context.WithCancelCause(ctx)
	child.proc = s.w.newProc(cancel)
	if len(child.traps) > 0 {
		child.inheritIgnored()
	}
	return ctx, child
}

// inheritIgnored tells the process of a new shell which signals are ignored.
func (s *Shell) inheritIgnored() {
	for name, text := range s.traps {
		if sig := signalNumber(name); sig > 0 && text == "" {
			s.proc.catch(sig, "", true)
		}
	}
}

// background starts a job.
func (s *Shell) background(ctx context.Context, st *syntax.Stmt) {
	// Its end is its own: a job goes on when the subshell that started it has ended.
	ctx, child := s.forkAsync(context.WithoutCancel(ctx))
	if call, ok := st.Cmd.(*syntax.CallExpr); ok && !st.Negated && len(call.Args) > 0 && !s.internal(call.Args[0].Lit()) {
		child.proc.simple = true
	}
	if !s.opts.has(optMonitor) {
		if old := child.setFd(0, nullDesc()); old != nil {
			old.close()
		}
		// As bash does without job control: the keyboard does not interrupt a job.
		child.proc.catch(cmd.SIGINT, "", true)
		child.proc.catch(cmd.SIGQUIT, "", true)
	}
	front := *st
	front.Background = false
	s.lastJob = 0
	for _, j := range s.jobs {
		if !j.other && !j.gone {
			s.lastJob = max(s.lastJob, j.num)
		}
	}
	j := &job{num: s.lastJob + 1, pid: child.proc.id(), proc: child.proc, done: make(chan struct{}), code: new(int)}
	j.text = strings.TrimSuffix(strings.TrimSpace(strings.TrimSuffix(s.nodeText(st), "&")), "&")
	s.lastJob = j.num
	s.jobs = append(s.jobs, j)
	s.lastBg = j.pid
	s.w.orphans.Add(1)
	go func() {
		defer s.w.orphans.Done()
		*j.code = child.process(ctx, func(ctx context.Context) {
			child.element(ctx, &front)
		})
		child.proc.end()
		close(j.done)
	}()
	s.setStatus(0)
}

// internal tells whether a name is a function or a built-in command.
func (s *Shell) internal(name string) bool {
	_, ok := s.funcs[name]
	return ok || isBuiltin(name)
}

// pipeline runs a | b | c, each in a subshell beside the others.
func (s *Shell) pipeline(ctx context.Context, c *syntax.BinaryCmd) {
	var parts []*syntax.Stmt
	var both []bool // |& after the part
	var flatten func(c *syntax.BinaryCmd)
	add := func(st *syntax.Stmt) {
		if b, ok := st.Cmd.(*syntax.BinaryCmd); ok && len(st.Redirs) == 0 && !st.Negated && (b.Op == syntax.Pipe || b.Op == syntax.PipeAll) {
			flatten(b)
			return
		}
		parts = append(parts, st)
	}
	flatten = func(c *syntax.BinaryCmd) {
		add(c.X)
		both = append(both, c.Op == syntax.PipeAll)
		add(c.Y)
	}
	flatten(c)

	codes := make([]int, len(parts))
	finished := make(chan struct{}, len(parts))
	var input *desc
	lastpipe := s.opts.has(optLastpipe) && !s.opts.has(optMonitor)
	line := s.line
	for i, st := range parts {
		var output, next *desc
		if i+1 < len(parts) {
			next, output = newPipe()
		} else if lastpipe {
			break
		}
		pctx, child := s.forkAsync(ctx)
		if input != nil {
			if old := child.setFd(0, input); old != nil {
				old.close()
			}
		}
		if output != nil {
			if old := child.setFd(1, output); old != nil {
				old.close()
			}
			if both[i] {
				if old := child.setFd(2, output.dup()); old != nil {
					old.close()
				}
			}
		}
		input = next
		run := func() {
			codes[i] = child.process(pctx, func(ctx context.Context) { child.element(ctx, st) })
			child.proc.end()
			child.proc.cancel(nil)
			finished <- struct{}{}
		}
		go run()
	}
	waitFor := len(parts)
	if lastpipe {
		waitFor--
		old := s.setFd(0, input)
		s.stmt(ctx, parts[len(parts)-1])
		s.setFd(0, old).close()
		codes[len(parts)-1] = s.status
	}
	for range waitFor {
		<-finished
	}
	if ctx.Err() != nil {
		cmd.Check(ctx)
	}
	s.line = line
	s.pipestatus = codes
	if lastpipe && s.jump != jumpNone {
		return
	}
	s.status = codes[len(codes)-1]
	if s.opts.has(optPipefail) {
		for _, code := range codes {
			if code != 0 {
				s.status = code
			}
		}
	}
}

// element runs a statement in a shell that is there for it alone: of ( ) no second one is made.
func (s *Shell) element(ctx context.Context, st *syntax.Stmt) {
	sub, ok := st.Cmd.(*syntax.Subshell)
	if !ok || st.Negated || st.Background {
		s.stmt(ctx, st)
		return
	}
	if _, ok := s.redirect(ctx, st.Redirs); !ok {
		s.status = 1
		return
	}
	s.stmts(ctx, sub.Stmts)
}

// processSubst starts <(command) or >(command).
func (s *Shell) processSubst(ctx context.Context, p *syntax.ProcSubst) (string, error) {
	if p.Op == syntax.CmdInTemp {
		return "", errors.New("syntax error near unexpected token `('")
	}
	pctx, child := s.forkAsync(context.WithoutCancel(ctx))
	r, w := newPipe()
	theirs, fd, ours := w, 1, r
	if p.Op == syntax.CmdOut {
		theirs, fd, ours = r, 0, w
	}
	if old := child.setFd(fd, theirs); old != nil {
		old.close()
	}
	n := 63
	for s.fd(n) != nil {
		n--
	}
	s.setFd(n, ours)
	s.procFds = append(s.procFds, n)
	child.quiet = 0
	j := &job{pid: child.proc.id(), proc: child.proc, done: make(chan struct{}), code: new(int), gone: true}
	s.jobs = append(s.jobs, j)
	s.lastBg = j.pid
	s.w.orphans.Add(1)
	go func() {
		defer s.w.orphans.Done()
		*j.code = child.process(pctx, func(ctx context.Context) { child.stmts(ctx, p.Stmts) })
		child.proc.end()
		close(j.done)
	}()
	return "/dev/fd/" + strconv.Itoa(n), nil
}

// findJob understands %1, %+, %-, %name, %?text.
func (s *Shell) findJob(spec string) (*job, bool) {
	var mine []*job
	for _, j := range s.jobs {
		if !j.gone && j.num > 0 {
			mine = append(mine, j)
		}
	}
	if len(mine) == 0 {
		return nil, false
	}
	switch text := strings.TrimPrefix(spec, "%"); {
	case text == "" || text == "+" || text == "%":
		return mine[len(mine)-1], true
	case text == "-":
		return mine[max(0, len(mine)-2)], true
	default:
		n, err := strconv.Atoi(text)
		for _, j := range mine {
			sub, anywhere := strings.CutPrefix(text, "?")
			switch {
			case err == nil && j.num == n,
				err != nil && anywhere && strings.Contains(j.text, sub),
				err != nil && !anywhere && strings.HasPrefix(j.text, text):
				return j, true
			}
		}
	}
	return nil, false
}

// await waits for a job. It returns false and the code of wait when a signal with a trap came first.
func (s *Shell) await(ctx context.Context, j *job) (int, bool) {
	wake := s.proc.wakeup()
	if wake == nil && !j.ended() {
		return s.interrupted(ctx), false
	}
	select {
	case <-j.done:
	case <-wake:
	case <-ctx.Done():
		cmd.Check(ctx)
	}
	if wake != nil && s.proc.signalled.Load() {
		// Also when the job has ended since: the signal came first, it was its last act.
		return s.interrupted(ctx), false
	}
	return *j.code, true
}

// interrupted runs the traps that ended a wait.
func (s *Shell) interrupted(ctx context.Context) int {
	s.proc.mu.Lock()
	code := 128
	if len(s.proc.pending) > 0 {
		code += int(s.proc.pending[0])
	}
	s.proc.mu.Unlock()
	s.runPending(ctx)
	return code
}

// waitBuiltin is wait.
func (s *Shell) waitBuiltin(c *callCtx, args []string) int {
	var next bool
	variable := ""
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for i := 1; i < len(a); i++ {
			switch a[i] {
			case 'n':
				next = true
			case 'f':
				// A job here is never stopped: it waits for the end anyway.
			case 'p':
				if variable = a[i+1:]; variable == "" {
					if len(args) == 0 {
						c.errorf("wait: -p: option requires an argument")
						return 2
					}
					variable, args = args[0], args[1:]
				}
				i = len(a)
			default:
				c.errorf("wait: -%c: invalid option", a[i])
				c.plain("wait: usage: wait [-fn] [-p var] [id ...]")
				return 2
			}
		}
	}
	if variable != "" {
		_ = s.vars.Unset(variable)
	}
	if next {
		return s.waitNext(c, args, variable)
	}
	if len(args) == 0 {
		for _, j := range s.jobs {
			if j.other || j.num == 0 && j.waited {
				continue
			}
			if j.num == 0 && j.pid != s.lastBg {
				continue // a process substitution but the last
			}
			if code, ok := s.await(c.ctx, j); !ok {
				return code
			}
			j.waited = true
		}
		s.dropDone()
		return 0
	}
	code := 0
	for _, a := range args {
		var j *job
		if strings.HasPrefix(a, "%") {
			var ok bool
			if j, ok = s.findJob(a); !ok {
				c.errorf("wait: %s: no such job", a)
				code = 127
				continue
			}
		} else {
			pid, err := strconv.Atoi(a)
			if err != nil {
				c.errorf("wait: `%s': not a pid or valid job spec", a)
				code = 1
				continue
			}
			for _, k := range s.jobs {
				if k.pid == pid && !k.other {
					j = k
				}
			}
			if j == nil {
				c.errorf("wait: pid %d is not a child of this shell", pid)
				code = 127
				continue
			}
		}
		var ok bool
		if code, ok = s.await(c.ctx, j); !ok {
			return code
		}
		if !j.waited && code == 128+int(cmd.SIGKILL) {
			s.errorf("%5d Killed                  %s", j.pid, j.text)
		}
		j.waited = true
		if variable != "" {
			s.vars.Set(variable, strconv.Itoa(j.pid))
		}
	}
	s.dropDone()
	return code
}

// dropDone forgets jobs that have been waited for; their codes are kept for another wait.
func (s *Shell) dropDone() {
	for _, j := range s.jobs {
		if j.waited && j.ended() {
			j.gone = true
		}
	}
	// A script with thousands of jobs needs the codes of the last few hundred at most.
	if len(s.jobs) > 4096 {
		kept := s.jobs[:0]
		for i, j := range s.jobs {
			if !j.gone || i > len(s.jobs)-1024 {
				kept = append(kept, j)
			}
		}
		s.jobs = kept
	}
}

// waitNext is wait -n: for the first of the jobs that ends.
func (s *Shell) waitNext(c *callCtx, args []string, variable string) int {
	var among []*job
	for _, j := range s.jobs {
		if j.other || j.waited || j.num == 0 {
			continue
		}
		if len(args) == 0 {
			among = append(among, j)
			continue
		}
		for _, a := range args {
			if k, ok := s.findJob(a); a == strconv.Itoa(j.pid) || strings.HasPrefix(a, "%") && ok && k == j {
				among = append(among, j)
			}
		}
	}
	if len(among) == 0 {
		return 127
	}
	first := make(chan *job, len(among))
	stop := make(chan struct{})
	defer close(stop)
	for _, j := range among {
		if j.ended() {
			first <- j
			break
		}
	}
	if len(first) == 0 {
		for _, j := range among {
			go func() {
				select {
				case <-j.done:
					first <- j
				case <-stop:
				}
			}()
		}
	}
	wake := s.proc.wakeup()
	if wake == nil {
		return s.interrupted(c.ctx)
	}
	select {
	case j := <-first:
		j.waited, j.gone = true, true
		if variable != "" {
			s.vars.Set(variable, strconv.Itoa(j.pid))
		}
		return *j.code
	case <-wake:
		return s.interrupted(c.ctx)
	case <-c.ctx.Done():
		cmd.Check(c.ctx)
	}
	return 127
}

// jobsBuiltin is jobs.
func (s *Shell) jobsBuiltin(c *callCtx, args []string) int {
	var long, pids, running, stopped bool
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		for _, l := range args[0][1:] {
			switch l {
			case 'l':
				long = true
			case 'p':
				pids = true
			case 'r':
				running = true
			case 's':
				stopped = true
			case 'n':
			default:
				c.errorf("jobs: -%c: invalid option", l)
				c.plain("jobs: usage: jobs [-lnprs] [jobspec ...] or jobs -x command [args]")
				return 2
			}
		}
		args = args[1:]
	}
	code := 0
	var list []*job
	for _, j := range s.jobs {
		if !j.gone && j.num > 0 {
			list = append(list, j)
		}
	}
	wanted := list
	if len(args) > 0 {
		wanted = nil
		for _, a := range args {
			j, ok := s.findJob(a)
			if !ok {
				c.errorf("jobs: %s: no such job", a)
				code = 1
				continue
			}
			wanted = append(wanted, j)
		}
	}
	for _, j := range wanted {
		ended := j.ended()
		if stopped || running && ended {
			continue
		}
		if pids {
			fmt.Fprintln(c.stdout(), j.pid)
			continue
		}
		mark := ' '
		if len(list) > 0 && list[len(list)-1] == j {
			mark = '+'
		} else if len(list) > 1 && list[len(list)-2] == j {
			mark = '-'
		}
		state, amp := "Running", " &"
		if ended {
			state, amp = "Done", ""
			switch {
			case *j.code > 128 && signalText(cmd.Signal(*j.code-128)) != "":
				state = signalText(cmd.Signal(*j.code - 128))
			case *j.code != 0:
				state = "Exit " + strconv.Itoa(*j.code)
			}
			j.gone = !j.other
		}
		if long {
			fmt.Fprintf(c.stdout(), "[%d]%c %5d %-23s %s%s\n", j.num, mark, j.pid, state, j.text, amp)
		} else {
			fmt.Fprintf(c.stdout(), "[%d]%c  %-23s %s%s\n", j.num, mark, state, j.text, amp)
		}
	}
	return code
}

func signalText(sig cmd.Signal) string {
	switch sig {
	case cmd.SIGHUP:
		return "Hangup"
	case cmd.SIGINT:
		return "Interrupt"
	case cmd.SIGQUIT:
		return "Quit"
	case cmd.SIGKILL:
		return "Killed"
	case cmd.SIGTERM:
		return "Terminated"
	case cmd.SIGALRM:
		return "Alarm clock"
	case cmd.SIGPIPE:
		return "Broken pipe"
	}
	return ""
}

// disownBuiltin is disown.
func (s *Shell) disownBuiltin(c *callCtx, args []string) int {
	all, mark := false, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		for _, l := range args[0][1:] {
			switch l {
			case 'a', 'r':
				all = true
			case 'h':
				mark = true
			default:
				c.errorf("disown: -%c: invalid option", l)
				c.plain("disown: usage: disown [-h] [-ar] [jobspec ... | pid ...]")
				return 2
			}
		}
		args = args[1:]
	}
	if all {
		for _, j := range s.jobs {
			j.gone = j.gone || !mark
		}
		return 0
	}
	if len(args) == 0 {
		args = []string{"%+"}
	}
	code := 0
	for _, a := range args {
		j, ok := s.jobOrPid(a)
		if !ok {
			c.errorf("disown: %s: no such job", strings.Replace(a, "%+", "current", 1))
			code = 1
			continue
		}
		j.gone = j.gone || !mark
	}
	return code
}

func (s *Shell) jobOrPid(spec string) (*job, bool) {
	if strings.HasPrefix(spec, "%") {
		return s.findJob(spec)
	}
	for _, j := range s.jobs {
		if strconv.Itoa(j.pid) == spec && !j.gone {
			return j, true
		}
	}
	return nil, false
}

// foreground is fg: there is no terminal to bring a job to, but waiting for it is what it means.
func (s *Shell) foreground(c *callCtx, args []string) int {
	if !s.opts.has(optMonitor) {
		c.errorf("fg: no job control")
		return 1
	}
	spec := "%+"
	if len(args) > 0 {
		spec = args[0]
	}
	j, ok := s.jobOrPid(spec)
	if !ok {
		c.errorf("fg: %s: no such job", strings.Replace(spec, "%+", "current", 1))
		return 1
	}
	fmt.Fprintln(c.stdout(), j.text)
	code, done := s.await(c.ctx, j)
	if done {
		j.waited, j.gone = true, true
	}
	return code
}

// killBuiltin is kill.
func (s *Shell) killBuiltin(c *callCtx, args []string) int {
	usage := func() int {
		c.plain("kill: usage: kill [-s sigspec | -n signum | -sigspec] pid | jobspec ... or kill -l [sigspec]")
		return 2
	}
	sig := cmd.SIGTERM
	if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		switch {
		case a == "-l" || a == "-L":
			return s.listSignals(c, args[1:])
		case a == "--":
			args = args[1:]
		case a == "-s" || a == "-n":
			if len(args) < 2 {
				c.errorf("kill: %s: option requires an argument", a)
				return 1
			}
			if sig = signalNumber(args[1]); sig < 0 {
				c.errorf("kill: %s: invalid signal specification", args[1])
				return 1
			}
			args = args[2:]
		default:
			name := a[1:]
			if len(name) > 1 && (name[0] == 's' || name[0] == 'n') && signalNumber(name) < 0 {
				name = name[1:]
			}
			if sig = signalNumber(name); sig < 0 {
				c.errorf("kill: %s: invalid signal specification", name)
				return 1
			}
			args = args[1:]
		}
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return usage()
	}
	code := 1
	for _, a := range args {
		if strings.HasPrefix(a, "%") {
			j, ok := s.findJob(a)
			if !ok {
				c.errorf("kill: %s: no such job", a)
				continue
			}
			if j.ended() {
				c.errorf("kill: (%d) - No such process", j.pid)
				continue
			}
			j.proc.kill(sig)
			code = 0
			continue
		}
		pid, err := strconv.Atoi(a)
		if err != nil {
			c.errorf("kill: %s: arguments must be process or job IDs", a)
			continue
		}
		if pid == 0 || pid == -1 {
			pid = s.pid // the group: the shell and all it started
			for _, j := range s.jobs {
				if !j.ended() && j.proc != s.proc {
					j.proc.kill(sig)
				}
			}
		}
		if pid < 0 {
			pid = -pid
		}
		s.w.mu.Lock()
		p := s.w.procs[pid]
		s.w.mu.Unlock()
		if p == nil {
			c.errorf("kill: (%s) - No such process", a)
			continue
		}
		p.kill(sig)
		code = 0
	}
	if c.ctx.Err() != nil {
		cmd.Check(c.ctx)
	}
	if s.proc.signalled.Load() {
		s.runPending(c.ctx)
	}
	return code
}

func (s *Shell) listSignals(c *callCtx, args []string) int {
	if len(args) == 0 {
		n := 0
		for sig := cmd.Signal(1); sig <= 64; sig++ {
			name := signalName(sig)
			if name == "" {
				continue
			}
			n++
			end := "\t"
			if n%5 == 0 {
				end = "\n"
			}
			fmt.Fprintf(c.stdout(), "%2d) SIG%s%s", int(sig), name, end)
		}
		io.WriteString(c.stdout(), "\n")
		return 0
	}
	code := 0
	for _, a := range args {
		if n, err := strconv.Atoi(a); err == nil {
			if n > 128 {
				n -= 128
			}
			if name := signalName(cmd.Signal(n)); name != "" {
				fmt.Fprintln(c.stdout(), name)
				continue
			}
		} else if sig := signalNumber(a); sig > 0 {
			fmt.Fprintln(c.stdout(), int(sig))
			continue
		}
		c.errorf("kill: %s: invalid signal specification", a)
		code = 1
	}
	return code
}
