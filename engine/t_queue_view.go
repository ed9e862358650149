package engine

import "github.com/ebbdb/ebb/internal/delayq"

// QueuePeek visits up to count waiting jobs in the order of their delivery: the due ones
// by priority and instant, then the others by instant. It changes nothing. O(log n +
// count). Errors: ErrWrongType.
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
	Delayed, Ready, Leased int   // jobs
	Unique                 int   // ids and payloads that are not to be added again for now
	Oldest                 int64 // when the job became due that has been ready for longest; 0: none is
	Next                   int64 // when the next one falls due; 0: none does
	Dead, Dropped, Expired int64 // jobs that left: to the dead letters, without any, not taken in time
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

// seenQueue is QueueInfo for a queue.
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

// settledInfo corrects the figures of a queue on a replica, which does not settle due
// jobs. It does not follow dead letters: on a replica they come from the master.
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

// QueueLen returns the number of jobs in a delay queue, whatever their state: 0 if
// there is none. It is no access. O(1). Errors: ErrWrongType.
func (tx *Tx) QueueLen(key []byte) (int, error) {
	h, err := tx.container(key, DelayQueue)
	if err != nil || h.r == nil {
		return 0, err
	}
	return h.box().(queueBox).Len(), nil
}
