package engine

import (
	"math/bits"
	"math/rand/v2"
	"unsafe"

	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/table"
	"github.com/ebbdb/ebb/internal/wheel"
)

// Tx is a transaction: some shards, locked, at one instant. It is used by one
// goroutine. Byte slices that its methods return lie in the engine's memory:
// they are valid until the next call that writes, at most until Commit.
type Tx struct {
	db     *DB
	dbi    int    // selected database
	held   uint64 // locked shards, a bit each
	now    int64  // us
	ms     int64  // now in ms: deadlines before it have passed
	replay bool   // nothing expires: effects are being run again
	client bool   // the caller's reads do not count as accesses
	reads  bool   // the caller's word that it writes nothing
	forget bool   // its effects are not logged
	fx     effects
	mark   int64 // in the stream: what the transactions so far have written or seen
	acted  bool  // one of them was to write, and has
	dirty  int   // changes, as Redis counts them
	caller any
	ending Ending

	// The key hashed by LockKey, until the command's own lookup has asked for
	// it.
	hashed *byte
	hlen   int
	hshard int
	hash   uint64

	// The record that room has replaced, until the plan is applied.
	old   arena.Ref
	oldIn *space

	rng     *rand.Rand
	num     [4][24]byte   // scratch for numbers in effects
	ready   []*waitLine   // to be served when the transaction ends
	pending []pendingLine // and by transactions of their own

	stale []stale     // containers to look at again when a replay ends
	fired []firing    // what the rules on expiry are to tell when it ends
	fbuf  []byte      // the bytes of fired
	late  []lateEntry // what transactions of their own are to tell

	z      zscratch
	sorted *Sorted     // of the last Sort
	kbuf   []byte      // scratch for the key of a removed record
	vbuf   []byte      // scratch for values
	ebuf   []byte      // scratch for an element on its way
	one    [1][]byte   // scratch for a list of one
	some   [2][][]byte // scratch for lists of items
}

// Begin locks the shards of keys and returns a transaction on database dbi.
// Waits for whoever holds them. Commit it, always.
func (db *DB) Begin(dbi int, keys ...[]byte) *Tx {
	tx := db.txs.Get().(*Tx)
	tx.beginKeys(dbi, keys, true)
	return tx
}

// BeginAll locks all shards.
func (db *DB) BeginAll(dbi int) *Tx {
	tx := db.txs.Get().(*Tx)
	tx.begin(dbi, db.all(), true)
	return tx
}

// NewTx returns a transaction for repeated use by one goroutine: Lock or
// TryLock begin it, Unlock ends it.
func (db *DB) NewTx() *Tx { return &Tx{db: db} }

// Lock begins a transaction on the shards of keys.
func (tx *Tx) Lock(dbi int, keys [][]byte) { tx.beginKeys(dbi, keys, true) }

// LockAll begins a transaction on all shards.
func (tx *Tx) LockAll(dbi int) { tx.begin(dbi, tx.db.all(), true) }

// TryLockAll is LockAll, but returns false at once if a shard is locked by others.
func (tx *Tx) TryLockAll(dbi int) bool { return tx.begin(dbi, tx.db.all(), false) }

// Await says that the caller looks again and again, by TryLock, whether the shards of
// keys are free, or all of them; the function that it returns, that it does no more.
// Whoever holds a shard in slices lets go of it meanwhile.
func (tx *Tx) Await(all bool, keys [][]byte) (over func()) {
	mask := tx.db.all()
	if !all {
		mask = tx.shardsOf(keys)
	}
	tx.await(mask, 1)
	return func() { tx.await(mask, -1) }
}

func (tx *Tx) await(mask uint64, n int32) {
	for m := mask; m != 0; m &= m - 1 {
		tx.db.shards[bits.TrailingZeros64(m)].lock.Await(n)
	}
}

// Turn returns a channel that is closed when somebody who held a shard has let go of it,
// or by WakeWaiting. It is for who has said Await: take it, then TryLock, then wait for it.
func (tx *Tx) Turn() <-chan struct{} { return tx.db.turns.wait() }

// WakeWaiting wakes all who wait for a Turn.
func (db *DB) WakeWaiting() { db.turns.turn() }

// LockNone begins a transaction that may touch no keys.
func (tx *Tx) LockNone(dbi int) { tx.begin(dbi, 0, true) }

// TryLock is Lock, but returns false at once if a shard is locked by others.
func (tx *Tx) TryLock(dbi int, keys [][]byte) bool { return tx.beginKeys(dbi, keys, false) }

func (db *DB) all() uint64 { return 1<<len(db.shards) - 1 }

func (tx *Tx) shardsOf(keys [][]byte) uint64 {
	var mask uint64
	for _, k := range keys {
		s, _ := tx.db.shardOf(k)
		mask |= 1 << s
	}
	return mask
}

// shardOf is DB.shardOf for the key that LockKey has hashed just now: the first
// to ask for it gets what is remembered. A key's bytes may change afterwards.
func (tx *Tx) shardOf(key []byte) (int, uint64) {
	if tx.hashed != nil && len(key) == tx.hlen && unsafe.SliceData(key) == tx.hashed {
		tx.hashed = nil
		return tx.hshard, tx.hash
	}
	return tx.db.shardOf(key)
}

// hashKey remembers a key's hash for its first lookup.
func (tx *Tx) hashKey(key []byte) int {
	tx.hshard, tx.hash = tx.db.shardOf(key)
	tx.hashed, tx.hlen = unsafe.SliceData(key), len(key)
	return tx.hshard
}

// begin locks the shards of mask in ascending order, and only then takes the
// instant: the later of the clock and the latest instant of any of them.
//
// While a snapshot has no room for what this one might have to save, it waits before
// it locks anything, or does as if the shards were held.
func (tx *Tx) begin(dbi int, mask uint64, wait bool) bool {
	db := tx.db
	if s := db.snap.Load(); s != nil {
		s.pace.seen()
		if !tx.reads && mask != 0 && s.full.Load() {
			if !wait {
				return false
			}
			s.awaitRoom()
		}
	}
	for m := mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		if wait {
			db.shards[i].lock.Lock()
		} else if !db.shards[i].lock.TryLock() {
			tx.unlock(mask & (1<<i - 1))
			return false
		}
	}
	tx.at(dbi, mask)
	return true
}

// at makes tx a transaction on shards that are locked.
func (tx *Tx) at(dbi int, mask uint64) {
	tx.dbi, tx.held = dbi, mask
	tx.now = tx.db.clock.Micros()
	for m := mask; m != 0; m &= m - 1 {
		tx.now = max(tx.now, tx.db.shards[bits.TrailingZeros64(m)].last)
	}
	tx.ms = tx.now / 1000
}

func (tx *Tx) unlock(mask uint64) { tx.db.unlock(mask) }

func (db *DB) unlock(mask uint64) {
	for m := mask; m != 0; m &= m - 1 {
		db.shards[bits.TrailingZeros64(m)].lock.Unlock()
	}
}

// Commit settles the effects and ends a transaction that Begin began.
func (tx *Tx) Commit() {
	tx.Unlock()
	tx.db.txs.Put(tx)
}

// Unlock serves those who wait for keys that have changed, settles the effects
// and ends a transaction that Lock began.
func (tx *Tx) Unlock() {
	tx.finish()
	if len(tx.pending)+len(tx.late) > 0 {
		tx.servePending()
	}
}

// finish is Unlock without what comes after it.
func (tx *Tx) finish() {
	writes := !tx.reads
	tx.reads = false // who waits is served, which writes
	for len(tx.fired)+len(tx.ready) > 0 {
		tx.Tell() // what is served may expire, and entries may be waited for
		tx.serveReady()
	}
	if tx.ending != nil {
		tx.end()
	}
	if len(tx.stale) > 0 {
		tx.redate()
	}
	tx.release()
	if tx.forget || tx.fx.n > 0 && tx.unlogged() {
		tx.fx.clear()
		tx.forget = false
	}
	if tx.fx.n > 0 || tx.fx.verbatim != nil {
		tx.acted = tx.acted || writes
		tx.settle()
	}
	if len(tx.fx.messages) > 0 {
		tx.tellReplicas()
	}
	if tx.dirty > 0 && tx.held != 0 {
		tx.db.shards[bits.TrailingZeros64(tx.held)].countDirty(tx.dirty)
	}
	limited := tx.db.limit.Load() != 0
	for m := tx.held; m != 0; m &= m - 1 {
		sh := tx.db.shards[bits.TrailingZeros64(m)]
		sh.last = max(sh.last, tx.now) // a replay may be behind
		tx.mark = max(tx.mark, sh.mark)
		if limited && tx.dirty > 0 {
			sh.publish()
		}
		if sh.freed > considerAfter {
			sh.workAt(tx.ms + considerIn)
		}
	}
	mask := tx.held
	tx.held, tx.hashed, tx.dirty, tx.replay = 0, nil, 0, false
	tx.unlock(mask)
}

// Forget keeps the transaction's effects out of the log, because it ends in the
// middle: what it has done would be there in part. The engine and its log differ
// from then on, so this is for one that is about to close.
func (tx *Tx) Forget() { tx.forget = true }

// Begun reports whether the transaction holds a shard.
func (tx *Tx) Begun() bool { return tx.held != 0 }

// Now returns the transaction's instant in microseconds since 1970.
func (tx *Tx) Now() int64 { return tx.now }

// Millis returns the transaction's instant in milliseconds.
func (tx *Tx) Millis() int64 { return tx.ms }

// DB returns the engine.
func (tx *Tx) DB() *DB { return tx.db }

// Selected returns the database that keys are looked up in.
func (tx *Tx) Selected() int { return tx.dbi }

// Select changes the database that keys are looked up in.
func (tx *Tx) Select(dbi int) { tx.dbi = dbi }

// Replaying marks the transaction as one that runs effects again: nothing
// expires in it, because the expiries are among the effects.
func (tx *Tx) Replaying() { tx.replay = true }

// ReadOnly is a word of the caller, before Lock and until Unlock, that the
// transaction's commands only read: a snapshot that is under way need not save
// what they look at. What reads change by themselves is saved all the same.
func (tx *Tx) ReadOnly(on bool) { tx.reads = on }

// NoTouch makes the transaction's reads leave access clocks alone.
func (tx *Tx) NoTouch(on bool) { tx.client = on }

// holds reports whether the shard of key is locked by the transaction.
func (tx *Tx) holds(shard int) bool { return tx.held&(1<<shard) != 0 }

// hit is where a key was found.
type hit struct {
	sh  *shard
	sp  *space
	h   uint64
	pos table.Pos
	r   *rec
}

func (h *hit) ref() arena.Ref { return h.pos.Ref() }

// find looks a key up. A key whose deadline has passed is removed, on a replica
// hidden, and not found. h.sp is nil where the database has nothing in the key's shard; h.r is
// nil if there is no such key.
func (tx *Tx) find(key []byte) (h hit) {
	s, hash := tx.shardOf(key)
	if !tx.holds(s) {
		panic("engine: a transaction used a key whose shard it did not lock")
	}
	h.sh, h.h = tx.db.shards[s], hash
	h.sp = h.sh.spaces[tx.dbi]
	if h.sp == nil {
		return h
	}
	if h.sh.snap != nil && !tx.reads {
		h.sh.preserve(h.sp, hash)
	}
	pos, ok := h.sp.tab.Find(hash, key)
	if !ok {
		return h
	}
	h.pos = pos
	h.r = h.sp.rec(pos.Ref())
	if tx.replay {
		if h.sh.own != nil {
			h.sh.own.disown(tx.dbi, key)
		}
		if tx.db.replica.Load() && h.r.itemDue(tx.ms) {
			tx.noteStale(key)
		}
		return h
	}
	if h.r.expired(tx.ms) {
		if !tx.hiding() {
			tx.expire(&h, true)
		}
		h.r = nil
	} else if h.r.itemDue(tx.ms) {
		tx.meetDue(&h, key)
	}
	return h
}

// read is find for commands that read a value: it counts hits and misses, and
// notes the access.
func (tx *Tx) read(key []byte) hit {
	h := tx.find(key)
	if h.r == nil {
		h.sh.stats.Misses++
		if tx.db.notify.Load()&EventMiss != 0 {
			tx.event(EventMiss, "keymiss", key)
		}
		return h
	}
	h.sh.stats.Hits++
	tx.touch(&h)
	if h.r.has(flagSlide) {
		tx.slideOn(&h, key)
	}
	return h
}

// makeSpace returns the space that key belongs to.
func (tx *Tx) makeSpace(h *hit) *space {
	if h.sp == nil {
		h.sp = h.sh.makeSpace(tx.dbi)
	}
	return h.sp
}

// spec says what put stores beside key and value.
type spec struct {
	flags    uint8 // kind, flagRaw
	deadline int64 // ms, 0: none
	span     int64 // sliding deadline's span, ms; 0: none
	logged   int64 // the deadline that the log knows, if it is not this one
}

func (s *spec) slide() slide {
	if s.logged != 0 {
		return slide{s.span, s.logged}
	}
	return slide{s.span, s.deadline}
}

func (s *spec) layout() uint8 {
	f := s.flags
	if s.deadline != 0 {
		f |= flagDeadline
		if s.span != 0 {
			f |= flagSlide
		}
	}
	return f
}

// put stores a value under a key that find has looked up, in place where the
// record's slot is of the right size. It returns ErrFull if the shard's memory
// is used up. val may lie in the engine's memory.
func (tx *Tx) put(h *hit, key, val []byte, s spec) error {
	sp := tx.makeSpace(h)
	flags := s.layout()
	if h.r != nil && !h.r.has(flagExt) && h.r.klen&bigKey == 0 {
		off := keyOffset(flags)
		if n := off + len(key) + len(val); sp.mem.Fits(h.ref(), n) {
			tx.rewrite(h, key, val, flags, s)
			return nil
		}
	}
	ref, r := sp.build(flags, key, val, 0)
	if r == nil {
		return ErrFull
	}
	tx.place(h, ref, r, s)
	return nil
}

// rewrite puts new contents into the record's own slot.
func (tx *Tx) rewrite(h *hit, key, val []byte, flags uint8, s spec) {
	r, ref := h.r, h.ref()
	h.sp.unscheduleNext(ref, r)
	same := shape(flags) == shape(r.kind)
	again := same && s.deadline != 0 && s.deadline == r.entry().Deadline()
	if !again {
		h.sp.unschedule(ref, r)
	}
	off := keyOffset(flags)
	dst := unsafe.Slice((*byte)(unsafe.Pointer(r)), off+len(key)+len(val))
	copy(dst[off+len(key):], val) // val may overlap: it is moved first
	if !same {
		copy(dst[off:], key)
	}
	if was, is := r.Kind(), Kind(flags&kindMask); was != is {
		h.sp.recast(ref, was, is)
	}
	if r.kind, r.vlen = flags, uint16(len(val)); timed(flags) {
		*r.next() = wheel.Entry{}
	}
	if s.span != 0 {
		*r.slide() = s.slide()
	}
	if s.deadline != 0 && !again {
		h.sp.schedule(ref, s.deadline)
		tx.dated(h.sp, key, s.deadline, false)
	}
	tx.stamp(r)
}

// place puts a new record where the key was, or into the table.
func (tx *Tx) place(h *hit, ref arena.Ref, r *rec, s spec) {
	if h.r != nil {
		r.clock = h.r.clock
		old := h.ref()
		h.sp.detach(old, h.r)
		h.sp.free(old)
		h.pos.Set(ref)
	} else {
		tx.makeWay(h.sp, h.h, h.sp.key(r))
		h.pos = h.sp.tab.Insert(h.h, ref)
		tx.created(h.sp, r)
	}
	h.r = r
	if s.span != 0 {
		*r.slide() = s.slide()
	}
	if s.deadline != 0 {
		h.sp.schedule(ref, s.deadline)
		tx.dated(h.sp, h.sp.key(r), s.deadline, false)
	}
	tx.stamp(r)
}

// created sends the event that a key has come, before the command's own.
func (tx *Tx) created(sp *space, r *rec) {
	if tx.db.notify.Load()&EventNew != 0 {
		defer tx.Select(tx.dbi)
		tx.Select(sp.db)
		tx.event(EventNew, "new", sp.key(r))
	}
}

// passed sends the event of created for a key that comes and goes in one command.
func (tx *Tx) passed(key []byte) {
	if tx.db.notify.Load()&EventNew != 0 {
		tx.event(EventNew, "new", key)
	}
}

// drop removes a key that find has found.
func (tx *Tx) drop(h *hit) {
	ref := h.ref()
	if o := h.sp.sh.own; o != nil {
		o.disown(h.sp.db, h.sp.key(h.r))
	}
	h.sp.detach(ref, h.r)
	h.sp.tab.Delete(h.h, h.pos)
	h.sp.free(ref)
	h.r = nil
}

// changed settles a change of key: watchers, waiters, tracking and the event.
func (tx *Tx) changed(key []byte, class uint32, event string) {
	tx.dirty++
	if tx.db.waits.Load() > 0 && wakes(class, event) {
		tx.Signal(key)
	}
	if tx.db.watches.Load() > 0 {
		tx.db.shards[tx.shardID(key)].touched(tx.dbi, key)
	}
	tx.db.hooks.Modified(tx, key)
	if tx.db.notify.Load()&class != 0 {
		tx.event(class, event, key)
	}
}

func (tx *Tx) shardID(key []byte) int {
	s, _ := tx.shardOf(key)
	return s
}

// Abandon ends a transaction in which the caller panicked: its shards are let go of. What
// it had logged so far is in the stream, because it was done; what it did after its last
// effect is not, and clients that wait are not served. It reports whether the data may
// differ from the stream: whether the transaction was to write. A transaction that holds
// nothing is made ready for the next use. It serves no waiting client, fires no rule and
// takes nothing apart, so that it works on whatever the panic has left.
func (tx *Tx) Abandon() (differs bool) {
	for _, l := range tx.ready {
		l.signalled = false
	}
	for _, o := range tx.pending {
		o.l.pending = false
	}
	clear(tx.ready)
	tx.ready, tx.pending, tx.late, tx.fired, tx.stale, tx.ending = tx.ready[:0], nil, nil, tx.fired[:0], tx.stale[:0], nil
	tx.old, tx.oldIn = 0, nil // its memory is lost
	differs = tx.held != 0 && !tx.reads
	if tx.fx.verbatim = nil; tx.fx.n > 0 && !tx.forget && !tx.hiding() {
		tx.settle()
	}
	tx.fx.clear()
	tx.fx.messages = tx.fx.messages[:0]
	for m := tx.held; m != 0; m &= m - 1 {
		sh := tx.db.shards[bits.TrailingZeros64(m)]
		sh.last = max(sh.last, tx.now)
		tx.mark = max(tx.mark, sh.mark)
	}
	mask := tx.held
	tx.held, tx.hashed, tx.dirty, tx.replay, tx.reads, tx.forget = 0, nil, 0, false, false, false
	tx.unlock(mask)
	return differs
}
