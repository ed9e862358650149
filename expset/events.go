package expset

import (
	"context"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/expiries"
	"github.com/ebbdb/ebb/internal/kit"
)

// Expired is the event of a member whose deadline has passed.
type Expired[T comparable] struct {
	// ID identifies the event. It is the same in each delivery.
	ID string
	// Set is the name of the set in its family; "" for a set without a family.
	Set    string
	Member T
	// Deadline is the deadline that has passed, by the server's clock. FiredAt is the instant at which the
	// backend recorded the expiration.
	Deadline, FiredAt time.Time
	// Err is the reason why Member could not be decoded; it wraps ebb.ErrValue.
	Err error
}

// ListenOptions configures OnExpired. The zero value works.
type ListenOptions struct {
	// Consumer is the name of the consumer. A consumer that keeps its name, and runs in one call at a time, gets
	// the events that it had taken before a crash as soon as it listens again; otherwise they are delivered
	// after ClaimAfter. "": a random name.
	Consumer string
	// ClaimAfter is the time after which an event is delivered again, to any listener, if the function has not
	// returned nil. 0: 30 s. A function must take less. After a lost connection an event may be delivered again
	// earlier.
	ClaimAfter time.Duration
}

// OnExpired calls fn with each expiration in a set with Options.Events, until the context ends; the context's
// error is in the chain of the returned error. Calls with the same listener share the events. Each listener
// gets all events, beginning with the ones that were recorded before its first call. Events are kept while no
// listener runs, even across restarts, and are delivered at least once, one after the other: if fn does not
// return nil, again after ListenOptions.ClaimAfter. Removing and clearing record no expiration.
//
// On ebb an event arrives one or two milliseconds after the deadline. On other servers a call must detect the
// expiration: every operation on the set does, and OnExpired itself does at the next deadline, at most 200 ms
// late.
func (s *Set[T]) OnExpired(ctx context.Context, listener string, fn func(ctx context.Context, e Expired[T]) error,
	opts ...ListenOptions) error {
	if err := s.begin(ctx, false); err != nil {
		return s.failed("listen", err)
	}
	if s.sub != "" {
		return s.failed("listen", fmt.Errorf("%w: the set belongs to a family; call OnExpired of the family", conn.ErrArgument))
	}
	return s.failed("listen", s.listen(ctx, listener, fn, opts))
}

// OnExpired does the work of Set.OnExpired for all sets of the family.
func (f *Family[T]) OnExpired(ctx context.Context, listener string, fn func(ctx context.Context, e Expired[T]) error,
	opts ...ListenOptions) error {
	if err := f.listen(ctx, listener, fn, opts); err != nil {
		return fmt.Errorf("expset: family %q: listen: %w", f.home, err)
	}
	return nil
}

func (k *core[T]) listen(ctx context.Context, listener string, fn func(ctx context.Context, e Expired[T]) error,
	opts []ListenOptions) error {
	o, err := kit.Option(opts)
	if err != nil {
		return err
	}
	x := expiries.Object{Feed: k.feed, Kind: "set", Home: k.home, Logger: k.o.Logger}
	if !k.o.Events {
		x.Absent = ErrNoEvents
	}
	return x.OnExpired(ctx, listener, expiries.ListenOptions(o), fn != nil, func(ctx context.Context, name string, x expiries.Entry) error {
		e := Expired[T]{ID: x.ID, Set: name, Deadline: time.UnixMilli(x.Deadline), FiredAt: time.UnixMilli(x.FiredAt)}
		e.Member, e.Err = k.o.Codec.Decode([]byte(x.Item))
		return fn(ctx, e)
	})
}

// Watch removes expired members in time, even while no program uses the set, until the context ends; the
// context's error is in the chain of the returned error. It continues after lost connections. On ebb the
// server removes them, and Watch only waits.
func (s *Set[T]) Watch(ctx context.Context) error {
	if s.bad != nil {
		return s.failed("watch", s.bad)
	}
	if s.native() {
		<-ctx.Done()
		return s.failed("watch", ctx.Err())
	}
	own := expiries.Feed{Conn: s.c, Stream: s.stream, Native: s.native,
		Sweep: func(ctx context.Context, _ string) (int64, error) { return s.sweep(ctx) }}
	return s.failed("watch", own.Watch(ctx))
}

// Watch does the work of Set.Watch for all sets of the family.
func (f *Family[T]) Watch(ctx context.Context) error {
	return fmt.Errorf("expset: family %q: watch: %w", f.home, f.feed.Watch(ctx))
}
