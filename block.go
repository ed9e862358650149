package ebb

import (
	"context"
	"net"
	"sync"

	"github.com/redis/go-redis/v9"
)

// keepBlockers is how many idle connections of Block are kept: a program has
// few goroutines that wait for work, and they wait all the time.
const keepBlockers = 8

// blocker is a connection that waits for one command at a time. It has a client
// to itself, because only closing the socket ends a read that the context's
// cancellation finds in the middle.
type blocker struct {
	client *redis.Client

	mu      sync.Mutex // guards what follows
	nc      net.Conn
	aborted bool
}

// newBlocker returns one that has not connected yet.
func (b *remote) newBlocker() *blocker {
	k := &blocker{}
	o := *b.opt
	o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = 1, 0, 1, 1
	o.ReadTimeout = -1 // as long as the command says
	dial := o.Dialer
	if dial == nil {
		dial = redis.NewDialer(b.client.Options())
	}
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

func (b *remote) block(ctx context.Context, args []any) (Value, error) {
	k, err := b.takeBlocker()
	if err != nil {
		return Value{}, err
	}
	defer b.blocked.Done()
	stop := context.AfterFunc(ctx, k.abort)
	v, err := process(ctx, k.client, args)
	b.giveBlocker(k, stop())
	return v, err
}

func (b *remote) takeBlocker() (*blocker, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrClosed
	}
	b.blocked.Add(1)
	var k *blocker
	if n := len(b.blockers); n > 0 {
		k = b.blockers[n-1]
		b.blockers = b.blockers[:n-1]
	} else {
		k = b.newBlocker()
	}
	b.waiting[k] = struct{}{}
	return k, nil
}

// giveBlocker keeps a connection for the next call if it is sound, which means
// that nobody has aborted it, or is about to.
func (b *remote) giveBlocker(k *blocker, sound bool) {
	b.mu.Lock()
	delete(b.waiting, k)
	keep := sound && !b.closed && len(b.blockers) < keepBlockers
	if keep {
		b.blockers = append(b.blockers, k)
	}
	b.mu.Unlock()
	if !keep {
		k.client.Close()
	}
}
