package archive

import (
	"archive/tar"
	"bufio"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/files/glob"
	"github.com/exthost/exthost/guests/sh/internal/sys"
)

const tarOpts = "c,create x,extract ,get t,list r,append u,update A,catenate d,diff ,delete f,file= z,gzip ,gunzip ,ungzip j,bzip2 J,xz ,zstd ,lzma Z,compress " +
	"a,auto-compress C,directory= v,verbose p,preserve-permissions ,same-permissions k,keep-old-files ,skip-old-files ,overwrite U,unlink-first O,to-stdout " +
	"m,touch o ,no-same-owner ,same-owner ,no-same-permissions T,files-from= ,null ,exclude= X,exclude-from= ,exclude-vcs ,strip-components= " +
	",wildcards ,no-wildcards P,absolute-names h,dereference ,owner= ,group= ,mode= ,mtime= ,sort= ,numeric-owner ,no-recursion ,recursion ,format= H= " +
	",transform= ,xform= I,use-compress-program= ,to-command= ,full-time ,one-file-system ,ignore-failed-read w,interactive W,verify ,remove-files " +
	"b,blocking-factor= S,sparse ,warning= ,totals ,force-local ,delay-directory-restore ,keep-directory-symlink ,no-xattrs ,no-acls ,no-selinux " +
	",help ,version ,usage"

// errTar is a mistake that ends tar.
type errTar string

func (e errTar) Error() string { return string(e) }

// tarRun is one run of tar.
type tarRun struct {
	ctx context.Context
	c   *cmd.Call

	op                                     byte
	file, compress                         string
	dir                                    string
	verbose                                int
	stdout, keep, skip, touch, wild        bool
	absolute, follow, flat, numeric, auto  bool
	fullTime, remove, ignoreFailed, nulled bool
	strip                                  int
	exclude                                []string
	owner, group                           string
	mtime                                  time.Time
	hasMtime                               bool
	format                                 tar.Format
	members                                []member
	list                                   *bufio.Writer
	code                                   int
	told                                   map[string]bool
	width                                  int
	self                                   fs.FileInfo // the archive that is written
	links                                  map[[2]uint64]string
}

// member is a file to pack, or a name to look for; dir is the folder that -C went to before it.
type member struct {
	name, dir string
	found     bool
}

func tarCommand(ctx context.Context, c *cmd.Call) int {
	r := &tarRun{ctx: ctx, c: c, file: "-", width: 19, told: map[string]bool{}, format: tar.FormatGNU, links: map[[2]uint64]string{}}
	code, ok := r.options()
	if !ok {
		return code
	}
	var err error
	switch r.op {
	case 'c':
		err = r.create()
	default:
		err = r.read()
	}
	if r.list != nil {
		r.list.Flush()
	}
	if err != nil {
		c.Errorf("%v", err)
		return 2
	}
	if r.code != 0 {
		c.Errorf("Exiting with failure status due to previous errors")
	}
	return r.code
}

func (r *tarRun) usage(format string, args ...any) (int, bool) {
	r.c.Errorf(format, args...)
	fmt.Fprintln(r.c.Stderr, "Try 'tar --help' or 'tar --usage' for more information.")
	return 2, false
}

// modern turns the old style "czf" into "-c -z -f FILE".
func modern(args []string) ([]string, error) {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || args[0] == "" {
		return args, nil
	}
	opts := cmd.Options(tarOpts)
	var list []string
	rest := args[1:]
	for _, letter := range args[0] {
		list = append(list, "-"+string(letter))
		for _, o := range opts {
			if o.Short == letter && o.Arg == cmd.Value {
				if len(rest) == 0 {
					return nil, errTar(fmt.Sprintf("Old option '%c' requires an argument.", letter))
				}
				list[len(list)-1] += rest[0]
				rest = rest[1:]
			}
		}
	}
	return append(list, rest...), nil
}

func (r *tarRun) options() (int, bool) {
	c := r.c
	args, err := modern(c.Args)
	if err != nil {
		return r.usage("%v", err)
	}
	opts := cmd.Options(tarOpts)
	for len(args) > 0 {
		// Piece by piece, as -C counts for the names behind it.
		given, rest, err := opts.ParseLeading(args)
		if err != nil {
			_, _ = r.usage("%v", err)
			return 64, false
		}
		for _, g := range given {
			if code, ok := r.option(g); !ok {
				return code, false
			}
		}
		if n := len(args) - len(rest); n > 0 && args[n-1] == "--" && len(rest) > 0 {
			for _, name := range rest {
				r.members = append(r.members, member{name: name, dir: r.dir})
			}
			break
		}
		if len(rest) == 0 {
			break
		}
		r.members = append(r.members, member{name: rest[0], dir: r.dir})
		args = rest[1:]
	}
	if r.op == 0 {
		return r.usage("You must specify one of the '-Acdtrux', '--delete' or '--test-label' options")
	}
	return 0, true
}

func (r *tarRun) option(g cmd.Given) (int, bool) {
	c := r.c
	refuse := func(what string) (int, bool) {
		c.Errorf("%s is not supported", what)
		return 2, false
	}
	switch g.Key {
	case "c", "x", "t", "get":
		op := g.Key[0]
		if g.Key == "get" {
			op = 'x'
		}
		if r.op != 0 && r.op != op {
			return r.usage("You may not specify more than one '-Acdtrux', '--delete' or  '--test-label' option")
		}
		r.op = op
	case "r", "u", "A", "d", "delete":
		return refuse("changing or comparing an archive")
	case "f":
		r.file = g.Value
	case "z", "gunzip", "ungzip":
		r.compress = "gzip"
	case "j":
		r.compress = "bzip2"
	case "J", "zstd", "lzma", "Z":
		return refuse("this compression (gzip can be read and written, bzip2 read)")
	case "a":
		r.auto = true
	case "C":
		if r.dir == "" || strings.HasPrefix(g.Value, "/") {
			r.dir = g.Value
		} else {
			r.dir = join(r.dir, g.Value)
		}
	case "v":
		r.verbose++
	case "k":
		r.keep = true
	case "skip-old-files":
		r.skip = true
	case "O":
		r.stdout = true
	case "m":
		r.touch = true
	case "T":
		end := byte('\n')
		if r.nulled {
			end = 0
		}
		f, err := c.Open(g.Value)
		if err != nil {
			c.Errorf("%s: Cannot open: %s", g.Value, cmd.Reason(err))
			c.Errorf("Error is not recoverable: exiting now")
			return 2, false
		}
		defer f.Close()
		list, err := lines(r.ctx, f, end)
		if err != nil {
			c.Errorf("%s: Read error: %s", g.Value, cmd.Reason(err))
			return 2, false
		}
		for _, name := range list {
			r.members = append(r.members, member{name: name, dir: r.dir})
		}
		if len(list) == 0 && r.op == 'c' {
			// An empty list makes an empty archive.
			r.members = append(r.members, member{name: ""})
		}
	case "null":
		r.nulled = true
	case "exclude":
		r.exclude = append(r.exclude, g.Value)
	case "X":
		f, err := c.Open(g.Value)
		if err != nil {
			c.Errorf("%s: Cannot open: %s", g.Value, cmd.Reason(err))
			c.Errorf("Error is not recoverable: exiting now")
			return 2, false
		}
		defer f.Close()
		list, err := lines(r.ctx, f, '\n')
		if err != nil {
			c.Errorf("%s: Read error: %s", g.Value, cmd.Reason(err))
			return 2, false
		}
		r.exclude = append(r.exclude, list...)
	case "exclude-vcs":
		r.exclude = append(r.exclude, "CVS", "RCS", "SCCS", ".git", ".gitignore", ".gitattributes", ".gitmodules", ".cvsignore", ".svn", ".arch-ids", "{arch}", "=RELEASE-ID",
			"=meta-update", "=update", ".bzr", ".bzrignore", ".bzrtags", ".hg", ".hgignore", ".hgrags", "_darcs")
	case "strip-components":
		n, err := strconv.Atoi(g.Value)
		if err != nil || n < 0 {
			return r.usage("%s: Invalid number of elements", g.Value)
		}
		r.strip = n
	case "wildcards":
		r.wild = true
	case "no-wildcards":
		r.wild = false
	case "P":
		r.absolute = true
	case "h":
		r.follow = true
	case "owner":
		r.owner = g.Value
	case "group":
		r.group = g.Value
	case "mtime":
		t, ok := sys.ParseDate(g.Value, time.Now().In(sys.Local(c)))
		if !ok {
			if fi, err := os.Stat(c.Path(g.Value)); err == nil && strings.ContainsAny(g.Value, "/.") {
				t, ok = fi.ModTime(), true
			}
		}
		if !ok {
			c.Errorf("Invalid mtime: %s", g.Value)
			return 2, false
		}
		r.mtime, r.hasMtime = t, true
	case "numeric-owner":
		r.numeric = true
	case "no-recursion":
		r.flat = true
	case "recursion":
		r.flat = false
	case "format", "H":
		format, ok := map[string]tar.Format{"gnu": tar.FormatGNU, "oldgnu": tar.FormatGNU, "ustar": tar.FormatUSTAR, "pax": tar.FormatPAX, "posix": tar.FormatPAX}[g.Value]
		if !ok {
			return refuse("format " + g.Value)
		}
		r.format = format
	case "I":
		switch program, _, _ := strings.Cut(g.Value, " "); program {
		case "gzip", "pigz":
			r.compress = "gzip"
		case "bzip2", "pbzip2":
			r.compress = "bzip2"
		default:
			return refuse("compression by " + program)
		}
	case "transform", "xform":
		return refuse("--transform")
	case "to-command":
		return refuse("--to-command")
	case "w", "W", "totals":
		return refuse("option " + g.Key)
	case "full-time":
		r.fullTime = true
	case "remove-files":
		r.remove = true
	case "ignore-failed-read":
		r.ignoreFailed = true
	case "sort":
		if g.Value != "name" && g.Value != "none" && g.Value != "inode" {
			return r.usage("%v", cmd.BadWord(g.Value, "--sort", "none", "name", "inode"))
		}
	case "help", "usage":
		fmt.Fprintln(c.Stdout, "Usage: tar [OPTION...] [FILE]...")
		return 0, false
	case "version":
		fmt.Fprintln(c.Stdout, "tar (exthost, after GNU tar 1.34)")
		return 0, false
	case "p", "same-permissions", "no-same-permissions", "o", "no-same-owner", "same-owner", "mode", "overwrite", "U", "one-file-system", "b", "S", "warning",
		"force-local", "delay-directory-restore", "keep-directory-symlink", "no-xattrs", "no-acls", "no-selinux":
		// Files have neither modes nor owners here; holes, devices and blocks are the host's; the rest is what is done anyhow.
	}
	return 0, true
}

// fail reports what goes wrong with one file.
func (r *tarRun) fail(format string, args ...any) {
	if r.list != nil {
		r.list.Flush()
	}
	r.c.Errorf(format, args...)
	r.code = 2
}

// once says something the first time.
func (r *tarRun) once(text string) {
	if !r.told[text] {
		r.told[text] = true
		if r.list != nil {
			r.list.Flush()
		}
		r.c.Errorf("%s", text)
	}
}

// safe takes from a name what would lead out of the target: a leading slash, and all up to the last "..".
func (r *tarRun) safe(name, what string) string {
	cut := 0
	for at := 0; at < len(name); {
		end := strings.IndexByte(name[at:], '/')
		part := name[at:]
		if end >= 0 {
			part = name[at : at+end]
		}
		if part == ".." {
			cut = min(len(name), at+len(part)+1)
		}
		if end < 0 {
			break
		}
		at += end + 1
	}
	for cut < len(name) && name[cut] == '/' {
		cut++
	}
	if cut > 0 {
		r.once(fmt.Sprintf("Removing leading `%s' from %s", name[:cut], what))
	}
	if cut == len(name) {
		return "."
	}
	return name[cut:]
}

func (r *tarRun) excluded(name string) bool {
	name = strings.TrimSuffix(name, "/")
	for _, p := range r.exclude {
		p = strings.TrimSuffix(p, "/")
		// A pattern matches a whole name, or what follows any slash in it, or a folder above it.
		for at := 0; ; {
			rest := name[at:]
			for end := 0; end <= len(rest); end++ {
				if (end == len(rest) || rest[end] == '/') && glob.Match(p, rest[:end], 0) {
					return true
				}
			}
			next := strings.IndexByte(rest, '/')
			if next < 0 {
				break
			}
			at += next + 1
		}
	}
	return false
}

// wanted tells whether a member of the archive was asked for.
func (r *tarRun) wanted(name string) bool {
	if len(r.members) == 0 {
		return true
	}
	name = strings.TrimSuffix(name, "/")
	ok := false
	for i := range r.members {
		m := &r.members[i]
		want := strings.TrimRight(m.name, "/")
		match := name == want || strings.HasPrefix(name, want+"/")
		if r.wild && !match {
			match = glob.Match(want, name, 0)
			for end := strings.LastIndexByte(name, '/'); end > 0 && !match; end = strings.LastIndexByte(name[:end], '/') {
				match = glob.Match(want, name[:end], 0)
			}
		}
		if match {
			m.found, ok = true, true
		}
	}
	return ok
}

// open opens the archive for reading, decompressed.
func (r *tarRun) open() (io.Reader, func(), error) {
	var source io.Reader
	done := func() {}
	if r.file == "-" {
		source = r.c.Stdin
	} else {
		f, err := r.c.OpenFile(r.file, os.O_RDONLY, 0)
		if err == nil {
			if fi, failed := f.Stat(); failed == nil && fi.IsDir() {
				r.c.Errorf("%s: Cannot read: Is a directory", r.file)
				r.c.Errorf("At beginning of tape, quitting now")
				return nil, nil, errTar("Error is not recoverable: exiting now")
			}
		}
		if err != nil {
			r.c.Errorf("%s: Cannot open: %s", r.file, cmd.Reason(err))
			return nil, nil, errTar("Error is not recoverable: exiting now")
		}
		source, done = f, func() { f.Close() }
	}
	in := bufio.NewReaderSize(cmd.Reader(r.ctx, source), 64<<10)
	head, _ := in.Peek(6)
	if len(head) == 0 && r.file != "/dev/null" {
		done()
		r.c.Errorf("This does not look like a tar archive")
		return nil, nil, errTar("Exiting with failure status due to previous errors")
	}
	kind := ""
	switch {
	case len(head) >= 2 && string(head[:2]) == "\x1f\x8b":
		kind = "gzip"
	case len(head) >= 3 && string(head[:3]) == "BZh":
		kind = "bzip2"
	case string(head) == "\xfd7zXZ\x00", len(head) >= 4 && string(head[:4]) == "\x28\xb5\x2f\xfd":
		done()
		return nil, nil, errTar(r.file + ": this compression is not supported (gzip can be read and written, bzip2 read)")
	}
	if r.compress != "" && r.compress != kind {
		done()
		if r.compress == "gzip" {
			fmt.Fprintf(r.c.Stderr, "\ngzip: stdin: not in gzip format\n")
		} else {
			fmt.Fprintf(r.c.Stderr, "bzip2: (stdin) is not a bzip2 file.\n")
		}
		r.c.Errorf("Child returned status %d", map[string]int{"gzip": 1, "bzip2": 2}[r.compress])
		return nil, nil, errTar("Error is not recoverable: exiting now")
	}
	switch kind {
	case "gzip":
		z, err := gzip.NewReader(in)
		if err != nil {
			done()
			return nil, nil, errTar("Error is not recoverable: exiting now")
		}
		return z, done, nil
	case "bzip2":
		return bzip2.NewReader(in), done, nil
	}
	return in, done, nil
}

// read is -t and -x.
func (r *tarRun) read() error {
	in, done, err := r.open()
	if err != nil {
		return err
	}
	defer done()
	r.list = r.c.Buffered()
	if r.op == 'x' && r.stdout && r.verbose > 0 {
		r.list = bufio.NewWriter(r.c.Stderr)
	}
	var to target
	if r.op == 'x' && !r.stdout {
		if r.absolute {
			return errTar("-P is not supported when files are unpacked: names stay below the target folder")
		}
		dir := r.dir
		if dir == "" {
			dir = "."
		}
		if to, err = openTarget(r.c, dir); err != nil {
			r.c.Errorf("%s: Cannot open: %s", dir, cmd.Reason(err))
			return errTar("Error is not recoverable: exiting now")
		}
		defer to.root.Close()
	}
	t := tar.NewReader(in)
	type stamp struct {
		name string
		when time.Time
	}
	var folders []stamp // their times change until all is in them
	first := true
	for {
		cmd.Check(r.ctx)
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			if first && errors.Is(err, tar.ErrHeader) || first && errors.Is(err, io.ErrUnexpectedEOF) {
				r.fail("This does not look like a tar archive")
				return nil
			}
			if errors.Is(err, tar.ErrHeader) {
				r.fail("Skipping to next header")
				return nil
			}
			r.list.Flush()
			return r.broken(err)
		}
		first = false
		if h.Typeflag == tar.TypeXGlobalHeader || !r.wanted(h.Name) || r.excluded(h.Name) {
			continue
		}
		if r.op == 't' {
			r.print(h, h.Name)
			continue
		}
		name, ok := stripped(h.Name, r.strip)
		if !ok {
			continue
		}
		if r.verbose > 0 {
			r.print(h, h.Name)
		}
		if r.stdout {
			if h.Typeflag == tar.TypeReg || h.Typeflag == tar.TypeGNUSparse {
				if _, err := copyData(r.ctx, r.c.Stdout, t); err != nil {
					return r.broken(err)
				}
			}
			continue
		}
		name = path.Clean(r.safe(name, "member names"))
		if err := r.extract(to, h, name, t); err != nil {
			var reading *readError
			if errors.As(err, &reading) {
				return r.broken(reading.err)
			}
			r.complain(h, name, err)
			continue
		}
		if h.Typeflag == tar.TypeDir && !r.touch {
			folders = append(folders, stamp{name, h.ModTime})
		}
	}
	for i := len(folders) - 1; i >= 0; i-- {
		to.times(folders[i].name, folders[i].when)
	}
	r.list.Flush()
	for _, m := range r.members {
		if !m.found {
			if !r.wild && strings.ContainsAny(m.name, "*?[") {
				r.once("Pattern matching characters used in file names")
				r.once("Use --wildcards to enable pattern matching, or --no-wildcards to suppress this warning")
			}
			r.fail("%s: Not found in archive", m.name)
		}
	}
	return nil
}

// readError is a broken archive, where extract fails otherwise.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }

// broken words what is wrong with an archive.
func (r *tarRun) broken(err error) error {
	switch {
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader):
		fmt.Fprintf(r.c.Stderr, "\ngzip: stdin: invalid compressed data--crc error\n")
		r.c.Errorf("Child returned status 1")
		return errTar("Error is not recoverable: exiting now")
	case errors.Is(err, io.ErrUnexpectedEOF):
		r.c.Errorf("Unexpected EOF in archive")
		return errTar("Error is not recoverable: exiting now")
	}
	r.c.Errorf("%s", cmd.Reason(err))
	return errTar("Error is not recoverable: exiting now")
}

// stripped takes n leading folders from a name.
func stripped(name string, n int) (string, bool) {
	for range n {
		name = strings.TrimLeft(name, "/")
		at := strings.IndexByte(name, '/')
		if at < 0 {
			return "", false
		}
		name = strings.TrimLeft(name[at:], "/")
	}
	return name, name != ""
}

func (r *tarRun) complain(h *tar.Header, name string, err error) {
	switch h.Typeflag {
	case tar.TypeSymlink:
		r.fail("%s: Cannot create symlink to %s: %s", name, cmd.Quote(h.Linkname), reason(err))
	case tar.TypeLink:
		r.fail("%s: Cannot hard link to %s: %s", name, cmd.Quote(h.Linkname), reason(err))
	case tar.TypeDir:
		r.fail("%s: Cannot mkdir: %s", name, reason(err))
	default:
		r.fail("%s: Cannot open: %s", name, reason(err))
	}
}

// extract makes one member.
func (r *tarRun) extract(to target, h *tar.Header, name string, data io.Reader) error {
	if name == "." {
		if h.Typeflag == tar.TypeDir {
			return nil
		}
		return fs.ErrExist
	}
	if h.Typeflag != tar.TypeDir && (r.keep || r.skip) {
		if _, err := to.root.Lstat(name); err == nil {
			if r.skip {
				return nil
			}
			return fs.ErrExist
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return to.dir(name)
	case tar.TypeSymlink:
		return to.symlink(h.Linkname, name)
	case tar.TypeLink:
		from, ok := stripped(h.Linkname, r.strip)
		if !ok {
			return fs.ErrNotExist
		}
		return to.link(r.ctx, path.Clean(r.safe(from, "hard link targets")), name)
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont:
	default:
		return errors.New("devices and pipes are not supported")
	}
	f, err := to.create(name)
	if err != nil {
		return err
	}
	_, err = copyData(r.ctx, f, data)
	if failed := f.Close(); err == nil && failed != nil {
		err = &writeError{failed}
	}
	if err != nil {
		var writing *writeError
		if !errors.As(err, &writing) {
			return &readError{err}
		}
		return err
	}
	if !r.touch {
		to.times(name, h.ModTime)
	}
	return nil
}

// print lists a member.
func (r *tarRun) print(h *tar.Header, name string) {
	long := r.op == 't' && r.verbose > 0 || r.verbose > 1
	if !long {
		r.list.WriteString(escape(name) + "\n")
		return
	}
	kind := byte('-')
	size := h.Size
	tail := ""
	switch h.Typeflag {
	case tar.TypeDir:
		kind = 'd'
	case tar.TypeSymlink:
		kind, tail = 'l', " -> "+escape(h.Linkname)
	case tar.TypeLink:
		kind, tail = 'h', " link to "+escape(h.Linkname)
	case tar.TypeChar:
		kind = 'c'
	case tar.TypeBlock:
		kind = 'b'
	case tar.TypeFifo:
		kind = 'p'
	}
	user, group := h.Uname, h.Gname
	if user == "" || r.numeric {
		user = strconv.Itoa(h.Uid)
	}
	if group == "" || r.numeric {
		group = strconv.Itoa(h.Gid)
	}
	digits := strconv.FormatInt(size, 10)
	pad := len(user) + len(group) + len(digits) + 2
	r.width = max(r.width, pad)
	format := "%Y-%m-%d %H:%M"
	if r.fullTime {
		format = "%Y-%m-%d %H:%M:%S"
	}
	fmt.Fprintf(r.list, "%c%s %s/%s %*s %s %s%s\n", kind, modeText(h.Mode), user, group, r.width-pad+len(digits), digits,
		sys.Strftime(format, h.ModTime.In(sys.Local(r.c))), escape(name), tail)
}

// modeText is the nine letters of a mode.
func modeText(mode int64) string {
	text := []byte(fs.FileMode(mode & 0o777).String()[1:])
	for i, bit := range []int64{0o4000, 0o2000, 0o1000} {
		if mode&bit == 0 {
			continue
		}
		at, set := 2+3*i, byte('s')
		if i == 2 {
			set = 't'
		}
		if text[at] == '-' {
			set -= 'a' - 'A'
		}
		text[at] = set
	}
	return string(text)
}

// create is -c.
func (r *tarRun) create() error {
	if len(r.members) == 0 {
		_, _ = r.usage("Cowardly refusing to create an empty archive")
		r.code = 0
		return errTar("Exiting with failure status due to previous errors")
	}
	if r.auto && r.compress == "" {
		switch {
		case strings.HasSuffix(r.file, ".gz"), strings.HasSuffix(r.file, ".tgz"), strings.HasSuffix(r.file, ".taz"):
			r.compress = "gzip"
		case strings.HasSuffix(r.file, ".bz2"), strings.HasSuffix(r.file, ".tbz2"):
			r.compress = "bzip2"
		case strings.HasSuffix(r.file, ".xz"), strings.HasSuffix(r.file, ".zst"), strings.HasSuffix(r.file, ".txz"):
			return errTar(r.file + ": this compression is not supported (gzip can be read and written, bzip2 read)")
		}
	}
	if r.compress == "bzip2" {
		return errTar("bzip2 can only be read; gzip can be written")
	}
	var out io.Writer = r.c.Stdout
	r.list = bufio.NewWriter(r.c.Stdout)
	var file cmd.File
	if r.file == "-" {
		r.list = bufio.NewWriter(r.c.Stderr)
	} else {
		f, err := r.c.OpenFile(r.file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666&^r.c.Umask)
		if err != nil {
			r.c.Errorf("%s: Cannot open: %s", r.file, cmd.Reason(err))
			return errTar("Error is not recoverable: exiting now")
		}
		file, out = f, f
		r.self, _ = f.Stat()
	}
	buffered := bufio.NewWriterSize(cmd.Writer(r.ctx, out), 64<<10)
	out = buffered
	var z *gzip.Writer
	if r.compress == "gzip" {
		z = gzip.NewWriter(buffered)
		z.OS = 3
		out = z
	}
	counted := &counter{w: out}
	t := tar.NewWriter(counted)
	for _, m := range r.members {
		if m.name != "" {
			if err := r.pack(t, m, m.name); err != nil {
				if file != nil {
					file.Close()
				}
				return err
			}
		}
	}
	err := t.Close()
	// Archives are whole records of twenty blocks.
	if rest := counted.n % 10240; err == nil && rest != 0 {
		_, err = counted.Write(make([]byte, 10240-rest))
	}
	if err == nil && z != nil {
		err = z.Close()
	}
	if err == nil {
		err = buffered.Flush()
	}
	if file != nil {
		if failed := file.Close(); err == nil {
			err = failed
		}
	}
	if err != nil {
		r.c.Errorf("%s: Cannot write: %s", r.file, cmd.Reason(err))
		return errTar("Error is not recoverable: exiting now")
	}
	if r.remove && r.code == 0 {
		for _, m := range r.members {
			if m.name != "" {
				r.removeTree(r.in(m, m.name))
			}
		}
	}
	return nil
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// in is a name of the archive as a file of the caller's.
func (r *tarRun) in(m member, name string) string {
	if m.dir == "" || strings.HasPrefix(name, "/") {
		return name
	}
	return join(m.dir, name)
}

// removeTree is --remove-files. It does not follow links.
func (r *tarRun) removeTree(name string) {
	cmd.Check(r.ctx)
	fi, err := lstat(r.c, name)
	if err == nil && fi.IsDir() {
		list, _ := os.ReadDir(r.c.Path(name))
		for _, e := range list {
			r.removeTree(join(name, e.Name()))
		}
	}
	if err == nil {
		err = os.Remove(strings.TrimRight(r.c.Path(name), "/"))
	}
	if err != nil {
		r.fail("%s: Cannot unlink: %s", name, cmd.Reason(err))
	}
}

// pack writes a file, and what is below it.
func (r *tarRun) pack(t *tar.Writer, m member, name string) error {
	cmd.Check(r.ctx)
	if r.excluded(name) {
		return nil
	}
	at := r.in(m, name)
	fi, err := lstat(r.c, at)
	if err == nil && r.follow {
		fi, err = os.Stat(r.c.Path(at))
	}
	if err != nil {
		if !r.ignoreFailed {
			r.fail("%s: Cannot stat: %s", name, cmd.Reason(err))
		}
		return nil
	}
	if r.self != nil && os.SameFile(fi, r.self) {
		r.list.Flush()
		r.c.Errorf("%s: file is the archive; not dumped", name)
		return nil
	}
	h := &tar.Header{Name: name, ModTime: fi.ModTime().Truncate(time.Second), Uid: ownerID, Gid: ownerID, Uname: owner, Gname: owner, Mode: 0o644, Typeflag: tar.TypeReg, Format: r.format}
	switch {
	case fi.IsDir():
		h.Typeflag, h.Mode = tar.TypeDir, 0o755
		h.Name = strings.TrimRight(h.Name, "/") + "/"
	case fi.Mode()&fs.ModeSymlink != 0:
		h.Typeflag, h.Mode = tar.TypeSymlink, 0o777
		if h.Linkname, err = os.Readlink(r.c.Path(at)); err != nil {
			r.fail("%s: Cannot readlink: %s", name, cmd.Reason(err))
			return nil
		}
	case fi.Mode().IsRegular():
		h.Size = fi.Size()
		if id, many := identity(fi); many {
			if first, ok := r.links[id]; ok {
				h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
			} else {
				r.links[id] = name
			}
		}
	default:
		r.list.Flush()
		r.c.Errorf("%s: socket ignored", name)
		return nil
	}
	if !r.absolute {
		h.Name = r.safe(h.Name, "member names")
		if h.Typeflag == tar.TypeDir && h.Name == "." {
			h.Name = "./"
		}
		if h.Typeflag == tar.TypeLink {
			h.Linkname = r.safe(h.Linkname, "hard link targets")
		}
	}
	r.overrule(h)
	if r.verbose > 0 {
		r.print(h, strings.TrimRight(name, "/")+strings.Repeat("/", map[bool]int{true: 1}[fi.IsDir()]))
		r.list.Flush()
	}
	var in cmd.File
	if h.Typeflag == tar.TypeReg {
		if in, err = r.c.OpenFile(at, os.O_RDONLY, 0); err != nil {
			if !r.ignoreFailed {
				r.fail("%s: Cannot open: %s", name, cmd.Reason(err))
			}
			return nil
		}
		defer in.Close()
	}
	if err := t.WriteHeader(h); err != nil {
		// What the format cannot say.
		h.Format = tar.FormatUnknown
		if err = t.WriteHeader(h); err != nil {
			r.c.Errorf("%s: %s", name, cmd.Reason(err))
			return errTar("Error is not recoverable: exiting now")
		}
	}
	if in != nil {
		n, err := copyData(r.ctx, t, io.LimitReader(in, h.Size))
		var writing *writeError
		switch {
		case errors.As(err, &writing):
			r.c.Errorf("%s: Cannot write: %s", r.file, cmd.Reason(err))
			return errTar("Error is not recoverable: exiting now")
		case err != nil:
			r.fail("%s: Read error at byte %d, while reading: %s", name, n, cmd.Reason(err))
		case n < h.Size:
			r.fail("%s: File shrank by %d bytes; padding with zeros", name, h.Size-n)
			r.code = max(r.code, 1)
		}
		for zero := make([]byte, 64<<10); n < h.Size; {
			k, err := t.Write(zero[:min(int64(len(zero)), h.Size-n)])
			if err != nil {
				return errTar("Error is not recoverable: exiting now")
			}
			n += int64(k)
		}
	}
	if h.Typeflag != tar.TypeDir || r.flat {
		return nil
	}
	f, err := os.Open(r.c.Path(at))
	var entries []string
	if err == nil {
		entries, err = f.Readdirnames(-1)
		f.Close()
	}
	if err != nil {
		r.fail("%s: Cannot open: %s", name, cmd.Reason(err))
		return nil
	}
	slices.Sort(entries)
	for _, e := range entries {
		if err := r.pack(t, m, join(name, e)); err != nil {
			return err
		}
	}
	return nil
}

// overrule applies --owner, --group, --mtime and --numeric-owner.
func (r *tarRun) overrule(h *tar.Header) {
	set := func(value string, name *string, id *int) {
		if value == "" {
			return
		}
		who, number, _ := strings.Cut(value, ":")
		if n, err := strconv.Atoi(who); err == nil {
			*name, *id = "", n
			return
		}
		*name = who
		if who == "root" {
			*id = 0
		}
		if n, err := strconv.Atoi(number); err == nil {
			*id = n
		}
	}
	set(r.owner, &h.Uname, &h.Uid)
	set(r.group, &h.Gname, &h.Gid)
	if r.numeric {
		h.Uname, h.Gname = "", ""
	}
	if r.hasMtime {
		h.ModTime = r.mtime.Truncate(time.Second)
	}
}
