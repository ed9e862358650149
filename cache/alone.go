package cache

import (
	"context"
	"errors"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// With Options.Alone a Get that the backend keeps waiting calls its loader. A Get must not wait for that time
// in each call, and must not hold back a value that it has.

const (
	// lookPause is the pause between two probes of a backend that does not answer.
	lookPause = time.Second
	// keepWithin is the time for which Get waits until its loaded value is stored: a healthy backend needs less.
	keepWithin = 100 * time.Millisecond
)

// lost reports whether the call that got the error why continues without the backend. If the backend did not
// answer, later calls do not ask it until it answers again.
func (x *Cache[K, V]) lost(ctx context.Context, r request[K, V], why error) bool {
	if !x.o.Alone || ctx.Err() != nil || !conn.Temporary(why) {
		return false
	}
	if unanswered(why) && !x.c.Capabilities().Cluster {
		x.look(ctx, r)
	}
	return true
}

// unanswered reports whether an error means that there was no reply, not even the reply that the server is
// not ready.
func unanswered(err error) bool {
	var refused conn.ReplyError
	return errors.Is(err, conn.ErrUnavailable) && !errors.As(err, &refused)
}

// look marks the backend as away, and probes it in the background.
func (x *Cache[K, V]) look(ctx context.Context, r request[K, V]) {
	if !x.away.CompareAndSwap(false, true) {
		return
	}
	started := x.inBackground(ctx, func(ctx context.Context) {
		defer x.away.Store(false)
		for kit.Sleep(ctx, lookPause) == nil {
			if _, err := r.backend.Look(ctx, r.key, 0, 1); !unanswered(err) {
				return
			}
		}
	})
	if !started {
		x.away.Store(false)
	}
}

// soon runs fn, which stores a value or gives a lease back. With Alone it waits at most for keepWithin: fn
// then continues in the background, and inTime is false.
func (x *Cache[K, V]) soon(ctx context.Context, fn func(context.Context)) (inTime bool) {
	done := make(chan struct{})
	if !x.o.Alone || !x.inBackground(ctx, func(ctx context.Context) { defer close(done); fn(ctx) }) {
		fn(ctx)
		return true
	}
	late := time.NewTimer(keepWithin)
	defer late.Stop()
	select {
	case <-done:
		return true
	case <-late.C:
		return false
	}
}

// inBackground runs fn in a goroutine, for which Close waits. fn's context has the values of ctx and ends
// with Close. After Close, inBackground does not run fn, and returns false.
func (x *Cache[K, V]) inBackground(ctx context.Context, fn func(context.Context)) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return false
	}
	x.work.Go(func() {
		inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer context.AfterFunc(x.ctx, cancel)()
		defer cancel()
		fn(inner)
	})
	return true
}
