package script

import (
	"math"
	"math/bits"

	"github.com/ebbdb/ebb/internal/lua"
)

// openBit adds the library bit to the globals: operations on 32 bits, as Lua
// BitOp 1.0.2 defines them (http://bitop.luajit.org/semantics.html).
func openBit(s *lua.State) {
	t := s.NewTable(0, 12)
	set(t,
		function("tobit", func(c lua.Call) error { return bitUnary(c, func(x uint32) uint32 { return x }) }),
		function("bnot", func(c lua.Call) error { return bitUnary(c, func(x uint32) uint32 { return ^x }) }),
		function("band", func(c lua.Call) error { return bitFold(c, func(x, y uint32) uint32 { return x & y }) }),
		function("bor", func(c lua.Call) error { return bitFold(c, func(x, y uint32) uint32 { return x | y }) }),
		function("bxor", func(c lua.Call) error { return bitFold(c, func(x, y uint32) uint32 { return x ^ y }) }),
		function("lshift", func(c lua.Call) error { return bitShift(c, func(x, n uint32) uint32 { return x << n }) }),
		function("rshift", func(c lua.Call) error { return bitShift(c, func(x, n uint32) uint32 { return x >> n }) }),
		function("arshift", func(c lua.Call) error {
			return bitShift(c, func(x, n uint32) uint32 { return uint32(int32(x) >> n) })
		}),
		function("rol", func(c lua.Call) error {
			return bitShift(c, func(x, n uint32) uint32 { return bits.RotateLeft32(x, int(n)) })
		}),
		function("ror", func(c lua.Call) error {
			return bitShift(c, func(x, n uint32) uint32 { return bits.RotateLeft32(x, -int(n)) })
		}),
		function("bswap", func(c lua.Call) error { return bitUnary(c, bits.ReverseBytes32) }),
		function("tohex", bitToHex))
	set(s.Globals(), field{"bit", lua.TableValue(t)})
}

// bitArg returns argument i as 32 bits.
func bitArg(c lua.Call, i int) (uint32, error) {
	f, ok := c.Arg(i).AsNumber()
	if !ok {
		var err error
		if f, err = c.CheckNumber(i); err != nil {
			return 0, err
		}
	}
	return toBits(f), nil
}

// toBits returns f modulo 2^32, rounded to the nearest integer, with ties to even. The sum
// with 2^52+2^51 has these bits at the end of its mantissa if |f| <= 2^51. For other
// numbers its result is that of BitOp too.
func toBits(f float64) uint32 {
	return uint32(math.Float64bits(f + (1<<52 + 1<<51)))
}

// bitReturn ends a call with 32 bits, as a signed integer.
func bitReturn(c lua.Call, x uint32) error { return c.Return(lua.Number(float64(int32(x)))) }

func bitUnary(c lua.Call, f func(uint32) uint32) error {
	x, err := bitArg(c, 1)
	if err != nil {
		return err
	}
	return bitReturn(c, f(x))
}

// bitFold combines all arguments: the first one, then the others beginning with the last.
// The order decides which of two wrong arguments the error names.
func bitFold(c lua.Call, f func(x, y uint32) uint32) error {
	x, err := bitArg(c, 1)
	if err != nil {
		return err
	}
	for i := c.N(); i > 1; i-- {
		y, err := bitArg(c, i)
		if err != nil {
			return err
		}
		x = f(x, y)
	}
	if err := c.State().Spend(c.N() / 4); err != nil {
		return err
	}
	return bitReturn(c, x)
}

// bitShift shifts by the low five bits of the second argument.
func bitShift(c lua.Call, f func(x, n uint32) uint32) error {
	x, err := bitArg(c, 1)
	if err != nil {
		return err
	}
	n, err := bitArg(c, 2)
	if err != nil {
		return err
	}
	return bitReturn(c, f(x, n&31))
}

// bitToHex writes as many of the low digits as the second argument says, all
// eight without it, in capitals if it is negative.
func bitToHex(c lua.Call) error {
	x, err := bitArg(c, 1)
	if err != nil {
		return err
	}
	n := int32(8)
	if c.N() >= 2 {
		digits, err := bitArg(c, 2)
		if err != nil {
			return err
		}
		n = int32(digits)
	}
	alphabet := "0123456789abcdef"
	if n < 0 {
		alphabet = "0123456789ABCDEF"
	}
	size := min(uint32(max(n, -n)), 8) // the absolute value of the least int32 is right as uint32
	text := make([]byte, size)
	for i := len(text) - 1; i >= 0; i-- {
		text[i] = alphabet[x&15]
		x >>= 4
	}
	if err := c.State().Charge(len(text)); err != nil {
		return err
	}
	return c.Return(lua.Bytes(text))
}
