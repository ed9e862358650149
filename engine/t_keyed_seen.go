package engine

import (
	"hash/maphash"

	"github.com/ebbdb/ebb/internal/packed"
)

// A packed image has no index: finding a member is a walk over half of it. What
// asks an image more than a few times makes one of these first.

// seen tells of most members that they are new, as an image is built: a Bloom
// filter with one hash. With n members in it, it errs for n in 4096 of the new.
type seen [64]uint64

// note adds a member and reports whether it may have been there.
func (s *seen) note(tx *Tx, member []byte) (maybe bool) {
	h := maphash.Bytes(tx.db.seed, member)
	word, bit := &s[h&63], uint64(1)<<(h>>6&63)
	maybe = *word&bit != 0
	*word |= bit
	return maybe
}

// memberIndex finds the members of an image that does not change.
type memberIndex struct {
	seed  maphash.Seed
	img   packed.Packed
	slots [indexSlots]uint16 // by hash, or the next free one: a place in items, plus 1
	items []packed.At
}

// indexSlots is twice what an index holds at most, and a power of two.
const indexSlots = 1 << 9

// indexable reports whether an index of this image holds its members.
func indexable(img packed.Packed) bool { return img.Count() <= indexSlots/2 }

// indexOf returns an index of the living members of a packed set. O(n).
func (tx *Tx) indexOf(img packed.Packed) *memberIndex {
	x := &memberIndex{seed: tx.db.seed, img: img, items: make([]packed.At, 0, img.Count())}
	for it := img.Iter(tx.itemTime()); it.Next(); {
		x.items = append(x.items, it.At())
		i := x.slot(tx.text(3, it.Key()))
		for ; x.slots[i] != 0; i = (i + 1) % indexSlots {
		}
		x.slots[i] = uint16(len(x.items))
	}
	return x
}

func (x *memberIndex) slot(member []byte) uint64 {
	return maphash.Bytes(x.seed, member) % indexSlots
}

// has reports whether a member is there. Expected O(1).
func (x *memberIndex) has(member []byte) bool {
	for i := x.slot(member); x.slots[i] != 0; i = (i + 1) % indexSlots {
		if x.img.Key(x.items[x.slots[i]-1]).Compare(member) == 0 {
			return true
		}
	}
	return false
}
