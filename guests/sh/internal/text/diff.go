package text

import (
	"bytes"
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
)

var diffOpts = cmd.Opts{
	{Long: "normal"}, {Short: 'q', Long: "brief"}, {Short: 's', Long: "report-identical-files"}, {Short: 'c'},
	{Short: 'C', Arg: cmd.Value}, {Long: "context", Arg: cmd.Optional}, {Short: 'u'}, {Short: 'U', Arg: cmd.Value},
	{Long: "unified", Arg: cmd.Optional}, {Short: 'e', Long: "ed"}, {Short: 'n', Long: "rcs"}, {Short: 'y', Long: "side-by-side"},
	{Short: 'W', Long: "width", Arg: cmd.Value}, {Long: "left-column"}, {Long: "suppress-common-lines"},
	{Short: 'p', Long: "show-c-function"}, {Short: 'F', Long: "show-function-line", Arg: cmd.Value}, {Long: "label", Arg: cmd.Value},
	{Short: 'L', Arg: cmd.Value}, {Short: 't', Long: "expand-tabs"}, {Short: 'T', Long: "initial-tab"},
	{Long: "tabsize", Arg: cmd.Value}, {Long: "suppress-blank-empty"}, {Short: 'r', Long: "recursive"},
	{Long: "no-dereference"}, {Short: 'N', Long: "new-file"}, {Short: 'P'}, {Long: "unidirectional-new-file"},
	{Long: "ignore-file-name-case"}, {Short: 'x', Long: "exclude", Arg: cmd.Value}, {Short: 'X', Long: "exclude-from", Arg: cmd.Value},
	{Short: 'S', Long: "starting-file", Arg: cmd.Value}, {Long: "from-file", Arg: cmd.Value}, {Long: "to-file", Arg: cmd.Value},
	{Short: 'i', Long: "ignore-case"}, {Short: 'E', Long: "ignore-tab-expansion"}, {Short: 'Z', Long: "ignore-trailing-space"},
	{Short: 'b', Long: "ignore-space-change"}, {Short: 'w', Long: "ignore-all-space"}, {Short: 'B', Long: "ignore-blank-lines"},
	{Short: 'I', Long: "ignore-matching-lines", Arg: cmd.Value}, {Short: 'a', Long: "text"}, {Long: "strip-trailing-cr"},
	{Short: 'd', Long: "minimal"}, {Long: "horizon-lines", Arg: cmd.Value}, {Short: 'H', Long: "speed-large-files"},
	{Long: "color", Arg: cmd.Optional}, {Long: "lines", Arg: cmd.Value},
}

type differ struct {
	t         *call
	style     byte // n normal, c context, u unified, e ed, r rcs, y side by side
	context   int
	horizon   int
	brief     bool
	same      bool
	labels    []string
	function  *pattern
	recursive bool
	newFile   bool
	newOld    bool // -P: only files missing in the first folder are empty
	foldNames bool
	links     bool // compare symbolic links themselves
	exclude   []string
	starting  string
	fold      bool
	space     byte // 0, E, Z, b, w
	blank     bool
	matching  *pattern
	text      bool
	stripCR   bool
	minimal   bool
	noBlank   bool // suppress-blank-empty
	initial   bool
	expand    bool
	tabsize   int
	width     int
	left      bool
	noCommon  bool
	switches  string
}

func diff(t *call) int {
	var args []string
	for i, a := range t.Args {
		if a == "--" {
			args = append(args, t.Args[i:]...)
			break
		}
		// -5 is how many lines -u or -c are to show; -u5 is both.
		letters := strings.TrimRight(a, "0123456789")
		digits := a[len(letters):]
		if digits == "" || !strings.HasPrefix(letters, "-") || strings.ContainsAny(letters[1:], "CUWFLxXSI-") {
			args = append(args, a)
			continue
		}
		if letters != "-" {
			args = append(args, letters)
		}
		args = append(args, "--lines="+digits)
	}
	given, names, code := t.parse(diffOpts, "[OPTION]... FILES", 2, args)
	if code >= 0 {
		return code
	}
	d := &differ{t: t, style: 'n', context: -1, tabsize: 8, width: 130}
	var from, to string
	var many struct{ from, to bool }
	style := func(s byte) bool {
		if d.style != 'n' && d.style != s {
			t.usage(2, "conflicting output style options")
			return false
		}
		d.style = s
		return true
	}
	old := -1
	functionRE, ignoreRE := "", []string(nil)
	for _, g := range given {
		lines := 3
		switch g.Key {
		case "C", "U", "context", "unified", "lines", "W", "tabsize", "horizon-lines":
			if g.Value == "" && !g.Has {
				break
			}
			n, err := strconv.Atoi(g.Value)
			if err != nil || n < 0 {
				switch g.Key {
				case "W":
					return t.usage(2, "invalid width '%s'", g.Value)
				case "tabsize":
					return t.usage(2, "invalid tabsize '%s'", g.Value)
				case "horizon-lines":
					return t.usage(2, "invalid horizon length '%s'", g.Value)
				}
				return t.usage(2, "invalid context length '%s'", g.Value)
			}
			lines = min(n, 1<<30)
		}
		switch g.Key {
		case "normal":
			if !style('n') {
				return 2
			}
		case "c", "C", "context":
			if !style('c') {
				return 2
			}
			d.context = max(d.context, lines)
		case "u", "U", "unified":
			if !style('u') {
				return 2
			}
			d.context = max(d.context, lines)
		case "e":
			if !style('e') {
				return 2
			}
		case "n":
			if !style('r') {
				return 2
			}
		case "y":
			if !style('y') {
				return 2
			}
		case "lines":
			old = lines
		case "W":
			d.width = lines
		case "left-column":
			d.left = true
		case "suppress-common-lines":
			d.noCommon = true
		case "q":
			d.brief = true
		case "s":
			d.same = true
		case "p":
			functionRE = `^[[:alpha:]$_]`
		case "F":
			functionRE = g.Value
		case "label", "L":
			if len(d.labels) == 2 {
				return t.usage(2, "too many file label options")
			}
			d.labels = append(d.labels, g.Value)
		case "t":
			d.expand = true
		case "T":
			d.initial = true
		case "tabsize":
			d.tabsize = max(lines, 1)
		case "suppress-blank-empty":
			d.noBlank = true
		case "r":
			d.recursive = true
		case "no-dereference":
			d.links = true
		case "N":
			d.newFile = true
		case "P", "unidirectional-new-file":
			d.newOld = true
		case "ignore-file-name-case":
			d.foldNames = true
		case "x":
			d.exclude = append(d.exclude, g.Value)
		case "X":
			r, err := t.open(g.Value)
			if err != nil {
				return t.Fail(g.Value, err) + 1
			}
			data, err := io.ReadAll(r)
			r.Close()
			if err != nil {
				return t.Fail(g.Value, err) + 1
			}
			d.exclude = append(d.exclude, strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")...)
		case "S":
			d.starting = g.Value
		case "from-file":
			from, many.from = g.Value, true
		case "to-file":
			to, many.to = g.Value, true
		case "i":
			d.fold = true
		case "E", "Z", "b", "w":
			switch {
			case g.Key == "E" && d.space == 'Z' || g.Key == "Z" && d.space == 'E':
				d.space = 'X' // both
			case strings.IndexByte("\x00EZXbw", g.Key[0]) > strings.IndexByte("\x00EZXbw", d.space):
				d.space = g.Key[0]
			}
		case "B":
			d.blank = true
		case "I":
			ignoreRE = append(ignoreRE, g.Value)
		case "a":
			d.text = true
		case "strip-trailing-cr":
			d.stripCR = true
		case "d":
			d.minimal = true
		case "horizon-lines":
			d.horizon = max(d.horizon, lines)
		case "H": // only for speed
		case "color":
			if g.Value == "always" {
				return t.fail(2, "--color=always is not supported")
			}
			if g.Has && g.Value != "never" && g.Value != "auto" {
				return t.usage(2, "invalid color '%s'", g.Value)
			}
		}
	}
	var err error
	if functionRE != "" {
		if d.function, err = t.pattern(functionRE); err != nil {
			return t.fail(2, "%s: %v", functionRE, err)
		}
		if d.style == 'n' {
			d.style = 'c'
		}
	}
	if len(ignoreRE) > 0 {
		if d.matching, err = t.pattern(strings.Join(ignoreRE, `\|`)); err != nil {
			return t.fail(2, "%s: %v", strings.Join(ignoreRE, `\|`), err)
		}
	}
	if old >= 0 && d.style != 'n' {
		d.context = old
	}
	if d.context < 0 {
		d.context = 0
		if d.style == 'c' || d.style == 'u' {
			d.context = 3
		}
	}
	d.horizon = max(d.horizon, d.context)
	// What the options were is said above each pair of a comparison of folders.
	operands := slices.Clone(names)
	ended := false
	for _, a := range t.Args {
		if i := slices.Index(operands, a); i >= 0 && (ended || a == "-" || !strings.HasPrefix(a, "-")) {
			operands = slices.Delete(operands, i, i+1)
			continue
		}
		if a == "--" {
			ended = true
			continue
		}
		d.switches += " " + diffQuote(a)
	}
	switch {
	case many.from && many.to:
		return t.fail(2, "--from-file and --to-file both specified")
	case many.from || many.to:
		result := 0
		for _, name := range names {
			if many.from {
				result = max(result, d.operands(from, name))
			} else {
				result = max(result, d.operands(name, to))
			}
		}
		return result
	case len(names) == 0:
		return t.usage(2, "missing operand after '%s'", lastArg(t))
	case len(names) == 1:
		return t.usage(2, "missing operand after '%s'", names[0])
	case len(names) > 2:
		return t.usage(2, "extra operand '%s'", names[2])
	}
	return d.operands(names[0], names[1])
}

func lastArg(t *call) string {
	if len(t.Args) > 0 {
		return t.Args[len(t.Args)-1]
	}
	return t.Name
}

// diffQuote quotes a word as a shell wants it, if it has to be.
func diffQuote(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\n!\"#$&'()*;<=>?[\\]^`{|}~") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// diffFile is one of two files that are compared.
type diffFile struct {
	name    string // as it is shown
	info    fs.FileInfo
	missing bool // is taken to be empty
	lines   [][]byte
	noEnd   bool // the last line has no end
	data    []byte
}

func (d *differ) look(name string) (fs.FileInfo, error) {
	if name == "-" {
		r, err := d.t.open(name)
		if err != nil {
			return nil, err
		}
		info, err := r.file.Stat()
		if err != nil {
			return nil, nil // a pipe
		}
		return info, nil
	}
	if name == "" {
		return nil, fs.ErrNotExist
	}
	if strings.HasPrefix(d.t.Path(name), "/dev/") {
		r, err := d.t.open(name) // a descriptor of the shell, perhaps
		if err != nil {
			return nil, err
		}
		defer r.Close()
		info, err := r.file.Stat()
		if err != nil {
			return nil, nil
		}
		return info, nil
	}
	if d.links {
		return os.Lstat(d.t.Path(name))
	}
	return os.Stat(d.t.Path(name))
}

// operands compares what the command line names: a file and a folder stand for the file of that name in the folder.
func (d *differ) operands(a, b string) int {
	isDir := func(name string) bool {
		info, err := d.look(name)
		return err == nil && info != nil && info.IsDir()
	}
	switch da, db := isDir(a), isDir(b); {
	case da && !db:
		if b == "-" {
			return d.t.fail(2, "cannot compare '-' to a directory")
		}
		a = joinName(a, path.Base(b))
	case db && !da:
		if a == "-" {
			return d.t.fail(2, "cannot compare '-' to a directory")
		}
		b = joinName(b, path.Base(a))
	}
	return d.pair(a, b, true)
}

func joinName(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }

// pair compares two names. top tells that they come from the command line.
func (d *differ) pair(a, b string, top bool) int {
	t := d.t
	cmd.Check(t.ctx)
	files := [2]*diffFile{{name: a}, {name: b}}
	failed := false
	for _, f := range files {
		info, err := d.look(f.name)
		if err != nil {
			if d.newFile && errors.Is(err, fs.ErrNotExist) || d.newOld && f == files[0] && errors.Is(err, fs.ErrNotExist) {
				f.missing = true
				continue
			}
			t.flush()
			t.Fail(f.name, err)
			failed = true
			continue
		}
		f.info = info
	}
	if failed || files[0].missing && files[1].missing {
		if !failed {
			t.flush()
			t.Errorf("%s: No such file or directory", a)
			t.Errorf("%s: No such file or directory", b)
		}
		return 2
	}
	dir := func(f *diffFile) bool { return f.info != nil && f.info.IsDir() }
	switch da, db := dir(files[0]), dir(files[1]); {
	case da && db:
		if !top && !d.recursive {
			fmt.Fprintf(t.out, "Common subdirectories: %s and %s\n", a, b)
			return 0
		}
		return d.folders(a, b, files)
	case (da || files[0].missing) && (db || files[1].missing):
		if d.recursive {
			return d.folders(a, b, files)
		}
		return 0
	case da || db:
		kind := func(f *diffFile) string {
			switch {
			case dir(f):
				return "directory"
			case f.info != nil && f.info.Mode()&fs.ModeSymlink != 0:
				return "symbolic link"
			case f.info != nil && f.info.Size() == 0 && f.info.Mode().IsRegular() || f.missing:
				return "regular empty file"
			}
			return "regular file"
		}
		fmt.Fprintf(t.out, "File %s is a %s while file %s is a %s\n", a, kind(files[0]), b, kind(files[1]))
		return 1
	}
	if d.links && files[0].info != nil && files[1].info != nil && (files[0].info.Mode()|files[1].info.Mode())&fs.ModeSymlink != 0 {
		return d.linkPair(files)
	}
	if os.SameFile(files[0].info, files[1].info) || a == b {
		return d.identical(files)
	}
	for _, f := range files {
		if f.missing {
			continue
		}
		r, err := t.open(f.name)
		if err == nil {
			f.data, err = io.ReadAll(r)
			r.Close()
		}
		if err != nil {
			t.flush()
			t.Fail(f.name, err)
			return 2
		}
	}
	return d.files(files, top)
}

func (d *differ) identical(files [2]*diffFile) int {
	if d.same {
		fmt.Fprintf(d.t.out, "Files %s and %s are identical\n", d.shown(files, 0), d.shown(files, 1))
	}
	return 0
}

func (d *differ) shown(files [2]*diffFile, i int) string {
	if i < len(d.labels) {
		return d.labels[i]
	}
	return files[i].name
}

func (d *differ) linkPair(files [2]*diffFile) int {
	a, errA := os.Readlink(d.t.Path(files[0].name))
	b, errB := os.Readlink(d.t.Path(files[1].name))
	switch {
	case errA != nil || errB != nil:
		kind := func(err error) string {
			if err != nil {
				return "regular file"
			}
			return "symbolic link"
		}
		fmt.Fprintf(d.t.out, "File %s is a %s while file %s is a %s\n", files[0].name, kind(errA), files[1].name, kind(errB))
		return 1
	case a != b:
		fmt.Fprintf(d.t.out, "Symbolic links %s and %s differ\n", files[0].name, files[1].name)
		return 1
	}
	return d.identical(files)
}

// folders compares what is in two folders, in the order of the names.
func (d *differ) folders(a, b string, files [2]*diffFile) int {
	var lists [2][]string
	result := 0
	for i, f := range files {
		if f.missing {
			continue
		}
		entries, err := os.ReadDir(d.t.Path(f.name))
		if err != nil {
			d.t.flush()
			d.t.Fail(f.name, err)
			result = 2
			continue
		}
		for _, e := range entries {
			if !d.excluded(e.Name()) {
				lists[i] = append(lists[i], e.Name())
			}
		}
	}
	compare := strings.Compare
	if d.foldNames {
		compare = func(x, y string) int {
			if c := strings.Compare(strings.ToLower(x), strings.ToLower(y)); c != 0 {
				return c
			}
			return strings.Compare(x, y)
		}
	}
	slices.SortFunc(lists[0], compare)
	slices.SortFunc(lists[1], compare)
	starting := d.starting
	d.starting = ""
	only := func(dir, name string) {
		fmt.Fprintf(d.t.out, "Only in %s: %s\n", strings.TrimSuffix(dir, "/"), name)
		result = max(result, 1)
	}
	x, y := lists[0], lists[1]
	for len(x) > 0 || len(y) > 0 {
		c := 0
		switch {
		case len(x) == 0:
			c = 1
		case len(y) == 0:
			c = -1
		case d.foldNames && strings.EqualFold(x[0], y[0]):
		default:
			c = compare(x[0], y[0])
		}
		var nameA, nameB string
		if c <= 0 {
			nameA, x = x[0], x[1:]
		}
		if c >= 0 {
			nameB, y = y[0], y[1:]
		}
		if starting != "" && max(nameA, nameB) < starting {
			continue
		}
		switch {
		case c == 0:
			result = max(result, d.pair(joinName(a, nameA), joinName(b, nameB), false))
		case d.newFile || d.newOld && c > 0:
			name := nameA + nameB
			result = max(result, d.pair(joinName(a, name), joinName(b, name), false))
		case c < 0:
			only(a, nameA)
		default:
			only(b, nameB)
		}
	}
	return result
}

func (d *differ) excluded(name string) bool {
	for _, pat := range d.exclude {
		if ok, err := path.Match(pat, name); ok && err == nil || pat == name {
			return true
		}
	}
	return false
}

func isBinary(b []byte) bool { return bytes.IndexByte(b[:min(len(b), 1<<15)], 0) >= 0 }

// files compares two files that are read.
func (d *differ) files(files [2]*diffFile, top bool) int {
	t := d.t
	filters := d.fold || d.space != 0 || d.blank || d.matching != nil || d.stripCR
	if bytes.Equal(files[0].data, files[1].data) && d.style != 'y' {
		return max(d.identical(files), d.unendedForEd(files))
	}
	names := func() string { return d.shown(files, 0) + " and " + d.shown(files, 1) }
	if !d.text && (isBinary(files[0].data) || isBinary(files[1].data)) {
		if bytes.Equal(files[0].data, files[1].data) {
			return d.identical(files)
		}
		if d.brief {
			fmt.Fprintf(t.out, "Files %s differ\n", names())
			return 1
		}
		fmt.Fprintf(t.out, "Binary files %s differ\n", names())
		return 1
	}
	if d.brief && !filters {
		fmt.Fprintf(t.out, "Files %s differ\n", names())
		return 1
	}
	for _, f := range files {
		f.split(d.stripCR)
	}
	edits := d.compare(files)
	if d.style == 'y' {
		return d.sideBySide(files, edits)
	}
	changed := len(edits) > 0
	if d.blank || d.matching != nil {
		changed = false
		for i := range edits {
			edits[i].ignore = d.trivial(files, edits[i:i+1])
			changed = changed || !edits[i].ignore
		}
	}
	if !changed {
		return d.identical(files)
	}
	if d.brief {
		fmt.Fprintf(t.out, "Files %s differ\n", names())
		return 1
	}
	if !top {
		fmt.Fprintf(t.out, "diff%s %s %s\n", d.switches, diffQuote(files[0].name), diffQuote(files[1].name))
	}
	switch d.style {
	case 'u', 'c':
		d.contextual(files, edits)
	case 'e':
		d.ed(files, edits)
		return max(1, d.unendedForEd(files))
	case 'r':
		d.rcs(files, edits)
	default:
		d.normal(files, edits)
	}
	return 1
}

// unendedForEd returns 2 when a last line has no end, which no script for ed can say.
func (d *differ) unendedForEd(files [2]*diffFile) int {
	code := 0
	for _, f := range files {
		if d.style == 'e' && len(f.data) > 0 && f.data[len(f.data)-1] != '\n' {
			d.t.flush()
			code = d.t.fail(2, "%s: No newline at end of file", f.name)
		}
	}
	return code
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// split takes the data apart into lines without their ends.
func (f *diffFile) split(stripCR bool) {
	data := f.data
	f.lines = make([][]byte, 0, bytes.Count(data, []byte{'\n'})+1)
	for len(data) > 0 {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			f.noEnd = true
			i = len(data)
		}
		line := data[:i]
		if stripCR && i < len(data) && len(line) > 0 && line[len(line)-1] == '\r' {
			line = line[:len(line)-1]
		}
		f.lines = append(f.lines, line)
		data = data[min(i+1, len(data)):]
	}
}

// key is what of a line counts when it is compared.
func (d *differ) key(line []byte) []byte {
	if !d.fold && d.space == 0 {
		return line
	}
	out := make([]byte, 0, len(line))
	column := 0
	trim := func() {
		for len(out) > 0 && isSpace(out[len(out)-1]) {
			out = out[:len(out)-1]
		}
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		if isSpace(c) {
			switch d.space {
			case 'w':
				continue
			case 'b':
				for i+1 < len(line) && isSpace(line[i+1]) {
					i++
				}
				out = append(out, ' ')
				continue
			case 'E', 'X':
				if c == '\t' {
					for n := d.tabsize - column%d.tabsize; n > 0; n-- {
						out = append(out, ' ')
						column++
					}
					continue
				}
			}
		}
		column++
		if d.fold {
			c = toLower(c)
		}
		out = append(out, c)
	}
	if d.space == 'Z' || d.space == 'X' || d.space == 'b' {
		trim()
	}
	return out
}

// compare numbers the lines, leaves out what both files start and end with, and finds the changes.
func (d *differ) compare(files [2]*diffFile) []edit {
	a, b := files[0].lines, files[1].lines
	// The last line of a file counts as it stands: with an end, or without. A script for ed cannot tell the two apart.
	unended := func(f *diffFile, i int) bool { return d.style != 'e' && f.noEnd && i == len(f.lines)-1 }
	equal := func(i, j int) bool {
		return bytes.Equal(a[i], b[j]) && unended(files[0], i) == unended(files[1], j)
	}
	prefix := 0
	for prefix < min(len(a), len(b)) && equal(prefix, prefix) {
		prefix++
	}
	prefix = max(prefix-d.horizon, 0)
	suffix := 0
	for suffix < min(len(a), len(b))-prefix && equal(len(a)-1-suffix, len(b)-1-suffix) {
		suffix++
	}
	suffix = max(suffix-d.horizon, 0)
	classes := map[string]int{}
	number := func(f *diffFile, lines [][]byte, last bool) []int {
		ids := make([]int, len(lines))
		for i, line := range lines {
			key := d.key(line)
			k := string(key)
			if last && d.style != 'e' && i == len(lines)-1 && f.noEnd && (d.space == 0 || d.space == 'E') {
				k += "\n" // no other line has one: this is the line without an end
			}
			id, ok := classes[k]
			if !ok {
				id = len(classes)
				classes[k] = id
			}
			ids[i] = id
		}
		return ids
	}
	x := number(files[0], a[prefix:len(a)-suffix], suffix == 0)
	y := number(files[1], b[prefix:len(b)-suffix], suffix == 0)
	edits := compareLines(d.t.ctx, x, y, len(classes), d.minimal)
	for i := range edits {
		edits[i].old += prefix
		edits[i].new += prefix
	}
	return edits
}

// trivial tells that all lines of changes are to be ignored.
func (d *differ) trivial(files [2]*diffFile, edits []edit) bool {
	if !d.blank && d.matching == nil {
		return false
	}
	ignored := func(line []byte) bool {
		if d.blank {
			rest := line
			if d.space == 'Z' || d.space == 'X' || d.space == 'b' || d.space == 'w' {
				rest = bytes.TrimSpace(line)
			}
			if len(rest) == 0 {
				return true
			}
		}
		return d.matching != nil && d.matching.match(line)
	}
	for _, e := range edits {
		for _, line := range files[0].lines[e.old : e.old+e.deleted] {
			if !ignored(line) {
				return false
			}
		}
		for _, line := range files[1].lines[e.new : e.new+e.inserted] {
			if !ignored(line) {
				return false
			}
		}
	}
	return true
}

// line writes a line of file f behind a mark.
func (d *differ) line(mark string, f *diffFile, i int) {
	w := d.t.out
	line := f.lines[i]
	if d.noBlank && len(line) == 0 && strings.TrimRight(mark, " ") != mark {
		mark = strings.TrimRight(mark, " ")
	}
	if d.initial && mark != "" && len(line) > 0 {
		mark = strings.TrimRight(mark, " ") + "\t"
	}
	w.WriteString(mark)
	if d.expand {
		column := 0
		for _, c := range line {
			if c == '\t' {
				for n := d.tabsize - column%d.tabsize; n > 0; n-- {
					w.WriteByte(' ')
					column++
				}
				continue
			}
			w.WriteByte(c)
			column++
		}
	} else {
		w.Write(line)
	}
	w.WriteByte('\n')
	if f.noEnd && i == len(f.lines)-1 {
		w.WriteString("\\ No newline at end of file\n")
	}
}

// lineRange is "3,5" or "3"; a range without lines is the line before it.
func lineRange(start, n int, sep string) string {
	if n == 0 {
		return strconv.Itoa(start)
	}
	if n == 1 {
		return strconv.Itoa(start + 1)
	}
	return strconv.Itoa(start+1) + sep + strconv.Itoa(start+n)
}

func (d *differ) normal(files [2]*diffFile, edits []edit) {
	for i, e := range edits {
		if e.ignore || d.trivial(files, edits[i:i+1]) {
			continue
		}
		letter := "c"
		switch {
		case e.deleted == 0:
			letter = "a"
		case e.inserted == 0:
			letter = "d"
		}
		fmt.Fprintf(d.t.out, "%s%s%s\n", lineRange(e.old, e.deleted, ","), letter, lineRange(e.new, e.inserted, ","))
		for i := range e.deleted {
			d.line("< ", files[0], e.old+i)
		}
		if letter == "c" {
			d.t.out.WriteString("---\n")
		}
		for i := range e.inserted {
			d.line("> ", files[1], e.new+i)
		}
	}
}

// ed writes a script for ed, from the end so that line numbers stay right.
func (d *differ) ed(files [2]*diffFile, edits []edit) {
	w := d.t.out
	for i := len(edits) - 1; i >= 0; i-- {
		e := edits[i]
		if e.ignore {
			continue
		}
		letter := "c"
		switch {
		case e.deleted == 0:
			letter = "a"
		case e.inserted == 0:
			letter = "d"
		}
		fmt.Fprintf(w, "%s%s\n", lineRange(e.old, e.deleted, ","), letter)
		if e.inserted == 0 {
			continue
		}
		inserting := true
		for k, line := range files[1].lines[e.new : e.new+e.inserted] {
			if !inserting {
				fmt.Fprintf(w, "a\n")
				inserting = true
			}
			if string(line) == "." { // it would end the insertion: ".." is made shorter afterwards
				w.WriteString("..\n.\ns/.//\n")
				if k < e.inserted-1 {
					inserting = false
				} else {
					return
				}
				continue
			}
			w.Write(line)
			w.WriteByte('\n')
		}
		w.WriteString(".\n")
	}
}

func (d *differ) rcs(files [2]*diffFile, edits []edit) {
	w := d.t.out
	for _, e := range edits {
		if e.ignore {
			continue
		}
		if e.deleted > 0 {
			fmt.Fprintf(w, "d%d %d\n", e.old+1, e.deleted)
		}
		if e.inserted > 0 {
			fmt.Fprintf(w, "a%d %d\n", e.old+e.deleted, e.inserted)
			for k := range e.inserted {
				w.Write(files[1].lines[e.new+k])
				if !files[1].noEnd || e.new+k < len(files[1].lines)-1 {
					w.WriteByte('\n')
				}
			}
		}
	}
}

// contextual writes the unified and the context format.
func (d *differ) contextual(files [2]*diffFile, edits []edit) {
	marks := [2]string{"---", "+++"}
	if d.style == 'c' {
		marks = [2]string{"***", "---"}
	}
	layout := "2006-01-02 15:04:05.000000000 -0700"
	if d.style == 'c' && !d.t.locale("LC_TIME") {
		layout = time.ANSIC
	}
	for i, f := range files {
		name := ""
		if i < len(d.labels) {
			name = d.labels[i]
		} else {
			when := time.Unix(0, 0)
			switch {
			case f.info != nil:
				when = f.info.ModTime()
			case !f.missing:
				when = time.Now()
			}
			name = diffName(f.name) + "\t" + when.In(d.t.zone()).Format(layout)
		}
		fmt.Fprintf(d.t.out, "%s %s\n", marks[i], name)
	}
	lastFunction := 0 // where the search for the line of a function has come to
	function := ""
	for len(edits) > 0 {
		n := 1
		for n < len(edits) {
			prev, next := edits[n-1], edits[n]
			gap := 2*d.context + 1
			if prev.ignore || next.ignore {
				gap = d.context + 1
			}
			if next.old-(prev.old+prev.deleted) >= gap {
				break
			}
			n++
		}
		hunk := edits[:n]
		edits = edits[n:]
		if d.trivial(files, hunk) {
			continue
		}
		first, last := hunk[0], hunk[n-1]
		start0, start1 := max(first.old-d.context, 0), max(first.new-d.context, 0)
		end0 := min(last.old+last.deleted+d.context, len(files[0].lines))
		end1 := min(last.new+last.inserted+d.context, len(files[1].lines))
		if d.function != nil {
			for i := start0 - 1; i >= lastFunction; i-- {
				if d.function.match(files[0].lines[i]) {
					text := strings.TrimLeft(string(files[0].lines[i]), " \t\v\f\r")
					if len(text) > 40 {
						text = text[:40]
					}
					function = " " + strings.TrimRight(text, " \t\v\f\r")
					break
				}
			}
			lastFunction = max(lastFunction, start0)
		}
		if d.style == 'u' {
			d.unifiedHunk(files, hunk, start0, end0, start1, end1, function)
		} else {
			d.contextHunk(files, hunk, start0, end0, start1, end1, function)
		}
	}
}

// zone is the time zone of the command.
func (t *call) zone() *time.Location {
	if name := t.Getenv("TZ"); name != "" {
		if loc, err := time.LoadLocation(strings.TrimPrefix(name, ":")); err == nil {
			return loc
		}
		return time.UTC
	}
	return time.Local
}

// diffName quotes a name that would not read as one.
func diffName(s string) string {
	if !strings.ContainsAny(s, " \t\n\"\\") {
		return s
	}
	return strconv.Quote(s)
}

func (d *differ) unifiedHunk(files [2]*diffFile, hunk []edit, start0, end0, start1, end1 int, function string) {
	span := func(start, end int) string {
		switch n := end - start; n {
		case 0:
			return fmt.Sprintf("%d,0", start)
		case 1:
			return strconv.Itoa(start + 1)
		default:
			return fmt.Sprintf("%d,%d", start+1, n)
		}
	}
	fmt.Fprintf(d.t.out, "@@ -%s +%s @@%s\n", span(start0, end0), span(start1, end1), function)
	i := start0
	for _, e := range hunk {
		for ; i < e.old; i++ {
			d.line(" ", files[0], i)
		}
		for range e.deleted {
			d.line("-", files[0], i)
			i++
		}
		for k := range e.inserted {
			d.line("+", files[1], e.new+k)
		}
	}
	for ; i < end0; i++ {
		d.line(" ", files[0], i)
	}
}

func (d *differ) contextHunk(files [2]*diffFile, hunk []edit, start0, end0, start1, end1 int, function string) {
	w := d.t.out
	fmt.Fprintf(w, "***************%s\n", function)
	deleted, inserted := false, false
	for _, e := range hunk {
		deleted = deleted || e.deleted > 0
		inserted = inserted || e.inserted > 0
	}
	fmt.Fprintf(w, "*** %s ****\n", lineRange(start0, end0-start0, ","))
	if deleted {
		i := start0
		for _, e := range hunk {
			for ; i < e.old; i++ {
				d.line("  ", files[0], i)
			}
			mark := "! "
			if e.inserted == 0 {
				mark = "- "
			}
			for range e.deleted {
				d.line(mark, files[0], i)
				i++
			}
		}
		for ; i < end0; i++ {
			d.line("  ", files[0], i)
		}
	}
	fmt.Fprintf(w, "--- %s ----\n", lineRange(start1, end1-start1, ","))
	if inserted {
		i := start1
		for _, e := range hunk {
			for ; i < e.new; i++ {
				d.line("  ", files[1], i)
			}
			mark := "! "
			if e.deleted == 0 {
				mark = "+ "
			}
			for range e.inserted {
				d.line(mark, files[1], i)
				i++
			}
		}
		for ; i < end1; i++ {
			d.line("  ", files[1], i)
		}
	}
}

// sideBySide writes two columns.
func (d *differ) sideBySide(files [2]*diffFile, edits []edit) int {
	// The width is shared out so that the second column starts at a tab stop.
	tab := d.tabsize
	if d.expand {
		tab = 1
	}
	const gutter = 3
	off := (d.width + tab + gutter) / (2 * tab) * tab
	half := max(0, min(off-gutter, d.width-off))
	second := d.width
	if half > 0 {
		second = off
	}
	row := func(l int, mark byte, r int) {
		column := 0
		w := d.t.out
		put := func(line []byte, indent int) {
			at := 0 // within the column
			for _, c := range line {
				if c == '\t' {
					n := d.tabsize - at%d.tabsize
					if at+n > half {
						break
					}
					if d.expand {
						fmt.Fprintf(w, "%*s", n, "")
					} else if at+n <= half {
						column = d.pad(column, indent+at+n)
					}
					at += n
					if d.expand {
						column = indent + at
					}
					continue
				}
				if at+1 > half {
					break
				}
				w.WriteByte(c)
				at++
				column = indent + at
			}
		}
		if l >= 0 {
			put(files[0].lines[l], 0)
		}
		if mark != ' ' {
			column = d.pad(column, (half+second-1)/2) + 1
			if mark == '|' && l >= 0 && r >= 0 {
				endL := files[0].noEnd && l == len(files[0].lines)-1
				endR := files[1].noEnd && r == len(files[1].lines)-1
				if endL != endR {
					mark = '/'
					if endL {
						mark = '\\'
					}
				}
			}
			w.WriteByte(mark)
		}
		if r >= 0 && !(d.left && mark == '(') {
			if len(files[1].lines[r]) > 0 {
				column = d.pad(column, second)
				put(files[1].lines[r], second)
			}
		}
		ended := func(f *diffFile, i int) bool { return i >= 0 && !(f.noEnd && i == len(f.lines)-1) }
		if ended(files[0], l) || ended(files[1], r) {
			w.WriteByte('\n')
		}
	}
	i, j := 0, 0
	common := func(to int) {
		for ; i < to; i, j = i+1, j+1 {
			switch {
			case d.noCommon:
			case d.left:
				row(i, '(', j)
			default:
				row(i, ' ', j)
			}
		}
	}
	for _, e := range edits {
		common(e.old)
		n := min(e.deleted, e.inserted)
		for k := range n {
			row(e.old+k, '|', e.new+k)
		}
		for k := n; k < e.inserted; k++ {
			row(-1, '>', e.new+k)
		}
		for k := n; k < e.deleted; k++ {
			row(e.old+k, '<', -1)
		}
		i, j = e.old+e.deleted, e.new+e.inserted
	}
	common(len(files[0].lines))
	if len(edits) > 0 {
		return 1
	}
	return d.identical(files)
}

// pad goes on to a column, with tabs where they fit.
func (d *differ) pad(from, to int) int {
	if !d.expand {
		for tab := from + d.tabsize - from%d.tabsize; tab <= to && from < to; tab += d.tabsize {
			d.t.out.WriteByte('\t')
			from = tab
		}
	}
	for ; from < to; from++ {
		d.t.out.WriteByte(' ')
	}
	return max(from, to)
}
