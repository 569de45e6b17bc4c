package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

func install(ctx context.Context, c *cmd.Call) int {
	given, operands, code, ok := options(c, "b ,backup? c C,compare d,directory D g,group= m,mode= o,owner= p,preserve-timestamps s,strip "+
		",strip-program= S,suffix= t,target-directory= T,no-target-directory v,verbose Z,context?",
		"[OPTION]... [-T] SOURCE DEST\n  or:  install [OPTION]... SOURCE... DIRECTORY\n  or:  install [OPTION]... -t DIRECTORY SOURCE...\n  or:  install [OPTION]... -d DIRECTORY...", 1)
	if !ok {
		return code
	}
	var folders, lead, keep, noTarget, verbose, compare bool
	target := ""
	var saves backups
	for _, g := range given {
		switch g.Key {
		case "d":
			folders = true
		case "D":
			lead = true
		case "m":
			if !validMode(g.Value) {
				c.Errorf("invalid mode %s", cmd.Quote(g.Value))
				return 1
			}
			noteModes()
		case "o", "g":
			if !known(g.Value) {
				c.Errorf("invalid %s %s", map[string]string{"o": "user", "g": "group"}[g.Key], cmd.Quote(g.Value))
				return 1
			}
			noteModes()
		case "p":
			keep = true
		case "t":
			target = g.Value
		case "T":
			noTarget = true
		case "v":
			verbose = true
		case "C":
			compare = true
		case "c": // what it always does
		case "s", "strip-program":
			c.Errorf("stripping is not supported")
			return 1
		case "Z":
			c.Errorf("there are no security contexts")
			return 1
		default:
			if !saves.option(c, g) {
				return 1
			}
		}
	}
	if folders {
		if len(operands) == 0 {
			return usage(c, "missing file operand")
		}
		code = 0
		for _, name := range operands {
			if !installDir(c, name, verbose) {
				code = 1
			}
		}
		return code
	}
	if lead {
		dir := target
		if dir == "" && len(operands) == 2 {
			dir = parent(operands[1])
		}
		if dir != "" && !installDir(c, dir, verbose) {
			return 1
		}
		if target == "" && len(operands) == 2 {
			noTarget = noTarget || !isDir(c, operands[1])
		}
	}
	k := &copier{ctx: ctx, c: c, follow: 'L', removeFirst: true, keepTimes: keep, backups: saves, links: map[inode]string{}}
	pairs, code := targets(c, operands, target, noTarget, false)
	for _, p := range pairs {
		in, err := status(c, p.from)
		switch {
		case err != nil:
			c.Errorf("cannot stat %s: %s", quote(p.from), cmd.Reason(err))
			code = 1
			continue
		case in.IsDir():
			c.Errorf("omitting directory %s", quote(p.from))
			code = 1
			continue
		}
		if compare && sameContent(ctx, c, p.from, p.to) {
			continue
		}
		// The old file is removed, so that whoever reads it goes on reading it.
		if old, err := linkStatus(c, p.to); err == nil && verbose && saves.how == 0 && !old.IsDir() && !samePath(c, p.from, p.to) {
			fmt.Fprintf(c.Stdout, "removed %s\n", quote(p.to))
		}
		k.verbose = false
		if !k.copy(p.from, p.to, true) {
			code = 1
			continue
		}
		if verbose {
			fmt.Fprintf(c.Stdout, "%s -> %s\n", quote(p.from), quote(p.to))
		}
	}
	return code
}

func installDir(c *cmd.Call, name string, verbose bool) bool {
	at := ""
	if strings.HasPrefix(name, "/") {
		at = "/"
	}
	for _, part := range strings.Split(strings.Trim(name, "/"), "/") {
		if part == "" {
			continue
		}
		at += part
		if !isDir(c, at) {
			if err := os.Mkdir(c.Path(at), 0o777&^c.Umask); err != nil && !errors.Is(err, os.ErrExist) {
				c.Errorf("cannot create directory %s: %s", quote(name), cmd.Reason(err))
				return false
			} else if err != nil && !isDir(c, at) {
				c.Errorf("cannot create directory %s: %s", quote(name), cmd.Reason(err))
				return false
			}
			if verbose {
				fmt.Fprintf(c.Stdout, "%s: creating directory %s\n", c.Name, quote(at))
			}
		}
		at += "/"
	}
	return true
}

// sameContent tells whether two regular files hold the same bytes.
func sameContent(ctx context.Context, c *cmd.Call, a, b string) bool {
	x, err := status(c, a)
	if err != nil || !x.Mode().IsRegular() {
		return false
	}
	y, err := linkStatus(c, b)
	if err != nil || !y.Mode().IsRegular() || x.Size() != y.Size() {
		return false
	}
	f, err := c.OpenFile(a, os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	g, err := c.OpenFile(b, os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer g.Close()
	same := true
	_, err = copyData(ctx, writerFunc(func(p []byte) (int, error) {
		q := make([]byte, len(p))
		if n, _ := readFull(g, q); n != len(p) || string(q) != string(p) {
			same = false
		}
		return len(p), nil
	}), f)
	return err == nil && same
}
