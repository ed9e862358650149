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

// feed is the feed of one server, or of all masters of a cluster if each master has events
// of its own. A goroutine reads each connection. It stops reading while the caller takes
// no message, so the server's own limit for slow subscribers applies. When one connection
// is lost, the feed connects to all servers again.
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
	// masters are the nodes of the present subscription, for events of nodes; else nil. Once
	// run has started, only run uses it.
	masters []*redis.Client
	out     chan feedItem
	ctx     context.Context // ends with close
	cancel  context.CancelFunc
	runner  sync.WaitGroup
	once    sync.Once
}

type feedItem struct {
	m   conn.Message
	err error
}

var (
	// errMoved ends a sharded subscription whose slot has moved.
	errMoved = errors.New("the channel's slot has moved to another node")
	// errMasters ends a subscription to the events of all nodes when the masters have
	// changed.
	errMasters = errors.New("the cluster has other masters")
	// errAgain ends a subscription for which go-redis has made a new connection.
	errAgain = errors.New("the connection was made again")
)

// source is a connection that is subscribed.
type source struct {
	*redis.PubSub
	early []*redis.Message // that came before the last confirmation
	state atomic.Int32     // of silent, heard and holding
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
	f := &feed{b: b, kind: kind, names: names, out: make(chan feedItem)}
	sources, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.runner.Go(func() { f.run(sources) })
	return f, nil
}

// open subscribes, and returns when that is confirmed.
func (f *feed) open(ctx context.Context) (sources []*source, err error) {
	var v conn.Value
	within := f.b.subscribeTimeout()
	try := func(of ...subscriber) remote.Answer {
		var a remote.Answer
		sources, a = subscribeOn(ctx, of, f.kind, f.names, within)
		return a
	}
	k := f.b.nodes
	switch {
	case k == nil:
		v, err = f.b.policy.Persist(ctx, "subscribe", func() remote.Answer { return try(f.b.client) })
	case f.kind != conn.Sharded && eventsOfNodes(f.names):
		nodes, err := k.masters(ctx)
		if err != nil {
			return nil, err
		}
		all := make([]subscriber, len(nodes))
		for i, n := range nodes {
			all[i] = n
		}
		f.masters = nodes
		v, err = f.b.policy.Persist(ctx, "subscribe", func() remote.Answer { return try(all...) })
		if err == nil {
			err = v.Err()
		}
		return sources, err
	default:
		v, err = k.at(ctx, "subscribe", f.names[0], func(_ context.Context, node *redis.Client, _ bool) remote.Answer { return try(node) })
	}
	if err == nil {
		err = v.Err()
	}
	return sources, err
}

// subscribeTimeout is the limit for a server to confirm a subscription: the time to
// connect and the time for one reply. For a client without a read timeout it is the time
// after which the feed's liveness check would close the connection.
func (b *driver) subscribeTimeout() time.Duration {
	dial, reply := time.Duration(0), time.Duration(0)
	switch {
	case b.one != nil:
		dial, reply = b.one.Options().DialTimeout, b.one.Options().ReadTimeout
	case b.nodes != nil:
		dial, reply = b.nodes.client.Options().DialTimeout, b.nodes.client.Options().ReadTimeout
	}
	if reply <= 0 {
		reply = routing.FeedTimeout
	}
	return max(dial, 0) + reply
}

// eventsOfNodes reports whether a name is a channel of keyspace events, which a node
// publishes for its own keys only.
func eventsOfNodes(names []string) bool {
	for _, n := range names {
		if strings.HasPrefix(n, "__key") {
			return true
		}
	}
	return false
}

// subscriber is a client that subscribes.
type subscriber interface {
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
	PSubscribe(ctx context.Context, patterns ...string) *redis.PubSub
	SSubscribe(ctx context.Context, channels ...string) *redis.PubSub
}

// subscribeOn subscribes on every given server, or on none. It fails if a server does not
// confirm within the timeout.
func subscribeOn(ctx context.Context, of []subscriber, kind conn.SubscribeKind, names []string, within time.Duration) (sources []*source, a remote.Answer) {
	for _, s := range of {
		if ctx.Err() != nil {
			closeAll(sources)
			return nil, remote.Answer{Err: lost(ctx, "subscribe", ctx.Err())}
		}
		bounded, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("%w: no subscription within %v", routing.ErrUnresponsive, within))
		ps, err := subscribeTo(bounded, s, kind, names)
		src := &source{PubSub: ps}
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
				return errMoved
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

// run reads until the feed is closed, and subscribes again when a connection is
// lost. The receiver of the messages gets an error for both.
func (f *feed) run(sources []*source) {
	for {
		err := f.readAll(sources)
		if f.ctx.Err() != nil {
			return
		}
		f.give(feedItem{err: fmt.Errorf("%w: %w", conn.ErrInterrupted, err)})
		for pause := routing.FeedRetry; ; pause = min(2*pause, routing.FeedRetryMax) {
			ctx, cancel := context.WithTimeout(f.ctx, routing.FeedTimeout)
			sources, err = f.open(ctx)
			cancel()
			if err == nil {
				break
			}
			if f.wait(pause); f.ctx.Err() != nil {
				return
			}
		}
		f.give(feedItem{err: fmt.Errorf("%w: it goes on from here", conn.ErrInterrupted)})
	}
}

// readAll reads all connections until the first one is lost or the feed is closed, and
// then closes all.
func (f *feed) readAll(sources []*source) error {
	ctx, cancel := context.WithCancelCause(f.ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { closeAll(sources) })
	defer stop()
	var readers sync.WaitGroup
	for _, s := range sources {
		readers.Go(func() { cancel(f.read(ctx, s)) })
	}
	readers.Go(func() { cancel(listen(ctx, sources)) })
	if f.masters != nil {
		readers.Go(func() { cancel(f.watchMasters(ctx, f.masters)) })
	}
	readers.Wait()
	closeAll(sources)
	return context.Cause(ctx)
}

// watchMasters returns an error when the masters of the cluster are no longer the given
// ones.
func (f *feed) watchMasters(ctx context.Context, are []*redis.Client) error {
	tick := time.NewTicker(routing.FeedRefresh)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if now, err := f.b.nodes.masters(ctx); err == nil && !slices.EqualFunc(now, are, sameNode) {
			return errMasters
		}
	}
}

func sameNode(a, b *redis.Client) bool { return a.Options().Addr == b.Options().Addr }

// read receives from one connection.
func (f *feed) read(ctx context.Context, s *source) error {
	for _, m := range s.early {
		f.message(s, m)
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
			f.message(s, m)
		case *redis.Subscription: // we have requested none
			if m.Kind == "sunsubscribe" {
				return errMoved
			}
			return errAgain
		default:
			s.state.Store(heard)
		}
	}
}

func (f *feed) message(s *source, m *redis.Message) {
	s.state.Store(holding)
	f.give(feedItem{m: conn.Message{Channel: m.Channel, Pattern: m.Pattern, Payload: m.Payload}})
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

// give hands an item to Next.
func (f *feed) give(i feedItem) {
	select {
	case f.out <- i:
	case <-f.ctx.Done():
	}
}

func (f *feed) wait(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-f.ctx.Done():
	}
}

// Next implements Feed.
func (f *feed) Next(ctx context.Context) (conn.Message, error) {
	if ctx.Err() != nil {
		return conn.Message{}, conn.Ended(ctx, "subscription")
	}
	select {
	case i := <-f.out:
		return i.m, i.err
	case <-f.ctx.Done():
		return conn.Message{}, conn.ErrClosed
	case <-ctx.Done():
		return conn.Message{}, conn.Ended(ctx, "subscription")
	}
}

// Close implements Feed.
func (f *feed) Close() error {
	f.once.Do(func() {
		f.cancel()
		f.runner.Wait()
	})
	return nil
}
