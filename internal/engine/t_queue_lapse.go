package engine

import (
	"strconv"

	"github.com/ebbdb/ebb/internal/delayq"
)

// This file handles the due jobs and marks of a delay queue. The log has the following effects for
// them:
//
//	DQ.STEP key TAKE id token until NOW us    a job was leased
//	DQ.STEP key BACK id token NOW us          and did not reach the consumer
//	DQ.STEP key LAPSE id NOW us               its lease was over, or it had expired
//	DQ.STEP key FORGET deadline NOW us        marks were over, up to that deadline
//	DQ.STEP key RESUME NOW us                 the time of a pause was over
//	DQ.STEP key DELIVER id NOW us             a job has become an entry of a stream, see t_queue_deliver.go
//	DQ.STEP key TICK name due next ... NOW us a schedule was due, see t_queue_schedule.go
//
// The instant is the one at which the engine noticed the end. A job whose lease has ended is due from the ms
// after the lease, regardless of that instant.

// lapseQueue handles the due items of a queue: jobs whose leases have ended, expired jobs, marks and
// schedules, and the deliveries to a stream. It handles up to about budget of each. It wakes the clients that
// wait for jobs that have become due.
func (tx *Tx) lapseQueue(h *hit, key []byte, budget int) {
	q := h.box().(queueBox).Queue
	var seen [lapsedKinds]int
	for n := 0; n < budget; n++ {
		ref, ok := q.LapseNext(tx.ms)
		if !ok {
			break
		}
		what := tx.lapseJob(h, key, q, ref)
		seen[what]++
		if what == lapseStuck {
			q.Stuck(tx.ms)
			break
		}
	}
	if through := q.Forget(tx.ms, budget); through != 0 {
		tx.emitQueue("DQ.STEP", key, []byte("FORGET"), tx.itoa(0, through))
	}
	if q.Resume(tx.ms) {
		tx.emitQueue("DQ.STEP", key, []byte("RESUME"))
	}
	if !tx.hiding() {
		seen[lapsedTick] += tx.tickQueue(h, key, q, budget)
	}
	seen[lapsedSent] += tx.deliverJobs(h, key, queueBox{q}, budget)
	q.Awake(tx.ms)
	tx.Signal(key)
	for what, event := range [...]string{lapsedLease: "dqlapsed", lapsedJob: "dqexpired", lapsedDead: "dqdead", lapsedTick: "dqadd", lapsedSent: "dqdeliver"} {
		if seen[what] > 0 && !tx.hiding() {
			tx.changed(key, EventModule, event)
			tx.dirty--
			if what == lapsedDead || what == lapsedTick { // expiry does not count, and XAdd has counted the entries
				tx.dirty += seen[what]
			}
		}
	}
	if q.Empty(tx.ms) {
		tx.drop(h)
		if !tx.hiding() {
			tx.gone(key)
		}
	} else {
		tx.wrote(h)
	}
}

// These are the outcomes of lapseJob.
const (
	lapsedLease = iota // the job is due again
	lapsedJob          // the queue drops it, because no worker took it in time
	lapsedDead         // the job was delivered too often, and was moved to the dead letters or dropped
	lapsedTick         // a schedule was due
	lapsedSent         // a job went to the stream
	lapseStuck         // lapseJob changed nothing, because memory is used up
	lapsedKinds
)

// lapseJob handles one job that has expired or whose lease has ended, and logs it. It updates h, because the
// table may have changed.
func (tx *Tx) lapseJob(h *hit, key []byte, q *delayq.Queue, ref uint32) (what int) {
	j := q.Job(ref)
	if !j.Leased {
		tx.lapsed(h.sh, LevelLease, key, j.ID, j.Payload, j.Expires())
		tx.emitQueue("DQ.STEP", key, []byte("LAPSE"), j.ID)
		q.Remove(ref)
		q.Expired++
		h.sh.stats.QueueExpired++
		return lapsedJob
	}
	dl, spent := tx.findDeadLetters(key, q, ref)
	until := j.Until
	err := tx.giveUp(h, key, q, ref, dl, spent, until+1, func() {
		tx.lapsed(h.sh, LevelLease, key, j.ID, j.Payload, until)
		tx.emitQueue("DQ.STEP", key, []byte("LAPSE"), j.ID)
		h.sh.stats.QueueLapsed++
	})
	switch {
	case err != nil:
		return lapseStuck
	case spent:
		return lapsedDead
	}
	return lapsedLease
}

// giveUp ends the lease of a job that was not acknowledged. A spent job becomes a dead letter, or is dropped
// if the queue has no dead letters. Any other job is due again, and so is a spent one that the dead letters
// cannot take. giveUp calls noted when it can no longer fail, before the change. Errors: ErrFull.
func (tx *Tx) giveUp(h *hit, key []byte, q *delayq.Queue, ref uint32, dl *hit, spent bool, due int64, noted func()) error {
	if !spent {
		if !q.CanRelease() {
			return ErrFull
		}
		noted()
		return q.Release(ref, due, tx.ms)
	}
	noted()
	if dl == nil {
		q.Remove(ref)
		q.Dropped++
		h.sh.stats.QueueDropped++
		return nil
	}
	err := tx.addDeadLetter(dl, q, ref)
	// The key of the dead letters may have been added to the table, or removed from it.
	h.pos, _ = h.sp.tab.Find(h.h, key)
	h.r = h.sp.rec(h.pos.Ref())
	if err != nil {
		return q.Release(ref, due, tx.ms)
	}
	q.Remove(ref)
	q.Dead++
	h.sh.stats.QueueDead++
	return nil
}

// findDeadLetters reports whether a leased job is spent, which means that it has had the greatest number of
// deliveries that the queue allows, and returns the dead-letter queue for it, or nil. If the dead-letter
// queue cannot take the job, the job does not count as spent.
func (tx *Tx) findDeadLetters(key []byte, q *delayq.Queue, ref uint32) (dl *hit, spent bool) {
	if q.MaxDeliveries == 0 || q.Job(ref).Deliveries < q.MaxDeliveries {
		return nil, false
	}
	if len(q.DeadLetter) == 0 {
		return nil, true
	}
	if !sameTag(key, q.DeadLetter) { // the queue was renamed to another hash slot
		return nil, false
	}
	h := tx.findPlainly(q.DeadLetter)
	if h.r == nil {
		return &h, true
	}
	if h.r.Kind() != DelayQueue || tx.boundFull(h.box().(queueBox).Queue) {
		return nil, false
	}
	return &h, true
}

// boundFull reports whether a queue's configuration refuses a further job.
func (tx *Tx) boundFull(q *delayq.Queue) bool { return q.MaxLen > 0 && int64(q.Len()) >= q.MaxLen }

// findPlainly finds a key as find does, without removing due items in the container. Its callers are in the
// middle of a change of another container.
func (tx *Tx) findPlainly(key []byte) (h hit) {
	s, hash := tx.shardOf(key)
	h.sh, h.h = tx.db.shards[s], hash
	if h.sp = h.sh.spaces[tx.dbi]; h.sp == nil {
		return h
	}
	h.preserve()
	pos, ok := h.sp.tab.Find(hash, key)
	if !ok {
		return h
	}
	h.pos, h.r = pos, h.sp.rec(pos.Ref())
	if !tx.replay && h.r.expired(tx.ms) {
		if !tx.hiding() {
			tx.expire(&h, true)
		}
		h.r = nil
	}
	return h
}

// addDeadLetter adds a job of q to the dead letters, and creates their queue if it is missing. The
// job is due at once and keeps its deliveries and its priority. If its id is taken, the instant is
// appended to the id. Errors: ErrNoMemory, ErrFull.
func (tx *Tx) addDeadLetter(h *hit, q *delayq.Queue, ref uint32) error {
	j := q.Job(ref)
	j.Leased, j.Due, j.Expire = false, tx.ms, 0
	created := h.r == nil
	var to *delayq.Queue
	if created {
		to = tx.newQueue()
	} else {
		to = h.box().(queueBox).Queue
	}
	id := j.ID
	for n := tx.ms; ; n++ {
		if _, there := to.Find(j.ID); !there {
			break
		}
		j.ID = strconv.AppendInt(append(append([]byte(nil), id...), ':'), n, 10)
	}
	if err := to.Add(&j, tx.ms); err != nil {
		if created {
			discard(queueBox{to})
		}
		return err
	}
	if created {
		if err := tx.storeQueue(h, q.DeadLetter, to); err != nil {
			return err
		}
	}
	tx.settleQueue(h, q.DeadLetter, to, "dqadd")
	tx.dirty--
	return nil
}

// The methods below execute the steps of the log in a replay. Each reports whether the step was
// possible.

// QueueTook leases a job with a token, until an instant in ms since 1970. Errors: ErrWrongType,
// ErrFull.
func (tx *Tx) QueueTook(key, id []byte, token, until int64) (ok bool, err error) {
	h, q, err := tx.queue(key)
	if err != nil || q == nil {
		return false, err
	}
	ref, ok := q.Find(id)
	if !ok || q.Job(ref).Leased {
		return false, nil
	}
	tx.SawToken(token)
	if q.Take(ref, token, until) != nil {
		return false, ErrFull
	}
	tx.settleQueue(&h, key, q, "dqpop")
	return true, nil
}

// QueueLapsed handles a job whose lease was over, or that had expired. Errors: ErrWrongType,
// ErrFull.
func (tx *Tx) QueueLapsed(key, id []byte) (ok bool, err error) {
	h, q, err := tx.queue(key)
	if err != nil || q == nil {
		return false, err
	}
	ref, ok := q.Find(id)
	if !ok {
		return false, nil
	}
	tx.lapseJob(&h, key, q, ref)
	tx.settleQueue(&h, key, q, "dqlapsed")
	return true, nil
}

// QueueForgot removes marks up to a deadline in ms since 1970. Errors: ErrWrongType.
func (tx *Tx) QueueForgot(key []byte, through int64) (ok bool, err error) {
	h, q, err := tx.queue(key)
	if err != nil || q == nil {
		return false, err
	}
	q.ForgetThrough(through)
	tx.settleQueue(&h, key, q, "dqlapsed")
	return true, nil
}

// QueueResumed ends a pause whose time is over. Errors: ErrWrongType.
func (tx *Tx) QueueResumed(key []byte) (ok bool, err error) {
	h, q, err := tx.queue(key)
	if err != nil || q == nil {
		return false, err
	}
	q.PausedUntil = 0
	tx.settleQueue(&h, key, q, "dqlapsed")
	return true, nil
}
