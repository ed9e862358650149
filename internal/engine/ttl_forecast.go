package engine

import (
	"sort"

	"github.com/ebbdb/ebb/internal/arena"
)

// This file counts the keys and items that will fall due. Its methods lock one shard after the
// other, and unlock it after each slice of work, unless the transaction holds all shards.

const (
	// forecastSlice is the number of records in a slice of work, after which the forecast unlocks
	// the shard: some 50 us.
	forecastSlice = 1024
	// forecastExact is the number of keys with deadlines in a shard up to which the forecast reads each of them.
	// For more keys, it takes estimates from the wheel.
	forecastExact = 4096
	// forecastEarly is the greatest number of containers with an early entry that a forecast examines in a
	// shard.
	forecastEarly = 256
)

// Forecast holds the number of keys and items that fall due in each of several intervals.
type Forecast struct {
	From   int64 // ms since 1970
	Bounds []int64
	Counts []int // the number that fall due in each interval: before its end, and not before its start
}

// Forecast counts the keys and items of the selected database that fall due within horizon ms, in n
// intervals of the same length. It does not count those that are dead already, items whose key
// expires before them, or waiters. match, which may be nil, selects keys.
//
// If match is nil, the keys come from the wheels in O(shards + intervals). In a shard with more
// than 4,096 keys with deadlines, the counts are then exact to a slot of the wheel, and a limiter
// may count early by an eighth of its time. Items of containers, and keys that match, come from a
// walk over all keys of the shards that have such deadlines: O(keys), plus O(log n) for each large
// container and O(n) for lists. While other transactions write, the result describes the data that
// the walk met.
func (tx *Tx) Forecast(horizon int64, n int, match func(key []byte) bool) *Forecast {
	f := &Forecast{Counts: make([]int, n)}
	if f.From = tx.ms; !tx.Begun() {
		f.From = tx.db.clock.Micros() / 1000
	}
	for i := range int64(n) {
		f.Bounds = append(f.Bounds, f.From+horizon/int64(n)*(i+1)+horizon%int64(n)*(i+1)/int64(n))
	}
	for i := range tx.db.shards {
		tx.inShard(i, func(t *Tx, sp *space) (done bool) {
			if match == nil && sp.due != nil {
				f.keys(t, sp)
			}
			return true
		})
		at := uint64(0)
		tx.inShard(i, func(t *Tx, sp *space) (done bool) {
			if (match == nil || sp.due == nil || sp.due.Len() == 0) && (sp.next == nil || sp.next.Len() == 0) {
				return true
			}
			for left := forecastSlice; left > 0; left-- {
				at = sp.tab.Scan(at, func(ref arena.Ref) {
					left--
					f.record(t, sp, ref, match)
				})
				if at == 0 {
					return true
				}
			}
			return false
		})
	}
	return f
}

// inShard calls f with a shard's part of the selected database, if there is one, until f returns
// true. It unlocks the shard between the calls.
func (tx *Tx) inShard(i int, f func(tx *Tx, sp *space) (done bool)) {
	for done := false; !done; {
		t := tx
		if !tx.holds(i) {
			t = tx.db.txs.Get().(*Tx)
			t.begin(tx.dbi, 1<<i, true)
		}
		sp := tx.db.shards[i].spaces[tx.dbi]
		done = sp == nil || f(t, sp)
		if t != tx {
			t.Commit()
		}
	}
}

// add counts a key or an item with a deadline.
func (f *Forecast) add(deadline int64) {
	if deadline < f.From {
		return
	}
	if i := sort.Search(len(f.Bounds), func(i int) bool { return deadline < f.Bounds[i] }); i < len(f.Bounds) {
		f.Counts[i]++
	}
}

// keys counts the keys of a space. If they are few, it leaves out containers whose items are all
// dead.
func (f *Forecast) keys(tx *Tx, sp *space) {
	if sp.due.Len() <= forecastExact {
		sp.due.Each(func(ref uint32) {
			if r := sp.rec(arena.Ref(ref)); !tx.dead(sp, r) {
				f.add(r.deadline())
			}
		})
		return
	}
	counts := make([]int, len(f.Counts))
	sp.due.Forecast(f.From, f.Bounds, counts)
	for i, n := range counts {
		f.Counts[i] += n
	}
}

// dueCounter is a box that can count its items with deadlines before an instant in O(log n).
type dueCounter interface{ Due(now int64) int }

// record counts a record and its items, if it matches and has deadlines.
func (f *Forecast) record(tx *Tx, sp *space, ref arena.Ref, match func([]byte) bool) {
	r := sp.rec(ref)
	if match != nil {
		if d := r.deadline(); d == 0 && r.nextAt() == 0 || tx.dead(sp, r) || !match(sp.key(r)) {
			return
		} else if d != 0 {
			f.add(d)
		}
	}
	h := hit{sh: sp.sh, sp: sp, r: r}
	switch k := r.Kind(); {
	case r.nextAt() == 0, k == Limiter: // no item has a deadline; a limiter's entry is a wake-up of waiting clients
	case k == Lock, k == Semaphore, k == DelayQueue:
		f.add(tx.nextFrom(&h, f.From))
	default:
		f.items(tx, &h)
	}
}

// items counts the items of a hash, set, sorted set or list.
func (f *Forecast) items(tx *Tx, h *hit) {
	last := h.r.deadline() // an item that is not due before its key expires with the key
	if last == 0 {
		last = MaxDeadline + 1
	}
	if c, ok := h.box().(dueCounter); ok {
		before := c.Due(min(f.From, last))
		for i, b := range f.Bounds {
			n := c.Due(min(b, last))
			f.Counts[i] += n - before
			before = n
		}
		return
	}
	Key{tx: tx, sp: h.sp, r: h.r}.Items(func(it Item) {
		if it.Deadline != 0 && it.Deadline < last {
			f.add(it.Deadline)
		}
	})
}

// NextDue describes the key or item that falls due next.
type NextDue struct {
	Deadline int64 // ms since 1970
	Level    Level
	Key      []byte
}

// NextDue returns the key or item of the selected database that falls due next; ok is false if
// there is none. It skips keys and items that are dead already. It costs O(keys with deadlines in
// one slot of each shard's wheel): these are few if the deadlines are near, and many if thousands
// of keys fall due in the same hours.
func (tx *Tx) NextDue() (x NextDue, ok bool) {
	now := tx.ms
	if !tx.Begun() {
		now = tx.db.clock.Micros() / 1000
	}
	note := func(deadline int64, l Level, key []byte) {
		if !ok || deadline < x.Deadline {
			x, ok = NextDue{deadline, l, append(x.Key[:0], key...)}, true
		}
	}
	for i := range tx.db.shards {
		tx.inShard(i, func(t *Tx, sp *space) bool {
			if sp.due != nil {
				t.nextKey(sp, now, note)
			}
			if sp.next != nil {
				t.nextItem(sp, now, note)
				t.nextHidden(sp, now, note)
			}
			return true
		})
	}
	return x, ok
}

// nextKey reports the key of a space that expires next to note. It reschedules late limiters at their true
// deadline.
func (tx *Tx) nextKey(sp *space, now int64, note func(int64, Level, []byte)) {
	for range forecastEarly {
		ref, d, ok := sp.due.Nearest(now, func(ref uint32) bool { return !tx.dead(sp, sp.rec(arena.Ref(ref))) })
		if !ok {
			return
		}
		r := sp.rec(arena.Ref(ref))
		if !r.late() {
			note(d, LevelKey, sp.key(r))
			return
		}
		sp.due.Remove(ref)
		sp.reschedule(arena.Ref(ref), r)
	}
}

// nextItem reports the container of a space whose item falls due next to note. It corrects early entries that
// it meets.
func (tx *Tx) nextItem(sp *space, now int64, note func(int64, Level, []byte)) {
	for range forecastEarly {
		ref, d, ok := sp.next.Nearest(now, func(ref uint32) bool { return sp.rec(arena.Ref(ref)).Kind() != Limiter })
		if !ok {
			return
		}
		h := hit{sh: sp.sh, sp: sp, h: sp.Hash(arena.Ref(ref)), r: sp.rec(arena.Ref(ref))}
		h.pos, _ = sp.tab.FindRef(h.h, arena.Ref(ref))
		tx.date(&h)
		if h.r.nextAt() == d {
			note(d, levelOf(h.r.Kind()), sp.key(h.r))
			return
		}
	}
}
