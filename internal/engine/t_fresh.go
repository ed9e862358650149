package engine

import (
	"fmt"

	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/wheel"
)

// A string may have two deadlines. Up to the fresh deadline its value is fresh, then it is stale, and at the
// key's own deadline it expires. A cache continues to use stale values while one client loads a new one;
// t_fresh_lease.go has the election of that client.
//
//	record:  header, [deadline], [slide], key, value, entry ─▶ space.fresh, a wheel
//
//	the entry is in the wheel, and its deadline has not passed    the value is fresh
//	it has passed, or the entry is in no wheel                    the value is stale
//	no entry (freshBit is not set)                                the value is always fresh
//
// The record keeps the entry when its value is stale: a string that is stale stays so until a write. When
// the wheel fires an entry, the reclaimer sends the event `stale`, and writes the entries of expiry rules on
// LevelFresh. The log has
//
//	EBB.FRESH key ms    the fresh deadline, after the SET that it belongs to
//	EBB.FRESH key 1     STALE has made the string stale
//	EBB.FRESH key 2     the wheel has fired
//
// So a replica sends the event too, and after a restart or a promotion exactly the entries that have not
// fired before fire. Reads do not wait for the wheel: they compare the deadline.

const (
	// staleAt is the fresh deadline of a string that is stale, for files and the log.
	staleAt = 1
	// firedAt is the fresh deadline in the log of a string that is stale because its deadline has passed.
	firedAt = 2
)

// hasFresh reports whether the record ends in the entry of a fresh deadline.
func (r *rec) hasFresh() bool { return r.vlen&freshBit != 0 }

// tailed returns the size of a record whose parts up to the value take n bytes: fresh is freshBit if the
// record has an entry behind them, else 0.
func tailed(n int, fresh uint16) int {
	if fresh == 0 {
		return n
	}
	return freshOffset(n) + entrySize
}

// freshOffset returns where the entry begins behind n bytes. An entry consists of words of 4 bytes.
func freshOffset(n int) int { return (n + 3) &^ 3 }

func (s *spec) tailed(n int) int {
	if s.fresh == 0 {
		return n
	}
	return tailed(n, freshBit)
}

// freshUntil returns the fresh deadline of a string in ms since 1970, staleAt or an instant that has passed
// if the string is stale, 0 if it has none.
func (r *rec) freshUntil() int64 {
	if !r.hasFresh() {
		return 0
	}
	if e := r.freshEntry(); e.Linked() {
		return e.Deadline()
	}
	return staleAt
}

// byFresh resolves the entries of a space's wheel of fresh deadlines.
type byFresh space

// Entry implements wheel.Resolver.
func (s *byFresh) Entry(ref uint32) *wheel.Entry {
	return (*space)(s).rec(arena.Ref(ref)).freshEntry()
}

// scheduleFresh puts a record into the wheel at its fresh deadline, even at one that has passed, because the
// wheel has not fired it. It leaves out a string that is stale.
func (tx *Tx) scheduleFresh(sp *space, ref arena.Ref, at int64) {
	if at <= staleAt {
		return
	}
	if sp.fresh == nil {
		sp.fresh = wheel.New(sp.sh.last/1000, (*byFresh)(sp))
	}
	at = min(at, MaxDeadline)
	sp.fresh.Add(uint32(ref), at)
	sp.sh.workAt(at + 1)
}

// setFresh changes the fresh deadline of a string that a lookup has found. Errors: ErrFull.
func (tx *Tx) setFresh(h *hit, key []byte, at int64) error {
	if h.r.hasFresh() {
		h.sp.unscheduleNext(h.ref(), h.r)
		tx.scheduleFresh(h.sp, h.ref(), at)
		return nil
	}
	deadline, sliding, was := h.r.deadline(), h.r.has(flagSlide), slide{}
	if sliding {
		was = *h.r.slide()
	}
	if !tx.relay(h, key, h.r.kind, freshBit) {
		return ErrFull
	}
	if sliding {
		*h.r.slide() = was
	}
	if deadline != 0 {
		h.sp.schedule(h.ref(), deadline)
	}
	tx.scheduleFresh(h.sp, h.ref(), at)
	return nil
}

// cutFresh makes the fresh deadline of a string no later than its own deadline, which has changed.
func (tx *Tx) cutFresh(h *hit) {
	if !h.r.hasFresh() || h.r.freshUntil() <= h.r.deadline() {
		return
	}
	h.sp.unscheduleNext(h.ref(), h.r)
	tx.scheduleFresh(h.sp, h.ref(), h.r.deadline())
}

// emitFresh logs the fresh deadline of a string.
func (tx *Tx) emitFresh(key []byte, at int64) { tx.emit(OwnPrefix+"FRESH", key, tx.itoa(1, at)) }

// MakeStale makes a string stale from now on, and reports whether it is stale then. It does not change a
// string with neither a fresh deadline nor a deadline, or a key of another kind. If a client refreshes the
// key, even a missing one, it loses its token: the value that it has loaded may be older than the reason for
// the call. If an expiry rule records that keys go stale, the reclaimer writes the entry and sends the event,
// at once, because it holds the rule's shard. Errors: ErrFull.
func (tx *Tx) MakeStale(key []byte) (bool, error) {
	h := tx.find(key)
	if h.r == nil || h.r.Kind() != String || !h.r.hasFresh() && !h.r.has(flagDeadline) {
		tx.revoke(key)
		return false, nil
	}
	if h.r.hasFresh() && h.r.freshUntil() < tx.ms && tx.leaseOf(key) == nil {
		return true, nil
	}
	at, class := int64(staleAt), EventExpired
	if tx.ruled(key, LevelFresh) {
		at, class = max(tx.ms-1, firedAt+1), 0
	}
	if err := tx.setFresh(&h, key, at); err != nil {
		return false, err
	}
	tx.emitFresh(key, at)
	tx.changed(key, class, "stale")
	return true, nil
}

// Refresh executes EBB.FRESH in a replay: it sets the fresh deadline of a string. Errors: ErrFull.
func (tx *Tx) Refresh(key []byte, at int64) error {
	h := tx.find(key)
	if h.r == nil || h.r.Kind() != String {
		return nil
	}
	if at == firedAt {
		if h.r.hasFresh() {
			h.sp.unscheduleNext(h.ref(), h.r)
		}
		tx.wentStale(key)
		return nil
	}
	class := uint32(0)
	if at <= staleAt {
		at, class = staleAt, EventExpired
	}
	err := tx.setFresh(&h, key, at)
	if err == nil {
		tx.changed(key, class, "stale")
	}
	return err
}

// wentStale reports that the fresh deadline of a string has passed. That is not a change of the key: it ends
// no lease and breaks no WATCH.
func (tx *Tx) wentStale(key []byte) {
	tx.db.hooks.Modified(tx, key)
	if tx.db.notify.Load()&EventExpired != 0 {
		tx.event(EventExpired, "stale", key)
	}
}

// Fresh returns the fresh deadline of a string in ms since 1970, an instant that has passed if the string is
// stale, and 0 if it has none.
func (k Key) Fresh() int64 { return k.r.freshUntil() }

// goStale sends the events of the strings that are stale now, and records the entries of rules. It reports
// whether there are more.
func (r *Reclaimer) goStale(tx *Tx, sp *space, end int64) (more bool) {
	for {
		n := sp.fresh.Advance(tx.ms, sliceItems, func(ref uint32) {
			x := sp.rec(arena.Ref(ref))
			r.name = append(r.name[:0], sp.key(x)...)
			if rs := tx.rules(); rs != nil {
				tx.fire(rs, LevelFresh, r.name, nil, sp.value(x), x.freshEntry().Deadline())
			}
			tx.emitFresh(r.name, firedAt)
			tx.wentStale(r.name)
		})
		if next, ok := sp.fresh.Next(); n == 0 && (!ok || next > tx.ms) {
			return false
		}
		if tx.wanted() || tx.db.clock.Micros() >= end {
			return true
		}
	}
}

// checkFresh compares the wheel of fresh deadlines with the records.
func (c *spaceCheck) checkFresh() error {
	w, n := c.sp.fresh, 0
	if w != nil {
		n = w.Len()
		if err := w.Check(); err != nil {
			return err
		}
	}
	if n != c.fresh {
		return fmt.Errorf("the wheel of fresh deadlines has %d entries, want %d", n, c.fresh)
	}
	return nil
}
