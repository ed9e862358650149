package embedded

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/conn/driverutil"
	"github.com/ebbdb/ebb/internal/wire"
)

// inbox is the feed of an embedded engine. It is the connection of a session that sends
// nothing but messages. A publisher queues them in the session and wakes the inbox; Next
// takes them out.
type inbox struct {
	b    *driver
	slot *slot
	kick chan struct{} // cap 1: there may be messages
	done chan struct{} // closed by close

	mu     sync.Mutex // guards the session and what follows
	closed bool
	raw    []byte        // messages as the session encodes them
	src    bytes.Reader  // over raw
	dec    *bufio.Reader // over src
	keys   []conn.Value  // of an invalidation, that Next has not returned

	killMu sync.Mutex // guards what follows
	over   bool       // closed, or about to be
	killed bool
	reason error
}

// Subscribe implements Driver.
func (b *driver) Subscribe(_ context.Context, kind conn.SubscribeKind, names []string) (conn.Feed, error) {
	args := []any{kind.Command()}
	for _, n := range names {
		args = append(args, n)
	}
	return b.feed(args)
}

// Track implements TrackingDriver.
func (b *driver) Track(_ context.Context, prefixes []string) (conn.Feed, error) {
	args := []any{"CLIENT", "TRACKING", "ON", "BCAST"}
	for _, p := range prefixes {
		args = append(args, "PREFIX", p)
	}
	return b.feed(args)
}

// feed returns an inbox whose session has run a command.
func (b *driver) feed(args []any) (conn.Feed, error) {
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
	if err := b.handshake(in.slot); err != nil {
		return nil, errors.Join(err, in.Close())
	}
	v, err := in.slot.do(context.Background(), args)
	if err == nil {
		err = v.Err()
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

// Next implements Feed.
func (in *inbox) Next(ctx context.Context) (conn.Message, error) {
	for {
		if ctx.Err() != nil {
			return conn.Message{}, driverutil.Ended(ctx, "subscription")
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
func (in *inbox) take() (m conn.Message, ok bool, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for {
		if in.closed {
			return m, false, in.end()
		}
		if len(in.keys) > 0 {
			m, in.keys = conn.Message{Channel: conn.Tracking, Payload: in.keys[0].Str}, in.keys[1:]
			return m, true, nil
		}
		if in.dec.Buffered() == 0 && in.src.Len() == 0 {
			if in.raw = in.slot.s.TakePushes(in.raw[:0]); len(in.raw) == 0 {
				return m, false, nil
			}
			in.src.Reset(in.raw)
			in.dec.Reset(&in.src)
		}
		v, err := wire.ReadValue(in.dec)
		if err != nil {
			return m, false, fmt.Errorf("ebb: subscription: %w", err)
		}
		if e := v.Elems; len(e) == 2 && e[0].Str == "invalidate" && !e[1].IsNull() {
			in.keys = e[1].Elems
			continue
		}
		if m, ok = messageOf(v); ok {
			return m, true, nil
		}
	}
}

// messageOf decodes the pushes message, pmessage, smessage, and an invalidation of all keys. For
// other pushes it returns false.
func messageOf(v conn.Value) (conn.Message, bool) {
	e := v.Elems
	switch {
	case len(e) == 2 && e[0].Str == "invalidate":
		return conn.Message{Channel: conn.Tracking, Pattern: "*"}, true
	case len(e) == 3 && (e[0].Str == "message" || e[0].Str == "smessage"):
		return conn.Message{Channel: e[1].Str, Payload: e[2].Str}, true
	case len(e) == 4 && e[0].Str == "pmessage":
		return conn.Message{Pattern: e[1].Str, Channel: e[2].Str, Payload: e[3].Str}, true
	}
	return conn.Message{}, false
}

// end returns the reason for which the inbox is closed. Its owner closed it, or CLIENT
// KILL did, or the engine did, because the owner did not read the messages in time
// (client-output-buffer-limit).
func (in *inbox) end() error {
	in.killMu.Lock()
	defer in.killMu.Unlock()
	if in.killed && in.reason != nil {
		return fmt.Errorf("ebb: subscription: %w", in.reason)
	}
	return conn.ErrClosed
}

// Close implements Feed.
func (in *inbox) Close() error {
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

// Kill implements reactor.Conn. Its caller may hold locks that closing a session needs, so
// a goroutine closes the session. The driver's Close waits for the goroutine.
func (in *inbox) Kill(err error) {
	in.killMu.Lock()
	defer in.killMu.Unlock()
	if in.over || in.killed {
		return
	}
	in.killed, in.reason = true, err
	in.b.kills.Go(func() { _ = in.Close() })
}

// The other methods of reactor.Conn: CLIENT LIST shows their results for a subscription.
func (in *inbox) RemoteAddr() string            { return "embedded:0" }
func (in *inbox) LocalAddr() string             { return "embedded:0" }
func (in *inbox) Network() string               { return "mem" }
func (in *inbox) FD() int                       { return -1 }
func (in *inbox) Loop() int                     { return -1 }
func (in *inbox) Buffered() (input, output int) { return 0, 0 }
