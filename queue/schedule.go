package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/cron"
	"github.com/ebbdb/ebb/internal/kit"
)

// This file has schedules: rules by which the queue adds a job again and again.
//
//	ebb             the server adds the job of an occurrence and computes the next, in one step
//	other servers   the next call of a consumer does it: schedule_scripts.go
//
// On both an occurrence becomes a job at most once.

// Rule says at which instants a schedule adds a job. Cron and Every return one.
type Rule struct {
	every      time.Duration
	expr, zone string
}

// Cron returns the rule of a cron expression: five fields (minute, hour, day of month, month, day of
// week), six with the second in front, or @hourly, @daily, @weekly, @monthly, @yearly. Fields have
// lists, ranges, steps and English names; Sunday is 0. If both days are restricted, one of them has
// to match. zone is the IANA name of a time zone; "" is UTC. A time that the clock of the zone skips
// runs at the first instant after the gap, and a time that comes twice runs the first time; an
// expression for every hour follows elapsed time. Schedule returns the error of a wrong expression.
func Cron(expr, zone string) Rule { return Rule{expr: expr, zone: zone} }

// Every returns the rule of a fixed span of at least 10 ms, rounded up to whole milliseconds. The
// occurrences do not drift: they are From + k x d.
func Every(d time.Duration) Rule { return Rule{every: d} }

// String describes the rule, such as `every 1m0s` or `cron "0 9 * * 1-5" in Europe/Berlin`.
func (r Rule) String() string {
	if r.expr == "" {
		return fmt.Sprint("every ", r.every)
	}
	return fmt.Sprintf("cron %q in %s", r.expr, cmp.Or(r.zone, "UTC"))
}

// check returns ebb.ErrArgument for a rule that no queue accepts.
func (r Rule) check() error {
	if r.expr == "" && r.zone == "" {
		if kit.Millis(r.every) < cron.MinEvery {
			return fmt.Errorf("%w: the rule is %v; it must be at least %d ms", conn.ErrArgument, r, cron.MinEvery)
		}
		return nil
	}
	if _, err := cron.Parse(r.expr, r.zone); err != nil {
		return fmt.Errorf("%w: the rule is %v: %w", conn.ErrArgument, r, err)
	}
	return nil
}

// ScheduleOptions configures a schedule. The zero value has no bounds.
type ScheduleOptions struct {
	// From is the first instant at which there may be an occurrence. Default: now; the first
	// occurrence of Every is then one span from now.
	From time.Time
	// Until is the last instant at which there may be an occurrence. Default: no end.
	Until time.Time
	// Late is the time after which an occurrence that was not handled is skipped. 0: no limit. After a time
	// without a server, or on servers other than ebb without a consumer, only the last occurrence of that time
	// becomes a job in any case.
	Late time.Duration
	// Overlap adds the job of an occurrence even if the job of the previous one is in the queue. Without Overlap
	// the occurrence is skipped and counted.
	Overlap bool
	// Priority of the jobs is 0 to 9: see PushOptions.
	Priority int
	// TTL is the time after which a due job that no consumer took is dropped. 0: never.
	TTL time.Duration
}

// Scheduled is a schedule with its state.
type Scheduled[T any] struct {
	Name string
	Rule Rule
	// Value is the value of the jobs. It is the zero value if Err is not nil: the codec could not decode it.
	Value T
	Err   error
	// Next is the instant of the next occurrence, by the backend's clock.
	Next time.Time
	// Last is the last occurrence that became a job. It is zero if there was none.
	Last time.Time
	// Runs counts the occurrences that became jobs.
	Runs int64
	// Skipped counts the occurrences that did not become jobs, because the previous job was in the queue, or
	// nothing ran at the time.
	Skipped int64
	// Late counts the occurrences that were skipped because of ScheduleOptions.Late.
	Late int64
}

// Schedule adds a job with the value v at each instant of the rule, and returns the first instant. The job's
// ID is the name, @ and the instant in ms since 1970. Schedule replaces the schedule of that name. If the
// rule, From and Until are the same, the schedule continues with its next occurrence: a program can declare
// its schedules at each start.
//
// Each occurrence becomes one job, or is counted as skipped. On ebb the server adds it, and no client needs
// to run. On other servers the consumers of the queue add it when they ask for jobs: without a consumer no
// occurrence becomes a job, and later only the last one does. MaxLen does not apply.
//
// Schedule costs one round trip on ebb, and two on other servers. A queue has at most 10,000
// schedules, with names of 1 to 255 bytes. Errors: ebb.ErrArgument, ErrNever, ErrFull.
func (q *Queue[T]) Schedule(ctx context.Context, name string, v T, rule Rule, opts ...ScheduleOptions) (first time.Time, err error) {
	what := fmt.Sprintf("schedule %q", name)
	o, err := kit.Option(opts)
	if err != nil {
		return first, q.failed(what, err)
	}
	s, err := q.schedule(name, v, rule, &o)
	if err != nil {
		return first, q.failed(what, err)
	}
	next, err := q.store().schedule(ctx, s)
	if err != nil {
		return first, q.failed(what, err)
	}
	return time.UnixMilli(next), nil
}

// schedule checks and encodes a schedule.
func (q *Queue[T]) schedule(name string, v T, rule Rule, o *ScheduleOptions) (*cron.Schedule, error) {
	if len(name) == 0 || len(name) > cron.MaxScheduleName {
		return nil, fmt.Errorf("%w: the name has %d bytes; it must have 1 to %d", conn.ErrArgument, len(name), cron.MaxScheduleName)
	}
	if err := rule.check(); err != nil {
		return nil, err
	}
	from, err := toMillis("From", o.From)
	if err != nil {
		return nil, err
	}
	until, err := toMillis("Until", o.Until)
	switch {
	case err != nil:
		return nil, err
	case o.Late < 0:
		return nil, fmt.Errorf("%w: Late is %v, which is negative", conn.ErrArgument, o.Late)
	case o.TTL < 0:
		return nil, fmt.Errorf("%w: TTL is %v, which is negative", conn.ErrArgument, o.TTL)
	case o.Priority < 0 || o.Priority > maxPriority:
		return nil, fmt.Errorf("%w: Priority is %d; it must be from 0 to %d", conn.ErrArgument, o.Priority, maxPriority)
	}
	s := &cron.Schedule{Name: []byte(name), Rule: cron.Rule{Every: min(kit.Millis(rule.every), cron.MaxTime), Cron: rule.expr, Zone: rule.zone,
		From: from, Until: until, Late: kit.Millis(o.Late), Overlap: o.Overlap, Priority: uint8(o.Priority), Expire: kit.Millis(o.TTL)}} //nolint:gosec // checked
	payload, err := q.encodePayload(&Item[T]{Value: v}, nil)
	s.Payload = []byte(payload)
	return s, err
}

// toMillis returns the ms since 1970 of an option's time; 0: the option is not set.
func toMillis(what string, at time.Time) (int64, error) {
	if at.IsZero() {
		return 0, nil
	}
	if at.UnixMilli() <= 0 || at.Year() > maxYear {
		return 0, fmt.Errorf("%w: %s is %v; it must be after 1970 and before %d", conn.ErrArgument, what, at, maxYear+1)
	}
	return at.UnixMilli(), nil
}

// Unschedule removes schedules, and returns the number that it removed. Jobs that they have added
// stay. It costs one round trip for every 500 names.
func (q *Queue[T]) Unschedule(ctx context.Context, names ...string) (int64, error) {
	return q.inChunks(ctx, "unschedule", names, q.store().unschedule)
}

// Schedules returns all schedules by name, in one round trip. O(n log n).
func (q *Queue[T]) Schedules(ctx context.Context) ([]Scheduled[T], error) {
	found, err := q.store().schedules(ctx)
	if err != nil {
		return nil, q.failed("schedules", err)
	}
	all := make([]Scheduled[T], len(found))
	for i, s := range found {
		v, _, err := q.decodePayload(string(s.Payload))
		all[i] = Scheduled[T]{Name: string(s.Name), Value: v, Err: err, Next: time.UnixMilli(s.Next), Runs: s.Runs, Skipped: s.Skipped, Late: s.TooLate,
			Rule: Rule{every: toDuration(s.Every), expr: s.Cron, zone: s.Zone}}
		if s.Last != 0 {
			all[i].Last = time.UnixMilli(s.Last)
		}
	}
	return all, nil
}

// The native store: DQ.SCHEDULE, DQ.UNSCHEDULE and DQ.SCHEDULES.

func (n *native) schedule(ctx context.Context, s *cron.Schedule) (int64, error) {
	args := append(make([]any, 0, 20), "DQ.SCHEDULE", n.name, s.Name, s.Payload)
	if s.Every > 0 {
		args = append(args, "EVERY", s.Every)
	} else {
		args = append(args, "CRON", s.Cron, "TZ", s.Zone)
	}
	number := func(word string, v int64) {
		if v > 0 {
			args = append(args, word, v)
		}
	}
	number("FROM", s.From)
	number("UNTIL", s.Until)
	number("LATE", s.Late)
	number("PRIORITY", int64(s.Priority))
	number("EXPIRE", s.Expire)
	if s.Overlap {
		args = append(args, "OVERLAP")
	}
	next, err := n.count(ctx, args...)
	return next, scheduleError(err)
}

// scheduleError adds the matching error of this package to an error of ebb.
func scheduleError(err error) error {
	var refused conn.ReplyError
	if !errors.As(err, &refused) {
		return err
	}
	switch text := string(refused); {
	case strings.Contains(text, "never be due"):
		return fmt.Errorf("%w: %w", ErrNever, err)
	case strings.Contains(text, "schedules"):
		return fmt.Errorf("%w: %w", ErrFull, err)
	case strings.Contains(text, "time zone"):
		return fmt.Errorf("%w: %w", conn.ErrArgument, err)
	}
	return err
}

func (n *native) unschedule(ctx context.Context, names []string) (int64, error) {
	return n.count(ctx, append([]any{"DQ.UNSCHEDULE", n.name}, idArgs(names)...)...)
}

func (n *native) schedules(ctx context.Context) ([]*cron.Schedule, error) {
	v, err := n.c.Do(ctx, "DQ.SCHEDULES", n.name)
	if err != nil {
		return nil, err
	}
	all := make([]*cron.Schedule, len(v.Elems))
	for i, e := range v.Elems {
		if all[i], err = readSchedule(e); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// readSchedule returns a schedule in a reply to DQ.SCHEDULES.
func readSchedule(v conn.Value) (*cron.Schedule, error) {
	s := &cron.Schedule{}
	for key, value := range v.Pairs {
		switch key.String() {
		case "name":
			s.Name = []byte(value.String())
		case "payload":
			s.Payload = []byte(value.String())
		case "rule":
			kind, rest, _ := strings.Cut(value.String(), " ")
			s.Cron = rest
			if kind == "EVERY" {
				s.Cron = ""
				s.Every, _ = strconv.ParseInt(rest, 10, 64)
			}
		case "zone":
			s.Zone = value.String()
		case "next":
			s.Next = value.Int
		case "last":
			s.Last = value.Int
		case "runs":
			s.Runs = value.Int
		case "skipped":
			s.Skipped = value.Int
		case "late":
			s.TooLate = value.Int
		}
	}
	if len(s.Name) == 0 || s.Next == 0 {
		return nil, errorReply("schedules", v)
	}
	return s, nil
}
