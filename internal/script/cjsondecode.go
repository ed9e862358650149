package script

import (
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/ebbdb/ebb/internal/lua"
)

// decode implements cjson.decode: it returns the value of a JSON document. null becomes
// cjson.null. Short strings share copied blocks of memory, and repeated keys of a document
// are copied once.
func (m *jsonModule) decode(c lua.Call) error {
	if c.N() != 1 {
		return c.ArgError(1, "expected 1 argument")
	}
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	if len(s) >= 2 && (s[0] == 0 || s[1] == 0) {
		return c.Errorf("JSON parser does not support UTF-16 or UTF-32")
	}
	d := m.decoder
	if err := d.begin(c.State(), len(s)); err != nil {
		return err
	}
	d.c, d.m, d.s, d.i = c, m, s, 0
	v, err := d.value(0, 1)
	if err == nil && d.next() != 0 {
		err = d.expected("the end")
	}
	if err == nil {
		err = d.state.Spend(d.steps)
	}
	d.end()
	d.c, d.s = lua.Call{}, ""
	if cap(d.text) > keepOutput {
		d.text = nil
	}
	clear(d.keys[:])
	if err != nil {
		return err
	}
	return c.Return(v)
}

// jsonDecoder reads one document. Bytes count from 0 here, from 1 in messages. As
// in C, a zero byte ends the document.
type jsonDecoder struct {
	pile
	c    lua.Call
	m    *jsonModule
	s    string
	i    int           // how far it was read
	keys [64]lua.Value // keys of objects that were read, by a hash of three bytes
	text []byte        // of a string with escapes

	found string // what stands where a token should begin, and where
	where int
}

// jsonStops are the bytes that stop the fast scan of a string.
var jsonStops = [256]bool{'"': true, '\\': true, 0: true}

// jsonUnescapes maps the letters after a backslash, except u, to their bytes.
var jsonUnescapes = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 't': '\t', 'n': '\n', 'f': '\f', 'r': '\r',
}

// at returns byte i, 0 after the end.
func (d *jsonDecoder) at(i int) byte {
	if i < len(d.s) {
		return d.s[i]
	}
	return 0
}

// next skips space and returns the byte that follows, 0 at the end.
func (d *jsonDecoder) next() byte {
	for ; d.i < len(d.s); d.i++ {
		switch c := d.s[d.i]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// value reads a value inside of depth tables, whose place on the stack of Redis's
// library would be top+1.
func (d *jsonDecoder) value(depth int32, top int) (lua.Value, error) {
	switch c := d.next(); c {
	case '"':
		if s, ok := d.string(); ok {
			return d.pile.text(s), nil
		}
	case '{':
		return d.object(depth+1, top)
	case '[':
		return d.array(depth+1, top)
	case 't':
		if d.word("true") {
			return lua.True, nil
		}
	case 'f':
		if d.word("false") {
			return lua.False, nil
		}
	case 'n':
		if d.word("null") {
			return lua.Null, nil
		}
		if f, ok := d.number(); ok {
			return lua.Number(f), nil
		}
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '+', 'i', 'I', 'N':
		if f, ok := d.number(); ok {
			return lua.Number(f), nil
		}
	}
	return lua.Nil, d.expected("value")
}

// word skips a word if it stands here.
func (d *jsonDecoder) word(w string) bool {
	if len(d.s)-d.i < len(w) || d.s[d.i:d.i+len(w)] != w {
		return false
	}
	d.i += len(w)
	return true
}

// descend enters a table, behind its bracket, for which Redis's library wants so
// many places on its stack.
func (d *jsonDecoder) descend(depth int32, top, places int) error {
	d.i++
	if depth > d.m.decodeDepth || top+places > libraryStack {
		return d.c.Errorf("Found too many nested data structures (%d) at character %d", depth, d.i)
	}
	return nil
}

func (d *jsonDecoder) array(depth int32, top int) (lua.Value, error) {
	if err := d.descend(depth, top, 2); err != nil {
		return lua.Nil, err
	}
	first := len(d.values)
	if d.next() == ']' {
		d.i++
		return d.pile.array(first)
	}
	for {
		v, err := d.value(depth, top+1)
		if err != nil {
			return lua.Nil, err
		}
		if err := d.push(v); err != nil {
			return lua.Nil, err
		}
		if err := d.add(1); err != nil {
			return lua.Nil, err
		}
		switch d.next() {
		case ',':
			d.i++
		case ']':
			d.i++
			return d.pile.array(first)
		default:
			return lua.Nil, d.expected("comma or array end")
		}
	}
}

func (d *jsonDecoder) object(depth int32, top int) (lua.Value, error) {
	if err := d.descend(depth, top, 3); err != nil {
		return lua.Nil, err
	}
	first := len(d.values)
	if d.next() == '}' {
		d.i++
		return d.record(first)
	}
	for {
		if err := d.member(depth, top); err != nil {
			return lua.Nil, err
		}
		if err := d.add(2); err != nil {
			return lua.Nil, err
		}
		switch d.next() {
		case ',':
			d.i++
		case '}':
			d.i++
			return d.record(first)
		default:
			return lua.Nil, d.expected("comma or object end")
		}
	}
}

// member reads a key and its value and pushes both.
func (d *jsonDecoder) member(depth int32, top int) error {
	if d.next() != '"' {
		return d.expected("object key string")
	}
	s, ok := d.string()
	if !ok {
		return d.expected("object key string")
	}
	if err := d.push(d.key(s)); err != nil {
		return err
	}
	if d.next() != ':' {
		return d.expected("colon")
	}
	d.i++
	v, err := d.value(depth, top+2)
	if err != nil {
		return err
	}
	return d.push(v)
}

// key makes a value of the string s, which is a key of an object.
func (d *jsonDecoder) key(s string) lua.Value {
	if s == "" || len(s) > shortBytes {
		return d.pile.text(s)
	}
	slot := &d.keys[(uint(s[0])+uint(s[len(s)-1])*7+uint(len(s))*31)%uint(len(d.keys))]
	if known, ok := slot.AsString(); !ok || known != s {
		known, _ = d.pile.text(s).AsString()
		*slot = lua.Key(known)
	}
	return *slot
}

// fail records what was found instead of a token, for expected.
func (d *jsonDecoder) fail(found string, where int) bool {
	d.found, d.where = found, where
	return false
}

// string reads a string. It returns a part of the document, or a buffer that the
// next call uses again. If it fails, it stays where it was.
func (d *jsonDecoder) string() (string, bool) {
	start := d.i + 1
	i := start
	for i < len(d.s) && !jsonStops[d.s[i]] {
		i++
	}
	if d.at(i) == '"' {
		d.i = i + 1
		return d.s[start:i], true
	}
	if !d.unescape(start, i) {
		return "", false
	}
	return unsafe.String(unsafe.SliceData(d.text), len(d.text)), true
}

// unescape reads the rest of a string into d.text: it began at start, and from i
// on it is not plain.
func (d *jsonDecoder) unescape(start, i int) bool {
	d.text = d.text[:0]
	for {
		d.text = append(d.text, d.s[start:i]...)
		switch d.at(i) {
		case '"':
			d.i = i + 1
			return true
		case 0:
			return d.fail("unexpected end of string", i)
		}
		if letter := d.at(i + 1); letter == 'u' {
			r, n := d.unicode(i)
			if n == 0 {
				return d.fail("invalid unicode escape code", i)
			}
			d.text = utf8.AppendRune(d.text, r)
			i += n
		} else {
			c := jsonUnescapes[letter]
			if c == 0 {
				return d.fail("invalid escape code", i)
			}
			d.text = append(d.text, c)
			i += 2
		}
		start = i
		for i < len(d.s) && !jsonStops[d.s[i]] {
			i++
		}
	}
}

// unicode reads the escape at i, or the two that make a surrogate pair, and
// returns how many bytes that is; 0 if it is wrong.
func (d *jsonDecoder) unicode(i int) (r rune, n int) {
	r, ok := d.hex(i + 2)
	switch {
	case !ok:
		return 0, 0
	case r&0xf800 != 0xd800:
		return r, 6
	case r&0x400 != 0 || d.at(i+6) != '\\' || d.at(i+7) != 'u':
		return 0, 0
	}
	low, ok := d.hex(i + 8)
	if !ok || low&0xfc00 != 0xdc00 {
		return 0, 0
	}
	return (r&0x3ff<<10 | low&0x3ff) + 0x10000, 12
}

// hex reads four hexadecimal digits at i.
func (d *jsonDecoder) hex(i int) (rune, bool) {
	r := rune(0)
	for end := i + 4; i < end; i++ {
		c := d.at(i)
		switch {
		case c-'0' <= 9:
			r = r<<4 | rune(c-'0')
		case (c|0x20)-'a' <= 5:
			r = r<<4 | rune((c|0x20)-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// number reads a number. If it fails, it stays where it was.
func (d *jsonDecoder) number() (float64, bool) {
	s := d.s[d.i:]
	if f, n := jsonNumber(s); n > 0 {
		d.i += n
		return f, true
	}
	invalid := jsonInvalidNumber(s)
	switch c := s[0]; {
	case c == '-' || c-'0' <= 9:
		if invalid && !d.m.decodeInvalid {
			return 0, d.fail("invalid number", d.i)
		}
	case !invalid || !d.m.decodeInvalid:
		return 0, d.fail("invalid token", d.i)
	}
	f, n := lua.ParseDouble(s)
	if n == 0 {
		return 0, d.fail("invalid number", d.i)
	}
	d.i += n
	return f, true
}

// powersOfTen are those by which up to fifteen digits are divided exactly.
var powersOfTen = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// jsonNumber reads the most frequent numbers: a minus, digits, a point and digits
// again, fifteen at most. Digits and power of ten are exact then, and division
// rounds as it should. n is 0 for all others.
func jsonNumber(s string) (f float64, n int) {
	i := 0
	if s[0] == '-' {
		i = 1
	}
	first, scale, m := i, 0, int64(0)
	for ; i < len(s) && s[i]-'0' <= 9; i++ {
		m = m*10 + int64(s[i]-'0')
	}
	digits := i - first
	if digits == 0 || digits > 1 && s[first] == '0' {
		return 0, 0
	}
	if i < len(s) && s[i] == '.' {
		point := i
		for i++; i < len(s) && s[i]-'0' <= 9; i++ {
			m = m*10 + int64(s[i]-'0')
		}
		scale = i - point - 1
	}
	if digits+scale > 15 || i < len(s) && (s[i]|0x20 == 'e' || s[i]|0x20 == 'x') {
		return 0, 0
	}
	f = float64(m)
	if scale > 0 {
		f /= powersOfTen[scale]
	}
	if first > 0 {
		f = -f
	}
	return f, i
}

// jsonInvalidNumber reports whether s begins with a number that JSON does not
// have and strtod may: with a plus, hexadecimal, infinite, no number, or with a
// zero before its digits.
func jsonInvalidNumber(s string) bool {
	if s[0] == '+' {
		return true
	}
	if s[0] == '-' {
		s = s[1:]
	}
	if len(s) >= 2 && s[0] == '0' {
		return s[1]|0x20 == 'x' || s[1]-'0' <= 9
	}
	return len(s) >= 3 && (strings.EqualFold(s[:3], "inf") || strings.EqualFold(s[:3], "nan"))
}

// expected returns the error for a token that is not what should be here.
func (d *jsonDecoder) expected(what string) error {
	c := d.next()
	d.found, d.where = "invalid token", d.i
	switch c {
	case 0:
		d.found = "T_END"
	case '{':
		d.found = "T_OBJ_BEGIN"
	case '}':
		d.found = "T_OBJ_END"
	case '[':
		d.found = "T_ARR_BEGIN"
	case ']':
		d.found = "T_ARR_END"
	case ',':
		d.found = "T_COMMA"
	case ':':
		d.found = "T_COLON"
	case '"':
		if _, ok := d.string(); ok {
			d.found = "T_STRING"
		}
	case 't', 'f':
		if d.word("true") || d.word("false") {
			d.found = "T_BOOLEAN"
		}
	case 'n', 'N', 'i', 'I', '+', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if d.word("null") {
			d.found = "T_NULL"
		} else if _, ok := d.number(); ok {
			d.found = "T_NUMBER"
		}
	}
	return d.c.Errorf("Expected %s but found %s at character %d", what, d.found, d.where+1)
}
