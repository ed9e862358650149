package engine

import (
	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/packed"
	"github.com/ebbdb/ebb/internal/wheel"
)

// Items of containers that fall due.
//
//	a command sets an item's deadline ─▶ Tx.date: the record gets an entry in the
//	                                      space's second wheel (rec.next), at the
//	                                      container's next deadline
//	time passes ─▶ the reclaimer, or a command that finds the key ─▶ Tx.lapse:
//	               it removes due items, in slices, with their effects, events
//	               and statistics
//
// The entry may be early, because it stays where it is when the item that it stood for
// goes first; it is never late. A container has an entry from its first deadline on,
// unless the key's own deadline comes before.

// Level is what a deadline belongs to.
type Level uint8

// The levels.
const (
	LevelKey     Level = iota
	LevelField         // of a hash
	LevelMember        // of a set or a sorted set
	LevelElement       // of a list
	LevelLease         // of a lock, a semaphore, a job
	Levels
)

// String returns the name that EXPIRY RULE knows the level by.
func (l Level) String() string {
	return [...]string{"key", "field", "member", "element", "lease"}[l]
}

// levelOf is the level of the items of a kind.
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

// nextAt returns when something in the container falls due, as its entry says; 0
// for never.
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

// scheduleNext puts a record that has an entry for it, which is in no wheel, into
// the second wheel; not if at is 0.
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

// unscheduleNext takes a record out of the second wheel.
func (sp *space) unscheduleNext(ref arena.Ref, r *rec) {
	if r.timed() && r.next().Linked() {
		sp.next.Remove(uint32(ref))
	}
}

// date has the container looked after when something in it falls due next. It is
// called after whatever may have brought that forward. The record may move: what
// h.image returned is void. O(1).
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

// dateAt is date where the instant, in ms, is known; 0 for never.
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
			return // 32 GiB in one shard: what is due is still invisible
		}
	}
	h.sp.scheduleNext(h.ref(), at)
}

// makeTimed gives the record the room for an entry.
func (tx *Tx) makeTimed(h *hit) bool {
	tx.release()
	sp, old := h.sp, h.r
	flags := old.kind | flagItems
	head, rest := keyOffset(old.kind), int(old.klen&^bigKey)+int(old.vlen)
	if keyOffset(flags)+rest >= arena.MaxRecord {
		img := append([]byte(nil), old.inlineValue()...) // the image goes outside
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
	sp.rec(from).klen &^= bigKey // what lies outside has a new owner
	sp.rec(from).kind &^= flagExt
	sp.free(from)
	h.r = r
	return true
}

// nextIn returns when something in a container falls due next, in ms since 1970;
// 0 for never. It may be early. O(1).
func (tx *Tx) nextIn(h *hit) int64 {
	b := h.box()
	switch k := h.r.Kind(); {
	case k == Limiter:
		return h.r.nextAt() // waiters set it
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

// dueIn reports whether something in a container is due. O(1).
func (tx *Tx) dueIn(h *hit) bool {
	at := tx.nextIn(h)
	return at != 0 && tx.ms > at
}

// dated is a box whose items fall due.
type dated interface {
	// NextDue returns when the next item falls due, in ms since 1970, or an
	// earlier instant; 0 for never. O(1).
	NextDue() int64
}

// meetDue looks after a container that a lookup has come upon, in which something
// is due. If nothing lives in it the key is removed, and h.r is nil. Under a rule
// all that is due goes now, so that it has its entries before anything else
// happens to the key; otherwise the rest is invisible and left to the reclaimer.
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
	// lapseMet is how many items a command removes that comes upon them.
	lapseMet = 256
	// lapseWhole is how many at a time where all must go.
	lapseWhole = 4096
)

// lapse removes up to about budget due items of a container, sets the time for the next,
// and reports whether there are more that are due now. If nothing is left, lapse removes
// the key, and h.r is nil. It logs, counts, and sends events. key is the key's name, not
// in the engine's memory.
func (tx *Tx) lapse(h *hit, key []byte, budget int) (more bool) {
	if tx.lapseWholly(h, key) {
		return false
	}
	switch h.r.Kind() {
	case Hash, Set, ZSet: // whose dead the log names: a snapshot may do without them
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

// lapseWholly removes a large container in which nothing lives any more, unless a
// rule wants to hear of each item: a look at each deadline instead of as many
// removals. It reports whether it did.
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

// expiredEvents are the events of items that expire, and the command that the log
// has for it, by kind.
var expiredEvents = [...]struct {
	class uint32
	name  string
	log   string
}{Hash: {EventHash, "hexpired", "HDEL"}, Set: {EventSet, "sexpired", "SREM"}, ZSet: {EventZSet, "zexpired", "ZREM"}, Bloom: {}}

// lapseItems removes up to budget dead items of a hash, a set or a sorted set; all
// that are due of a small one.
func (tx *Tx) lapseItems(h *hit, key []byte, budget int) {
	sh, kind := h.sh, h.r.Kind() // h itself must not escape: every lookup has one
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

// reapLarge removes up to budget items of a large container that are dead at now,
// and returns how many, and how many are left. fire is called before each goes.
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

// lapsed notes that an item's, or a key's, deadline has passed and that it goes
// in this transaction: for the statistics, and for the rules that match. value is
// what the item held, nil where it holds nothing. The key's shard is held, and
// where a rule matches, its stream's; see Tx.ruled. The bytes may be the engine's.
// Not in a replay, nor where what is dead is left to others: it was noted where it was decided.
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

// lapsedKey is lapsed for a key. A limiter that is full again is gone, but nothing
// that a rule would want to hear of.
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

// lapsedItems settles the removal of n dead items of a container, after which so
// many are stored. An empty one is removed.
func (tx *Tx) lapsedItems(h *hit, key []byte, n, left int, class uint32, event string) {
	if n == 0 {
		return // what the entry stood for had gone before
	}
	if left == 0 {
		tx.drop(h)
	}
	if tx.hiding() {
		return // without a word
	}
	tx.dirty--
	tx.changed(key, class, event)
	if left == 0 {
		tx.gone(key)
	}
}
