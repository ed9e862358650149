// Package arena stores records outside the garbage-collected heap.
//
//	Ref (4 bytes) ──► slab number ─┬─ granule in the slab
//	                               │
//	slab 64 KiB    [slot][slot][free][slot][ never used ... ]   one size class
//
// A Pool maps memory and hands it out in slabs. An Arena belongs to one part of one shard; it cuts
// slabs into slots of one size class each and names a slot by a 4-byte Ref in granules of 8 bytes,
// so one arena spans 32 GiB. There are 8 classes in each doubling (16 below 128 bytes), so a slot
// is at most 12.5 % larger than the requested size.
//
// Invariants: the first byte of a living record is not zero, of a free slot it is; a slab's free
// list lives in its free slots; the arena returns a slab without living slots to the pool; only
// Compact moves records. Start reading at Arena.Alloc. The chunks of large containers come from
// Chunks, which all shards share.
//
// An Arena is not safe for concurrent use: its shard's lock guards it. A Pool and Chunks are safe
// for concurrent use.
package arena

import (
	"math/bits"
	"unsafe"
)

// Ref names a record of an Arena: the index of its first granule of 8 bytes.
// The zero Ref names nothing.
type Ref uint32

const (
	granule   = 8
	offBits   = slabShift - 3 // bits of a Ref that count granules inside a slab
	offMask   = 1<<offBits - 1
	maxSlabs  = 1 << (32 - offBits)
	smallStep = 8   // classes up to smallMax are this far apart
	smallMax  = 128 // above it, 8 classes in each doubling

	// SlabSize is the size of a slab in bytes: four times the largest record,
	// so that slots of the largest classes still fit well. Every class of every
	// shard has a slab that is partly empty, some 700 of them in a store of
	// many sizes: with slabs of 256 KiB a store of 300 MB held 1.45 times what
	// lived in it, with 64 KiB 1.15 times.
	SlabSize = 1 << slabShift
	// MaxRecord is the largest size Alloc accepts, in bytes.
	MaxRecord = SlabSize / 4

	smallClasses = smallMax / smallStep
	recordDoubl  = slabShift - 2 - 7 // doublings from smallMax to MaxRecord
	numClasses   = smallClasses + recordDoubl*8 + 1
)

// classOf returns the class whose slots hold n bytes, 1 <= n <= MaxRecord.
func classOf(n int) int {
	if n <= smallMax {
		return (n + smallStep - 1) / smallStep
	}
	e := bits.Len(uint(n-1)) - 1 // 2^e <= n-1 < 2^(e+1), e >= 7
	return smallClasses + (e-7)*8 + ((n - 1) >> (e - 3)) - 7
}

// classSize returns the slot size of a class in bytes.
func classSize(c int) int {
	if c <= smallClasses {
		return c * smallStep
	}
	c -= smallClasses + 1
	return (8 + c%8 + 1) << (4 + c/8)
}

// slab is the bookkeeping of one slab; its memory starts at base.
type slab struct {
	base  unsafe.Pointer
	size  uint32 // slot size
	free  uint32 // granule+1 of the first free slot, 0: none
	bump  uint32 // offset in bytes of the first slot that was never allocated
	live  uint32 // living slots
	class uint16
	part  int32 // index in class.partial; -1: the slab is not in it
}

func (s *slab) full() bool { return s.free == 0 && s.bump+s.size > SlabSize }

// class lists the slabs of one size class that have free slots.
type class struct {
	partial []uint32 // slab numbers; the last one is filled first
	slabs   int
	slots   int // living slots in all slabs of the class
}

// Arena is a set of slabs. New returns one. It is not safe for concurrent use.
type Arena struct {
	pool    *Pool
	bases   []unsafe.Pointer // by slab number: the hot path reads only this
	slabs   []slab
	spare   []uint32 // slab numbers to use again
	classes [numClasses]class
	live    int // bytes in living slots
	next    int // the class that Compact looks at next
}

// New returns an empty arena that takes its slabs from pool.
func New(pool *Pool) *Arena {
	// Slab number 0 is never used: Ref 0 names nothing.
	return &Arena{pool: pool, bases: make([]unsafe.Pointer, 1), slabs: make([]slab, 1)}
}

// Live returns the bytes in living slots, rounding included.
func (a *Arena) Live() int { return a.live }

// Held returns the bytes of all slabs that the arena holds, touched or not.
func (a *Arena) Held() int { return (len(a.slabs) - 1 - len(a.spare)) * SlabSize }

// Alloc returns a slot for a record of n bytes, 1 <= n <= MaxRecord. Its contents are undefined;
// the caller writes a first byte other than zero before the next call. It returns 0 if the arena's
// 32 GiB are used up. O(1), and one system call per 64 slabs.
func (a *Arena) Alloc(n int) Ref { return a.alloc(classOf(n)) }

func (a *Arena) alloc(c int) Ref {
	cl := &a.classes[c]
	if len(cl.partial) == 0 && !a.addSlab(c) {
		return 0
	}
	n := cl.partial[len(cl.partial)-1]
	s := &a.slabs[n]
	var off uint32
	if s.free != 0 {
		off = (s.free - 1) * granule
		s.free = *(*uint32)(unsafe.Add(s.base, off+4))
	} else {
		off = s.bump
		s.bump += s.size
	}
	s.live++
	cl.slots++
	a.live += int(s.size)
	if s.full() {
		s.part = -1
		cl.partial = cl.partial[:len(cl.partial)-1]
	}
	return Ref(n<<offBits | off/granule)
}

// Free frees the slot of a record. The caller must not use its memory again. O(1).
func (a *Arena) Free(r Ref) {
	n := uint32(r) >> offBits
	s := &a.slabs[n]
	off := uint32(r) & offMask
	p := unsafe.Add(s.base, off*granule)
	if poison {
		poisonSlot(unsafe.Slice((*byte)(p), s.size))
	}
	*(*byte)(p) = 0
	*(*uint32)(unsafe.Add(p, 4)) = s.free
	s.free = off + 1
	s.live--
	a.live -= int(s.size)
	cl := &a.classes[s.class]
	cl.slots--
	switch {
	case s.live == 0 && (len(cl.partial) > 1 || s.part < 0 || cl.slots == 0):
		a.dropSlab(n)
	case s.part < 0:
		s.part = int32(len(cl.partial))
		cl.partial = append(cl.partial, n)
	}
}

// Ptr returns the address of a record. It is valid until the record is freed
// or moved.
func (a *Arena) Ptr(r Ref) unsafe.Pointer {
	return unsafe.Add(a.bases[r>>offBits], (r&offMask)*granule)
}

// Bytes returns the first n bytes of a record, in place.
func (a *Arena) Bytes(r Ref, n int) []byte {
	return unsafe.Slice((*byte)(a.Ptr(r)), n)
}

// SlotOf returns the size of the slot that holds the record.
func (a *Arena) SlotOf(r Ref) int { return int(a.slabs[r>>offBits].size) }

// Fits reports whether a record of n bytes belongs in the slot at r: it fits, and a new slot for it
// would be of the same class.
func (a *Arena) Fits(r Ref, n int) bool {
	return n <= MaxRecord && classOf(n) == int(a.slabs[r>>offBits].class)
}

func (a *Arena) addSlab(c int) bool {
	var n uint32
	if k := len(a.spare); k > 0 {
		n = a.spare[k-1]
		a.spare = a.spare[:k-1]
	} else {
		if len(a.slabs) >= maxSlabs {
			return false
		}
		n = uint32(len(a.slabs))
		a.slabs = append(a.slabs, slab{})
		a.bases = append(a.bases, nil)
	}
	base := a.pool.Get()
	a.bases[n] = base
	a.slabs[n] = slab{base: base, size: uint32(classSize(c)), class: uint16(c)}
	cl := &a.classes[c]
	a.slabs[n].part = int32(len(cl.partial))
	cl.partial = append(cl.partial, n)
	cl.slabs++
	return true
}

func (a *Arena) dropSlab(n uint32) {
	s := &a.slabs[n]
	cl := &a.classes[s.class]
	a.unlist(cl, s)
	cl.slabs--
	a.pool.Put(s.base)
	a.bases[n] = nil
	*s = slab{part: -1}
	a.spare = append(a.spare, n)
}

func (a *Arena) unlist(cl *class, s *slab) {
	if s.part < 0 {
		return
	}
	last := cl.partial[len(cl.partial)-1]
	cl.partial[s.part] = last
	a.slabs[last].part = s.part
	cl.partial = cl.partial[:len(cl.partial)-1]
	s.part = -1
}

// Release returns every slab to the pool. The arena is empty afterwards, and all Refs are invalid.
// O(slabs).
func (a *Arena) Release() {
	for n := range a.slabs {
		if a.slabs[n].base != nil {
			a.pool.Put(a.slabs[n].base)
		}
	}
	*a = *New(a.pool)
}
