package engine

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"strconv"

	"github.com/ebbdb/ebb/internal/delayq"
)

// A delay queue is a box (internal/delayq). It holds jobs that a worker can take, with a lease,
// from a certain millisecond on.
//
//	           DQ.ADD              DQ.POP              DQ.ACK
//	             │    ┌─ delayed ──▶ ready ──▶ leased ──▶ done
//	             └────┤    ▲           │         │
//	                  └────┼───────────┤         ├─ DQ.NACK, the lease is over:
//	                       └───────────┼─────────┘  due again, or a dead letter
//	                                   └─ not taken in time: dropped
//
// A job is ready when now >= due; the engine does no work for that. A lease has ended, or a job has expired,
// when now is later than its last ms, as everywhere. lapseQueue handles these jobs and logs each step
// (DQ.STEP), because the result depends on the queue's configuration.
//
// Every command that changes a queue is Timed: its effect carries the instant, the ids and the
// tokens, so that a replay has the same queue after each effect.

// Job is a job of a delay queue. ID and Payload lie in the engine's memory and are valid during the
// call that receives them.
type Job = delayq.Job

// QueueConfig is the configuration of a delay queue. The zero QueueConfig sets no limits.
type QueueConfig = delayq.Config

// PausedForGood is the PausedUntil of a QueueConfig for a pause without an end.
const PausedForGood = delayq.MaxTime

// These are the limits of a job.
const (
	MaxPriority   = delayq.Priorities - 1
	MaxDeliveries = delayq.MaxDeliveries
)

// These are the errors of delay queues. A method that returns one of them has changed nothing.
var (
	// ErrQueueFull: the queue holds the greatest number of jobs that its configuration allows.
	ErrQueueFull = errors.New("the queue holds as many jobs as it may")
	// ErrDeadLetter: the dead-letter queue would not be in the queue's hash slot.
	ErrDeadLetter = errors.New("the dead-letter queue needs the hash tag of the queue, and another name")
	// ErrDeliver: the stream would not be in the queue's hash slot.
	ErrDeliver = errors.New("the stream needs the hash tag of the queue, and another name")
	// ErrDelivers: workers get no jobs from a queue that delivers to a stream.
	ErrDelivers = errors.New("the queue delivers to a stream")
)

// queueBox is a delay queue as a container. It has no small form.
type queueBox struct{ *delayq.Queue }

func (tx *Tx) newQueue() *delayq.Queue { return delayq.New(tx.db.chunks, tx.db.seed) }

// Clone implements box. It clones expired jobs too, as a replay of COPY does.
func (b queueBox) Clone(tx *Tx) (box, error) {
	c := tx.newQueue()
	c.Config, c.Totals = b.Config, b.Totals
	c.DeadLetter, c.Deliver = bytes.Clone(b.DeadLetter), bytes.Clone(b.Deliver)
	var err error
	b.Each(func(j Job) bool {
		err = c.Add(&j, tx.ms)
		return err == nil
	})
	b.EachMark(func(key []byte, deadline int64) {
		if err == nil {
			err = c.Mark(key, deadline, 0)
		}
	})
	b.EachSchedule(func(s *QueueSchedule) { c.SetSchedule(s) })
	if err != nil {
		discard(queueBox{c})
		return nil, ErrFull
	}
	return queueBox{c}, nil
}

// queue looks a delay queue up for a write; q is nil if there is no such key. Errors: ErrWrongType.
func (tx *Tx) queue(key []byte) (h hit, q *delayq.Queue, err error) {
	h, err = tx.leased(key, DelayQueue)
	if err == nil && h.r != nil {
		q = h.box().(queueBox).Queue
	}
	return h, q, err
}

// readQueue is queue for a read.
func (tx *Tx) readQueue(key []byte) (q *delayq.Queue, err error) {
	h, err := tx.open(key, DelayQueue)
	if err == nil && h.r != nil {
		q = h.box().(queueBox).Queue
	}
	return q, err
}

// storeQueue stores a new queue under its key. Errors: ErrFull, and q is freed.
func (tx *Tx) storeQueue(h *hit, key []byte, q *delayq.Queue) error {
	if err := tx.enlarge(h, key, DelayQueue, queueBox{q}); err != nil {
		discard(queueBox{q})
		return err
	}
	return nil
}

// settleQueue finishes a change of a queue, which has been logged: it delivers the due jobs to the queue's
// stream, counts the queue's bytes, schedules its next deadline and sends the event. It deletes the key of an
// empty queue.
func (tx *Tx) settleQueue(h *hit, key []byte, q *delayq.Queue, event string) {
	if len(q.Deliver) > 0 && tx.deliverJobs(h, key, queueBox{q}, lapseMet) > 0 {
		defer tx.changed(key, EventModule, "dqdeliver")
	}
	if q.Empty(tx.ms) {
		tx.drop(h)
		tx.changed(key, EventModule, event)
		tx.gone(key)
		return
	}
	tx.wrote(h)
	tx.changed(key, EventModule, event)
	tx.date(h)
}

// emitQueue logs a command with the transaction's instant appended.
func (tx *Tx) emitQueue(name string, args ...[]byte) {
	if !tx.db.logging.Load() || tx.replay {
		return
	}
	tx.fx.begin(tx.dbi, name, len(args)+2)
	for _, a := range args {
		tx.fx.b = appendBulk(tx.fx.b, a)
	}
	tx.fx.b = appendBulk(tx.fx.b, []byte("NOW"))
	tx.fx.b = appendBulk(tx.fx.b, tx.itoa(3, tx.now))
}

// QueueAdd describes a job to add to a delay queue.
type QueueAdd struct {
	ID       []byte // nil: QueueAdd makes an id from a new token
	Payload  []byte
	Due      int64 // ms since 1970; may be in the past
	Expire   int64 // ms after Due; the queue then drops the job if no worker took it; 0: never
	Priority uint8 // up to MaxPriority; of the due jobs, a worker gets the highest first
	MaxLen   int64 // the queue refuses the job if it already holds MaxLen jobs; 0: the limit of the queue
	// Unique is the time in ms during which the queue ignores further jobs with the same id, or,
	// without an id, with the same payload; 0: none.
	Unique int64
	// Replace replaces a waiting job with the same id, whatever Unique says. If that job is leased, it stays,
	// and the new one is not added.
	Replace bool
	// Token is set in a replay: QueueAdd makes the id from it. If it is 0, QueueAdd takes a new
	// token.
	Token int64
}

// mark returns the key by which the queue recognises a job that it must not add again: its id, or a digest of
// its payload.
func (a *QueueAdd) mark() []byte {
	if a.ID != nil {
		return append([]byte{'i'}, a.ID...)
	}
	sum := sha256.Sum256(a.Payload)
	return append([]byte{'p'}, sum[:16]...)
}

// QueueAdd adds a job to a delay queue and returns its id, valid until the next call. It creates a missing
// queue. added is false if there is a job with the id that Replace does not replace, or if a job with the
// same mark was added less than Unique ago. O(log n). Errors: ErrWrongType, ErrQueueFull, ErrFull.
func (tx *Tx) QueueAdd(key []byte, a *QueueAdd) (id []byte, added bool, err error) {
	h, q, err := tx.queue(key)
	if err != nil {
		return nil, false, err
	}
	var mark []byte
	if a.Unique > 0 {
		mark = a.mark()
	}
	created := q == nil
	var old *Job
	var ref uint32
	there := false
	if !created && a.ID != nil {
		ref, there = q.Find(a.ID)
	}
	switch {
	case created:
		q = tx.newQueue()
	case there && a.Replace:
		if q.Job(ref).Leased {
			return nil, false, nil
		}
		old = takeOut(q, ref)
	case there || tx.suppressed(q, mark):
		return nil, false, nil
	case tx.queueFull(q, a.MaxLen):
		return nil, false, ErrQueueFull
	}
	j := Job{ID: a.ID, Payload: a.Payload, Due: a.Due, Expire: a.Expire, Priority: a.Priority}
	token := a.Token
	if a.ID == nil {
		j.ID, token = tx.madeID(q, token)
	}
	if err = tx.putJob(q, &j, mark, a.Unique); err == nil && created {
		err = tx.storeQueue(&h, key, q)
	} else if err != nil && created {
		discard(queueBox{q})
	}
	if err != nil {
		if old != nil {
			_ = q.Add(old, tx.ms) // it fits into the memory that it had
		}
		return nil, false, ErrFull
	}
	tx.logQueueAdd(key, a, token, old != nil)
	h.sh.stats.QueueAdded++
	tx.settleQueue(&h, key, q, "dqadd")
	return j.ID, true, nil
}

// takeOut removes a job and returns a copy.
func takeOut(q *delayq.Queue, ref uint32) *Job {
	j := q.Job(ref)
	j.ID, j.Payload = bytes.Clone(j.ID), bytes.Clone(j.Payload)
	q.Remove(ref)
	return &j
}

// suppressed reports whether the queue must not add a job, because it has an unexpired mark of it. In a replay it returns false.
func (tx *Tx) suppressed(q *delayq.Queue, mark []byte) bool {
	return mark != nil && !tx.replay && q.Marked(mark, tx.ms)
}

// queueFull reports whether the queue holds limit jobs, or, if limit is 0, the most that its configuration
// allows.
func (tx *Tx) queueFull(q *delayq.Queue, limit int64) bool {
	if limit == 0 {
		limit = q.MaxLen
	}
	return limit > 0 && !tx.replay && int64(q.Len()) >= limit
}

// madeID makes an id from a token, or from a new token if token is 0. The id is valid until the
// next call.
func (tx *Tx) madeID(q *delayq.Queue, token int64) ([]byte, int64) {
	for {
		if token == 0 {
			token = tx.NextToken()
		} else {
			tx.SawToken(token)
		}
		tx.ebuf = strconv.AppendInt(tx.ebuf[:0], token, 10)
		if !q.Passed(token) {
			return tx.ebuf, token
		}
		if _, there := q.Find(tx.ebuf); !there {
			return tx.ebuf, token
		}
		token = 0
	}
}

// putJob adds a job and its mark, or fails and adds neither.
func (tx *Tx) putJob(q *delayq.Queue, j *Job, mark []byte, unique int64) error {
	if err := q.Add(j, tx.ms); err != nil {
		return err
	}
	if mark == nil {
		return nil
	}
	err := q.Mark(mark, tx.ms+min(unique, MaxDeadline), tx.itemTime())
	if err != nil {
		ref, _ := q.Find(j.ID)
		q.Remove(ref)
	}
	return err
}

// logQueueAdd logs an addition. The replacement of a job is a single effect, because a DQ.CANCEL of the only
// job would remove the queue with its counts and its deadline.
func (tx *Tx) logQueueAdd(key []byte, a *QueueAdd, token int64, replaced bool) {
	if !tx.db.logging.Load() || tx.replay {
		return
	}
	number := func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
	id := a.ID
	if id == nil {
		id = []byte("*")
	}
	args := append(make([][]byte, 0, 16), key, id, a.Payload, []byte("AT"), number(a.Due))
	if a.Expire != 0 {
		args = append(args, []byte("EXPIRE"), number(a.Expire))
	}
	if a.Priority != 0 {
		args = append(args, []byte("PRIORITY"), number(int64(a.Priority)))
	}
	if a.Unique != 0 {
		args = append(args, []byte("UNIQUE"), number(a.Unique))
	}
	if a.ID == nil {
		args = append(args, []byte("TOKEN"), number(token))
	}
	if replaced {
		args = append(args, []byte("REPLACE"))
	}
	tx.emitQueue("DQ.ADD", args...)
}

// QueueConfigure sets the configuration of a queue, and creates a missing queue. It removes a queue that has
// no jobs and gets the zero configuration. If the configuration is unchanged, it does nothing. O(1). Errors:
// ErrWrongType, ErrDeadLetter, ErrDeliver, ErrFull.
func (tx *Tx) QueueConfigure(key []byte, c QueueConfig) error {
	h, q, err := tx.queue(key)
	if err != nil {
		return err
	}
	if len(c.DeadLetter) > 0 && !sameTag(key, c.DeadLetter) {
		return ErrDeadLetter
	}
	if len(c.Deliver) > 0 && !sameTag(key, c.Deliver) {
		return ErrDeliver
	}
	if q == nil {
		if c.IsZero(tx.ms) {
			return nil
		}
		q = tx.newQueue()
		if err := tx.storeQueue(&h, key, q); err != nil {
			return err
		}
	}
	c.DeadLetter, c.Deliver = bytes.Clone(c.DeadLetter), bytes.Clone(c.Deliver)
	args := [][]byte{key, []byte("MAXDELIVERIES"), tx.itoa(0, c.MaxDeliveries), []byte("MAXLEN"), tx.itoa(1, c.MaxLen)}
	if string(c.DeadLetter) != string(q.Config.DeadLetter) {
		args = append(args, []byte("DEADLETTER"), c.DeadLetter)
	}
	if string(c.Deliver) != string(q.Config.Deliver) {
		args = append(args, []byte("DELIVER"), c.Deliver)
	}
	if !c.Paused(tx.ms) {
		c.PausedUntil = 0
	}
	switch {
	case c.PausedUntil == q.PausedUntil:
	case c.PausedUntil == 0:
		args = append(args, []byte("PAUSED"), []byte("no"))
	case c.PausedUntil == PausedForGood:
		args = append(args, []byte("PAUSED"), []byte("yes"))
	default:
		args = append(args, []byte("PAUSED"), tx.itoa(2, c.PausedUntil-tx.ms))
	}
	if len(args) == 5 && c.MaxDeliveries == q.MaxDeliveries && c.MaxLen == q.MaxLen && !q.Empty(tx.ms) {
		return nil
	}
	q.Config = c
	h.sp.deliversTo(handleOf(h.r.inlineValue()), c.Deliver)
	tx.emitQueue("DQ.CONFIG", args...)
	tx.settleQueue(&h, key, q, "dqconfig")
	return nil
}

// sameTag reports whether another key can hold the dead letters of a key: it must differ from the key, and be
// in the same hash slot.
func sameTag(key, other []byte) bool {
	return string(hashTag(key)) == string(hashTag(other)) && string(key) != string(other)
}
