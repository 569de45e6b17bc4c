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

func ln(ctx context.Context, c *cmd.Call) int {
	given, operands, code, ok := options(c, "s,symbolic f,force n,no-dereference h r,relative v,verbose T,no-target-directory t,target-directory= "+
		"i,interactive b ,backup? S,suffix= L,logical P,physical d,directory F", "[OPTION]... [-T] TARGET LINK_NAME\n  or:  ln [OPTION]... TARGET\n  or:  ln [OPTION]... TARGET... DIRECTORY\n  or:  ln [OPTION]... -t DIRECTORY TARGET...", 1)
	if !ok {
		return code
	}
	var symbolic, force, keep, relative, verbose, noTarget, ask, logical bool
	target := ""
	var saves backups
	for _, g := range given {
		switch g.Key {
		case "s":
			symbolic = true
		case "f":
			force, ask = true, false
		case "i":
			ask, force = true, false
		case "n", "h":
			keep = true
		case "r":
			relative = true
		case "v":
			verbose = true
		case "T":
			noTarget = true
		case "t":
			target = g.Value
		case "L":
			logical = true
		case "P":
			logical = false
		case "d", "F":
			c.Errorf("hard links to directories are not allowed")
			return 1
		default:
			if !saves.option(c, g) {
				return 1
			}
		}
	}
	if relative && !symbolic {
		c.Errorf("cannot do --relative without --symbolic")
		return 1
	}
	var pairs []pair
	switch {
	case len(operands) == 0:
		return usage(c, "missing file operand")
	case len(operands) == 1 && target == "" && !noTarget:
		pairs = []pair{{operands[0], "./" + base(operands[0]), "."}}
		if base(operands[0]) == "/" {
			pairs[0].to = "."
		}
	case len(operands) == 2 && keep && target == "" && !noTarget:
		// A link to a folder counts as the link.
		if in, err := linkStatus(c, operands[1]); err == nil && in.link() {
			noTarget = true
		}
		fallthrough
	default:
		pairs, code = targets(c, operands, target, noTarget, false)
	}
	for _, p := range pairs {
		cmd.Check(ctx)
		to := p.to
		dst, err := linkStatus(c, to)
		if !symbolic {
			src, err := linkStatus(c, p.from)
			if err == nil && logical {
				src, err = status(c, p.from)
			}
			if err != nil {
				c.Errorf("failed to access %s: %s", quote(p.from), cmd.Reason(err))
				code = 1
				continue
			}
			if src.IsDir() {
				c.Errorf("%s: hard link not allowed for directory", p.from)
				code = 1
				continue
			}
			if dst != nil && (force || ask) && sameFile(src, dst) {
				if samePath(c, p.from, to) {
					c.Errorf("%s and %s are the same file", quote(p.from), quote(to))
					code = 1
				}
				continue
			}
		}
		from := p.from
		if relative {
			from = relativeTarget(c, p.from, to)
		}
		saved := ""
		if err == nil && saves.how != 0 && !dst.IsDir() {
			if saved, err = saves.save(c, to); err != nil {
				c.Errorf("cannot backup %s: %s", quote(to), cmd.Reason(err))
				code = 1
				continue
			}
		} else if err == nil && (force || ask) {
			if dst.IsDir() {
				c.Errorf("%s: cannot overwrite directory", to)
				code = 1
				continue
			}
			if ask && !confirm(c, "replace %s? ", quote(to)) {
				continue
			}
			if symbolic && !dst.link() && samePath(c, p.from, to) {
				c.Errorf("%s and %s are the same file", quote(p.from), quote(to))
				code = 1
				continue
			}
			if err := os.Remove(c.Path(to)); err != nil {
				c.Errorf("cannot remove %s: %s", quote(to), cmd.Reason(err))
				code = 1
				continue
			}
		}
		what, arrow := "symbolic link", "->"
		switch {
		case to == "" || from == "":
			err = syscall.ENOENT
		case symbolic:
			err = os.Symlink(from, c.Path(to))
		default:
			what, arrow = "hard link", "=>"
			name := c.Path(from)
			if logical {
				if name, err = canonical(c, from, mustExist); err != nil {
					break
				}
			}
			err = os.Link(name, c.Path(to))
		}
		if err != nil {
			code = 1
			if errors.Is(err, fs.ErrExist) || !symbolic && errors.Is(err, fs.ErrNotExist) {
				c.Errorf("failed to create %s %s: %s", what, quote(to), cmd.Reason(err))
			} else if symbolic {
				c.Errorf("failed to create symbolic link %s: %s", quote(to), cmd.Reason(err))
			} else {
				c.Errorf("failed to create hard link %s => %s: %s", quote(to), quote(from), cmd.Reason(err))
			}
			continue
		}
		if verbose {
			if saved != "" {
				fmt.Fprintf(c.Stdout, "%s ~ ", quote(saved))
			}
			fmt.Fprintf(c.Stdout, "%s %s %s\n", quote(to), arrow, quote(from))
		}
	}
	return code
}

// relativeTarget is what a link at to holds to lead to from.
func relativeTarget(c *cmd.Call, from, to string) string {
	target, err := canonical(c, from, mayMiss)
	if err != nil {
		return from
	}
	dir, err := canonical(c, parent(to), mayMiss)
	if err != nil {
		return from
	}
	return relativePath(dir, target)
}

// relativePath leads from the folder dir to name, both absolute.
func relativePath(dir, name string) string {
	if dir == name {
		return "."
	}
	a, b := parts(dir), parts(name)
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return strings.Join(append(strings.Fields(strings.Repeat(".. ", len(a)-n)), b[n:]...), "/")
}

func parts(name string) []string {
	name = strings.Trim(path.Clean(name), "/")
	if name == "" {
		return nil
	}
	return strings.Split(name, "/")
}

func linkCommand(_ context.Context, c *cmd.Call) int {
	_, operands, code, ok := options(c, "", "FILE1 FILE2", 1)
	if !ok {
		return code
	}
	switch len(operands) {
	case 0:
		return usage(c, "missing operand")
	case 1:
		return usage(c, "missing operand after %s", cmd.Quote(operands[0]))
	case 2:
	default:
		return usage(c, "extra operand %s", cmd.Quote(operands[2]))
	}
	var err error = syscall.ENOENT
	if operands[0] != "" && operands[1] != "" {
		err = os.Link(c.Path(operands[0]), c.Path(operands[1]))
	}
	if err != nil {
		c.Errorf("cannot create link %s to %s: %s", quote(operands[1]), quote(operands[0]), cmd.Reason(err))
		return 1
	}
	return 0
}

// missing says which parts of a path may be missing when it is made canonical.
type missing uint8

const (
	mustExist missing = iota // -e
	lastMay                  // -f: all but the last must exist
	mayMiss                  // -m
)

// canonical makes name absolute, without links, "." and "..".
func canonical(c *cmd.Call, name string, how missing) (string, error) {
	if name == "" {
		return "", syscall.ENOENT
	}
	rest := strings.Split(c.Path(name), "/")
	done := "/"
	links := 0
	folder := strings.HasSuffix(name, "/") // the last must be one
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			done = parent(done)
			continue
		}
		last := strings.Trim(strings.Join(rest, ""), "") == ""
		next := join(done, part)
		fi, err := os.Lstat(next)
		switch {
		case err != nil:
			if how == mustExist || how == lastMay && !(last && errors.Is(err, fs.ErrNotExist)) {
				return "", err
			}
			done = next
		case fi.Mode()&fs.ModeSymlink != 0:
			if links++; links > 40 {
				if how == mayMiss {
					done = next
					continue
				}
				return "", syscall.ELOOP
			}
			target, err := os.Readlink(next)
			if err != nil {
				return "", err
			}
			if path.IsAbs(target) {
				done = "/"
			}
			rest = append(strings.Split(target, "/"), rest...)
		default:
			if !fi.IsDir() && (!last || folder) && how != mayMiss {
				return "", syscall.ENOTDIR
			}
			done = next
		}
	}
	return done, nil
}

func readlink(ctx context.Context, c *cmd.Call) int {
	given, operands, code, ok := options(c, "f,canonicalize e,canonicalize-existing m,canonicalize-missing n,no-newline q,quiet s,silent v,verbose "+
		"z,zero", "[OPTION]... FILE...", 1)
	if !ok {
		return code
	}
	how, resolve, verbose, end := mustExist, false, false, "\n"
	for _, g := range given {
		switch g.Key {
		case "f":
			how, resolve = lastMay, true
		case "e":
			how, resolve = mustExist, true
		case "m":
			how, resolve = mayMiss, true
		case "n":
			end = ""
		case "q", "s":
			verbose = false
		case "v":
			verbose = true
		case "z":
			end = "\x00"
		}
	}
	if len(operands) == 0 {
		return usage(c, "missing operand")
	}
	if end == "" && len(operands) > 1 {
		c.Errorf("ignoring --no-newline with multiple arguments")
		end = "\n"
	}
	out := c.Buffered()
	defer out.Flush()
	code = 0
	for _, name := range operands {
		cmd.Check(ctx)
		var to string
		var err error
		if resolve {
			to, err = canonical(c, name, how)
		} else if name == "" {
			err = syscall.ENOENT
		} else if to, err = os.Readlink(c.Path(name)); strings.HasSuffix(name, "/") && err == nil {
			err = syscall.EINVAL
		}
		if err != nil {
			if verbose {
				c.Fail(name, err)
			}
			code = 1
			continue
		}
		out.WriteString(to + end)
	}
	return code
}

func realpath(ctx context.Context, c *cmd.Call) int {
	given, operands, code, ok := options(c, "e,canonicalize-existing m,canonicalize-missing L,logical P,physical q,quiet ,relative-to= "+
		",relative-base= s,strip ,no-symlinks z,zero", "[OPTION]... FILE...", 1)
	if !ok {
		return code
	}
	how, end := lastMay, "\n"
	var strip, logical, quiet, hasTo, hasBase bool
	var to, under string
	for _, g := range given {
		switch g.Key {
		case "e":
			how = mustExist
		case "m":
			how = mayMiss
		case "L":
			logical, strip = true, false
		case "P":
			logical, strip = false, false
		case "q":
			quiet = true
		case "relative-to":
			to, hasTo = g.Value, true
		case "relative-base":
			under, hasBase = g.Value, true
		case "s", "no-symlinks":
			strip, logical = true, false
		case "z":
			end = "\x00"
		}
	}
	if len(operands) == 0 {
		return usage(c, "missing operand")
	}
	resolve := func(name string) (string, error) {
		if strip || logical {
			if name == "" {
				return "", syscall.ENOENT
			}
			clean := path.Clean(c.Path(name))
			if how != mayMiss {
				need := clean
				if how == lastMay {
					need = parent(clean)
				}
				in, err := status(c, need)
				if err == nil && how == lastMay && !in.IsDir() {
					err = syscall.ENOTDIR
				}
				if err != nil {
					return "", err
				}
			}
			if strip {
				return clean, nil
			}
			name = clean
		}
		return canonical(c, name, how)
	}
	for _, p := range []*string{&to, &under} {
		if p == &to && !hasTo || p == &under && !hasBase {
			continue
		}
		full, err := resolve(*p)
		if err == nil && how == mustExist && !isDir(c, full) {
			err = syscall.ENOTDIR
		}
		if err != nil {
			return c.Fail(*p, err)
		}
		*p = full
	}
	if hasBase && !hasTo {
		to, hasTo = under, true
	} else if hasBase && !within(under, to) {
		hasTo = false // all stay absolute
	}
	out := c.Buffered()
	defer out.Flush()
	code = 0
	for _, name := range operands {
		cmd.Check(ctx)
		full, err := resolve(name)
		if err != nil {
			if !quiet {
				c.Fail(name, err)
			}
			code = 1
			continue
		}
		if hasTo && (!hasBase || within(under, full)) {
			full = relativePath(to, full)
		}
		out.WriteString(full + end)
	}
	return code
}

// within tells whether the absolute path name is dir or below it.
func within(dir, name string) bool {
	return dir == name || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}
