package script

import (
	"strings"

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/lua"
	"github.com/ebbdb/ebb/internal/wire"
)

// This file converts a script's result to a reply. The fields of a table decide its type.
// They are checked in this order, without metamethods:
//
//	{err = text}, {ok = text}        error, status
//	{double = number}                double
//	{big_number = text}              big number
//	{verbatim_string = {string = text, format = text}}
//	{map = {...}}, {set = {...}}     map; set of the keys
//	else                             array up to the first nil
//
// A number becomes an integer, without its fraction. True becomes 1 and false null; after
// redis.setresp(3) they are booleans. Functions and other values become null.

// stackLimit is the greatest nesting of a result, in slots of Redis's stack of 8000. An
// array takes one slot, a map or a set three, and three others are in use.
const stackLimit = 8000 - stackSpare - 2

// stackSpare is the number of slots that Redis requires to be free before it converts a
// value.
const stackSpare = 4

const errTooDeep = "ERR reached lua stack limit"

// errTooLarge is the error for a result that would need more than the machine's memory:
// tables that contain the same table many times can be of any size.
const errTooLarge = Error("ERR the script's result is too large")

// answer writes a script's result. The error is errTooLarge, or what Host.Tick
// returned; nothing is written then.
func (m *machine) answer(out *wire.Writer, v lua.Value) error {
	begin := out.Mark()
	m.written, m.refusal = 0, nil
	m.write(out, v, 0)
	if m.refusal != nil {
		out.Rollback(begin)
	}
	return m.refusal
}

// valueCost is the approximate number of bytes that a value takes in a reply besides its
// text.
const valueCost = 16

// admit accounts for a value of n bytes, and reports whether to write it.
func (m *machine) admit(n int) bool {
	if m.refusal != nil {
		return false
	}
	m.written += n + valueCost
	if m.refusal = m.state.Spend(1 + n/64); m.refusal == nil && m.limit > 0 && m.written > m.limit/2 {
		m.refusal = errTooLarge
	}
	return m.refusal == nil
}

// write writes v. depth slots of the stack are in use.
func (m *machine) write(out *wire.Writer, v lua.Value, depth int) {
	s, isString := v.AsString()
	if !m.admit(len(s)) {
		return
	}
	if depth > stackLimit {
		out.Error(errTooDeep)
		return
	}
	if isString {
		out.BulkString(lasting(out, s))
		return
	}
	if f, ok := v.AsNumber(); ok {
		out.Int(lua.ToInt64(f))
		return
	}
	if t, ok := v.AsTable(); ok {
		m.writeTable(out, t, depth)
		return
	}
	switch {
	case v.Kind() != lua.KindBoolean:
		out.Null()
	case m.proto == 3:
		out.Bool(v.Truth())
	case v.Truth():
		out.Int(1)
	default:
		out.Null()
	}
}

// lasting returns a copy of a string if out keeps it, as a collecting Writer does. A
// script's string may share the memory of its arguments, which the next command reuses, or
// of a much larger string.
func lasting(out *wire.Writer, s string) string {
	if out.Collecting() {
		return strings.Clone(s)
	}
	return s
}

func (m *machine) writeTable(out *wire.Writer, t *lua.Table, depth int) {
	if s, ok := t.GetString("err").AsString(); ok {
		m.host.CountError(s, t.GetString(countedMark).Truth())
		out.Error(lasting(out, cString(s)))
		return
	}
	if s, ok := t.GetString("ok").AsString(); ok {
		out.Simple(lasting(out, cString(s)))
		return
	}
	if f, ok := t.GetString("double").AsNumber(); ok {
		writeDouble(out, f)
		return
	}
	if s, ok := t.GetString("big_number").AsString(); ok {
		out.BigNumber(lasting(out, cleantext.Reply(s))) // in RESP2 it is a string, in which line breaks would stay
		return
	}
	if inner, ok := t.GetString("verbatim_string").AsTable(); ok {
		text, ok := inner.GetString("string").AsString()
		format, ok2 := inner.GetString("format").AsString()
		if ok && ok2 {
			out.Verbatim(format, lasting(out, text))
			return
		}
	}
	if inner, ok := t.GetString("map").AsTable(); ok {
		m.writeMap(out, inner, depth)
		return
	}
	if inner, ok := t.GetString("set").AsTable(); ok {
		m.writeSet(out, inner, depth)
		return
	}
	m.writeArray(out, t, depth)
}

func (m *machine) writeArray(out *wire.Writer, t *lua.Table, depth int) {
	later, n := out.ArrayLater(), 0
	for {
		v := t.GetInt(n + 1)
		if v.IsNil() || m.refusal != nil {
			break
		}
		m.write(out, v, depth+1)
		n++
	}
	out.Patch(later, n)
}

func (m *machine) writeMap(out *wire.Writer, t *lua.Table, depth int) {
	later, n := out.MapLater(), 0
	for k, v, at := t.Entry(0); at >= 0; k, v, at = t.Entry(at) {
		if m.refusal != nil {
			break
		}
		m.write(out, k, depth+4)
		m.write(out, v, depth+3)
		n++
	}
	out.Patch(later, n)
}

func (m *machine) writeSet(out *wire.Writer, t *lua.Table, depth int) {
	later, n := out.SetLater(), 0
	for k, _, at := t.Entry(0); at >= 0; k, _, at = t.Entry(at) {
		if m.refusal != nil {
			break
		}
		m.write(out, k, depth+3)
		n++
	}
	out.Patch(later, n)
}

// writeDouble writes a double as Redis 7.0 spells it, with 17 digits.
func writeDouble(out *wire.Writer, f float64) {
	var text, reply [48]byte
	digits := appendNumber(text[:0], f)
	if out.Proto != 3 {
		out.Bulk(digits)
		return
	}
	b := append(append(append(reply[:0], ','), digits...), '\r', '\n')
	out.Raw(b)
}
