package engine

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/ebbdb/ebb/internal/delayq"
	"github.com/ebbdb/ebb/internal/rdb"
)

// The format of a delay queue in a DUMP payload. All numbers are uvarints, and each text follows its length:
//
//	version: 1, 2 of a queue that is paused or has schedules, or 3 of one that delivers to a stream
//	configuration: most deliveries, dead letters' key, most jobs
//	of version 2 and 3: the last ms of the pause or 0; schedules, their number, and each: flags, name, payload,
//	    every, expression, zone, from, until, late, expire, next, last, runs, skipped, too late
//	of version 3: the stream
//	jobs that left: dead, dropped, expired
//	jobs, their number, and each: priority and flags, deliveries, due, [expire],
//	    [token, until], id, payload; first those that wait, in their order, then
//	    those that are leased, by the ends of their leases
//	marks, their number, and each: deadline, key; in that order
//
// Equal queues give equal bytes.
const (
	queueVersion     = 1
	scheduledVersion = 2
	deliverVersion   = 3
)

const (
	dumpLeased  = 0x10
	dumpExpires = 0x20
	dumpOverlap = 0x10 // of a schedule
)

func queueModule() module { return module{name: "ebb-queue", dump: dumpQueue, restore: restoreQueue} }

func dumpQueue(tx *Tx, e *rdb.Encoder, h *hit) []byte {
	q := h.box().(queueBox).Queue
	paused := q.PausedUntil
	if tx.hiding() && !q.Paused(tx.ms) {
		paused = 0
	}
	sends := len(q.Deliver) > 0
	timed := paused != 0 || q.Schedules() > 0 || sends
	w := queueWriter{e: e, b: []byte{queueVersion}}
	switch {
	case sends:
		w.b[0] = deliverVersion
	case timed:
		w.b[0] = scheduledVersion
	}
	w.number(q.MaxDeliveries)
	w.text(q.DeadLetter)
	w.number(q.MaxLen)
	if timed {
		w.number(paused)
		w.number(int64(q.Schedules()))
		q.EachSchedule(w.schedule)
	}
	if sends {
		w.text(q.Deliver)
	}
	seen := tx.seenQueue(q)
	w.number(seen.Dead)
	w.number(seen.Dropped)
	w.number(seen.Expired)
	w.number(int64(seen.Delayed + seen.Ready + seen.Leased))
	if tx.hiding() {
		q.EachSettled(tx.ms, w.job)
	} else {
		q.Each(func(j Job) bool { w.job(j); return true })
	}
	marks := sortedMarks(q)
	if tx.hiding() {
		marks = slices.DeleteFunc(marks, func(m queueMark) bool { return m.deadline < tx.ms })
	}
	w.marks(marks)
	return w.b
}

// queueWriter writes the parts of a payload.
type queueWriter struct {
	e *rdb.Encoder
	b []byte // the bytes that e has not taken yet
}

func (w *queueWriter) number(n int64) { w.b = binary.AppendUvarint(w.b, uint64(n)) }

func (w *queueWriter) text(s []byte) {
	w.number(int64(len(s)))
	w.b = append(w.b, s...)
}

func (w *queueWriter) schedule(s *QueueSchedule) {
	flags := int64(s.Priority)
	if s.Overlap {
		flags |= dumpOverlap
	}
	w.number(flags)
	w.text(s.Name)
	w.text(s.Payload)
	w.number(s.Every)
	w.text([]byte(s.Cron))
	w.text([]byte(s.Zone))
	for _, n := range [...]int64{s.From, s.Until, s.Late, s.Expire, s.Next, s.Last, s.Runs, s.Skipped, s.TooLate} {
		w.number(n)
	}
	w.b = w.e.Spill(w.b)
}

func (w *queueWriter) job(j Job) {
	flags := int64(j.Priority)
	if j.Leased {
		flags |= dumpLeased
	}
	if j.Expire != 0 {
		flags |= dumpExpires
	}
	w.number(flags)
	w.number(j.Deliveries)
	w.number(j.Due)
	if j.Expire != 0 {
		w.number(j.Expire)
	}
	if j.Leased {
		w.number(j.Token)
		w.number(j.Until)
	}
	w.text(j.ID)
	w.text(j.Payload)
	w.b = w.e.Spill(w.b)
}

func (w *queueWriter) marks(marks []queueMark) {
	w.number(int64(len(marks)))
	for _, m := range marks {
		w.number(m.deadline)
		w.text(m.key)
		w.b = w.e.Spill(w.b)
	}
}

type queueMark struct {
	key      []byte
	deadline int64
}

// sortedMarks returns a queue's marks in the order of a payload.
func sortedMarks(q *delayq.Queue) (marks []queueMark) {
	q.EachMark(func(key []byte, deadline int64) { marks = append(marks, queueMark{key, deadline}) })
	slices.SortFunc(marks, func(a, b queueMark) int {
		if a.deadline != b.deadline {
			return int(a.deadline - b.deadline)
		}
		return bytes.Compare(a.key, b.key)
	})
	return marks
}

// queueReader reads bytes that it does not trust; bad is set when they are invalid.
type queueReader struct {
	b   []byte
	bad bool
}

// number reads a number from lo to hi.
func (r *queueReader) number(lo, hi int64) int64 {
	n, k := binary.Uvarint(r.b)
	if r.bad || k <= 0 || n > uint64(hi) || int64(n) < lo {
		r.bad = true
		return lo
	}
	r.b = r.b[k:]
	return int64(n)
}

// text reads a text.
func (r *queueReader) text() (s []byte) {
	n := r.number(0, int64(len(r.b)))
	if r.bad || n > int64(len(r.b)) {
		r.bad = true
		return nil
	}
	s, r.b = r.b[:n:n], r.b[n:]
	return s
}

func restoreQueue(tx *Tx, data []byte) (_ []byte, _ box, err error) {
	r := &queueReader{b: data}
	version := r.number(0, 255)
	if version < queueVersion || version > deliverVersion {
		return nil, nil, rdb.ErrFormat
	}
	q := tx.newQueue()
	q.MaxDeliveries = r.number(0, delayq.MaxDeliveries)
	q.DeadLetter = append([]byte(nil), r.text()...)
	q.MaxLen = r.number(0, 1<<62)
	if version >= scheduledVersion {
		q.PausedUntil = r.number(0, delayq.MaxTime)
		restoreSchedules(r, q)
	}
	if version >= deliverVersion {
		if q.Deliver = bytes.Clone(r.text()); len(q.Deliver) == 0 {
			r.bad = true
		}
	}
	q.Dead, q.Dropped, q.Expired = r.number(0, 1<<62), r.number(0, 1<<62), r.number(0, 1<<62)
	err = tx.restoreJobs(r, q)
	if err == nil {
		err = tx.restoreMarks(r, q)
	}
	if err == nil && (r.bad || len(r.b) > 0 || q.Empty(0)) {
		err = rdb.ErrFormat
	}
	if err != nil {
		discard(queueBox{q})
		return nil, nil, err
	}
	return nil, queueBox{q}, nil
}

// restoreSchedules reads the schedules of a queue. A schedule that would not be accepted by QueueSchedule
// makes the payload invalid, unless only its time zone is unknown here.
func restoreSchedules(r *queueReader, q *delayq.Queue) {
	for n := r.number(0, MaxSchedules); n > 0 && !r.bad; n-- {
		flags := r.number(0, 0x1f)
		s := &QueueSchedule{Name: slices.Clone(r.text()), Payload: slices.Clone(r.text())}
		s.Priority, s.Overlap = uint8(flags&0x0f), flags&dumpOverlap != 0
		s.Every = r.number(0, delayq.MaxTime)
		s.Cron, s.Zone = string(r.text()), string(r.text())
		s.From, s.Until, s.Late = r.number(0, delayq.MaxTime), r.number(0, delayq.MaxTime), r.number(0, delayq.MaxTime)
		s.Expire, s.Next, s.Last = r.number(0, delayq.MaxTime), r.number(1, delayq.MaxTime), r.number(0, delayq.MaxTime)
		s.Runs, s.Skipped, s.TooLate = r.number(0, 1<<62), r.number(0, 1<<62), r.number(0, 1<<62)
		r.bad = r.bad || s.Priority > MaxPriority || !s.Valid() || q.Schedule(s.Name) != nil || s.Load() != nil
		if !r.bad {
			q.SetSchedule(s)
		}
	}
}

func (tx *Tx) restoreJobs(r *queueReader, q *delayq.Queue) error {
	tokens := map[int64]bool{}
	for n := r.number(0, 1<<32); n > 0 && !r.bad; n-- {
		var j Job
		flags := r.number(0, 0x3f)
		j.Priority, j.Leased = uint8(flags&0x0f), flags&dumpLeased != 0
		j.Deliveries = r.number(0, delayq.MaxDeliveries)
		j.Due = r.number(0, delayq.MaxTime)
		if flags&dumpExpires != 0 {
			j.Expire = r.number(1, delayq.MaxTime)
		}
		if j.Leased {
			j.Token, j.Until = r.number(1, maxToken), r.number(1, delayq.MaxTime)
		}
		j.ID, j.Payload = r.text(), r.text()
		_, there := q.Find(j.ID)
		if r.bad || there || j.Priority > MaxPriority || j.Leased && tokens[j.Token] || !tx.foreignToken(j.Token) {
			return rdb.ErrFormat
		}
		if j.Leased {
			tokens[j.Token] = true
			tx.SawToken(j.Token)
		}
		if q.Add(&j, tx.ms) != nil {
			return ErrFull
		}
	}
	return nil
}

func (tx *Tx) restoreMarks(r *queueReader, q *delayq.Queue) error {
	for n := r.number(0, 1<<32); n > 0 && !r.bad; n-- {
		deadline := r.number(1, delayq.MaxTime)
		key := r.text()
		if r.bad || q.Marked(key, 0) {
			return rdb.ErrFormat
		}
		if q.Mark(key, deadline, 0) != nil {
			return ErrFull
		}
	}
	return nil
}
