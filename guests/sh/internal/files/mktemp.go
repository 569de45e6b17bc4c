package files

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

func mktemp(ctx context.Context, c *cmd.Call) int {
	given, operands, code, ok := options(c, "d,directory u,dry-run q,quiet ,suffix= p= ,tmpdir? t V", "[OPTION]... [TEMPLATE]", 1)
	if !ok {
		return code
	}
	var dir, dry, quiet, inDir, old, hasSuffix bool
	var where, suffix string
	for _, g := range given {
		switch g.Key {
		case "d":
			dir = true
		case "u":
			dry = true
		case "q":
			quiet = true
		case "suffix":
			suffix, hasSuffix = g.Value, true
		case "p", "tmpdir":
			where, inDir = g.Value, true
		case "t":
			old, inDir = true, true
		case "V":
			c.Stdout.Write([]byte("mktemp (exthost, after GNU coreutils 9.1)\n"))
			return 0
		}
	}
	if len(operands) > 1 {
		return usage(c, "too many templates")
	}
	template := "tmp.XXXXXXXXXX"
	if len(operands) == 1 {
		template = operands[0]
		if old && !strings.Contains(template, "XXX") {
			// macOS: -t PREFIX.
			template += ".XXXXXXXXXX"
		}
	} else {
		inDir = true
	}
	if hasSuffix && !strings.HasSuffix(template, "X") {
		c.Errorf("with --suffix, template %s must end in X", cmd.Quote(template))
		return 1
	}
	if at := strings.LastIndex(template, "X"); !hasSuffix && at >= 0 {
		template, suffix = template[:at+1], template[at+1:]
	}
	if strings.Contains(suffix, "/") {
		c.Errorf("invalid suffix %s, contains directory separator", cmd.Quote(suffix))
		return 1
	}
	stem := strings.TrimRight(template, "X")
	count := len(template) - len(stem)
	if count < 3 {
		c.Errorf("too few X's in template %s", cmd.Quote(template+suffix))
		return 1
	}
	if inDir {
		if old {
			if strings.Contains(template, "/") {
				c.Errorf("invalid template, %s, contains directory separator", cmd.Quote(template))
				return 1
			}
			if t := c.Getenv("TMPDIR"); t != "" {
				where = t
			}
		} else if strings.HasPrefix(template, "/") {
			c.Errorf("invalid template, %s; with --tmpdir, it may not be absolute", cmd.Quote(template))
			return 1
		}
		if where == "" {
			where = c.Getenv("TMPDIR")
		}
		if where == "" {
			where = "/tmp"
		}
		stem = join(where, stem)
	}
	for range 100 {
		cmd.Check(ctx)
		name := stem + random(count) + suffix
		var err error
		switch {
		case dry:
			if _, err = linkStatus(c, name); err == nil {
				err = fs.ErrExist
			} else if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		case dir:
			err = os.Mkdir(c.Path(name), 0o700)
		default:
			var f cmd.File
			if f, err = c.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
				err = f.Close()
			}
		}
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			if !quiet {
				what := "file"
				if dir {
					what = "directory"
				}
				c.Errorf("failed to create %s via template %s: %s", what, cmd.Quote(stem+strings.Repeat("X", count)+suffix), cmd.Reason(err))
			}
			return 1
		}
		c.Stdout.Write([]byte(name + "\n"))
		return 0
	}
	if !quiet {
		c.Errorf("failed to create file via template %s: %s", cmd.Quote(stem+strings.Repeat("X", count)+suffix), cmd.Reason(fs.ErrExist))
	}
	return 1
}

func random(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	b := make([]byte, n)
	for i := range b {
		for {
			var x [1]byte
			_, _ = rand.Read(x[:]) // it never fails
			if at := int(x[0] & 63); at < len(letters) {
				b[i] = letters[at]
				break
			}
		}
	}
	return string(b)
}
