package topic

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// Options configures a topic. The zero value works.
type Options[T any] struct {
	// Codec encodes values; nil: ebb.CodecOf.
	Codec conn.Codec[T]
	// Backlog is the number of messages that may wait for a subscriber before ErrSlow ends the
	// subscription. Default: 1024. It counts messages, not bytes. A server also has a limit in
	// bytes, client-output-buffer-limit, and closes the connection at that limit: the subscriber
	// then gets ebb.ErrInterrupted.
	Backlog int
	// Sharded sends messages through the node of a cluster that has the topic's slot, instead of
	// through all nodes (SPUBLISH). Publishers and subscribers must use the same value. A backend
	// without sharded channels uses plain ones.
	Sharded bool
	// Logger gets a description at debug level at the first use; nil: no log.
	Logger *slog.Logger
}

// defaultBacklog is enough for a burst of a busy topic, and little memory for small messages.
const defaultBacklog = 1024

// check completes the options.
func (o *Options[T]) check(what string) (err error) {
	if o.Codec, err = kit.Codec(o.Codec, "Codec"); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if o.Backlog < 0 {
		return fmt.Errorf("%s: %w: Backlog is %d; it is a number of messages, or 0 for %d", what, conn.ErrArgument, o.Backlog, defaultBacklog)
	}
	o.Backlog = cmp.Or(o.Backlog, defaultBacklog)
	return nil
}

// Topic is a channel for values of a type. Its methods are safe for concurrent use.
type Topic[T any] struct {
	c    *conn.Conn
	name string
	o    Options[T]
	once sync.Once // the line in the log
}

// New returns the topic of that name, which is its channel. It sends nothing to the backend.
// Errors: ebb.ErrArgument.
func New[T any](c *conn.Conn, name string, opts ...Options[T]) (*Topic[T], error) {
	name, o, err := kit.Make(c, "topic", name, opts)
	if err != nil {
		return nil, err
	}
	if err := o.check(fmt.Sprintf("topic %q", name)); err != nil {
		return nil, err
	}
	return &Topic[T]{c: c, name: name, o: o}, nil
}

// Publish sends a value to the current subscribers, and returns their number; in a cluster that
// is the number at one node. It waits for the backend and not for the subscribers. After an
// error with ebb.ErrUnavailable or a context's error in its chain, the message may have been
// sent.
func (t *Topic[T]) Publish(ctx context.Context, v T) (receivers int64, err error) {
	t.log(ctx)
	data, err := t.o.Codec.Encode(v)
	if err != nil {
		return 0, fmt.Errorf("topic %q: publish: %w", t.name, err)
	}
	for { // again, if what the backend can was not known before it answered
		command, sharded := "PUBLISH", t.sharded()
		if sharded {
			command = "SPUBLISH"
		}
		n, err := t.c.Do(ctx, command, t.name, data)
		if err != nil {
			return 0, fmt.Errorf("topic %q: publish: %w", t.name, err)
		}
		if sharded == t.sharded() {
			return n.AsInt()
		}
	}
}

// Subscribe returns a subscription to the messages that are published after it returns. The
// context bounds the call only. The caller must close the subscription or the connection.
func (t *Topic[T]) Subscribe(ctx context.Context) (*Subscription[T], error) {
	t.log(ctx)
	what := fmt.Sprintf("topic %q", t.name)
	for { // as in Publish
		subscribe, sharded := t.c.Subscribe, t.sharded()
		if sharded {
			subscribe = t.c.SSubscribe
		}
		s, err := subscribe(ctx, t.name)
		if err != nil {
			return nil, fmt.Errorf("%s: subscribe: %w", what, err)
		}
		if sharded == t.sharded() {
			return start(what, t.c, s, t.o), nil
		}
		_ = s.Close()
	}
}

// PSubscribe returns a subscription to the messages of all topics whose name matches one of the
// patterns, which consist of *, ?, [a-c] and \; Message.Channel is the topic. If a name matches
// several patterns, the message arrives once for each. Sharded topics are not included. Errors:
// ebb.ErrArgument, and those of Subscribe.
func PSubscribe[T any](ctx context.Context, c *conn.Conn, o Options[T], patterns ...string) (*Subscription[T], error) {
	what := fmt.Sprintf("topic: patterns %q", patterns)
	if c == nil {
		return nil, kit.Check(c, "topic: patterns", strings.Join(patterns, " "))
	}
	if err := o.check(what); err != nil {
		return nil, err
	}
	if o.Sharded {
		return nil, fmt.Errorf("%s: %w: Sharded is set; sharded topics have no patterns: subscribe to each of them", what, conn.ErrArgument)
	}
	if o.Logger != nil {
		o.Logger.DebugContext(ctx, fmt.Sprintf("%s (PSUBSCRIBE; a backlog of %d)", what, o.Backlog), "backend", c.String())
	}
	full := make([]string, len(patterns))
	for i, p := range patterns {
		full[i] = kit.Escape(c.Prefix()) + p
	}
	s, err := c.PSubscribe(ctx, full...)
	if err != nil {
		return nil, fmt.Errorf("%s: subscribe: %w", what, err)
	}
	return start(what, c, s, o), nil
}

// String describes the topic: `topic "orders" (PUBLISH; a backlog of 1024)`.
func (t *Topic[T]) String() string {
	how := "PUBLISH"
	switch {
	case t.sharded():
		how = "SPUBLISH"
	case t.o.Sharded:
		how = "PUBLISH, for want of SPUBLISH"
	}
	return fmt.Sprintf("topic %q (%s; a backlog of %d)", t.name, how, t.o.Backlog)
}

func (t *Topic[T]) log(ctx context.Context) {
	if t.o.Logger == nil {
		return
	}
	t.once.Do(func() { t.o.Logger.DebugContext(ctx, t.String(), "backend", t.c.String()) })
}

func (t *Topic[T]) sharded() bool { return t.o.Sharded && t.c.Capabilities().ShardedPubSub }
