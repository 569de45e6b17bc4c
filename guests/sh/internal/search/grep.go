package search

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/regex"
)

const grepOpts = `E,extended-regexp F,fixed-strings G,basic-regexp P,perl-regexp e,regexp= f,file= i,ignore-case y,
	-,no-ignore-case w,word-regexp x,line-regexp z,null-data s,no-messages v,invert-match V,version -,help
	m,max-count= b,byte-offset n,line-number -,line-buffered H,with-filename h,no-filename -,label=
	o,only-matching q,quiet q,silent -,binary-files= a,text I, d,directories= D,devices= r,recursive
	R,dereference-recursive -,include= -,exclude= -,exclude-from= -,exclude-dir= L,files-without-match
	l,files-with-matches c,count T,initial-tab Z,null B,before-context= A,after-context= C,context=
	-,group-separator= -,no-group-separator -,color? -,colour? U,binary u,unix-byte-offsets 0, 1, 2, 3, 4, 5, 6,
	7, 8, 9,`

type grepper struct {
	ctx context.Context
	c   *cmd.Call
	out *bufio.Writer

	patterns []*regex.Regexp
	words    *words // instead of patterns
	needle   []byte // every matching line has it; nil when unknown

	invert, number, offset, only, count, quiet, silent bool
	listWith, listWithout                              bool
	tab, color, flush, single                          bool
	binary                                             byte // how to take binary files: b(inary) t(ext) w(ithout match)
	directories                                        byte // r(ead) s(kip) R(ecurse)
	follow, skipDevices                                bool
	nullName                                           bool
	sep                                                byte
	label, group                                       string
	hasGroup                                           bool
	names                                              bool
	before, after                                      int
	context                                            bool // -A, -B or -C was given
	max                                                int  // -1: no bound
	include, exclude, excludeDir                       []*regex.Regexp

	selected, failed bool
	anyPrinted       bool // a group separator may be needed

	f grepFile
}

// grepFile is the state within one file.
type grepFile struct {
	name    string
	binary  bool
	line    int // number of the current line
	at      int // its offset
	count   int
	pending int // lines of context still to print
	last    int // number of the line printed last, 0 for none
	before  [][]byte
	ats     []int
	stop    bool
}

const grepUsage = "Usage: %s [OPTION]... PATTERNS [FILE]...\nTry '%s --help' for more information.\n"

const grepHelp = `Usage: %s [OPTION]... PATTERNS [FILE]...
Search for PATTERNS in each FILE.
Patterns: -E extended, -F fixed strings, -G basic (default), -P Perl's; -e PATTERNS, -f FILE, -i, -w, -x, -z
Output: -m NUM, -b, -n, -H, -h, --label=LABEL, -o, -q, -s, -v, -L, -l, -c, -T, -Z, --line-buffered, --color[=WHEN]
Context: -A NUM, -B NUM, -C NUM, -NUM, --group-separator=SEP, --no-group-separator
Files: -r, -R, --include=GLOB, --exclude=GLOB, --exclude-from=FILE, --exclude-dir=GLOB, -d ACTION, -D ACTION
Binary files: -a, -I, --binary-files=TYPE, -U
Exit status is 0 if any line is selected, 1 otherwise; if any error occurs and -q is not given, the exit status is 2.
`

func grep(ctx context.Context, c *cmd.Call) int {
	given, operands, err := options(grepOpts).Parse(c.Args)
	if err != nil {
		c.Errorf("%v", err)
		fmt.Fprintf(c.Stderr, grepUsage, c.Name, c.Name)
		return 2
	}
	g := &grepper{ctx: ctx, c: c, binary: 'b', directories: 'r', sep: '\n', label: "(standard input)", group: "--",
		hasGroup: true, max: -1, single: singleBytes(c)}
	fail := func(format string, args ...any) int {
		c.Errorf(format, args...)
		return 2
	}
	matcher := map[string]byte{"egrep": 'E', "fgrep": 'F'}[c.Name]
	var patterns []string
	var havePatterns bool
	flags := regex.Flags(0)
	names := byte(0)
	before, after, both := -1, -1, -1
	digits := ""
	for _, o := range given {
		switch o.Key {
		case "E", "F", "G", "P":
			if matcher != 0 && matcher != o.Key[0] {
				return fail("conflicting matchers specified")
			}
			matcher = o.Key[0]
		case "e":
			patterns, havePatterns = append(patterns, strings.Split(o.Value, "\n")...), true
		case "f":
			text, err := g.readFile(o.Value)
			if err != nil {
				c.Fail(o.Value, err)
				return 2
			}
			havePatterns = true
			if text != "" {
				patterns = append(patterns, strings.Split(strings.TrimSuffix(text, "\n"), "\n")...)
			}
		case "i", "y":
			flags |= regex.IgnoreCase
		case "no-ignore-case":
			flags &^= regex.IgnoreCase
		case "w":
			flags |= regex.Word
		case "x":
			flags |= regex.Line
		case "z":
			g.sep = 0
		case "s":
			g.silent = true
		case "v":
			g.invert = true
		case "V":
			fmt.Fprintf(c.Stdout, "%s (GNU grep) 3.8\n", c.Name)
			return 0
		case "help":
			fmt.Fprintf(c.Stdout, grepHelp, c.Name)
			return 0
		case "m":
			if g.max, err = strconv.Atoi(o.Value); err != nil {
				return fail("invalid max count")
			}
		case "b":
			g.offset = true
		case "n":
			g.number = true
		case "line-buffered":
			g.flush = true
		case "H", "h":
			names = o.Key[0]
		case "label":
			g.label = o.Value
		case "o":
			g.only = true
		case "q":
			g.quiet = true
		case "binary-files":
			switch o.Value {
			case "binary", "text", "without-match":
				g.binary = o.Value[0]
			default:
				return fail("unknown binary-files type")
			}
		case "a":
			g.binary = 't'
		case "I":
			g.binary = 'w'
		case "d":
			switch o.Value {
			case "read":
				g.directories = 'r'
			case "skip":
				g.directories = 's'
			case "recurse":
				g.directories = 'R'
			default:
				return fail("%v", cmd.BadWord(o.Value, "--directories", "read", "recurse", "skip"))
			}
		case "D":
			switch o.Value {
			case "read", "skip":
				g.skipDevices = o.Value == "skip"
			default:
				return fail("unknown devices method")
			}
		case "r", "R":
			g.directories, g.follow = 'R', o.Key == "R"
		case "include", "exclude", "exclude-dir":
			r, err := globRegexp(strings.TrimSuffix(o.Value, "/"))
			if err != nil {
				return fail("%v", err)
			}
			list := map[string]*[]*regex.Regexp{"include": &g.include, "exclude": &g.exclude, "exclude-dir": &g.excludeDir}[o.Key]
			*list = append(*list, r)
		case "exclude-from":
			text, err := g.readFile(o.Value)
			if err != nil {
				c.Fail(o.Value, err)
				return 2
			}
			for _, glob := range strings.Fields(text) {
				r, err := globRegexp(glob)
				if err != nil {
					return fail("%v", err)
				}
				g.exclude = append(g.exclude, r)
			}
		case "L", "l":
			g.listWith, g.listWithout = o.Key == "l", o.Key == "L"
		case "c":
			g.count = true
		case "T":
			g.tab = true
		case "Z":
			g.nullName = true
		case "A", "B", "C":
			n, err := strconv.Atoi(o.Value)
			if err != nil || n < 0 {
				return fail("%s: invalid context length argument", o.Value)
			}
			*map[string]*int{"A": &after, "B": &before, "C": &both}[o.Key] = n
			g.context = true
		case "group-separator":
			g.group, g.hasGroup = o.Value, true
		case "no-group-separator":
			g.hasGroup = false
		case "color", "colour":
			switch o.Value {
			case "always", "yes", "force":
				g.color = true
			case "never", "no", "none", "auto", "tty", "if-tty", "":
				// Output is never a terminal here that shows colours unasked.
				g.color = false
			default:
				fmt.Fprintf(c.Stderr, grepUsage, c.Name, c.Name)
				return 2
			}
		case "U", "u":
			// Line ends are never changed, so there is nothing to keep.
		default: // a digit
			digits += o.Key
			g.context = true
		}
	}
	if digits != "" {
		both, _ = strconv.Atoi(digits)
	}
	g.before, g.after = max(before, 0), max(after, 0)
	if both >= 0 && before < 0 {
		g.before = both
	}
	if both >= 0 && after < 0 {
		g.after = both
	}
	if !havePatterns {
		if len(operands) == 0 {
			fmt.Fprintf(c.Stderr, grepUsage, c.Name, c.Name)
			return 2
		}
		patterns, operands = strings.Split(operands[0], "\n"), operands[1:]
	}
	if g.only || g.count || g.listWith || g.listWithout || g.quiet {
		g.before, g.after, g.context = 0, 0, g.only && g.context
	}
	if err := g.compile(patterns, matcher, flags); err != nil {
		return fail("%v", err)
	}
	g.names = len(operands) > 1
	if g.directories == 'R' {
		g.names = true
		if len(operands) == 1 {
			// One file that is no directory has no name before its lines.
			if info, err := os.Stat(c.Path(operands[0])); err == nil && !info.IsDir() || operands[0] == "-" {
				g.names = false
			}
		}
	}
	if names != 0 {
		g.names = names == 'H'
	}
	g.out = c.Buffered()
	defer g.out.Flush()
	if g.max < 0 {
		g.max = -1
	}
	if g.max == 0 || len(patterns) == 0 && !g.invert && !g.count && !g.listWithout {
		return 1
	}
	switch {
	case len(operands) > 0:
		for _, name := range operands {
			g.operand(name)
			if g.quiet && g.selected {
				return 0
			}
		}
	case g.directories == 'R':
		g.walk(c.Path("."), "")
	default:
		g.operand("-")
	}
	switch {
	case g.quiet && g.selected:
		return 0
	case g.failed:
		return 2
	case g.selected:
		return 0
	}
	return 1
}

func (g *grepper) readFile(name string) (string, error) {
	f, err := g.c.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return string(b), err
}

func (g *grepper) compile(patterns []string, matcher byte, flags regex.Flags) error {
	syntax := map[byte]regex.Syntax{'E': regex.ERE, 'F': regex.Fixed, 'P': regex.PCRE}[matcher]
	if g.single {
		flags |= regex.Bytes
	}
	if matcher == 'P' && len(patterns) > 1 {
		return regex.Error("the -P option only supports a single pattern")
	}
	if syntax == regex.ERE {
		flags |= regex.Lenient | regex.LoneParen
	}
	if syntax == regex.Fixed && len(patterns) > 3 && flags&regex.IgnoreCase == 0 {
		g.words = newWords(patterns, flags)
		return nil
	}
	seen := map[string]bool{}
	for _, p := range patterns {
		if seen[p] {
			continue
		}
		seen[p] = true
		re, err := regex.Compile(p, syntax, flags)
		if err != nil {
			return err
		}
		for _, w := range re.Warnings() {
			g.c.Errorf("warning: %s", w)
		}
		g.patterns = append(g.patterns, re)
	}
	if len(g.patterns) == 1 {
		g.needle = g.patterns[0].Required()
	}
	return nil
}

// find returns where the first match in line at or behind from is; of several patterns, the longest that starts first.
func (g *grepper) find(line []byte, from int) (start, end int, ok bool) {
	if g.words != nil {
		return g.words.find(line, from)
	}
	for _, re := range g.patterns {
		m := re.FindIndex(g.ctx, line, from)
		if m != nil && (!ok || m[0] < start || m[0] == start && m[1] > end) {
			start, end, ok = m[0], m[1], true
		}
	}
	return start, end, ok
}

func (g *grepper) match(line []byte) bool {
	if g.words != nil {
		_, _, ok := g.words.find(line, 0)
		return ok
	}
	for _, re := range g.patterns {
		if re.Match(g.ctx, line) {
			return true
		}
	}
	return false
}

func (g *grepper) fail(name string, err error) {
	g.failed = true
	if !g.silent {
		g.out.Flush()
		g.c.Fail(name, err)
	}
}

// operand searches a file or folder that was named on the command line.
func (g *grepper) operand(name string) {
	if name == "-" {
		g.file(g.c.Stdin, g.label)
		return
	}
	info, err := os.Stat(g.c.Path(name))
	if err == nil && info.IsDir() {
		switch g.directories {
		case 'R':
			base := path.Base(name)
			if name != "." && name != ".." && (matches(g.ctx, g.excludeDir, base) || matches(g.ctx, g.excludeDir, strings.TrimRight(name, "/"))) {
				return
			}
			g.walk(g.c.Path(name), strings.TrimRight(name, "/")+"/")
		case 'r':
			g.failed = true
			if !g.silent {
				g.out.Flush()
				g.c.Errorf("%s: Is a directory", name)
			}
		}
		return
	}
	if err == nil && g.skipDevices && info.Mode()&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket) != 0 {
		return
	}
	if !g.wanted(name) {
		return
	}
	g.open(name, name)
}

func (g *grepper) wanted(name string) bool {
	base := path.Base(name)
	if len(g.include) > 0 && !matches(g.ctx, g.include, base) && !matches(g.ctx, g.include, name) {
		return false
	}
	return !matches(g.ctx, g.exclude, base) && !matches(g.ctx, g.exclude, name)
}

func (g *grepper) open(name, shown string) {
	f, err := g.c.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		g.fail(shown, err)
		return
	}
	defer f.Close()
	g.file(f, shown)
}

// walk searches the files below the folder dir, whose names are shown behind prefix.
func (g *grepper) walk(dir, prefix string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		g.fail(strings.TrimSuffix(prefix, "/"), err)
		return
	}
	for _, e := range entries {
		cmd.Check(g.ctx)
		if g.quiet && g.selected {
			return
		}
		full, shown := strings.TrimSuffix(dir, "/")+"/"+e.Name(), prefix+e.Name()
		mode := e.Type()
		if mode&fs.ModeSymlink != 0 {
			if !g.follow {
				continue
			}
			info, err := os.Stat(full)
			if err != nil {
				g.fail(shown, err)
				continue
			}
			mode = info.Mode().Type()
			if info.IsDir() && g.loops(full, info) {
				g.c.Errorf("warning: %s: recursive directory loop", shown)
				continue
			}
		}
		switch {
		case mode.IsDir():
			if !matches(g.ctx, g.excludeDir, e.Name()) && !matches(g.ctx, g.excludeDir, shown) {
				g.walk(full, shown+"/")
			}
		case mode&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket) != 0:
			// Not read unless named: reading could block for ever.
		case g.wanted(shown):
			g.open(full, shown)
		}
	}
}

// loops reports whether the folder is one of those above it.
func (g *grepper) loops(full string, info fs.FileInfo) bool {
	for up := path.Dir(full); ; up = path.Dir(up) {
		if i, err := os.Stat(up); err == nil && os.SameFile(i, info) {
			return true
		}
		if up == "/" || up == "." {
			return false
		}
	}
}

// file searches one file.
func (g *grepper) file(r io.Reader, name string) {
	g.f = grepFile{name: name, line: 1}
	f := &g.f
	in := chunks{r: r, sep: g.sep}
	for !f.stop {
		b, err := in.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			g.fail(name, err)
			break
		}
		if !f.binary && g.binary != 't' && g.sep == '\n' && bytes.IndexByte(b, 0) >= 0 {
			f.binary = true
			if g.binary == 'w' {
				return
			}
		}
		g.lines(b)
	}
	if f.count > 0 {
		g.selected = true
	}
	if g.quiet {
		return
	}
	if (g.listWith && f.count > 0) || (g.listWithout && f.count == 0) {
		g.paint("35", name)
		if g.nullName {
			g.out.WriteByte(0)
		} else {
			g.out.WriteByte('\n')
		}
		return
	}
	if g.count && !g.listWith && !g.listWithout {
		if g.names {
			g.fileName(':')
		}
		fmt.Fprintf(g.out, "%d\n", f.count)
	}
}

// lines searches whole lines.
func (g *grepper) lines(b []byte) {
	f := &g.f
	quick := g.needle != nil && !g.invert && g.before == 0
	for len(b) > 0 && !f.stop {
		if quick && f.pending == 0 {
			// No line before the one with the needle can match.
			i := bytes.Index(b, g.needle)
			if i < 0 {
				i = len(b)
			}
			if start := bytes.LastIndexByte(b[:i], g.sep) + 1; i == len(b) || start > 0 {
				if i == len(b) {
					start = i
				}
				if g.number || g.context { // with context, whether lines follow each other decides about a separator
					f.line += bytes.Count(b[:start], []byte{g.sep})
				}
				f.at += start
				b = b[start:]
				continue
			}
		}
		end := bytes.IndexByte(b, g.sep)
		next := end + 1
		if end < 0 {
			end, next = len(b), len(b)
		}
		g.oneLine(b[:end])
		f.line++
		f.at += next
		b = b[next:]
	}
}

func (g *grepper) oneLine(line []byte) {
	f := &g.f
	if f.count != g.max && g.match(line) != g.invert {
		f.count++
		if g.quiet || g.listWith || g.listWithout {
			g.selected = true
			f.stop = true
			return
		}
		if !g.count {
			if f.binary || g.binary != 't' && !g.single && !utf8.Valid(line) {
				g.binaryMatches()
				return
			}
			g.separate(f.line - len(f.before))
			for i, l := range f.before {
				n := len(f.before) - i
				g.print(l, '-', f.line-n, f.ats[i])
			}
			f.before, f.ats = f.before[:0], f.ats[:0]
			g.print(line, ':', f.line, f.at)
			f.last = f.line
			f.pending = g.after
		}
		if f.count == g.max {
			f.stop = f.pending == 0
		}
		return
	}
	switch {
	case f.pending > 0:
		if f.binary || g.binary != 't' && !g.single && !utf8.Valid(line) {
			g.binaryMatches()
			return
		}
		g.print(line, '-', f.line, f.at)
		f.last = f.line
		if f.pending--; f.pending == 0 && f.count == g.max {
			f.stop = true
		}
	case g.before > 0:
		if len(f.before) == g.before {
			old := f.before[0]
			copy(f.before, f.before[1:])
			copy(f.ats, f.ats[1:])
			f.before[len(f.before)-1] = append(old[:0], line...)
			f.ats[len(f.ats)-1] = f.at
		} else {
			f.before = append(f.before, append([]byte(nil), line...))
			f.ats = append(f.ats, f.at)
		}
	}
}

func (g *grepper) binaryMatches() {
	g.f.stop = true
	g.out.Flush()
	g.c.Errorf("%s: binary file matches", g.f.name)
}

// separate prints the line between groups of context when first does not follow the line printed last.
func (g *grepper) separate(first int) {
	f := &g.f
	if g.context && g.hasGroup && g.anyPrinted && (f.last == 0 || first > f.last+1) {
		g.paint("36", g.group)
		g.out.WriteByte('\n')
	}
	g.anyPrinted = true
}

func (g *grepper) paint(code, text string) {
	if !g.color {
		g.out.WriteString(text)
		return
	}
	fmt.Fprintf(g.out, "\x1b[%sm\x1b[K%s\x1b[m\x1b[K", code, text)
}

func (g *grepper) fileName(sep byte) {
	g.paint("35", g.f.name)
	if g.nullName {
		g.out.WriteByte(0)
	} else {
		g.paint("36", string(sep))
	}
}

func (g *grepper) head(sep byte, line, at int) {
	width := 1
	if g.tab {
		width = 2
	}
	if g.names {
		g.fileName(sep)
	}
	number := func(n int) {
		s := strconv.Itoa(n)
		for range width - len(s) {
			s = " " + s
		}
		g.paint("32", s)
		g.paint("36", string(sep))
	}
	if g.number {
		number(line)
	}
	if g.offset {
		number(at)
	}
	if g.tab && (g.names || g.number || g.offset) {
		g.out.WriteByte('\t')
	}
}

func (g *grepper) print(line []byte, sep byte, number, at int) {
	matching := (sep == ':') != g.invert
	if g.only {
		if matching && sep == ':' {
			g.parts(line, func(start, end int) {
				g.head(sep, number, at+start)
				g.paint("01;31", string(line[start:end]))
				g.out.WriteByte(g.sep)
			})
		}
	} else {
		g.head(sep, number, at)
		done := 0
		if g.color && matching {
			g.parts(line, func(start, end int) {
				g.out.Write(line[done:start])
				g.paint("01;31", string(line[start:end]))
				done = end
			})
		}
		g.out.Write(line[done:])
		g.out.WriteByte(g.sep)
	}
	if g.flush {
		g.out.Flush()
	}
}

// parts calls f for each match in line that is not empty.
func (g *grepper) parts(line []byte, f func(start, end int)) {
	for from := 0; from <= len(line); {
		start, end, ok := g.find(line, from)
		if !ok {
			return
		}
		if end <= start {
			from = max(from, end) + 1
			continue
		}
		f(start, end)
		from = end
	}
}

// words finds any of many fixed texts, through a tree of their bytes.
type words struct {
	next  []map[byte]int32
	ends  []bool
	first [256]bool
	flags regex.Flags
	empty bool
	whole map[string]bool // for -x
}

func newWords(texts []string, flags regex.Flags) *words {
	w := &words{flags: flags}
	if flags&regex.Line != 0 {
		w.whole = map[string]bool{}
		for _, t := range texts {
			w.whole[t] = true
		}
		return w
	}
	node := func() int32 {
		w.next, w.ends = append(w.next, nil), append(w.ends, false)
		return int32(len(w.next) - 1)
	}
	node()
	for _, t := range texts {
		if t == "" {
			w.empty = true
			continue
		}
		w.first[t[0]] = true
		at := int32(0)
		for i := range len(t) {
			to, ok := w.next[at][t[i]]
			if !ok {
				to = node()
				if w.next[at] == nil {
					w.next[at] = map[byte]int32{}
				}
				w.next[at][t[i]] = to
			}
			at = to
		}
		w.ends[at] = true
	}
	return w
}

func (w *words) find(line []byte, from int) (start, end int, ok bool) {
	if w.whole != nil {
		return 0, len(line), from == 0 && w.whole[string(line)]
	}
	word := w.flags&regex.Word != 0
	for start = from; start <= len(line); start++ {
		if w.empty {
			end, ok = start, !word || len(line) == 0
		}
		if start < len(line) && w.first[line[start]] && (!word || !wordBefore(line[:start])) {
			at := int32(0)
			for i := start; i < len(line); i++ {
				to, more := w.next[at][line[i]]
				if !more {
					break
				}
				if at = to; w.ends[at] && (!word || !wordBehind(line[i+1:])) {
					end, ok = i+1, true
				}
			}
		}
		if ok {
			return start, end, true
		}
	}
	return 0, 0, false
}

func wordBefore(b []byte) bool {
	r, _ := utf8.DecodeLastRune(b)
	return len(b) > 0 && regex.IsWord(r)
}

func wordBehind(b []byte) bool {
	r, _ := utf8.DecodeRune(b)
	return len(b) > 0 && regex.IsWord(r)
}
