package engine

import (
	"errors"

	"github.com/ebbdb/ebb/internal/delayq"
)

// ErrMove is the error of QueueMove for two keys that are the same, or in two hash slots.
var ErrMove = errors.New("a move needs two keys with the same hash tag")

// moveBatch is the number of ids in one effect of QueueMove.
const moveBatch = 1024

// KeepDue, as the delay of QueueMove, keeps the jobs' due instants.
const KeepDue = -1

// QueueMove moves waiting jobs from one delay queue to another, as new jobs with no deliveries, and returns
// their number. It creates a missing destination. ids selects the jobs; if it is nil, QueueMove takes the
// first count jobs in the order of delivery. Leased jobs stay, and so do jobs whose id the destination has. A
// job is due delay ms from now, or with KeepDue at its old due instant. O(log n) for each job. Errors:
// ErrWrongType, ErrMove; ErrQueueFull and ErrFull if not a single job could be moved.
func (tx *Tx) QueueMove(from, to []byte, ids [][]byte, count int, delay int64) (n int, err error) {
	if !sameTag(from, to) {
		return 0, ErrMove
	}
	// Both queues first settle their due items. That may change the other one, which may get dead letters.
	if _, _, err = tx.queue(to); err == nil {
		_, _, err = tx.queue(from)
	}
	if err != nil {
		return 0, err
	}
	h := tx.findPlainly(from)
	if h.r == nil {
		return 0, nil
	}
	q := h.box().(queueBox).Queue
	if ids == nil {
		ids = tx.firstJobs(q, count)
	}
	m := queueMove{tx: tx, from: from, to: to, delay: delay, dst: tx.findPlainly(to), unlogged: make([][]byte, 0, min(len(ids), moveBatch))}
	for _, id := range ids {
		if err = m.move(q, id); err != nil {
			break
		}
	}
	if len(m.unlogged) > 0 {
		m.log()
	}
	if m.target != nil {
		tx.settleQueue(&m.dst, to, m.target, "dqadd") // or removes a queue that was created for nothing
	}
	if m.moved == 0 {
		return 0, err
	}
	h = tx.findPlainly(from) // the destination may have moved the record
	tx.settleQueue(&h, from, q, "dqmove")
	tx.dirty += m.moved - 2
	return m.moved, nil
}

// queueMove is a call of QueueMove.
type queueMove struct {
	tx       *Tx
	from, to []byte
	delay    int64
	dst      hit
	target   *delayq.Queue // nil before the first job
	moved    int
	unlogged [][]byte // the ids of jobs that were moved since the last effect
}

// move moves a job, unless it is missing, leased or expired, or the destination has its id. Errors: ErrQueueFull, ErrFull.
func (m *queueMove) move(q *delayq.Queue, id []byte) error {
	ref, ok := q.Find(id)
	if !ok {
		return nil
	}
	tx, j := m.tx, q.Job(ref)
	if at := j.Expires(); j.Leased || at != 0 && tx.itemTime() > at {
		return nil
	}
	if m.target == nil {
		target, err := tx.moveTarget(&m.dst, m.to)
		if err != nil {
			return err
		}
		m.target = target
	}
	if _, there := m.target.Find(id); there {
		return nil
	}
	if tx.queueFull(m.target, 0) {
		return ErrQueueFull
	}
	j.Deliveries = 0
	if m.delay >= 0 {
		j.Due = tx.ms + min(m.delay, MaxDeadline)
	}
	if m.target.Add(&j, tx.ms) != nil {
		return ErrFull
	}
	q.Remove(ref)
	m.moved++
	if m.unlogged = append(m.unlogged, id); len(m.unlogged) == moveBatch {
		m.log()
	}
	return nil
}

// firstJobs returns the ids of the first count waiting jobs that have not expired.
func (tx *Tx) firstJobs(q *delayq.Queue, count int) (ids [][]byte) {
	q.Walk(tx.ms, delayq.Place{}, func(ref uint32) bool {
		j := q.Job(ref)
		if at := j.Expires(); at == 0 || tx.itemTime() <= at {
			ids = append(ids, append([]byte(nil), j.ID...))
		}
		return len(ids) < count
	})
	return ids
}

// moveTarget returns the queue that jobs are moved to, and creates a missing one.
func (tx *Tx) moveTarget(h *hit, key []byte) (*delayq.Queue, error) {
	if h.r != nil {
		return h.box().(queueBox).Queue, nil
	}
	q := tx.newQueue()
	return q, tx.storeQueue(h, key, q)
}

// log logs the jobs that were moved since the last effect.
func (m *queueMove) log() {
	ids, tx := m.unlogged, m.tx
	m.unlogged = ids[:0]
	if !tx.db.logging.Load() || tx.replay {
		return
	}
	args := append(make([][]byte, 0, len(ids)+6), m.from, m.to)
	if m.delay >= 0 {
		args = append(args, []byte("DELAY"), tx.itoa(0, m.delay))
	}
	args = append(args, []byte("IDS"), tx.itoa(1, int64(len(ids))))
	tx.emitQueue("DQ.MOVE", append(args, ids...)...)
}
