package archive

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/files/glob"
	"github.com/exthost/exthost/guests/sh/internal/sys"
)

// zipRun is one run of zip.
type zipRun struct {
	ctx context.Context
	c   *cmd.Call
	say *bufio.Writer

	recursive, junk, noDirs, links, quiet, move, update, freshen, remove, test, fromStdin bool
	level                                                                                 int
	include, exclude, store                                                               []string
	file                                                                                  string
	names                                                                                 []string

	files []packed
	known map[string]int
	bad   bool // some could not be read
}

// packed is a file on its way into an archive.
type packed struct {
	name  string // in the archive
	from  string // of the caller
	fi    fs.FileInfo
	stdin bool
}

func zipCommand(ctx context.Context, c *cmd.Call) int {
	z := &zipRun{ctx: ctx, c: c, level: flate.DefaultCompression, known: map[string]int{}}
	if code, ok := z.options(); !ok {
		return code
	}
	z.say = c.Buffered()
	if z.file == "-" {
		z.say = bufio.NewWriter(c.Stderr)
	}
	defer z.say.Flush()
	if z.fromStdin {
		list, err := lines(ctx, c.Stdin, '\n')
		if err != nil {
			return z.fatal(15, "%s", cmd.Reason(err))
		}
		z.names = append(z.names, list...)
	}
	return z.run()
}

// fatal ends zip: as with Info-ZIP's, its complaints go where its other messages go.
func (z *zipRun) fatal(code int, format string, args ...any) int {
	fmt.Fprintf(z.say, "\nzip error: %s\n", fmt.Sprintf(format, args...))
	return code
}

func (z *zipRun) warn(format string, args ...any) {
	fmt.Fprintf(z.say, "\tzip warning: %s\n", fmt.Sprintf(format, args...))
}

func (z *zipRun) options() (int, bool) {
	args := z.c.Args
	var list *[]string
	plain, named := false, false
	usage := func(format string, a ...any) (int, bool) {
		fmt.Fprintf(z.c.Stderr, "\nzip error: Invalid command arguments (%s)\n", fmt.Sprintf(format, a...))
		return 16, false
	}
	long := map[string]string{"recurse-paths": "r", "junk-paths": "j", "quiet": "q", "symlinks": "y", "no-dir-entries": "D", "move": "m", "update": "u", "freshen": "f",
		"delete": "d", "test": "T", "no-extra": "X", "names-stdin": "@", "exclude": "x", "include": "i", "encrypt": "e", "password": "P", "verbose": "v",
		"must-match": "MM", "filesync": "FS", "grow": "g", "help": "h", "suffixes": "n"}
	for i := 0; i < len(args); i++ {
		a := args[i]
		if plain || len(a) < 2 || a[0] != '-' {
			if a == "@" && list != nil {
				list = nil
				continue
			}
			switch {
			case list != nil:
				*list = append(*list, a)
			case !named:
				z.file, named = a, true
			default:
				z.names = append(z.names, a)
			}
			continue
		}
		list = nil
		if a == "--" {
			plain = true
			continue
		}
		letters := a[1:]
		if strings.HasPrefix(a, "--") {
			name, value, has := strings.Cut(a[2:], "=")
			short, ok := long[name]
			if !ok {
				return usage("long option '%s' not supported", name)
			}
			letters = short
			if has {
				letters += value
			}
		}
	letters:
		for j := 0; j < len(letters); j++ {
			switch x := letters[j]; x {
			case 'r', 'R':
				z.recursive = true
			case 'j':
				z.junk = true
			case 'q':
				z.quiet = true
			case 'y':
				z.links = true
			case 'D':
				z.noDirs = true
			case 'm':
				z.move = true
			case 'u':
				z.update = true
			case 'f':
				z.freshen = true
			case 'd':
				z.remove = true
			case 'T':
				z.test = true
			case '@':
				z.fromStdin = true
			case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
				z.level = int(x - '0')
			case 'x', 'i':
				list = &z.exclude
				if x == 'i' {
					list = &z.include
				}
				if value := strings.TrimPrefix(letters[j+1:], "="); value != "" {
					*list = append(*list, value)
				}
				break letters
			case 'n':
				value := letters[j+1:]
				if value == "" {
					if i++; i == len(args) {
						return usage("option 'n' requires a value")
					}
					value = args[i]
				}
				z.store = append(z.store, strings.FieldsFunc(value, func(r rune) bool { return r == ':' || r == ',' })...)
				break letters
			case 'b':
				if letters[j+1:] == "" {
					i++ // where to put a temporary file: next to the archive
				}
				break letters
			case 'h', '?':
				fmt.Fprintln(z.c.Stdout, "zip [-options] [-n suffixes] [zipfile list] [-xi list]")
				return 0, false
			case 'e', 'P':
				fmt.Fprintf(z.c.Stderr, "\nzip error: Invalid command arguments (encryption is not supported)\n")
				return 16, false
			case 'v':
				if len(args) == 1 {
					fmt.Fprintln(z.c.Stdout, "zip (exthost, after Zip 3.0)")
					return 0, false
				}
			case 'X', 'g', 'p', 'o', 'k': // attributes that are not there, and what is done anyhow
			case 'F', 's', 'z', 'l', 't', 'A', 'M', 'c', 'U', 'S':
				return usage("option '%s' is not supported", letters[j:])
			default:
				return usage("short option '%c' not supported", x)
			}
		}
	}
	if !named {
		// Standard input into standard output.
		z.file, z.names = "-", []string{"-"}
	}
	if z.file != "-" && !strings.Contains(base(z.file), ".") {
		z.file += ".zip"
	}
	return 0, true
}

func (z *zipRun) run() int {
	c := z.c
	var old *zip.Reader
	if z.file != "-" {
		f, err := c.OpenFile(z.file, os.O_RDONLY, 0)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return z.fatal(18, "%s: %s", z.file, cmd.Reason(err))
		default:
			defer f.Close()
			fi, err := f.Stat()
			if err == nil && fi.IsDir() {
				return z.fatal(15, "Could not create output file (%s)", z.file)
			}
			if at, ok := f.(io.ReaderAt); ok && err == nil && fi.Size() > 0 {
				if old, err = zip.NewReader(at, fi.Size()); err != nil {
					return z.fatal(3, "Zip file structure invalid (%s)", z.file)
				}
			}
		}
	}
	if z.remove {
		return z.deleteEntries(old)
	}
	if z.test && len(z.names) == 0 && old != nil {
		z.say.WriteString("test of " + z.file + " OK\n")
		return 0
	}
	for _, name := range z.names {
		z.collect(name, nil, true)
	}
	replaced := map[string]packed{}
	var fresh []packed
	existing := map[string]*zip.File{}
	if old != nil {
		for _, f := range old.File {
			existing[f.Name] = f
		}
	}
	for _, p := range z.files {
		f, there := existing[p.name]
		switch {
		case there && (z.update || z.freshen) && !p.fi.ModTime().Truncate(2*time.Second).After(f.Modified):
		case there:
			replaced[p.name] = p
		case z.freshen:
		default:
			fresh = append(fresh, p)
		}
	}
	if len(replaced)+len(fresh) == 0 {
		if (z.update || z.freshen) && len(z.files) > 0 {
			return 12
		}
		return z.fatal(12, "Nothing to do! (%s)", z.file)
	}
	code := z.write(func(w *zip.Writer) error {
		if old != nil {
			for _, f := range old.File {
				p, ok := replaced[f.Name]
				if !ok {
					cmd.Check(z.ctx)
					if err := w.Copy(f); err != nil {
						return err
					}
					continue
				}
				if err := z.add(w, p, "updating"); err != nil {
					return err
				}
			}
		}
		for _, p := range fresh {
			if err := z.add(w, p, "  adding"); err != nil {
				return err
			}
		}
		return nil
	})
	if code != 0 {
		return code
	}
	if z.test {
		z.say.WriteString("test of " + z.file + " OK\n")
	}
	if z.move {
		z.removeFiles()
	}
	if z.bad {
		return 18
	}
	return 0
}

// write makes the archive by fill: beside the old one, which it then replaces.
func (z *zipRun) write(fill func(w *zip.Writer) error) int {
	c := z.c
	if z.file == "-" {
		out := bufio.NewWriterSize(c.Stdout, 64<<10)
		w := zip.NewWriter(out)
		err := fill(w)
		if err == nil {
			err = w.Close()
		}
		if failed := out.Flush(); err == nil {
			err = failed
		}
		if err != nil {
			return z.fatal(14, "Output file write failure (%s)", cmd.Reason(err))
		}
		return 0
	}
	var f cmd.File
	var temp string
	var err error
	for n := range 1000 {
		temp = join(path.Dir(c.Path(z.file)), fmt.Sprintf("zi%06d", n))
		if f, err = c.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666&^c.Umask); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return z.fatal(15, "Could not create output file (%s): %s", z.file, cmd.Reason(err))
	}
	kept := false
	defer func() {
		if !kept {
			_ = os.Remove(temp)
		}
	}()
	out := bufio.NewWriterSize(cmd.Writer(z.ctx, f), 64<<10)
	w := zip.NewWriter(out)
	err = fill(w)
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = out.Flush()
	}
	if failed := f.Close(); err == nil {
		err = failed
	}
	if err == nil {
		err = os.Rename(temp, c.Path(z.file))
	}
	if err != nil {
		return z.fatal(14, "Output file write failure (%s)", cmd.Reason(err))
	}
	kept = true
	return 0
}

// deleteEntries is -d.
func (z *zipRun) deleteEntries(old *zip.Reader) int {
	if old == nil {
		return z.fatal(13, "Missing or empty zip file (%s)", z.file)
	}
	gone := map[string]bool{}
	for _, p := range z.names {
		hit := false
		for _, f := range old.File {
			if glob.Match(p, f.Name, 0) || f.Name == p+"/" {
				gone[f.Name], hit = true, true
			}
		}
		if !hit {
			z.warn("name not matched: %s", p)
		}
	}
	if len(gone) == 0 {
		return z.fatal(12, "Nothing to do! (%s)", z.file)
	}
	for _, f := range old.File {
		if gone[f.Name] && !z.quiet {
			z.say.WriteString("deleting: " + f.Name + "\n")
		}
	}
	if len(gone) == len(old.File) {
		z.warn("zip file empty")
		if err := os.Remove(z.c.Path(z.file)); err != nil {
			return z.fatal(14, "%s", cmd.Reason(err))
		}
		return 0
	}
	return z.write(func(w *zip.Writer) error {
		for _, f := range old.File {
			if !gone[f.Name] {
				cmd.Check(z.ctx)
				if err := w.Copy(f); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// inner is the name that a file has in the archive.
func (z *zipRun) inner(name string, folder bool) string {
	name = strings.TrimLeft(name, "/")
	for strings.HasPrefix(name, "./") {
		name = strings.TrimLeft(name[2:], "/")
	}
	name = strings.TrimRight(name, "/")
	if name == "." {
		return ""
	}
	if z.junk {
		if folder {
			return ""
		}
		name = base(name)
	}
	if folder && name != "" {
		name += "/"
	}
	return name
}

func (z *zipRun) wanted(name string) bool {
	match := func(list []string) bool {
		return slices.ContainsFunc(list, func(p string) bool { return glob.Match(strings.TrimPrefix(p, "./"), name, 0) })
	}
	return (len(z.include) == 0 || match(z.include)) && !match(z.exclude)
}

// collect finds the files that name stands for.
func (z *zipRun) collect(name string, above []fs.FileInfo, operand bool) {
	cmd.Check(z.ctx)
	if name == "-" && operand {
		z.files = append(z.files, packed{name: "-", stdin: true})
		return
	}
	fi, err := lstat(z.c, name)
	if err == nil && fi.Mode()&fs.ModeSymlink != 0 && !z.links {
		fi, err = os.Stat(z.c.Path(name))
	}
	if err != nil {
		z.warn("name not matched: %s", name)
		return
	}
	inner := z.inner(name, fi.IsDir())
	switch {
	case fi.IsDir():
		if inner != "" && !z.noDirs && z.wanted(inner) {
			z.put(packed{name: inner, from: name, fi: fi})
		}
		if !z.recursive || slices.ContainsFunc(above, func(a fs.FileInfo) bool { return os.SameFile(a, fi) }) {
			return
		}
		list, err := os.ReadDir(z.c.Path(name))
		if err != nil {
			z.warn("could not open for reading: %s", name)
			z.bad = true
		}
		above = append(slices.Clip(above), fi)
		for _, e := range list {
			below := join(name, e.Name())
			if name == "." {
				below = e.Name()
			}
			z.collect(below, above, false)
		}
	case fi.Mode().IsRegular() || fi.Mode()&fs.ModeSymlink != 0:
		if inner == "" || !z.wanted(inner) {
			return
		}
		if self, err := os.Stat(z.c.Path(z.file)); err == nil && z.file != "-" && os.SameFile(self, fi) {
			return
		}
		z.put(packed{name: inner, from: name, fi: fi})
	}
}

func (z *zipRun) put(p packed) {
	if at, ok := z.known[p.name]; ok {
		if z.files[at].from != p.from {
			z.warn("first full name: %s\n                 second full name: %s\n                 name in zip file repeated: %s", z.files[at].from, p.from, p.name)
		}
		return
	}
	z.known[p.name] = len(z.files)
	z.files = append(z.files, p)
}

// inMemory is up to which size a file is packed before its header is written, so that one that does not shrink is stored.
const inMemory = 1 << 20

// add packs a file.
func (z *zipRun) add(w *zip.Writer, p packed, verb string) error {
	cmd.Check(z.ctx)
	h := &zip.FileHeader{Name: p.name, CreatorVersion: 3<<8 | 30, ReaderVersion: 10}
	if !utf8.ValidString(p.name) {
		h.NonUTF8 = true
	} else if strings.IndexFunc(p.name, func(r rune) bool { return r >= 0x80 }) >= 0 {
		h.Flags |= 0x800
	}
	when := time.Now()
	mode := uint32(0o100644)
	if p.fi != nil {
		when = p.fi.ModTime()
		switch {
		case p.fi.IsDir():
			mode = 0o040755
		case p.fi.Mode()&fs.ModeSymlink != 0:
			mode = 0o120777
		}
	}
	h.ExternalAttrs = mode << 16
	if mode == 0o040755 {
		h.ExternalAttrs |= 0x10
	}
	z.stamp(h, when)
	say := func(how string) {
		if !z.quiet {
			fmt.Fprintf(z.say, "%s: %s (%s)\n", verb, p.name, how)
		}
	}
	var data io.Reader
	switch {
	case p.stdin:
		data = z.c.Stdin
	case p.fi.IsDir():
		if _, err := w.CreateRaw(h); err != nil {
			return err
		}
		say("stored 0%")
		return nil
	case mode == 0o120777:
		to, err := os.Readlink(z.c.Path(p.from))
		if err != nil {
			z.warn("could not open for reading: %s", p.from)
			z.bad = true
			return nil
		}
		data = strings.NewReader(to)
	default:
		f, err := z.c.OpenFile(p.from, os.O_RDONLY, 0)
		if err != nil {
			z.warn("could not open for reading: %s", p.from)
			z.bad = true
			return nil
		}
		defer f.Close()
		data = f
	}
	store := z.level == 0 || mode == 0o120777 || slices.ContainsFunc(z.store, func(end string) bool { return strings.HasSuffix(p.name, end) })
	head, err := io.ReadAll(io.LimitReader(cmd.Reader(z.ctx, data), inMemory+1))
	if err != nil {
		return err
	}
	if len(head) <= inMemory {
		h.CRC32 = crc32.ChecksumIEEE(head)
		h.UncompressedSize64 = uint64(len(head))
		body := head
		if !store {
			var b bytes.Buffer
			d, err := flate.NewWriter(&b, z.level)
			if err != nil {
				return err
			}
			if _, err := d.Write(head); err != nil {
				return err
			}
			if err := d.Close(); err != nil {
				return err
			}
			if b.Len() < len(head) {
				body, h.Method, h.ReaderVersion = b.Bytes(), zip.Deflate, 20
			}
		}
		h.CompressedSize64 = uint64(len(body))
		raw, err := w.CreateRaw(h)
		if err != nil {
			return err
		}
		if _, err := raw.Write(body); err != nil {
			return err
		}
		if h.Method == zip.Deflate {
			say(fmt.Sprintf("deflated %d%%", saved(h.CompressedSize64, h.UncompressedSize64)))
		} else {
			say("stored 0%")
		}
		return nil
	}
	// A big one is written as it is read, with its sizes behind it.
	h.Method, h.ReaderVersion = zip.Deflate, 20
	if store {
		h.Method = zip.Store
	}
	h.Flags |= 8
	sum := crc32.NewIEEE()
	raw, err := w.CreateRaw(h)
	if err != nil {
		return err
	}
	out := &counter{w: raw}
	var to io.WriteCloser = nopCloser{out}
	if !store {
		if to, err = flate.NewWriter(out, z.level); err != nil {
			return err
		}
	}
	plain, err := copyData(z.ctx, io.MultiWriter(to, sum), io.MultiReader(bytes.NewReader(head), cmd.Reader(z.ctx, data)))
	if err != nil {
		return err
	}
	if err := to.Close(); err != nil {
		return err
	}
	h.CRC32, h.UncompressedSize64, h.CompressedSize64 = sum.Sum32(), uint64(plain), uint64(out.n)
	if store {
		say("stored 0%")
	} else {
		say(fmt.Sprintf("deflated %d%%", saved(h.CompressedSize64, h.UncompressedSize64)))
	}
	return nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// stamp sets the times of a header: the old field, and the one that is in seconds.
func (z *zipRun) stamp(h *zip.FileHeader, when time.Time) {
	t := when.In(sys.Local(z.c))
	if t.Year() < 1980 {
		t = time.Date(1980, 1, 1, 0, 0, 0, 0, t.Location())
	}
	//lint:ignore SA1019 CreateRaw takes just these
	h.ModifiedDate = uint16(t.Day() + int(t.Month())<<5 + (t.Year()-1980)<<9)
	//lint:ignore SA1019 CreateRaw takes just these
	h.ModifiedTime = uint16(t.Second()/2 + t.Minute()<<5 + t.Hour()<<11)
	extra := []byte{0x55, 0x54, 5, 0, 1}
	h.Extra = binary.LittleEndian.AppendUint32(extra, uint32(when.Unix()))
}

// removeFiles is -m: files first, then the folders that are empty.
func (z *zipRun) removeFiles() {
	for i := len(z.files) - 1; i >= 0; i-- {
		if p := z.files[i]; !p.stdin {
			if err := os.Remove(strings.TrimRight(z.c.Path(p.from), "/")); err != nil && !p.fi.IsDir() {
				z.warn("error deleting %s: %s", p.from, cmd.Reason(err))
			}
		}
	}
}
