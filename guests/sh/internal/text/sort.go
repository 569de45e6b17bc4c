package text

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"crypto/md5"
	"crypto/rand"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

var sortOpts = cmd.Opts{
	{Short: 'b', Long: "ignore-leading-blanks"}, {Short: 'd', Long: "dictionary-order"}, {Short: 'f', Long: "ignore-case"},
	{Short: 'g', Long: "general-numeric-sort"}, {Short: 'i', Long: "ignore-nonprinting"}, {Short: 'M', Long: "month-sort"},
	{Short: 'h', Long: "human-numeric-sort"}, {Short: 'n', Long: "numeric-sort"}, {Short: 'R', Long: "random-sort"},
	{Long: "random-source", Arg: cmd.Value}, {Short: 'r', Long: "reverse"}, {Long: "sort", Arg: cmd.Value},
	{Short: 'V', Long: "version-sort"}, {Long: "batch-size", Arg: cmd.Value}, {Short: 'c'}, {Short: 'C'},
	{Long: "check", Arg: cmd.Optional}, {Long: "compress-program", Arg: cmd.Value}, {Long: "files0-from", Arg: cmd.Value},
	{Short: 'k', Long: "key", Arg: cmd.Value}, {Short: 'm', Long: "merge"}, {Short: 'o', Long: "output", Arg: cmd.Value},
	{Short: 's', Long: "stable"}, {Short: 'S', Long: "buffer-size", Arg: cmd.Value},
	{Short: 't', Long: "field-separator", Arg: cmd.Value}, {Short: 'T', Long: "temporary-directory", Arg: cmd.Value},
	{Long: "parallel", Arg: cmd.Value}, {Short: 'u', Long: "unique"}, {Short: 'z', Long: "zero-terminated"},
	{Short: 'y', Arg: cmd.Optional},
}

// sortKey is a key of sort, -k F.C,F.C with letters. Positions count from 0.
type sortKey struct {
	startField, startChar int
	endField, endChar     int // endField < 0: to the end of the line; endChar 0: to the end of the field
	blanksStart           bool
	blanksEnd             bool

	numeric, general, human, month, version, random bool

	dictionary, printing, fold, reverse bool
}

func (k *sortKey) plain() bool {
	return !(k.numeric || k.general || k.human || k.month || k.version || k.random || k.dictionary || k.printing ||
		k.fold || k.reverse || k.blanksStart || k.blanksEnd)
}

// set applies a letter of an ordering. start and end say which end of the key b is for.
func (k *sortKey) set(letter byte, start, end bool) bool {
	switch letter {
	case 'b':
		k.blanksStart = k.blanksStart || start
		k.blanksEnd = k.blanksEnd || end
	case 'd':
		k.dictionary = true
	case 'f':
		k.fold = true
	case 'g':
		k.general = true
	case 'h':
		k.human = true
	case 'i':
		k.printing = true
	case 'M':
		k.month = true
	case 'n':
		k.numeric = true
	case 'R':
		k.random = true
	case 'r':
		k.reverse = true
	case 'V':
		k.version = true
	default:
		return false
	}
	return true
}

// incompatible lists the letters of orderings that exclude each other, "" when all is well.
func (k *sortKey) incompatible() string {
	n, letters := 0, ""
	for _, x := range []struct {
		on, counts bool
		letter     string
	}{
		{k.dictionary, false, "d"}, {k.fold, false, "f"}, {k.general, true, "g"}, {k.human, true, "h"},
		{k.printing && !k.dictionary, false, "i"}, {k.month, true, "M"}, {k.numeric, true, "n"}, {k.random, false, "R"},
		{k.version, false, "V"}, {k.dictionary || k.printing || k.random || k.version, true, ""},
	} {
		if x.on {
			letters += x.letter
			if x.counts {
				n++
			}
		}
	}
	if n > 1 {
		return letters
	}
	return ""
}

type sorter struct {
	keys    []*sortKey
	global  sortKey
	tab     byte
	hasTab  bool
	unique  bool
	stable  bool
	sep     byte
	salt    []byte
	compare func(a, b []byte) int // by all keys, and the last resort
}

// parseKey reads the argument of -k. Its errors are worded as sort's.
func parseKey(arg string) (*sortKey, error) {
	bad := func(text string) (*sortKey, error) {
		return nil, fmt.Errorf("%s: invalid field specification %s", text, cmd.Quote(arg))
	}
	number := func(s string) (int, string, bool) {
		i := 0
		for i < len(s) && isDigit(s[i]) {
			i++
		}
		if i == 0 {
			return 0, s, false
		}
		n, err := strconv.Atoi(s[:i])
		if err != nil || n > math.MaxInt32 {
			n = math.MaxInt32
		}
		return n, s[i:], true
	}
	k := &sortKey{endField: -1}
	n, s, ok := number(arg)
	if !ok {
		return nil, fmt.Errorf("invalid number at field start: invalid count at start of %s", cmd.Quote(arg))
	}
	if n == 0 {
		return bad("field number is zero")
	}
	k.startField = n - 1
	if strings.HasPrefix(s, ".") {
		if n, s, ok = number(s[1:]); !ok {
			return nil, fmt.Errorf("invalid number after '.': invalid count at start of %s", cmd.Quote(s))
		}
		if n == 0 {
			return bad("character offset is zero")
		}
		k.startChar = n - 1
	}
	for s != "" && s[0] != ',' {
		if !k.set(s[0], true, false) {
			return bad("stray character in field spec")
		}
		s = s[1:]
	}
	if s == "" {
		return k, nil
	}
	if n, s, ok = number(s[1:]); !ok {
		return nil, fmt.Errorf("invalid number after ',': invalid count at start of %s", cmd.Quote(s))
	}
	if n == 0 {
		return bad("field number is zero")
	}
	k.endField = n - 1
	if strings.HasPrefix(s, ".") {
		if n, s, ok = number(s[1:]); !ok {
			return nil, fmt.Errorf("invalid number after '.': invalid count at start of %s", cmd.Quote(s))
		}
		k.endChar = n
	}
	for s != "" {
		if !k.set(s[0], false, true) {
			return bad("stray character in field spec")
		}
		s = s[1:]
	}
	return k, nil
}

// obsoleteKey reads +F.C[letters] and -F.C[letters].
func obsoleteKey(from, to string) (*sortKey, bool) {
	part := func(s string) (field, char int, letters string, ok bool) {
		i := 0
		for i < len(s) && (isDigit(s[i]) || s[i] == '.') {
			i++
		}
		f, c, dotted := strings.Cut(s[:i], ".")
		field, err := strconv.Atoi(f)
		if err != nil {
			return 0, 0, "", false
		}
		if dotted {
			if char, err = strconv.Atoi(c); err != nil {
				return 0, 0, "", false
			}
		}
		return field, char, s[i:], true
	}
	k := &sortKey{endField: -1}
	f, c, letters, ok := part(from)
	if !ok {
		return nil, false
	}
	k.startField, k.startChar = f, c
	for i := range len(letters) {
		if !k.set(letters[i], true, false) {
			return nil, false
		}
	}
	if to == "" {
		return k, true
	}
	if f, c, letters, ok = part(to); !ok {
		return nil, false
	}
	// -F.C counts from 0 and excludes; -k F,F.C counts from 1 and includes.
	k.endField, k.endChar = f, c
	if c == 0 {
		if k.endField = f - 1; f == 0 {
			k.endField = 0
			k.endChar = 0
		}
	}
	for i := range len(letters) {
		if !k.set(letters[i], false, true) {
			return nil, false
		}
	}
	return k, true
}

func sortCmd(t *call) int {
	s := &sorter{sep: '\n'}
	var old []*sortKey
	args := t.Args
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		if a := args[i]; len(a) > 1 && a[0] == '+' && isDigit(a[1]) {
			end, n := "", 1
			if i+1 < len(args) && len(args[i+1]) > 1 && args[i+1][0] == '-' && isDigit(args[i+1][1]) {
				end, n = args[i+1][1:], 2
			}
			if k, ok := obsoleteKey(a[1:], end); ok {
				old = append(old, k)
				args = slices.Delete(slices.Clone(args), i, i+n)
				i--
			}
		}
	}
	given, names, code := t.parse(sortOpts, "[OPTION]... [FILE]...", 2, args)
	if code >= 0 {
		return code
	}
	s.keys = old
	var check, output, from0, random string
	merge, hasOutput, hasFrom := false, false, false
	for _, g := range given {
		switch g.Key {
		case "b", "d", "f", "g", "i", "M", "h", "n", "R", "r", "V":
			s.global.set(g.Key[0], true, true)
		case "sort":
			words := []string{"general-numeric", "human-numeric", "month", "numeric", "random", "version"}
			i := slices.Index(words, complete(g.Value, words...))
			if i < 0 {
				return t.badWord(g.Value, "--sort", words...)
			}
			s.global.set("ghMnRV"[i], true, true)
		case "random-source":
			random = g.Value
		case "c", "C":
			if check != "" && check != g.Key {
				return t.fail(2, "options '-cC' are incompatible")
			}
			check = g.Key
		case "check":
			switch complete(g.Value, "diagnose-first", "quiet", "silent") {
			case "quiet", "silent":
				check = "C"
			case "diagnose-first":
				check = "c"
			default:
				if g.Has {
					return t.badWord(g.Value, "--check", "quiet", "silent", "diagnose-first")
				}
				check = "c"
			}
		case "files0-from":
			from0, hasFrom = g.Value, true
		case "k":
			k, err := parseKey(g.Value)
			if err != nil {
				return t.fail(2, "%v", err)
			}
			s.keys = append(s.keys, k)
		case "m":
			merge = true
		case "o":
			if hasOutput && output != g.Value {
				return t.fail(2, "multiple output files specified")
			}
			output, hasOutput = g.Value, true
		case "s":
			s.stable = true
		case "S", "parallel", "batch-size", "T", "compress-program":
			// How the work is done, not what comes out: all of it is done in memory, by one thread.
			if n, _ := strconv.Atoi(g.Value); g.Key == "parallel" && n <= 0 {
				return t.fail(2, "invalid --parallel argument '%s'", g.Value)
			}
			if _, ok := size(strings.TrimSuffix(g.Value, "%")); g.Key == "S" && !ok {
				return t.fail(2, "invalid -S argument '%s'", g.Value)
			}
		case "t":
			tab := g.Value
			switch {
			case tab == "":
				return t.fail(2, "empty tab")
			case tab == `\0`:
				tab = "\x00"
			case len(tab) > 1:
				return t.fail(2, "multi-character tab %s", cmd.Quote(tab))
			}
			if s.hasTab && s.tab != tab[0] {
				return t.fail(2, "incompatible tabs")
			}
			s.tab, s.hasTab = tab[0], true
		case "u":
			s.unique = true
		case "z":
			s.sep = 0
		case "y": // how much memory to use, once
		}
	}
	if hasFrom {
		if len(names) > 0 {
			t.Errorf("extra operand %s", cmd.Quote(names[0]))
			return t.usage(2, "file operands cannot be combined with --files0-from")
		}
		r, err := t.open(from0)
		if err != nil {
			return t.fail(2, "cannot open '%s' for reading: %s", from0, cmd.Reason(err))
		}
		data, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			return t.fail(2, "%s: read error: %s", from0, cmd.Reason(err))
		}
		if len(data) == 0 {
			return t.fail(2, "no input from %s", cmd.Quote(from0))
		}
		names = strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
	}
	if code := s.prepare(t, random); code > 0 {
		return code
	}
	if len(names) == 0 {
		names = []string{"-"}
	}
	if check != "" {
		if len(names) > 1 {
			return t.fail(2, "extra operand '%s' not allowed with -%s", names[1], check)
		}
		if hasOutput {
			return t.fail(2, "options '-%so' are incompatible", check)
		}
		return s.check(t, names[0], check == "C")
	}
	var rs []*lines
	if !hasOutput || !merge {
		// Without -o inputs may be read while output is written.
		for _, name := range names {
			r, err := t.open(name)
			if err != nil {
				return t.fail(2, "cannot read: %s: %s", name, cmd.Reason(err))
			}
			defer r.Close()
			rs = append(rs, newLines(r, s.sep))
		}
	} else {
		for _, name := range names { // -m -o: an input may be the output
			r, err := t.open(name)
			if err != nil {
				return t.fail(2, "cannot read: %s: %s", name, cmd.Reason(err))
			}
			data, err := io.ReadAll(r)
			r.Close()
			if err != nil {
				return t.fail(2, "read failed: %s: %s", name, cmd.Reason(err))
			}
			rs = append(rs, newLines(bytes.NewReader(data), s.sep))
		}
	}
	out := func() (*bufio.Writer, func() int) {
		if !hasOutput {
			return t.out, func() int { return 0 }
		}
		f, err := t.create(output)
		if err != nil {
			t.Errorf("open failed: %s: %s", output, cmd.Reason(err))
			return nil, nil
		}
		w := bufio.NewWriterSize(strict{f, "write failed: " + output}, 64<<10)
		return w, func() int {
			w.Flush()
			if err := f.Close(); err != nil {
				return t.fail(2, "close failed: %s: %s", output, cmd.Reason(err))
			}
			return 0
		}
	}
	if merge {
		w, done := out()
		if w == nil {
			return 2
		}
		if code := s.merge(t, w, rs, names); code > 0 {
			return code
		}
		return done()
	}
	list, code := s.read(t, rs, names)
	if code > 0 {
		return code
	}
	s.sort(t, list)
	w, done := out()
	if w == nil {
		return 2
	}
	var last []byte
	for i := range list {
		if s.unique && i > 0 && s.byKeys(last, list[i].text) == 0 {
			continue
		}
		last = list[i].text
		w.Write(last)
		w.WriteByte(s.sep)
	}
	return done()
}

// complete returns the word that starts with s, "" when there is none or more than one.
func complete(s string, words ...string) string {
	found := ""
	for _, w := range words {
		if w == s {
			return w
		}
		if s != "" && strings.HasPrefix(w, s) {
			if found != "" {
				return ""
			}
			found = w
		}
	}
	return found
}

// prepare makes the comparison once the options are known.
func (s *sorter) prepare(t *call, random string) int {
	reverse := s.global.reverse
	if len(s.keys) == 0 && !s.global.plain() {
		k := s.global
		k.endField = -1
		if k != (sortKey{reverse: true, endField: -1}) { // -r alone only turns the last resort around
			s.keys = []*sortKey{&k}
		}
	}
	for _, k := range s.keys {
		if k.plain() {
			// A key without letters of its own has those of the command.
			g := s.global
			g.startField, g.startChar, g.endField, g.endChar = k.startField, k.startChar, k.endField, k.endChar
			*k = g
		}
		if bad := k.incompatible(); bad != "" {
			return t.fail(2, "options '-%s' are incompatible", bad)
		}
		if k.random && s.salt == nil {
			s.salt = make([]byte, 16)
			if random == "" {
				rand.Read(s.salt) // never fails
				continue
			}
			r, err := t.open(random)
			if err != nil {
				return t.fail(2, "open failed: %s: %s", random, cmd.Reason(err))
			}
			_, err = io.ReadFull(r, s.salt)
			r.Close()
			if err != nil {
				return t.fail(2, "%s: end of file", random)
			}
		}
	}
	s.compare = func(a, b []byte) int {
		if len(s.keys) > 0 {
			if c := s.byKeys(a, b); c != 0 || s.unique || s.stable {
				return c
			}
		}
		c := bytes.Compare(a, b)
		if reverse {
			return -c
		}
		return c
	}
	return 0
}

// byKeys compares by the keys alone; without keys, by all of the line.
func (s *sorter) byKeys(a, b []byte) int {
	if len(s.keys) == 0 {
		return bytes.Compare(a, b)
	}
	for _, k := range s.keys {
		if c := s.byKey(k, s.extract(k, a), s.extract(k, b)); c != 0 {
			return c
		}
	}
	return 0
}

// extract cuts a key out of a line.
func (s *sorter) extract(k *sortKey, line []byte) []byte {
	start := s.begin(k, line)
	end := len(line)
	if k.endField >= 0 {
		end = s.limit(k, line)
	}
	if start >= end {
		return nil
	}
	return line[start:end]
}

func (s *sorter) begin(k *sortKey, line []byte) int {
	i := 0
	for n := k.startField; n > 0 && i < len(line); n-- {
		i = s.field(line, i)
		if s.hasTab && i < len(line) {
			i++
		}
	}
	if k.blanksStart {
		for i < len(line) && isBlankOrEnd(line[i]) {
			i++
		}
	}
	return min(len(line), i+k.startChar)
}

func (s *sorter) limit(k *sortKey, line []byte) int {
	n := k.endField
	if k.endChar == 0 {
		n++ // the whole of the field
	}
	i := 0
	for ; n > 0 && i < len(line); n-- {
		i = s.field(line, i)
		if s.hasTab && i < len(line) && (n > 1 || k.endChar > 0) {
			i++
		}
	}
	if k.endChar > 0 {
		if k.blanksEnd {
			for i < len(line) && isBlankOrEnd(line[i]) {
				i++
			}
		}
		i = min(len(line), i+k.endChar)
	}
	return i
}

// isBlankOrEnd: a line end is a blank too where lines end in NUL.
func isBlankOrEnd(b byte) bool { return isBlank(b) || b == '\n' }

// field returns where the field that starts at i ends: at the separator, or, without one, where blanks follow.
func (s *sorter) field(line []byte, i int) int {
	if s.hasTab {
		if n := bytes.IndexByte(line[i:], s.tab); n >= 0 {
			return i + n
		}
		return len(line)
	}
	for i < len(line) && isBlankOrEnd(line[i]) {
		i++
	}
	for i < len(line) && !isBlankOrEnd(line[i]) {
		i++
	}
	return i
}

// byKey compares two keys.
func (s *sorter) byKey(k *sortKey, a, b []byte) int {
	c := 0
	switch {
	case k.numeric:
		c = compareNumbers(skipBlanks(a), skipBlanks(b))
	case k.general:
		c = compareGeneral(a, b)
	case k.human:
		c = compareHuman(skipBlanks(a), skipBlanks(b))
	case k.month:
		c = month(a) - month(b)
	case k.random:
		a, b = k.translate(a), k.translate(b)
		x, y := md5.Sum(append(s.salt[:16:16], a...)), md5.Sum(append(s.salt[:16:16], b...))
		if c = bytes.Compare(x[:], y[:]); c == 0 {
			c = bytes.Compare(a, b)
		}
	case k.version:
		c = compareVersions(string(k.translate(a)), string(k.translate(b)))
	case k.dictionary || k.printing:
		c = bytes.Compare(k.translate(a), k.translate(b))
	case k.fold:
		c = foldCompare(a, b)
	default:
		c = bytes.Compare(a, b)
	}
	if k.reverse {
		return -c
	}
	return c
}

// translate leaves out what -d and -i do not look at, and makes capitals for -f.
func (k *sortKey) translate(a []byte) []byte {
	if !k.dictionary && !k.printing && !k.fold {
		return a
	}
	out := make([]byte, 0, len(a))
	for _, b := range a {
		switch {
		case k.dictionary && !isBlankOrEnd(b) && !isDigit(b) && !(toUpper(b) >= 'A' && toUpper(b) <= 'Z'):
			continue
		case k.printing && !k.dictionary && !isPrint(b):
			continue
		}
		if k.fold {
			b = toUpper(b)
		}
		out = append(out, b)
	}
	return out
}

func skipBlanks(a []byte) []byte {
	for len(a) > 0 && isBlankOrEnd(a[0]) {
		a = a[1:]
	}
	return a
}

// decimal splits a number as -n reads it: [-]digits[.digits], of any length.
func decimal(a []byte) (negative bool, whole, part []byte) {
	if len(a) > 0 && a[0] == '-' {
		negative, a = true, a[1:]
	}
	i := 0
	for i < len(a) && isDigit(a[i]) {
		i++
	}
	whole = bytes.TrimLeft(a[:i], "0")
	if i < len(a) && a[i] == '.' {
		j := i + 1
		for j < len(a) && isDigit(a[j]) {
			j++
		}
		part = bytes.TrimRight(a[i+1:j], "0")
	}
	if len(whole) == 0 && len(part) == 0 {
		negative = false
	}
	return negative, whole, part
}

func compareNumbers(a, b []byte) int {
	an, aw, ap := decimal(a)
	bn, bw, bp := decimal(b)
	if an != bn {
		if an {
			return -1
		}
		return 1
	}
	c := cmp.Compare(len(aw), len(bw))
	if c == 0 {
		c = bytes.Compare(aw, bw)
	}
	if c == 0 {
		c = bytes.Compare(ap, bp)
	}
	if an {
		return -c
	}
	return c
}

// compareHuman puts 1023 before 1K before 1M: the sign, then the suffix, then the number.
func compareHuman(a, b []byte) int {
	if c := humanOrder(a) - humanOrder(b); c != 0 {
		return c
	}
	return compareNumbers(a, b)
}

func humanOrder(a []byte) int {
	negative, whole, part := decimal(a)
	if len(whole) == 0 && len(part) == 0 {
		return 0
	}
	i := 0
	if a[0] == '-' {
		i++
	}
	for i < len(a) && isDigit(a[i]) {
		i++
	}
	if i < len(a) && a[i] == '.' {
		i++
		for i < len(a) && isDigit(a[i]) {
			i++
		}
	}
	order := 0
	if i < len(a) {
		c := a[i]
		if c == 'k' {
			c = 'K'
		}
		order = strings.IndexByte("KMGTPEZYRQ", c) + 1
		if order > 8 {
			order = 0 // newer than the release that this follows
		}
	}
	if negative {
		return -order
	}
	return order
}

// compareGeneral is for -g: what is no number first, then NaN, then by value.
func compareGeneral(a, b []byte) int {
	x, xok := floatPrefix(a)
	y, yok := floatPrefix(b)
	if xok != yok {
		if !xok {
			return -1
		}
		return 1
	}
	return cmp.Compare(x, y) // NaN is less than all
}

// floatPrefix reads the number at the start of a, as strtod does.
func floatPrefix(a []byte) (float64, bool) {
	for len(a) > 0 && isSpace(a[0]) {
		a = a[1:]
	}
	s := string(a[:min(len(a), 400)])
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	rest := strings.ToLower(s[i:])
	for _, word := range []string{"infinity", "inf", "nan"} {
		if strings.HasPrefix(rest, word) {
			v, _ := strconv.ParseFloat(s[:i]+word, 64)
			if word == "nan" {
				v = math.NaN()
			}
			return v, true
		}
	}
	digits, exp := "0123456789", "e"
	if strings.HasPrefix(rest, "0x") {
		digits, exp = "0123456789abcdef", "p"
		i += 2
	}
	seen, dot := false, false
	for i < len(s) {
		c := toLower(s[i])
		if strings.IndexByte(digits, c) >= 0 {
			seen = true
		} else if c != '.' || dot {
			break
		} else {
			dot = true
		}
		i++
	}
	if !seen {
		if exp == "p" {
			return 0, true // "0x" is the number 0 and an x
		}
		return 0, false
	}
	hex := exp == "p"
	if i < len(s) && toLower(s[i]) == exp[0] {
		j := i + 1
		if j < len(s) && (s[j] == '-' || s[j] == '+') {
			j++
		}
		if j < len(s) && isDigit(s[j]) {
			for j < len(s) && isDigit(s[j]) {
				j++
			}
			i, hex = j, false
		}
	}
	text := s[:i]
	if hex {
		text += "p0"
	}
	v, _ := strconv.ParseFloat(text, 64) // out of range gives the infinity that strtod gives
	return v, true
}

func month(a []byte) int {
	for len(a) > 0 && isBlankOrEnd(a[0]) {
		a = a[1:]
	}
	if len(a) < 3 {
		return 0
	}
	name := string([]byte{toUpper(a[0]), toUpper(a[1]), toUpper(a[2])})
	if i := strings.Index("JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC", name); i >= 0 && i%3 == 0 {
		return i/3 + 1
	}
	return 0
}

// entry is a line and the start of its first key as a number that orders as the key does: where two differ, the
// lines need not be looked at.
type entry struct {
	first uint64
	at    int // its place in the input
	text  []byte
}

func (s *sorter) read(t *call, rs []*lines, names []string) ([]entry, int) {
	var list []entry
	var arena []byte
	for i, l := range rs {
		for {
			line, err := l.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, t.fail(2, "read failed: %s: %s", names[i], cmd.Reason(err))
			}
			if len(arena)+len(line) > cap(arena) {
				arena = make([]byte, 0, max(1<<20, len(line)))
			}
			n := len(arena)
			arena = append(arena, line...)
			text := arena[n:len(arena):len(arena)]
			list = append(list, entry{s.first(text), len(list), text})
			if len(list)%4096 == 0 {
				cmd.Check(t.ctx)
			}
		}
	}
	return list, 0
}

func (s *sorter) first(line []byte) uint64 {
	if len(s.keys) == 0 {
		f := prefix(line)
		if s.global.reverse {
			return ^f
		}
		return f
	}
	k := s.keys[0]
	var f uint64
	switch {
	case k.numeric:
		f = numericPrefix(skipBlanks(s.extract(k, line)))
	case k.general, k.human, k.month, k.random, k.version, k.dictionary, k.printing, k.fold:
		return 0
	default:
		f = prefix(s.extract(k, line))
	}
	if k.reverse {
		return ^f
	}
	return f
}

func prefix(a []byte) uint64 {
	var f uint64
	for i := range 8 {
		f <<= 8
		if i < len(a) {
			f |= uint64(a[i])
		}
	}
	return f
}

// numericPrefix is the whole part of a number, moved so that negative ones come first.
func numericPrefix(a []byte) uint64 {
	const middle = 1 << 63
	negative, whole, _ := decimal(a)
	n := uint64(0)
	if len(whole) > 18 {
		n = middle - 1
	} else {
		for _, b := range whole {
			n = n*10 + uint64(b-'0')
		}
	}
	if negative {
		return middle - n
	}
	return middle + n
}

// sort sorts stably: lines that compare equal stay in the order of the input.
func (s *sorter) sort(t *call, list []entry) {
	n := 0
	slices.SortFunc(list, func(a, b entry) int {
		if n++; n%(1<<16) == 0 {
			cmd.Check(t.ctx)
		}
		if a.first != b.first {
			return cmp.Compare(a.first, b.first)
		}
		if c := s.compare(a.text, b.text); c != 0 {
			return c
		}
		return cmp.Compare(a.at, b.at)
	})
}

func (s *sorter) check(t *call, name string, quiet bool) int {
	r, err := t.open(name)
	if err != nil {
		return t.fail(2, "cannot read: %s: %s", name, cmd.Reason(err))
	}
	defer r.Close()
	l := newLines(r, s.sep)
	var last []byte
	for n := 1; ; n++ {
		line, err := l.next()
		if err == io.EOF {
			return 0
		}
		if err != nil {
			return t.fail(2, "read failed: %s: %s", name, cmd.Reason(err))
		}
		if n > 1 {
			c := 0
			if s.unique {
				if c = s.byKeys(last, line); c == 0 {
					c = 1
				}
			} else {
				c = s.compare(last, line)
			}
			if c > 0 {
				if !quiet {
					t.Errorf("%s:%d: disorder: %s", name, n, line)
				}
				return 1
			}
		}
		last = append(last[:0], line...)
	}
}

// mergeHeap are the next lines of sorted inputs, the least on top; of equal ones, that of the earlier input.
type mergeHeap struct {
	s    *sorter
	list []mergeItem
}

type mergeItem struct {
	line []byte
	from int
}

func (h *mergeHeap) Len() int { return len(h.list) }
func (h *mergeHeap) Less(i, j int) bool {
	if c := h.s.compare(h.list[i].line, h.list[j].line); c != 0 {
		return c < 0
	}
	return h.list[i].from < h.list[j].from
}
func (h *mergeHeap) Swap(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *mergeHeap) Push(x any)    { h.list = append(h.list, x.(mergeItem)) }
func (h *mergeHeap) Pop() any {
	x := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return x
}

func (s *sorter) merge(t *call, w *bufio.Writer, rs []*lines, names []string) int {
	h := &mergeHeap{s: s}
	next := func(i int) ([]byte, bool, int) {
		line, err := rs[i].next()
		if err == io.EOF {
			return nil, false, 0
		}
		if err != nil {
			return nil, false, t.fail(2, "read failed: %s: %s", names[i], cmd.Reason(err))
		}
		return line, true, 0
	}
	for i := range rs {
		line, ok, code := next(i)
		if code > 0 {
			return code
		}
		if ok {
			h.list = append(h.list, mergeItem{bytes.Clone(line), i})
		}
	}
	heap.Init(h)
	var last []byte
	for started := false; h.Len() > 0; started = true {
		top := &h.list[0]
		if !s.unique || !started || s.byKeys(last, top.line) != 0 {
			w.Write(top.line)
			w.WriteByte(s.sep)
			last = append(last[:0], top.line...)
		}
		line, ok, code := next(top.from)
		if code > 0 {
			return code
		}
		if !ok {
			heap.Pop(h)
			continue
		}
		top.line = append(top.line[:0], line...)
		heap.Fix(h, 0)
	}
	return 0
}
