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

func mv(ctx context.Context, c *cmd.Call) int {
	given, operands, code, ok := options(c, "f,force i,interactive n,no-clobber t,target-directory= T,no-target-directory u,update v,verbose b "+
		",backup? S,suffix= ,strip-trailing-slashes", "[OPTION]... [-T] SOURCE DEST\n  or:  mv [OPTION]... SOURCE... DIRECTORY\n  or:  mv [OPTION]... -t DIRECTORY SOURCE...", 1)
	if !ok {
		return code
	}
	m := mover{ctx: ctx, c: c}
	target, noTarget, strip := "", false, false
	for _, g := range given {
		switch g.Key {
		case "f", "i", "n":
			m.ask = g.Key[0]
		case "t":
			target = g.Value
		case "T":
			noTarget = true
		case "u":
			m.update = true
		case "v":
			m.verbose = true
		case "strip-trailing-slashes":
			strip = true
		default:
			if !m.backups.option(c, g) {
				return 1
			}
		}
	}
	// A folder is renamed to a name that ends with a slash as to one that does not.
	pairs, code := targets(c, operands, target, noTarget, false)
	for _, p := range pairs {
		if strip {
			p.from = stripSlashes(p.from)
		}
		if !m.move(p.from, p.to) {
			code = 1
		}
	}
	return code
}

type mover struct {
	ctx             context.Context
	c               *cmd.Call
	ask             byte
	update, verbose bool
	made            []made
	backups         backups
}

func (m *mover) complain(format string, args ...any) bool {
	m.c.Errorf(format, args...)
	return false
}

func (m *mover) move(from, to string) bool {
	cmd.Check(m.ctx)
	c := m.c
	src, err := linkStatus(c, from)
	if err != nil {
		return m.complain("cannot stat %s: %s", quote(from), cmd.Reason(err))
	}
	if b := base(from); b == "." || b == ".." {
		return m.complain("cannot move %s to %s: %s", quote(from), quote(to), cmd.Reason(syscall.EBUSY))
	}
	dst, err := linkStatus(c, to)
	switch {
	case err == nil:
		for _, d := range m.made {
			if d.name == path.Clean(to) && !src.IsDir() {
				return m.complain("will not overwrite just-created %s with %s", quote(to), quote(from))
			}
		}
		if sameFile(src, dst) {
			if src.IsDir() && samePath(c, from, to) || !src.IsDir() {
				if !src.IsDir() && !samePath(c, from, to) && !src.link() {
					// Two names of one file: rename(2) would keep both.
					if err := os.Remove(c.Path(from)); err != nil {
						return m.complain("cannot remove %s: %s", quote(from), cmd.Reason(err))
					}
					return true
				}
				return m.complain("%s and %s are the same file", quote(from), quote(to))
			}
		}
		if src.IsDir() && !dst.IsDir() {
			return m.complain("cannot overwrite non-directory %s with directory %s", quote(to), quote(from))
		}
		if !src.IsDir() && dst.IsDir() {
			return m.complain("cannot overwrite directory %s with non-directory", quote(to))
		}
		if m.ask == 'n' || m.update && !src.IsDir() && !src.mtime.After(dst.mtime) {
			return true
		}
		if m.ask == 'i' && !confirm(c, "overwrite %s? ", quote(to)) {
			return true
		}
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
		return m.complain("failed to access %s: %s", quote(to), cmd.Reason(err))
	}
	exists := err == nil
	if strings.HasSuffix(to, "/") && !exists && !src.IsDir() {
		return m.complain("cannot move %s to %s: %s", quote(from), quote(to), cmd.Reason(syscall.ENOTDIR))
	}
	if src.IsDir() && m.below(src, to) {
		return m.complain("cannot move %s to a subdirectory of itself, %s", quote(from), quote(to))
	}
	saved := ""
	if exists && !src.IsDir() {
		if saved, err = m.backups.save(c, to); err != nil {
			return m.complain("cannot backup %s: %s", quote(to), cmd.Reason(err))
		}
		exists = saved == ""
	}
	if src.dev != 0 && m.elsewhere(src.dev, to) {
		// Not tried: the sandbox would report the refusal.
		if !m.copy(from, to, exists) {
			return false
		}
		m.made = append(m.made, made{path.Clean(to), src})
		return true
	}
	err = os.Rename(strings.TrimRight(c.Path(from), "/"), strings.TrimRight(c.Path(to), "/"))
	switch {
	case err == nil:
		if m.verbose {
			fmt.Fprintf(c.Stdout, "renamed %s -> %s%s\n", quote(from), quote(to), backupNote(saved))
		}
	case errors.Is(err, syscall.EXDEV):
		if !m.copy(from, to, exists) {
			return false
		}
	default:
		return m.complain("cannot move %s to %s: %s", quote(from), quote(to), cmd.Reason(err))
	}
	m.made = append(m.made, made{path.Clean(to), src})
	return true
}

// elsewhere tells whether the folder of to is on another device.
func (m *mover) elsewhere(dev uint64, to string) bool {
	in, err := status(m.c, parent(to))
	return err == nil && in.dev != 0 && in.dev != dev
}

// below tells whether to is in the folder src or deeper.
func (m *mover) below(src *info, to string) bool {
	dir := parent(to)
	for range 4096 {
		in, err := status(m.c, dir)
		if err != nil {
			return false
		}
		if sameFile(src, in) {
			return true
		}
		up, err := status(m.c, join(dir, ".."))
		if err != nil || sameFile(in, up) {
			return false
		}
		dir = join(dir, "..")
	}
	return false
}

// copy moves to another file system: a copy, then the removal.
func (m *mover) copy(from, to string, exists bool) bool {
	c := m.c
	if exists {
		if err := os.Remove(strings.TrimRight(c.Path(to), "/")); err != nil {
			return m.complain("inter-device move failed: %s to %s; unable to remove target: %s", quote(from), quote(to), cmd.Reason(err))
		}
	}
	k := &copier{ctx: m.ctx, c: c, recursive: true, keepTimes: true, keepLinks: true, follow: 'P', moves: true, verbose: m.verbose, links: map[inode]string{}}
	if !k.copy(stripSlashes(from), stripSlashes(to), true) {
		return false
	}
	r := &remover{ctx: m.ctx, c: c, recursive: true, force: true, verbose: m.verbose}
	return r.remove(stripSlashes(from), true)
}
