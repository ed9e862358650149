package engine

import "github.com/ebbdb/ebb/internal/stream"

// XClaim selects pending entries to assign to another consumer.
type XClaim struct {
	Group, Consumer []byte
	IDs             []StreamID
	MinIdle         int64 // ms since the last delivery at least
	Time            int64 // the instant of the delivery to record, ms; -1: now
	Count           int64 // the number of deliveries to record; -1: one more, or unchanged if JustID
	Force           bool  // entries that are not pending become so
	JustID          bool
	Last            StreamID // raise the group's last id to this id
}

// XClaim assigns pending entries to a consumer, which it creates if it is missing, and calls visit
// with each. Deleted entries are no longer pending after it. O(log n) for each entry. Errors:
// ErrWrongType, ErrNoGroup, ErrFull.
func (tx *Tx) XClaim(key []byte, x *XClaim, visit func(*StreamEntry)) error {
	h, s, g, err := tx.group(key, x.Group)
	if err != nil {
		return err
	}
	c, err := tx.consumer(&h, key, g, x.Consumer)
	if err != nil {
		return err
	}
	logged := !g.Last.Less(x.Last)
	if !logged {
		g.Last = x.Last
	}
	if x.Time < 0 || x.Time > tx.ms && !tx.replay {
		x.Time = tx.ms
	}
	d := delivered{tx: tx, key: key, group: x.Group, g: g}
	w := newStreamWalk()
	defer w.done()
	e := &w.up
	var gone [][]byte
	for _, id := range x.IDs {
		p, pending := g.Find(id)
		*e = s.Iter(id)
		if !e.Next() || e.ID() != id {
			if pending {
				g.Remove(id)
				tx.dirty++
				gone = append(gone, idBytes(id))
			}
			continue
		}
		if !x.take(&p, pending, tx.ms) {
			continue
		}
		p.ID, p.Consumer, p.Time = id, c, x.Time
		if err := g.Put(p); err != nil {
			return ErrFull
		}
		visit(&e.Entry)
		c.Active = tx.ms
		d.add(p)
		tx.dirty++
		logged = true
	}
	tx.emitAck(key, x.Group, gone)
	d.flush()
	if !logged {
		tx.emitGroup("SETID", key, x.Group, g.Last, g.Read, false)
		tx.dirty++
	}
	tx.wrote(&h)
	return nil
}

// take reports whether XClaim assigns an existing entry to the consumer, and counts the delivery.
func (x *XClaim) take(p *stream.Pending, pending bool, now int64) bool {
	switch {
	case !pending && !x.Force, pending && x.MinIdle > 0 && now-p.Time < x.MinIdle:
		return false
	case !pending:
		p.Count = 1
	}
	if x.Count >= 0 {
		p.Count = uint32(min(x.Count, 1<<32-1))
	} else if !x.JustID {
		p.Count = next(p.Count)
	}
	return true
}

// XAutoClaim selects the pending entries that a consumer takes over.
type XAutoClaim struct {
	Group, Consumer []byte
	MinIdle         int64 // ms since the last delivery at least
	From            StreamID
	Count           int // the greatest number of entries to visit or to drop; XAutoClaim examines up to ten times that number
	JustID          bool
}

// XAutoClaim assigns pending entries, from an id on, to a consumer, which it creates if it is missing, and
// calls visit with each. It returns the id from which to continue, 0-0 at the end, and the entries that are
// no longer pending because they were deleted. Errors: ErrWrongType, ErrNoGroup, ErrFull. O(log n) for each
// examined entry.
func (tx *Tx) XAutoClaim(key []byte, x *XAutoClaim, visit func(*StreamEntry)) (next StreamID, gone []StreamID, err error) {
	h, s, g, err := tx.group(key, x.Group)
	if err != nil {
		return next, nil, err
	}
	c, err := tx.consumer(&h, key, g, x.Consumer)
	if err != nil {
		return next, nil, err
	}
	d := delivered{tx: tx, key: key, group: x.Group, g: g}
	w := newStreamWalk()
	defer w.done()
	e := &w.up
	count, it := x.Count, g.PendingFrom(x.From)
	more := it.Next()
	for looks := 10 * x.Count; more && looks > 0 && count > 0; looks-- {
		p := it.Pending()
		*e = s.Iter(p.ID)
		exists := e.Next() && e.ID() == p.ID
		idle := x.MinIdle == 0 || tx.ms-p.Time >= x.MinIdle
		switch {
		case !exists:
			g.Remove(p.ID)
			gone = append(gone, p.ID)
		case idle:
			if p.Consumer, p.Time = c, tx.ms; !x.JustID {
				p.Count++
			}
			if err := g.Put(p); err != nil {
				return next, gone, ErrFull
			}
			visit(&e.Entry)
			c.Active = tx.ms
			d.add(p)
		}
		if !exists || idle { // the trees have changed, so the iterator is invalid
			count--
			tx.dirty++
			from, _ := p.ID.Next()
			it = g.PendingFrom(from)
		}
		more = it.Next()
	}
	if more {
		next = it.ID()
	}
	tx.emitGone(key, x.Group, gone)
	d.flush()
	tx.wrote(&h)
	return next, gone, nil
}

func (tx *Tx) emitGone(key, group []byte, gone []StreamID) {
	if !tx.db.logging.Load() {
		return
	}
	var ids [][]byte
	for _, id := range gone {
		ids = append(ids, idBytes(id))
	}
	tx.emitAck(key, group, ids)
}

// XDelMode selects the treatment of the pending lists that refer to an entry.
type XDelMode uint8

// These are the modes, named after the options of XDELEX.
const (
	KeepRef XDelMode = iota // the pending lists keep their references
	DelRef                  // XDelEx removes the entry from all pending lists
	Acked                   // XDelEx keeps the entry unless all groups have read and acknowledged it
)

// The outcomes for an entry, as in replies to XDELEX.
const (
	XNotFound   = -1
	XDeleted    = 1
	XReferenced = 2
)

// XDelEx removes entries as mode says and calls visit for each id with the outcome. ok is false if
// there is no such key. Errors: ErrWrongType. O(log n + groups) for each.
func (tx *Tx) XDelEx(key []byte, mode XDelMode, ids []StreamID, visit func(outcome int)) (ok bool, err error) {
	h, s, err := tx.stream(key)
	if s == nil {
		return false, err
	}
	d := deletion{tx: tx, key: key, s: s}
	for _, id := range ids {
		visit(d.delete(id, mode, nil))
	}
	d.settle(&h)
	return true, nil
}

// XAckDel acknowledges entries of a group and removes them as mode says. An entry that was not
// pending counts as not found. Errors: ErrWrongType. O(log n + groups) for each.
func (tx *Tx) XAckDel(key, group []byte, mode XDelMode, ids []StreamID, visit func(outcome int)) (ok bool, err error) {
	h, s, g, err := tx.group(key, group)
	if err == ErrNoGroup {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	d := deletion{tx: tx, key: key, s: s}
	for _, id := range ids {
		if !g.Remove(id) {
			visit(XNotFound)
			continue
		}
		d.acked(g, id)
		visit(d.delete(id, mode, g))
	}
	d.settle(&h)
	return true, nil
}

// deletion is a running XDelEx or XAckDel.
type deletion struct {
	tx      *Tx
	key     []byte
	s       *stream.Stream
	gone    [][]byte
	removed int
	acks    int
}

func (d *deletion) acked(g *stream.Group, id StreamID) {
	d.acks++
	if d.tx.db.logging.Load() {
		d.tx.emitAck(d.key, []byte(g.Name()), [][]byte{idBytes(id)})
	}
}

// delete removes one entry. If g is not nil, it has just acknowledged the entry.
func (d *deletion) delete(id StreamID, mode XDelMode, g *stream.Group) int {
	if mode == Acked && d.referenced(id) && d.s.Has(id) {
		return XReferenced
	}
	if mode == DelRef {
		for _, other := range d.s.Groups() {
			if other.Remove(id) {
				d.acked(other, id)
			}
		}
	}
	if !d.s.Delete(id) {
		if g != nil {
			return XDeleted
		}
		return XNotFound
	}
	d.removed++
	if d.tx.db.logging.Load() {
		d.gone = append(d.gone, idBytes(id))
	}
	return XDeleted
}

// referenced reports whether a group has not read an entry, or not acknowledged
// it.
func (d *deletion) referenced(id StreamID) bool {
	for _, g := range d.s.Groups() {
		if _, pending := g.Find(id); pending || g.Last.Less(id) {
			return true
		}
	}
	return false
}

func (d *deletion) settle(h *hit) {
	if d.removed == 0 && d.acks == 0 {
		return
	}
	d.tx.wrote(h)
	d.tx.dirty += d.acks
	if d.removed > 0 {
		d.tx.emitItems("XDEL", d.key, d.gone)
		d.tx.changed(d.key, EventStream, "xdel")
		d.tx.dirty += d.removed - 1
	}
}
