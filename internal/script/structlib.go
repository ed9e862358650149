package script

import (
	"fmt"
	"math"
	"strings"

	"github.com/ebbdb/ebb/internal/lua"
)

// openStruct adds the library struct to the globals: binary records, as Roberto
// Ierusalimschy's lua-struct in Redis packs them
// (http://www.inf.puc-rio.br/~roberto/struct/).
func openStruct(s *lua.State) {
	t := s.NewTable(0, 3)
	set(t,
		function("pack", structPack),
		function("unpack", structUnpack),
		function("size", structSize))
	set(s.Globals(), field{"struct", lua.TableValue(t)})
}

const (
	maxStructInt   = 32 // bytes of an integer; it has no more than 64 bits of its own
	maxStructAlign = 8  // what "!" alone aligns to
)

// structFormat reads a format. Its letters: b B 1 byte, h H 2, l L T 8, i I 4 or
// the number that follows, f d floating point, s a string up to a zero byte, c a
// string of the length that follows, x a byte of padding; ! alignment, < and > the
// order of bytes.
type structFormat struct {
	meter
	c     lua.Call
	s     string // what was not read
	align int
	big   bool
}

func newStructFormat(c lua.Call) (structFormat, error) {
	s, err := c.CheckString(1)
	return structFormat{meter: meter{state: c.State()}, c: c, s: cString(s), align: 1}, err
}

// next reads a letter, with the number behind it where it may have one, and
// returns the bytes that it takes, 0 where that depends on more.
func (f *structFormat) next() (letter byte, size int, err error) {
	if err := f.add(1); err != nil {
		return 0, 0, err
	}
	letter = f.s[0]
	f.s = f.s[1:]
	switch letter {
	case 'b', 'B', 'x':
		size = 1
	case 'h', 'H':
		size = 2
	case 'f':
		size = 4
	case 'l', 'L', 'T', 'd':
		size = 8
	case 'c':
		size, err = f.count(1)
	case 'i', 'I':
		if size, err = f.count(4); err == nil && size > maxStructInt {
			err = f.c.Errorf("integral size %d is larger than limit of %d", size, maxStructInt)
		}
	}
	return letter, size, err
}

// count reads the number at the present position, and returns d if there is none.
func (f *structFormat) count(d int) (int, error) {
	if f.s == "" || f.s[0]-'0' > 9 {
		return d, nil
	}
	n := 0
	for ; f.s != "" && f.s[0]-'0' <= 9; f.s = f.s[1:] {
		n = n*10 + int(f.s[0]-'0')
		if n > math.MaxInt32 {
			return 0, f.c.Errorf("integral size overflow")
		}
	}
	return n, nil
}

// padding returns how many bytes stand at position at before a letter of this size. The
// formula is meant for sizes that are powers of two; others get what it yields.
func (f *structFormat) padding(at uint64, letter byte, size int) uint64 {
	if size == 0 || letter == 'c' {
		return 0
	}
	n := uint64(min(size, f.align))
	return (n - at&(n-1)) & (n - 1)
}

// control handles a letter that is not an item.
func (f *structFormat) control(letter byte) error {
	switch letter {
	case ' ':
	case '<':
		f.big = false
	case '>':
		f.big = true
	case '!':
		n, err := f.count(maxStructAlign)
		if err != nil {
			return err
		}
		if n == 0 || n&(n-1) != 0 {
			return f.c.Errorf("alignment %d is not a power of 2", n)
		}
		f.align = n
	default:
		return f.c.ArgError(1, fmt.Sprintf("invalid format option '%s'", string([]byte{letter})))
	}
	return nil
}

// structSize implements struct.size: it returns the number of bytes that a format packs.
func structSize(c lua.Call) error {
	f, err := newStructFormat(c)
	if err != nil {
		return err
	}
	at := uint64(0)
	for f.s != "" {
		letter, size, err := f.next()
		if err != nil {
			return err
		}
		at += f.padding(at, letter, size)
		if letter == 's' || letter == 'c' && size == 0 {
			option := "s"
			if letter == 'c' {
				option = "c0"
			}
			return c.ArgError(1, fmt.Sprintf("option '%s' has no fixed size", option))
		}
		if !isAlphanumeric(letter) {
			if err := f.control(letter); err != nil {
				return err
			}
		}
		at += uint64(size)
	}
	return c.Return(lua.Number(float64(int64(at))))
}

// isAlphanumeric reports the same as C's isalnum: size takes every such letter as an item.
func isAlphanumeric(c byte) bool { return c-'0' <= 9 || (c|0x20)-'a' <= 25 }

// structPack implements struct.pack: it returns a record of its arguments.
func structPack(c lua.Call) error {
	f, err := newStructFormat(c)
	if err != nil {
		return err
	}
	out := output{meter: meter{state: c.State()}}
	arg := 2
	for f.s != "" {
		letter, size, err := f.next()
		if err != nil {
			return err
		}
		padding := f.padding(uint64(len(out.b)), letter, size)
		if err := out.reserve(2 * maxStructInt); err != nil {
			return err
		}
		for range padding {
			out.b = append(out.b, 0)
		}
		switch letter {
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
			n, err := structNumber(c, arg)
			if err != nil {
				return err
			}
			out.b = f.appendInt(out.b, lua.ToUint64(n), size)
			arg++
		case 'f':
			n, err := structNumber(c, arg)
			if err != nil {
				return err
			}
			out.b = f.appendInt(out.b, uint64(math.Float32bits(float32(n))), 4)
			arg++
		case 'd':
			n, err := structNumber(c, arg)
			if err != nil {
				return err
			}
			out.b = f.appendInt(out.b, math.Float64bits(n), 8)
			arg++
		case 'x':
			out.b = append(out.b, 0)
		case 's', 'c':
			if err := structString(c, &out, &arg, letter, size); err != nil {
				return err
			}
		default:
			if err := f.control(letter); err != nil {
				return err
			}
		}
	}
	v, err := out.take()
	if err != nil {
		return err
	}
	return c.Return(v)
}

// structNumber returns a number as CheckNumber does. A missing argument counts as nil.
func structNumber(c lua.Call, i int) (float64, error) {
	if i > c.N() {
		return 0, c.ArgError(i, "number expected, got nil")
	}
	return c.CheckNumber(i)
}

// structString packs the string in argument *arg.
func structString(c lua.Call, out *output, arg *int, letter byte, size int) error {
	if *arg > c.N() {
		return c.ArgError(*arg, "string expected, got nil")
	}
	s, err := c.CheckString(*arg)
	if err != nil {
		return err
	}
	*arg++
	if size == 0 {
		size = len(s)
	}
	if len(s) < size {
		return c.ArgError(*arg, "string too short")
	}
	if err := out.reserve(size + 1); err != nil {
		return err
	}
	out.b = append(out.b, s[:size]...)
	if letter == 's' {
		out.b = append(out.b, 0)
	}
	return out.add(size / bytesPerStep)
}

// appendInt appends size bytes of n; those beyond its eight are zeros.
func (f *structFormat) appendInt(b []byte, n uint64, size int) []byte {
	for i := range size {
		if f.big {
			i = size - 1 - i
		}
		b = append(b, byte(n>>(8*i)))
	}
	return b
}

// readInt is the inverse of appendInt, for up to 64 bits; it returns the lowest 64 bits of
// more.
func (f *structFormat) readInt(s string) uint64 {
	n := uint64(0)
	for i := range len(s) {
		if !f.big {
			i = len(s) - 1 - i
		}
		n = n<<8 | uint64(s[i])
	}
	return n
}

// structUnpack implements struct.unpack: it returns the items of a record from a position
// on, and the position after them.
func structUnpack(c lua.Call) error {
	f, err := newStructFormat(c)
	if err != nil {
		return err
	}
	data, err := c.CheckString(2)
	if err != nil {
		return err
	}
	start, err := c.OptInt(3, 1)
	if err != nil {
		return err
	}
	if start == 0 {
		return c.ArgError(3, "offset must be 1 or greater")
	}
	u := structReader{structFormat: f, data: data, at: uint64(start - 1), base: c.N()}
	var room [16]lua.Value
	u.items = room[:0]
	for u.s != "" {
		if err := u.item(); err != nil {
			return err
		}
	}
	u.items = append(u.items, lua.Number(float64(int64(u.at+1))))
	return c.Return(u.items...)
}

// structReader unpacks a record.
type structReader struct {
	structFormat
	data  string
	at    uint64 // the position in data; any number, as the caller chose where to begin
	items []lua.Value
	base  int // places that the arguments take on the stack of Redis's library
}

// has reports whether at least size bytes are left.
func (u *structReader) has(size uint64) bool {
	return size <= uint64(len(u.data)) && u.at <= uint64(len(u.data))-size
}

// item unpacks one letter of the format.
func (u *structReader) item() error {
	letter, n, err := u.next()
	if err != nil {
		return err
	}
	size := uint64(n)
	u.at += u.padding(u.at, letter, n)
	if !u.has(size) {
		return u.c.ArgError(2, "data string too short")
	}
	if u.base+len(u.items)+2 > libraryStack {
		return u.c.Errorf("stack overflow (too many results)")
	}
	switch letter {
	case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
		u.items = append(u.items, u.integer(u.data[u.at:u.at+size], letter >= 'a'))
	case 'x':
	case 'f':
		bits := uint32(u.readInt(u.data[u.at : u.at+size]))
		u.items = append(u.items, lua.Number(float64(math.Float32frombits(bits))))
	case 'd':
		bits := u.readInt(u.data[u.at : u.at+size])
		u.items = append(u.items, lua.Number(math.Float64frombits(bits)))
	case 'c':
		if size == 0 {
			if size, err = u.previous(); err != nil {
				return err
			}
		}
		err = u.text(size)
	case 's':
		end := strings.IndexByte(u.data[u.at:], 0)
		if end < 0 {
			return u.c.Errorf("unfinished string in data")
		}
		size = uint64(end) + 1
		err = u.text(uint64(end))
	default:
		err = u.control(letter)
	}
	u.at += size
	return err
}

// integer reads an integer. Beyond eight bytes the sign is looked for where C's
// shift by more than 63 bits has it on Redis's machines.
func (u *structReader) integer(s string, signed bool) lua.Value {
	n := u.readInt(s)
	if !signed {
		return lua.Number(float64(n))
	}
	mask := ^uint64(0) << ((8*uint(len(s)) - 1) & 63)
	if n&mask != 0 {
		n |= mask
	}
	return lua.Number(float64(int64(n)))
}

// previous removes and returns the last item, which is the length for "c0".
func (u *structReader) previous() (uint64, error) {
	if len(u.items) > 0 {
		last := u.items[len(u.items)-1]
		f, ok := last.AsNumber()
		if s, isString := last.AsString(); isString {
			f, ok = lua.ParseNumber(s)
		}
		if ok {
			u.items = u.items[:len(u.items)-1]
			size := lua.ToUint64(f)
			if !u.has(size) {
				return 0, u.c.ArgError(2, "data string too short")
			}
			return size, nil
		}
	}
	return 0, u.c.Errorf("format 'c0' needs a previous size")
}

// text unpacks a string of this size.
func (u *structReader) text(size uint64) error {
	if err := u.state.Charge(int(size)); err != nil {
		return err
	}
	u.items = append(u.items, lua.String(strings.Clone(u.data[u.at:u.at+size])))
	return u.add(int(size / bytesPerStep))
}
