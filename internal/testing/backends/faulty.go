package backends

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// Faults controls the faults of a connection that Faulty returned. The zero value has
// none. Its methods are safe for concurrent use.
type Faults struct {
	mu     sync.Mutex // guards what follows
	before func()
	lost   int // requests that do not arrive
	unread int // replies that do not
	early  time.Duration
}

// Before calls fn once, before the next command is sent.
func (f *Faults) Before(fn func()) { f.set(func() { f.before = fn }) }

// LoseRequests loses the next n requests: the server does not receive them.
func (f *Faults) LoseRequests(n int) { f.set(func() { f.lost = n }) }

// LoseReplies loses the replies of the next n requests, which the server has run.
func (f *Faults) LoseReplies(n int) { f.set(func() { f.unread = n }) }

// Early gives no reply to a request whose context has a deadline within 50 d: the request
// ends d before that, as with a client that uses a clock of its own.
func (f *Faults) Early(d time.Duration) { f.set(func() { f.early = d }) }

func (f *Faults) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

var errCut = fmt.Errorf("%w: the connection was cut by the test", ebb.ErrUnavailable)

// send decides the fate of a request: err if it is not sent, and whether its reply is
// read.
func (f *Faults) send(ctx context.Context) (read bool, err error) {
	f.mu.Lock()
	before, early := f.before, f.early
	f.before = nil
	f.mu.Unlock()
	if before != nil {
		before()
	}
	if at, ok := ctx.Deadline(); ok && early > 0 && time.Until(at) < 50*early {
		if err := kit.Sleep(ctx, time.Until(at)-early); err != nil {
			return false, err
		}
		return false, fmt.Errorf("by the client's own clock: %w", context.DeadlineExceeded)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case f.lost > 0:
		f.lost--
		return false, errCut
	case f.unread > 0:
		f.unread--
		return false, nil
	}
	return true, nil
}

// faulty is a connection with faults.
type faulty struct {
	hidden
	f *Faults
}

// Faulty returns a connection to the same data, and the control of its faults. Closing c
// closes it too.
func Faulty(c *ebb.Conn) (*ebb.Conn, *Faults) {
	f := &Faults{}
	return ebb.Use(faulty{hidden{c}, f}), f
}

// sent sends one request.
func sent[R any](ctx context.Context, f *Faults, send func() (R, error)) (r R, err error) {
	read, err := f.send(ctx)
	if err != nil {
		return r, err
	}
	got, err := send()
	if !read {
		return r, errCut
	}
	return got, err
}

func (x faulty) Do(ctx context.Context, args []any) (ebb.Value, error) {
	return sent(ctx, x.f, func() (ebb.Value, error) { return x.hidden.Do(ctx, args) })
}

func (x faulty) Block(ctx context.Context, args []any) (ebb.Value, error) {
	return sent(ctx, x.f, func() (ebb.Value, error) { return x.hidden.Block(ctx, args) })
}

func (x faulty) Pipeline(ctx context.Context, cmds [][]any) ([]ebb.Value, error) {
	return sent(ctx, x.f, func() ([]ebb.Value, error) { return x.hidden.Pipeline(ctx, cmds) })
}

func (x faulty) Tx(ctx context.Context, cmds [][]any) ([]ebb.Value, error) {
	return sent(ctx, x.f, func() ([]ebb.Value, error) { return x.hidden.Tx(ctx, cmds) })
}

func (x faulty) Capabilities() ebb.Capabilities { return x.c.Capabilities() }

func (x faulty) Replicated(n int, within time.Duration) conn.Driver {
	return faulty{hidden{x.c.Replicated(n, within)}, x.f}
}

func (x faulty) String() string { return x.c.String() + ", faulty" }
