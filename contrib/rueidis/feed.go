package rueidisebb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
)

// feedBuffer is the number of messages that can wait for Next. When it is full, the driver
// stops reading the connection. rueidis then closes the connection after its
// ConnWriteTimeout (10 s), and the subscriber gets an interruption.
const feedBuffer = 1024

// feed is a subscription on a dedicated client, or on one for each master of a cluster if
// each master has events of its own. When one of them is lost, a goroutine subscribes on
// all of them again.
type feed struct {
	d     *driver
	kind  conn.SubscribeKind
	names []string
	// masters are the nodes of the present subscription, for events of nodes; else nil. Once
	// run has started, only run uses it.
	masters []master
	out     chan item
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	runner  sync.WaitGroup
	once    sync.Once
}

type item struct {
	m   conn.Message
	err error
}

// Subscribe implements ebb.Driver.
func (d *driver) Subscribe(ctx context.Context, kind conn.SubscribeKind, names []string) (conn.Feed, error) {
	if err := d.enter(ctx); err != nil {
		return nil, err
	}
	defer d.calls.Leave()
	if kind == conn.Sharded {
		if _, err := d.oneSlot("SSubscribe", slices.Values(names)); err != nil {
			return nil, err
		}
	}
	f := &feed{d: d, kind: kind, names: names, out: make(chan item, feedBuffer)}
	f.ctx, f.cancel = context.WithCancel(d.ctx)
	sources, err := f.open(ctx)
	if err != nil {
		f.cancel()
		return nil, err
	}
	d.feeds.Add(1)
	f.runner.Go(func() {
		defer d.feeds.Done()
		f.run(sources)
	})
	return f, nil
}

// open subscribes, and returns when that is confirmed.
func (f *feed) open(ctx context.Context) (sources []*source, err error) {
	d := f.d
	var v conn.Value
	if d.cluster && f.kind != conn.Sharded && eventsOfNodes(f.names) {
		all, err := d.masters(ctx)
		if err != nil {
			return nil, err
		}
		for _, m := range all {
			var s *source
			v, err = d.policy.Persist(ctx, "subscribe", func() (a remote.Answer) {
				s, a = f.subscribe(ctx, m, "")
				return a
			})
			if err == nil {
				err = v.Err()
			}
			if err != nil {
				closeAll(sources)
				return nil, fmt.Errorf("%s: %w", m.addr, err)
			}
			sources = append(sources, s)
		}
		f.masters = all
		return sources, nil
	}
	var s *source
	v, err = d.policy.Persist(ctx, "subscribe", func() (a remote.Answer) {
		s, a = f.subscribeAt(ctx)
		return a
	})
	if err == nil {
		err = v.Err()
	}
	if err != nil {
		return nil, err
	}
	return []*source{s}, nil
}

// subscribeAt subscribes once. In a cluster it finds the node of the first name and
// follows redirections, because rueidis does neither for a dedicated client.
func (f *feed) subscribeAt(ctx context.Context) (*source, remote.Answer) {
	if !f.d.cluster {
		return f.subscribe(ctx, f.d.client, "")
	}
	node := f.d.client
	for hop := 0; ; hop++ {
		s, a := f.subscribe(ctx, node, f.names[0])
		addr, _, ok := routing.Redirect(a.V)
		if s != nil || a.Err != nil || !ok || hop == hops {
			return s, a
		}
		if node = f.d.client.Nodes()[addr]; node == nil {
			return nil, a
		}
	}
}

// eventsOfNodes reports whether a name is a channel of keyspace events, which a node
// publishes for its own keys only.
func eventsOfNodes(names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "__key") })
}

// source is a connection that is subscribed.
type source struct {
	client  rueidis.DedicatedClient
	release func()
	lost    <-chan error
	moved   chan struct{} // a sharded channel went to another node
}

func (s *source) close() {
	s.client.Close()
	s.release()
}

func closeAll(sources []*source) {
	for _, s := range sources {
		s.close()
	}
}

// subscribe subscribes on a client, once. It returns when the server has confirmed each
// name, or after the timeout. With a key it first sends a command about that key, so that
// rueidis connects to its node.
func (f *feed) subscribe(ctx context.Context, on rueidis.Client, key string) (*source, remote.Answer) {
	c, release := on.Dedicate()
	s := &source{client: c, release: release, moved: make(chan struct{}, 1)}
	within := f.d.timeouts.dial + f.d.timeouts.reply
	if f.d.timeouts.reply <= 0 {
		within = routing.FeedTimeout
	}
	bounded, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("%w: no subscription within %v", routing.ErrUnresponsive, within))
	defer cancel()
	a := f.confirm(bounded, s, key)
	if cause := routing.LivenessError(ctx, bounded, a.Err); cause != nil {
		a = remote.Answer{Err: fmt.Errorf("rueidisebb: subscribe: %w: %w", conn.ErrUnavailable, cause), Ran: true}
	}
	if a.Err != nil || a.V.Err() != nil {
		s.close()
		return nil, a
	}
	return s, a
}

func (f *feed) confirm(ctx context.Context, s *source, key string) remote.Answer {
	d, c := f.d, s.client
	confirmed := make(chan struct{}, len(f.names))
	s.lost = c.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage: func(m rueidis.PubSubMessage) {
			f.give(item{m: conn.Message{Channel: m.Channel, Pattern: m.Pattern, Payload: m.Message}})
		},
		OnSubscription: func(sub rueidis.PubSubSubscription) {
			to := confirmed
			if strings.Contains(sub.Kind, "unsubscribe") { // the driver never requests that
				to = s.moved
			}
			select {
			case to <- struct{}{}:
			default:
			}
		},
	})
	if key != "" {
		a := d.answer(ctx, "subscribe", c.Do(ctx, c.B().Exists().Key(key).Build()))
		if _, _, ok := routing.Redirect(a.V); ok || a.Err != nil {
			return a
		}
	}
	a := d.answer(ctx, "subscribe", c.Do(ctx, f.command(c.B())))
	if a.Err != nil || a.V.Err() != nil {
		return a
	}
	for range f.names {
		select {
		case <-confirmed:
		case err := <-s.lost:
			if err == nil {
				err = rueidis.ErrClosing
			}
			return remote.Answer{Err: unavailable(ctx, "subscribe", err)}
		case <-ctx.Done():
			return remote.Answer{Err: fmt.Errorf("rueidisebb: subscribe: %w", ctx.Err())}
		}
	}
	return remote.Answer{Ran: true}
}

func (f *feed) command(b rueidis.Builder) rueidis.Completed {
	switch f.kind {
	case conn.Patterns:
		return b.Psubscribe().Pattern(f.names...).Build()
	case conn.Sharded:
		return b.Ssubscribe().Channel(f.names...).Build()
	}
	return b.Subscribe().Channel(f.names...).Build()
}

// run keeps the sources subscribed until the feed is closed. Next returns an error for
// each loss and for each new subscription.
func (f *feed) run(sources []*source) {
	for sources != nil {
		err := f.watch(sources)
		closeAll(sources)
		if f.ctx.Err() != nil {
			return
		}
		f.give(item{err: fmt.Errorf("%w: %w", conn.ErrInterrupted, err)})
		if sources = f.again(); sources != nil {
			f.give(item{err: fmt.Errorf("%w: it goes on from here", conn.ErrInterrupted)})
		}
	}
}

// watch waits until one of the sources is lost, or the feed is closed.
func (f *feed) watch(sources []*source) error {
	ctx, cancel := context.WithCancelCause(f.ctx)
	var all sync.WaitGroup
	for _, s := range sources {
		all.Go(func() {
			select {
			case err := <-s.lost:
				if err == nil {
					err = errors.New("the connection was closed")
				}
				cancel(err)
			case <-s.moved:
				cancel(errors.New("the channel's slot has moved to another node"))
			case <-ctx.Done():
			}
		})
	}
	if f.masters != nil {
		all.Go(func() {
			if f.otherMasters(ctx) {
				cancel(errors.New("the cluster has other masters"))
			}
		})
	}
	all.Wait()
	cancel(nil)
	return context.Cause(ctx)
}

// otherMasters waits until the masters of the cluster are no longer the subscribed ones.
// It reports false if ctx ends before.
func (f *feed) otherMasters(ctx context.Context) bool {
	for f.d.rest(ctx, routing.FeedRefresh, nil) {
		now, err := f.d.masters(ctx)
		if err == nil && !slices.EqualFunc(now, f.masters, func(a, b master) bool { return a.addr == b.addr }) {
			return true
		}
	}
	return false
}

// again opens the sources, and tries until it succeeds; it returns nil once the feed is
// closed.
func (f *feed) again() []*source {
	for pause := routing.FeedRetry; f.d.rest(f.ctx, pause, nil); pause = min(2*pause, routing.FeedRetryMax) {
		ctx, cancel := context.WithTimeout(f.ctx, routing.FeedTimeout)
		sources, err := f.open(ctx)
		cancel()
		if err == nil {
			return sources
		}
	}
	return nil
}

// give hands an item to Next.
func (f *feed) give(i item) {
	select {
	case f.out <- i:
	case <-f.ctx.Done():
	}
}

// Next implements ebb.Feed.
func (f *feed) Next(ctx context.Context) (conn.Message, error) {
	if f.ctx.Err() != nil {
		return conn.Message{}, conn.ErrClosed
	}
	if ctx.Err() != nil {
		return conn.Message{}, fmt.Errorf("rueidisebb: subscription: %w", ctx.Err())
	}
	select {
	case i := <-f.out:
		return i.m, i.err
	case <-f.ctx.Done():
		return conn.Message{}, conn.ErrClosed
	case <-ctx.Done():
		return conn.Message{}, fmt.Errorf("rueidisebb: subscription: %w", ctx.Err())
	}
}

// Close implements ebb.Feed.
func (f *feed) Close() error {
	f.once.Do(func() {
		f.cancel()
		f.runner.Wait()
	})
	return nil
}
