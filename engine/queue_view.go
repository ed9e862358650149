package engine

// QueuePeek visits up to count jobs that wait as they would be taken: those that
// are due by priority and instant, then the others by instant. Nothing changes.
// O(log n + count). Errors: ErrWrongType.
func (tx *Tx) QueuePeek(key []byte, count int, visit func(Job)) error {
	q, err := tx.readQueue(key)
	if err != nil || q == nil {
		return err
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
	i.QueueConfig = q.Config
	i.Ready, i.Leased, i.Unique = q.Ready(tx.ms), q.Leased(), q.Marks(tx.ms)
	i.Delayed = q.Len() - i.Leased - i.Ready
	i.Oldest, i.Next = q.Oldest(tx.ms), q.Coming(tx.ms)
	i.Dead, i.Dropped, i.Expired = q.Dead, q.Dropped, q.Totals.Expired
	return i, true, nil
}

// QueueLen returns the number of jobs in a delay queue, whatever their state: 0 if
// there is none. It is no access. O(1). Errors: ErrWrongType.
func (tx *Tx) QueueLen(key []byte) (int, error) {
	_, q, err := tx.queue(key)
	if err != nil || q == nil {
		return 0, err
	}
	return q.Len(), nil
}
