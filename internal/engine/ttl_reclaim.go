package engine

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/wheel"
)

const (
	// sliceItems is the number of items that a slice removes between two checks of the clock and the shard's
	// waiters: some 10 us of work.
	sliceItems = 32
	// sliceTime bounds the work of one Run, in us, and so the delay of a client's request. Shorter
	// slices cost more polling while many keys expire. Longer slices raise the p99 latency of other
	// clients.
	sliceTime = 150
	// considerAfter is the number of bytes freed in a shard after which the reclaimer considers
	// compaction. considerIn is the delay, in ms, until it does.
	considerAfter = 1 << 20
	considerIn    = 50
	// compactItems is the number of records that one slice of compaction moves.
	compactItems = 64
	// heldPause is the time that a reclaimer waits before it tries a locked shard again: much longer
	// than a command takes, and much shorter than a noticeable delay.
	heldPause = 200 * time.Microsecond
	// freeChunks is the number of a container's chunks that the reclaimer frees between two checks of the clock:
	// a few us of work.
	freeChunks = 16
	// trimSlabs is the number of idle slabs that one Run returns to the system.
	trimSlabs = 8
)

// Reclaimer removes the expired keys and items of its shards, compacts the shards, and returns idle
// memory to the system, in slices. One goroutine at a time calls Run.
type Reclaimer struct {
	db     *DB
	shards []*shard
	turn   int         // the shard to begin with
	trim   atomic.Bool // there is idle memory to return to the system

	// plan is the time, in ms, until which the goroutine that calls Run sleeps; 0 while it does not
	// sleep. Earlier work wakes it.
	plan   atomic.Int64
	wakeFn atomic.Pointer[func()]

	// dead has the keys that the slice has removed so far, for the log.
	dead  [][]byte
	bytes []byte
	name  []byte // a copy of the key of the current container
}

// Reclaimer returns the i-th of Options.Reclaimers. The engine calls wake, from any goroutine, when there is
// work earlier than the result of the last Run.
func (db *DB) Reclaimer(i int, wake func()) *Reclaimer {
	r := db.reclaimers[i]
	r.wakeFn.Store(&wake)
	return r
}

func (r *Reclaimer) wake() {
	if r.plan.Swap(0) != 0 {
		if f := r.wakeFn.Load(); f != nil {
			(*f)()
		}
	}
}

// Run executes a slice of the due work and returns how long the caller may sleep before the next
// call: 0 if there is more to do now, negative if no work is scheduled. It takes some 150 us at
// most. It unlocks a shard at once when a transaction waits for it.
func (r *Reclaimer) Run() time.Duration {
	r.plan.Store(0)
	now := r.db.clock.Micros()
	end := now + sliceTime
	more, held := false, false
	if r.db.evicting.Load() && !r.db.still.Load() {
		more = r.db.evictSlice(end)
	}
	for i := range r.shards {
		sh := r.shards[(r.turn+i)%len(r.shards)]
		if sh.next.Load() > now/1000 {
			continue
		}
		if now >= end {
			r.turn = (r.turn + i) % len(r.shards)
			return 0
		}
		locked := r.db.tryShard(sh)
		if locked == 0 {
			held = true
			continue
		}
		more = r.slice(sh, locked, end) || more
		now = r.db.clock.Micros()
	}
	if r.trim.Load() {
		left := r.db.pool.Trim(trimSlabs)
		r.trim.Store(left)
		more = more || left
	}
	switch {
	case more:
		return 0
	case held:
		return heldPause
	}
	return r.sleep()
}

// sleep computes the time until the next work, and stores it in plan: from then on workAt wakes the caller
// for earlier work.
func (r *Reclaimer) sleep() time.Duration {
	next := int64(never)
	for _, sh := range r.shards {
		next = min(next, sh.next.Load())
	}
	r.plan.Store(next)
	if r.db.evicting.Load() && !r.db.still.Load() {
		r.plan.Store(0)
		return 0
	}
	for _, sh := range r.shards {
		if sh.next.Load() < next { // new work was scheduled between the two reads
			r.plan.Store(0)
			return 0
		}
	}
	if next == never {
		return -1
	}
	return time.Duration(max(0, next*1000-r.db.clock.Micros())) * time.Microsecond
}

// slice works on a shard until end (us), unlocks the locked shards, and reports whether there is
// more to do at once.
func (r *Reclaimer) slice(sh *shard, locked uint64, end int64) (more bool) {
	db := r.db
	tx := db.txs.Get().(*Tx)
	tx.at(0, locked)
	still, active := db.still.Load(), !db.noActive.Load()
	switch {
	case db.passive.Load():
		more = r.keepTime(tx, sh, end)
		if sh.own != nil && active && !still {
			more = r.reclaimOwn(tx, sh, end) || more
		}
	case active && !still:
		more = r.reclaim(tx, sh, end)
	}
	if !still { // serving a waiter would change data
		more = sh.wakeLines(tx, sliceItems) || more
		more = sh.endLeases(tx, sliceItems) || more
	}
	more = sh.clean(tx, end) || more
	if !more && sh.freed > considerAfter {
		more = sh.compact()
		if !more {
			sh.freed = 0
			r.trim.Store(true)
		}
	}
	sh.next.Store(sh.nextWork(tx.ms, active && (!still || db.passive.Load())))
	if more || still && !db.still.Load() { // check again: SetStill does not wait for the lock
		sh.next.Store(0)
	}
	sh.stats.Reclaiming += max(0, db.clock.Micros()-tx.now)
	tx.resized = true
	tx.Commit()
	return more
}

// reclaim removes expired keys of one shard. It logs the removed keys of a database as one DEL.
func (r *Reclaimer) reclaim(tx *Tx, sh *shard, end int64) (more bool) {
	for _, sp := range sh.spaces {
		if sp == nil {
			continue
		}
		tx.dbi = sp.db
		if sp.due != nil {
			more = r.reclaimSpace(tx, sp, end)
			r.emitDead(tx)
		}
		if sp.next != nil && !more {
			more = r.reclaimItems(tx, sp, end)
		}
		if sp.fresh != nil && !more {
			more = r.goStale(tx, sp, end)
		}
		if more {
			sh.stats.TimeCaps++
			return true
		}
	}
	return false
}

const (
	// Between two checks of the clock and the shard's waiters, the reclaimer handles lapseKeys containers and
	// removes up to lapseItems items of each.
	lapseKeys  = 2
	lapseItems = 32
)

// reclaimItems removes the due items of the containers of a space. It reschedules at once a
// container with more than a slice of them.
func (r *Reclaimer) reclaimItems(tx *Tx, sp *space, end int64) (more bool) {
	for {
		n := sp.next.Advance(tx.ms, lapseKeys, func(ref uint32) { r.lapse(tx, sp, arena.Ref(ref)) })
		if next, ok := sp.next.Next(); n == 0 && (!ok || next > tx.ms) {
			return false
		}
		if tx.wanted() || tx.db.clock.Micros() >= end {
			return true
		}
	}
}

// lapse removes due items of a container that the second wheel has fired.
func (r *Reclaimer) lapse(tx *Tx, sp *space, ref arena.Ref) {
	x := sp.rec(ref)
	r.name = append(r.name[:0], sp.key(x)...)
	h := hit{sh: sp.sh, sp: sp, h: maphash.Bytes(tx.db.seed, r.name), r: x}
	h.pos, _ = sp.tab.FindRef(h.h, ref)
	tx.lapse(&h, r.name, lapseItems)
}

func (r *Reclaimer) reclaimSpace(tx *Tx, sp *space, end int64) (more bool) {
	for {
		n := sp.due.Advance(tx.ms, sliceItems, func(ref uint32) { r.reap(tx, sp, arena.Ref(ref)) })
		if next, ok := sp.due.Next(); n == 0 && (!ok || next > tx.ms) {
			return false
		}
		if tx.wanted() || tx.db.clock.Micros() >= end {
			return true
		}
	}
}

// reap removes a record that the wheel has fired.
func (r *Reclaimer) reap(tx *Tx, sp *space, ref arena.Ref) {
	x := sp.rec(ref)
	if x.late() && !x.expired(tx.ms) {
		sp.reschedule(ref, x)
		return
	}
	key := sp.key(x)
	if tx.db.logging.Load() {
		at := len(r.bytes)
		r.bytes = append(r.bytes, key...)
		r.dead = append(r.dead, r.bytes[at:len(r.bytes):len(r.bytes)])
	}
	h := hit{sp: sp, h: maphash.Bytes(tx.db.seed, key), r: x}
	h.pos, _ = sp.tab.FindRef(h.h, ref)
	tx.expire(&h, false)
}

// emitDead logs the keys that the slice has removed.
func (r *Reclaimer) emitDead(tx *Tx) {
	if len(r.dead) > 0 {
		tx.emit("DEL", r.dead...)
		for _, key := range r.dead {
			tx.keepLease(key)
		}
		r.dead, r.bytes = r.dead[:0], r.bytes[:0]
	}
}

// compact moves some records together, and reports whether more compaction pays.
func (sh *shard) compact() bool {
	for _, sp := range sh.spaces {
		if sp != nil && sp.mem.Compact(compactItems, sp.moved) > 0 {
			return true
		}
	}
	return false
}

// clean frees deleted large containers and compacts wasteful ones, until end (us) or until a
// transaction waits for the shard. It reports whether there is more to do.
func (sh *shard) clean(tx *Tx, end int64) (more bool) {
	stop := func() bool { return tx.wanted() || sh.db.clock.Micros() >= end }
	for n := len(sh.lazyFree); n > 0; n = len(sh.lazyFree) {
		if sh.lazyFree[n-1].Free(freeChunks) {
			sh.lazyFree[n-1] = nil
			sh.lazyFree = sh.lazyFree[:n-1]
			sh.freed += considerAfter + 1 // schedules the return of idle slabs
		}
		if stop() {
			return true
		}
	}
	for _, sp := range sh.spaces {
		for sp != nil && len(sp.wasteful) > 0 {
			h := sp.wasteful[len(sp.wasteful)-1]
			if x := &sp.exts[h]; !x.queued || x.box == nil || x.box.Compact(compactItems) < compactItems {
				sp.wasteful = sp.wasteful[:len(sp.wasteful)-1]
				x.queued = false
			}
			if x := &sp.exts[h]; x.box != nil {
				n := x.box.Size()
				sh.freed += max(0, x.size-n)
				sp.grow(x, n)
			}
			if stop() {
				return true
			}
		}
	}
	return false
}

// nextWork returns the time in ms from which on the reclaimer has work.
func (sh *shard) nextWork(now int64, active bool) int64 {
	next := int64(never)
	for _, sp := range sh.spaces {
		if !active || sp == nil {
			continue
		}
		for _, w := range [...]*wheel.Wheel{sp.due, sp.next, sp.fresh} {
			if w == nil {
				continue
			}
			if ms, ok := sh.nextWheel(w); ok {
				next = min(next, ms)
			}
		}
	}
	if ms, ok := sh.own.next(); ok && active && !sh.db.still.Load() {
		next = min(next, ms)
	}
	if ms, ok := sh.nextWake(); ok && !sh.db.still.Load() {
		next = min(next, ms)
	}
	if ms, ok := sh.leases.next(); ok && !sh.db.filling.Load() && !sh.db.still.Load() {
		next = min(next, ms)
	}
	if sh.freed > considerAfter {
		next = min(next, now+considerIn)
	}
	if len(sh.lazyFree) > 0 {
		next = 0
	}
	for _, sp := range sh.spaces {
		if sp != nil && len(sp.wasteful) > 0 {
			next = min(next, now+considerIn)
		}
	}
	return next
}

// startReclaimers distributes the shards over n reclaimers, which callers run. If n is 0, it
// creates one reclaimer, which a goroutine of the DB or the manual clock runs.
func (db *DB) startReclaimers(n int) {
	for range max(n, 1) {
		db.reclaimers = append(db.reclaimers, &Reclaimer{db: db})
	}
	for i, sh := range db.shards {
		r := db.reclaimers[i%len(db.reclaimers)]
		r.shards = append(r.shards, sh)
		sh.owner = r
	}
	db.stop = func() {}
	if m, ok := db.clock.(*clock.Manual); ok {
		db.stop = m.Attend(db.nextWork, db.work)
		return
	}
	if n > 0 {
		return
	}
	quit := make(chan struct{})
	var done sync.WaitGroup
	r := db.reclaimers[0]
	kick := make(chan struct{}, 1)
	db.Reclaimer(0, func() {
		select {
		case kick <- struct{}{}:
		default:
		}
	})
	done.Go(func() { r.loop(kick, quit) })
	db.stop = func() { close(quit); done.Wait() }
}

// loop runs the reclaimer until quit is closed.
func (r *Reclaimer) loop(kick, quit chan struct{}) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-quit:
			return
		default:
		}
		d := r.Run()
		if d < 0 {
			d = time.Hour
		}
		timer.Reset(d)
		select {
		case <-timer.C:
		case <-kick:
		case <-quit:
			return
		}
	}
}

// nextWork returns the time of the reclaimers' next work, for a manual clock.
func (db *DB) nextWork() (ms int64, ok bool) {
	if db.evicting.Load() && !db.still.Load() {
		return 0, true
	}
	next := int64(never)
	for _, sh := range db.shards {
		next = min(next, sh.next.Load())
	}
	return next, next != never
}

// work runs the reclaimers until they have done all due work.
func (db *DB) work() {
	for _, r := range db.reclaimers {
		for r.Run() == 0 {
		}
	}
}
