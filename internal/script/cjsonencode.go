package script

import (
	"math"
	"strconv"

	"github.com/ebbdb/ebb/internal/lua"
)

// encode implements cjson.encode: it returns the JSON of its one argument. A table is an
// array if its keys are positive integers, not too sparse; otherwise an object, as is one
// without entries. Objects are written in the order of pairs.
func (m *jsonModule) encode(c lua.Call) error {
	if c.N() != 1 {
		return c.ArgError(1, "expected 1 argument")
	}
	e := m.encoder
	e.begin(c.State())
	e.c, e.m = c, m
	e.exact = math.Pow10(int(m.precision))
	err := e.value(c.Arg(1), 0, 1)
	var text lua.Value
	if err == nil {
		text, err = e.take()
	}
	e.end()
	e.c = lua.Call{}
	if err != nil {
		return err
	}
	return c.Return(text)
}

// jsonEncoder writes one document.
type jsonEncoder struct {
	output
	c     lua.Call
	m     *jsonModule
	exact float64 // integers below it have no more digits than the precision
}

// jsonEscapes maps bytes to their escapes in a string; other bytes stay as they are.
var jsonEscapes = func() (escapes [256]string) {
	const digits = "0123456789abcdef"
	for i := range 0x20 {
		escapes[i] = `\u00` + string([]byte{digits[i>>4], digits[i&15]})
	}
	escapes[0x7f] = `\u007f`
	for c, letter := range map[byte]string{
		'\b': "b", '\t': "t", '\n': "n", '\f': "f", '\r': "r", '"': `"`, '\\': `\`, '/': "/",
	} {
		escapes[c] = `\` + letter
	}
	return escapes
}()

// jsonPlain marks the bytes without an escape.
var jsonPlain = func() (plain [256]bool) {
	for i, e := range jsonEscapes {
		plain[i] = e == ""
	}
	return plain
}()

// value writes v, which is at a depth of tables, and at place top of the stack on
// which Redis's library would have it.
func (e *jsonEncoder) value(v lua.Value, depth int32, top int) error {
	switch v.Kind() {
	case lua.KindString:
		s, _ := v.AsString()
		return e.string(s)
	case lua.KindNumber:
		f, _ := v.AsNumber()
		return e.number(f)
	case lua.KindTable:
		t, _ := v.AsTable()
		return e.table(t, depth+1, top)
	case lua.KindBoolean:
		if v.Truth() {
			return e.literal("true")
		}
		return e.literal("false")
	case lua.KindNil, lua.KindLightUserdata:
		return e.literal("null")
	}
	return e.refuse(v, "type not supported")
}

// refuse returns the error for a value that has no JSON.
func (e *jsonEncoder) refuse(v lua.Value, why string) error {
	return e.c.Errorf("Cannot serialise %s: %s", v.Kind().String(), why)
}

func (e *jsonEncoder) literal(s string) error {
	if err := e.reserve(len(s)); err != nil {
		return err
	}
	e.b = append(e.b, s...)
	return nil
}

func (e *jsonEncoder) string(s string) error {
	e.steps += len(s) / bytesPerStep
	if err := e.reserve(len(s) + 2); err != nil {
		return err
	}
	e.b = append(e.b, '"')
	for {
		n := 0
		for n < len(s) && jsonPlain[s[n]] {
			n++
		}
		e.b = append(e.b, s[:n]...)
		if n == len(s) {
			break
		}
		escape := jsonEscapes[s[n]]
		s = s[n+1:]
		if err := e.reserve(len(escape) + len(s) + 1); err != nil {
			return err
		}
		e.b = append(e.b, escape...)
	}
	e.b = append(e.b, '"')
	return nil
}

// number writes f as C's "%.14g" does, or with the precision that was set.
func (e *jsonEncoder) number(f float64) error {
	if err := e.reserve(32); err != nil {
		return err
	}
	if i := int64(f); float64(i) == f && -e.exact < f && f < e.exact && (i != 0 || !math.Signbit(f)) {
		e.b = strconv.AppendInt(e.b, i, 10)
		return nil
	}
	nan := math.IsNaN(f)
	if nan || math.IsInf(f, 0) {
		switch {
		case e.m.encodeInvalid == invalidError:
			return e.refuse(lua.Number(f), "must not be NaN or Inf")
		case e.m.encodeInvalid == invalidNull:
			e.b = append(e.b, "null"...)
			return nil
		case nan:
			e.b = append(e.b, "nan"...)
			return nil
		}
	}
	e.b = lua.AppendFormatG(e.b, f, int(e.m.precision))
	return nil
}

func (e *jsonEncoder) table(t *lua.Table, depth int32, top int) error {
	if depth > e.m.encodeDepth || top+3 > libraryStack {
		return e.c.Errorf("Cannot serialise, excessive nesting (%d)", depth)
	}
	n, err := e.length(t)
	if err != nil {
		return err
	}
	if n > 0 {
		return e.array(t, int(n), depth, top)
	}
	return e.object(t, depth, top)
}

// length returns the length of the array that t is, no more than 0 for an object. Like
// lua-cjson's it is an int of 32 bits, which the keys from 2^31 on make negative.
func (e *jsonEncoder) length(t *lua.Table) (int32, error) {
	var longest, items int32
	for i := 0; ; {
		k, _, next := t.Entry(i)
		if next < 0 {
			break
		}
		i = next
		f, ok := k.AsNumber()
		if !ok || f < 1 || math.Floor(f) != f {
			return -1, nil
		}
		if f > float64(longest) {
			longest = lua.ToInt32(f)
		}
		items++
		if err := e.add(1); err != nil {
			return 0, err
		}
	}
	ratio := e.m.sparseRatio
	if ratio > 0 && longest > items*ratio && longest > e.m.sparseSafe {
		if !e.m.sparseConvert {
			return 0, e.refuse(lua.TableValue(t), "excessively sparse array")
		}
		return -1, nil
	}
	return longest, nil
}

func (e *jsonEncoder) array(t *lua.Table, n int, depth int32, top int) error {
	separator := "["
	for i := 1; i <= n; i++ {
		if err := e.literal(separator); err != nil {
			return err
		}
		separator = ","
		if err := e.value(t.GetInt(i), depth, top+1); err != nil {
			return err
		}
		if err := e.add(1); err != nil {
			return err
		}
	}
	return e.literal("]")
}

func (e *jsonEncoder) object(t *lua.Table, depth int32, top int) error {
	separator := "{"
	for i := 0; ; {
		k, v, next := t.Entry(i)
		if next < 0 {
			break
		}
		i = next
		if err := e.literal(separator); err != nil {
			return err
		}
		separator = ","
		if err := e.key(k); err != nil {
			return err
		}
		if err := e.value(v, depth, top+2); err != nil {
			return err
		}
		if err := e.add(1); err != nil {
			return err
		}
	}
	if separator == "{" {
		return e.literal("{}")
	}
	return e.literal("}")
}

// key writes a key and its colon. Numbers become strings.
func (e *jsonEncoder) key(k lua.Value) error {
	switch k.Kind() {
	case lua.KindString:
		s, _ := k.AsString()
		if err := e.string(s); err != nil {
			return err
		}
		return e.literal(":")
	case lua.KindNumber:
		if err := e.literal(`"`); err != nil {
			return err
		}
		f, _ := k.AsNumber()
		if err := e.number(f); err != nil {
			return err
		}
		return e.literal(`":`)
	}
	return e.refuse(k, "table key must be a number or string")
}
