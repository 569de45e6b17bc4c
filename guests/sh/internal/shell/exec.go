package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/expand"
	"github.com/exthost/exthost/guests/sh/internal/vars"
	"mvdan.cc/sh/v3/syntax"
)

const attrExport = vars.Export

func (s *Shell) stmts(ctx context.Context, list []*syntax.Stmt) {
	for _, st := range list {
		s.stmt(ctx, st)
		if s.jump != jumpNone {
			return
		}
	}
}

// condition runs statements whose failure is an answer.
func (s *Shell) condition(ctx context.Context, list []*syntax.Stmt) {
	s.quiet++
	s.stmts(ctx, list)
	s.quiet--
}

// stmt runs a statement: negation, background, redirections, the command.
func (s *Shell) stmt(ctx context.Context, st *syntax.Stmt) {
	s.tick(ctx)
	if s.jump != jumpNone {
		return
	}
	switch {
	case s.opts.has(optNoexec):
		return
	case st.Background:
		s.background(ctx, st)
		return
	case st.Coprocess, st.Disown:
		s.errorf("syntax error near unexpected token `&'")
		s.status = 2
		s.jump = jumpExit
		return
	}
	mark := len(s.procFds)
	if st.Negated {
		s.quiet++
		s.exec(ctx, st)
		s.quiet--
		if s.jump == jumpNone || s.jump == jumpReturn {
			s.status = bit(s.status == 0)
		}
	} else {
		s.exec(ctx, st)
	}
	if len(s.procFds) > mark {
		s.closeProcFds(mark)
	}
}

func (s *Shell) closeProcFds(mark int) {
	for _, n := range s.procFds[mark:] {
		if d := s.setFd(n, nil); d != nil {
			d.close()
		}
	}
	s.procFds = s.procFds[:mark]
}

// exec runs a command with its redirections, and judges its code where errexit and the ERR trap count it.
func (s *Shell) exec(ctx context.Context, st *syntax.Stmt) {
	if st.Cmd != nil {
		s.line = int(st.Cmd.Pos().Line()) + s.base
		if s.fixed == 0 {
			s.current, s.currentSrc = st.Cmd, s.src
		}
	}
	switch c := st.Cmd.(type) {
	case *syntax.CallExpr:
		s.call(ctx, c, st.Redirs)
		s.judge(ctx)
		return
	case *syntax.DeclClause:
		s.declare(ctx, c, st.Redirs)
		s.judge(ctx)
		return
	case *syntax.BinaryCmd:
		if len(st.Redirs) == 0 {
			s.binary(ctx, c)
			return
		}
	case *syntax.FuncDecl:
		s.define(c)
		return
	case *syntax.CoprocClause:
		s.errorf("coproc: no coprocesses in the sandbox; use a pipeline, or process substitution: < <(command)")
		s.status = 1
		s.judge(ctx)
		return
	}
	if len(st.Redirs) == 0 {
		s.compound(ctx, st.Cmd)
		return
	}
	saved, ok := s.redirect(ctx, st.Redirs)
	if ok && st.Cmd == nil {
		s.setStatus(0)
	} else if ok {
		s.compound(ctx, st.Cmd)
	}
	s.restore(saved)
	if !ok {
		s.setStatus(1)
		s.judge(ctx)
	}
}

// setStatus is the end of a pipeline of one command.
func (s *Shell) setStatus(code int) {
	s.status = code
	s.onePipe(code)
}

func (s *Shell) onePipe(code int) {
	if len(s.pipestatus) == 1 && s.pipestatus[0] == code {
		return
	}
	s.pipestatus = []int{code}
}

// judge ends the shell when a command failed that errexit counts, after the ERR trap.
func (s *Shell) judge(ctx context.Context) {
	if s.status == 0 || s.quiet > 0 || s.jump != jumpNone {
		return
	}
	code := s.status
	if text := s.traps["ERR"]; text != "" && !s.trapping["ERR"] {
		s.runTrap(ctx, "ERR", text, s.lineno())
		if s.jump != jumpNone {
			return
		}
		s.status = code
	}
	if s.opts.has(optErrexit) {
		s.jump = jumpExit
	}
}

func (s *Shell) compound(ctx context.Context, c syntax.Command) {
	switch c := c.(type) {
	case *syntax.Block:
		s.stmts(ctx, c.Stmts)
	case *syntax.Subshell:
		s.inSubshell(ctx, func(ctx context.Context, child *Shell) { child.stmts(ctx, c.Stmts) })
		s.judge(ctx)
	case *syntax.IfClause:
		s.ifClause(ctx, c)
	case *syntax.WhileClause:
		s.while(ctx, c)
	case *syntax.ForClause:
		switch loop := c.Loop.(type) {
		case *syntax.CStyleLoop:
			s.forArithm(ctx, loop, c.Do)
		case *syntax.WordIter:
			if c.Select {
				s.selectLoop(ctx, loop, c.Do)
			} else {
				s.forWords(ctx, loop, c.Do)
			}
		}
	case *syntax.CaseClause:
		s.caseClause(ctx, c)
	case *syntax.BinaryCmd:
		s.binary(ctx, c)
	case *syntax.ArithmCmd:
		s.debugTrap(ctx)
		if s.opts.has(optXtrace) {
			s.trace("((  %s  ))", s.nodeText(c.X))
		}
		n, err := s.exp.Arithm(ctx, c.X)
		s.truth(ctx, n != 0, err, "((: ")
	case *syntax.LetClause:
		s.let(ctx, c)
	case *syntax.TestClause:
		s.debugTrap(ctx)
		test := s.exp.Test
		if s.opts.has(optXtrace) {
			test = s.test
		}
		ok, err := test(ctx, c.X)
		s.truth(ctx, ok, err, "[[: ")
	case *syntax.TimeClause:
		s.time(ctx, c)
	default:
		s.errorf("syntax error: unsupported command")
		s.status = 2
		s.jump = jumpExit
	}
}

// truth is the end of (( )), [[ ]] and let: the mistakes of theirs that are no mistakes of the script fail like false.
func (s *Shell) truth(ctx context.Context, ok bool, err error, what string) {
	code := bit(!ok)
	if err != nil {
		var arith *expand.ArithError
		var regex *expand.RegexError
		var readonly *vars.ReadOnlyError
		switch {
		case errors.As(err, &regex):
			if text := err.Error(); text != "" {
				s.errorf("%s", text)
			}
			code = 2
		case errors.As(err, &arith):
			s.errorf("%s%v", what, err)
			code = 1
		case errors.As(err, &readonly):
			s.errorf("%v", err)
			code = 1
		default:
			s.fail(err)
			return
		}
	}
	s.setStatus(code)
	s.judge(ctx)
}

// fail reports an error of expansion or assignment, and ends what it ends in bash.
func (s *Shell) fail(err error) {
	var exit *exitError
	if errors.As(err, &exit) {
		return
	}
	s.errorf("%v", err)
	s.setStatus(1)
	var unset *expand.UnsetError
	if errors.As(err, &unset) {
		if s.script == "" && s.command != "" && s.subshell == 0 && !unset.Length {
			s.status = 127
		}
		s.jump = jumpExit
		return
	}
	s.jump = jumpDiscard
}

// exitError is an error that has been reported.
type exitError struct{ error }

func (s *Shell) ifClause(ctx context.Context, c *syntax.IfClause) {
	for ; c != nil; c = c.Else {
		if len(c.Cond) == 0 { // else
			s.stmts(ctx, c.Then)
			return
		}
		s.condition(ctx, c.Cond)
		if s.jump != jumpNone {
			return
		}
		if s.status == 0 {
			s.stmts(ctx, c.Then)
			return
		}
	}
	s.status = 0
}

// broken looks at what happened in a loop's body. It returns true when the loop ends.
func (s *Shell) broken() bool {
	switch s.jump {
	case jumpNone:
		return false
	case jumpBreak:
		if s.jumpN--; s.jumpN == 0 {
			s.jump = jumpNone
		}
		return true
	case jumpContinue:
		if s.jumpN > 1 {
			s.jumpN--
			return true
		}
		s.jump = jumpNone
		return false
	}
	return true
}

func (s *Shell) while(ctx context.Context, c *syntax.WhileClause) {
	s.loops++
	defer func() { s.loops-- }()
	code := 0
	for {
		s.condition(ctx, c.Cond)
		if s.jump != jumpNone {
			if s.broken() {
				if s.jump == jumpNone {
					s.status = code
				}
				return
			}
			continue
		}
		if (s.status == 0) == c.Until {
			break
		}
		s.stmts(ctx, c.Do)
		code = s.status
		if s.broken() {
			return
		}
	}
	s.status = code
}

func (s *Shell) forWords(ctx context.Context, loop *syntax.WordIter, do []*syntax.Stmt) {
	items := s.params
	if loop.InPos.IsValid() {
		var err error
		if items, err = s.exp.Fields(ctx, loop.Items...); err != nil {
			s.fail(err)
			return
		}
	}
	s.loops++
	defer func() { s.loops-- }()
	s.status = 0
	line := int(loop.Pos().Line()) + s.base
	for _, item := range items {
		s.line = line
		s.debugTrap(ctx)
		if s.opts.has(optXtrace) {
			s.traceFor(loop)
		}
		if err := s.setLoop(loop.Name.Value, item); err != nil {
			s.loopError(err)
			return
		}
		s.stmts(ctx, do)
		if s.broken() {
			return
		}
		if len(do) == 0 {
			s.tick(ctx)
		}
	}
}

// loopError ends a loop whose variable cannot be set. The commands after it run all the same when it is read-only.
func (s *Shell) loopError(err error) {
	var readOnly *vars.ReadOnlyError
	if !errors.As(err, &readOnly) {
		s.fail(err)
		return
	}
	s.errorf("%v", err)
	s.setStatus(1)
}

// setLoop sets the variable of a loop; what a name reference refers to changes with each turn.
func (s *Shell) setLoop(name, value string) error {
	if v, ok := s.vars.Raw(name); ok && v.Attr&vars.NameRef != 0 {
		return s.vars.Point(name, value)
	}
	return s.vars.Set(name, value)
}

func (s *Shell) forArithm(ctx context.Context, loop *syntax.CStyleLoop, do []*syntax.Stmt) {
	eval := func(x syntax.ArithmExpr) (int64, bool) {
		if x == nil {
			return 1, true
		}
		if s.opts.has(optXtrace) {
			s.trace("((  %s  ))", s.nodeText(x))
		}
		n, err := s.exp.Arithm(ctx, x)
		if err != nil {
			s.truth(ctx, false, err, "((: ")
			return 0, false
		}
		return n, true
	}
	s.loops++
	defer func() { s.loops-- }()
	line := s.line
	s.status = 0
	if _, ok := eval(loop.Init); !ok {
		return
	}
	for {
		s.tick(ctx)
		s.line = line
		if n, ok := eval(loop.Cond); !ok || n == 0 {
			return
		}
		s.stmts(ctx, do)
		if s.broken() {
			return
		}
		s.line = line
		if _, ok := eval(loop.Post); !ok {
			return
		}
	}
}

func (s *Shell) caseClause(ctx context.Context, c *syntax.CaseClause) {
	s.debugTrap(ctx)
	if s.opts.has(optXtrace) {
		s.trace("case %s in", s.nodeText(c.Word))
	}
	word, err := s.exp.Literal(ctx, c.Word)
	if err != nil {
		s.fail(err)
		return
	}
	s.status = 0
	for i := 0; i < len(c.Items); i++ {
		item := c.Items[i]
		matched := false
		for _, w := range item.Patterns {
			p, err := s.exp.Pattern(ctx, w)
			if err != nil {
				s.fail(err)
				return
			}
			if matched = s.exp.Match(p, word); matched {
				break
			}
		}
		if !matched {
			continue
		}
		for {
			s.status = 0
			s.stmts(ctx, item.Stmts)
			if s.jump != jumpNone || item.Op == syntax.Break {
				return
			}
			if item.Op == syntax.Resume {
				break
			}
			// ;& runs the next list, whatever its patterns.
			if i++; i >= len(c.Items) {
				return
			}
			item = c.Items[i]
		}
	}
}

func (s *Shell) selectLoop(ctx context.Context, loop *syntax.WordIter, do []*syntax.Stmt) {
	items := s.params
	if loop.InPos.IsValid() {
		var err error
		if items, err = s.exp.Fields(ctx, loop.Items...); err != nil {
			s.fail(err)
			return
		}
	}
	s.status = 0
	if len(items) == 0 {
		return
	}
	s.loops++
	defer func() { s.loops-- }()
	show := true
	for {
		s.tick(ctx)
		errs := s.stderr()
		if show {
			s.menu(errs, items)
		}
		prompt := "#? "
		if v, ok := s.vars.Get("PS3"); ok {
			prompt = v.Str
		}
		io.WriteString(errs, prompt)
		line, err := readLine(s.stream(ctx, 0))
		if err != nil && line == "" {
			fmt.Fprintln(s.stream(ctx, 1))
			s.status = 1
			return
		}
		s.vars.Set("REPLY", line)
		choice := strings.TrimSpace(line)
		show = choice == ""
		if show {
			continue
		}
		value := ""
		if n, err := strconv.Atoi(choice); err == nil && n >= 1 && n <= len(items) {
			value = items[n-1]
		}
		if err := s.vars.Set(loop.Name.Value, value); err != nil {
			s.fail(err)
			return
		}
		s.stmts(ctx, do)
		if s.broken() {
			return
		}
		if v := s.vars.Str("REPLY"); v == "" {
			show = true
		}
	}
}

// menu lists the choices of select, in columns when there are many.
func (s *Shell) menu(w io.Writer, items []string) {
	width := 0
	for _, it := range items {
		width = max(width, len([]rune(it)))
	}
	digits := len(strconv.Itoa(len(items)))
	cols := 80
	if n, err := strconv.Atoi(s.vars.Str("COLUMNS")); err == nil && n > 0 {
		cols = n
	}
	cell := digits + 2 + width + 2
	per := max(1, cols/cell)
	rows := (len(items) + per - 1) / per
	per = (len(items) + rows - 1) / rows
	if rows == 1 {
		rows, per = len(items), 1
	}
	for r := 0; r < rows; r++ {
		for c := 0; c < per; c++ {
			i := c*rows + r
			if i >= len(items) {
				break
			}
			text := fmt.Sprintf("%*d) %s", digits, i+1, items[i])
			if c+1 < per && i+rows < len(items) {
				text = fmt.Sprintf("%-*s", cell, text)
			}
			io.WriteString(w, text)
		}
		io.WriteString(w, "\n")
	}
}

// readLine reads a line and no byte more.
func readLine(r io.Reader) (string, error) {
	var line []byte
	var b [1]byte
	for {
		n, err := r.Read(b[:])
		if n > 0 {
			if b[0] == '\n' {
				return string(line), nil
			}
			line = append(line, b[0])
		}
		if err != nil {
			return string(line), err
		}
	}
}

func (s *Shell) let(ctx context.Context, c *syntax.LetClause) {
	s.debugTrap(ctx)
	var last int64
	for _, x := range c.Exprs {
		n, err := s.exp.Arithm(ctx, x)
		if err != nil {
			s.truth(ctx, false, err, "let: ")
			return
		}
		last = n
	}
	s.truth(ctx, last != 0, nil, "")
}

func (s *Shell) binary(ctx context.Context, c *syntax.BinaryCmd) {
	switch c.Op {
	case syntax.AndStmt, syntax.OrStmt:
		s.quiet++
		s.stmt(ctx, c.X)
		s.quiet--
		if s.jump != jumpNone || (s.status == 0) != (c.Op == syntax.AndStmt) {
			return
		}
		s.stmt(ctx, c.Y)
	default:
		s.pipeline(ctx, c)
		s.judge(ctx)
	}
}

// inSubshell runs f in a copy of the shell, here and now.
func (s *Shell) inSubshell(ctx context.Context, f func(context.Context, *Shell)) {
	child := s.fork()
	if !child.enterFork(s) {
		return
	}
	code := child.process(ctx, func(ctx context.Context) { f(ctx, child) })
	child.proc.end()
	if ctx.Err() != nil {
		cmd.Check(ctx)
	}
	s.setStatus(code)
}

// enterFork is enter for a shell that was just forked off parent.
func (s *Shell) enterFork(parent *Shell) bool {
	s.depth--
	if s.enter("subshell") {
		return true
	}
	parent.status, parent.jump = s.status, s.jump
	s.closeAll()
	return false
}

// commandSubst runs a command substitution, here and now: its output is collected, not piped.
func (s *Shell) commandSubst(ctx context.Context, c *syntax.CmdSubst) (string, error) {
	if c.TempFile || c.ReplyVar {
		return "", expand.BadCommand(s.nodeText(c))
	}
	line := s.line
	defer func() { s.line = line }()
	child := s.fork()
	if !child.enterFork(s) {
		return "", &exitError{errors.New("the nesting is too deep")}
	}
	child.traceLevel++
	out := newCapture()
	if old := child.setFd(1, out.desc.dup()); old != nil {
		old.close()
	}
	if !s.opts.has(optInheritErrexit) && !s.opts.has(optPosix) {
		child.opts.put(optErrexit, false)
	}
	code := child.process(ctx, func(ctx context.Context) {
		if file := onlyInput(c.Stmts); file != nil {
			child.catInput(ctx, file)
			return
		}
		child.stmts(ctx, c.Stmts)
	})
	child.proc.end()
	out.desc.close()
	// What it left in the background may still write.
	select {
	case <-out.closed:
	case <-ctx.Done():
		cmd.Check(ctx)
	}
	s.subst, s.substCode, s.status = true, code, code
	text := out.text()
	text = strings.TrimRight(text, "\n")
	if strings.IndexByte(text, 0) >= 0 {
		s.errorf("warning: command substitution: ignored null byte in input")
		text = strings.ReplaceAll(text, "\x00", "")
	}
	return text, nil
}

// onlyInput recognises $(<file).
func onlyInput(stmts []*syntax.Stmt) *syntax.Redirect {
	if len(stmts) != 1 {
		return nil
	}
	st := stmts[0]
	if st.Cmd != nil || st.Negated || st.Background || len(st.Redirs) != 1 {
		return nil
	}
	if r := st.Redirs[0]; r.Op == syntax.RdrIn && (r.N == nil || r.N.Value == "0") {
		return r
	}
	return nil
}

func (s *Shell) catInput(ctx context.Context, r *syntax.Redirect) {
	saved, ok := s.redirect(ctx, []*syntax.Redirect{r})
	defer s.restore(saved)
	if !ok {
		s.status = 1
		return
	}
	if _, err := io.Copy(onlyWriter{s.stream(ctx, 1)}, onlyReader{s.stream(ctx, 0)}); err != nil {
		s.errorf("%s", reason(err))
		s.status = 1
		return
	}
	s.status = 0
}

type onlyReader struct{ io.Reader }
type onlyWriter struct{ io.Writer }

// time is the reserved word.
func (s *Shell) time(ctx context.Context, c *syntax.TimeClause) {
	start := time.Now()
	if c.Stmt != nil {
		s.stmt(ctx, c.Stmt)
	}
	format := "\nreal\t%3lR\nuser\t%3lU\nsys\t%3lS"
	if c.PosixFormat {
		format = "real %2R\nuser %2U\nsys %2S"
	} else if v, ok := s.vars.Get("TIMEFORMAT"); ok {
		format = v.Str
		if format == "" {
			return
		}
	}
	// There is no clock of the processor in the sandbox: all the time is the user's.
	spent := time.Since(start)
	fmt.Fprintln(s.stderr(), timeFormat(format, spent, spent, 0))
}

// timeFormat is TIMEFORMAT: %[p][l]R, U, S, and %P.
func timeFormat(format string, real, user, sys time.Duration) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		start := i
		i++
		precision, long := 3, false
		if i < len(format) && format[i] >= '0' && format[i] <= '9' {
			precision = min(int(format[i]-'0'), 3)
			i++
		}
		if i < len(format) && format[i] == 'l' {
			long = true
			i++
		}
		if i >= len(format) {
			b.WriteString(format[start:])
			break
		}
		var d time.Duration
		switch format[i] {
		case '%':
			b.WriteByte('%')
			continue
		case 'P':
			percent := 0.0
			if real > 0 {
				percent = 100 * float64(user+sys) / float64(real)
			}
			fmt.Fprintf(&b, "%.2f", percent)
			continue
		case 'R':
			d = real
		case 'U':
			d = user
		case 'S':
			d = sys
		default:
			b.WriteString(format[start : i+1])
			continue
		}
		if long {
			fmt.Fprintf(&b, "%dm%.*fs", int(d.Minutes()), precision, (d % time.Minute).Seconds())
		} else {
			fmt.Fprintf(&b, "%.*f", precision, d.Seconds())
		}
	}
	return b.String()
}
