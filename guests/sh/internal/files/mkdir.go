package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

func mkdir(ctx context.Context, c *cmd.Call) int {
	given, operands, code, ok := options(c, "p,parents v,verbose m,mode= Z,context?", "[OPTION]... DIRECTORY...", 1)
	if !ok {
		return code
	}
	var parents, verbose bool
	for _, g := range given {
		switch g.Key {
		case "p":
			parents = true
		case "v":
			verbose = true
		case "m":
			if !validMode(g.Value) {
				c.Errorf("invalid mode %s", cmd.Quote(g.Value))
				return 1
			}
		default:
			c.Errorf("there are no security contexts")
			return 1
		}
	}
	if len(operands) == 0 {
		return usage(c, "missing operand")
	}
	code = 0
	for _, name := range operands {
		cmd.Check(ctx)
		var err error
		if parents {
			err = makeAll(c, name, verbose)
		} else {
			err = makeDir(c, name, verbose)
		}
		if err != nil {
			var failed *dirError
			if errors.As(err, &failed) {
				name, err = failed.name, failed.err
			}
			c.Errorf("cannot create directory %s: %s", cmd.Quote(name), cmd.Reason(err))
			code = 1
		}
	}
	return code
}

// dirError says which folder of a path could not be made.
type dirError struct {
	name string
	err  error
}

func (e *dirError) Error() string { return e.name + ": " + e.err.Error() }

func makeDir(c *cmd.Call, name string, verbose bool) error {
	p := c.Path(name)
	if p == "" {
		return syscall.ENOENT
	}
	if t := strings.TrimRight(p, "/"); t != "" {
		p = t
	}
	if err := os.Mkdir(p, 0o777&^c.Umask); err != nil {
		if p == "/" {
			return syscall.EEXIST
		}
		return err
	}
	if verbose {
		fmt.Fprintf(c.Stdout, "%s: created directory %s\n", c.Name, quote(name))
	}
	return nil
}

// makeAll makes name and the folders above it that are missing.
func makeAll(c *cmd.Call, name string, verbose bool) error {
	if in, err := status(c, name); err == nil {
		if in.IsDir() {
			return nil
		}
		return syscall.EEXIST
	} else if !errors.Is(err, fs.ErrNotExist) {
		return &dirError{firstBad(c, name), err}
	}
	if name == "" {
		return syscall.ENOENT
	}
	if up := parent(name); up != name && !isDir(c, up) {
		if err := makeAll(c, up, verbose); err != nil {
			var inner *dirError
			if errors.As(err, &inner) {
				return err
			}
			if errors.Is(err, fs.ErrExist) {
				err = syscall.ENOTDIR
			}
			return &dirError{up, err}
		}
	}
	err := makeDir(c, name, verbose)
	if errors.Is(err, fs.ErrExist) && isDir(c, name) {
		return nil // "a/.."
	}
	return err
}

// firstBad is the part of name that is there and no folder.
func firstBad(c *cmd.Call, name string) string {
	at := name
	for up := parent(at); up != at && up != "."; at, up = up, parent(up) {
		if in, err := status(c, up); err == nil && !in.IsDir() {
			return up
		}
	}
	return name
}
