package expset

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/expiries"
	"github.com/ebbdb/ebb/internal/kit"
)

// Expired is a member whose time was over.
type Expired[T comparable] struct {
	// ID is the event's: the same each time it is delivered.
	ID string
	// Set is the name of the set in its family; empty for a set of its own.
	Set    string
	Member T
	// Deadline is when its time was over, by the server's clock, and FiredAt when that
	// was noticed.
	Deadline, FiredAt time.Time
	// Err is why Member could not be read; it wraps ebb.ErrValue.
	Err error
}

// ListenOptions are options of OnExpired. The zero value works.
type ListenOptions struct {
	// Consumer is the name of the consumer. One that stays the same, and is used by one
	// call at a time, gets what it had taken before a crash as soon as it listens
	// again; else it comes after ClaimAfter. A random name if empty.
	Consumer string
	// ClaimAfter is after how long an event that was taken, and whose function has not
	// returned nil, is delivered again, to any listener; 30 s if 0. Functions
	// take less. After a lost connection it may come sooner.
	ClaimAfter time.Duration
}

// OnExpired calls fn with each expiry of a set with Options.Events until the context
// ends, whose error is in the chain of its own. Calls with the same listener share
// the expiries; each of several listeners gets them all, beginning with those that are
// kept when it is first named. They are kept while no listener runs, also across
// restarts, and delivered at least once, one after the other: again, after
// ListenOptions.ClaimAfter, until a call of fn returns nil. Removing and clearing is no expiry.
//
// On ebb an expiry comes a millisecond or two after its deadline. Elsewhere a call must
// notice: every operation on the set does, and OnExpired itself looks when the next
// deadline has come, or 200 ms later at most.
func (s *Set[T]) OnExpired(ctx context.Context, listener string, fn func(ctx context.Context, e Expired[T]) error, opts ...ListenOptions) error {
	if err := s.begin(ctx, false); err != nil {
		return s.failed("listen", err)
	}
	if s.sub != "" {
		return s.failed("listen", fmt.Errorf("%w: it belongs to a family: listen to that", conn.ErrArgument))
	}
	return s.failed("listen", s.listen(ctx, listener, fn, opts))
}

// OnExpired is Set.OnExpired for all sets of the family.
func (f *Family[T]) OnExpired(ctx context.Context, listener string, fn func(ctx context.Context, e Expired[T]) error, opts ...ListenOptions) error {
	if err := f.listen(ctx, listener, fn, opts); err != nil {
		return fmt.Errorf("expset: family %q: listen: %w", f.home, err)
	}
	return nil
}

func (k *core[T]) listen(ctx context.Context, listener string, fn func(ctx context.Context, e Expired[T]) error, opts []ListenOptions) error {
	if !k.o.Events {
		return fmt.Errorf("%w: set Options.Events where it is written and here", ErrNoEvents)
	}
	if err := kit.Callable(fn != nil, "fn"); err != nil {
		return err
	}
	o, err := kit.Option(opts)
	if err != nil {
		return err
	}
	prefix := kit.Key(k.home, "")
	return k.feed.Listen(ctx, expiries.Options{
		Group: listener, Consumer: o.Consumer, Redeliver: o.ClaimAfter,
		Failed: func(err error) {
			if k.o.Logger != nil {
				k.o.Logger.Warn("expset: "+err.Error(), "set", k.home, "listener", listener)
			}
		},
	}, func(ctx context.Context, x expiries.Entry) error {
		e := Expired[T]{ID: x.ID, Deadline: time.UnixMilli(x.Deadline), FiredAt: time.UnixMilli(x.FiredAt)}
		if k.index != "" {
			e.Set = strings.TrimPrefix(x.Key, prefix)
		}
		e.Member, e.Err = k.o.Codec.Decode([]byte(x.Item))
		return fn(ctx, e)
	})
}

// Watch removes what is dead in time, also while no program uses the set, until the
// context ends, whose error is in the chain of its own. It outlives lost connections.
// On ebb that happens by itself.
func (s *Set[T]) Watch(ctx context.Context) error {
	if s.bad != nil {
		return s.failed("watch", s.bad)
	}
	if s.native() {
		<-ctx.Done()
		return s.failed("watch", ctx.Err())
	}
	own := expiries.Feed{Conn: s.c, Stream: s.stream, Native: s.native, Sweep: func(ctx context.Context, _ string) (int64, error) { return s.sweep(ctx) }}
	return s.failed("watch", own.Watch(ctx))
}

// Watch is Set.Watch for all sets of the family.
func (f *Family[T]) Watch(ctx context.Context) error {
	return fmt.Errorf("expset: family %q: watch: %w", f.home, f.feed.Watch(ctx))
}
