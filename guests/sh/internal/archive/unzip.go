package archive

import (
	"archive/zip"
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/files/glob"
	"github.com/exthost/exthost/guests/sh/internal/sys"
)

// unzipRun is one run of unzip.
type unzipRun struct {
	ctx context.Context
	c   *cmd.Call
	out *bufio.Writer

	list, long, test, pipe, cat, info, names bool
	never, always, junk, update, freshen     bool
	lower, fold, comment, noTimes            bool
	quiet                                    int
	dir                                      string
	file                                     string
	want, exclude                            []string
	hit                                      []bool
	code                                     int
	to                                       target
	links                                    []link
}

type link struct{ name, shown, to string }

func unzip(ctx context.Context, c *cmd.Call) int {
	u := &unzipRun{ctx: ctx, c: c, out: c.Buffered()}
	defer u.out.Flush()
	u.info = c.Name == "zipinfo"
	if code, ok := u.options(); !ok {
		return code
	}
	f, size, name, code := u.open()
	if f == nil {
		return code
	}
	defer f.Close()
	at, ok := f.(io.ReaderAt)
	if !ok {
		c.Errorf("%s is no file that can be read in any order", name)
		return 9
	}
	r, err := zip.NewReader(at, size)
	if err != nil {
		u.out.Flush()
		fmt.Fprintf(c.Stderr, "  End-of-central-directory signature not found.  Either this file is not\n"+
			"  a zipfile, or it constitutes one disk of a multi-part archive.  In the\n"+
			"  latter case the central directory and zipfile comment will be found on\n"+
			"  the last disk(s) of this archive.\n"+
			"unzip:  cannot find zipfile directory in one of %s or\n        %s.zip, and cannot find %s.ZIP, period.\n", name, name, name)
		return 9
	}
	u.hit = make([]bool, len(u.want))
	switch {
	case u.names:
		for _, f := range u.chosen(r.File) {
			u.out.WriteString(printable(f.Name) + "\n")
		}
	case u.info:
		u.zipinfo(r, name, size)
	case u.comment:
		if r.Comment != "" {
			u.out.WriteString(r.Comment + "\n")
		}
	case u.list, u.long:
		u.table(r)
	default:
		u.extract(r, name)
	}
	u.missed()
	return u.code
}

func (u *unzipRun) usage() (int, bool) {
	fmt.Fprintf(u.c.Stdout, "Usage: unzip [-Z] [-opts[modifiers]] file[.zip] [list] [-x xlist] [-d exdir]\n")
	u.out.Flush()
	return 0, false
}

func (u *unzipRun) options() (int, bool) {
	args := u.c.Args
	files := 0
	exclude, plain := false, false
	for i := 0; i < len(args); i++ {
		a := args[i]
		if !plain && len(a) > 1 && a[0] == '-' {
			if a == "--" {
				plain = true
				continue
			}
			if a == "--help" {
				return u.usage()
			}
			exclude = false
		letters:
			for j := 1; j < len(a); j++ {
				switch a[j] {
				case 'l':
					u.list = true
				case 'v':
					u.long = true
				case 't':
					u.test = true
				case 'p':
					u.pipe = true
				case 'c':
					u.cat = true
				case 'n':
					u.never, u.always = true, false
				case 'o':
					u.always, u.never = true, false
				case 'j':
					u.junk = true
				case 'u':
					u.update = true
				case 'f':
					u.freshen = true
				case 'q':
					u.quiet++
				case 'L':
					u.lower = true
				case 'C':
					u.fold = true
				case 'z':
					u.comment = true
				case 'D':
					u.noTimes = true
				case 'Z':
					u.info = true
				case '1':
					if !u.info {
						return u.bad(a[j])
					}
					u.names = true
				case 'm', 's', 'h':
					if !u.info {
						return u.bad(a[j])
					}
				case 'X', 'K', 'b', 'B', 'U': // owners, modes and record formats that are not there
				case 'd':
					if u.dir = a[j+1:]; u.dir == "" {
						if i++; i == len(args) {
							fmt.Fprintf(u.c.Stderr, "error:  must specify directory to which to extract with -d option\n")
							return 10, false
						}
						u.dir = args[i]
					}
					break letters
				case 'x':
					exclude = true
				case 'P':
					u.c.Errorf("encryption is not supported")
					return 82, false
				default:
					return u.bad(a[j])
				}
			}
			continue
		}
		switch {
		case exclude:
			u.exclude = append(u.exclude, a)
		case files == 0:
			u.file = a
			files++
		default:
			u.want = append(u.want, a)
		}
	}
	if files == 0 {
		if u.long {
			u.out.WriteString("UnZip (exthost, after UnZip 6.00)\n")
			return 0, false
		}
		return u.usage()
	}
	return 0, true
}

func (u *unzipRun) bad(letter byte) (int, bool) {
	u.c.Errorf("option '-%c' is not supported", letter)
	return 10, false
}

// open finds the archive: by its name, or with .zip behind it.
func (u *unzipRun) open() (cmd.File, int64, string, int) {
	for _, end := range []string{"", ".zip", ".ZIP"} {
		f, err := u.c.OpenFile(u.file+end, os.O_RDONLY, 0)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			u.c.Errorf(" cannot open %s: %s", u.file+end, cmd.Reason(err))
			return nil, 0, "", 9
		}
		fi, err := f.Stat()
		if err != nil || fi.IsDir() {
			f.Close()
			continue
		}
		name := u.file + end
		if !u.names && !(u.quiet > 0 && (!u.cat || u.quiet > 0)) && !u.pipe && !u.comment {
			u.out.WriteString("Archive:  " + name + "\n")
		}
		return f, fi.Size(), name, 0
	}
	fmt.Fprintf(u.c.Stderr, "unzip:  cannot find or open %s, %s.zip or %s.ZIP.\n", u.file, u.file, u.file)
	return nil, 0, "", 9
}

// chosen are the members that were asked for.
func (u *unzipRun) chosen(all []*zip.File) []*zip.File {
	flags := glob.Flag(0)
	if u.fold {
		flags = glob.Fold
	}
	var list []*zip.File
	for _, f := range all {
		ok := len(u.want) == 0
		for i, p := range u.want {
			if glob.Match(p, f.Name, flags) {
				ok, u.hit[i] = true, true
			}
		}
		for _, p := range u.exclude {
			if glob.Match(p, f.Name, flags) {
				ok = false
			}
		}
		if ok {
			list = append(list, f)
		}
	}
	return list
}

func (u *unzipRun) missed() {
	for i, ok := range u.hit {
		if !ok && !(u.list || u.long || u.info || u.comment) {
			u.out.Flush()
			fmt.Fprintf(u.c.Stderr, "caution: filename not matched:  %s\n", u.want[i])
		}
		if !ok {
			u.code = max(u.code, 11)
		}
	}
}

// printable shows control characters as ^X.
func printable(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0 {
		return name
	}
	var b strings.Builder
	for i := range len(name) {
		switch x := name[i]; {
		case x < ' ':
			b.WriteString("^" + string(x+'@'))
		case x == 0x7f:
			b.WriteString("^?")
		default:
			b.WriteByte(x)
		}
	}
	return b.String()
}

// modified is when a member was changed, in the caller's zone.
func (u *unzipRun) modified(f *zip.File) time.Time {
	zone := sys.Local(u.c)
	extra := f.Extra
	for len(extra) >= 4 {
		id, n := binary.LittleEndian.Uint16(extra), int(binary.LittleEndian.Uint16(extra[2:]))
		if id == 0x5455 || id == 0x000a || id == 0x000d {
			return f.Modified.In(zone)
		}
		if 4+n > len(extra) {
			break
		}
		extra = extra[4+n:]
	}
	// The old field has the time of a clock on a wall.
	t := f.Modified.UTC()
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, zone)
}

// saved is how many percent smaller a member is.
func saved(packed, plain uint64) int64 {
	if plain == 0 {
		return 0
	}
	if packed > plain {
		return -int64((200*(packed-plain)/plain + 1) / 2)
	}
	return int64((200*(plain-packed)/plain + 1) / 2)
}

func method(f *zip.File) string {
	switch f.Method {
	case zip.Store:
		return "Stored"
	case zip.Deflate:
		return "Defl:" + string("NXFS"[f.Flags>>1&3])
	case 9:
		return "Def64"
	case 12:
		return "BZip2"
	case 14:
		return "LZMA"
	case 93:
		return "Zstd"
	}
	return fmt.Sprintf("Unk:%03d", f.Method)
}

func count(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

// table is -l and -v.
func (u *unzipRun) table(r *zip.Reader) {
	var plain, packed uint64
	list := u.chosen(r.File)
	head := u.quiet < 2
	if head {
		if u.long {
			u.out.WriteString(" Length   Method    Size  Cmpr    Date    Time   CRC-32   Name\n--------  ------  ------- ---- ---------- ----- --------  ----\n")
		} else {
			u.out.WriteString("  Length      Date    Time    Name\n---------  ---------- -----   ----\n")
		}
	}
	for _, f := range list {
		cmd.Check(u.ctx)
		plain += f.UncompressedSize64
		packed += f.CompressedSize64
		date := sys.Strftime("%Y-%m-%d %H:%M", u.modified(f))
		if u.long {
			fmt.Fprintf(u.out, "%8d  %-6s %8d %3d%% %s %08x  %s\n", f.UncompressedSize64, method(f), f.CompressedSize64, saved(f.CompressedSize64, f.UncompressedSize64), date, f.CRC32, printable(f.Name))
		} else {
			fmt.Fprintf(u.out, "%9d  %s   %s\n", f.UncompressedSize64, date, printable(f.Name))
		}
	}
	if head {
		if u.long {
			fmt.Fprintf(u.out, "--------          -------  ---                            -------\n%8d         %8d %3d%%                            %s\n", plain, packed, saved(packed, plain), count(len(list)))
		} else {
			fmt.Fprintf(u.out, "---------                     -------\n%9d                     %s\n", plain, count(len(list)))
		}
	}
}

// zipinfo is -Z.
func (u *unzipRun) zipinfo(r *zip.Reader, name string, size int64) {
	var plain, packed uint64
	list := u.chosen(r.File)
	fmt.Fprintf(u.out, "Zip file size: %d bytes, number of entries: %d\n", size, len(r.File))
	for _, f := range list {
		plain += f.UncompressedSize64
		packed += f.CompressedSize64
		text := byte('b')
		if len(r.File) > 0 && f.Flags != 0xffff && textual(f) {
			text = 't'
		}
		extra := byte('-')
		switch {
		case f.Flags&8 != 0 && len(f.Extra) > 0:
			extra = 'X'
		case f.Flags&8 != 0:
			extra = 'l'
		case len(f.Extra) > 0:
			extra = 'x'
		}
		how := "stor"
		if f.Method == zip.Deflate {
			how = "def" + string("NXFS"[f.Flags>>1&3])
		}
		mode := f.Mode()
		kind := byte('-')
		switch {
		case mode.IsDir():
			kind = 'd'
		case mode&fs.ModeSymlink != 0:
			kind = 'l'
		}
		fmt.Fprintf(u.out, "%c%s  %d.%d %s %8d %c%c %s %s %s\n", kind, mode.Perm().String()[1:], f.CreatorVersion&0xff/10, f.CreatorVersion&0xff%10, map[uint16]string{3: "unx", 0: "fat"}[f.CreatorVersion>>8],
			f.UncompressedSize64, text, extra, how, sys.Strftime("%y-%b-%d %H:%M", u.modified(f)), printable(f.Name))
	}
	rate := 0.0
	if plain > 0 {
		rate = 100 * (1 - float64(packed)/float64(plain))
	}
	fmt.Fprintf(u.out, "%s, %d bytes uncompressed, %d bytes compressed:  %.1f%%\n", count(len(list)), plain, packed, rate)
}

// textual guesses whether a member is text: the flag of the archive is not to be had.
func textual(f *zip.File) bool {
	if f.UncompressedSize64 == 0 || strings.HasSuffix(f.Name, "/") || f.Method != zip.Store && f.Method != zip.Deflate {
		return false
	}
	in, err := f.Open()
	if err != nil {
		return false
	}
	defer in.Close()
	head, _ := io.ReadAll(io.LimitReader(in, 512))
	for _, b := range head {
		if b < 7 || b > 13 && b < ' ' && b != 0x1b {
			return false
		}
	}
	return true
}

// inside is a name as it is made below the target, "" when nothing is left of it.
func (u *unzipRun) inside(name string) string {
	if strings.HasPrefix(name, "/") {
		u.out.Flush()
		fmt.Fprintf(u.c.Stderr, "warning:  stripped absolute path spec from %s\n", printable(name))
		u.code = max(u.code, 1)
	}
	var parts []string
	skipped := false
	for _, part := range strings.Split(name, "/") {
		switch part {
		case "", ".":
		case "..":
			skipped = true
		default:
			parts = append(parts, part)
		}
	}
	if skipped {
		u.out.Flush()
		fmt.Fprintf(u.c.Stderr, "warning:  skipped \"../\" path component(s) in %s\n", printable(name))
		u.code = max(u.code, 1)
	}
	if u.junk && len(parts) > 0 {
		parts = parts[len(parts)-1:]
	}
	name = strings.Join(parts, "/")
	if u.lower {
		name = strings.ToLower(name)
	}
	return name
}

func (u *unzipRun) extract(r *zip.Reader, name string) {
	toFiles := !u.test && !u.pipe && !u.cat
	shown := ""
	if toFiles {
		dir := u.dir
		if dir == "" {
			dir = "."
		} else {
			shown = strings.TrimRight(dir, "/") + "/"
			if dir == "/" {
				shown = "/"
			}
		}
		if _, err := os.Stat(u.c.Path(dir)); errors.Is(err, fs.ErrNotExist) {
			if err := os.Mkdir(strings.TrimRight(u.c.Path(dir), "/"), 0o777&^u.c.Umask); err != nil {
				u.out.Flush()
				fmt.Fprintf(u.c.Stderr, "checkdir:  cannot create extraction directory: %s\n           %s\n", dir, cmd.Reason(err))
				u.code = 2
				return
			}
		}
		to, err := openTarget(u.c, dir)
		if err != nil {
			u.out.Flush()
			fmt.Fprintf(u.c.Stderr, "checkdir:  cannot open extraction directory: %s\n           %s\n", dir, cmd.Reason(err))
			u.code = 2
			return
		}
		defer to.root.Close()
		u.to = to
	}
	failures := 0
	type stamp struct {
		name string
		when time.Time
	}
	var folders []stamp
	for _, f := range u.chosen(r.File) {
		cmd.Check(u.ctx)
		if f.Flags&1 != 0 {
			u.out.Flush()
			fmt.Fprintf(u.c.Stderr, "   skipping: %-22s  encryption is not supported\n", printable(f.Name))
			u.code = max(u.code, 81)
			continue
		}
		if f.Method != zip.Store && f.Method != zip.Deflate {
			u.out.Flush()
			fmt.Fprintf(u.c.Stderr, "   skipping: %-22s  unsupported compression method %d\n", printable(f.Name), f.Method)
			u.code = max(u.code, 81)
			continue
		}
		folder := strings.HasSuffix(f.Name, "/")
		switch {
		case u.test:
			u.say("    testing: %-22s  ", printable(f.Name))
			if err := u.data(f, io.Discard); err != nil {
				failures++
				u.say("%s\n", wrong(err))
				u.code = max(u.code, 2)
				if u.quiet > 0 {
					fmt.Fprintf(u.out, "    testing: %-22s  %s\n", printable(f.Name), wrong(err))
				}
				continue
			}
			u.say(" OK\n")
			continue
		case u.pipe || u.cat:
			if folder {
				continue
			}
			if u.cat {
				u.say("%s: %-22s  \n", verb(f), printable(f.Name))
			}
			if err := u.data(f, u.out); err != nil {
				u.out.Flush()
				fmt.Fprintf(u.c.Stderr, "%s: %s\n", printable(f.Name), wrong(err))
				u.code = max(u.code, 2)
			}
			if u.cat {
				u.say("\n")
			}
			continue
		}
		inner := u.inside(f.Name)
		if inner == "" || folder && u.junk {
			continue
		}
		label := printable(shown + inner)
		if folder {
			fi, err := u.to.root.Lstat(inner)
			if err == nil && fi.IsDir() || u.freshen {
				continue
			}
			u.say("   creating: %s/\n", label)
			if err := u.to.dir(inner); err != nil {
				u.problem("checkdir error:  cannot create %s\n                 %s\n                 unable to process %s.\n", label, reason(err), printable(f.Name))
				continue
			}
			folders = append(folders, stamp{inner, u.modified(f)})
			continue
		}
		inner, label, ok := u.mayWrite(f, inner, label, shown)
		if !ok {
			continue
		}
		if f.Mode()&fs.ModeSymlink != 0 {
			u.link(f, inner, label)
			continue
		}
		u.say("%s: %-22s  ", verb(f), label)
		out, err := u.to.create(inner)
		if err != nil {
			u.say("\n")
			u.problem("error:  cannot create %s\n        %s\n", label, reason(err))
			continue
		}
		err = u.data(f, out)
		if failed := out.Close(); err == nil && failed != nil {
			err = failed
		}
		if err != nil {
			u.say("%s", wrong(err))
			u.code = max(u.code, 2)
			if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
				u.say("\n")
				u.problem("%s:  write error (disk full?).\n", label)
				u.code = 50
				return
			}
		}
		u.say("\n")
		if !u.noTimes {
			u.to.times(inner, u.modified(f))
		}
	}
	if len(u.links) > 0 {
		u.say("finishing deferred symbolic links:\n")
		for _, l := range u.links {
			u.say("  %-22s -> %s\n", l.shown, printable(l.to))
			if err := u.to.symlink(l.to, l.name); err != nil {
				u.problem("symlink error: %s\n", reason(err))
			}
		}
	}
	for i := len(folders) - 1; i >= 0; i-- {
		if !u.noTimes {
			u.to.times(folders[i].name, folders[i].when)
		}
	}
	if u.test && u.quiet < 2 {
		switch missed := !u.all(); {
		case failures > 0:
			fmt.Fprintf(u.out, "At least one error was detected in %s.\n", name)
		case missed || len(u.want) > 0 || len(u.exclude) > 0:
			fmt.Fprintf(u.out, "No errors detected in %s for the %s tested.\n", name, count(len(u.chosen(r.File))))
		default:
			fmt.Fprintf(u.out, "No errors detected in compressed data of %s.\n", name)
		}
	}
}

// all tells whether each pattern found something.
func (u *unzipRun) all() bool {
	for _, ok := range u.hit {
		if !ok {
			return false
		}
	}
	return true
}

func verb(f *zip.File) string {
	if f.Method == zip.Store {
		return " extracting"
	}
	return "  inflating"
}

func (u *unzipRun) say(format string, args ...any) {
	if u.quiet == 0 {
		fmt.Fprintf(u.out, format, args...)
	}
}

func (u *unzipRun) problem(format string, args ...any) {
	u.out.Flush()
	fmt.Fprintf(u.c.Stderr, format, args...)
	u.code = max(u.code, 2)
}

// data writes what a member holds, and checks its sum.
func (u *unzipRun) data(f *zip.File, w io.Writer) error {
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	sum := crc32.NewIEEE()
	_, err = copyData(u.ctx, io.MultiWriter(w, sum), in)
	if errors.Is(err, zip.ErrChecksum) {
		return fmt.Errorf("bad CRC %08x  (should be %08x)", sum.Sum32(), f.CRC32)
	}
	return err
}

// wrong words what is wrong with a member.
func wrong(err error) string {
	var writing *writeError
	switch {
	case errors.As(err, &writing):
		return cmd.Reason(err)
	case strings.HasPrefix(err.Error(), "bad CRC"):
		return " " + err.Error()
	}
	return "  error:  invalid compressed data to inflate"
}

// mayWrite asks where the file is there already.
func (u *unzipRun) mayWrite(f *zip.File, inner, label, shown string) (string, string, bool) {
	for {
		fi, err := u.to.root.Lstat(inner)
		exists := err == nil
		if exists && fi.IsDir() {
			u.problem("error:  cannot create %s\n        Is a directory\n", label)
			return "", "", false
		}
		if u.freshen && !exists || (u.update || u.freshen) && exists && !u.modified(f).After(fi.ModTime().Truncate(time.Second)) {
			return "", "", false
		}
		if !exists || u.always {
			return inner, label, true
		}
		if u.never {
			return "", "", false
		}
		u.out.Flush()
		fmt.Fprintf(u.c.Stderr, "replace %s? [y]es, [n]o, [A]ll, [N]one, [r]ename: ", label)
		answer, ok := u.answer()
		switch {
		case !ok:
			fmt.Fprintf(u.c.Stderr, " NULL\n(EOF or read error, treating as \"[N]one\" ...)\n")
			u.never = true
			u.code = max(u.code, 1)
		case answer == "y" || answer == "yes" || answer == "Y":
			return inner, label, true
		case answer == "A":
			u.always = true
		case answer == "n" || answer == "no":
			return "", "", false
		case answer == "N":
			u.never = true
		case answer == "r":
			fmt.Fprintf(u.c.Stderr, "new name: ")
			name, ok := u.answer()
			if !ok || name == "" {
				return "", "", false
			}
			if inner = path.Clean(strings.TrimLeft(u.inside(name), "/")); inner == "." {
				return "", "", false
			}
			label = printable(shown + inner)
		default:
			fmt.Fprintf(u.c.Stderr, "error:  invalid response [%s]\n", answer)
		}
	}
}

// answer reads a line of standard input, and no byte more.
func (u *unzipRun) answer() (string, bool) {
	var line []byte
	var b [1]byte
	for {
		n, err := u.c.Stdin.Read(b[:])
		if n > 0 && b[0] == '\n' {
			return string(line), true
		}
		line = append(line, b[:n]...)
		if err != nil {
			return string(line), len(line) > 0
		}
	}
}

// link remembers a symbolic link: they are made when all files are there, so that none is written through one.
func (u *unzipRun) link(f *zip.File, inner, label string) {
	const most = 4096
	var b strings.Builder
	if f.UncompressedSize64 > most {
		u.problem("error:  the link %s is too long\n", label)
		return
	}
	if err := u.data(f, &b); err != nil {
		u.problem("%s: %s\n", label, wrong(err))
		return
	}
	u.say("    linking: %-22s  -> %s \n", label, printable(b.String()))
	u.links = append(u.links, link{inner, label, b.String()})
}
