package sys

import (
	"math"
	"strings"
	"time"
)

// parseDate reads a date as GNU's -d takes it: absolute parts (dates, times, zones, days of the week) and relative ones
// in any order. What is not said is taken from now; ok is false for what GNU calls an invalid date.
//
// The grammar is that of GNU's manual, "Date input formats". It has places where one reads of two meanings the longer:
// "10:00 +3 days" is ten o'clock in the zone +3, and one day.
func parseDate(s string, now time.Time) (t time.Time, ok bool) {
	loc := now.Location()
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	if name, found := strings.CutPrefix(s, `TZ="`); found {
		var b strings.Builder
		i := 0
		for ; i < len(name) && name[i] != '"'; i++ {
			if name[i] == '\\' && i+1 < len(name) {
				i++
			}
			b.WriteByte(name[i])
		}
		if i < len(name) {
			loc = zone(b.String())
			s = strings.TrimLeft(name[i+1:], " \t\n\v\f\r")
		}
	}
	if s == "" {
		s = "0"
	}
	p := &dateParser{now: now.In(loc), loc: loc}
	if !p.lex(s) || !p.parse() {
		return time.Time{}, false
	}
	t, ok = p.resolve()
	return t.In(now.Location()), ok
}

type dateToken struct {
	kind   dateKind
	value  int64 // of numbers: with its sign
	nanos  int   // of decimals: the fraction, always counted upwards
	digits int
	signed bool
}

type dateKind byte

const (
	dateEnd     dateKind = iota
	dateNumber           // 12, +12, -12
	dateDecimal          // 1.5
	dateMeridian
	dateMonth
	dateDay
	dateOrdinal
	dateShift // today, tomorrow
	dateAgo
	dateZone
	dateDayZone
	dateLocalZone
	dateDST
	dateMilitaryT // the letter T: a separator and a zone
	dateYears     // units: value is how many of the basic unit it is
	dateMonths
	dateDays
	dateHours
	dateMinutes
	dateSeconds
	dateAt    // @
	dateSlash // /
	dateColon
	dateComma
)

type dateParser struct {
	now    time.Time
	loc    *time.Location
	tokens []dateToken

	year                                   int64
	yearDigits                             int
	month, day, hour, minute               int64
	second                                 int64
	nanos                                  int
	meridian                               int64 // 0 am, 1 pm, 2 none
	ordinal, weekday                       int64
	zone                                   int64 // seconds east
	localDST                               bool
	epoch                                  bool
	relYear, relMonth, relDay              int64
	relHour, relMinute, relSecond          int64
	relNanos                               int64
	dates, days, times, zones, locals, dst int
	rels                                   bool
}

func (p *dateParser) lex(s string) bool {
	for i := 0; i < len(s); {
		b := s[i]
		switch {
		case isSpace(b):
			i++
		case isDigit(b) || b == '+' || b == '-':
			t := dateToken{kind: dateNumber}
			negative := false
			if !isDigit(b) {
				t.signed, negative = true, b == '-'
				for i++; i < len(s) && isSpace(s[i]); i++ {
				}
				if i == len(s) || !isDigit(s[i]) {
					continue // a sign before no number means nothing
				}
			}
			for ; i < len(s) && isDigit(s[i]); i++ {
				d := int64(s[i] - '0')
				if t.value > (math.MaxInt64-d)/10 {
					return false
				}
				t.value = t.value*10 + d
				t.digits++
			}
			if i+1 < len(s) && (s[i] == '.' || s[i] == ',') && isDigit(s[i+1]) {
				t.kind = dateDecimal
				scale := 100_000_000
				rest := false
				for i++; i < len(s) && isDigit(s[i]); i++ {
					t.nanos += int(s[i]-'0') * scale
					rest = rest || scale == 0 && s[i] != '0'
					scale /= 10
				}
				if negative {
					// Downwards: -1.5 is -2 and half a second.
					if rest {
						t.nanos++
					}
					if t.nanos > 0 {
						t.value++
						t.nanos = 1_000_000_000 - t.nanos
					}
				}
			}
			if negative {
				t.value = -t.value
			}
			p.tokens = append(p.tokens, t)
		case isAlpha(b):
			start := i
			for i < len(s) && (isAlpha(s[i]) || s[i] == '.') {
				i++
			}
			t, ok := p.word(strings.ToUpper(s[start:i]))
			if !ok {
				return false
			}
			p.tokens = append(p.tokens, t)
		case b == '(':
			depth := 0
			for ; i < len(s); i++ {
				if s[i] == '(' {
					depth++
				} else if s[i] == ')' {
					if depth--; depth == 0 {
						i++
						break
					}
				}
			}
			// A comment that is not closed ends with the text.
		case b == '@':
			p.tokens = append(p.tokens, dateToken{kind: dateAt})
			i++
		case b == '/':
			p.tokens = append(p.tokens, dateToken{kind: dateSlash})
			i++
		case b == ':':
			p.tokens = append(p.tokens, dateToken{kind: dateColon})
			i++
		case b == ',':
			p.tokens = append(p.tokens, dateToken{kind: dateComma})
			i++
		default:
			return false
		}
	}
	return true
}

func (p *dateParser) word(w string) (dateToken, bool) {
	token := func(k dateKind, v int64) (dateToken, bool) { return dateToken{kind: k, value: v}, true }
	if len(w) > 19 {
		w = w[:19]
	}
	switch w {
	case "AM", "A.M.":
		return token(dateMeridian, 0)
	case "PM", "P.M.":
		return token(dateMeridian, 1)
	}
	name := w
	if len(w) == 4 && w[3] == '.' {
		name = w[:3]
	}
	for m := time.January; m <= time.December; m++ {
		if full := strings.ToUpper(m.String()); name == full || len(name) == 3 && full[:3] == name || w == "SEPT" && m == time.September {
			return token(dateMonth, int64(m))
		}
	}
	for d := time.Sunday; d <= time.Saturday; d++ {
		if full := strings.ToUpper(d.String()); name == full || len(name) == 3 && full[:3] == name {
			return token(dateDay, int64(d))
		}
	}
	switch w {
	case "TUES":
		return token(dateDay, 2)
	case "WEDNES":
		return token(dateDay, 3)
	case "THUR", "THURS":
		return token(dateDay, 4)
	}
	if k, v, ok := p.zoneWord(w); ok {
		return token(k, v)
	}
	if w == "DST" {
		return token(dateDST, 0)
	}
	unit := func(w string) (dateToken, bool) {
		switch w {
		case "YEAR":
			return token(dateYears, 1)
		case "MONTH":
			return token(dateMonths, 1)
		case "FORTNIGHT":
			return token(dateDays, 14)
		case "WEEK":
			return token(dateDays, 7)
		case "DAY":
			return token(dateDays, 1)
		case "HOUR":
			return token(dateHours, 1)
		case "MINUTE", "MIN":
			return token(dateMinutes, 1)
		case "SECOND", "SEC":
			return token(dateSeconds, 1)
		}
		return dateToken{}, false
	}
	if t, ok := unit(w); ok {
		return t, true
	}
	if t, ok := unit(strings.TrimSuffix(w, "S")); ok {
		return t, true
	}
	switch w {
	case "TOMORROW":
		return token(dateShift, 1)
	case "YESTERDAY":
		return token(dateShift, -1)
	case "TODAY", "NOW":
		return token(dateShift, 0)
	case "LAST":
		return token(dateOrdinal, -1)
	case "THIS":
		return token(dateOrdinal, 0)
	case "NEXT", "FIRST":
		return token(dateOrdinal, 1)
	case "THIRD":
		return token(dateOrdinal, 3)
	case "FOURTH":
		return token(dateOrdinal, 4)
	case "FIFTH":
		return token(dateOrdinal, 5)
	case "SIXTH":
		return token(dateOrdinal, 6)
	case "SEVENTH":
		return token(dateOrdinal, 7)
	case "EIGHTH":
		return token(dateOrdinal, 8)
	case "NINTH":
		return token(dateOrdinal, 9)
	case "TENTH":
		return token(dateOrdinal, 10)
	case "ELEVENTH":
		return token(dateOrdinal, 11)
	case "TWELFTH":
		return token(dateOrdinal, 12)
	case "AGO":
		return token(dateAgo, -1)
	case "HENCE":
		return token(dateAgo, 1)
	}
	if len(w) == 1 {
		switch b := w[0]; {
		case b == 'T':
			return token(dateMilitaryT, 0)
		case b == 'Z':
			return token(dateZone, 0)
		case b <= 'I':
			return token(dateZone, int64(b-'A'+1)*3600)
		case 'K' <= b && b <= 'M':
			return token(dateZone, int64(b-'K'+10)*3600)
		case 'N' <= b && b <= 'Y':
			return token(dateZone, -int64(b-'N'+1)*3600)
		}
	}
	if plain := strings.ReplaceAll(w, ".", ""); plain != w {
		if k, v, ok := p.zoneWord(plain); ok {
			return token(k, v)
		}
	}
	return dateToken{}, false
}

// zoneWord looks for a zone by its abbreviation: the world's, then the local ones, then those of a list, which knows
// each abbreviation in one meaning only.
func (p *dateParser) zoneWord(w string) (dateKind, int64, bool) {
	switch w {
	case "GMT", "UT", "UTC":
		return dateZone, 0, true
	}
	for quarter := range 4 {
		t := p.now.AddDate(0, 0, 90*quarter)
		if name, _ := t.Zone(); strings.ToUpper(name) == w {
			if t.IsDST() {
				return dateLocalZone, 1, true
			}
			return dateLocalZone, 0, true
		}
	}
	minutes, kind := int64(0), dateZone
	switch w {
	case "WET":
	case "WEST", "BST":
		kind = dateDayZone
	case "ART", "BRT":
		minutes = -180
	case "BRST":
		minutes, kind = -180, dateDayZone
	case "NST":
		minutes = -210
	case "NDT":
		minutes, kind = -210, dateDayZone
	case "AST", "CLT":
		minutes = -240
	case "ADT", "CLST":
		minutes, kind = -240, dateDayZone
	case "EST":
		minutes = -300
	case "EDT":
		minutes, kind = -300, dateDayZone
	case "CST":
		minutes = -360
	case "CDT":
		minutes, kind = -360, dateDayZone
	case "MST":
		minutes = -420
	case "MDT":
		minutes, kind = -420, dateDayZone
	case "PST":
		minutes = -480
	case "PDT":
		minutes, kind = -480, dateDayZone
	case "AKST":
		minutes = -540
	case "AKDT":
		minutes, kind = -540, dateDayZone
	case "HST", "HAST":
		minutes = -600
	case "HADT":
		minutes, kind = -600, dateDayZone
	case "SST":
		minutes = -720
	case "WAT", "CET", "MET", "MEZ":
		minutes = 60
	case "CEST", "MEST", "MESZ":
		minutes, kind = 60, dateDayZone
	case "EET", "CAT", "SAST":
		minutes = 120
	case "EEST":
		minutes, kind = 120, dateDayZone
	case "EAT", "MSK":
		minutes = 180
	case "MSD":
		minutes, kind = 180, dateDayZone
	case "IST":
		minutes = 330
	case "SGT":
		minutes = 480
	case "KST", "JST":
		minutes = 540
	case "GST":
		minutes = 600
	case "NZST":
		minutes = 720
	case "NZDT":
		minutes, kind = 720, dateDayZone
	default:
		return 0, 0, false
	}
	return kind, minutes * 60, true
}

func (p *dateParser) peek(n int) dateToken {
	if n < len(p.tokens) {
		return p.tokens[n]
	}
	return dateToken{}
}

func (p *dateParser) skip(n int) { p.tokens = p.tokens[n:] }

func (t dateToken) unsigned() bool { return t.kind == dateNumber && !t.signed }
func (t dateToken) sign() bool     { return t.kind == dateNumber && t.signed }
func (t dateToken) unit() bool     { return dateYears <= t.kind && t.kind <= dateSeconds }

func (p *dateParser) parse() bool {
	if p.peek(0).kind == dateAt {
		n := p.peek(1)
		if n.kind != dateNumber && n.kind != dateDecimal || len(p.tokens) != 2 {
			return false
		}
		p.epoch, p.second, p.nanos = true, n.value, n.nanos
		return true
	}
	p.year, p.month, p.day = int64(p.now.Year()), int64(p.now.Month()), int64(p.now.Day())
	p.hour, p.minute, p.second = int64(p.now.Hour()), int64(p.now.Minute()), int64(p.now.Second())
	p.nanos = p.now.Nanosecond()
	p.meridian = 2
	for len(p.tokens) > 0 {
		if !p.item() {
			return false
		}
	}
	return p.times <= 1 && p.dates <= 1 && p.days <= 1 && p.dst <= 1 && p.zones+p.locals <= 1
}

func (p *dateParser) item() bool {
	t, next := p.peek(0), p.peek(1)
	switch {
	case t.kind == dateLocalZone:
		p.locals++
		p.localDST = t.value == 1
		p.skip(1)
		if next.kind == dateDST {
			p.localDST = true
			p.dst++
			p.skip(1)
		}
	case t.kind == dateZone || t.kind == dateMilitaryT:
		p.zones++
		p.zone = t.value
		if t.kind == dateMilitaryT {
			p.zone = -7 * 3600
		}
		p.skip(1)
		switch {
		case (next.sign() || next.kind == dateDecimal && next.signed) && p.peek(1).unit():
			return p.signedUnit(1)
		case next.sign() && t.kind == dateZone:
			east, ok := p.zoneOffset()
			p.zone += east
			return ok
		case next.kind == dateDST && t.kind == dateZone:
			p.zone += 3600
			p.skip(1)
		}
	case t.kind == dateDayZone:
		p.zones++
		p.zone = t.value + 3600
		p.skip(1)
	case t.kind == dateDay:
		p.days++
		p.ordinal, p.weekday = 0, t.value
		p.skip(1)
		if next.kind == dateComma {
			p.skip(1)
		}
	case t.kind == dateOrdinal && next.kind == dateDay:
		p.days++
		p.ordinal, p.weekday = t.value, next.value
		p.skip(2)
	case t.kind == dateOrdinal && next.unit():
		p.skip(2)
		return p.relative(next, t.value, 0)
	case t.unit():
		p.skip(1)
		return p.relative(t, 1, 0)
	case t.kind == dateShift:
		p.rels = true
		p.relDay += t.value
		p.skip(1)
	case t.kind == dateMonth:
		return p.monthFirst()
	case t.kind == dateDecimal && next.kind == dateSeconds:
		p.skip(2)
		return p.relative(next, t.value, t.nanos)
	case t.sign():
		return p.signedUnit(0)
	case t.unsigned():
		return p.numberFirst()
	default:
		return false
	}
	return true
}

// signedUnit reads "+3 days". In the middle of another item "ago" does not belong to it.
func (p *dateParser) signedUnit(inner int) bool {
	t, unit := p.peek(0), p.peek(1)
	if !unit.unit() || t.kind == dateDecimal && unit.kind != dateSeconds {
		return false
	}
	p.skip(2)
	if inner == 1 {
		return p.add(unit, t.value, t.nanos)
	}
	return p.relative(unit, t.value, t.nanos)
}

func (p *dateParser) relative(unit dateToken, n int64, nanos int) bool {
	if ago := p.peek(0); ago.kind == dateAgo {
		p.skip(1)
		if ago.value < 0 {
			n, nanos = -n, -nanos
		}
	}
	return p.add(unit, n, nanos)
}

func (p *dateParser) add(unit dateToken, n int64, nanos int) bool {
	p.rels = true
	// Beyond this no calendar has a meaning, and the sums below cannot overflow.
	const limit = 1 << 52
	if n > limit || n < -limit {
		return false
	}
	sum := func(v *int64, n int64) bool {
		*v += n
		return -limit < *v && *v < limit
	}
	switch unit.kind {
	case dateYears:
		return sum(&p.relYear, n)
	case dateMonths:
		return sum(&p.relMonth, n)
	case dateDays:
		return sum(&p.relDay, n*unit.value)
	case dateHours:
		return sum(&p.relHour, n)
	case dateMinutes:
		return sum(&p.relMinute, n)
	}
	p.relNanos += int64(nanos)
	return sum(&p.relSecond, n)
}

// zoneOffset reads "+2", "+0200" or "+02:00" and returns seconds east of Greenwich.
func (p *dateParser) zoneOffset() (int64, bool) {
	t := p.peek(0)
	p.skip(1)
	minutes := int64(-1)
	if p.peek(0).kind == dateColon && p.peek(1).unsigned() {
		minutes = p.peek(1).value
		p.skip(2)
	}
	// GNU takes up to two digits as hours when no minutes follow.
	v := t.value
	if v > 1<<30 || v < -1<<30 || minutes > 1<<30 {
		return 0, false
	}
	switch {
	case minutes >= 0 && v < 0:
		v = v*60 - minutes
	case minutes >= 0:
		v = v*60 + minutes
	case t.digits <= 2:
		v *= 60
	default:
		v = v/100*60 + v%100
	}
	return v * 60, -24*60 <= v && v <= 24*60
}

func (p *dateParser) monthFirst() bool {
	month, a, b, c := p.peek(0), p.peek(1), p.peek(2), p.peek(3)
	p.dates++
	p.month = month.value
	switch {
	case a.sign() && b.sign(): // JUN-17-1992
		p.day, p.year, p.yearDigits = -a.value, -b.value, b.digits
		p.skip(3)
	case a.unsigned() && b.kind == dateComma && c.unsigned():
		p.day, p.year, p.yearDigits = a.value, c.value, c.digits
		p.skip(4)
	case a.unsigned() && b.kind != dateComma:
		p.day = a.value
		p.skip(2)
	default:
		return false
	}
	return true
}

func (p *dateParser) numberFirst() bool {
	n, a, b := p.peek(0), p.peek(1), p.peek(2)
	switch {
	case a.kind == dateMeridian || a.kind == dateColon:
		p.times++
		return p.clock()
	case a.kind == dateSlash:
		c, d := p.peek(3), p.peek(4)
		if !b.unsigned() {
			return false
		}
		p.dates++
		if c.kind != dateSlash {
			p.month, p.day = n.value, b.value
			p.skip(3)
			return true
		}
		if !d.unsigned() {
			return false
		}
		if n.digits >= 4 {
			p.year, p.yearDigits, p.month, p.day = n.value, n.digits, b.value, d.value
		} else {
			p.month, p.day, p.year, p.yearDigits = n.value, b.value, d.value, d.digits
		}
		p.skip(5)
	case a.kind == dateMonth:
		p.dates++
		p.day, p.month = n.value, a.value
		p.skip(2)
		switch {
		case b.sign(): // 17-JUN-1992
			p.year, p.yearDigits = -b.value, b.digits
			p.skip(1)
		case b.unsigned():
			// "5 Jan 10:00" and "5 Jan 2 days" are not told apart from a year: GNU reads the year.
			p.year, p.yearDigits = b.value, b.digits
			p.skip(1)
		}
	case a.sign() && b.sign():
		p.dates++
		p.year, p.yearDigits, p.month, p.day = n.value, n.digits, -a.value, -b.value
		p.skip(3)
		if p.peek(0).kind == dateMilitaryT {
			if !p.peek(1).unsigned() {
				return false
			}
			p.skip(1)
			p.times++
			return p.clock()
		}
	case (a.sign() || a.kind == dateDecimal && a.signed) && b.unit():
		p.skip(1)
		return p.digits(n) && p.signedUnit(1)
	case a.sign():
		p.times++
		return p.clock()
	case a.kind == dateDay:
		p.days++
		p.ordinal, p.weekday = n.value, a.value
		p.skip(2)
	case a.unit():
		p.skip(2)
		return p.relative(a, n.value, 0)
	default:
		p.skip(1)
		return p.digits(n)
	}
	return true
}

// clock reads a time: 10pm, 10:30, 10:30:15.5 pm, 10:30+02:00, 10+02.
func (p *dateParser) clock() bool {
	p.hour, p.minute, p.second, p.nanos, p.meridian = p.peek(0).value, 0, 0, 0, 2
	p.skip(1)
	plain := true
	if p.peek(0).kind == dateColon {
		plain = false
		if !p.peek(1).unsigned() {
			return false
		}
		p.minute = p.peek(1).value
		p.skip(2)
		if p.peek(0).kind == dateColon {
			s := p.peek(1)
			if s.signed || s.kind != dateNumber && s.kind != dateDecimal {
				return false
			}
			p.second, p.nanos = s.value, s.nanos
			p.skip(2)
		}
	}
	switch t := p.peek(0); {
	case t.kind == dateMeridian:
		p.meridian = t.value
		p.skip(1)
	case t.sign():
		p.zones++
		var ok bool
		p.zone, ok = p.zoneOffset()
		return ok
	case plain:
		return false
	}
	return true
}

// digits reads a number that stands alone: a year behind a date, a date, or a time.
func (p *dateParser) digits(n dateToken) bool {
	switch {
	case p.dates > 0 && p.yearDigits == 0 && !p.rels && (p.times > 0 || n.digits > 2):
		p.year, p.yearDigits = n.value, n.digits
	case n.digits > 4:
		p.dates++
		p.day, p.month, p.year, p.yearDigits = n.value%100, n.value/100%100, n.value/10000, n.digits-4
	default:
		p.times++
		p.hour, p.minute = n.value, 0
		if n.digits > 2 {
			p.hour, p.minute = n.value/100, n.value%100
		}
		p.second, p.nanos, p.meridian = 0, 0, 2
	}
	return true
}

func (p *dateParser) resolve() (time.Time, bool) {
	if p.epoch {
		t := time.Unix(p.second, int64(p.nanos))
		return t, inRange(t, p.loc)
	}
	year := p.year
	if p.yearDigits == 2 {
		if year < 69 {
			year += 2000
		} else {
			year += 1900
		}
	}
	if year < -1<<31+1900 || year >= 1<<31+1900 {
		return time.Time{}, false
	}
	switch {
	case p.times > 0 || p.rels && p.dates == 0 && p.days == 0:
		switch {
		case p.meridian == 2 && p.hour >= 24, p.meridian < 2 && (p.hour < 1 || p.hour > 12):
			return time.Time{}, false
		case p.meridian == 0 && p.hour == 12:
			p.hour = 0
		case p.meridian == 1 && p.hour < 12:
			p.hour += 12
		}
	default:
		p.hour, p.minute, p.second, p.nanos = 0, 0, 0, 0
	}
	if p.month < 1 || p.month > 12 || p.day < 1 || p.day > 31 || p.minute > 59 || p.second > 59 {
		return time.Time{}, false
	}
	// With a zone of its own the time need not exist in the local one.
	loc := p.loc
	if p.zones > 0 {
		loc = time.FixedZone("", int(p.zone))
	}
	date := func(year, month, day int64) (time.Time, bool) {
		t := time.Date(int(year), time.Month(month), int(day), int(p.hour), int(p.minute), int(p.second), p.nanos, loc)
		if p.zones == 0 {
			t = firstOf(t)
		}
		return t, t.Hour() == int(p.hour) && t.Minute() == int(p.minute)
	}
	t, ok := date(year, p.month, p.day)
	if !ok || t.Day() != int(p.day) || p.locals > 0 && t.IsDST() != p.localDST {
		return time.Time{}, false
	}
	if p.days > 0 && p.dates == 0 {
		weeks := p.ordinal
		if weeks > 0 && int64(t.Weekday()) != p.weekday {
			weeks--
		}
		if weeks > 1<<40 {
			return time.Time{}, false
		}
		p.relDay += weeks*7 + (p.weekday-int64(t.Weekday())+7)%7
	}
	if p.relYear|p.relMonth|p.relDay != 0 {
		months := year*12 + p.month - 1 + p.relYear*12 + p.relMonth
		if months < -1<<34 || months > 1<<34 || p.relDay < -1<<30 || p.relDay > 1<<30 {
			return time.Time{}, false
		}
		t, _ = date(int64(floorDiv(int(months), 12)), int64(floorMod(int(months), 12)+1), p.day+p.relDay)
	}
	const limit = 1 << 55
	seconds := t.Unix()
	for _, add := range []struct{ n, unit int64 }{{p.relHour, 3600}, {p.relMinute, 60}, {p.relSecond, 1}} {
		if add.n > limit/add.unit || add.n < -limit/add.unit {
			return time.Time{}, false
		}
		seconds += add.n * add.unit
	}
	t = time.Unix(seconds, int64(t.Nanosecond())+p.relNanos)
	return t, inRange(t, p.loc)
}

// inRange tells whether the year of t fits into an int of C, beyond which GNU has no date.
func inRange(t time.Time, loc *time.Location) bool {
	const most = 67768036191676799 // the last second of the year 2^31 - 1 + 1900
	return -most < t.Unix() && t.Unix() < most
}

// firstOf returns the earlier of two moments that a clock which was set back shows alike.
func firstOf(t time.Time) time.Time {
	start, _ := t.ZoneBounds()
	if start.IsZero() {
		return t
	}
	_, before := start.Add(-time.Second).Zone()
	_, now := t.Zone()
	if earlier := t.Add(time.Duration(now-before) * time.Second); now < before && earlier.Before(start) {
		return earlier
	}
	return t
}
