package sys

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/exthost/exthost/guests/sh/internal/cmd"
)

// bcNum is a number of bc: v / 10^scale. Operations cut digits off and never round, as POSIX has it; how many they keep
// is that of GNU's bc. A bcNum is never changed.
type bcNum struct {
	v     *big.Int
	scale int
}

var (
	bigOne = big.NewInt(1)
	bigTen = big.NewInt(10)
)

func bcInt(n int64) bcNum { return bcNum{big.NewInt(n), 0} }

func bcBool(b bool) bcNum {
	if b {
		return bcInt(1)
	}
	return bcInt(0)
}

func pow10(n int) *big.Int { return new(big.Int).Exp(bigTen, big.NewInt(int64(n)), nil) }

// at returns the number's digits for another scale, the surplus cut off.
func (a bcNum) at(scale int) *big.Int {
	switch {
	case scale > a.scale:
		return new(big.Int).Mul(a.v, pow10(scale-a.scale))
	case scale < a.scale:
		return new(big.Int).Quo(a.v, pow10(a.scale-scale))
	}
	return a.v
}

func (a bcNum) cut(scale int) bcNum {
	if a.scale <= scale {
		return a
	}
	return bcNum{a.at(scale), scale}
}

func (a bcNum) integer() *big.Int { return a.at(0) }
func (a bcNum) zero() bool        { return a.v.Sign() == 0 }
func (a bcNum) neg() bcNum        { return bcNum{new(big.Int).Neg(a.v), a.scale} }

func (a bcNum) add(b bcNum) bcNum {
	s := max(a.scale, b.scale)
	return bcNum{new(big.Int).Add(a.at(s), b.at(s)), s}
}

func (a bcNum) sub(b bcNum) bcNum { return a.add(b.neg()) }

func (a bcNum) cmp(b bcNum) int {
	s := max(a.scale, b.scale)
	return a.at(s).Cmp(b.at(s))
}

func (a bcNum) mul(b bcNum, scale int) bcNum {
	full := a.scale + b.scale
	p := bcNum{new(big.Int).Mul(a.v, b.v), full}
	return p.cut(min(full, max(scale, a.scale, b.scale)))
}

// div divides; b is not zero.
func (a bcNum) div(b bcNum, scale int) bcNum {
	n, d := a.v, b.v
	if e := scale + b.scale - a.scale; e >= 0 {
		n = new(big.Int).Mul(n, pow10(e))
	} else {
		d = new(big.Int).Mul(d, pow10(-e))
	}
	return bcNum{new(big.Int).Quo(n, d), scale}
}

func (a bcNum) mod(b bcNum, scale int) bcNum {
	s := max(a.scale, b.scale+scale)
	r := a.sub(a.div(b, scale).mul(b, s))
	return bcNum{r.at(s), s}
}

// bcMostDigits bounds what a power may have: more would take the memory of the guest.
const bcMostDigits = 8_000_000

func (a bcNum) raise(exp *big.Int, scale int) (bcNum, error) {
	if exp.Sign() == 0 {
		return bcInt(1), nil
	}
	n := new(big.Int).Abs(exp)
	if !n.IsInt64() || n.Int64() > math.MaxInt32 && a.v.CmpAbs(bigOne) > 0 || float64(n.Int64())*float64(max(a.v.BitLen()-1, a.scale)) > bcMostDigits*3.32 {
		if a.zero() && exp.Sign() > 0 {
			return bcInt(0), nil
		}
		if a.scale == 0 && a.v.CmpAbs(bigOne) == 0 && n.IsInt64() {
			if n.Bit(0) == 0 {
				return bcInt(1), nil
			}
			return a, nil
		}
		return bcNum{}, fmt.Errorf("exponent too large in raise")
	}
	k := int(n.Int64())
	p := bcNum{new(big.Int).Exp(a.v, n, nil), a.scale * k}
	if exp.Sign() < 0 {
		if p.zero() {
			return bcNum{}, errDivideByZero
		}
		return bcInt(1).div(p, scale), nil
	}
	return p.cut(min(a.scale*k, max(scale, a.scale))), nil
}

//lint:ignore ST1005 GNU's words
var errDivideByZero = errors.New("Divide by zero")

func (a bcNum) sqrt(scale int) bcNum {
	if a.zero() {
		return bcInt(0)
	}
	if a.cmp(bcInt(1)) == 0 {
		return bcInt(1)
	}
	s := max(scale, a.scale)
	return bcNum{new(big.Int).Sqrt(a.at(2 * s)), s}
}

// length is the number of digits, without a zero in front of the point.
func (a bcNum) length() int {
	n := len(new(big.Int).Abs(a.integer()).String()) + a.scale
	if a.integer().Sign() == 0 && a.scale > 0 {
		n--
	}
	return n
}

// bcDigit is the value of a digit, -1 when b is none.
func bcDigit(b byte) int {
	switch {
	case isDigit(b):
		return int(b - '0')
	case 'A' <= b && b <= 'Z':
		return int(b-'A') + 10
	}
	return -1
}

// bcParse reads digits in a base. A digit too high for the base is its highest one, but for a single digit, which has its own
// value in every base.
func bcParse(text string, base int) bcNum {
	whole, fraction, _ := strings.Cut(text, ".")
	if base == 10 && strings.Trim(text, "0123456789.") == "" {
		v, _ := new(big.Int).SetString("0"+whole+fraction, 10)
		return bcNum{v, len(fraction)}
	}
	big10 := big.NewInt(int64(base))
	read := func(digits string) *big.Int {
		v := new(big.Int)
		for i := range len(digits) {
			d := bcDigit(digits[i])
			if len(digits) > 1 || fraction != "" && base == 10 {
				d = min(d, base-1)
			}
			v.Add(v.Mul(v, big10), big.NewInt(int64(d)))
		}
		return v
	}
	n := bcNum{read(whole), 0}
	if fraction == "" {
		return n
	}
	f := new(big.Int)
	for i := range len(fraction) {
		f.Add(f.Mul(f, big10), big.NewInt(int64(min(bcDigit(fraction[i]), base-1))))
	}
	d := new(big.Int).Exp(big10, big.NewInt(int64(len(fraction))), nil)
	return n.add(bcNum{f, 0}.div(bcNum{d, 0}, len(fraction)))
}

// text writes the number in a base. Above 16 each digit is a decimal number with a blank in front.
func (a bcNum) text(base int) string {
	if a.zero() {
		return "0"
	}
	var b strings.Builder
	if a.v.Sign() < 0 {
		b.WriteByte('-')
	}
	v := new(big.Int).Abs(a.v)
	if base == 10 {
		s := v.String()
		if n := a.scale + 1 - len(s); n > 0 {
			s = strings.Repeat("0", n) + s
		}
		whole, fraction := s[:len(s)-a.scale], s[len(s)-a.scale:]
		if whole != "0" || fraction == "" {
			b.WriteString(whole)
		}
		if fraction != "" {
			b.WriteString("." + fraction)
		}
		return b.String()
	}
	width := len(fmt.Sprint(base - 1))
	unit := pow10(a.scale)
	whole, rest := new(big.Int).QuoRem(v, unit, new(big.Int))
	if base <= 16 {
		if whole.Sign() != 0 {
			b.WriteString(strings.ToUpper(whole.Text(base)))
		}
	} else {
		var digits []int64
		big10, d := big.NewInt(int64(base)), new(big.Int)
		for whole.Sign() != 0 {
			whole.QuoRem(whole, big10, d)
			digits = append(digits, d.Int64())
		}
		for i := len(digits) - 1; i >= 0; i-- {
			fmt.Fprintf(&b, " %0*d", width, digits[i])
		}
	}
	if a.scale == 0 {
		return b.String()
	}
	b.WriteByte('.')
	big10, t, d := big.NewInt(int64(base)), big.NewInt(1), new(big.Int)
	for first := true; len(t.String()) <= a.scale; first = false {
		d.QuoRem(rest.Mul(rest, big10), unit, rest)
		switch {
		case base <= 16:
			b.WriteString(strings.ToUpper(d.Text(base)))
		case first:
			fmt.Fprintf(&b, "%0*d", width, d.Int64())
		default:
			fmt.Fprintf(&b, " %0*d", width, d.Int64())
		}
		t.Mul(t, big10)
	}
	return b.String()
}

// The functions of bc -l. Each calculates with more digits than are asked for and cuts the rest off. Numbers in them are
// integers in units of 10^-digits.

type bcMath struct {
	ctx    context.Context
	digits int
	unit   *big.Int
}

func newBCMath(ctx context.Context, digits int) *bcMath { return &bcMath{ctx, digits, pow10(digits)} }

func (m *bcMath) mul(a, b *big.Int) *big.Int {
	p := new(big.Int).Mul(a, b)
	return p.Quo(p, m.unit)
}

func (m *bcMath) div(a, b *big.Int) *big.Int {
	p := new(big.Int).Mul(a, m.unit)
	return p.Quo(p, b)
}

func (m *bcMath) result(v *big.Int, scale int) bcNum { return bcNum{v, m.digits}.cut(scale) }

// atanInverse is the inverse tangent of 1/n, the hyperbolic one unless alternating.
func (m *bcMath) atanInverse(n int64, alternating bool) *big.Int {
	square := big.NewInt(n * n)
	power := new(big.Int).Quo(m.unit, big.NewInt(n))
	sum := new(big.Int).Set(power)
	for k := int64(3); power.Sign() != 0; k += 2 {
		power.Quo(power, square)
		t := new(big.Int).Quo(power, big.NewInt(k))
		if alternating && k%4 == 3 {
			sum.Sub(sum, t)
		} else {
			sum.Add(sum, t)
		}
		cmd.Check(m.ctx)
	}
	return sum
}

func (m *bcMath) ln2() *big.Int {
	v := m.atanInverse(3, false)
	return v.Lsh(v, 1)
}

func (m *bcMath) pi() *big.Int {
	v := new(big.Int).Lsh(m.atanInverse(5, true), 2)
	v.Sub(v, m.atanInverse(239, true))
	return v.Lsh(v, 2)
}

func bcExp(ctx context.Context, x bcNum, scale int) (bcNum, error) {
	whole := x.integer()
	if !whole.IsInt64() || whole.Int64() > bcMostDigits || whole.Int64() < -bcMostDigits*3 {
		if whole.Sign() < 0 {
			return bcNum{new(big.Int), scale}, nil
		}
		return bcNum{}, fmt.Errorf("exponent too large in raise")
	}
	// The result has as many digits before the point as these.
	before := max(int(float64(whole.Int64())*0.4343)+1, 0)
	m := newBCMath(ctx, scale+before+20)
	v := x.at(m.digits)
	ln2 := m.ln2()
	k := new(big.Int).Quo(v, ln2)
	v = new(big.Int).Sub(v, new(big.Int).Mul(k, ln2))
	const halvings = 8
	v.Quo(v, big.NewInt(1<<halvings))
	sum, term := new(big.Int).Add(m.unit, v), new(big.Int).Set(v)
	for i := int64(2); term.Sign() != 0; i++ {
		term = m.mul(term, v)
		term.Quo(term, big.NewInt(i))
		sum.Add(sum, term)
		cmd.Check(ctx)
	}
	for range halvings {
		sum = m.mul(sum, sum)
	}
	if n := k.Int64(); n >= 0 {
		sum.Lsh(sum, uint(n))
	} else {
		sum.Rsh(sum, uint(-n))
	}
	return m.result(sum, scale), nil
}

func bcLog(ctx context.Context, x bcNum, scale int) bcNum {
	if x.v.Sign() <= 0 {
		// GNU's answer for what has no logarithm: the lowest number that the scale can show.
		return bcInt(1).sub(bcNum{pow10(scale), 0}).div(bcInt(1), scale)
	}
	bits := x.v.BitLen() + 4*x.scale
	m := newBCMath(ctx, scale+20+x.scale+len(fmt.Sprint(bits)))
	v := x.at(m.digits)
	// Between 2/3 and 4/3 by powers of two.
	k := v.BitLen() - m.unit.BitLen()
	if k >= 0 {
		v = new(big.Int).Rsh(v, uint(k))
	} else {
		v = new(big.Int).Lsh(v, uint(-k))
	}
	if third := new(big.Int).Quo(new(big.Int).Mul(m.unit, big.NewInt(4)), big.NewInt(3)); v.Cmp(third) > 0 {
		v.Rsh(v, 1)
		k++
	}
	t := m.div(new(big.Int).Sub(v, m.unit), new(big.Int).Add(v, m.unit))
	square := m.mul(t, t)
	sum, power := new(big.Int).Set(t), t
	for i := int64(3); power.Sign() != 0; i += 2 {
		power = m.mul(power, square)
		sum.Add(sum, new(big.Int).Quo(power, big.NewInt(i)))
		cmd.Check(ctx)
	}
	sum.Lsh(sum, 1)
	sum.Add(sum, new(big.Int).Mul(m.ln2(), big.NewInt(int64(k))))
	return m.result(sum, scale)
}

func bcSin(ctx context.Context, x bcNum, scale int, cosine bool) bcNum {
	m := newBCMath(ctx, scale+20+x.length())
	v := new(big.Int).Set(x.at(m.digits))
	pi := m.pi()
	half := new(big.Int).Rsh(pi, 1)
	// To the nearest multiple of pi, whose parity is the sign.
	k := new(big.Int).Add(v, half)
	k.Div(k, pi)
	v.Sub(v, new(big.Int).Mul(k, pi))
	square := m.mul(v, v)
	term, first := new(big.Int).Set(v), int64(2)
	if cosine {
		term, first = new(big.Int).Set(m.unit), 1
	}
	sum := new(big.Int).Set(term)
	for i := first; term.Sign() != 0; i += 2 {
		term = m.mul(term, square)
		term.Quo(term, big.NewInt(i*(i+1)))
		term.Neg(term)
		sum.Add(sum, term)
		cmd.Check(ctx)
	}
	if k.Bit(0) == 1 {
		sum.Neg(sum)
	}
	return m.result(sum, scale)
}

func bcAtan(ctx context.Context, x bcNum, scale int) bcNum {
	if x.zero() {
		return bcInt(0)
	}
	m := newBCMath(ctx, scale+20)
	v := new(big.Int).Abs(x.at(m.digits))
	// Beyond 1 it is that of the inverse, from a right angle on.
	invert := v.Cmp(m.unit) > 0
	if invert {
		v = bcNum{m.unit, m.digits}.div(bcNum{new(big.Int).Abs(x.v), x.scale}, m.digits).v
	}
	const halvings = 3
	for range halvings {
		root := m.mul(v, v)
		root.Add(root, m.unit)
		root.Sqrt(root.Mul(root, m.unit))
		v = m.div(v, root.Add(root, m.unit))
	}
	square := m.mul(v, v)
	sum, power := new(big.Int).Set(v), v
	for i := int64(3); power.Sign() != 0; i += 2 {
		power = m.mul(power, square)
		t := new(big.Int).Quo(power, big.NewInt(i))
		if i%4 == 3 {
			sum.Sub(sum, t)
		} else {
			sum.Add(sum, t)
		}
		cmd.Check(ctx)
	}
	sum.Lsh(sum, halvings)
	if invert {
		pi := m.pi()
		sum.Sub(pi.Rsh(pi, 1), sum)
	}
	if x.v.Sign() < 0 {
		sum.Neg(sum)
	}
	return m.result(sum, scale)
}

// bcBessel is the Bessel function of integer order n.
func bcBessel(ctx context.Context, order, x bcNum, scale int) (bcNum, error) {
	n := order.integer()
	if !n.IsInt64() || n.Int64() > 100_000 || n.Int64() < -100_000 || new(big.Int).Abs(x.integer()).Cmp(big.NewInt(100_000)) > 0 {
		return bcNum{}, fmt.Errorf("argument too large for the Bessel function")
	}
	k := n.Int64()
	negative := false
	if k < 0 {
		k = -k
		negative = k%2 == 1
	}
	// The terms grow to about e^x before they fall.
	m := newBCMath(ctx, scale+20+int(math.Abs(float64(x.integer().Int64()))))
	half := new(big.Int).Quo(x.at(m.digits), big.NewInt(2))
	term := new(big.Int).Set(m.unit)
	for i := int64(1); i <= k; i++ {
		term = m.mul(term, half)
		term.Quo(term, big.NewInt(i))
		cmd.Check(ctx)
	}
	square := m.mul(half, half)
	sum := new(big.Int).Set(term)
	for i := int64(1); term.Sign() != 0; i++ {
		term = m.mul(term, square)
		term.Quo(term, big.NewInt(i*(i+k)))
		term.Neg(term)
		sum.Add(sum, term)
		cmd.Check(ctx)
	}
	if negative {
		sum.Neg(sum)
	}
	return m.result(sum, scale), nil
}
