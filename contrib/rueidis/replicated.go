package rueidisebb

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/remote"
)

// Replicated is the driver of ebb.Conn.Replicated: it waits for replicas after each
// write, on the same connection, which is dedicated to the call.
func (d *driver) Replicated(n int, within time.Duration) conn.Driver {
	return &replicated{driver: d, wait: wait{remote.Replicas{N: n, Within: within}}}
}

// wait holds the replicas that a write waits for. The driver sends WAIT as a blocking
// command, so that rueidis's own timeout does not end it early.
type wait struct{ remote.Replicas }

// of returns w if one of the commands may write, else nil.
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

// command builds the command WAIT.
func (w *wait) command(b rueidis.Builder) rueidis.Completed {
	return b.Arbitrary("WAIT", strconv.Itoa(w.N), strconv.FormatInt(w.Millis(), 10)).Blocking()
}

// replicated is a driver whose writes wait.
type replicated struct {
	*driver
	wait wait
}

// write runs a command that may write; plain runs any other one, which does not wait for replicas.
func (r *replicated) write(ctx context.Context, args []any, plain func(context.Context, []any) (conn.Value, error),
	run func(words []string) (conn.Value, error)) (conn.Value, error) {
	words, err := texts(args)
	if err != nil {
		return conn.Value{}, err
	}
	if !mayWrite(words) {
		return plain(ctx, args)
	}
	if err := r.enter(ctx); err != nil {
		return conn.Value{}, err
	}
	defer r.calls.Leave()
	return run(words)
}

// Do implements conn.Driver.
func (r *replicated) Do(ctx context.Context, args []any) (conn.Value, error) {
	return r.write(ctx, args, r.driver.Do, func(words []string) (conn.Value, error) {
		if r.cluster {
			if run := fanOutOf(words); run != nil {
				return run(ctx, r.driver, &r.wait, words)
			}
		}
		return r.policy.Persist(ctx, words[0], func() remote.Answer {
			return r.dedicated(ctx, keyOf(words), func(c rueidis.DedicatedClient, ask bool) (remote.Answer, bool) {
				a := r.sendOn(ctx, c, ask, &r.wait, words)[0]
				return a, a.Err == nil
			})
		})
	})
}

// Block implements conn.Driver. After the command has its result, Block waits for the
// replicas.
func (r *replicated) Block(ctx context.Context, args []any) (conn.Value, error) {
	return r.write(ctx, args, r.driver.Block, func(words []string) (conn.Value, error) {
		return r.blocked(ctx, words, r.wait.Within, func(bounded context.Context) remote.Answer {
			if r.hangsUp() {
				return r.onBlocker(ctx, bounded, words[0], func(ctx context.Context, c rueidis.DedicatedClient) remote.Answer {
					return r.blockOn(ctx, c, false, words)
				})
			}
			return r.dedicated(bounded, keyOf(words), func(c rueidis.DedicatedClient, ask bool) (remote.Answer, bool) {
				a := r.blockOn(bounded, c, ask, words)
				return a, a.Err == nil
			})
		})
	})
}

// blockOn runs one command that waits, and then waits for the replicas.
func (r *replicated) blockOn(ctx context.Context, c rueidis.DedicatedClient, ask bool, words []string) remote.Answer {
	batch := []rueidis.Completed{r.blocking(words)}
	if ask {
		batch = []rueidis.Completed{c.B().Asking().Build(), batch[0]}
	}
	results := c.DoMulti(ctx, batch...)
	a := r.answer(ctx, words[0], results[len(results)-1])
	if !a.Ran || a.Err != nil || a.V.Err() != nil {
		return a
	}
	return r.wait.Check(a, r.answer(ctx, "WAIT", c.Do(ctx, r.wait.command(c.B()))))
}

// Pipeline implements conn.Driver. In a cluster each slot has a connection of its own.
func (r *replicated) Pipeline(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	return r.inCall(ctx, cmds, func(all [][]string) ([]conn.Value, error) { return r.pipeline(ctx, all, r.wait.of(all...)) })
}

// Tx implements conn.Driver.
func (r *replicated) Tx(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	return r.inCall(ctx, cmds, func(all [][]string) (replies []conn.Value, err error) {
		key, err := r.oneSlot("a transaction", keysOf(all...))
		if err != nil {
			return nil, err
		}
		_, err = r.policy.Persist(ctx, "transaction", func() remote.Answer {
			return r.dedicated(ctx, key, func(c rueidis.DedicatedClient, ask bool) (a remote.Answer, ok bool) {
				replies, a = r.execReplicated(ctx, c, ask, &r.wait, all)
				return a, a.Err == nil
			})
		})
		if err != nil {
			return nil, err
		}
		return replies, nil
	})
}

// execReplicated runs exec on a dedicated client, and then waits for replicas if w is not
// nil.
func (d *driver) execReplicated(ctx context.Context, c rueidis.DedicatedClient, ask bool, w *wait,
	cmds [][]string) ([]conn.Value, remote.Answer) {
	if ask { // ASKING holds for the transaction after it
		if a := d.answer(ctx, "ASKING", c.Do(ctx, c.B().Asking().Build())); a.Err != nil {
			return nil, a
		}
	}
	replies, a := d.exec(ctx, c, cmds)
	if w = w.of(cmds...); w != nil && a.Ran && a.Err == nil {
		a = w.Check(a, d.answer(ctx, "WAIT", c.Do(ctx, w.command(c.B()))))
	}
	return replies, a
}

// Watch implements conn.Driver.
func (r *replicated) Watch(ctx context.Context, fn func(*conn.Watched) error, keys []string) error {
	return r.watch(ctx, fn, keys, &r.wait)
}

// Close implements conn.Driver: a view is not closed.
func (r *replicated) Close() error { return nil }
