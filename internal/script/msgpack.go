package script

import (
	"encoding/binary"
	"math"

	"github.com/ebbdb/ebb/internal/lua"
)

// msgpackLibrary is the library cmsgpack, which behaves as lua-cmsgpack 0.4.0
// (https://github.com/antirez/lua-cmsgpack): MessagePack without the types bin and ext
// (https://github.com/msgpack/msgpack/blob/master/spec.md).
type msgpackLibrary struct {
	packer   msgpackPacker
	unpacker msgpackUnpacker
}

// openMsgpack adds the library cmsgpack to the globals.
func openMsgpack(s *lua.State) {
	l := &msgpackLibrary{}
	t := s.NewTable(0, 0)
	set(t,
		function("pack", l.pack),
		function("unpack", l.unpack),
		function("unpack_one", l.unpackOne),
		function("unpack_limit", l.unpackLimit),
		field{"_NAME", lua.String("cmsgpack")},
		field{"_VERSION", lua.String("lua-cmsgpack 0.4.0")},
		field{"_COPYRIGHT", lua.String("Copyright (C) 2012, Salvatore Sanfilippo")},
		field{"_DESCRIPTION", lua.String("MessagePack C implementation for Lua")})
	set(s.Globals(), field{"cmsgpack", lua.TableValue(t)})
}

// maxMsgpackDepth is the greatest nesting of tables that pack writes. It writes tables
// inside the last one as nil.
const maxMsgpackDepth = 16

// pack implements cmsgpack.pack: it returns its arguments, one after the other.
func (l *msgpackLibrary) pack(c lua.Call) error {
	switch {
	case c.N() == 0:
		return c.ArgError(0, "MessagePack pack needs input.")
	case 2*c.N() > libraryStack:
		return c.ArgError(0, "Too many arguments for MessagePack pack.")
	}
	p := &l.packer
	p.begin(c.State())
	var err error
	for i := 1; i <= c.N() && err == nil; i++ {
		err = p.value(c.Arg(i), 0)
	}
	var v lua.Value
	if err == nil {
		v, err = p.take()
	}
	p.end()
	if err != nil {
		return err
	}
	return c.Return(v)
}

// msgpackPacker writes values.
type msgpackPacker struct{ output }

// The types of MessagePack by their first bytes.
const (
	mpFixMap   = 0x80
	mpFixArray = 0x90
	mpFixRaw   = 0xa0
	mpNil      = 0xc0
	mpFalse    = 0xc2
	mpTrue     = 0xc3
	mpFloat    = 0xca
	mpDouble   = 0xcb
	mpUint8    = 0xcc
	mpUint16   = 0xcd
	mpUint32   = 0xce
	mpUint64   = 0xcf
	mpInt8     = 0xd0
	mpInt16    = 0xd1
	mpInt32    = 0xd2
	mpInt64    = 0xd3
	mpRaw8     = 0xd9
	mpRaw16    = 0xda
	mpRaw32    = 0xdb
	mpArray16  = 0xdc
	mpArray32  = 0xdd
	mpMap16    = 0xde
	mpMap32    = 0xdf
)

// value writes v, which is inside of depth tables. What MessagePack has no type
// for is written as nil.
func (p *msgpackPacker) value(v lua.Value, depth int) error {
	if err := p.add(1); err != nil {
		return err
	}
	if err := p.reserve(16); err != nil {
		return err
	}
	switch v.Kind() {
	case lua.KindString:
		s, _ := v.AsString()
		return p.string(s)
	case lua.KindNumber:
		f, _ := v.AsNumber()
		p.number(f)
		return nil
	case lua.KindTable:
		if t, _ := v.AsTable(); depth < maxMsgpackDepth {
			return p.table(t, depth)
		}
	case lua.KindBoolean:
		if v.Truth() {
			p.b = append(p.b, mpTrue)
		} else {
			p.b = append(p.b, mpFalse)
		}
		return nil
	}
	p.b = append(p.b, mpNil)
	return nil
}

func (p *msgpackPacker) string(s string) error {
	p.steps += len(s) / bytesPerStep
	switch n := uint(len(s)); {
	case n < 32:
		p.b = append(p.b, mpFixRaw|byte(n))
	case n <= math.MaxUint8:
		p.b = append(p.b, mpRaw8, byte(n))
	default:
		p.length(n, mpRaw16, mpRaw32)
	}
	if err := p.reserve(len(s)); err != nil {
		return err
	}
	p.b = append(p.b, s...)
	return nil
}

// length writes a length in two or four bytes, after the matching type.
func (p *msgpackPacker) length(n uint, short, long byte) {
	if n <= math.MaxUint16 {
		p.b = binary.BigEndian.AppendUint16(append(p.b, short), uint16(n))
		return
	}
	p.b = binary.BigEndian.AppendUint32(append(p.b, long), uint32(n))
}

// number writes f as an integer if it is one of 64 bits, in as few bytes as
// possible, or else as the floating point number that keeps its value.
func (p *msgpackPacker) number(f float64) {
	if n := lua.ToInt64(f); float64(n) == f {
		p.integer(n)
		return
	}
	if short := float32(f); float64(short) == f {
		p.b = binary.BigEndian.AppendUint32(append(p.b, mpFloat), math.Float32bits(short))
		return
	}
	p.b = binary.BigEndian.AppendUint64(append(p.b, mpDouble), math.Float64bits(f))
}

func (p *msgpackPacker) integer(n int64) {
	switch {
	case -32 <= n && n <= math.MaxInt8: // the byte is the number
		p.b = append(p.b, byte(n))
	case 0 <= n && n <= math.MaxUint8:
		p.b = append(p.b, mpUint8, byte(n))
	case 0 <= n && n <= math.MaxUint16:
		p.b = binary.BigEndian.AppendUint16(append(p.b, mpUint16), uint16(n))
	case 0 <= n && n <= math.MaxUint32:
		p.b = binary.BigEndian.AppendUint32(append(p.b, mpUint32), uint32(n))
	case 0 <= n:
		p.b = binary.BigEndian.AppendUint64(append(p.b, mpUint64), uint64(n))
	case math.MinInt8 <= n:
		p.b = append(p.b, mpInt8, byte(n))
	case math.MinInt16 <= n:
		p.b = binary.BigEndian.AppendUint16(append(p.b, mpInt16), uint16(n))
	case math.MinInt32 <= n:
		p.b = binary.BigEndian.AppendUint32(append(p.b, mpInt32), uint32(n))
	default:
		p.b = binary.BigEndian.AppendUint64(append(p.b, mpInt64), uint64(n))
	}
}

// table writes an array if the keys are 1 to n, none missing, which is so for an
// empty table; a map if not, in the order of pairs.
func (p *msgpackPacker) table(t *lua.Table, depth int) error {
	n, isArray, err := p.shape(t)
	if err != nil {
		return err
	}
	switch {
	case isArray && n <= 15:
		p.b = append(p.b, mpFixArray|byte(n))
	case isArray:
		p.length(uint(n), mpArray16, mpArray32)
	case n <= 15:
		p.b = append(p.b, mpFixMap|byte(n))
	default:
		p.length(uint(n), mpMap16, mpMap32)
	}
	if isArray {
		for i := 1; i <= n; i++ {
			if err := p.value(t.GetInt(i), depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	for i := 0; ; {
		k, v, next := t.Entry(i)
		if next < 0 {
			return nil
		}
		i = next
		if err := p.value(k, depth+1); err != nil {
			return err
		}
		if err := p.value(v, depth+1); err != nil {
			return err
		}
	}
}

// shape counts the entries of a table and tells whether it is an array.
func (p *msgpackPacker) shape(t *lua.Table) (n int, isArray bool, err error) {
	isArray = true
	longest := 0.0
	for i := 0; ; n++ {
		k, _, next := t.Entry(i)
		if next < 0 {
			return n, isArray && longest == float64(n), nil
		}
		i = next
		f, ok := k.AsNumber()
		isArray = isArray && ok && f > 0 && float64(lua.ToInt64(f)) == f
		longest = max(longest, f)
		if err := p.add(1); err != nil {
			return 0, false, err
		}
	}
}

// unpack implements cmsgpack.unpack: it returns all values of its argument.
func (l *msgpackLibrary) unpack(c lua.Call) error {
	return l.unpackFrom(c, 0, 0, c.N())
}

// unpackOne implements cmsgpack.unpack_one: it returns the offset of the next value, -1 if
// there is none, and one value from an offset.
func (l *msgpackLibrary) unpackOne(c lua.Call) error {
	offset, err := c.OptInt(2, 0)
	if err != nil {
		return err
	}
	return l.unpackFrom(c, 1, offset, 1)
}

// unpackLimit implements cmsgpack.unpack_limit: unpackOne for several values.
func (l *msgpackLibrary) unpackLimit(c lua.Call) error {
	limit, err := c.CheckInt(2)
	if err != nil {
		return err
	}
	offset, err := c.OptInt(3, 0)
	if err != nil {
		return err
	}
	return l.unpackFrom(c, limit, offset, 1)
}

// unpackFrom unpacks limit values from an offset on; all values and no offset if
// both are 0. args is how many arguments remain on the stack of Redis's library.
func (l *msgpackLibrary) unpackFrom(c lua.Call, limit, offset, args int) error {
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	if limit < 0 || offset < 0 { // the message has the length where it says limit
		return c.Errorf("Invalid request to unpack with offset of %d and limit of %d.", int32(offset), len(s))
	}
	if offset > len(s) {
		return c.Errorf("Start offset %d greater than input length %d.", int32(offset), len(s))
	}
	u := &l.unpacker
	if err := u.begin(c.State(), len(s)-offset); err != nil {
		return err
	}
	u.c, u.s, u.i = c, s, offset
	all := limit == 0 && offset == 0
	for n := 0; u.i < len(s) && err == nil && (all || n < limit); n++ {
		var v lua.Value
		if v, err = u.value(args + n); err == nil {
			err = u.push(v)
		}
	}
	if err == nil {
		err = u.result(args, all)
	}
	u.end()
	u.c, u.s = lua.Call{}, ""
	return err
}

// msgpackUnpacker reads values. The top of its stack is where the value being read
// would be on that of Redis's library, which makes depth end there.
type msgpackUnpacker struct {
	pile
	c lua.Call
	s string
	i int
}

// result ends the call with the values and, if not all were wanted, the offset
// before them.
func (u *msgpackUnpacker) result(args int, all bool) error {
	if err := u.state.Spend(u.steps); err != nil {
		return err
	}
	first := 0
	if !all {
		if args+len(u.values)+1 > libraryStack {
			return u.overflow("in function mp_unpack_full")
		}
		first = 1
	}
	places, err := u.c.Results(first + len(u.values))
	if err != nil {
		return err
	}
	copy(places[first:], u.values)
	if !all {
		places[0] = lua.Int(u.i)
		if u.i == len(u.s) {
			places[0] = lua.Int(-1)
		}
	}
	return nil
}

func (u *msgpackUnpacker) overflow(where string) error {
	return u.c.Errorf("stack overflow (%s)", where)
}

func (u *msgpackUnpacker) missing() error   { return u.c.Errorf("Missing bytes in input.") }
func (u *msgpackUnpacker) badFormat() error { return u.c.Errorf("Bad data format in input.") }

// uint reads n bytes behind the one at u.i, as an integer.
func (u *msgpackUnpacker) uint(n int) (uint64, error) {
	if len(u.s)-u.i-1 < n {
		return 0, u.missing()
	}
	v := uint64(0)
	for _, c := range []byte(u.s[u.i+1 : u.i+1+n]) {
		v = v<<8 | uint64(c)
	}
	u.i += 1 + n
	return v, nil
}

// value reads a value. top is how many values are on the stack below it.
func (u *msgpackUnpacker) value(top int) (lua.Value, error) {
	if top+1 > libraryStack {
		return lua.Nil, u.overflow("too many return values at once; use unpack_one or unpack_limit instead.")
	}
	if err := u.add(1); err != nil {
		return lua.Nil, err
	}
	if u.i == len(u.s) {
		return lua.Nil, u.missing()
	}
	switch c := u.s[u.i]; {
	case c < mpFixMap:
		u.i++
		return lua.Int(int(c)), nil
	case c < mpFixArray:
		u.i++
		return u.table(int(c&15), top)
	case c < mpFixRaw:
		u.i++
		return u.array(int(c&15), top)
	case c < mpNil:
		u.i++
		return u.text(int(c & 31))
	case c > mpMap32:
		u.i++
		return lua.Int(int(int8(c))), nil
	default:
		return u.long(c, top)
	}
}

// widths has the number of bytes of a number or a length after the types from mpFloat
// to mpMap32; the types with none are not of Lua.
var widths = [...]int{
	mpFloat: 4, mpDouble: 8,
	mpUint8: 1, mpUint16: 2, mpUint32: 4, mpUint64: 8,
	mpInt8: 1, mpInt16: 2, mpInt32: 4, mpInt64: 8,
	mpRaw8: 1, mpRaw16: 2, mpRaw32: 4,
	mpArray16: 2, mpArray32: 4, mpMap16: 2, mpMap32: 4,
}

// long reads a value whose type c fills a byte.
func (u *msgpackUnpacker) long(c byte, top int) (lua.Value, error) {
	switch c {
	case mpNil, mpFalse, mpTrue:
		u.i++
		return [...]lua.Value{lua.Nil, lua.Nil, lua.False, lua.True}[c-mpNil], nil
	}
	width := widths[c]
	if width == 0 {
		return lua.Nil, u.badFormat()
	}
	n, err := u.uint(width)
	if err != nil {
		return lua.Nil, err
	}
	switch c {
	case mpFloat:
		return lua.Number(float64(math.Float32frombits(uint32(n)))), nil
	case mpDouble:
		return lua.Number(math.Float64frombits(n)), nil
	case mpUint8, mpUint16, mpUint32, mpUint64: // from 1<<63 on negative, as there
		return lua.Number(float64(int64(n))), nil
	case mpInt8, mpInt16, mpInt32, mpInt64:
		unused := 64 - 8*width
		return lua.Number(float64(int64(n<<unused) >> unused)), nil
	case mpRaw8, mpRaw16, mpRaw32:
		return u.text(int(n))
	case mpArray16, mpArray32:
		return u.array(int(n), top)
	}
	return u.table(int(n), top)
}

// text reads a string of n bytes.
func (u *msgpackUnpacker) text(n int) (lua.Value, error) {
	if len(u.s)-u.i < n {
		return lua.Nil, u.missing()
	}
	s := u.s[u.i : u.i+n]
	u.i += n
	return u.pile.text(s), nil
}

// array reads n items.
func (u *msgpackUnpacker) array(n, top int) (lua.Value, error) {
	if top+2 > libraryStack {
		return lua.Nil, u.overflow("in function mp_decode_to_lua_array")
	}
	first := len(u.values)
	holes := false
	for range n {
		v, err := u.value(top + 2)
		if err != nil {
			return lua.Nil, err
		}
		holes = holes || v.IsNil()
		if err := u.push(v); err != nil {
			return lua.Nil, err
		}
	}
	if !holes {
		return u.pile.array(first)
	}
	t := u.state.NewTable(0, 0)
	for i, v := range u.values[first:] {
		if err := t.SetInt(i+1, v); err != nil {
			return lua.Nil, err
		}
	}
	return u.made(t, nil, first)
}

// table reads n keys and values. A key that no table can have is an error at once.
func (u *msgpackUnpacker) table(n, top int) (lua.Value, error) {
	first := len(u.values)
	record := true
	for range n {
		k, err := u.value(top + 1)
		if err != nil {
			return lua.Nil, err
		}
		v, err := u.value(top + 2)
		if err != nil {
			return lua.Nil, err
		}
		if f, ok := k.AsNumber(); k.IsNil() || ok && f != f {
			return lua.Nil, u.state.NewTable(0, 0).Set(k, v)
		}
		record = record && k.IsString() && !v.IsNil()
		if err := u.push(k); err != nil {
			return lua.Nil, err
		}
		if err := u.push(v); err != nil {
			return lua.Nil, err
		}
	}
	if record {
		return u.record(first)
	}
	t := u.state.NewTable(0, 0)
	for i := first; i < len(u.values); i += 2 {
		if err := t.Set(u.values[i], u.values[i+1]); err != nil {
			return lua.Nil, err
		}
	}
	return u.made(t, nil, first)
}
