package conn

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/drivers"
)

// Message is a message of a subscription. Keyspace events are messages too: on
// __keyevent@0__:expired the payload is the key, on __keyspace@0__:<key> it is the event. The
// server sends them if notify-keyspace-events says so:
//
//	c.Do(ctx, "CONFIG", "SET", "notify-keyspace-events", "Ex")
type Message struct {
	Channel string
	Pattern string // the pattern that matched, with PSubscribe
	Payload string
}

// Subscription receives the messages of its channels, in the order in which they were sent,
// from the moment it was made. Each message arrives once. Where messages may be missing, Next
// returns ErrInterrupted, so that the caller can read the source again. One goroutine at a time
// may use it; any goroutine may call Close. The caller must close it, or the Conn.
type Subscription struct {
	c *Conn
	f Feed
}

// Subscribe returns a subscription to the messages that are published on channels from now on.
func (c *Conn) Subscribe(ctx context.Context, channels ...string) (*Subscription, error) {
	return c.subscribe(ctx, Channels, channels)
}

// PSubscribe returns a subscription to the messages on the channels that match one of the
// patterns (of *, ?, [a-c] and \), from now on.
func (c *Conn) PSubscribe(ctx context.Context, patterns ...string) (*Subscription, error) {
	return c.subscribe(ctx, Patterns, patterns)
}

// SSubscribe returns a subscription to the messages that SPUBLISH sends to channels from now
// on. In a cluster all channels must be in one slot. A backend without sharded channels
// (Capabilities.ShardedPubSub) returns an error.
func (c *Conn) SSubscribe(ctx context.Context, channels ...string) (*Subscription, error) {
	return c.subscribe(ctx, Sharded, channels)
}

// Tracking is the channel of the messages of Conn.Track.
const Tracking = "__redis__:invalidate"

// Track returns a subscription to the keys that change from now on and begin with one of the prefixes, for a
// program that keeps copies of values (CLIENT TRACKING with BCAST). Writes, deletions, expirations and
// evictions are changes, including those of this Conn. A message has the channel Tracking, and the key as its
// payload. After FLUSHDB or FLUSHALL, either a message with the Pattern "*" stands for all keys, or Next
// returns ErrInterrupted. After ErrInterrupted no copy is valid. On an ebb server, Track first writes a key
// with the first prefix, which lives for a second, to verify that reports arrive. It returns
// errors.ErrUnsupported if the driver or the server cannot do that: Redis before 6, a Ring.
func (c *Conn) Track(ctx context.Context, prefixes ...string) (*Subscription, error) {
	if c.of != nil {
		return c.of.Track(ctx, prefixes...)
	}
	if len(prefixes) == 0 {
		return nil, fmt.Errorf("%w: Track needs at least one prefix; \"\" selects all keys", ErrArgument)
	}
	d, ok := Find[TrackingDriver](c)
	if !ok {
		return nil, fmt.Errorf("ebb: track: %s: the driver cannot track keys: %w", c, errors.ErrUnsupported)
	}
	return c.feed(ctx, "track", func() (Feed, error) { return d.Track(ctx, apart(prefixes)) })
}

// apart returns the prefixes that do not begin with another one; servers refuse such prefixes.
func apart(prefixes []string) []string {
	var some []string
	for _, p := range slices.Sorted(slices.Values(prefixes)) {
		if n := len(some); n == 0 || !strings.HasPrefix(p, some[n-1]) {
			some = append(some, p)
		}
	}
	return some
}

func (c *Conn) subscribe(ctx context.Context, kind SubscribeKind, names []string) (*Subscription, error) {
	if c.of != nil {
		return c.of.subscribe(ctx, kind, names)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: a subscription needs at least one channel", ErrArgument)
	}
	return c.feed(ctx, "subscribe", func() (Feed, error) { return c.d.Subscribe(ctx, kind, names) })
}

// feed opens a feed, which Close closes.
func (c *Conn) feed(ctx context.Context, doing string, open func() (Feed, error)) (*Subscription, error) {
	if ctx.Err() != nil {
		return nil, drivers.Ended(ctx, doing)
	}
	f, err := open()
	if err != nil {
		return nil, err
	}
	s := &Subscription{c: c, f: f}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errors.Join(ErrClosed, f.Close())
	}
	if c.subs == nil {
		c.subs = map[*Subscription]struct{}{}
	}
	c.subs[s] = struct{}{}
	c.mu.Unlock()
	return s, nil
}

// Next waits for a message. Errors: the context's; ErrInterrupted when the connection is lost,
// and again when the subscription has a new one; ErrClosed after Close; and another error if
// the backend has ended the subscription because its messages were not read in time.
func (s *Subscription) Next(ctx context.Context) (Message, error) { return s.f.Next(ctx) }

// All yields messages and the errors of Next, until the context ends or the subscription is closed, which it
// does not yield as an error.
func (s *Subscription) All(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for {
			m, err := s.Next(ctx)
			if ctx.Err() != nil || errors.Is(err, ErrClosed) {
				return
			}
			if !yield(m, err) {
				return
			}
			if err != nil && !errors.Is(err, ErrInterrupted) {
				return
			}
		}
	}
}

// Close ends the subscription.
func (s *Subscription) Close() error {
	s.c.mu.Lock()
	delete(s.c.subs, s)
	s.c.mu.Unlock()
	return s.f.Close()
}
