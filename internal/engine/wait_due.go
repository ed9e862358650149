package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/wheel"
)

// This file wakes the waiters of a key when the passing of time alone satisfies them.
//
//	ZPOPDUE BLOCK ─▶ Enqueue ─▶ meets: not due before T ─▶ the line gets a wake-up at T
//	ZADD of an earlier member ─▶ the line is signalled ─▶ meets ─▶ the wake-up moves to the earlier T
//	T ─▶ the reclaimer signals the line ─▶ serveLine ─▶ meets: due ─▶ Waiter.Serve
//
// A line has one wake-up, however many tickets it has, and a change moves it in O(log n). The wake-up may be
// early, after the removal of its member; the line is then checked once in vain. It is never late: each
// change that can make a member due earlier signals the line. It does not use the wheels of the keys, so it
// also works while the reclaimer may remove nothing.

// Due is the condition under which a member of a sorted set is due: its score, as a time, is no later than
// the transaction's instant minus Age.
type Due struct {
	Unit float64 // us per unit of the score; 0: no members are due
	Age  int64   // us
}

// Cutoff returns the greatest score that is due at an instant in us.
func (d Due) Cutoff(now int64) float64 { return d.Score(now - d.Age) }

// Score returns the score of an instant in us.
func (d Due) Score(us int64) float64 { return float64(us) / d.Unit }

// millis returns the first ms after now (in us) at which a score becomes due, and false if that is later than
// any deadline.
func (d Due) millis(score float64, now int64) (ms int64, ok bool) {
	us := math.Ceil(score*d.Unit) + float64(d.Age)
	if !(us < MaxDeadline*1000) {
		return 0, false
	}
	return max(ceilMillis(int64(us)), now/1000+1), true // the product may be rounded down
}

// meets reports whether the key of a line now satisfies the want of a ticket. If only time is missing, it
// schedules the line's wake-up. O(log n).
func (tx *Tx) meets(l *waitLine, w Want) bool {
	h := tx.find(l.name)
	if h.r == nil {
		return false
	}
	if w.Elems > 0 {
		if h.r.Kind() != List {
			return false
		}
		v := tx.viewList(&h)
		return v.Len() >= w.Elems
	}
	if h.r.Kind() != ZSet {
		return false
	}
	v := tx.viewZSet(&h)
	score, ok := v.lowest()
	if !ok {
		return false
	}
	if score <= w.Due.Cutoff(tx.now) {
		return true
	}
	if ms, ok := w.Due.millis(score, tx.now); ok {
		tx.wakeLine(l, ms)
	}
	return false
}

// lowest returns the lowest score of a set; ok is false if it has no member.
func (v *ZSetView) lowest() (score float64, ok bool) {
	if v.Len() == 0 {
		return 0, false
	}
	_, score = v.at(0)
	return score, true
}

// DueAwaited reports whether clients wait for a due member of key and are about to get one, because its
// instant has passed but their wake-up has not run. It then signals the line, so that they are served when
// the transaction ends. A new client has to wait behind them.
func (tx *Tx) DueAwaited(key []byte) bool {
	if tx.db.waits.Load() == 0 {
		return false
	}
	l := tx.lineOf(key)
	if l == nil {
		return false
	}
	for _, w := range l.dueWants() {
		if tx.meets(l, w) {
			tx.signalLine(l)
			return true
		}
	}
	return false
}

// dueWants returns the wants of a line's tickets for due members.
func (l *waitLine) dueWants() (wants []Want) {
	l.sh.lines.mu.Lock()
	defer l.sh.lines.mu.Unlock()
	for w := range l.wants {
		if w.Due.Unit != 0 {
			wants = append(wants, w)
		}
	}
	return wants
}

// wakeups holds the wake-ups of a shard's lines. The lines' lock guards it.
type wakeups struct {
	wheel *wheel.Wheel // nil before the first wake-up
	slots []wakeSlot   // the entries that the wheel refers to; 0 is not used
	free  []uint32
}

type wakeSlot struct {
	entry wheel.Entry
	l     *waitLine
}

// Entry implements wheel.Resolver.
func (w *wakeups) Entry(ref uint32) *wheel.Entry { return &w.slots[ref].entry }

// wakeLine makes the reclaimer signal a line at an instant in ms, unless an earlier wake-up is scheduled. The
// transaction holds the line's shard. O(1).
func (tx *Tx) wakeLine(l *waitLine, ms int64) {
	sh := l.sh
	sh.lines.mu.Lock()
	w := &sh.lines.wakes
	at := ms - 1 // the wheel fires a millisecond after its deadlines
	switch {
	case l.head == nil: // its last ticket has left
	case l.slot == 0:
		if w.wheel == nil {
			w.wheel, w.slots = wheel.New(tx.ms, w), make([]wakeSlot, 1)
		}
		w.take(l)
		w.wheel.Add(l.slot, at)
	case w.slots[l.slot].entry.Deadline() > at:
		w.wheel.Remove(l.slot)
		w.wheel.Add(l.slot, at)
	}
	sh.lines.mu.Unlock()
	sh.workAt(ms)
}

func (w *wakeups) take(l *waitLine) {
	if n := len(w.free); n > 0 {
		l.slot, w.free = w.free[n-1], w.free[:n-1]
	} else {
		l.slot = uint32(len(w.slots))
		w.slots = append(w.slots, wakeSlot{})
	}
	w.slots[l.slot].l = l
}

// release frees the slot of a line whose entry is no longer in the wheel.
func (w *wakeups) release(l *waitLine) {
	w.slots[l.slot].l = nil
	w.free = append(w.free, l.slot)
	l.slot = 0
}

// cancel cancels the wake-up of a line that is removed.
func (w *wakeups) cancel(l *waitLine) {
	if l.slot != 0 {
		w.wheel.Remove(l.slot)
		w.release(l)
	}
}

// wakeLines signals the lines whose wake-up is due, at most budget of them, and reports whether there are
// more. The transaction, which holds the shard, serves them when it ends.
func (sh *shard) wakeLines(tx *Tx, budget int) (more bool) {
	if tx.db.waits.Load() == 0 {
		return false
	}
	sh.lines.mu.Lock()
	defer sh.lines.mu.Unlock()
	w := &sh.lines.wakes
	if w.wheel == nil {
		return false
	}
	w.wheel.Advance(tx.ms, budget, func(ref uint32) {
		l := w.slots[ref].l
		w.release(l)
		tx.signalLine(l)
	})
	next, ok := w.wheel.Next()
	return ok && next <= tx.ms
}

// nextWake returns the time in ms at which wakeLines next has work.
func (sh *shard) nextWake() (ms int64, ok bool) {
	sh.lines.mu.Lock()
	defer sh.lines.mu.Unlock()
	if sh.lines.wakes.wheel == nil {
		return 0, false
	}
	return sh.lines.wakes.wheel.Next()
}

// check verifies the wake-ups of a shard's lines, whose lock is held.
func (w *wakeups) check(lines *lineSet) error {
	if w.wheel == nil {
		return nil
	}
	if err := w.wheel.Check(); err != nil {
		return err
	}
	n := 0
	for i, s := range w.slots {
		switch {
		case s.l == nil:
		case int(s.l.slot) != i || lines.all[s.l.key] != s.l:
			return fmt.Errorf("a wake-up belongs to a line of %.100q that has none", s.l.key.key)
		default:
			n++
		}
	}
	if n != w.wheel.Len() || n+len(w.free)+1 != len(w.slots) {
		return fmt.Errorf("%d lines have wake-ups, the wheel has %d, and %d of %d slots are free", n, w.wheel.Len(), len(w.free), len(w.slots)-1)
	}
	return nil
}

// checkWakes verifies that the wake-up of each line is no later than the first instant at which a
// ticket's want is met. The transaction holds all shards.
func (tx *Tx) checkWakes() error {
	if tx.db.filling.Load() {
		return nil
	}
	for _, sh := range tx.db.shards {
		sh.lines.mu.Lock()
		all := slices.Collect(maps.Values(sh.lines.all))
		sh.lines.mu.Unlock()
		for _, l := range all {
			if err := tx.checkWake(l); err != nil {
				return err
			}
		}
	}
	return nil
}

func (tx *Tx) checkWake(l *waitLine) error {
	score, ok := tx.lowestOf(l)
	if !ok || l.pending {
		return nil
	}
	at := int64(never)
	l.sh.lines.mu.Lock()
	if l.slot != 0 {
		at = l.sh.lines.wakes.slots[l.slot].entry.Deadline() + 1
	}
	l.sh.lines.mu.Unlock()
	for _, w := range l.dueWants() {
		if ms, ok := w.Due.millis(score, tx.now); ok && at > ms {
			return fmt.Errorf("a member of %.100q is due at %d for a waiter, its line wakes at %d", l.key.key, ms, at)
		}
	}
	return nil
}

// lowestOf returns the lowest score of the set at a line's key. It changes nothing.
func (tx *Tx) lowestOf(l *waitLine) (score float64, ok bool) {
	sp := l.sh.spaces[l.key.db]
	if sp == nil {
		return 0, false
	}
	_, hash := tx.db.shardOf(l.name)
	pos, ok := sp.tab.Find(hash, l.name)
	if !ok {
		return 0, false
	}
	h := hit{sh: l.sh, sp: sp, h: hash, pos: pos, r: sp.rec(pos.Ref())}
	if h.r.Kind() != ZSet || h.r.expired(tx.ms) {
		return 0, false
	}
	v := tx.viewZSet(&h)
	return v.lowest()
}
