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

// bound returns a context for a command that waits on k. The context ends when the server
// is silent for longer than the command says that it waits. end waits until the liveness
// check has stopped.
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

// ping checks that the client still leads to the server to which k is connected.
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
		return fmt.Errorf("%w: the master was %s and is now %s", routing.ErrUnresponsive, here, there)
	}
	return nil
}

// blamed returns the error of a call that ran in a context of bound. If the liveness check
// ended that context, the error says so, and not that the caller's context ended.
func blamed(ctx, bounded context.Context, doing string, a remote.Answer) remote.Answer {
	if cause := routing.LivenessError(ctx, bounded, a.Err); cause != nil {
		a.Err = fmt.Errorf("ebb: %s: %w: %w", doing, conn.ErrUnavailable, cause)
	}
	return a
}

// peer returns the remote address of the connection; "" while there is none.
func (k *blocker) peer() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.nc == nil {
		return ""
	}
	return k.nc.RemoteAddr().String()
}

// ownWait returns how long a command waits by its own arguments; 0: it waits without end,
// or its arguments do not say it.
func ownWait(plain []any) time.Duration {
	return routing.OwnWait(len(plain), func(i int) string { return text0(plain[i]) })
}
