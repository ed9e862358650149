package engine

import (
	"sync"

	"github.com/ebbdb/ebb/internal/stream"
)

// streamWalk holds the iterators of a walk over entries. They come from a pool, because the
// compiler places the arguments of a function value on the heap.
type streamWalk struct {
	up   stream.Iter
	down stream.Back
}

var streamWalks = sync.Pool{New: func() any { return new(streamWalk) }}

func newStreamWalk() *streamWalk { return streamWalks.Get().(*streamWalk) }

// done returns the iterators to the pool, without their references to the stream.
func (w *streamWalk) done() {
	w.up = stream.Iter{}
	w.down.Close()
	streamWalks.Put(w)
}

// XRange is a range of ids, both ends included.
type XRange struct {
	First, Last StreamID
	Count       int // the greatest number of entries; 0: no bound
	Reverse     bool
}

// XRange visits the entries of a range. ok is false if there is no such key. O(log n + visited).
// Errors: ErrWrongType.
func (tx *Tx) XRange(key []byte, r XRange, visit func(*StreamEntry)) (ok bool, err error) {
	s, err := tx.readStream(key)
	if s == nil {
		return false, err
	}
	showRange(s, r, visit)
	return true, nil
}

func showRange(s *stream.Stream, r XRange, visit func(*StreamEntry)) {
	w := newStreamWalk()
	defer w.done()
	n := 0
	if r.Reverse {
		b := &w.down
		for s.Back(b, r.Last); b.Next() && !b.ID().Less(r.First); {
			visit(&b.Entry)
			if n++; n == r.Count {
				return
			}
		}
		return
	}
	it := &w.up
	for *it = s.Iter(r.First); it.Next() && !r.Last.Less(it.ID()); {
		visit(&it.Entry)
		if n++; n == r.Count {
			return
		}
	}
}

// XLast returns a stream's last id, 0-0 if there is no such key, and that of its
// last entry, 0-0 if it has none. Errors: ErrWrongType.
func (tx *Tx) XLast(key []byte) (last, entry StreamID, err error) {
	s, err := tx.readStream(key)
	if s == nil {
		return last, entry, err
	}
	return s.Last, s.LastEntry(), nil
}

// XRead visits the entries after an id, at most count if count is not 0. It calls begin before the
// first one, and reports whether there were any. O(log n + visited). Errors: ErrWrongType.
func (tx *Tx) XRead(key []byte, after StreamID, count int, begin func(), visit func(*StreamEntry)) (bool, error) {
	s, err := tx.readStream(key)
	if s == nil {
		return false, err
	}
	from, ok := after.Next()
	if !ok {
		return false, nil
	}
	w := newStreamWalk()
	defer w.done()
	it := &w.up
	*it = s.Iter(from)
	if !it.Next() {
		return false, nil
	}
	begin()
	for n := 1; ; n++ {
		visit(&it.Entry)
		if n == count || !it.Next() {
			return true, nil
		}
	}
}

// XReadGroup selects the entries that a consumer reads.
type XReadGroup struct {
	Group, Consumer []byte
	New             bool     // entries that were not yet delivered to the group
	After           StreamID // without New: the consumer's pending entries after this id
	Count           int      // the greatest number of entries; 0: no bound
	NoAck           bool     // delivered entries do not become pending

	// Begin is called before the first entry, and, without New, even if there is none.
	Begin func()
	Visit func(*StreamEntry)
	// Gone is called with each pending entry that was deleted.
	Gone func(StreamID)
}

// XReadGroup delivers entries to a consumer, which it creates if it is missing, and reports whether
// it called Begin. Errors: ErrWrongType, ErrNoGroup, ErrFull. O(log n) for each entry.
func (tx *Tx) XReadGroup(key []byte, r *XReadGroup) (bool, error) {
	h, s, g, err := tx.group(key, r.Group)
	if err != nil {
		return false, err
	}
	c, err := tx.consumer(&h, key, g, r.Consumer)
	if err != nil {
		return false, err
	}
	if !r.New {
		r.Begin()
		tx.deliverAgain(key, s, g, c, r)
		tx.stamp(h.r)
		return true, nil
	}
	from, ok := g.Last.Next()
	if !ok {
		return false, nil
	}
	w := newStreamWalk()
	defer w.done()
	it := &w.up
	*it = s.Iter(from)
	if !it.Next() {
		return false, nil
	}
	r.Begin()
	if !r.NoAck {
		c.Active = tx.ms
	}
	d := delivered{tx: tx, key: key, group: r.Group, g: g}
	for n := 1; ; n++ {
		id := it.ID()
		passed(s, g, id)
		r.Visit(&it.Entry)
		if !r.NoAck {
			p := stream.Pending{ID: id, Time: tx.ms, Count: 1, Consumer: c}
			if err := g.Put(p); err != nil {
				return true, ErrFull
			}
			d.add(p)
		}
		tx.dirty++
		if n == r.Count || !it.Next() {
			break
		}
	}
	d.flush()
	tx.emitGroup("SETID", key, r.Group, g.Last, g.Read, false)
	tx.wrote(&h)
	return true, nil
}

// deliverAgain delivers a consumer's pending entries again.
func (tx *Tx) deliverAgain(key []byte, s *stream.Stream, g *stream.Group, c *stream.Consumer, r *XReadGroup) {
	from, ok := r.After.Next()
	if !ok {
		return
	}
	d := delivered{tx: tx, key: key, group: r.Group, g: g}
	w := newStreamWalk()
	defer w.done()
	e := &w.up
	n := 0
	for it := g.PendingOf(c, from); it.Next(); {
		p := it.Pending()
		*e = s.Iter(p.ID)
		if e.Next() && e.ID() == p.ID {
			r.Visit(&e.Entry)
			p.Time, p.Count = tx.ms, next(p.Count)
			it.Update(p.Time, p.Count)
			d.add(p)
		} else {
			r.Gone(p.ID)
		}
		if n++; n == r.Count {
			break
		}
	}
	d.flush()
}

// next returns a count of deliveries plus one; it saturates.
func next(count uint32) uint32 {
	if count++; count == 0 {
		count--
	}
	return count
}

// passed records that a group has read an entry, the first one after its last.
func passed(s *stream.Stream, g *stream.Group, id StreamID) {
	if g.Read != stream.Unknown && !g.Last.Less(s.First()) && !s.Tombstones(g.Last) {
		g.Read++
	} else if s.Added > 0 { // the group has also passed the entries between that were trimmed or deleted
		g.Read = s.ReadBefore(id)
	}
	g.Last = id
}
