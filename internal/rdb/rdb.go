// Package rdb reads and writes values in the format of Redis's RDB files, which is also that of
// DUMP and RESTORE, and the files themselves.
//
//	DUMP payload   type 1 │ value │ version 2, little endian │ CRC64 8 of all before
//	file           "REDIS" version │ [deadline] type 1 │ key │ value ... │ 255 │ CRC64 8
//	value          counts and strings: a length, then the bytes or the elements
//	length         00xxxxxx │ 01xxxxxx 1 │ 0x80 4 │ 0x81 8, big endian
//	string         length, bytes │ 0xC0 int8 │ 0xC1 int16 │ 0xC2 int32 │ 0xC3 LZF
//
// A container is a count and its elements, or one string that holds a small container in a packed
// layout: listpack, ziplist, intset, zipmap. The Decoder knows all of them and calls a Builder for
// each element, in the stored order, so no element is in memory twice. The Encoder does the
// reverse: it writes the lowest version of the format that can contain the data. For files, a
// Reader finds the entries, which the Decoder decodes, and a Writer writes the Encoder's records.
//
// The package does not trust its input. It validates a whole packed layout before it passes on the
// first element, and compares counts and lengths with the remaining bytes before it allocates
// memory. Its memory is bounded by the size of the payload. Every fault is an ErrFormat; no input
// causes a panic.
//
// Start reading at Decoder.Value, then packedlist.go and stream.go; for files at Reader.Next.
package rdb

import (
	"errors"
	"fmt"
)

// Version is the version that the Encoder writes for hash fields with deadlines. It is the newest
// version of Redis that the Decoder knows completely. PlainVersion is the version for all other
// data, because redis-server 7.0 reads it.
const (
	Version      = 12
	PlainVersion = 10
)

// Type is the first byte of a value: its kind and its layout.
type Type uint8

// These are the types. Types 6 and 8 are not in use.
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

	// These are the types of hashes with deadlines, version 12. The first two are those of release
	// candidates of Redis 7.4; their numbers have another meaning in other versions.
	TypeHashTimedOld     Type = 22
	TypeHashTimedPackOld Type = 23
	TypeHashTimed        Type = 24
	TypeHashTimedPack    Type = 25

	// TypeHashValkey is the type of such a hash in the versions of Valkey 9.
	TypeHashValkey Type = 22
)

// since returns the lowest version in which a type occurs.
func (t Type) since() int {
	switch {
	case t >= TypeHashTimedOld:
		return 12
	case t >= TypeSetListpack:
		return 11
	}
	return 0
}

// These are the errors. Every fault of a value is an ErrFormat.
var (
	// ErrFooter: a payload is too short, has a version above Valkey 9's, or its checksum is wrong.
	ErrFooter = errors.New("rdb: the payload's version or checksum is wrong")
	// ErrFormat: the value does not have the format of its type.
	ErrFormat = errors.New("rdb: bad data format")
)

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrFormat}, args...)...)
}

// A Builder receives a value in parts. The first call is a Begin method, or String; n is the exact
// number of elements that follow. Byte slices are valid only during the call. An error ends the
// decoding, and Value returns it. A Builder returns ErrFormat for members, fields and ids that it
// already has.
type Builder interface {
	// String receives the complete value of a string.
	String(val []byte) error

	// BeginList begins a list; n is 0 if the format does not contain the number.
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

	// Module receives the complete value of a type that Redis does not have, under its name of nine
	// letters.
	Module(name string, data []byte) error
}

// An IntBuilder is a Builder that takes the members of a set of integers without their text. Integers is called once in place
// of Member: the members are ascending and little-endian, of width bytes each, which is 2, 4 or 8.
type IntBuilder interface {
	Integers(width int, members []byte) error
}

// A ListpackBuilder is a Builder that may take the listpack of a set, a hash, a sorted set or a list's node as a whole. b may be
// damaged. done is false if the Builder does not take it, and then its items follow one by one.
type ListpackBuilder interface {
	Listpack(t Type, b []byte) (done bool, err error)
}

// A StreamBuilder receives a stream: its entries in ascending order of their ids, then its
// metadata, then each group. After a group come its consumers, each followed by its pending entries
// in ascending order.
type StreamBuilder interface {
	BeginStream(n int) error
	// Entry receives one entry; pairs has fields and values in turn.
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

// StreamInfo is the metadata of a stream.
type StreamInfo struct {
	Last       StreamID // the id of the last entry that was ever added
	MaxDeleted StreamID // the greatest id that was deleted
	Added      uint64   // entries ever added
}

// Group is a consumer group; Pending is the number of entries that its consumers have not
// acknowledged.
type Group struct {
	Name      []byte
	Last      StreamID // the id that was delivered last
	Read      int64    // the number of entries read; -1: unknown
	Consumers int
	Pending   int
}

// Consumer is a member of a group. Times are in ms; Active is -1 for never, and equals Seen if the
// format does not contain it.
type Consumer struct {
	Name    []byte
	Seen    int64 // the time of its last command
	Active  int64 // the time at which it last received an entry
	Pending int
}

// Pending is an entry that was delivered and not acknowledged.
type Pending struct {
	ID        StreamID
	Delivered int64 // the time of the last delivery, ms
	Count     uint64
}
