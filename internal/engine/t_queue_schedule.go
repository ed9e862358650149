package engine

import (
	"errors"
	"strconv"

	"github.com/ebbdb/ebb/internal/cron"
	"github.com/ebbdb/ebb/internal/delayq"
)

// A schedule adds a job to its delay queue at each occurrence of a rule. The job's id is the name of the
// schedule, @ and the due instant in ms. The engine adds the job and computes the next occurrence in one step
// when it first notices that the instant has passed: in its reclaimer, or in any command on the queue. So
// each occurrence becomes a job once, and no client needs to run. The step is in the log:
//
//	DQ.STEP key TICK name due next skipped toolate NOW us
//
// A replay takes the instants from the log, so that engines with different tables of time zones have the same
// jobs.

// QueueSchedule is a schedule of a delay queue with its state. Its owner must not change it.
type QueueSchedule = cron.Schedule

// QueueOccurrence describes the outcome of a schedule's occurrences up to an instant.
type QueueOccurrence = cron.Occurrence

// These are the limits of schedules.
const (
	MaxSchedules    = cron.MaxSchedules
	MinScheduleSpan = cron.MinEvery
	MaxScheduleName = cron.MaxScheduleName
)

var (
	// ErrSchedules: the queue has MaxSchedules schedules.
	ErrSchedules = errors.New("the queue has as many schedules as it may")
	// ErrNoOccurrence: a schedule would never be due.
	ErrNoOccurrence = errors.New("the schedule has no occurrence")
	// ErrZone: the table of time zones does not have the zone of a cron expression.
	ErrZone = cron.ErrZone
)

// QueueSchedule adds a schedule to a delay queue, or replaces the one with its name, and returns the instant
// of its next occurrence in ms since 1970. It creates a missing queue. It reads the name, the payload and the
// rule of s, and in a replay Next; the engine keeps s. A From of 0 means now for a rule with Every, and no
// bound for others. If the schedule exists and has the same instants, it continues with its next occurrence
// and its counts. O(log n). Errors: ErrWrongType, ErrSchedules, ErrNoOccurrence, ErrFull, and those of
// package cron.
func (tx *Tx) QueueSchedule(key []byte, s *QueueSchedule) (next int64, err error) {
	h, q, err := tx.queue(key)
	if err != nil {
		return 0, err
	}
	var old *QueueSchedule
	if q != nil {
		old = q.Schedule(s.Name)
		if old == nil && q.Schedules() >= MaxSchedules && !tx.replay {
			return 0, ErrSchedules
		}
	}
	if err := tx.startSchedule(s, old); err != nil {
		return 0, err
	}
	if q == nil {
		q = tx.newQueue()
		q.SetSchedule(s)
		if err := tx.storeQueue(&h, key, q); err != nil {
			return 0, err
		}
	} else {
		q.SetSchedule(s)
	}
	tx.logSchedule(key, s)
	tx.settleQueue(&h, key, q, "dqschedule")
	return s.Next, nil
}

// startSchedule sets the state of a schedule that is new, or replaces another.
func (tx *Tx) startSchedule(s, old *QueueSchedule) error {
	if s.Continue(old) {
		return tx.parseSchedule(s)
	}
	if s.From == 0 && s.Every > 0 {
		s.From = tx.ms
	}
	if tx.replay && s.Next != 0 {
		return s.Load()
	}
	if ok, err := s.Start(tx.ms); err != nil {
		return err
	} else if !ok {
		return ErrNoOccurrence
	}
	return nil
}

// parseSchedule parses a schedule. In a replay it accepts an unknown zone, because another machine has
// accepted it.
func (tx *Tx) parseSchedule(s *QueueSchedule) error {
	if tx.replay {
		return s.Load()
	}
	return s.Parse()
}

// logSchedule logs a schedule, with the instants that were computed from the clock and the zones.
func (tx *Tx) logSchedule(key []byte, s *QueueSchedule) {
	if !tx.db.logging.Load() || tx.replay {
		return
	}
	args := append(make([][]byte, 0, 24), key, s.Name, s.Payload)
	number := func(word string, n int64) {
		if n != 0 {
			args = append(args, []byte(word), strconv.AppendInt(nil, n, 10))
		}
	}
	if number("EVERY", s.Every); s.Every == 0 {
		args = append(args, []byte("CRON"), []byte(s.Cron))
	}
	if s.Zone != "" {
		args = append(args, []byte("TZ"), []byte(s.Zone))
	}
	number("FROM", s.From)
	number("UNTIL", s.Until)
	number("LATE", s.Late)
	if s.Overlap {
		args = append(args, []byte("OVERLAP"))
	}
	number("PRIORITY", int64(s.Priority))
	number("EXPIRE", s.Expire)
	number("NEXT", s.Next)
	tx.emitQueue("DQ.SCHEDULE", args...)
}

// QueueUnschedule removes schedules by name and returns the number that existed. Jobs that they have added
// stay. O(log n) for each. Errors: ErrWrongType.
func (tx *Tx) QueueUnschedule(key []byte, names [][]byte) (n int, err error) {
	h, q, err := tx.queue(key)
	if err != nil || q == nil {
		return 0, err
	}
	args := append(make([][]byte, 0, len(names)+1), key)
	for _, name := range names {
		if q.Unschedule(name) {
			args = append(args, name)
			n++
		}
	}
	if n > 0 {
		tx.emitQueue("DQ.UNSCHEDULE", args...)
		tx.settleQueue(&h, key, q, "dqunschedule")
	}
	return n, nil
}

// QueueSchedules visits the schedules of a queue by name. O(n log n). Errors: ErrWrongType.
func (tx *Tx) QueueSchedules(key []byte, visit func(s *QueueSchedule)) error {
	q, err := tx.readQueue(key)
	if err == nil && q != nil {
		q.EachSchedule(visit)
	}
	return err
}

// QueueScheduleOf returns the schedule with a name; nil: there is none. O(1). Errors: ErrWrongType.
func (tx *Tx) QueueScheduleOf(key, name []byte) (*QueueSchedule, error) {
	q, err := tx.readQueue(key)
	if err != nil || q == nil {
		return nil, err
	}
	return q.Schedule(name), nil
}

// tickQueue adds the jobs of up to budget due schedules, and returns the number of due schedules.
func (tx *Tx) tickQueue(h *hit, key []byte, q *delayq.Queue, budget int) (ticks int) {
	for range budget {
		s := q.NextSchedule()
		if s == nil || s.Next > tx.ms {
			break
		}
		o := s.Tick(tx.ms, tx.boundFull(q) || !s.Overlap && s.Last != 0 && tx.hasOccurrence(q, s, s.Last))
		if o.Due != 0 && tx.hasOccurrence(q, s, o.Due) { // a caller has added a job with this id
			o.Due = 0
			o.Skipped++
		}
		if o.Due != 0 && tx.addOccurrence(q, s, o.Due) != nil {
			q.Stuck(tx.ms)
			break
		}
		number := func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
		tx.emitQueue("DQ.STEP", key, []byte("TICK"), s.Name, number(o.Due), number(o.Next), number(o.Skipped), number(o.TooLate))
		tx.countOccurrence(h, o)
		q.Ticked(s, o)
		ticks++
	}
	return ticks
}

// countOccurrence adds an occurrence to the statistics.
func (tx *Tx) countOccurrence(h *hit, o QueueOccurrence) {
	stats := &h.sh.stats
	if o.Due != 0 {
		stats.QueueAdded++
		stats.ScheduleRuns++
	}
	stats.ScheduleSkipped += o.Skipped
	stats.ScheduleLate += o.TooLate
}

// occurrence returns the id of the job of an occurrence, valid until the next call.
func (tx *Tx) occurrence(s *QueueSchedule, due int64) []byte {
	tx.ebuf = append(append(tx.ebuf[:0], s.Name...), '@')
	tx.ebuf = strconv.AppendInt(tx.ebuf, due, 10)
	return tx.ebuf
}

// hasOccurrence reports whether the job of an occurrence is in the queue.
func (tx *Tx) hasOccurrence(q *delayq.Queue, s *QueueSchedule, due int64) bool {
	_, there := q.Find(tx.occurrence(s, due))
	return there
}

// addOccurrence adds the job of an occurrence. Errors: ErrNoMemory.
func (tx *Tx) addOccurrence(q *delayq.Queue, s *QueueSchedule, due int64) error {
	return q.Add(&Job{ID: tx.occurrence(s, due), Payload: s.Payload, Due: due, Expire: s.Expire, Priority: s.Priority}, tx.ms)
}

// QueueTicked executes the step of a schedule in a replay. It reports whether the step was possible.
// Errors: ErrWrongType, ErrFull.
func (tx *Tx) QueueTicked(key, name []byte, due, next, skipped, late int64) (ok bool, err error) {
	h, q, err := tx.queue(key)
	if err != nil || q == nil {
		return false, err
	}
	s := q.Schedule(name)
	if s == nil {
		return false, nil
	}
	o := QueueOccurrence{Due: due, Next: next, Skipped: skipped, TooLate: late}
	if due != 0 && !tx.hasOccurrence(q, s, due) && tx.addOccurrence(q, s, due) != nil {
		return false, ErrFull
	}
	tx.countOccurrence(&h, o)
	q.Ticked(s, o)
	tx.settleQueue(&h, key, q, "dqadd")
	return true, nil
}
