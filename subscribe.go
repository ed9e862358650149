package ebb

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/ebbdb/ebb/resp"
)

// Message is what a subscription receives. Keyspace events are messages too:
// on __keyevent@0__:expired the payload is the key, on __keyspace@0__:<key> it
// is the event. They come once notify-keyspace-events asks for them:
//
//	c.Do(ctx, "CONFIG", "SET", "notify-keyspace-events", "Ex")
type Message struct {
	Channel string
	Pattern string // the pattern that matched, of PSubscribe
	Payload string
}

// Subscription receives the messages of its channels in the order in which
// they were sent, from the moment it was made. Each message comes once, or
// ErrInterrupted stands in its place: a caller that counts on every message looks up
// there what it may have missed. It is used by one goroutine at
// a time, but for Close. Close it, or the Conn.
type Subscription struct {
	c *Conn
	f feed
}

// feed is a backend's side of a subscription. close may be called from any
// goroutine, and more than once; it ends a next that waits, with ErrClosed.
type feed interface {
	next(ctx context.Context) (Message, error)
	close() error
}

// Subscribe receives what is published on channels from now on.
func (c *Conn) Subscribe(ctx context.Context, channels ...string) (*Subscription, error) {
	return c.subscribe(ctx, Channels, channels)
}

// PSubscribe receives what is published on the channels that match one of the
// patterns (of *, ?, [a-c] and \), from now on.
func (c *Conn) PSubscribe(ctx context.Context, patterns ...string) (*Subscription, error) {
	return c.subscribe(ctx, Patterns, patterns)
}

// SSubscribe receives what is published with SPUBLISH on channels from now on:
// channels that a cluster keeps on the node of their slot, which all must share.
// A backend that does not know them (Capabilities.ShardedPubSub) refuses.
func (c *Conn) SSubscribe(ctx context.Context, channels ...string) (*Subscription, error) {
	return c.subscribe(ctx, Sharded, channels)
}

func (c *Conn) subscribe(ctx context.Context, kind SubscribeKind, names []string) (*Subscription, error) {
	if c.of != nil {
		return c.of.subscribe(ctx, kind, names)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: a subscription needs channels", ErrArgument)
	}
	if ctx.Err() != nil {
		return nil, ended(ctx, "subscribe")
	}
	f, err := c.b.subscribe(ctx, kind, names)
	if err != nil {
		return nil, err
	}
	s := &Subscription{c: c, f: f}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errors.Join(ErrClosed, f.close())
	}
	if c.subs == nil {
		c.subs = map[*Subscription]struct{}{}
	}
	c.subs[s] = struct{}{}
	c.mu.Unlock()
	return s, nil
}

// Next waits for a message. It returns the context's error when that ends
// first, ErrInterrupted when the connection was lost, and once more when it was
// made again and messages come from then on, ErrClosed
// after Close, and another error if the backend has ended the subscription
// because its messages were not taken for too long.
func (s *Subscription) Next(ctx context.Context) (Message, error) { return s.f.next(ctx) }

// All yields messages, and the errors of Next, until the context ends or the
// subscription is closed, which are not yielded.
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
	return s.f.close()
}

// inbox is the feed of an embedded engine: the connection of a session that
// sends nothing but messages. Whoever publishes queues them in the session and
// wakes the inbox; Next takes them out.
type inbox struct {
	b    *embedded
	slot *slot
	kick chan struct{} // cap 1: there may be messages
	done chan struct{} // closed by close

	mu     sync.Mutex // guards the session and what follows
	closed bool
	raw    []byte        // messages as the session encodes them
	src    bytes.Reader  // over raw
	dec    *bufio.Reader // over src

	killMu sync.Mutex // guards what follows
	over   bool       // closed, or about to be
	killed bool
	reason error
}

func (b *embedded) subscribe(_ context.Context, kind SubscribeKind, names []string) (feed, error) {
	spare, err := b.enter()
	if err != nil {
		return nil, err
	}
	if spare != nil { // an inbox needs a session that knows it
		b.mu.Lock()
		b.idle = append(b.idle, spare)
		b.mu.Unlock()
	}
	in := &inbox{b: b, kick: make(chan struct{}, 1), done: make(chan struct{})}
	in.dec = bufio.NewReader(&in.src)
	in.slot = &slot{s: b.eng.svc.NewSession(in)}
	if err := b.greet(in.slot); err != nil {
		return nil, errors.Join(err, in.close())
	}
	args := []any{kind.command()}
	for _, n := range names {
		args = append(args, n)
	}
	v, err := in.slot.do(context.Background(), args)
	if err == nil {
		err = v.Err()
	}
	if err != nil {
		return nil, errors.Join(err, in.close())
	}
	return in, nil
}

func (in *inbox) next(ctx context.Context) (Message, error) {
	for {
		if ctx.Err() != nil {
			return Message{}, ended(ctx, "subscription")
		}
		if m, ok, err := in.take(); ok || err != nil {
			return m, err
		}
		select {
		case <-in.kick:
		case <-in.done:
		case <-ctx.Done():
		}
	}
}

// take returns the next message that is there.
func (in *inbox) take() (m Message, ok bool, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for {
		if in.closed {
			return m, false, in.end()
		}
		if in.dec.Buffered() == 0 && in.src.Len() == 0 {
			if in.raw = in.slot.s.TakePushes(in.raw[:0]); len(in.raw) == 0 {
				return m, false, nil
			}
			in.src.Reset(in.raw)
			in.dec.Reset(&in.src)
		}
		v, err := resp.ReadValue(in.dec)
		if err != nil {
			return m, false, fmt.Errorf("ebb: subscription: %w", err)
		}
		if m, ok = messageOf(v); ok {
			return m, true, nil
		}
	}
}

// messageOf reads message, pmessage and smessage; other pushes are none.
func messageOf(v Value) (Message, bool) {
	e := v.Elems
	switch {
	case len(e) == 3 && (e[0].Str == "message" || e[0].Str == "smessage"):
		return Message{Channel: e[1].Str, Payload: e[2].Str}, true
	case len(e) == 4 && e[0].Str == "pmessage":
		return Message{Pattern: e[1].Str, Channel: e[2].Str, Payload: e[3].Str}, true
	}
	return Message{}, false
}

// end says why the inbox is closed: by its owner, or by the engine, because
// the messages were not taken in time (client-output-buffer-limit), or by
// CLIENT KILL.
func (in *inbox) end() error {
	in.killMu.Lock()
	defer in.killMu.Unlock()
	if in.killed && in.reason != nil {
		return fmt.Errorf("ebb: subscription: %w", in.reason)
	}
	return ErrClosed
}

func (in *inbox) close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return nil
	}
	in.closed = true
	in.killMu.Lock()
	in.over = true
	in.killMu.Unlock()
	close(in.done)
	in.slot.s.Closed(nil)
	in.b.leave(nil)
	return nil
}

// Wake implements reactor.Conn.
func (in *inbox) Wake() {
	select {
	case in.kick <- struct{}{}:
	default:
	}
}

// Kill implements reactor.Conn. Whoever calls it may hold locks that closing a
// session needs, so a goroutine does that, for which the backend waits.
func (in *inbox) Kill(err error) {
	in.killMu.Lock()
	defer in.killMu.Unlock()
	if in.over || in.killed {
		return
	}
	in.killed, in.reason = true, err
	in.b.kills.Go(func() { _ = in.close() })
}

// The rest of reactor.Conn: what CLIENT LIST shows of a subscription.
func (in *inbox) RemoteAddr() string            { return "embedded:0" }
func (in *inbox) LocalAddr() string             { return "embedded:0" }
func (in *inbox) Network() string               { return "mem" }
func (in *inbox) FD() int                       { return -1 }
func (in *inbox) Loop() int                     { return -1 }
func (in *inbox) Buffered() (input, output int) { return 0, 0 }
