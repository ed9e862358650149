package rdb

import (
	"encoding/binary"
	"math"
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

// lzfSpare is the number of bytes behind a text that packing and unpacking may overwrite: they copy short pieces in one fixed
// size, which costs less than a call that copies the exact number.
const lzfSpare = 32

// unpackLZF decompresses src, which has n bytes, and appends them to dst. It may overwrite the bytes
// between the length and the capacity of the result.
func unpackLZF(dst, src []byte, n int) ([]byte, error) {
	if n < 0 || n/lzfGain > len(src) {
		return dst, bad("a compressed string of %d bytes cannot hold %d", len(src), n)
	}
	dst = slices.Grow(dst, n+lzfSpare)
	start := len(dst)
	to, ok := unpack(dst[start:start+n+lzfSpare], src)
	switch {
	case !ok:
		return dst, bad("a compressed string of %d bytes is cut off, or refers to what it does not hold", len(src))
	case to != n:
		return dst, bad("a compressed string holds %d bytes, not %d", to, n)
	}
	return dst[:start+n], nil
}

// unpack decompresses src to the beginning of dst, and returns the number of bytes; ok is false if src is damaged, or the bytes
// reach into the last lzfSpare of dst.
func unpack(dst, src []byte) (to int, ok bool) {
	end := len(dst) - lzfSpare
	for i := 0; i < len(src); {
		c := int(src[i])
		i++
		if c < lzfLiteral {
			c++
			if c > len(src)-i || c > end-to {
				return to, false
			}
			if c <= 16 && i+16 <= len(src) {
				*(*[16]byte)(dst[to:]) = [16]byte(src[i:])
			} else {
				copy(dst[to:to+c], src[i:])
			}
			i, to = i+c, to+c
			continue
		}
		size := c>>5 + 2
		if size == 9 && i < len(src) {
			size += int(src[i])
			i++
		}
		if i >= len(src) {
			return to, false
		}
		back := (c&31<<8 | int(src[i])) + 1
		i++
		from := to - back
		if from < 0 || size > end-to {
			return to, false
		}
		switch {
		case size <= 16 && size <= back:
			*(*[16]byte)(dst[to:]) = [16]byte(dst[from:])
		case size <= back:
			copy(dst[to:to+size], dst[from:])
		default: // the copy overlaps with the bytes that it writes: they repeat
			b := dst[from : to+size]
			for n := back; n < len(b); n *= 2 {
				copy(b[n:], b[:n])
			}
		}
		to += size
	}
	return to, true
}

// lzfHashBits is the size of the table of positions at which three bytes were last seen: 32 KiB,
// about as far back as a copy may begin.
const lzfHashBits = 13

// lzfTable has the position at which three bytes were last seen, plus base. A position below base belongs to an earlier text,
// so that no text begins with clearing the table.
type lzfTable struct {
	at   [1 << lzfHashBits]uint32
	base uint32
}

// begin returns the base of a text of n bytes.
func (t *lzfTable) begin(n int) int {
	if t.base == 0 || uint32(n) > math.MaxUint32-t.base {
		clear(t.at[:])
		t.base = 1
	}
	base := t.base
	t.base += uint32(n)
	return int(base)
}

// packLZF appends src, compressed, to dst. If that saves less than four bytes, ok is false, and it
// returns dst unchanged. It may overwrite the bytes between the length and the capacity of the result.
func (t *lzfTable) packLZF(dst, src []byte) (out []byte, ok bool) {
	le, base := binary.LittleEndian, t.begin(len(src))
	shift := 32 - min(lzfHashBits, bits.Len(uint(len(src)))+1) // few positions for a short text: they stay in the processor's cache
	dst = slices.Grow(dst, len(src)+2*lzfSpare)
	out = dst[len(dst) : len(dst)+len(src)+2*lzfSpare]
	to, plain := 0, 0 // plain is the beginning of the bytes that are not written yet
	for i := 0; i+3 < len(src); {
		four := le.Uint32(src[i:])
		slot := &t.at[four<<8*2654435761>>shift&(1<<lzfHashBits-1)]
		at := int(*slot) - base
		*slot = uint32(base + i)
		if at < 0 || i-at > lzfBack || (le.Uint32(src[at:])^four)<<8 != 0 {
			i++
			continue
		}
		if n := i - plain; uint(n-1) < 16 && plain+16 <= len(src) && to+n < len(src) {
			out[to] = byte(n - 1)
			*(*[16]byte)(out[to+1:]) = [16]byte(src[plain:])
			to += 1 + n
		} else {
			if to+n+n/lzfLiteral > len(src) {
				return dst, false
			}
			to = putPlain(out, to, src, plain, i)
		}
		size, back := 3, i-at-1
		if i+8 <= len(src) && le.Uint64(src[at:]) == le.Uint64(src[i:]) {
			size = common(src[at:], src[i:min(i+lzfMatch, len(src))], 8)
		} else { // the processor predicts these branches and need not wait for the length
			for i+size < len(src) && src[at+size] == src[i+size] {
				size++
			}
		}
		if size < 9 {
			out[to], out[to+1] = byte((size-2)<<5|back>>8), byte(back)
			to += 2
		} else {
			out[to], out[to+1], out[to+2] = byte(7<<5|back>>8), byte(size-9), byte(back)
			to += 3
		}
		i += size
		plain = i
	}
	if rest := len(src) - plain; to+rest+(rest+lzfLiteral-1)/lzfLiteral > len(src)-4 {
		return dst, false
	}
	to = putPlain(out, to, src, plain, len(src))
	return dst[:len(dst)+to], true
}

// common returns how many bytes at the beginning of b are those of a, which is not shorter. The first n are.
func common(a, b []byte, n int) int {
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

// putPlain writes the bytes of src from i to end to out[to:], and returns the position after them.
func putPlain(out []byte, to int, src []byte, i, end int) int {
	for i < end {
		n := min(end-i, lzfLiteral)
		out[to] = byte(n - 1)
		to++
		if n <= 16 && i+16 <= len(src) {
			*(*[16]byte)(out[to:]) = [16]byte(src[i:])
		} else {
			copy(out[to:], src[i:i+n])
		}
		i, to = i+n, to+n
	}
	return to
}
