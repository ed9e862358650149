package ebbtest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/conn/driverutil"
	"github.com/ebbdb/ebb/resp"
)

// driver is the driver of a Backend's Conn. It applies the faults, then calls the embedded
// engine.
type driver struct {
	c *conn.Conn
	f *faults
}

// pass waits for the time of SetLatency, and applies the faults to a command. lost reports
// that the caller must drop the reply.
func (d *driver) pass(ctx context.Context, args []any) (refused *conn.Value, lost bool, err error) {
	if wait := d.f.delay(); wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil, false, ended(ctx)
		}
	}
	if !d.f.any() {
		return nil, false, nil
	}
	cmd := make([]string, len(args))
	for i, a := range args {
		if cmd[i], err = driverutil.ArgText(a); err != nil {
			return nil, false, err
		}
	}
	err = d.f.decide(cmd)
	var reply conn.ReplyError
	switch {
	case errors.As(err, &reply):
		return &conn.Value{Kind: resp.KindError, Str: string(reply)}, false, nil
	case errors.Is(err, ErrLost):
		return nil, true, nil
	case err != nil:
		return nil, false, away(err.Error())
	}
	return nil, false, nil
}

// up runs fn in a context that Stop ends too. While the backend hangs, up neither calls fn
// nor returns. If ctx ends meanwhile, the reply is lost.
func (d *driver) up(ctx context.Context, fn func(ctx context.Context) error) error {
	up, end, err := d.f.whileUp(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err = d.f.wait(up); err == nil {
		if err = fn(up); err == nil {
			err = d.f.wait(up)
		}
	}
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(up), errStopped) {
		return away("stopped")
	}
	return err
}

// plain turns an error that holds an error reply into the Value of that reply, as a Driver
// returns it.
func plain(v conn.Value, err error) (conn.Value, error) {
	if reply, ok := errors.AsType[conn.ReplyError](err); ok {
		return conn.Value{Kind: resp.KindError, Str: string(reply)}, nil
	}
	return v, err
}

func (d *driver) Do(ctx context.Context, args []any) (v conn.Value, err error) {
	return d.run(ctx, args, d.c.Do)
}

func (d *driver) Block(ctx context.Context, args []any) (conn.Value, error) {
	return d.run(ctx, args, d.c.Block)
}

func (d *driver) run(ctx context.Context, args []any, do func(context.Context, ...any) (conn.Value, error)) (v conn.Value, err error) {
	err = d.up(ctx, func(ctx context.Context) error {
		refused, lost, err := d.pass(ctx, args)
		if refused != nil {
			v = *refused
		}
		if refused != nil || err != nil {
			return err
		}
		if v, err = plain(do(ctx, args...)); err == nil && lost {
			v, err = conn.Value{}, away(ErrLost.Error())
		}
		return err
	})
	return v, err
}

// Pipeline runs the commands one by one, and applies the faults to each.
func (d *driver) Pipeline(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	for _, args := range cmds {
		for _, a := range args {
			if _, err := driverutil.ArgText(a); err != nil {
				return nil, err // before anything is run
			}
		}
	}
	replies := make([]conn.Value, len(cmds))
	for i, args := range cmds {
		var err error
		if replies[i], err = d.Do(ctx, args); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// Replicated implements conn.ReplicatedDriver: it applies the same faults before a view of
// the engine.
func (d *driver) Replicated(n int, within time.Duration) conn.Driver {
	return &driver{d.c.Replicated(n, within), d.f}
}

// Tx applies the faults once, to the command EXEC.
func (d *driver) Tx(ctx context.Context, cmds [][]any) (replies []conn.Value, err error) {
	return d.exec(ctx, cmds, d.c.Tx)
}

func (d *driver) exec(ctx context.Context, cmds [][]any,
	tx func(context.Context, *conn.Batch) ([]conn.Value, error)) (replies []conn.Value, err error) {
	err = d.up(ctx, func(ctx context.Context) error {
		refused, lost, err := d.pass(ctx, []any{"EXEC"})
		if refused != nil {
			return refused.Err()
		}
		if err != nil {
			return err
		}
		var b conn.Batch
		for _, args := range cmds {
			b.Do(args...)
		}
		if replies, err = tx(ctx, &b); err == nil && lost {
			replies, err = nil, away(ErrLost.Error())
		}
		return err
	})
	return replies, err
}

func (d *driver) Watch(ctx context.Context, fn func(*conn.Watched) error, keys []string) error {
	return d.up(ctx, func(ctx context.Context) error {
		return d.c.Watch(ctx, func(w *conn.Watched) error {
			return fn(conn.NewWatched(
				func(ctx context.Context, args []any) (conn.Value, error) { return d.run(ctx, args, w.Do) },
				func(ctx context.Context, cmds [][]any) ([]conn.Value, error) { return d.exec(ctx, cmds, w.Tx) }))
		}, keys...)
	})
}

func (d *driver) Subscribe(ctx context.Context, kind conn.SubscribeKind, names []string) (conn.Feed, error) {
	f := &feed{d: d, kind: kind, names: names, closed: make(chan struct{})}
	if err := d.up(ctx, f.open); err != nil {
		return nil, err
	}
	return f, nil
}

func (d *driver) Capabilities() conn.Capabilities { return d.c.Capabilities() }

// Unwrap implements conn.Wrapper.
func (d *driver) Unwrap() *conn.Conn { return d.c }

func (d *driver) String() string { return d.c.String() }
func (d *driver) Close() error   { return d.c.Close() }

// feed is a subscription that subscribes again after Stop and Start.
type feed struct {
	d     *driver
	kind  conn.SubscribeKind
	names []string
	kept  []conn.Message // at most one, that came while the backend hung

	mu     sync.Mutex // guards what follows
	sub    *conn.Subscription
	shut   bool
	closed chan struct{} // closed by Close
}

func (f *feed) open(ctx context.Context) (err error) {
	subscribe := f.d.c.Subscribe
	switch f.kind {
	case conn.Patterns:
		subscribe = f.d.c.PSubscribe
	case conn.Sharded:
		subscribe = f.d.c.SSubscribe
	}
	sub, err := subscribe(ctx, f.names...)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shut {
		return errors.Join(conn.ErrClosed, sub.Close())
	}
	f.sub = sub
	return nil
}

// Next implements conn.Feed. After Stop it waits for Start, and then returns an error that
// says that messages may be lost.
func (f *feed) Next(ctx context.Context) (m conn.Message, err error) {
	f.mu.Lock()
	sub := f.sub
	f.mu.Unlock()
	up, end, err := f.d.f.whileUp(ctx)
	if err == nil {
		m, err = f.heard(up, sub)
		stopped := errors.Is(context.Cause(up), errStopped)
		end()
		if err == nil || !stopped || ctx.Err() != nil || errors.Is(err, conn.ErrClosed) {
			return m, err
		}
	}
	if err := sub.Close(); err != nil {
		return m, err
	}
	select {
	case <-f.d.f.up():
	case <-f.closed:
		return m, conn.ErrClosed
	case <-ctx.Done():
		return m, ctx.Err()
	}
	if err := f.d.up(ctx, f.open); err != nil {
		return m, err
	}
	return m, conn.ErrInterrupted
}

// heard returns the next message. While the backend hangs, it waits.
func (f *feed) heard(ctx context.Context, sub *conn.Subscription) (m conn.Message, err error) {
	if len(f.kept) > 0 { // Next is for one goroutine at a time
		m = f.kept[0]
	} else if m, err = sub.Next(ctx); err != nil {
		return m, err
	}
	f.kept = append(f.kept[:0], m)
	if err = f.d.f.wait(ctx); err != nil {
		return conn.Message{}, err
	}
	f.kept = f.kept[:0]
	return m, nil
}

func (f *feed) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shut {
		return nil
	}
	f.shut = true
	close(f.closed)
	return f.sub.Close()
}
