package sys

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

const dateUsage = "[OPTION]... [+FORMAT]\n[-u|--utc|--universal] [MMDDhhmm[[CC]YY][.ss]]\n[-jnRu] [-r seconds] [-v [+|-]val[y|m|w|d|H|M|S]] [-f input_fmt] new_date [+output_fmt]"

// date is GNU's, and BSD's where that has what GNU's refuses: -j, -v, -f with a format and -r with seconds. So a script that
// tries one spelling and then the other is answered by its first try.
func date(ctx context.Context, c *cmd.Call) int {
	given, operands, err := options(
		cmd.Opt{Short: 'd', Long: "date", Arg: cmd.Value}, cmd.Opt{Long: "debug"}, cmd.Opt{Short: 'f', Long: "file", Arg: cmd.Value},
		cmd.Opt{Short: 'I', Long: "iso-8601", Arg: cmd.Optional}, cmd.Opt{Short: 'R', Long: "rfc-email"},
		cmd.Opt{Long: "rfc-822"}, cmd.Opt{Long: "rfc-2822"}, cmd.Opt{Long: "rfc-3339", Arg: cmd.Value},
		cmd.Opt{Short: 'r', Long: "reference", Arg: cmd.Value}, cmd.Opt{Long: "resolution"}, cmd.Opt{Short: 's', Long: "set", Arg: cmd.Value},
		cmd.Opt{Short: 'u', Long: "utc"}, cmd.Opt{Long: "uct"}, cmd.Opt{Long: "universal"},
		cmd.Opt{Short: 'j'}, cmd.Opt{Short: 'n'}, cmd.Opt{Short: 'v', Arg: cmd.Value},
	).Parse(c.Args)
	if err != nil {
		return c.BadUsage(err, 1)
	}
	if help(c, given, dateUsage) {
		return 0
	}
	var (
		format, text, file, reference, set    string
		hasText, hasFile, hasReference, hasIn bool
		hasSet, bsd, resolution               bool
		adjust                                []string
		loc                                   = local(c)
	)
	setFormat := func(f string) bool {
		if format != "" {
			c.Errorf("multiple output formats specified")
			return false
		}
		format = f
		return true
	}
	for _, g := range given {
		ok := true
		switch g.Key {
		case "d":
			text, hasText = g.Value, true
		case "f":
			file, hasFile = g.Value, true
		case "I":
			f, found := isoFormats(g.Value)
			if !found {
				return badFormat(c, g.Value, "iso-8601", "hours", "minutes", "date", "seconds", "ns")
			}
			ok = setFormat(f)
		case "R", "rfc-822", "rfc-2822":
			ok = setFormat("%a, %d %b %Y %H:%M:%S %z")
		case "rfc-3339":
			switch {
			case g.Value != "" && strings.HasPrefix("date", g.Value):
				ok = setFormat("%Y-%m-%d")
			case g.Value != "" && strings.HasPrefix("seconds", g.Value):
				ok = setFormat("%Y-%m-%d %H:%M:%S%:z")
			case g.Value != "" && strings.HasPrefix("ns", g.Value):
				ok = setFormat("%Y-%m-%d %H:%M:%S.%N%:z")
			default:
				return badFormat(c, g.Value, "rfc-3339", "date", "seconds", "ns")
			}
		case "r":
			reference, hasReference = g.Value, true
		case "resolution":
			resolution = true
		case "s":
			set, hasSet = g.Value, true
		case "u", "uct", "universal":
			loc = time.UTC
		case "j", "n":
			bsd = true
		case "v":
			adjust = append(adjust, g.Value)
		}
		if !ok {
			return 1
		}
	}
	// BSD's -f is the format of an input, which is an operand; GNU's is a file of dates.
	if hasFile && strings.Contains(file, "%") && (bsd || len(operands) > 0 && !strings.HasPrefix(operands[0], "+")) {
		bsd, hasIn, hasFile = true, true, false
	}
	input := ""
	if hasIn || bsd && len(operands) > 0 && !strings.HasPrefix(operands[0], "+") {
		if len(operands) == 0 {
			c.Errorf("option -f needs a date as operand")
			return 1
		}
		input, operands = operands[0], operands[1:]
	}
	sources := 0
	for _, has := range []bool{hasText, hasFile, hasReference, resolution} {
		if has {
			sources++
		}
	}
	if sources > 1 {
		return c.BadUsage(fmt.Errorf("the options to specify dates for printing are mutually exclusive"), 1)
	}
	if hasSet && sources > 0 {
		return c.BadUsage(fmt.Errorf("the options to print and set the time may not be used together"), 1)
	}
	if len(operands) > 1 {
		return c.BadUsage(fmt.Errorf("extra operand %s", cmd.Quote(operands[1])), 1)
	}
	if len(operands) == 1 {
		if f, ok := strings.CutPrefix(operands[0], "+"); ok {
			if !setFormat(f) {
				return 1
			}
			if f == "" {
				format = "\x00"
			}
		} else if sources > 0 || hasSet {
			c.Errorf("the argument %s lacks a leading '+';\nwhen using an option to specify date(s), any non-option\nargument must be a format string beginning with '+'", cmd.Quote(operands[0]))
			fmt.Fprintf(c.Stderr, "Try '%s --help' for more information.\n", c.Name)
			return 1
		} else {
			set, hasSet = operands[0], true
			if !isSetOperand(set) {
				c.Errorf("invalid date %s", cmd.Quote(set))
				return 1
			}
		}
	}
	if format == "" {
		format = "%a %b %e %H:%M:%S %Z %Y"
		if resolution {
			format = "%s.%N"
		}
	}
	if format == "\x00" {
		format = ""
	}
	now := time.Now().In(loc)
	show := func(t time.Time) { fmt.Fprintln(c.Stdout, strftime(format, t.In(loc))) }
	switch {
	case hasFile:
		return dateFile(ctx, c, file, now, show)
	case resolution:
		show(time.Unix(0, 1))
		return 0
	case hasSet:
		t, ok := parseDate(set, now)
		if !ok && isSetOperand(set) {
			t, ok = now, true
		}
		if !ok {
			c.Errorf("invalid date %s", cmd.Quote(set))
			return 1
		}
		c.Errorf("cannot set date: Operation not permitted")
		show(t)
		return 1
	}
	t := now
	switch {
	case hasText:
		var ok bool
		if t, ok = parseDate(text, now); !ok {
			c.Errorf("invalid date %s", cmd.Quote(text))
			return 1
		}
	case hasReference:
		if f, err := c.OpenFile(reference, os.O_RDONLY, 0); err == nil {
			info, err := f.Stat()
			f.Close()
			if err != nil {
				return c.Fail(reference, err)
			}
			t = info.ModTime()
		} else if n, numeric := strconv.ParseInt(reference, 0, 64); numeric == nil {
			t = time.Unix(n, 0) // BSD
		} else {
			return c.Fail(reference, err)
		}
	case hasIn:
		var rest string
		var ok bool
		if t, rest, ok = strptime(file, input, now); !ok {
			c.Errorf("Failed conversion of ``%s'' using format ``%s''", input, file)
			fmt.Fprintf(c.Stderr, "%s: illegal time format\n", c.Name)
			return 1
		} else if rest != "" {
			fmt.Fprintf(c.Stderr, "Warning: Ignoring %d extraneous characters in date string (%s)\n", len(rest), rest)
		}
	case input != "":
		var ok bool
		if t, ok = bsdDate(input, now); !ok {
			c.Errorf("illegal time format")
			return 1
		}
	}
	t = t.In(loc)
	for _, a := range adjust {
		var ok bool
		if t, ok = adjusted(t, a); !ok {
			c.Errorf("%s: Cannot apply date adjustment", a)
			return 1
		}
	}
	show(t)
	return 0
}

func dateFile(ctx context.Context, c *cmd.Call, name string, now time.Time, show func(time.Time)) int {
	f, err := c.Open(name)
	if err != nil {
		return c.Fail(name, err)
	}
	defer f.Close()
	code := 0
	lines := bufio.NewReader(cmd.Reader(ctx, f))
	for {
		line, err := lines.ReadString('\n')
		if line == "" && err != nil {
			return code
		}
		line = strings.TrimSuffix(line, "\n")
		if t, ok := parseDate(line, now); ok {
			show(t)
		} else {
			c.Errorf("invalid date %s", cmd.Quote(line))
			code = 1
		}
	}
}

func isoFormats(kind string) (string, bool) {
	if kind == "" {
		return "%Y-%m-%d", true
	}
	for _, f := range [][2]string{
		{"hours", "%Y-%m-%dT%H%:z"}, {"minutes", "%Y-%m-%dT%H:%M%:z"}, {"date", "%Y-%m-%d"},
		{"seconds", "%Y-%m-%dT%H:%M:%S%:z"}, {"ns", "%Y-%m-%dT%H:%M:%S,%N%:z"},
	} {
		if strings.HasPrefix(f[0], kind) {
			return f[1], true
		}
	}
	return "", false
}

func badFormat(c *cmd.Call, value, option string, valid ...string) int {
	return c.BadUsage(cmd.BadWord(value, "--"+option, valid...), 1)
}

// isSetOperand tells whether s has the form MMDDhhmm[[CC]YY][.ss], by which GNU's date sets the clock.
func isSetOperand(s string) bool {
	digits, seconds, has := strings.Cut(s, ".")
	if has && len(seconds) != 2 || len(digits) != 8 && len(digits) != 10 && len(digits) != 12 {
		return false
	}
	return strings.Trim(digits+seconds, "0123456789") == ""
}

// bsdDate reads [[[[[cc]yy]mm]dd]HH]MM[.SS], what BSD's date takes as operand.
func bsdDate(s string, now time.Time) (time.Time, bool) {
	digits, fraction, has := strings.Cut(s, ".")
	second := 0
	if has {
		n, err := strconv.Atoi(fraction)
		if err != nil || len(fraction) != 2 || n > 59 {
			return now, false
		}
		second = n
	}
	if len(digits) < 2 || len(digits) > 12 || len(digits)%2 != 0 || strings.Trim(digits, "0123456789") != "" {
		return now, false
	}
	year, month, day, hour := now.Year(), int(now.Month()), now.Day(), now.Hour()
	two := func() int {
		n, _ := strconv.Atoi(digits[:2])
		digits = digits[2:]
		return n
	}
	if len(digits) == 12 {
		year = two()*100 + year%100
	}
	if len(digits) == 10 {
		y := two()
		if len(s) >= 12 && year/100 != 0 {
			year = year/100*100 + y
		} else {
			year = shortYear(y)
		}
	}
	if len(digits) == 8 {
		month = two()
	}
	if len(digits) == 6 {
		day = two()
	}
	if len(digits) == 4 {
		hour = two()
	}
	minute := two()
	t := time.Date(year, time.Month(month), day, hour, minute, second, 0, now.Location())
	return t, int(t.Month()) == month && t.Day() == day && t.Hour() == hour && t.Minute() == minute
}

func shortYear(y int) int {
	if y < 69 {
		return 2000 + y
	}
	return 1900 + y
}

// adjusted applies one -v of BSD's date: [+|-]N followed by y m w d H M or S, or the name of a day or month. Months and
// years keep within the month: a month before March 31 is the last day of February.
func adjusted(t time.Time, a string) (time.Time, bool) {
	sign := byte(0)
	s := a
	if s != "" && (s[0] == '+' || s[0] == '-') {
		sign, s = s[0], s[1:]
	}
	if s == "" {
		return t, false
	}
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	at := func() (time.Time, bool) {
		if last := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day(); day > last {
			day = last
		}
		return time.Date(year, month, day, hour, minute, second, t.Nanosecond(), t.Location()), true
	}
	if !isDigit(s[0]) {
		if d, rest, ok := dayName(s); ok && rest == "" {
			n := int(d - t.Weekday())
			switch {
			case sign == '+' && n < 0:
				n += 7
			case sign == '-' && n > 0:
				n -= 7
			}
			return t.AddDate(0, 0, n), true
		}
		if m, rest, ok := monthName(s); ok && rest == "" {
			switch {
			case sign == '+' && m < month:
				year++
			case sign == '-' && m > month:
				year--
			}
			month = m
			return at()
		}
		return t, false
	}
	n, err := strconv.Atoi(s[:len(s)-1])
	if err != nil || n > 1<<31 {
		return t, false
	}
	unit := s[len(s)-1]
	if sign == 0 {
		switch {
		case unit == 'y' && n < 10000:
			if n < 100 {
				n = shortYear(n)
			}
			year = n
		case unit == 'm' && 1 <= n && n <= 12:
			month = time.Month(n)
		case unit == 'd' && 1 <= n && n <= time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day():
			day = n
		case unit == 'w' && n <= 6:
			return t.AddDate(0, 0, n-int(t.Weekday())), true
		case unit == 'H' && n <= 23:
			hour = n
		case unit == 'M' && n <= 59:
			minute = n
		case unit == 'S' && n <= 59:
			second = n
		default:
			return t, false
		}
		return at()
	}
	if sign == '-' {
		n = -n
	}
	switch unit {
	case 'y':
		year += n
		return at()
	case 'm':
		months := year*12 + int(month) - 1 + n
		year, month = floorDiv(months, 12), time.Month(floorMod(months, 12)+1)
		return at()
	case 'w':
		return t.AddDate(0, 0, 7*n), true
	case 'd':
		return t.AddDate(0, 0, n), true
	case 'H':
		return time.Unix(t.Unix()+int64(n)*3600, int64(t.Nanosecond())).In(t.Location()), true
	case 'M':
		return time.Unix(t.Unix()+int64(n)*60, int64(t.Nanosecond())).In(t.Location()), true
	case 'S':
		return time.Unix(t.Unix()+int64(n), int64(t.Nanosecond())).In(t.Location()), true
	}
	return t, false
}

func dayName(s string) (time.Weekday, string, bool) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if rest, ok := cutName(s, d.String()); ok {
			return d, rest, true
		}
	}
	return 0, s, false
}

func monthName(s string) (time.Month, string, bool) {
	for m := time.January; m <= time.December; m++ {
		if rest, ok := cutName(s, m.String()); ok {
			return m, rest, true
		}
	}
	return 0, s, false
}

// cutName cuts a name, whole or its first three letters, from the front of s.
func cutName(s, name string) (string, bool) {
	for _, n := range []string{name, name[:3]} {
		if len(s) >= len(n) && strings.EqualFold(s[:len(n)], n) {
			return s[len(n):], true
		}
	}
	return s, false
}

// strptime reads s by a format as BSD's date -f does: what the format leaves open is that of now. It returns what
// follows behind the format.
func strptime(format, s string, now time.Time) (t time.Time, rest string, ok bool) {
	year, month, day := now.Date()
	hour, minute, second := now.Clock()
	loc := now.Location()
	century, pm, yearDay := -1, -1, -1
	epoch := false
	var seconds int64
	number := func(digits, low, high int) (int, bool) {
		n := 0
		i := 0
		for i < len(s) && i < digits && isDigit(s[i]) {
			n = n*10 + int(s[i]-'0')
			i++
		}
		s = s[i:]
		return n, i > 0 && low <= n && n <= high
	}
	var read func(format string) bool
	read = func(format string) bool {
		for i := 0; i < len(format); i++ {
			b := format[i]
			if isSpace(b) {
				s = strings.TrimLeft(s, " \t\n\v\f\r")
				continue
			}
			if b != '%' || i+1 == len(format) {
				if s == "" || s[0] != b {
					return false
				}
				s = s[1:]
				continue
			}
			i++
			for (format[i] == 'E' || format[i] == 'O' || format[i] == '-') && i+1 < len(format) {
				i++
			}
			letter := format[i]
			if letter != 'n' && letter != 't' && letter != '%' {
				s = strings.TrimLeft(s, " \t\n\v\f\r")
			}
			ok := true
			switch letter {
			case '%':
				if s == "" || s[0] != '%' {
					return false
				}
				s = s[1:]
			case 'n', 't':
				s = strings.TrimLeft(s, " \t\n\v\f\r")
			case 'Y':
				year, ok = number(4, 0, 9999)
				century = -1
			case 'C':
				century, ok = number(2, 0, 99)
			case 'y':
				var y int
				y, ok = number(2, 0, 99)
				year = shortYear(y)
			case 'm':
				var m int
				m, ok = number(2, 1, 12)
				month = time.Month(m)
			case 'd', 'e':
				day, ok = number(2, 1, 31)
			case 'H', 'k':
				hour, ok = number(2, 0, 23)
			case 'I', 'l':
				hour, ok = number(2, 1, 12)
			case 'M':
				minute, ok = number(2, 0, 59)
			case 'S':
				second, ok = number(2, 0, 60)
			case 'j':
				yearDay, ok = number(3, 1, 366)
			case 'u', 'w':
				_, ok = number(1, 0, 7)
			case 'U', 'W', 'V':
				_, ok = number(2, 0, 53)
			case 'p':
				switch {
				case len(s) >= 2 && strings.EqualFold(s[:2], "am"):
					pm, s = 0, s[2:]
				case len(s) >= 2 && strings.EqualFold(s[:2], "pm"):
					pm, s = 1, s[2:]
				default:
					return false
				}
			case 'a', 'A':
				_, s, ok = dayName(s)
			case 'b', 'B', 'h':
				month, s, ok = monthName(s)
			case 's':
				digits := len(s) - len(strings.TrimLeft(strings.TrimPrefix(s, "-"), "0123456789"))
				n, err := strconv.ParseInt(s[:digits], 10, 64)
				s, seconds, epoch, ok = s[digits:], n, true, err == nil
			case 'z':
				var offset int
				offset, s, ok = numericZone(s)
				loc = time.FixedZone("", offset)
			case 'Z':
				n := 0
				for n < len(s) && isAlpha(s[n]) {
					n++
				}
				name := s[:n]
				s = s[n:]
				p := dateParser{now: now}
				switch kind, east, found := p.zoneWord(strings.ToUpper(name)); {
				case found && kind == dateZone:
					loc = time.FixedZone(name, int(east))
				case found && kind == dateDayZone:
					loc = time.FixedZone(name, int(east)+3600)
				case !found:
					return false
				}
			case 'D', 'x':
				ok = read("%m/%d/%y")
			case 'F':
				ok = read("%Y-%m-%d")
			case 'T', 'X':
				ok = read("%H:%M:%S")
			case 'R':
				ok = read("%H:%M")
			case 'r':
				ok = read("%I:%M:%S %p")
			case 'c':
				ok = read("%a %b %e %H:%M:%S %Y")
			case '+':
				ok = read("%a %b %e %H:%M:%S %Z %Y")
			default:
				return false
			}
			if !ok {
				return false
			}
		}
		return true
	}
	if !read(format) {
		return now, s, false
	}
	if epoch {
		return time.Unix(seconds, 0), s, true
	}
	if century >= 0 {
		year = century*100 + year%100
	}
	if pm >= 0 {
		hour = hour%12 + 12*pm
	}
	if yearDay > 0 {
		month, day = time.January, yearDay
	}
	t = time.Date(year, month, day, hour, minute, second, 0, loc)
	return t, s, yearDay > 0 || t.Day() == day
}

// numericZone reads Z, +HH, +HHMM or +HH:MM.
func numericZone(s string) (east int, rest string, ok bool) {
	if s != "" && (s[0] == 'Z' || s[0] == 'z') {
		return 0, s[1:], true
	}
	if s == "" || s[0] != '+' && s[0] != '-' {
		return 0, s, false
	}
	digits := []byte{}
	i := 1
	for ; i < len(s) && len(digits) < 4 && (isDigit(s[i]) || s[i] == ':' && len(digits) == 2); i++ {
		if s[i] != ':' {
			digits = append(digits, s[i])
		}
	}
	if len(digits) != 2 && len(digits) != 4 {
		return 0, s, false
	}
	digits = append(digits, bytes.Repeat([]byte("0"), 4-len(digits))...)
	n, _ := strconv.Atoi(string(digits))
	east = n/100*3600 + n%100*60
	if s[0] == '-' {
		east = -east
	}
	return east, s[i:], true
}
