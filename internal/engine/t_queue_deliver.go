package engine

import "strconv"

// A queue may deliver to a stream (QueueConfig.Deliver): a job that is due becomes an entry of the
// stream, and no worker takes it by QueuePop.
//
//	the job is due ─▶ the reclaimer, or any command on the queue ─▶ XADD stream * id i payload p due ms
//	                                                                DQ.STEP key DELIVER i
//
// Both are one step: either the entry exists, or the job waits. The stream has the hash tag of the queue, so
// that a transaction that holds the queue also holds the stream. A stream that cannot take an entry suspends
// the delivery: the jobs wait, and the next change of the queue, or the reclaimer after 100 ms, tries again.

// These are the fields of an entry.
var (
	sentID      = []byte("id")
	sentPayload = []byte("payload")
	sentDue     = []byte("due")
)

// The reasons why a stream cannot take a job.
const (
	whyStreamTag  = "the stream does not have the hash tag of the queue"
	whyStreamType = "the stream's key holds another type"
)

// delivers reports whether the transaction must deliver the due jobs of a queue.
func (tx *Tx) delivers(q *queueBox) bool {
	return len(q.Deliver) > 0 && !tx.replay && !tx.hiding() && !q.Paused(tx.ms)
}

// deliverJobs adds up to budget jobs of a queue that are due to its stream, in the order of QueuePop,
// and returns their number. It drops jobs that have expired. It updates h, because the table may have
// changed. O(log n) for each.
func (tx *Tx) deliverJobs(h *hit, key []byte, q queueBox, budget int) (n int) {
	if !tx.delivers(&q) {
		return 0
	}
	var due [20]byte
	for looked := 0; looked < budget; looked++ {
		ref, ok := q.Next(tx.ms)
		if !ok {
			break
		}
		j := q.Job(ref)
		if at := j.Expires(); at != 0 && tx.ms > at {
			tx.lapseJob(h, key, q.Queue, ref)
			continue
		}
		if tx.streamTrouble(key, q.Deliver) != "" {
			q.Held(tx.ms)
			break
		}
		reads := tx.reads
		tx.reads = false // a snapshot saves the stream before the change
		_, _, err := tx.XAdd(q.Deliver, &XAdd{Auto: true, Pairs: [][]byte{
			sentID, j.ID, sentPayload, j.Payload, sentDue, strconv.AppendInt(due[:0], j.Due, 10)}})
		tx.reads = reads
		h.pos, _ = h.sp.tab.Find(h.h, key)
		h.r = h.sp.rec(h.pos.Ref())
		if err != nil {
			q.Held(tx.ms)
			break
		}
		tx.emitQueue("DQ.STEP", key, []byte("DELIVER"), j.ID)
		h.sh.stats.delivered(&j, tx.now)
		q.Remove(ref)
		n++
	}
	return n
}

// streamTrouble returns the reason why a queue cannot deliver to a stream; "" if it can. It does not settle
// the key, which may be another queue in the middle of a delivery.
func (tx *Tx) streamTrouble(key, stream []byte) string {
	if !sameTag(key, stream) { // the queue was renamed to another hash slot
		return whyStreamTag
	}
	if h := tx.findPlainly(stream); h.r != nil && h.r.Kind() != Stream {
		return whyStreamType
	}
	return ""
}

// QueueDelivered removes a job that the log delivers to a stream, in a replay. Errors: ErrWrongType.
func (tx *Tx) QueueDelivered(key, id []byte) (ok bool, err error) {
	h, q, err := tx.queue(key)
	if err != nil || q == nil {
		return false, err
	}
	ref, ok := q.Find(id)
	if !ok {
		return false, nil
	}
	q.Remove(ref)
	tx.settleQueue(&h, key, q, "dqdeliver")
	return true, nil
}
