package rueidisebb

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
	"github.com/ebbdb/ebb/resp"
)

// driver is conn.Driver over a client.
type driver struct {
	client    rueidis.Client
	owned     bool // Close closes client
	cluster   bool
	policy    remote.Policy // the retries
	cacheTTL  time.Duration
	cached    map[string]struct{} // nil: no cache
	timeouts  timeouts
	deadlines *deadlines
	auto      *autoPipeline // nil in a cluster

	probe *remote.Probe

	ctx       context.Context // ends with Close
	end       context.CancelFunc
	calls     *remote.Gate
	abandoned sync.WaitGroup // goroutines of await, whose calls may have given up
	later     remote.Later   // gives back again what calls without an answer may have got
	blockers  blockers
	*hangups  // nil over a client of Wrap
}

// enter counts a call; Close waits for it.
func (d *driver) enter(ctx context.Context) error {
	if !d.calls.Enter() {
		return conn.ErrClosed
	}
	if err := d.probe.Known(ctx); err != nil {
		d.calls.Leave()
		return err
	}
	return nil
}

// Do implements conn.Driver.
func (d *driver) Do(ctx context.Context, args []any) (conn.Value, error) {
	words, err := texts(args)
	if err != nil {
		return conn.Value{}, err
	}
	if err := d.enter(ctx); err != nil {
		return conn.Value{}, err
	}
	defer d.calls.Leave()
	if d.cluster {
		if run := fanOutOf(words); run != nil {
			return run(ctx, d, nil, words)
		}
	}
	a := d.send(ctx, words)
	if a.Ran && a.Err == nil {
		return a.V, nil
	}
	return d.policy.Insist(ctx, words[0], a, func() remote.Answer { return d.send(ctx, words) })
}

// send runs one command on the shared connections, once. In a cluster rueidis follows
// MOVED and ASK.
func (d *driver) send(ctx context.Context, words []string) remote.Answer {
	if d.mayCache(words) {
		return d.shared(ctx, words[0], func() remote.Answer {
			return d.answer(ctx, words[0], d.client.DoCache(ctx, rueidis.Cacheable(d.routed(words)), d.cacheTTL))
		})
	}
	if d.joinsBatch(words) {
		r, err := d.auto.do(ctx, d.command(words))
		return d.batchAnswer(ctx, words[0], r, err)
	}
	return d.shared(ctx, words[0], func() remote.Answer {
		late, cancel := lingering(ctx)
		defer cancel()
		return d.answer(ctx, words[0], d.client.Do(late, d.routed(words)))
	})
}

// inCall runs a call with the commands of a batch.
func (d *driver) inCall(ctx context.Context, cmds [][]any, run func(all [][]string) ([]conn.Value, error)) ([]conn.Value, error) {
	all, err := allTexts(cmds)
	if err != nil {
		return nil, err
	}
	if err := d.enter(ctx); err != nil {
		return nil, err
	}
	defer d.calls.Leave()
	return run(all)
}

// Pipeline implements conn.Driver.
func (d *driver) Pipeline(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	return d.inCall(ctx, cmds, func(all [][]string) ([]conn.Value, error) { return d.pipeline(ctx, all, nil) })
}

// Tx implements conn.Driver. In a cluster rueidis follows a transaction's redirection
// as a whole.
func (d *driver) Tx(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	return d.inCall(ctx, cmds, func(all [][]string) ([]conn.Value, error) {
		if _, err := d.oneSlot("a transaction", keysOf(all...)); err != nil {
			return nil, err
		}
		v, err := d.policy.Persist(ctx, "transaction", func() remote.Answer {
			return d.shared(ctx, "transaction", func() remote.Answer {
				replies, a := d.exec(ctx, d.client, all)
				if replies != nil {
					a.V = conn.Value{Kind: resp.KindArray, Elems: replies}
				}
				return a
			})
		})
		if err != nil {
			return nil, err
		}
		return v.Elems, nil
	})
}

// sender is a client, or a dedicated one.
type sender interface {
	B() rueidis.Builder
	DoMulti(ctx context.Context, multi ...rueidis.Completed) []rueidis.RedisResult
}

// exec runs commands between MULTI and EXEC, all sent at once. The answer is that of
// the whole.
func (d *driver) exec(ctx context.Context, c sender, cmds [][]string) ([]conn.Value, remote.Answer) {
	b := c.B()
	batch := make([]rueidis.Completed, 0, len(cmds)+2)
	batch = append(batch, b.Multi().Build())
	for _, words := range cmds {
		batch = append(batch, d.command(words))
	}
	batch = append(batch, b.Exec().Build())
	results := c.DoMulti(ctx, batch...)
	last := len(results) - 1
	var refused conn.Value // why a command was not queued
	for _, r := range results[:last] {
		a := d.answer(ctx, "transaction", r)
		if a.Err != nil {
			return nil, a
		}
		if refused.Err() == nil {
			refused = a.V
		}
	}
	a := d.answer(ctx, "EXEC", results[last])
	switch {
	case a.Err != nil:
		return nil, a
	case a.V.IsNull():
		return nil, remote.Answer{Err: conn.ErrConflict, Ran: true}
	case strings.HasPrefix(a.V.Str, "EXECABORT") && routing.Untouched(refused):
		return nil, remote.Answer{V: refused}
	case a.V.Err() != nil && !a.Ran: // EXEC itself was refused
		return nil, a
	case a.V.Err() != nil && refused.Err() != nil:
		return nil, remote.Answer{Err: fmt.Errorf("%w (%w)", a.V.Err(), refused.Err()), Ran: true}
	case a.V.Err() != nil:
		return nil, remote.Answer{Err: a.V.Err(), Ran: true}
	case a.V.Kind != resp.KindArray || len(a.V.Elems) != len(cmds):
		return nil, remote.Answer{Err: fmt.Errorf("rueidisebb: EXEC of %d commands replied %s", len(cmds), a.V), Ran: true}
	}
	return a.V.Elems, remote.Answer{Ran: true}
}

// Close implements conn.Driver.
func (d *driver) Close() error {
	d.later.Close()
	first := d.calls.Shut()
	d.end()
	d.calls.Wait()
	d.dropBlockers()
	if first && d.owned {
		d.client.Close() // which ends the calls that were given up
	}
	if d.auto != nil {
		d.auto.close()
	}
	d.abandoned.Wait()
	if d.hangups != nil {
		d.finishing.Wait()
	}
	d.deadlines.close()
	return nil
}
