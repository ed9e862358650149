package expmap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/expiries"
	"github.com/ebbdb/ebb/internal/kit"
)

// Expired is the event of an entry whose deadline has passed.
type Expired[K comparable, V any] struct {
	// ID identifies the event. It is the same in each delivery.
	ID string
	// Map is the name of the map in its family; "" for a map without a family.
	Map string
	Key K
	// Value is the entry's value if HasValue. An event does not contain a value above one megabyte.
	Value    V
	HasValue bool
	// Deadline is the deadline that has passed, by the server's clock. FiredAt is the instant at which the
	// backend recorded the expiration.
	Deadline, FiredAt time.Time
	// Err is the reason why Key or Value could not be decoded; it wraps ebb.ErrValue.
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

// OnExpired calls fn with each expiration in a map with Options.Events, until the context ends; the context's
// error is in the chain of the returned error. Calls with the same listener share the events. Each listener
// gets all events, beginning with the ones that were recorded before its first call. Events are kept while no
// listener runs, even across restarts, and are delivered at least once, one after the other: if fn does not
// return nil, again after ListenOptions.ClaimAfter. Deleting, overwriting and clearing record no expiration.
//
// On ebb an event arrives one or two milliseconds after the deadline. On other servers a call must detect the
// expiration: every operation on the map does, and OnExpired itself does at the next deadline, at most 200 ms
// late.
func (m *Map[K, V]) OnExpired(ctx context.Context, listener string, fn func(ctx context.Context, e Expired[K, V]) error,
	opts ...ListenOptions) error {
	if err := m.begin(ctx, false); err != nil {
		return m.failed("listen", err)
	}
	if m.sub != "" {
		return m.failed("listen", fmt.Errorf("%w: the map belongs to a family; call OnExpired of the family", conn.ErrArgument))
	}
	return m.failed("listen", m.listen(ctx, m.feed, listener, fn, opts))
}

// OnExpired does the work of Map.OnExpired for all maps of the family.
func (f *Family[K, V]) OnExpired(ctx context.Context, listener string, fn func(ctx context.Context, e Expired[K, V]) error,
	opts ...ListenOptions) error {
	if err := f.listen(ctx, f.feed, listener, fn, opts); err != nil {
		return fmt.Errorf("expmap: family %q: listen: %w", f.home, err)
	}
	return nil
}

func (k *core[K, V]) listen(ctx context.Context, feed *expiries.Feed, listener string, fn func(ctx context.Context, e Expired[K, V]) error,
	opts []ListenOptions) error {
	o, err := kit.Option(opts)
	if err != nil {
		return err
	}
	x := expiries.Object{Feed: feed, Kind: "map", Home: k.home, Logger: k.o.Logger}
	if !k.o.Events {
		x.Absent = ErrNoEvents
	}
	return x.OnExpired(ctx, listener, expiries.ListenOptions(o), fn != nil, func(ctx context.Context, name string, x expiries.Entry) error {
		e := Expired[K, V]{ID: x.ID, Map: name, HasValue: x.HasValue, Deadline: time.UnixMilli(x.Deadline), FiredAt: time.UnixMilli(x.FiredAt)}
		e.Key, e.Err = k.o.Keys.Decode([]byte(x.Item))
		if x.HasValue {
			var err error
			if e.Value, err = k.decode(x.Value); err != nil {
				e.HasValue, e.Err = false, errors.Join(e.Err, err)
			}
		}
		return fn(ctx, e)
	})
}

// Watch removes expired entries in time, even while no program uses the map, until the context ends; the
// context's error is in the chain of the returned error. It continues after lost connections. On ebb, and on
// servers whose hash fields have deadlines, the server removes them, and Watch only waits.
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

// Watch does the work of Map.Watch for all maps of the family.
func (f *Family[K, V]) Watch(ctx context.Context) (err error) {
	if f.unwatched() {
		<-ctx.Done()
		err = ctx.Err()
	} else {
		err = f.feed.Watch(ctx)
	}
	return fmt.Errorf("expmap: family %q: watch: %w", f.home, err)
}

// unwatched reports whether the server removes expired entries by itself.
func (k *core[K, V]) unwatched() bool { return k.native() || k.mode() == modeFields }
