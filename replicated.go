package ebb

import (
	"context"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/internal/routing"
)

// Replicated returns a view of the Conn whose calls return when what they wrote is
// on n replicas too (WAIT), so that no failover loses it: Sentinel and a cluster
// promote a replica that has what the master acknowledged, or may not have it. If
// fewer have it after within, the call returns ErrNotReplicated beside its reply:
// it has run, and may be lost with the master. Calls that only read are as before,
// and so are calls that an error reply refuses.
//
// Each write costs a round trip from the master to its replicas. within is cut to
// three quarters of the URL's read_timeout (3 s). Writes of a Pipeline are waited
// for together. On an embedded engine with files a call returns when what it wrote
// is on disk; without files there is nothing to wait for. On a Driver that has no
// method Replicated(n int, within time.Duration) Driver, every write fails.
//
// The view shares everything with the Conn, and ends with it: closing the view
// does nothing.
func (c *Conn) Replicated(n int, within time.Duration) *Conn {
	if c.of != nil {
		c = c.of
	}
	return &Conn{of: c, b: &replicated{backend: c.b, wait: wait{n, within}}}
}

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
func (w wait) args() []any { return []any{"WAIT", w.n, max(millis(w.within), 1)} }

// judge adds to the answer of a write what came of the wait.
func (w wait) judge(a answer, waited answer) answer {
	switch {
	case !a.ran || a.err != nil || a.v.Err() != nil:
	case waited.err != nil:
		a.err = fmt.Errorf("%w: %w: %w", ErrNotReplicated, ErrUnavailable, waited.err)
	case waited.v.Err() != nil:
		a.err = fmt.Errorf("%w: %w", ErrNotReplicated, waited.v.Err())
	case waited.v.Int < int64(w.n):
		a.err = fmt.Errorf("%w: %w: on %d of %d replicas after %v", ErrNotReplicated, ErrUnavailable, waited.v.Int, w.n, w.within)
	}
	return a
}

// mayWrite reports whether a command may change data.
func mayWrite(args []any) bool { return len(args) == 0 || routing.MayWrite(nameOf(args)) }

func anyWrites(cmds [][]any) bool {
	for _, args := range cmds {
		if mayWrite(args) {
			return true
		}
	}
	return false
}

// replicated is a backend whose writes wait.
type replicated struct {
	backend
	wait wait
}

// in returns where and with which context a call runs.
func (b *replicated) in(ctx context.Context) (backend, context.Context, error) {
	switch in := b.backend.(type) {
	case *remote:
		w := b.wait
		if t := in.readTimeout(); t > 0 {
			w.within = min(w.within, t/4*3)
		}
		return in, context.WithValue(ctx, waitKey{}, w), nil
	case driven:
		d, ok := in.d.(interface {
			Replicated(n int, within time.Duration) Driver
		})
		if !ok {
			return nil, nil, fmt.Errorf("%w: Replicated: %s has no such method", ErrArgument, in.d)
		}
		return drive(d.Replicated(b.wait.n, b.wait.within)), ctx, nil
	}
	return b.backend, ctx, nil
}

// sync waits for an embedded engine's files.
func (b *replicated) sync(ctx context.Context) error {
	if e, ok := b.backend.(*embedded); ok {
		if err := e.eng.Sync(ctx); err != nil {
			return fmt.Errorf("%w: %w", ErrNotReplicated, err)
		}
	}
	return nil
}

func (b *replicated) do(ctx context.Context, args []any) (Value, error) {
	return b.one(ctx, args, backend.do)
}

func (b *replicated) block(ctx context.Context, args []any) (Value, error) {
	return b.one(ctx, args, backend.block)
}

func (b *replicated) one(ctx context.Context, args []any, run func(b backend, ctx context.Context, args []any) (Value, error)) (Value, error) {
	if !mayWrite(args) {
		return run(b.backend, ctx, args)
	}
	in, ctx, err := b.in(ctx)
	if err != nil {
		return Value{}, err
	}
	v, err := run(in, ctx, args)
	if err == nil {
		err = b.sync(ctx)
	}
	return v, err
}

func (b *replicated) pipeline(ctx context.Context, cmds [][]any) ([]Value, error) {
	return b.many(ctx, cmds, backend.pipeline)
}

func (b *replicated) tx(ctx context.Context, cmds [][]any) ([]Value, error) {
	return b.many(ctx, cmds, backend.tx)
}

func (b *replicated) many(ctx context.Context, cmds [][]any, run func(b backend, ctx context.Context, cmds [][]any) ([]Value, error)) ([]Value, error) {
	if !anyWrites(cmds) {
		return run(b.backend, ctx, cmds)
	}
	in, ctx, err := b.in(ctx)
	if err != nil {
		return nil, err
	}
	vs, err := run(in, ctx, cmds)
	if err == nil {
		err = b.sync(ctx)
	}
	return vs, err
}

func (b *replicated) watch(ctx context.Context, fn func(*Watched) error, keys []string) error {
	in, _, err := b.in(ctx)
	if err != nil {
		return err
	}
	return in.watch(ctx, func(w *Watched) error {
		return fn(NewWatched(
			func(ctx context.Context, args []any) (Value, error) {
				_, ctx, _ = b.in(ctx)
				v, err := w.runDo(ctx, args)
				if err == nil && mayWrite(args) {
					err = b.sync(ctx)
				}
				return v, err
			},
			func(ctx context.Context, cmds [][]any) ([]Value, error) {
				_, ctx, _ = b.in(ctx)
				vs, err := w.runTx(ctx, cmds)
				if err == nil {
					err = b.sync(ctx)
				}
				return vs, err
			},
		))
	}, keys)
}

func (b *replicated) String() string {
	return fmt.Sprintf("%s, writes on %d replicas within %v", b.backend, b.wait.n, b.wait.within)
}

// readTimeout is how long a reply may take.
func (b *remote) readTimeout() time.Duration {
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
