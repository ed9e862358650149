package engine

import "github.com/ebbdb/ebb/internal/stream"

// group looks up a consumer group for a write. Errors: ErrWrongType, ErrNoGroup.
func (tx *Tx) group(key, name []byte) (h hit, s *stream.Stream, g *stream.Group, err error) {
	h, s, err = tx.stream(key)
	if err != nil {
		return h, s, nil, err
	}
	if s != nil {
		g = s.Group(name)
	}
	if g == nil {
		return h, s, nil, ErrNoGroup
	}
	return h, s, g, nil
}

// XGroupCheck returns ErrNoGroup if there is no such key or group, or
// ErrWrongType.
func (tx *Tx) XGroupCheck(key, group []byte) error {
	_, _, _, err := tx.group(key, group)
	return err
}

// XCheck returns ErrNoKey if there is no such key, or ErrWrongType.
func (tx *Tx) XCheck(key []byte) error {
	_, s, err := tx.stream(key)
	if err == nil && s == nil {
		return ErrNoKey
	}
	return err
}

// XGroup selects the position from which a consumer group reads.
type XGroup struct {
	ID     StreamID
	Last   bool  // read from the stream's last id instead of ID
	Read   int64 // the number of entries read so far; -1: unknown
	Create bool  // XGroupCreate creates a missing stream
}

// XGroupCreate creates a consumer group. Errors: ErrWrongType, ErrNoKey,
// ErrGroupExists, ErrFull.
func (tx *Tx) XGroupCreate(key, group []byte, x XGroup) error {
	h, s, err := tx.stream(key)
	switch {
	case err != nil:
		return err
	case s == nil && !x.Create:
		return ErrNoKey
	case s != nil && s.Group(group) != nil:
		return ErrGroupExists
	}
	isNew := s == nil
	if isNew {
		b := tx.newStream()
		if err := tx.enlarge(&h, key, Stream, b); err != nil {
			discard(b)
			return err
		}
		s = b.Stream
	}
	if x.Last {
		x.ID = s.Last
	}
	s.AddGroup(group, x.ID, x.Read)
	tx.wrote(&h)
	tx.emitGroup("CREATE", key, group, x.ID, x.Read, true)
	if isNew {
		tx.changed(key, EventStream, "xgroup-create")
	} else {
		tx.groupChanged(key, "xgroup-create")
	}
	return nil
}

// groupChanged counts and reports a change of a group. As in Redis, it does not break the watches
// of the key.
func (tx *Tx) groupChanged(key []byte, event string) {
	tx.dirty++
	tx.streamEvent(key, event)
}

// emitGroup emits XGROUP CREATE or SETID.
func (tx *Tx) emitGroup(sub string, key, group []byte, id StreamID, read int64, create bool) {
	if !tx.db.logging.Load() {
		return
	}
	args := [][]byte{[]byte(sub), key, group, idBytes(id)}
	if create {
		args = append(args, []byte("MKSTREAM"))
	}
	tx.emit("XGROUP", append(args, []byte("ENTRIESREAD"), tx.itoa(0, read))...)
}

// XGroupSetID sets the last id that a group has read. Errors: ErrWrongType, ErrNoGroup.
func (tx *Tx) XGroupSetID(key, group []byte, x XGroup) error {
	h, s, g, err := tx.group(key, group)
	if err != nil {
		return err
	}
	if x.Last {
		x.ID = s.Last
	}
	g.Last, g.Read = x.ID, x.Read
	tx.stamp(h.r)
	tx.emitGroup("SETID", key, group, x.ID, x.Read, false)
	tx.groupChanged(key, "xgroup-setid")
	return nil
}

// XGroupDestroy removes a group with all its consumers and their pending entries, and reports
// whether the group existed. Errors: ErrWrongType, ErrNoKey.
func (tx *Tx) XGroupDestroy(key, group []byte) (bool, error) {
	h, s, err := tx.stream(key)
	if err == nil && s == nil {
		err = ErrNoKey
	}
	if err != nil || !s.RemoveGroup(group) {
		return false, err
	}
	tx.wrote(&h)
	tx.emit("XGROUP", []byte("DESTROY"), key, group)
	tx.groupChanged(key, "xgroup-destroy")
	tx.Signal(key) // wakes the consumers that wait for this group: they get an error
	return true, nil
}

// XGroupCreateConsumer adds a consumer to a group and reports whether it is new.
// Errors: ErrWrongType, ErrNoGroup, ErrFull.
func (tx *Tx) XGroupCreateConsumer(key, group, name []byte) (bool, error) {
	h, _, g, err := tx.group(key, group)
	if err != nil {
		return false, err
	}
	if g.Consumer(name) != nil {
		return false, nil
	}
	_, err = tx.consumer(&h, key, g, name)
	return err == nil, err
}

// consumer returns a group's consumer, which it adds if it is missing, and records that it was seen now.
func (tx *Tx) consumer(h *hit, key []byte, g *stream.Group, name []byte) (*stream.Consumer, error) {
	if c := g.Consumer(name); c != nil {
		c.Seen = tx.ms
		return c, nil
	}
	c, err := g.AddConsumer(name, tx.ms)
	if err != nil {
		return nil, streamError(err)
	}
	tx.wrote(h)
	if tx.db.logging.Load() {
		tx.emit("XGROUP", []byte("CREATECONSUMER"), key, []byte(g.Name()), name)
	}
	tx.groupChanged(key, "xgroup-createconsumer")
	return c, nil
}

// XGroupDelConsumer removes a consumer and returns the number of its pending entries. Errors:
// ErrWrongType, ErrNoGroup. O(pending).
func (tx *Tx) XGroupDelConsumer(key, group, name []byte) (pending int, err error) {
	h, _, g, err := tx.group(key, group)
	if err != nil {
		return 0, err
	}
	c := g.Consumer(name)
	if c == nil {
		return 0, nil
	}
	pending = c.Pending()
	g.RemoveConsumer(c)
	tx.wrote(&h)
	tx.emit("XGROUP", []byte("DELCONSUMER"), key, group, name)
	tx.groupChanged(key, "xgroup-delconsumer")
	return pending, nil
}

// XAck acknowledges entries and returns how many of them were pending. Errors:
// ErrWrongType. O(log n) for each.
func (tx *Tx) XAck(key, group []byte, ids []StreamID) (acked int, err error) {
	h, _, g, err := tx.group(key, group)
	if err != nil {
		if err == ErrNoGroup {
			err = nil
		}
		return 0, err
	}
	var gone [][]byte
	for _, id := range ids {
		if !g.Remove(id) {
			continue
		}
		acked++
		if tx.db.logging.Load() {
			gone = append(gone, idBytes(id))
		}
	}
	if acked > 0 {
		tx.wrote(&h)
		tx.emitAck(key, group, gone)
		tx.dirty += acked
	}
	return acked, nil
}

// emitAck logs that entries of a group are no longer pending.
func (tx *Tx) emitAck(key, group []byte, ids [][]byte) {
	if tx.db.logging.Load() && len(ids) > 0 {
		tx.emitItems("XACK", key, append([][]byte{group}, ids...))
	}
}

// delivered collects the entries that a command has delivered. It logs them as XCLAIM commands, one
// for each run of entries with the same consumer, time and count.
type delivered struct {
	tx         *Tx
	key, group []byte
	g          *stream.Group
	same       stream.Pending
	ids        [][]byte
}

// add records the current state of a pending entry.
func (d *delivered) add(p stream.Pending) {
	if !d.tx.db.logging.Load() {
		return
	}
	if len(d.ids) > 0 && (d.same.Consumer != p.Consumer || d.same.Time != p.Time || d.same.Count != p.Count || len(d.ids) == 1024) {
		d.flush()
	}
	d.same = p
	d.ids = append(d.ids, idBytes(p.ID))
}

// flush logs the recorded entries.
func (d *delivered) flush() {
	if len(d.ids) == 0 {
		return
	}
	args := append([][]byte{d.group, []byte(d.same.Consumer.Name()), []byte("0")}, d.ids...)
	args = append(args, []byte("TIME"), d.tx.itoa(0, d.same.Time), []byte("RETRYCOUNT"), d.tx.itoa(1, int64(d.same.Count)),
		[]byte("FORCE"), []byte("JUSTID"), []byte("LASTID"), idBytes(d.g.Last))
	d.tx.emitItems("XCLAIM", d.key, args)
	d.ids = d.ids[:0]
}
