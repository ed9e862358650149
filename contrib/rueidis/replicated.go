package rueidisebb

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/conn"
)

// Replicated is the driver of ebb.Conn.Replicated: it waits for replicas after each
// write, on the same connection, which is dedicated to the call.
func (d *driver) Replicated(n int, within time.Duration) conn.Driver {
	return &replicated{driver: d, wait: wait{n, within}}
}

// wait is what a write waits for. WAIT is sent as a command that blocks, so that
// rueidis's own timeout does not cut it short.
type wait struct {
	n      int
	within time.Duration
}

// of is the wait of some commands: none where none may write.
func (w *wait) of(cmds ...[]string) *wait {
	if w == nil {
		return nil
	}
	for _, words := range cmds {
		if mayWrite(words) {
			return w
		}
	}
	return nil
}

// command is WAIT.
func (w *wait) command(b rueidis.Builder) rueidis.Completed {
	ms := max((w.within+time.Millisecond-1)/time.Millisecond, 1)
	return b.Arbitrary("WAIT", strconv.Itoa(w.n), strconv.FormatInt(int64(ms), 10)).Blocking()
}

// judge adds to the answer of a write what came of the wait.
func (w *wait) judge(a, waited answer) answer {
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

// replicated is a driver whose writes wait.
type replicated struct {
	*driver
	wait wait
}

// Do implements ebb.Driver.
func (r *replicated) Do(ctx context.Context, args []any) (conn.Value, error) {
	words, err := texts(args)
	if err != nil {
		return conn.Value{}, err
	}
	if !mayWrite(words) {
		return r.driver.Do(ctx, args)
	}
	if err := r.enter(ctx); err != nil {
		return conn.Value{}, err
	}
	defer r.calls.Done()
	if r.cluster {
		if everywhere := wide(words); everywhere != nil {
			return everywhere(ctx, r.driver, &r.wait, words)
		}
	}
	return r.persist(ctx, words[0], func() answer {
		return r.dedicated(ctx, keyOf(words), func(c rueidis.DedicatedClient, ask bool) (answer, bool) {
			a := r.sendOn(ctx, c, ask, &r.wait, words)[0]
			return a, a.err == nil
		})
	})
}

// Block implements ebb.Driver. What it took is waited for once it has it.
func (r *replicated) Block(ctx context.Context, args []any) (conn.Value, error) {
	words, err := texts(args)
	if err != nil {
		return conn.Value{}, err
	}
	if !mayWrite(words) {
		return r.driver.Block(ctx, args)
	}
	if err := r.enter(ctx); err != nil {
		return conn.Value{}, err
	}
	defer r.calls.Done()
	return r.blocked(ctx, words, r.wait.within, func(ctx context.Context) answer {
		return r.dedicated(ctx, keyOf(words), func(c rueidis.DedicatedClient, ask bool) (answer, bool) {
			a := r.blockOn(ctx, c, ask, words)
			return a, a.err == nil
		})
	})
}

// blockOn runs one command that waits, and then waits for the replicas.
func (r *replicated) blockOn(ctx context.Context, c rueidis.DedicatedClient, ask bool, words []string) answer {
	batch := []rueidis.Completed{r.blocking(words)}
	if ask {
		batch = []rueidis.Completed{c.B().Asking().Build(), batch[0]}
	}
	results := c.DoMulti(ctx, batch...)
	a := r.answer(ctx, words[0], results[len(results)-1])
	if !a.ran || a.err != nil || a.v.Err() != nil {
		return a
	}
	return r.wait.judge(a, r.answer(ctx, "WAIT", c.Do(ctx, r.wait.command(c.B()))))
}

// Pipeline implements ebb.Driver. In a cluster each slot has a connection of its own.
func (r *replicated) Pipeline(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	all, err := allTexts(cmds)
	if err != nil {
		return nil, err
	}
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.calls.Done()
	return r.pipeline(ctx, all, r.wait.of(all...))
}

// Tx implements ebb.Driver.
func (r *replicated) Tx(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	all, err := allTexts(cmds)
	if err != nil {
		return nil, err
	}
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.calls.Done()
	key, err := r.oneSlot("a transaction", keysOf(all...))
	if err != nil {
		return nil, err
	}
	var replies []conn.Value
	_, err = r.persist(ctx, "transaction", func() answer {
		return r.dedicated(ctx, key, func(c rueidis.DedicatedClient, ask bool) (answer, bool) {
			var a answer
			replies, a = r.execReplicated(ctx, c, ask, &r.wait, all)
			return a, a.err == nil
		})
	})
	if err != nil {
		return nil, err
	}
	return replies, nil
}

// execReplicated is exec on a dedicated client, which then waits for replicas if w
// says so.
func (d *driver) execReplicated(ctx context.Context, c rueidis.DedicatedClient, ask bool, w *wait, cmds [][]string) ([]conn.Value, answer) {
	if ask { // it holds for the transaction that follows
		if a := d.answer(ctx, "ASKING", c.Do(ctx, c.B().Asking().Build())); a.err != nil {
			return nil, a
		}
	}
	replies, a := d.exec(ctx, c, cmds)
	if w = w.of(cmds...); w != nil && a.ran && a.err == nil {
		a = w.judge(a, d.answer(ctx, "WAIT", c.Do(ctx, w.command(c.B()))))
	}
	return replies, a
}

// Watch implements ebb.Driver.
func (r *replicated) Watch(ctx context.Context, fn func(*conn.Watched) error, keys []string) error {
	return r.watch(ctx, fn, keys, &r.wait)
}

// Close implements ebb.Driver: a view is not closed.
func (r *replicated) Close() error { return nil }
