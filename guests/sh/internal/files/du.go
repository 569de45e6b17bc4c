package files

import (
	"bufio"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/files/glob"
	"github.com/exthost/exthost/guests/sh/internal/sys"
)

const duOpts = "0,null a,all ,apparent-size b,bytes B,block-size= c,total d,max-depth= D,dereference-args H ,exclude= X,exclude-from= " +
	"h,human-readable ,si ,inodes k l,count-links L,dereference m P,no-dereference s,summarize S,separate-dirs t,threshold= ,time? ,time-style= x,one-file-system"

// usageOf sums what files take. There is no disk to ask: see the package comment for the sizes.
type usageOf struct {
	ctx context.Context
	c   *cmd.Call
	out *bufio.Writer

	all, apparent, human, si, countLinks, separate, inodes bool
	follow                                                 byte
	block                                                  int64
	unit                                                   string
	depth                                                  int
	least                                                  int64
	end                                                    string
	exclude                                                []string
	time                                                   byte
	style                                                  string
	seen                                                   map[inode]bool
	code                                                   int
}

// sum is what a folder takes.
type sum struct {
	size int64 // bytes, or files
	last time.Time
}

func (s *sum) add(t sum) {
	s.size += t.size
	if t.last.After(s.last) {
		s.last = t.last
	}
}

func du(ctx context.Context, c *cmd.Call) int {
	given, operands, code, ok := options(c, duOpts, "[OPTION]... [FILE]...", 1)
	if !ok {
		return code
	}
	u := &usageOf{ctx: ctx, c: c, block: 1024, depth: -1, end: "\n", follow: 'P', seen: map[inode]bool{}, style: "long-iso"}
	var total, summary bool
	for _, g := range given {
		switch g.Key {
		case "0":
			u.end = "\x00"
		case "a":
			u.all = true
		case "apparent-size":
			u.apparent = true
		case "b":
			u.apparent, u.block, u.unit, u.human = true, 1, "", false
		case "B":
			if g.Value == "human-readable" || g.Value == "si" {
				u.human, u.si = true, g.Value == "si"
				break
			}
			n, ok := blockSize(g.Value)
			if !ok {
				c.Errorf("invalid -B argument %s", quote(g.Value))
				return 1
			}
			u.block, u.unit, u.human = n, "", false
			if !digit(g.Value[0]) {
				u.unit = g.Value
			}
		case "c":
			total = true
		case "d":
			n, err := strconv.Atoi(g.Value)
			if err != nil || n < 0 {
				return usage(c, "invalid maximum depth %s", cmd.Quote(g.Value))
			}
			u.depth = n
		case "D", "H":
			u.follow = 'H'
		case "L", "P":
			u.follow = g.Key[0]
		case "exclude":
			u.exclude = append(u.exclude, g.Value)
		case "X":
			text, err := readAll(ctx, c, g.Value)
			if err != nil {
				return c.Fail(g.Value, err)
			}
			u.exclude = append(u.exclude, strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })...)
		case "h":
			u.human, u.si = true, false
		case "si":
			u.human, u.si = true, true
		case "inodes":
			u.inodes = true
		case "k":
			u.block, u.unit, u.human = 1024, "", false
		case "m":
			u.block, u.unit, u.human = 1<<20, "", false
		case "l":
			u.countLinks = true
		case "s":
			summary = true
		case "S":
			u.separate = true
		case "t":
			n, ok := blockSize(strings.TrimPrefix(g.Value, "-"))
			if !ok {
				c.Errorf("invalid --threshold argument %s", quote(g.Value))
				return 1
			}
			if u.least = n; g.Value[0] == '-' {
				u.least = -n
			}
		case "time":
			u.time = 'm'
			switch g.Value {
			case "atime", "access", "use":
				u.time = 'a'
			case "ctime", "status":
				u.time = 'c'
			}
		case "time-style":
			u.style = g.Value
		case "x": // all is one
		}
	}
	if summary {
		switch {
		case u.all:
			return usage(c, "cannot both summarize and show all entries")
		case u.depth > 0:
			c.Errorf("warning: summarizing conflicts with --max-depth=%d", u.depth)
			return usage(c, "cannot both summarize and show entries")
		}
		u.depth = 0
	}
	if len(operands) == 0 {
		operands = []string{"."}
	}
	u.out = c.Buffered()
	defer u.out.Flush()
	var all sum
	for _, name := range operands {
		s, ok := u.walk(name, 0, nil)
		if ok {
			all.add(s)
		}
	}
	if total {
		u.print(all, "total")
	}
	return u.code
}

func (u *usageOf) fail(format string, args ...any) {
	u.out.Flush()
	u.c.Errorf(format, args...)
	u.code = 1
}

// walk counts a file and what is below it. ok is false for what does not count.
func (u *usageOf) walk(name string, depth int, above []*info) (s sum, ok bool) {
	cmd.Check(u.ctx)
	for _, p := range u.exclude {
		if glob.Match(p, name, 0) || glob.Match(p, base(name), 0) {
			return s, false
		}
	}
	look := linkStatus
	if u.follow == 'L' || u.follow == 'H' && depth == 0 {
		look = status
	}
	in, err := look(u.c, name)
	if err != nil {
		u.fail("cannot access %s: %s", quote(name), cmd.Reason(err))
		return s, false
	}
	if in.ino != 0 && (!u.countLinks || in.IsDir()) && (in.nlink > 1 || in.IsDir() || depth == 0 || u.follow != 'P') {
		id := inode{in.dev, in.ino}
		if u.seen[id] {
			return s, false
		}
		u.seen[id] = true
	}
	s = sum{u.size(in), timeOf(in, u.time)}
	if in.IsDir() {
		if slices.ContainsFunc(above, func(a *info) bool { return sameFile(a, in) }) {
			return s, false
		}
		list, err := names(u.ctx, u.c, name)
		if err != nil {
			u.fail("cannot read directory %s: %s", quote(name), cmd.Reason(err))
		}
		above = append(slices.Clip(above), in)
		shown := s
		for _, entry := range list {
			below := join(name, entry)
			t, ok := u.walk(below, depth+1, above)
			if !ok {
				continue
			}
			s.add(t)
			if link, err := linkStatus(u.c, below); err == nil && !link.IsDir() {
				shown.add(t)
			}
		}
		if u.separate {
			if u.depth < 0 || depth <= u.depth {
				u.print(shown, name)
			}
			return s, true
		}
	}
	if (in.IsDir() || u.all || depth == 0) && (u.depth < 0 || depth <= u.depth) {
		u.print(s, name)
	}
	return s, true
}

func (u *usageOf) size(in *info) int64 {
	switch {
	case u.inodes:
		return 1
	case u.apparent:
		if in.Mode().IsRegular() || in.IsDir() || in.link() {
			return in.Size()
		}
		return 0
	}
	return in.blocks() * 512
}

func (u *usageOf) print(s sum, name string) {
	if u.least > 0 && s.size < u.least || u.least < 0 && s.size > -u.least {
		return
	}
	switch {
	case u.inodes && !u.human:
		u.out.WriteString(strconv.FormatInt(s.size, 10))
	case u.human:
		u.out.WriteString(human(s.size, u.si))
	default:
		u.out.WriteString(strconv.FormatInt((s.size+u.block-1)/u.block, 10) + u.unit)
	}
	if u.time != 0 {
		format := "%Y-%m-%d %H:%M"
		switch {
		case u.style == "full-iso":
			format = "%Y-%m-%d %H:%M:%S.%N %z"
		case u.style == "iso":
			format = "%Y-%m-%d"
		case strings.HasPrefix(u.style, "+"):
			format = u.style[1:]
		}
		u.out.WriteString("\t" + sys.Strftime(format, s.last.In(sys.Local(u.c))))
	}
	u.out.WriteString("\t" + name + u.end)
}

func df(_ context.Context, c *cmd.Call) int {
	given, operands, code, ok := options(c, "a,all B,block-size= h,human-readable H,si i,inodes k l,local m ,no-sync ,output? P,portability ,sync t,type= "+
		",total T,print-type v x,exclude-type=", "[OPTION]... [FILE]...", 1)
	if !ok {
		return code
	}
	var person, si, inodes, posix, types, total bool
	block, head := int64(1024), "1K-blocks"
	var only, not []string
	output := ""
	for _, g := range given {
		switch g.Key {
		case "B":
			n, ok := blockSize(g.Value)
			if !ok {
				c.Errorf("invalid -B argument %s", quote(g.Value))
				return 1
			}
			block, head, person = n, strings.TrimPrefix(g.Value, "1")+"-blocks", false
			if !digit(g.Value[0]) || g.Value[0] == '1' && len(g.Value) > 1 && !digit(g.Value[1]) {
				head = "1" + head
			} else if n == 1 {
				head = "1B-blocks"
			}
		case "h":
			person, si = true, false
		case "H":
			person, si = true, true
		case "k":
			block, head, person = 1024, "1K-blocks", false
		case "m":
			block, head, person = 1<<20, "1M-blocks", false
		case "i":
			inodes = true
		case "P":
			posix = true
		case "T":
			types = true
		case "t":
			only = append(only, g.Value)
		case "x":
			not = append(not, g.Value)
		case "total":
			total = true
		case "output":
			if output = g.Value; !g.Has {
				output = "source,fstype,itotal,iused,iavail,ipcent,size,used,avail,pcent,file,target"
			}
		case "a", "l", "no-sync", "sync", "v": // there is one file system, and it is local
		}
	}
	columns := strings.Split("source,size,used,avail,pcent,target", ",")
	switch {
	case output != "":
		columns = strings.Split(output, ",")
	case inodes:
		columns = strings.Split("source,itotal,iused,iavail,ipcent,target", ",")
	}
	if types {
		columns = slices.Insert(columns, 1, "fstype")
	}
	if posix && !person {
		head = strconv.FormatInt(block, 10) + "-blocks"
	}
	heads := map[string]string{"source": "Filesystem", "fstype": "Type", "size": head, "used": "Used", "avail": "Available", "pcent": "Use%", "itotal": "Inodes",
		"iused": "IUsed", "iavail": "IFree", "ipcent": "IUse%", "file": "File", "target": "Mounted on"}
	if person {
		heads["size"], heads["avail"] = "Size", "Avail"
	}
	if posix {
		heads["pcent"] = "Capacity"
	}
	if output != "" {
		heads["avail"] = "Avail"
	}
	least := map[string]int{"source": 14, "fstype": 4, "size": 5, "used": 5, "avail": 5, "pcent": 4, "itotal": 5, "iused": 5, "iavail": 5, "ipcent": 4}
	for _, col := range columns {
		if _, ok := heads[col]; !ok {
			return usage(c, "option --output: field %s unknown", cmd.Quote(col))
		}
	}
	size := func(n uint64) string {
		if person {
			return human(int64(n), si)
		}
		return strconv.FormatUint((n+uint64(block)-1)/uint64(block), 10)
	}
	row := func(name, source, target string) []string {
		s := diskSpace(c.Path(name))
		used := s.total - s.free
		cells := map[string]string{"source": source, "fstype": fsType, "size": size(s.total), "used": size(used), "avail": size(s.available),
			"pcent": strconv.FormatUint((used*100+used+s.available-1)/(used+s.available), 10) + "%", "itotal": "0", "iused": "0", "iavail": "0", "ipcent": "-",
			"file": name, "target": target}
		var list []string
		for _, col := range columns {
			list = append(list, cells[col])
		}
		return list
	}
	var rows [][]string
	if len(only) > 0 && !slices.Contains(only, fsType) || slices.Contains(not, fsType) {
		c.Errorf("no file systems processed")
		return 1
	}
	if len(operands) == 0 {
		rows = append(rows, row("-", fsType, "/"))
	}
	for _, name := range operands {
		if _, err := status(c, name); err != nil {
			code = c.Fail(name, err)
			continue
		}
		rows = append(rows, row(name, fsType, "/"))
	}
	if len(rows) == 0 {
		return code
	}
	if total {
		rows = append(rows, row("-", "total", "-"))
	}
	first := make([]string, len(columns))
	for i, col := range columns {
		first[i] = heads[col]
	}
	rows = append([][]string{first}, rows...)
	out := c.Buffered()
	defer out.Flush()
	for _, r := range rows {
		for i, cell := range r {
			w := least[columns[i]]
			for _, other := range rows {
				w = max(w, width(other[i]))
			}
			if i > 0 {
				out.WriteByte(' ')
			}
			gap := strings.Repeat(" ", w-width(cell))
			left := columns[i] == "source" || columns[i] == "fstype" || columns[i] == "target" || columns[i] == "file"
			switch {
			case !left:
				out.WriteString(gap + cell)
			case i == len(r)-1:
				out.WriteString(cell)
			default:
				out.WriteString(cell + gap)
			}
		}
		out.WriteByte('\n')
	}
	return code
}

// readAll reads a file whole, for lists of names.
func readAll(ctx context.Context, c *cmd.Call, name string) (string, error) {
	f, err := c.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var b strings.Builder
	_, err = copyData(ctx, &b, f)
	return b.String(), err
}
