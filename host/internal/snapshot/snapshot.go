// Package snapshot copies the tree of an extension into a private folder while it is hashed.
//
// What runs is the copy: a source that changes after the digest was checked, or while a guest runs, changes nothing.
//
// # The digest
//
// A tree's digest is sha256 over one line for each file and link, sorted by path as bytes:
//
//	mode NUL path NUL sha256 LF
//
// mode is "x" (a file that somebody may execute), "-" (another file) or "l" (a link), path is slash-separated and relative
// to the root, sha256 is in lower-case hexadecimal, of the content or of the link's target. Folders have no line, and
// a folder without files is not copied, so that nothing is in the copy that the digest does not cover. A file or folder
// named ".git" (in any case) is left out of both: it is history, large, and never part of what runs.
//
// # What is refused
//
// Links that lead out of the tree (followed as the kernel would, through other links too) and absolute ones; devices,
// FIFOs and sockets; trees over the limits.
package snapshot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Limits of a tree.
const (
	MaxBytes   = 64 << 20
	MaxEntries = 10_000
	MaxDepth   = 64
	maxPath    = 4096
	maxFollow  = 40 // links followed for one link, as the kernel
)

var (
	// ErrTooBig matches refusals of a tree over the limits.
	ErrTooBig = errors.New("extension is too big")
	// ErrUnsafe matches refusals of what may not be in a tree: special files and links that lead out.
	ErrUnsafe = errors.New("extension holds what may not be in one")
)

// Kind is what an entry is.
type Kind byte

const (
	File       Kind = '-'
	Executable Kind = 'x'
	Link       Kind = 'l'
)

// Entry is a file or link of a tree.
type Entry struct {
	Path   string // slash-separated, relative
	Kind   Kind
	Size   int64  // of a file
	Target string // of a link
	Sum    [sha256.Size]byte
}

// Source is a tree to read. The paths are slash-separated and relative to its root; "." is the root.
type Source interface {
	ReadDir(name string) ([]fs.DirEntry, error)
	// Open opens a regular file. It fails with an error that matches ErrUnsafe if the entry is, or has become,
	// something else; it does not follow a link and does not block.
	Open(name string) (fs.File, error)
	Readlink(name string) (string, error)
}

// sink takes the copy. A nil sink only hashes.
type sink interface {
	mkdir(name string) error
	// file copies src to name and writes the same bytes to h.
	file(name string, exec bool, src fs.File, h hash.Hash, max int64) (int64, error)
	link(name, target string) error
}

// Digest is the digest of entries, which it sorts.
func Digest(entries []Entry) string {
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	h := sha256.New()
	for _, e := range entries {
		fmt.Fprintf(h, "%c\x00%s\x00%x\n", e.Kind, e.Path, e.Sum)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Hash reads the whole tree and returns its entries, sorted, without copying it.
func Hash(ctx context.Context, src Source) ([]Entry, error) { return walk(ctx, src, nil) }

// walk reads the tree, copies it to dst if that is not nil, and checks the links.
func walk(ctx context.Context, src Source, dst sink) ([]Entry, error) {
	w := walker{ctx: ctx, src: src, dst: dst, made: map[string]bool{".": true}}
	if err := w.dir(".", 0); err != nil {
		return nil, err
	}
	if err := checkLinks(w.entries); err != nil {
		return nil, err
	}
	slices.SortFunc(w.entries, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	return w.entries, nil
}

type walker struct {
	ctx     context.Context
	src     Source
	dst     sink
	made    map[string]bool // folders of the copy
	entries []Entry
	seen    int // entries of all kinds
	bytes   int64
}

func (w *walker) dir(name string, depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("%q: %w: over %d folders deep", name, ErrTooBig, MaxDepth)
	}
	list, err := w.src.ReadDir(name)
	if err != nil {
		return err
	}
	for _, d := range list {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if strings.EqualFold(d.Name(), ".git") {
			continue
		}
		if w.seen++; w.seen > MaxEntries {
			return fmt.Errorf("%w: over %d files (only scripts and what they need belong in a skill's folder)", ErrTooBig, MaxEntries)
		}
		if err := w.entry(path.Join(name, d.Name()), d, depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) entry(name string, d fs.DirEntry, depth int) error {
	if len(name) > maxPath {
		return fmt.Errorf("%w: a path is over %d bytes", ErrTooBig, maxPath)
	}
	switch t := d.Type(); {
	case t.IsDir():
		return w.dir(name, depth+1)
	case t.IsRegular():
		return w.file(name)
	case t&fs.ModeSymlink != 0:
		return w.link(name)
	default:
		return fmt.Errorf("%q: %w: it is a %s", name, ErrUnsafe, special(t))
	}
}

func (w *walker) file(name string) error {
	f, err := w.src.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() {
		return fmt.Errorf("%q: %w: it is a %s", name, ErrUnsafe, special(fi.Mode()))
	}
	e := Entry{Path: name, Kind: File}
	if fi.Mode().Perm()&0o111 != 0 {
		e.Kind = Executable
	}
	h := sha256.New()
	left := MaxBytes - w.bytes
	if fi.Size() > left {
		return tooManyBytes()
	}
	if w.dst == nil {
		e.Size, err = copyMax(h, f, left)
	} else if err = w.parents(name); err == nil {
		e.Size, err = w.dst.file(name, e.Kind == Executable, f, h, left)
	}
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	w.bytes += e.Size
	h.Sum(e.Sum[:0])
	w.entries = append(w.entries, e)
	return nil
}

func (w *walker) link(name string) error {
	target, err := w.src.Readlink(name)
	if err != nil {
		return err
	}
	e := Entry{Path: name, Kind: Link, Target: target, Sum: sha256.Sum256([]byte(target))}
	if w.dst != nil {
		if err := w.parents(name); err != nil {
			return err
		}
		// A link that leads out fails the whole copy after the walk; until then nobody follows it.
		if err := w.dst.link(name, target); err != nil {
			return err
		}
	}
	w.entries = append(w.entries, e)
	return nil
}

// parents makes the folders above name in the copy.
func (w *walker) parents(name string) error {
	dir := path.Dir(name)
	if w.made[dir] {
		return nil
	}
	if err := w.parents(dir); err != nil {
		return err
	}
	w.made[dir] = true
	return w.dst.mkdir(dir)
}

func tooManyBytes() error {
	return fmt.Errorf("%w: over %d MiB (put data into the workspace and grant that)", ErrTooBig, MaxBytes>>20)
}

// copyMax copies all of r, which may grow meanwhile, up to max bytes.
func copyMax(w io.Writer, r io.Reader, max int64) (int64, error) {
	n, err := io.Copy(w, io.LimitReader(r, max+1))
	if err == nil && n > max {
		err = tooManyBytes()
	}
	return n, err
}

func special(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "folder that was a file"
	case m&fs.ModeSymlink != 0:
		return "link that was a file"
	case m&fs.ModeNamedPipe != 0:
		return "FIFO"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// checkLinks refuses links that lead out of the tree. A link whose target is missing but inside is kept.
func checkLinks(entries []Entry) error {
	links := map[string]string{}
	for _, e := range entries {
		if e.Kind == Link {
			links[e.Path] = e.Target
		}
	}
	for _, e := range entries {
		if e.Kind != Link {
			continue
		}
		if err := follow(links, e.Path); err != nil {
			return fmt.Errorf("%q: %w: %w", e.Path, ErrUnsafe, err)
		}
	}
	return nil
}

// follow resolves name component by component as the kernel does, so that "dir/link/../x" is judged by where link leads
// and not by its spelling.
func follow(links map[string]string, name string) error {
	rest := strings.Split(name, "/")
	var at []string
	for n := 0; len(rest) > 0; {
		c := rest[0]
		rest = rest[1:]
		switch c {
		case "", ".":
			continue
		case "..":
			if len(at) == 0 {
				return errors.New("the link leads out of the extension")
			}
			at = at[:len(at)-1]
			continue
		}
		target, ok := links[strings.Join(append(slices.Clone(at), c), "/")]
		if !ok {
			at = append(at, c)
			continue
		}
		if n++; n > maxFollow {
			return nil // a circle: nobody can open it, here or in the guest
		}
		if strings.HasPrefix(target, "/") || strings.ContainsAny(target, "\\\x00") || target == "" {
			return errors.New("the link's target is absolute or malformed")
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return nil
}

// FileOf is a source that holds the one file name of src's root.
func FileOf(src Source, name string) Source { return oneFile{src, name} }

type oneFile struct {
	Source
	name string
}

func (o oneFile) ReadDir(string) ([]fs.DirEntry, error) {
	list, err := o.Source.ReadDir(".")
	if err != nil {
		return nil, err
	}
	for _, d := range list {
		if d.Name() == o.name {
			return []fs.DirEntry{d}, nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: o.name, Err: fs.ErrNotExist}
}

// FS is a tree of an fs.FS. Links need it to be an fs.ReadLinkFS.
func FS(fsys fs.FS) Source { return fsSource{fsys} }

type fsSource struct{ fsys fs.FS }

func (s fsSource) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(s.fsys, name) }
func (s fsSource) Open(name string) (fs.File, error)          { return s.fsys.Open(name) }
func (s fsSource) Readlink(name string) (string, error)       { return fs.ReadLink(s.fsys, name) }
