package engine

import (
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/limiter"
)

// Eviction configures which keys the engine evicts when it uses more memory than LimitMemory
// allows.
//
// Eviction does not touch locks, semaphores, limiters, delay queues and the streams that these deliver to,
// and the streams and queues that expiry rules write to (Protected), because their data cannot be fetched
// again. Any client may create limiters. While limiters take up more than Eviction.Limiters, the engine
// evicts the fullest limiters first, because that loses the least.
//
// Each shard walks its tables with a cursor, so that over time it examines every key. It keeps the best
// candidates that it has met (pool). It evicts a candidate only if its score is still as high as when it was
// recorded; a key that was read since then has a lower score.
type Eviction struct {
	// Keys selects the keys that the engine may evict; none by default.
	Keys EvictionKeys
	// By is the order in which the engine evicts them.
	By EvictionOrder
	// Samples is the number of keys that a shard examines for each key that it evicts; 5 if 0. More samples come
	// closer to the true order, and cost more.
	Samples int
	// Unprotected lists the protected kinds that the engine may evict all the same. The zero value
	// protects all of them.
	Unprotected Protected
	// Limiters is the number of bytes of limiters that are protected; 0: any number. Above it, the
	// engine evicts the fullest limiters first.
	Limiters int64
}

// Protected is a set of kinds of keys that the engine does not evict, because a client cannot fetch
// their data again.
type Protected uint8

// These are the kinds of protected keys, and the consequence of their loss.
const (
	ProtectLocks      Protected = 1 << iota // a second client would get the lock
	ProtectSemaphores                       // clients would hold more permits than there are
	ProtectQueues                           // delay queues and the streams that they deliver to: acknowledged jobs would be lost
	ProtectLimiters                         // a missing limiter counts as full: it would allow a burst
	ProtectRules                            // streams and queues of expiry rules: the recorded expirations would be lost

	ProtectAll Protected = 1<<iota - 1
)

// EvictionKeys selects the keys that eviction may remove.
type EvictionKeys uint8

// The values select no keys, the keys with a deadline, or all keys.
const (
	EvictNone EvictionKeys = iota
	EvictVolatile
	EvictAll
)

// EvictionOrder is the order in which eviction removes keys.
type EvictionOrder uint8

// The orders are: the longest time without an access first, the fewest accesses first (UseLFU makes
// the access clocks count them), the earliest deadline first, and random.
const (
	ByRecency EvictionOrder = iota
	ByFrequency
	ByDeadline
	ByChance
)

const (
	defaultSamples = 5
	// poolSize is the number of candidates that a shard keeps.
	poolSize = 16
	// evictBatch is the number of keys that a shard evicts between two checks of the clock. lookBuckets is the
	// greatest number of buckets that it examines for each key: if few keys have deadlines, most buckets have no
	// candidate.
	evictBatch = 8
	// evictPart limits a batch to one in evictPart of a shard's keys.
	evictPart   = 32
	lookBuckets = 64
)

// candidate is a key that the shard may evict. It holds the position of the key's record. If
// another record is at this position by the time of the eviction, evict skips the candidate.
type candidate struct {
	score uint64 // the shard evicts higher scores first
	hash  uint64
	ref   arena.Ref
	db    int32
}

// evictor holds a shard's state of eviction.
type evictor struct {
	policy Eviction
	pool   []candidate // ascending by score
	db     int         // the position of the walk: database and cursor
	cursor uint64
	held   int  // protected keys that the walk has met while it searched for one key
	over   bool // limiters take up more bytes than are protected
}

// SetEviction sets what the engine evicts at the memory limit.
func (db *DB) SetEviction(e Eviction) {
	if e.Samples <= 0 {
		e.Samples = defaultSamples
	}
	db.eviction.Store(&e)
	db.evictSoon()
}

// evictSoon requests that the reclaimers evict down to the limit.
func (db *DB) evictSoon() {
	if !db.OverLimit() || db.eviction.Load().Keys == EvictNone {
		return
	}
	db.evicting.Store(true)
	for _, r := range db.reclaimers {
		r.wake()
	}
}

// MakeRoom evicts keys while the engine uses more memory than allowed, for about budget at most. It reports
// whether there is room, or will be because the reclaimers evict the rest. It locks one shard at a time; the
// caller must hold none. It costs two atomic reads if there is nothing to do.
func (db *DB) MakeRoom(budget time.Duration) bool {
	if !db.OverLimit() {
		return true
	}
	policy := db.eviction.Load()
	if policy.Keys == EvictNone {
		return false
	}
	if !db.evictUntil(policy, db.clock.Micros()+budget.Microseconds()) {
		return !db.OverLimit()
	}
	db.evictSoon()
	return true
}

// evictUntil evicts until there is room, or until end (us). It returns false if
// no shard has anything to evict.
func (db *DB) evictUntil(policy *Eviction, end int64) bool {
	tx := db.txs.Get().(*Tx)
	defer db.txs.Put(tx)
	// The loop skips a shard that a transaction holds. A script may hold the shard until it is
	// killed, and the caller may be the event loop that has to read the SCRIPT KILL. Later writes
	// evict from that shard.
	barren, held := uint64(0), uint64(0)
	for db.OverLimit() {
		sh := db.heaviest(barren | held)
		if sh == nil {
			return held != 0
		}
		if !sh.lock.TryLock() {
			held |= 1 << sh.id
			continue
		}
		n := sh.evict(tx, policy, evictBatch)
		tx.Unlock()
		if n == 0 {
			barren |= 1 << sh.id
		} else if db.clock.Micros() >= end {
			return true
		}
	}
	return true
}

// heaviest returns a random shard that is not in except, with probabilities in proportion
// to the bytes that the shards hold; nil if there is none.
func (db *DB) heaviest(except uint64) *shard {
	var sum int64
	var last *shard
	for i, sh := range db.shards {
		if except&(1<<i) == 0 {
			sum += 1 + sh.bytes.Load()
		}
	}
	if sum == 0 {
		return nil
	}
	n := rand.Int64N(sum)
	for i, sh := range db.shards {
		if except&(1<<i) == 0 {
			last = sh
			if n -= 1 + sh.bytes.Load(); n < 0 {
				break
			}
		}
	}
	return last
}

// evict removes up to n keys of the locked shard and returns the number removed. It makes
// tx a transaction on the shard, which the caller must Unlock.
func (sh *shard) evict(tx *Tx, policy *Eviction, n int) (evicted int) {
	tx.dbi, tx.held = 0, 1<<sh.id
	tx.now = max(sh.db.clock.Micros(), sh.last)
	tx.ms = tx.now / 1000
	// A shard with few keys evicts few of them before the next random choice of a shard, because it
	// holds only its share of the best candidates.
	n = min(n, 1+sh.keys()/evictPart)
	e := &sh.evictor
	if e.policy != *policy {
		e.policy, e.pool = *policy, e.pool[:0]
	}
	for evicted < n && sh.evictable(policy.Keys) {
		if !sh.evictOne(tx) {
			break
		}
		evicted++
		sh.publish()
		if !sh.db.OverLimit() {
			break
		}
	}
	return evicted
}

// evictable reports whether the shard has a key that it may evict.
func (sh *shard) evictable(keys EvictionKeys) bool {
	for _, sp := range sh.spaces {
		if sp != nil && (keys == EvictAll && sp.tab.Len() > 0 || sp.due != nil && sp.due.Len() > 0) {
			return true
		}
	}
	return false
}

// evictOne examines some keys, and removes the best candidate. The walk continues until it finds a candidate;
// the caller knows that the shard has one.
func (sh *shard) evictOne(tx *Tx) bool {
	e := &sh.evictor
	e.held = 0
	if over := sh.db.manyLimiters(&e.policy); over != e.over {
		e.over, e.pool = over, e.pool[:0]
	}
	for range maxLooks {
		if e.held > 2*sh.keys() {
			return false // the shard protects all keys that the policy selects
		}
		sh.sample(tx)
		for len(e.pool) > 0 {
			c := e.pool[len(e.pool)-1]
			e.pool = e.pool[:len(e.pool)-1]
			if sh.remove(tx, c) {
				return true
			}
		}
	}
	return false
}

// protects maps a kind to its group of Protected, if the group follows from the kind alone.
var protects = [maxKinds]Protected{Lock: ProtectLocks, Semaphore: ProtectSemaphores, DelayQueue: ProtectQueues, Limiter: ProtectLimiters}

// protected reports whether a record is protected from eviction.
func (e *evictor) protected(sp *space, r *rec) bool {
	k := r.Kind()
	p := protects[k] &^ e.policy.Unprotected
	if p == 0 && (k == Stream || k == DelayQueue) {
		return e.policy.Unprotected&ProtectRules == 0 && sp.ruleTarget(r) || e.policy.Unprotected&ProtectQueues == 0 && k == Stream && sp.sink(r)
	}
	return p != 0 && !(p == ProtectLimiters && e.over)
}

// sink reports whether a delay queue delivers to a stream. The two have one hash tag, so that the
// space with the stream has the queue, too.
func (sp *space) sink(r *rec) bool { return len(sp.sinks) > 0 && sp.sinks[string(sp.key(r))] > 0 }

// ruleTarget reports whether a stream or a queue is one that a rule writes to.
func (sp *space) ruleTarget(r *rec) bool {
	b := sp.sh.db.book.Load()
	return b != nil && b.sets[sp.db] != nil && b.sets[sp.db].targets[string(sp.key(r))]
}

// ProtectedMemory holds the bytes that a DB protects from eviction, and the bytes of its limiters.
type ProtectedMemory struct {
	Protected int64 // bytes of keys that SetEviction protects
	Limiters  int64 // bytes of limiters, protected or not
}

func (p *ProtectedMemory) add(o ProtectedMemory) {
	p.Protected += o.Protected
	p.Limiters += o.Limiters
}

// ProtectedMemory returns the bytes that are protected now. The transaction holds all shards, or
// none. O(shards, databases, rules, and streams that queues deliver to).
func (tx *Tx) ProtectedMemory() (p ProtectedMemory) {
	tx.eachShard(func(sh *shard) { p.add(sh.protected()) })
	return p
}

// protected returns the shard's part of ProtectedMemory.
func (sh *shard) protected() (p ProtectedMemory) {
	un := sh.db.eviction.Load().Unprotected
	for _, sp := range sh.spaces {
		if sp == nil {
			continue
		}
		p.Limiters += int64(sp.kept[Limiter])
		for k, group := range protects {
			if group&^un != 0 {
				p.Protected += int64(sp.kept[k])
			}
		}
		p.Protected += sp.targetBytes(un)
	}
	return p
}

// targetBytes returns the bytes of the space's streams and queues that are protected because rules
// write to them or queues deliver to them, without those of the queues that ProtectQueues protects.
func (sp *space) targetBytes(un Protected) (bytes int64) {
	queues := un&ProtectQueues == 0
	var ruled map[string]bool
	if b := sp.sh.db.book.Load(); b != nil && b.sets[sp.db] != nil && un&ProtectRules == 0 {
		ruled = b.sets[sp.db].targets
	}
	for name := range ruled {
		bytes += sp.bytesOf(name, func(k Kind) bool { return k == Stream || k == DelayQueue && !queues })
	}
	for name := range sp.sinks {
		if queues && !ruled[name] {
			bytes += sp.bytesOf(name, func(k Kind) bool { return k == Stream })
		}
	}
	return bytes
}

// bytesOf returns the bytes of a key; 0 if the space does not have it, or if kinds does not select its kind.
func (sp *space) bytesOf(name string, kinds func(Kind) bool) (bytes int64) {
	pos, ok := sp.tab.Find(sp.sh.db.hashOf(name), []byte(name)) // a rule's target of another shard is not in this table
	if !ok {
		return 0
	}
	h := hit{sh: sp.sh, sp: sp, pos: pos, r: sp.rec(pos.Ref())}
	if !kinds(h.r.Kind()) {
		return 0
	}
	bytes = int64(sp.mem.SlotOf(pos.Ref()))
	if x := h.box(); x != nil {
		bytes += int64(x.Size())
	}
	return bytes
}

// manyLimiters reports whether limiters take up more bytes than are protected.
func (db *DB) manyLimiters(e *Eviction) bool {
	return e.Limiters > 0 && e.Unprotected&ProtectLimiters == 0 && db.limiters.Load() > e.Limiters
}

// keys returns the number of records in the shard.
func (sh *shard) keys() (n int) {
	for _, sp := range sh.spaces {
		if sp != nil {
			n += sp.tab.Len()
		}
	}
	return n
}

// maxLooks bounds the walk for one key. With lookBuckets each, the walk passes 16 M buckets. If it
// finds none of a shard's few keys with deadlines, this eviction treats the shard as one without
// such keys.
const maxLooks = 1 << 18

// sample continues the walk through the shard's tables and notes candidates.
func (sh *shard) sample(tx *Tx) {
	e := &sh.evictor
	seen := 0
	for range lookBuckets {
		if seen >= e.policy.Samples {
			return
		}
		sp := sh.spaces[e.db]
		if sp == nil || sp.tab.Len() == 0 || e.policy.Keys == EvictVolatile && (sp.due == nil || sp.due.Len() == 0) {
			e.db, e.cursor = (e.db+1)%len(sh.spaces), 0
			continue
		}
		e.cursor = sp.tab.Scan(e.cursor, func(ref arena.Ref) {
			r := sp.rec(ref)
			if e.policy.Keys == EvictVolatile && !r.has(flagDeadline) {
				return
			}
			seen++
			if e.protected(sp, r) {
				e.held++
				return
			}
			e.note(candidate{e.score(tx, r), sp.Hash(ref), ref, int32(e.db)})
		})
		if e.cursor == 0 {
			e.db = (e.db + 1) % len(sh.spaces)
		}
	}
}

// note adds a candidate to the pool if its score is higher than the lowest one of the pool.
func (e *evictor) note(c candidate) {
	i := len(e.pool)
	for i > 0 && e.pool[i-1].score > c.score {
		i--
	}
	switch {
	case len(e.pool) < poolSize:
		e.pool = append(e.pool, candidate{})
		copy(e.pool[i+1:], e.pool[i:])
		e.pool[i] = c
	case i > 0: // replace the first candidate, which has the lowest score
		copy(e.pool, e.pool[1:i])
		e.pool[i-1] = c
	}
}

// first is the lowest score of limiters while there are too many of them.
const first = 1 << 63

// score returns the score of a key: the shard evicts higher scores first.
func (e *evictor) score(tx *Tx, r *rec) uint64 {
	if e.over && r.Kind() == Limiter {
		return first | tx.fullness(r)
	}
	switch e.policy.By {
	case ByRecency:
		return uint64((uint32(tx.ms/1000) - r.access()) & lruMask)
	case ByFrequency:
		return uint64(255 - tx.lfuCount(r.access()))
	case ByDeadline:
		return uint64(MaxDeadline - r.deadline())
	}
	return rand.Uint64() &^ first
}

// fullness is higher for a limiter whose state is worth less: it is the remaining share of the capacity, and
// among equal shares higher for a limiter that is full sooner. It is below 1<<63.
func (tx *Tx) fullness(r *rec) uint64 {
	b := r.inlineValue()
	if r.has(flagExt) {
		return 0 // limiters with long logs or reservations are in use
	}
	var l limiter.State
	l.Load(b)
	l.Adopt(tx.now, l.Params())
	left := uint64(0)
	if most := l.Capacity(); most > 0 {
		hi, lo := bits.Mul64(uint64(min(max(l.Remaining(tx.now), 0), most)), fullest)
		left, _ = bits.Div64(hi, lo, uint64(most))
	}
	wait := uint64(max(l.Full(tx.now)-tx.now, 0)) // us, below 1<<57
	return left<<47 | (1<<57-1-min(wait, 1<<57-1))>>10
}

// fullest is the share of capacity that a full limiter has left.
const fullest = 1<<16 - 1

// remove evicts a candidate, if it is still there and its score is not lower.
func (sh *shard) remove(tx *Tx, c candidate) bool {
	sp := sh.spaces[c.db]
	if sp == nil {
		return false
	}
	pos, ok := sp.tab.FindRef(c.hash, c.ref)
	if !ok {
		return false
	}
	h := hit{sh: sh, sp: sp, h: c.hash, pos: pos, r: sp.rec(c.ref)}
	if tx.db.book.Load() != nil && (h.r.expired(tx.ms) || h.r.itemDue(tx.ms)) {
		return false // leave it to the reclaimer, which holds the shards of the rules' streams
	}
	e := &sh.evictor
	if e.protected(sp, h.r) || e.policy.Keys == EvictVolatile && !h.r.has(flagDeadline) {
		return false
	}
	if (e.policy.By != ByChance || c.score >= first) && e.score(tx, h.r) < c.score {
		return false
	}
	tx.kbuf = append(tx.kbuf[:0], sp.key(h.r)...)
	key := tx.kbuf
	tx.dbi = sp.db
	h.preserve()
	tx.drop(&h)
	sh.stats.Evicted++
	tx.emit("DEL", key)
	tx.keepLease(key)
	tx.changed(key, EventEvicted, "evicted")
	return true
}

// evictSlice evicts until end (us) for a reclaimer, and reports whether there is more to
// evict.
func (db *DB) evictSlice(end int64) (more bool) {
	policy := db.eviction.Load()
	if policy.Keys == EvictNone || !db.evictUntil(policy, end) || !db.OverLimit() {
		db.evicting.Store(false)
		return false
	}
	return true
}
