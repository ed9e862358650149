package engine

import "strconv"

// decimal is the number digits / 10^scale.
type decimal struct {
	digits int64
	scale  int
}

// decimalDigits is the greatest number of digits of a decimal: the sum of two with the same scale fits 64
// bits. It is also the greatest number of digits that a sum may have after the point.
const decimalDigits = 17

// parseDecimal parses a short number without an exponent; ok is false for any other text.
func parseDecimal(b []byte) (d decimal, ok bool) {
	neg := len(b) > 0 && b[0] == '-'
	if neg || len(b) > 0 && b[0] == '+' {
		b = b[1:]
	}
	digits, point := 0, -1
	for i, c := range b {
		switch {
		case c-'0' <= 9:
			d.digits = 10*d.digits + int64(c-'0')
			digits++
		case c == '.' && point < 0:
			point = i
		default:
			return d, false
		}
		if digits > decimalDigits {
			return d, false
		}
	}
	if point >= 0 {
		d.scale = len(b) - 1 - point
	}
	if neg {
		d.digits = -d.digits
	}
	return d, digits > 0
}

// scaledTo returns the number with a greater scale; ok is false if it has too many digits then.
func (d decimal) scaledTo(scale int) (_ decimal, ok bool) {
	for ; d.scale < scale; d.scale++ {
		d.digits *= 10
		if d.digits >= 1e18 || d.digits <= -1e18 {
			return d, false
		}
	}
	return d, true
}

// nearDecimals bounds the numbers for which the sum of two as long doubles, printed with 17 digits after the
// point, equals the sum of the decimals. Each of the two and the sum are off by at most 2^-64 of themselves,
// together less than half of the last digit.
const nearDecimals = 16

// addDecimals returns the sum of two numbers if addFloat and formatFloat certainly give the same result: both
// numbers are multiples of a power of 1/2, and so exact, or near 0. The sum is valid until the next call.
func (tx *Tx) addDecimals(x, y []byte) (sum []byte, ok bool) {
	a, ok := parseDecimal(x)
	if !ok {
		return nil, false
	}
	b, ok := parseDecimal(y)
	if !ok {
		return nil, false
	}
	scale := max(a.scale, b.scale)
	a, fits := a.scaledTo(scale)
	b, fit := b.scaledTo(scale)
	if !fits || !fit {
		return nil, false
	}
	fives, tens := int64(1), int64(1)
	for range scale {
		fives, tens = 5*fives, 10*tens
	}
	n := a.digits + b.digits
	exact := a.digits%fives == 0 && b.digits%fives == 0
	near := max(magnitude(a.digits), magnitude(b.digits), magnitude(n)) <= nearDecimals*uint64(tens)
	if !exact && !near {
		return nil, false
	}
	return decimal{n, scale}.append(tx.dec[:0]), true
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return uint64(-n)
	}
	return uint64(n)
}

// append appends the number as formatFloat prints it.
func (d decimal) append(dst []byte) []byte {
	for ; d.scale > 0 && d.digits%10 == 0; d.scale-- {
		d.digits /= 10
	}
	if d.digits < 0 {
		dst = append(dst, '-')
	}
	var b [20]byte
	text := strconv.AppendUint(b[:0], magnitude(d.digits), 10)
	whole := len(text) - d.scale
	if whole > 0 {
		dst = append(dst, text[:whole]...)
		text = text[whole:]
	} else {
		dst = append(dst, '0')
	}
	if d.scale == 0 {
		return dst
	}
	dst = append(dst, '.')
	for ; whole < 0; whole++ {
		dst = append(dst, '0')
	}
	return append(dst, text...)
}
