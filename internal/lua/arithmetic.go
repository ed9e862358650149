package lua

import "math"

// luaMod computes Lua's %: the remainder has the sign of b. The product is converted so
// that no processor adds to it without rounding.
func luaMod(a, b float64) float64 { return a - float64(math.Floor(a/b)*b) }

// ToInt64, ToInt32 and ToUint64 convert a number to an integer as C's casts do on
// x86-64, where Redis's results come from: what does not fit, and a NaN, is the
// least integer, which the processor makes of it.
func ToInt64(f float64) int64 {
	if -(1<<63) <= f && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64
}

// ToInt32 converts as ToInt64 does, to 32 bits.
func ToInt32(f float64) int32 {
	if -(1<<31)-1 < f && f < 1<<31 {
		return int32(f)
	}
	return math.MinInt32
}

// ToUint64 returns 0 for a number from 2^64 on. It converts a negative number to a signed
// integer first.
func ToUint64(f float64) uint64 {
	if f >= 1<<63 {
		return uint64(ToInt64(f-1<<63)) ^ 1<<63
	}
	return uint64(ToInt64(f))
}
