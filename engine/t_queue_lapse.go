package engine

import (
	"strconv"

	"github.com/ebbdb/ebb/internal/delayq"
)

// What time does to a delay queue, and how the log says it:
//
//	DQ.STEP key TAKE id token until NOW us    a job was leased
//	DQ.STEP key BACK id token NOW us          and did not reach who took it
//	DQ.STEP key LAPSE id NOW us               its lease was over, or it had expired
//	DQ.STEP key FORGET deadline NOW us        marks were over, up to that deadline
//
// The instant says when it was noticed. A job whose lease is over is due from the
// ms after it on, whenever that was.

// lapseQueue handles the due items of a queue: jobs whose leases are over, jobs that have
// expired, marks; up to about budget of each. It wakes the clients that wait for jobs
// that have become due.
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
	q.Awake(tx.ms)
	tx.Signal(key)
	for what, event := range [...]string{lapsedLease: "dqlapsed", lapsedJob: "dqexpired", lapsedDead: "dqdead"} {
		if seen[what] > 0 && !tx.hiding() {
			tx.changed(key, EventModule, event)
			tx.dirty--
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

// What lapseJob has done.
const (
	lapsedLease = iota // the job is due again
	lapsedJob          // the queue drops it, because no worker took it in time
	lapsedDead         // it was delivered too often
	lapseStuck         // nothing, for want of memory
	lapsedKinds
)

// lapseJob settles one job whose time is over, and logs it. The table may have changed:
// lapseJob updates h.
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

// giveUp ends the lease of a job that was not acknowledged. One that is spent
// becomes a dead letter, or is dropped where there is no place for those; if that
// place does not take it, or otherwise, the job is due again. noted is called once
// it is certain that it can be done, before it is. Errors: ErrFull.
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
	// The dead letters may have got a place in the table, or lost one.
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

// findDeadLetters reports whether a leased job has been delivered as often as it
// may be, and where it goes then; nil: nowhere. A dead-letter queue that cannot
// take it saves it: it is not spent.
func (tx *Tx) findDeadLetters(key []byte, q *delayq.Queue, ref uint32) (dl *hit, spent bool) {
	if q.MaxDeliveries == 0 || q.Job(ref).Deliveries < q.MaxDeliveries {
		return nil, false
	}
	if len(q.DeadLetter) == 0 {
		return nil, true
	}
	if !sameTag(key, q.DeadLetter) { // the queue was renamed
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

// boundFull reports whether a queue's configuration keeps another job out.
func (tx *Tx) boundFull(q *delayq.Queue) bool { return q.MaxLen > 0 && int64(q.Len()) >= q.MaxLen }

// findPlainly is find without the removal of due items in the container: callers are in
// the middle of another container.
func (tx *Tx) findPlainly(key []byte) (h hit) {
	s, hash := tx.shardOf(key)
	h.sh, h.h = tx.db.shards[s], hash
	h.sp = h.sh.spaces[tx.dbi]
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

// addDeadLetter adds a job of q to the dead letters, which are created if need be:
// due at once, with its deliveries and its priority. Where its id is taken it gets
// the instant behind it. Errors: ErrNoMemory, ErrFull.
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

// The steps of a replay: what the log says happened to a queue. Each reports
// whether it could have.

// QueueTook leases a job.
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

// QueueLapsed settles a job whose time was over.
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

// QueueForgot removes marks up to a deadline.
func (tx *Tx) QueueForgot(key []byte, through int64) (ok bool, err error) {
	h, q, err := tx.queue(key)
	if err != nil || q == nil {
		return false, err
	}
	q.ForgetThrough(through)
	tx.settleQueue(&h, key, q, "dqlapsed")
	return true, nil
}
