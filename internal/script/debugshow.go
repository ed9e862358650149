package script

import (
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/lua"
	"github.com/ebbdb/ebb/internal/numeral"
)

// maxShown bounds the text of one value, in bytes: tables may hold each other many times.
const maxShown = 1 << 20

// show returns a value as the debugger shows it.
func (d *Debugger) show(v lua.Value) string { return string(d.appendValue(nil, v, 0)) }

func (d *Debugger) appendValue(b []byte, v lua.Value, depth int) []byte {
	if depth == debugDepth {
		return append(b, "<max recursion level reached! Nested table?>"...)
	}
	if len(b) > maxShown {
		return append(b, "..."...)
	}
	if t, ok := v.AsTable(); ok {
		return d.appendTable(b, t, depth+1)
	}
	if s, ok := v.AsString(); ok {
		return appendQuoted(b, s)
	}
	if f, ok := v.AsNumber(); ok {
		return appendShort(b, f)
	}
	if v.IsNil() || v.Kind() == lua.KindBoolean {
		return append(b, d.m.text(v)...)
	}
	kind, address, _ := strings.Cut(d.m.text(v), ": ")
	return append(b, `"`+kind+"@"+address+`"`...)
}

// appendTable appends a table: a list if it has the keys 1 to n and pairs finds them in
// this order, else keys and values.
func (d *Debugger) appendTable(b []byte, t *lua.Table, depth int) []byte {
	list, n := true, 0
	for key, _, at := t.Entry(0); at >= 0; key, _, at = t.Entry(at) {
		n++
		if f, ok := key.AsNumber(); !ok || f != float64(n) {
			list = false
			break
		}
	}
	b = append(b, '{')
	first := true
	for key, v, at := t.Entry(0); at >= 0; key, v, at = t.Entry(at) {
		if !first {
			b = append(b, "; "...)
		}
		first = false
		if !list {
			b = append(b, '[')
			b = append(d.appendValue(b, key, depth), "]="...)
		}
		if b = d.appendValue(b, v, depth); len(b) > maxShown {
			break
		}
	}
	return append(b, '}')
}

// appendShort appends a number as C's printf does by "%g".
func appendShort(b []byte, f float64) []byte {
	if b, ok := appendSpecial(b, f); ok {
		return b
	}
	if f == 0 {
		return strconv.AppendFloat(b, f, 'f', -1, 64)
	}
	// Six digits; the exponent that is left after rounding decides between the forms.
	e := strconv.FormatFloat(f, 'e', 5, 64)
	mantissa, exponent, _ := strings.Cut(e, "e")
	if x, _ := strconv.Atoi(exponent); x >= -4 && x < 6 {
		return append(b, trimZeros(strconv.FormatFloat(f, 'f', 5-x, 64))...)
	}
	return append(b, trimZeros(mantissa)+"e"+exponent...)
}

func trimZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// appendQuoted appends a string in quotation marks; bytes that ASCII does not print are
// escaped.
func appendQuoted(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\' || c == '"':
			b = append(b, '\\', c)
		case c >= ' ' && c <= '~':
			b = append(b, c)
		case strings.IndexByte("\a\b\t\n\r", c) >= 0:
			b = append(b, '\\', "abtn  r"[c-'\a'])
		default:
			b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
		}
	}
	return append(b, '"')
}

// showReply appends a reply, in RESP as the server makes it, to a line, and returns what
// follows the reply.
func showReply(line []byte, reply string) (_ []byte, rest string) {
	head, rest, _ := strings.Cut(reply, "\r\n")
	if head == "" {
		return line, rest
	}
	n, _ := numeral.ParseInt([]byte(head[1:]))
	switch head[0] {
	case ':':
		return append(line, head[1:]...), rest
	case '+', '-':
		return appendQuoted(line, head), rest
	case '$', '=':
		if n < 0 {
			return append(line, "NULL"...), rest
		}
		n = min(n, int64(len(rest)))
		return appendQuoted(line, rest[:n]), rest[min(int(n)+2, len(rest)):]
	case '*':
		if n < 0 {
			return append(line, "NULL"...), rest
		}
		return showItems(append(line, '['), rest, int(n), ",", "]")
	case '~':
		return showItems(append(line, "~("...), rest, int(n), ",", ")")
	case '%':
		line = append(line, '{')
		for i := range n {
			if i > 0 {
				line = append(line, ',')
			}
			line, rest = showItems(line, rest, 2, " => ", "")
		}
		return append(line, '}'), rest
	case '_':
		return append(line, "(null)"...), rest
	case '#':
		if head == "#t" {
			return append(line, "#true"...), rest
		}
		return append(line, "#false"...), rest
	case ',':
		return append(append(line, "(double) "...), head[1:]...), rest
	}
	return append(line, head...), rest
}

func showItems(line []byte, reply string, n int, between, end string) (_ []byte, rest string) {
	for i := range n {
		if i > 0 {
			line = append(line, between...)
		}
		line, reply = showReply(line, reply)
	}
	return append(line, end...), reply
}
