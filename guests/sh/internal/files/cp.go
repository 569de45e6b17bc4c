package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// copier copies files as cp does.
type copier struct {
	ctx context.Context
	c   *cmd.Call

	recursive, keepTimes, keepLinks       bool
	force, removeFirst                    bool
	noClobber, update, interactive        bool
	verbose, attributes                   bool
	hard, symbolic, parents, strip, moves bool
	follow                                byte // L: always, H: operands, P: never

	backups backups
	made    []made           // what this call wrote, so that it does not write it twice
	links   map[inode]string // the first copy of a file with several names
}

type made struct {
	name string
	in   *info
}

type inode struct{ dev, ino uint64 }

const cpOpts = "a,archive ,attributes-only ,backup? b d f,force H i,interactive L,dereference l,link n,no-clobber " +
	"P,no-dereference p ,preserve? ,no-preserve= ,parents R,recursive r ,reflink? ,remove-destination " +
	",sparse= ,strip-trailing-slashes s,symbolic-link S,suffix= t,target-directory= T,no-target-directory " +
	"u,update v,verbose x,one-file-system c"

func cp(ctx context.Context, c *cmd.Call) int {
	given, operands, code, ok := options(c, cpOpts, "[OPTION]... [-T] SOURCE DEST\n  or:  cp [OPTION]... SOURCE... DIRECTORY\n  or:  cp [OPTION]... -t DIRECTORY SOURCE...", 1)
	if !ok {
		return code
	}
	k := &copier{ctx: ctx, c: c, links: map[inode]string{}}
	target, noTarget := "", false
	for _, g := range given {
		switch g.Key {
		case "a":
			k.recursive, k.keepTimes, k.keepLinks, k.follow = true, true, true, 'P'
		case "d":
			k.keepLinks, k.follow = true, 'P'
		case "f":
			k.force = true
		case "H", "L", "P":
			k.follow = g.Key[0]
		case "i":
			k.interactive, k.noClobber = true, false
		case "n":
			k.noClobber, k.interactive = true, false
		case "l":
			k.hard = true
		case "s":
			k.symbolic = true
		case "p":
			k.keepTimes = true
		case "preserve":
			if !g.Has {
				k.keepTimes = true
			}
			for _, what := range strings.Split(g.Value, ",") {
				switch what {
				case "":
				case "timestamps":
					k.keepTimes = true
				case "links":
					k.keepLinks = true
				case "all":
					k.keepTimes, k.keepLinks = true, true
				case "mode", "ownership", "context", "xattr": // there is none to keep
				default:
					return c.BadUsage(cmd.BadWord(what, "--preserve", "mode", "timestamps", "ownership", "links", "context", "xattr", "all"), 1)
				}
			}
		case "no-preserve":
			for _, what := range strings.Split(g.Value, ",") {
				switch what {
				case "timestamps":
					k.keepTimes = false
				case "links":
					k.keepLinks = false
				case "all":
					k.keepTimes, k.keepLinks = false, false
				}
			}
		case "parents":
			k.parents = true
		case "R", "r":
			k.recursive = true
		case "remove-destination":
			k.removeFirst = true
		case "strip-trailing-slashes":
			k.strip = true
		case "t":
			target = g.Value
		case "T":
			noTarget = true
		case "u":
			k.update = true
		case "v":
			k.verbose = true
		case "attributes-only":
			k.attributes = true
		case "b", "backup", "S":
			if !k.backups.option(c, g) {
				return 1
			}
		case "x", "reflink", "sparse", "c": // they change nothing of the result here
		}
	}
	if k.hard && k.symbolic {
		c.Errorf("cannot make both hard and symbolic links")
		return 1
	}
	if k.follow == 0 {
		k.follow = 'L'
		if k.recursive {
			k.follow = 'P'
		}
		if k.hard {
			k.follow = 'P'
		}
	}
	pairs, code := targets(c, operands, target, noTarget, k.parents)
	for _, p := range pairs {
		if k.strip {
			p.from = stripSlashes(p.from)
		}
		if k.parents && !k.makeParents(p.from, p.dir) {
			code = 1
			continue
		}
		if !k.copy(p.from, p.to, true) {
			code = 1
		}
	}
	return code
}

func stripSlashes(name string) string {
	if t := strings.TrimRight(name, "/"); t != "" {
		return t
	}
	return name
}

type pair struct{ from, to, dir string }

// targets says what goes where, for cp, mv, ln and install.
func targets(c *cmd.Call, operands []string, target string, noTarget, parents bool) ([]pair, int) {
	switch {
	case target != "" && noTarget:
		c.Errorf("cannot combine --target-directory (-t) and --no-target-directory (-T)")
		return nil, 1
	case len(operands) == 0:
		return nil, usage(c, "missing file operand")
	case target == "" && len(operands) == 1:
		return nil, usage(c, "missing destination file operand after %s", quote(operands[0]))
	case noTarget && len(operands) > 2:
		return nil, usage(c, "extra operand %s", quote(operands[2]))
	case noTarget:
		return []pair{{operands[0], operands[1], ""}}, 0
	case target != "":
		in, err := status(c, target)
		if err == nil && !in.IsDir() {
			err = syscall.ENOTDIR
		}
		if err != nil {
			c.Errorf("target directory %s: %s", quote(target), cmd.Reason(err))
			return nil, 1
		}
	default:
		last := operands[len(operands)-1]
		in, err := status(c, last)
		if err == nil && !in.IsDir() {
			err = syscall.ENOTDIR
		}
		switch {
		case err == nil:
			target, operands = last, operands[:len(operands)-1]
		case parents:
			c.Errorf("with --parents, the destination must be a directory")
			return nil, 1
		case len(operands) > 2:
			c.Errorf("target %s: %s", quote(last), cmd.Reason(err))
			return nil, 1
		default:
			return []pair{{operands[0], last, ""}}, 0
		}
	}
	var pairs []pair
	for _, from := range operands {
		to := base(from)
		if parents {
			to = strings.TrimLeft(stripSlashes(from), "/")
		}
		switch to {
		case "/", ".", "":
			to = target
		case "..":
			if !parents {
				to = target // the contents, as .. as name in the target would be the target's parent
				break
			}
			fallthrough
		default:
			to = join(target, to)
		}
		pairs = append(pairs, pair{from, to, target})
	}
	return pairs, 0
}

// makeParents makes the folders of from below dir.
func (k *copier) makeParents(from, dir string) bool {
	at := strings.TrimLeft(path.Dir(stripSlashes(from)), "/")
	if at == "." || at == "" {
		return true
	}
	have, src := dir, ""
	if strings.HasPrefix(from, "/") {
		src = "/"
	}
	for _, part := range strings.Split(at, "/") {
		if part == "" {
			continue
		}
		have = join(have, part)
		src += part
		if !isDir(k.c, have) {
			if err := os.Mkdir(k.c.Path(have), 0o777&^k.c.Umask); err != nil {
				k.c.Errorf("cannot make directory %s: %s", quote(have), cmd.Reason(err))
				return false
			}
			if k.verbose {
				fmt.Fprintf(k.c.Stdout, "%s -> %s\n", src, have)
			}
		}
		src += "/"
	}
	return true
}

func (k *copier) complain(format string, args ...any) bool {
	k.c.Errorf(format, args...)
	return false
}

func (k *copier) copy(from, to string, operand bool) bool {
	cmd.Check(k.ctx)
	c := k.c
	look := linkStatus
	if k.follow == 'L' || operand && k.follow == 'H' {
		look = status
	}
	src, err := look(c, from)
	if err != nil {
		return k.complain("cannot stat %s: %s", quote(from), cmd.Reason(err))
	}
	if src.IsDir() && !k.recursive {
		return k.complain("-r not specified; omitting directory %s", quote(from))
	}
	// The destination itself, when it is replaced and not written to.
	look = status
	if src.link() || k.hard || k.symbolic || k.moves {
		look = linkStatus
	}
	dst, err := look(c, to)
	exists := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return k.complain("cannot stat %s: %s", quote(to), cmd.Reason(err))
	}
	if exists {
		if !src.IsDir() && !src.link() {
			for _, m := range k.made {
				if m.name == path.Clean(to) && operand && sameFile(m.in, dst) {
					return k.complain("will not overwrite just-created %s with %s", quote(to), quote(from))
				}
			}
		}
		switch same := sameFile(src, dst); {
		case same && k.hard:
			return true
		case same && !src.IsDir():
			if k.removeFirst && !samePath(c, from, to) || src.link() && !samePath(c, from, to) || k.symbolic && k.force && !samePath(c, from, to) {
				break
			}
			return k.complain("%s and %s are the same file", quote(from), quote(to))
		case same && samePath(c, from, to):
			return k.complain("cannot copy a directory, %s, into itself, %s", quote(stripSlashes(from)), quote(to))
		}
		switch {
		case src.IsDir() && !dst.IsDir():
			return k.complain("cannot overwrite non-directory %s with directory %s", quote(to), quote(from))
		case !src.IsDir() && dst.IsDir():
			return k.complain("cannot overwrite directory %s with non-directory", quote(to))
		}
		if !src.IsDir() {
			if k.noClobber || k.update && !src.mtime.After(dst.mtime) {
				return true
			}
			if k.interactive && !confirm(c, "overwrite %s? ", quote(to)) {
				return true
			}
		}
	}
	if src.IsDir() {
		return k.directory(from, to, src, exists, operand)
	}
	if !exists && !src.link() && !k.hard && !k.symbolic && !k.moves {
		if link, err := linkStatus(c, to); err == nil && link.link() && !k.force && !k.removeFirst {
			return k.complain("not writing through dangling symlink %s", quote(to))
		} else if err == nil && link.link() {
			if err := os.Remove(c.Path(to)); err != nil {
				return k.complain("cannot remove %s: %s", quote(to), cmd.Reason(err))
			}
		}
	}
	saved := ""
	if exists {
		if saved, err = k.backups.save(c, to); err != nil {
			return k.complain("cannot backup %s: %s", quote(to), cmd.Reason(err))
		}
		exists = saved == ""
	}
	if exists && (k.removeFirst || src.link() || (k.hard || k.symbolic) && (k.force || k.moves) || k.moves) {
		if err := os.Remove(c.Path(to)); err != nil {
			return k.complain("cannot remove %s: %s", quote(to), cmd.Reason(err))
		}
		if k.verbose && !k.moves && !src.link() {
			fmt.Fprintf(c.Stdout, "removed %s\n", quote(to))
		}
		exists = false
	}
	if k.verbose {
		what := ""
		if k.moves {
			what = "copied "
		}
		fmt.Fprintf(c.Stdout, "%s%s -> %s%s\n", what, quote(from), quote(to), backupNote(saved))
	}
	if k.keepLinks && src.nlink > 1 && src.ino != 0 {
		id := inode{src.dev, src.ino}
		if first, ok := k.links[id]; ok {
			if exists {
				_ = os.Remove(c.Path(to)) // linking complains
			}
			if os.Link(c.Path(first), c.Path(to)) == nil {
				return true
			}
		} else {
			k.links[id] = to
		}
	}
	ok := false
	switch {
	case k.hard:
		if err := os.Link(c.Path(from), c.Path(to)); err != nil {
			return k.complain("cannot create hard link %s to %s: %s", quote(to), quote(from), cmd.Reason(err))
		}
		ok = true
	case k.symbolic:
		if !path.IsAbs(from) && strings.Contains(stripSlashes(to), "/") && parent(to) != "." {
			return k.complain("%s: can make relative symbolic links only in current directory", quote(to))
		}
		if err := os.Symlink(from, c.Path(to)); err != nil {
			return k.complain("cannot create symbolic link %s to %s: %s", quote(to), quote(from), cmd.Reason(err))
		}
		ok = true
	case src.link():
		ok = k.symlink(from, to, src)
	default:
		ok = k.file(from, to, src, exists)
	}
	if in, err := linkStatus(c, to); ok && operand && err == nil {
		k.made = append(k.made, made{path.Clean(to), in})
	}
	return ok
}

// samePath tells whether two names are one entry of one folder.
func samePath(c *cmd.Call, a, b string) bool {
	if base(a) != base(b) {
		return false
	}
	x, err := status(c, join(parent(a), "."))
	if err != nil {
		return false
	}
	y, err := status(c, join(parent(b), "."))
	return err == nil && sameFile(x, y)
}

func (k *copier) symlink(from, to string, src *info) bool {
	target, err := os.Readlink(k.c.Path(from))
	if err != nil {
		return k.complain("cannot read symbolic link %s: %s", quote(from), cmd.Reason(err))
	}
	if err := os.Symlink(target, k.c.Path(to)); err != nil {
		return k.complain("cannot create symbolic link %s: %s", quote(to), cmd.Reason(err))
	}
	if k.keepTimes {
		_ = setTimes(k.c.Path(to), true, src.atime, src.mtime) // not everywhere possible
	}
	return true
}

func (k *copier) file(from, to string, src *info, exists bool) bool {
	c := k.c
	in, err := c.OpenFile(from, os.O_RDONLY, 0)
	if err != nil {
		return k.complain("cannot open %s for reading: %s", quote(from), cmd.Reason(err))
	}
	defer in.Close()
	mode := src.Mode().Perm() &^ c.Umask
	if !src.Mode().IsRegular() {
		mode = 0o666 &^ c.Umask
	}
	flag := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if exists {
		flag = os.O_WRONLY | os.O_TRUNC
		if k.attributes {
			flag = os.O_WRONLY
		}
	}
	if strings.HasSuffix(to, "/") && !exists {
		return k.complain("cannot create regular file %s: %s", quote(to), cmd.Reason(syscall.ENOTDIR))
	}
	out, err := c.OpenFile(to, flag, mode)
	if err != nil && exists && k.force && os.Remove(c.Path(to)) == nil {
		if k.verbose {
			fmt.Fprintf(c.Stdout, "removed %s\n", quote(to))
		}
		out, err = c.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	}
	if err != nil {
		return k.complain("cannot create regular file %s: %s", quote(to), cmd.Reason(err))
	}
	if !k.attributes {
		if _, err = copyData(k.ctx, out, in); err != nil {
			out.Close()
			return k.complain("error copying %s to %s: %s", quote(from), quote(to), cmd.Reason(err))
		}
	}
	if err := out.Close(); err != nil {
		return k.complain("error writing %s: %s", quote(to), cmd.Reason(err))
	}
	return k.times(to, src)
}

func (k *copier) times(to string, src *info) bool {
	if !k.keepTimes || strings.HasPrefix(k.c.Path(to), "/dev/") {
		return true
	}
	if err := setTimes(k.c.Path(to), false, src.atime, src.mtime); err != nil {
		return k.complain("preserving times for %s: %s", quote(to), cmd.Reason(err))
	}
	return true
}

func (k *copier) directory(from, to string, src *info, exists, operand bool) bool {
	c := k.c
	if !exists {
		if err := os.Mkdir(strings.TrimRight(c.Path(to), "/"), src.Mode().Perm()&^c.Umask|0o700); err != nil {
			return k.complain("cannot create directory %s: %s", quote(to), cmd.Reason(err))
		}
		if k.verbose {
			what := ""
			if k.moves {
				fmt.Fprintf(c.Stdout, "created directory %s\n", quote(to))
			} else {
				fmt.Fprintf(c.Stdout, "%s%s -> %s\n", what, quote(from), quote(to))
			}
		}
	}
	if operand {
		in, err := status(c, to)
		if err != nil {
			return k.complain("cannot stat %s: %s", quote(to), cmd.Reason(err))
		}
		k.made = append(k.made, made{path.Clean(to), in})
	}
	list, err := names(k.ctx, c, from)
	if err != nil {
		return k.complain("cannot access %s: %s", quote(from), cmd.Reason(err))
	}
	ok := true
	for _, name := range list {
		// A folder that is copied into itself must not find its own copy.
		if in, err := linkStatus(c, join(from, name)); err == nil && in.IsDir() && k.own(in) {
			k.complain("cannot copy a directory, %s, into itself, %s", quote(stripSlashes(from)), quote(to))
			ok = false
			continue
		}
		if !k.copy(join(from, name), join(to, name), false) {
			ok = false
		}
	}
	return k.times(to, src) && ok
}

// own tells whether in is a folder that this call made as its destination.
func (k *copier) own(in *info) bool {
	for _, m := range k.made {
		if m.in.IsDir() && sameFile(m.in, in) {
			return true
		}
	}
	return false
}
