package goredis

import (
	"cmp"
	"context"
	"net"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/conn/driverutil"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
)

// keepBlockers is the number of idle connections that Block keeps. A program has few
// goroutines that wait for work, and they wait all the time.
const keepBlockers = 8

// blocker is a connection that waits for one command at a time. It has a client
// to itself, because only closing the socket ends a read that the context's
// cancellation finds in the middle.
type blocker struct {
	client *redis.Client
	addr   string

	mu      sync.Mutex // guards what follows
	nc      net.Conn
	aborted bool

	hangup remote.Hangup
}

// newBlocker returns a blocker for the server of a client. It connects later. For a client
// that follows Sentinel, the dialer finds the master.
func newBlocker(of *redis.Client) *blocker {
	o := *of.Options()
	k := &blocker{addr: o.Addr}
	o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns, o.MaxConcurrentDials = 1, 0, 1, 1, 1
	o.ReadTimeout = -1                          // no limit: the command says how long it waits; see bound
	o.WriteTimeout = cmp.Or(o.WriteTimeout, -1) // the client has completed its options: its 0 means no limit, which is -1 here
	o.MaxRetries = -1
	o.ContextTimeoutEnabled = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	dial := o.Dialer
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.nc = nc
		if k.aborted {
			_ = nc.Close()
		}
		return nc, nil
	}
	k.client = redis.NewClient(&o)
	return k
}

// abort ends the command that waits, from any goroutine.
func (k *blocker) abort() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.aborted = true
	if k.nc != nil {
		_ = k.nc.Close()
	}
}

// hangUp ends the command that waits, from any goroutine. Without a connection abort ends it.
func (k *blocker) hangUp(abort func()) {
	k.mu.Lock()
	half, _ := k.nc.(interface{ CloseWrite() error })
	k.mu.Unlock()
	k.hangup.Begin(half, abort)
}

// Block implements Driver.
func (b *driver) Block(ctx context.Context, args []any) (conn.Value, error) {
	if b.one == nil && b.nodes == nil {
		return b.Do(ctx, args)
	}
	if !b.calls.Enter() {
		return conn.Value{}, conn.ErrClosed
	}
	defer b.calls.Leave()
	plain, err := b.prepare(ctx, args)
	if err != nil {
		return conn.Value{}, err
	}
	if b.nodes != nil {
		return b.nodes.run(ctx, plain, func(ctx context.Context, node *redis.Client, ask bool) remote.Answer {
			return b.blockOn(ctx, node, ask, plain)
		})
	}
	return b.policy.Persist(ctx, named(plain), func() remote.Answer { return b.blockOn(ctx, b.one, false, plain) })
}

// blockOn runs one command on a connection of its own to a server, once.
func (b *driver) blockOn(ctx context.Context, of *redis.Client, ask bool, plain []any) remote.Answer {
	k, err := b.takeBlocker(of)
	if err != nil {
		return remote.Answer{Err: err, Ran: true} // not to be tried again
	}
	bounded, end := k.bound(ctx, of, plain)
	defer end()
	patient, cancel := context.WithCancel(context.WithoutCancel(bounded))
	defer cancel()
	abort := func() {
		k.abort()
		cancel()
	}
	stop := context.AfterFunc(bounded, func() {
		if ctx.Err() != nil {
			k.hangUp(abort)
		} else {
			abort()
		}
	})
	a := sendTo(patient, k.client, ask, plain)
	if a.Err != nil && ctx.Err() != nil {
		a.Err = driverutil.Ended(ctx, named(plain))
	}
	a = blamed(ctx, bounded, named(plain), a)
	sound := stop() && a.Err == nil && !routing.Untouched(a.V)
	if !sound {
		k.hangup.End()
	}
	if a.Err != nil && ctx.Err() == nil && b.cutByClose() {
		a = remote.Answer{Err: conn.ErrClosed, Ran: true}
	}
	if a.Err != nil && ctx.Err() == nil {
		b.dropIdle(k.addr) // they may be lost too, and a call that uses one would wait as long to find out
	}
	b.giveBlocker(k, sound)
	return a
}

// cutByClose reports whether close has aborted the commands that wait.
func (b *driver) cutByClose() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

func (b *driver) takeBlocker(of *redis.Client) (*blocker, error) {
	addr := of.Options().Addr
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, conn.ErrClosed
	}
	var k *blocker
	for i := len(b.blockers) - 1; i >= 0; i-- {
		if b.blockers[i].addr == addr {
			k = b.blockers[i]
			b.blockers = append(b.blockers[:i], b.blockers[i+1:]...)
			break
		}
	}
	if k == nil {
		k = newBlocker(of)
	}
	b.waiting[k] = struct{}{}
	return k, nil
}

// dropIdle closes the idle connections to an address.
func (b *driver) dropIdle(addr string) {
	b.mu.Lock()
	var drop []*blocker
	b.blockers = slices.DeleteFunc(b.blockers, func(k *blocker) bool {
		if k.addr == addr {
			drop = append(drop, k)
		}
		return k.addr == addr
	})
	b.mu.Unlock()
	for _, k := range drop {
		_ = k.client.Close()
	}
}

// giveBlocker keeps a connection for the next call if it is sound: no call has aborted it
// or is about to, and its last command got a reply. If too many are idle, giveBlocker
// closes the oldest.
func (b *driver) giveBlocker(k *blocker, sound bool) {
	var drop *blocker
	b.mu.Lock()
	delete(b.waiting, k)
	if sound && !b.closed {
		b.blockers = append(b.blockers, k)
		if k = nil; len(b.blockers) > keepBlockers {
			drop = b.blockers[0]
			b.blockers = append(b.blockers[:0], b.blockers[1:]...)
		}
	}
	b.mu.Unlock()
	for _, old := range []*blocker{k, drop} {
		if old != nil {
			_ = old.client.Close()
		}
	}
}
