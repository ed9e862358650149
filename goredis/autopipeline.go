package goredis

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/conn/driverutil"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
)

// autoPipeline sends the commands of many goroutines to one server together, because the
// round trip to a server costs far more than most commands.
//
//	a call ──┬─ an in-flight slot is free ── alone, at once, in the caller's goroutine; if its
//	         │                               deadline is near, in a goroutine of its own
//	         └─ none is ──────────────────── it waits, and the next slot that gets free
//	                                         takes all waiting calls, as one pipeline
//
// No call is delayed so that others can join it: a call that is alone is as fast as
// without autoPipeline. Each call ends with its own context, while its pipeline continues.
// Each call has its own answer, and the decision to send it again is the same as if it had
// been alone. A command that could delay the commands after it has a connection to itself:
// see mayJoin.
type autoPipeline struct {
	client *redis.Client
	width  int       // in-flight slots; 0: each command goes alone
	calls  sync.Pool // of *call; one for each autoPipeline: the channels of a shared one would leave a synctest bubble

	mu    sync.Mutex // guards what follows
	taken int        // in-flight slots
	queue []*call
	pipes sync.WaitGroup // goroutines of pipelines
}

const (
	// mostTogether is the limit of commands in one pipeline, because their replies arrive at
	// once too.
	mostTogether = 64
	// maxKeyword is greater than the length of any option's name, in bytes.
	maxKeyword = 16
	// smallArgs is the limit, in bytes, of the arguments of a command that shares a
	// pipeline.
	smallArgs = 4 << 10
)

// mostInFlight is the number of in-flight slots of a server. More slots would only make
// the pipelines smaller.
const mostInFlight = 8

// newAutoPipeline returns the autoPipeline of a client. It has no slots for a client that
// sends lost commands again by itself: such a client would send a whole pipeline again,
// with the commands that have replies already.
func newAutoPipeline(client *redis.Client) *autoPipeline {
	g := &autoPipeline{client: client}
	if o := client.Options(); o.MaxRetries == 0 { // go-redis turns -1 into 0 when it makes the client
		g.width = max(1, min(mostInFlight, 2*runtime.GOMAXPROCS(0), o.PoolSize))
	}
	return g
}

// call is a command that waits for a slot, or is in a pipeline.
type call struct {
	ctx    context.Context
	plain  []any
	done   chan struct{} // has room for one; then answer is there
	answer remote.Answer
}

// mayJoin reports whether a command may go with others.
func mayJoin(ctx context.Context, plain []any) bool {
	if _, ok := waitOf(ctx); ok {
		return false
	}
	name, _ := plain[0].(string)
	c := routing.Find(name, "")
	if !c.Has(routing.Pipelined) {
		return false
	}
	size := 0
	for _, a := range plain {
		switch a := a.(type) {
		case string:
			if c.MakesWait(a) {
				return false
			}
			size += len(a)
		case []byte:
			if len(a) < maxKeyword && c.MakesWait(string(a)) {
				return false
			}
			size += len(a)
		}
	}
	return size <= smallArgs
}

// send runs one command, once, alone or in a pipeline.
func (g *autoPipeline) send(ctx context.Context, plain []any) remote.Answer {
	joins, soon := mayJoin(ctx, plain), remote.EndsSoon(ctx)
	if g.width == 0 || !joins && !soon {
		return send(ctx, g.client, plain)
	}
	g.mu.Lock()
	if joins && !soon && g.taken < g.width {
		g.taken++
		g.mu.Unlock()
		defer g.free()
		return send(ctx, g.client, plain)
	}
	c, _ := g.calls.Get().(*call)
	if c == nil {
		c = &call{done: make(chan struct{}, 1)}
	}
	c.ctx, c.plain = ctx, owned(plain)
	switch {
	case !joins:
		g.pipes.Go(func() { g.single(c) })
	case g.taken < g.width:
		g.taken++
		g.queue = append(g.queue, c)
		together := g.next(nil)
		g.pipes.Go(func() { g.run(together) })
	default:
		g.queue = append(g.queue, c)
	}
	g.mu.Unlock()
	select {
	case <-c.done:
		a := c.answer
		*c = call{done: c.done}
		g.calls.Put(c)
		return a
	case <-ctx.Done():
		err := driverutil.Ended(ctx, named(plain))
		if g.leave(c) {
			return remote.Answer{Err: err}
		}
		return remote.Answer{Err: driverutil.PendingReply(err, c.late), Ran: true}
	}
}

// late returns the answer when it has come, or nothing if ctx ends before: see driverutil.PendingReply.
func (c *call) late(ctx context.Context) (v conn.Value, ok bool) {
	select {
	case <-c.done:
		c.done <- struct{}{} // for the next caller
		return c.answer.V, c.answer.Err == nil
	case <-ctx.Done():
		return v, false
	}
}

// owned copies the byte slices. The caller may change them after the call has ended, and a
// call whose context ends does so before its pipeline is written.
func owned(plain []any) []any {
	for i, a := range plain {
		if b, ok := a.([]byte); ok {
			plain[i] = bytes.Clone(b)
		}
	}
	return plain
}

// leave takes a call out of the queue, and reports whether it was there.
func (g *autoPipeline) leave(c *call) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queue, c)
	if i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
	}
	return i >= 0
}

// free gives a slot to the calls that wait.
func (g *autoPipeline) free() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if together := g.next(nil); together != nil {
		g.pipes.Go(func() { g.run(together) })
	}
}

// next returns the calls that wait, or releases the slot if there are none. The caller
// holds mu.
func (g *autoPipeline) next(room []*call) []*call {
	n := min(len(g.queue), mostTogether)
	if n == 0 {
		g.taken--
		return nil
	}
	room = append(room[:0], g.queue[:n]...)
	g.queue = slices.Delete(g.queue, 0, n)
	return room
}

// run uses a slot for as long as calls wait.
func (g *autoPipeline) run(together []*call) {
	for together != nil {
		g.pipe(together)
		g.mu.Lock()
		together = g.next(together)
		g.mu.Unlock()
	}
}

// single sends a call that joins no pipeline.
func (g *autoPipeline) single(c *call) {
	ctx, cancel := joint([]*call{c})
	defer cancel()
	c.answer = send(ctx, g.client, c.plain)
	if c.answer.Err != nil && c.ctx.Err() != nil {
		c.answer.Err = driverutil.Ended(c.ctx, named(c.plain))
	}
	c.done <- struct{}{}
}

// pipe sends calls as one pipeline, and gives each its answer.
func (g *autoPipeline) pipe(together []*call) {
	ctx, cancel := joint(together)
	defer cancel()
	p := g.client.Pipeline()
	sent := make([]*tracked, len(together))
	for i, c := range together {
		sent[i] = newTracked(ctx, c.plain)
		_ = p.Process(ctx, sent[i])
	}
	_, whole := p.Exec(ctx)
	for i, c := range together {
		c.answer = sent[i].answer(c.ctx, whole)
		c.done <- struct{}{}
	}
	clear(together)
}

// joint returns the context of several calls, which ends remote.GraceAfterEnd after the last of their deadlines.
func joint(together []*call) (context.Context, context.CancelFunc) {
	ctx := context.WithoutCancel(together[0].ctx)
	last, ok := remote.LastDeadline(func(yield func(context.Context) bool) {
		for _, c := range together {
			if !yield(c.ctx) {
				return
			}
		}
	})
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, last.Add(remote.GraceAfterEnd))
}

// close waits for the pipelines.
func (g *autoPipeline) close() { g.pipes.Wait() }
