package text

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// oldWidth rewrites -80 to -w80, the old spelling of several commands; only of the first argument if first.
func oldWidth(args []string, letter string, first bool) []string {
	for i, a := range args {
		if a == "--" || first && i > 0 {
			break
		}
		if len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "0123456789") == "" {
			args = slices.Clone(args)
			args[i] = "-" + letter + a[1:]
		}
	}
	return args
}

var foldOpts = cmd.Opts{{Short: 'b', Long: "bytes"}, {Short: 's', Long: "spaces"}, {Short: 'w', Long: "width", Arg: cmd.Value}}

func fold(t *call) int {
	given, names, code := t.parse(foldOpts, "[OPTION]... [FILE]...", 1, oldWidth(t.Args, "w", false))
	if code >= 0 {
		return code
	}
	width, spaces, count := 80, false, false
	for _, g := range given {
		switch g.Key {
		case "b":
			count = true
		case "s":
			spaces = true
		case "w":
			n, err := strconv.ParseUint(g.Value, 10, 62)
			if err == nil && n == 0 {
				return t.fail(1, "invalid number of columns: '0': Numerical result out of range")
			}
			if err != nil {
				return t.fail(1, "invalid number of columns: %s", cmd.Quote(g.Value))
			}
			width = int(n)
		}
	}
	advance := func(column int, b byte) int {
		switch {
		case count:
			return column + 1
		case b == '\b':
			return max(column-1, 0)
		case b == '\r':
			return 0
		case b == '\t':
			return column + 8 - column%8
		}
		return column + 1
	}
	return t.each(names, func(_ string, r *source) error {
		var line []byte // what is not written yet
		column := 0
		err := blocks(r, func(data []byte) error {
			for _, b := range data {
				if b == '\n' {
					t.out.Write(append(line, b))
					line, column = line[:0], 0
					continue
				}
				for {
					column = advance(column, b)
					if column <= width {
						line = append(line, b)
						break
					}
					if i := bytes.LastIndexAny(line, " \t"); spaces && i >= 0 {
						t.out.Write(line[:i+1])
						t.out.WriteByte('\n')
						line = append(line[:0], line[i+1:]...)
						column = 0
						for _, c := range line {
							column = advance(column, c)
						}
						continue
					}
					if len(line) == 0 {
						line = append(line, b) // wider than a line: it stands alone
						break
					}
					t.out.Write(line)
					t.out.WriteByte('\n')
					line, column = line[:0], 0
				}
			}
			if !spaces && len(line) > 64<<10 {
				t.out.Write(line) // what went out needs no more care
				line = line[:0]
			}
			return nil
		})
		t.out.Write(line)
		return err
	})
}

// tabStops are where tabs go.
type tabStops struct {
	list  []int
	every int // behind the list: every so many columns, 0: no more
	from  int // counted from here
}

// parseTabs reads the arguments of -t: 8, or 4,10,20, or 4,/8 or 4,+8.
func parseTabs(args []string) (*tabStops, error) {
	ts := &tabStops{}
	for _, word := range strings.FieldsFunc(strings.Join(args, ","), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		digits := strings.TrimLeft(word, "/+")
		n, err := strconv.Atoi(digits)
		switch {
		case err != nil && strings.Trim(digits, "0123456789") == "" && digits != "":
			return nil, fmt.Errorf("tab stop is too large %s", cmd.Quote(digits))
		case err != nil:
			return nil, fmt.Errorf("tab size contains invalid character(s): %s", cmd.Quote(strings.TrimLeft(digits, "0123456789")))
		case ts.every > 0:
			return nil, fmt.Errorf("%s specifier only allowed with the last value", cmd.Quote(string(word[0])))
		case word[0] == '/':
			ts.every = n
		case word[0] == '+':
			ts.every = n
			if len(ts.list) > 0 {
				ts.from = ts.list[len(ts.list)-1]
			}
		case n == 0:
			return nil, fmt.Errorf("tab size cannot be 0")
		case len(ts.list) > 0 && n <= ts.list[len(ts.list)-1]:
			return nil, fmt.Errorf("tab sizes must be ascending")
		default:
			ts.list = append(ts.list, n)
		}
	}
	if len(ts.list) == 1 && ts.every == 0 {
		ts.every, ts.list = ts.list[0], nil
	}
	if len(ts.list) == 0 && ts.every == 0 {
		ts.every = 8
	}
	return ts, nil
}

// next returns the stop behind column, or false when there is none.
func (ts *tabStops) next(column int) (int, bool) {
	i, found := slices.BinarySearch(ts.list, column)
	if found {
		i++
	}
	if i < len(ts.list) {
		return ts.list[i], true
	}
	if ts.every > 0 {
		return column + ts.every - (column-ts.from)%ts.every, true
	}
	return 0, false
}

// tabArgs takes -4 and -4,8 out of the arguments: the old way to name tab stops.
func tabArgs(args []string) (rest, tabs []string) {
	for i, a := range args {
		if a == "--" {
			return append(rest, args[i:]...), tabs
		}
		if len(a) > 1 && a[0] == '-' && isDigit(a[1]) && strings.Trim(a[1:], "0123456789,") == "" {
			tabs = append(tabs, a[1:])
			continue
		}
		rest = append(rest, a)
	}
	return rest, tabs
}

var expandOpts = cmd.Opts{{Short: 'i', Long: "initial"}, {Short: 't', Long: "tabs", Arg: cmd.Value}}

func expand(t *call) int {
	args, tabs := tabArgs(t.Args)
	given, names, code := t.parse(expandOpts, "[OPTION]... [FILE]...", 1, args)
	if code >= 0 {
		return code
	}
	initial := false
	for _, g := range given {
		if g.Key == "i" {
			initial = true
		} else {
			tabs = append(tabs, g.Value)
		}
	}
	stops, err := parseTabs(tabs)
	if err != nil {
		return t.fail(1, "%v", err)
	}
	in := t.inputs(names)
	column, convert := 0, true
	blocks(in, func(data []byte) error {
		for _, b := range data {
			switch {
			case b == '\n':
				column, convert = 0, true
			case !convert:
			case b == '\t':
				next, ok := stops.next(column)
				if !ok {
					next = column + 1
				}
				for ; column < next; column++ {
					t.out.WriteByte(' ')
				}
				continue
			case b == '\b':
				column = max(column-1, 0)
				convert = !initial
			default:
				column++
				convert = !initial || isBlank(b)
			}
			t.out.WriteByte(b)
		}
		return nil
	})
	return in.code
}

var unexpandOpts = cmd.Opts{
	{Short: 'a', Long: "all"}, {Long: "first-only"}, {Short: 't', Long: "tabs", Arg: cmd.Value},
}

func unexpand(t *call) int {
	args, tabs := tabArgs(t.Args)
	given, names, code := t.parse(unexpandOpts, "[OPTION]... [FILE]...", 1, args)
	if code >= 0 {
		return code
	}
	all, first := false, false
	for _, g := range given {
		switch g.Key {
		case "a":
			all = true
		case "first-only":
			first = true
		case "t":
			all = true
			tabs = append(tabs, g.Value)
		}
	}
	stops, err := parseTabs(tabs)
	if err != nil {
		return t.fail(1, "%v", err)
	}
	if first {
		all = false
	}
	in := t.inputs(names)
	var (
		column  int
		spaces  int  // that wait for what follows
		tab     bool // the first of them has become a tab
		single  bool // a blank alone before a stop: it stays one unless more blanks follow
		blank   = true
		convert = true
	)
	flush := func() {
		if spaces > 0 {
			if tab || spaces > 1 && single {
				t.out.WriteByte('\t')
				spaces--
			}
			for ; spaces > 0; spaces-- {
				t.out.WriteByte(' ')
			}
		}
		single, tab = false, false
	}
	blocks(in, func(data []byte) error {
		for _, b := range data {
			if !convert {
				t.out.WriteByte(b)
				if b == '\n' {
					column, blank, convert = 0, true, true
				}
				continue
			}
			is := isBlank(b)
			switch {
			case is:
				next, ok := stops.next(column)
				if !ok {
					convert = false
					break
				}
				if b == '\t' {
					column = next
				} else {
					column++
					if !blank || column < next {
						single = single || column == next
						spaces++
						blank = true
						continue
					}
					b = '\t' // more than one blank up to a stop
				}
				// Blanks before a tab are part of it, but for a single one before an earlier stop.
				tab = spaces > 0
				if spaces = 0; single {
					spaces = 1
				}
			case b == '\b':
				column = max(column-1, 0)
			default:
				column++
			}
			flush()
			blank = is
			convert = convert && (all || is)
			t.out.WriteByte(b)
			if b == '\n' {
				column, blank, convert = 0, true, true
			}
		}
		return nil
	})
	flush()
	return in.code
}

var fmtOpts = cmd.Opts{
	{Short: 'c', Long: "crown-margin"}, {Short: 'p', Long: "prefix", Arg: cmd.Value}, {Short: 's', Long: "split-only"},
	{Short: 't', Long: "tagged-paragraph"}, {Short: 'u', Long: "uniform-spacing"}, {Short: 'w', Long: "width", Arg: cmd.Value},
	{Short: 'g', Long: "goal", Arg: cmd.Value},
}

// formatter fills paragraphs so that the sum of what is ugly in their lines is least: lines that are far from the
// goal, breaks within a sentence's first or behind its last word, and so on.
type formatter struct {
	t             *call
	crown, tagged bool
	split         bool
	uniform       bool
	max, goal     int

	prefix       []byte // without blanks around it
	prefixIndent int
	prefixFull   int // its length with blanks behind it

	tabs        bool // the input has tabs: the output gets them
	first       int  // indent of the first line of the paragraph
	other       int  // of the others
	words       []fmtWord
	letters     int
	lastLength  int // of the last line that was written of a paragraph too long to be held
	nextIndent  int
	nextPrefix  int
	column      int // of the input
	outColumn   int
	in          *bytesReader
	ch          int // the next character, -1: the end
	firstPrefix int
}

type fmtWord struct {
	text                        []byte
	space                       int
	paren, period, punct, final bool

	length int // of the line that starts here
	cost   int64
	next   int // where the next line starts
}

// bytesReader reads a byte at a time; -1 is the end.
type bytesReader struct {
	r   io.Reader
	buf []byte
	b   []byte
	err error
}

func (r *bytesReader) next() int {
	for len(r.b) == 0 {
		if r.err != nil {
			return -1
		}
		if r.buf == nil {
			r.buf = make([]byte, 32<<10)
		}
		n, err := r.r.Read(r.buf)
		r.b, r.err = r.buf[:n], err
	}
	c := r.b[0]
	r.b = r.b[1:]
	return int(c)
}

func fmtCmd(t *call) int {
	given, names, code := t.parse(fmtOpts, "[-WIDTH] [OPTION]... [FILE]...", 1, oldWidth(t.Args, "w", true))
	if code >= 0 {
		return code
	}
	f := &formatter{t: t, max: 75}
	width, goal := -1, -1
	for _, g := range given {
		switch g.Key {
		case "c":
			f.crown = true
		case "t":
			f.tagged = true
		case "s":
			f.split = true
		case "u":
			f.uniform = true
		case "p":
			p := strings.TrimLeft(g.Value, " ")
			f.prefixIndent = len(g.Value) - len(p)
			f.prefixFull = len(p)
			f.prefix = []byte(strings.TrimRight(p, " "))
		case "w", "g":
			n, err := strconv.Atoi(g.Value)
			if err != nil || n < 0 || n > 2500 {
				return t.fail(1, "invalid width: %s", cmd.Quote(g.Value))
			}
			if g.Key == "w" {
				width = n
			} else {
				goal = n
			}
		}
	}
	switch {
	case goal >= 0:
		if width < 0 {
			width = goal + 10
		} else if goal > width {
			return t.fail(1, "invalid width: '%d'", goal)
		}
		f.max, f.goal = width, goal
	default:
		if width >= 0 {
			f.max = width
		}
		f.goal = f.max * (2*(100-7) + 1) / 200
	}
	if len(names) == 0 {
		names = []string{"-"}
	}
	failed := 0
	for _, name := range names {
		r, err := t.open(name)
		if err != nil {
			failed = t.fail(1, "cannot open '%s' for reading: %s", name, cmd.Reason(err))
			continue
		}
		f.in = &bytesReader{r: r}
		f.run()
		r.Close()
		if f.in.err != io.EOF {
			failed = t.fail(1, "%s: %s", "read error", cmd.Reason(f.in.err))
		}
	}
	return failed
}

func (f *formatter) run() {
	f.tabs = false
	f.other = 0
	f.nextPrefix = f.prefixIndent
	f.ch = f.start()
	for f.paragraph() {
		f.breakLines()
		f.put(len(f.words))
	}
}

// start reads the prefix of a line, and sets nextIndent to where its text starts.
func (f *formatter) start() int {
	f.column = 0
	c := f.blanks(f.in.next())
	if len(f.prefix) == 0 {
		f.nextPrefix = min(f.nextPrefix, f.column)
	} else {
		f.nextPrefix = f.column
		for _, p := range f.prefix {
			if c != int(p) {
				f.nextIndent = f.column
				return c
			}
			f.column++
			c = f.in.next()
		}
		c = f.blanks(c)
	}
	f.nextIndent = f.column
	return c
}

func (f *formatter) blanks(c int) int {
	for {
		switch c {
		case ' ':
			f.column++
		case '\t':
			f.tabs = true
			f.column = (f.column/8 + 1) * 8
		default:
			return c
		}
		c = f.in.next()
	}
}

// paragraph copies lines that are none of a paragraph's and reads the next paragraph. False: there is no more.
func (f *formatter) paragraph() bool {
	f.lastLength = 0
	c := f.ch
	for c == '\n' || c == -1 || f.nextPrefix < f.prefixIndent || f.nextIndent < f.nextPrefix+f.prefixFull {
		c = f.copyRest(c)
		if c == -1 {
			f.ch = -1
			return false
		}
		f.t.out.WriteByte('\n')
		c = f.start()
	}
	f.firstPrefix = f.nextPrefix
	f.first = f.nextIndent
	f.words = f.words[:0]
	f.letters = 0
	c = f.line(c)
	f.setOther(f.same(c))
	switch {
	case f.split:
	case f.crown:
		if f.same(c) {
			for {
				c = f.line(c)
				if !f.same(c) || f.nextIndent != f.other {
					break
				}
			}
		}
	case f.tagged:
		if f.same(c) && f.nextIndent != f.first {
			for {
				c = f.line(c)
				if !f.same(c) || f.nextIndent != f.other {
					break
				}
			}
		}
	default:
		for f.same(c) && f.nextIndent == f.other {
			c = f.line(c)
		}
	}
	last := &f.words[len(f.words)-1]
	last.period, last.final = true, true
	f.ch = c
	return true
}

// copyRest writes the rest of a line as it is.
func (f *formatter) copyRest(c int) int {
	f.outColumn = 0
	if f.nextIndent > f.nextPrefix || c != '\n' && c != -1 {
		f.space(f.nextPrefix)
		for i := 0; f.outColumn != f.nextIndent && i < len(f.prefix); i++ {
			f.t.out.WriteByte(f.prefix[i])
			f.outColumn++
		}
		if c != -1 && c != '\n' {
			f.space(f.nextIndent - f.outColumn)
		}
		if c == -1 && f.nextIndent >= f.nextPrefix+len(f.prefix) {
			f.t.out.WriteByte('\n')
		}
	}
	for c != '\n' && c != -1 {
		f.t.out.WriteByte(byte(c))
		c = f.in.next()
	}
	return c
}

// same tells whether the next line may be of the same paragraph.
func (f *formatter) same(c int) bool {
	return f.nextPrefix == f.firstPrefix && f.nextIndent >= f.nextPrefix+f.prefixFull && c != '\n' && c != -1
}

func (f *formatter) setOther(same bool) {
	switch {
	case f.split:
		f.other = f.first
	case f.crown:
		f.other = f.first
		if same {
			f.other = f.nextIndent
		}
	case f.tagged:
		switch {
		case same && f.nextIndent != f.first:
			f.other = f.nextIndent
		case f.other == f.first:
			// A tag alone: the indent of the others is made up.
			f.other = 0
			if f.first == 0 {
				f.other = 3
			}
		}
	default:
		f.other = f.first
	}
}

// line reads the words of a line. It returns the first character of the text of the next line.
func (f *formatter) line(c int) int {
	const maxWords, maxLetters = 1000, 5000
	for {
		var w fmtWord
		for first := true; first || c != -1 && !isSpace(byte(c)); first = false {
			w.text = append(w.text, byte(c))
			if f.letters++; f.letters >= maxLetters {
				f.letters -= len(w.text)
				f.flush(&w)
			}
			c = f.in.next()
		}
		f.column += len(w.text)
		w.classify()
		at := f.column
		c = f.blanks(c)
		w.space = f.column - at
		w.final = c == -1 || w.period && (c == '\n' || w.space > 1)
		if c == '\n' || c == -1 || f.uniform {
			w.space = 1
			if w.final {
				w.space = 2
			}
		}
		if len(f.words) >= maxWords-2 {
			f.flush(nil)
		}
		f.words = append(f.words, w)
		if c == '\n' || c == -1 {
			break
		}
	}
	if c == -1 {
		return c
	}
	return f.start()
}

func (w *fmtWord) classify() {
	text := w.text
	if len(text) == 0 {
		return
	}
	w.paren = bytes.IndexByte([]byte("(['`\""), text[0]) >= 0
	w.punct = isPunct(text[len(text)-1])
	for len(text) > 1 && bytes.IndexByte([]byte(")]'\""), text[len(text)-1]) >= 0 {
		text = text[:len(text)-1]
	}
	w.period = bytes.IndexByte([]byte(".?!"), text[len(text)-1]) >= 0
}

// flush writes the start of a paragraph that is too long to be held; half is a word that is still being read.
func (f *formatter) flush(half *fmtWord) {
	if len(f.words) == 0 {
		if half != nil {
			f.t.out.Write(half.text)
			half.text = half.text[:0]
			f.letters = 0
		}
		return
	}
	f.breakLines()
	n := len(f.words)
	split := n
	best := int64(1) << 62
	for i := f.words[0].next; i < n; i = f.words[i].next {
		if c := f.words[i].cost - f.cost(f.words[i].next); c < best {
			split, best = i, c
		}
		best += fmtLineCredit
	}
	f.put(split)
	f.words = append(f.words[:0], f.words[split:]...)
	f.letters = 0
	for i := range f.words {
		f.letters += len(f.words[i].text)
	}
	if half != nil {
		f.letters += len(half.text)
	}
}

const fmtLineCredit = 9

func sqr(n int64) int64 { return n * n }

// base is the cost of a line break before word i.
func (f *formatter) base(i int) int64 {
	cost := sqr(70)
	w := f.words
	if i > 0 {
		switch prev := w[i-1]; {
		case prev.period:
			if prev.final {
				cost -= sqr(50)
			} else {
				cost += sqr(600)
			}
		case prev.punct:
			cost -= sqr(40)
		case i > 1 && w[i-2].final:
			cost += sqr(200) / int64(len(prev.text)+2)
		}
	}
	switch {
	case w[i].paren:
		cost -= sqr(40)
	case w[i].final:
		cost += sqr(150) / int64(len(w[i].text)+2)
	}
	return cost
}

// lineCost is the cost of a line of length n that ends before word next.
func (f *formatter) lineCost(next, n int) int64 {
	if next == len(f.words) {
		return 0
	}
	cost := sqr(int64(f.goal-n) * 10)
	if w := f.words[next]; w.next != len(f.words) {
		cost += sqr(int64(n-w.length)*10) / 2
	}
	return cost
}

// cost is that of the lines from word i on.
func (f *formatter) cost(i int) int64 {
	if i == len(f.words) {
		return 0
	}
	return f.words[i].cost
}

// breakLines finds the best line breaks, from the end.
func (f *formatter) breakLines() {
	n := len(f.words)
	for start := n - 1; start >= 0; start-- {
		best := int64(1) << 62
		s := &f.words[start]
		length := f.other
		if start == 0 {
			length = f.first
		}
		w := start
		length += len(s.text)
		for {
			w++
			cost := f.lineCost(w, length) + f.cost(w)
			if start == 0 && f.lastLength > 0 {
				cost += sqr(int64(length-f.lastLength)*10) / 2
			}
			if cost < best {
				best = cost
				s.next, s.length = w, length
			}
			if w == n {
				break
			}
			length += f.words[w-1].space + len(f.words[w].text)
			if length >= f.max {
				break
			}
		}
		s.cost = best + f.base(start)
	}
}

// put writes the lines up to word end.
func (f *formatter) put(end int) {
	indent := f.first
	for i := 0; i < end; i = f.words[i].next {
		f.putLine(i, indent)
		indent = f.other
	}
}

func (f *formatter) putLine(i, indent int) {
	f.outColumn = 0
	f.space(f.prefixIndent)
	f.t.out.Write(f.prefix)
	f.outColumn += len(f.prefix)
	f.space(indent - f.outColumn)
	for end := f.words[i].next; ; i++ {
		f.t.out.Write(f.words[i].text)
		f.outColumn += len(f.words[i].text)
		if i+1 == end {
			break
		}
		f.space(f.words[i].space)
	}
	f.lastLength = f.outColumn
	f.t.out.WriteByte('\n')
}

func (f *formatter) space(n int) {
	to := f.outColumn + n
	if f.tabs {
		if tab := to / 8 * 8; f.outColumn+1 < tab {
			for f.outColumn < tab {
				f.t.out.WriteByte('\t')
				f.outColumn = (f.outColumn/8 + 1) * 8
			}
		}
	}
	for ; f.outColumn < to; f.outColumn++ {
		f.t.out.WriteByte(' ')
	}
}
