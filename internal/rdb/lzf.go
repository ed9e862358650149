package rdb

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// This file implements LZF as RDB strings use it. A compressed string is a sequence of
//
//	000LLLLL            L+1 literal bytes follow
//	LLLooooo oooooooo   copy L+2 bytes (L < 7) from o+1 bytes back
//	111ooooo L oooooooo copy L+9 bytes from there
const (
	lzfLiteral = 1 << 5       // the longest run of literal bytes
	lzfMatch   = 2 + 7 + 255  // the longest copy
	lzfBack    = 1 << 13      // how far back a copy may begin
	lzfGain    = lzfMatch / 3 // the greatest number of bytes that one compressed byte may give
)

// unpackLZF decompresses src, which has n bytes, and appends them to dst.
func unpackLZF(dst, src []byte, n int) ([]byte, error) {
	if n < 0 || n/lzfGain > len(src) {
		return dst, bad("a compressed string of %d bytes cannot hold %d", len(src), n)
	}
	start := len(dst)
	dst = slices.Grow(dst, n)
	for i := 0; i < len(src); {
		c := int(src[i])
		i++
		if c < lzfLiteral {
			if c+1 > len(src)-i || len(dst)-start+c+1 > n {
				return dst, bad("a compressed string is cut off")
			}
			dst = append(dst, src[i:i+c+1]...)
			i += c + 1
			continue
		}
		size := c>>5 + 2
		if size == 9 && i < len(src) {
			size += int(src[i])
			i++
		}
		if i >= len(src) {
			return dst, bad("a compressed string is cut off")
		}
		from := len(dst) - (c&31<<8 | int(src[i])) - 1
		i++
		if from < start || len(dst)-start+size > n {
			return dst, bad("a compressed string refers to what it does not hold")
		}
		to := len(dst)
		dst = dst[:to+size]
		if from+size <= to {
			copy(dst[to:], dst[from:from+size])
			continue
		}
		for ; to < len(dst); to++ { // the copy overlaps with the bytes that it writes
			dst[to] = dst[from]
			from++
		}
	}
	if len(dst)-start != n {
		return dst, bad("a compressed string holds %d bytes, not %d", len(dst)-start, n)
	}
	return dst, nil
}

// lzfHashBits is the size of the table of positions at which three bytes were last seen: 32 KiB,
// about as far back as a copy may begin.
const lzfHashBits = 13

type lzfTable [1 << lzfHashBits]int32 // position + 1

// packLZF appends src, compressed, to dst. If that saves less than four bytes, ok is false, and it
// returns dst unchanged.
func (t *lzfTable) packLZF(dst, src []byte) (out []byte, ok bool) {
	le := binary.LittleEndian
	width := min(lzfHashBits, bits.Len(uint(len(src)))+1) // a small table for a short string
	clear(t[:1<<width])
	out = dst
	limit := len(dst) + len(src) - 4
	plain := 0 // the beginning of the bytes that are not written yet
	for i := 0; i+3 < len(src) && len(out) < limit; {
		three := le.Uint32(src[i:]) << 8
		slot := &t[three*2654435761>>(32-width)&(1<<lzfHashBits-1)]
		at := int(*slot) - 1
		*slot = int32(i + 1)
		if at < 0 || i-at > lzfBack || le.Uint32(src[at:])<<8 != three {
			i++
			continue
		}
		size := common(src[at:], src[i:min(i+lzfMatch, len(src))])
		out = appendPlain(out, src[plain:i])
		out = appendMatch(out, size-2, i-at-1)
		i += size
		plain = i
	}
	out = appendPlain(out, src[plain:])
	if len(out) > limit {
		return dst, false
	}
	return out, true
}

// common returns how many bytes at the beginning of b are those of a, which is not shorter. The first three are.
func common(a, b []byte) int {
	n := 3
	for ; n+8 <= len(b); n += 8 {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func appendPlain(dst, b []byte) []byte {
	for len(b) > 0 {
		n := min(len(b), lzfLiteral)
		dst = append(append(dst, byte(n-1)), b[:n]...)
		b = b[n:]
	}
	return dst
}

func appendMatch(dst []byte, size, back int) []byte {
	if size < 7 {
		return append(dst, byte(size<<5|back>>8), byte(back))
	}
	return append(dst, byte(7<<5|back>>8), byte(size-7), byte(back))
}
