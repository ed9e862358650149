package goredis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
)

// feedQuiet is the time for which a subscription receives nothing before it sends PING.
// The feed notices a connection that is lost without an error within three times
// feedQuiet.
const feedQuiet = 15 * time.Second

// feed subscribes on one server, or on all masters of a cluster if each master has events of
// its own, for remote.Feed. A goroutine reads each connection. It stops reading while the
// caller takes no message, so the server's own limit for slow subscribers applies. When one
// connection is lost, all are closed, and remote.Feed subscribes again.
//
// Next returns each message, or returns an error for the interruption in which messages
// were lost. go-redis reconnects by itself and does not report it. So the feed closes its
// sources at every error, and at a confirmation that it has not requested. A read has no
// deadline, because a deadline in the middle of a message would make the next read begin
// there. The liveness check of the feed (listen) closes a connection that is silent.
type feed struct {
	b     *driver
	kind  conn.SubscribeKind
	names []string
	track *tracker // of a feed of Track; else nil
}

// errAgain ends a subscription for which go-redis has made a new connection.
var errAgain = errors.New("the connection was made again")

// source is a connection that is subscribed.
type source struct {
	*redis.PubSub
	early []*redis.Message // that came before the last confirmation
	probe string           // the beginning of keys that the tracker has written
	at    dialed
	state atomic.Int32 // of silent, heard and holding
}

// The state of a source since its liveness check last looked.
const (
	silent  = iota // it received nothing
	heard          // it received something
	holding        // it waits until Next takes a message, and reads nothing meanwhile
)

// Subscribe implements Driver.
func (b *driver) Subscribe(ctx context.Context, kind conn.SubscribeKind, names []string) (conn.Feed, error) {
	if !b.calls.Enter() {
		return nil, conn.ErrClosed
	}
	defer b.calls.Leave()
	if err := b.probe.Known(ctx); err != nil {
		return nil, err
	}
	if kind == conn.Sharded && b.nodes != nil {
		if _, err := remote.OneSlot("SSubscribe", slices.Values(names)); err != nil {
			return nil, err
		}
	}
	f := &feed{b: b, kind: kind, names: names}
	return remote.NewFeed(ctx, context.Background(), 0, f.open)
}

// open implements remote.Open.
func (f *feed) open(ctx context.Context, give func(conn.Message)) (func(context.Context) error, error) {
	var sources []*source
	var masters []string // of a subscription to the events of nodes; else nil
	var at string        // the node of a subscription to one node, if a client without a real cluster can lead elsewhere
	var v conn.Value
	var err error
	within := f.b.subscribeTimeout()
	var clients []*redis.Client // of Track
	try := func(of ...subscriber) remote.Answer {
		var a remote.Answer
		if f.track != nil {
			closeClients(clients)
			clients = f.track.clients(of)
			of = subscribers(clients)
		}
		sources, a = subscribeOn(ctx, of, f.kind, f.names, within)
		return a
	}
	k := f.b.nodes
	switch {
	case k == nil:
		v, err = f.b.policy.Persist(ctx, "subscribe", func() remote.Answer { return try(f.b.client) })
	case f.track != nil, f.kind != conn.Sharded && remote.EventsOfNodes(f.names):
		nodes, merr := k.masters(ctx)
		if merr != nil {
			return nil, merr
		}
		masters = addresses(nodes)
		if k.artificial() && len(nodes) == 1 {
			at = masters[0]
		}
		v, err = f.b.policy.Persist(ctx, "subscribe", func() remote.Answer { return try(subscribers(nodes)...) })
	default:
		v, err = k.at(ctx, "subscribe", f.names[0], func(_ context.Context, node *redis.Client, _ bool) remote.Answer {
			if k.artificial() {
				at = node.Options().Addr
			}
			return try(node)
		})
	}
	if err == nil {
		err = v.Err()
	}
	if err == nil && f.track != nil {
		if err = f.track.verify(ctx, sources, within); err != nil {
			closeAll(sources)
		}
	}
	if err != nil {
		closeClients(clients)
		return nil, err
	}
	return func(ctx context.Context) error {
		defer closeClients(clients)
		return f.readAll(ctx, sources, masters, at, give)
	}, nil
}

func subscribers(clients []*redis.Client) []subscriber {
	all := make([]subscriber, len(clients))
	for i, c := range clients {
		all[i] = c
	}
	return all
}

func addresses(nodes []*redis.Client) []string {
	addrs := make([]string, len(nodes))
	for i, n := range nodes {
		addrs[i] = n.Options().Addr
	}
	return addrs
}

// subscribeTimeout is the limit for a server to confirm a subscription.
func (b *driver) subscribeTimeout() time.Duration {
	switch {
	case b.one != nil:
		return remote.SubscribeTimeout(b.one.Options().DialTimeout, b.one.Options().ReadTimeout)
	case b.nodes != nil:
		return remote.SubscribeTimeout(b.nodes.client.Options().DialTimeout, b.nodes.client.Options().ReadTimeout)
	}
	return remote.SubscribeTimeout(0, 0)
}

// subscriber is a client that subscribes.
type subscriber interface {
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
	PSubscribe(ctx context.Context, patterns ...string) *redis.PubSub
	SSubscribe(ctx context.Context, channels ...string) *redis.PubSub
}

// subscribeOn subscribes on every given server, or on none. It fails if a server does not
// confirm within the timeout.
func subscribeOn(ctx context.Context, of []subscriber, kind conn.SubscribeKind, names []string,
	within time.Duration) (sources []*source, a remote.Answer) {
	for _, s := range of {
		if ctx.Err() != nil {
			closeAll(sources)
			return nil, remote.Answer{Err: lost(ctx, "subscribe", ctx.Err())}
		}
		bounded, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("%w: no subscription within %v", routing.ErrUnresponsive, within))
		src := &source{}
		var err error
		src.PubSub, err = subscribeTo(context.WithValue(bounded, dialedKey{}, &src.at), s, kind, names)
		sources = append(sources, src)
		if err == nil {
			err = src.confirmed(bounded, kind, len(names), within)
		}
		if err != nil {
			closeAll(sources)
			if v, ok := errorValue(err); ok {
				a = remote.Answer{V: v, Ran: !routing.Untouched(v)}
			} else {
				a = blamed(ctx, bounded, "subscribe", remote.Answer{Err: lost(bounded, "subscribe", err)})
			}
			sources = nil
		}
		cancel()
		if err != nil {
			return nil, a
		}
	}
	return sources, remote.Answer{Ran: true}
}

// subscribeTo requests a subscription from a server.
func subscribeTo(ctx context.Context, of subscriber, kind conn.SubscribeKind, names []string) (*redis.PubSub, error) {
	if _, ok := of.(*redis.Client); !ok { // a Ring needs a name to find the server
		switch kind {
		case conn.Patterns:
			return of.PSubscribe(ctx, names...), nil
		case conn.Sharded:
			return of.SSubscribe(ctx, names...), nil
		}
		return of.Subscribe(ctx, names...), nil
	}
	ps := of.Subscribe(ctx) // without names, because Subscribe drops their error
	switch kind {
	case conn.Patterns:
		return ps, ps.PSubscribe(ctx, names...)
	case conn.Sharded:
		return ps, ps.SSubscribe(ctx, names...)
	}
	return ps, ps.Subscribe(ctx, names...)
}

// confirmed waits until the server has confirmed each name. Only closing the
// connection ends a read that the context's cancellation finds in the middle.
func (s *source) confirmed(ctx context.Context, kind conn.SubscribeKind, names int, within time.Duration) error {
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	for names > 0 {
		x, err := s.ReceiveTimeout(ctx, within)
		if err != nil {
			if !stop() { // the error comes from the close below
				return ctx.Err()
			}
			return err
		}
		switch m := x.(type) {
		case *redis.Message:
			s.early = append(s.early, m)
		case *redis.Subscription:
			if !strings.EqualFold(m.Kind, kind.Command()) {
				return remote.ErrMoved
			}
			names--
		}
	}
	if !stop() {
		return ctx.Err()
	}
	return nil
}

func closeAll(sources []*source) {
	for _, ps := range sources {
		_ = ps.Close() // ends a read that waits
	}
}

// readAll reads all connections until the first one is lost, the client leads elsewhere, or ctx ends, and then closes all.
func (f *feed) readAll(ctx context.Context, sources []*source, masters []string, at string, give func(conn.Message)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { closeAll(sources) })
	defer stop()
	var readers sync.WaitGroup
	for _, s := range sources {
		readers.Go(func() { cancel(s.read(ctx, give)) })
	}
	readers.Go(func() { cancel(listen(ctx, sources)) })
	if f.b.moves != nil {
		for _, s := range sources {
			readers.Go(func() { cancel(f.b.moves.watch(ctx, &s.at)) })
		}
	}
	if masters != nil {
		readers.Go(func() {
			cancel(remote.WatchMasters(ctx, masters, func(ctx context.Context) ([]string, error) {
				nodes, err := f.b.nodes.masters(ctx)
				return addresses(nodes), err
			}))
		})
	}
	if at != "" {
		readers.Go(func() {
			cancel(remote.WatchMaster(ctx, remote.MasterLook, at, func(ctx context.Context) string { return f.b.nodes.address(ctx, f.names[0]) }))
		})
	}
	readers.Wait()
	closeAll(sources)
	return context.Cause(ctx)
}

// read receives from one connection.
func (s *source) read(ctx context.Context, give func(conn.Message)) error {
	for _, m := range s.early {
		s.message(m, give)
	}
	s.early = nil
	for {
		x, err := s.Receive(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		}
		switch m := x.(type) {
		case *redis.Message:
			s.message(m, give)
		case *redis.Subscription: // we have requested none
			if m.Kind == "sunsubscribe" {
				return remote.ErrMoved
			}
			return errAgain
		default:
			s.state.Store(heard)
		}
	}
}

func (s *source) message(m *redis.Message, give func(conn.Message)) {
	s.state.Store(holding)
	for _, key := range m.PayloadSlice { // an invalidation
		if s.probe != "" && strings.HasPrefix(key, s.probe) {
			continue
		}
		give(conn.Message{Channel: m.Channel, Payload: key})
	}
	if m.PayloadSlice != nil {
		s.state.Store(heard)
		return
	}
	give(conn.Message{Channel: m.Channel, Pattern: m.Pattern, Payload: m.Payload})
	s.state.Store(heard)
}

// listen sends PING on a source that was silent for feedQuiet. It returns an error when
// the PING cannot be sent or gets no answer.
func listen(ctx context.Context, sources []*source) error {
	tick := time.NewTicker(feedQuiet)
	defer tick.Stop()
	pinged := make([]bool, len(sources))
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		for i, s := range sources {
			switch {
			case s.state.CompareAndSwap(heard, silent), s.state.Load() == holding:
				pinged[i] = false
			case pinged[i]:
				return fmt.Errorf("%w for %v", routing.ErrUnresponsive, feedQuiet)
			default:
				if err := s.Ping(ctx); err != nil {
					return err
				}
				pinged[i] = true
			}
		}
	}
}
