package engine

import (
	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/packed"
	"github.com/ebbdb/ebb/internal/wheel"
)

// This file handles the items of containers that fall due.
//
//	a command sets an item's deadline ─▶ Tx.date: the record gets an entry in the
//	                                      space's second wheel (rec.next), at the
//	                                      container's next deadline
//	time passes ─▶ the reclaimer, or a command that finds the key ─▶ Tx.lapse:
//	               it removes due items, in slices, with their effects, events
//	               and statistics
//
// The entry may be early, because it does not move when its item is removed by a command. It is
// never late. A container has an entry from its first deadline on, unless the key's own deadline
// comes before.

// Level is the level of data that a deadline belongs to: a key, or a kind of item.
type Level uint8

// These are the levels.
const (
	LevelKey     Level = iota
	LevelField         // a field of a hash
	LevelMember        // a member of a set or a sorted set
	LevelElement       // an element of a list
	LevelLease         // a lease of a lock, a semaphore or a job
	Levels             // the number of levels on which data expires

	// LevelFresh is the level of strings whose values go stale (t_fresh.go). Nothing expires there: only
	// expiry rules know it.
	LevelFresh = Levels
)

// String returns the name of the level in EXPIRY RULE.
func (l Level) String() string {
	return [...]string{"key", "field", "member", "element", "lease", "fresh"}[l]
}

// levelOf returns the level of the items of a kind.
func levelOf(k Kind) Level {
	switch k {
	case Hash:
		return LevelField
	case Set, ZSet:
		return LevelMember
	case List:
		return LevelElement
	}
	return LevelLease
}

// nextAt returns the instant of the container's entry in ms, when an item may fall due; 0 for
// never.
func (r *rec) nextAt() int64 {
	if !r.timed() || !r.next().Linked() {
		return 0
	}
	return r.next().Deadline()
}

// byNext resolves the entries of a space's second wheel.
type byNext space

// Entry implements wheel.Resolver.
func (s *byNext) Entry(ref uint32) *wheel.Entry { return (*space)(s).rec(arena.Ref(ref)).next() }

// scheduleNext adds a record to the second wheel at an instant in ms; it does nothing if at is 0.
// The record has an entry, which is in no wheel.
func (sp *space) scheduleNext(ref arena.Ref, at int64) {
	if at == 0 {
		return
	}
	if sp.next == nil {
		sp.next = wheel.New(sp.sh.last/1000, (*byNext)(sp))
	}
	sp.next.Add(uint32(ref), min(at, MaxDeadline))
	sp.sh.workAt(at + 1)
}

// unscheduleNext removes a record from the second wheel, and from that of the fresh deadlines.
func (sp *space) unscheduleNext(ref arena.Ref, r *rec) {
	switch {
	case r.hasFresh():
		if r.freshEntry().Linked() {
			sp.fresh.Remove(uint32(ref))
		}
	case r.timed() && r.next().Linked():
		sp.next.Remove(uint32(ref))
	}
}

// date schedules a container for the instant at which its next item falls due. Commands call it
// after a change that may have made this instant earlier. The record may move, so an earlier result
// of h.image is no longer valid. O(1).
func (tx *Tx) date(h *hit) {
	if h.r == nil || h.r.Kind() == String {
		return
	}
	at := tx.nextIn(h)
	if at != 0 && h.r.Kind() == Hash {
		h.sp.timedFields = true
	}
	if d := h.r.deadline(); d != 0 && d <= at {
		at = 0
	}
	tx.dateAt(h, at)
}

// dateAt does the work of date for a known instant in ms; 0 for never.
func (tx *Tx) dateAt(h *hit, at int64) {
	if old := h.r.nextAt(); at != 0 && at != old && tx.db.replica.Load() && (old == 0 || h.sp.sh.own.holdsItems(h.sp.db, h.sp.key(h.r))) {
		tx.dated(h.sp, h.sp.key(h.r), at, true)
	}
	switch {
	case h.r.nextAt() == at:
		return
	case h.r.timed():
		h.sp.unscheduleNext(h.ref(), h.r)
	default:
		if !tx.makeTimed(h) {
			return // the shard's 32 GiB are used up: reads still hide due items
		}
	}
	h.sp.scheduleNext(h.ref(), at)
}

// makeTimed gives the record space for an entry, and reports whether it could.
func (tx *Tx) makeTimed(h *hit) bool {
	tx.release()
	sp, old := h.sp, h.r
	flags := old.kind | flagItems
	head, rest := keyOffset(old.kind), int(old.klen&^bigKey)+int(old.vlen)
	if keyOffset(flags)+rest >= arena.MaxRecord {
		img := append([]byte(nil), old.inlineValue()...) // move the image out of the record
		if tx.remake(h, img, nil) != nil {
			return false
		}
		return tx.makeTimed(h)
	}
	ref := sp.mem.Alloc(keyOffset(flags) + rest)
	if ref == 0 {
		return false
	}
	r := sp.rec(ref)
	dst := sp.mem.Bytes(ref, keyOffset(flags)+rest)
	src := sp.mem.Bytes(h.ref(), head+rest)
	copy(dst, src[:head])
	copy(dst[keyOffset(flags):], src[head:])
	r.kind = flags
	*r.next() = wheel.Entry{}
	sp.charge(ref, r)
	from := h.ref()
	if r.has(flagDeadline) {
		sp.due.Move(uint32(from), uint32(ref))
	}
	h.pos.Set(ref)
	sp.shifted(from, ref, r.Kind())
	sp.rec(from).klen &^= bigKey // the new record owns the external key
	sp.rec(from).kind &^= flagExt
	sp.free(from)
	h.r = r
	return true
}

// nextIn returns the instant at which the next item of a container falls due, in ms since 1970, or an earlier
// instant; 0 for never. O(1).
func (tx *Tx) nextIn(h *hit) int64 {
	b := h.box()
	switch k := h.r.Kind(); {
	case k == Limiter:
		return h.r.nextAt() // the waiters of a limiter set it
	case k == Lock:
		return tx.nextLease(h)
	case k == Semaphore:
		return tx.nextPermit(h)
	case b == nil && h.image().Kind() == packed.KindIntSet:
		return 0
	case b == nil:
		return h.image().Earliest()
	default:
		if d, ok := b.(dated); ok {
			return d.NextDue()
		}
	}
	return 0
}

// dueIn reports whether an item of a container may be due. O(1).
func (tx *Tx) dueIn(h *hit) bool {
	at := tx.nextIn(h)
	return at != 0 && tx.ms > at
}

// dated is a box whose items have deadlines.
type dated interface {
	// NextDue returns the instant at which the next item falls due, in ms since 1970, or an earlier instant; 0
	// for never. O(1).
	NextDue() int64
}

// meetDue handles a container with due items that a lookup has found. If the container has no
// living item, meetDue removes the key, and h.r is nil. If an expiry rule matches, it removes all
// due items now, so that the rule's entries come before any other change of the key. Otherwise it
// leaves due items to the reclaimer, and reads hide them.
func (tx *Tx) meetDue(h *hit, key []byte) {
	if tx.hiding() {
		tx.meetHidden(h)
		return
	}
	switch k := h.r.Kind(); k {
	case Hash, Set, ZSet, List:
		if tx.ruled(key, levelOf(k)) || tx.living(h) == 0 {
			for h.r != nil && tx.lapse(h, key, lapseWhole) {
			}
		}
	case Limiter:
	default:
		if tx.lapse(h, key, lapseMet) && tx.hollow(h) {
			for h.r != nil && tx.lapse(h, key, lapseWhole) {
			}
		}
	}
}

const (
	// lapseMet is the number of due items that a command removes when it finds some.
	lapseMet = 256
	// lapseWhole is the number of items that a call of lapse removes when all due items must go.
	lapseWhole = 4096
)

// lapse removes up to about budget due items of a container, sets the time for the next ones, and reports
// whether there are more that are due now. If nothing is left, lapse removes the key, and h.r is nil. It
// logs, counts, and sends events. key must not be in the engine's memory.
func (tx *Tx) lapse(h *hit, key []byte, budget int) (more bool) {
	if tx.lapseWholly(h, key) {
		return false
	}
	switch h.r.Kind() {
	case Hash, Set, ZSet: // the log names the dead items of these kinds, so a snapshot may lack them
	default:
		h.preserve()
	}
	switch h.r.Kind() {
	case Hash, Set, ZSet:
		tx.lapseItems(h, key, budget)
	case List:
		tx.lapseList(h, key, budget)
	case Limiter:
		tx.dateAt(h, 0)
		tx.Signal(key)
		return false
	case Lock:
		tx.lapseLock(h, key)
	case Semaphore:
		tx.lapseSemaphore(h, key)
	case DelayQueue:
		tx.lapseQueue(h, key, budget)
	case Bloom:
		tx.lapseBloom(h, key)
	}
	if h.r == nil {
		return false
	}
	tx.date(h)
	return h.r.itemDue(tx.ms)
}

// lapseWholly removes a large container without living items in one step, unless an expiry rule records each
// item. It reads each deadline once, which is cheaper than single removals. It reports whether it removed the
// container.
func (tx *Tx) lapseWholly(h *hit, key []byte) bool {
	kind := h.r.Kind()
	b, ok := h.box().(interface {
		Count() int
		Due(now int64) int
		DueTimes(now int64, visit func(deadline int64))
	})
	if !ok || expiredEvents[kind].name == "" || tx.replay || tx.hiding() {
		return false
	}
	n, level := b.Count(), levelOf(kind)
	if n > lapseWhole || b.Due(tx.ms) < n || tx.ruled(key, level) {
		return false
	}
	stats := &h.sh.stats
	b.DueTimes(tx.ms, func(deadline int64) { stats.Lag[level].record(tx.now - deadline*1000) })
	stats.ExpiredItems += int64(n)
	tx.drop(h)
	tx.emit("DEL", key)
	e := expiredEvents[kind]
	tx.changed(key, e.class, e.name)
	tx.gone(key)
	return true
}

// expiredEvents has, by kind, the event of items that expire, and the command that logs their
// removal.
var expiredEvents = [...]struct {
	class uint32
	name  string
	log   string
}{Hash: {EventHash, "hexpired", "HDEL"}, Set: {EventSet, "sexpired", "SREM"}, ZSet: {EventZSet, "zexpired", "ZREM"}, Bloom: {}}

// lapseItems removes up to budget dead items of a large hash, set or sorted set, or all dead items
// of a small one.
func (tx *Tx) lapseItems(h *hit, key []byte, budget int) {
	sh, kind := h.sh, h.r.Kind() // h must not escape to the heap: every lookup has one
	e := expiredEvents[kind]
	log := itemLog{tx: tx, command: e.log, key: key}
	fire := func(item, value []byte, deadline int64) {
		log.add(item)
		tx.lapsed(sh, levelOf(kind), key, item, value, deadline)
	}
	n, left := 0, 0
	if b := h.box(); b != nil {
		n, left = reapLarge(b, tx.ms, budget, fire)
		if n > 0 && left > 0 {
			tx.wrote(h)
		}
	} else {
		p := h.image()
		n = p.Count()
		p = p.Reap(tx.ms, func(at packed.At) {
			var value []byte
			if kind == Hash {
				value = tx.text(3, p.Value(at))
			}
			fire(tx.text(2, p.Key(at)), value, p.Deadline(at))
		})
		left = p.Count()
		if n -= left; n > 0 && left > 0 {
			tx.shrunk(h, p)
		}
	}
	log.flush()
	tx.lapsedItems(h, key, n, left, e.class, e.name)
}

// reapLarge removes up to budget items of a large container that are dead at now. It returns the number that
// it removed, and the number left. It calls fire before each removal.
func reapLarge(b box, now int64, budget int, fire func(item, value []byte, deadline int64)) (n, left int) {
	t := b.(interface {
		Count() int
		Reap(now int64, budget int, fire func(dict.Item)) int
	})
	_, hash := b.(hashTable)
	n = t.Reap(now, budget, func(it dict.Item) {
		if !hash {
			it.Value = nil
		}
		fire(it.Key, it.Value, it.Deadline)
	})
	return n, t.Count()
}

// lapsed records, for the statistics and for the matching expiry rules, that this transaction removes a key
// or an item whose deadline has passed. value is the item's value, nil if it has none. The transaction holds
// the key's shard, and, if a rule matches, that of its stream; see Tx.ruled. The arguments may be in the
// engine's memory. In a replay and on a replica it does nothing, because the master has recorded the
// expiration.
func (tx *Tx) lapsed(sh *shard, l Level, key, item, value []byte, deadline int64) {
	if tx.replay || tx.db.passive.Load() {
		return
	}
	sh.stats.Lag[l].record(tx.now - deadline*1000)
	if l != LevelKey {
		sh.stats.ExpiredItems++
	}
	if rs := tx.rules(); rs != nil {
		tx.fire(rs, l, key, item, value, deadline)
	}
}

// lapsedKey does the work of lapsed for a key. It ignores limiters: one that is full again expires, but no
// rule records that.
func (tx *Tx) lapsedKey(h *hit) {
	if h.r.Kind() == Limiter {
		h.sp.sh.stats.Lag[LevelKey].record(tx.now - h.r.deadline()*1000)
		return
	}
	var value []byte
	if h.r.Kind() == String {
		value = h.sp.value(h.r)
	}
	dbi := tx.dbi
	tx.dbi = h.sp.db
	tx.lapsed(h.sp.sh, LevelKey, h.sp.key(h.r), nil, value, h.r.deadline())
	tx.dbi = dbi
}

// lapsedItems counts and reports the removal of n dead items of a container, and drops the key of
// an empty one. left is the number of items that remain.
func (tx *Tx) lapsedItems(h *hit, key []byte, n, left int, class uint32, event string) {
	if n == 0 {
		return // the entry was early: a command had removed its item
	}
	if left == 0 {
		tx.drop(h)
	}
	if tx.hiding() {
		return // no event
	}
	tx.dirty--
	tx.changed(key, class, event)
	if left == 0 {
		tx.gone(key)
	}
}
