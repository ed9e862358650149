package rueidisebb

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/conn/driverutil"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
)

// autoPipeline does the automatic pipelining of concurrent calls to one server. rueidis writes a
// command as soon as it finds one, so commands that come one by one are written one by
// one, and each system call costs far more than a command. autoPipeline hands the commands of
// many goroutines to rueidis together.
//
//	a call ─┬─ no other is under way ───── at once, in its goroutine
//	        ├─ the first of several ────── lets the ready goroutines run, and sends
//	        │                              their commands together with its own
//	        └─ the others ──────────────── wait for that
//
// Goroutines that get their replies together call again together, so this is enough. It
// delays a command only until the other ready goroutines have run. Any number of batches
// may be under way.
//
// rueidis also pipelines by itself, but a call of it observes one channel, and a call here
// ends with its context, at the driver's limit, or while another call connects. Without
// autoPipeline each call needs a goroutine (await) or a context of its own. INCR by 8, 64 and 256
// goroutines (redis-server 7.0.15, least of 40 windows) then takes 1.8, 2.3 and 2.7 times
// as long with await, and 1.6, 2.0 and 2.0 times with context.WithTimeout. With the
// in-flight slots of goredis it takes 1.4 to 1.6 times as long by 8 goroutines.
//
// Each call ends with its own context, while its batch continues. Each call has its own
// answer, and the decision to send it again is the same as if it had been alone.
type autoPipeline struct {
	client rueidis.Client
	active atomic.Int64 // calls under way, also of await: one of them may be connecting

	mu      sync.Mutex // guards what follows
	queue   []*call    // the first call sends all
	spare   [][]*call  // empty queues, kept for their memory
	idle    []*call    // calls, kept for their memory
	batches sync.WaitGroup

	deadlines *deadlines // the driver's

	ctx context.Context // ends batches whose callers have all gone
	end context.CancelFunc
}

const (
	// mostTogether is the limit of commands in one batch, because their replies arrive at
	// once too.
	mostTogether = 256
	// mostIdle is the limit of idle calls that are kept, about 150 bytes each.
	mostIdle = 1024
)

func newAutoPipeline(client rueidis.Client, deadlines *deadlines) *autoPipeline {
	g := &autoPipeline{client: client, deadlines: deadlines}
	g.ctx, g.end = context.WithCancel(context.Background())
	return g
}

// call is a command in the queue, or in a batch.
type call struct {
	ctx    context.Context
	cmd    rueidis.Completed
	done   chan struct{} // has room for one; then result is there
	result rueidis.RedisResult
}

// The outcomes of a command whose context has ended.
var (
	errNotSent = errors.New("the command was not sent")
	errUnknown = errors.New("the command may have been sent")
	errSilent  = errors.New("there was no reply")
)

// pending is the outcome of a command that was sent, and whose reply is still to come.
type pending struct {
	error // errUnknown or errSilent
	c     *call
}

// late returns the answer when it has come, or nothing if ctx ends before: see driverutil.PendingReply.
func (c *call) late(ctx context.Context) (v conn.Value, ok bool) {
	select {
	case <-c.done:
		c.done <- struct{}{} // for the next caller
		if c.result.NonRedisError() == nil {
			return value(c.result), true
		}
	case <-ctx.Done():
	}
	return v, false
}

// do runs one command, once. The errors are errNotSent, pending, and errSilent of a
// command that the driver's limit has ended.
func (g *autoPipeline) do(ctx context.Context, cmd rueidis.Completed) (rueidis.RedisResult, error) {
	if g.active.Add(1) == 1 && !remote.EndsSoon(ctx) {
		bounded := g.deadlines.bounded(ctx)
		r := g.client.Do(bounded, cmd)
		g.active.Add(-1)
		if bounded != ctx && errors.Is(r.NonRedisError(), context.DeadlineExceeded) {
			return r, errSilent
		}
		return r, nil
	}
	g.mu.Lock()
	c := g.newCall()
	c.ctx, c.cmd = ctx, cmd
	g.queue = append(g.queue, c)
	first := len(g.queue) == 1
	g.mu.Unlock()
	if first {
		runtime.Gosched()
		g.start()
	}
	done, late := g.deadlines.channels(ctx)
	timely := true
	select {
	case <-c.done:
		r := c.result
		g.free(c)
		return r, nil
	case <-done:
	case <-late:
		timely = false
	}
	sent := !g.leave(c)
	switch {
	case sent && !timely:
		return rueidis.RedisResult{}, pending{errSilent, c}
	case sent:
		return rueidis.RedisResult{}, pending{errUnknown, c}
	case !timely:
		return rueidis.RedisResult{}, errSilent
	}
	return rueidis.RedisResult{}, errNotSent
}

// newCall returns an idle call. The caller holds mu.
func (g *autoPipeline) newCall() *call {
	n := len(g.idle)
	if n == 0 {
		return &call{done: make(chan struct{}, 1)}
	}
	c := g.idle[n-1]
	g.idle = g.idle[:n-1]
	return c
}

// free keeps a call for the next.
func (g *autoPipeline) free(c *call) {
	*c = call{done: c.done}
	g.mu.Lock()
	if len(g.idle) < mostIdle {
		g.idle = append(g.idle, c)
	}
	g.mu.Unlock()
}

// leave takes a call out of the queue, and reports whether it was there.
func (g *autoPipeline) leave(c *call) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queue, c)
	if i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
		g.active.Add(-1)
	}
	return i >= 0
}

// start sends the calls in the queue.
func (g *autoPipeline) start() {
	g.mu.Lock()
	all := g.queue
	g.queue = nil
	if n := len(g.spare); n > 0 {
		g.queue, g.spare = g.spare[n-1], g.spare[:n-1]
	}
	g.mu.Unlock()
	for len(all) > mostTogether {
		batch := slices.Clone(all[:mostTogether])
		g.batches.Go(func() { g.run(batch) })
		all = all[mostTogether:]
	}
	g.batches.Go(func() { g.run(all) })
}

// run sends a batch, and gives each call its result.
func (g *autoPipeline) run(batch []*call) {
	ctx, cancel := g.joint(batch)
	defer cancel()
	cmds := make([]rueidis.Completed, len(batch))
	for i, c := range batch {
		cmds[i] = c.cmd
	}
	results := g.client.DoMulti(ctx, cmds...)
	g.active.Add(-int64(len(batch)))
	for i, c := range batch {
		c.result = results[i]
		c.done <- struct{}{}
	}
	clear(batch)
	g.mu.Lock()
	if len(g.spare) < 4 {
		g.spare = append(g.spare, batch[:0])
	}
	g.mu.Unlock()
}

// joint returns the context of a batch, which ends remote.GraceAfterEnd after the last deadline of its calls.
func (g *autoPipeline) joint(batch []*call) (context.Context, context.CancelFunc) {
	last, ok := remote.LastDeadline(func(yield func(context.Context) bool) {
		for _, c := range batch {
			if !yield(c.ctx) {
				return
			}
		}
	})
	if !ok {
		return g.ctx, func() {}
	}
	return context.WithDeadline(g.ctx, last.Add(remote.GraceAfterEnd))
}

// close waits for the batches: their callers have gone.
func (g *autoPipeline) close() {
	g.end()
	g.batches.Wait()
}

// smallWords is the limit, in bytes, of the arguments of a command that joins a batch.
const smallWords = 4 << 10

// joinsBatch reports whether a command may join a batch.
func (d *driver) joinsBatch(words []string) bool {
	c := routing.Find(words[0], "")
	if d.auto == nil || !c.Has(routing.Pipelined) || d.mayCache(words) {
		return false
	}
	size := 0
	for _, w := range words {
		if c.MakesWait(w) {
			return false
		}
		size += len(w)
	}
	return size <= smallWords
}

// batchAnswer returns the answer of a command that may have been in a batch.
func (d *driver) batchAnswer(ctx context.Context, doing string, r rueidis.RedisResult, err error) remote.Answer {
	p, under := err.(pending) //nolint:errorlint // nothing wraps it
	if under {
		err = p.error
	}
	var a remote.Answer
	switch {
	case err == nil:
		return d.answer(ctx, doing, r)
	case err == errSilent && ctx.Err() == nil: // else it ended while rueidis, which does not observe that, waited for the reply
		a = remote.Answer{Err: d.silent(doing), Ran: true}
	default:
		a = remote.Answer{Err: unavailable(ctx, doing, ctx.Err()), Ran: err != errNotSent}
	}
	if under {
		a.Err = driverutil.PendingReply(a.Err, p.c.late)
	}
	return a
}
