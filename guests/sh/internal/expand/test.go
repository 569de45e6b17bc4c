package expand

import (
	"context"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/regex"
	"github.com/exthost/exthost/guests/sh/internal/vars"
	"mvdan.cc/sh/v3/syntax"
)

// Test evaluates the expression of [[ ]].
func (e *Expander) Test(ctx context.Context, expr syntax.TestExpr) (bool, error) {
	switch t := expr.(type) {
	case *syntax.Word:
		s, err := e.Literal(ctx, t)
		return s != "", err
	case *syntax.ParenTest:
		return e.Test(ctx, t.X)
	case *syntax.UnaryTest:
		if t.Op == syntax.TsNot {
			ok, err := e.Test(ctx, t.X)
			return !ok, err
		}
		s, err := e.Literal(ctx, t.X.(*syntax.Word))
		if err != nil {
			return false, err
		}
		return e.Unary(t.Op.String(), s)
	case *syntax.BinaryTest:
		return e.binaryTest(ctx, t)
	}
	return false, nil
}

func (e *Expander) binaryTest(ctx context.Context, t *syntax.BinaryTest) (bool, error) {
	switch t.Op {
	case syntax.AndTest, syntax.OrTest:
		ok, err := e.Test(ctx, t.X)
		if err != nil || ok == (t.Op == syntax.OrTest) {
			return ok, err
		}
		return e.Test(ctx, t.Y)
	}
	left, err := e.Literal(ctx, t.X.(*syntax.Word))
	if err != nil {
		return false, err
	}
	word := t.Y.(*syntax.Word)
	switch t.Op {
	case syntax.TsMatchShort, syntax.TsMatch, syntax.TsNoMatch:
		pat, err := e.Pattern(ctx, word)
		if err != nil {
			return false, err
		}
		ok := e.pattern(pat, true, e.Host.Option("nocasematch")).match(left)
		return ok == (t.Op != syntax.TsNoMatch), nil
	case syntax.TsReMatch:
		return e.regex(ctx, left, word)
	}
	right, err := e.Literal(ctx, word)
	if err != nil {
		return false, err
	}
	switch t.Op {
	case syntax.TsBefore:
		return left < right, nil
	case syntax.TsAfter:
		return left > right, nil
	case syntax.TsNewer, syntax.TsOlder, syntax.TsDevIno:
		return e.Files(t.Op.String(), left, right), nil
	}
	a, err := e.Eval(left)
	if err != nil {
		return false, err
	}
	b, err := e.Eval(right)
	if err != nil {
		return false, err
	}
	return Compare(t.Op.String(), a, b), nil
}

// Compare is -eq, -ne, -lt, -le, -gt, -ge.
func Compare(op string, a, b int64) bool {
	switch op {
	case "-eq":
		return a == b
	case "-ne":
		return a != b
	case "-lt":
		return a < b
	case "-le":
		return a <= b
	case "-gt":
		return a > b
	}
	return a >= b
}

// regex is =~ : it sets BASH_REMATCH.
func (e *Expander) regex(ctx context.Context, s string, w *syntax.Word) (bool, error) {
	x := e.start(ctx)
	if err := x.regexParts(w.Parts); err != nil {
		return false, err
	}
	var b strings.Builder
	for _, g := range x.segs {
		if g.quoted {
			b.WriteString(regex.Quote(g.s, regex.ERE))
		} else {
			b.WriteString(g.s)
		}
	}
	key := regexKey{b.String(), e.Host.Option("nocasematch")}
	re := e.regexes[key]
	if re == nil {
		flags := regex.LoneParen
		if key.fold {
			flags |= regex.IgnoreCase
		}
		var err error
		if re, err = regex.Compile(key.s, regex.ERE, flags); err != nil {
			return false, &RegexError{}
		}
		if e.regexes == nil || len(e.regexes) >= 64 {
			e.regexes = map[regexKey]*regex.Regexp{}
		}
		e.regexes[key] = re
	}
	groups := re.FindString(ctx, s)
	// A script that made it read-only keeps its value: bash says nothing either.
	_ = e.Vars.SetList("BASH_REMATCH", groups)
	return groups != nil, nil
}

type regexKey struct {
	s    string
	fold bool
}

// regexParts expands the right side of =~, where a backslash belongs to the expression.
func (x *expansion) regexParts(parts []syntax.WordPart) error {
	for i, p := range parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			if err := x.part(p, unquoted); err != nil {
				return err
			}
			continue
		}
		s := lit.Value
		if i == 0 && s != "" && s[0] == '~' {
			s = x.tildes(s, len(parts) == 1, false)
		}
		x.add(s, false)
	}
	return nil
}

// Unary is a test of one operand: -f, -z, -v and so on.
func (e *Expander) Unary(op, arg string) (bool, error) {
	switch op {
	case "-z":
		return arg == "", nil
	case "-n":
		return arg != "", nil
	case "-o":
		return e.Host.Option(arg), nil
	case "-v":
		return e.isSet(arg)
	case "-R":
		v, ok := e.Vars.Raw(arg)
		return ok && v.Attr&vars.NameRef != 0 && v.Kind != vars.Unset, nil
	case "-t":
		n, err := strconv.Atoi(strings.TrimSpace(arg))
		return err == nil && e.Host.Terminal(n), nil
	case "-h", "-L":
		info, err := os.Lstat(e.abs(arg))
		return arg != "" && err == nil && info.Mode()&fs.ModeSymlink != 0, nil
	}
	if arg == "" {
		return false, nil
	}
	if op == "-x" && e.Host.Executable(e.abs(arg)) {
		return true, nil
	}
	info, ok := e.stat(arg)
	if !ok {
		return (op == "-e" || op == "-a" || op == "-f" || op == "-r") && e.Host.Executable(e.abs(arg)), nil
	}
	mode := info.Mode()
	switch op {
	case "-e", "-a":
		return true, nil
	case "-f":
		return mode.IsRegular(), nil
	case "-d":
		return mode.IsDir(), nil
	case "-s":
		return info.Size() > 0, nil
	case "-p":
		return mode&fs.ModeNamedPipe != 0, nil
	case "-S":
		return mode&fs.ModeSocket != 0, nil
	case "-c":
		return mode&fs.ModeCharDevice != 0, nil
	case "-b":
		return mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0, nil
	case "-u":
		return mode&fs.ModeSetuid != 0, nil
	case "-g":
		return mode&fs.ModeSetgid != 0, nil
	case "-k":
		return mode&fs.ModeSticky != 0, nil
	case "-r", "-w", "-x":
		if _, own := descriptor(e.abs(arg)); own {
			return op != "-x", nil
		}
		return access(e.abs(arg), op[1], info), nil
	case "-O", "-G":
		return owned(info, op == "-G"), nil
	case "-N":
		return !accessed(info).After(info.ModTime()), nil
	}
	return false, &Unknown{op}
}

// Unknown is an operator that there is not.
type Unknown struct{ Op string }

func (u *Unknown) Error() string { return u.Op + ": unary operator expected" }

// isSet is -v: a variable, an element, or any element of an array.
func (e *Expander) isSet(ref string) (bool, error) {
	if !vars.ValidName(ref) {
		if name, _, has := vars.SplitRef(ref); !has || !vars.ValidName(name) {
			n, err := strconv.Atoi(ref)
			return err == nil && n > 0 && n <= len(e.Host.Params()), nil
		}
	}
	x := e.start(context.Background())
	if name, sub, has := vars.SplitRef(ref); has && (sub == "@" || sub == "*") {
		// For an associative array they are keys, unless there is none of that name.
		v, ok := e.Vars.Get(name)
		return ok && len(v.Values()) > 0, nil
	}
	v, err := x.lookupText(ref)
	return v.set, err
}

func (e *Expander) abs(name string) string {
	if name == "" || name[0] == '/' {
		return name
	}
	return strings.TrimSuffix(e.Host.Dir(), "/") + "/" + name
}

// Descriptors is a [Host] that knows what its descriptors are: for /dev/stdin and /dev/fd/N, which are no files.
type Descriptors interface {
	StatFd(fd int) (fs.FileInfo, error)
}

// descriptor returns the descriptor that a path under /dev names.
func descriptor(name string) (int, bool) {
	switch name {
	case "/dev/stdin":
		return 0, true
	case "/dev/stdout":
		return 1, true
	case "/dev/stderr":
		return 2, true
	}
	if s, ok := strings.CutPrefix(name, "/dev/fd/"); ok {
		n, err := strconv.Atoi(s)
		return n, err == nil && n >= 0
	}
	return 0, false
}

func (e *Expander) stat(name string) (fs.FileInfo, bool) {
	name = e.abs(name)
	if fd, ok := descriptor(name); ok {
		if d, ok := e.Host.(Descriptors); ok {
			info, err := d.StatFd(fd)
			return info, err == nil
		}
	}
	info, err := os.Stat(name)
	return info, err == nil
}

// Files is -nt, -ot and -ef.
func (e *Expander) Files(op, a, b string) bool {
	x, okX := e.stat(a)
	y, okY := e.stat(b)
	switch op {
	case "-nt":
		return okX && (!okY || x.ModTime().After(y.ModTime()))
	case "-ot":
		return okY && (!okX || x.ModTime().Before(y.ModTime()))
	}
	return okX && okY && os.SameFile(x, y)
}

func accessed(info fs.FileInfo) time.Time {
	if t, ok := accessTime(info); ok {
		return t
	}
	return info.ModTime()
}

// Subscript expands the text of a subscript that a command was given, as in unset 'a[$i]': a key may be quoted too.
func (e *Expander) Subscript(name, sub string) (string, error) {
	if !strings.ContainsAny(sub, "\"'$`\\") {
		return sub, nil
	}
	ctx := context.Background()
	if v, _ := e.Vars.Get(name); v.Kind == vars.Assoc && strings.ContainsAny(sub, "\"'\\") {
		var words []*syntax.Word
		for w, err := range e.parser().WordsSeq(strings.NewReader(sub)) {
			if err != nil {
				return sub, nil // half a pair of quotes belongs to the key
			}
			words = append(words, w)
		}
		if len(words) == 1 {
			return e.Literal(ctx, words[0])
		}
	}
	x := e.start(ctx)
	err := x.inner(sub, double)
	return join(x.segs), err
}
