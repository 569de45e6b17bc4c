package sys

import (
	"bufio"
	"context"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

func envsubst(ctx context.Context, c *cmd.Call) int {
	given, operands, err := cmd.Opts{{Short: 'v', Long: "variables"}, {Short: 'h', Long: "help"}, {Short: 'V', Long: "version"}}.Parse(c.Args)
	if err != nil {
		return c.BadUsage(err, 1)
	}
	variables := false
	for _, g := range given {
		switch g.Key {
		case "v":
			variables = true
		case "h":
			fmt.Fprintln(c.Stdout, "Usage: envsubst [OPTION] [SHELL-FORMAT]")
			return 0
		case "V":
			fmt.Fprintln(c.Stdout, "envsubst (exthost, compatible with GNU gettext) 0.21")
			return 0
		}
	}
	if len(operands) > 1 {
		c.Errorf("too many arguments")
		return 1
	}
	if variables {
		if len(operands) == 0 {
			c.Errorf("missing arguments")
			return 1
		}
		substitute(operands[0], func(name string) (string, bool) {
			fmt.Fprintln(c.Stdout, name)
			return "", false
		})
		return 0
	}
	var only map[string]bool
	if len(operands) == 1 {
		only = map[string]bool{}
		substitute(operands[0], func(name string) (string, bool) {
			only[name] = true
			return "", false
		})
	}
	out := c.Buffered()
	defer out.Flush()
	in := bufio.NewReaderSize(cmd.Reader(ctx, c.Stdin), 32<<10)
	for {
		line, err := in.ReadString('\n')
		out.WriteString(substitute(line, func(name string) (string, bool) { return c.Getenv(name), only == nil || only[name] }))
		if err != nil {
			return 0
		}
	}
}

// substitute replaces $NAME and ${NAME}; lookup says whether.
func substitute(s string, lookup func(string) (string, bool)) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '$' {
			b.WriteByte(s[i])
			continue
		}
		start := i + 1
		braced := start < len(s) && s[start] == '{'
		if braced {
			start++
		}
		end := start
		for end < len(s) && (isAlpha(s[end]) || s[end] == '_' || end > start && isDigit(s[end])) {
			end++
		}
		last := end
		if braced && end < len(s) && s[end] == '}' {
			last = end + 1
		}
		if end == start || braced && last == end {
			b.WriteByte('$')
			continue
		}
		if value, ok := lookup(s[start:end]); ok {
			b.WriteString(value)
		} else {
			b.WriteString(s[i:last])
		}
		i = last - 1
	}
	return b.String()
}

func uuidgen(_ context.Context, c *cmd.Call) int {
	given, operands, err := cmd.Opts{
		{Short: 'r', Long: "random"}, {Short: 't', Long: "time"}, {Short: 'n', Long: "namespace", Arg: cmd.Value}, {Short: 'N', Long: "name", Arg: cmd.Value},
		{Short: 'm', Long: "md5"}, {Short: 's', Long: "sha1"}, {Short: 'x', Long: "hex"}, {Short: 'h', Long: "help"}, {Short: 'V', Long: "version"},
	}.Parse(c.Args)
	if err != nil {
		return c.BadUsage(err, 1)
	}
	if len(operands) > 0 {
		return c.BadUsage(fmt.Errorf("unexpected operand '%s'", operands[0]), 1)
	}
	kind, space, name, isHex, hasName := "r", "", "", false, false
	for _, g := range given {
		switch g.Key {
		case "r", "t", "m", "s":
			kind = g.Key
		case "n":
			space = g.Value
		case "N":
			name, hasName = g.Value, true
		case "x":
			isHex = true
		case "h":
			fmt.Fprintln(c.Stdout, "Usage: uuidgen [options]")
			return 0
		case "V":
			fmt.Fprintln(c.Stdout, "uuidgen (exthost, compatible with util-linux) 2.38.1")
			return 0
		}
	}
	var u [16]byte
	rand.Read(u[:])
	version := byte(4)
	switch kind {
	case "t":
		// Hundreds of nanoseconds since 1582-10-15; the node is random and says so by its multicast bit.
		n := uint64(time.Now().UnixNano()/100) + 0x01b21dd213814000
		binary.BigEndian.PutUint32(u[0:], uint32(n))
		binary.BigEndian.PutUint16(u[4:], uint16(n>>32))
		binary.BigEndian.PutUint16(u[6:], uint16(n>>48))
		u[10] |= 1
		version = 1
	case "m", "s":
		if space == "" || !hasName {
			return c.BadUsage(errors.New("--namespace and --name are required with a name-based UUID"), 1)
		}
		known := map[string]string{"@dns": "10", "@url": "11", "@oid": "12", "@x500": "14"}
		if n, ok := known[space]; ok {
			space = "6ba7b8" + n + "-9dad-11d1-80b4-00c04fd430c8"
		}
		base, err := hex.DecodeString(strings.ReplaceAll(space, "-", ""))
		if err != nil || len(base) != 16 {
			c.Errorf("unable to parse namespace %s", cmd.Quote(space))
			return 1
		}
		text := []byte(name)
		if isHex {
			if text, err = hex.DecodeString(name); err != nil {
				c.Errorf("not a valid hex string")
				return 1
			}
		}
		if kind == "m" {
			sum := md5.Sum(append(base, text...))
			copy(u[:], sum[:])
			version = 3
		} else {
			sum := sha1.Sum(append(base, text...))
			copy(u[:], sum[:])
			version = 5
		}
	}
	u[6] = u[6]&0x0f | version<<4
	u[8] = u[8]&0x3f | 0x80
	fmt.Fprintf(c.Stdout, "%x-%x-%x-%x-%x\n", u[0:4], u[4:6], u[6:8], u[8:10], u[10:])
	return 0
}

func factor(ctx context.Context, c *cmd.Call) int {
	operands, code, done := onlyCommon(c, "[NUMBER]...\nOPTION", 1)
	if done {
		return code
	}
	out := c.Buffered()
	defer out.Flush()
	one := func(word string) {
		text := strings.TrimPrefix(strings.TrimLeft(word, " "), "+")
		n, ok := new(big.Int).SetString(text, 10)
		if !ok || text == "" || !isDigit(text[0]) || strings.Contains(text, "_") {
			out.Flush()
			c.Errorf("%s is not a valid positive integer", cmd.Quote(word))
			code = 1
			return
		}
		fmt.Fprintf(out, "%s:", n)
		for _, p := range primes(ctx, n) {
			fmt.Fprintf(out, " %s", p)
		}
		out.WriteByte('\n')
	}
	if len(operands) > 0 {
		for _, o := range operands {
			one(o)
		}
		return code
	}
	words := bufio.NewScanner(cmd.Reader(ctx, c.Stdin))
	words.Split(bufio.ScanWords)
	for words.Scan() {
		one(words.Text())
		out.Flush()
	}
	return code
}

// primes returns the prime factors of n in order: by trial for small ones, then by Pollard's rho.
func primes(ctx context.Context, n *big.Int) []*big.Int {
	n = new(big.Int).Set(n)
	var found []*big.Int
	if n.Sign() == 0 {
		return nil
	}
	r := new(big.Int)
	q := new(big.Int)
	for d := int64(2); d < 5000; d++ {
		p := big.NewInt(d)
		for q.QuoRem(n, p, r); r.Sign() == 0; q.QuoRem(n, p, r) {
			found = append(found, p)
			n.Set(q)
		}
	}
	var split func(n *big.Int)
	split = func(n *big.Int) {
		if n.Cmp(bigOne) == 0 {
			return
		}
		if n.ProbablyPrime(20) {
			found = append(found, n)
			return
		}
		d := rho(ctx, n)
		split(d)
		split(new(big.Int).Quo(n, d))
	}
	split(n)
	for i := range found {
		for j := i; j > 0 && found[j].Cmp(found[j-1]) < 0; j-- {
			found[j], found[j-1] = found[j-1], found[j]
		}
	}
	return found
}

// rho finds a factor of a composite number.
func rho(ctx context.Context, n *big.Int) *big.Int {
	if root := new(big.Int).Sqrt(n); new(big.Int).Mul(root, root).Cmp(n) == 0 {
		return root
	}
	for seed := int64(1); ; seed++ {
		add := big.NewInt(seed)
		next := func(x *big.Int) {
			x.Mul(x, x)
			x.Add(x, add)
			x.Mod(x, n)
		}
		x, y, product, d := big.NewInt(2), big.NewInt(2), big.NewInt(1), new(big.Int)
		var backX, backY *big.Int
		diff := new(big.Int)
		for {
			backX, backY = new(big.Int).Set(x), new(big.Int).Set(y)
			product.SetInt64(1)
			for range 128 {
				next(x)
				next(y)
				next(y)
				diff.Sub(x, y)
				product.Mul(product, diff.Abs(diff))
				product.Mod(product, n)
			}
			cmd.Check(ctx)
			if d.GCD(nil, nil, product, n).Cmp(bigOne) != 0 {
				break
			}
		}
		if d.Cmp(n) == 0 {
			// The steps met in the same round: once more, one by one.
			x, y = backX, backY
			for {
				next(x)
				next(y)
				next(y)
				diff.Sub(x, y)
				if d.GCD(nil, nil, diff.Abs(diff), n).Cmp(bigOne) != 0 {
					break
				}
			}
		}
		if d.Cmp(n) != 0 {
			return d
		}
	}
}

const numfmtUsage = "[OPTION]... [NUMBER]..."

type numfmtRun struct {
	c                *cmd.Call
	from, to         string
	fromUnit, toUnit *big.Float
	round, invalid   string
	suffix           string
	delimiter        byte
	hasDelimiter     bool
	fields           [][2]int
	padding          int
	prefix, tail     string
	precision        int // -1: none given
	zeros            bool
	autoPadding      bool
	failed           bool
}

// numfmt calculates with 64 bits of mantissa, as GNU's does on the machines where it has them.
func numfmt(ctx context.Context, c *cmd.Call) int {
	given, operands, err := options(
		cmd.Opt{Long: "from", Arg: cmd.Value}, cmd.Opt{Long: "to", Arg: cmd.Value}, cmd.Opt{Long: "from-unit", Arg: cmd.Value}, cmd.Opt{Long: "to-unit", Arg: cmd.Value},
		cmd.Opt{Long: "field", Arg: cmd.Value}, cmd.Opt{Short: 'd', Long: "delimiter", Arg: cmd.Value}, cmd.Opt{Long: "format", Arg: cmd.Value},
		cmd.Opt{Long: "padding", Arg: cmd.Value}, cmd.Opt{Long: "grouping"}, cmd.Opt{Long: "header", Arg: cmd.Optional}, cmd.Opt{Long: "invalid", Arg: cmd.Value},
		cmd.Opt{Long: "round", Arg: cmd.Value}, cmd.Opt{Long: "suffix", Arg: cmd.Value}, cmd.Opt{Short: 'z', Long: "zero-terminated"},
	).Parse(c.Args)
	if err != nil {
		return c.BadUsage(err, 1)
	}
	if help(c, given, numfmtUsage) {
		return 0
	}
	n := &numfmtRun{c: c, from: "none", to: "none", fromUnit: big.NewFloat(1), toUnit: big.NewFloat(1), round: "from-zero", invalid: "abort", fields: [][2]int{{1, 1}}, precision: -1}
	header, end, format, hasFormat := 0, byte('\n'), "", false
	choice := func(option, value string, valid ...string) (string, bool) {
		for _, v := range valid {
			if value != "" && strings.HasPrefix(v, value) && (v == value || value != "iec") {
				return v, true
			}
		}
		badFormat(c, value, option, valid...)
		return "", false
	}
	for _, g := range given {
		ok := true
		switch g.Key {
		case "from":
			n.from, ok = choice("from", g.Value, "none", "auto", "si", "iec", "iec-i")
		case "to":
			n.to, ok = choice("to", g.Value, "none", "si", "iec", "iec-i")
		case "from-unit", "to-unit":
			u, good := unitSize(g.Value)
			if !good {
				c.Errorf("invalid unit size: %s", cmd.Quote(g.Value))
				return 1
			}
			if g.Key == "from-unit" {
				n.fromUnit = u
			} else {
				n.toUnit = u
			}
		case "field":
			if n.fields, ok = fieldList(g.Value); !ok {
				return c.BadUsage(fmt.Errorf("invalid field value %s", cmd.Quote(g.Value)), 1)
			}
		case "d":
			if len(g.Value) > 1 {
				c.Errorf("the delimiter must be a single character")
				return 1
			}
			n.hasDelimiter = true
			if g.Value != "" {
				n.delimiter = g.Value[0]
			}
		case "format":
			format, hasFormat = g.Value, true
		case "padding":
			if _, err := fmt.Sscanf(g.Value, "%d", &n.padding); err != nil || n.padding == 0 || n.padding > 1<<20 || n.padding < -1<<20 {
				c.Errorf("invalid padding value %s", cmd.Quote(g.Value))
				return 1
			}
		case "header":
			header = 1
			if g.Has {
				if _, err := fmt.Sscanf(g.Value, "%d", &header); err != nil || header <= 0 {
					c.Errorf("invalid header value %s", cmd.Quote(g.Value))
					return 1
				}
			}
		case "invalid":
			n.invalid, ok = choice("invalid", g.Value, "abort", "fail", "warn", "ignore")
		case "round":
			n.round, ok = choice("round", g.Value, "up", "down", "from-zero", "towards-zero", "nearest")
		case "suffix":
			n.suffix = g.Value
		case "z":
			end = 0
		case "grouping":
			// The locale of the guest is C's, which groups nothing.
		}
		if !ok {
			return 1
		}
	}
	if hasFormat && !n.format(format) {
		return 1
	}
	n.autoPadding = n.padding == 0 && !n.hasDelimiter
	out := c.Buffered()
	defer out.Flush()
	line := func(s string) bool { return n.line(out, s) }
	if len(operands) > 0 {
		for _, o := range operands {
			if !line(o) {
				return 2
			}
			out.WriteByte(end)
		}
	} else {
		in := bufio.NewReader(cmd.Reader(ctx, c.Stdin))
		for {
			s, err := in.ReadString(end)
			if s == "" && err != nil {
				break
			}
			s, ended := strings.CutSuffix(s, string(end))
			if header > 0 {
				header--
				out.WriteString(s)
			} else if !line(s) {
				return 2
			}
			if ended {
				out.WriteByte(end)
			}
		}
	}
	if n.failed {
		return 2
	}
	return 0
}

// unitSize reads a number with an optional suffix, of which K is 1000 and Ki 1024.
func unitSize(s string) (*big.Float, bool) {
	digits := s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
	rest := s[len(digits):]
	if digits == "" {
		digits = "1"
		if rest == "" {
			return nil, false
		}
	}
	v, _, err := big.ParseFloat(digits, 10, 64, big.ToNearestEven)
	if err != nil || v.Sign() == 0 {
		return nil, false
	}
	if rest == "" {
		return v, true
	}
	power := strings.IndexByte("KMGTPEZY", rest[0]) + 1
	base := 1000.0
	switch {
	case power == 0:
		return nil, false
	case rest[1:] == "i":
		base = 1024
	case rest[1:] != "":
		return nil, false
	}
	for range power {
		v.Mul(v, big.NewFloat(base))
	}
	return v, true
}

func fieldList(s string) ([][2]int, bool) {
	const most = 1 << 30
	if s == "-" {
		return [][2]int{{1, most}}, true
	}
	var list [][2]int
	for _, part := range strings.Split(s, ",") {
		low, high, isRange := strings.Cut(part, "-")
		r := [2]int{1, most}
		for i, text := range []string{low, high} {
			if text == "" {
				if i == 0 && !isRange || low == "" && high == "" {
					return nil, false
				}
				continue
			}
			n := 0
			if _, err := fmt.Sscanf(text, "%d", &n); err != nil || n < 1 || strings.Trim(text, "0123456789") != "" {
				return nil, false
			}
			r[i] = n
		}
		if !isRange {
			r[1] = r[0]
		}
		if r[0] > r[1] {
			return nil, false
		}
		list = append(list, r)
	}
	return list, true
}

// format reads PREFIX%[0]['][-][N][.N]fSUFFIX.
func (n *numfmtRun) format(f string) bool {
	var prefix strings.Builder
	i := 0
	for ; i < len(f); i++ {
		if f[i] == '%' {
			if i+1 < len(f) && f[i+1] == '%' {
				i++
			} else {
				break
			}
		}
		prefix.WriteByte(f[i])
	}
	if i == len(f) {
		n.c.Errorf("format %s has no %% directive", cmd.Quote(f))
		return false
	}
	n.prefix = prefix.String()
	i++
	left := false
flags:
	for ; i < len(f); i++ {
		switch f[i] {
		case '0':
			n.zeros = true
		case '\'', ' ':
		case '-':
			left = true
		default:
			break flags
		}
	}
	number := func() int {
		v := 0
		for ; i < len(f) && isDigit(f[i]); i++ {
			v = min(v*10+int(f[i]-'0'), 1<<20)
		}
		return v
	}
	if w := number(); w > 0 {
		n.padding = w
		if left {
			n.padding = -w
			n.zeros = false
		}
	}
	if i < len(f) && f[i] == '.' {
		i++
		n.precision = number()
	}
	if i == len(f) || f[i] != 'f' {
		n.c.Errorf("invalid format %s, directive must be %%[0]['][-][N][.][N]f", cmd.Quote(f))
		return false
	}
	rest := f[i+1:]
	if strings.Contains(strings.ReplaceAll(rest, "%%", ""), "%") {
		n.c.Errorf("format %s has too many %% directives", cmd.Quote(f))
		return false
	}
	n.tail = rest // GNU's leaves the doubled percent sign here
	return true
}

// line converts the fields of one line; false ends the command.
func (n *numfmtRun) line(out *bufio.Writer, s string) bool {
	for field := 1; ; field++ {
		end := 0
		if n.hasDelimiter {
			for end < len(s) && s[end] != n.delimiter {
				end++
			}
		} else {
			for end < len(s) && (s[end] == ' ' || s[end] == '\t') {
				end++
			}
			for end < len(s) && s[end] != ' ' && s[end] != '\t' {
				end++
			}
		}
		text := s[:end]
		chosen := false
		for _, r := range n.fields {
			chosen = chosen || r[0] <= field && field <= r[1]
		}
		if !chosen {
			out.WriteString(text)
		} else if done, err := n.convert(text, field); err != "" {
			if n.invalid != "ignore" {
				out.Flush()
				n.c.Errorf("%s", err)
			}
			if n.invalid == "abort" {
				return false
			}
			n.failed = n.failed || n.invalid == "fail"
			out.WriteString(text)
		} else {
			out.WriteString(done)
		}
		if end == len(s) {
			return true
		}
		separator := byte(' ')
		if n.hasDelimiter {
			separator = n.delimiter
		}
		out.WriteByte(separator)
		s = s[end+1:]
	}
}

func (n *numfmtRun) convert(text string, field int) (result, problem string) {
	number := strings.TrimLeft(text, " \t")
	padding := n.padding
	if n.autoPadding && (len(number) < len(text) || field > 1) {
		padding = len(text)
	}
	if n.suffix != "" {
		number = strings.TrimSuffix(number, n.suffix)
	}
	v, precision, problem := n.parse(number)
	if problem != "" {
		return "", problem
	}
	v.Mul(v, n.fromUnit)
	v.Quo(v, n.toUnit)
	if n.precision >= 0 {
		precision = n.precision
	}
	size := 0
	for t := new(big.Float).Abs(v); t.Cmp(big.NewFloat(10)) >= 0; size++ {
		t.Quo(t, big.NewFloat(10))
	}
	shown, _ := v.Float64()
	switch {
	case n.to == "none" && size+precision > 18 && precision > 0:
		return "", fmt.Sprintf("value/precision too large to be printed: '%s/%d' (consider using --to)", general(shown), precision)
	case n.to == "none" && size+precision > 18:
		return "", fmt.Sprintf("value too large to be printed: %s (consider using --to)", cmd.Quote(general(shown)))
	case size > 26:
		return "", fmt.Sprintf("value too large to be printed: %s (cannot handle values > 999Y)", cmd.Quote(general(shown)))
	}
	s := n.human(v, precision) + n.suffix
	if w := padding - len(s); w > 0 {
		switch {
		case n.zeros && strings.HasPrefix(s, "-"):
			s = "-" + strings.Repeat("0", w) + s[1:]
		case n.zeros:
			s = strings.Repeat("0", w) + s
		default:
			s = strings.Repeat(" ", w) + s
		}
	} else if w := -padding - len(s); w > 0 {
		s += strings.Repeat(" ", w)
	}
	return n.prefix + s + n.tail, ""
}

// general writes a number as C's %Lg does.
func general(f float64) string { return fmt.Sprintf("%.6g", f) }

func (n *numfmtRun) parse(s string) (v *big.Float, precision int, problem string) {
	i := 0
	if strings.HasPrefix(s, "-") {
		i++
	}
	start := i
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	digits := i - start
	if i < len(s) && s[i] == '.' {
		i++
		from := i
		for i < len(s) && isDigit(s[i]) {
			i++
		}
		precision = i - from
		if precision == 0 {
			return nil, 0, fmt.Sprintf("invalid number: %s", cmd.Quote(s))
		}
		digits += precision
	}
	if digits == 0 {
		return nil, 0, fmt.Sprintf("invalid number: %s", cmd.Quote(s))
	}
	if digits > 27+precision {
		return nil, 0, fmt.Sprintf("value too large to be converted: %s", cmd.Quote(s))
	}
	v, _, err := big.ParseFloat(s[:i], 10, 64, big.ToNearestEven)
	if err != nil {
		return nil, 0, fmt.Sprintf("invalid number: %s", cmd.Quote(s))
	}
	rest := strings.TrimLeft(s[i:], " \t")
	if rest == "" {
		return v, precision, ""
	}
	power := strings.IndexByte("KMGTPEZY", rest[0]) + 1
	switch {
	case power == 0:
		return nil, 0, fmt.Sprintf("invalid suffix in input: %s", cmd.Quote(s))
	case n.from == "none":
		return nil, 0, fmt.Sprintf("rejecting suffix in input: %s (consider using --from)", cmd.Quote(s))
	}
	base := 1000.0
	rest = rest[1:]
	switch n.from {
	case "iec":
		base = 1024
	case "iec-i":
		if !strings.HasPrefix(rest, "i") {
			return nil, 0, fmt.Sprintf("missing 'i' suffix in input: %s (e.g Ki/Mi/Gi)", cmd.Quote(s))
		}
		base, rest = 1024, rest[1:]
	case "auto":
		if strings.HasPrefix(rest, "i") {
			base, rest = 1024, rest[1:]
		}
	}
	if rest != "" {
		return nil, 0, fmt.Sprintf("invalid suffix in input %s: %s", cmd.Quote(s), cmd.Quote(rest))
	}
	for range power {
		v.Mul(v, big.NewFloat(base))
	}
	return v, 0, ""
}

// human writes a number with the suffix of its size.
func (n *numfmtRun) human(v *big.Float, precision int) string {
	ten := big.NewFloat(10)
	scaled := func(v *big.Float, digits int) *big.Float {
		factor := new(big.Float).SetPrec(64).SetInt(pow10(digits))
		t := new(big.Float).SetPrec(64).Mul(v, factor)
		return new(big.Float).SetPrec(64).Quo(new(big.Float).SetInt(n.rounded(t)), factor)
	}
	if n.to == "none" {
		return scaled(v, precision).Text('f', precision)
	}
	base := big.NewFloat(1000)
	if n.to != "si" {
		base = big.NewFloat(1024)
	}
	magnitude := func(v *big.Float) *big.Float { return new(big.Float).Abs(v) }
	power := 0
	for magnitude(v).Cmp(base) >= 0 {
		v = new(big.Float).SetPrec(64).Quo(v, base)
		power++
	}
	adjust := 0
	if n.precision >= 0 {
		adjust = min(power*3, n.precision)
	} else if magnitude(v).Cmp(ten) < 0 {
		adjust = 1
	}
	v = scaled(v, adjust)
	if magnitude(v).Cmp(base) >= 0 {
		v = new(big.Float).SetPrec(64).Quo(v, base)
		power++
	}
	digits := 0
	if n.precision >= 0 {
		digits = n.precision
	} else if v.Sign() != 0 && magnitude(v).Cmp(ten) < 0 && power > 0 {
		digits = 1
	}
	s := v.Text('f', digits)
	if power > 0 && power <= 8 {
		s += "KMGTPEZY"[power-1 : power]
		if n.to == "iec-i" {
			s += "i"
		}
	}
	return s
}

func (n *numfmtRun) rounded(v *big.Float) *big.Int {
	i, accuracy := v.Int(nil)
	if accuracy == big.Exact {
		return i
	}
	away := big.NewInt(int64(v.Sign()))
	switch n.round {
	case "up":
		if v.Sign() > 0 {
			i.Add(i, bigOne)
		}
	case "down":
		if v.Sign() < 0 {
			i.Sub(i, bigOne)
		}
	case "from-zero":
		i.Add(i, away)
	case "nearest":
		rest := new(big.Float).Sub(v, new(big.Float).SetInt(i))
		if rest.Abs(rest).Cmp(big.NewFloat(0.5)) >= 0 {
			i.Add(i, away)
		}
	}
	return i
}
