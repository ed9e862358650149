package resp

import (
	"bytes"
	"slices"
)

// The Append methods of this file print a reply byte for byte as redis-cli 7 does, with
// the line end after it.

// AppendTTY prints a reply for a person, as redis-cli does on a terminal or
// with --no-raw:
//
//  1. "a"                      strings are quoted, statuses are not
//  2. (integer) 7
//  3. 1~ (nil)                 a set; a push looks like an array
//     2~ (true)
//  4. 1# "k" => (double) 1.5   a map
//     2# "l" =>
//  1. (error) ERR x      an aggregate of more than one, on its own lines
//  2. (empty array)
//
// Big numbers, which redis-cli refuses to show, are "(big number) 123".
func (v Value) AppendTTY(dst []byte) []byte { return v.appendTTY(dst, nil) }

func (v Value) appendTTY(dst, prefix []byte) []byte {
	switch v.Kind {
	case KindStatus, KindVerbatim:
		dst = append(dst, v.Str...)
	case KindError:
		dst = append(dst, "(error) "...)
		dst = append(dst, v.Str...)
	case KindInt:
		dst = AppendInt(append(dst, "(integer) "...), v.Int)
	case KindBulk:
		dst = AppendQuoted(dst, v.Str)
	case KindDouble:
		dst = v.appendDouble(append(dst, "(double) "...))
	case KindBool:
		dst = append(dst, '(')
		dst = append(dst, v.String()...)
		dst = append(dst, ')')
	case KindBigNumber:
		dst = append(dst, "(big number) "...)
		dst = append(dst, v.Str...)
	case KindArray, KindMap, KindSet, KindPush:
		if len(v.Elems) > 0 {
			return v.appendList(dst, prefix)
		}
		dst = append(dst, emptyTTY[v.Kind]...)
	default:
		dst = append(dst, "(nil)"...)
	}
	return append(dst, '\n')
}

var emptyTTY = [...]string{
	KindArray: "(empty array)",
	KindMap:   "(empty hash)",
	KindSet:   "(empty set)",
	KindPush:  "(empty push)",
}

// appendList prints the elements of an aggregate, numbered. appendList writes the first
// one at the end of dst, and prefix before each of the others.
func (v Value) appendList(dst, prefix []byte) []byte {
	width := v.Kind.width()
	digits := len(AppendInt(nil, int64(len(v.Elems)/width)))
	inner := make([]byte, 0, len(prefix)+digits+2)
	inner = append(inner, prefix...)
	for range digits + 2 {
		inner = append(inner, ' ')
	}
	for i := 0; i < len(v.Elems); i += width {
		if i > 0 {
			dst = append(dst, prefix...)
		}
		dst = appendPadded(dst, i/width+1, digits)
		dst = append(dst, v.separator(), ' ')
		dst = v.Elems[i].appendTTY(dst, inner)
		if v.Kind != KindMap || i+1 == len(v.Elems) {
			continue
		}
		dst = append(dst[:len(dst)-1], " => "...)
		value, start := v.Elems[i+1], len(dst)
		dst = value.appendTTY(dst, inner)
		if value.Kind.aggregate() && bytes.IndexByte(dst[start:], '\n') < len(dst)-start-1 {
			dst = slices.Insert(dst, start, append([]byte{'\n'}, inner...)...) // more than one line: begin a new one
		}
	}
	return dst
}

func (v Value) separator() byte {
	switch v.Kind {
	case KindMap:
		return '#'
	case KindSet:
		return '~'
	}
	return ')'
}

func appendPadded(dst []byte, n, width int) []byte {
	var text [20]byte
	digits := AppendInt(text[:0], int64(n))
	for range width - len(digits) {
		dst = append(dst, ' ')
	}
	return append(dst, digits...)
}

// appendDouble appends the number as the server spelled it, if the Value has that text.
func (v Value) appendDouble(dst []byte) []byte {
	if v.Str != "" {
		return append(dst, v.Str...)
	}
	return AppendDouble(dst, v.Float)
}

// AppendQuoted appends s in double quotes, as redis-cli shows strings. It writes \\ \" \n
// \r \t \a \b, and \xHH for every other byte outside printable ASCII. SplitArgs reads it
// back.
func AppendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c == '\a':
			dst = append(dst, `\a`...)
		case c == '\b':
			dst = append(dst, `\b`...)
		case c < ' ' || c > '~':
			dst = append(dst, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

const hexDigits = "0123456789abcdef"

// AppendRaw prints a reply as redis-cli does with --raw, or when its output is a pipe. It
// writes strings as they are, each element on a line of its own, and key and value of a
// map on one line. A null is an empty text.
func (v Value) AppendRaw(dst []byte) []byte { return append(v.appendRaw(dst), '\n') }

func (v Value) appendRaw(dst []byte) []byte {
	switch v.Kind {
	case KindError:
		dst = append(dst, v.Str...)
		return append(dst, '\n')
	case KindBool:
		dst = append(dst, '(')
		dst = append(dst, v.String()...)
		return append(dst, ')')
	}
	if !v.Kind.aggregate() {
		return v.appendScalar(dst)
	}
	for i, e := range v.Elems {
		switch {
		case i > 0 && v.Kind == KindMap && i%2 == 1:
			dst = append(dst, ' ')
		case i > 0:
			dst = append(dst, '\n')
		}
		dst = e.appendRaw(dst)
	}
	return dst
}

// AppendCSV prints a reply as redis-cli --csv does. It writes all elements on one line,
// also those of nested aggregates, and quotes strings and statuses as AppendQuoted does.
func (v Value) AppendCSV(dst []byte) []byte { return append(v.appendCSV(dst), '\n') }

func (v Value) appendCSV(dst []byte) []byte {
	switch v.Kind {
	case KindError:
		return AppendQuoted(append(dst, "ERROR,"...), v.Str)
	case KindStatus, KindBulk, KindVerbatim:
		return AppendQuoted(dst, v.Str)
	case KindNull, KindNullArray, KindNone:
		return append(dst, "NULL"...)
	}
	if !v.Kind.aggregate() {
		return v.appendScalar(dst)
	}
	for i, e := range v.Elems {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = e.appendCSV(dst)
	}
	return dst
}

// AppendJSON prints a reply as redis-cli --json does. Like redis-cli it writes some values
// that JSON does not have, and the output is then not JSON: an error is error:"ERR ...",
// infinities are inf and -inf, and bytes that are not UTF-8 stay as they are. A map key
// that is not a string becomes its JSON in quotes.
func (v Value) AppendJSON(dst []byte) []byte { return append(v.appendJSON(dst), '\n') }

// AppendQuotedJSON prints a reply as redis-cli --quoted-json does: as AppendJSON, but with
// the text of each string as AppendQuoted writes it and with each backslash doubled. The
// output is ASCII. As with redis-cli, a string that has a double quote in it is not JSON.
func (v Value) AppendQuotedJSON(dst []byte) []byte {
	return append(v.appendJSONWith(dst, appendDoublyQuoted), '\n')
}

func (v Value) appendJSON(dst []byte) []byte { return v.appendJSONWith(dst, appendJSONString) }

// appendJSONWith appends a reply as JSON; text appends its strings.
func (v Value) appendJSONWith(dst []byte, text func([]byte, string) []byte) []byte {
	switch v.Kind {
	case KindError:
		return text(append(dst, "error:"...), v.Str)
	case KindStatus, KindBulk, KindVerbatim:
		return text(dst, v.Str)
	case KindNull, KindNullArray, KindNone:
		return append(dst, "null"...)
	case KindMap:
		return v.appendObject(dst, text)
	}
	if !v.Kind.aggregate() {
		return v.appendScalar(dst)
	}
	dst = append(dst, '[')
	for i, e := range v.Elems {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = e.appendJSONWith(dst, text)
	}
	return append(dst, ']')
}

func (v Value) appendObject(dst []byte, text func([]byte, string) []byte) []byte {
	dst = append(dst, '{')
	first := true
	for key, value := range v.Pairs {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		switch key.Kind {
		case KindStatus, KindBulk, KindVerbatim, KindError:
			dst = key.appendJSONWith(dst, text)
		default:
			dst = append(dst, '"')
			dst = key.appendJSONWith(dst, text)
			dst = append(dst, '"')
		}
		dst = append(dst, ':')
		dst = value.appendJSONWith(dst, text)
	}
	return append(dst, '}')
}

// appendJSONString appends s in quotes. Bytes from 0x80 on pass through.
func appendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c == '\b':
			dst = append(dst, `\b`...)
		case c == '\f':
			dst = append(dst, `\f`...)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// appendDoublyQuoted appends s as AppendQuoted does, and doubles the backslashes.
func appendDoublyQuoted(dst []byte, s string) []byte {
	for _, c := range AppendQuoted(nil, s) {
		if c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return dst
}

// appendScalar appends the text of a Value that is not an aggregate, without quotes.
func (v Value) appendScalar(dst []byte) []byte {
	switch v.Kind {
	case KindInt:
		return AppendInt(dst, v.Int)
	case KindDouble:
		return v.appendDouble(dst)
	case KindBool:
		return append(dst, v.String()...)
	}
	return append(dst, v.Str...)
}
