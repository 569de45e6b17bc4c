// Package files holds the commands that work on names, files and folders.
//
// # Modes and owners
//
// WASI has sizes, times and kinds of files, but no mode bits and no owners. So that listings are the same everywhere, a file is always
// 0644, a folder 0755, a symbolic link 0777, and all belong to user and group "guest", 1000. chmod, chown and chgrp check
// their operands and change nothing. Disk usage is computed from the size, in blocks of 4096 bytes as ext4 would use them.
//
// # Order
//
// Where the tools of Linux take folders in the order of the file system, these take them sorted by bytes.
package files

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// Commands are the commands of this package by name.
var Commands = map[string]cmd.Func{
	"basename": basename,
	"chgrp":    chown,
	"chmod":    chmod,
	"chown":    chown,
	"cp":       cp,
	"dd":       dd,
	"df":       df,
	"dirname":  dirname,
	"du":       du,
	"file":     file,
	"find":     cmd.Written(find, 1),
	"install":  install,
	"link":     linkCommand,
	"ln":       ln,
	"ls":       ls,
	"mkdir":    mkdir,
	"mktemp":   mktemp,
	"mv":       mv,
	"readlink": readlink,
	"realpath": realpath,
	"rm":       rm,
	"rmdir":    rmdir,
	"stat":     stat,
	"touch":    touch,
	"tree":     drawTree,
	"truncate": truncate,
	"unlink":   unlink,
	"xargs":    xargs,
}

// options reads the options of a command of GNU's. ok is false when the command is done, with the exit code: after an error, --help
// or --version.
func options(c *cmd.Call, list, usage string, bad int) (given []cmd.Given, operands []string, code int, ok bool) {
	given, operands, err := cmd.Options(list + " ,help ,version").Parse(c.Args)
	if err != nil {
		return nil, nil, c.BadUsage(err, bad), false
	}
	for _, g := range given {
		switch g.Key {
		case "help":
			fmt.Fprintf(c.Stdout, "Usage: %s %s\n", c.Name, usage)
			return nil, nil, 0, false
		case "version":
			fmt.Fprintf(c.Stdout, "%s (exthost, after GNU coreutils 9.1)\n", c.Name)
			return nil, nil, 0, false
		}
	}
	return given, operands, 0, true
}

// usage writes a complaint about the command line and returns 1.
func usage(c *cmd.Call, format string, args ...any) int {
	return c.BadUsage(fmt.Errorf(format, args...), 1)
}

// quote writes a name as GNU's tools do in messages: 'a b', "it's", 'a'$'\n”b'.
func quote(name string) string {
	plain, single, double := true, false, false
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		switch {
		case r == utf8.RuneError && n == 1, !unicode.IsPrint(r) && r != ' ':
			plain = false
		case r == '\'':
			single = true
		case strings.ContainsRune("\"$`\\!", r):
			double = true
		}
		i += n
	}
	if plain && !single {
		return "'" + name + "'"
	}
	if plain && !double {
		return `"` + name + `"`
	}
	var b strings.Builder
	b.WriteByte('\'')
	escaped := false
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && n == 1 || !unicode.IsPrint(r) && r != ' ' {
			if !escaped {
				b.WriteString("'$'")
				escaped = true
			}
			for _, x := range []byte(name[i : i+n]) {
				if at := strings.IndexByte("\a\b\f\n\r\t\v", x); at >= 0 {
					b.WriteString(`\` + "abfnrtv"[at:at+1])
				} else {
					fmt.Fprintf(&b, `\%03o`, x)
				}
			}
			i += n
			continue
		}
		if escaped {
			b.WriteString("''")
			escaped = false
		}
		if r == '\'' {
			b.WriteString(`'\''`)
		} else {
			b.WriteString(name[i : i+n])
		}
		i += n
	}
	b.WriteByte('\'')
	return b.String()
}

// join puts a name below a folder, both as they are shown.
func join(dir, name string) string {
	if strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}

// base is the last part of a name, without slashes at its end.
func base(name string) string {
	trimmed := strings.TrimRight(name, "/")
	if trimmed == "" {
		if name == "" {
			return ""
		}
		return "/"
	}
	return trimmed[strings.LastIndexByte(trimmed, '/')+1:]
}

// parent is what dirname prints.
func parent(name string) string {
	trimmed := strings.TrimRight(name, "/")
	if trimmed == "" {
		if name == "" {
			return "."
		}
		return "/"
	}
	at := strings.LastIndexByte(trimmed, '/')
	if at < 0 {
		return "."
	}
	if trimmed = strings.TrimRight(trimmed[:at], "/"); trimmed == "" {
		return "/"
	}
	return trimmed
}

// names lists a folder, sorted by bytes.
func names(ctx context.Context, c *cmd.Call, dir string) ([]string, error) {
	cmd.Check(ctx)
	f, err := os.Open(c.Path(dir))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.Readdirnames(-1)
	slices.Sort(list)
	return list, err
}

// confirm asks a question on standard error and reads the answer from standard input: its end is a no.
func confirm(c *cmd.Call, format string, args ...any) bool {
	fmt.Fprintf(c.Stderr, "%s: %s", c.Name, fmt.Sprintf(format, args...))
	var line []byte
	var b [1]byte // no byte more than the line: what follows is for others
	for {
		n, err := c.Stdin.Read(b[:])
		if n > 0 && b[0] == '\n' {
			break
		}
		line = append(line, b[:n]...)
		if err != nil {
			break
		}
	}
	return len(line) > 0 && (line[0] == 'y' || line[0] == 'Y')
}

// copyData copies a stream in pieces, so that others get their turn.
func copyData(ctx context.Context, w io.Writer, r io.Reader) (int64, error) {
	buf := make([]byte, 128<<10)
	var total int64
	for {
		cmd.Check(ctx)
		n, err := r.Read(buf)
		if n > 0 {
			total += int64(n)
			if _, err := w.Write(buf[:n]); err != nil {
				return total, err
			}
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

func isDir(c *cmd.Call, name string) bool {
	in, err := status(c, name)
	return err == nil && in.IsDir()
}

// sameFile tells whether both are the same file, not merely equal.
func sameFile(a, b *info) bool { return os.SameFile(a.FileInfo, b.FileInfo) }

// status describes a file, behind a link.
func status(c *cmd.Call, name string) (*info, error) {
	p := c.Path(name)
	if p == "" {
		return nil, syscall.ENOENT
	}
	fi, err := os.Stat(p)
	if err != nil && strings.HasPrefix(p, "/dev/") {
		// The shell's own descriptors are not files of the system.
		f, failed := c.OpenFile(name, os.O_RDONLY, 0)
		if failed != nil {
			return nil, err
		}
		defer f.Close()
		if fi, failed = f.Stat(); failed != nil {
			return nil, err
		}
		err = nil
	}
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(p, "/") && !fi.IsDir() {
		return nil, syscall.ENOTDIR
	}
	return newInfo(fi), nil
}

// linkStatus describes a file, or the link itself.
func linkStatus(c *cmd.Call, name string) (*info, error) {
	p := c.Path(name)
	if p == "" {
		return nil, syscall.ENOENT
	}
	if strings.HasSuffix(p, "/") || strings.HasPrefix(p, "/dev/") {
		return status(c, name)
	}
	fi, err := os.Lstat(p)
	if err != nil {
		return nil, err
	}
	return newInfo(fi), nil
}

// perm is the mode that a file is shown with.
func perm(m fs.FileMode) fs.FileMode {
	switch {
	case m.IsDir():
		return 0o755
	case m&fs.ModeSymlink != 0:
		return 0o777
	case m.IsRegular():
		return 0o644
	}
	return 0o666
}
