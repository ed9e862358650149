package expmap

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/expiries"
	"github.com/ebbdb/ebb/internal/kit"
)

// Expired is an entry whose time was over.
type Expired[K comparable, V any] struct {
	// ID is the event's: the same each time it is delivered.
	ID string
	// Map is the name of the map in its family; empty for a map of its own.
	Map string
	Key K
	// Value is what it was, if HasValue: values of more than a megabyte are left out.
	Value    V
	HasValue bool
	// Deadline is when its time was over, by the server's clock, and FiredAt when that
	// was noticed.
	Deadline, FiredAt time.Time
	// Err is why Key or Value could not be read; it wraps ebb.ErrValue.
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

// OnExpired calls fn with each expiry of a map with Options.Events until the context
// ends, whose error is in the chain of its own. Calls with the same listener share
// the expiries; each of several listeners gets them all, beginning with those that are
// kept when it is first named. They are kept while no listener runs, also across
// restarts, and delivered at least once, one after the other: again, after
// ListenOptions.ClaimAfter, until a call of fn returns nil. Deleting, overwriting and clearing
// is no expiry.
//
// On ebb an expiry comes a millisecond or two after its deadline. Elsewhere a call must
// notice: every operation on the map does, and OnExpired itself looks when the next
// deadline has come, or 200 ms later at most.
func (m *Map[K, V]) OnExpired(ctx context.Context, listener string, fn func(ctx context.Context, e Expired[K, V]) error, opts ...ListenOptions) error {
	if err := m.begin(ctx, false); err != nil {
		return m.failed("listen", err)
	}
	if m.sub != "" {
		return m.failed("listen", fmt.Errorf("%w: it belongs to a family: listen to that", conn.ErrArgument))
	}
	return m.failed("listen", m.listen(ctx, m.feed, listener, fn, opts))
}

// OnExpired is Map.OnExpired for all maps of the family.
func (f *Family[K, V]) OnExpired(ctx context.Context, listener string, fn func(ctx context.Context, e Expired[K, V]) error, opts ...ListenOptions) error {
	if err := f.listen(ctx, f.feed, listener, fn, opts); err != nil {
		return fmt.Errorf("expmap: family %q: listen: %w", f.home, err)
	}
	return nil
}

func (k *core[K, V]) listen(ctx context.Context, feed *expiries.Feed, listener string, fn func(ctx context.Context, e Expired[K, V]) error, opts []ListenOptions) error {
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
	return feed.Listen(ctx, expiries.Options{
		Group: listener, Consumer: o.Consumer, Redeliver: o.ClaimAfter,
		Failed: func(err error) {
			if k.o.Logger != nil {
				k.o.Logger.Warn("expmap: "+err.Error(), "map", k.home, "listener", listener)
			}
		},
	}, func(ctx context.Context, x expiries.Entry) error {
		e := Expired[K, V]{ID: x.ID, HasValue: x.HasValue, Deadline: time.UnixMilli(x.Deadline), FiredAt: time.UnixMilli(x.FiredAt)}
		if feed.Index != "" {
			e.Map = strings.TrimPrefix(x.Key, prefix)
		}
		var err error
		e.Key, e.Err = k.o.Keys.Decode([]byte(x.Item))
		if x.HasValue {
			if e.Value, err = k.decode(x.Value); err != nil {
				e.HasValue, e.Err = false, errors.Join(e.Err, err)
			}
		}
		return fn(ctx, e)
	})
}

// Watch removes what is dead in time, also while no program uses the map, until the context
// ends, whose error is in the chain of its own. It outlives lost connections. On ebb, and
// wherever fields have deadlines, that happens by itself.
func (m *Map[K, V]) Watch(ctx context.Context) error {
	if m.bad != nil {
		return m.failed("watch", m.bad)
	}
	if m.unwatched() {
		<-ctx.Done()
		return m.failed("watch", ctx.Err())
	}
	own := expiries.Feed{Conn: m.c, Native: m.native, Sweep: func(ctx context.Context, _ string) (int64, error) { return m.sweep(ctx) }}
	return m.failed("watch", own.Watch(ctx))
}

// Watch is Map.Watch for all maps of the family.
func (f *Family[K, V]) Watch(ctx context.Context) (err error) {
	if f.unwatched() {
		<-ctx.Done()
		err = ctx.Err()
	} else {
		err = f.feed.Watch(ctx)
	}
	return fmt.Errorf("expmap: family %q: watch: %w", f.home, err)
}

// unwatched reports whether the server removes the dead by itself.
func (k *core[K, V]) unwatched() bool { return k.native() || k.mode() == modeFields }
