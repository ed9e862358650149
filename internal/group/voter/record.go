package voter

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// The file of a voter:
//
//	magic, then records:  length 4 bytes, CRC-32C of the length 4, CRC-32C of the body 4, body
//
// The body is one byte for its kind, then varints (encoding/binary) and texts with their length before them. A power
// cut may leave a part of the last record, with zeros for the rest. load ignores such a record, because the call that
// wrote it has not returned. The checksum of the length keeps load from taking a damaged length for the end of the
// file.
const (
	fileMagic  = "ebb-raft\x01\n"
	recordHead = 12
)

const (
	kindIdentity byte = iota + 1
	kindValue
	kindEntries
	kindDelete
	kindSnapshot
)

// content is the state that the records of a file add up to.
type content struct {
	identity uint64 // the random number that identifies the file; never 0
	values   map[string][]byte
	entries  []raft.Log // with consecutive indexes
	snapshot *saved     // nil: none
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func appendRecord(b, body []byte) []byte {
	length := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	b = binary.BigEndian.AppendUint32(append(b, length...), checksum(length))
	return append(binary.BigEndian.AppendUint32(b, checksum(body)), body...)
}

// append appends the encoding of the whole file to b.
func (c *content) append(b []byte) []byte {
	b = append(b, fileMagic...)
	b = appendRecord(b, binary.AppendUvarint([]byte{kindIdentity}, c.identity))
	for _, key := range slices.Sorted(maps.Keys(c.values)) {
		b = appendRecord(b, valueRecord([]byte(key), c.values[key]))
	}
	if c.snapshot != nil {
		b = appendRecord(b, c.snapshot.record())
	}
	if len(c.entries) > 0 {
		all := make([]*raft.Log, len(c.entries))
		for i := range all {
			all[i] = &c.entries[i]
		}
		b = appendRecord(b, entriesRecord(all))
	}
	return b
}

// load decodes a file.
func (c *content) load(b []byte) error {
	rest, ok := bytes.CutPrefix(b, []byte(fileMagic))
	if !ok {
		return fmt.Errorf("%w (the file does not begin with the magic of raft.log)", errDamaged)
	}
	for len(rest) > 0 {
		at := len(b) - len(rest)
		body, next, err := nextRecord(rest)
		if err == nil && body != nil {
			err = c.apply(body)
		}
		if err != nil {
			return fmt.Errorf("%w (byte %d: %w)", errDamaged, at, err)
		}
		rest = next
	}
	if c.identity == 0 {
		return fmt.Errorf("%w (the file has no identity record)", errDamaged)
	}
	return nil
}

// nextRecord returns the body of the first record and the bytes behind it. It returns nil for both if the record is
// incomplete.
func nextRecord(b []byte) (body, rest []byte, err error) {
	if len(b) < recordHead {
		return nil, nil, nil
	}
	if checksum(b[:4]) != binary.BigEndian.Uint32(b[4:]) {
		if len(bytes.Trim(b[recordHead:], "\x00")) == 0 {
			return nil, nil, nil // a body begins with its kind, which is not 0: no byte of it was written
		}
		return nil, nil, errors.New("the checksum of the record's length is wrong")
	}
	length := binary.BigEndian.Uint32(b)
	if uint64(length) > uint64(len(b)-recordHead) {
		return nil, nil, nil
	}
	body, rest = b[recordHead:recordHead+length], b[recordHead+length:]
	if checksum(body) == binary.BigEndian.Uint32(b[8:]) && length > 0 {
		return body, rest, nil
	}
	if len(rest) == 0 {
		return nil, nil, nil // a part of the record had not reached the disk
	}
	return nil, nil, errors.New("the checksum of the record's body is wrong")
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func parseNumber(b []byte) (uint64, error) {
	if len(b) != 8 {
		return 0, fmt.Errorf("raft.log has a number of %d bytes, want 8", len(b))
	}
	return binary.BigEndian.Uint64(b), nil
}

func appendBytes(b, text []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func valueRecord(key, value []byte) []byte {
	return appendBytes(appendBytes([]byte{kindValue}, key), value)
}

func entriesRecord(all []*raft.Log) []byte {
	b := binary.AppendUvarint([]byte{kindEntries}, uint64(len(all)))
	for _, e := range all {
		b = binary.AppendUvarint(b, e.Index)
		b = binary.AppendUvarint(b, e.Term)
		b = append(b, byte(e.Type))
		var at int64 // 0: the entry has no time
		if !e.AppendedAt.IsZero() {
			at = e.AppendedAt.UnixNano()
		}
		b = binary.AppendVarint(b, at)
		b = appendBytes(appendBytes(b, e.Data), e.Extensions)
	}
	return b
}

func deleteRecord(from, to uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint([]byte{kindDelete}, from), to)
}

func (s *saved) record() []byte {
	b := []byte{kindSnapshot}
	for _, n := range []uint64{s.index, s.term, s.configured} {
		b = binary.AppendUvarint(b, n)
	}
	return appendBytes(appendBytes(b, s.configuration), s.state)
}

// apply applies a record.
func (c *content) apply(body []byte) error {
	r := cursor{rest: body[1:]}
	switch body[0] {
	case kindIdentity:
		c.identity = r.number()
	case kindValue:
		key, value := r.bytes(), r.bytes()
		if c.values == nil {
			c.values = map[string][]byte{}
		}
		c.values[string(key)] = value
	case kindEntries:
		c.add(&r)
	case kindDelete:
		c.cut(r.number(), r.number())
	case kindSnapshot:
		s := saved{index: r.number(), term: r.number(), configured: r.number()}
		s.configuration, s.state = r.bytes(), r.bytes()
		c.snapshot = &s
	default:
		return fmt.Errorf("the record has kind %d, want 1 to 5: a newer version of ebb may have written it", body[0])
	}
	return r.end()
}

// add appends the entries of a record.
func (c *content) add(r *cursor) {
	for range r.number() {
		e := raft.Log{Index: r.number(), Term: r.number(), Type: raft.LogType(r.byte())}
		if at := r.signed(); at != 0 {
			e.AppendedAt = time.Unix(0, at)
		}
		e.Data, e.Extensions = r.bytes(), r.bytes()
		if n := len(c.entries); n > 0 && e.Index != c.entries[n-1].Index+1 && r.err == nil {
			r.err = fmt.Errorf("entry %d follows entry %d, want consecutive entries", e.Index, c.entries[n-1].Index)
		}
		if r.err != nil {
			return
		}
		c.entries = append(c.entries, e)
	}
}

// cut removes the entries from from to to, which are at one end.
func (c *content) cut(from, to uint64) {
	c.entries = slices.DeleteFunc(c.entries, func(e raft.Log) bool { return from <= e.Index && e.Index <= to })
}

// cursor decodes a body. After the first error its methods return zero values; end returns the error.
type cursor struct {
	rest []byte
	err  error
}

var errShort = errors.New("the record ends within a field")

func (r *cursor) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if !r.skip(size) {
		return 0
	}
	return n
}

func (r *cursor) signed() int64 {
	n, size := binary.Varint(r.rest)
	if !r.skip(size) {
		return 0
	}
	return n
}

func (r *cursor) byte() byte {
	if len(r.rest) == 0 {
		r.skip(0)
		return 0
	}
	b := r.rest[0]
	r.skip(1)
	return b
}

// bytes returns a copy of the next text, or nil for an empty one.
func (r *cursor) bytes() []byte {
	n := r.number()
	if r.err != nil || n > uint64(len(r.rest)) {
		r.skip(0)
		return nil
	}
	if n == 0 {
		return nil
	}
	b := slices.Clone(r.rest[:n])
	r.skip(int(n))
	return b
}

// skip skips size bytes. It fails and reports false if size is not positive or too large.
func (r *cursor) skip(size int) bool {
	if r.err != nil || size <= 0 || size > len(r.rest) {
		r.err = cmp.Or(r.err, errShort)
		r.rest = nil
		return false
	}
	r.rest = r.rest[size:]
	return true
}

func (r *cursor) end() error {
	if r.err == nil && len(r.rest) > 0 {
		r.err = fmt.Errorf("the record has %d extra bytes behind its last field", len(r.rest))
	}
	return r.err
}
