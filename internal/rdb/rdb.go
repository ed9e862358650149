// Package rdb reads and writes values in the format of Redis's RDB files, which
// is also that of DUMP and RESTORE, and the files themselves.
//
//	DUMP payload   type 1 │ value │ version 2, little endian │ CRC64 8 of all before
//	file           "REDIS" version │ [deadline] type 1 │ key │ value ... │ 255 │ CRC64 8
//	value          counts and strings: a length, then the bytes or the elements
//	length         00xxxxxx │ 01xxxxxx 1 │ 0x80 4 │ 0x81 8, big endian
//	string         length, bytes │ 0xC0 int8 │ 0xC1 int16 │ 0xC2 int32 │ 0xC3 LZF
//
// A container is a count and its elements, or one string that holds a small
// container in a packed layout: listpack, ziplist, intset, zipmap. The Decoder
// knows them all and calls a Builder for each element, in the order stored: an
// element is never held twice. The Encoder is the way back: it writes the lowest
// version of the format that holds the data. For files, a Reader finds the entries
// that the Decoder decodes, and a Writer puts the Encoder's records in a row.
//
// Bytes are hostile until proved: a packed layout is validated as a whole before
// its first element is given away, counts and lengths are compared with the
// bytes that are left before anything is allocated, and what is built beside is
// bounded by the payload. What is wrong is an ErrFormat; nothing panics.
//
// Start reading at Decoder.Value, then packedlist.go and stream.go; for files at
// Reader.Next.
package rdb

import (
	"errors"
	"fmt"
)

// Version is what the Encoder writes for hash fields with deadlines, and the newest of
// Redis of which the Decoder knows all. PlainVersion is what the Encoder writes without
// those, because redis-server 7.0 reads it.
const (
	Version      = 12
	PlainVersion = 10
)

// Type is the first byte of a value: what it is, and how it is laid out.
type Type uint8

// The types. 6 and 8 do not occur, or no longer.
const (
	TypeString       Type = 0
	TypeList         Type = 1
	TypeSet          Type = 2
	TypeZSet         Type = 3 // scores in text
	TypeHash         Type = 4
	TypeZSet2        Type = 5 // scores as 8 bytes
	TypeModule       Type = 7
	TypeHashZipmap   Type = 9
	TypeListZiplist  Type = 10
	TypeSetIntset    Type = 11
	TypeZSetZiplist  Type = 12
	TypeHashZiplist  Type = 13
	TypeQuicklist    Type = 14 // ziplists
	TypeStream       Type = 15
	TypeHashListpack Type = 16
	TypeZSetListpack Type = 17
	TypeQuicklist2   Type = 18 // listpacks and plain elements
	TypeStream2      Type = 19 // with first id, greatest deleted id, entries added
	TypeSetListpack  Type = 20 // version 11
	TypeStream3      Type = 21 // version 11: consumers' active time

	// Hashes with deadlines, version 12. The first two are of release
	// candidates of Redis 7.4; their numbers mean something else elsewhere.
	TypeHashTimedOld     Type = 22
	TypeHashTimedPackOld Type = 23
	TypeHashTimed        Type = 24
	TypeHashTimedPack    Type = 25

	// TypeHashValkey is what Valkey 9 writes for one, in its own versions.
	TypeHashValkey Type = 22
)

// since is the lowest version in which a type occurs.
func (t Type) since() int {
	switch {
	case t >= TypeHashTimedOld:
		return 12
	case t >= TypeSetListpack:
		return 11
	}
	return 0
}

// The errors. Everything that is wrong with a value is an ErrFormat.
var (
	// ErrFooter: a payload is too short, of a version above Valkey 9's, or its checksum
	// is another.
	ErrFooter = errors.New("rdb: the payload's version or checksum is wrong")
	// ErrFormat: the value is not what its type says.
	ErrFormat = errors.New("rdb: bad data format")
)

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrFormat}, args...)...)
}

// A Builder takes a value in pieces. One Begin call, or String, comes first; n
// is the exact number of elements that follow. Byte slices are valid during the
// call only. An error ends the decoding and is what Value returns: a Builder
// refuses members, fields and ids that it has already, as ErrFormat.
type Builder interface {
	// String is the whole value of a string.
	String(val []byte) error

	// BeginList begins a list; n is 0 where the format does not tell.
	BeginList(n int) error
	Element(elem []byte) error

	BeginSet(n int) error
	Member(member []byte) error

	// BeginZSet begins a sorted set; members come in any order. A score is
	// never NaN.
	BeginZSet(n int) error
	Scored(member []byte, score float64) error

	// BeginHash begins a hash; a field without a deadline has 0, others theirs
	// in ms since 1970.
	BeginHash(n int) error
	Field(field, value []byte, deadline int64) error

	StreamBuilder

	// Module is the whole value of a type that Redis does not have, by its name
	// of nine letters.
	Module(name string, data []byte) error
}

// A StreamBuilder takes a stream: its entries in ascending order of their ids,
// then what it knows of itself, then each group, followed by each of its
// consumers, followed by what is pending for that one, ascending.
type StreamBuilder interface {
	BeginStream(n int) error
	// Entry is one entry; pairs holds fields and values in turn.
	Entry(id StreamID, pairs [][]byte) error
	EndEntries(s StreamInfo) error
	Group(g Group) error
	Consumer(c Consumer) error
	Pending(p Pending) error
}

// StreamID is the id of a stream's entry.
type StreamID struct{ Ms, Seq uint64 }

// Less reports whether id comes before other.
func (id StreamID) Less(other StreamID) bool {
	return id.Ms < other.Ms || id.Ms == other.Ms && id.Seq < other.Seq
}

// StreamInfo is what a stream keeps beside its entries.
type StreamInfo struct {
	Last       StreamID // of the last entry that was ever added
	MaxDeleted StreamID // the greatest id that was deleted
	Added      uint64   // entries ever added
}

// Group is a consumer group; Pending counts what its consumers have not
// acknowledged.
type Group struct {
	Name      []byte
	Last      StreamID // delivered last
	Read      int64    // entries read, -1: not known
	Consumers int
	Pending   int
}

// Consumer is a member of a group. Times are in ms; Active is -1 for never, and
// Seen where the format does not tell.
type Consumer struct {
	Name    []byte
	Seen    int64 // it last tried something
	Active  int64 // it last got something
	Pending int
}

// Pending is an entry that was delivered and not acknowledged.
type Pending struct {
	ID        StreamID
	Delivered int64 // ms, the last time
	Count     uint64
}
