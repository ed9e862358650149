package geohash

import (
	"math"
	"strconv"
)

// Unit returns the length in metres of m, km, ft or mi, in any case.
func Unit(name []byte) (metres float64, ok bool) {
	low := func(i int) byte { return name[i] | 0x20 }
	switch {
	case len(name) == 1 && low(0) == 'm':
		return 1, true
	case len(name) != 2:
		return 0, false
	}
	switch [2]byte{low(0), low(1)} {
	case [2]byte{'k', 'm'}:
		return 1000, true
	case [2]byte{'f', 't'}:
		return 0.3048, true
	case [2]byte{'m', 'i'}:
		return 1609.34, true
	}
	return 0, false
}

// AppendDistance appends a distance with four digits after the point. Like Redis it rounds the ten
// thousandths, halves to even, not the distance's exact decimal form.
func AppendDistance(dst []byte, distance float64) []byte {
	n := int64(math.RoundToEven(distance * 10000))
	dst = strconv.AppendInt(dst, n/10000, 10)
	n = n%10000 + 10000
	at := len(dst)
	dst = strconv.AppendInt(dst, n, 10)
	dst[at] = '.' // overwrites the 1 that kept the leading zeros
	return dst
}
