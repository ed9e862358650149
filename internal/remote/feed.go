package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/conn/driverutil"
	"github.com/ebbdb/ebb/internal/routing"
)

// These errors say why a driver has ended a subscription that it opens again.
var (
	// ErrMoved ends a sharded subscription whose slot has moved.
	ErrMoved = errors.New("the channel's slot has moved to another node")
	// ErrMasters ends a subscription to the events of all nodes when the masters have
	// changed.
	ErrMasters = errors.New("the cluster has other masters")
	// ErrMaster ends a subscription to a server when the client has another master.
	ErrMaster = errors.New("the client has connected to another master")
)

// Feed is a conn.Feed that a goroutine keeps subscribed. When the subscription is lost, the
// goroutine opens it again. Next returns an error for each loss and for each new
// subscription. NewFeed makes a Feed.
type Feed struct {
	open   Open
	out    chan feedItem
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	runner sync.WaitGroup
	once   sync.Once
}

// Open subscribes once, and returns when the servers have confirmed that. It hands messages
// to give, which blocks until Next takes them or the feed is closed. The function that it
// returns reads until a connection is lost or its context ends, closes all connections,
// and returns the reason.
type Open func(ctx context.Context, give func(conn.Message)) (listen func(ctx context.Context) error, err error)

type feedItem struct {
	m   conn.Message
	err error
}

// NewFeed opens a subscription. ctx bounds the first attempt, and life the feed. Up to
// buffer messages wait for Next. The caller must Close the feed or end life, and in both
// cases call Close to wait for the goroutine.
func NewFeed(ctx, life context.Context, buffer int, open Open) (*Feed, error) {
	f := &Feed{open: open, out: make(chan feedItem, buffer)}
	f.ctx, f.cancel = context.WithCancel(life)
	listen, err := open(ctx, f.give)
	if err != nil {
		f.cancel()
		return nil, err
	}
	f.runner.Go(func() { f.run(listen) })
	return f, nil
}

// run keeps the feed subscribed until it is closed.
func (f *Feed) run(listen func(context.Context) error) {
	for listen != nil {
		err := listen(f.ctx)
		if f.ctx.Err() != nil {
			return
		}
		f.put(feedItem{err: fmt.Errorf("%w: %w", conn.ErrInterrupted, err)})
		if listen = f.again(); listen != nil {
			f.put(feedItem{err: fmt.Errorf("%w: it goes on from here", conn.ErrInterrupted)})
		}
	}
}

// again opens the subscription, in as many attempts as that takes. It returns nil when the
// feed is closed.
func (f *Feed) again() func(context.Context) error {
	for pause := routing.FeedRetry; ; pause = min(2*pause, routing.FeedRetryMax) {
		ctx, cancel := context.WithTimeout(f.ctx, routing.FeedTimeout)
		listen, err := f.open(ctx, f.give)
		cancel()
		if err == nil {
			return listen
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-f.ctx.Done():
			t.Stop()
			return nil
		}
	}
}

func (f *Feed) give(m conn.Message) { f.put(feedItem{m: m}) }

// put hands an item to Next.
func (f *Feed) put(i feedItem) {
	select {
	case f.out <- i:
	case <-f.ctx.Done():
	}
}

// Next implements conn.Feed.
func (f *Feed) Next(ctx context.Context) (conn.Message, error) {
	if ctx.Err() != nil {
		return conn.Message{}, driverutil.Ended(ctx, "subscription")
	}
	if f.ctx.Err() != nil {
		return conn.Message{}, conn.ErrClosed
	}
	select {
	case i := <-f.out:
		return i.m, i.err
	case <-f.ctx.Done():
		return conn.Message{}, conn.ErrClosed
	case <-ctx.Done():
		return conn.Message{}, driverutil.Ended(ctx, "subscription")
	}
}

// Close implements conn.Feed.
func (f *Feed) Close() error {
	f.once.Do(func() {
		f.cancel()
		f.runner.Wait()
	})
	return nil
}

// SubscribeTimeout returns the limit for a server to confirm a subscription: the time to
// connect and the time for one reply. For a client without a read timeout the second part
// is routing.FeedTimeout.
func SubscribeTimeout(dial, reply time.Duration) time.Duration {
	if reply <= 0 {
		reply = routing.FeedTimeout
	}
	return max(dial, 0) + reply
}

// EventsOfNodes reports whether a name is a channel of keyspace events, which a node of a
// cluster publishes for its own keys alone.
func EventsOfNodes(names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "__key") })
}

// WatchMasters returns ErrMasters when the masters of a cluster are no longer the given
// addresses, and the context's error when it ends before. now returns the present ones.
func WatchMasters(ctx context.Context, are []string, now func(ctx context.Context) ([]string, error)) error {
	tick := time.NewTicker(routing.FeedRefresh)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if addrs, err := now(ctx); err == nil && !slices.Equal(addrs, are) {
			return ErrMasters
		}
	}
}

// MasterLook is the time after which a subscription looks again where its client leads: short, because a look costs no request, and an old
// master does not announce the writes to the new one.
const MasterLook = 250 * time.Millisecond

// WatchMaster returns ErrMaster when a client that follows its master no longer leads to the address was, and the context's error when
// it ends before. now returns the present address, "" if it is not known.
func WatchMaster(ctx context.Context, every time.Duration, was string, now func(ctx context.Context) string) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if at := now(ctx); at != "" && at != was {
			return ErrMaster
		}
	}
}
