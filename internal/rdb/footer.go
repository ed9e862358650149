package rdb

import (
	"encoding/binary"
	"hash/crc64"
)

// footerSize is the version and the checksum behind a DUMP payload's value.
const footerSize = 2 + 8

// jones is the CRC that Redis uses: polynomial 0xad93d23594c935a9, reflected,
// and neither the start nor the result inverted.
var jones = crc64.MakeTable(0x95ac9329ac4bc9b5)

// jonesBy8 has, for each of eight bytes that are read at once, what it adds to the
// CRC after those behind it. Package crc64 does this for its own polynomials only.
var jonesBy8 = slicingBy8(jones)

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

// Checksum continues the CRC64 crc, 0 at the start, with b.
func Checksum(crc uint64, b []byte) uint64 {
	t := jonesBy8
	for ; len(b) >= 8; b = b[8:] {
		crc ^= binary.LittleEndian.Uint64(b)
		crc = t[7][byte(crc)] ^ t[6][byte(crc>>8)] ^ t[5][byte(crc>>16)] ^ t[4][byte(crc>>24)] ^
			t[3][byte(crc>>32)] ^ t[2][byte(crc>>40)] ^ t[1][byte(crc>>48)] ^ t[0][crc>>56]
	}
	for _, c := range b {
		crc = t[0][byte(crc)^c] ^ crc>>8
	}
	return crc
}

// Seal appends the footer of a DUMP payload to a value.
func Seal(value []byte, version int) []byte {
	b := binary.LittleEndian.AppendUint16(value, uint16(version))
	return binary.LittleEndian.AppendUint64(b, Checksum(0, b))
}

// Open checks a DUMP payload's footer and returns its value, type included, and
// the version it was written in. Errors: ErrFooter.
func Open(payload []byte) (value []byte, version int, err error) {
	n := len(payload) - footerSize
	if n < 0 {
		return nil, 0, ErrFooter
	}
	version = int(binary.LittleEndian.Uint16(payload[n:]))
	if version > Version || binary.LittleEndian.Uint64(payload[n+2:]) != Checksum(0, payload[:n+2]) {
		return nil, 0, ErrFooter
	}
	return payload[:n], version, nil
}
