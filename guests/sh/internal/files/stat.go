package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/sys"
)

const (
	statDefault = "  File: %N\n  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F\nDevice: %Hd,%Ld\tInode: %-11i Links: %h\n" +
		"Access: (%04a/%10.10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)\nAccess: %x\nModify: %y\nChange: %z\n Birth: %w\n"
	statTerse   = "%n %s %b %f %u %g %D %i %h %t %T %X %Y %Z %W %o\n"
	statFS      = "  File: \"%n\"\n    ID: %-8i Namelen: %-7l Type: %T\nBlock size: %-10s Fundamental block size: %S\nBlocks: Total: %-10b Free: %-10f Available: %a\nInodes: Total: %-10c Free: %d\n"
	statFSTerse = "%n %i %l %t %s %S %b %f %a %c %d\n"
)

// stat is GNU's, and BSD's where its -f takes a format.
//
// GNU's -f asks about the file system, and the word behind it would be a file; BSD's -f takes a format. A word with a % behind -f
// that is no file is such a format, so that both branches of `stat -f%z F || stat -c%s F` print the size, in any order.
func stat(ctx context.Context, c *cmd.Call) int {
	if code, ok := statBSD(ctx, c); ok {
		return code
	}
	given, operands, code, ok := options(c, "L,dereference f,file-system c,format= ,printf= t,terse ,cached=", "[OPTION]... FILE...", 1)
	if !ok {
		return code
	}
	var follow, system, terse, escapes bool
	format, end, has := "", "\n", false
	for _, g := range given {
		switch g.Key {
		case "L":
			follow = true
		case "f":
			system = true
		case "c":
			format, end, has, escapes = g.Value, "\n", true, false
		case "printf":
			format, end, has, escapes = g.Value, "", true, true
		case "t":
			terse = true
		case "cached": // there is no cache
		}
	}
	if len(operands) == 0 {
		return usage(c, "missing operand")
	}
	if !has {
		end = ""
		switch {
		case system && terse:
			format = statFSTerse
		case system:
			format = statFS
		case terse:
			format = statTerse
		default:
			format = statDefault
		}
	}
	out := c.Buffered()
	defer out.Flush()
	code = 0
	for _, name := range operands {
		cmd.Check(ctx)
		s := &statFile{c: c, name: name, zone: sys.Local(c), bare: !has}
		look := linkStatus
		if follow || system {
			look = status
		}
		var err error
		if name == "-" {
			s.in, err = status(c, "/dev/stdin")
		} else {
			s.in, err = look(c, name)
		}
		if err != nil {
			out.Flush()
			if system {
				c.Errorf("cannot read file system information for %s: %s", quote(name), cmd.Reason(err))
			} else {
				c.Errorf("cannot statx %s: %s", quote(name), cmd.Reason(err))
			}
			code = 1
			continue
		}
		f := format
		if !has && !system && !terse && strings.IndexByte("cb", kind(s.in.Mode())) >= 0 {
			f = strings.Replace(f, "Links: %h\n", "Links: %-5h Device type: %Hr,%Lr\n", 1)
		}
		directive := s.file
		if system {
			directive = s.system
		}
		text, err := statFormat(f, escapes, directive)
		out.WriteString(text)
		if err != nil {
			out.Flush()
			c.Errorf("%v", err)
			return 1
		}
		out.WriteString(end)
	}
	return code
}

// statFile is a file that stat tells about.
type statFile struct {
	c    *cmd.Call
	name string
	in   *info
	zone *time.Location
	bare bool // %N does not quote, as in the listing of no format's
}

// statFormat writes a format with what directive says of each %.
func statFormat(format string, escapes bool, directive func(name string) (string, bool)) (string, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		switch {
		case format[i] == '%':
			start := i
			i++
			for i < len(format) && strings.IndexByte("#0+- '", format[i]) >= 0 {
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
				if i == start+1 {
					b.WriteByte('%')
					break
				}
				return b.String(), fmt.Errorf("%s: invalid directive", cmd.Quote(format[start:]))
			}
			if format[i] == '%' {
				if i != start+1 {
					return b.String(), fmt.Errorf("%s: invalid directive", cmd.Quote(format[start:i+1]))
				}
				b.WriteByte('%')
				break
			}
			name := format[i : i+1]
			if (name == "H" || name == "L") && i+1 < len(format) && (format[i+1] == 'd' || format[i+1] == 'r') {
				i++
				name += format[i : i+1]
			}
			text, ok := directive(name)
			if !ok {
				b.WriteString("?") // as GNU's
				break
			}
			width = min(width, 1<<16)
			if precision >= 0 && strings.Contains("XYZW", name) {
				text += "." + statFraction(directive, name, precision)
			} else {
				precision = min(precision, 1<<16)
				octal := strings.Contains(flags, "#") && name == "a"
				if octal && !strings.HasPrefix(text, "0") {
					text = "0" + text
				}
				if strings.Contains(flags, "#") && strings.Contains("fDR", name) {
					text = "0x" + text
				}
				text = pad(text, flags, width, precision, strings.Contains("abBdDfghioRstTuXYZWHdLdHrLrScl", name))
				width = 0
			}
			if n := width - len(text); n > 0 {
				text = strings.Repeat(" ", n) + text
			}
			b.WriteString(text)
		case format[i] == '\\' && escapes:
			if i++; i == len(format) {
				b.WriteByte('\\')
				break
			}
			switch x := format[i]; {
			case strings.IndexByte("abefnrtv\\\"", x) >= 0:
				b.WriteByte("\a\b\x1b\f\n\r\t\v\\\""[strings.IndexByte("abefnrtv\\\"", x)])
			case x >= '0' && x <= '7':
				last := i
				for last < len(format) && last < i+3 && format[last] >= '0' && format[last] <= '7' {
					last++
				}
				n, _ := strconv.ParseUint(format[i:last], 8, 16)
				b.WriteByte(byte(n))
				i = last - 1
			case x == 'x' && i+1 < len(format) && strings.IndexByte("0123456789abcdefABCDEF", format[i+1]) >= 0:
				last := i + 1
				for last < len(format) && last < i+3 && strings.IndexByte("0123456789abcdefABCDEF", format[last]) >= 0 {
					last++
				}
				n, _ := strconv.ParseUint(format[i+1:last], 16, 8)
				b.WriteByte(byte(n))
				i = last - 1
			default:
				b.WriteString(`\` + string(x))
			}
		default:
			b.WriteByte(format[i])
		}
	}
	return b.String(), nil
}

// statFraction is the part of a second of a time, cut to digits.
func statFraction(directive func(string) (string, bool), name string, digits int) string {
	nanos, _ := directive(name + ".")
	if digits == 0 {
		digits = 9
	}
	for len(nanos) < digits && len(nanos) < 1<<10 {
		nanos += "0"
	}
	return nanos[:min(digits, len(nanos))]
}

func major(dev uint64) uint64 { return dev>>8&0xfff | dev>>32&^0xfff }
func minor(dev uint64) uint64 { return dev&0xff | dev>>12&^0xff }

// file answers the directives for files.
func (s *statFile) file(name string) (string, bool) {
	in := s.in
	dec := func(n uint64) (string, bool) { return strconv.FormatUint(n, 10), true }
	stamp := func(t time.Time) (string, bool) {
		return sys.Strftime("%Y-%m-%d %H:%M:%S.%N %z", t.In(s.zone)), true
	}
	switch name {
	case "n":
		return s.name, true
	case "N":
		quoted := quote
		if s.bare {
			quoted = func(name string) string { return name }
		}
		text := quoted(s.name)
		if in.link() {
			if to, err := os.Readlink(s.c.Path(s.name)); err == nil {
				text += " -> " + quoted(to)
			}
		}
		return text, true
	case "s":
		return strconv.FormatInt(in.Size(), 10), true
	case "b":
		return strconv.FormatInt(in.blocks(), 10), true
	case "B":
		return "512", true
	case "o":
		return "4096", true
	case "F":
		return in.kindName(), true
	case "d":
		return dec(in.dev)
	case "D":
		return strconv.FormatUint(in.dev, 16), true
	case "Hd":
		return dec(major(in.dev))
	case "Ld":
		return dec(minor(in.dev))
	case "r", "R", "Hr", "Lr", "t", "T":
		return "0", true
	case "i":
		return dec(in.ino)
	case "h":
		return dec(in.nlink)
	case "a":
		return strconv.FormatUint(uint64(in.perm()), 8), true
	case "A":
		return in.modeString(), true
	case "f":
		return strconv.FormatUint(uint64(in.modeBits()), 16), true
	case "u", "g":
		return strconv.Itoa(ownerID), true
	case "U", "G":
		return owner, true
	case "m":
		return "/", true
	case "C":
		return "?", true
	case "x":
		return stamp(in.atime)
	case "y":
		return stamp(in.mtime)
	case "z":
		return stamp(in.ctime)
	case "w": // nobody knows when it was made
		return "-", true
	case "W":
		return "0", true
	case "X", "Y", "Z":
		return strconv.FormatInt(s.time(name).Unix(), 10), true
	case "X.", "Y.", "Z.":
		return fmt.Sprintf("%09d", s.time(name[:1]).Nanosecond()), true
	case "W.":
		return "000000000", true
	}
	return "", false
}

func (s *statFile) time(name string) time.Time {
	switch name {
	case "X":
		return s.in.atime
	case "Z":
		return s.in.ctime
	}
	return s.in.mtime
}

// system answers the directives for file systems: see df for the figures.
func (s *statFile) system(name string) (string, bool) {
	space := diskSpace(s.c.Path(s.name))
	switch name {
	case "n":
		return s.name, true
	case "i":
		return "0", true
	case "l":
		return "255", true
	case "t":
		return "0", true
	case "T":
		return fsType, true
	case "s", "S":
		return "4096", true
	case "b":
		return strconv.FormatUint(space.total/4096, 10), true
	case "f":
		return strconv.FormatUint(space.free/4096, 10), true
	case "a":
		return strconv.FormatUint(space.available/4096, 10), true
	case "c", "d":
		return "0", true
	}
	return "", false
}

// statBSD is stat as BSD has it: -f FORMAT, -t TIMEFORMAT, -L, -n, -q.
func statBSD(ctx context.Context, c *cmd.Call) (code int, ok bool) {
	format, times := "", "%b %e %H:%M:%S %Y"
	var has, follow, line, quiet bool
	line = true
	args := c.Args
options:
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		letters := args[0][1:]
		args = args[1:]
		for i := 0; i < len(letters); i++ {
			value := letters[i+1:]
			switch letters[i] {
			case 'L':
				follow = true
				continue
			case 'n':
				line = false
				continue
			case 'q':
				quiet = true
				continue
			case 'f', 't':
				if value == "" {
					if len(args) == 0 {
						return 0, false
					}
					value, args = args[0], args[1:]
				}
				if letters[i] == 't' {
					times = value
				} else {
					format, has = value, true
				}
				continue options
			case '-':
				if letters == "-" {
					break options
				}
			}
			return 0, false
		}
	}
	if !has || !strings.Contains(format, "%") {
		return 0, false
	}
	if _, err := linkStatus(c, format); err == nil || len(args) == 0 {
		return 0, false // GNU's -f, and a file
	}
	out := c.Buffered()
	defer out.Flush()
	for _, name := range args {
		cmd.Check(ctx)
		look := linkStatus
		if follow {
			look = status
		}
		in, err := look(c, name)
		if err != nil {
			out.Flush()
			if !quiet {
				c.Errorf("%s: stat: %s", name, cmd.Reason(err))
			}
			code = 1
			continue
		}
		s := &statFile{c: c, name: name, in: in, zone: sys.Local(c)}
		text, err := s.bsd(format, times)
		if err != nil {
			out.Flush()
			c.Errorf("%v", err)
			return 1, true
		}
		out.WriteString(text)
		if line {
			out.WriteByte('\n')
		}
	}
	return code, true
}

// bsd writes a format of BSD's stat: %, flags, width, precision, form (D O U X F S), part (H M L), datum.
func (s *statFile) bsd(format, times string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		start := i
		i++
		for i < len(format) && strings.IndexByte("#+-0 ", format[i]) >= 0 {
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
		form, part := byte(0), byte(0)
		if i < len(format) && strings.IndexByte("DOUXFS", format[i]) >= 0 {
			form = format[i]
			i++
		}
		if i < len(format) && strings.IndexByte("HML", format[i]) >= 0 {
			part = format[i]
			i++
		}
		if i == len(format) {
			return "", errors.New("missing format character after %")
		}
		letter := format[i]
		if strings.IndexByte("nt%@", letter) >= 0 {
			b.WriteString(map[byte]string{'n': "\n", 't': "\t", '%': "%", '@': "1"}[letter])
			continue
		}
		text, numeric, ok := s.bsdDatum(letter, form, part, times)
		if !ok {
			return "", fmt.Errorf("%s: bad format", format)
		}
		b.WriteString(pad(text, flags, min(width, 1<<16), min(precision, 1<<16), numeric))
	}
	return b.String(), nil
}

func (s *statFile) bsdDatum(letter, form, part byte, times string) (text string, numeric, ok bool) {
	in := s.in
	var n uint64
	base := 10
	switch letter {
	case 'N':
		return s.name, false, true
	case 'R':
		full, err := canonical(s.c, s.name, lastMay)
		return full, false, err == nil
	case 'Y':
		if !in.link() {
			return "", false, true
		}
		to, err := os.Readlink(s.c.Path(s.name))
		if err != nil {
			return "", false, true
		}
		if form == 'S' {
			to = " -> " + to
		}
		return to, false, true
	case 'T':
		k := kind(in.Mode())
		if part != 'H' {
			return map[byte]string{'d': "/", 'l': "@", 'p': "|", 's': "="}[k], false, true
		}
		return map[byte]string{'-': "Regular File", 'd': "Directory", 'l': "Symbolic Link", 'p': "Fifo File", 's': "Socket", 'c': "Character Device", 'b': "Block Device"}[k], false, true
	case 'a', 'm', 'c', 'B':
		t := timeOf(in, letter).In(s.zone)
		switch form {
		case 'S':
			return sys.Strftime(times, t), false, true
		case 'F':
			return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond()), true, true
		}
		return strconv.FormatInt(t.Unix(), 10), true, true
	case 'p':
		if form == 'S' {
			switch mode := in.modeString(); part {
			case 'H':
				return mode[1:4], false, true
			case 'M':
				return mode[4:7], false, true
			case 'L':
				return mode[7:10], false, true
			default:
				return mode, false, true
			}
		}
		base, n = 8, uint64(in.modeBits())
		switch part {
		case 'H':
			n >>= 12
		case 'M':
			n = n >> 9 & 7
		case 'L':
			n &= 0o777
		}
	case 'u', 'g':
		if form == 'S' {
			return owner, false, true
		}
		n = ownerID
	case 'z':
		n = uint64(in.Size())
	case 'b':
		n = uint64(in.blocks())
	case 'k':
		n = 4096
	case 'i':
		n = in.ino
	case 'l':
		n = in.nlink
	case 'd':
		n = in.dev
	case 'r', 'f', 'v':
		n = 0
	default:
		return "", false, false
	}
	switch form {
	case 'D', 'U':
		base = 10
	case 'O':
		base = 8
	case 'X':
		base = 16
	case 'F', 'S':
		return "", false, false
	}
	return strconv.FormatUint(n, base), true, true
}
