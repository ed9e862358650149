package cache

import (
	"context"
	"errors"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// With Options.Alone a Get that the backend keeps waiting calls its loader. It must not wait for that time in each call, nor have
// a value and hold it back.

const (
	// lookPause is the pause between two looks for a backend that is away.
	lookPause = time.Second
	// keepWithin is the time for which Get waits until what it has loaded is stored: a backend that is well needs less.
	keepWithin = 100 * time.Millisecond
)

// lost reports whether the call that got the error why from the backend goes on without it. If the backend did not answer, later
// calls do not ask it before it answers again.
func (x *Cache[K, V]) lost(ctx context.Context, r request[K, V], why error) bool {
	if !x.o.Alone || ctx.Err() != nil || !conn.Temporary(why) {
		return false
	}
	if unanswered(why) && !x.c.Capabilities().Cluster {
		x.look(ctx, r)
	}
	return true
}

// unanswered reports whether an error says that there was no reply, not even one that the server is not ready.
func unanswered(err error) bool {
	var refused conn.ReplyError
	return errors.Is(err, conn.ErrUnavailable) && !errors.As(err, &refused)
}

// look marks the backend as away, and looks for it in the background.
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

// soon runs fn, which stores a value or gives a lease back. With Alone it does not wait for longer than keepWithin: fn goes on in the
// background, and inTime is false.
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

// inBackground runs fn in a goroutine, with a context that has the values of ctx and ends with Close, and for which Close waits. After
// Close it does not.
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
