package cron

import "errors"

// This file has schedules: a rule, cron's or a fixed span, with the state of its occurrences. Engines and
// clients compute them alike. Instants are in ms since 1970.

// MaxSchedules is the greatest number of schedules of a queue. A schedule counts some 260 bytes, its name, its payload
// and its expression.
const MaxSchedules = 10_000

// MaxScheduleName is the greatest length of the name of a schedule, in bytes.
const MaxScheduleName = 255

// MaxTime is the latest instant of an occurrence, in ms since 1970.
const MaxTime = 1<<48 - 1

// MinEvery is the least span between two occurrences, in ms. A queue is not a timer.
const MinEvery = 10

// Rule says when and how a schedule adds its job. Cron counts if Every is 0.
type Rule struct {
	Every    int64  // ms between two occurrences
	Cron     string // an expression of Parse
	Zone     string // the zone of Cron, an IANA name; empty: UTC
	From     int64  // no occurrence is before it; those of Every are From + k * Every; ms since 1970
	Until    int64  // the last ms in which there may be an occurrence; 0: there is no end
	Late     int64  // ms; an occurrence that is noticed later than that is skipped; 0: no limit
	Overlap  bool   // an occurrence becomes a job though the job of the one before is in the queue
	Priority uint8  // of the jobs
	Expire   int64  // ms after its due time at which a job expires; 0: never
}

// Schedule is a rule with its state. It does not change once it is in a queue.
type Schedule struct {
	Rule
	Name, Payload []byte

	Next    int64 // the next occurrence, in ms since 1970
	Last    int64 // the last occurrence that became a job; 0: there was none
	Runs    int64 // occurrences that became jobs
	Skipped int64 // occurrences that did not: the job before was in the queue, the queue was full, or nothing ran at the time
	TooLate int64 // occurrences that did not because of Late

	expr *Expr
	lost bool // the zone is unknown here: expr is nil
}

// Occurrence says what a schedule does at an instant.
type Occurrence struct {
	Due              int64 // the occurrence that becomes a job; 0: none does
	Next             int64 // the occurrence after that; 0: the schedule ends
	Skipped, TooLate int64 // occurrences that become no job
}

// Start parses the rule and sets Next to the first occurrence after now, or at From if that is later.
// ok is false if there is none. Errors: those of Parse.
func (s *Schedule) Start(now int64) (ok bool, err error) {
	if err := s.Parse(); err != nil {
		return false, err
	}
	if s.Every > 0 && s.From > now {
		s.Next = s.within(s.From)
	} else {
		s.Next = s.after(max(now, s.From-1))
	}
	return s.Next != 0, nil
}

// Continue takes over the state of the schedule that s replaces, nil if there is none, and reports
// whether s has the same instants: then it goes on, with the next occurrence and the counts of old.
func (s *Schedule) Continue(old *Schedule) bool {
	if old == nil {
		return false
	}
	s.Last = old.Last // its job may still be in the queue
	if s.Every != old.Every || s.Cron != old.Cron || s.Zone != old.Zone || s.Until != old.Until || s.From != 0 && s.From != old.From {
		return false
	}
	s.From, s.Next, s.Runs, s.Skipped, s.TooLate = old.From, old.Next, old.Runs, old.Skipped, old.TooLate
	return true
}

// Valid reports whether the rule has one kind of instants, and the name and the span are in bounds.
func (s *Schedule) Valid() bool {
	if len(s.Name) == 0 || len(s.Name) > MaxScheduleName {
		return false
	}
	if s.Every == 0 {
		return true
	}
	return s.Every >= MinEvery && s.Cron == "" && s.Zone == "" && s.From <= s.Next
}

// Parse parses the expression of a schedule without Every. Errors: those of Parse.
func (s *Schedule) Parse() (err error) {
	if s.Every == 0 {
		s.expr, err = Parse(s.Cron, s.Zone)
	}
	return err
}

// Load is Parse for a schedule that another machine has accepted. It keeps a schedule whose zone the table of
// this machine lacks: Tick looks for the zone again. Errors: those of Parse but ErrZone.
func (s *Schedule) Load() error {
	err := s.Parse()
	if s.lost = errors.Is(err, ErrZone); s.lost {
		return nil
	}
	return err
}

// Parsed reports whether Tick can be called.
func (s *Schedule) Parsed() bool { return s.Every > 0 || s.expr != nil || s.lost }

// A schedule of a zone that this machine does not know has no occurrence to compute. The one that the other
// machine computed still becomes a job. Then Next is the instant at which Tick looks for the zone again. Such an
// instant is not an occurrence: it has lookMark ms behind a whole second, and occurrences of cron have none.
const (
	lookSpan = 60_000 // ms until Tick looks again
	lookMark = 1
)

// looks reports whether Next is not an occurrence.
func (s *Schedule) looks() bool { return s.Every == 0 && s.Next%1000 != 0 }

// lookAgain returns what happens at now to a schedule whose zone is unknown.
func (s *Schedule) lookAgain(now int64, busy bool) (o Occurrence) {
	o.Next = s.within(now - now%1000 + lookSpan + lookMark)
	if !s.looks() {
		s.settle(&o, s.Next, now, busy)
	}
	return o
}

// settle decides on the last occurrence that has passed.
func (s *Schedule) settle(o *Occurrence, last, now int64, busy bool) {
	switch {
	case s.Late > 0 && now-last > s.Late:
		o.TooLate = 1
	case busy:
		o.Skipped++
	default:
		o.Due = last
	}
}

// after returns the first occurrence after an instant; 0 if there is none.
func (s *Schedule) after(at int64) int64 {
	if s.Every == 0 {
		seconds := floor(at, 1000)
		return s.within(s.expr.Next(seconds) * 1000)
	}
	k := floor(at-s.From, s.Every) + 1
	if k > (MaxTime-s.From)/s.Every {
		return 0
	}
	return s.within(s.From + k*s.Every)
}

// floor divides and rounds down.
func floor(a, b int64) int64 {
	q := a / b
	if a < q*b {
		q--
	}
	return q
}

// within returns an occurrence, or 0 if it is after the end.
func (s *Schedule) within(at int64) int64 {
	if at > MaxTime || s.Until != 0 && at > s.Until {
		return 0
	}
	return at
}

// Tick returns what happens to a schedule that is due at now; busy reports whether the queue has the
// job of an occurrence, or no room. Of the occurrences that have passed only the last one can become a
// job. O(days since Next).
func (s *Schedule) Tick(now int64, busy bool) (o Occurrence) {
	if s.lost {
		found := *s // s may be shared with a copy that a snapshot reads
		if found.Parse() != nil {
			return s.lookAgain(now, busy)
		}
		s = &found
	}
	last, n := s.passed(now)
	if o.Next = s.after(last); n > 0 {
		o.Skipped = n - 1
		s.settle(&o, last, now, busy)
	}
	return o
}

// passed returns the last occurrence up to now, and how many there are from Next to it. If n is 0, last is an instant
// after which the next occurrence is.
func (s *Schedule) passed(now int64) (last, n int64) {
	if s.Until != 0 {
		now = min(now, s.Until)
	}
	if s.Every > 0 {
		k := (now - s.Next) / s.Every
		return s.Next + k*s.Every, k + 1
	}
	first, through := s.Next/1000, now/1000
	if !s.looks() {
		n = 1
	}
	if next := s.expr.Next(first); next == 0 || next > through {
		return s.Next, n
	}
	n += s.expr.Count(first, through)
	return s.expr.Last(first, through) * 1000, n
}

// Ticked returns the schedule after an occurrence that is not the last.
func (s *Schedule) Ticked(o Occurrence) *Schedule {
	c := *s
	if c.lost {
		c.lost = c.Parse() != nil
	}
	c.Next = o.Next
	if o.Due != 0 {
		c.Last = o.Due
		c.Runs++
	}
	c.Skipped = add(c.Skipped, o.Skipped)
	c.TooLate = add(c.TooLate, o.TooLate)
	return &c
}

// maxCount is the greatest count of occurrences. A dump holds no greater one.
const maxCount = 1 << 62

// add adds two counts; the sum saturates.
func add(a, b int64) int64 { return min(a+min(b, maxCount-a), maxCount) }
