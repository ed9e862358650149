package engine

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"

	"github.com/ebbdb/ebb/internal/packed"
)

// memberIndex finds members of packed sets by their hashes. It aliases them: they must not change while it is in use.
type memberIndex struct {
	items []packed.Str
	slots []uint32 // by hash, with linear probing: a position in items, plus 1; at least twice as many as items, a power of two
	met   []int32  // for intersections: a count for each of items

	tx   *Tx
	seed [2]uint64 // of the hashes of short members
}

// indexSlots is the number of slots of a new index, keptSlots the greatest number with which a transaction keeps one.
const (
	indexSlots = 1 << 8
	keptSlots  = 1 << 12
)

// borrowIndex returns an empty index. returnIndex gives it back, so that the next command need not allocate one.
func (tx *Tx) borrowIndex() *memberIndex {
	if x := tx.index; x != nil {
		tx.index = nil
		return x
	}
	return &memberIndex{tx: tx, slots: make([]uint32, indexSlots), seed: [2]uint64{rand.Uint64(), rand.Uint64()}}
}

// returnIndex takes back an index, which may be nil.
func (tx *Tx) returnIndex(x *memberIndex) {
	if x == nil || len(x.slots) > keptSlots {
		return
	}
	clear(x.items) // do not keep other memory reachable
	clear(x.slots)
	x.items = x.items[:0]
	tx.index = x
}

// indexOf returns an index of the living members of a packed set. O(n).
func (tx *Tx) indexOf(img packed.Packed) *memberIndex {
	x := tx.borrowIndex()
	for it := img.Iter(tx.itemTime()); it.Next(); {
		x.add(it.Key())
	}
	return x
}

// add adds a member, unless the index has it, and returns its position in items.
func (x *memberIndex) add(s packed.Str) (at int, added bool) {
	if at, i := x.search(&s); at >= 0 {
		return at, false
	} else if 2*len(x.items) < len(x.slots) {
		x.items = append(x.items, s)
		x.slots[i] = uint32(len(x.items))
		return len(x.items) - 1, true
	}
	x.slots = make([]uint32, 4*len(x.slots))
	for at := range x.items {
		_, i := x.search(&x.items[at])
		x.slots[i] = uint32(at + 1)
	}
	return x.add(s)
}

// find returns the position in items of a member, -1 if the index does not have it. Expected O(1).
func (x *memberIndex) find(s packed.Str) int {
	at, _ := x.search(&s)
	return at
}

// has reports whether the index has a member. Expected O(1).
func (x *memberIndex) has(member []byte) bool { return x.find(packed.StrOf(member)) >= 0 }

// search finds a member as find does, and also returns the slot at which the search ended.
func (x *memberIndex) search(s *packed.Str) (at int, slot uint64) {
	mask := uint64(len(x.slots) - 1)
	for i := x.hash(s) & mask; ; i = (i + 1) & mask {
		at := int(x.slots[i]) - 1
		if at < 0 || x.items[at].Equal(s) {
			return at, i
		}
	}
}

// hash mixes all bytes of a short member and its length with one multiplication, which takes less time than
// the call of a hash function. Its seeds are secret, so that clients cannot choose members with equal hashes.
func (x *memberIndex) hash(s *packed.Str) uint64 {
	b, n := s.B, len(s.B)
	var lo, hi uint64
	switch {
	case s.IsInt():
		lo, n = uint64(s.N), 1<<8
	case n > 16:
		return maphash.Bytes(x.tx.db.seed, b)
	case n >= 8:
		lo, hi = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		lo, hi = uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[n-4:]))
	case n > 0:
		lo = uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
	}
	h, l := bits.Mul64(lo^x.seed[0], hi^x.seed[1]^uint64(n)<<32)
	return h ^ l
}
