package engine

import "github.com/ebbdb/ebb/internal/delayq"

// QueuePeek visits up to count jobs that are not leased, in the order of their delivery: the due
// ones by priority and instant, then the others by instant. It leases nothing. O(log n + count).
// Errors: ErrWrongType.
func (tx *Tx) QueuePeek(key []byte, count int, visit func(Job)) error {
	q, err := tx.readQueue(key)
	if err != nil || q == nil {
		return err
	}
	if tx.hiding() {
		q.WalkSettled(tx.ms, func(j Job) bool {
			visit(j)
			count--
			return count > 0
		})
		return nil
	}
	q.Walk(tx.ms, func(ref uint32) bool {
		j := q.Job(ref)
		if at := j.Expires(); at != 0 && tx.itemTime() > at {
			return true
		}
		if count--; count >= 0 {
			visit(j)
		}
		return count > 0
	})
	return nil
}

// QueueInfo describes a delay queue.
type QueueInfo struct {
	QueueConfig
	Delayed, Ready, Leased int   // jobs by state
	Unique                 int   // marks: ids and payloads that the queue does not add again for now
	Oldest                 int64 // the earliest due instant of the ready jobs, ms since 1970; 0: no job is ready
	Next                   int64 // the next due instant of the delayed jobs, ms since 1970; 0: there are none
	Dead, Dropped, Expired int64 // jobs that were moved to the dead letters, dropped without them, or not taken in time
}

// QueueInfo describes a delay queue; ok is false if there is none. O(log n).
// Errors: ErrWrongType.
func (tx *Tx) QueueInfo(key []byte) (i QueueInfo, ok bool, err error) {
	q, err := tx.readQueue(key)
	if err != nil || q == nil {
		return i, false, err
	}
	return tx.seenQueue(q), true, nil
}

// seenQueue returns the QueueInfo of a queue as a read sees it.
func (tx *Tx) seenQueue(q *delayq.Queue) (i QueueInfo) {
	i.QueueConfig = q.Config
	i.Ready, i.Leased, i.Unique = q.Ready(tx.ms), q.Leased(), q.Marks(tx.ms)
	i.Delayed = q.Len() - i.Leased - i.Ready
	i.Oldest, i.Next = q.Oldest(tx.ms), q.Coming(tx.ms)
	i.Dead, i.Dropped, i.Expired = q.Dead, q.Dropped, q.Totals.Expired
	if tx.hiding() {
		tx.settledInfo(q, &i)
	}
	return i
}

// settledInfo corrects the figures of a queue on a replica, which leaves due jobs to the master. It
// does not count new dead letters, because on a replica they come from the master.
func (tx *Tx) settledInfo(q *delayq.Queue, i *QueueInfo) {
	i.Oldest = q.OldestSettled(tx.ms)
	q.Unsettled(tx.ms, func(_, was Job, f delayq.Fate) {
		if was.Leased {
			i.Leased--
		} else {
			i.Ready--
		}
		switch {
		case f == delayq.Again:
			i.Ready++
		case f == delayq.Expired:
			i.Expired++
		case len(q.DeadLetter) > 0:
			i.Dead++
		default:
			i.Dropped++
		}
	})
}

// QueueLen returns the number of jobs in a delay queue, whatever their state; 0 if there is no
// queue. It does not count as an access. O(1). Errors: ErrWrongType.
func (tx *Tx) QueueLen(key []byte) (int, error) {
	h, err := tx.container(key, DelayQueue)
	if err != nil || h.r == nil {
		return 0, err
	}
	return h.box().(queueBox).Len(), nil
}
