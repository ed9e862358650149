package rdb

import (
	"bytes"
	"encoding/binary"
)

// footerSize is the size of the version and the checksum after a DUMP payload's value.
const footerSize = 2 + 8

// Seal appends the footer of a DUMP payload to a value.
func Seal(value []byte, version int) []byte { return SealFrom(value, 0, version) }

// SealFrom is Seal for a value that begins at b[start].
func SealFrom(b []byte, start, version int) []byte {
	b = binary.LittleEndian.AppendUint16(b, uint16(version))
	return binary.LittleEndian.AppendUint64(b, Checksum(0, b[start:]))
}

// Open checks a DUMP payload's footer and returns its value, type included, and its version. Open
// accepts any version up to 79, which are those of Redis; the type decides later whether the value
// can be read. Errors: ErrFooter; it is a *VersionError if only the version is wrong.
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

// Reseal returns a payload that Open has accepted, with version in its footer if that is lower than
// its own. The caller knows that the value's layout exists in that version. It returns payload
// itself if nothing changes.
func Reseal(payload []byte, version int) []byte {
	n := len(payload) - footerSize
	if int(binary.LittleEndian.Uint16(payload[n:])) <= version {
		return payload
	}
	return Seal(bytes.Clone(payload[:n]), version)
}
