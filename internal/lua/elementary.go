package lua

import (
	"math"
	"math/big"
	"sync"
)

// The elementary functions of package math err by up to two units in the last
// place, and pow by hundreds; C's library by little more than half a unit. A
// script that stores math.sin(x) shows all 17 digits, so the functions here are
// correctly rounded in all but one case of some 2^20: they compute with pairs of
// numbers, whose sum has 106 bits. C's results differ from those in less than
// one case of a hundred, and from one processor to another.

// pair is the unevaluated sum hi + lo, where hi is the sum rounded.
type pair struct{ hi, lo float64 }

// The constants, each a sum of numbers.
var (
	halfPi = [4]float64{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110, 0x1.4cf98e804177dp-164}
	ln2    = [2]float64{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}
	fullPi = pair{0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53}

	// inverseFactorial[n] is 1/n!, for the n whose factorial is a float64.
	inverseFactorial = func() (f [23]pair) {
		n := 1.0
		for i := range f {
			f[i] = pair{hi: 1}.div(pair{hi: n})
			n *= float64(i + 1)
		}
		return f
	}()
)

// sum returns a + b, for |a| >= |b| or a = 0. twoSum is that for any, product is a b; none
// of them rounds.
func sum(a, b float64) pair {
	s := a + b
	return pair{s, b - (s - a)}
}

func twoSum(a, b float64) pair {
	s := a + b
	t := s - a
	return pair{s, (a - (s - t)) + (b - t)}
}

func product(a, b float64) pair {
	p := float64(a * b)
	return pair{p, math.FMA(a, b, -p)}
}

func (a pair) neg() pair { return pair{-a.hi, -a.lo} }

func (a pair) add(b pair) pair {
	s, t := twoSum(a.hi, b.hi), twoSum(a.lo, b.lo)
	s = sum(s.hi, s.lo+t.hi)
	return sum(s.hi, s.lo+t.lo)
}

func (a pair) mul(b pair) pair {
	p := product(a.hi, b.hi)
	return sum(p.hi, p.lo+(a.hi*b.lo+a.lo*b.hi))
}

func (a pair) div(b pair) pair {
	q := a.hi / b.hi
	r := a.add(b.mul(pair{hi: -q}))
	return sum(q, r.hi/b.hi)
}

func (a pair) sqrt() pair {
	q := math.Sqrt(a.hi)
	r := a.add(product(q, -q))
	return sum(q, r.hi/(2*q))
}

// scale returns a 2^n without rounding.
func (a pair) scale(n int) pair {
	f := math.Ldexp(1, n)
	return pair{a.hi * f, a.lo * f}
}

// expPair is e^x = m 2^k, |x| < 800.
func expPair(x pair) (m pair, k int) {
	n := math.RoundToEven(x.hi / math.Ln2)
	r := x.add(product(n, -ln2[0])).add(product(n, -ln2[1])).scale(-4)
	// The series for e^r - 1, |r| < 0.022: what is small needs half the digits.
	tail := 0.0
	for i := 12; i >= 7; i-- {
		tail = tail*r.hi + inverseFactorial[i].hi
	}
	p := pair{hi: tail}
	for i := 6; i >= 1; i-- {
		p = p.mul(r).add(inverseFactorial[i])
	}
	p = p.mul(r)
	for range 4 { // e^2r - 1 = 2 (e^r - 1) + (e^r - 1)^2
		p = p.scale(1).add(p.mul(p))
	}
	return pair{hi: 1}.add(p), int(n)
}

// logPair returns the logarithm of x, positive and finite.
func logPair(x float64) pair {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m *= 2
		e--
	}
	var l pair
	if f := m - 1; math.Abs(f) < 1.0/64 {
		// The series for 2 atanh(s), |s| < 1/127.
		s := pair{hi: f}.div(twoSum(2, f))
		q := s.mul(s)
		tail := q.hi * (1.0/7 + q.hi*(1.0/9+q.hi*(1.0/11+q.hi/13)))
		p := q.mul(pair{hi: 1}.div(pair{hi: 5}).add(pair{hi: tail})).add(pair{hi: 1}.div(pair{hi: 3}))
		l = s.add(s.mul(q).mul(p)).scale(1)
	} else {
		// A step of Newton's method: log m = y + log(m e^-y).
		y := math.Log(m)
		p, k := expPair(pair{hi: -y})
		z := p.scale(k).mul(pair{hi: m}).add(pair{hi: -1})
		l = pair{hi: y}.add(z)
	}
	n := float64(e)
	return product(n, ln2[0]).add(product(n, ln2[1])).add(l)
}

// The quick way to exp, log and pow: tables, and series of which only the first
// terms have 106 bits. It tells how far it may be off; the few results that this
// leaves in doubt take the way above.

const (
	quickSteps = 64 // tables have so many entries for a factor of two
	quickError = 0x1p-58
)

// expSteps[i] is 2^(i/64).
var expSteps = func() (steps [quickSteps]pair) {
	for i := range steps {
		n := float64(i) / quickSteps
		m, k := expPair(product(n, ln2[0]).add(product(n, ln2[1])))
		steps[i] = m.scale(k)
	}
	return steps
}()

// expQuick returns m and k of e^x = m 2^k, with an error of less than quickError m.
func expQuick(x pair) (m pair, k int) {
	const stepHi, stepLo = 0x1.62e42fef80000p-7, 0x1.1cf79abc9e3b4p-42 // their sum is ln(2)/64; n stepHi is exact
	n := math.RoundToEven(x.hi * (quickSteps / math.Ln2))
	t, w := x.hi-float64(n*stepHi), float64(n*stepLo)
	exact := twoSum(t, -w)
	exact = twoSum(exact.hi, exact.lo+x.lo)
	r := exact.hi
	p := r + (exact.lo + r*r*(1.0/2+r*(1.0/6+r*(1.0/24+r*(1.0/120+r*(1.0/720))))))
	i := int(n)
	step := expSteps[i&(quickSteps-1)]
	return sum(step.hi, math.FMA(step.hi, p, step.lo)), i >> 6
}

// settled reports whether every number within e of p rounds to p.hi.
func settled(p pair, e float64) bool {
	return p.hi+(p.lo+e) == p.hi && p.hi+(p.lo-e) == p.hi
}

// logSteps[i] is 1/c, of few bits, and the logarithm of c, for a c near i/64.
var logSteps = func() (steps [2 * quickSteps]struct {
	inverse float64
	log     pair
}) {
	for i := quickSteps / 2; i < len(steps); i++ {
		inverse := math.RoundToEven(256*quickSteps/(float64(i)+0.5)) / 256
		steps[i].inverse, steps[i].log = inverse, logPair(inverse).neg()
	}
	return steps
}()

// logQuick returns the logarithm of x, positive and finite, with an error of less than
// 2^-69; ok is false for x so near 1 that this is not enough.
func logQuick(x float64) (l pair, ok bool) {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m *= 2
		e--
	}
	if math.Abs(m-1) < 1.0/64 {
		return pair{}, false
	}
	step := &logSteps[int(m*quickSteps)]
	p := product(m, step.inverse)
	r := sum(p.hi-1, p.lo)
	square := product(r.hi, r.hi)
	z := r.hi
	cube := square.hi * z * (1.0/3 - z*(1.0/4-z*(1.0/5-z*(1.0/6-z*(1.0/7-z*(1.0/8-z*(1.0/9-z*(1.0/10-z/11))))))))
	rest := cube - r.hi*r.lo
	n := float64(e)
	l = product(n, ln2[0]).add(pair{hi: n * ln2[1]}).add(step.log)
	return l.add(r).add(square.scale(-1).neg()).add(pair{hi: rest}), true
}

// exp returns e^x.
func exp(x float64) float64 {
	if !(math.Abs(x) < 746) {
		return math.Exp(x)
	}
	if m, k := expQuick(pair{hi: x}); settled(m, m.hi*quickError) {
		return math.Ldexp(m.hi, k)
	}
	m, k := expPair(pair{hi: x})
	return math.Ldexp(m.hi, k)
}

// log returns the natural logarithm of x.
func log(x float64) float64 {
	if !(x > 0) || x > math.MaxFloat64 {
		return math.Log(x)
	}
	if l, ok := logQuick(x); ok && settled(l, 0x1p-69) {
		return l.hi
	}
	return logPair(x).hi
}

// pow returns x^y, for the operator ^ and math.pow.
func pow(x, y float64) float64 {
	switch {
	case y == 2:
		return x * x
	case y == 0 || x == 1:
		return 1
	case y != y:
		if x != x {
			return x
		}
		return y
	case x != x:
		if math.Signbit(x) && math.Abs(math.Mod(y, 2)) == 1 {
			return -x
		}
		return x
	case x == 0 || x-x != 0 || y-y != 0:
		return math.Pow(x, y)
	case y == 0.5 && x > 0:
		return math.Sqrt(x)
	}
	whole := math.Trunc(y)
	if x < 0 && whole != y {
		return minusNaN
	}
	a, sign := math.Abs(x), 1.0
	if x < 0 && math.Mod(y, 2) != 0 {
		sign = -1
	}
	if whole == y && math.Abs(y) <= 64 {
		m, e := intPower(a, int(math.Abs(y)))
		if y < 0 {
			m, e = pair{hi: 1}.div(m), -e
		}
		return sign * math.Ldexp(m.hi, e)
	}
	if l, ok := logQuick(a); ok && math.Abs(l.hi*y) < 746 {
		if m, k := expQuick(l.mul(pair{hi: y})); settled(m, m.hi*(quickError+math.Abs(y)*0x1p-68)) {
			return sign * math.Ldexp(m.hi, k)
		}
	}
	l := logPair(a)
	if z := l.hi * y; math.Abs(z) > 746 {
		return sign * math.Exp(z)
	}
	m, k := expPair(l.mul(pair{hi: y}))
	return sign * math.Ldexp(m.hi, k)
}

// intPower is x^n = m 2^e, 0 < n <= 64, exact as long as 106 bits suffice.
func intPower(x float64, n int) (m pair, e int) {
	f, exponent := math.Frexp(x)
	m = pair{hi: 1}
	for square, i := (pair{hi: f}), n; i > 0; i >>= 1 {
		if i&1 != 0 {
			m = m.mul(square)
		}
		square = square.mul(square)
	}
	return m, exponent * n
}

// sinCosPair returns the sine and the cosine of r, |r| < 0.8.
func sinCosPair(r pair) (sin, cos pair) {
	q := r.mul(r)
	z := q.hi
	tail := func(from, to int) float64 { // the even or odd terms of the series, alternating
		t := inverseFactorial[to].hi
		for i := to - 2; i >= from; i -= 2 {
			t = inverseFactorial[i].hi - z*t
		}
		return t
	}
	// Terms above 2^-21 of the whole need all the digits.
	p := inverseFactorial[7].add(pair{hi: -z * tail(9, 21)})
	p = inverseFactorial[5].add(q.mul(p).neg())
	p = inverseFactorial[3].add(q.mul(p).neg())
	sin = r.add(r.mul(q.mul(p)).neg())
	p = inverseFactorial[8].add(pair{hi: -z * tail(10, 22)})
	p = inverseFactorial[6].add(q.mul(p).neg())
	p = inverseFactorial[4].add(q.mul(p).neg())
	p = inverseFactorial[2].add(q.mul(p).neg())
	cos = pair{hi: 1}.add(q.mul(p).neg())
	return sin, cos
}

// reduce is r and the low bits of n such that x = n pi/2 + r, |r| <= pi/4 or
// hardly more.
func reduce(x float64) (r pair, n int) {
	if math.Abs(x) >= 1<<50 {
		return reduceBig(x)
	}
	f := math.RoundToEven(x * (2 / math.Pi))
	r = pair{hi: x}
	for _, part := range halfPi {
		r = r.add(product(f, -part))
	}
	return r, int(int64(f) & 3)
}

// bigBits is the precision of reduceBig: the 1024 bits before the point of the
// greatest number, and 176 for a result that may be small.
const bigBits = 1200

// bigHalfPi is 2^bigBits pi/2, by Machin's formula pi/4 = 4 atan 1/5 - atan 1/239.
var bigHalfPi = sync.OnceValue(func() *big.Int {
	const guard = 64
	atan := func(inverse int64) *big.Int {
		power := new(big.Int).Lsh(big.NewInt(1), bigBits+guard)
		power.Div(power, big.NewInt(inverse))
		total, square := new(big.Int).Set(power), big.NewInt(inverse*inverse)
		for i := int64(3); power.Sign() != 0; i += 2 {
			power.Div(power, square)
			term := new(big.Int).Div(power, big.NewInt(i))
			if i%4 == 3 {
				term.Neg(term)
			}
			total.Add(total, term)
		}
		return total
	}
	quarter := new(big.Int).Lsh(atan(5), 2)
	quarter.Sub(quarter, atan(239))
	return quarter.Rsh(quarter, guard-1)
})

// reduceBig is reduce for numbers of which pairs cannot hold the quotient. It
// takes some microseconds.
func reduceBig(x float64) (pair, int) {
	m, e := math.Frexp(x)
	scaled := big.NewInt(int64(m * (1 << 53)))
	scaled.Lsh(scaled, uint(bigBits+e-53))
	n, rest := new(big.Int).DivMod(scaled, bigHalfPi(), new(big.Int))
	if new(big.Int).Lsh(rest, 1).Cmp(bigHalfPi()) > 0 {
		rest.Sub(rest, bigHalfPi())
		n.Add(n, big.NewInt(1))
	}
	f := new(big.Float).SetInt(rest)
	f.SetMantExp(f, -bigBits)
	hi, _ := f.Float64()
	lo, _ := f.Sub(f, big.NewFloat(hi)).Float64()
	return pair{hi, lo}, int(new(big.Int).And(n, big.NewInt(3)).Int64())
}

// sinCos returns the sine and cosine of x, finite.
func sinCos(x float64) (sin, cos pair) {
	r, n := reduce(x)
	sin, cos = sinCosPair(r)
	switch n {
	case 1:
		return cos, sin.neg()
	case 2:
		return sin.neg(), cos.neg()
	case 3:
		return cos.neg(), sin
	}
	return sin, cos
}

// sinQuick computes sin(x + n pi/2) with the quick method; ok is false if the last digit
// is uncertain.
func sinQuick(x float64, n int) (y float64, ok bool) {
	if !(math.Abs(x) < 1e5) {
		return 0, false
	}
	f := math.RoundToEven(x * (2 / math.Pi))
	p := product(f, halfPi[0])
	r := twoSum(x-p.hi, -(p.lo + f*halfPi[1]))
	if math.Abs(r.hi) < 0x1p-25 {
		return 0, false
	}
	n += int(f)
	square := product(r.hi, r.hi)
	z := square.hi
	var s pair
	var e float64
	if n&1 == 0 {
		t := r.hi * z * (-1.0/6 + z*(1.0/120+z*(-1.0/5040+
			z*(1.0/362880+z*(-1.0/39916800+z*(1.0/6227020800+
				z*(-1.0/1307674368000+z*(1.0/355687428096000+z*(-1.0/121645100408832000+z*(1.0/51090942171709440000))))))))))
		s = sum(r.hi, r.lo*(1-z/2)+t)
		e = math.Abs(r.hi) * (z*0x1.8p-54 + 0x1p-61)
	} else {
		t := z * z * (1.0/24 + z*(-1.0/720+z*(1.0/40320+
			z*(-1.0/3628800+z*(1.0/479001600+z*(-1.0/87178291200+z*(1.0/20922789888000+z*(-1.0/6402373705728000+z*(1.0/2432902008176640000)))))))))
		s = sum(1, -z/2)
		s = sum(s.hi, s.lo-square.lo/2-r.hi*r.lo+t)
		e = z*z*0x1p-54 + 0x1p-61
	}
	if n&2 != 0 {
		s = s.neg()
	}
	return s.hi, settled(s, e)
}

// sin, cos and tan are the sine, cosine and tangent of x.
func sin(x float64) float64 {
	if y, ok := sinQuick(x, 0); ok {
		return y
	}
	if math.Abs(x) < 1e-160 || x-x != 0 { // the squares of tiny numbers would be none
		return math.Sin(x)
	}
	s, _ := sinCos(x)
	return s.hi
}

func cos(x float64) float64 {
	if y, ok := sinQuick(x, 1); ok {
		return y
	}
	if x-x != 0 {
		return math.Cos(x)
	}
	_, c := sinCos(x)
	return c.hi
}

func tan(x float64) float64 {
	if math.Abs(x) < 1e-160 || x-x != 0 {
		return math.Tan(x)
	}
	s, c := sinCos(x)
	return s.div(c).hi
}

// atanPair returns the arc tangent of x >= 0: a step of Newton's method from math.Atan.
func atanPair(x pair) pair {
	if x.hi > 1 {
		a := atanPair(pair{hi: 1}.div(x))
		return pair{halfPi[0], halfPi[1]}.add(a.neg())
	}
	y := math.Atan(x.hi)
	s, c := sinCosPair(pair{hi: y})
	t := s.div(c)
	z := x.add(t.neg()).div(pair{hi: 1}.add(x.mul(t)))
	return pair{hi: y}.add(z)
}

// asinPair returns the arc sine of x, 0 <= x <= 0.75, likewise.
func asinPair(x pair) pair {
	y := math.Asin(x.hi)
	s, c := sinCosPair(pair{hi: y})
	return pair{hi: y}.add(x.add(s.neg()).div(c))
}

// atan, asin and acos are the arc functions of x.
func atan(x float64) float64 {
	if a := math.Abs(x); !(a > 1e-100 && a < 1e100) {
		return math.Atan(x)
	}
	return math.Copysign(atanPair(pair{hi: math.Abs(x)}).hi, x)
}

func asin(x float64) float64 {
	a := math.Abs(x)
	switch {
	case !(a > 1e-100 && a < 1):
		return math.Asin(x)
	case a <= 0.5:
		return math.Copysign(asinPair(pair{hi: a}).hi, x)
	}
	half := asinPair(pair{hi: (1 - a) / 2}.sqrt())
	return math.Copysign(pair{halfPi[0], halfPi[1]}.add(half.scale(1).neg()).hi, x)
}

func acos(x float64) float64 {
	a := math.Abs(x)
	switch {
	case !(a > 1e-100 && a < 1):
		return math.Acos(x)
	case a <= 0.5:
		y := asinPair(pair{hi: a})
		if x > 0 {
			y = y.neg()
		}
		return pair{halfPi[0], halfPi[1]}.add(y).hi
	}
	y := asinPair(pair{hi: (1 - a) / 2}.sqrt()).scale(1)
	if x < 0 {
		y = fullPi.add(y.neg())
	}
	return y.hi
}

// atan2 returns the angle of the point (x, y).
func atan2(y, x float64) float64 {
	switch {
	case x != x:
		return x
	case y != y:
		return y
	}
	q := pair{hi: math.Abs(y)}.div(pair{hi: math.Abs(x)})
	if !(q.hi > 1e-100 && q.hi < 1e100) || math.Abs(x) < 1e-100 || math.Abs(y) < 1e-100 || math.Abs(x) > 1e100 || math.Abs(y) > 1e100 {
		// The sign by hand: Atan2 loses it where y/x underflows.
		return math.Copysign(math.Atan2(math.Abs(y), x), y)
	}
	a := atanPair(q)
	if x < 0 {
		a = fullPi.add(a.neg())
	}
	return math.Copysign(a.hi, y)
}

// sinh, cosh, tanh and log10 round where C's library does, which has them from
// the functions above.

func sinh(x float64) float64 {
	a, half := math.Abs(x), math.Copysign(0.5, x)
	switch {
	case !(a >= 0x1p-28 && a < 709):
		return math.Sinh(x)
	case a < 22:
		t := math.Expm1(a)
		if a < 1 {
			return half * (2*t - float64(t*t)/(t+1))
		}
		return half * (t + t/(t+1))
	}
	return half * exp(a)
}

func cosh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case !(a >= 0x1p-55 && a < 709):
		return math.Cosh(x)
	case a < math.Ln2/2:
		t := math.Expm1(a)
		return 1 + float64(t*t)/(2*(1+t))
	case a < 22:
		t := exp(a)
		return float64(0.5*t) + 0.5/t
	}
	return 0.5 * exp(a)
}

func tanh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case !(a >= 0x1p-55 && a < 22):
		return math.Tanh(x)
	case a >= 1:
		return math.Copysign(1-2/(math.Expm1(2*a)+2), x)
	}
	t := math.Expm1(-2 * a)
	return math.Copysign(-t/(t+2), x)
}

func log10(x float64) float64 {
	if !(x > 0) || x > math.MaxFloat64 {
		return math.Log10(x)
	}
	const log2Hi, log2Lo = 3.01029995663611771306e-01, 3.69423907715893078616e-13 // their sum is log10(2)
	m, e := math.Frexp(x)
	m, e = 2*m, e-1
	if e < 0 {
		m, e = m/2, e+1
	}
	n := float64(e)
	z := float64(n*log2Lo) + float64(math.Log10E*log(m))
	return z + float64(n*log2Hi)
}
