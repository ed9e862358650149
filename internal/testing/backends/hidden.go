package backends

import (
	"context"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/conn"
)

// hidden is an ebb server that hides its own commands: objects run as scripts on it.
type hidden struct{ c *ebb.Conn }

func hide(c *ebb.Conn) *ebb.Conn { return ebb.Use(hidden{c}) }

// Hidden returns a connection to the same data that hides ebb's own commands, so that a
// test can compare an object that runs as scripts with one that does not. The end of the
// Backend closes it.
func (b *Backend) Hidden() *ebb.Conn { return hide(b.Conn) }

// reply turns Conn's errors back into a Driver's.
func reply(v ebb.Value, err error) (ebb.Value, error) {
	if v.Err() != nil && v.Err() == err {
		return v, nil
	}
	return v, err
}

func (h hidden) Do(ctx context.Context, args []any) (ebb.Value, error) {
	return reply(h.c.Do(ctx, args...))
}

func (h hidden) Block(ctx context.Context, args []any) (ebb.Value, error) {
	return reply(h.c.Block(ctx, args...))
}

func batch(cmds [][]any) *ebb.Batch {
	b := &ebb.Batch{}
	for _, args := range cmds {
		b.Do(args...)
	}
	return b
}

func (h hidden) Pipeline(ctx context.Context, cmds [][]any) ([]ebb.Value, error) {
	return h.c.Pipeline(ctx, batch(cmds))
}

func (h hidden) Tx(ctx context.Context, cmds [][]any) ([]ebb.Value, error) {
	return h.c.Tx(ctx, batch(cmds))
}

func (h hidden) Watch(ctx context.Context, fn func(*ebb.Watched) error, keys []string) error {
	return h.c.Watch(ctx, fn, keys...)
}

func (h hidden) Subscribe(ctx context.Context, kind conn.SubscribeKind, names []string) (conn.Feed, error) {
	switch kind {
	case conn.Patterns:
		return feed(h.c.PSubscribe(ctx, names...))
	case conn.Sharded:
		return feed(h.c.SSubscribe(ctx, names...))
	}
	return feed(h.c.Subscribe(ctx, names...))
}

func feed(s *ebb.Subscription, err error) (conn.Feed, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (h hidden) Capabilities() ebb.Capabilities {
	caps := h.c.Capabilities()
	caps.Native = false
	return caps
}

func (h hidden) Replicated(n int, within time.Duration) conn.Driver {
	return hidden{h.c.Replicated(n, within)}
}

func (h hidden) String() string { return h.c.String() + ", its own commands hidden" }
func (h hidden) Close() error   { return h.c.Close() }
