// Package dict implements the large hash and the large set: items with a key, each with an optional
// deadline.
//
//	table    linear hashing: bucket = low bits of the key's hash
//	         [12 tags][12 refs][next] -> [12 tags][12 refs][next]   64 bytes each
//	              |
//	items    [deadline 6]? [value | key length] [key] [value]       chunk.Heap
//	              |
//	due      counted tree of the refs that have a deadline          btree.Tree
//
// An item costs a 2-byte header and about 8 bytes of table. A deadline costs 6 more bytes, and
// about 6 in the tree. An item without a deadline costs nothing for the deadlines of others.
//
// A table grows by splitting one bucket, or shrinks by merging one, with each insert or delete, so
// no operation costs O(items), and Scan keeps its guarantee.
//
// Time is an argument. An item is dead when now > deadline, and every read that takes now leaves
// dead items out at once, whether or not Reap has removed them. Scan, Random and Iter go through
// one test, alive.
//
// Invariants: a chain's buckets are full but for the last; every overflow bucket holds an item; an
// item is in the chain of its hash; the marked items of the heap are the entries of due.
//
// Freeze returns a read-only copy that shares the chunks; see package chunk.
//
// Keys and values passed in must not lie in the dict's own memory. The package has no locks: the
// owner holds the shard's lock. Start reading at Dict.Put.
package dict

import (
	"bytes"
	"hash/maphash"
	"unsafe"

	"github.com/ebbdb/ebb/internal/chunk"
	"github.com/ebbdb/ebb/internal/ordered/btree"
)

// Variable is the ValueSize of a dict whose values have any length.
const Variable = -1

// Keep is the deadline for Put that keeps a living item's deadline.
const Keep = -1

// MaxDeadline is the latest deadline an item can have, in milliseconds: 48 bits, the year 10889.
// The dict stores later ones as MaxDeadline.
const MaxDeadline = 1<<48 - 1

// ErrNoMemory: the Memory has no chunk left. The operation that returns it has changed nothing.
var ErrNoMemory = chunk.ErrNoMemory

// Config configures a dict.
type Config struct {
	Memory chunk.Memory // the allocator of chunks; required
	Seed   maphash.Seed // the seed of the hash of keys; required

	// ValueSize is the size of every value in bytes: 0 for a set (the default), Variable for a
	// hash.
	ValueSize int

	// The dict calls Moved, if set, whenever an item gets another reference. Moved can read the
	// item under both references. If it returns false, the item keeps its old reference; it may
	// return false only during Compact.
	Moved func(old, new uint32) bool
}

// Dict is a hash table of items with deadlines. New returns one. It is not safe for concurrent use.
type Dict struct {
	heap  chunk.Heap
	prim  chunk.Array // buckets
	over  chunk.Array // overflow buckets
	low   uint32      // the power of two up to prim.Len(): 2^L
	pins  int32       // running iterations, during which buckets must not merge
	late  bool        // an item was deleted during an iteration
	chain int         // the length of the longest chain, in buckets, since the dict was empty

	due      *btree.Tree // refs by deadline; nil until there is one
	earliest int64       // the first deadline in due, 0 if none

	seed  maphash.Seed
	fixed int
	moved func(old, new uint32) bool
	loan  *chunk.Loan // in a frozen dict: the loan that Free settles
}

// Item is one stored item. Key and Value lie in the dict's memory. They are valid until the dict
// changes, and the caller must not write to them.
type Item struct {
	Key, Value []byte
	Deadline   int64 // 0: none
	Ref        uint32
}

// Outcome says what Put found.
type Outcome uint8

const (
	Added    Outcome = iota + 1 // there was no item with this key
	Replaced                    // there was a living item
	Revived                     // there was a dead item
)

// New returns an empty dict. It allocates no chunk.
func New(c Config) *Dict {
	d := &Dict{seed: c.Seed, fixed: c.ValueSize, moved: c.Moved, low: 1, chain: 1}
	d.heap.Init(c.Memory)
	d.prim.Init(c.Memory, bucketShift)
	d.over.Init(c.Memory, bucketShift)
	return d
}

// Set stores value under key and removes the item's deadline. It is Put with deadline 0.
func (d *Dict) Set(key, value []byte, now int64) (Outcome, error) {
	return d.Put(key, value, 0, now)
}

// Put stores value under key with a deadline, 0 for none, Keep for the one a living item has. The
// value replaces the old one in place if it fits. Put replaces a dead item under key completely,
// and the outcome is Revived. O(1) expected, O(log n) with a deadline. Errors: ErrNoMemory, and
// nothing has changed.
func (d *Dict) Put(key, value []byte, deadline, now int64) (Outcome, error) {
	return d.PutHashed(d.hash(key), key, value, deadline, now)
}

// PutHashed is Put for a key whose hash the caller knows: maphash.Bytes with the Seed of the Config.
func (d *Dict) PutHashed(h uint64, key, value []byte, deadline, now int64) (Outcome, error) {
	s, ok := d.find(key, h)
	if !ok {
		_, err := d.add(h, key, value, clampDeadline(deadline))
		return Added, err
	}
	outcome, old := Replaced, d.deadlineOf(s.ref())
	if expired(old, now) {
		outcome = Revived
	} else if deadline == Keep {
		deadline = old
	}
	return outcome, d.rewrite(s, key, value, old, clampDeadline(deadline))
}

// Get returns the value under key if a living item has it. O(1).
func (d *Dict) Get(key []byte, now int64) (value []byte, ok bool) {
	return d.GetHashed(d.hash(key), key, now)
}

// GetHashed is Get for a key whose hash the caller knows, as PutHashed is Put.
func (d *Dict) GetHashed(h uint64, key []byte, now int64) (value []byte, ok bool) {
	s, ok := d.find(key, h)
	if !ok {
		return nil, false
	}
	deadline, _, value := d.parts(s.ref())
	if expired(deadline, now) {
		return nil, false
	}
	return value, true
}

// Has reports whether a living item has the key. O(1).
func (d *Dict) Has(key []byte, now int64) bool { return d.HasHashed(key, d.Hash(key), now) }

// Hash returns the hash of a key for HasHashed. It is the same in all dicts with this seed.
func (d *Dict) Hash(key []byte) uint64 { return d.hash(key) }

// HasHashed does the work of Has with the hash of the key.
func (d *Dict) HasHashed(key []byte, h uint64, now int64) bool {
	s, ok := d.find(key, h)
	return ok && d.Alive(s.ref(), now)
}

// Delete removes the item under key, living or dead, and reports whether there
// was one and whether it lived. O(1), O(log n) if it had a deadline.
func (d *Dict) Delete(key []byte, now int64) (found, living bool) {
	h := d.hash(key)
	s, ok := d.find(key, h)
	if !ok {
		return false, false
	}
	living = d.Alive(s.ref(), now)
	d.remove(h, s)
	return true, living
}

// Len returns the exact number of living items. O(1) while no item is due, else O(log n).
func (d *Dict) Len(now int64) int { return d.Count() - d.Due(now) }

// Count returns the number of items, dead ones included. O(1).
func (d *Dict) Count() int { return d.heap.Records() }

// Size returns the bytes that the dict holds: chunks, records outside of them, and bookkeeping.
func (d *Dict) Size() int {
	n := d.heap.Size() + d.prim.Size() + d.over.Size() + int(unsafe.Sizeof(*d))
	if d.due != nil {
		n += d.due.Size()
	}
	return n
}

// Memory returns the Memory of the dict's chunks.
func (d *Dict) Memory() chunk.Memory { return d.heap.Memory() }

// Used returns the bytes in use: items, buckets and tree nodes.
func (d *Dict) Used() int {
	n := d.heap.Used() + d.prim.Used() + d.over.Used()
	if d.due != nil {
		n += d.due.Used()
	}
	return n
}

// Free frees up to budget chunks and reports whether it has freed all. All items are invalid after
// the first call. After true, the dict is empty and usable again. O(budget).
func (d *Dict) Free(budget int) (done bool) {
	if d.loan != nil {
		return d.loan.Settle(d.heap.Memory(), budget) < budget
	}
	d.low, d.chain, d.earliest = 1, 1, 0
	n := d.heap.FreeAll(budget)
	n += d.prim.FreeAll(budget - n)
	n += d.over.FreeAll(budget - n)
	if d.due != nil {
		n += d.due.FreeAll(budget - n)
	}
	if n == budget {
		return false
	}
	d.due = nil
	return true
}

// The methods below take and return references to items, living or dead. They are for structures
// that are built on a dict, which keep references and update them in Moved.

// Find returns the item under key, living or dead. O(1).
func (d *Dict) Find(key []byte) (ref uint32, ok bool) {
	s, ok := d.find(key, d.hash(key))
	if !ok {
		return 0, false
	}
	return s.ref(), true
}

// Add stores an item under a key that the dict does not have, and returns the item's reference.
// Errors: ErrNoMemory.
func (d *Dict) Add(key, value []byte, deadline int64) (ref uint32, err error) {
	return d.add(d.hash(key), key, value, clampDeadline(deadline))
}

// Insert stores an item without a value under a key, unless the dict has the key, and reports whether it did. Errors: ErrNoMemory.
func (d *Dict) Insert(key []byte, deadline int64) (added bool, err error) {
	h := d.hash(key)
	if _, ok := d.find(key, h); ok {
		return false, nil
	}
	_, err = d.add(h, key, nil, clampDeadline(deadline))
	return err == nil, err
}

// Remove removes an item.
func (d *Dict) Remove(ref uint32) {
	h := d.hash(d.Key(ref))
	d.remove(h, d.slotOf(h, ref))
}

// Item returns an item. O(1).
func (d *Dict) Item(ref uint32) Item {
	deadline, key, value := d.parts(ref)
	return Item{Key: key, Value: value, Deadline: deadline, Ref: ref}
}

// Key returns an item's key, under the rules of Item.
func (d *Dict) Key(ref uint32) []byte {
	_, key, _ := d.parts(ref)
	return key
}

// Value returns an item's value, under the rules of Item. Edit is for writing.
func (d *Dict) Value(ref uint32) []byte {
	_, _, value := d.parts(ref)
	return value
}

func (d *Dict) hash(key []byte) uint64 { return maphash.Bytes(d.seed, key) }

// add stores a new item: first everything that can fail, then the rest.
func (d *Dict) add(h uint64, key, value []byte, deadline int64) (uint32, error) {
	if deadline != 0 && !d.reserveDue() || !d.reserveSlot(h) {
		return 0, ErrNoMemory
	}
	ref, ok := d.heap.Alloc(d.payload(key, value, deadline))
	if !ok {
		return 0, ErrNoMemory
	}
	d.write(ref, key, value, deadline)
	d.insertSlot(h, ref)
	if deadline != 0 {
		d.schedule(ref, deadline)
	}
	d.grow()
	return ref, nil
}

// rewrite sets the value and the deadline of the item in s, in place if possible.
func (d *Dict) rewrite(s slot, key, value []byte, old, deadline int64) error {
	if (old != 0 || deadline != 0) && !d.reserveDue() {
		return ErrNoMemory
	}
	ref, n := s.ref(), d.payload(key, value, deadline)
	changed := old != deadline
	if changed && old != 0 {
		d.unschedule(ref, old)
	}
	if d.heap.Stretch(ref, n) {
		d.write(ref, key, value, deadline)
		if changed && deadline != 0 {
			d.schedule(ref, deadline)
		}
		return nil
	}
	to, ok := d.heap.Alloc(n)
	if !ok {
		if changed && old != 0 {
			d.schedule(ref, old)
		}
		return ErrNoMemory
	}
	d.write(to, key, value, deadline)
	if deadline != 0 {
		d.schedule(to, deadline)
	}
	if !changed && old != 0 {
		d.unschedule(ref, old)
	}
	s = d.ownSlot(s)
	s.b.ref[s.i] = to
	if d.moved != nil {
		d.moved(ref, to)
	}
	d.heap.Free(ref)
	return nil
}

// remove removes the item in s from the table, the heap and due.
func (d *Dict) remove(h uint64, s slot) {
	ref := s.ref()
	if deadline := d.deadlineOf(ref); deadline != 0 {
		d.unschedule(ref, deadline)
	}
	d.removeSlot(h, s)
	d.heap.Free(ref)
	d.late = d.pins > 0
	d.shrink()
}

// equal reports whether the item has the key.
func (d *Dict) equal(ref uint32, key []byte) bool { return bytes.Equal(d.Key(ref), key) }
