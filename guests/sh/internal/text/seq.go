package text

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

var seqOpts = cmd.Opts{
	{Short: 'f', Long: "format", Arg: cmd.Value}, {Short: 's', Long: "separator", Arg: cmd.Value}, {Short: 'w', Long: "equal-width"},
}

// seqNumber is an operand of seq: a decimal number, exact, and how it was written.
type seqNumber struct {
	value     *big.Rat
	inf       int // 1 or -1: an infinity
	precision int // digits behind the point
	width     int // characters of the number without a sign of plus
	exponent  bool
}

func parseSeqNumber(s string) (n seqNumber, ok bool) {
	text := strings.TrimLeft(s, " \t\n")
	text = strings.TrimPrefix(text, "+")
	switch low := strings.ToLower(strings.TrimPrefix(text, "-")); low {
	case "inf", "infinity":
		n.inf = 1
		if text[0] == '-' {
			n.inf = -1
		}
		return n, true
	}
	if text == "" || strings.ContainsAny(text, "_/ ") {
		return n, false
	}
	digits, exp, hasExp := strings.Cut(strings.ToLower(text), "e")
	hex := strings.HasPrefix(strings.TrimLeft(strings.ToLower(text), "-"), "0x")
	e := 0
	if hex {
		n.exponent = true
		if !strings.Contains(strings.ToLower(text), "p") && strings.Contains(text, ".") {
			text += "p0"
		}
	} else {
		if strings.Trim(digits, "0123456789.-") != "" {
			return n, false
		}
		if hasExp {
			var err error
			if e, err = strconv.Atoi(exp); err != nil || e > 5000 || e < -5000 {
				return n, false
			}
			n.exponent = true
		}
		_, frac, _ := strings.Cut(digits, ".")
		n.precision = max(0, len(frac)-e)
	}
	n.width = len(text)
	if strings.HasSuffix(digits, ".") {
		n.width--
	}
	if strings.HasPrefix(digits, ".") || strings.HasPrefix(digits, "-.") {
		n.width++
	}
	if !hex && !hasExp && strings.HasSuffix(text, ".") {
		text += "0"
	}
	if n.value, ok = new(big.Rat).SetString(text); !ok {
		return n, false
	}
	if n.exponent {
		n.width = len(n.value.FloatString(n.precision))
	}
	return n, true
}

func seq(t *call) int {
	// A negative number is no option.
	args := t.Args
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" || a == "" || a[0] != '-' {
			break
		}
		if len(a) > 1 && (isDigit(a[1]) || a[1] == '.') {
			args = append(append(append([]string{}, args[:i]...), "--"), args[i:]...)
			break
		}
		if a == "-f" || a == "-s" || a == "--format" || a == "--separator" {
			i++
		}
	}
	given, nums, code := t.parseLeading(seqOpts, "[OPTION]... [FIRST [INCREMENT]] LAST", 1, args)
	if code >= 0 {
		return code
	}
	var (
		sep, format   = "\n", ""
		equal, hasFmt bool
	)
	for _, g := range given {
		switch g.Key {
		case "f":
			format, hasFmt = g.Value, true
		case "s":
			sep = g.Value
		case "w":
			equal = true
		}
	}
	switch {
	case len(nums) == 0:
		return t.usage(1, "missing operand")
	case len(nums) > 3:
		return t.usage(1, "extra operand %s", cmd.Quote(nums[3]))
	}
	one := seqNumber{value: big.NewRat(1, 1), width: 1}
	first, step, last := one, one, one
	for i, s := range nums {
		n, ok := parseSeqNumber(s)
		if !ok {
			if strings.EqualFold(strings.TrimLeft(s, "+-"), "nan") {
				return t.usage(1, "invalid %s argument: %s", cmd.Quote("not-a-number"), cmd.Quote(s))
			}
			return t.usage(1, "invalid floating point argument: %s", cmd.Quote(s))
		}
		switch {
		case i == len(nums)-1:
			last = n
		case i == 0:
			first = n
		default:
			step = n
		}
	}
	if step.inf == 0 && step.value.Sign() == 0 {
		return t.usage(1, "invalid Zero increment value: %s", cmd.Quote(nums[1]))
	}
	if first.inf != 0 || step.inf != 0 {
		return t.fail(1, "a start or an increment without end is not supported")
	}
	var put func(*big.Rat)
	precision := max(first.precision, step.precision)
	switch {
	case hasFmt && equal:
		return t.usage(1, "format string may not be specified when printing equal width strings")
	case hasFmt:
		f, err := parseSeqFormat(format)
		if err != nil {
			return t.fail(1, "%v", err)
		}
		put = func(v *big.Rat) {
			x, _ := v.Float64()
			t.out.WriteString(f.pre)
			t.out.WriteString(f.float.format(x))
			t.out.WriteString(f.post)
		}
	default:
		wide := 0
		if equal && last.inf == 0 {
			fit := func(n seqNumber) int {
				w := n.width + precision - n.precision
				if n.exponent {
					return w
				}
				if n.precision > 0 && precision == 0 {
					w-- // the point goes
				}
				if n.precision == 0 && precision > 0 {
					w++
				}
				return w
			}
			wide = max(fit(first), fit(last))
		}
		put = func(v *big.Rat) {
			s := v.FloatString(precision)
			if pad := wide - len(s); pad > 0 {
				zeros := strings.Repeat("0", pad)
				if s[0] == '-' {
					s = "-" + zeros + s[1:]
				} else {
					s = zeros + s
				}
			}
			t.out.WriteString(s)
		}
		if seqInts(t, first, step, last, wide, sep) {
			return 0
		}
	}
	down := step.value.Sign() < 0
	v := new(big.Rat).Set(first.value)
	some := false
	for {
		if last.inf == 0 {
			if c := v.Cmp(last.value); c > 0 && !down || c < 0 && down {
				break
			}
		} else if (last.inf < 0) != down {
			break
		}
		if some {
			t.out.WriteString(sep)
		}
		some = true
		put(v)
		v.Add(v, step.value)
	}
	if some {
		t.out.WriteByte('\n')
	}
	return 0
}

// seqInts is the quick way for whole numbers. It returns false when they are none, or too large.
func seqInts(t *call, first, step, last seqNumber, wide int, sep string) bool {
	small := func(n seqNumber) (int64, bool) {
		if n.inf != 0 || !n.value.IsInt() || n.precision > 0 || !n.value.Num().IsInt64() {
			return 0, false
		}
		i := n.value.Num().Int64()
		return i, i < math.MaxInt64/4 && i > math.MinInt64/4
	}
	a, ok1 := small(first)
	d, ok2 := small(step)
	z, ok3 := small(last)
	if !ok1 || !ok2 || !ok3 {
		return false
	}
	var b []byte
	some := false
	for ; d > 0 && a <= z || d < 0 && a >= z; a += d {
		if some {
			t.out.WriteString(sep)
		}
		some = true
		if wide > 0 {
			b = fmt.Appendf(b[:0], "%0*d", wide, a)
		} else {
			b = strconv.AppendInt(b[:0], a, 10)
		}
		t.out.Write(b)
	}
	if some {
		t.out.WriteByte('\n')
	}
	return true
}

type seqFormat struct {
	pre, post string
	float     cFloat
}

func parseSeqFormat(s string) (f seqFormat, err error) {
	pre, i := []byte{}, 0
	for ; i < len(s); i++ {
		if s[i] != '%' {
			pre = append(pre, s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == '%' {
			pre = append(pre, '%')
			i++
			continue
		}
		break
	}
	if i == len(s) {
		return f, fmt.Errorf("format %s has no %% directive", cmd.Quote(s))
	}
	f.pre = string(pre)
	rest, ok := f.float.parse(s[i+1:])
	if !ok {
		if rest == "" {
			return f, fmt.Errorf("format %s ends in %%", cmd.Quote(s))
		}
		return f, fmt.Errorf("format %s has unknown %%%c directive", cmd.Quote(s), rest[0])
	}
	post := []byte{}
	for i := 0; i < len(rest); i++ {
		if rest[i] == '%' {
			if i++; i == len(rest) || rest[i] != '%' {
				return f, fmt.Errorf("format %s has too many %% directives", cmd.Quote(s))
			}
		}
		post = append(post, rest[i])
	}
	f.post = string(post)
	return f, nil
}

// cFloat is a conversion of C's printf for a floating point number.
type cFloat struct {
	minus, plus, space, zero, alt bool
	width, precision              int // precision -1: 6
	verb                          byte
}

// parse reads what follows the %. On failure rest is what it stopped at.
func (f *cFloat) parse(s string) (rest string, ok bool) {
	f.precision = -1
	i := 0
flags:
	for ; i < len(s); i++ {
		switch s[i] {
		case '-':
			f.minus = true
		case '+':
			f.plus = true
		case ' ':
			f.space = true
		case '0':
			f.zero = true
		case '#':
			f.alt = true
		case '\'': // groups, of which the C locale has none
		default:
			break flags
		}
	}
	for ; i < len(s) && isDigit(s[i]); i++ {
		f.width = min(f.width*10+int(s[i]-'0'), 1<<20)
	}
	if i < len(s) && s[i] == '.' {
		f.precision = 0
		for i++; i < len(s) && isDigit(s[i]); i++ {
			f.precision = min(f.precision*10+int(s[i]-'0'), 1<<20)
		}
	}
	if i < len(s) && s[i] == 'L' {
		i++
	}
	if i == len(s) {
		return "", false
	}
	if strings.IndexByte("efgaEFGA", s[i]) < 0 {
		return s[i:], false
	}
	f.verb = s[i]
	return s[i+1:], true
}

func (f *cFloat) format(x float64) string {
	precision := f.precision
	if precision < 0 && f.verb != 'a' && f.verb != 'A' {
		precision = 6
	}
	var s string
	switch v := toLower(f.verb); {
	case math.IsInf(x, 0) || math.IsNaN(x):
		s = strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(x, 'g', -1, 64), "+"))
		if math.IsNaN(x) && math.Signbit(x) {
			s = "-nan"
		}
	case v == 'a':
		s = strconv.FormatFloat(x, 'x', precision, 64)
		mant, exp, _ := strings.Cut(s, "p")
		sgn, digits := exp[:1], strings.TrimLeft(exp[1:], "0")
		if digits == "" {
			digits = "0"
		}
		s = mant + "p" + sgn + digits
	case v == 'g':
		precision = max(precision, 1)
		e := strconv.FormatFloat(x, 'e', precision-1, 64)
		mant, exp, _ := strings.Cut(e, "e")
		n, _ := strconv.Atoi(exp)
		if n < -4 || n >= precision {
			s = trimZeros(mant, f.alt) + "e" + exp
		} else {
			s = trimZeros(strconv.FormatFloat(x, 'f', precision-1-n, 64), f.alt)
		}
	default:
		s = strconv.FormatFloat(x, v, precision, 64)
		if f.alt && precision == 0 {
			mant, exp, _ := strings.Cut(s, "e")
			s = mant + "."
			if exp != "" {
				s += "e" + exp
			}
		}
	}
	if f.verb < 'a' {
		s = strings.ToUpper(s)
	}
	sgn := ""
	switch {
	case s[0] == '-':
		sgn, s = "-", s[1:]
	case f.plus:
		sgn = "+"
	case f.space:
		sgn = " "
	}
	pad := f.width - len(sgn) - len(s)
	switch {
	case pad <= 0:
		return sgn + s
	case f.minus:
		return sgn + s + strings.Repeat(" ", pad)
	case f.zero && !math.IsInf(x, 0) && !math.IsNaN(x):
		if strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X") {
			sgn, s = sgn+s[:2], s[2:]
		}
		return sgn + strings.Repeat("0", pad) + s
	}
	return strings.Repeat(" ", pad) + sgn + s
}

func trimZeros(s string, keep bool) string {
	if keep || !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

func yes(t *call) int {
	args := t.Args
	_, words, code := t.parseLeading(nil, "[STRING]...", 1, args)
	if code >= 0 {
		return code
	}
	line := "y\n"
	if len(words) > 0 {
		line = strings.Join(words, " ") + "\n"
	}
	block := []byte(strings.Repeat(line, max(1, 8192/len(line))))
	for {
		t.Stdout.Write(block) // ends the command when nobody reads any more
	}
}

var teeOpts = cmd.Opts{
	{Short: 'a', Long: "append"}, {Short: 'i', Long: "ignore-interrupts"}, {Short: 'p'}, {Long: "output-error", Arg: cmd.Optional},
}

func tee(t *call) int {
	given, names, code := t.parse(teeOpts, "[OPTION]... [FILE]...", 1, t.Args)
	if code >= 0 {
		return code
	}
	flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	mode := ""
	for _, g := range given {
		switch g.Key {
		case "a":
			flag = os.O_WRONLY | os.O_CREATE | os.O_APPEND
		case "i": // no interrupt reaches a command but the one that ends the run
		case "p":
			mode = "warn-nopipe"
		case "output-error":
			mode = "warn-nopipe"
			if g.Has {
				words := []string{"warn", "warn-nopipe", "exit", "exit-nopipe"}
				if mode = complete(g.Value, words...); mode == "" {
					return t.badWord(g.Value, "--output-error", words...)
				}
			}
		}
	}
	type output struct {
		name string
		w    interface{ Write([]byte) (int, error) }
	}
	outs := []output{{"standard output", t.Stdout}}
	failed := 0
	for _, name := range names {
		f, err := t.OpenFile(name, flag, 0o666&^t.Umask)
		if err != nil {
			failed = t.Fail(name, err)
			if strings.HasPrefix(mode, "exit") {
				return 1
			}
			continue
		}
		defer f.Close()
		outs = append(outs, output{name, cmd.Writer(t.ctx, f)})
	}
	err := blocks(cmd.Reader(t.ctx, t.Stdin), func(b []byte) error {
		for i := 0; i < len(outs); i++ {
			err := writeOrSignal(outs[i].w, b)
			if err == nil {
				continue
			}
			pipe := errors.Is(err, cmd.SIGPIPE)
			if pipe && mode == "" {
				panic(cmd.SIGPIPE)
			}
			if !pipe || !strings.HasSuffix(mode, "nopipe") {
				text := cmd.Reason(err)
				if pipe {
					text = "Broken pipe"
				}
				failed = t.fail(1, "%s: %s", outs[i].name, text)
				if strings.HasPrefix(mode, "exit") {
					return errStop
				}
			}
			outs = append(outs[:i], outs[i+1:]...)
			i--
		}
		if len(outs) == 0 {
			return errStop
		}
		return nil
	})
	if ignoreStop(err) != nil {
		failed = t.fail(1, "read error: %s", cmd.Reason(err))
	}
	return failed
}

// writeOrSignal is Write with the failures that come as panics as errors; what ends the run still does.
func writeOrSignal(w interface{ Write([]byte) (int, error) }, b []byte) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case writeFailure:
			err = p.err
		case cmd.Signal:
			if p != cmd.SIGPIPE {
				panic(p)
			}
			err = p
		default:
			panic(p)
		}
	}()
	_, err = w.Write(b)
	return err
}

var shufOpts = cmd.Opts{
	{Short: 'e', Long: "echo"}, {Short: 'i', Long: "input-range", Arg: cmd.Value}, {Short: 'n', Long: "head-count", Arg: cmd.Value},
	{Short: 'o', Long: "output", Arg: cmd.Value}, {Long: "random-source", Arg: cmd.Value}, {Short: 'r', Long: "repeat"},
	{Short: 'z', Long: "zero-terminated"},
}

func shuf(t *call) int {
	given, names, code := t.parse(shufOpts, "[OPTION]... [FILE]", 1, t.Args)
	if code >= 0 {
		return code
	}
	var (
		echo, isRange, repeat bool
		lo, hi                uint64
		count                 = uint64(math.MaxUint64)
		output, random        string
		hasOutput, hasRandom  bool
		sep                   = byte('\n')
	)
	for _, g := range given {
		switch g.Key {
		case "e":
			echo = true
		case "i":
			if isRange {
				return t.fail(1, "multiple -i options specified")
			}
			isRange = true
			a, b, ok := strings.Cut(g.Value, "-")
			var err1, err2 error
			lo, err1 = strconv.ParseUint(a, 10, 63)
			hi, err2 = strconv.ParseUint(b, 10, 63)
			if !ok || err1 != nil || err2 != nil || lo > hi+1 {
				return t.fail(1, "invalid input range: %s", cmd.Quote(g.Value))
			}
		case "n":
			n, err := strconv.ParseUint(g.Value, 10, 64)
			if err != nil {
				return t.fail(1, "invalid line count: %s", cmd.Quote(g.Value))
			}
			count = min(count, n)
		case "o":
			if hasOutput && output != g.Value {
				return t.fail(1, "multiple output files specified")
			}
			output, hasOutput = g.Value, true
		case "random-source":
			random, hasRandom = g.Value, true
		case "r":
			repeat = true
		case "z":
			sep = 0
		}
	}
	switch {
	case echo && isRange:
		return t.usage(1, "cannot combine -e and -i options")
	case isRange && len(names) > 0:
		return t.usage(1, "extra operand %s", cmd.Quote(names[0]))
	case !echo && len(names) > 1:
		return t.usage(1, "extra operand %s", cmd.Quote(names[1]))
	}
	choose := func(n uint64) uint64 { return rand.Uint64N(n) }
	if hasRandom {
		r, err := t.open(random)
		if err != nil {
			return t.Fail(random, err)
		}
		defer r.Close()
		src := randomSource{t: t, name: random, r: newLines(r, 0)}
		choose = src.choose
	}
	var items [][]byte
	n := hi - lo + 1
	switch {
	case echo:
		for _, name := range names {
			items = append(items, []byte(name))
		}
		n = uint64(len(items))
	case !isRange:
		in := "-"
		if len(names) > 0 {
			in = names[0]
		}
		r, err := t.open(in)
		if err != nil {
			return t.Fail(in, err)
		}
		l := newLines(r, sep)
		for {
			line, err := l.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				r.Close()
				return t.fail(1, "read error: %s", cmd.Reason(err))
			}
			items = append(items, bytes.Clone(line))
		}
		r.Close()
		n = uint64(len(items))
	}
	if hasOutput {
		if err := t.into(output); err != nil {
			return t.Fail(output, err)
		}
	}
	put := func(i uint64) {
		if isRange {
			t.out.WriteString(strconv.FormatUint(lo+i, 10))
		} else {
			t.out.Write(items[i])
		}
		t.out.WriteByte(sep)
	}
	if repeat {
		if n == 0 && count > 0 {
			return t.fail(1, "no lines to repeat")
		}
		for ; count > 0; count-- {
			put(choose(n))
		}
		return 0
	}
	count = min(count, n)
	// A permutation of which only the places that were swapped are held: -i 1-1000000000 -n 5 takes no memory.
	moved := map[uint64]uint64{}
	at := func(i uint64) uint64 {
		if v, ok := moved[i]; ok {
			return v
		}
		return i
	}
	for i := range count {
		j := i + choose(n-i)
		x := at(j)
		moved[j] = at(i)
		delete(moved, i)
		put(x)
	}
	return 0
}

// randomSource takes random choices from the bytes of a file, so that the same file gives the same choices.
type randomSource struct {
	t        *call
	name     string
	r        *lines
	num, max uint64
}

// choose returns a number below n. It keeps what is left of the randomness of the bytes it has read.
func (s *randomSource) choose(n uint64) uint64 {
	last := n - 1
	for {
		for s.max < last {
			b, err := s.r.r.ReadByte()
			if err != nil {
				panic(writeFailure{s.name, errors.New("end of file")})
			}
			s.num = s.num<<8 + uint64(b)
			s.max = s.max<<8 + 255
		}
		if s.max == last {
			num := s.num
			s.num, s.max = 0, 0
			return num
		}
		// Numbers of the last, incomplete round would favour low choices.
		excess := s.max - last
		unusable := excess % n
		usable := s.max - unusable
		if s.num <= usable {
			choice := s.num % n
			s.num, s.max = s.num/n, excess/n
			return choice
		}
		s.num -= usable + 1
		s.max = unusable - 1
	}
}
