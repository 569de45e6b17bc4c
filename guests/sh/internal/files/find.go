package files

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/sys"
)

// finder walks folders and judges what it finds by an expression.
type finder struct {
	ctx  context.Context
	c    *cmd.Call
	out  *bufio.Writer
	zone *time.Location
	now  time.Time // when it began, or the end of the day with -daystart

	follow             byte // P, H, L
	minDepth, maxDepth int
	depthFirst         bool

	expr    node
	batches []*execution // -exec ... +
	outputs map[string]*bufio.Writer
	files   []cmd.File
	quit    bool
	code    int
	prune   bool   // of the file that is judged
	acts    bool   // the expression has an action, so -print is not implied
	regex   string // the language of -regex
}

// found is a file that find looks at.
type found struct {
	path  string // as it is printed
	start string // the operand it was found below
	depth int
	in    *info // nil when it is gone
	bare  *info // the link itself where links are followed
}

// node is a part of the expression.
type node func(f *finder, at *found) bool

// errFind is a mistake in find's arguments.
type errFind string

func (e errFind) Error() string { return string(e) }

func find(ctx context.Context, c *cmd.Call) (code int) {
	f := &finder{ctx: ctx, c: c, out: c.Buffered(), zone: sys.Local(c), now: time.Now(), follow: 'P', maxDepth: -1, regex: "findutils-default"}
	args := c.Args
leading:
	for len(args) > 0 {
		switch a := args[0]; {
		case a == "-P" || a == "-H" || a == "-L":
			f.follow = a[1]
		case a == "-O0" || a == "-O1" || a == "-O2" || a == "-O3":
		case a == "-D" && len(args) > 1:
			args = args[1:]
		case a == "--":
			args = args[1:]
			break leading
		case a == "-f" && len(args) > 1: // BSD
			args = append([]string{args[1]}, args[2:]...)
			break leading
		case a == "--help" || a == "-help":
			fmt.Fprintln(c.Stdout, "Usage: find [-H] [-L] [-P] [path...] [expression]")
			return 0
		case a == "--version" || a == "-version":
			fmt.Fprintln(c.Stdout, "find (exthost, after GNU findutils 4.9.0)")
			return 0
		default:
			break leading
		}
		args = args[1:]
	}
	n := 0
	for n < len(args) && !strings.HasPrefix(args[n], "-") && args[n] != "(" && args[n] != ")" && args[n] != "!" && args[n] != "," {
		n++
	}
	starts := args[:n]
	if n == 0 {
		starts = []string{"."}
	}
	p := &findParser{f: f, args: args[n:]}
	expr, err := p.whole()
	if err != nil {
		f.close()
		c.Errorf("%v", err)
		return 1
	}
	f.expr = expr
	defer func() {
		f.close()
		code = f.code
	}()
	for _, start := range starts {
		if f.quit {
			break
		}
		f.walk(&found{path: start, start: start}, nil)
	}
	for _, b := range f.batches {
		b.flush(f)
	}
	f.out.Flush()
	return f.code
}

func (f *finder) close() {
	f.out.Flush()
	for name, w := range f.outputs {
		if err := w.Flush(); err != nil {
			f.fail(name, err)
		}
	}
	for _, file := range f.files {
		if file.Close() != nil {
			f.code = 1
		}
	}
	f.files = nil
}

func (f *finder) fail(name string, err error) {
	f.out.Flush()
	f.c.Errorf("%s: %s", cmd.Quote(name), cmd.Reason(err))
	f.code = 1
}

// look describes a file as -P, -H or -L wants it.
func (f *finder) look(at *found) error {
	bare, err := linkStatus(f.c, at.path)
	if err != nil {
		return err
	}
	at.in, at.bare = bare, bare
	if bare.link() && (f.follow == 'L' || f.follow == 'H' && at.depth == 0) {
		if behind, err := status(f.c, at.path); err == nil {
			at.in = behind
		}
	}
	return nil
}

func (f *finder) walk(at *found, above []*info) {
	cmd.Check(f.ctx)
	if f.quit {
		return
	}
	if err := f.look(at); err != nil {
		f.fail(at.path, err)
		return
	}
	if at.in.IsDir() {
		for _, a := range above {
			if sameFile(a, at.in) {
				f.out.Flush()
				f.c.Errorf("File system loop detected; %s is part of the same file system loop as %s.", cmd.Quote(at.path), cmd.Quote(at.start))
				f.code = 1
				return
			}
		}
	}
	f.prune = false
	if !f.depthFirst {
		f.judge(at)
	}
	if at.in.IsDir() && !f.prune && !f.quit && (f.maxDepth < 0 || at.depth < f.maxDepth) {
		list, err := names(f.ctx, f.c, at.path)
		if err != nil {
			f.fail(at.path, err)
		}
		above = append(slices.Clip(above), at.in)
		for _, name := range list {
			f.walk(&found{path: join(at.path, name), start: at.start, depth: at.depth + 1}, above)
			if f.quit {
				return
			}
		}
	}
	if f.depthFirst && !f.quit {
		f.judge(at)
	}
}

func (f *finder) judge(at *found) {
	if at.depth >= f.minDepth {
		f.expr(f, at)
	}
}

// output is where an action writes: standard output or the file of -fprint.
func (f *finder) output(name string) (*bufio.Writer, error) {
	if name == "" {
		return f.out, nil
	}
	if w, ok := f.outputs[name]; ok {
		return w, nil
	}
	file, err := f.c.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666&^f.c.Umask)
	if err != nil {
		return nil, errFind(cmd.Quote(name) + ": " + cmd.Reason(err))
	}
	if f.outputs == nil {
		f.outputs = map[string]*bufio.Writer{}
	}
	f.files = append(f.files, file)
	f.outputs[name] = bufio.NewWriter(cmd.Writer(f.ctx, file))
	return f.outputs[name], nil
}

// remove is -delete.
func (f *finder) remove(at *found) bool {
	if at.path == "." || strings.HasSuffix(at.path, "/.") && at.depth == 0 {
		return true
	}
	// What is removed is the name, never what a link leads to.
	fi, err := os.Lstat(strings.TrimRight(f.c.Path(at.path), "/"))
	if err == nil {
		if fi.IsDir() && f.c.Path(at.path) == "/" {
			err = syscall.EBUSY
		} else {
			err = os.Remove(strings.TrimRight(f.c.Path(at.path), "/"))
		}
	}
	if err != nil {
		f.out.Flush()
		f.c.Errorf("cannot delete %s: %s", cmd.Quote(at.path), cmd.Reason(err))
		f.code = 1
		return false
	}
	return true
}

// empty is -empty.
func (f *finder) empty(at *found) bool {
	if at.in.Mode().IsRegular() {
		return at.in.Size() == 0
	}
	if !at.in.IsDir() {
		return false
	}
	list, err := names(f.ctx, f.c, at.path)
	if err != nil {
		f.fail(at.path, err)
		return false
	}
	return len(list) == 0
}

// list is -ls.
func (f *finder) list(w *bufio.Writer, at *found) {
	name := escapeLs(at.path)
	if at.in.link() {
		if to, err := os.Readlink(f.c.Path(at.path)); err == nil {
			name += " -> " + escapeLs(to)
		}
	}
	t := at.in.mtime.In(f.zone)
	date := sys.Strftime("%b %e  %Y", t)
	if age := time.Since(t); age >= -time.Hour && age < 180*24*time.Hour {
		date = sys.Strftime("%b %e %H:%M", t)
	}
	fmt.Fprintf(w, "%9d %6d %s %3d %-8s %-8s %8d %s %s\n", at.in.ino, (at.in.blocks()+1)/2, at.in.modeString(), at.in.nlink, owner, owner, at.in.Size(), date, name)
}

func escapeLs(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch x := name[i]; {
		case x == ' ' || x == '\\' || x == '"':
			b.WriteString(`\` + string(x))
		case x > ' ' && x != 0x7f:
			b.WriteByte(x)
		default:
			if at := strings.IndexByte("\a\b\f\n\r\t\v", x); at >= 0 {
				b.WriteString(`\` + "abfnrtv"[at:at+1])
			} else {
				fmt.Fprintf(&b, `\%03o`, x)
			}
		}
	}
	return b.String()
}

// execution is -exec or -execdir.
type execution struct {
	argv  []string
	dir   bool // in the file's folder
	batch bool // {} +
	files []string
	size  int
	at    string // the folder of the batch
}

// maxBatch bounds the bytes of one command line, as the system would.
const maxBatch = 128 << 10

func (x *execution) run(f *finder, at *found) bool {
	name, folder := at.path, ""
	if x.dir {
		folder = f.c.Path(parent(at.path))
		if name = base(at.path); name != "/" {
			name = "./" + name
		}
	}
	if x.batch {
		if len(x.files) > 0 && (x.size+len(name) > maxBatch || x.at != folder) {
			x.flush(f)
		}
		x.at = folder
		x.files = append(x.files, name)
		x.size += len(name) + 1
		return true
	}
	argv := make([]string, len(x.argv))
	for i, a := range x.argv {
		argv[i] = strings.ReplaceAll(a, "{}", name)
	}
	return x.start(f, argv, folder) == 0
}

func (x *execution) flush(f *finder) {
	if len(x.files) == 0 {
		return
	}
	argv := append(slices.Clone(x.argv), x.files...)
	x.files, x.size = nil, 0
	if x.start(f, argv, x.at) != 0 {
		f.code = 1
	}
}

func (x *execution) start(f *finder, argv []string, dir string) int {
	f.out.Flush()
	for _, w := range f.outputs {
		w.Flush()
	}
	if _, ok := f.c.Shell.Find(f.c, argv[0]); !ok {
		f.c.Errorf("%s: %s", cmd.Quote(argv[0]), cmd.Reason(fs.ErrNotExist))
		return 127
	}
	code := f.c.Shell.Run(f.ctx, f.c, cmd.Child{Argv: argv, Dir: dir})
	cmd.Check(f.ctx)
	return code
}

// number reads +n, -n or n.
func number(text string) (sign byte, n int64, ok bool) {
	if text != "" && (text[0] == '+' || text[0] == '-') {
		sign, text = text[0], text[1:]
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return sign, n, err == nil && n >= 0 && text[0] != '+' && text[0] != '-'
}
