package files

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/files/glob"
	"github.com/exthost/exthost/guests/sh/internal/sys"
)

type lister struct {
	ctx  context.Context
	c    *cmd.Call
	out  *bufio.Writer
	zone *time.Location
	now  time.Time

	all, almost, dirs, recursive, reverse, groupDirs bool
	long, noOwner, noGroup, numeric, inode, size     bool
	human, si, scaled, follow, followOperands, hide  bool
	quoted, escape                                   bool
	layout                                           byte // 1, C, x, m
	sort                                             byte // 0 name, S, t, v, X, U
	time                                             byte // m, a, c
	classify                                         byte // 0, /, F
	block                                            int64
	width                                            int
	style, end, unit                                 string
	ignore                                           []string
	code                                             int
	printed                                          bool
}

// entry is a file in a listing.
type entry struct {
	name, path string
	in         *info
	target     string // of a link, for a long listing
}

const lsOpts = "a,all A,almost-all ,author b,escape ,block-size= B,ignore-backups c C ,color? d,directory f " +
	"F,classify? ,file-type ,format= ,full-time g ,group-directories-first G,no-group h,human-readable ,si " +
	"H,dereference-command-line ,hide= ,hyperlink? ,indicator-style= i,inode I,ignore= k,kibibytes l " +
	"L,dereference m n,numeric-uid-gid N,literal o p q,hide-control-chars ,show-control-chars Q,quote-name " +
	",quoting-style= r,reverse R,recursive s,size S ,sort= ,time= ,time-style= t u U v w,width= x X " +
	"Z,context 1 ,zero T,tabsize="

func ls(ctx context.Context, c *cmd.Call) int {
	given, operands, code, ok := options(c, lsOpts, "[OPTION]... [FILE]...", 2)
	if !ok {
		return code
	}
	l := &lister{ctx: ctx, c: c, zone: sys.Local(c), now: time.Now(), layout: '1', time: 'm', block: 1024, width: 80, end: "\n", style: "locale"}
	sorted, column := false, false
	for _, g := range given {
		switch g.Key {
		case "a":
			l.all = true
		case "A":
			l.almost = true
		case "b":
			l.escape, l.quoted = true, false
		case "B":
			l.ignore = append(l.ignore, "*~", ".*~")
		case "c", "u":
			l.time = map[string]byte{"c": 'c', "u": 'a'}[g.Key]
			if !sorted && !column {
				column = true
			}
		case "C", "x", "m":
			l.layout, l.long = g.Key[0], false
		case "1":
			if !l.long {
				l.layout = '1'
			}
		case "color", "hyperlink", "author", "T": // never a terminal; the author is the owner, who is shown
			if g.Key != "color" || !g.Has {
				continue
			}
			switch g.Value {
			case "always", "yes", "force":
				c.Errorf("colours are not supported")
				return 2
			case "never", "no", "none", "auto", "tty", "if-tty":
			default:
				return l.invalid("--color", g.Value)
			}
		case "d":
			l.dirs = true
		case "f":
			l.all, l.sort, sorted = true, 'U', true
		case "F":
			if g.Value != "never" && g.Value != "no" && g.Value != "none" && g.Value != "auto" && g.Value != "tty" && g.Value != "if-tty" {
				l.classify = 'F'
			}
		case "file-type":
			l.classify = 't'
		case "p":
			l.classify = '/'
		case "indicator-style":
			switch g.Value {
			case "none":
				l.classify = 0
			case "slash":
				l.classify = '/'
			case "file-type":
				l.classify = 't'
			case "classify":
				l.classify = 'F'
			default:
				return l.invalid("--indicator-style", g.Value)
			}
		case "format":
			switch g.Value {
			case "verbose", "long":
				l.long = true
			case "single-column":
				l.layout, l.long = '1', false
			case "vertical":
				l.layout, l.long = 'C', false
			case "across", "horizontal":
				l.layout, l.long = 'x', false
			case "commas":
				l.layout, l.long = 'm', false
			default:
				return l.invalid("--format", g.Value)
			}
		case "full-time":
			l.long, l.style = true, "full-iso"
		case "g":
			l.long, l.noOwner = true, true
		case "o":
			l.long, l.noGroup = true, true
		case "G":
			l.noGroup = true
		case "n":
			l.long, l.numeric = true, true
		case "l":
			l.long = true
		case "group-directories-first":
			l.groupDirs = true
		case "h":
			l.human = true
		case "si":
			l.human, l.si = true, true
		case "k":
			l.block = 1024
		case "block-size":
			switch n, ok := blockSize(g.Value); {
			case g.Value == "human-readable":
				l.human = true
			case !ok:
				return l.invalid("--block-size", g.Value)
			default:
				l.block, l.scaled = n, true
				if !digit(g.Value[0]) {
					l.unit = g.Value // 1K counts, K also says so
				}
			}
		case "H":
			l.followOperands = true
		case "L":
			l.follow = true
		case "I", "hide":
			l.ignore = append(l.ignore, g.Value)
		case "i":
			l.inode = true
		case "s":
			l.size = true
		case "N", "show-control-chars":
			l.quoted, l.escape, l.hide = false, false, false
		case "q":
			l.hide = true
		case "Q":
			l.quoted = true
		case "quoting-style":
			switch g.Value {
			case "literal", "shell", "locale", "clocale", "shell-escape":
				l.quoted, l.escape = false, false
			case "c":
				l.quoted = true
			case "escape":
				l.escape = true
			default:
				return l.invalid("--quoting-style", g.Value)
			}
		case "r":
			l.reverse = true
		case "R":
			l.recursive = true
		case "S", "t", "v", "X", "U":
			l.sort, sorted = g.Key[0], true
		case "sort":
			kinds := map[string]byte{"none": 'U', "size": 'S', "time": 't', "version": 'v', "extension": 'X', "name": 0}
			kind, ok := kinds[g.Value]
			if !ok {
				return l.invalid("--sort", g.Value)
			}
			l.sort, sorted = kind, true
		case "time":
			switch g.Value {
			case "atime", "access", "use":
				l.time = 'a'
			case "ctime", "status":
				l.time = 'c'
			case "mtime", "modification":
				l.time = 'm'
			default:
				return l.invalid("--time", g.Value)
			}
			column = true
		case "time-style":
			style := strings.TrimPrefix(g.Value, "posix-")
			switch style {
			case "full-iso", "long-iso", "iso", "locale":
			default:
				if !strings.HasPrefix(style, "+") {
					return l.invalid("--time-style", g.Value)
				}
			}
			l.style = style
		case "w":
			n, err := strconv.Atoi(g.Value)
			if err != nil || n < 0 {
				c.Errorf("invalid line width: %s", cmd.Quote(g.Value))
				return 2
			}
			l.width = n
			if n == 0 {
				l.width = 1 << 30
			}
		case "Z":
			c.Errorf("there are no security contexts")
			return 2
		case "zero":
			l.end, l.layout, l.long = "\x00", '1', false
		}
	}
	if column && !sorted && !l.long {
		l.sort = 't' // -c and -u sort when nothing else does
	}
	l.out = c.Buffered()
	defer l.out.Flush()
	if len(operands) == 0 {
		operands = []string{"."}
	}
	var list, folders []*entry
	for _, name := range operands {
		in, err := linkStatus(c, name)
		if err == nil && in.link() && (l.follow || l.followOperands || !l.long && !l.dirs && l.classify != 'F') {
			// Operands are followed when no option makes the link itself matter; broken ones stay links.
			if behind, failed := status(c, name); failed == nil && (l.follow || l.followOperands || behind.IsDir()) {
				in = behind
			} else if l.follow && failed != nil {
				err = failed
			}
		}
		if err != nil {
			l.out.Flush()
			c.Errorf("cannot access %s: %s", quote(name), cmd.Reason(err))
			l.code = 2
			continue
		}
		e := l.entry(name, name, in)
		if in.IsDir() && !l.dirs {
			folders = append(folders, e)
		} else {
			list = append(list, e)
		}
	}
	l.order(list)
	l.order(folders)
	l.print(list)
	heads := len(operands) > 1 || l.recursive
	for _, e := range folders {
		l.folder(e.path, heads, nil)
	}
	return l.code
}

func (l *lister) invalid(option, value string) int {
	switch option {
	case "--block-size":
		l.c.Errorf("invalid --block-size argument '%s'", value)
		return 2
	case "--time-style":
		l.c.Errorf("invalid argument %s for %s\nValid arguments are:\n  - [posix-]full-iso\n  - [posix-]long-iso\n  - [posix-]iso\n"+
			"  - [posix-]locale\n  - +FORMAT (e.g., +%%H:%%M) for a 'date'-style format", cmd.Quote(value), cmd.Quote("time style"))
		fmt.Fprintf(l.c.Stderr, "Try '%s --help' for more information.\n", l.c.Name)
		return 2
	}
	return l.c.BadUsage(cmd.BadWord(value, option, lsWords[option]...), 1)
}

// lsWords are the values of options; those in one group mean the same.
var lsWords = map[string][]string{
	"--color":           {"always yes force", "never no none", "auto tty if-tty"},
	"--indicator-style": {"none", "slash", "file-type", "classify"},
	"--format":          {"verbose long", "commas", "horizontal across", "vertical", "single-column"},
	"--quoting-style": {"literal", "shell", "shell-always", "shell-escape", "shell-escape-always", "c", "c-maybe", "escape",
		"locale", "clocale"},
	"--sort": {"none", "time", "size", "extension", "version", "width"},
	"--time": {"atime access use", "ctime status", "birth creation"},
}

func (l *lister) entry(name, at string, in *info) *entry {
	e := &entry{name: name, path: at, in: in}
	if in.link() && (l.long || l.classify == 'F') {
		if to, err := os.Readlink(l.c.Path(at)); err == nil {
			e.target = to
		}
	}
	return e
}

func (l *lister) folder(dir string, head bool, above []*info) {
	cmd.Check(l.ctx)
	list, err := names(l.ctx, l.c, dir)
	if err != nil {
		l.out.Flush()
		l.c.Errorf("cannot open directory %s: %s", quote(dir), cmd.Reason(err))
		l.code = max(l.code, 1)
		if above == nil {
			l.code = 2
		}
		return
	}
	if head {
		if l.printed {
			l.out.WriteString(l.end)
		}
		l.out.WriteString(l.shown(dir) + ":" + l.end)
		l.printed = true
	}
	var entries []*entry
	if l.all {
		list = append([]string{".", ".."}, list...)
	}
	for _, name := range list {
		if !l.all && (!l.almost && strings.HasPrefix(name, ".") || slices.ContainsFunc(l.ignore, func(p string) bool { return glob.Match(p, name, 0) })) {
			continue
		}
		at := join(dir, name)
		look := linkStatus
		if l.follow {
			look = status
		}
		in, err := look(l.c, at)
		if err != nil && l.follow {
			if link, failed := linkStatus(l.c, at); failed == nil {
				in, err = link, nil // it leads nowhere
			}
		}
		if err != nil {
			l.out.Flush()
			l.c.Errorf("cannot access %s: %s", quote(at), cmd.Reason(err))
			l.code = max(l.code, 1)
			continue
		}
		entries = append(entries, l.entry(name, at, in))
	}
	l.order(entries)
	if l.long || l.size {
		var total int64
		for _, e := range entries {
			total += e.in.blocks()
		}
		fmt.Fprintf(l.out, "total %s%s", l.blocks(total), l.end)
		l.printed = true
	}
	l.print(entries)
	if !l.recursive {
		return
	}
	self, err := status(l.c, dir)
	if err != nil {
		return
	}
	above = append(slices.Clip(above), self)
	for _, e := range entries {
		if !e.in.IsDir() || e.name == "." || e.name == ".." {
			continue
		}
		if slices.ContainsFunc(above, func(a *info) bool { return sameFile(a, e.in) }) {
			l.out.Flush()
			l.c.Errorf("%s: not listing already-listed directory", e.path)
			l.code = 2
			continue
		}
		l.folder(e.path, true, above)
	}
}

func (l *lister) order(list []*entry) {
	if l.sort == 'U' {
		return
	}
	at := func(e *entry) time.Time { return l.timeOf(e.in) }
	slices.SortStableFunc(list, func(a, b *entry) int {
		if l.groupDirs && l.dir(a) != l.dir(b) {
			if l.dir(a) {
				return -1
			}
			return 1
		}
		n := 0
		switch l.sort {
		case 'S':
			n = cmp.Compare(b.in.Size(), a.in.Size())
		case 't':
			n = at(b).Compare(at(a))
		case 'v':
			n = compareVersions(a.name, b.name)
		case 'X':
			n = cmp.Compare(extension(a.name), extension(b.name))
		}
		if n == 0 {
			n = cmp.Compare(a.name, b.name)
		}
		if l.reverse {
			n = -n
		}
		return n
	})
}

func (l *lister) dir(e *entry) bool {
	if e.in.link() {
		return isDir(l.c, e.path)
	}
	return e.in.IsDir()
}

func (l *lister) timeOf(in *info) time.Time {
	switch l.time {
	case 'a':
		return in.atime
	case 'c':
		return in.ctime
	}
	return in.mtime
}

func extension(name string) string {
	if at := strings.LastIndexByte(name, '.'); at >= 0 {
		return name[at:]
	}
	return ""
}

// blocks writes blocks of 512 bytes in the unit of the listing.
func (l *lister) blocks(n int64) string {
	if l.human {
		return human(n*512, l.si)
	}
	return strconv.FormatInt((n*512+l.block-1)/l.block, 10) + l.unit
}

func (l *lister) bytes(n int64) string {
	if l.human {
		return human(n, l.si)
	}
	if l.scaled {
		return strconv.FormatInt((n+l.block-1)/l.block, 10) + l.unit
	}
	return strconv.FormatInt(n, 10)
}

func (l *lister) shown(name string) string {
	switch {
	case l.quoted:
		return `"` + escapeC(name, true) + `"`
	case l.escape:
		return escapeC(name, false)
	case l.hide:
		return strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f {
				return '?'
			}
			return r
		}, name)
	}
	return name
}

// escapeC writes a name with the escapes of C.
func escapeC(name string, quoted bool) string {
	var b strings.Builder
	for i := range len(name) {
		switch x := name[i]; {
		case x == '\\' || x == '"' && quoted || x == ' ' && !quoted:
			b.WriteString(`\` + string(x))
		case x >= ' ' && x != 0x7f:
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

func (l *lister) mark(in *info) string {
	if l.classify == 0 {
		return ""
	}
	switch kind(in.Mode()) {
	case 'd':
		return "/"
	case 'l':
		if l.classify != '/' {
			return "@"
		}
	case 'p':
		if l.classify != '/' {
			return "|"
		}
	case 's':
		if l.classify != '/' {
			return "="
		}
	}
	return ""
}

func (l *lister) print(list []*entry) {
	if len(list) == 0 {
		return
	}
	l.printed = true
	if l.long {
		l.printLong(list)
		return
	}
	cells := make([]string, len(list))
	inodes, sizes := 0, 0
	for _, e := range list {
		inodes = max(inodes, len(strconv.FormatUint(e.in.ino, 10)))
		sizes = max(sizes, len(l.blocks(e.in.blocks())))
	}
	if l.layout == 'm' {
		inodes, sizes = 0, 0
	}
	for i, e := range list {
		if l.inode {
			cells[i] += fmt.Sprintf("%*d ", inodes, e.in.ino)
		}
		if l.size {
			cells[i] += fmt.Sprintf("%*s ", sizes, l.blocks(e.in.blocks()))
		}
		cells[i] += l.shown(e.name) + l.mark(e.in)
	}
	switch l.layout {
	case 'm':
		at := 0
		for i, cell := range cells {
			if i > 0 {
				if at+width(cell)+2 <= l.width {
					l.out.WriteString(", ")
					at += 2
				} else {
					l.out.WriteString("," + l.end)
					at = 0
				}
			}
			l.out.WriteString(cell)
			at += width(cell)
		}
		l.out.WriteString(l.end)
	case 'C', 'x':
		l.columns(cells)
	default:
		for _, cell := range cells {
			l.out.WriteString(cell + l.end)
		}
	}
}

// columns lays cells out in as many columns as fit, downwards (-C) or across (-x), with tabs as GNU's ls puts them.
func (l *lister) columns(cells []string) {
	const least = 3
	n := len(cells)
	most := max(1, min(n, l.width/least))
	cols, rows := 1, n
	var widths []int
	for try := most; try >= 1; try-- {
		r := (n + try - 1) / try
		w := make([]int, try)
		for i := range w {
			w[i] = least
		}
		for i, cell := range cells {
			at := i / r
			if l.layout == 'x' {
				at = i % try
			}
			gap := 2
			if at == try-1 {
				gap = 0
			}
			w[at] = max(w[at], width(cell)+gap)
		}
		total := 0
		for _, x := range w {
			total += x
		}
		if total < l.width || try == 1 {
			cols, rows, widths = try, r, w
			break
		}
	}
	for row := range rows {
		at, start := 0, 0
		for col := range cols {
			i := col*rows + row
			next := (col+1)*rows + row
			if l.layout == 'x' {
				i = row*cols + col
				next = i + 1
				if col == cols-1 {
					next = n
				}
			}
			if i >= n {
				break
			}
			l.out.WriteString(cells[i])
			at = start + width(cells[i])
			if col == cols-1 || next >= n {
				break
			}
			start += widths[col]
			for at < start {
				if start/8 > (at+1)/8 {
					l.out.WriteByte('\t')
					at += 8 - at%8
				} else {
					l.out.WriteByte(' ')
					at++
				}
			}
		}
		l.out.WriteString(l.end)
	}
}

func (l *lister) printLong(list []*entry) {
	var inodes, sizes, links, bytes int
	id := owner
	if l.numeric {
		id = strconv.Itoa(ownerID)
	}
	times := make([]string, len(list))
	timeWidth := 0
	for i, e := range list {
		inodes = max(inodes, len(strconv.FormatUint(e.in.ino, 10)))
		sizes = max(sizes, len(l.blocks(e.in.blocks())))
		links = max(links, len(strconv.FormatUint(e.in.nlink, 10)))
		bytes = max(bytes, len(l.bytes(e.in.Size())))
		times[i] = l.date(l.timeOf(e.in))
		timeWidth = max(timeWidth, len(times[i]))
	}
	for i, e := range list {
		if l.inode {
			fmt.Fprintf(l.out, "%*d ", inodes, e.in.ino)
		}
		if l.size {
			fmt.Fprintf(l.out, "%*s ", sizes, l.blocks(e.in.blocks()))
		}
		fmt.Fprintf(l.out, "%s %*d ", e.in.modeString(), links, e.in.nlink)
		if !l.noOwner {
			l.out.WriteString(id + " ")
		}
		if !l.noGroup {
			l.out.WriteString(id + " ")
		}
		fmt.Fprintf(l.out, "%*s %s %s", bytes, l.bytes(e.in.Size()), times[i], l.shown(e.name))
		if e.in.link() {
			l.out.WriteString(" -> " + l.shown(e.target))
			if behind, err := status(l.c, e.path); err == nil && l.classify != 0 && l.classify != '/' {
				l.out.WriteString(l.mark(behind))
			}
		} else {
			l.out.WriteString(l.mark(e.in))
		}
		l.out.WriteString(l.end)
	}
}

// halfYear is how long a time counts as recent.
const halfYear = 31556952 / 2 * time.Second

func (l *lister) date(t time.Time) string {
	t = t.In(l.zone)
	age := l.now.Sub(t)
	recent := age >= 0 && age < halfYear
	switch l.style {
	case "full-iso":
		return sys.Strftime("%Y-%m-%d %H:%M:%S.%N %z", t)
	case "long-iso":
		return sys.Strftime("%Y-%m-%d %H:%M", t)
	case "iso":
		if recent {
			return sys.Strftime("%m-%d %H:%M", t)
		}
		return sys.Strftime("%Y-%m-%d ", t)
	case "locale":
		if recent {
			return sys.Strftime("%b %e %H:%M", t)
		}
		return sys.Strftime("%b %e  %Y", t)
	}
	old, new, two := strings.Cut(l.style[1:], "\n")
	if two && recent {
		old = new
	}
	return sys.Strftime(old, t)
}
