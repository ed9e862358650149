package lua

import "math"

// openMath adds the library math.
func openMath(s *State) {
	generator := &random{state: randomStart}
	t := openLibrary(s, "math", []library{
		{"abs", mathAbs},
		{"acos", mathFunc(acos, nan)},
		{"asin", mathFunc(asin, nan)},
		{"atan2", mathFunc2(atan2, minusNaN)},
		{"atan", mathFunc(math.Atan, 0)},
		{"ceil", mathFunc(math.Ceil, 0)},
		{"cosh", mathFunc(math.Cosh, 0)},
		{"cos", mathFunc(math.Cos, minusNaN)},
		{"deg", mathFunc(func(f float64) float64 { return f / (math.Pi / 180) }, 0)},
		{"exp", mathFunc(exp, 0)},
		{"floor", mathFloor},
		{"fmod", mathFunc2(fmod, minusNaN)},
		{"frexp", mathFrexp},
		{"ldexp", mathLdexp},
		{"log10", mathFunc(log10, nan)},
		{"log", mathFunc(log, minusNaN)},
		{"max", mathMax},
		{"min", mathMin},
		{"modf", mathModf},
		{"pow", mathFunc2(pow, minusNaN)},
		{"rad", mathFunc(func(f float64) float64 { return f * (math.Pi / 180) }, 0)},
		{"random", generator.mathRandom},
		{"randomseed", generator.mathRandomseed},
		{"sinh", mathFunc(math.Sinh, 0)},
		{"sin", mathFunc(math.Sin, minusNaN)},
		{"sqrt", mathFunc(math.Sqrt, minusNaN)},
		{"tanh", mathFunc(math.Tanh, 0)},
		{"tan", mathFunc(math.Tan, minusNaN)},
	})
	_ = t.SetString("pi", Number(math.Pi))
	_ = t.SetString("huge", Number(math.Inf(1)))
	_ = t.SetString("mod", t.GetString("fmod")) // its name in Lua 5.0
}

// tostring shows the sign of a NaN. These are the two that C's functions make of
// arguments for which they have no result: which of them depends on the function.
var (
	nan      = math.Float64frombits(0x7ff8000000000000)
	minusNaN = math.Float64frombits(0xfff8000000000000)
)

// mathFloor implements math.floor, the one that programs call most.
func mathFloor(c Call) error {
	x, err := c.CheckNumber(1)
	if err != nil {
		return err
	}
	return c.Return(Number(math.Floor(x)))
}

// mathFunc makes a builtin of f. A NaN among the arguments is the result;
// otherwise invalid is, where f has none.
func mathFunc(f func(float64) float64, invalid float64) func(Call) error {
	return func(c Call) error {
		x, err := c.CheckNumber(1)
		if err != nil {
			return err
		}
		y := f(x)
		if y != y {
			if y = invalid; x != x {
				y = x
			}
		}
		return c.Return(Number(y))
	}
}

// mathFunc2 does the work of mathFunc for two arguments; f itself chooses among NaNs.
func mathFunc2(f func(x, y float64) float64, invalid float64) func(Call) error {
	return func(c Call) error {
		y, err := c.CheckNumber(2)
		if err != nil {
			return err
		}
		x, err := c.CheckNumber(1)
		if err != nil {
			return err
		}
		z := f(x, y)
		if z != z && x == x && y == y {
			z = invalid
		}
		return c.Return(Number(z))
	}
}

// asin, acos, exp, log, log10, pow and atan2 are those of package math, but where these err by more than the last
// digits, or their sign differs from that of C's functions.

func asin(x float64) float64 { return math.Atan2(x, math.Sqrt((1-x)*(1+x))) }

func acos(x float64) float64 { return math.Atan2(math.Sqrt((1-x)*(1+x)), x) }

func exp(x float64) float64 {
	if x > 709 { // math.Exp overflows too early on amd64
		return math.Exp(x-1) * math.E
	}
	return math.Exp(x)
}

func log(x float64) float64 {
	if x > 0 && x < 0x1p-1022 { // math.Log is wrong for subnormal numbers on amd64
		return math.Log(x*0x1p54) - 54*math.Ln2
	}
	return math.Log(x)
}

// log10 is exact for powers of ten, as C's is.
func log10(x float64) float64 {
	y := log(x) / math.Ln10
	if n := math.Round(y); math.Abs(y-n) <= math.Abs(n)*0x1p-51 {
		return n
	}
	return y
}

// pow computes math.pow and the operator ^.
func pow(x, y float64) float64 {
	if y == 2 {
		return x * x
	}
	z := math.Pow(x, y)
	if z == z {
		return z
	}
	switch {
	case x != x && math.Signbit(x) && math.Abs(math.Mod(y, 2)) == 1:
		return -x
	case x != x:
		return x
	case y != y:
		return y
	}
	return minusNaN
}

// atan2 returns the angle of the point (x, y). math.Atan2 loses its sign where y/x underflows.
func atan2(y, x float64) float64 {
	switch {
	case x != x:
		return x
	case y != y:
		return y
	}
	return math.Copysign(math.Atan2(math.Abs(y), x), y)
}

// fmod is C's remainder, with the sign of x.
func fmod(x, y float64) float64 {
	switch {
	case x != x:
		return x
	case y != y:
		return y
	}
	return math.Mod(x, y)
}

// mathAbs implements math.abs(x).
func mathAbs(c Call) error {
	x, err := c.CheckNumber(1)
	if err != nil {
		return err
	}
	return c.Return(Number(math.Abs(x)))
}

// mathFrexp implements math.frexp(x): m and e, such that x = m 2^e and 0.5 <= |m| < 1.
func mathFrexp(c Call) error {
	x, err := c.CheckNumber(1)
	if err != nil {
		return err
	}
	m, e := math.Frexp(x)
	if x != x {
		m = x
	}
	return c.Return(Number(m), Int(e))
}

// mathLdexp implements math.ldexp(m, e): m 2^e.
func mathLdexp(c Call) error {
	e, err := checkInt32(c, 2)
	if err != nil {
		return err
	}
	m, err := c.CheckNumber(1)
	if err != nil {
		return err
	}
	if m == m {
		m = math.Ldexp(m, e)
	}
	return c.Return(Number(m))
}

// mathModf implements math.modf(x): the integral and the fractional part, both with the
// sign of x.
func mathModf(c Call) error {
	x, err := c.CheckNumber(1)
	if err != nil {
		return err
	}
	whole := math.Trunc(x)
	part := math.Copysign(x-whole, x)
	if math.IsInf(x, 0) {
		part = math.Copysign(0, x)
	}
	return c.Return(Number(whole), Number(part))
}

// mathMax implements math.max(x, ...), mathMin is math.min(x, ...). A NaN wins only as
// the first argument.
func mathMax(c Call) error { return mathBest(c, func(x, best float64) bool { return x > best }) }
func mathMin(c Call) error { return mathBest(c, func(x, best float64) bool { return x < best }) }

// mathBest returns the argument that none after it is better than.
func mathBest(c Call, better func(x, best float64) bool) error {
	best, err := c.CheckNumber(1)
	if err != nil {
		return err
	}
	for i := 2; i <= c.N(); i++ {
		x, err := c.CheckNumber(i)
		if err != nil {
			return err
		}
		if better(x, best) {
			best = x
		}
	}
	return c.Return(Number(best))
}

// random is the generator of Redis's math.random, the 48 bit one of POSIX's
// lrand48: the same numbers on every machine. It goes on from script to script.
type random struct{ state uint64 }

// The constants of POSIX's drand48 family.
const (
	randomStart  = 0x1234abcd330e // the state before any seed
	randomFactor = 0x5deece66d
	randomAdd    = 0xb
	randomMask   = 1<<48 - 1
)

// seed restarts the generator, as srand48 does.
func (r *random) seed(n int32) {
	r.state = uint64(uint32(n))<<16 | 0x330e
}

// next returns the next number of 31 bits, as lrand48.
func (r *random) next() int {
	r.state = (r.state*randomFactor + randomAdd) & randomMask
	return int(r.state >> 17)
}

// mathRandomseed implements math.randomseed(n).
func (r *random) mathRandomseed(c Call) error {
	n, err := checkInt32(c, 1)
	if err != nil {
		return err
	}
	r.seed(int32(n))
	return c.Return()
}

// mathRandom implements math.random([[m,] n]): a number in [0, 1), an integer from 1 to n,
// or one from m to n.
func (r *random) mathRandom(c Call) error {
	part := float64(r.next()%math.MaxInt32) / math.MaxInt32
	lo, hi := 1, 0
	var err error
	switch c.N() {
	case 0:
		return c.Return(Number(part))
	case 1:
		if hi, err = checkInt32(c, 1); err != nil {
			return err
		}
	case 2:
		if lo, err = checkInt32(c, 1); err != nil {
			return err
		}
		if hi, err = checkInt32(c, 2); err != nil {
			return err
		}
	default:
		return c.Errorf("wrong number of arguments")
	}
	if lo > hi {
		return c.ArgError(c.N(), "interval is empty")
	}
	// The width of an interval of more than 31 bits overflows, as it does in C.
	width := int32(hi - lo + 1)
	return c.Return(Number(math.Floor(part*float64(width)) + float64(lo)))
}
