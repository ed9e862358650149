package goredis

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
)

// bound returns a context that ends when the server that k waits at, one of a client's,
// is silent for longer than a command says. end waits until the liveness check has stopped.
func (k *blocker) bound(ctx context.Context, of *redis.Client, plain []any) (_ context.Context, end func()) {
	p := routing.Liveness{Own: ownWait(plain), ReadTimeout: of.Options().ReadTimeout}
	if p.Own > 0 {
		if w, ok := waits(ctx, plain); ok {
			p.Own += w.Within
		}
	}
	p.Ping = func(ctx context.Context) error { return k.ping(ctx, of) }
	return p.Bound(ctx)
}

// ping finds out where the client leads to by now.
func (k *blocker) ping(ctx context.Context, of *redis.Client) error {
	probe := newBlocker(of)
	stop := context.AfterFunc(ctx, probe.abort)
	err := probe.client.Ping(ctx).Err()
	stop()
	_ = probe.client.Close()
	if _, replied := errorValue(err); err != nil && !replied {
		return err
	}
	if here, there := k.peer(), probe.peer(); here != there && here != "" {
		return fmt.Errorf("%w: it was %s, and now %s is in its place", routing.ErrUnresponsive, here, there)
	}
	return nil
}

// blamed returns the error of a call in a context of bound's: the context's own end is
// not the caller's.
func blamed(ctx, bounded context.Context, doing string, a remote.Answer) remote.Answer {
	if cause := routing.LivenessError(ctx, bounded, a.Err); cause != nil {
		a.Err = fmt.Errorf("ebb: %s: %w: %w", doing, conn.ErrUnavailable, cause)
	}
	return a
}

// peer is where the connection leads; "" while there is none.
func (k *blocker) peer() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.nc == nil {
		return ""
	}
	return k.nc.RemoteAddr().String()
}

// ownWait is how long a command says that it waits; 0: it waits without end, or does
// not say.
func ownWait(plain []any) time.Duration {
	return routing.OwnWait(len(plain), func(i int) string { return text0(plain[i]) })
}
