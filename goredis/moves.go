package goredis

import (
	"context"
	"net"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/internal/remote"
)

// moves notes to which server the connections of a client lead that follows Sentinel. When Sentinel names another master, go-redis
// connects its pool to that one, and a subscription stays with the old master, which may live on for a while and does not
// announce the writes to the new one. So a subscription ends once the pool has connected to another server.
type moves struct {
	mu    sync.Mutex
	dials int           // connections of the pool so far
	last  string        // the server of the last one
	next  chan struct{} // closed at the next one
}

// dialed is the connection of a subscription.
type dialed struct {
	addr  string // "": not known
	since int    // moves.dials before it was made
}

// dialedKey is the key of a *dialed in the context of a subscription.
type dialedKey struct{}

func newMoves() *moves { return &moves{next: make(chan struct{})} }

// DialHook implements redis.Hook.
func (m *moves) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		m.mu.Lock()
		since := m.dials
		m.mu.Unlock()
		c, err := next(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		at := c.RemoteAddr().String()
		m.mu.Lock()
		defer m.mu.Unlock()
		if d, ok := ctx.Value(dialedKey{}).(*dialed); ok {
			d.addr, d.since = at, since
			return c, nil
		}
		m.dials++
		m.last = at
		close(m.next)
		m.next = make(chan struct{})
		return c, nil
	}
}

// ProcessHook implements redis.Hook.
func (m *moves) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (m *moves) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// watch returns remote.ErrMaster when the pool has connected to a server other than that of a subscription, after it, and the context's
// error when it ends before.
func (m *moves) watch(ctx context.Context, d *dialed) error {
	for {
		m.mu.Lock()
		moved, next := d.addr != "" && m.dials > d.since && m.last != d.addr, m.next
		m.mu.Unlock()
		if moved {
			return remote.ErrMaster
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
