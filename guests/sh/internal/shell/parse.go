package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/expand"
	"mvdan.cc/sh/v3/syntax"
)

// program is a text as it was parsed.
type program struct {
	text  string
	units [][]*syntax.Stmt // what bash reads at a time: the commands of a line, or those that reach over lines
	err   error            // what could not be parsed after them
	warn  []string
}

func newParser() *syntax.Parser { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }

// parse reads a whole text. As in bash, commands before a mistake are run before it is reported.
func parse(text string) *program {
	p := &program{text: text}
	mended := 0
	for tries := 0; ; tries++ {
		p.units, p.err = nil, nil
		end := uint(0)
		for st, err := range newParser().StmtsSeq(strings.NewReader(text)) {
			if err != nil {
				p.err = err
				break
			}
			if n := len(p.units); n > 0 && st.Pos().Line() <= end {
				p.units[n-1] = append(p.units[n-1], st)
			} else {
				p.units = append(p.units, []*syntax.Stmt{st})
			}
			end = st.End().Line()
		}
		if p.err != nil && mended < 256 {
			if better, ok := expand.Mend(text, p.err); ok {
				text, p.text = better, better
				mended++
				tries--
				continue
			}
		}
		var pe syntax.ParseError
		if errors.As(p.err, &pe) && tries < 16 {
			if word, ok := strings.CutPrefix(pe.Text, "unclosed here-document "); ok {
				// The end of the text ends it, with a warning.
				word = strings.Trim(word, "`'\"")
				p.warn = append(p.warn, fmt.Sprintf("warning: here-document at line %d delimited by end-of-file (wanted `%s')", pe.Pos.Line(), word))
				text = strings.TrimSuffix(text, "\n") + "\n" + word + "\n"
				continue
			}
		}
		break
	}
	if line := errorLine(p.err); line > 0 {
		for n := len(p.units); n > 0; n-- {
			last := p.units[n-1]
			if last[len(last)-1].End().Line() < line {
				break
			}
			p.units = p.units[:n-1]
		}
	}
	return p
}

func errorLine(err error) uint {
	var pe syntax.ParseError
	var le syntax.LangError
	switch {
	case errors.As(err, &pe):
		return pe.Pos.Line()
	case errors.As(err, &le):
		return le.Pos.Line()
	}
	return 0
}

// syntaxError reports what could not be parsed. Base is what to add to its lines.
func (s *Shell) syntaxError(name string, p *program, base int) {
	errs := s.stderr()
	lines := strings.Split(strings.TrimSuffix(p.text, "\n"), "\n")
	var pe syntax.ParseError
	var le syntax.LangError
	switch {
	case errors.As(p.err, &pe) && pe.Incomplete:
		what := "syntax error: unexpected end of file"
		for _, q := range []string{`"`, "'", "`"} {
			if strings.Contains(pe.Text, "closing quote") && strings.Contains(pe.Text, q+"`") || strings.Contains(pe.Text, "'"+q+"'") {
				what = "unexpected EOF while looking for matching `" + q + "'"
			}
		}
		fmt.Fprintf(errs, "%s: line %d: %s (line %d: %s)\n", name, len(lines)+1+base, what, int(pe.Pos.Line())+base, pe.Text)
	case errors.As(p.err, &pe):
		s.syntaxLine(errs, name, lines, int(pe.Pos.Line()), base, pe.Text)
	case errors.As(p.err, &le):
		s.syntaxLine(errs, name, lines, int(le.Pos.Line()), base, le.Feature+" are no feature of bash")
	default:
		fmt.Fprintf(errs, "%s: syntax error: %v\n", name, p.err)
	}
}

func (s *Shell) syntaxLine(w io.Writer, name string, lines []string, line, base int, text string) {
	fmt.Fprintf(w, "%s: line %d: syntax error: %s\n", name, line+base, text)
	if line >= 1 && line <= len(lines) {
		fmt.Fprintf(w, "%s: line %d: `%s'\n", name, line+base, lines[line-1])
	}
}

// runText parses and runs a text whose lines count from base+1, and returns whether it could be parsed to its end.
func (s *Shell) runText(ctx context.Context, name, text string, base int) bool {
	return s.runProgram(ctx, name, parse(text), base)
}

func (s *Shell) runProgram(ctx context.Context, name string, p *program, base int) bool {
	oldBase, oldSrc := s.base, s.src
	s.base, s.src = base, p.text
	defer func() { s.base, s.src = oldBase, oldSrc }()
	for _, w := range p.warn {
		fmt.Fprintf(s.stderr(), "%s: line %d: %s\n", name, strings.Count(p.text, "\n")+base, w)
	}
	for _, unit := range p.units {
		if s.opts.has(optVerbose) {
			s.verbose(unit)
		}
		s.stmts(ctx, unit)
		if s.jump == jumpDiscard && s.subshell == 0 {
			s.jump = jumpNone
			continue
		}
		if s.jump != jumpNone {
			return true
		}
	}
	if p.err != nil {
		s.syntaxError(name, p, base)
		s.setStatus(2)
		return false
	}
	return true
}

func (s *Shell) verbose(unit []*syntax.Stmt) {
	from, to := unit[0].Pos().Offset(), unit[len(unit)-1].End().Offset()
	if int(to) <= len(s.src) && from <= to {
		fmt.Fprintln(s.stderr(), s.src[from:to])
	}
}

// nodeText is the text of a node in its script.
func (s *Shell) nodeText(n syntax.Node) string {
	from, to := n.Pos().Offset(), n.End().Offset()
	if from > to || int(to) > len(s.src) {
		return ""
	}
	return s.src[from:to]
}

// scriptError tells why a text is no script that bash could run, "" when it is one.
func scriptError(text string) string {
	first, rest, more := strings.Cut(text, "\n")
	switch {
	case strings.HasSuffix(first, "\r") && more:
		return "line 1: the lines end in CR LF, as on Windows (bash: $'\\r': command not found); convert the file first: sed -i 's/\\r$//' FILE"
	case strings.HasPrefix(first, "#!") && strings.Contains(first, `\n`) && strings.TrimSpace(rest) == "":
		return `line 1: the whole script is one line with \n in it as two characters, a comment to bash; write real line ends: printf '%b' "$(cat FILE)" > NEW`
	}
	return ""
}

const helpText = `GNU bash, version ` + version + `-(` + `sandbox)
Usage:	bash [option] ...
	bash [option] script-file ...
Options:
	-c STRING [NAME [ARG...]], -s, -l, -i, -O SHOPT
	--version, --help, --login, --norc, --noprofile, --posix
	-abefhkmnptuvxBCEHPT or -o option, as for set
`

// command is bash as a command: a new shell in the same process.
func (w *World) command(ctx context.Context, c *cmd.Call) int {
	s := w.newShell(c.Environ, c.Dir)
	s.umask = c.Umask
	s.arg0 = c.Name
	var parent *Shell
	if k, ok := c.Shell.(*caller); ok {
		parent = k.s
	}
	s.fds = []*desc{descOf(c.Stdin, nil), descOf(nil, c.Stdout), descOf(nil, c.Stderr)}
	if parent != nil {
		for n := 3; n < len(parent.fds); n++ {
			if d := parent.fds[n]; d != nil {
				s.setFd(n, d.dup())
			}
		}
		s.depth = parent.depth
		for name, text := range parent.traps {
			if text == "" && signalNumber(name) > 0 {
				s.traps[name] = ""
			}
		}
		s.ppid = parent.proc.id()
	}
	ctx, done := w.startProc(ctx, s, parent)
	s.inheritIgnored()
	defer done()
	return s.process(ctx, func(ctx context.Context) {
		if !s.enter("bash") {
			return
		}
		s.start(ctx, c)
		s.leave()
	})
}

// start reads the command line and runs what it names.
func (s *Shell) start(ctx context.Context, c *cmd.Call) {
	k := &callCtx{ctx, s}
	usage := func(format string, args ...any) {
		fmt.Fprintf(s.stderr(), "%s: %s\n", s.arg0, fmt.Sprintf(format, args...))
		s.status = 2
	}
	args := c.Args
	var command, stdin bool
	for len(args) > 0 && len(args[0]) > 1 && (args[0][0] == '-' || args[0][0] == '+') {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		if strings.HasPrefix(a, "--") {
			switch a {
			case "--version":
				fmt.Fprintf(k.stdout(), "GNU bash, version %s (%s-pc-linux-gnu)\nThis is the shell of exthost, which runs bash scripts in a sandbox; it is no copy of GNU bash.\n", version, machine())
				return
			case "--help":
				io.WriteString(k.stdout(), helpText)
				return
			case "--login":
				s.opts.put(optLoginShell, true)
			case "--posix":
				s.opts.put(optPosix, true)
			case "--verbose":
				s.opts.put(optVerbose, true)
			case "--norc", "--noprofile", "--noediting":
				// There are no such files here.
			case "--rcfile", "--init-file":
				if len(args) > 0 {
					args = args[1:]
				}
			default:
				usage("%s: invalid option", a)
				return
			}
			continue
		}
		rest := a[:1]
		for i := 1; i < len(a); i++ {
			switch {
			case a[0] == '-' && a[i] == 'c':
				command = true
			case a[0] == '-' && a[i] == 's':
				stdin = true
			case a[0] == '-' && a[i] == 'l':
				s.opts.put(optLoginShell, true)
			case a[i] == 'i':
				// Nobody types here: an interactive shell reads the same and has no prompt.
			case a[i] == 'O':
				if len(args) == 0 {
					usage("-O: option requires an argument")
					return
				}
				o, ok := optionIndex()[args[0]]
				if !ok || o < 64 {
					usage("%s: invalid shell option name", args[0])
					return
				}
				s.opts.put(o, a[0] == '-')
				args = args[1:]
			default:
				rest += string(a[i])
			}
		}
		if len(rest) > 1 {
			left, ok := s.setLetters(k, rest, args)
			if !ok {
				s.status = 2
				return
			}
			args = left
		}
	}
	switch {
	case command:
		if len(args) == 0 {
			usage("-c: option requires an argument")
			return
		}
		s.command = args[0]
		if len(args) > 1 {
			s.arg0, s.params = args[1], args[2:]
		}
		s.begin()
		s.top(ctx, s.arg0, s.command)
	case stdin || len(args) == 0:
		s.params = args
		s.begin()
		text, err := io.ReadAll(onlyReader{s.stream(ctx, 0)})
		if err != nil && len(text) == 0 {
			fmt.Fprintf(s.stderr(), "%s: standard input: %s\n", s.arg0, reason(err))
			s.status = 1
			return
		}
		// The commands have been read as far as they go: what they read themselves is at its end.
		s.top(ctx, s.arg0, string(text))
	default:
		s.file(ctx, args)
	}
}

// file runs a script.
func (s *Shell) file(ctx context.Context, args []string) {
	name := args[0]
	fail := func(code int, format string, a ...any) {
		fmt.Fprintf(s.stderr(), "%s: %s: %s\n", s.arg0, name, fmt.Sprintf(format, a...))
		s.status = code
	}
	full := s.abs(name)
	info, err := os.Stat(full)
	if err != nil && !strings.Contains(name, "/") {
		if f, ok := s.search(name); ok && f.run == nil {
			full = f.path
			info, err = os.Stat(full)
		}
	}
	var text []byte
	switch {
	case err == nil && info.IsDir():
		fail(126, "Is a directory")
		return
	case strings.HasPrefix(full, "/dev/"):
		// bash <(...) and bash /dev/stdin
		d, derr := s.device(path.Clean(full), s.fd)
		if d == nil {
			fail(127, "%s", reason(errors.Join(derr, os.ErrNotExist)))
			return
		}
		text, err = io.ReadAll(&stream{ctx: ctx, d: d})
		d.close()
	case err == nil:
		text, err = os.ReadFile(full)
	}
	if err != nil {
		code := 126
		if errors.Is(err, os.ErrNotExist) {
			code = 127
		}
		fail(code, "%s", reason(err))
		return
	}
	if line, _, _ := strings.Cut(string(text[:min(len(text), 256)]), "\n"); strings.IndexByte(line, 0) >= 0 {
		fail(126, "cannot execute binary file")
		return
	}
	s.arg0, s.script, s.params = name, name, args[1:]
	s.begin()
	if why := scriptError(string(text)); why != "" {
		fmt.Fprintf(s.stderr(), "%s: %s\n", name, strings.ReplaceAll(why, "FILE", name))
		s.status = 2
		return
	}
	s.top(ctx, name, string(text))
}

// begin sets the variables that depend on what is run.
func (s *Shell) begin() { s.firstVariables() }

// top runs the text of a shell to its end.
func (s *Shell) top(ctx context.Context, name, text string) {
	s.runText(ctx, name, text, 0)
}
