package lua

import (
	"strconv"
	"strings"
)

// format implements string.format. A conversion of a value that has no flags, width or
// precision, as most have, takes a quick road.
func (l *stringLib) format(c Call) error {
	f, err := c.CheckString(1)
	if err != nil {
		return err
	}
	b := l.takeScratch()
	arg := 1
	for {
		i := strings.IndexByte(f, '%')
		if i < 0 {
			break
		}
		if b, err = l.append(b, f[:i]); err != nil {
			return l.dropScratch(b, err)
		}
		f = f[i+1:]
		if f != "" && f[0] == '%' {
			if b, err = l.append(b, "%"); err != nil {
				return l.dropScratch(b, err)
			}
			f = f[1:]
			continue
		}
		if arg++; arg > c.N() {
			return l.dropScratch(b, c.ArgError(arg, "no value"))
		}
		n, err := verbIndex(c, f)
		if err != nil {
			return l.dropScratch(b, err)
		}
		if n == len(f) {
			return l.dropScratch(b, c.Errorf("invalid option '%%' to 'format'"))
		}
		if b, err = l.appendArgument(b, f[:n+1], c, arg); err != nil {
			return l.dropScratch(b, err)
		}
		f = f[n+1:]
	}
	if b, err = l.append(b, f); err != nil {
		return l.dropScratch(b, err)
	}
	v, err := l.finish(b)
	if err != nil {
		return err
	}
	return c.Return(v)
}

// verbIndex returns where in f, from after a '%', the verb of the conversion is:
// behind flags, two digits, a point and two digits.
func verbIndex(c Call, f string) (int, error) {
	if f != "" && f[0] >= 'A' {
		return 0, nil
	}
	at := func(i int) byte {
		if i < len(f) {
			return f[i]
		}
		return 0
	}
	i := 0
	for i < len(f) && strings.IndexByte("-+ #0", f[i]) >= 0 {
		i++
	}
	if i > 5 {
		return 0, c.Errorf("invalid format (repeated flags)")
	}
	twoDigits := func() {
		for n := 0; n < 2 && isDigit(at(i)); n++ {
			i++
		}
	}
	twoDigits()
	if at(i) == '.' {
		i++
		twoDigits()
	}
	if isDigit(at(i)) {
		return 0, c.Errorf("invalid format (width or precision too long)")
	}
	return i, nil
}

// longFormat is the length of a string from which on "%s" does not look at it: it
// is appended whole, zero bytes and all, unless a precision is given.
const longFormat = 100

// maxItem is more than a conversion of a number can yield: the largest has 309
// digits before the point and 99 after it.
const maxItem = 512

// appendArgument appends an argument as the conversion spec (without its '%')
// says.
func (l *stringLib) appendArgument(b []byte, spec string, c Call, arg int) ([]byte, error) {
	verb := spec[len(spec)-1]
	switch verb {
	case 's':
		s, err := c.CheckString(arg)
		if err != nil {
			return b, err
		}
		return l.appendString(b, spec, s)
	case 'q':
		s, err := c.CheckString(arg)
		if err != nil {
			return b, err
		}
		return l.appendQuoted(b, s)
	case 'c', 'd', 'i', 'o', 'u', 'x', 'X', 'e', 'E', 'f', 'g', 'G':
		f, err := c.CheckNumber(arg)
		if err != nil {
			return b, err
		}
		if b, err = l.reserve(b, maxItem); err != nil {
			return b, err
		}
		if spec == "d" {
			return strconv.AppendInt(b, ToInt64(f), 10), nil
		}
		return parseConversion(spec).appendNumber(b, f), nil
	}
	option := string([]byte{'%', verb})
	if verb == 0 {
		option = "%" // C's "%c" of a zero byte ends the text
	}
	return b, c.Errorf("invalid option '%s' to 'format'", option)
}

// appendString is "%s": unless the string is long, it ends at a zero byte, as
// for C's printf.
func (l *stringLib) appendString(b []byte, spec, s string) ([]byte, error) {
	v := conversion{precision: -1}
	if spec != "s" {
		v = parseConversion(spec)
	}
	if v.precision < 0 && len(s) >= longFormat {
		return l.append(b, s)
	}
	if i := strings.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	if v.precision >= 0 && v.precision < len(s) {
		s = s[:v.precision]
	}
	b, err := l.reserve(b, max(len(s), v.width))
	if err != nil {
		return b, err
	}
	start := len(b)
	return v.pad(append(b, s...), start, 0, false), nil
}

// appendQuoted is "%q": a string as a program would write it.
func (l *stringLib) appendQuoted(b []byte, s string) ([]byte, error) {
	more := 2
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"', '\\', '\n', '\r':
			more++
		case 0:
			more += 3
		}
	}
	if err := l.spend(len(s)); err != nil {
		return b, err
	}
	b, err := l.reserve(b, len(s)+more)
	if err != nil {
		return b, err
	}
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"', '\\', '\n':
			b = append(b, '\\', c)
		case '\r':
			b = append(b, `\r`...)
		case 0:
			b = append(b, `\000`...)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"'), nil
}

// appendNumber appends f as the conversion's verb says.
func (v conversion) appendNumber(b []byte, f float64) []byte {
	switch v.verb {
	case 'c':
		return v.appendByte(b, byte(ToInt32(f)))
	case 'd', 'i':
		i := ToInt64(f)
		u := uint64(i)
		if i < 0 {
			u = -u
		}
		start := len(b)
		b = v.appendSign(b, i < 0)
		return v.appendInteger(b, start, u, 10)
	case 'u':
		return v.appendInteger(b, len(b), ToUint64(f), 10)
	case 'o':
		return v.appendInteger(b, len(b), ToUint64(f), 8)
	case 'x', 'X':
		return v.appendHex(b, ToUint64(f))
	}
	return v.appendFloat(b, f)
}

// appendByte is "%c". C's string ends at a zero byte, and with it what is padded
// behind it.
func (v conversion) appendByte(b []byte, c byte) []byte {
	if c != 0 {
		start := len(b)
		return v.pad(append(b, c), start, 0, false)
	}
	if !v.minus {
		for range v.width - 1 {
			b = append(b, ' ')
		}
	}
	return b
}

// appendInteger appends the digits of u; a sign may have been appended since
// start.
func (v conversion) appendInteger(b []byte, start int, u uint64, base int) []byte {
	digits := len(b)
	if u != 0 || v.precision != 0 {
		b = strconv.AppendUint(b, u, base)
	}
	least := v.precision
	if base == 8 && v.alternate && (len(b) == digits || b[digits] != '0') {
		least = max(least, len(b)-digits+1)
	}
	b = conversion{width: least}.pad(b, digits, digits, true)
	return v.pad(b, start, digits, v.zero && v.precision < 0)
}

func (v conversion) appendHex(b []byte, u uint64) []byte {
	start := len(b)
	if v.alternate && u != 0 {
		b = append(b, "0x"...)
	}
	b = v.appendInteger(b, start, u, 16)
	if v.verb == 'X' {
		for i := start; i < len(b); i++ {
			b[i] = toUpper(b[i])
		}
	}
	return b
}
