package engine

import "github.com/ebbdb/ebb/internal/delayq"

// popDead is the number of expired jobs that a command drops, beyond those that were due
// at its start, before it gives up its search for a live one: the reclaimer continues.
const popDead = 4096

// QueuePop leases up to count due jobs for lease ms, and calls visit for each: in the order of priority,
// highest first, then of the due instant, then of the addition. It returns their number, which is 0 while the
// queue is paused. Each job has a token of its own, greater than all earlier ones. O(log n) for each. Errors:
// ErrWrongType; ErrDelivers; ErrFull, after it has leased fewer than it could have.
func (tx *Tx) QueuePop(key []byte, count int, lease int64, visit func(Job)) (n int, err error) {
	h, q, err := tx.queue(key)
	if err != nil || q == nil {
		return 0, err
	}
	if len(q.Deliver) > 0 {
		return 0, ErrDelivers
	}
	if q.Paused(tx.ms) {
		return 0, nil
	}
	until := tx.DeadlineAfter(lease)
	dead := 0
	for n < count && dead < popDead {
		ref, ok := q.Next(tx.ms)
		if !ok {
			break
		}
		if j := q.Job(ref); j.Expires() != 0 && tx.ms > j.Expires() {
			tx.lapseJob(&h, key, q, ref)
			dead++
			continue
		}
		token := tx.NextToken()
		if q.Take(ref, token, until) != nil {
			err = ErrFull
			break
		}
		n++
		j := q.Job(ref)
		tx.emitQueue("DQ.STEP", key, []byte("TAKE"), j.ID, tx.itoa(0, token), tx.itoa(1, until))
		h.sh.stats.delivered(&j, tx.now)
		visit(j)
	}
	if dead > 0 {
		tx.settleQueue(&h, key, q, "dqexpired")
	}
	if n > 0 {
		tx.settleQueue(&h, key, q, "dqpop")
	}
	if n > 0 {
		err = nil
	}
	return n, err
}

// delivered counts a delivery at an instant in us.
func (c *Counters) delivered(j *Job, now int64) {
	c.QueueDelivered++
	if j.Deliveries > 1 {
		c.QueueRedelivered++
	}
	c.QueueLate.record(now - j.Due*1000)
}

// lentJob looks up a job on which the caller has a lease; q is nil if the lease is over, or the
// token is not that of the lease.
func (tx *Tx) lentJob(key, id []byte, token int64) (h hit, q *delayq.Queue, ref uint32, err error) {
	h, q, err = tx.queue(key)
	if q == nil || err != nil {
		return h, nil, 0, err
	}
	ref, ok := q.Find(id)
	if !ok {
		return h, nil, 0, nil
	}
	if j := q.Job(ref); !j.Leased || j.Token != token || tx.ms > j.Until {
		return h, nil, 0, nil
	}
	return h, q, ref, nil
}

// QueueAck removes a job that is done, and reports whether the caller held its lease. O(log n).
// Errors: ErrWrongType.
func (tx *Tx) QueueAck(key, id []byte, token int64) (ok bool, err error) {
	h, q, ref, err := tx.lentJob(key, id, token)
	if q == nil {
		return false, err
	}
	q.Remove(ref)
	h.sh.stats.QueueAcked++
	tx.emitQueue("DQ.ACK", key, id, tx.itoa(0, token))
	tx.settleQueue(&h, key, q, "dqack")
	return true, nil
}

// QueueNack ends a lease early. The job is due again after delay ms, unless it has had the greatest number of
// deliveries that the queue allows. QueueNack reports whether the caller held the lease. O(log n). Errors:
// ErrWrongType, ErrFull.
func (tx *Tx) QueueNack(key, id []byte, token, delay int64) (ok bool, err error) {
	h, q, ref, err := tx.lentJob(key, id, token)
	if q == nil {
		return false, err
	}
	dl, spent := tx.findDeadLetters(key, q, ref)
	if err := tx.giveUp(&h, key, q, ref, dl, spent, tx.ms+min(delay, MaxDeadline), func() {
		tx.emitQueue("DQ.NACK", key, id, tx.itoa(0, token), []byte("DELAY"), tx.itoa(1, delay))
	}); err != nil {
		return false, ErrFull
	}
	tx.settleQueue(&h, key, q, "dqnack")
	return true, nil
}

// QueueExtend sets a lease to lease ms from now, and reports whether the caller held it. O(log n).
// Errors: ErrWrongType, ErrFull.
func (tx *Tx) QueueExtend(key, id []byte, token, lease int64) (ok bool, err error) {
	h, q, ref, err := tx.lentJob(key, id, token)
	if q == nil {
		return false, err
	}
	if q.Extend(ref, tx.ms+min(lease, MaxDeadline)) != nil {
		return false, ErrFull
	}
	tx.emitQueue("DQ.EXTEND", key, id, tx.itoa(0, token), tx.itoa(1, lease))
	tx.settleQueue(&h, key, q, "dqextend")
	return true, nil
}

// QueueReturn returns a job whose reply did not reach the worker. The delivery does not count, and
// the job has its old due instant. QueueReturn reports whether the job still had this lease. O(log
// n). Errors: ErrWrongType, ErrFull.
func (tx *Tx) QueueReturn(key, id []byte, token int64) (ok bool, err error) {
	h, q, ref, err := tx.lentJob(key, id, token)
	if q == nil {
		return false, err
	}
	if q.Undeliver(ref, tx.ms) != nil {
		return false, ErrFull
	}
	tx.emitQueue("DQ.STEP", key, []byte("BACK"), id, tx.itoa(0, token))
	tx.settleQueue(&h, key, q, "dqreturn")
	return true, nil
}

// QueueCancel removes jobs in any state: a worker with a lease on one loses the lease. It returns the number
// that existed. O(log n) for each. Errors: ErrWrongType.
func (tx *Tx) QueueCancel(key []byte, ids [][]byte) (n int, err error) {
	h, q, err := tx.queue(key)
	if err != nil || q == nil {
		return 0, err
	}
	for _, id := range ids {
		if ref, ok := q.Find(id); ok {
			q.Remove(ref)
			tx.emitQueue("DQ.CANCEL", key, id)
			n++
		}
	}
	if n > 0 {
		tx.settleQueue(&h, key, q, "dqcancel")
		tx.dirty += n - 1
	}
	return n, nil
}
