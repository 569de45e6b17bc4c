// Package awk runs awk programs.
//
// It is an interpreter of the project's own. The one library at hand starts processes for every pipe, system() and
// getline from a command, opens files in the working directory of the process, and keeps its syntax tree to itself, so
// that none of this can be led through a [cmd.Call]: on a system without processes it has no way out.
//
// awk, mawk and nawk are mawk, as Debian's are: characters are bytes, numbers in hexadecimal are read, substr starts
// below 1 as mawk does. Different from mawk 1.3.4 on purpose: whole numbers of 2^31 and above are printed in full, not as
// 2.14748e+09, and %d does not end there; intervals ({2,3}) work in expressions; for (k in a) goes through the elements in
// the order in which they were made; gawk's functions exist unless the program has its own of the name. gawk has characters
// of UTF-8, RT, IGNORECASE, and gawk's ways with numbers.
//
// A command that getline reads runs to its end before the first line is read, and a command that is printed to runs when
// its output is closed, at the latest at the end of the program: nothing runs beside an awk program.
package awk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/regex"
)

// Commands are the names of awk.
var Commands = map[string]cmd.Func{
	"awk": cmd.Written(run, 2), "mawk": cmd.Written(run, 2), "nawk": cmd.Written(run, 2), "gawk": cmd.Written(run, 2),
}

const usage = `Usage: %[1]s [-F value] [-v var=value] [--] 'program text' [file ...]
   or: %[1]s [-F value] [-v var=value] [-f program-file] [--] [file ...]

  -F value         sets the field separator, FS, to value
  -v var=value     assigns value to the program variable var
  -f program-file  program text is read from file instead of from the command line; may be given again
  --               end of options
  -W version       show version information and exit
`

type settings struct {
	fs      string
	hasFS   bool
	assigns [][2]string
	sources []string
	isProg  bool
}

// usageError is a wrong option.
type usageError string

func (e usageError) Error() string { return string(e) }

// options reads the options, and returns the operands.
func options(c *cmd.Call, s *settings) ([]string, error) {
	args := c.Args
	for len(args) > 0 {
		a := args[0]
		if a == "--" {
			return args[1:], nil
		}
		if len(a) < 2 || a[0] != '-' {
			break
		}
		args = args[1:]
		letter, text := a[1], a[2:]
		if letter == '-' {
			name, v, has := strings.Cut(a[2:], "=")
			letter = map[string]byte{"field-separator": 'F', "assign": 'v', "file": 'f', "source": 'e'}[name]
			switch {
			case name == "version":
				letter, text, has = 'W', "version", true
			case name == "help":
				letter, text, has = 'W', "help", true
			case strings.HasPrefix("re-interval", name) && name != "" || name == "posix" || name == "characters-as-bytes":
				continue // what they ask for is so already
			case letter == 0:
				return nil, usageError("unrecognized option '" + a + "'")
			default:
				text = v
			}
			if has && text == "" {
				args = append([]string{""}, args...)
			}
		}
		switch letter {
		case 'F', 'v', 'f', 'e', 'W':
		case 'b', 'P', 'r':
			continue
		default:
			return nil, usageError(fmt.Sprintf("not an option: %s", a))
		}
		if text == "" {
			if len(args) == 0 {
				return nil, usageError(fmt.Sprintf("no argument for option -%c", letter))
			}
			text, args = args[0], args[1:]
		}
		switch letter {
		case 'F':
			s.fs, s.hasFS = unescape(text), true
			if text == "t" && c.Name == "gawk" {
				s.fs = "\t"
			}
		case 'v':
			name, v, ok := strings.Cut(text, "=")
			if !ok || !isVariable(name) {
				return nil, usageError(fmt.Sprintf("improper assignment: -v %s", text))
			}
			s.assigns = append(s.assigns, [2]string{name, v})
		case 'f':
			f, err := c.Open(text)
			if err != nil {
				return nil, fmt.Errorf("couldn't open file %s: %s", text, cmd.Reason(err))
			}
			b, err := io.ReadAll(f)
			f.Close()
			if err != nil {
				return nil, fmt.Errorf("couldn't read file %s: %s", text, cmd.Reason(err))
			}
			s.sources, s.isProg = append(s.sources, string(b)), true
		case 'e':
			s.sources, s.isProg = append(s.sources, text), true
		case 'W':
			switch {
			case text != "" && strings.HasPrefix("version", text):
				return nil, errVersion
			case text == "help" || text == "usage":
				return nil, errHelp
			}
			return nil, usageError("vacuous option: -W " + text)
		}
	}
	return args, nil
}

var errVersion, errHelp = errors.New("version"), errors.New("help")

func run(ctx context.Context, c *cmd.Call) (code int) {
	var s settings
	operands, err := options(c, &s)
	switch {
	case err == errVersion && c.Name == "gawk":
		io.WriteString(c.Stdout, "GNU Awk 5.2.1\n")
		return 0
	case err == errVersion:
		io.WriteString(c.Stdout, "mawk 1.3.4 20200120\n")
		return 0
	case err == errHelp:
		fmt.Fprintf(c.Stdout, usage, c.Name)
		return 0
	case err != nil:
		c.Errorf("%v", err)
		return 2
	}
	if !s.isProg {
		if len(operands) == 0 {
			fmt.Fprintf(c.Stderr, usage, c.Name)
			return 2
		}
		s.sources, operands = operands[:1], operands[1:]
	}
	it := &interp{
		ctx: ctx, c: c, gawk: c.Name == "gawk", stdout: c.Buffered(),
		convfmt: "%.6g", ofmt: "%.6g", ofs: " ", ors: "\n", fs: " ", rs: "\n", subsep: "\x1c",
		regexps: map[string]*regex.Regexp{}, outputs: map[string]*output{}, inputs: map[string]*reader{},
		arg: 1, seed: float64(time.Now().UnixNano() % 1e9), splitter: splitter{blank: true},
	}
	if it.gawk {
		it.seed = 0
	}
	it.rng = math.Float64bits(it.seed)
	src := strings.Join(s.sources, "\n")
	p := &parser{
		lexer: lexer{src: src, own: ownFunctions(src)}, gawk: it.gawk, funcs: map[string]*function{},
		prog:   &program{globals: map[string]int{"ENVIRON": 0, "ARGC": 1, "ARGV": 2, "PROCINFO": 3}},
		regexp: func(s string) (*regex.Regexp, error) { return regex.Compile(s, regex.ERE, it.flags()) },
	}
	if err := p.program(); err != nil {
		c.Errorf("%v", err)
		return 2
	}
	it.prog = p.prog
	it.globals = make([]cell, len(p.prog.globals))
	it.argv = func(name string) *cell { return &it.globals[p.prog.globals[name]] }
	env := it.argv("ENVIRON").array()
	for _, e := range c.Environ {
		if name, v, ok := strings.Cut(e, "="); ok {
			env.set(name, given(v))
		}
	}
	it.argv("ARGC").v = num(float64(len(operands) + 1))
	argv := it.argv("ARGV").array()
	argv.set("0", given(c.Name))
	for i, a := range operands {
		argv.set(fmt.Sprint(i+1), given(a))
	}
	if it.gawk {
		it.argv("PROCINFO").array().set("version", str("5.2.1"))
	}
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(failure)
			if !ok {
				panic(r)
			}
			it.warn("%s", string(f))
			code = 2
		}
	}()
	if s.hasFS {
		it.setSpecial(sFS, str(s.fs))
	}
	for _, a := range s.assigns {
		it.assign(a[0], a[1])
	}
	it.run()
	it.closeAll()
	if it.lost && it.code == 0 {
		return 2
	}
	return it.code
}

// ownFunctions finds which of gawk's functions the program defines.
func ownFunctions(src string) map[string]bool {
	own := map[string]bool{}
	words := strings.FieldsFunc(src, func(r rune) bool { return r != '_' && (r > 127 || !isLetter(byte(r)) && !isDigit(byte(r))) })
	for i, w := range words[:max(len(words)-1, 0)] {
		if name := words[i+1]; (w == "function" || w == "func") && builtins[name] {
			own[name] = true
		}
	}
	return own
}

// zone is the time zone of TZ, or UTC.
func (it *interp) zone() *time.Location {
	name := it.c.Getenv("TZ")
	if name == "" {
		return time.Local
	}
	if z, err := time.LoadLocation(strings.TrimPrefix(name, ":")); err == nil {
		return z
	}
	return time.UTC
}
