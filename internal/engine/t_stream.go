package engine

import (
	"errors"

	"github.com/ebbdb/ebb/internal/stream"
)

// StreamID is the id of a stream's entry.
type StreamID = stream.ID

// MaxStreamID is the largest id.
var MaxStreamID = stream.MaxID

// AppendStreamID appends the usual form of an id: ms-seq.
func AppendStreamID(dst []byte, id StreamID) []byte { return stream.AppendID(dst, id) }

// StreamEntry is an entry in the engine's memory. It is valid during the call that receives it.
type StreamEntry = stream.Entry

// StreamTrim selects the entries to remove from the start of a stream.
type StreamTrim = stream.Trim

// These are the errors of streams. A method that returns one of them has changed nothing.
var (
	// ErrStreamOrder: the id is not greater than the stream's last id.
	ErrStreamOrder = errors.New("the id is equal or smaller than the stream's last one")
	// ErrStreamExhausted: the last possible id has been used.
	ErrStreamExhausted = errors.New("the stream has exhausted the last possible id")
	// ErrNoGroup: there is no such key, or no such consumer group.
	ErrNoGroup = errors.New("no such consumer group")
	// ErrGroupExists: there is a consumer group of this name.
	ErrGroupExists = errors.New("the consumer group exists already")
	// ErrStreamBehind: the id is smaller than that of the last entry.
	ErrStreamBehind = errors.New("the id is smaller than the id of the last entry")
	// ErrStreamDeleted: the id is smaller than that of a deleted entry.
	ErrStreamDeleted = errors.New("the id is smaller than the largest id of a deleted entry")
	// ErrStreamAdded: the stream has more entries than XSetID.Added.
	ErrStreamAdded = errors.New("the stream has more entries than the given number of added entries")
)

// streamBox is a stream as a container. It has no small form.
type streamBox struct{ *stream.Stream }

// Free implements box.
func (s streamBox) Free(budget int) (done bool) { return s.FreeAll(budget) < budget }

// Wasteful implements box. It is false because a stream compacts itself.
func (s streamBox) Wasteful() bool { return false }

// Compact implements box.
func (s streamBox) Compact(int) int { return 0 }

// Clone implements box.
func (s streamBox) Clone(*Tx) (box, error) {
	c, err := s.Stream.Clone()
	if err != nil {
		return nil, ErrFull
	}
	return streamBox{c}, nil
}

func (tx *Tx) newStream() streamBox { return streamBox{stream.New(tx.db.chunks)} }

// stream looks a stream up for a write; s is nil if there is no such key. Errors: ErrWrongType.
func (tx *Tx) stream(key []byte) (h hit, s *stream.Stream, err error) {
	h, err = tx.container(key, Stream)
	if err == nil && h.r != nil {
		s = h.box().(streamBox).Stream
	}
	return h, s, err
}

// readStream is stream for a read.
func (tx *Tx) readStream(key []byte) (s *stream.Stream, err error) {
	h, err := tx.open(key, Stream)
	if err == nil && h.r != nil {
		s = h.box().(streamBox).Stream
	}
	return s, err
}

// streamEvent sends an event of a command that sends more than one.
func (tx *Tx) streamEvent(key []byte, event string) {
	if tx.db.notify.Load()&EventStream != 0 {
		tx.event(EventStream, event, key)
	}
}

// idBytes formats an id for effects.
func idBytes(id StreamID) []byte { return stream.AppendID(make([]byte, 0, 24), id) }

// XAdd describes an entry to add to a stream.
type XAdd struct {
	ID     StreamID
	Auto   bool     // the id is the time, or the first one after the last id if that is later
	Seq    bool     // the caller gives ID.Ms, and the stream takes the next sequence number
	NoNew  bool     // do not create a missing key
	Pairs  [][]byte // field names and values in turn; at least one pair
	Trim   bool     // trim the stream after the addition, as follows:
	Bounds StreamTrim
}

// XAdd adds an entry to a stream and returns its id. It creates a missing stream, unless NoNew is
// set; then ok is false. O(entry), and O(removed / 100) for the trimming. Errors: ErrWrongType,
// ErrStreamOrder, ErrStreamExhausted, ErrFull.
func (tx *Tx) XAdd(key []byte, a *XAdd) (id StreamID, ok bool, err error) {
	h, s, err := tx.stream(key)
	if err != nil || s == nil && a.NoNew {
		return id, false, err
	}
	b := streamBox{s}
	if s == nil {
		b = tx.newStream()
	}
	if id, err = tx.nextStreamID(b.Stream, a); err != nil {
		return id, false, err
	}
	l := tx.db.layout.Load()
	if err := b.Append(id, a.Pairs, stream.Node{Bytes: l.StreamBytes, Entries: l.StreamEntries}); err != nil {
		return id, false, streamError(err)
	}
	trimmed := 0
	if a.Trim {
		trimmed = b.Trim(a.Bounds)
	}
	if s == nil {
		if err := tx.enlarge(&h, key, Stream, b); err != nil {
			discard(b)
			return id, false, err
		}
	} else {
		tx.wrote(&h)
	}
	if tx.db.logging.Load() {
		tx.emitItems("XADD", key, append([][]byte{idBytes(id)}, a.Pairs...))
	}
	tx.changed(key, EventStream, "xadd")
	if trimmed > 0 {
		tx.emitTrim(key, b.Stream)
		tx.streamEvent(key, "xtrim")
	}
	return id, true, nil
}

// streamError converts an error of package stream to the engine's error.
func streamError(err error) error {
	switch err {
	case stream.ErrNoMemory, stream.ErrConsumers:
		return ErrFull
	case stream.ErrOrder:
		return ErrStreamOrder
	}
	return err
}

// nextStreamID chooses the id of an entry.
func (tx *Tx) nextStreamID(s *stream.Stream, a *XAdd) (id StreamID, err error) {
	switch {
	case s.Last == MaxStreamID:
		return id, ErrStreamExhausted
	case a.Auto:
		if ms := uint64(tx.ms); ms > s.Last.Ms {
			return StreamID{Ms: ms}, nil
		}
		id, _ = s.Last.Next()
		return id, nil
	case a.Seq && a.ID.Ms == s.Last.Ms:
		if s.Last.Seq == MaxStreamID.Seq {
			return id, ErrStreamOrder
		}
		return StreamID{Ms: a.ID.Ms, Seq: s.Last.Seq + 1}, nil
	case a.Seq:
		id = StreamID{Ms: a.ID.Ms}
	default:
		id = a.ID
	}
	if !s.Last.Less(id) {
		return id, ErrStreamOrder
	}
	return id, nil
}

// emitTrim logs the result of a trimming: an XTRIM to the present length.
func (tx *Tx) emitTrim(key []byte, s *stream.Stream) {
	if tx.db.logging.Load() {
		tx.emit("XTRIM", key, []byte("MAXLEN"), []byte("="), tx.itoa(0, int64(s.Len())))
	}
}

// XTrim removes entries from the start of a stream and returns their number. Errors: ErrWrongType.
// O(removed / 100).
func (tx *Tx) XTrim(key []byte, t StreamTrim) (removed int, err error) {
	h, s, err := tx.stream(key)
	if s == nil {
		return 0, err
	}
	if removed = s.Trim(t); removed == 0 {
		return 0, nil
	}
	tx.wrote(&h)
	tx.emitTrim(key, s)
	tx.changed(key, EventStream, "xtrim")
	tx.dirty += removed - 1
	return removed, nil
}

// XDel removes entries and returns how many of them existed. It keeps a stream that becomes empty.
// Errors: ErrWrongType. O(log n) for each.
func (tx *Tx) XDel(key []byte, ids []StreamID) (removed int, err error) {
	h, s, err := tx.stream(key)
	if s == nil {
		return 0, err
	}
	var gone [][]byte
	for _, id := range ids {
		if !s.Delete(id) {
			continue
		}
		removed++
		if tx.db.logging.Load() {
			gone = append(gone, idBytes(id))
		}
	}
	if removed > 0 {
		tx.wrote(&h)
		tx.emitItems("XDEL", key, gone)
		tx.changed(key, EventStream, "xdel")
		tx.dirty += removed - 1
	}
	return removed, nil
}

// XLen returns the number of entries. Errors: ErrWrongType. O(1).
func (tx *Tx) XLen(key []byte) (int, error) {
	s, err := tx.readStream(key)
	if s == nil {
		return 0, err
	}
	return s.Len(), nil
}

// XSpan estimates the number of entries in a range of ids, and so the cost of a walk over it. It
// does not count as an access, nor as a hit or a miss. O(length / 25,000).
func (tx *Tx) XSpan(key []byte, first, last StreamID) int {
	_, s, err := tx.stream(key)
	if s == nil || err != nil {
		return 0
	}
	n := s.Behind(first)
	if last != MaxStreamID {
		n -= max(s.Behind(last)-256, 0)
	}
	return max(n, 0)
}

// XAhead does the work of XSpan for the entries that a group has not read yet, if isNew is set, or for those that
// are pending in it.
func (tx *Tx) XAhead(key, group []byte, isNew bool) int {
	_, s, g, err := tx.group(key, group)
	switch {
	case err != nil:
		return 0
	case isNew:
		return s.Behind(g.Last)
	}
	return g.Pending()
}

// XSetID describes a change of the metadata of a stream.
type XSetID struct {
	Last       StreamID
	Added      int64    // the number of entries ever added; -1: unchanged
	MaxDeleted StreamID // 0-0: unchanged
}

// XSetID sets a stream's last id and metadata. Errors: ErrWrongType, ErrNoKey, ErrStreamDeleted,
// ErrStreamBehind, ErrStreamAdded.
func (tx *Tx) XSetID(key []byte, x XSetID) error {
	h, s, err := tx.stream(key)
	switch {
	case err != nil:
		return err
	case s == nil:
		return ErrNoKey
	case x.Last.Less(s.MaxDeleted):
		return ErrStreamDeleted
	case s.Len() > 0 && x.Last.Less(s.LastEntry()):
		return ErrStreamBehind
	case s.Len() > 0 && x.Added != -1 && int64(s.Len()) > x.Added:
		return ErrStreamAdded
	}
	s.Last = x.Last
	if x.Added != -1 {
		s.Added = uint64(x.Added)
	}
	if !x.MaxDeleted.IsZero() {
		s.MaxDeleted = x.MaxDeleted
	}
	tx.wrote(&h)
	if tx.db.logging.Load() {
		tx.emit("XSETID", key, idBytes(s.Last), []byte("ENTRIESADDED"), tx.itoa(0, int64(s.Added)),
			[]byte("MAXDELETEDID"), idBytes(s.MaxDeleted))
	}
	tx.changed(key, EventStream, "xsetid")
	return nil
}
