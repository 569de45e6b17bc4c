package text

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

var patchOpts = cmd.Opts{
	{Short: 'p', Long: "strip", Arg: cmd.Value}, {Short: 'F', Long: "fuzz", Arg: cmd.Value}, {Short: 'l', Long: "ignore-whitespace"},
	{Short: 'c', Long: "context"}, {Short: 'n', Long: "normal"}, {Short: 'u', Long: "unified"}, {Short: 'N', Long: "forward"},
	{Short: 'R', Long: "reverse"}, {Short: 'i', Long: "input", Arg: cmd.Value}, {Short: 'o', Long: "output", Arg: cmd.Value},
	{Short: 'r', Long: "reject-file", Arg: cmd.Value}, {Short: 'E', Long: "remove-empty-files"}, {Short: 't', Long: "batch"},
	{Short: 'f', Long: "force"}, {Short: 's', Long: "quiet"}, {Long: "silent"}, {Long: "verbose"}, {Long: "dry-run"},
	{Short: 'd', Long: "directory", Arg: cmd.Value}, {Short: 'b', Long: "backup"}, {Long: "backup-if-mismatch"},
	{Long: "no-backup-if-mismatch"}, {Short: 'z', Long: "suffix", Arg: cmd.Value}, {Short: 'B', Long: "prefix", Arg: cmd.Value},
	{Short: 'Y', Long: "basename-prefix", Arg: cmd.Value}, {Long: "binary"}, {Long: "posix"}, {Long: "follow-symlinks"},
}

// hunk is a change of a patch, as lines with their ends behind ' ', '-' or '+'.
type hunk struct {
	oldStart, oldCount int
	newStart, newCount int
	lines              []hunkLine
	function           string
}

type hunkLine struct {
	op   byte
	text []byte
}

// filePatch is what a patch says of one file.
type filePatch struct {
	oldName, newName, indexName string // as the patch has them
	oldStamp, newStamp          string // what is behind the names
	git                         bool
	created, deleted            bool // git says so
	renameFrom, renameTo        string
	format                      byte // u, c, n
	hunks                       []hunk
	line                        int      // of the first hunk
	header                      []string // the text before it
}

type patcher struct {
	t                                *call
	strip, fuzz                      int
	space, reverse, forward          bool
	output, reject                   string
	removeEmpty, batch, force, quiet bool
	verbose, dry                     bool
	backup, mismatchBackup           bool
	suffix, prefix, basePrefix       string
	file                             string // the operand

	failed bool
	turned bool            // this file's patch is applied backwards after all
	toErr  bool            // messages go to standard error: the result is on standard output
	done   map[string]bool // files that have their backup already
}

// patchError ends patch with exit code 2.
type patchError string

func (e patchError) Error() string { return string(e) }

func patch(t *call) int {
	given, names, code := t.parse(patchOpts, "[OPTION]... [ORIGFILE [PATCHFILE]]", 2, t.Args)
	if code >= 0 {
		return code
	}
	p := &patcher{t: t, strip: -1, fuzz: 2, mismatchBackup: true, suffix: ".orig", done: map[string]bool{}}
	input, binary := "-", false
	for _, g := range given {
		switch g.Key {
		case "p", "F":
			n, err := strconv.Atoi(g.Value)
			if err != nil || n < 0 {
				what := map[string]string{"p": "strip count", "F": "fuzz factor"}[g.Key]
				return t.fail(2, "**** %s %s is not a number", what, g.Value)
			}
			if g.Key == "p" {
				p.strip = n
			} else {
				p.fuzz = n
			}
		case "l":
			p.space = true
		case "c", "n", "u": // what the patch is shows by itself
		case "N":
			p.forward = true
		case "R":
			p.reverse = true
		case "i":
			input = g.Value
		case "o":
			p.output = g.Value
			p.toErr = g.Value == "-"
		case "r":
			p.reject = g.Value
		case "E":
			p.removeEmpty = true
		case "t":
			p.batch = true
		case "f":
			p.force = true
		case "s", "silent":
			p.quiet, p.verbose = true, false
		case "verbose":
			p.verbose, p.quiet = true, false
		case "dry-run":
			p.dry = true
		case "d":
			info, err := os.Stat(t.Path(g.Value))
			if err == nil && !info.IsDir() {
				err = syscall.ENOTDIR
			}
			if err != nil {
				return t.fail(2, "**** Can't change to directory %s : %s", g.Value, cmd.Reason(err))
			}
			t.Dir = t.Path(g.Value)
		case "b":
			p.backup = true
		case "backup-if-mismatch":
			p.mismatchBackup = true
		case "no-backup-if-mismatch", "posix":
			p.mismatchBackup = false
		case "z":
			p.suffix = g.Value
		case "B":
			p.prefix, p.suffix = g.Value, ""
		case "Y":
			p.basePrefix, p.suffix = g.Value, ""
		case "binary":
			binary = true
		case "follow-symlinks": // they always are
		}
	}
	if len(names) > 2 {
		return t.usage(2, "%s: extra operand", names[2])
	}
	if len(names) > 0 {
		p.file = names[0]
	}
	if len(names) > 1 {
		input = names[1]
	}
	r, err := t.open(input)
	if err != nil {
		return t.fail(2, "**** Can't open patch file %s : %s", input, cmd.Reason(err))
	}
	data, err := io.ReadAll(r)
	r.Close()
	if err != nil {
		return t.fail(2, "**** read error : %s", cmd.Reason(err))
	}
	err = p.run(data, binary)
	if err != nil {
		t.flush()
		return t.fail(2, "**** %v", err)
	}
	if p.failed {
		return 1
	}
	return 0
}

func (p *patcher) say(format string, args ...any) {
	if !p.quiet {
		p.always(format, args...)
	}
}

// always says what -s does not keep quiet.
func (p *patcher) always(format string, args ...any) {
	if p.toErr {
		fmt.Fprintf(p.t.Stderr, format, args...)
	} else {
		fmt.Fprintf(p.t.out, format, args...)
	}
}

func (p *patcher) run(data []byte, binary bool) error {
	if len(data) == 0 {
		return nil
	}
	lines := bytes.SplitAfter(data, []byte{'\n'})
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	in := &patchReader{lines: lines, binary: binary, p: p}
	any := false
	for {
		fp, err := in.next()
		if fp != nil {
			any = true
			if err := p.apply(fp); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		if fp == nil {
			break
		}
	}
	if !any {
		return patchError("Only garbage was found in the patch input.")
	}
	return nil
}

// patchReader takes a patch apart into those for single files.
type patchReader struct {
	p      *patcher
	lines  [][]byte
	at     int
	binary bool
	strip  bool // of CRs
}

func (in *patchReader) line(i int) string {
	if i >= len(in.lines) {
		return ""
	}
	return strings.TrimRight(string(in.lines[i]), "\r\n")
}

// body is a line with its end, without the CR that a mailer has added.
func (in *patchReader) body(i int) []byte {
	b := in.lines[i]
	if in.strip && bytes.HasSuffix(b, []byte("\r\n")) {
		return append(b[:len(b)-2:len(b)-2], '\n')
	}
	return b
}

// headerName splits "name<TAB>stamp" or "name  stamp".
func headerName(s string) (name, stamp string) {
	if strings.HasPrefix(s, `"`) {
		if q, err := strconv.QuotedPrefix(s); err == nil {
			if name, err := strconv.Unquote(q); err == nil {
				return name, strings.TrimSpace(s[len(q):])
			}
		}
	}
	if i := strings.IndexByte(s, '\t'); i >= 0 {
		return s[:i], strings.TrimSpace(s[i+1:])
	}
	if i := strings.IndexByte(s, ' '); i >= 0 {
		return s[:i], strings.TrimSpace(s[i+1:])
	}
	return s, ""
}

// next reads up to the end of the hunks for a file. nil: there are no more.
func (in *patchReader) next() (*filePatch, error) {
	fp := &filePatch{}
	start := in.at
	for ; in.at < len(in.lines); in.at++ {
		s := in.line(in.at)
		switch {
		case strings.HasPrefix(s, "diff --git "):
			if fp.git && (fp.renameTo != "" || fp.created || fp.deleted) {
				return fp, nil // a change without hunks
			}
			names := strings.Fields(s[len("diff --git "):])
			*fp = filePatch{git: true}
			if len(names) == 2 {
				fp.oldName, fp.newName = names[0], names[1]
			}
		case strings.HasPrefix(s, "Index: "):
			fp.indexName, _ = headerName(strings.TrimSpace(s[len("Index: "):]))
		case fp.git && strings.HasPrefix(s, "new file mode"):
			fp.created = true
		case fp.git && strings.HasPrefix(s, "deleted file mode"):
			fp.deleted = true
		case fp.git && strings.HasPrefix(s, "rename from "):
			fp.renameFrom = s[len("rename from "):]
		case fp.git && strings.HasPrefix(s, "rename to "):
			fp.renameTo = s[len("rename to "):]
		case fp.git && (s == "GIT binary patch" || strings.HasPrefix(s, "Binary files ")):
			return nil, patchError("git binary diffs are not supported.")
		case strings.HasPrefix(s, "--- ") && in.at+1 < len(in.lines) && strings.HasPrefix(in.line(in.at+1), "+++ ") &&
			(strings.HasPrefix(in.line(in.at+2), "@@ -")):
			in.noticeCR()
			fp.format = 'u'
			fp.oldName, fp.oldStamp = headerName(s[4:])
			fp.newName, fp.newStamp = headerName(in.line(in.at + 1)[4:])
			in.at += 2
			fp.note(in, start)
			return fp, in.unified(fp)
		case strings.HasPrefix(s, "@@ -") && hunkHeader(s) != nil:
			in.noticeCR()
			fp.format = 'u'
			fp.note(in, start)
			return fp, in.unified(fp)
		case strings.HasPrefix(s, "*** ") && strings.HasPrefix(in.line(in.at+1), "--- ") && strings.HasPrefix(in.line(in.at+2), "***************"):
			in.noticeCR()
			fp.format = 'c'
			fp.oldName, fp.oldStamp = headerName(s[4:])
			fp.newName, fp.newStamp = headerName(in.line(in.at + 1)[4:])
			in.at += 2
			fp.note(in, start)
			return fp, in.context(fp)
		case normalCommand(s) != nil && (in.at+1 >= len(in.lines) || strings.HasPrefix(in.line(in.at+1), "< ") || strings.HasPrefix(in.line(in.at+1), "> ")):
			in.noticeCR()
			fp.format = 'n'
			fp.note(in, start)
			return fp, in.normal(fp)
		case s != "" && isDigit(s[0]) && strings.Trim(s, "0123456789,acd") == "" && len(fp.hunks) == 0 && start == in.at:
			return nil, patchError("ed scripts are not supported")
		}
	}
	if fp.git && (fp.renameTo != "" || fp.created || fp.deleted) {
		return fp, nil
	}
	return nil, nil
}

func (fp *filePatch) note(in *patchReader, start int) {
	fp.line = in.at + 1
	for i := start; i < in.at; i++ {
		fp.header = append(fp.header, in.line(i))
	}
}

func (in *patchReader) noticeCR() {
	if in.binary || in.strip || !bytes.HasSuffix(in.lines[in.at], []byte("\r\n")) {
		return
	}
	in.strip = true
	in.p.say("(Stripping trailing CRs from patch; use --binary to disable.)\n")
}

// hunkHeader reads "@@ -1,2 +3,4 @@ function".
func hunkHeader(s string) *hunk {
	rest, ok := strings.CutPrefix(s, "@@ -")
	if !ok {
		return nil
	}
	old, rest, ok1 := strings.Cut(rest, " +")
	new, function, ok2 := strings.Cut(rest, " @@")
	h := &hunk{function: function}
	span := func(s string, start, count *int) bool {
		a, b, has := strings.Cut(s, ",")
		var err error
		if *start, err = strconv.Atoi(a); err != nil || *start < 0 {
			return false
		}
		*count = 1
		if has {
			if *count, err = strconv.Atoi(b); err != nil || *count < 0 {
				return false
			}
		}
		return true
	}
	if !ok1 || !ok2 || !span(old, &h.oldStart, &h.oldCount) || !span(new, &h.newStart, &h.newCount) {
		return nil
	}
	return h
}

func (in *patchReader) malformed(i int) error {
	return patchError(fmt.Sprintf("malformed patch at line %d: %s", i+1, in.line(i)))
}

func (in *patchReader) unified(fp *filePatch) error {
	for in.at < len(in.lines) {
		h := hunkHeader(in.line(in.at))
		if h == nil {
			return nil
		}
		in.at++
		old, new := h.oldCount, h.newCount
		for old > 0 || new > 0 {
			if in.at >= len(in.lines) {
				if old == new && old <= 2 { // blank context at the very end may have been cut off
					for ; old > 0; old-- {
						h.lines = append(h.lines, hunkLine{' ', []byte{'\n'}})
					}
					new = 0
					break
				}
				return patchError("unexpected end of file in patch")
			}
			b := in.body(in.at)
			op := b[0]
			switch {
			case op == '\n':
				op = ' '
			case op == '\t':
				op = ' ' // the blank before it was cut off
			case op == '\\':
				in.noEnd(h)
				in.at++
				continue
			default:
				b = b[1:]
			}
			switch op {
			case ' ':
				old--
				new--
			case '-':
				old--
			case '+':
				new--
			default:
				return in.malformed(in.at)
			}
			if old < 0 || new < 0 {
				return in.malformed(in.at)
			}
			h.lines = append(h.lines, hunkLine{op, b})
			in.at++
		}
		if in.at < len(in.lines) && in.lines[in.at][0] == '\\' {
			in.noEnd(h)
			in.at++
		}
		fp.hunks = append(fp.hunks, *h)
	}
	return nil
}

// noEnd takes the end of the last line away.
func (in *patchReader) noEnd(h *hunk) {
	if n := len(h.lines); n > 0 {
		h.lines[n-1].text = bytes.TrimSuffix(h.lines[n-1].text, []byte{'\n'})
	}
}

// contextRange reads "*** 1,5 ****".
func contextRange(s, mark string) (start, count int, ok bool) {
	rest, ok1 := strings.CutPrefix(s, mark+" ")
	rest, ok2 := strings.CutSuffix(rest, " "+mark+mark[:1])
	if !ok1 || !ok2 {
		return 0, 0, false
	}
	a, b, has := strings.Cut(rest, ",")
	start, err := strconv.Atoi(a)
	if err != nil {
		return 0, 0, false
	}
	count = 1
	if start == 0 {
		count = 0
	}
	if has {
		end, err := strconv.Atoi(b)
		if err != nil {
			return 0, 0, false
		}
		count = end - start + 1
	}
	return start, count, true
}

func (in *patchReader) context(fp *filePatch) error {
	for in.at < len(in.lines) && strings.HasPrefix(in.line(in.at), "***************") {
		function := in.line(in.at)[15:]
		in.at++
		h := hunk{function: function}
		var ok bool
		if h.oldStart, h.oldCount, ok = contextRange(in.line(in.at), "***"); !ok {
			return in.malformed(in.at)
		}
		in.at++
		half := func(count int) ([]hunkLine, error) {
			var list []hunkLine
			for len(list) < count && in.at < len(in.lines) {
				b := in.body(in.at)
				if len(list) == 0 && (strings.HasPrefix(string(b), "--- ") || strings.HasPrefix(string(b), "***") || strings.HasPrefix(string(b), "diff ")) {
					return nil, nil // left out: it has no changes
				}
				switch {
				case len(b) > 1 && strings.IndexByte(" -+!", b[0]) >= 0 && (b[1] == ' ' || b[1] == '\t'):
					list = append(list, hunkLine{b[0], b[2:]})
				case b[0] == '\n' || b[0] == ' ':
					list = append(list, hunkLine{' ', []byte{'\n'}})
				default:
					return nil, in.malformed(in.at)
				}
				in.at++
			}
			if in.at < len(in.lines) && in.lines[in.at][0] == '\\' && len(list) > 0 {
				last := &list[len(list)-1]
				last.text = bytes.TrimSuffix(last.text, []byte{'\n'})
				in.at++
			}
			return list, nil
		}
		old, err := half(h.oldCount)
		if err != nil {
			return err
		}
		if h.newStart, h.newCount, ok = contextRange(in.line(in.at), "---"); !ok {
			return in.malformed(in.at)
		}
		in.at++
		new, err := half(h.newCount)
		if err != nil {
			return err
		}
		if old == nil {
			for _, l := range new {
				if l.op == ' ' {
					old = append(old, l)
				}
			}
		}
		if new == nil {
			for _, l := range old {
				if l.op == ' ' {
					new = append(new, l)
				}
			}
		}
		h.lines = weave(old, new)
		if h.oldCount == 0 && h.oldStart > 0 {
			h.oldCount = 0
		}
		fp.hunks = append(fp.hunks, h)
	}
	return nil
}

// weave makes one list of the halves of a context hunk.
func weave(old, new []hunkLine) []hunkLine {
	var out []hunkLine
	for len(old) > 0 || len(new) > 0 {
		switch {
		case len(old) > 0 && old[0].op != ' ':
			out = append(out, hunkLine{'-', old[0].text})
			old = old[1:]
		case len(new) > 0 && new[0].op != ' ':
			out = append(out, hunkLine{'+', new[0].text})
			new = new[1:]
		case len(old) > 0:
			out = append(out, old[0])
			old = old[1:]
			if len(new) > 0 {
				new = new[1:]
			}
		default:
			out = append(out, new[0])
			new = new[1:]
		}
	}
	return out
}

// normalCommand reads "1,2c3,4".
func normalCommand(s string) *hunk {
	i := strings.IndexAny(s, "acd")
	if i <= 0 || strings.Trim(s[:i], "0123456789,") != "" || strings.Trim(s[i+1:], "0123456789,") != "" || i+1 == len(s) {
		return nil
	}
	span := func(s string) (int, int, bool) {
		a, b, has := strings.Cut(s, ",")
		x, err := strconv.Atoi(a)
		y := x
		if has && err == nil {
			y, err = strconv.Atoi(b)
		}
		return x, y - x + 1, err == nil && y >= x
	}
	h := &hunk{}
	var ok1, ok2 bool
	h.oldStart, h.oldCount, ok1 = span(s[:i])
	h.newStart, h.newCount, ok2 = span(s[i+1:])
	if !ok1 || !ok2 {
		return nil
	}
	switch s[i] {
	case 'a':
		h.oldCount = 0
	case 'd':
		h.newCount = 0
	}
	return h
}

func (in *patchReader) normal(fp *filePatch) error {
	for in.at < len(in.lines) {
		h := normalCommand(in.line(in.at))
		if h == nil {
			return nil
		}
		in.at++
		take := func(n int, mark string, op byte) error {
			for ; n > 0; n-- {
				if in.at >= len(in.lines) || !strings.HasPrefix(string(in.lines[in.at]), mark) {
					return in.malformed(min(in.at, len(in.lines)-1))
				}
				b := in.body(in.at)
				h.lines = append(h.lines, hunkLine{op, b[min(2, len(b)):]})
				in.at++
			}
			if in.at < len(in.lines) && in.lines[in.at][0] == '\\' {
				in.noEnd(h)
				in.at++
			}
			return nil
		}
		if err := take(h.oldCount, "<", '-'); err != nil {
			return err
		}
		if h.oldCount > 0 && h.newCount > 0 {
			if !strings.HasPrefix(in.line(in.at), "---") {
				return in.malformed(min(in.at, len(in.lines)-1))
			}
			in.at++
		}
		if err := take(h.newCount, ">", '+'); err != nil {
			return err
		}
		fp.hunks = append(fp.hunks, *h)
	}
	return nil
}

// turn makes the opposite of a hunk.
func (h *hunk) turn() {
	h.oldStart, h.newStart = h.newStart, h.oldStart
	h.oldCount, h.newCount = h.newCount, h.oldCount
	for i := range h.lines {
		switch h.lines[i].op {
		case '-':
			h.lines[i].op = '+'
		case '+':
			h.lines[i].op = '-'
		}
	}
	// Deletions before insertions, as diff has them.
	for i := 0; i < len(h.lines); {
		j := i
		var del, ins []hunkLine
		for j < len(h.lines) && h.lines[j].op != ' ' {
			if h.lines[j].op == '-' {
				del = append(del, h.lines[j])
			} else {
				ins = append(ins, h.lines[j])
			}
			j++
		}
		copy(h.lines[i:], append(del, ins...))
		i = j + 1
	}
}

func (fp *filePatch) turn() {
	fp.oldName, fp.newName = fp.newName, fp.oldName
	fp.oldStamp, fp.newStamp = fp.newStamp, fp.oldStamp
	fp.created, fp.deleted = fp.deleted, fp.created
	fp.renameFrom, fp.renameTo = fp.renameTo, fp.renameFrom
	for i := range fp.hunks {
		fp.hunks[i].turn()
	}
}

// stripped removes leading folders of a name, "" when the name is of no use.
func (p *patcher) stripped(name string) string {
	if name == "" || name == "/dev/null" {
		return ""
	}
	if p.strip < 0 {
		return path.Base(name)
	}
	for range p.strip {
		i := strings.IndexByte(name, '/')
		if i < 0 {
			return ""
		}
		name = strings.TrimLeft(name[i:], "/")
	}
	return name
}

func epoch(stamp string) bool {
	return strings.HasPrefix(stamp, "1970-01-01 00:00:00") || strings.HasPrefix(stamp, "Thu Jan  1 00:00:00 1970")
}

// creates tells that the patch makes a file that was not there.
func (fp *filePatch) creates() bool {
	return fp.created || (fp.oldName == "/dev/null" || epoch(fp.oldStamp)) && len(fp.hunks) == 1 && fp.hunks[0].oldCount == 0
}

func (fp *filePatch) deletes() bool {
	return fp.deleted || (fp.newName == "/dev/null" || epoch(fp.newStamp)) && len(fp.hunks) == 1 && fp.hunks[0].newCount == 0
}

func (p *patcher) exists(name string) bool {
	info, err := os.Stat(p.t.Path(name))
	return err == nil && !info.IsDir()
}

// choose finds the file that a patch is for: of the names in it one that exists, the shortest.
func (p *patcher) choose(fp *filePatch) string {
	if p.file != "" {
		return p.file
	}
	var names []string
	for _, name := range []string{fp.oldName, fp.newName, fp.indexName} {
		s := p.stripped(name)
		if s == "" {
			continue
		}
		if path.IsAbs(s) || s == ".." || strings.HasPrefix(s, "../") || strings.Contains(s, "/../") {
			continue // it is outside
		}
		names = append(names, s)
	}
	if fp.git && fp.renameFrom != "" {
		return p.stripped("a/" + fp.renameFrom)
	}
	best := ""
	better := func(a, b string) bool { // a before b
		if x, y := strings.Count(a, "/"), strings.Count(b, "/"); x != y {
			return x < y
		}
		if x, y := len(path.Base(a)), len(path.Base(b)); x != y {
			return x < y
		}
		return len(a) < len(b)
	}
	pick := func(ok func(string) bool) {
		for _, name := range names {
			if ok(name) && (best == "" || better(name, best)) {
				best = name
			}
		}
	}
	pick(p.exists)
	if best == "" && (fp.creates() || fp.deletes()) {
		pick(func(string) bool { return true })
	}
	return best
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// apply applies what is for one file.
func (p *patcher) apply(fp *filePatch) error {
	t := p.t
	if p.reverse {
		fp.turn()
	}
	name := p.choose(fp)
	if name == "" {
		return p.lost(fp)
	}
	target := name
	if fp.renameTo != "" && p.file == "" {
		target = p.stripped("b/" + fp.renameTo)
	}
	already := false
	if target != name && !p.exists(name) && p.exists(target) {
		name, already = target, true
	}
	shown := target
	if p.output != "" {
		target = p.output
		shown = fmt.Sprintf("%s (read from %s)", p.output, name)
	} else if already {
		shown = fmt.Sprintf("%s (already renamed from %s)", target, fp.renameFrom)
	} else if target != name {
		shown = fmt.Sprintf("%s (renamed from %s)", target, name)
	}
	var data []byte
	exists := true
	r, err := t.open(name)
	if err == nil {
		data, err = io.ReadAll(r)
		r.Close()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		exists = false
	case err != nil:
		return patchError(fmt.Sprintf("Can't open file %s : %s", name, cmd.Reason(err)))
	}
	if p.verbose {
		p.say("Hmm...  Looks like a %s to me...\n", map[byte]string{'u': "unified diff", 'c': "new-style context diff", 'n': "normal diff"}[fp.format])
	}
	if p.verbose && len(fp.header) > 0 {
		p.say("The text leading up to this was:\n--------------------------\n")
		for _, line := range fp.header {
			p.say("|%s\n", line)
		}
		p.say("--------------------------\n")
	}
	if len(fp.hunks) > 0 && p.output == "" && p.unlikely(fp, name, !exists || len(data) == 0) {
		return nil
	}
	if p.dry {
		p.say("checking file %s\n", shown)
	} else {
		p.say("patching file %s\n", shown)
	}
	lines := bytes.SplitAfter(data, []byte{'\n'})
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	if p.verbose {
		p.say("Using Plan A...\n")
	}
	p.turned = false
	a := &applier{p: p, lines: lines}
	skip := false
	if len(fp.hunks) > 0 && !p.force {
		skip = p.reversed(fp, a)
	}
	var rejected []hunk
	mismatch := p.turned
	for i := range fp.hunks {
		h := &fp.hunks[i]
		where, fuzz := -1, 0
		if !skip {
			where, fuzz = a.find(h)
		}
		if where < 0 {
			rejected = append(rejected, *h)
			if !skip {
				p.say("Hunk #%d FAILED at %d.\n", i+1, h.oldStart+a.outOffset)
			}
			continue
		}
		offset := where - (h.oldStart + boolInt(h.oldCount == 0))
		if fuzz > 0 || offset != 0 {
			mismatch = true
		}
		at := where + a.outOffset
		if fuzz > 0 || offset != 0 || p.verbose {
			text := fmt.Sprintf("Hunk #%d succeeded at %d", i+1, at)
			if fuzz > 0 {
				text += fmt.Sprintf(" with fuzz %d", fuzz)
			}
			if offset != 0 {
				text += fmt.Sprintf(" (offset %d %s)", offset, plural(offset, "line", "lines"))
			}
			p.say("%s.\n", text)
		}
		a.put(h, where)
	}
	a.rest()
	out := a.out
	remove := len(rejected) == 0 && len(out) == 0 && (fp.deletes() || p.removeEmpty)
	if fp.deletes() && !remove && !skip && len(rejected) == 0 && p.output == "" {
		p.say("Not deleting file %s as content differs from patch\n", name)
		p.failed = true
	}
	if len(rejected) > 0 {
		p.failed = true
	}
	if !p.dry && !(skip && len(rejected) == len(fp.hunks)) {
		if (p.backup || p.mismatchBackup && (mismatch || len(rejected) > 0)) && p.output == "" && !p.done[name] {
			p.done[name] = true
			if err := p.write(p.backupName(name), data); err != nil {
				return err
			}
		}
		switch {
		case p.output == "-":
			t.out.Write(out)
		case remove && p.output == "":
			if err := os.Remove(t.Path(name)); err != nil && exists {
				return patchError(fmt.Sprintf("Can't remove file %s : %s", name, cmd.Reason(err)))
			}
			for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
				if os.Remove(t.Path(dir)) != nil {
					break
				}
			}
		case len(rejected) < len(fp.hunks) || len(fp.hunks) == 0 || p.output != "":
			if err := p.write(target, out); err != nil {
				return err
			}
			if target != name && p.output == "" {
				os.Remove(t.Path(name))
			}
		}
	}
	if n := len(rejected); n > 0 {
		word := "FAILED"
		if skip {
			word = "ignored"
		}
		text := fmt.Sprintf("%d out of %d %s %s", n, len(fp.hunks), plural(len(fp.hunks), "hunk", "hunks"), word)
		reject := p.reject
		if reject == "" {
			reject = target + ".rej"
			if p.output == "-" {
				reject = name + ".rej"
			}
		}
		if !p.dry && reject != "-" {
			text += " -- saving rejects to file " + reject
			if err := p.write(reject, rejects(fp, rejected)); err != nil {
				return err
			}
		}
		p.always("%s\n", text)
	}
	if p.verbose {
		p.say("done\n")
	}
	return nil
}

// unlikely asks about a patch that makes a file that is there, or removes one that is not. It returns true when the
// patch is to be skipped.
func (p *patcher) unlikely(fp *filePatch, name string, empty bool) bool {
	verb, why := "create", "already exists"
	switch {
	case fp.creates() && !empty:
	case fp.deletes() && empty:
		verb, why = "delete", "does not exist"
	default:
		return false
	}
	reversed := ""
	if p.reverse {
		reversed = ", when reversed,"
	}
	if skip := p.ask(fp, fmt.Sprintf("The next patch%s would %s the file %s,\nwhich %s!", reversed, verb, name, why)); !skip {
		return false
	}
	p.failed = true
	n := len(fp.hunks)
	p.always("%d out of %d %s ignored\n", n, n, plural(n, "hunk", "hunks"))
	return true
}

// reversed looks whether the first hunk only fits backwards; whether the patch is to be skipped for it.
func (p *patcher) reversed(fp *filePatch, a *applier) bool {
	first := &fp.hunks[0]
	where, _ := a.find(first)
	a.reset()
	if where >= 0 {
		return false
	}
	back := hunk{first.oldStart, first.oldCount, first.newStart, first.newCount, append([]hunkLine(nil), first.lines...), first.function}
	back.turn()
	where, _ = a.find(&back)
	a.reset()
	return where >= 0 && back.oldCount > 0 && p.already(fp)
}

// already decides on a patch that seems to be applied.
func (p *patcher) already(fp *filePatch) bool {
	if p.reverse {
		return p.ask(fp, "Unreversed patch detected!")
	}
	return p.ask(fp, "Reversed (or previously applied) patch detected!")
}

// ask tells what is odd about a patch and returns whether to skip it. Nobody can be asked, so questions have their
// default answer.
func (p *patcher) ask(fp *filePatch, what string) bool {
	switch {
	case p.force:
		p.say("%s  Applying it anyway.\n", what)
		return false
	case p.forward:
		p.say("%s  Skipping patch.\n", what)
		return true
	case p.batch:
		if p.reverse {
			p.say("%s  Ignoring -R.\n", what)
		} else {
			p.say("%s  Assuming -R.\n", what)
		}
		p.reverse = !p.reverse
		fp.turn()
		p.turned = true
		return false
	}
	question := "Assume -R?"
	if p.reverse {
		question = "Ignore -R?"
	}
	p.say("%s  %s [n] \nApply anyway? [n] \nSkipping patch.\n", what, question)
	return true
}

// lost says that there is no file for a patch.
func (p *patcher) lost(fp *filePatch) error {
	p.failed = true
	if p.quiet {
		return nil
	}
	w := p.t.out
	fmt.Fprintf(w, "can't find file to patch at input line %d\n", fp.line)
	if p.strip < 0 {
		fmt.Fprintf(w, "Perhaps you should have used the -p or --strip option?\n")
	} else {
		fmt.Fprintf(w, "Perhaps you used the wrong -p or --strip option?\n")
	}
	fmt.Fprintf(w, "The text leading up to this was:\n--------------------------\n")
	for _, line := range fp.header {
		fmt.Fprintf(w, "|%s\n", line)
	}
	fmt.Fprintf(w, "--------------------------\n")
	if !p.force && !p.batch {
		fmt.Fprintf(w, "File to patch: \nSkip this patch? [y] \nSkipping patch.\n")
	} else {
		fmt.Fprintf(w, "No file to patch.  Skipping patch.\n")
	}
	n := len(fp.hunks)
	fmt.Fprintf(w, "%d out of %d %s ignored\n", n, n, plural(n, "hunk", "hunks"))
	return nil
}

func (p *patcher) backupName(name string) string {
	dir, base := path.Split(name)
	return p.prefix + dir + p.basePrefix + base + p.suffix
}

// write makes a file, and the folders it is in.
func (p *patcher) write(name string, data []byte) error {
	if dir := path.Dir(name); dir != "." {
		os.MkdirAll(p.t.Path(dir), 0o777&^p.t.Umask)
	}
	f, err := p.t.create(name)
	if err == nil {
		_, err = f.Write(data)
		if e := f.Close(); err == nil {
			err = e
		}
	}
	if err != nil {
		return patchError(fmt.Sprintf("Can't create file %s : %s", name, cmd.Reason(err)))
	}
	return nil
}

// rejects is the text of a file of rejected hunks.
func rejects(fp *filePatch, list []hunk) []byte {
	var b bytes.Buffer
	name := func(n, stamp string) string {
		if n == "" {
			return "/dev/null"
		}
		if stamp != "" {
			return n + "\t" + stamp
		}
		return n
	}
	if fp.renameTo != "" {
		fp.oldName, fp.newName = fp.renameFrom, fp.renameTo
	}
	if fp.format == 'u' {
		fmt.Fprintf(&b, "--- %s\n+++ %s\n", name(fp.oldName, fp.oldStamp), name(fp.newName, fp.newStamp))
		for _, h := range list {
			span := func(start, n int) string {
				if n == 1 {
					return strconv.Itoa(start)
				}
				return fmt.Sprintf("%d,%d", start, n)
			}
			fmt.Fprintf(&b, "@@ -%s +%s @@%s\n", span(h.oldStart, h.oldCount), span(h.newStart, h.newCount), h.function)
			for i, l := range h.lines {
				rejectLine(&b, string([]byte{l.op}), l.text, i == len(h.lines)-1)
			}
		}
		return b.Bytes()
	}
	fmt.Fprintf(&b, "*** %s\n--- %s\n", name(fp.oldName, fp.oldStamp), name(fp.newName, fp.newStamp))
	for _, h := range list {
		fmt.Fprintf(&b, "***************%s\n", h.function)
		half := func(mark string, start, count int, other byte) {
			tail := " " + mark + mark[:1]
			if fp.format == 'n' { // as they were in the old context format
				tail = map[string]string{"***": "", "---": " -----"}[mark]
			}
			if count > 1 {
				fmt.Fprintf(&b, "%s %d,%d%s\n", mark, start, start+count-1, tail)
			} else {
				fmt.Fprintf(&b, "%s %d%s\n", mark, start, tail)
			}
			changed := false
			for _, l := range h.lines {
				changed = changed || l.op != ' ' && l.op != other
			}
			if !changed {
				return
			}
			for i, l := range h.lines {
				if l.op == other {
					continue
				}
				op := l.op
				if op != ' ' && h.replaced(i) && fp.format == 'c' {
					op = '!'
				}
				rejectLine(&b, string([]byte{op, ' '}), l.text, i == len(h.lines)-1)
			}
		}
		half("***", h.oldStart, h.oldCount, '+')
		half("---", h.newStart, h.newCount, '-')
	}
	return b.Bytes()
}

// replaced tells that the run of changes that line i is in both deletes and inserts.
func (h *hunk) replaced(i int) bool {
	from, to := i, i
	for from > 0 && h.lines[from-1].op != ' ' {
		from--
	}
	for to < len(h.lines) && h.lines[to].op != ' ' {
		to++
	}
	var del, ins bool
	for _, l := range h.lines[from:to] {
		del = del || l.op == '-'
		ins = ins || l.op == '+'
	}
	return del && ins
}

func rejectLine(b *bytes.Buffer, mark string, text []byte, last bool) {
	b.WriteString(mark)
	b.Write(text)
	if !last && !bytes.HasSuffix(text, []byte{'\n'}) {
		b.WriteString("\n\\ No newline at end of file\n")
	}
}

// applier applies hunks to the lines of a file, in order.
type applier struct {
	p         *patcher
	lines     [][]byte
	at        int // lines that are in out already
	out       []byte
	inOffset  int // how far the last hunk was from where it should have been
	outOffset int
}

func (a *applier) reset() { a.inOffset = 0 }

// find looks where a hunk fits, the nearest place to where it should be, with as little fuzz as it takes. Lines count
// from 1; a hunk without old lines goes before the line that is returned. It returns -1 when it fits nowhere.
func (a *applier) find(h *hunk) (where, fuzz int) {
	var pattern [][]byte
	before, after, seen := 0, 0, false
	for _, l := range h.lines {
		if l.op != '+' {
			pattern = append(pattern, l.text)
		}
		if l.op == ' ' {
			if !seen {
				before++
			}
			after++
		} else {
			seen = true
			after = 0
		}
	}
	guess := h.oldStart + a.inOffset
	if len(pattern) == 0 {
		return min(guess+1, len(a.lines)+1), 0
	}
	context := max(before, after)
	for fuzz := 0; fuzz <= min(a.p.fuzz, context); fuzz++ {
		front, back := fuzz+before-context, fuzz+after-context
		if w := a.locate(pattern, guess, front, back); w > 0 {
			a.inOffset += w - guess
			return w, fuzz
		}
	}
	return -1, 0
}

// locate finds a place for a pattern of which front lines at the start and back lines at the end need not match; less
// than none: the start (the end) has to be that of the file.
func (a *applier) locate(pattern [][]byte, guess, front, back int) int {
	last := len(a.lines) - len(pattern) + 1
	first := a.at + 1
	try := func(w int) bool {
		return w >= first-max(front, 0) && w >= 1 && w-1+len(pattern) <= len(a.lines)+max(back, 0) && a.matches(pattern, w, max(front, 0), max(back, 0))
	}
	switch {
	case front < 0 && back < 0:
		if len(pattern) == len(a.lines) && try(1) {
			return 1
		}
		return 0
	case front < 0:
		if try(1) {
			return 1
		}
		return 0
	case back < 0:
		if try(last) {
			return last
		}
		return 0
	}
	reach := max(guess-1, len(a.lines)+1-guess, 0)
	for off := 0; off <= reach; off++ {
		if off%1024 == 1023 {
			cmd.Check(a.p.t.ctx)
		}
		if try(guess + off) {
			return guess + off
		}
		if off > 0 && try(guess-off) {
			return guess - off
		}
	}
	return 0
}

func (a *applier) matches(pattern [][]byte, w, front, back int) bool {
	for i := front; i < len(pattern)-back; i++ {
		k := w - 1 + i
		if k < 0 || k >= len(a.lines) || !a.p.sameLine(pattern[i], a.lines[k]) {
			return false
		}
	}
	return true
}

func (p *patcher) sameLine(a, b []byte) bool {
	if !p.space {
		return bytes.Equal(a, b)
	}
	// Runs of blanks are equal, and those at the end do not count.
	squeeze := func(s []byte) []byte {
		var out []byte
		for i, c := range s {
			if isSpace(c) {
				if i > 0 && isSpace(s[i-1]) {
					continue
				}
				c = ' '
			}
			out = append(out, c)
		}
		return bytes.TrimRight(out, " ")
	}
	return bytes.Equal(squeeze(a), squeeze(b))
}

// put writes the file up to a hunk, and the hunk.
func (a *applier) put(h *hunk, where int) {
	for a.at < where-1 && a.at < len(a.lines) {
		a.out = append(a.out, a.lines[a.at]...)
		a.at++
	}
	for _, l := range h.lines {
		switch l.op {
		case ' ':
			if a.at < len(a.lines) {
				a.out = append(a.out, a.lines[a.at]...)
				a.at++
			}
		case '-':
			a.at++
			a.outOffset--
		case '+':
			if n := len(a.out); n > 0 && a.out[n-1] != '\n' {
				a.out = append(a.out, '\n')
			}
			a.out = append(a.out, l.text...)
			a.outOffset++
		}
	}
}

func (a *applier) rest() {
	for _, l := range a.lines[min(a.at, len(a.lines)):] {
		a.out = append(a.out, l...)
	}
	a.at = len(a.lines)
}
