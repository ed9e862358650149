package engine

import (
	"math/bits"
	"math/rand/v2"
	"unsafe"

	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/table"
	"github.com/ebbdb/ebb/internal/wheel"
)

// Tx is a transaction: a set of locked shards, and one instant. One goroutine uses it at a time.
// Byte slices that its methods return lie in the engine's memory. They are valid until the next
// call that writes, and at most until Commit.
type Tx struct {
	db     *DB
	dbi    int    // the selected database
	held   uint64 // a bit for each locked shard
	now    int64  // the instant, us since 1970
	ms     int64  // now in ms: deadlines before it have passed
	replay bool   // nothing expires: the transaction replays effects
	client bool   // the caller's reads do not count as accesses
	reads  bool   // the caller promises that it writes nothing
	forget bool   // the engine does not log its effects
	fx     effects
	mark   int64 // the offset in the stream after all effects that its transactions so far have written or read
	did    Did   // the work of its transactions so far
	dirty  int   // the number of changes, as Redis counts them
	caller any
	ending Ending

	resized bool // the memory in use has changed, maybe without a change that counts

	// hashed is the key that LockKey has hashed, until the command's own lookup uses the hash.
	hashed *byte
	hlen   int
	hshard int
	hash   uint64

	// item is an item whose hash Hashed has told.
	item     *byte
	itemLen  int
	itemHash uint64

	// old is the record that room has replaced, until the plan is applied.
	old   arena.Ref
	oldIn *space

	rng     *rand.Rand
	num     [4][24]byte   // scratch for numbers in effects
	dec     [24]byte      // scratch for the result of addDecimals
	ready   []*waitLine   // lines to serve when the transaction ends
	pending []pendingLine // lines to serve in separate transactions
	unmet   []Want        // the wants that the line being served does not meet

	stale []stale     // containers to check again when a replay ends
	fired []firing    // entries of expiry rules to write when the transaction ends
	fbuf  []byte      // the bytes of fired
	late  []lateEntry // entries to write in separate transactions

	walked table.Batch // scratch for the records of a walk

	index  *memberIndex // scratch; see borrowIndex
	z      zscratch
	sorted *Sorted     // the result of the last Sort
	kbuf   []byte      // scratch for the key of a removed record
	vbuf   []byte      // scratch for values
	ebuf   []byte      // scratch for an element that moves between lists
	one    [1][]byte   // scratch for a list of one
	some   [2][][]byte // scratch for lists of items
}

// Begin locks the shards of keys and returns a transaction on database dbi. It waits
// until other transactions unlock these shards. The caller must Commit it.
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

// TryLockAll begins a transaction on all shards, or returns false at once if another transaction holds one of
// them.
func (tx *Tx) TryLockAll(dbi int) bool { return tx.begin(dbi, tx.db.all(), false) }

// Await announces that the caller polls with TryLock for the shards of keys, or for all shards; the
// returned function ends the announcement. In between, a goroutine that works on a shard in slices
// unlocks it after each slice.
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

// Turn returns a channel that the engine closes when a holder unlocks a shard, or by
// WakeWaiting. A caller that has called Await takes the channel, then calls TryLock, then
// waits for the channel.
func (tx *Tx) Turn() <-chan struct{} { return tx.db.turns.wait() }

// WakeWaiting wakes all callers that wait for a Turn.
func (db *DB) WakeWaiting() { db.turns.turn() }

// TryLock begins a transaction on the shards of keys, or returns false at once if another transaction holds
// one of them.
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

// shardOf does the work of DB.shardOf, and uses the hash that LockKey has remembered for its key: only the
// first call for this key gets it, because the caller may change the key's bytes afterwards.
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

// begin locks the shards of mask in ascending order, and only then takes the instant: the later of
// the clock and the latest instant of any of them.
//
// While the queue of a snapshot is full, begin waits before it locks anything, because the
// transaction might make the snapshot save records. Without wait it returns false, as if another
// transaction held the shards.
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

// at makes tx a transaction on shards that are already locked.
func (tx *Tx) at(dbi int, mask uint64) {
	last := int64(0)
	for m := mask; m != 0; m &= m - 1 {
		last = max(last, tx.db.shards[bits.TrailingZeros64(m)].last)
	}
	tx.since(dbi, mask, max(tx.db.clock.Micros(), last))
}

// since does the work of at for a known instant, which is not before the last one of any of the shards.
func (tx *Tx) since(dbi int, mask uint64, now int64) {
	tx.dbi, tx.held = dbi, mask
	tx.now, tx.ms = now, now/1000
}

func (tx *Tx) unlock(mask uint64) { tx.db.unlock(mask) }

func (db *DB) unlock(mask uint64) {
	for m := mask; m != 0; m &= m - 1 {
		db.shards[bits.TrailingZeros64(m)].lock.Unlock()
	}
}

// Commit ends a transaction that Begin began: it does what Unlock does.
func (tx *Tx) Commit() {
	tx.Unlock()
	tx.db.txs.Put(tx)
}

// Unlock ends a transaction that Lock began. It serves the clients that wait for changed keys,
// appends the effects to the stream, and unlocks the shards.
func (tx *Tx) Unlock() {
	tx.finish()
	if len(tx.pending)+len(tx.late) > 0 {
		if f, ok := tx.caller.(Follower); ok {
			defer f.Following(-1)
		}
		tx.servePending()
	}
}

// finish does the work of Unlock up to the unlocking of the shards.
func (tx *Tx) finish() {
	writes := !tx.reads
	tx.reads = false // serving waiters writes
	for len(tx.fired)+len(tx.ready) > 0 {
		tx.Tell() // before serveReady: clients may wait for these entries
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
		if writes {
			tx.did |= Wrote
		}
		tx.settle()
	} else {
		tx.did |= Looked
	}
	if len(tx.fx.messages) > 0 {
		tx.tellReplicas()
	}
	if tx.dirty > 0 && tx.held != 0 {
		tx.db.shards[bits.TrailingZeros64(tx.held)].countDirty(tx.dirty)
	}
	for m := tx.held; m != 0; m &= m - 1 {
		sh := tx.db.shards[bits.TrailingZeros64(m)]
		tx.mark = max(tx.mark, sh.mark)
		tx.leave(sh)
	}
	if len(tx.pending)+len(tx.late) > 0 {
		if f, ok := tx.caller.(Follower); ok {
			f.Following(1)
		}
	}
	mask := tx.held
	tx.held, tx.hashed, tx.dirty, tx.resized, tx.replay = 0, nil, 0, false, false
	tx.unlock(mask)
}

// leave does the final work for each shard before the transaction unlocks it.
func (tx *Tx) leave(sh *shard) {
	sh.last = max(sh.last, tx.now) // a replay's instant may be earlier
	if (tx.dirty > 0 || tx.resized) && tx.db.limit.Load() != 0 {
		sh.publish()
	}
	if sh.freed > considerAfter {
		sh.workAt(tx.ms + considerIn)
	}
}

// Forget keeps the transaction's effects out of the log, because the transaction ends in the middle
// and its log entry would be partial. From then on the engine and its log differ, so only an engine
// that is about to close may use Forget.
func (tx *Tx) Forget() { tx.forget = true }

// Begun reports whether the transaction holds a shard.
func (tx *Tx) Begun() bool { return tx.held != 0 }

// Now returns the transaction's instant in microseconds since 1970.
func (tx *Tx) Now() int64 { return tx.now }

// Millis returns the transaction's instant in milliseconds.
func (tx *Tx) Millis() int64 { return tx.ms }

// DB returns the engine.
func (tx *Tx) DB() *DB { return tx.db }

// Selected returns the number of the selected database.
func (tx *Tx) Selected() int { return tx.dbi }

// Select selects a database for the keys of the following calls.
func (tx *Tx) Select(dbi int) { tx.dbi = dbi }

// Replaying marks the transaction as one that replays effects: nothing expires in it,
// because the effects contain the expirations.
func (tx *Tx) Replaying() { tx.replay = true }

// ReadOnly is the caller's promise, before Lock and until Unlock, that the transaction's commands
// only read. A running snapshot then does not save the records that the commands read. It still
// saves records that the reads themselves change.
func (tx *Tx) ReadOnly(on bool) { tx.reads = on }

// NoTouch sets whether the transaction's reads leave access clocks unchanged.
func (tx *Tx) NoTouch(on bool) { tx.client = on }

// holds reports whether the transaction has locked a shard.
func (tx *Tx) holds(shard int) bool { return tx.held&(1<<shard) != 0 }

// hit is the result of a lookup: the position of a key's record.
type hit struct {
	sh  *shard
	sp  *space
	h   uint64
	pos table.Pos
	r   *rec
}

func (h *hit) ref() arena.Ref { return h.pos.Ref() }

// find looks a key up. It treats a key whose deadline has passed as missing: it removes the key, or
// on a replica hides it. h.sp is nil if the database has nothing in the key's shard; h.r is nil if
// there is no such key.
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

// read finds a key for commands that read its value: it counts a hit or a miss, and records the access.
func (tx *Tx) read(key []byte) hit {
	h := tx.find(key)
	if h.r == nil {
		h.sh.misses++
		if tx.db.notify.Load()&EventMiss != 0 {
			tx.event(EventMiss, "keymiss", key)
		}
		return h
	}
	h.sh.hits++
	tx.touch(&h)
	if h.r.has(flagSlide) {
		tx.slideOn(&h, key)
	}
	return h
}

// makeSpace returns the space that a key belongs to, and creates it if there is none.
func (tx *Tx) makeSpace(h *hit) *space {
	if h.sp == nil {
		h.sp = h.sh.makeSpace(tx.dbi)
	}
	return h.sp
}

// spec holds the parts of a record that put stores besides key and value.
type spec struct {
	flags    uint8 // kind, flagRaw
	deadline int64 // ms, 0: none
	span     int64 // sliding deadline's span, ms; 0: none
	logged   int64 // the deadline that the log has, if it differs
	fresh    int64 // the fresh deadline of a string, ms; 0: none; see rec.freshUntil
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

// put stores a value under a key that find has looked up. It writes in place if the
// record's slot has the right size. It returns ErrFull if the shard's memory is used up.
// val may lie in the engine's memory.
func (tx *Tx) put(h *hit, key, val []byte, s spec) error {
	sp := tx.makeSpace(h)
	flags := s.layout()
	if h.r != nil && !h.r.has(flagExt) && h.r.klen&bigKey == 0 {
		off := keyOffset(flags)
		if n := s.tailed(off + len(key) + len(val)); sp.mem.Fits(h.ref(), n) {
			tx.rewrite(h, key, val, flags, s)
			return nil
		}
	}
	ref, r := sp.buildSpec(&s, key, val, 0)
	if r == nil {
		return ErrFull
	}
	tx.place(h, ref, r, s)
	return nil
}

// rewrite writes new contents into the record's own slot.
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
	copy(dst[off+len(key):], val) // val may overlap with the slot, so it is moved first
	if !same {
		copy(dst[off:], key)
	}
	if was, is := r.Kind(), Kind(flags&kindMask); was != is {
		h.sp.recast(ref, was, is)
		h.sp.left(h.h, ref, was)
		h.sp.entered(h.h, ref, is)
	}
	if r.kind, r.vlen = flags, uint16(len(val)); timed(flags) {
		*r.next() = wheel.Entry{}
	}
	if s.fresh != 0 {
		r.vlen |= freshBit
		*r.freshEntry() = wheel.Entry{}
		tx.scheduleFresh(h.sp, ref, s.fresh)
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

// place puts a new record in place of the key's old one, or into the table.
func (tx *Tx) place(h *hit, ref arena.Ref, r *rec, s spec) {
	if h.r != nil {
		r.clock = h.r.clock
		old := h.ref()
		h.sp.detach(old, h.r)
		h.sp.left(h.h, old, h.r.Kind())
		h.sp.free(old)
		h.pos.Set(ref)
	} else {
		tx.makeWay(h.sp, h.h, h.sp.key(r))
		h.pos = h.sp.tab.Insert(h.h, ref)
		tx.created(h.sp, r)
	}
	h.sp.entered(h.h, ref, r.Kind())
	h.r = r
	if s.span != 0 {
		*r.slide() = s.slide()
	}
	if s.deadline != 0 {
		h.sp.schedule(ref, s.deadline)
		tx.dated(h.sp, h.sp.key(r), s.deadline, false)
	}
	if s.fresh != 0 {
		tx.scheduleFresh(h.sp, ref, s.fresh)
	}
	tx.stamp(r)
}

// created sends the event "new" of a new key, before the command's own event.
func (tx *Tx) created(sp *space, r *rec) {
	if tx.db.notify.Load()&EventNew != 0 {
		defer tx.Select(tx.dbi)
		tx.Select(sp.db)
		tx.event(EventNew, "new", sp.key(r))
	}
}

// passed sends the event of created for a key that one command creates and deletes. It logs the end of the
// key's lease, because the log has no other effect of such a command.
func (tx *Tx) passed(key []byte) {
	tx.revoke(key)
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
	h.sp.left(h.h, ref, h.r.Kind())
	h.sp.free(ref)
	h.r = nil
}

// changed reports a change of key to the watches, the waiters and the Hooks, and sends the event.
func (tx *Tx) changed(key []byte, class uint32, event string) {
	tx.dirty++
	if tx.db.leases.Load() > 0 && class != EventEvicted {
		tx.voidLease(key)
	}
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

// Abandon ends a transaction in which the caller panicked, and unlocks its shards. The stream keeps the
// effects that the transaction had logged so far, because they took place; it lacks changes after the last
// effect. Abandon reports whether the data may differ from the stream, that is, whether the transaction was
// allowed to write. It resets a transaction that holds nothing. It serves no waiting client, fires no rule
// and frees no record, so that it works in any state that the panic has left.
func (tx *Tx) Abandon() (differs bool) {
	for _, l := range tx.ready {
		l.signalled = false
	}
	for _, o := range tx.pending {
		o.l.pending = false
	}
	clear(tx.ready)
	tx.ready, tx.pending, tx.late, tx.fired, tx.stale, tx.ending = tx.ready[:0], nil, nil, tx.fired[:0], tx.stale[:0], nil
	tx.old, tx.oldIn = 0, nil // the memory of the record is lost
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
	tx.held, tx.hashed, tx.dirty, tx.resized, tx.replay, tx.reads, tx.forget = 0, nil, 0, false, false, false, false
	tx.unlock(mask)
	return differs
}
