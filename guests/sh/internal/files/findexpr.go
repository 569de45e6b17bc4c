package files

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/files/glob"
	"github.com/exthost/exthost/guests/sh/internal/regex"
	"github.com/exthost/exthost/guests/sh/internal/sys"
)

// findParser reads find's expression.
type findParser struct {
	f    *finder
	args []string
	deep int
}

// maxNesting bounds parentheses and negations.
const maxNesting = 1000

func (p *findParser) whole() (node, error) {
	if len(p.args) == 0 {
		return printPath, nil
	}
	expr, err := p.list()
	if err != nil {
		return nil, err
	}
	if len(p.args) > 0 {
		switch p.args[0] {
		case ")":
			return nil, errFind("invalid expression; you have too many ')'")
		}
		return nil, errFind(fmt.Sprintf("paths must precede expression: `%s'", p.args[0]))
	}
	if p.f.acts {
		return expr, nil
	}
	return func(f *finder, at *found) bool { return expr(f, at) && printPath(f, at) }, nil
}

func printPath(f *finder, at *found) bool {
	f.out.WriteString(at.path)
	f.out.WriteByte('\n')
	return true
}

func (p *findParser) peek(words ...string) bool {
	if len(p.args) > 0 {
		for _, w := range words {
			if p.args[0] == w {
				return true
			}
		}
	}
	return false
}

func (p *findParser) next() string {
	a := p.args[0]
	p.args = p.args[1:]
	return a
}

// list is expr , expr.
func (p *findParser) list() (node, error) {
	left, err := p.or()
	for err == nil && p.peek(",") {
		p.next()
		var right node
		if right, err = p.or(); err == nil {
			first := left
			left = func(f *finder, at *found) bool {
				first(f, at)
				return !f.quit && right(f, at)
			}
		}
	}
	return left, err
}

func (p *findParser) or() (node, error) {
	left, err := p.and()
	for err == nil && p.peek("-o", "-or") {
		op := p.next()
		if len(p.args) == 0 || p.peek(")", ",") {
			return nil, errFind(fmt.Sprintf("expected an expression after '%s'", op))
		}
		var right node
		if right, err = p.and(); err == nil {
			first := left
			left = func(f *finder, at *found) bool { return first(f, at) || !f.quit && right(f, at) }
		}
	}
	return left, err
}

func (p *findParser) and() (node, error) {
	left, err := p.not()
	for err == nil && len(p.args) > 0 && !p.peek("-o", "-or", ")", ",") {
		if p.peek("-a", "-and") {
			op := p.next()
			if len(p.args) == 0 || p.peek(")", ",", "-o", "-or") {
				return nil, errFind(fmt.Sprintf("expected an expression after '%s'", op))
			}
		} else if !strings.HasPrefix(p.args[0], "-") && !p.peek("(", "!") {
			return left, nil // whole says that paths come first
		}
		var right node
		if right, err = p.not(); err == nil {
			first := left
			left = func(f *finder, at *found) bool { return first(f, at) && !f.quit && right(f, at) }
		}
	}
	return left, err
}

func (p *findParser) not() (node, error) {
	if p.deep++; p.deep > maxNesting {
		return nil, errFind("the expression is nested too deeply")
	}
	defer func() { p.deep-- }()
	if len(p.args) == 0 {
		return nil, errFind("invalid expression")
	}
	switch {
	case p.peek("!", "-not"):
		op := p.next()
		if len(p.args) == 0 || p.peek(")", ",", "-o", "-or", "-a", "-and") {
			return nil, errFind(fmt.Sprintf("expected an expression after '%s'", op))
		}
		inner, err := p.not()
		if err != nil {
			return nil, err
		}
		return func(f *finder, at *found) bool { return !inner(f, at) }, nil
	case p.peek("("):
		p.next()
		if len(p.args) == 0 {
			return nil, errFind("invalid expression; expected to find a ')' but didn't see one. Perhaps you need an extra predicate after '('")
		}
		if p.peek(")") {
			return nil, errFind("invalid expression; empty parentheses are not allowed.")
		}
		inner, err := p.list()
		if err != nil {
			return nil, err
		}
		if !p.peek(")") {
			return nil, errFind("invalid expression; I was expecting to find a ')' somewhere but did not see one.")
		}
		p.next()
		return inner, nil
	case p.peek("-o", "-or", "-a", "-and", ","):
		return nil, errFind(fmt.Sprintf("invalid expression; you have used a binary operator '%s' with nothing before it.", p.args[0]))
	case p.peek(")"):
		return nil, errFind("invalid expression; you have too many ')'")
	}
	return p.primary(p.next())
}

func always(*finder, *found) bool { return true }

func (p *findParser) primary(name string) (node, error) {
	f := p.f
	switch name {
	case "-true", "-noleaf", "-mount", "-xdev", "-ignore_readdir_race", "-noignore_readdir_race", "-warn", "-nowarn":
		// There is one file system as far as anyone can see, and it is not raced.
		return always, nil
	case "-false":
		return func(*finder, *found) bool { return false }, nil
	case "-depth", "-d":
		f.depthFirst = true
		return always, nil
	case "-follow":
		f.follow = 'L'
		return always, nil
	case "-daystart":
		now := time.Now().In(f.zone)
		f.now = time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, f.zone)
		return always, nil
	case "-empty":
		return (*finder).empty, nil
	case "-prune":
		return func(f *finder, at *found) bool {
			f.prune = true
			return true
		}, nil
	case "-quit":
		f.acts = true
		return func(f *finder, _ *found) bool {
			f.quit = true
			return true
		}, nil
	case "-print":
		f.acts = true
		return printPath, nil
	case "-print0":
		f.acts = true
		return func(f *finder, at *found) bool {
			f.out.WriteString(at.path)
			f.out.WriteByte(0)
			return true
		}, nil
	case "-ls":
		f.acts = true
		return func(f *finder, at *found) bool {
			f.list(f.out, at)
			return true
		}, nil
	case "-delete":
		f.acts, f.depthFirst = true, true
		return (*finder).remove, nil
	case "-readable", "-writable":
		return always, nil
	case "-executable":
		return (*finder).executable, nil
	case "-nouser", "-nogroup":
		return func(*finder, *found) bool { return false }, nil
	case "-exec", "-execdir":
		return p.execute(name)
	case "-ok", "-okdir":
		return nil, errFind(fmt.Sprintf("%s is not supported: nobody is there to ask", name))
	}
	// All others take one argument, or two.
	if !strings.HasPrefix(name, "-") {
		return nil, errFind(fmt.Sprintf("paths must precede expression: `%s'", name))
	}
	known := strings.Contains(" -name -iname -lname -ilname -path -wholename -ipath -iwholename -regex -iregex -regextype -type -xtype -size"+
		" -mtime -atime -ctime -mmin -amin -cmin -used -newer -anewer -cnewer -maxdepth -mindepth -perm -user -group -uid -gid -links -inum -samefile"+
		" -fstype -printf -fprint -fprint0 -fprintf -fls ", " "+name+" ") || strings.HasPrefix(name, "-newer") && len(name) == len("-newerXY")
	if !known {
		return nil, errFind(fmt.Sprintf("unknown predicate `%s'", name))
	}
	if len(p.args) == 0 {
		return nil, errFind(fmt.Sprintf("missing argument to `%s'", name))
	}
	arg := p.next()
	bad := errFind(fmt.Sprintf("invalid argument `%s' to `%s'", arg, name))
	switch name {
	case "-name", "-iname":
		flags := caseOf(name)
		return func(_ *finder, at *found) bool { return glob.Match(arg, base(at.path), flags) }, nil
	case "-lname", "-ilname":
		flags := caseOf(name)
		return func(f *finder, at *found) bool {
			if !at.in.link() {
				return false
			}
			to, err := os.Readlink(f.c.Path(at.path))
			return err == nil && glob.Match(arg, to, flags)
		}, nil
	case "-path", "-wholename", "-ipath", "-iwholename":
		flags := caseOf(name)
		return func(_ *finder, at *found) bool { return glob.Match(arg, at.path, flags) }, nil
	case "-regextype":
		switch arg {
		case "findutils-default", "emacs", "ed", "sed", "grep", "posix-basic", "posix-minimal-basic", "posix-extended", "posix-egrep", "egrep", "awk",
			"posix-awk", "gnu-awk":
			f.regex = arg
			return always, nil
		}
		return nil, errFind(fmt.Sprintf("Unknown regular expression type %s; valid types are ‘findutils-default’, ‘ed’, ‘emacs’, ‘gnu-awk’, ‘grep’, ‘posix-awk’, ‘awk’, ‘posix-basic’, ‘posix-egrep’, ‘egrep’, ‘posix-extended’, ‘posix-minimal-basic’, ‘sed’.", cmd.Quote(arg)))
	case "-regex", "-iregex":
		return p.matches(arg, name == "-iregex")
	case "-type", "-xtype":
		letters := strings.Split(arg, ",")
		want := ""
		for _, l := range letters {
			if len(l) != 1 || !strings.Contains("bcdpflsD", l) {
				if arg == "" {
					return nil, errFind(fmt.Sprintf("Arguments to %s should contain at least one letter", name))
				}
				return nil, errFind(fmt.Sprintf("Unknown argument to %s: %s", name, arg))
			}
			if strings.Contains(want, l) {
				return nil, errFind(fmt.Sprintf("Duplicate file type '%s' in the argument list to %s.", l, name))
			}
			want += l
		}
		want = strings.ReplaceAll(want, "f", "-")
		if name == "-xtype" {
			return func(f *finder, at *found) bool {
				in := at.bare
				if in.link() && f.follow != 'L' {
					if behind, err := status(f.c, at.path); err == nil {
						in = behind
					}
				}
				return strings.IndexByte(want, kind(in.Mode())) >= 0
			}, nil
		}
		return func(_ *finder, at *found) bool { return strings.IndexByte(want, kind(at.in.Mode())) >= 0 }, nil
	case "-size":
		unit, digits := int64(512), arg
		if arg != "" {
			if at := strings.IndexByte("bcwkMG", arg[len(arg)-1]); at >= 0 {
				unit = []int64{512, 1, 2, 1 << 10, 1 << 20, 1 << 30}[at]
				digits = arg[:len(arg)-1]
			}
		}
		sign, n, ok := number(digits)
		if !ok {
			return nil, errFind(fmt.Sprintf("Invalid argument `%s' to -size", arg))
		}
		return func(_ *finder, at *found) bool {
			return compare(sign, (at.in.Size()+unit-1)/unit, n)
		}, nil
	case "-mtime", "-atime", "-ctime", "-mmin", "-amin", "-cmin", "-used":
		return p.age(name, arg, bad)
	case "-newer", "-anewer", "-cnewer":
		which := "mm"
		if name != "-newer" {
			which = name[1:2] + "m"
		}
		return p.newer(which, arg)
	case "-maxdepth", "-mindepth":
		sign, n, ok := number(arg)
		if !ok || sign != 0 || n > 1<<30 {
			return nil, errFind(fmt.Sprintf("Expected a positive decimal integer argument to %s, but got %s", name, cmd.Quote(arg)))
		}
		if name == "-maxdepth" {
			f.maxDepth = int(n)
		} else {
			f.minDepth = int(n)
		}
		return always, nil
	case "-perm":
		return p.perm(arg)
	case "-user", "-group":
		who := arg == owner || arg == strconv.Itoa(ownerID)
		if _, err := strconv.Atoi(arg); err != nil && !who && arg != "root" {
			return nil, errFind(fmt.Sprintf("%s is not the name of %s", cmd.Quote(arg), map[bool]string{true: "a known user", false: "an existing group"}[name == "-user"]))
		}
		return func(*finder, *found) bool { return who }, nil
	case "-uid", "-gid":
		sign, n, ok := number(arg)
		if !ok {
			return nil, bad
		}
		return func(*finder, *found) bool { return compare(sign, ownerID, n) }, nil
	case "-links", "-inum":
		sign, n, ok := number(arg)
		if !ok {
			return nil, bad
		}
		if name == "-links" {
			return func(_ *finder, at *found) bool { return compare(sign, int64(at.in.nlink), n) }, nil
		}
		return func(_ *finder, at *found) bool { return compare(sign, int64(at.in.ino), n) }, nil
	case "-samefile":
		in, err := linkStatus(f.c, arg)
		if err == nil && f.follow != 'P' {
			in, err = status(f.c, arg)
		}
		if err != nil {
			return nil, errFind(cmd.Quote(arg) + ": " + cmd.Reason(err))
		}
		return func(_ *finder, at *found) bool { return sameFile(in, at.in) }, nil
	case "-fstype":
		return func(*finder, *found) bool { return arg == fsType }, nil
	case "-printf", "-fprintf", "-fprint", "-fprint0", "-fls":
		return p.print(name, arg)
	}
	return p.newer(name[len("-newer"):], arg)
}

func caseOf(name string) glob.Flag {
	if name[1] == 'i' {
		return glob.Fold
	}
	return 0
}

// compare judges have against +n, -n or n.
func compare(sign byte, have, n int64) bool {
	switch sign {
	case '+':
		return have > n
	case '-':
		return have < n
	}
	return have == n
}

func (p *findParser) matches(pattern string, ignoreCase bool) (node, error) {
	flags := regex.Line
	if ignoreCase {
		flags |= regex.IgnoreCase
	}
	syntax := regex.ERE
	switch p.f.regex {
	case "findutils-default", "emacs":
		pattern = emacs(pattern)
		flags |= regex.Lenient
	case "ed", "sed", "grep", "posix-basic", "posix-minimal-basic":
		syntax = regex.BRE
	}
	re, err := regex.Compile(pattern, syntax, flags)
	if err != nil {
		return nil, errFind(fmt.Sprintf("failed to compile regular expression '%s': %v", pattern, err))
	}
	return func(f *finder, at *found) bool { return re.Match(f.ctx, []byte(at.path)) }, nil
}

// emacs rewrites an expression of Emacs as an extended one: there \( \) \| are the operators, { is none, + ? * are.
func emacs(pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch x := pattern[i]; x {
		case '\\':
			if i++; i == len(pattern) {
				b.WriteString(`\\`)
				break
			}
			if strings.IndexByte("(|)", pattern[i]) < 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(pattern[i])
		case '(', ')', '|', '{', '}':
			b.WriteString(`\` + string(x))
		case '[':
			end := i + 1
			if end < len(pattern) && pattern[end] == '^' {
				end++
			}
			if end < len(pattern) && pattern[end] == ']' {
				end++
			}
			for end < len(pattern) && pattern[end] != ']' {
				if strings.HasPrefix(pattern[end:], "[:") {
					if at := strings.Index(pattern[end:], ":]"); at > 0 {
						end += at + 1
					}
				}
				end++
			}
			end = min(end, len(pattern)-1)
			b.WriteString(pattern[i : end+1])
			i = end
		default:
			b.WriteByte(x)
		}
	}
	return b.String()
}

func (p *findParser) age(name, arg string, bad error) (node, error) {
	digits := strings.TrimLeft(arg, "+-")
	value, err := strconv.ParseFloat(digits, 64)
	if err != nil || len(arg)-len(digits) > 1 || value < 0 || strings.Trim(digits, "0123456789.") != "" {
		return nil, bad
	}
	sign := byte(0)
	if arg != digits {
		sign = arg[0]
	}
	unit := 24 * time.Hour
	if strings.HasSuffix(name, "min") {
		unit = time.Minute
	}
	which := name[1]
	begin := p.f.now
	span := time.Duration(value * float64(unit))
	return func(_ *finder, at *found) bool {
		now, t := begin, timeOf(at.in, which)
		if name == "-used" {
			now, t = at.in.atime, at.in.ctime
		}
		age := now.Sub(t)
		// -n is younger than n units, +n older than n whole ones and one more, n between the two.
		switch sign {
		case '-':
			return age < span
		case '+':
			if unit == time.Minute {
				return age > span
			}
			return age >= span+unit
		}
		if unit == time.Minute {
			return age > span-unit && age <= span
		}
		return age >= span && age < span+unit
	}, nil
}

func timeOf(in *info, which byte) time.Time {
	switch which {
	case 'a':
		return in.atime
	case 'c':
		return in.ctime
	}
	return in.mtime
}

// newer is -newerXY: time X of the file against time Y of arg, or the time that arg is.
func (p *findParser) newer(which, arg string) (node, error) {
	if len(which) != 2 || !strings.Contains("amcB", which[:1]) || !strings.Contains("amcBt", which[1:]) {
		return nil, errFind(fmt.Sprintf("unknown predicate `-newer%s'", which))
	}
	var than time.Time
	if which[1] == 't' {
		t, ok := sys.ParseDate(arg, time.Now().In(p.f.zone))
		if !ok {
			return nil, errFind(fmt.Sprintf("I cannot figure out how to interpret %s as a date or time", cmd.Quote(arg)))
		}
		than = t
	} else {
		look := linkStatus
		if p.f.follow != 'P' {
			look = status
		}
		in, err := look(p.f.c, arg)
		if err != nil {
			return nil, errFind(cmd.Quote(arg) + ": " + cmd.Reason(err))
		}
		than = timeOf(in, which[1])
	}
	return func(_ *finder, at *found) bool { return timeOf(at.in, which[0]).After(than) }, nil
}

func (p *findParser) perm(arg string) (node, error) {
	mode := strings.TrimLeft(arg, "-/+")
	how := arg[:len(arg)-len(mode)]
	bad := errFind(fmt.Sprintf("invalid mode %s", cmd.Quote(arg)))
	if len(how) > 1 || how == "+" && strings.Trim(mode, "01234567") == "" || !validMode(mode) {
		return nil, bad
	}
	if how == "+" {
		how, mode = "", "+"+mode
	}
	want, ok := modeOf(mode)
	if !ok {
		return nil, bad
	}
	return func(_ *finder, at *found) bool {
		have := uint32(at.in.perm())
		switch how {
		case "-":
			return have&want == want
		case "/":
			return want == 0 || have&want != 0
		}
		return have == want
	}, nil
}

// executable is -executable: a folder, or a program by its first bytes. There are no mode bits.
func (f *finder) executable(at *found) bool {
	if at.in.IsDir() {
		return true
	}
	if !at.in.Mode().IsRegular() {
		return false
	}
	file, err := f.c.OpenFile(at.path, os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	var head [4]byte
	n, _ := file.Read(head[:])
	h := string(head[:n])
	return strings.HasPrefix(h, "#!") || h == "\x7fELF" || h == "\x00asm"
}

func (p *findParser) execute(name string) (node, error) {
	x := &execution{dir: name == "-execdir"}
	for i, a := range p.args {
		switch {
		case a == ";":
			x.argv = p.args[:i]
		case a == "+" && i > 0 && p.args[i-1] == "{}":
			x.argv, x.batch = p.args[:i-1], true
		default:
			continue
		}
		p.args = p.args[i+1:]
		if len(x.argv) == 0 {
			return nil, errFind(fmt.Sprintf("invalid argument `%s' to `%s'", a, name))
		}
		if x.batch {
			for _, arg := range x.argv {
				if strings.Contains(arg, "{}") {
					return nil, errFind(fmt.Sprintf("Only one instance of {} is supported with %s ... +", name))
				}
			}
			p.f.batches = append(p.f.batches, x)
		}
		p.f.acts = true
		return func(f *finder, at *found) bool { return x.run(f, at) }, nil
	}
	return nil, errFind(fmt.Sprintf("missing argument to `%s'", name))
}

func (p *findParser) print(name, arg string) (node, error) {
	f := p.f
	f.acts = true
	file, format := "", arg
	if name != "-printf" {
		file = arg
	}
	if name == "-fprintf" {
		if len(p.args) == 0 {
			return nil, errFind(fmt.Sprintf("missing argument to `%s'", name))
		}
		format = p.next()
	}
	w, err := f.output(file)
	if err != nil {
		return nil, err
	}
	switch name {
	case "-fprint", "-fprint0":
		end := byte('\n')
		if name == "-fprint0" {
			end = 0
		}
		return func(_ *finder, at *found) bool {
			w.WriteString(at.path)
			w.WriteByte(end)
			return true
		}, nil
	case "-fls":
		return func(f *finder, at *found) bool {
			f.list(w, at)
			return true
		}, nil
	}
	pieces, err := parsePrintf(f.c, format)
	if err != nil {
		return nil, err
	}
	return func(f *finder, at *found) bool {
		for _, piece := range pieces {
			if piece == nil {
				w.Flush()
				break
			}
			w.WriteString(piece(f, at))
		}
		return true
	}, nil
}

// piece is a part of a -printf format; nil is \c.
type piece func(f *finder, at *found) string

func parsePrintf(c *cmd.Call, format string) ([]piece, error) {
	var list []piece
	text := ""
	plain := func() {
		if text != "" {
			t := text
			list = append(list, func(*finder, *found) string { return t })
			text = ""
		}
	}
	for i := 0; i < len(format); i++ {
		switch format[i] {
		case '\\':
			if i++; i == len(format) {
				c.Errorf("warning: escape `\\' followed by nothing at all")
				text += `\`
				break
			}
			if at := strings.IndexByte("abfnrtv\\", format[i]); at >= 0 {
				text += "\a\b\f\n\r\t\v\\"[at : at+1]
			} else if format[i] == 'c' {
				plain()
				return append(list, nil), nil
			} else if format[i] >= '0' && format[i] <= '7' {
				end := i
				for end < len(format) && end < i+3 && format[end] >= '0' && format[end] <= '7' {
					end++
				}
				n, _ := strconv.ParseUint(format[i:end], 8, 16)
				text += string([]byte{byte(n)})
				i = end - 1
			} else {
				c.Errorf("warning: unrecognized escape `\\%c'", format[i])
				text += format[i-1 : i+1]
			}
		case '%':
			start := i
			i++
			for i < len(format) && strings.IndexByte("-+ #0", format[i]) >= 0 {
				i++
			}
			flags := format[start+1 : i]
			wide := i
			for i < len(format) && digit(format[i]) {
				i++
			}
			width, _ := strconv.Atoi(format[wide:i])
			precision := -1
			if i < len(format) && format[i] == '.' {
				dot := i + 1
				for i++; i < len(format) && digit(format[i]); i++ {
				}
				precision, _ = strconv.Atoi(format[dot:i])
			}
			if i == len(format) {
				return nil, errFind("error: % at end of format string")
			}
			letter, sub := format[i], byte(0)
			if letter == '%' {
				text += "%"
				break
			}
			if strings.IndexByte("ABCT", letter) >= 0 {
				if i++; i == len(format) {
					return nil, errFind(fmt.Sprintf("error: %s at end of format string", cmd.Quote("%"+string(letter))))
				}
				sub = format[i]
			}
			value := directive(letter, sub)
			if value == nil {
				c.Errorf("warning: unrecognized format directive `%%%c'", letter)
				text += format[start : i+1]
				break
			}
			plain()
			width, precision = min(width, 1<<16), min(precision, 1<<16)
			numeric := strings.IndexByte("dm", letter) >= 0
			list = append(list, func(f *finder, at *found) string { return pad(value(f, at), flags, width, precision, numeric) })
		default:
			text += format[i : i+1]
		}
	}
	plain()
	return list, nil
}

// pad applies the flags, width and precision of a directive.
func pad(s, flags string, width, precision int, numeric bool) string {
	if numeric {
		if precision > len(s) {
			s = strings.Repeat("0", precision-len(s)) + s
		}
		if strings.Contains(flags, "+") {
			s = "+" + s
		}
	} else if precision >= 0 && precision < len(s) {
		s = s[:precision]
	}
	if n := width - len(s); n > 0 {
		switch {
		case strings.Contains(flags, "-"):
			s += strings.Repeat(" ", n)
		case numeric && strings.Contains(flags, "0") && precision < 0:
			s = strings.Repeat("0", n) + s
		default:
			s = strings.Repeat(" ", n) + s
		}
	}
	return s
}

func directive(letter, sub byte) piece {
	num := func(get func(in *info) int64) piece {
		return func(_ *finder, at *found) string { return strconv.FormatInt(get(at.in), 10) }
	}
	text := func(s string) piece { return func(*finder, *found) string { return s } }
	switch letter {
	case 'p':
		return func(_ *finder, at *found) string { return at.path }
	case 'f':
		return func(_ *finder, at *found) string {
			if i := strings.LastIndexByte(stripSlashes(at.path), '/'); i >= 0 && at.depth == 0 && at.path != "/" {
				return at.path[i+1:]
			} else if at.depth == 0 {
				return at.path
			}
			return at.path[strings.LastIndexByte(at.path, '/')+1:]
		}
	case 'h':
		return func(_ *finder, at *found) string {
			name := at.path
			i := strings.LastIndexByte(name, '/')
			if i < 0 {
				return "."
			}
			if i == 0 && len(name) > 1 {
				return ""
			}
			return name[:i]
		}
	case 'P':
		return func(_ *finder, at *found) string {
			return strings.TrimPrefix(strings.TrimPrefix(at.path, at.start), "/")
		}
	case 'H':
		return func(_ *finder, at *found) string { return at.start }
	case 'd':
		return func(_ *finder, at *found) string { return strconv.Itoa(at.depth) }
	case 's':
		return num(func(in *info) int64 { return in.Size() })
	case 'b':
		return num((*info).blocks)
	case 'k':
		return num(func(in *info) int64 { return (in.blocks() + 1) / 2 })
	case 'S':
		return func(_ *finder, at *found) string {
			if at.in.Size() == 0 {
				return "1"
			}
			return strconv.FormatFloat(float64(at.in.blocks()*512)/float64(at.in.Size()), 'g', 6, 64)
		}
	case 'i':
		return num(func(in *info) int64 { return int64(in.ino) })
	case 'n':
		return num(func(in *info) int64 { return int64(in.nlink) })
	case 'D':
		return num(func(in *info) int64 { return int64(in.dev) })
	case 'm':
		return num(func(in *info) int64 {
			n, _ := strconv.ParseInt(strconv.FormatUint(uint64(in.perm()), 8), 10, 64)
			return n
		})
	case 'M':
		return func(_ *finder, at *found) string { return at.in.modeString() }
	case 'u', 'g':
		return text(owner)
	case 'U', 'G':
		return text(strconv.Itoa(ownerID))
	case 'F':
		return text(fsType)
	case 'Z':
		return text("")
	case 'y', 'Y':
		return func(f *finder, at *found) string {
			in := at.in
			if letter == 'Y' && in.link() {
				behind, err := status(f.c, at.path)
				if err != nil {
					if os.IsNotExist(err) {
						return "N"
					}
					return "L"
				}
				in = behind
			}
			if k := kind(in.Mode()); k != '-' {
				return string(k)
			}
			return "f"
		}
	case 'l':
		return func(f *finder, at *found) string {
			if !at.in.link() {
				return ""
			}
			to, err := os.Readlink(f.c.Path(at.path))
			if err != nil {
				return ""
			}
			return to
		}
	case 'a', 'c', 't':
		return func(f *finder, at *found) string {
			t := timeOf(at.in, letter).In(f.zone)
			return sys.Strftime("%a %b %e %H:%M:%S", t) + fraction(t) + sys.Strftime(" %Y", t)
		}
	case 'A', 'B', 'C', 'T':
		which := letter | 0x20
		return func(f *finder, at *found) string {
			t := timeOf(at.in, which).In(f.zone)
			switch sub {
			case '@':
				return strconv.FormatInt(t.Unix(), 10) + fraction(t)
			case '+':
				return sys.Strftime("%Y-%m-%d+%H:%M:%S", t) + fraction(t)
			case 'S':
				return sys.Strftime("%S", t) + fraction(t)
			case 'T', 'X':
				return sys.Strftime("%H:%M:%S", t) + fraction(t)
			case 'r':
				return sys.Strftime("%I:%M:%S", t) + fraction(t) + sys.Strftime(" %p", t)
			}
			return sys.Strftime("%"+string(sub), t)
		}
	}
	return nil
}

// fraction is the part of a second as find shows it: ten digits, the last a zero.
func fraction(t time.Time) string { return fmt.Sprintf(".%09d0", t.Nanosecond()) }

// fsType is the name of the file system.
const fsType = "exthost"
