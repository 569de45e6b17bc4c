package files

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/exthost/exthost/guests/sh/internal/ask"
	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// noteModes tells the report once that modes and owners are not kept.
var noteModes = sync.OnceFunc(func() {
	ask.Log("chmod, chown and chgrp change nothing: files in the sandbox have neither modes nor owners")
})

// chmod checks its operands and changes nothing: see the package comment.
func chmod(ctx context.Context, c *cmd.Call) int {
	// A mode may look like an option: chmod -x file.
	mode, has, ends := "", false, false
	call := *c
	call.Args = nil
	for _, a := range c.Args {
		if !ends && !has && len(a) > 1 && a[0] == '-' && strings.IndexByte("rwxXstugoa,+=01234567", a[1]) >= 0 {
			mode, has = a, true
			continue
		}
		ends = ends || a == "--"
		call.Args = append(call.Args, a)
	}
	given, operands, code, ok := options(&call, "c,changes f,silent ,quiet v,verbose R,recursive ,reference= ,preserve-root ,no-preserve-root h H L P",
		"[OPTION]... MODE[,MODE]... FILE...\n  or:  chmod [OPTION]... OCTAL-MODE FILE...\n  or:  chmod [OPTION]... --reference=RFILE FILE...", 1)
	if !ok {
		return code
	}
	var recursive, verbose, quiet, reference bool
	for _, g := range given {
		switch g.Key {
		case "R":
			recursive = true
		case "v":
			verbose = true
		case "f", "quiet":
			quiet = true
		case "reference":
			reference = true
			if _, err := status(c, g.Value); err != nil {
				c.Errorf("failed to get attributes of %s: %s", quote(g.Value), cmd.Reason(err))
				return 1
			}
		case "c", "preserve-root", "no-preserve-root", "h", "H", "L", "P": // nothing changes, whatever is followed
		}
	}
	if !has && !reference {
		if len(operands) == 0 {
			return usage(c, "missing operand")
		}
		mode, operands = operands[0], operands[1:]
	}
	if len(operands) == 0 {
		if !reference {
			return usage(c, "missing operand after %s", cmd.Quote(mode))
		}
		return usage(c, "missing operand")
	}
	if !reference && !validMode(mode) {
		return usage(c, "invalid mode: %s", cmd.Quote(mode))
	}
	noteModes()
	return unchanged(ctx, c, operands, recursive, quiet, func(name string, in *info) {
		if verbose && !in.link() {
			fmt.Fprintf(c.Stdout, "mode of %s retained as %04o (%s)\n", quote(name), in.perm(), in.perm().String()[1:])
		}
	})
}

// unchanged looks at all that chmod or chown would change.
func unchanged(ctx context.Context, c *cmd.Call, operands []string, recursive, quiet bool, see func(name string, in *info)) int {
	code := 0
	var walk func(name string, operand bool)
	walk = func(name string, operand bool) {
		cmd.Check(ctx)
		look := linkStatus
		if operand {
			look = status
		}
		in, err := look(c, name)
		if err != nil {
			if link, failed := linkStatus(c, name); failed == nil && link.link() && !quiet {
				c.Errorf("cannot operate on dangling symlink %s", quote(name))
			} else if !quiet {
				c.Errorf("cannot access %s: %s", quote(name), cmd.Reason(err))
			}
			code = 1
			return
		}
		see(name, in)
		if !recursive || !in.IsDir() {
			return
		}
		list, err := names(ctx, c, name)
		if err != nil {
			if !quiet {
				c.Errorf("cannot read directory %s: %s", quote(name), cmd.Reason(err))
			}
			code = 1
		}
		for _, entry := range list {
			walk(join(name, entry), false)
		}
	}
	for _, name := range operands {
		walk(name, true)
	}
	return code
}

// chown is chown and chgrp: it checks its operands and changes nothing.
func chown(ctx context.Context, c *cmd.Call) int {
	given, operands, code, ok := options(c, "c,changes f,silent ,quiet v,verbose R,recursive ,reference= ,preserve-root ,no-preserve-root "+
		"h,no-dereference ,dereference ,from= H L P", "[OPTION]... OWNER FILE...\n  or:  "+c.Name+" [OPTION]... --reference=RFILE FILE...", 1)
	if !ok {
		return code
	}
	var recursive, verbose, quiet, reference bool
	for _, g := range given {
		switch g.Key {
		case "R":
			recursive = true
		case "v":
			verbose = true
		case "f", "quiet":
			quiet = true
		case "reference":
			reference = true
			if _, err := status(c, g.Value); err != nil {
				c.Errorf("failed to get attributes of %s: %s", quote(g.Value), cmd.Reason(err))
				return 1
			}
		case "c", "preserve-root", "no-preserve-root", "h", "dereference", "from", "H", "L", "P": // nothing changes
		}
	}
	if len(operands) == 0 {
		return usage(c, "missing operand")
	}
	grouped := reference
	if !reference {
		who := operands[0]
		if operands = operands[1:]; len(operands) == 0 {
			return usage(c, "missing operand after %s", cmd.Quote(who))
		}
		user, group, _ := strings.Cut(who, ":")
		grouped = group != ""
		if c.Name == "chgrp" {
			user, group = "", who
		}
		if !known(user) {
			c.Errorf("invalid user: %s", cmd.Quote(who))
			return 1
		}
		if !known(group) {
			c.Errorf("invalid group: %s", cmd.Quote(who))
			return 1
		}
	}
	noteModes()
	what, id := "ownership", owner
	if grouped {
		id += ":" + owner
	}
	if c.Name == "chgrp" {
		what, id = "group", owner
	}
	return unchanged(ctx, c, operands, recursive, quiet, func(name string, in *info) {
		if verbose {
			fmt.Fprintf(c.Stdout, "%s of %s retained as %s\n", what, quote(name), id)
		}
	})
}

// known tells whether there is such a user or group.
func known(name string) bool {
	if _, err := strconv.ParseUint(name, 10, 32); err == nil {
		return true
	}
	return name == "" || name == owner || name == "root" || name == "nobody" || name == "nogroup"
}
