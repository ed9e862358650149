package resp

// AppendJSON appends a reply as redis-cli --json prints it. quote appends a string; nil: in the quotes of JSON. Like redis-cli
// it writes some values that JSON does not have, and the output is then not JSON: an error is error:"ERR ...",
// infinities are inf and -inf, and bytes that are not UTF-8 stay as they are. A map key
// that is not a string becomes its JSON in quotes.
func (v Value) AppendJSON(dst []byte, quote func(dst []byte, s string) []byte) []byte {
	if quote == nil {
		quote = appendJSONString
	}
	switch v.Kind {
	case KindError:
		return quote(append(dst, "error:"...), v.Str)
	case KindStatus, KindBulk, KindVerbatim:
		return quote(dst, v.Str)
	case KindNull, KindNullArray, KindNone:
		return append(dst, "null"...)
	case KindMap:
		return v.appendObject(dst, quote)
	}
	if !v.Kind.aggregate() {
		return append(dst, v.String()...)
	}
	dst = append(dst, '[')
	for i, e := range v.Elems {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = e.AppendJSON(dst, quote)
	}
	return append(dst, ']')
}

func (v Value) appendObject(dst []byte, quote func([]byte, string) []byte) []byte {
	dst = append(dst, '{')
	first := true
	for key, value := range v.Pairs {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		switch key.Kind {
		case KindStatus, KindBulk, KindVerbatim, KindError:
			dst = key.AppendJSON(dst, quote)
		default:
			dst = append(dst, '"')
			dst = key.AppendJSON(dst, quote)
			dst = append(dst, '"')
		}
		dst = append(dst, ':')
		dst = value.AppendJSON(dst, quote)
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
			dst = append(dst, '\\', 'u', '0', '0', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
