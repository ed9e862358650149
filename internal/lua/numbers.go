package lua

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// FormatNumber is tostring of a number: C's "%.14g".
func FormatNumber(f float64) string {
	var b [32]byte
	return string(AppendNumber(b[:0], f))
}

// AppendNumber appends FormatNumber.
func AppendNumber(b []byte, f float64) []byte {
	// Fourteen digits hold what is below 1e14; the zero may be negative.
	if i := int64(f); float64(i) == f && -1e14 < f && f < 1e14 && (i != 0 || !math.Signbit(f)) {
		return strconv.AppendInt(b, i, 10)
	}
	if math.IsInf(f, 0) || math.IsNaN(f) {
		if math.Signbit(f) {
			b = append(b, '-')
		}
		return append(b, notFinite(f)...)
	}
	return strconv.AppendFloat(b, f, 'g', 14, 64)
}

// notFinite returns what glibc prints for a number that is not finite, without its sign,
// which it prints before a NaN as well.
func notFinite(f float64) string {
	if math.IsNaN(f) {
		return "nan"
	}
	return "inf"
}

// ParseNumber converts a string to a number as Lua does where it wants one: it accepts what
// ParseDouble does, with space around it. A zero byte ends the string, as in C.
func ParseNumber(s string) (float64, bool) {
	if f, ok := parseShort(s); ok {
		return f, true
	}
	f, n := ParseDouble(s)
	if n == 0 {
		return 0, false
	}
	for ; n < len(s) && s[n] != 0; n++ {
		if !isSpace(s[n]) {
			return 0, false
		}
	}
	return f, true
}

// parseShort does the work of ParseNumber for up to fifteen decimal digits and a minus, which
// are most numbers in texts: such an integer is exact.
func parseShort(s string) (float64, bool) {
	digits := s
	if s != "" && s[0] == '-' {
		digits = s[1:]
	}
	if len(digits) == 0 || len(digits) > 15 {
		return 0, false
	}
	n := int64(0)
	for i := 0; i < len(digits); i++ {
		d := digits[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + int64(d)
	}
	f := float64(n)
	if len(digits) != len(s) {
		f = -f // not -n: "-0" is the negative zero
	}
	return f, true
}

// ParseDouble is C's strtod: the number that s begins with, after space (decimal,
// hexadecimal, "inf", "nan"), and how many bytes it takes; 0 if there is none.
func ParseDouble(s string) (f float64, n int) {
	i := 0
	for i < len(s) && isSpace(s[i]) {
		i++
	}
	negative := false
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		negative = s[i] == '-'
		i++
	}
	f, n = parseUnsigned(s[i:])
	if n == 0 {
		return 0, 0
	}
	if negative {
		f = math.Copysign(f, -1)
	}
	return f, i + n
}

func parseUnsigned(s string) (f float64, n int) {
	if s == "" {
		return 0, 0
	}
	switch c := s[0]; {
	case c == '0' && len(s) > 1 && s[1]|0x20 == 'x':
		return parseHex(s)
	case isDigit(c) || c == '.':
		return parseDecimal(s)
	case hasWord(s, "infinity"):
		return math.Inf(1), len("infinity")
	case hasWord(s, "inf"):
		return math.Inf(1), len("inf")
	case hasWord(s, "nan"):
		return math.Float64frombits(0x7ff8 << 48), nanLength(s)
	}
	return 0, 0
}

// hasWord reports whether s begins with a word in letters of any case.
func hasWord(s, word string) bool {
	return len(s) >= len(word) && strings.EqualFold(s[:len(word)], word)
}

// nanLength returns how much of s, which begins with "nan", belongs to the number: it may
// end with "(...)" around letters, digits and underscores.
func nanLength(s string) int {
	if len(s) > 3 && s[3] == '(' {
		i := 4
		for i < len(s) && (isAlnum(s[i]) || s[i] == '_') {
			i++
		}
		if i < len(s) && s[i] == ')' {
			return i + 1
		}
	}
	return 3
}

// parseDecimal takes digits, a point and an exponent. strconv rounds as strtod
// does, but takes more than C (underscores), so it is given no more than these.
func parseDecimal(s string) (f float64, n int) {
	n, digits := mantissa(s, isDigit)
	if digits == 0 {
		return 0, 0
	}
	n += exponent(s[n:], 'e')
	f, _ = strconv.ParseFloat(s[:n], 64) // an error is an overflow, which yields an infinity
	return f, n
}

// parseHex takes "0x", hexadecimal digits, a point and a binary exponent; no more
// than the zero if there are no digits.
func parseHex(s string) (f float64, n int) {
	n, digits := mantissa(s[2:], isHexDigit)
	if digits == 0 {
		return 0, 1
	}
	n += 2
	if e := exponent(s[n:], 'p'); e > 0 {
		f, _ = strconv.ParseFloat(s[:n+e], 64)
		return f, n + e
	}
	if u, err := strconv.ParseUint(s[2:n], 16, 64); err == nil {
		return float64(u), n
	}
	f, _ = strconv.ParseFloat(s[:n]+"p0", 64) // strconv wants an exponent
	return f, n
}

// mantissa returns the length of the digits, with at most one point among them, that s
// begins with, and how many digits there are.
func mantissa(s string, digit func(byte) bool) (n, digits int) {
	point := false
	for ; n < len(s); n++ {
		if s[n] == '.' && !point {
			point = true
		} else if digit(s[n]) {
			digits++
		} else {
			break
		}
	}
	return n, digits
}

// exponent returns the length of the exponent that s begins with: the letter, a sign and
// digits; 0 if there is none.
func exponent(s string, letter byte) int {
	if s == "" || s[0]|0x20 != letter {
		return 0
	}
	i := 1
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	if i == len(s) || !isDigit(s[i]) {
		return 0
	}
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
}

// The following are those of C in its own locale, where no byte above 127 is in
// any class.

func isDigit(c byte) bool    { return c-'0' <= 9 }
func isHexDigit(c byte) bool { return c-'0' <= 9 || (c|0x20)-'a' <= 5 }
func isAlnum(c byte) bool    { return c-'0' <= 9 || (c|0x20)-'a' <= 25 }
func isSpace(c byte) bool    { return c == ' ' || c-'\t' <= '\r'-'\t' }

// conversion is one conversion of a printf format: "%-10.3g".
type conversion struct {
	minus, plus, space, alternate, zero bool

	width     int
	precision int // -1: none is given
	verb      byte
}

// parseConversion reads a conversion from after its '%'. There may be at most two
// digits of width and of precision, for which the caller has looked.
func parseConversion(spec string) conversion {
	v := conversion{precision: -1}
	i := 0
flags:
	for ; ; i++ {
		switch spec[i] {
		case '-':
			v.minus = true
		case '+':
			v.plus = true
		case ' ':
			v.space = true
		case '#':
			v.alternate = true
		case '0':
			v.zero = true
		default:
			break flags
		}
	}
	for ; isDigit(spec[i]); i++ {
		v.width = v.width*10 + int(spec[i]-'0')
	}
	if spec[i] == '.' {
		v.precision = 0
		for i++; isDigit(spec[i]); i++ {
			v.precision = v.precision*10 + int(spec[i]-'0')
		}
	}
	v.verb = spec[i]
	return v
}

// AppendFormatG appends f as C's "%.*g" does.
func AppendFormatG(b []byte, f float64, precision int) []byte {
	return conversion{precision: precision, verb: 'g'}.appendFloat(b, f)
}

// appendSign appends what stands before a number.
func (v conversion) appendSign(b []byte, negative bool) []byte {
	switch {
	case negative:
		return append(b, '-')
	case v.plus:
		return append(b, '+')
	case v.space:
		return append(b, ' ')
	}
	return b
}

// pad fills up to the width what was appended since len(b) was start; zeros go
// to digits, which is where the sign and a prefix end.
func (v conversion) pad(b []byte, start, digits int, zero bool) []byte {
	n := v.width - (len(b) - start)
	if n <= 0 {
		return b
	}
	at, fill := start, byte(' ')
	switch {
	case v.minus:
		at = len(b)
	case zero:
		at, fill = digits, '0'
	}
	for range n {
		b = append(b, fill)
	}
	if at != len(b)-n {
		copy(b[at+n:], b[at:len(b)-n])
		for i := range n {
			b[at+i] = fill
		}
	}
	return b
}

// appendFloat appends f as the conversion's verb (one of e E f F g G) says.
func (v conversion) appendFloat(b []byte, f float64) []byte {
	start := len(b)
	b = v.appendSign(b, math.Signbit(f))
	digits := len(b)
	f = math.Abs(f)
	finite := !math.IsInf(f, 0) && !math.IsNaN(f)
	if finite {
		b = v.appendDigits(b, f)
	} else {
		b = append(b, notFinite(f)...)
	}
	if v.verb < 'a' {
		for i := digits; i < len(b); i++ {
			b[i] = toUpper(b[i])
		}
	}
	return v.pad(b, start, digits, v.zero && finite)
}

// appendDigits appends f, finite and not negative, in small letters.
func (v conversion) appendDigits(b []byte, f float64) []byte {
	precision := v.precision
	if precision < 0 {
		precision = 6
	}
	start := len(b)
	switch v.verb | 0x20 {
	case 'e':
		b = strconv.AppendFloat(b, f, 'e', precision, 64)
	case 'f':
		b = appendFixed(b, f, precision)
	default:
		precision = max(precision, 1)
		if !v.alternate {
			return strconv.AppendFloat(b, f, 'g', precision, 64)
		}
		// With '#' the zeros at the end stay. The exponent that decides is
		// that of the rounded number.
		b = strconv.AppendFloat(b, f, 'e', precision-1, 64)
		e := len(b) - 1
		for b[e] != 'e' {
			e--
		}
		if x, _ := strconv.Atoi(string(b[e+1:])); -4 <= x && x < precision {
			b = strconv.AppendFloat(b[:start], f, 'f', precision-1-x, 64)
		}
	}
	if v.alternate {
		b = withPoint(b, start)
	}
	return b
}

// withPoint puts a point behind the digits that begin at start, if they have
// none.
func withPoint(b []byte, start int) []byte {
	i := start
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	if i < len(b) && b[i] == '.' {
		return b
	}
	b = append(b, 0)
	copy(b[i+1:], b[i:])
	b[i] = '.'
	return b
}

var powersOfTen = [...]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// appendFixed is "%.*f" of a number that is finite and not negative. For those
// of middling size it is faster than strconv, which computes with all decimals:
// f is m / 2^shift, so that the digits are exact in 128 bits.
func appendFixed(b []byte, f float64, precision int) []byte {
	u := math.Float64bits(f)
	m, shift := u&(1<<52-1)|1<<52, 1075-int(u>>52)
	if shift < 1 || shift > 63 || precision >= len(powersOfTen) {
		return strconv.AppendFloat(b, f, 'f', precision, 64)
	}
	whole, scale := m>>shift, powersOfTen[precision]
	hi, lo := bits.Mul64(m&(1<<shift-1), scale)
	part := hi<<(64-shift) | lo>>shift
	rest, half := lo&(1<<shift-1), uint64(1)<<(shift-1)
	odd := part&1 != 0
	if precision == 0 {
		odd = whole&1 != 0
	}
	if rest > half || rest == half && odd {
		part++
	}
	if part == scale {
		whole, part = whole+1, 0
	}
	b = strconv.AppendUint(b, whole, 10)
	if precision == 0 {
		return b
	}
	b = append(b, '.')
	at := len(b)
	for range precision {
		b = append(b, '0')
	}
	for i := len(b) - 1; i >= at && part != 0; i-- {
		b[i] = byte('0' + part%10)
		part /= 10
	}
	return b
}

func toUpper(c byte) byte {
	if c-'a' <= 25 {
		return c - 0x20
	}
	return c
}
