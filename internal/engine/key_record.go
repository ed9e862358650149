package engine

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/wheel"
)

// Kind is a key's data type. The zero Kind is none.
type Kind uint8

// These are the kinds. Their numbers have no meaning, and no file contains them.
const (
	None Kind = iota
	String
	List
	Set
	ZSet
	Hash
	Stream
	Limiter
	Lock
	Semaphore
	DelayQueue
	Bloom
)

// String returns the name that TYPE replies. For Bloom it is the name of Redis's module.
func (k Kind) String() string {
	return [...]string{"none", "string", "list", "set", "zset", "hash", "stream",
		"limiter", "lock", "semaphore", "delayqueue", "MBbloom--"}[k]
}

// plain reports whether a value of the kind is plain bytes: neither a packed
// image nor a box.
func (k Kind) plain() bool { return k == String || k == Limiter || k == Lock || k == Semaphore }

// rec is the header of a keyspace record:
//
//	kind and flags 1 │ access clock 3 │ key length 2 │ value length 2
//	[deadline and wheel links 16] [slide 16] [next item 16] key, value [fresh 16]
//
// The entry of the next item has the instant at which an item of the container falls due; see ttl_due.go. A
// string with two deadlines has an entry for the first one behind its value; see t_fresh.go.
//
// A value or a key that is too long for a slab, and every large container, is outside the record, which holds
// a 4-byte handle in its place (flagExt, bigKey). Only a bucket and the wheels refer to a record, so
// compaction can move it.
type rec struct {
	kind  uint8 // Kind in the low 4 bits, and flags
	clock [3]uint8
	klen  uint16
	vlen  uint16
}

const (
	flagDeadline = 0x10
	flagSlide    = 0x20 // only together with flagDeadline
	flagExt      = 0x40 // the value is a handle
	flagRaw      = 0x80 // strings only: OBJECT ENCODING replies raw, whatever the value is
	flagItems    = 0x80 // all other kinds: the record has an entry for its next item

	bigKey   = 0x8000 // in klen: the key is a handle
	freshBit = 0x8000 // in vlen, strings only: the record ends in the entry of its fresh deadline

	headSize  = 8
	entrySize = 16
	slideSize = 16
	extSize   = 4
	maxKey    = arena.MaxRecord / 2
)

// slide is the part of a record with a sliding deadline, which a read extends.
type slide struct {
	span   int64 // ms between a read and the new deadline
	logged int64 // the deadline in the log
}

// kindMask selects the kind in a header's first byte.
const kindMask = 0x0f

func (r *rec) Kind() Kind          { return Kind(r.kind & kindMask) }
func (r *rec) has(flag uint8) bool { return r.kind&flag != 0 }

func (r *rec) entry() *wheel.Entry {
	return (*wheel.Entry)(unsafe.Add(unsafe.Pointer(r), headSize))
}

func (r *rec) slide() *slide {
	return (*slide)(unsafe.Add(unsafe.Pointer(r), headSize+entrySize))
}

// timed reports whether the record has an entry for its next item.
func (r *rec) timed() bool { return timed(r.kind) }

func timed(flags uint8) bool { return flags&flagItems != 0 && Kind(flags&0x0f) != String }

// next returns the entry for the next item that falls due.
func (r *rec) next() *wheel.Entry {
	return (*wheel.Entry)(unsafe.Add(unsafe.Pointer(r), keyOffset(r.kind)-entrySize))
}

// freshEntry returns the entry for a string's fresh deadline, behind the value.
func (r *rec) freshEntry() *wheel.Entry {
	return (*wheel.Entry)(unsafe.Add(unsafe.Pointer(r), freshOffset(r.size())))
}

// itemDue reports whether the container's entry is due. The entry may be early: then it is due although no
// item is.
func (r *rec) itemDue(now int64) bool {
	if !r.timed() {
		return false
	}
	e := r.next()
	return e.Linked() && now > e.Deadline()
}

// deadline returns the key's deadline in ms, 0 for none.
func (r *rec) deadline() int64 {
	switch {
	case r.kind&flagDeadline == 0:
		return 0
	case r.late():
		return r.lateDeadline()
	}
	return r.entry().Deadline()
}

// expired reports whether the deadline has passed: now > deadline.
func (r *rec) expired(now int64) bool {
	return r.kind&flagDeadline != 0 && now > r.entry().Deadline() && !(r.late() && now <= r.lateDeadline())
}

func keyOffset(flags uint8) int {
	off := headSize
	if flags&flagDeadline != 0 {
		off += entrySize
	}
	if flags&flagSlide != 0 {
		off += slideSize
	}
	if timed(flags) {
		off += entrySize
	}
	return off
}

// shape returns the flags of a record that decide where its key begins.
func shape(flags uint8) uint8 {
	s := flags & (flagDeadline | flagSlide)
	if timed(flags) {
		s |= flagItems
	}
	return s
}

// inlineKey returns the bytes that the record holds as its key: the key, or the handle of a long
// one.
func (r *rec) inlineKey() []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(r), keyOffset(r.kind))), int(r.klen&^bigKey))
}

func (r *rec) inlineValue() []byte {
	off := keyOffset(r.kind) + int(r.klen&^bigKey)
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(r), off)), r.valueLen())
}

// init fills in the header of a record in new memory. The caller must still schedule its deadline.
func (r *rec) init(flags uint8, klen, vlen uint16) {
	*r = rec{kind: flags, klen: klen, vlen: vlen}
	if timed(flags) {
		*r.next() = wheel.Entry{}
	}
	if vlen&freshBit != 0 {
		*r.freshEntry() = wheel.Entry{}
	}
}

// size returns the bytes that the record needs, without the entry of a fresh deadline.
func (r *rec) size() int {
	return keyOffset(r.kind) + int(r.klen&^bigKey) + r.valueLen()
}

// valueLen returns the number of bytes that the record holds as its value.
func (r *rec) valueLen() int { return int(r.vlen &^ freshBit) }

func handleOf(b []byte) uint32     { return binary.LittleEndian.Uint32(b) }
func putHandle(b []byte, h uint32) { binary.LittleEndian.PutUint32(b, h) }

// ext is a value or a key that lives outside the slabs.
type ext struct {
	bytes  []byte
	box    box           // a large container; nil: none
	size   int           // the bytes that are counted for it
	kind   Kind          // the kind of its record, if space.kept counts this kind
	next   uint32        // in a free handle: the next free one
	queued bool          // the box is in space.wasteful
	pin    *pinned       // a snapshot's reference to bytes; may be nil
	lent   *atomic.Int32 // the number of readers of bytes without the shard's lock; nil before the first
}
