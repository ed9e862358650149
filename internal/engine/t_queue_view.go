package engine

import (
	"bytes"
	"errors"

	"github.com/ebbdb/ebb/internal/delayq"
)

// JobState selects jobs of a delay queue by their state.
type JobState uint8

// These are the states that QueuePeek selects by. JobsWaiting, the zero value, are the ready and the delayed jobs.
const (
	JobsWaiting JobState = iota
	JobsReady
	JobsDelayed
	JobsLeased
	JobsAll
)

// ErrNoJob is the error of QueuePeek for a page that begins behind a job that the queue does not have.
var ErrNoJob = errors.New("the queue has no job with the id")

// JobPage selects jobs of a delay queue.
type JobPage struct {
	State JobState
	After []byte // the id of the job behind which the page begins; nil: the page begins with the first job
	Count int    // the greatest number of jobs
}

// QueuePeek visits jobs: the ready ones in the order of their delivery, by priority and instant, then the delayed
// ones by instant, then the leased ones by the end of their leases. It leases nothing, and visits no job that has
// expired or whose lease is over. O(log n + Count); leased jobs also cost O(1) for each waiting job that expires
// before their leases end, and a replica skips the jobs before After one by one. Errors: ErrWrongType, ErrNoJob.
func (tx *Tx) QueuePeek(key []byte, p JobPage, visit func(Job)) error {
	q, err := tx.readQueue(key)
	if err != nil || q == nil {
		return err
	}
	var from delayq.Place
	if p.After != nil {
		ref, ok := q.Find(p.After)
		if !ok {
			return ErrNoJob
		}
		from = q.Behind(ref)
	}
	count := p.Count
	show := func(j Job) bool {
		if count--; count >= 0 {
			visit(j)
		}
		return count > 0
	}
	if tx.hiding() {
		tx.peekSettled(q, p, show)
		return nil
	}
	waiting := func(ref uint32) bool {
		j := q.Job(ref)
		if at := j.Expires(); at != 0 && tx.itemTime() > at {
			return true
		}
		if p.State == JobsReady && j.Due > tx.ms {
			return false
		}
		return show(j)
	}
	switch p.State {
	case JobsLeased:
	case JobsDelayed:
		q.WalkDelayed(tx.ms, from, waiting)
	default:
		q.Walk(tx.ms, from, waiting)
	}
	if (p.State == JobsLeased || p.State == JobsAll) && count > 0 {
		q.WalkLeased(from, func(ref uint32) bool {
			j := q.Job(ref)
			return tx.itemTime() > j.Until || show(j)
		})
	}
	return nil
}

// peekSettled does the work of QueuePeek on a replica, which leaves due jobs to the master.
func (tx *Tx) peekSettled(q *delayq.Queue, p JobPage, show func(Job) bool) {
	skipping, more := p.After != nil, true
	next := func(j Job) bool {
		if skipping {
			skipping = string(j.ID) != string(p.After)
			return true
		}
		state := JobsReady
		if j.Leased {
			state = JobsLeased
		} else if j.Due > tx.ms {
			state = JobsDelayed
		}
		if p.State == state || p.State == JobsAll || p.State == JobsWaiting && state != JobsLeased {
			more = show(j)
		}
		return more
	}
	q.WalkSettled(tx.ms, next)
	if more && (p.State == JobsLeased || p.State == JobsAll) {
		q.WalkLeased(delayq.Place{}, func(ref uint32) bool {
			j := q.Job(ref)
			return tx.ms > j.Until || next(j)
		})
	}
}

// QueueGet returns the job with an id, whatever its state. A job whose lease is over waits again; ok is false for a
// job that has expired, or that the queue is about to give up. O(1). Errors: ErrWrongType.
func (tx *Tx) QueueGet(key, id []byte) (j Job, ok bool, err error) {
	q, err := tx.readQueue(key)
	if err != nil || q == nil {
		return j, false, err
	}
	ref, ok := q.Find(id)
	if !ok {
		return j, false, nil
	}
	j = q.Job(ref)
	fate := q.Fate(&j, tx.itemTime())
	return j, fate <= delayq.Again, nil
}

// QueueInfo describes a delay queue.
type QueueInfo struct {
	QueueConfig
	Suspended              string // the reason why the stream of Deliver takes no jobs now; "": it does
	Delayed, Ready, Leased int    // jobs by state
	Unique                 int    // marks: ids and payloads that the queue does not add again for now
	Oldest                 int64  // the earliest due instant of the ready jobs, ms since 1970; 0: no job is ready
	Next                   int64  // the next due instant of the delayed jobs, ms since 1970; 0: there are none
	Schedules              int    // rules that add jobs
	NextSchedule           int64  // the time of their next occurrence, ms since 1970; 0: there is no schedule
	Dead, Dropped, Expired int64  // jobs that were moved to the dead letters, dropped without them, or not taken in time
}

// QueueInfo describes a delay queue; ok is false if there is none. O(log n).
// Errors: ErrWrongType.
func (tx *Tx) QueueInfo(key []byte) (i QueueInfo, ok bool, err error) {
	q, err := tx.readQueue(key)
	if err != nil || q == nil {
		return i, false, err
	}
	if i = tx.seenQueue(q); len(i.Deliver) > 0 {
		i.Deliver = bytes.Clone(i.Deliver)
		i.Suspended = tx.streamTrouble(key, i.Deliver)
	}
	return i, true, nil
}

// seenQueue returns the QueueInfo of a queue for a read.
func (tx *Tx) seenQueue(q *delayq.Queue) (i QueueInfo) {
	if i.QueueConfig = q.Config; !q.Paused(tx.ms) {
		i.PausedUntil = 0
	}
	i.Ready, i.Leased, i.Unique = q.Ready(tx.ms), q.Leased(), q.Marks(tx.ms)
	i.Delayed = q.Len() - i.Leased - i.Ready
	i.Oldest, i.Next = q.Oldest(tx.ms), q.Coming(tx.ms)
	if i.Schedules = q.Schedules(); i.Schedules > 0 {
		i.NextSchedule = q.NextSchedule().Next
	}
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
