// Package archive holds the commands that pack and unpack: tar, gzip, zip, unzip and their kin.
//
// # What is unpacked stays where it is unpacked
//
// All that an archive makes goes through an [os.Root] of the target folder. Names lose their leading slashes and "..", as with
// the tools that are well known; a symbolic link that would lead out of the folder is refused, also where it would
// do so only by way of other links.
package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// Commands are the commands of this package by name.
var Commands = map[string]cmd.Func{
	"bunzip2": bunzip2,
	"bzcat":   bunzip2,
	"bzip2":   bunzip2,
	"gunzip":  gzipCommand,
	"gzip":    gzipCommand,
	"tar":     tarCommand,
	"unzip":   unzip,
	"zcat":    gzipCommand,
	"zip":     zipCommand,
	"zipinfo": unzip,
}

// The group and user that files belong to, and their number.
const (
	owner   = "guest"
	ownerID = 1000
)

// copyData copies a stream in pieces, so that others get their turn.
func copyData(ctx context.Context, w io.Writer, r io.Reader) (int64, error) {
	buf := make([]byte, 64<<10)
	var total int64
	for {
		cmd.Check(ctx)
		n, err := r.Read(buf)
		if n > 0 {
			total += int64(n)
			if _, err := w.Write(buf[:n]); err != nil {
				return total, &writeError{err}
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

// writeError is an error of what copyData writes to.
type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// join puts a name below a folder, both as they are shown.
func join(dir, name string) string {
	if strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}

// base is the last part of a name, without slashes at its end.
func base(name string) string {
	name = strings.TrimRight(name, "/")
	return name[strings.LastIndexByte(name, '/')+1:]
}

// lstat describes a file of the caller's, not following a link.
func lstat(c *cmd.Call, name string) (fs.FileInfo, error) {
	if name == "" {
		return nil, syscall.ENOENT
	}
	return os.Lstat(c.Path(name))
}

// target is the folder that an archive is unpacked to.
type target struct{ root *os.Root }

func openTarget(c *cmd.Call, dir string) (target, error) {
	root, err := os.OpenRoot(c.Path(dir))
	return target{root}, err
}

// parents makes the folders above name.
func (t target) parents(name string) error {
	dir := path.Dir(name)
	if dir == "." {
		return nil
	}
	return t.root.MkdirAll(dir, 0o755)
}

// dir makes a folder; one that is there stays.
func (t target) dir(name string) error {
	if err := t.parents(name); err != nil {
		return err
	}
	err := t.root.Mkdir(name, 0o755)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	fi, err := t.root.Lstat(name)
	if err != nil || fi.IsDir() {
		return err
	}
	// A link to a folder is no folder: what comes would go where it leads.
	if err := t.root.Remove(name); err != nil {
		return err
	}
	return t.root.Mkdir(name, 0o755)
}

// create makes a file in the place of what was there. It never writes through a link.
func (t target) create(name string) (*os.File, error) {
	if err := t.parents(name); err != nil {
		return nil, err
	}
	if err := t.clear(name); err != nil {
		return nil, err
	}
	return t.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// clear removes what is in the place of name, unless it is a folder that is not empty.
func (t target) clear(name string) error {
	fi, err := t.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if fi.IsDir() {
		return syscall.EISDIR
	}
	return t.root.Remove(name)
}

// errLeaves is a link that leads out of the target.
var errLeaves = errors.New("it would lead out of the folder that is unpacked to")

// symlink makes a symbolic link, if it stays in the target.
func (t target) symlink(to, name string) error {
	if !t.stays(to, name) {
		return errLeaves
	}
	if err := t.parents(name); err != nil {
		return err
	}
	if err := t.clear(name); err != nil {
		return err
	}
	return t.root.Symlink(to, name)
}

// stays tells whether a link called name that holds to leads to somewhere in the target, whatever other links there are that do.
func (t target) stays(to, name string) bool {
	if to == "" || strings.HasPrefix(to, "/") {
		return false
	}
	// How far up is still inside: as many folders as name is in, if they are folders and not links themselves.
	up := 0
	dir := path.Dir(name)
	for at := dir; at != "."; at = path.Dir(at) {
		if fi, err := t.root.Lstat(at); err == nil && !fi.IsDir() {
			up = 0
			break
		}
		up++
	}
	down := false
	for _, part := range strings.Split(to, "/") {
		switch part {
		case "", ".":
		case "..":
			// Behind a name that may be a link, ".." may be anywhere.
			if up--; down || up < 0 {
				return false
			}
		default:
			down = true
		}
	}
	return true
}

// link makes a second name of a file, or a copy where files cannot have two.
func (t target) link(ctx context.Context, from, name string) error {
	fi, err := t.root.Lstat(from)
	if err != nil {
		return err
	}
	if fi.Mode()&fs.ModeSymlink != 0 {
		to, err := t.root.Readlink(from)
		if err != nil {
			return err
		}
		return t.symlink(to, name)
	}
	if path.Clean(from) == path.Clean(name) {
		return nil
	}
	if err := t.parents(name); err != nil {
		return err
	}
	if err := t.clear(name); err != nil {
		return err
	}
	if t.root.Link(from, name) == nil {
		return nil
	}
	if !fi.Mode().IsRegular() {
		return syscall.EPERM
	}
	in, err := t.root.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := t.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = copyData(ctx, out, in)
	if failed := out.Close(); err == nil {
		err = failed
	}
	return err
}

// times sets when a file was changed. That it cannot be set is no failure.
func (t target) times(name string, when time.Time) {
	if !when.IsZero() {
		_ = t.root.Chtimes(name, when, when)
	}
}

// reason words an error, also those of the target.
func reason(err error) string {
	if errors.Is(err, errLeaves) {
		return err.Error()
	}
	return cmd.Reason(err)
}

// lines reads a list of names.
func lines(ctx context.Context, r io.Reader, end byte) ([]string, error) {
	in := bufio.NewReader(cmd.Reader(ctx, r))
	var list []string
	for {
		line, err := in.ReadString(end)
		if line = strings.TrimSuffix(line, string(end)); line != "" {
			list = append(list, line)
		}
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return list, err
		}
	}
}

// escape writes a name with the escapes of C, as tar lists it.
func escape(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }) < 0 {
		return name
	}
	var b strings.Builder
	for i := range len(name) {
		switch x := name[i]; {
		case x == '\\':
			b.WriteString(`\\`)
		case x >= ' ' && x != 0x7f:
			b.WriteByte(x)
		default:
			if at := strings.IndexByte("\a\b\f\n\r\t\v", x); at >= 0 {
				b.WriteString(`\` + "abfnrtv"[at:at+1])
			} else {
				fmt.Fprintf(&b, `\%03o`, x)
			}
		}
	}
	return b.String()
}
