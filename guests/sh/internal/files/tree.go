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

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/files/glob"
)

// drawing is one run of tree.
type drawing struct {
	ctx context.Context
	c   *cmd.Call
	out *bufio.Writer

	all, onlyDirs, full, follow, classify, sizes, person  bool
	noIndent, noReport, dirsFirst, reverse, byTime, prune bool
	fold                                                  bool
	depth                                                 int
	include, exclude                                      []string
	bar, tee, corner, blank                               string
	folders, files                                        int
	code                                                  int
}

func drawTree(ctx context.Context, c *cmd.Call) int {
	given, operands, code, ok := options(c, "a d f i l F s h r t U C n A S N L= I= P= o= ,noreport ,dirsfirst ,ignore-case ,prune ,charset= ,filelimit= "+
		",gitignore p u g D J X", "[-adfilFshrtUCnA] [-L level] [-I pattern] [-P pattern] [--noreport] [--dirsfirst] [--prune] [directory ...]", 1)
	if !ok {
		return code
	}
	d := &drawing{ctx: ctx, c: c, depth: -1, bar: "│\u00a0\u00a0 ", tee: "├── ", corner: "└── ", blank: "    "}
	for _, g := range given {
		switch g.Key {
		case "a":
			d.all = true
		case "d":
			d.onlyDirs = true
		case "f":
			d.full = true
		case "i":
			d.noIndent = true
		case "l":
			d.follow = true
		case "F":
			d.classify = true
		case "s":
			d.sizes = true
		case "h":
			d.sizes, d.person = true, true
		case "r":
			d.reverse = true
		case "t":
			d.byTime = true
		case "L":
			n, err := strconv.Atoi(g.Value)
			if err != nil || n < 1 {
				c.Errorf("Invalid level, must be greater than 0.")
				return 1
			}
			d.depth = n
		case "I":
			d.exclude = append(d.exclude, strings.Split(g.Value, "|")...)
		case "P":
			d.include = append(d.include, strings.Split(g.Value, "|")...)
		case "noreport":
			d.noReport = true
		case "dirsfirst":
			d.dirsFirst = true
		case "ignore-case":
			d.fold = true
		case "prune":
			d.prune = true
		case "charset":
			if g.Value == "ascii" || g.Value == "ASCII" {
				d.bar, d.tee, d.corner = "|   ", "|-- ", "`-- "
			}
		case "U", "n", "A", "S", "N": // the order is ours, there are no colours, and lines are of Unicode
		default:
			c.Errorf("option '%s' is not supported", g.Key)
			return 1
		}
	}
	if len(operands) == 0 {
		operands = []string{"."}
	}
	d.out = c.Buffered()
	defer d.out.Flush()
	for _, name := range operands {
		in, err := status(c, name)
		if err != nil || !in.IsDir() {
			d.out.WriteString(name + "  [error opening dir]\n")
			d.code = 2
			continue
		}
		d.out.WriteString(d.size(in) + name + "\n")
		d.folders++
		d.walk(name, "", 1, []*info{in})
	}
	if !d.noReport {
		d.out.WriteString("\n" + plural(d.folders, "director", "y", "ies"))
		if !d.onlyDirs {
			d.out.WriteString(", " + plural(d.files, "file", "", "s"))
		}
		d.out.WriteString("\n")
	}
	return d.code
}

func plural(n int, stem, one, many string) string {
	if n == 1 {
		return "1 " + stem + one
	}
	return strconv.Itoa(n) + " " + stem + many
}

func (d *drawing) size(in *info) string {
	switch {
	case d.person:
		return fmt.Sprintf("[%4s]  ", human(in.Size(), false))
	case d.sizes:
		return fmt.Sprintf("[%11d]  ", in.Size())
	}
	return ""
}

func (d *drawing) matches(patterns []string, name string) bool {
	flags := glob.Path
	if d.fold {
		flags |= glob.Fold
	}
	return slices.ContainsFunc(patterns, func(p string) bool { return glob.Match(p, name, flags) })
}

type leaf struct {
	name, path string
	in         *info // behind a link when that is to be followed
	bare       *info
}

// list is what a folder shows.
func (d *drawing) list(dir string, depth int) []leaf {
	all, err := names(d.ctx, d.c, dir)
	if err != nil {
		d.out.Flush()
		d.c.Errorf("%s: %s", dir, cmd.Reason(err))
		d.code = 2
	}
	var list []leaf
	for _, name := range all {
		if !d.all && strings.HasPrefix(name, ".") || d.matches(d.exclude, name) {
			continue
		}
		at := join(dir, name)
		bare, err := linkStatus(d.c, at)
		if err != nil {
			continue
		}
		in := bare
		if bare.link() {
			if behind, err := status(d.c, at); err == nil && (d.follow || d.onlyDirs && behind.IsDir()) {
				in = behind
			}
		}
		if !in.IsDir() && (d.onlyDirs || len(d.include) > 0 && !d.matches(d.include, name)) {
			continue
		}
		if d.prune && in.IsDir() && !(bare.link() && !d.follow) && len(d.list(at, depth+1)) == 0 {
			continue
		}
		list = append(list, leaf{name, at, in, bare})
	}
	slices.SortStableFunc(list, func(a, b leaf) int {
		if d.dirsFirst && a.in.IsDir() != b.in.IsDir() {
			if a.in.IsDir() {
				return -1
			}
			return 1
		}
		n := 0
		if d.byTime {
			n = a.in.mtime.Compare(b.in.mtime)
		}
		if n == 0 {
			n = cmp.Compare(a.name, b.name)
		}
		if d.reverse {
			n = -n
		}
		return n
	})
	return list
}

func (d *drawing) walk(dir, prefix string, depth int, above []*info) {
	cmd.Check(d.ctx)
	if d.depth >= 0 && depth > d.depth {
		return
	}
	list := d.list(dir, depth)
	for i, l := range list {
		branch, next := d.tee, d.bar
		if i == len(list)-1 {
			branch, next = d.corner, d.blank
		}
		if d.noIndent {
			branch, next = "", ""
		}
		name := l.name
		if d.full {
			name = l.path
		}
		line := prefix + branch + d.size(l.bare) + name
		if l.bare.link() {
			to, _ := os.Readlink(d.c.Path(l.path))
			line += " -> " + to
		}
		if d.classify && l.in.IsDir() {
			line += "/"
		}
		folder := l.in.IsDir()
		if !folder {
			if behind, err := status(d.c, l.path); err == nil && behind.IsDir() {
				folder = true
			}
		}
		if folder {
			d.folders++
		} else {
			d.files++
		}
		descend := l.in.IsDir() && (!l.bare.link() || d.follow)
		if descend && slices.ContainsFunc(above, func(a *info) bool { return sameFile(a, l.in) }) {
			line += "  [recursive, not followed]"
			descend = false
		}
		d.out.WriteString(line + "\n")
		if descend {
			d.walk(l.path, prefix+next, depth+1, append(slices.Clip(above), l.in))
		}
	}
}
