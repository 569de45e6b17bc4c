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

func rm(ctx context.Context, c *cmd.Call) int {
	given, operands, code, ok := options(c, "f,force i I ,interactive? r,recursive R d,dir v,verbose ,one-file-system ,no-preserve-root "+
		",preserve-root?", "[OPTION]... [FILE]...", 1)
	if !ok {
		return code
	}
	r := &remover{ctx: ctx, c: c}
	once := false
	for _, g := range given {
		switch g.Key {
		case "f":
			r.force, r.ask, once = true, false, false
		case "i":
			r.ask, r.force, once = true, false, false
		case "I":
			once, r.ask, r.force = true, false, false
		case "interactive":
			switch g.Value {
			case "never", "no", "none":
				r.ask, once = false, false
			case "once":
				r.ask, once = false, true
			case "", "always", "yes":
				r.ask, once = true, false
			default:
				return c.BadUsage(cmd.BadWord(g.Value, "--interactive", "never no none", "once", "always yes"), 1)
			}
		case "r", "R":
			r.recursive = true
		case "d":
			r.dirs = true
		case "v":
			r.verbose = true
		case "no-preserve-root":
			c.Errorf("the root is always preserved")
			return 1
		case "one-file-system", "preserve-root": // "/" is never removed
		}
	}
	if len(operands) == 0 {
		if r.force {
			return 0
		}
		return usage(c, "missing operand")
	}
	if once && (r.recursive || len(operands) > 3) {
		what := fmt.Sprintf("%d argument", len(operands))
		if len(operands) != 1 {
			what += "s"
		}
		if r.recursive {
			what += " recursively"
		}
		if !confirm(c, "remove %s? ", what) {
			return 0
		}
	}
	code = 0
	for _, name := range operands {
		if !r.operand(name) {
			code = 1
		}
	}
	return code
}

// remover removes files. It never follows a link.
type remover struct {
	ctx                                  context.Context
	c                                    *cmd.Call
	recursive, force, dirs, ask, verbose bool
}

func (r *remover) operand(name string) bool {
	if r.recursive || r.dirs {
		if b := base(name); b == "." || b == ".." {
			r.c.Errorf("refusing to remove '.' or '..' directory: skipping %s", quote(name))
			return false
		}
	}
	if r.recursive && name != "" && path.Clean(r.c.Path(name)) == "/" {
		r.c.Errorf("it is dangerous to operate recursively on %s", quote(name))
		r.c.Errorf("use --no-preserve-root to override this failsafe")
		return false
	}
	return r.remove(name, true)
}

func (r *remover) fail(name string, err error) bool {
	r.c.Errorf("cannot remove %s: %s", quote(name), cmd.Reason(err))
	return false
}

func (r *remover) remove(name string, operand bool) bool {
	cmd.Check(r.ctx)
	p := r.c.Path(name)
	if p == "" {
		if r.force {
			return true
		}
		return r.fail(name, syscall.ENOENT)
	}
	slash := strings.HasSuffix(p, "/")
	fi, err := os.Lstat(strings.TrimRight(p, "/"))
	if err == nil && slash && !fi.IsDir() {
		err = syscall.ENOTDIR // also a link to a folder: "rm -r link/" must not empty what it names
	}
	if err != nil {
		if r.force && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) && !slash) {
			return true
		}
		return r.fail(name, err)
	}
	in := newInfo(fi)
	if !in.IsDir() {
		if r.ask && !confirm(r.c, "remove %s %s? ", in.kindName(), quote(name)) {
			return true
		}
		if err := os.Remove(p); err != nil {
			return r.fail(name, err)
		}
		if r.verbose {
			fmt.Fprintf(r.c.Stdout, "removed %s\n", quote(name))
		}
		return true
	}
	if !r.recursive && !r.dirs {
		return r.fail(name, syscall.EISDIR)
	}
	list, err := names(r.ctx, r.c, name)
	if err != nil {
		return r.fail(name, err)
	}
	if !r.recursive && len(list) > 0 {
		return r.fail(name, syscall.ENOTEMPTY)
	}
	if len(list) > 0 {
		if r.ask && !confirm(r.c, "descend into directory %s? ", quote(name)) {
			return true
		}
		ok := true
		for _, entry := range list {
			if !r.remove(join(name, entry), false) {
				ok = false
			}
		}
		if !ok {
			return false
		}
		if r.ask {
			if left, err := names(r.ctx, r.c, name); err == nil && len(left) > 0 {
				return true // some were to be kept
			}
		}
	}
	if r.ask && !confirm(r.c, "remove directory %s? ", quote(name)) {
		return true
	}
	if err := os.Remove(strings.TrimRight(p, "/")); err != nil {
		return r.fail(name, err)
	}
	if r.verbose {
		fmt.Fprintf(r.c.Stdout, "removed directory %s\n", quote(name))
	}
	return true
}

func unlink(_ context.Context, c *cmd.Call) int {
	_, operands, code, ok := options(c, "", "FILE", 1)
	if !ok {
		return code
	}
	switch len(operands) {
	case 0:
		return usage(c, "missing operand")
	case 1:
	default:
		return usage(c, "extra operand %s", cmd.Quote(operands[1]))
	}
	in, err := linkStatus(c, operands[0])
	if err == nil && in.IsDir() {
		err = syscall.EISDIR
	}
	if err == nil {
		err = os.Remove(c.Path(operands[0]))
	}
	if err != nil {
		c.Errorf("cannot unlink %s: %s", quote(operands[0]), cmd.Reason(err))
		return 1
	}
	return 0
}

func rmdir(ctx context.Context, c *cmd.Call) int {
	given, operands, code, ok := options(c, "p,parents v,verbose ,ignore-fail-on-non-empty", "[OPTION]... DIRECTORY...", 1)
	if !ok {
		return code
	}
	var parents, verbose, ignore bool
	for _, g := range given {
		switch g.Key {
		case "p":
			parents = true
		case "v":
			verbose = true
		default:
			ignore = true
		}
	}
	if len(operands) == 0 {
		return usage(c, "missing operand")
	}
	code = 0
	for _, name := range operands {
		for at := name; ; {
			cmd.Check(ctx)
			if verbose {
				fmt.Fprintf(c.Stdout, "rmdir: removing directory, %s\n", quote(at))
			}
			err := removeDir(c, at)
			if err != nil {
				if !ignore || !errors.Is(err, syscall.ENOTEMPTY) {
					what := ""
					if at != name {
						what = "directory "
					}
					c.Errorf("failed to remove %s%s: %s", what, quote(at), cmd.Reason(err))
					code = 1
				}
				break
			}
			if at = parent(at); !parents || at == "." || at == "/" {
				break
			}
		}
	}
	return code
}

func removeDir(c *cmd.Call, name string) error {
	p := c.Path(name)
	if p == "" {
		return syscall.ENOENT
	}
	fi, err := os.Lstat(strings.TrimRight(p, "/"))
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return syscall.ENOTDIR
	}
	if b := base(name); b == "." {
		return syscall.EINVAL
	}
	return os.Remove(strings.TrimRight(p, "/"))
}
