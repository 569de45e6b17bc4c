// Package text is the commands of the shell guest that read and write text and bytes.
//
// They behave as those of GNU coreutils 9.1, GNU diffutils 3.8, GNU patch 2.7, util-linux 2.38 and xxd do, and also
// take the BSD spellings that scripts use. Inputs are not trusted: a command that can work on a stream holds no more
// than a line or a block of it, whatever its length.
package text

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// Commands are the commands of this package by name.
var Commands = map[string]cmd.Func{
	"b2sum":     wrap(sums("BLAKE2b"), 1),
	"base32":    wrap(base32Cmd, 1),
	"base64":    wrap(base64Cmd, 1),
	"cat":       wrap(cat, 1),
	"cksum":     wrap(cksum, 1),
	"cmp":       wrap(cmpCmd, 2),
	"column":    wrap(column, 1),
	"comm":      wrap(comm, 1),
	"csplit":    wrap(csplit, 1),
	"cut":       wrap(cut, 1),
	"diff":      wrap(diff, 2),
	"expand":    wrap(expand, 1),
	"fmt":       wrap(fmtCmd, 1),
	"fold":      wrap(fold, 1),
	"hd":        wrap(hexdump, 1),
	"head":      wrap(head, 1),
	"hexdump":   wrap(hexdump, 1),
	"join":      wrap(join, 1),
	"md5sum":    wrap(sums("MD5"), 1),
	"nl":        wrap(nl, 1),
	"od":        wrap(od, 1),
	"paste":     wrap(paste, 1),
	"patch":     wrap(patch, 2),
	"rev":       wrap(rev, 1),
	"seq":       wrap(seq, 1),
	"sha1sum":   wrap(sums("SHA1"), 1),
	"sha224sum": wrap(sums("SHA224"), 1),
	"sha256sum": wrap(sums("SHA256"), 1),
	"sha384sum": wrap(sums("SHA384"), 1),
	"sha512sum": wrap(sums("SHA512"), 1),
	"shasum":    wrap(shasum, 1),
	"shuf":      wrap(shuf, 1),
	"sort":      wrap(sortCmd, 2),
	"split":     wrap(split, 1),
	"strings":   wrap(stringsCmd, 1),
	"sum":       wrap(sum, 1),
	"tac":       wrap(tac, 1),
	"tail":      wrap(tail, 1),
	"tee":       wrap(tee, 1),
	"tr":        wrap(tr, 1),
	"unexpand":  wrap(unexpand, 1),
	"uniq":      wrap(uniq, 1),
	"wc":        wrap(wc, 1),
	"xxd":       wrap(xxd, 3),
	"yes":       wrap(yes, 1),
}

// call is one call of a command of this package. What goes to out is flushed when the command returns; a write that
// fails ends the command, so that no command has to look.
type call struct {
	*cmd.Call
	ctx context.Context
	out *bufio.Writer
	own io.Closer // what out goes to, where it is not standard output
}

// wrap makes a command of f. failed is its exit code when its output cannot be written.
func wrap(f func(*call) int, failed int) cmd.Func {
	return func(ctx context.Context, c *cmd.Call) (code int) {
		defer func() {
			switch p := recover().(type) {
			case nil:
			case writeFailure:
				c.Errorf("%s: %s", p.what, cmd.Reason(p.err))
				code = failed
			default:
				panic(p)
			}
		}()
		own := *c
		own.Stdout = strict{c.Stdout, "write error"}
		t := &call{Call: &own, ctx: ctx}
		t.out = own.Buffered()
		code = f(t)
		t.flush()
		if t.own != nil {
			if err := t.own.Close(); err != nil {
				panic(writeFailure{"write error", err})
			}
		}
		return code
	}
}

func (t *call) flush() { t.out.Flush() } // strict has seen the error

// strict panics with a writeFailure when a write fails. Signals come as panics of their own.
type strict struct {
	w    io.Writer
	what string
}

type writeFailure struct {
	what string
	err  error
}

func (s strict) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil {
		panic(writeFailure{s.what, err})
	}
	return n, nil
}

// Stat lets cat see that it would read what it writes.
func (s strict) Stat() (fs.FileInfo, error) {
	if st, ok := s.w.(interface{ Stat() (fs.FileInfo, error) }); ok {
		return st.Stat()
	}
	return nil, errors.ErrUnsupported
}

// parse reads options. Where code is not -1 the command ends with it: --help and --version were answered, or the
// options were wrong and that is exit code bad.
func (t *call) parse(opts cmd.Opts, usage string, bad int, args []string) (given []cmd.Given, operands []string, code int) {
	return t.parseWith(cmd.Opts.Parse, opts, usage, bad, args)
}

// parseLeading is parse for a command whose operands may look like options: the first one ends the options.
func (t *call) parseLeading(opts cmd.Opts, usage string, bad int, args []string) (given []cmd.Given, operands []string, code int) {
	return t.parseWith(cmd.Opts.ParseLeading, opts, usage, bad, args)
}

func (t *call) parseWith(read func(cmd.Opts, []string) ([]cmd.Given, []string, error), opts cmd.Opts, usage string, bad int, args []string) (given []cmd.Given, operands []string, code int) {
	all := append(opts[:len(opts):len(opts)], cmd.Opt{Long: "help"}, cmd.Opt{Long: "version"})
	given, operands, err := read(all, args)
	if err != nil {
		return nil, nil, t.usage(bad, "%v", err)
	}
	for _, g := range given {
		switch g.Key {
		case "help":
			t.help(opts, usage)
			return nil, nil, 0
		case "version":
			// Scripts look for the word GNU to learn which options they may use.
			fmt.Fprintf(t.out, "%s (exthost), as %s has it\n", t.Name, model(t.Name))
			return nil, nil, 0
		}
	}
	return given, operands, -1
}

// model names what a command behaves like.
func model(name string) string {
	switch name {
	case "diff", "cmp":
		return "GNU diffutils 3.8"
	case "patch":
		return "GNU patch 2.7.6"
	case "column", "hexdump", "hd", "rev":
		return "util-linux 2.38.1"
	case "strings":
		return "GNU Binutils 2.40"
	case "shasum":
		return "Perl's Digest::SHA 6.02"
	}
	return "GNU coreutils 9.1"
}

func (t *call) help(opts cmd.Opts, usage string) {
	fmt.Fprintf(t.out, "Usage: %s %s\n", t.Name, usage)
	for _, o := range opts {
		var names []string
		if o.Short != 0 {
			names = append(names, "-"+string(o.Short))
		}
		if o.Long != "" {
			names = append(names, "--"+o.Long)
		}
		arg := [...]string{cmd.Flag: "", cmd.Value: " VALUE", cmd.Optional: " [VALUE]"}[o.Arg]
		fmt.Fprintf(t.out, "  %s%s\n", strings.Join(names, ", "), arg)
	}
}

// usage reports wrong operands: a text, then where the help is.
func (t *call) usage(code int, format string, args ...any) int {
	err := fmt.Errorf(format, args...)
	if t.Name == "diff" || t.Name == "cmp" || t.Name == "patch" { // they have a style of their own
		t.Errorf("%v", err)
		t.Errorf("Try '%s --help' for more information.", t.Name)
		return code
	}
	return t.BadUsage(err, code)
}

// badWord reports that the value of an option is none of its words.
func (t *call) badWord(value, option string, words ...string) int {
	return t.BadUsage(cmd.BadWord(value, option, words...), 1)
}

// fail reports what is wrong and returns code.
func (t *call) fail(code int, format string, args ...any) int {
	t.Errorf(format, args...)
	return code
}

// open opens a file, or standard input for "-", so that reading it ends when the command has to.
func (t *call) open(name string) (*source, error) {
	f, err := t.Open(name)
	if err != nil {
		return nil, err
	}
	return &source{cmd.Reader(t.ctx, f), f}, nil
}

// into makes a file the output of the command.
func (t *call) into(name string) error {
	f, err := t.create(name)
	if err == nil {
		t.own = f
		t.out.Reset(strict{f, "write error"})
	}
	return err
}

// create opens a file for the output of a command.
func (t *call) create(name string) (cmd.File, error) {
	return t.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666&^t.Umask)
}

type source struct {
	io.Reader
	file cmd.File
}

func (s *source) Close() error { return s.file.Close() }

// seek is Seek for what can be moved in: false for a pipe.
func (s *source) seek(offset int64, whence int) (int64, bool) {
	info, err := s.file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	sk, ok := s.file.(io.Seeker)
	if !ok {
		return 0, false
	}
	n, err := sk.Seek(offset, whence)
	return n, err == nil
}

// each calls f for every input, standard input when none is named, and reports what cannot be read.
// It returns 1 when there was something to report.
func (t *call) each(names []string, f func(name string, r *source) error) int {
	return t.eachWith(names, "%s: %s", f)
}

// eachWith is each for a command with words of its own for a file that cannot be opened.
func (t *call) eachWith(names []string, words string, f func(name string, r *source) error) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	code := 0
	for _, name := range names {
		r, err := t.open(name)
		if err != nil {
			code = t.fail(1, words, name, cmd.Reason(err))
			continue
		}
		err = f(name, r)
		r.Close()
		if err != nil {
			code = t.Fail(name, err)
		}
	}
	return code
}

// inputs reads all files as one stream, standard input when none is named. What cannot be read is reported and
// left out; code is 1 then.
type inputs struct {
	t     *call
	names []string
	r     *source
	some  bool // one could be opened
	code  int
}

func (t *call) inputs(names []string) *inputs {
	if len(names) == 0 {
		names = []string{"-"}
	}
	return &inputs{t: t, names: names}
}

func (in *inputs) Read(p []byte) (int, error) {
	for {
		if in.r == nil {
			if len(in.names) == 0 {
				return 0, io.EOF
			}
			r, err := in.t.open(in.names[0])
			if err != nil {
				in.code = in.t.Fail(in.names[0], err)
				in.names = in.names[1:]
				continue
			}
			in.r, in.some = r, true
		}
		n, err := in.r.Read(p)
		if err != nil {
			if err != io.EOF {
				in.code = in.t.Fail(in.names[0], err)
			}
			in.r.Close()
			in.r, in.names = nil, in.names[1:]
		}
		if n > 0 {
			return n, nil
		}
	}
}

// lines reads lines of any length.
type lines struct {
	r    *bufio.Reader
	sep  byte
	long []byte
	// ended tells whether the last line that next returned had its end: the last line of a file may lack it.
	ended bool
}

func newLines(r io.Reader, sep byte) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), sep: sep}
}

// next returns a line without its end. It is valid until the next call. The error is io.EOF behind the last line.
func (l *lines) next() ([]byte, error) {
	b, err := l.r.ReadSlice(l.sep)
	if err == nil {
		l.ended = true
		return b[:len(b)-1], nil
	}
	if err == bufio.ErrBufferFull {
		if cap(l.long) > 1<<20 {
			l.long = nil // one long line must not hold its memory for ever
		}
		l.long = append(l.long[:0], b...)
		for err == bufio.ErrBufferFull {
			b, err = l.r.ReadSlice(l.sep)
			l.long = append(l.long, b...)
		}
		b = l.long
	}
	switch {
	case err == nil:
		l.ended = true
		return b[:len(b)-1], nil
	case err == io.EOF && len(b) > 0:
		l.ended = false
		return b, nil
	}
	return nil, err
}

// blocks calls f with what r has, a block at a time.
func blocks(r io.Reader, f func([]byte) error) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if err := f(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// sleep waits, and ends the command when it has to end.
func (t *call) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.ctx.Done():
	}
	cmd.Check(t.ctx)
}

// size reads a number with one of GNU's suffixes: b is 512, K and KiB 1024, KB 1000, and so on. What is larger than an
// int64 is the largest int64.
func size(s string) (int64, bool) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	unit, ok := unitSize(s[i:])
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(s[:i], 10, 64)
	if errors.Is(err, strconv.ErrSyntax) {
		if i > 0 || s == "" {
			return 0, false
		}
		n = 1 // a suffix alone is one of it
		if s[0] != 'b' && s[0] < 'A' {
			return 0, false
		}
	}
	if n > 0 && unit > math.MaxInt64/n {
		return math.MaxInt64, true
	}
	return n * unit, true
}

func unitSize(s string) (int64, bool) {
	switch s {
	case "":
		return 1, true
	case "b":
		return 512, true
	case "kB":
		s = "KB"
	case "k":
		s = "K"
	case "m":
		s = "M"
	}
	power := strings.IndexByte("KMGTPEZY", s[0]) + 1
	base := int64(1024)
	switch {
	case power == 0:
		return 0, false
	case s[1:] == "B":
		base = 1000
	case s[1:] != "" && s[1:] != "iB":
		return 0, false
	}
	unit := int64(1)
	for range power {
		if unit > math.MaxInt64/base {
			return math.MaxInt64, true
		}
		unit *= base
	}
	return unit, true
}

// utf8 tells whether characters are UTF-8 sequences (a locale like C.UTF-8) or bytes (C).
func (t *call) utf8() bool {
	v := strings.ToLower(t.localeName("LC_CTYPE"))
	return strings.HasSuffix(v, "utf-8") || strings.HasSuffix(v, "utf8")
}

// locale tells whether a category is set to anything but C: some words and dates are others then.
func (t *call) locale(category string) bool {
	v := t.localeName(category)
	return v != "" && v != "C" && v != "POSIX"
}

func (t *call) localeName(category string) string {
	for _, name := range [...]string{"LC_ALL", category, "LANG"} {
		if v := t.Getenv(name); v != "" {
			return v
		}
	}
	return ""
}

// isBlank tells a space or tab.
func isBlank(b byte) bool { return b == ' ' || b == '\t' }

// isSpace tells white space of the C locale.
func isSpace(b byte) bool { return b == ' ' || b >= '\t' && b <= '\r' }

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// isPrint tells a visible ASCII character or a space.
func isPrint(b byte) bool { return b >= ' ' && b < 0x7f }

func toUpper(b byte) byte {
	if b >= 'a' && b <= 'z' {
		b -= 'a' - 'A'
	}
	return b
}

func toLower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		b += 'a' - 'A'
	}
	return b
}

// foldCompare compares without regard to ASCII case.
func foldCompare(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if x, y := toUpper(a[i]), toUpper(b[i]); x != y {
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}

// compareBytes is bytes.Compare, or foldCompare.
func compareBytes(fold bool, a, b []byte) int {
	if fold {
		return foldCompare(a, b)
	}
	return bytes.Compare(a, b)
}
