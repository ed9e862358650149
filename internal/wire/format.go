package wire

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/ebbdb/ebb/resp"
)

// The Append functions of this file print a reply byte for byte as redis-cli 7 does, with
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
func AppendTTY(dst []byte, v resp.Value) []byte { return appendTTY(dst, v, nil) }

func appendTTY(dst []byte, v resp.Value, prefix []byte) []byte {
	switch v.Kind {
	case resp.KindStatus, resp.KindVerbatim:
		dst = append(dst, v.Str...)
	case resp.KindError:
		dst = append(dst, "(error) "...)
		dst = append(dst, v.Str...)
	case resp.KindInt:
		dst = strconv.AppendInt(append(dst, "(integer) "...), v.Int, 10)
	case resp.KindBulk:
		dst = AppendQuoted(dst, v.Str)
	case resp.KindDouble:
		dst = append(append(dst, "(double) "...), v.String()...)
	case resp.KindBool:
		dst = append(dst, '(')
		dst = append(dst, v.String()...)
		dst = append(dst, ')')
	case resp.KindBigNumber:
		dst = append(dst, "(big number) "...)
		dst = append(dst, v.Str...)
	case resp.KindArray, resp.KindMap, resp.KindSet, resp.KindPush:
		if len(v.Elems) > 0 {
			return appendList(dst, v, prefix)
		}
		dst = append(dst, emptyTTY[v.Kind]...)
	default:
		dst = append(dst, "(nil)"...)
	}
	return append(dst, '\n')
}

var emptyTTY = [...]string{
	resp.KindArray: "(empty array)",
	resp.KindMap:   "(empty hash)",
	resp.KindSet:   "(empty set)",
	resp.KindPush:  "(empty push)",
}

// appendList prints the elements of an aggregate, numbered. appendList writes the first
// one at the end of dst, and prefix before each of the others.
func appendList(dst []byte, v resp.Value, prefix []byte) []byte {
	width := widthOf(v.Kind)
	digits := len(strconv.Itoa(len(v.Elems) / width))
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
		dst = append(dst, separator(v.Kind), ' ')
		dst = appendTTY(dst, v.Elems[i], inner)
		if v.Kind != resp.KindMap || i+1 == len(v.Elems) {
			continue
		}
		dst = append(dst[:len(dst)-1], " => "...)
		value, start := v.Elems[i+1], len(dst)
		dst = appendTTY(dst, value, inner)
		if isAggregate(value.Kind) && bytes.IndexByte(dst[start:], '\n') < len(dst)-start-1 {
			dst = slices.Insert(dst, start, append([]byte{'\n'}, inner...)...) // more than one line: begin a new one
		}
	}
	return dst
}

func separator(k resp.Kind) byte {
	switch k {
	case resp.KindMap:
		return '#'
	case resp.KindSet:
		return '~'
	}
	return ')'
}

func appendPadded(dst []byte, n, width int) []byte {
	var text [20]byte
	digits := strconv.AppendInt(text[:0], int64(n), 10)
	for range width - len(digits) {
		dst = append(dst, ' ')
	}
	return append(dst, digits...)
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
func AppendRaw(dst []byte, v resp.Value) []byte { return append(appendRaw(dst, v), '\n') }

func appendRaw(dst []byte, v resp.Value) []byte {
	switch v.Kind {
	case resp.KindError:
		dst = append(dst, v.Str...)
		return append(dst, '\n')
	case resp.KindBool:
		dst = append(dst, '(')
		dst = append(dst, v.String()...)
		return append(dst, ')')
	}
	if !isAggregate(v.Kind) {
		return append(dst, v.String()...)
	}
	for i, e := range v.Elems {
		switch {
		case i > 0 && v.Kind == resp.KindMap && i%2 == 1:
			dst = append(dst, ' ')
		case i > 0:
			dst = append(dst, '\n')
		}
		dst = appendRaw(dst, e)
	}
	return dst
}

// AppendCSV prints a reply as redis-cli --csv does. It writes all elements on one line,
// also those of nested aggregates, and quotes strings and statuses as AppendQuoted does.
func AppendCSV(dst []byte, v resp.Value) []byte { return append(appendCSV(dst, v), '\n') }

func appendCSV(dst []byte, v resp.Value) []byte {
	switch v.Kind {
	case resp.KindError:
		return AppendQuoted(append(dst, "ERROR,"...), v.Str)
	case resp.KindStatus, resp.KindBulk, resp.KindVerbatim:
		return AppendQuoted(dst, v.Str)
	case resp.KindNull, resp.KindNullArray, resp.KindNone:
		return append(dst, "NULL"...)
	}
	if !isAggregate(v.Kind) {
		return append(dst, v.String()...)
	}
	for i, e := range v.Elems {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendCSV(dst, e)
	}
	return dst
}

// AppendJSON prints a reply as redis-cli --json does: see Value.AppendJSON.
func AppendJSON(dst []byte, v resp.Value) []byte { return append(v.AppendJSON(dst, nil), '\n') }

// AppendQuotedJSON prints a reply as redis-cli --quoted-json does: as AppendJSON, but with
// the text of each string as AppendQuoted writes it and with each backslash doubled. The
// output is ASCII. As with redis-cli, a string that has a double quote in it is not JSON.
func AppendQuotedJSON(dst []byte, v resp.Value) []byte {
	return append(v.AppendJSON(dst, appendDoublyQuoted), '\n')
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
