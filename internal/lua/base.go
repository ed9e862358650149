package lua

import (
	"fmt"
	"strings"
)

// Version is the value of the global _VERSION.
const Version = "Lua 5.1"

// openBase adds the functions of the base library that scripts have in Redis: without
// print, dofile, setfenv and others that have effects outside of the script.
func openBase(s *State) {
	g := s.globals
	_ = g.SetString("_G", TableValue(g))
	_ = g.SetString("_VERSION", String(Version))
	add := func(name string, run func(Call) error) *Builtin {
		b := &Builtin{Name: name, Run: run}
		_ = g.SetString(name, BuiltinValue(b))
		return b
	}
	add("assert", baseAssert)
	add("collectgarbage", baseCollectgarbage)
	add("error", baseError)
	add("gcinfo", baseGcinfo)
	add("getmetatable", baseGetmetatable)
	add("loadstring", baseLoadstring)
	add("load", baseLoad)
	s.next = add("next", baseNext)
	add("pcall", basePcall)
	add("rawequal", baseRawequal)
	add("rawget", baseRawget)
	add("rawset", baseRawset)
	add("select", baseSelect)
	add("setmetatable", baseSetmetatable)
	add("tonumber", baseTonumber)
	add("tostring", baseTostring)
	add("type", baseType)
	add("unpack", baseUnpack)
	add("xpcall", baseXpcall)
	s.inext = &Builtin{Name: "ipairs_aux", Run: baseInext}
	add("ipairs", baseIpairs)
	add("pairs", basePairs)
}

func baseAssert(c Call) error {
	v, err := c.CheckAny(1)
	if err != nil {
		return err
	}
	if !v.Truth() {
		text, err := c.OptString(2, "assertion failed!")
		if err != nil {
			return err
		}
		text, _, _ = strings.Cut(text, "\x00") // C's %s
		return c.Errorf("%s", text)
	}
	_, err = c.t.pass(c, 0)
	return err
}

// pass ends the call with its arguments after the first skip.
func (t *Thread) pass(c Call, skip int) ([]Value, error) {
	n := max(c.n-skip, 0)
	copy(t.stack[c.base-1:], t.stack[c.base+skip:c.base+skip+n])
	t.results = n
	return t.stack[c.base-1 : c.base-1+n], nil
}

func baseCollectgarbage(c Call) error {
	option, err := c.OptString(1, "collect")
	if err != nil {
		return err
	}
	if _, err := c.OptInt(2, 0); err != nil {
		return err
	}
	switch option {
	case "count":
		return c.Return(Number(float64(c.State().Live()) / 1024))
	case "collect", "stop", "restart":
		return c.Return(Int(0))
	case "step":
		return c.Return(True)
	case "setpause", "setstepmul":
		return c.Return(Int(200))
	}
	return c.ArgError(1, "invalid option '"+option+"'")
}

func baseGcinfo(c Call) error { return c.Return(Int(c.State().Live() / 1024)) }

func baseError(c Call) error {
	level, err := c.OptInt(2, 1)
	if err != nil {
		return err
	}
	level = int(int32(level))
	v := c.Arg(1)
	if v.IsNumber() && level > 0 {
		v = String(FormatNumber(v.number()))
	}
	if v.IsString() && level > 0 {
		text := c.t.Where(level) + v.str()
		if err := c.State().Charge(len(text)); err != nil {
			return err
		}
		v = String(text)
	}
	return &Error{Value: v}
}

func baseGetmetatable(c Call) error {
	v, err := c.CheckAny(1)
	if err != nil {
		return err
	}
	m := c.State().meta(v)
	if m == nil {
		return c.Return(Nil)
	}
	if shown := m.event(eventMetatable); !shown.IsNil() {
		return c.Return(shown)
	}
	return c.Return(TableValue(m))
}

func baseSetmetatable(c Call) error {
	t, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	v := c.Arg(2)
	if c.n < 2 || !v.IsNil() && !v.IsTable() {
		return c.ArgError(2, "nil or table expected")
	}
	if !t.meta.event(eventMetatable).IsNil() {
		return c.Errorf("cannot change a protected metatable")
	}
	var m *Table
	if v.IsTable() {
		m = v.table()
	}
	if err := t.SetMeta(m); err != nil {
		return err
	}
	return c.Return(TableValue(t))
}

// load ends a call of load or loadstring.
func (c Call) load(chunk, name string) error {
	s := c.State()
	if err := s.Spend(10 * min(len(chunk), tickBytes)); err != nil {
		return err
	}
	f, err := s.Load(chunk, name)
	if err == nil {
		return c.Return(ClosureValue(f))
	}
	if e := s.caught(err); e != nil {
		return c.Return(Nil, e.Value)
	}
	return err
}

func baseLoadstring(c Call) error {
	chunk, err := c.CheckString(1)
	if err != nil {
		return err
	}
	name, err := c.OptString(2, chunk)
	if err != nil {
		return err
	}
	return c.load(chunk, name)
}

func baseLoad(c Call) error {
	f, err := c.CheckFunction(1)
	if err != nil {
		return err
	}
	name, err := c.OptString(2, "=(load)")
	if err != nil {
		return err
	}
	var chunk strings.Builder
	for {
		// The reader is called from within the compiler, which catches errors.
		rs, err := c.t.PCall(f)
		if err != nil {
			if e := c.State().caught(err); e != nil {
				return c.Return(Nil, e.Value)
			}
			return err
		}
		if len(rs) == 0 || rs[0].IsNil() {
			return c.load(chunk.String(), name)
		}
		if !joins(rs[0]) {
			return c.Return(Nil, String(c.t.Where(1)+"reader function must return a string"))
		}
		piece := asText(rs[0])
		if piece == "" {
			return c.load(chunk.String(), name)
		}
		if err := c.State().Charge(2 * len(piece)); err != nil {
			return err
		}
		if chunk.Len()*CompileMemory > MaxString { // compiling it would be refused
			return errMemory
		}
		chunk.WriteString(piece)
	}
}

// asText returns a string, or a number as one.
func asText(v Value) string {
	if v.IsNumber() {
		return FormatNumber(v.number())
	}
	return v.str()
}

func baseNext(c Call) error {
	t, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	k, v, ok := t.Next(c.Arg(2))
	if !ok {
		return errInvalidKey
	}
	if k.IsNil() {
		return c.Return(Nil)
	}
	return c.Return(k, v)
}

func basePairs(c Call) error {
	t, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	return c.Return(BuiltinValue(c.State().next), TableValue(t), Nil)
}

func baseIpairs(c Call) error {
	t, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	return c.Return(BuiltinValue(c.State().inext), TableValue(t), Int(0))
}

// baseInext is the iterator that ipairs returns.
func baseInext(c Call) error {
	i, err := c.CheckInt(2)
	if err != nil {
		return err
	}
	t, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	if v := t.GetInt(i + 1); !v.IsNil() {
		return c.Return(Int(i+1), v)
	}
	return c.Return()
}

// basePcall calls its first argument at its place on the stack, so that its results are
// where the results of pcall belong.
func basePcall(c Call) error {
	if _, err := c.CheckAny(1); err != nil {
		return err
	}
	t := c.t
	here := t.here()
	err := t.enter()
	if err == nil {
		err = t.callAt(c.base, c.n-1)
	}
	if err != nil {
		e := t.state.caught(err)
		if e == nil {
			return err
		}
		here.top = c.base
		t.leave(here)
		return c.Return(False, e.Value)
	}
	t.ci, t.top = here.ci, here.top
	t.stack[c.base-1] = True
	t.results++
	return nil
}

func baseXpcall(c Call) error {
	if c.n < 2 {
		return c.ArgError(2, "value expected")
	}
	t := c.t
	here := t.here()
	handler := c.Arg(2)
	rs, err := t.call(c.Arg(1), nil)
	if err == nil {
		t.ci, t.top = here.ci, here.top
		to, err := c.Results(len(rs) + 1)
		if err != nil {
			return err
		}
		copy(to[1:], rs)
		to[0] = True
		return nil
	}
	e := t.state.caught(err)
	if e == nil {
		return err
	}
	t.inHandler = true
	v, err := t.handle(handler, e)
	t.inHandler = false
	if err != nil {
		return err
	}
	t.leave(here)
	t.trim()
	return c.Return(False, v)
}

// handle calls xpcall's handler where an error arose: in an instruction, or in a builtin,
// whose frame the handler then sees. The handler also handles an error of its own, until
// the stack is full.
func (t *Thread) handle(handler Value, e *Error) (Value, error) {
	if !handler.IsFunction() {
		return errInHandler.(*Error).Value, nil
	}
	for calls := t.state.calls; calls < maxCalls+maxCalls/8; calls++ {
		if !e.lua && t.enter() != nil {
			break
		}
		fn := t.freeTop()
		if err := t.reserve(fn + 2); err != nil {
			return errMemory.(*Error).Value, nil
		}
		t.stack[fn], t.stack[fn+1] = handler, e.Value
		t.top = fn + 2
		err := t.callAt(fn, 1)
		if err == nil {
			if t.results == 0 {
				return Nil, nil
			}
			return t.stack[fn], nil
		}
		if e = t.state.caught(err); e == nil {
			return Nil, err
		}
	}
	return errInHandler.(*Error).Value, nil
}

func baseRawequal(c Call) error {
	a, err := c.CheckAny(1)
	if err != nil {
		return err
	}
	b, err := c.CheckAny(2)
	if err != nil {
		return err
	}
	return c.Return(Bool(c.t.equal(a, b)))
}

func baseRawget(c Call) error {
	t, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	k, err := c.CheckAny(2)
	if err != nil {
		return err
	}
	return c.Return(t.Get(k))
}

func baseRawset(c Call) error {
	t, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	for i := 2; i <= 3; i++ {
		if _, err := c.CheckAny(i); err != nil {
			return err
		}
	}
	if err := t.Set(c.Arg(2), c.Arg(3)); err != nil {
		return err
	}
	return c.Return(TableValue(t))
}

func baseSelect(c Call) error {
	if s, ok := c.Arg(1).AsString(); ok && strings.HasPrefix(s, "#") {
		return c.Return(Int(c.n - 1))
	}
	i, err := c.CheckInt(1)
	if err != nil {
		return err
	}
	i = int(int32(i))
	if i < 0 {
		i += c.n
	}
	if i < 1 {
		return c.ArgError(1, "index out of range")
	}
	_, err = c.t.pass(c, min(i, c.n))
	return err
}

func baseTonumber(c Call) error {
	base, err := c.OptInt(2, 10)
	if err != nil {
		return err
	}
	if base = int(int32(base)); base == 10 {
		v, err := c.CheckAny(1)
		if err != nil {
			return err
		}
		if f, ok := c.State().toNumber(v); ok {
			return c.Return(Number(f))
		}
		return c.Return(Nil)
	}
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	if base < 2 || base > 36 {
		return c.ArgError(2, "base out of range")
	}
	c.State().read(8 * len(s))
	if f, ok := parseInteger(s, base); ok {
		return c.Return(Number(f))
	}
	return c.Return(Nil)
}

// parseInteger parses as C's strtoul does: a minus negates modulo 2^64, a number that is
// too large becomes the largest one, and base 16 may have a prefix.
func parseInteger(s string, base int) (float64, bool) {
	const space = " \f\n\r\t\v"
	s = strings.TrimRight(strings.TrimLeft(s, space), space)
	// A C string ends at its first zero.
	if i := strings.IndexByte(s, 0); i >= 0 {
		s = strings.TrimRight(s[:i], space)
	}
	negative := false
	if s != "" && (s[0] == '-' || s[0] == '+') {
		negative = s[0] == '-'
		s = s[1:]
	}
	if base == 16 && len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'x' && digit(s[2]) < 16 {
		s = s[2:]
	}
	if s == "" {
		return 0, false
	}
	var n uint64
	over := false
	for i := range len(s) {
		d := digit(s[i])
		if d >= base {
			return 0, false
		}
		next := n*uint64(base) + uint64(d)
		if n > (1<<64-1)/uint64(base) || next < n*uint64(base) {
			over = true
		}
		n = next
	}
	switch {
	case over:
		n = 1<<64 - 1
	case negative:
		n = -n
	}
	return float64(n), true
}

// digit returns the value of a digit of a base up to 36; 36 if it is none.
func digit(b byte) int {
	switch {
	case b >= '0' && b <= '9':
		return int(b - '0')
	case b|0x20 >= 'a' && b|0x20 <= 'z':
		return int(b|0x20-'a') + 10
	}
	return 36
}

func baseTostring(c Call) error {
	v, err := c.CheckAny(1)
	if err != nil {
		return err
	}
	v, err = c.t.tostring(v)
	if err != nil {
		return err
	}
	return c.Return(v)
}

// tostring returns the result of the function tostring: that of __tostring, of any type,
// if there is one.
func (t *Thread) tostring(v Value) (Value, error) {
	s := t.state
	if how := s.meta(v).event(eventToString); !how.IsNil() {
		return t.Call1(how, v)
	}
	var text string
	switch v.Kind() {
	case KindString:
		return v, nil
	case KindNumber:
		text = FormatNumber(v.number())
	case KindBoolean:
		if v == True {
			return String("true"), nil
		}
		return String("false"), nil
	case KindNil:
		return String("nil"), nil
	case KindTable, KindFunction, KindThread:
		text = fmt.Sprintf("%s: %p", v.Kind(), v.p)
	default:
		return String("userdata: (nil)"), nil
	}
	return String(text), s.heap.charge(len(text))
}

// ToString returns the result of the function tostring, which calls __tostring.
func (t *Thread) ToString(v Value) (string, error) {
	v, err := t.tostring(v)
	if err != nil {
		return "", err
	}
	if !joins(v) {
		return "", &Error{Value: String("'tostring' must return a string")}
	}
	return asText(v), nil
}

func baseType(c Call) error {
	v, err := c.CheckAny(1)
	if err != nil {
		return err
	}
	return c.Return(kindNames[v.Kind()])
}

// kindNames are the names of kinds as values.
var kindNames = func() (names [KindThread + 1]Value) {
	for k := range names {
		names[k] = String(Kind(k).String()).hashed()
	}
	return names
}()

func baseUnpack(c Call) error {
	t, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	first, err := c.OptInt(2, 1)
	if err != nil {
		return err
	}
	last := 0
	if c.Arg(3).IsNil() {
		last = t.Len()
	} else if last, err = c.CheckInt(3); err != nil {
		return err
	}
	first, last = int(int32(first)), int(int32(last))
	n := last - first + 1
	if n <= 0 {
		return c.Return()
	}
	if n >= maxResults {
		return c.Errorf("too many results to unpack")
	}
	if err := c.State().Spend(n); err != nil {
		return err
	}
	to, err := c.Results(n)
	if err != nil {
		return err
	}
	for i := range to {
		to[i] = t.GetInt(first + i)
	}
	return nil
}
