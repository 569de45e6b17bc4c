package awk

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
	"github.com/exthost/exthost/guests/sh/internal/regex"
)

const (
	sNF = iota
	sNR
	sFNR
	sFS
	sOFS
	sORS
	sRS
	sSUBSEP
	sCONVFMT
	sOFMT
	sRSTART
	sRLENGTH
	sFILENAME
	sRT
	sIGNORECASE
)

// specials are the variables that mean something to the interpreter.
var specials = map[string]int{
	"NF": sNF, "NR": sNR, "FNR": sFNR, "FS": sFS, "OFS": sOFS, "ORS": sORS, "RS": sRS, "SUBSEP": sSUBSEP,
	"CONVFMT": sCONVFMT, "OFMT": sOFMT, "RSTART": sRSTART, "RLENGTH": sRLENGTH, "FILENAME": sFILENAME,
	"RT": sRT, "IGNORECASE": sIGNORECASE,
}

const (
	maxDepth  = 20_000
	maxField  = 1 << 20
	maxOutput = 64 << 20 // of a command that getline reads
)

type interp struct {
	ctx  context.Context
	c    *cmd.Call
	prog *program
	gawk bool // characters instead of bytes, and other ways of gawk

	globals []cell
	frame   []cell
	depth   int
	result  value // of return
	code    int
	lost    bool // something that was printed to a file
	ticks   int

	record   string
	rebuilt  bool // record is what fields make
	fields   []value
	nf       int
	split    bool // fields and nf are those of record
	convfmt  string
	ofmt     string
	ofs, ors string
	fs, rs   string
	subsep   string
	nr, fnr  float64
	rstart   float64
	rlength  float64
	filename value
	rt       string
	fold     bool
	splitter splitter
	rsRegexp *regex.Regexp

	regexps map[string]*regex.Regexp
	argv    func(string) *cell

	stdout  *bufio.Writer
	line    []byte
	outputs map[string]*output
	opening []string // names of outputs as they were opened
	inputs  map[string]*reader
	main    *reader
	arg     int  // of ARGV, next to open
	opened  bool // some file was
	done    bool
	rng     uint64
	seed    float64
}

// failure ends the program with a message; quit ends it as exit does within a function.
type failure string

type quit ctl

func (it *interp) fail(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

func (it *interp) tick() {
	if it.ticks++; it.ticks&1023 == 0 {
		cmd.Check(it.ctx)
	}
}

func (it *interp) arith(op byte, a, b float64) float64 {
	switch op {
	case '+':
		return a + b
	case '-':
		return a - b
	case '*':
		return a * b
	case '/':
		if b == 0 && it.gawk {
			it.fail("fatal: division by zero attempted")
		}
		return a / b
	case '%':
		if b == 0 && it.gawk {
			it.fail("fatal: division by zero attempted in `%%'")
		}
		return math.Mod(a, b)
	}
	return math.Pow(a, b)
}

func (it *interp) call(f *function, frame []cell) value {
	if it.depth++; it.depth > maxDepth {
		it.fail("function call nesting too deep in %s", f.name)
	}
	it.tick()
	old := it.frame
	it.frame = frame
	it.result = value{}
	c := f.body(it)
	it.frame = old
	it.depth--
	if c != ctlReturn && c != ctlOn {
		panic(quit(c))
	}
	v := it.result
	if c == ctlOn {
		v = value{}
	}
	it.result = value{}
	return v
}

// Expressions.

func (it *interp) flags() regex.Flags {
	f := regex.Awk
	if !it.gawk {
		f |= regex.Bytes
	}
	if it.fold {
		f |= regex.IgnoreCase
	}
	return f
}

func (it *interp) regexp(s string) *regex.Regexp {
	if re := it.regexps[s]; re != nil {
		return re
	}
	re, err := regex.Compile(s, regex.ERE, it.flags())
	if err != nil {
		it.fail("regular expression compile failed (%v)\n%s", err, s)
	}
	if len(it.regexps) > 500 {
		clear(it.regexps)
	}
	it.regexps[s] = re
	return re
}

func (it *interp) literal(l *literal) *regex.Regexp {
	if !it.fold {
		return l.re
	}
	return it.regexp(l.text)
}

func (it *interp) matches(re *regex.Regexp, s string) bool { return re.MatchString(it.ctx, s) }

// Records and fields.

func (it *interp) record0() string {
	if it.rebuilt {
		it.rebuild()
	}
	return it.record
}

func (it *interp) rebuild() {
	var b strings.Builder
	for i := range it.nf {
		if i > 0 {
			b.WriteString(it.ofs)
		}
		b.WriteString(it.str(it.fields[i]))
	}
	it.record, it.rebuilt = b.String(), false
}

func (it *interp) setRecord(s string) { it.record, it.rebuilt, it.split = s, false, false }

func (it *interp) needFields() {
	if it.split {
		return
	}
	it.split = true
	it.fields = it.fields[:0]
	it.splitter.split(it, it.record, func(s string) { it.fields = append(it.fields, given(s)) })
	it.nf = len(it.fields)
}

func (it *interp) fieldNumber(f float64) int {
	if f < 0 || f != f {
		it.fail("negative field index $%d", int(f))
	}
	if f > maxField {
		it.fail("program limit exceeded: maximum field index %d", maxField)
	}
	return int(f)
}

func (it *interp) field(i int) value {
	if i == 0 {
		return given(it.record0())
	}
	it.needFields()
	if i <= it.nf {
		return it.fields[i-1]
	}
	return value{}
}

func (it *interp) setField(i int, v value) {
	if i == 0 {
		it.setRecord(it.str(v))
		return
	}
	it.needFields()
	if i > it.nf {
		it.grow(i)
	}
	if v.kind == number {
		// A number keeps its text as CONVFMT has it now.
		it.fields[i-1] = value{s: it.str(v), n: v.n, kind: input}
	} else {
		it.fields[i-1] = v
	}
	it.rebuilt = true
}

func (it *interp) grow(n int) {
	for len(it.fields) < n {
		it.fields = append(it.fields, value{})
	}
	for i := it.nf; i < n; i++ {
		it.fields[i] = given("")
	}
	it.nf = n
}

func (it *interp) setNF(n int) {
	it.needFields()
	if n > it.nf {
		it.grow(n)
	}
	it.nf = n
	it.rebuilt = true
}

// splitter splits text into fields by some FS.
type splitter struct {
	blank bool
	one   byte // a single character
	each  bool // every character
	re    *regex.Regexp
	para  bool // a line end splits, too: in gawk, where records are paragraphs
}

func (it *interp) newSplitter(fs string, para bool) splitter {
	switch {
	case fs == " ":
		return splitter{blank: true}
	case fs == "":
		return splitter{each: true}
	case len(fs) == 1 && fs != "\\" && (it.gawk || !it.fold) || fs == "\\":
		if para && fs != "\n" {
			return splitter{re: it.regexp("(" + regex.Quote(fs, regex.ERE) + ")|\n")}
		}
		return splitter{one: fs[0]}
	}
	if para {
		return splitter{re: it.regexp("(" + fs + ")|\n")}
	}
	return splitter{re: it.regexp(fs)}
}

func (sp splitter) split(it *interp, s string, add func(string)) {
	switch {
	case sp.blank:
		for i := 0; ; {
			for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n') {
				i++
			}
			if i == len(s) {
				return
			}
			from := i
			for i < len(s) && s[i] != ' ' && s[i] != '\t' && s[i] != '\n' {
				i++
			}
			add(s[from:i])
		}
	case s == "":
	case sp.each:
		for len(s) > 0 {
			n := 1
			if it.gawk {
				_, n = utf8.DecodeRuneInString(s)
			}
			add(s[:n])
			s = s[n:]
		}
	case sp.re != nil:
		b := []byte(s)
		from, start := 0, 0
		for start <= len(b) {
			m := sp.re.FindIndex(it.ctx, b, start)
			if m == nil {
				break
			}
			if m[1] == m[0] {
				start = m[1] + 1
				continue
			}
			add(s[from:m[0]])
			from, start = m[1], m[1]
		}
		add(s[from:])
	default:
		for {
			i := strings.IndexByte(s, sp.one)
			if i < 0 {
				add(s)
				return
			}
			add(s[:i])
			s = s[i+1:]
		}
	}
}

// Variables.

func (it *interp) special(i int) value {
	switch i {
	case sNF:
		it.needFields()
		return num(float64(it.nf))
	case sNR:
		return num(it.nr)
	case sFNR:
		return num(it.fnr)
	case sFS:
		return given(it.fs)
	case sOFS:
		return given(it.ofs)
	case sORS:
		return given(it.ors)
	case sRS:
		return given(it.rs)
	case sSUBSEP:
		return given(it.subsep)
	case sCONVFMT:
		return given(it.convfmt)
	case sOFMT:
		return given(it.ofmt)
	case sRSTART:
		return num(it.rstart)
	case sRLENGTH:
		return num(it.rlength)
	case sFILENAME:
		return it.filename
	case sRT:
		return str(it.rt)
	}
	return truth(it.fold)
}

func (it *interp) setSpecial(i int, v value) {
	switch i {
	case sNF:
		f := it.num(v)
		if f < 0 {
			it.fail("negative value assigned to NF")
		}
		it.setNF(it.fieldNumber(f))
	case sNR:
		it.nr = it.num(v)
	case sFNR:
		it.fnr = it.num(v)
	case sFS:
		// The record at hand is still split by the old one.
		it.needFields()
		it.fs = it.str(v)
		it.splitter = it.newSplitter(it.fs, it.rs == "" && it.gawk)
	case sOFS:
		if it.rebuilt {
			it.rebuild()
		}
		it.ofs = it.str(v)
	case sORS:
		it.ors = it.str(v)
	case sRS:
		it.needFields()
		it.rs = it.str(v)
		it.rsRegexp = nil
		if len(it.rs) > 1 {
			it.rsRegexp = it.regexp(it.rs)
		}
		it.splitter = it.newSplitter(it.fs, it.rs == "" && it.gawk)
	case sSUBSEP:
		it.subsep = it.str(v)
	case sCONVFMT:
		it.convfmt = it.str(v)
	case sOFMT:
		it.ofmt = it.str(v)
	case sRSTART:
		it.rstart = it.num(v)
	case sRLENGTH:
		it.rlength = it.num(v)
	case sFILENAME:
		it.filename = v
	case sRT:
		it.rt = it.str(v)
	case sIGNORECASE:
		it.fold = it.gawk && it.bool(v)
		clear(it.regexps)
	}
}

// assign makes an assignment of the command line.
func (it *interp) assign(name, text string) {
	v := given(unescape(text))
	if s, ok := specials[name]; ok && (it.gawk || s < sRT) {
		it.setSpecial(s, v)
		return
	}
	if i, ok := it.prog.globals[name]; ok {
		it.globals[i].v = v
	}
}

// order is the order of for (key in array): that in which the elements came, unless PROCINFO says otherwise.
func (it *interp) order(a *array) []string {
	i, ok := it.prog.globals["PROCINFO"]
	if !ok || it.globals[i].arr == nil || !it.globals[i].arr.has("sorted_in") {
		return a.keys()
	}
	return it.sort(a, it.str(it.globals[i].arr.at("sorted_in").v))
}

func (it *interp) sort(a *array, how string) []string {
	keys := a.keys()
	dir := 1
	if strings.HasSuffix(how, "_desc") {
		dir = -1
	}
	byText := func(x, y string) int { return strings.Compare(x, y) * dir }
	byNumber := func(x, y string) int {
		f, _ := it.parse(x)
		g, _ := it.parse(y)
		switch {
		case f < g:
			return -dir
		case f > g:
			return dir
		}
		return strings.Compare(x, y) * dir
	}
	value := func(k string) value { return a.at(k).v }
	byValue := func(x, y string) int {
		v, w := value(x), value(y)
		f, fn := it.numeric(v)
		g, gn := it.numeric(w)
		switch {
		case fn && gn && f != g:
			if f < g {
				return -dir
			}
			return dir
		case fn && !gn:
			return -dir
		case gn && !fn:
			return dir
		case !fn:
			if c := strings.Compare(it.str(v), it.str(w)); c != 0 {
				return c * dir
			}
		}
		return byNumber(x, y)
	}
	switch how {
	case "@ind_str_asc", "@ind_str_desc":
		slices.SortStableFunc(keys, byText)
	case "@ind_num_asc", "@ind_num_desc":
		slices.SortStableFunc(keys, byNumber)
	case "@val_num_asc", "@val_num_desc":
		slices.SortStableFunc(keys, func(x, y string) int {
			f, g := it.num(value(x)), it.num(value(y))
			switch {
			case f < g:
				return -dir
			case f > g:
				return dir
			}
			return byText(x, y)
		})
	case "@val_str_asc", "@val_str_desc":
		slices.SortStableFunc(keys, func(x, y string) int {
			if c := strings.Compare(it.str(value(x)), it.str(value(y))); c != 0 {
				return c * dir
			}
			return byNumber(x, y)
		})
	case "@val_type_asc", "@val_type_desc":
		slices.SortStableFunc(keys, byValue)
	}
	return keys
}

// Input.

// reader reads records.
type reader struct {
	r        io.Reader
	closer   io.Closer
	buf      []byte
	from, to int
	eof      bool
	err      error
	code     int // exit code of the command that was read
}

func (r *reader) fill() bool {
	if r.eof {
		return false
	}
	if r.from > 0 {
		r.to = copy(r.buf, r.buf[r.from:r.to])
		r.from = 0
	}
	if r.buf == nil {
		r.buf = make([]byte, 32<<10)
	}
	if r.to == len(r.buf) {
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
	n, err := r.r.Read(r.buf[r.to:])
	r.to += n
	if err != nil {
		r.eof = true
		if err != io.EOF {
			r.err = err
		}
	}
	return true
}

// read returns the next record.
func (it *interp) read(r *reader) (string, bool) {
	seen := 0
	take := func(n, sep int) (string, bool) {
		s := string(r.buf[r.from : r.from+n])
		if it.gawk {
			it.rt = string(r.buf[r.from+n : r.from+n+sep])
		}
		r.from += n + sep
		return s, true
	}
	for {
		b := r.buf[r.from:r.to]
		switch {
		case it.rs == "":
			for len(b) > 0 && b[0] == '\n' {
				r.from++
				b = b[1:]
			}
			if i := bytes.Index(b, []byte("\n\n")); i >= 0 {
				n := i + 2
				for n < len(b) && b[n] == '\n' {
					n++
				}
				if n < len(b) || r.eof {
					return take(i, n-i)
				}
			}
			if r.eof && len(b) > 0 {
				n := len(b)
				if b[n-1] == '\n' {
					return take(n-1, 1)
				}
				return take(n, 0)
			}
		case it.rsRegexp != nil:
			for from := 0; ; {
				m := it.rsRegexp.FindIndex(it.ctx, b, from)
				if m == nil {
					break
				}
				if m[0] == m[1] {
					from = m[1] + 1
					continue
				}
				// A match that touches what is not read yet could become longer.
				if m[1] < len(b) || r.eof {
					return take(m[0], m[1]-m[0])
				}
				break
			}
		default:
			if i := bytes.IndexByte(b[seen:], it.rs[0]); i >= 0 {
				return take(seen+i, 1)
			}
			seen = len(b)
		}
		if r.eof {
			if len(b) == 0 {
				return "", false
			}
			return take(len(b), 0)
		}
		r.fill()
	}
}

// nextFile opens the next operand; false when there is none.
func (it *interp) nextFile() bool {
	argc := int(it.num(it.argv("ARGC").v))
	list := it.argv("ARGV").array()
	for ; it.arg < argc; it.arg++ {
		key := strconv.Itoa(it.arg)
		if !list.has(key) {
			continue
		}
		name := it.str(list.at(key).v)
		if name == "" {
			continue
		}
		if v, text, ok := strings.Cut(name, "="); ok && isVariable(v) {
			it.assign(v, text)
			continue
		}
		it.arg++
		it.open(name)
		return true
	}
	if it.opened {
		return false
	}
	it.open("-")
	return true
}

func isVariable(s string) bool {
	for i := range len(s) {
		if !isLetter(s[i]) && (i == 0 || !isDigit(s[i])) {
			return false
		}
	}
	return s != ""
}

func (it *interp) open(name string) {
	it.opened = true
	it.fnr = 0
	if name == "-" {
		it.filename = value{}
		it.main = &reader{r: it.c.Stdin}
		if it.arg > 1 {
			it.filename = str("-")
		}
	} else {
		f, err := it.c.OpenFile(name, os.O_RDONLY, 0)
		if err == nil {
			if info, serr := f.Stat(); serr == nil && info.IsDir() {
				f.Close()
				if it.gawk {
					it.warn("warning: command line argument `%s' is a directory: skipped", name)
					it.main = &reader{eof: true}
					return
				}
				err = syscall.EISDIR
			}
		}
		if err != nil {
			it.fail("cannot open %s (%s)", name, cmd.Reason(err))
		}
		it.filename = given(name)
		it.main = &reader{r: f, closer: f}
	}
	for _, b := range it.prog.beginFile {
		it.runBlock(b)
	}
}

func (it *interp) warn(format string, args ...any) {
	it.stdout.Flush()
	it.c.Errorf(format, args...)
}

func (it *interp) closeMain() {
	if it.main == nil {
		return
	}
	if it.main.closer != nil {
		it.main.closer.Close()
	}
	it.main = nil
	for _, b := range it.prog.endFile {
		it.runBlock(b)
	}
}

// mainRecord returns the next record of the operands.
func (it *interp) mainRecord() (string, bool) {
	for !it.done {
		if it.main == nil && !it.nextFile() {
			it.done = true
			break
		}
		if s, ok := it.read(it.main); ok {
			it.nr++
			it.fnr++
			return s, true
		}
		if it.main.err != nil {
			it.fail("read error on %s (%s)", it.str(it.filename), cmd.Reason(it.main.err))
		}
		it.closeMain()
	}
	return "", false
}

func (it *interp) getline(target node) float64 {
	s, ok := it.mainRecord()
	if !ok {
		return 0
	}
	if target.assign == nil {
		it.setRecord(s)
	} else {
		target.assign(it, given(s))
	}
	return 1
}

func (it *interp) from(r *reader, target node, counts bool) float64 {
	s, ok := it.read(r)
	if !ok {
		if r.err != nil {
			return -1
		}
		return 0
	}
	if counts {
		it.nr++
	}
	if target.assign == nil {
		it.setRecord(s)
	} else {
		target.assign(it, given(s))
	}
	return 1
}

func (it *interp) getlineFile(name string, target node) float64 {
	r := it.inputs[name]
	if r == nil {
		if name == "-" || name == "/dev/stdin" {
			r = &reader{r: it.c.Stdin}
			if it.main != nil && it.main.closer == nil {
				r = it.main
			}
		} else {
			f, err := it.c.OpenFile(name, os.O_RDONLY, 0)
			if err != nil {
				return -1
			}
			r = &reader{r: f, closer: f}
		}
		it.inputs[name] = r
	}
	return it.from(r, target, false)
}

// spool keeps what a command prints.
type spool struct {
	bytes.Buffer
	full bool
}

func (s *spool) Write(p []byte) (int, error) {
	if s.Len()+len(p) > maxOutput {
		s.full = true
		return 0, io.ErrClosedPipe
	}
	return s.Buffer.Write(p)
}

// getlineCommand reads from a command, which has run to its end before the first line is read: there are no processes
// beside which it could run.
func (it *interp) getlineCommand(command string, target node) float64 {
	r := it.inputs[command]
	if r == nil {
		it.flush()
		var out spool
		code := it.c.Shell.Run(it.ctx, it.c, cmd.Child{Argv: []string{"sh", "-c", command}, Stdout: &out})
		if out.full {
			it.fail("output of command %q is larger than %d MiB", command, maxOutput>>20)
		}
		r = &reader{r: bytes.NewReader(out.Bytes()), code: code}
		it.inputs[command] = r
	}
	return it.from(r, target, it.gawk)
}

// Output.

type output struct {
	w       *bufio.Writer
	f       io.Closer
	command bool
	text    bytes.Buffer // what the command will read
}

func (it *interp) output(how, name, text string) {
	switch name {
	case "/dev/stdout", "-":
		if how != "|" {
			it.stdout.WriteString(text)
			return
		}
	case "/dev/stderr":
		if how != "|" {
			it.stdout.Flush()
			io.WriteString(it.c.Stderr, text)
			return
		}
	}
	o := it.outputs[name]
	if o == nil {
		o = &output{}
		if how == "|" {
			it.flush()
			o.command = true
			o.w = bufio.NewWriterSize(&o.text, 16)
		} else {
			flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
			if how == ">>" {
				flag = os.O_WRONLY | os.O_CREATE | os.O_APPEND
			}
			f, err := it.c.OpenFile(name, flag, 0o666)
			if err != nil {
				it.fail("cannot open %q for output (%s)", name, cmd.Reason(err))
			}
			o.f = f
			o.w = bufio.NewWriterSize(f, 8<<10)
		}
		it.outputs[name] = o
		it.opening = append(it.opening, name)
	}
	o.w.WriteString(text)
}

func (it *interp) flush() {
	it.stdout.Flush()
	for _, o := range it.outputs {
		o.w.Flush()
	}
}

// close ends an output: a command that was printed to runs now.
func (it *interp) closeOutput(name string, o *output) int {
	delete(it.outputs, name)
	it.opening = slices.DeleteFunc(it.opening, func(s string) bool { return s == name })
	err := o.w.Flush()
	if o.command {
		return it.c.Shell.Run(it.ctx, it.c, cmd.Child{Argv: []string{"sh", "-c", name}, Stdin: &o.text})
	}
	if cerr := o.f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		it.warn("write failure on %q (%s)", name, cmd.Reason(err))
		it.lost = true
		return -1
	}
	return 0
}

func (it *interp) close(name string) float64 {
	code := -1
	if o := it.outputs[name]; o != nil {
		if o.command {
			// What the program printed before comes first.
			it.stdout.Flush()
		}
		code = it.closeOutput(name, o)
	}
	if r := it.inputs[name]; r != nil {
		delete(it.inputs, name)
		if r.closer != nil {
			r.closer.Close()
		}
		code = r.code
	}
	return float64(code)
}

func (it *interp) closeAll() {
	for len(it.opening) > 0 {
		name := it.opening[0]
		it.closeOutput(name, it.outputs[name])
	}
	for _, r := range it.inputs {
		if r.closer != nil {
			r.closer.Close()
		}
	}
	if it.main != nil && it.main.closer != nil {
		it.main.closer.Close()
	}
	it.stdout.Flush()
}

func (it *interp) system(command string) float64 {
	it.flush()
	return float64(it.c.Shell.Run(it.ctx, it.c, cmd.Child{Argv: []string{"sh", "-c", command}}))
}

// Running.

// runBlock runs statements outside functions; exit within a function comes out as a panic.
func (it *interp) runBlock(s stmt) (c ctl) {
	frame, depth := it.frame, it.depth
	defer func() {
		if p := recover(); p != nil {
			q, ok := p.(quit)
			if !ok {
				panic(p)
			}
			it.frame, it.depth = frame, depth
			c = ctl(q)
		}
	}()
	return s(it)
}

func (it *interp) run() {
	exit := false
	for _, b := range it.prog.begin {
		if it.runBlock(b) == ctlExit {
			exit = true
			break
		}
	}
	if !exit && it.prog.usesMain {
		it.records()
	}
	for _, b := range it.prog.end {
		if it.runBlock(b) == ctlExit {
			break
		}
	}
}

func (it *interp) records() {
	if len(it.prog.rules) == 0 && len(it.prog.end) == 0 && len(it.prog.beginFile)+len(it.prog.endFile) == 0 {
		return
	}
	for {
		// Not in a function of its own for each record: recovering from panics costs.
		c := it.runBlock(func(it *interp) ctl {
			for {
				s, ok := it.mainRecord()
				if !ok {
					return ctlOn
				}
				it.setRecord(s)
				it.tick()
				switch c := it.rules(); c {
				case ctlExit:
					return c
				case ctlNextFile:
					it.closeMain()
				}
			}
		})
		switch c {
		case ctlExit, ctlOn:
			return
		case ctlNextFile:
			it.closeMain()
		}
	}
}

func (it *interp) rules() ctl {
	for _, r := range it.prog.rules {
		switch {
		case r.always:
		case r.to.eval != nil:
			if !r.active && !r.from.bool(it) {
				continue
			}
			r.active = !r.to.bool(it)
		case !r.from.bool(it):
			continue
		}
		if r.body == nil {
			it.line = append(append(it.line[:0], it.record0()...), it.ors...)
			it.stdout.Write(it.line)
			continue
		}
		if c := r.body(it); c != ctlOn {
			return c
		}
	}
	return ctlOn
}
