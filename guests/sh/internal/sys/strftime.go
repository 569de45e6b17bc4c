package sys

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// strftime formats t as GNU date does: flags (- _ 0 + ^ #), a width, E and O, and %N, %s, %P, %:z beside what C has.
// What is no directive stands as it is.
func strftime(format string, t time.Time) string {
	var b strings.Builder
	formatTime(&b, format, t, false)
	return b.String()
}

// directive is what stands between the percent sign and the letter.
type directive struct {
	pad          byte // 0: as the letter has it
	width        int  // -1: none given
	upper, swap  bool
	colons       int
	text         string // all of it
	alternative  byte
	alwaysSigned bool
}

func formatTime(b *strings.Builder, format string, t time.Time, upper bool) {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		start := i
		d := directive{width: -1, upper: upper}
		i++
	flags:
		for ; i < len(format); i++ {
			switch format[i] {
			case '-', '_', '0', '+':
				d.pad = format[i]
			case '^':
				d.upper = true
			case '#':
				d.swap = true
			default:
				break flags
			}
		}
		for ; i < len(format) && isDigit(format[i]); i++ {
			// A width beyond this is no format of anybody's, and would only fill the memory.
			d.width = min(max(d.width, 0)*10+int(format[i]-'0'), 4096)
		}
		if i < len(format) && (format[i] == 'E' || format[i] == 'O') {
			d.alternative = format[i]
			i++
		}
		for i < len(format) && format[i] == ':' {
			d.colons++
			i++
		}
		if i == len(format) {
			directive{pad: d.pad, width: d.width}.pads(b, format[start:])
			return
		}
		d.text = format[start : i+1]
		if !d.write(b, format[i], t) {
			directive{pad: d.pad, width: d.width}.pads(b, d.text)
		}
	}
}

func (d directive) write(b *strings.Builder, letter byte, t time.Time) bool {
	if d.colons > 0 && letter != 'z' || d.alternative == 'E' && !strings.ContainsRune("cCxXyYz", rune(letter)) ||
		d.alternative == 'O' && !strings.ContainsRune("bBdehHIklmMNSuUVwWyY", rune(letter)) {
		return false
	}
	hour12 := (t.Hour()+11)%12 + 1
	switch letter {
	case '%':
		if d.text != "%%" {
			return false
		}
		b.WriteByte('%')
	case 'a':
		d.upper = d.upper || d.swap
		d.pads(b, t.Weekday().String()[:3])
	case 'A':
		d.upper = d.upper || d.swap
		d.pads(b, t.Weekday().String())
	case 'b', 'h':
		d.upper = d.upper || d.swap
		d.pads(b, t.Month().String()[:3])
	case 'B':
		d.upper = d.upper || d.swap
		d.pads(b, t.Month().String())
	case 'p', 'P':
		half := "AM"
		if t.Hour() >= 12 {
			half = "PM"
		}
		if letter == 'P' || d.swap {
			half = strings.ToLower(half)
			d.upper = false
		}
		d.pads(b, half)
	case 'Z':
		name, _ := t.Zone()
		if d.swap {
			name = strings.ToLower(name)
			d.upper = false
		}
		d.pads(b, name)
	case 'n':
		d.pads(b, "\n")
	case 't':
		d.pads(b, "\t")
	case 'c':
		d.sub(b, "%a %b %e %H:%M:%S %Y", t)
	case 'D', 'x':
		d.sub(b, "%m/%d/%y", t)
	case 'F':
		d.isoDate(b, t)
	case 'r':
		d.sub(b, "%I:%M:%S %p", t)
	case 'R':
		d.sub(b, "%H:%M", t)
	case 'T', 'X':
		d.sub(b, "%H:%M:%S", t)
	case 'Y':
		d.year(b, t.Year(), 4)
	case 'G':
		year, _ := t.ISOWeek()
		d.year(b, year, 4)
	case 'C':
		d.year(b, floorDiv(t.Year(), 100), 2)
	case 'y':
		d.number(b, floorMod(t.Year(), 100), 2, '0')
	case 'g':
		year, _ := t.ISOWeek()
		d.number(b, floorMod(year, 100), 2, '0')
	case 'm':
		d.number(b, int(t.Month()), 2, '0')
	case 'd':
		d.number(b, t.Day(), 2, '0')
	case 'e':
		d.number(b, t.Day(), 2, '_')
	case 'H':
		d.number(b, t.Hour(), 2, '0')
	case 'I':
		d.number(b, hour12, 2, '0')
	case 'k':
		d.number(b, t.Hour(), 2, '_')
	case 'l':
		d.number(b, hour12, 2, '_')
	case 'M':
		d.number(b, t.Minute(), 2, '0')
	case 'S':
		d.number(b, t.Second(), 2, '0')
	case 'j':
		d.number(b, t.YearDay(), 3, '0')
	case 'q':
		d.number(b, (int(t.Month())+2)/3, 1, '0')
	case 'u':
		d.number(b, (int(t.Weekday())+6)%7+1, 1, '0')
	case 'w':
		d.number(b, int(t.Weekday()), 1, '0')
	case 'U':
		d.number(b, (t.YearDay()-1-int(t.Weekday())+7)/7, 2, '0')
	case 'W':
		d.number(b, (t.YearDay()-1-(int(t.Weekday())+6)%7+7)/7, 2, '0')
	case 'V':
		_, week := t.ISOWeek()
		d.number(b, week, 2, '0')
	case 's':
		d.number(b, int(t.Unix()), 1, '0')
	case 'N':
		d.nanoseconds(b, t.Nanosecond())
	case 'z':
		return d.offset(b, t)
	default:
		return false
	}
	return true
}

func (d directive) pads(b *strings.Builder, s string) {
	if d.upper {
		s = strings.ToUpper(s)
	}
	if n := d.width - len(s); n > 0 && d.pad != '-' {
		fill := " "
		if d.pad == '0' || d.pad == '+' {
			fill = "0"
		}
		b.WriteString(strings.Repeat(fill, n))
	}
	b.WriteString(s)
}

func (d directive) sub(b *strings.Builder, format string, t time.Time) {
	var s strings.Builder
	formatTime(&s, format, t, d.upper)
	d.pads(b, s.String())
}

// isoDate writes %F: its width is that of the whole, made up by the year.
func (d directive) isoDate(b *strings.Builder, t time.Time) {
	digits := max(d.width-6, 0)
	if d.pad == 0 && d.width < 0 {
		d.pad, digits = '+', 4
	}
	rest := fmt.Sprintf("-%02d-%02d", int(t.Month()), t.Day())
	signed := d.pad == '+' && (t.Year() > 9999 || digits > 4)
	directive{pad: d.pad, width: digits, alwaysSigned: signed}.number(b, t.Year(), 1, '0')
	b.WriteString(rest)
}

func (d directive) year(b *strings.Builder, year, digits int) {
	if d.pad == '+' {
		limit := 9999
		if digits == 2 {
			limit = 99
		}
		d.alwaysSigned = year > limit || digits < d.width
		if year >= 0 && year <= limit && d.width > digits {
			d.alwaysSigned = true
		}
	}
	d.number(b, year, digits, '0')
}

func (d directive) number(b *strings.Builder, n, digits int, pad byte) {
	if d.pad == 0 {
		d.pad = pad
	}
	s := strconv.Itoa(n)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	} else if d.alwaysSigned {
		sign = "+"
	}
	d.signed(b, sign, s, max(digits, d.width))
}

func (d directive) signed(b *strings.Builder, sign, s string, width int) {
	n := max(width-len(sign)-len(s), 0)
	switch d.pad {
	case '-':
		b.WriteString(sign + s)
	case '_':
		b.WriteString(strings.Repeat(" ", n) + sign + s)
	default:
		b.WriteString(sign + strings.Repeat("0", n) + s)
	}
}

func (d directive) nanoseconds(b *strings.Builder, n int) {
	s := fmt.Sprintf("%09d", n)
	width := d.width
	if width <= 0 {
		width = 9
	}
	if width < len(s) {
		s = s[:width]
	}
	switch d.pad {
	case '-':
		// Alone it asks for the digits that the clock has: all of them.
		for d.width > 0 && len(s) > 1 && s[len(s)-1] == '0' {
			s = s[:len(s)-1]
		}
	case '_':
		for len(s) > 1 && s[len(s)-1] == '0' {
			s = s[:len(s)-1]
		}
		s += strings.Repeat(" ", width-len(s))
	default:
		s += strings.Repeat("0", width-len(s))
	}
	b.WriteString(s)
}

func (d directive) offset(b *strings.Builder, t time.Time) bool {
	_, seconds := t.Zone()
	sign := "+"
	if seconds < 0 {
		sign, seconds = "-", -seconds
	}
	h, m, s := seconds/3600, seconds/60%60, seconds%60
	tail := ""
	switch {
	case d.colons == 0:
		tail = fmt.Sprintf("%02d", m)
	case d.colons == 1:
		tail = fmt.Sprintf(":%02d", m)
	case d.colons == 2:
		tail = fmt.Sprintf(":%02d:%02d", m, s)
	case d.colons == 3 && s != 0:
		tail = fmt.Sprintf(":%02d:%02d", m, s)
	case d.colons == 3 && m != 0:
		tail = fmt.Sprintf(":%02d", m)
	case d.colons > 3:
		return false
	}
	hours := strconv.Itoa(h)
	width := max(d.width-len(tail), 3)
	if d.pad == '-' && d.colons == 0 && h == 0 {
		// Without padding the number as a whole has no leading zeros.
		b.WriteString(sign + strconv.Itoa(m))
		return true
	}
	if d.pad == '_' && d.colons == 0 && h == 0 {
		digits := strconv.Itoa(m)
		b.WriteString(strings.Repeat(" ", max(width+len(tail)-1-len(digits), 0)) + sign + digits)
		return true
	}
	d.signed(b, sign, hours, width)
	b.WriteString(tail)
	return true
}

func floorDiv(a, b int) int { return (a - floorMod(a, b)) / b }
func floorMod(a, b int) int { return (a%b + b) % b }
