package archive

import (
	"bufio"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/sys"
)

const gzipOpts = "a,ascii c,stdout ,to-stdout d,decompress ,uncompress f,force k,keep l,list n,no-name N,name q,quiet r,recursive ,rsyncable S,suffix= " +
	"t,test v,verbose 1,fast 2 3 4 5 6 7 8 9,best ,synchronous h,help V,version L,license"

// gzipRun is one run of gzip, gunzip or zcat.
type gzipRun struct {
	ctx context.Context
	c   *cmd.Call

	stdout, decompress, force, keep, list, test bool
	quiet, recursive, verbose                   bool
	name                                        int // -1: -n, 1: -N
	suffix                                      string
	level                                       int
	code                                        int
	listed, packed, plain                       int64
}

func gzipCommand(ctx context.Context, c *cmd.Call) int {
	called := *c
	called.Name = "gzip"
	g := &gzipRun{ctx: ctx, c: &called, suffix: ".gz", level: gzip.DefaultCompression}
	given, operands, err := cmd.Options(gzipOpts).Parse(c.Args)
	if err != nil {
		g.c.Errorf("%v", err)
		fmt.Fprintln(c.Stderr, "Try `gzip --help' for more information.")
		return 1
	}
	switch c.Name {
	case "gunzip":
		g.decompress = true
	case "zcat":
		g.decompress, g.stdout = true, true
	}
	for _, o := range given {
		switch o.Key {
		case "c", "to-stdout":
			g.stdout = true
		case "d", "uncompress":
			g.decompress = true
		case "f":
			g.force = true
		case "k":
			g.keep = true
		case "l":
			g.list, g.decompress = true, true
		case "n":
			g.name = -1
		case "N":
			g.name = 1
		case "q":
			g.quiet, g.verbose = true, false
		case "r":
			g.recursive = true
		case "S":
			if g.suffix = o.Value; g.suffix == "" {
				g.c.Errorf("invalid suffix '%s'", o.Value)
				return 1
			}
		case "t":
			g.test, g.decompress = true, true
		case "v":
			g.verbose, g.quiet = true, false
		case "1", "2", "3", "4", "5", "6", "7", "8", "9":
			g.level = int(o.Key[0] - '0')
		case "h":
			fmt.Fprintf(c.Stdout, "Usage: %s [OPTION]... [FILE]...\n", c.Name)
			return 0
		case "V", "L":
			fmt.Fprintln(c.Stdout, "gzip (exthost, after gzip 1.12)")
			return 0
		case "a", "rsyncable", "synchronous": // line ends are those of the system, and how data reach the disk is the host's
		}
	}
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	for _, name := range operands {
		g.operand(name)
	}
	if g.list && g.listed > 1 {
		fmt.Fprintf(c.Stdout, "%*s%19d %19d %s (totals)\n", map[bool]int{true: 27}[g.verbose], "", g.packed, g.plain, ratio(g.packed, g.plain))
	}
	return g.code
}

// warn reports what is no error.
func (g *gzipRun) warn(format string, args ...any) {
	if !g.quiet {
		g.c.Errorf(format, args...)
	}
	if g.code == 0 {
		g.code = 2
	}
}

func (g *gzipRun) fail(name string, err error) {
	g.code = 1
	text := ""
	switch {
	case errors.Is(err, gzip.ErrHeader):
		text = "not in gzip format"
	case errors.Is(err, gzip.ErrChecksum):
		text = "invalid compressed data--crc error"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		text = "unexpected end of file"
	default:
		if strings.Contains(err.Error(), "flate:") {
			text = "invalid compressed data--format violated"
			break
		}
		g.c.Errorf("%s: %s", name, cmd.Reason(err))
		return
	}
	fmt.Fprintf(g.c.Stderr, "\ngzip: %s: %s\n", name, text)
}

func (g *gzipRun) operand(name string) {
	cmd.Check(g.ctx)
	if name == "-" {
		g.stream()
		return
	}
	fi, err := os.Stat(g.c.Path(name))
	if g.decompress && errors.Is(err, fs.ErrNotExist) && !strings.HasSuffix(name, g.suffix) {
		// The name without the ending is enough.
		name += g.suffix
		fi, err = os.Stat(g.c.Path(name))
	}
	if err != nil {
		f, failed := g.c.OpenFile(name, os.O_RDONLY, 0)
		if failed == nil && strings.HasPrefix(g.c.Path(name), "/dev/") {
			// A descriptor of the shell's.
			defer f.Close()
			g.file(name, "", f, nil)
			return
		}
		if failed == nil {
			f.Close()
		}
		g.code = g.c.Fail(name, err)
		return
	}
	if link, err := lstat(g.c, name); err == nil && link.Mode()&fs.ModeSymlink != 0 && (fi.IsDir() && g.recursive || !g.stdout && !g.force && !g.test && !g.list) {
		g.c.Errorf("%s: Too many levels of symbolic links", name)
		g.code = 1
		return
	}
	if fi.IsDir() {
		if !g.recursive {
			g.warn("%s is a directory -- ignored", name)
			return
		}
		g.folder(name)
		return
	}
	out := ""
	if !g.stdout && !g.test && !g.list {
		var ok bool
		if out, ok = g.outName(name); !ok {
			return
		}
	}
	f, err := g.c.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		g.code = g.c.Fail(name, err)
		return
	}
	defer f.Close()
	g.file(name, out, f, fi)
}

func (g *gzipRun) folder(name string) {
	list, err := os.ReadDir(g.c.Path(name))
	if err != nil {
		g.code = g.c.Fail(name, err)
		return
	}
	for _, e := range list {
		g.operand(join(name, e.Name()))
	}
}

// outName is the name that the other side of name has.
func (g *gzipRun) outName(name string) (string, bool) {
	if !g.decompress {
		for _, end := range []string{g.suffix, ".tgz", ".taz"} {
			if strings.HasSuffix(name, end) && !g.force {
				if g.verbose || !g.recursive && !g.quiet {
					g.c.Errorf("%s already has %s suffix -- unchanged", name, end)
				}
				return "", false
			}
		}
		return name + g.suffix, true
	}
	for _, end := range []string{g.suffix, ".gz", ".z", "-gz", "-z", "_z"} {
		if stem, ok := strings.CutSuffix(name, end); ok && base(stem) != "" && !strings.HasSuffix(stem, "/") {
			return stem, true
		}
	}
	for _, end := range []string{".tgz", ".taz"} {
		if stem, ok := strings.CutSuffix(name, end); ok {
			return stem + ".tar", true
		}
	}
	if g.recursive {
		return "", false
	}
	g.warn("%s: unknown suffix -- ignored", name)
	return "", false
}

// stream works from standard input to standard output.
func (g *gzipRun) stream() {
	g.stdout = true
	g.file("stdin", "", g.c.Stdin, nil)
}

func (g *gzipRun) file(name, out string, in io.Reader, fi fs.FileInfo) {
	in = cmd.Reader(g.ctx, in)
	if g.list {
		g.show(name, in)
		return
	}
	if g.test {
		_, _, err := g.unpack(name, io.Discard, in)
		if err != nil {
			g.fail(name, err)
		} else if g.verbose {
			fmt.Fprintf(g.c.Stderr, "%s:\t OK\n", name)
		}
		return
	}
	if out == "" {
		w := bufio.NewWriterSize(g.c.Stdout, 32<<10)
		var err error
		var plain, packed int64
		if g.decompress {
			plain, packed, err = g.unpack(name, w, in)
		} else {
			plain, packed, err = g.pack(w, in, name, fi)
		}
		if failed := w.Flush(); err == nil && failed != nil {
			err = failed
		}
		if err != nil {
			g.fail(name, err)
		} else if g.verbose {
			text := ""
			if fi != nil {
				text = name + ":\t"
			}
			fmt.Fprintf(g.c.Stderr, "%s%s\n", text, ratio(packed, plain))
		}
		return
	}
	if g.decompress && g.name == 1 {
		// The name inside, without folders.
		buffered := bufio.NewReader(in)
		in = buffered
		if inside := innerName(buffered); inside != "" {
			out = path.Join(path.Dir(out), inside)
		}
	}
	if _, err := lstat(g.c, out); err == nil {
		if !g.force {
			g.warn("%s already exists;\tnot overwritten", out)
			return
		}
		if err := os.Remove(g.c.Path(out)); err != nil {
			g.code = g.c.Fail(out, err)
			return
		}
	}
	f, err := g.c.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fi.Mode().Perm()&^g.c.Umask)
	if err != nil {
		g.code = g.c.Fail(out, err)
		return
	}
	var plain, packed int64
	if g.decompress {
		plain, packed, err = g.unpack(name, f, in)
	} else {
		plain, packed, err = g.pack(f, in, name, fi)
	}
	if failed := f.Close(); err == nil && failed != nil {
		err = failed
	}
	if err != nil {
		_ = os.Remove(g.c.Path(out)) // half a file is none
		g.fail(name, err)
		return
	}
	_ = os.Chtimes(g.c.Path(out), fi.ModTime(), fi.ModTime()) // not everywhere possible
	done := "replaced with"
	if g.keep {
		done = "created"
	} else if err := os.Remove(g.c.Path(name)); err != nil {
		g.code = g.c.Fail(name, err)
		return
	}
	if g.verbose {
		fmt.Fprintf(g.c.Stderr, "%s:\t%s -- %s %s\n", name, ratio(packed, plain), done, out)
	}
}

// ratio is how much smaller the packed data are.
func ratio(packed, plain int64) string {
	if plain == 0 {
		return fmt.Sprintf("%5.1f%%", 0.0)
	}
	// The header and the sums do not count.
	return fmt.Sprintf("%5.1f%%", 100-100*float64(max(packed-18, 0))/float64(plain))
}

func (g *gzipRun) pack(w io.Writer, in io.Reader, name string, fi fs.FileInfo) (plain, packed int64, err error) {
	count := &counter{w: cmd.Writer(g.ctx, w)}
	z, err := gzip.NewWriterLevel(count, g.level)
	if err != nil {
		return 0, 0, err
	}
	z.OS = 3
	if g.name >= 0 && fi != nil {
		z.Name = latin(base(name))
		z.ModTime = fi.ModTime().Truncate(time.Second)
	}
	plain, err = copyData(g.ctx, z, in)
	if failed := z.Close(); err == nil {
		err = failed
	}
	return plain, count.n, err
}

// latin keeps of a name what the format can say.
func latin(name string) string {
	for _, r := range name {
		if r > 0xff || r == 0 {
			return ""
		}
	}
	return name
}

// source counts what is read, a byte at a time where that is asked for.
type source struct {
	*bufio.Reader
	n int64
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.n += int64(n)
	return n, err
}

func (s *source) ReadByte() (byte, error) {
	b, err := s.Reader.ReadByte()
	if err == nil {
		s.n++
	}
	return b, err
}

// unpack decompresses all members of in.
func (g *gzipRun) unpack(name string, w io.Writer, in io.Reader) (plain, packed int64, err error) {
	s := &source{Reader: bufio.NewReaderSize(in, 64<<10)}
	head, _ := s.Peek(2)
	if string(head) != "\x1f\x8b" {
		switch {
		case g.force && g.stdout:
			// As cat.
			n, err := copyData(g.ctx, w, s)
			return n, n, err
		case len(head) == 0:
			return 0, 0, io.ErrUnexpectedEOF
		case string(head) == "\x1f\x9d":
			return 0, 0, errors.New("compress'd data cannot be read")
		}
		return 0, 0, gzip.ErrHeader
	}
	z, err := gzip.NewReader(s)
	if err != nil {
		return 0, s.n, eof(err)
	}
	for {
		z.Multistream(false)
		n, err := copyData(g.ctx, w, z)
		plain += n
		if err != nil {
			return plain, s.n, err
		}
		head, _ := s.Peek(2)
		if len(head) == 0 {
			return plain, s.n, nil
		}
		if string(head) != "\x1f\x8b" {
			if head[0] != 0 {
				if !g.quiet {
					fmt.Fprintf(g.c.Stderr, "\ngzip: %s: decompression OK, trailing garbage ignored\n", name)
				}
				g.code = max(g.code, 2)
			}
			return plain, s.n, nil
		}
		if err := z.Reset(s); err != nil {
			return plain, s.n, eof(err)
		}
	}
}

func eof(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// innerName is the name that the header holds.
func innerName(in *bufio.Reader) string {
	head, _ := in.Peek(1024)
	if len(head) < 10 || head[3]&8 == 0 {
		return ""
	}
	at := 10
	if head[3]&4 != 0 && len(head) > 12 {
		at += 2 + int(binary.LittleEndian.Uint16(head[10:]))
	}
	if at >= len(head) {
		return ""
	}
	end := slices.Index(head[at:], 0)
	if end <= 0 {
		return ""
	}
	name := string(head[at : at+end])
	if name = base(name); name == "." || name == ".." {
		return ""
	}
	return name
}

// show is -l.
func (g *gzipRun) show(name string, in io.Reader) {
	s := &source{Reader: bufio.NewReaderSize(in, 64<<10)}
	head, _ := s.Peek(10)
	var sum uint32
	var stamp time.Time
	if len(head) >= 10 {
		if t := binary.LittleEndian.Uint32(head[4:]); t != 0 {
			stamp = time.Unix(int64(t), 0)
		}
	}
	tail := &last{}
	quiet := *g
	plain, packed, err := quiet.unpack(name, io.Discard, io.TeeReader(s, tail))
	if err != nil {
		g.fail(name, err)
		return
	}
	sum = binary.LittleEndian.Uint32(tail.b[:4])
	g.listed++
	g.packed += packed
	g.plain += plain
	if g.listed == 1 && !g.quiet {
		if g.verbose {
			fmt.Fprint(g.c.Stdout, "method  crc     date  time  ")
		}
		fmt.Fprintln(g.c.Stdout, "         compressed        uncompressed  ratio uncompressed_name")
	}
	if g.verbose {
		if stamp.IsZero() {
			stamp = time.Now()
		}
		fmt.Fprintf(g.c.Stdout, "defla %08x %s ", sum, sys.Strftime("%b %e %H:%M", stamp.In(sys.Local(g.c))))
	}
	out := name
	if name == "stdin" {
		out = "stdout"
	}
	for _, end := range []string{g.suffix, ".gz", ".z", "-gz", "-z", "_z"} {
		if stem, ok := strings.CutSuffix(out, end); ok {
			out = stem
			break
		}
	}
	if stem, ok := strings.CutSuffix(out, ".tgz"); ok {
		out = stem + ".tar"
	}
	fmt.Fprintf(g.c.Stdout, "%19d %19d %s %s\n", packed, plain, ratio(packed, plain), out)
}

// last keeps the last eight bytes that are written to it.
type last struct{ b [8]byte }

func (l *last) Write(p []byte) (int, error) {
	if len(p) >= 8 {
		copy(l.b[:], p[len(p)-8:])
	} else {
		copy(l.b[:], l.b[len(p):])
		copy(l.b[8-len(p):], p)
	}
	return len(p), nil
}

// bunzip2 is bzip2 -d; there is no compression.
func bunzip2(ctx context.Context, c *cmd.Call) int {
	given, operands, err := cmd.Options("c,stdout d,decompress z,compress f,force k,keep t,test v,verbose q,quiet s,small 1,fast 2 3 4 5 6 7 8 9,best h,help L,license V,version").Parse(c.Args)
	if err != nil {
		c.Errorf("%v", err)
		return 1
	}
	stdout, decompress := c.Name == "bzcat", c.Name != "bzip2"
	var force, keep, test, verbose bool
	for _, g := range given {
		switch g.Key {
		case "c":
			stdout = true
		case "d":
			decompress = true
		case "z":
			decompress = false
		case "f":
			force = true
		case "k":
			keep = true
		case "t":
			test, decompress = true, true
		case "v":
			verbose = true
		case "h":
			fmt.Fprintf(c.Stdout, "usage: %s [flags and input files in any order]\n", c.Name)
			return 0
		case "L", "V":
			fmt.Fprintln(c.Stdout, "bzip2 (exthost, after bzip2 1.0.8)")
			return 0
		default: // speed and memory, when nothing is compressed
		}
	}
	if !decompress {
		c.Errorf("bzip2 can only be read; gzip can be written")
		return 1
	}
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	code := 0
	for _, name := range operands {
		code = max(code, bunzip2File(ctx, c, name, stdout, force, keep, test, verbose))
	}
	return code
}

func bunzip2File(ctx context.Context, c *cmd.Call, name string, stdout, force, keep, test, verbose bool) int {
	shown, out := name, ""
	var in io.Reader = c.Stdin
	var fi fs.FileInfo
	if name == "-" {
		shown, stdout = "(stdin)", true
	} else {
		var err error
		if fi, err = os.Stat(c.Path(name)); err == nil && fi.IsDir() {
			c.Errorf("Input file %s is a directory.", name)
			return 1
		}
		f, err := c.OpenFile(name, os.O_RDONLY, 0)
		if err != nil {
			c.Errorf("Can't open input file %s: %s.", name, cmd.Reason(err))
			return 1
		}
		defer f.Close()
		in = f
	}
	if !stdout && !test {
		for _, ends := range [][2]string{{".bz2", ""}, {".bz", ""}, {".tbz2", ".tar"}, {".tbz", ".tar"}} {
			if stem, ok := strings.CutSuffix(name, ends[0]); ok {
				out = stem + ends[1]
				break
			}
		}
		if out == "" {
			out = name + ".out"
			c.Errorf("Can't guess original name for %s -- using %s", name, out)
		}
		if _, err := lstat(c, out); err == nil {
			if !force {
				c.Errorf("Output file %s already exists.", out)
				return 1
			}
			if err := os.Remove(c.Path(out)); err != nil {
				c.Errorf("Can't remove output file %s: %s.", out, cmd.Reason(err))
				return 1
			}
		}
	}
	buffered := bufio.NewReaderSize(cmd.Reader(ctx, in), 64<<10)
	if head, _ := buffered.Peek(3); string(head) != "BZh" {
		if force && stdout {
			_, err := copyData(ctx, c.Stdout, buffered)
			if err != nil {
				return c.Fail(shown, err)
			}
			return 0
		}
		if test {
			c.Errorf("%s: bad magic number (file not created by bzip2)", shown)
		} else if len(head) == 0 {
			c.Errorf("Compressed file ends unexpectedly;\n\tperhaps it is corrupted?")
		} else {
			c.Errorf("%s is not a bzip2 file.", shown)
		}
		return 2
	}
	w, done := io.Writer(io.Discard), func() error { return nil }
	switch {
	case test:
	case stdout:
		b := bufio.NewWriterSize(c.Stdout, 32<<10)
		w, done = b, b.Flush
	default:
		f, err := c.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666&^c.Umask)
		if err != nil {
			c.Errorf("Can't create output file %s: %s.", out, cmd.Reason(err))
			return 1
		}
		w, done = f, f.Close
	}
	_, err := copyData(ctx, w, bzip2.NewReader(buffered))
	if failed := done(); err == nil && failed != nil {
		err = &writeError{failed}
	}
	if err != nil {
		if out != "" {
			_ = os.Remove(c.Path(out)) // half a file is none
		}
		var writing *writeError
		switch {
		case errors.As(err, &writing):
			c.Errorf("I/O or other error, bailing out: %s", cmd.Reason(err))
			return 1
		case errors.Is(err, io.ErrUnexpectedEOF):
			c.Errorf("Compressed file ends unexpectedly;\n\tperhaps it is corrupted?  *Possible* reason follows.")
		default:
			c.Errorf("Data integrity error when decompressing.\n\tInput file = %s", shown)
		}
		return 2
	}
	if out != "" {
		_ = os.Chtimes(c.Path(out), fi.ModTime(), fi.ModTime()) // not everywhere possible
		if !keep {
			if err := os.Remove(c.Path(name)); err != nil {
				return c.Fail(name, err)
			}
		}
	}
	if verbose {
		what := "done"
		if test {
			what = "ok"
		}
		fmt.Fprintf(c.Stderr, "  %s: %s\n", shown, what)
	}
	return 0
}
