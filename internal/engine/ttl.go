package engine

import (
	"math"
	"math/rand/v2"

	"github.com/ebbdb/ebb/internal/wheel"
)

// PTTL, TTL and Deadline return NoDeadline for a key without a deadline, and NoKey if there is no
// such key.
const (
	NoDeadline = -1
	NoKey      = -2
)

// MaxDeadline is the latest deadline, in ms since 1970. The engine stores later ones as
// MaxDeadline.
const MaxDeadline = wheel.MaxDeadline

// Condition restricts when a deadline is set. Conditions are a set of bits; a
// key without a deadline counts as one with an infinite deadline.
type Condition uint8

// These are the conditions of EXPIRE and similar commands.
const (
	IfNone    Condition = 1 << iota // NX: only if there is no deadline
	IfSome                          // XX: only if there is one
	IfLater                         // GT: only if the new one is later
	IfEarlier                       // LT: only if the new one is earlier
)

func (c Condition) allows(old, new int64) bool {
	switch {
	case c&IfNone != 0 && old != 0,
		c&IfSome != 0 && old == 0,
		c&IfLater != 0 && (old == 0 || new <= old),
		c&IfEarlier != 0 && old != 0 && new >= old:
		return false
	}
	return true
}

// Deadline returns a key's deadline in ms since 1970, NoDeadline or NoKey. It does not count as an
// access. The deadline of a lock or a semaphore is the end of its last lease, unless Expire has set
// an earlier one.
func (tx *Tx) Deadline(key []byte) int64 {
	h := tx.peek(key)
	switch {
	case h.r == nil:
		return NoKey
	case h.r.Kind() == Lock || h.r.Kind() == Semaphore:
		return h.latestLease()
	case !h.r.has(flagDeadline):
		return NoDeadline
	}
	return h.r.deadline()
}

// TTL returns the remaining time to live of a key in ms, NoDeadline or NoKey. It does not count as
// an access.
func (tx *Tx) TTL(key []byte) int64 {
	d := tx.Deadline(key)
	if d >= 0 {
		return max(0, d-tx.ms)
	}
	return d
}

// DeadlineAfter returns the deadline, in ms since 1970, of data that lives for a number of ms from the
// transaction's instant: at most MaxDeadline. Commands and direct calls use it for each time to live in their
// arguments.
func (tx *Tx) DeadlineAfter(ms int64) int64 { return min(tx.ms+min(ms, MaxDeadline), MaxDeadline) }

// Expire sets a key's deadline in ms since 1970, if the condition allows it, and reports whether it
// did. A deadline that is not in the future deletes the key. Expire stores and compares a deadline
// beyond MaxDeadline as MaxDeadline. A span above 0 makes the deadline slide: every read of the
// value moves it to span ms after the read.
func (tx *Tx) Expire(key []byte, deadline, span int64, c Condition) bool {
	deadline = min(deadline, MaxDeadline)
	h := tx.find(key)
	if h.r == nil {
		return false
	}
	tx.touch(&h)
	if !c.allows(h.r.deadline(), deadline) {
		return false
	}
	if deadline <= tx.ms && !tx.replay {
		tx.drop(&h)
		tx.emit("DEL", key)
		tx.changed(key, EventGeneric, "del")
		return true
	}
	tx.setDeadline(&h, key, max(deadline, 1), span)
	tx.date(&h)
	tx.cutFresh(&h)
	tx.emitDeadline(key, &h)
	tx.changed(key, EventGeneric, "expire")
	return true
}

// Persist removes a key's deadline and reports whether there was one.
func (tx *Tx) Persist(key []byte) bool {
	h := tx.find(key)
	if h.r == nil {
		return false
	}
	tx.touch(&h)
	if !h.r.has(flagDeadline) {
		return false
	}
	tx.setDeadline(&h, key, 0, 0)
	tx.date(&h)
	tx.emit("PERSIST", key)
	tx.changed(key, EventGeneric, "persist")
	return true
}

// emitDeadline logs a key's deadline. For a sliding deadline the log has SPAN instead of SLIDE,
// because the span of SLIDE would depend on the instant of the replay. redis-server gets the
// deadline only.
func (tx *Tx) emitDeadline(key []byte, h *hit) {
	if !tx.db.logging.Load() {
		return
	}
	d := tx.itoa(0, h.r.deadline())
	tx.emit("PEXPIREAT", key, d)
	if h.r.has(flagSlide) {
		tx.emit(OwnPrefix+"PEXPIREAT", key, d, []byte("SPAN"), tx.itoa(1, h.r.slide().span))
	}
}

// setDeadline changes a found key's deadline, which is at most MaxDeadline; 0
// removes it.
func (tx *Tx) setDeadline(h *hit, key []byte, deadline, span int64) {
	h.r.onTime()
	s := spec{flags: h.r.kind &^ (flagDeadline | flagSlide), deadline: deadline, span: span}
	flags := s.layout()
	r, ref := h.r, h.ref()
	if flags == r.kind {
		h.sp.unschedule(ref, r)
		if span != 0 {
			*r.slide() = slide{span, deadline}
		}
		if deadline != 0 {
			h.sp.schedule(ref, deadline)
			tx.dated(h.sp, key, deadline, false)
		}
		return
	}
	if !tx.relay(h, key, flags, r.vlen&freshBit) {
		return // 32 GiB in one shard: dispatch refuses writes long before this happens
	}
	if span != 0 {
		*h.r.slide() = slide{span, deadline}
	}
	if deadline != 0 {
		h.sp.schedule(h.ref(), deadline)
		tx.dated(h.sp, key, deadline, false)
	}
}

// relay builds a new record with another layout for a key that a lookup has found, and reports whether it
// could. The new record takes over the external key and value; flags are those of the layout, with freshBit
// or 0 in fresh. Its deadline is in no wheel; its next item and its fresh deadline are.
func (tx *Tx) relay(h *hit, key []byte, flags uint8, fresh uint16) bool {
	r, ref := h.r, h.ref()
	var handle uint32
	val := r.inlineValue()
	if r.has(flagExt) {
		handle, val = handleOf(val), nil
	}
	old := *h
	until := r.freshUntil()
	newRef, n := h.sp.buildRecord(flags&^flagExt, key, val, handle, fresh)
	if n == nil {
		return false
	}
	n.clock = r.clock
	if handle != 0 {
		old.r.kind &^= flagExt // the new record owns the handle
	}
	at := old.r.nextAt()
	h.sp.detach(ref, old.r)
	h.sp.free(ref)
	h.pos.Set(newRef)
	h.sp.shifted(ref, newRef, n.Kind())
	h.r = n
	h.sp.scheduleNext(newRef, at)
	if until != 0 {
		tx.scheduleFresh(h.sp, newRef, until)
	}
	return true
}

// slideOn moves the sliding deadline of a key that was read. It logs the deadline when it has moved
// by a tenth of the span, so after a crash the deadline may be that much early.
func (tx *Tx) slideOn(h *hit, key []byte) {
	if tx.client || tx.replay || tx.db.passive.Load() {
		return
	}
	s := h.r.slide()
	deadline := tx.DeadlineAfter(s.span)
	if deadline <= h.r.deadline() {
		return
	}
	h.preserve()
	ref := h.ref()
	h.sp.unschedule(ref, h.r)
	h.sp.schedule(ref, deadline)
	if h.r.Kind() != String && tx.nextIn(h) != h.r.nextAt() {
		defer tx.date(h) // items whose deadlines came after the key's old deadline need an entry now
	}
	if deadline-s.logged >= (s.span+9)/10 {
		s.logged = deadline
		tx.emitDeadline(key, h)
		tx.keepLease(key)
	}
}

// Jitter adds a random share of up to percent to a time span in ms. It returns a span of 0 or less
// unchanged. The result is at most MaxInt64.
func Jitter(span, percent int64) int64 {
	if span <= 0 || percent <= 0 {
		return span
	}
	extra := rand.Float64() * float64(percent) / 100 * float64(span)
	if extra > float64(math.MaxInt64-span) {
		return math.MaxInt64
	}
	return span + int64(extra)
}

// expire removes a key whose deadline has passed. With lazy, a command has found the key, and
// expire logs the removal. Otherwise the reclaimer calls it, which logs the keys of a slice
// together.
func (tx *Tx) expire(h *hit, lazy bool) {
	key := h.sp.key(h.r)
	sh := h.sp.sh
	sh.stats.Expired++
	tx.lapsedKey(h)
	if lazy {
		sh.stats.ExpiredLazily++
		tx.emit("DEL", key)
		tx.keepLeaseIn(h.sp.db, key)
	}
	db := tx.db
	tx.resized = true // as in Redis, expirations do not count for save points
	if len(sh.watched) > 0 {
		sh.touched(h.sp.db, key)
	}
	if db.waits.Load() > 0 {
		tx.signalIn(h.sp.db, key)
	}
	// Copy the key: the hooks get it after the record is freed.
	if db.notify.Load()&EventExpired != 0 || db.hooks != (noHooks{}) {
		tx.kbuf = append(tx.kbuf[:0], key...)
		key = tx.kbuf
		tx.discard(h, lazy)
		db.hooks.Modified(tx, key)
		if db.notify.Load()&EventExpired != 0 {
			tx.event(EventExpired, "expired", key)
		}
		return
	}
	tx.discard(h, lazy)
}

// discard removes the record of an expired key. If linked is set, it also removes the record from
// the wheel; records that the wheel has fired are no longer linked.
func (tx *Tx) discard(h *hit, linked bool) {
	if linked {
		tx.drop(h)
		return
	}
	ref := h.ref()
	h.sp.ttls -= h.r.entry().Deadline()
	h.sp.unscheduleNext(ref, h.r)
	h.sp.tab.Delete(h.h, h.pos)
	h.sp.left(h.h, ref, h.r.Kind())
	h.sp.free(ref)
	h.r = nil
}
