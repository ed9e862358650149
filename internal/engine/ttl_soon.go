package engine

import (
	"bytes"
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/packed"
)

// This file finds the names of the keys and items that expire next.

const (
	// MaxSoon is the largest number of rows that Soon returns.
	MaxSoon = 1000
	// soonLooks is the number of entries and items that Soon examines: in all shards together if it filters,
	// otherwise in each shard. With a cache miss for each, it locks a shard for some milliseconds at most.
	soonLooks = 1 << 16
)

// SoonOptions select among the expiring keys and items. The zero value selects the next deadline of all.
type SoonOptions struct {
	Count  int                   // rows; 1 if 0, at most MaxSoon
	Within int64                 // ms from now, up to and including them; 0: any deadline
	Levels LevelSet              // 0: all
	Match  func(key []byte) bool // selects keys; nil: all. It is called with a shard locked
}

// Expiry is a deadline and the key or item that it belongs to.
type Expiry struct {
	Deadline int64 // ms since 1970
	Level    Level
	Key      []byte
	Item     []byte // a field, a member, an element, a holder's name or a job's id; nil of a key
}

// compare orders deadlines, and equal ones by level and name.
func (x *Expiry) compare(y *Expiry) int {
	return cmp.Or(cmp.Compare(x.Deadline, y.Deadline), cmp.Compare(x.Level, y.Level), bytes.Compare(x.Key, y.Key), bytes.Compare(x.Item, y.Item))
}

// Soon returns the keys and items of the selected database that expire next, earliest first. It skips expired
// ones, items whose key expires first, and the waiting clients of limiters. whole is false if Soon stopped
// before it had seen everything that might belong to the result: it examines 65,536 entries of the wheels and
// items of containers, in each shard if it takes everything, and in all together if Match or Levels filter.
//
// O(slots + entries of the slots that the rows are in + n log n); with Match or Levels, O(entries that expire
// before the last row). It locks one shard at a time, unless the transaction holds them. Under concurrent
// writes the rows are those of each shard's own instant.
func (tx *Tx) Soon(o SoonOptions) (rows []Expiry, whole bool) {
	s := soon{limit: min(max(o.Count, 1), MaxSoon), until: math.MaxInt64, levels: o.Levels, match: o.Match, whole: true}
	if s.levels == 0 {
		s.levels = AllLevels
	}
	if o.Within > 0 {
		now := tx.ms
		if !tx.Begun() {
			now = tx.db.clock.Micros() / 1000
		}
		s.until = now + min(o.Within, MaxDeadline)
	}
	left := soonLooks
	for i := range tx.db.shards {
		s.looks, s.spent = soonLooks, false
		if chooses := s.match != nil || s.levels != AllLevels; chooses {
			s.looks = max(1, left/(len(tx.db.shards)-i))
			left -= s.looks
		}
		tx.inShard(i, func(t *Tx, sp *space) (done bool) {
			s.space(t, sp)
			return true
		})
		left += s.looks
	}
	slices.SortFunc(s.rows, func(x, y Expiry) int { return x.compare(&y) })
	return s.rows, s.whole
}

// Soon does the work of Tx.Soon on a database, without a transaction.
func (db *DB) Soon(dbi int, o SoonOptions) (rows []Expiry, whole bool) {
	tx := db.txs.Get().(*Tx)
	defer db.txs.Put(tx)
	defer tx.Select(tx.dbi)
	tx.Select(dbi)
	return tx.Soon(o)
}

// soon collects the earliest deadlines.
type soon struct {
	rows   latestFirst // a heap
	limit  int
	until  int64 // no later deadline is wanted
	levels LevelSet
	match  func([]byte) bool
	looks  int  // the entries that may still be examined in this shard
	spent  bool // the bound was reached, and there was more to examine
	whole  bool // spent was false for every shard

	now  int64 // ms
	h    hit   // the current container
	last int64 // none of its items lives longer than this
	text [24]byte
}

// latestFirst is a heap of rows.
type latestFirst []Expiry

func (r latestFirst) Len() int           { return len(r) }
func (r latestFirst) Less(i, j int) bool { return r[i].compare(&r[j]) > 0 }
func (r latestFirst) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *latestFirst) Push(x any)        { *r = append(*r, x.(Expiry)) }
func (r *latestFirst) Pop() any          { panic("engine: rows are replaced, not removed") }

// end returns the latest deadline that can still belong to the result.
func (s *soon) end() int64 {
	if len(s.rows) < s.limit {
		return s.until
	}
	return min(s.until, s.rows[0].Deadline)
}

// look counts one visit, and reports whether it is within the bound.
func (s *soon) look() bool {
	if s.looks == 0 {
		s.spent, s.whole = true, false
		return false
	}
	s.looks--
	return true
}

// add adds a row. If there are enough rows, it replaces the latest one. It copies the names.
func (s *soon) add(x Expiry) {
	switch {
	case x.Deadline > s.end():
	case len(s.rows) < s.limit:
		x.Key, x.Item = bytes.Clone(x.Key), bytes.Clone(x.Item)
		heap.Push(&s.rows, x)
	case x.compare(&s.rows[0]) < 0:
		old := &s.rows[0]
		x.Key, x.Item = append(old.Key[:0], x.Key...), cloneInto(old.Item, x.Item)
		*old = x
		heap.Fix(&s.rows, 0)
	}
}

// cloneInto copies src to dst's memory; it keeps nil as nil, and an empty slice as an empty one.
func cloneInto(dst, src []byte) []byte {
	if src == nil {
		return nil
	}
	if dst == nil {
		return bytes.Clone(src)
	}
	return append(dst[:0], src...)
}

// space visits one shard's part of a database.
func (s *soon) space(tx *Tx, sp *space) {
	s.now = tx.ms
	more := func(start int64) bool { return start <= s.end() }
	if sp.due != nil && s.levels.Has(LevelKey) {
		sp.due.Ascend(more, func(ref uint32) bool { return s.key(tx, sp, sp.rec(arena.Ref(ref))) })
	}
	if sp.next != nil && s.levels != 1<<LevelKey {
		sp.next.Ascend(more, func(ref uint32) bool { return s.container(tx, sp, sp.rec(arena.Ref(ref))) })
	}
}

func (s *soon) key(tx *Tx, sp *space, r *rec) (more bool) {
	if !s.look() {
		return false
	}
	d := r.deadline()
	if d < s.now || d > s.end() || tx.dead(sp, r) {
		return true
	}
	if name := sp.key(r); s.match == nil || s.match(name) {
		s.add(Expiry{d, LevelKey, name, nil})
	}
	return true
}

// container visits the items of a container that has an item with a deadline.
func (s *soon) container(tx *Tx, sp *space, r *rec) (more bool) {
	if !s.look() {
		return false
	}
	k := r.Kind()
	if !expires(k) || !s.levels.Has(levelOf(k)) || r.nextAt() > s.end() || tx.dead(sp, r) || s.match != nil && !s.match(sp.key(r)) {
		return true
	}
	s.h, s.last = hit{sh: sp.sh, sp: sp, r: r}, math.MaxInt64
	if d := r.deadline(); d != 0 {
		s.last = d - 1
	}
	switch b := s.h.box().(type) {
	case nil:
		s.small(k)
	case listBox:
		b.EachComing(s.now, s.end, func(elem packed.Str, deadline int64) bool {
			s.item(elem.Append(s.text[:0]), deadline)
			return !s.spent
		})
	case queueBox:
		b.EachEvent(s.now, s.item)
	case interface {
		EachComing(now int64, visit func(item []byte, deadline int64) bool)
	}:
		b.EachComing(s.now, s.item)
	}
	return !s.spent
}

// expires reports whether the items of a kind have deadlines of their own.
func expires(k Kind) bool {
	switch k {
	case Hash, Set, ZSet, List, Lock, Semaphore, DelayQueue:
		return true
	}
	return false
}

// small visits the items of a container within its record.
func (s *soon) small(k Kind) {
	if k == Lock || k == Semaphore {
		for x := range s.h.holders().All() {
			s.item(x.Owner, x.Deadline)
		}
		return
	}
	if s.h.image().Kind() == packed.KindIntSet {
		return
	}
	for it := s.h.image().Iter(s.now); !s.spent && it.Next(); {
		if d := it.Deadline(); d != 0 {
			s.item(it.Key().Append(s.text[:0]), d)
		}
	}
}

// item visits an item with a deadline, and reports whether an item with a later deadline can still belong to
// the result.
func (s *soon) item(name []byte, deadline int64) (more bool) {
	if !s.look() || deadline > s.last || deadline > s.end() {
		return false
	}
	if deadline >= s.now {
		s.add(Expiry{deadline, levelOf(s.h.r.Kind()), s.h.sp.key(s.h.r), name})
	}
	return true
}
