// Package numeral reads and writes numbers as Redis spells them.
//
//	text ── ParseInt, ParseDouble ──> number ── AppendDouble ──> text
//
// Invariant: ParseDouble reads back what AppendDouble writes, "nan" excepted.
//
// Start reading at ParseDouble.
package numeral

import (
	"math"
	"strconv"
)

// ParseInt reads a decimal integer in the one spelling that Redis accepts: an optional
// minus sign, no plus sign, no leading zeros, no spaces, within 64 bits. ParseInt and
// strconv.AppendInt are inverses; "-0" is not a number. It allocates nothing.
func ParseInt[T []byte | string](s T) (n int64, ok bool) {
	i, neg := 0, false
	if len(s) > 0 && s[0] == '-' {
		i, neg = 1, true
	}
	digits := len(s) - i
	if digits < 1 || digits > 19 {
		return 0, false
	}
	if s[i] == '0' {
		return 0, len(s) == 1
	}
	var u uint64 // 19 digits stay below 1e19, which fits
	for ; i < len(s); i++ {
		d := s[i] - '0'
		if d > 9 {
			return 0, false
		}
		u = u*10 + uint64(d)
	}
	if neg {
		return -int64(u), u <= 1<<63
	}
	return int64(u), u < 1<<63
}

// ParseDouble reads a floating-point number as Redis does for scores and increments. It
// accepts what C's strtod accepts, if strtod would read the whole text. That includes
// "inf", "infinity" and hexadecimal numbers in any case and with either sign. It refuses
// the empty string, spaces at either end, "nan", and numbers that overflow or underflow
// (1e400, 1e-400). Callers then reply "ERR value is not a valid float". It allocates
// nothing for numbers below 64 bytes.
func ParseDouble[T []byte | string](s T) (f float64, ok bool) {
	kind, nonzero := scanDouble(s)
	if kind == notDouble {
		return 0, false
	}
	if n, ok := ParseInt(s); ok && n > -1<<53 && n < 1<<53 {
		return float64(n), true
	}
	text := string(s)
	if kind == hexWithoutExponent {
		text += "p0" // Go wants an exponent, C does not
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || (f == 0 && nonzero) {
		return 0, false
	}
	return f, true
}

type doubleKind uint8

const (
	notDouble doubleKind = iota
	decimalDouble
	hexWithExponent
	hexWithoutExponent
)

// scanDouble checks the grammar. nonzero reports a digit other than zero before the
// exponent: it distinguishes an underflow from a zero.
func scanDouble[T []byte | string](s T) (kind doubleKind, nonzero bool) {
	i := 0
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	if equalFold(s, i, "inf") || equalFold(s, i, "infinity") {
		return decimalDouble, true
	}
	hex := i+1 < len(s) && s[i] == '0' && s[i+1]|0x20 == 'x'
	exponent := byte('e')
	kind = decimalDouble
	if hex {
		i += 2
		exponent, kind = 'p', hexWithoutExponent
	}
	digits, point := 0, false
	for ; i < len(s); i++ {
		c := s[i]
		switch {
		case isDigit(c) || hex && isHex(c):
			digits++
			nonzero = nonzero || c != '0'
			continue
		case c == '.' && !point:
			point = true
			continue
		}
		break
	}
	if digits == 0 {
		return notDouble, false
	}
	if i == len(s) {
		return kind, nonzero
	}
	if s[i]|0x20 != exponent {
		return notDouble, false
	}
	i++
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	if i == len(s) {
		return notDouble, false
	}
	for ; i < len(s); i++ {
		if !isDigit(s[i]) {
			return notDouble, false
		}
	}
	if hex {
		kind = hexWithExponent
	}
	return kind, nonzero
}

// equalFold reports whether s from i on is word, which is in lower case.
func equalFold[T []byte | string](s T, i int, word string) bool {
	if len(s)-i != len(word) {
		return false
	}
	for j := range len(word) {
		if s[i+j]|0x20 != word[j] {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return c-'0' <= 9 }

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// AppendDouble appends f as Redis 7.2 prints scores: the shortest text that
// reads back as f, "inf", "-inf", "nan". Whole numbers up to 2^62 are written
// out; otherwise the exponent appears where it saves more than seven places
// (1e-7, 1e+22), with its sign and without leading zeros. It allocates nothing
// but dst's growth.
func AppendDouble(dst []byte, f float64) []byte {
	switch {
	case f != f:
		return append(dst, "nan"...)
	case f > math.MaxFloat64:
		return append(dst, "inf"...)
	case f < -math.MaxFloat64:
		return append(dst, "-inf"...)
	case f == 0 && math.Signbit(f):
		return append(dst, "-0"...)
	case f >= -1<<62 && f <= 1<<62 && f == math.Trunc(f):
		return strconv.AppendInt(dst, int64(f), 10)
	}
	if f < 0 {
		dst, f = append(dst, '-'), -f
	}
	digits, point := shortest(f)
	return appendDigits(dst, digits.b[:digits.n], point-digits.n)
}

// decimal holds the digits of a number. 17 digits identify any float64.
type decimal struct {
	b [17]byte
	n int
}

// shortest returns the fewest digits that identify f > 0, and the place of the
// decimal point: f = 0.digits * 10^point.
func shortest(f float64) (d decimal, point int) {
	var buf [32]byte
	text := strconv.AppendFloat(buf[:0], f, 'e', -1, 64) // d.ddde±xx
	i := 0
	for ; text[i] != 'e'; i++ {
		if text[i] != '.' {
			d.b[d.n] = text[i]
			d.n++
		}
	}
	neg := text[i+1] == '-'
	exp := 0
	for _, c := range text[i+2:] {
		exp = exp*10 + int(c-'0')
	}
	if neg {
		exp = -exp
	}
	return d, exp + 1
}

// appendDigits writes digits * 10^k with or without an exponent, by the rule
// AppendDouble states.
func appendDigits(dst, digits []byte, k int) []byte {
	exp := k + len(digits) - 1 // of the first digit
	size := max(exp, -exp)
	switch {
	case k >= 0 && size < len(digits)+7:
		dst = append(dst, digits...)
		return appendZeros(dst, k)
	case k < 0 && (k > -7 || size < 4):
		whole := len(digits) + k
		if whole <= 0 {
			dst = append(dst, "0."...)
			dst = appendZeros(dst, -whole)
			return append(dst, digits...)
		}
		dst = append(dst, digits[:whole]...)
		dst = append(dst, '.')
		return append(dst, digits[whole:]...)
	}
	dst = append(dst, digits[0])
	if len(digits) > 1 {
		dst = append(dst, '.')
		dst = append(dst, digits[1:]...)
	}
	dst = append(dst, 'e')
	if exp >= 0 {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, int64(exp), 10)
}

func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}
