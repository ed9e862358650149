package rueidisebb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
)

// feedBuffer is the number of messages that can wait for Next. When it is full, the driver
// stops reading the connection. rueidis then closes the connection after its
// ConnWriteTimeout (10 s), and the subscriber gets an interruption.
const feedBuffer = 1024

// feed subscribes on a dedicated client, or on one for each master of a cluster if each
// master has events of its own, for remote.Feed. When one of them is lost, remote.Feed
// subscribes on all of them again.
type feed struct {
	d     *driver
	kind  conn.SubscribeKind
	names []string
}

// Subscribe implements conn.Driver.
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
	f := &feed{d: d, kind: kind, names: names}
	return remote.NewFeed(ctx, d.ctx, feedBuffer, f.open)
}

// open implements remote.Open.
func (f *feed) open(ctx context.Context, give func(conn.Message)) (func(context.Context) error, error) {
	d := f.d
	var masters []string // of a subscription to the events of nodes; else nil
	at := d.currentMaster(ctx)
	var sources []*source
	one := func(subscribe func() (*source, remote.Answer)) error {
		var s *source
		v, err := d.policy.Persist(ctx, "subscribe", func() (a remote.Answer) {
			s, a = subscribe()
			return a
		})
		if err == nil {
			err = v.Err()
		}
		if err != nil {
			closeAll(sources)
			return err
		}
		sources = append(sources, s)
		return nil
	}
	if !d.cluster || f.kind == conn.Sharded || !remote.EventsOfNodes(f.names) {
		if err := one(func() (*source, remote.Answer) { return f.subscribeAt(ctx, give) }); err != nil {
			return nil, err
		}
	} else {
		all, err := d.masters(ctx)
		if err != nil {
			return nil, err
		}
		for _, m := range all {
			if err := one(func() (*source, remote.Answer) { return f.subscribe(ctx, m, "", give) }); err != nil {
				return nil, fmt.Errorf("%s: %w", m.addr, err)
			}
		}
		masters = addresses(all)
	}
	return func(ctx context.Context) error { return f.watch(ctx, sources, masters, at) }, nil
}

// currentMaster returns the server to which a client that follows Sentinel leads, or "". When Sentinel names another master,
// rueidis uses that one. A dedicated client stays with the old master, which may live on for a while and does not announce
// the writes to the new one.
func (d *driver) currentMaster(ctx context.Context) string {
	if d.client.Mode() != rueidis.ClientModeSentinel {
		return ""
	}
	nodes := d.client.Nodes()
	for addr, n := range nodes {
		if len(nodes) == 1 {
			return addr
		}
		a := d.answer(ctx, "ROLE", n.Do(ctx, n.B().Role().Build()))
		if len(a.V.Elems) > 0 && a.V.Elems[0].Str == "master" {
			return addr
		}
	}
	return ""
}

// masterPoll returns the pause between two calls of currentMaster, which sends requests if the client reads from replicas too.
func (d *driver) masterPoll() time.Duration {
	if len(d.client.Nodes()) > 1 {
		return routing.FeedRefresh
	}
	return remote.MasterLook
}

func addresses(masters []master) []string {
	addrs := make([]string, len(masters))
	for i, m := range masters {
		addrs[i] = m.addr
	}
	return addrs
}

// subscribeAt subscribes once. In a cluster it finds the node of the first name and
// follows redirections, because rueidis does neither for a dedicated client.
func (f *feed) subscribeAt(ctx context.Context, give func(conn.Message)) (*source, remote.Answer) {
	if !f.d.cluster {
		return f.subscribe(ctx, f.d.client, "", give)
	}
	node := f.d.client
	for hop := 0; ; hop++ {
		s, a := f.subscribe(ctx, node, f.names[0], give)
		addr, _, ok := routing.Redirect(a.V)
		if s != nil || a.Err != nil || !ok || hop == hops {
			return s, a
		}
		if node = f.d.client.Nodes()[addr]; node == nil {
			return nil, a
		}
	}
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
func (f *feed) subscribe(ctx context.Context, on rueidis.Client, key string, give func(conn.Message)) (*source, remote.Answer) {
	c, release := on.Dedicate()
	s := &source{client: c, release: release, moved: make(chan struct{}, 1)}
	within := remote.SubscribeTimeout(f.d.timeouts.dial, f.d.timeouts.reply)
	bounded, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("%w: no subscription within %v", routing.ErrUnresponsive, within))
	defer cancel()
	a := f.confirm(bounded, s, key, give)
	if cause := routing.LivenessError(ctx, bounded, a.Err); cause != nil {
		a = remote.Answer{Err: fmt.Errorf("rueidisebb: subscribe: %w: %w", conn.ErrUnavailable, cause), Ran: true}
	}
	if a.Err != nil || a.V.Err() != nil {
		s.close()
		return nil, a
	}
	return s, a
}

func (f *feed) confirm(ctx context.Context, s *source, key string, give func(conn.Message)) remote.Answer {
	d, c := f.d, s.client
	confirmed := make(chan struct{}, len(f.names))
	s.lost = c.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage: func(m rueidis.PubSubMessage) {
			give(conn.Message{Channel: m.Channel, Pattern: m.Pattern, Payload: m.Message})
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

// watch waits until one of the sources is lost, the client leads to a server other than at, or ctx ends, and then closes all.
func (f *feed) watch(ctx context.Context, sources []*source, masters []string, at string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer closeAll(sources)
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
				cancel(remote.ErrMoved)
			case <-ctx.Done():
			}
		})
	}
	if masters != nil {
		all.Go(func() {
			cancel(remote.WatchMasters(ctx, masters, func(ctx context.Context) ([]string, error) {
				now, err := f.d.masters(ctx)
				return addresses(now), err
			}))
		})
	}
	if at != "" {
		all.Go(func() { cancel(remote.WatchMaster(ctx, f.d.masterPoll(), at, f.d.currentMaster)) })
	}
	all.Wait()
	cancel(nil)
	return context.Cause(ctx)
}
