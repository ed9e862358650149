package engine

import (
	"sync"

	"github.com/ebbdb/ebb/internal/stream"
)

// streamWalk holds the iterators that show entries to a caller. They come from a
// pool because what a function value gets must be on the heap.
type streamWalk struct {
	up   stream.Iter
	down stream.Back
}

var streamWalks = sync.Pool{New: func() any { return new(streamWalk) }}

func newStreamWalk() *streamWalk { return streamWalks.Get().(*streamWalk) }

// done gives the iterators back. They let go of the stream.
func (w *streamWalk) done() {
	w.up = stream.Iter{}
	w.down.Close()
	streamWalks.Put(w)
}

// XRange is a range of ids, both ends included.
type XRange struct {
	First, Last StreamID
	Count       int // entries at most; 0: no bound
	Reverse     bool
}

// XRange shows the entries of a range. ok is false if there is no such key.
// Errors: ErrWrongType. O(log n + shown).
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

// XRead shows the entries after an id, count at most if that is not 0. It calls
// begin before the first one, and reports whether there were any. Errors:
// ErrWrongType. O(log n + shown).
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

// XReadGroup says what a consumer reads.
type XReadGroup struct {
	Group, Consumer []byte
	New             bool     // what was not delivered to the group yet
	After           StreamID // else what is pending for the consumer after this
	Count           int      // entries at most; 0: no bound
	NoAck           bool     // what is delivered does not become pending

	// Begin is called before the first entry, and for pending ones in any case.
	Begin func()
	Visit func(*StreamEntry)
	// Gone is told of pending entries that were deleted.
	Gone func(StreamID)
}

// XReadGroup delivers entries to a consumer, which it creates if need be, and
// reports whether Begin was called. Errors: ErrWrongType, ErrNoGroup, ErrFull.
// O(log n) for each entry.
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

// deliverAgain shows a consumer what is pending for it.
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

// next counts a delivery.
func next(count uint32) uint32 {
	if count++; count == 0 {
		count--
	}
	return count
}

// passed notes that a group has read an entry, the first one after its last.
func passed(s *stream.Stream, g *stream.Group, id StreamID) {
	if g.Read != stream.Unknown && !g.Last.Less(s.First()) && !s.Tombstones(g.Last) {
		g.Read++
	} else if s.Added > 0 { // what was trimmed or deleted in between was passed as well
		g.Read = s.ReadBefore(id)
	}
	g.Last = id
}
