package goredis

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// wait is what a write waits for.
type wait struct {
	n      int
	within time.Duration
}

type waitKey struct{}

// waitOf returns what the writes of a call wait for.
func waitOf(ctx context.Context) (w wait, ok bool) {
	w, ok = ctx.Value(waitKey{}).(wait)
	return w, ok
}

// args is the command that waits.
func (w wait) args() []any { return []any{"WAIT", w.n, max(kit.Millis(w.within), 1)} }

// check adds to the answer of a write what came of the wait.
func (w wait) check(a answer, waited answer) answer {
	switch {
	case !a.ran || a.err != nil || a.v.Err() != nil:
	case waited.err != nil:
		a.err = fmt.Errorf("%w: %w: %w", conn.ErrNotReplicated, conn.ErrUnavailable, waited.err)
	case waited.v.Err() != nil:
		a.err = fmt.Errorf("%w: %w", conn.ErrNotReplicated, waited.v.Err())
	case waited.v.Int < int64(w.n):
		a.err = fmt.Errorf("%w: %w: on %d of %d replicas after %v", conn.ErrNotReplicated, conn.ErrUnavailable, waited.v.Int, w.n, w.within)
	}
	return a
}

func anyWrites(cmds [][]any) bool { return slices.ContainsFunc(cmds, conn.MayWrite) }

// replicated is a view of the driver whose writes wait.
type replicated struct {
	*driver
	wait wait
}

// Replicated implements ReplicatedDriver.
func (b *driver) Replicated(n int, within time.Duration) conn.Driver {
	return &replicated{b, wait{n, within}}
}

// in returns the context with which writes run.
func (b *replicated) in(ctx context.Context) context.Context {
	w := b.wait
	if t := b.readTimeout(); t > 0 {
		w.within = min(w.within, t/4*3)
	}
	return context.WithValue(ctx, waitKey{}, w)
}

// Do implements Driver.
func (b *replicated) Do(ctx context.Context, args []any) (conn.Value, error) {
	if conn.MayWrite(args) {
		ctx = b.in(ctx)
	}
	return b.driver.Do(ctx, args)
}

// Block implements Driver.
func (b *replicated) Block(ctx context.Context, args []any) (conn.Value, error) {
	if conn.MayWrite(args) {
		ctx = b.in(ctx)
	}
	return b.driver.Block(ctx, args)
}

// IntArgs implements IntArgsDriver.
func (b *replicated) IntArgs(ctx context.Context, args []any) (conn.Ints, error) {
	return conn.IntsOf(b.Do(ctx, args))
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

// readTimeout is how long a reply may take.
func (b *driver) readTimeout() time.Duration {
	switch {
	case b.one != nil:
		return b.one.Options().ReadTimeout
	case b.nodes != nil:
		return b.nodes.client.Options().ReadTimeout
	}
	return 0
}

// waits returns what commands wait for, if they may write.
func waits(ctx context.Context, cmds ...[]any) (wait, bool) {
	w, ok := waitOf(ctx)
	return w, ok && anyWrites(cmds)
}
