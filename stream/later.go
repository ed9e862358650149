package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// This file has entries that are added later. They are jobs of a delay queue which delivers to the
// stream (DQ.CONFIG DELIVER): the server adds each when it is due, in one step, and no client needs to
// run. Other servers than ebb have no such queues, and a client that moved entries there would add
// them only while it runs.

// LaterOptions configures an entry that is added later. The zero value works.
type LaterOptions struct {
	// ID identifies the entry until it is added, for instance for Cancel. It is the ID of the job, not of
	// the entry. Default: a new one.
	ID string
	// Replace puts the value and the instant in the place of those that wait under the same ID. It needs an
	// ID. Otherwise an ID that waits is an error: ErrWaits.
	Replace bool
}

// ErrWaits: a value is already waiting under the ID, and LaterOptions.Replace is not set.
var ErrWaits = errors.New("a value with this id is already waiting")

// AddAt appends a value at an instant by the backend's clock, a millisecond or two after it at most, and returns the ID
// under which it waits. If the instant has passed, the backend appends it at once. The entry's Time is
// that of its addition. Entries that are due together come in the order of their instants.
//
// AddAt needs ebb; on other servers it returns errors.ErrUnsupported and does nothing. It costs one
// transaction in one round trip. MaxLen and Retention count at the next Add or Trim. Errors: ebb.ErrArgument,
// ErrWaits.
func (s *Stream[T]) AddAt(ctx context.Context, at time.Time, v T, opts ...LaterOptions) (id string, err error) {
	if at.UnixMilli() < 0 {
		return "", s.failed("add at", fmt.Errorf("%w: the instant %v is before 1970", conn.ErrArgument, at))
	}
	return s.addLater(ctx, "add at", v, opts, "AT", at.UnixMilli())
}

// AddAfter is AddAt for a span from now, rounded up to whole milliseconds.
func (s *Stream[T]) AddAfter(ctx context.Context, d time.Duration, v T, opts ...LaterOptions) (id string, err error) {
	return s.addLater(ctx, "add after", v, opts, "DELAY", kit.Millis(max(d, 0)))
}

func (s *Stream[T]) addLater(ctx context.Context, doing string, v T, opts []LaterOptions, when string, ms int64) (string, error) {
	o, err := kit.Option(opts)
	if err == nil && o.Replace && o.ID == "" {
		err = fmt.Errorf("%w: Replace needs an ID", conn.ErrArgument)
	}
	if err == nil && o.ID == "*" {
		err = fmt.Errorf("%w: the ID is *, which stands for a new one", conn.ErrArgument)
	}
	if err != nil {
		return "", s.failed(doing, err)
	}
	data, err := s.o.Codec.Encode(v)
	if err != nil {
		return "", s.failed(doing, err)
	}
	id := cmp.Or(o.ID, "*")
	args := []any{"DQ.ADD", s.later(), id, data, when, ms}
	if o.Replace {
		args = append(args, "REPLACE")
	}
	r, err := s.delivering(ctx, args...)
	if err == nil && r.IsNull() {
		err = fmt.Errorf("%w: %q", ErrWaits, o.ID)
	}
	if err != nil {
		return "", s.failed(doing, err)
	}
	return r.AsString()
}

// delivering runs a command on the delay queue, after it has made sure that the queue delivers to the
// stream: a client that deletes the queue deletes its configuration.
func (s *Stream[T]) delivering(ctx context.Context, args ...any) (r conn.Value, err error) {
	s.log(ctx)
	if err := s.native(); err != nil {
		return r, err
	}
	var b conn.Batch
	b.Do("DQ.CONFIG", s.later(), "DELIVER", s.name)
	b.Do(args...)
	replies, err := s.c.Tx(ctx, &b)
	if err != nil {
		return r, err
	}
	for _, r := range replies {
		if err := r.Err(); err != nil {
			return r, err
		}
	}
	return replies[len(replies)-1], nil
}

// native returns errors.ErrUnsupported if the backend has no queues that deliver to a stream.
func (s *Stream[T]) native() error {
	caps := s.c.Capabilities()
	if !caps.Native {
		return fmt.Errorf("a delayed publish needs ebb's delay queues, and the backend is %s %s: %w", caps.Server, caps.Version,
			errors.ErrUnsupported)
	}
	return nil
}

// Cancel removes values that wait, by the IDs of AddAt and AddAfter, and returns how many there were. An
// entry that was added stays: see Remove. O(log n) for each.
func (s *Stream[T]) Cancel(ctx context.Context, ids ...string) (int64, error) {
	return s.cancelJobs(ctx, "cancel", "DQ.CANCEL", ids)
}

// Rule says at which instants a schedule adds an entry: each Every, without drift and at least 10 ms, or
// as the cron expression Cron says in the IANA time zone Zone, "" for UTC. Package queue describes
// expressions.
type Rule struct {
	Every      time.Duration
	Cron, Zone string
}

// Schedule adds an entry with the value v at each instant of the rule, and returns the first one. It
// replaces the schedule of that name; if the rule is the same, the schedule goes on, so that a program
// can declare its schedules at each start. The server adds each entry exactly once, and no client
// needs to run; after a time without a server only the last one comes. Schedule needs ebb, as AddAt does.
// Errors: ebb.ErrArgument; the server's, for a wrong expression or an unknown zone.
func (s *Stream[T]) Schedule(ctx context.Context, name string, v T, rule Rule) (first time.Time, err error) {
	doing := fmt.Sprintf("schedule %q", name)
	args := []any{"CRON", rule.Cron, "TZ", rule.Zone}
	switch {
	case name == "" || len(name) > 255:
		err = fmt.Errorf("%w: the name has %d bytes; it must have 1 to 255", conn.ErrArgument, len(name))
	case (rule.Cron == "") == (rule.Every == 0) || rule.Zone != "" && rule.Cron == "":
		err = fmt.Errorf("%w: the rule is %+v; it must have Every, or Cron with or without a Zone", conn.ErrArgument, rule)
	case rule.Cron == "":
		args = []any{"EVERY", kit.Millis(rule.Every)}
	case rule.Zone == "":
		args = args[:2]
	}
	if err != nil {
		return first, s.failed(doing, err)
	}
	data, err := s.o.Codec.Encode(v)
	if err != nil {
		return first, s.failed(doing, err)
	}
	r, err := s.delivering(ctx, append([]any{"DQ.SCHEDULE", s.later(), name, data}, args...)...)
	if err != nil {
		return first, s.failed(doing, err)
	}
	ms, err := r.AsInt()
	if err != nil {
		return first, s.failed(doing, err)
	}
	return time.UnixMilli(ms), nil
}

// Unschedule removes schedules by name, and returns how many there were. O(log n) for each.
func (s *Stream[T]) Unschedule(ctx context.Context, names ...string) (int64, error) {
	return s.cancelJobs(ctx, "unschedule", "DQ.UNSCHEDULE", names)
}

func (s *Stream[T]) cancelJobs(ctx context.Context, doing, command string, names []string) (int64, error) {
	if len(names) == 0 {
		return 0, nil
	}
	if err := s.native(); err != nil {
		return 0, s.failed(doing, err)
	}
	args := []any{command, s.later()}
	for _, n := range names {
		args = append(args, n)
	}
	r, err := s.c.Do(ctx, args...)
	if err != nil {
		return 0, s.failed(doing, err)
	}
	return r.AsInt()
}

// Later returns the name of the delay queue in which values wait. queue.New with this name and the same
// codec gives the queue: its Peek, Get and Schedules show what waits, and Pause holds it back. Values
// that are pushed to it become entries too, if they have no headers and no Timeout.
func (s *Stream[T]) Later() string { return kit.Given(s.c, s.later()) }

// later returns the key of that queue.
func (s *Stream[T]) later() string { return kit.Key(s.name, kit.Later) }
