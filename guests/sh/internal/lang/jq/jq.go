// Package jq runs jq programs.
//
// It is an interpreter of the project's own, compatible with jq 1.7: the library at hand keeps objects in Go maps and prints
// their keys sorted, where jq keeps the order of the input, which scripts see in every object that they print.
//
// Different from jq on purpose: there is no colour unless -C asks for it, as output is never a terminal; function calls nest
// at most 12,000 deep; regular expressions are those of package regex, which has no conditions and no recursion; in object
// construction a value may be any expression without a comma.
package jq

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	pathpkg "path"
	"strconv"
	"strings"
	"syscall"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/regex"
)

// Commands is jq.
var Commands = map[string]cmd.Func{"jq": cmd.Written(run, 2)}

const usage = `Usage:	jq [OPTIONS] FILTER [FILES...]
	jq [OPTIONS] -f FILE [FILES...]
	jq [OPTIONS] --args FILTER [ARGUMENTS...]
	jq [OPTIONS] --jsonargs FILTER [JSON_VALUES...]

Options:
  -n, --null-input          use null as the single input value
  -R, --raw-input           read each line as string instead of JSON
  -s, --slurp               read all inputs into an array and use it as the single input value
  -c, --compact-output      compact instead of pretty-printed output
  -r, --raw-output          output strings without escapes and quotes
      --raw-output0         implies -r and output NUL after each output
  -j, --join-output         implies -r and output without newline after each output
  -a, --ascii-output        output strings by only ASCII characters using escape sequences
  -S, --sort-keys           sort keys of each object on output
  -C, --color-output        colorize JSON output
  -M, --monochrome-output   disable colored output
      --tab                 use tabs for indentation
      --indent n            use n spaces for indentation (max 7 spaces)
      --unbuffered          flush output stream after each output
      --stream              parse the input value in streaming fashion
      --seq                 parse input/output as application/json-seq
  -f, --from-file file      load filter from the file
  -L directory              search modules from the directory
      --arg name value      set $name to the string value
      --argjson name value  set $name to the JSON value
      --slurpfile name file set $name to an array of JSON values read from the file
      --rawfile name file   set $name to string contents of file
      --args                consume remaining arguments as positional string values
      --jsonargs            consume remaining arguments as positional JSON values
  -e, --exit-status         set exit status code based on the output
  -V, --version             show the version
  -h, --help                show the help
  --                        terminates argument processing

Named arguments are also available as $ARGS.named[], while positional arguments are available as $ARGS.positional[].
`

type options struct {
	null, raw, slurp, compact, rawOut, join, nul, ascii, sort, color, tab, exit, seq, stream, unbuffered bool
	indent                                                                                               int
	program                                                                                              string
	has                                                                                                  bool
	fromFile                                                                                             bool
	files                                                                                                []string
	library                                                                                              []string
	named                                                                                                *object
	positional                                                                                           []any
}

// usageError is a wrong command line.
type usageError string

func (e usageError) Error() string { return string(e) }

var errDone = errors.New("done")

func (o *options) parse(c *cmd.Call) error {
	args := c.Args
	take := func(n int, what string) ([]string, error) {
		if len(args) < n {
			return nil, usageError(what)
		}
		a := args[:n]
		args = args[n:]
		return a, nil
	}
	file := func(name string) ([]byte, error) {
		f, err := c.OpenFile(name, os.O_RDONLY, 0)
		if err != nil {
			return nil, errors.New("Could not open " + name + ": " + cmd.Reason(err))
		}
		defer f.Close()
		return io.ReadAll(f)
	}
	rest := byte(0) // how to take what follows: 0 files, s strings, j values
	positional := func(a string) error {
		switch {
		case !o.has && !o.fromFile:
			o.program, o.has = a, true
		case rest == 's':
			o.positional = append(o.positional, a)
		case rest == 'j':
			v, err := decodeString(a)
			if err != nil {
				return usageError("Invalid JSON text passed to --jsonargs")
			}
			o.positional = append(o.positional, v)
		default:
			o.files = append(o.files, a)
		}
		return nil
	}
	ended := false
	var later []string // positional arguments, until -f is known
	var kinds []byte
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		if ended || len(a) < 2 || a[0] != '-' {
			later, kinds = append(later, a), append(kinds, rest)
			continue
		}
		if a == "--" {
			ended = true
			continue
		}
		if a[1] != '-' {
			for i, r := range a[1:] {
				if err := o.short(c, r, a[i+2:], take); err != nil {
					if err == errDone {
						return err
					}
					if err == errAttached {
						break
					}
					return err
				}
			}
			continue
		}
		switch name := a[2:]; name {
		case "null-input":
			o.null = true
		case "raw-input":
			o.raw = true
		case "slurp":
			o.slurp = true
		case "compact-output":
			o.compact = true
		case "raw-output":
			o.rawOut = true
		case "raw-output0":
			o.rawOut, o.nul = true, true
		case "join-output":
			o.rawOut, o.join = true, true
		case "ascii-output", "ascii":
			o.ascii = true
		case "sort-keys":
			o.sort = true
		case "color-output":
			o.color = true
		case "monochrome-output":
			o.color = false
		case "tab":
			o.tab = true
		case "exit-status":
			o.exit = true
		case "seq":
			o.seq = true
		case "stream":
			o.stream = true
		case "unbuffered":
			o.unbuffered = true
		case "from-file":
			o.fromFile = true
		case "args":
			rest = 's'
		case "jsonargs":
			rest = 'j'
		case "version", "help", "build-configuration":
			if name == "version" {
				io.WriteString(c.Stdout, "jq-1.7.1\n")
			} else {
				io.WriteString(c.Stdout, usage)
			}
			return errDone
		case "indent":
			v, err := take(1, "--indent takes one parameter")
			if err != nil {
				return err
			}
			if o.indent, err = strconv.Atoi(v[0]); err != nil || o.indent < 0 {
				return usageError("Cannot indent less than zero")
			}
			if o.indent > 7 {
				return usageError("Cannot indent more than 7 characters")
			}
			o.tab = false
		case "library-path":
			v, err := take(1, "-L takes a parameter: (e.g. -L /search/path or -L/search/path)")
			if err != nil {
				return err
			}
			o.library = append(o.library, v[0])
		case "arg", "argjson", "slurpfile", "rawfile":
			v, err := take(2, fmt.Sprintf("--%s takes two parameters (e.g. --%s varname value)", name, name))
			if err != nil {
				return err
			}
			var x any = v[1]
			switch name {
			case "argjson":
				if x, err = decodeString(v[1]); err != nil {
					return usageError("Invalid JSON text passed to --argjson")
				}
			case "slurpfile", "rawfile":
				b, err := file(v[1])
				if err != nil {
					return usageError(fmt.Sprintf("Bad JSON in --%s %s %s: %v", name, v[0], v[1], err))
				}
				x = strings.ToValidUTF8(string(b), "\uFFFD")
				if name == "slurpfile" {
					d := &decoder{buf: b, end: len(b), eof: true}
					list := []any{}
					for {
						v1, err := d.next()
						if err == io.EOF {
							break
						}
						if err != nil {
							return usageError(fmt.Sprintf("Bad JSON in --%s %s %s: %v", name, v[0], v[1], err))
						}
						list = append(list, v1)
					}
					x = list
				}
			}
			if o.named.find(v[0]) < 0 {
				o.named.put(v[0], x)
			}
		default:
			return usageError("Unknown arguments")
		}
	}
	if o.fromFile {
		// The first operand is the file with the program.
		if len(later) == 0 {
			return usageError("no program given")
		}
		b, err := file(later[0])
		if err != nil {
			return err
		}
		o.program, o.has, later, kinds = string(b), true, later[1:], kinds[1:]
	}
	for i, a := range later {
		rest = kinds[i]
		if err := positional(a); err != nil {
			return err
		}
	}
	return nil
}

var errAttached = errors.New("the rest was an argument")

func (o *options) short(c *cmd.Call, r rune, rest string, take func(int, string) ([]string, error)) error {
	switch r {
	case 'n':
		o.null = true
	case 'R':
		o.raw = true
	case 's':
		o.slurp = true
	case 'c':
		o.compact = true
	case 'r':
		o.rawOut = true
	case 'j':
		o.rawOut, o.join = true, true
	case 'a':
		o.ascii = true
	case 'S':
		o.sort = true
	case 'C':
		o.color = true
	case 'M':
		o.color = false
	case 'e':
		o.exit = true
	case 'f':
		o.fromFile = true
	case 'L':
		if rest != "" {
			o.library = append(o.library, rest)
			return errAttached
		}
		v, err := take(1, "-L takes a parameter: (e.g. -L /search/path or -L/search/path)")
		if err != nil {
			return err
		}
		o.library = append(o.library, v[0])
	case 'V':
		io.WriteString(c.Stdout, "jq-1.7.1\n")
		return errDone
	case 'h':
		io.WriteString(c.Stdout, usage)
		return errDone
	default:
		return usageError("Unknown arguments")
	}
	return nil
}

// inputs gives the values of the files, one after the other.
type inputs struct {
	c       *cmd.Call
	o       *options
	files   []string
	d       *decoder
	lines   *bufio.Reader // with -R
	close   io.Closer
	name    any
	failed  bool
	slurped bool
	last    *decoder
	count   int // lines, with -R
	pending []any
}

func (in *inputs) open() bool {
	if in.close != nil {
		in.close.Close()
		in.close = nil
	}
	for len(in.files) > 0 {
		name := in.files[0]
		in.files = in.files[1:]
		var r io.Reader = in.c.Stdin
		if name != "" {
			f, err := in.c.OpenFile(name, os.O_RDONLY, 0)
			if err == nil {
				if info, serr := f.Stat(); serr == nil && info.IsDir() {
					f.Close()
					err = syscall.EISDIR
				}
			}
			if err != nil {
				in.c.Errorf("error: Could not open file %s: %s", name, cmd.Reason(err))
				in.failed = true
				continue
			}
			in.close, r, in.name = f, f, name
		}
		if in.o.raw {
			in.lines = bufio.NewReader(r)
		} else {
			in.d = &decoder{r: r}
			in.last = in.d
		}
		return true
	}
	return false
}

// one is the next value of the files, without -s.
func (in *inputs) one() (any, error) {
	for {
		if in.lines != nil {
			s, err := in.lines.ReadString('\n')
			if s == "" && err != nil {
				in.lines = nil
				continue
			}
			in.count++
			return strings.ToValidUTF8(strings.TrimSuffix(s, "\n"), "\uFFFD"), nil
		}
		if in.d != nil {
			v, err := in.d.next()
			if err == io.EOF {
				in.d = nil
				continue
			}
			if err != nil {
				in.d = nil
				in.files = nil
			}
			return v, err
		}
		if !in.open() {
			return nil, io.EOF
		}
	}
}

func (in *inputs) next() (any, error) {
	if in.o.slurp {
		if in.slurped {
			return nil, io.EOF
		}
		in.slurped = true
		if in.o.raw {
			var b strings.Builder
			for in.open() {
				if _, err := io.Copy(&b, in.lines); err != nil {
					return nil, err
				}
				in.lines = nil
			}
			return strings.ToValidUTF8(b.String(), "\uFFFD"), nil
		}
		list := []any{}
		for {
			v, err := in.one()
			if err == io.EOF {
				return list, nil
			}
			if err != nil {
				return nil, err
			}
			if in.o.stream {
				list = append(list, events(v)...)
			} else {
				list = append(list, v)
			}
		}
	}
	if !in.o.stream || in.o.raw {
		return in.one()
	}
	for len(in.pending) == 0 {
		v, err := in.one()
		if err != nil {
			return nil, err
		}
		in.pending = events(v)
	}
	v := in.pending[0]
	in.pending = in.pending[1:]
	return v, nil
}

// events is what --stream makes of a value.
func events(v any) []any {
	var out []any
	var walk func(v any, at []any, top bool)
	walk = func(v any, at []any, top bool) {
		here := append([]any{}, at...)
		switch x := v.(type) {
		case []any:
			if len(x) == 0 {
				break
			}
			for i, e := range x {
				walk(e, append(here, float64(i)), false)
			}
			out = append(out, []any{append(append([]any{}, here...), float64(len(x)-1))})
			return
		case *object:
			if x.len() == 0 {
				break
			}
			for i, k := range x.keys {
				walk(x.vals[i], append(here, k), false)
			}
			out = append(out, []any{append(append([]any{}, here...), x.keys[x.len()-1])})
			return
		}
		out = append(out, []any{here, v})
	}
	walk(v, nil, true)
	return out
}

func (in *inputs) line() int {
	if in.o.raw {
		return in.count
	}
	if in.last == nil {
		return 0
	}
	return in.last.line()
}

func run(ctx context.Context, c *cmd.Call) int {
	o := &options{indent: 2, named: &object{}}
	if err := o.parse(c); err != nil {
		var u usageError
		switch {
		case err == errDone:
			return 0
		case errors.As(err, &u):
			c.Errorf("error: %v", err)
			io.WriteString(c.Stderr, "Use jq --help for help with command-line options,\nor see the jq manpage, or online docs  at https://jqlang.github.io/jq\n")
		default:
			c.Errorf("error: %v", err)
		}
		return 2
	}
	if !o.has { // as jq has it where input or output is no terminal: here neither is
		o.program = "."
	}
	in := &inputs{c: c, o: o, files: o.files}
	if len(in.files) == 0 {
		in.files = []string{""}
	}
	out := c.Buffered()
	defer out.Flush()
	environ := &object{}
	for _, e := range c.Environ {
		if k, v, ok := strings.Cut(e, "="); ok {
			environ.put(k, v)
		}
	}
	named := o.named.clone(1)
	positional := o.positional
	if positional == nil {
		positional = []any{}
	}
	named.put("ARGS", &object{keys: []string{"positional", "named"}, vals: []any{positional, o.named}})
	m := &machine{
		ctx: ctx, c: c, named: named, args: positional, environ: environ, input: in.next, line: in.line,
		name: func() any { return in.name }, regexps: map[string]*regex.Regexp{}, library: o.library,
		stderr: func(s string) {
			out.Flush()
			io.WriteString(c.Stderr, s)
		},
	}
	main, err := m.compile(o.program)
	if err != nil {
		c.Errorf("error: %s\n%s\n%s: 1 compile error", strings.TrimPrefix(err.Error(), "error: "), o.program, c.Name)
		return 3
	}
	p := &printer{sort: o.sort, ascii: o.ascii}
	switch {
	case o.compact || !o.tab && o.indent == 0:
	case o.tab:
		p.indent = "\t"
	default:
		p.indent = strings.Repeat(" ", o.indent)
	}
	if o.color {
		p.color = palette(c.Getenv("JQ_COLORS"))
	}
	code := 0
	last, some := ctxNone, false
	where := func() string {
		if in.last == nil && !o.raw {
			return "<unknown>"
		}
		if in.name == nil {
			return fmt.Sprintf("<stdin>:%d", in.line())
		}
		return fmt.Sprintf("%s:%d", in.name, in.line())
	}
	one := func(v any) (stop bool) {
		err := main(nil, item{v: v}, func(x item) error {
			some, last = true, ctxFalse
			if truth(x.v) {
				last = ctxTrue
			}
			if o.seq {
				out.WriteByte(0x1e)
			}
			p.buf = p.buf[:0]
			if s, ok := x.v.(string); ok && o.rawOut && !o.ascii {
				if o.nul && strings.IndexByte(s, 0) >= 0 {
					return failf("Cannot dump a string containing NUL with --raw-output0 option")
				}
				out.WriteString(s)
			} else if ok && o.rawOut {
				p.string(s)
				t := string(p.buf)
				out.WriteString(strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\n`, "\n", `\t`, "\t").Replace(t[1 : len(t)-1]))
			} else {
				p.value(x.v, 0)
				out.Write(p.buf)
			}
			if o.nul {
				out.WriteByte(0)
			} else if !o.join {
				out.WriteByte('\n')
			}
			if o.unbuffered {
				out.Flush()
			}
			m.tick()
			return nil
		})
		var h *halted
		switch e := err.(type) {
		case nil:
		case *halted:
			h = e
		case *broken:
			out.Flush()
			c.Errorf("error (at %s): break", where())
			code = 5
		default:
			out.Flush()
			code = 5
			v := message(err)
			if s, ok := v.(string); ok {
				c.Errorf("error (at %s): %s", where(), s)
			} else {
				c.Errorf("error (at %s) (not a string): %s", where(), compact(v))
			}
		}
		if h == nil {
			return false
		}
		code = h.code & 255
		if h.show {
			if s, ok := h.v.(string); ok {
				m.stderr(s)
			} else {
				m.stderr(compact(h.v) + "\n")
			}
		}
		return true
	}
	halt := false
	if o.null {
		halt = one(nil)
	} else {
		for !halt {
			v, err := in.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				out.Flush()
				code = 2
				var bad badJSON
				if errors.As(err, &bad) {
					c.Errorf("parse error: %v", err)
					code = 5
				} else {
					c.Errorf("error: %s", cmd.Reason(err))
				}
				break
			}
			halt = one(v)
		}
	}
	if in.close != nil {
		in.close.Close()
	}
	switch {
	case halt || code != 0:
		return code
	case in.failed:
		return 2
	case o.exit && !some:
		return 4
	case o.exit && last == ctxFalse:
		return 1
	}
	return 0
}

// What the last output was, for -e.
const (
	ctxNone = iota
	ctxFalse
	ctxTrue
)

func palette(spec string) *colors {
	p := &colors{"1;30", "0;39", "0;39", "0;39", "0;32", "1;39", "1;39", "34;1"}
	for i, s := range strings.Split(spec, ":") {
		if i < len(p) && s != "" && strings.Trim(s, "0123456789;") == "" {
			p[i] = s
		}
	}
	return p
}

// compile compiles a program with the modules it names.
func (m *machine) compile(src string) (f filter, err error) {
	c := &compiler{m: m, lib: map[string]*function{}, modules: map[string]*scope{}}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*compileError)
			if !ok {
				panic(r)
			}
			f, err = nil, e
		}
	}()
	mod, err := parseProgram(src)
	if err != nil {
		return nil, err
	}
	s, err := c.module(mod, nil, "", 0)
	if err != nil {
		return nil, err
	}
	if mod.main == nil {
		return func(_ *env, in item, yield func(item) error) error { return yield(in) }, nil
	}
	return c.compile(mod.main, s), nil
}

// module brings what a module imports and defines into scope; the names it is imported by go in front.
func (c *compiler) module(mod *module, s *scope, prefix string, depth int) (*scope, error) {
	if depth > 50 {
		return nil, errors.New("modules import each other")
	}
	for _, im := range mod.imports {
		dirs := c.m.library
		if len(dirs) == 0 {
			dirs = []string{"."}
		}
		ext := ".jq"
		if im.data {
			ext = ".json"
		}
		var text []byte
		found := false
		for _, d := range dirs {
			for _, name := range []string{im.path + ext, im.path + "/" + pathpkg.Base(im.path) + ext} {
				if found {
					continue
				}
				f, err := c.m.c.OpenFile(pathpkg.Join(d, name), os.O_RDONLY, 0)
				if err != nil {
					continue
				}
				text, err = io.ReadAll(f)
				f.Close()
				found = err == nil
			}
		}
		if !found {
			return nil, fmt.Errorf("module not found: %s", im.path)
		}
		if im.data {
			d := &decoder{buf: text, end: len(text), eof: true}
			list := []any{}
			for {
				v, err := d.next()
				if err == io.EOF {
					break
				}
				if err != nil {
					return nil, err
				}
				list = append(list, v)
			}
			named := c.m.named.clone(2)
			named.put(im.name, list)
			named.put(im.name+"::"+im.name, list)
			c.m.named = named
			continue
		}
		sub, err := parseProgram(string(text))
		if err != nil {
			return nil, fmt.Errorf("%v (in %s)", err, im.path)
		}
		p := prefix
		if im.name != "" {
			p += im.name + "::"
		}
		inner, err := c.module(sub, nil, "", depth+1)
		if err != nil {
			return nil, err
		}
		for x := inner; x != nil; x = x.up {
			if x.fn != nil {
				s = &scope{up: s, name: p + x.name, id: x.id, fn: x.fn}
			}
		}
	}
	for _, d := range mod.defs {
		s = c.define(s, d, true)
	}
	return s, nil
}
