package rdb

import (
	"encoding/binary"
	"hash/crc64"
)

// jonesPoly is the polynomial of Redis's CRC: 0xad93d23594c935a9, reflected. Neither the start nor
// the result is inverted.
const jonesPoly = 0x95ac9329ac4bc9b5

// jonesBy8 has, for each of eight bytes that are read at once, its contribution to the CRC after
// the bytes that follow it. Package crc64 does this for its own polynomials only.
var jonesBy8 = slicingBy8(crc64.MakeTable(jonesPoly))

func slicingBy8(t *crc64.Table) *[8]crc64.Table {
	by8 := [8]crc64.Table{*t}
	for i := range t {
		crc := t[i]
		for j := 1; j < 8; j++ {
			crc = t[byte(crc)] ^ crc>>8
			by8[j][i] = crc
		}
	}
	return &by8
}

// lane is the number of bytes of a lane of Checksum before the lanes are added. The addition costs
// about as much as 32 bytes.
const lane = 1 << 10

// afterLane has, for each byte of a CRC, its value after lane bytes of 0.
var afterLane = lanesTable()

// lanesTable computes afterLane: the product for each bit, and for each byte the sum of the
// products of its bits.
func lanesTable() *[8]crc64.Table {
	var t [8]crc64.Table
	p := crcZeros(1<<63, lane)
	for i := range t {
		for c := 1; c < 256; c++ {
			if low := c & -c; low != c {
				t[i][c] = t[i][low] ^ t[i][c^low]
			} else {
				t[i][c] = crcMultiply(uint64(c)<<(8*i), p)
			}
		}
	}
	return &t
}

// Checksum continues the CRC64 crc, 0 at the start, with b. Each step of a CRC waits for the step
// before it. So Checksum computes four lanes in parallel, three of which begin at 0, and adds them.
func Checksum(crc uint64, b []byte) uint64 {
	for ; len(b) >= 4*lane; b = b[4*lane:] {
		c := [4]uint64{crc}
		sumLanes(&c, (*[4 * lane]byte)(b))
		crc = skipLane(skipLane(skipLane(c[0])^c[1])^c[2]) ^ c[3]
	}
	for ; len(b) >= 8; b = b[8:] {
		crc = sumWord(jonesBy8, crc^binary.LittleEndian.Uint64(b))
	}
	for _, c := range b {
		crc = jonesBy8[0][byte(crc)^c] ^ crc>>8
	}
	return crc
}

func sumWord(t *[8]crc64.Table, crc uint64) uint64 {
	return t[7][byte(crc)] ^ t[6][byte(crc>>8)] ^ t[5][byte(crc>>16)] ^ t[4][byte(crc>>24)] ^
		t[3][byte(crc>>32)] ^ t[2][byte(crc>>40)] ^ t[1][byte(crc>>48)] ^ t[0][crc>>56]
}

func sumLanes(c *[4]uint64, b *[4 * lane]byte) {
	t, le := jonesBy8, binary.LittleEndian
	c0, c1, c2, c3 := c[0], c[1], c[2], c[3]
	for i := 0; i < lane; i += 8 {
		c0 = sumWord(t, c0^le.Uint64(b[i:]))
		c1 = sumWord(t, c1^le.Uint64(b[lane+i:]))
		c2 = sumWord(t, c2^le.Uint64(b[2*lane+i:]))
		c3 = sumWord(t, c3^le.Uint64(b[3*lane+i:]))
	}
	c[0], c[1], c[2], c[3] = c0, c1, c2, c3
}

func skipLane(crc uint64) uint64 {
	t := afterLane
	return t[0][byte(crc)] ^ t[1][byte(crc>>8)] ^ t[2][byte(crc>>16)] ^ t[3][byte(crc>>24)] ^
		t[4][byte(crc>>32)] ^ t[5][byte(crc>>40)] ^ t[6][byte(crc>>48)] ^ t[7][crc>>56]
}

// crcZeros continues a CRC with n bytes of 0, or removes -n of them, in O(log n): each byte
// multiplies it by x^8 modulo the polynomial. The CRC is linear, because neither start nor result
// is inverted. So a change of bytes adds the CRC of their difference, followed by as many zeros as
// there are bytes after them.
func crcZeros(crc uint64, n int64) uint64 {
	p := uint64(1) << (63 - 8) // bit 63 is x^0
	if n < 0 {
		n, p = -n, 1<<63
		for range 8 { // divide by x
			p = (p^-(p>>63)&jonesPoly)<<1 | p>>63
		}
	}
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			crc = crcMultiply(crc, p)
		}
		p = crcMultiply(p, p)
	}
	return crc
}

// crcBefore returns the CRC that gives crc when it is continued with b.
func crcBefore(crc uint64, b []byte) uint64 {
	return crcZeros(crc^Checksum(0, b), -int64(len(b)))
}

// crcMultiply multiplies two polynomials modulo the CRC's.
func crcMultiply(a, b uint64) (product uint64) {
	for ; a != 0; a <<= 1 {
		if a>>63 != 0 {
			product ^= b
		}
		b = b>>1 ^ -(b&1)&jonesPoly
	}
	return product
}
