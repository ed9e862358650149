package engine

import (
	"hash/maphash"
	"unsafe"

	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/table"
	"github.com/ebbdb/ebb/internal/topk"
	"github.com/ebbdb/ebb/internal/wheel"
)

// space is one database's part of one shard: the keys, their memory, and their deadlines. It owns its memory,
// so that FLUSHDB frees it and SWAPDB moves it as a whole. The shard's lock guards it.
type space struct {
	sh    *shard
	db    int
	tab   *table.Table
	mem   *arena.Arena
	due   *wheel.Wheel // deadlines of keys; nil before the first
	next  *wheel.Wheel // deadlines of the next item of each container; nil before the first
	fresh *wheel.Wheel // fresh deadlines of strings; nil before the first
	ttls  int64        // sum of all deadlines in the wheel, ms; for avg_ttl

	lates bool // a limiter's deadline may be later than its entry in the wheel

	exts     []ext // exts[0] is not used
	freeExt  uint32
	extBytes int
	kept     [maxKinds]int // bytes of records and handles, for the kinds that keeps selects
	wasteful []uint32      // handles of boxes to compact

	queues map[uint32]string // handles of delay queues, each with the stream that it delivers to, "" for none
	sinks  map[string]int    // the streams that queues deliver to, each with the number of its queues
	index  *keyIndex         // the keys of some kinds; nil before the first

	throttled *topk.Sketch // limiters that deny; nil before the first denial

	timedFields bool // hash fields have, or had, deadlines

	// These fields belong to the current snapshot: the database that the space was at the cut,
	// whether the space may have unsaved keys, and whether a flush has handed the space over to the
	// snapshot.
	cut             int
	unsaved, orphan bool
}

func newSpace(sh *shard, db int) *space {
	sp := &space{sh: sh, db: db, exts: make([]ext, 1)}
	sp.mem = arena.New(sh.db.pool)
	sp.tab = table.New(sh.db.pool, sp)
	return sp
}

// release frees all memory. O(slabs), and O(1) for each large container, which the reclaimer then frees.
func (sp *space) release() {
	for i := range sp.exts {
		if b := sp.exts[i].box; b != nil {
			sp.sh.freeLazily(b)
		}
	}
	sp.mem.Release()
	sp.tab.Release()
	sp.index.release()
	sp.exts, sp.wasteful = nil, nil
}

// bytes returns the living bytes.
func (sp *space) bytes() int { return sp.mem.Live() + sp.extBytes + sp.tables() }

func (sp *space) rec(ref arena.Ref) *rec { return (*rec)(sp.mem.Ptr(ref)) }

// Equal implements table.Records.
func (sp *space) Equal(ref arena.Ref, key []byte) bool {
	r := sp.rec(ref)
	if int(r.klen) != len(key) {
		return r.klen&bigKey != 0 && string(sp.key(r)) == string(key)
	}
	return string(unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(r), keyOffset(r.kind))), len(key))) == string(key)
}

// Hash implements table.Records.
func (sp *space) Hash(ref arena.Ref) uint64 {
	return maphash.Bytes(sp.sh.db.seed, sp.key(sp.rec(ref)))
}

// Touch implements table.Records. It reads the header, whose cache line has the beginning of most keys too.
func (sp *space) Touch(ref arena.Ref) byte { return sp.rec(ref).kind }

// Entry implements wheel.Resolver.
func (sp *space) Entry(ref uint32) *wheel.Entry {
	return sp.rec(arena.Ref(ref)).entry()
}

// key returns the record's key, in place.
func (sp *space) key(r *rec) []byte {
	k := r.inlineKey()
	if r.klen&bigKey != 0 {
		return sp.exts[handleOf(k)].bytes
	}
	return k
}

// value returns the bytes of a string, in place.
func (sp *space) value(r *rec) []byte {
	v := r.inlineValue()
	if r.has(flagExt) {
		return sp.exts[handleOf(v)].bytes
	}
	return v
}

func (sp *space) addExt(b []byte) uint32 { return sp.addBox(b, nil) }

// addBox stores bytes or a box and returns the handle.
func (sp *space) addBox(bytes []byte, b box) uint32 {
	h := sp.freeExt
	if h != 0 {
		sp.freeExt = sp.exts[h].next
	} else {
		h = uint32(len(sp.exts))
		sp.exts = append(sp.exts, ext{})
	}
	sp.exts[h] = ext{}
	sp.fill(h, bytes, b)
	return h
}

// fill stores bytes or a box in an empty handle.
func (sp *space) fill(h uint32, bytes []byte, b box) {
	x := &sp.exts[h]
	x.bytes, x.box, x.size = bytes, b, cap(bytes)
	if b != nil {
		x.size = b.Size()
		sp.enrol(h, b)
	}
	sp.extBytes += x.size
	sp.kept[x.kind] += x.size
}

// grow sets the number of bytes that count for a handle to n.
func (sp *space) grow(x *ext, n int) {
	sp.extBytes += n - x.size
	sp.kept[x.kind] += n - x.size
	x.size = n
}

// keeps reports whether the bytes of a kind are counted separately, because eviction protects the
// kind. The handles of other kinds are counted under None.
func keeps(k Kind) bool { return k >= Limiter && k <= DelayQueue }

// charge counts a new record under its kind, including its handles.
func (sp *space) charge(ref arena.Ref, r *rec) {
	if k := r.Kind(); keeps(k) {
		sp.kept[k] += sp.mem.SlotOf(ref)
		sp.claim(r, k)
	}
}

// claim counts the memory of a record's handles under a kind.
func (sp *space) claim(r *rec, k Kind) {
	var handles [2]uint32
	if r.klen&bigKey != 0 {
		handles[0] = handleOf(r.inlineKey())
	}
	if r.has(flagExt) {
		handles[1] = handleOf(r.inlineValue())
	}
	for _, h := range handles {
		if x := &sp.exts[h]; h != 0 && x.kind != k {
			sp.kept[x.kind] -= x.size
			sp.kept[k] += x.size
			x.kind = k
		}
	}
}

// recast moves the count of a record without handles from one kind to another.
func (sp *space) recast(ref arena.Ref, from, to Kind) {
	n := sp.mem.SlotOf(ref)
	if keeps(from) {
		sp.kept[from] -= n
	}
	if keeps(to) {
		sp.kept[to] += n
	}
}

// enrol registers a delay queue, so that its jobs can be counted, and the stream that it delivers to.
func (sp *space) enrol(h uint32, b box) {
	if q, ok := b.(queueBox); ok {
		if sp.queues == nil {
			sp.queues = map[uint32]string{}
		}
		sp.queues[h] = ""
		sp.deliversTo(h, q.Deliver)
	}
}

// deliversTo records the stream that the delay queue of a handle delivers to; empty: none.
func (sp *space) deliversTo(h uint32, stream []byte) {
	old := sp.queues[h]
	if old == string(stream) {
		return
	}
	if old != "" {
		if sp.sinks[old]--; sp.sinks[old] == 0 {
			delete(sp.sinks, old)
		}
	}
	sp.queues[h] = string(stream)
	if len(stream) > 0 {
		if sp.sinks == nil {
			sp.sinks = map[string]int{}
		}
		sp.sinks[sp.queues[h]]++
	}
}

// forget undoes enrol, and has no effect on handles of other kinds.
func (sp *space) forget(h uint32) {
	if _, ok := sp.queues[h]; ok {
		sp.deliversTo(h, nil)
		delete(sp.queues, h)
	}
}

// setExt frees the value of a handle and stores another one.
func (sp *space) setExt(h uint32, bytes []byte, b box) {
	sp.empty(h)
	sp.fill(h, bytes, b)
}

// freeAtOnce is the size of a box, in bytes, from which on space.empty frees it at once if it has few chunks.
const freeAtOnce = 8 << 10

// empty frees the value of a handle. The reclaimer frees a box of many chunks later, in slices. Large chunks are freed at once where
// they are few: the next container gets them while they are in the cache.
func (sp *space) empty(h uint32) {
	x := &sp.exts[h]
	sp.extBytes -= x.size
	sp.kept[x.kind] -= x.size
	sp.forget(h)
	switch b := x.box; {
	case b == nil:
	case x.size >= freeAtOnce && b.Free(freeChunks):
		sp.sh.freed += x.size
	default:
		sp.sh.freeLazily(b)
	}
	x.bytes, x.box, x.pin, x.lent, x.size = nil, nil, nil, nil, 0
}

func (sp *space) dropExt(h uint32) {
	sp.empty(h)
	sp.exts[h] = ext{next: sp.freeExt}
	sp.freeExt = h
}

// yield frees a handle whose box has another owner, and keeps the box.
func (sp *space) yield(h uint32) {
	sp.extBytes -= sp.exts[h].size
	sp.kept[sp.exts[h].kind] -= sp.exts[h].size
	sp.forget(h)
	sp.exts[h] = ext{next: sp.freeExt}
	sp.freeExt = h
}

// reserve allocates a record for a value of n bytes, which the caller fills in. The value fits a
// slab.
func (sp *space) reserve(flags uint8, key []byte, n int) (arena.Ref, *rec) {
	if len(key) > maxKey {
		ref, r := sp.build(flags, key, make([]byte, n), 0)
		return ref, r
	}
	ref := sp.mem.Alloc(keyOffset(flags) + len(key) + n)
	if ref == 0 {
		return 0, nil
	}
	r := sp.rec(ref)
	r.init(flags, uint16(len(key)), uint16(n))
	copy(r.inlineKey(), key)
	sp.charge(ref, r)
	return ref, r
}

// build allocates a record and fills it in, except for the wheel's links. If val is nil, the record takes
// over the external value of handle.
func (sp *space) build(flags uint8, key, val []byte, handle uint32) (arena.Ref, *rec) {
	return sp.buildRecord(flags, key, val, handle, 0)
}

// buildSpec builds a record as build does, with the parts in s. The caller schedules its deadlines.
func (sp *space) buildSpec(s *spec, key, val []byte, handle uint32) (arena.Ref, *rec) {
	if s.fresh != 0 {
		return sp.buildRecord(s.layout(), key, val, handle, freshBit)
	}
	return sp.buildRecord(s.layout(), key, val, handle, 0)
}

// buildRecord builds a record as build does; fresh is freshBit or 0.
func (sp *space) buildRecord(flags uint8, key, val []byte, handle uint32, fresh uint16) (arena.Ref, *rec) {
	klen, vlen := len(key), len(val)
	kl := uint16(0)
	if klen > maxKey {
		kl, klen = bigKey, extSize
	}
	if handle != 0 || tailed(keyOffset(flags)+klen+vlen, fresh) > arena.MaxRecord-1 {
		flags |= flagExt
		vlen = extSize
	}
	ref := sp.mem.Alloc(tailed(keyOffset(flags)+klen+vlen, fresh))
	if ref == 0 {
		return 0, nil
	}
	r := sp.rec(ref)
	r.init(flags, kl|uint16(klen), uint16(vlen)|fresh)
	if kl != 0 {
		putHandle(r.inlineKey(), sp.addExt(append([]byte(nil), key...)))
	} else {
		copy(r.inlineKey(), key)
	}
	switch {
	case handle != 0:
		putHandle(r.inlineValue(), handle)
	case flags&flagExt != 0:
		putHandle(r.inlineValue(), sp.addExt(append([]byte(nil), val...)))
	default:
		copy(r.inlineValue(), val)
	}
	sp.charge(ref, r)
	return ref, r
}

// free frees the record's memory, external parts included. The record must be in no bucket and in no wheel.
func (sp *space) free(ref arena.Ref) {
	r := sp.rec(ref)
	if r.klen&bigKey != 0 {
		sp.dropExt(handleOf(r.inlineKey()))
	}
	if r.has(flagExt) {
		sp.dropExt(handleOf(r.inlineValue()))
	}
	n := sp.mem.SlotOf(ref)
	if k := r.Kind(); keeps(k) {
		sp.kept[k] -= n
	}
	sp.sh.freed += n
	sp.mem.Free(ref)
}

// schedule puts the record into the wheel at its deadline.
func (sp *space) schedule(ref arena.Ref, deadline int64) {
	if sp.due == nil {
		sp.due = wheel.New(sp.sh.last/1000, sp)
	}
	deadline = min(deadline, MaxDeadline)
	sp.due.Add(uint32(ref), deadline)
	sp.ttls += deadline
	sp.sh.workAt(deadline + 1)
}

// unschedule takes the record's deadline out of the wheel.
func (sp *space) unschedule(ref arena.Ref, r *rec) {
	if r.has(flagDeadline) {
		sp.ttls -= r.entry().Deadline()
		sp.due.Remove(uint32(ref))
	}
}

// detach takes the record out of all wheels.
func (sp *space) detach(ref arena.Ref, r *rec) {
	sp.unschedule(ref, r)
	sp.unscheduleNext(ref, r)
}

// relinked updates the links of the wheels after a record's bytes were copied to another place.
func (sp *space) relinked(old, new arena.Ref, r *rec) {
	if r.has(flagDeadline) {
		sp.due.Move(uint32(old), uint32(new))
	}
	switch {
	case r.hasFresh() && sp.fresh != nil:
		sp.fresh.Move(uint32(old), uint32(new))
	case r.timed() && sp.next != nil:
		sp.next.Move(uint32(old), uint32(new))
	}
}

// living returns the number of keys whose deadline has not passed.
func (sp *space) living(now int64) int {
	n := sp.tab.Len()
	if sp.due != nil {
		sp.settleLate(now)
		n -= sp.due.Due(now)
	}
	return n
}

// moved updates the references to a record that compaction has moved.
func (sp *space) moved(old, new arena.Ref) {
	r := sp.rec(new)
	if pos, ok := sp.tab.FindRef(maphash.Bytes(sp.sh.db.seed, sp.key(r)), old); ok {
		pos.Set(new)
	}
	sp.shifted(old, new, r.Kind())
	sp.relinked(old, new, r)
}
