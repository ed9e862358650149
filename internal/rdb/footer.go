package rdb

import (
	"bytes"
	"encoding/binary"
)

// footerSize is the version and the checksum behind a DUMP payload's value.
const footerSize = 2 + 8

// Seal appends the footer of a DUMP payload to a value.
func Seal(value []byte, version int) []byte {
	b := binary.LittleEndian.AppendUint16(value, uint16(version))
	return binary.LittleEndian.AppendUint64(b, Checksum(0, b))
}

// Open checks a DUMP payload's footer and returns its value, type included, and
// the version it was written in. Up to 79 that is one of Redis, and any is taken: its
// types tell whether the value can be read. Errors: ErrFooter, of which a *VersionError
// tells that only the version is wrong.
func Open(payload []byte) (value []byte, version int, err error) {
	n := len(payload) - footerSize
	if n < 0 {
		return nil, 0, ErrFooter
	}
	version = int(binary.LittleEndian.Uint16(payload[n:]))
	if binary.LittleEndian.Uint64(payload[n+2:]) != Checksum(0, payload[:n+2]) {
		return nil, 0, ErrFooter
	}
	if version > valkeyNewest {
		return nil, 0, &VersionError{version}
	}
	return payload[:n], version, nil
}

// Reseal returns a payload that Open has taken, with version in its footer where that is
// lower than its own: for a value whose layout that version has. It is payload itself if
// nothing is to be changed.
func Reseal(payload []byte, version int) []byte {
	n := len(payload) - footerSize
	if int(binary.LittleEndian.Uint16(payload[n:])) <= version {
		return payload
	}
	return Seal(bytes.Clone(payload[:n]), version)
}
