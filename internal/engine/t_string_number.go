package engine

import (
	"bytes"
	"math"
	"math/big"
)

// This file implements strings that are numbers. Integers have 64 bits. Floats are added as Redis
// adds them, with x86's long double: a mantissa of 64 bits, so that 0.1 + 0.2 is 0.3, and exponents
// up to 2^16383.

// IncrBy adds to an integer and returns the result. A missing key counts as 0. It writes in place
// and allocates nothing if the length does not change. Errors: ErrWrongType, ErrNotInteger,
// ErrOverflow, ErrFull.
func (tx *Tx) IncrBy(key []byte, by int64) (int64, error) {
	h, err := tx.str(key)
	if err != nil {
		return 0, err
	}
	n, err := h.integer()
	if err != nil {
		return 0, err
	}
	if overflows(n, by) {
		return 0, ErrOverflow
	}
	n += by
	if err := tx.replace(&h, key, tx.itoa(0, n), 0); err != nil {
		return 0, err
	}
	if tx.db.logging.Load() {
		tx.emit("INCRBY", key, tx.itoa(1, by))
	}
	tx.changed(key, EventString, "incrby")
	return n, nil
}

// integer returns the integer in the string of h, 0 for a missing key.
func (h *hit) integer() (int64, error) {
	if h.r == nil {
		return 0, nil
	}
	return parseInt(h.sp.value(h.r))
}

func overflows(n, by int64) bool {
	return by > 0 && n > math.MaxInt64-by || by < 0 && n < math.MinInt64-by
}

// Life is a change of a key's deadline.
type Life struct {
	Deadline int64 // ms since 1970; 0: unchanged
	Span     int64 // ms; above 0 the deadline slides by it with every read
	Persist  bool  // remove the deadline
	OnlyNew  bool  // keep a deadline that the key already has (ENX)
}

// IncrOptions configure IncrBounded.
type IncrOptions struct {
	Low, High int64 // the bounds of the result, both included
	Saturate  bool  // a result out of bounds becomes the nearest bound
	Life      Life
}

// IncrBounded does the work of IncrBy with bounds and a deadline. It returns the new value and the number that it
// added. Without Saturate, a result out of the bounds or of 64 bits changes nothing, and added is
// 0. Errors: as IncrBy; ErrOverflow only if added does not fit 64 bits.
func (tx *Tx) IncrBounded(key []byte, by int64, o IncrOptions) (n, added int64, err error) {
	h, err := tx.str(key)
	if err != nil {
		return 0, 0, err
	}
	old, err := h.integer()
	if err != nil {
		return 0, 0, err
	}
	switch {
	case !overflows(old, by):
		n = old + by
	case by > 0:
		n = math.MaxInt64
	default:
		n = math.MinInt64
	}
	bounded := max(min(n, o.High), o.Low)
	if (bounded != n || overflows(old, by)) && !o.Saturate {
		return old, 0, nil
	}
	n, added = bounded, bounded-old
	if (n > old) != (added > 0) {
		return 0, 0, ErrOverflow
	}
	if err := tx.replace(&h, key, tx.itoa(2, n), 0); err != nil {
		return 0, 0, err
	}
	tx.settleIncr(&h, key, tx.itoa(2, n), "incrby", o.Life)
	return n, added, nil
}

// settleIncr changes the deadline of a number that was set, and logs and reports both changes.
func (tx *Tx) settleIncr(h *hit, key, val []byte, event string, l Life) {
	had := h.r.has(flagDeadline)
	expires := l.Deadline != 0 && !(l.OnlyNew && had)
	if expires {
		*h = tx.find(key) // h has no position yet if the key is new
	}
	switch {
	case expires && l.Deadline <= tx.ms && !tx.replay:
		tx.changed(key, EventString, event)
		tx.drop(h)
		tx.emit("DEL", key)
		tx.changed(key, EventGeneric, "del")
		return
	case expires:
		tx.setDeadline(h, key, l.Deadline, l.Span)
		tx.cutFresh(h)
	case l.Persist && had:
		tx.setDeadline(h, key, 0, 0)
	}
	if tx.db.logging.Load() {
		tx.emitSet(key, val, kept(h, 0))
	}
	tx.changed(key, EventString, event)
	if tx.db.notify.Load()&EventGeneric != 0 {
		switch {
		case expires:
			tx.event(EventGeneric, "expire", key)
		case l.Persist && had:
			tx.event(EventGeneric, "persist", key)
		}
	}
}

// IncrByFloat adds to a number and returns the stored result: decimal, without an exponent, at most
// 17 digits after the point, valid until the next call. It reads numbers as C's strtold does, but no spaces and no NaN.
// Errors: ErrWrongType, ErrNotFloat, ErrNaN, ErrFull.
func (tx *Tx) IncrByFloat(key, by []byte) ([]byte, error) {
	h, err := tx.str(key)
	if err != nil {
		return nil, err
	}
	old := []byte("0")
	if h.r != nil {
		old = h.sp.value(h.r)
	}
	out, short := tx.addDecimals(old, by)
	if !short {
		n, err := parseFloat(old)
		if err != nil {
			return nil, err
		}
		d, err := parseFloat(by)
		if err != nil {
			return nil, err
		}
		if n, err = addFloat(n, d); err != nil {
			return nil, err
		}
		out = formatFloat(n)
	}
	if err := tx.replace(&h, key, out, 0); err != nil {
		return nil, err
	}
	if tx.db.logging.Load() {
		tx.emitSet(key, out, kept(&h, 0))
	}
	tx.changed(key, EventString, "incrbyfloat")
	return out, nil
}

// float returns the number in the string of h, 0 for a missing key.
func (h *hit) float() (*big.Float, error) {
	if h.r == nil {
		return new(big.Float).SetPrec(floatPrec), nil
	}
	return parseFloat(h.sp.value(h.r))
}

// FloatOptions configure IncrBoundedFloat.
type FloatOptions struct {
	Low, High []byte // the bounds of the result, both included; nil: any finite number
	Saturate  bool   // a result out of bounds becomes the nearest bound
	Life      Life
}

// ErrBounds: the lower bound is above the upper one.
const ErrBounds = boundsError("the lower bound is above the upper bound")

type boundsError string

func (e boundsError) Error() string { return string(e) }

// IncrBoundedFloat does the work of IncrBounded for the numbers of IncrByFloat. Errors: those of IncrByFloat,
// ErrBounds.
func (tx *Tx) IncrBoundedFloat(key, by []byte, o FloatOptions) (n, added []byte, err error) {
	low, high, err := o.bounds()
	if err != nil {
		return nil, nil, err
	}
	d, err := parseFloat(by)
	if err != nil {
		return nil, nil, err
	}
	h, err := tx.str(key)
	if err != nil {
		return nil, nil, err
	}
	old, err := h.float()
	if err != nil {
		return nil, nil, err
	}
	if old.IsInf() || d.IsInf() {
		return nil, nil, ErrNaN
	}
	sum := new(big.Float).SetPrec(floatPrec).Add(old, d)
	bounded := sum
	if sum.Cmp(high) > 0 {
		bounded = high
	}
	if bounded.Cmp(low) < 0 {
		bounded = low
	}
	if bounded != sum && !o.Saturate {
		return formatFloat(old), []byte("0"), nil
	}
	n = formatFloat(bounded)
	added = formatFloat(new(big.Float).SetPrec(floatPrec).Sub(bounded, old))
	if err := tx.replace(&h, key, n, 0); err != nil {
		return nil, nil, err
	}
	tx.settleIncr(&h, key, n, "incrbyfloat", o.Life)
	return n, added, nil
}

func (o *FloatOptions) bounds() (low, high *big.Float, err error) {
	high = new(big.Float).SetPrec(floatPrec).SetMantExp(big.NewFloat(1), floatMaxExp)
	high.Sub(high, new(big.Float).SetMantExp(big.NewFloat(1), floatMaxExp-floatPrec))
	low = new(big.Float).Neg(high)
	if o.Low != nil {
		if low, err = parseFloat(o.Low); err != nil {
			return nil, nil, err
		}
	}
	if o.High != nil {
		if high, err = parseFloat(o.High); err != nil {
			return nil, nil, err
		}
	}
	if low.Cmp(high) > 0 {
		return nil, nil, ErrBounds
	}
	return low, high, nil
}

// parseInt parses a canonical decimal: no spaces, no plus, no leading zeros.
func parseInt(b []byte) (int64, error) {
	if len(b) == 0 || len(b) > 20 {
		return 0, ErrNotInteger
	}
	d := b
	neg := d[0] == '-'
	if neg {
		d = d[1:]
	}
	if len(d) == 0 || d[0] == '0' && (len(d) > 1 || neg) {
		return 0, ErrNotInteger
	}
	var n uint64
	for _, c := range d {
		if c < '0' || c > '9' || n > math.MaxUint64/10 {
			return 0, ErrNotInteger
		}
		n = n*10 + uint64(c-'0')
	}
	switch {
	case neg && n <= 1<<63:
		return -int64(n), nil
	case !neg && n < 1<<63 && len(d) <= 19:
		return int64(n), nil
	}
	return 0, ErrNotInteger
}

// The format of a long double: the bits of the mantissa, the binary exponent from which on a number
// is infinite, and the one up to which it is zero.
const (
	floatPrec   = 64
	floatMaxExp = 16384
	floatMinExp = -16446
	floatChars  = 5 << 10 // the longest number that Redis reads, in bytes
)

// addFloat returns a + b, rounded; ErrNaN if that is not finite.
func addFloat(a, b *big.Float) (*big.Float, error) {
	if a.IsInf() || b.IsInf() {
		return nil, ErrNaN
	}
	sum := new(big.Float).SetPrec(floatPrec).Add(a, b)
	if sum.MantExp(nil) > floatMaxExp {
		return nil, ErrNaN
	}
	return sum, nil
}

// formatFloat prints a number with up to 17 digits after the point, without trailing zeros.
func formatFloat(f *big.Float) []byte {
	b := f.Append(nil, 'f', 17)
	b = bytes.TrimRight(b, "0")
	b = bytes.TrimSuffix(b, []byte("."))
	if string(b) == "-0" {
		return []byte("0")
	}
	return b
}

// parseFloat parses a number as C's strtold does, but no NaN and no spaces. A number that is too
// large, or so small that it rounds to 0, is an error; "inf" is not. Rounding is exact.
func parseFloat(b []byte) (*big.Float, error) {
	s, neg := b, false
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		s, neg = s[1:], s[0] == '-'
	}
	if bytes.EqualFold(s, []byte("inf")) || bytes.EqualFold(s, []byte("infinity")) {
		return new(big.Float).SetInf(neg), nil
	}
	if len(s) == 0 || len(b) >= floatChars {
		return nil, ErrNotFloat
	}
	base, mark := 10, byte('e')
	if len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'x' {
		base, mark, s = 16, 'p', s[2:]
	}
	digits, behind, rest := scanDigits(s, base)
	exp, ok := scanExponent(rest, mark)
	if len(digits) == 0 || !ok {
		return nil, ErrNotFloat
	}
	digits = bytes.TrimLeft(digits, "0")
	if len(digits) == 0 {
		z := new(big.Float).SetPrec(floatPrec)
		if neg {
			z.Neg(z)
		}
		return z, nil
	}
	f, ok := scaled(digits, base, behind, exp)
	if !ok {
		return nil, ErrNotFloat
	}
	if neg {
		f.Neg(f)
	}
	return f, nil
}

// scanDigits returns the digits at the start of a number, without the point, and the number of
// digits after the point.
func scanDigits(s []byte, base int) (digits []byte, behind int, rest []byte) {
	point := false
	i := 0
	for ; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '.' && !point:
			point = true
			continue
		case c-'0' <= 9, base == 16 && c|0x20 >= 'a' && c|0x20 <= 'f':
			digits = append(digits, c)
			if point {
				behind++
			}
			continue
		}
		break
	}
	return digits, behind, s[i:]
}

// farExponent is greater than the exponent of every number of floatChars digits that is neither
// infinite nor 0.
const farExponent = 100_000

// scanExponent reads the exponent, if there is one; ok is false if s is something else.
func scanExponent(s []byte, mark byte) (exp int, ok bool) {
	if len(s) == 0 {
		return 0, true
	}
	if s[0]|0x20 != mark || len(s) < 2 {
		return 0, false
	}
	s = s[1:]
	neg := s[0] == '-'
	if neg || s[0] == '+' {
		s = s[1:]
	}
	for _, c := range s {
		if c-'0' > 9 {
			return 0, false
		}
		exp = min(exp*10+int(c-'0'), farExponent)
	}
	if neg {
		exp = -exp
	}
	return exp, len(s) > 0
}

// scaled returns the number with these digits, of which behind are after the point, times 10 (for
// base 16: 2) to the power of exp. ok is false if the result is infinite or 0.
func scaled(digits []byte, base, behind, exp int) (f *big.Float, ok bool) {
	n, _ := new(big.Int).SetString(string(digits), base)
	f = new(big.Float).SetPrec(floatPrec)
	if base == 16 {
		f.SetInt(n)
		f.SetMantExp(f, exp-4*behind)
	} else {
		exp -= behind
		if size := len(digits) + exp; size > floatMaxExp/3 || size < floatMinExp/3 {
			return nil, false // 10 is more than 2^3
		}
		power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exp, -exp))), nil)
		if exp >= 0 {
			f.SetInt(n.Mul(n, power))
		} else {
			f.Quo(new(big.Float).SetInt(n), new(big.Float).SetInt(power))
		}
	}
	e := f.MantExp(nil) // f is in [0.5, 1) * 2^e
	return f, e <= floatMaxExp && e > floatMinExp+1
}
