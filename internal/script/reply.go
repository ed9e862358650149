package script

import (
	"bytes"

	"github.com/ebbdb/ebb/internal/lua"
	"github.com/ebbdb/ebb/internal/numeral"
)

// This file converts a command's reply to Lua values:
//
//	integer          number                    status      {ok = text}
//	string           string                    error       {err = text, ignore_error_stats_update = true}
//	null             false; nil in RESP3       array       {...}
//
// and in RESP3, which redis.setresp(3) chooses,
//
//	boolean          boolean                   map         {map = {key = value, ...}}
//	double           {double = number}         set         {set = {member = true, ...}}
//	big number       {big_number = text}       verbatim    {verbatim_string = {format = , string = }}
//
// The bytes come from this server, so the code assumes that they are well-formed.

// callSteps is the number of steps that a command counts as.
const callSteps = 64

// reader reads a reply.
type reader struct {
	m *machine
	b []byte // what is left
}

// reply ends a call of redis.call or pcall with a reply's value. raise tells
// what to do with an error.
func (m *machine) reply(c lua.Call, encoded []byte, raise bool) error {
	n := len(encoded)
	for _, a := range m.args {
		n += len(a)
	}
	if err := m.state.Spend(callSteps + n/bytesPerStep); err != nil {
		return err
	}
	r := reader{m, encoded}
	v, err := r.value()
	if err != nil {
		return err
	}
	if raise && len(encoded) > 0 && encoded[0] == '-' {
		return &lua.Error{Value: v}
	}
	return c.Return(v)
}

// line returns the rest of the line, without its end.
func (r *reader) line() []byte {
	n := bytes.IndexByte(r.b, '\r')
	if n < 0 {
		n = len(r.b)
	}
	line := r.b[:n]
	r.b = r.b[min(n+2, len(r.b)):]
	return line
}

// integer reads the number in the header of a reply.
func (r *reader) integer() int {
	n, _ := numeral.ParseInt(r.line())
	return int(n)
}

// string reads a string's n bytes, and copies them.
func (r *reader) string(n int) (lua.Value, error) {
	n = min(n, len(r.b))
	if err := r.m.state.Charge(n); err != nil {
		return lua.Nil, err
	}
	s := string(r.b[:n])
	r.b = r.b[min(n+2, len(r.b)):]
	return lua.String(s), nil
}

func (r *reader) value() (lua.Value, error) {
	if len(r.b) == 0 {
		return lua.Nil, nil
	}
	kind := r.b[0]
	r.b = r.b[1:]
	switch kind {
	case ':':
		n, _ := numeral.ParseInt(r.line())
		return lua.Number(float64(n)), nil
	case '$':
		if n := r.integer(); n >= 0 {
			return r.string(n)
		}
		return lua.False, nil
	case '*', '>':
		return r.array(r.integer())
	case '+':
		return r.status()
	case '-':
		return r.error()
	case '_':
		r.line()
		return lua.Nil, nil
	case '#':
		return lua.Bool(string(r.line()) == "t"), nil
	case '%':
		return r.aggregate("map", r.integer(), true)
	case '~':
		return r.aggregate("set", r.integer(), false)
	case ',':
		return r.double()
	case '(':
		return r.text("big_number")
	case '=':
		return r.verbatim(r.integer())
	case '|': // attributes are dropped
		for range 2 * r.integer() {
			if _, err := r.value(); err != nil {
				return lua.Nil, err
			}
		}
		return r.value()
	}
	return lua.Nil, nil
}

func (r *reader) array(n int) (lua.Value, error) {
	if n < 0 {
		return lua.False, nil
	}
	t := r.m.state.NewTable(min(n, len(r.b)), 0) // an element takes more than a byte
	if err := r.m.state.Charge(0); err != nil {
		return lua.Nil, err
	}
	for i := 1; i <= n; i++ {
		v, err := r.value()
		if err == nil && i%stepsPerSpend == 0 {
			err = r.m.state.Spend(4 * stepsPerSpend)
		}
		if err != nil {
			return lua.Nil, err
		}
		if err := t.SetInt(i, v); err != nil {
			return lua.Nil, err
		}
	}
	return lua.TableValue(t), nil
}

// aggregate reads a map or a set of n entries. A member of a set is a key whose
// value is true.
func (r *reader) aggregate(name string, n int, values bool) (lua.Value, error) {
	inner := r.m.state.NewTable(0, min(n, len(r.b)))
	for range n {
		k, err := r.value()
		if err != nil {
			return lua.Nil, err
		}
		v := lua.True
		if values {
			if v, err = r.value(); err != nil {
				return lua.Nil, err
			}
		}
		if k.IsNil() {
			continue // cannot be a key
		}
		if err := inner.Set(k, v); err != nil {
			return lua.Nil, err
		}
	}
	return r.wrap(name, lua.TableValue(inner))
}

// wrap returns {name = v}.
func (r *reader) wrap(name string, v lua.Value) (lua.Value, error) {
	t := r.m.state.NewTable(0, 1)
	return lua.TableValue(t), t.SetString(name, v)
}

// text reads a line into {name = text}.
func (r *reader) text(name string) (lua.Value, error) {
	line := r.line()
	if err := r.m.state.Charge(len(line)); err != nil {
		return lua.Nil, err
	}
	return r.wrap(name, lua.String(string(line)))
}

// status makes {ok = text}, for the commonest text without a copy.
func (r *reader) status() (lua.Value, error) {
	if bytes.HasPrefix(r.b, okLine) {
		r.b = r.b[len(okLine):]
		return r.wrap("ok", okValue)
	}
	return r.text("ok")
}

var (
	okLine  = []byte("OK\r\n")
	okValue = lua.String("OK")
)

// countedMark is the field of an error table that says that the error was counted
// already, when the command failed.
const countedMark = "ignore_error_stats_update"

// error makes an error table.
func (r *reader) error() (lua.Value, error) {
	line := r.line()
	if err := r.m.state.Charge(len(line)); err != nil {
		return lua.Nil, err
	}
	t := r.m.state.NewTable(0, 2)
	if err := t.SetString("err", lua.String(string(line))); err != nil {
		return lua.Nil, err
	}
	return lua.TableValue(t), t.SetString(countedMark, lua.True)
}

func (r *reader) double() (lua.Value, error) {
	f, _ := numeral.ParseDouble(r.line())
	return r.wrap("double", lua.Number(f))
}

// verbatim reads "txt:" and the text, n bytes together.
func (r *reader) verbatim(n int) (lua.Value, error) {
	const head = len("txt:")
	if n < head || n > len(r.b) {
		return r.string(n)
	}
	format := lua.String(string(r.b[:head-1]))
	r.b = r.b[head:]
	text, err := r.string(n - head)
	if err != nil {
		return lua.Nil, err
	}
	t := r.m.state.NewTable(0, 2)
	if err := t.SetString("string", text); err != nil {
		return lua.Nil, err
	}
	if err := t.SetString("format", format); err != nil {
		return lua.Nil, err
	}
	return r.wrap("verbatim_string", lua.TableValue(t))
}
