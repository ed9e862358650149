package engine

import (
	"math/rand/v2"

	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/packed"
)

// A container is a hash, list, set, sorted set or stream. It has two forms.
//
//	small   the record's value is a packed image (internal/packed)
//	large   the record's value is a handle of a box (flagExt): an object with
//	        chunks of its own outside the collected heap
//
// An image that outgrows a slab is a handle of bytes, as a long string is.
//
// A write of the small form is planned first (packed.Edit), then room makes
// the record fit, then the plan is applied:
//
//	h, err := tx.container(key, Hash)
//	e, state := h.image().PutField(field, value, 0, tx.itemTime())
//	dst, err := tx.room(&h, key, Hash, e.Size())
//	e.Apply(dst)
//
// Every read of items uses itemTime, so that no read returns a dead item.

// box is the large form of a container. The shard's lock guards it.
type box interface {
	// Size returns the bytes that the box holds. O(1), or little more: the engine calls it after
	// every write.
	Size() int
	// Free frees up to about budget chunks and reports whether it has freed all. The box is empty
	// from the first call on.
	Free(budget int) (done bool)
	// Wasteful reports whether Compact would free enough memory to pay. O(1).
	Wasteful() bool
	// Compact moves items together. It looks at up to budget items and returns their number; a
	// number below budget means that Compact has finished.
	Compact(budget int) (looked int)
	// Clone returns a copy with the living items, on its own chunks. O(n).
	Clone(tx *Tx) (box, error)
	// Freeze returns a read-only copy, with the dead items, that shares the chunks; see
	// snap_freeze.go. Free frees it. O(chunks).
	Freeze(tx *Tx) (box, error)
}

// maxSmall is the length of the longest image, in bytes, whatever Layout says: an edit
// moves all of the image.
const maxSmall = 1 << 26

// itemTime returns the instant that decides which items are dead: now, or 0 in a replay,
// where the effects contain the removals and every stored item is visible.
func (tx *Tx) itemTime() int64 {
	if tx.replay {
		return 0
	}
	return tx.ms
}

// container looks up a key that must be missing or hold a container of kind k. It does not count as
// an access. Errors: ErrWrongType.
func (tx *Tx) container(key []byte, k Kind) (hit, error) {
	h := tx.find(key)
	if h.r != nil && h.r.Kind() != k {
		return h, ErrWrongType
	}
	return h, nil
}

// open is container for commands that read: it counts a hit or a miss, and records the access.
func (tx *Tx) open(key []byte, k Kind) (hit, error) {
	h := tx.read(key)
	if h.r != nil && h.r.Kind() != k {
		return h, ErrWrongType
	}
	return h, nil
}

// box returns the container's large form, nil if it is small.
func (h *hit) box() box {
	if h.r.has(flagExt) {
		return h.sp.exts[handleOf(h.r.inlineValue())].box
	}
	return nil
}

// image returns the container's small form, in place: a packed.Packed or
// packed.IntSet. It is valid until the next write.
func (h *hit) image() packed.Packed { return h.sp.value(h.r) }

// maxImage returns the number of bytes of an image that a record with this key can hold;
// beyond it, the image is a handle of bytes.
func maxImage(flags uint8, klen int) int {
	return arena.MaxRecord - 1 - keyOffset(flags) - min(klen, maxKey)
}

// room makes the record of key hold an image of n bytes and returns the memory to write it to. If h is a
// missing key, room creates the key with an undefined value. The caller can read the old image until the next
// call of room. If the image has not moved, it lies at the start of the returned memory, as packed's Apply
// requires. room keeps the deadline and the access clock. Errors: ErrFull, and nothing has changed.
//
// It may move the record. After that, only Apply may use an earlier result of h.image.
func (tx *Tx) room(h *hit, key []byte, k Kind, n int) ([]byte, error) {
	sp := tx.makeSpace(h)
	tx.release()
	if h.r == nil {
		return tx.roomForNew(h, key, k, n)
	}
	r := h.r
	tx.stamp(r)
	if r.has(flagExt) {
		return tx.roomOutside(h, n)
	}
	if r.klen&bigKey == 0 {
		if size := keyOffset(r.kind) + int(r.klen) + n; size < arena.MaxRecord && sp.mem.Fits(h.ref(), size) {
			r.vlen = uint16(n)
			return r.inlineValue(), nil
		}
	}
	if n > maxImage(r.kind, int(r.klen&^bigKey)) {
		b := make([]byte, n, n+n/8)
		return b, tx.remake(h, b, nil)
	}
	return tx.remakeInline(h, n)
}

func (tx *Tx) roomForNew(h *hit, key []byte, k Kind, n int) ([]byte, error) {
	sp := h.sp
	var ref arena.Ref
	var r *rec
	if n > maxImage(uint8(k), len(key)) {
		handle := sp.addExt(make([]byte, n, n+n/8))
		if ref, r = sp.build(uint8(k), key, nil, handle); r == nil {
			sp.dropExt(handle)
		}
	} else {
		ref, r = sp.reserve(uint8(k), key, n)
	}
	if r == nil {
		return nil, ErrFull
	}
	tx.place(h, ref, r, spec{})
	return sp.value(r), nil
}

// roomOutside is room for an image that lies outside the record, or for a
// large container that becomes small.
func (tx *Tx) roomOutside(h *hit, n int) ([]byte, error) {
	sp, r := h.sp, h.r
	if n <= maxImage(r.kind, int(r.klen&^bigKey))/2 {
		return tx.remakeInline(h, n)
	}
	x := &sp.exts[handleOf(r.inlineValue())]
	if x.box == nil && n <= cap(x.bytes) && n >= cap(x.bytes)/2 {
		x.bytes = x.bytes[:n]
		return x.bytes, nil
	}
	b := make([]byte, n, n+n/8)
	sp.setExt(handleOf(r.inlineValue()), b, nil)
	return b, nil
}

// remakeInline resizes the container's record for an image of n bytes inside it.
func (tx *Tx) remakeInline(h *hit, n int) ([]byte, error) {
	sp, old := h.sp, h.r
	off := keyOffset(old.kind) + int(old.klen&^bigKey)
	ref := sp.mem.Alloc(off + n)
	if ref == 0 {
		return nil, ErrFull
	}
	r := sp.rec(ref)
	copy(sp.mem.Bytes(ref, off), sp.mem.Bytes(h.ref(), off))
	r.kind &^= flagExt
	r.vlen = uint16(n)
	sp.charge(ref, r)
	tx.succeed(h, ref, r)
	return r.inlineValue(), nil
}

// remake gives the container's record a handle for its value: a handle of bytes or of a
// box.
func (tx *Tx) remake(h *hit, bytes []byte, b box) error {
	sp, old := h.sp, h.r
	off := keyOffset(old.kind) + int(old.klen&^bigKey)
	ref := sp.mem.Alloc(off + extSize)
	if ref == 0 {
		return ErrFull
	}
	r := sp.rec(ref)
	copy(sp.mem.Bytes(ref, off), sp.mem.Bytes(h.ref(), off))
	r.kind |= flagExt
	r.vlen = extSize
	putHandle(r.inlineValue(), sp.addBox(bytes, b))
	sp.charge(ref, r)
	tx.succeed(h, ref, r)
	return nil
}

// succeed replaces a record by one with the same key and header. It keeps the old record until the next call
// of room, because a plan that is about to be applied reads from it.
func (tx *Tx) succeed(h *hit, ref arena.Ref, r *rec) {
	old := h.ref()
	h.sp.relinked(old, ref, r)
	h.pos.Set(ref)
	h.sp.shifted(old, ref, r.Kind())
	h.rec(old).klen &^= bigKey // the new record owns the external key
	h.r = r
	tx.old, tx.oldIn = old, h.sp
}

func (h *hit) rec(ref arena.Ref) *rec { return h.sp.rec(ref) }

// release frees the record that succeed has kept.
func (tx *Tx) release() {
	if tx.old != 0 {
		tx.oldIn.free(tx.old)
		tx.old, tx.oldIn = 0, nil
	}
}

// shrunk must be called when the image of a small container has become shorter, in place; img is the new
// image. If it is much shorter, the record moves.
func (tx *Tx) shrunk(h *hit, img []byte) {
	r := h.r
	tx.stamp(r)
	if r.has(flagExt) {
		x := handleOf(r.inlineValue())
		h.sp.exts[x].bytes = img
		if len(img) <= maxImage(r.kind, int(r.klen&^bigKey))/2 {
			tx.release()
			if dst, err := tx.remakeInline(h, len(img)); err == nil {
				copy(dst, img)
			}
		}
		return
	}
	r.vlen = uint16(len(img))
	if h.sp.mem.Fits(h.ref(), r.size()) {
		return
	}
	tx.release()
	if dst, err := tx.remakeInline(h, len(img)); err == nil {
		copy(dst, img)
	}
}

// enlarge stores a box under the key. It replaces the small form, or creates the key. Errors:
// ErrFull; the caller then still owns the box.
func (tx *Tx) enlarge(h *hit, key []byte, k Kind, b box) error {
	sp := tx.makeSpace(h)
	tx.release()
	switch {
	case h.r == nil:
		handle := sp.addBox(nil, b)
		ref, r := sp.build(uint8(k), key, nil, handle)
		if r == nil {
			sp.exts[handle].box = nil
			sp.dropExt(handle)
			return ErrFull
		}
		tx.place(h, ref, r, spec{})
	case h.r.has(flagExt):
		sp.setExt(handleOf(h.r.inlineValue()), nil, b)
	default:
		if err := tx.remake(h, nil, b); err != nil {
			return err
		}
	}
	return nil
}

// wrote finishes a write to a large container: it counts the container's bytes, and schedules the
// reclaimer if compaction pays.
func (tx *Tx) wrote(h *hit) {
	handle := handleOf(h.r.inlineValue())
	x := &h.sp.exts[handle]
	if n := x.box.Size(); n != x.size {
		h.sp.grow(x, n)
	}
	tx.stamp(h.r)
	if !x.queued && x.box.Wasteful() {
		x.queued = true
		h.sp.wasteful = append(h.sp.wasteful, handle)
		h.sp.sh.workAt(tx.ms + considerIn)
	}
}

// imageOr returns the image of a small container that container has looked up, or an
// empty image to plan against if there is no key.
func (tx *Tx) imageOr(h *hit, k packed.Kind) packed.Packed {
	if h.r != nil {
		return h.image()
	}
	tx.vbuf = packed.New(tx.vbuf, k)
	return tx.vbuf
}

// text returns the bytes of a string in an image; it formats an integer into the
// transaction's scratch buffer i.
func (tx *Tx) text(i int, s packed.Str) []byte {
	if s.IsInt() {
		return tx.itoa(i, s.N)
	}
	return s.B
}

// discard frees a box that belongs to no key.
func discard(b box) {
	for !b.Free(1 << 16) {
	}
}

// gone sends the event that a container has become empty, after the event of the command
// that emptied it. The caller has dropped the key.
func (tx *Tx) gone(key []byte) {
	if tx.db.notify.Load()&EventGeneric != 0 {
		tx.event(EventGeneric, "del", key)
	}
}

// random returns the transaction's random number generator. It is fit for sampling, not for
// secrets.
func (tx *Tx) random() *rand.Rand {
	if tx.rng == nil {
		tx.rng = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	return tx.rng
}
