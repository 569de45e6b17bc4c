package builtin

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// strftime formats a time as C's function of that name does in the C locale, with GNU's flags and widths.
func strftime(format string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		from := i
		i++
		var flag byte
		for ; i < len(format) && strings.IndexByte("-_0^#", format[i]) >= 0; i++ {
			flag = format[i]
		}
		width := 0
		for ; i < len(format) && '0' <= format[i] && format[i] <= '9'; i++ {
			width = min(width*10+int(format[i]-'0'), 1000)
		}
		for i < len(format) && (format[i] == 'E' || format[i] == 'O') {
			i++
		}
		if i == len(format) {
			b.WriteString(format[from:])
			break
		}
		s, padding, size, ok := field(format[i], t)
		if !ok {
			b.WriteString(format[from : i+1])
			continue
		}
		switch flag {
		case '-':
			padding, size = 0, 0
		case '_':
			padding = ' '
		case '0':
			padding = '0'
		case '^':
			s = strings.ToUpper(s)
		case '#':
			if format[i] == 'Z' || format[i] == 'p' {
				s = strings.ToLower(s)
			} else {
				s = strings.ToUpper(s)
			}
		}
		if width > 0 {
			size = width
			if padding == 0 {
				padding = ' '
			}
		}
		if n := size - len(s); n > 0 && padding != 0 {
			b.WriteString(strings.Repeat(string(padding), n))
		}
		b.WriteString(s)
	}
	return b.String()
}

// field is one conversion: its text without padding, what pads it and to what size.
func field(verb byte, t time.Time) (s string, padding byte, size int, ok bool) {
	num := func(n, size int, padding byte) (string, byte, int, bool) { return strconv.Itoa(n), padding, size, true }
	text := func(s string) (string, byte, int, bool) { return s, 0, 0, true }
	year, week := t.ISOWeek()
	hour12 := (t.Hour()+11)%12 + 1
	switch verb {
	case '%':
		return text("%")
	case 'n':
		return text("\n")
	case 't':
		return text("\t")
	case 'a':
		return text(t.Weekday().String()[:3])
	case 'A':
		return text(t.Weekday().String())
	case 'b', 'h':
		return text(t.Month().String()[:3])
	case 'B':
		return text(t.Month().String())
	case 'c':
		return text(strftime("%a %b %e %H:%M:%S %Y", t))
	case 'C':
		return num(t.Year()/100, 2, '0')
	case 'd':
		return num(t.Day(), 2, '0')
	case 'D', 'x':
		return text(strftime("%m/%d/%y", t))
	case 'e':
		return num(t.Day(), 2, ' ')
	case 'F':
		return text(strftime("%Y-%m-%d", t))
	case 'g':
		return num(year%100, 2, '0')
	case 'G':
		return num(year, 4, '0')
	case 'H':
		return num(t.Hour(), 2, '0')
	case 'I':
		return num(hour12, 2, '0')
	case 'j':
		return num(t.YearDay(), 3, '0')
	case 'k':
		return num(t.Hour(), 2, ' ')
	case 'l':
		return num(hour12, 2, ' ')
	case 'm':
		return num(int(t.Month()), 2, '0')
	case 'M':
		return num(t.Minute(), 2, '0')
	case 'N':
		return num(t.Nanosecond(), 9, '0')
	case 'p':
		return text(map[bool]string{true: "AM", false: "PM"}[t.Hour() < 12])
	case 'P':
		return text(map[bool]string{true: "am", false: "pm"}[t.Hour() < 12])
	case 'r':
		return text(strftime("%I:%M:%S %p", t))
	case 'R':
		return text(strftime("%H:%M", t))
	case 's':
		return text(strconv.FormatInt(t.Unix(), 10))
	case 'S':
		return num(t.Second(), 2, '0')
	case 'T', 'X':
		return text(strftime("%H:%M:%S", t))
	case 'u':
		return num((int(t.Weekday())+6)%7+1, 1, '0')
	case 'U':
		return num((t.YearDay()+6-int(t.Weekday()))/7, 2, '0')
	case 'V':
		return num(week, 2, '0')
	case 'w':
		return num(int(t.Weekday()), 1, '0')
	case 'W':
		return num((t.YearDay()+6-(int(t.Weekday())+6)%7)/7, 2, '0')
	case 'y':
		return num(t.Year()%100, 2, '0')
	case 'Y':
		return num(t.Year(), 4, '0')
	case 'z':
		_, offset := t.Zone()
		sign := '+'
		if offset < 0 {
			sign, offset = '-', -offset
		}
		return text(fmt.Sprintf("%c%02d%02d", sign, offset/3600, offset/60%60))
	case 'Z':
		name, _ := t.Zone()
		return text(name)
	}
	return "", 0, 0, false
}
