package goredis

import (
	"context"
	"slices"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/drivers"
	"github.com/ebbdb/ebb/internal/remote"
)

type waitKey struct{}

// waitOf returns the replicas that the writes of a call wait for.
func waitOf(ctx context.Context) (w remote.Replicas, ok bool) {
	w, ok = ctx.Value(waitKey{}).(remote.Replicas)
	return w, ok
}

// waitArgs returns the command WAIT.
func waitArgs(w remote.Replicas) []any { return []any{"WAIT", w.N, w.Millis()} }

func anyWrites(cmds [][]any) bool { return slices.ContainsFunc(cmds, drivers.MayWrite) }

// replicated is a view of the driver whose writes wait.
type replicated struct {
	*driver
	wait remote.Replicas
}

// Replicated implements ReplicatedDriver.
func (b *driver) Replicated(n int, within time.Duration) conn.Driver {
	return &replicated{b, remote.Replicas{N: n, Within: within}}
}

// in returns the context of the writes of this view.
func (b *replicated) in(ctx context.Context) context.Context {
	w := b.wait
	if t := b.readTimeout(); t > 0 {
		w.Within = min(w.Within, t/4*3)
	}
	return context.WithValue(ctx, waitKey{}, w)
}

// Do implements Driver.
func (b *replicated) Do(ctx context.Context, args []any) (conn.Value, error) {
	if drivers.MayWrite(args) {
		ctx = b.in(ctx)
	}
	return b.driver.Do(ctx, args)
}

// Block implements Driver.
func (b *replicated) Block(ctx context.Context, args []any) (conn.Value, error) {
	if drivers.MayWrite(args) {
		ctx = b.in(ctx)
	}
	return b.driver.Block(ctx, args)
}

// Pipeline implements Driver.
func (b *replicated) Pipeline(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	if anyWrites(cmds) {
		ctx = b.in(ctx)
	}
	return b.driver.Pipeline(ctx, cmds)
}

// Tx implements Driver.
func (b *replicated) Tx(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	if anyWrites(cmds) {
		ctx = b.in(ctx)
	}
	return b.driver.Tx(ctx, cmds)
}

// Watch implements Driver.
func (b *replicated) Watch(ctx context.Context, fn func(*conn.Watched) error, keys []string) error {
	return b.driver.Watch(ctx, func(w *conn.Watched) error {
		return fn(conn.NewWatched(
			func(ctx context.Context, args []any) (conn.Value, error) { return w.Do(b.in(ctx), args...) },
			func(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
				var batch conn.Batch
				for _, args := range cmds {
					batch.Do(args...)
				}
				return w.Tx(b.in(ctx), &batch)
			},
		))
	}, keys)
}

// readTimeout returns the limit for a reply.
func (b *driver) readTimeout() time.Duration {
	switch {
	case b.one != nil:
		return b.one.Options().ReadTimeout
	case b.nodes != nil:
		return b.nodes.client.Options().ReadTimeout
	}
	return 0
}

// waits returns the replicas that commands wait for; false if none of them may write.
func waits(ctx context.Context, cmds ...[]any) (remote.Replicas, bool) {
	w, ok := waitOf(ctx)
	return w, ok && anyWrites(cmds)
}
