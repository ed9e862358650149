package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/fresh"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/locking"
)

// OnceValueOptions configures work with a kept result. The zero value works. The codec and the
// name belong to the data: all programs that share the work must use the same.
type OnceValueOptions[T any] struct {
	// Codec encodes results; nil: ebb.CodecOf.
	Codec conn.Codec[T]
	// Lease is the time for which other calls wait for a call whose program has died; while the
	// program lives, its function may take longer. From 10 ms to an hour; 0: 30 s.
	Lease time.Duration
	// Logger receives leases that are lost. nil: no log.
	Logger *slog.Logger
}

// OnceValue is work that is done once for each key, and whose result is kept for a span and
// given to every later call with the key. One call at a time does the work, in all programs.
// OnceValue differs from Once when work does not succeed. Once is for work that must not begin twice: a
// program that dies in it blocks the others until the span is over. OnceValue is for work whose caller tries
// again: if a function fails or panics, or its program dies, nothing is stored, and another call does the
// work. Its methods are safe for concurrent use.
type OnceValue[T any] struct {
	c    *conn.Conn
	name string
	ttl  time.Duration
	opts OnceValueOptions[T]
}

// maxLease is the longest lease that GETFRESH grants.
const maxLease = time.Hour

// maxTTL bounds the span of a result, so that an instant can represent its end.
const maxTTL = 10 * 365 * 24 * time.Hour

// NewOnceValue returns the work of that name, whose results are kept for ttl. The span begins
// when the work has ended. NewOnceValue sends nothing to the backend. Errors: ebb.ErrArgument.
func NewOnceValue[T any](c *conn.Conn, name string, ttl time.Duration, opts ...OnceValueOptions[T]) (*OnceValue[T], error) {
	const what = "lock: once value"
	name, opt, err := kit.Make(c, what, name, opts)
	if err != nil {
		return nil, err
	}
	opt.Lease = cmp.Or(opt.Lease, DefaultTTL)
	switch {
	case ttl < time.Millisecond || ttl > maxTTL:
		return nil, kit.Argument(what, name, "the span is %v; it must be from 1 ms to 10 years", ttl)
	case opt.Lease < locking.MinTTL || opt.Lease > maxLease:
		return nil, kit.Argument(what, name, "Lease is %v; it must be from %v to %v, or 0 for the default", opt.Lease, locking.MinTTL, maxLease)
	}
	if opt.Codec, err = kit.Codec(opt.Codec, "Codec"); err != nil {
		return nil, fmt.Errorf("%s %q: %w", what, name, err)
	}
	opt.Logger = cmp.Or(opt.Logger, locking.Discard)
	return &OnceValue[T]{c: c, name: name, ttl: ttl, opts: opt}, nil
}

// Do returns the result of a key. If there is none, one call calls fn, and the others wait for its result, or
// for their turn, until their contexts end, even during an outage of the backend. The Outcome says whether
// this call did the work (Did) or got the kept result (Done).
//
// fn's context ends with ctx, and when the lease is lost. The lease is renewed until fn returns, even
// when ctx has ended: a result that fn returns then is kept as well. With Did, Do returns what fn
// returned, and these errors:
//
//   - the error of fn: nothing is kept, and the next call does the work;
//   - ErrLost: the lease ended before the result was kept, because the backend did not answer in
//     time, or Delete or another client changed the key. Nothing is kept, and another call may
//     have begun the work meanwhile;
//   - the error of the codec or of the backend, which did not confirm the result: it may not be
//     kept.
//
// If fn panics, nothing is kept, the next call does the work, and the panic reaches the caller.
func (o *OnceValue[T]) Do(ctx context.Context, key string, fn func(context.Context) (T, error)) (v T, what Outcome, err error) {
	return o.do(ctx, key, fn, func(n int) (fresh.Entry, error) {
		if n == 0 {
			return o.backend().Look(ctx, o.key(key), o.opts.Lease, locking.MaxAttempts)
		}
		e, err := o.backend().Await(ctx, o.key(key), o.opts.Lease, n-1)
		if err != nil && ctx.Err() == nil && conn.Temporary(err) { // the outage may last
			if kit.Sleep(ctx, kit.Backoff(locking.MinPause, locking.MaxPause, n)) == nil {
				return fresh.Entry{}, nil
			}
		}
		return e, err
	})
}

// TryDo is Do without a wait: while another call does the work, it returns Doing and ErrTaken at
// once.
func (o *OnceValue[T]) TryDo(ctx context.Context, key string, fn func(context.Context) (T, error)) (v T, what Outcome, err error) {
	return o.do(ctx, key, fn, func(n int) (fresh.Entry, error) {
		if n > 0 {
			return fresh.Entry{}, ErrTaken
		}
		return o.backend().Look(ctx, o.key(key), o.opts.Lease, locking.MaxAttempts)
	})
}

// do gets the result or the right to do the work from next, which it calls with 0, 1, ... until it has one of
// the two.
func (o *OnceValue[T]) do(ctx context.Context, key string, fn func(context.Context) (T, error), next func(n int) (fresh.Entry, error)) (
	v T, what Outcome, err error,
) {
	if err := kit.Callable(fn != nil, "fn"); err != nil {
		return v, 0, o.wrap("do", err)
	}
	for n := 0; ; n++ {
		sent := locking.Now()
		e, err := next(n)
		switch {
		case errors.Is(err, ErrTaken):
			return v, Doing, o.wrap("do", err)
		case err != nil:
			return v, 0, o.wrap("begin", err)
		case e.State == fresh.Fresh:
			v, err := o.decode(e.Body)
			if err != nil {
				return v, Done, o.wrap("read the result", err)
			}
			return v, Done, nil
		case e.Token != "":
			t := &work[T]{o: o, key: o.key(key), token: e.Token, sent: sent}
			v, err := t.do(ctx, fn)
			return v, Did, err
		case e.State == fresh.Stale: // another client has made the result stale, and another call does the work
			if err := kit.Sleep(ctx, kit.Backoff(locking.MinPause, locking.MaxPause, n)); err != nil {
				return v, 0, o.wrap("begin", err)
			}
		}
	}
}

// work is one call's work, under a lease.
type work[T any] struct {
	o     *OnceValue[T]
	key   string
	token string

	mu   sync.Mutex      // guards sent
	sent locking.Instant // when the lease, or its last renewal, was requested
}

// left returns the time for which the lease is still certain.
func (t *work[T]) left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.o.opts.Lease - locking.Margin(t.o.opts.Lease) - t.sent.Elapsed()
}

// renewed counts the lease from the instant at which its renewal was requested.
func (t *work[T]) renewed(sent locking.Instant) {
	t.mu.Lock()
	t.sent = sent
	t.mu.Unlock()
}

// lapsed returns the error for a lease that could not be renewed in time.
func (t *work[T]) lapsed() error {
	return t.o.wrap("do", fmt.Errorf("%w: no renewal has succeeded for %v", ErrLost, t.o.opts.Lease))
}

// workContext is the context of the work, whose Err looks at the clock: after a pause of the process the timer of the lease fires
// some time later.
type workContext[T any] struct {
	context.Context
	t    *work[T]
	lost context.CancelCauseFunc
}

func (c workContext[T]) Err() error {
	if c.Context.Err() == nil && c.t.left() <= 0 {
		c.lost(c.t.lapsed())
	}
	return c.Context.Err()
}

// do calls fn under the lease, and stores its result.
func (t *work[T]) do(ctx context.Context, fn func(context.Context) (T, error)) (v T, err error) {
	ended := false // there is a result, and the lease ends with it
	defer func() {
		if !ended {
			_ = kit.Release(ctx, nil, conn.Temporary, func(ctx context.Context) error { return t.o.backend().Release(ctx, t.key, t.token) })
		}
	}()
	if v, err = t.call(ctx, fn); err != nil {
		return v, err
	}
	data, err := t.o.opts.Codec.Encode(v)
	if err != nil {
		return v, t.o.wrap("keep the result", err)
	}
	ended = true
	kept, err := t.store(ctx, resultFlag+string(data))
	switch {
	case err != nil:
		return v, t.o.wrap("keep the result", err)
	case !kept:
		err = t.o.wrap("keep the result", fmt.Errorf("%w: the key has changed, or the lease of %v was over", ErrLost, t.o.opts.Lease))
		t.o.opts.Logger.Error("lock: lease lost", "object", "once value", "name", t.o.name, "error", err)
		return v, err
	}
	return v, nil
}

// call calls fn while a goroutine renews the lease. It returns the error of fn, with ErrLost if the lease was
// lost. store later checks whether the lease still allows a result.
func (t *work[T]) call(ctx context.Context, fn func(context.Context) (T, error)) (T, error) {
	workCtx, cancel := context.WithCancelCause(ctx)
	renewCtx, done := context.WithCancel(context.WithoutCancel(ctx))
	var renewer sync.WaitGroup
	renewer.Go(func() { t.renew(renewCtx, cancel) })
	defer renewer.Wait()
	defer done()
	defer cancel(nil)
	v, err := fn(workContext[T]{workCtx, t, cancel})
	if cause := context.Cause(workCtx); err != nil && errors.Is(cause, ErrLost) && !errors.Is(err, ErrLost) {
		err = fmt.Errorf("%w; the function returned: %w", cause, err)
	}
	return v, err
}

// renew renews the lease at each third of its length while ctx lasts, and calls lost when the lease is over.
func (t *work[T]) renew(ctx context.Context, lost func(cause error)) {
	lease := t.o.opts.Lease
	expiry := time.AfterFunc(t.left(), func() { lost(t.lapsed()) })
	defer expiry.Stop()
	pause := lease / 3
	for failed := 0; kit.Sleep(ctx, pause) == nil; {
		sent := locking.Now()
		bounded, cancel := context.WithTimeout(ctx, lease/3)
		mine, err := t.o.backend().Renew(bounded, t.key, t.token, lease)
		cancel()
		switch {
		case err != nil:
			pause = kit.Backoff(lease/64, lease/12, failed)
			failed++
		case !mine:
			lost(t.o.wrap("do", fmt.Errorf("%w: the key has changed, or the lease was over", ErrLost)))
			return
		default:
			failed, pause = 0, lease/3
			t.renewed(sent)
			expiry.Reset(t.left())
		}
	}
}

// store stores the result, and reports whether the backend has it.
func (t *work[T]) store(ctx context.Context, body string) (kept bool, err error) {
	b, unanswered := t.o.backend(), false
	err = kit.Release(ctx, nil, conn.Temporary, func(ctx context.Context) (err error) {
		if kept, err = b.Set(ctx, t.key, body, t.token, 0, t.o.ttl); err == nil && !kept && unanswered {
			var e fresh.Entry // an earlier request without a reply may have stored it
			e, err = b.Look(ctx, t.key, 0, 1)
			kept = e.Body == body
		}
		unanswered = unanswered || err != nil
		return err
	})
	return kept && err == nil, err
}

// State returns the kept result of a key with Done, Doing if a call does the work now, or 0. It does not do
// the work.
func (o *OnceValue[T]) State(ctx context.Context, key string) (v T, what Outcome, err error) {
	e, err := o.backend().Look(ctx, o.key(key), 0, locking.MaxAttempts)
	switch {
	case err != nil:
		return v, 0, o.wrap("look at", err)
	case e.State == fresh.Fresh:
		if v, err = o.decode(e.Body); err != nil {
			return v, Done, o.wrap("read the result", err)
		}
		return v, Done, nil
	case e.Held:
		return v, Doing, nil
	}
	return v, 0, nil
}

// Delete removes the results of keys: the next Do of each key does the work. A call that is doing the work
// keeps no result, and returns ErrLost.
func (o *OnceValue[T]) Delete(ctx context.Context, keys ...string) error {
	if len(keys) == 0 {
		return nil
	}
	all := make([]string, len(keys))
	for i, key := range keys {
		all[i] = o.key(key)
	}
	if err := o.backend().Remove(ctx, all); err != nil {
		return o.wrap("delete", err)
	}
	return nil
}

// String describes the work.
func (o *OnceValue[T]) String() string {
	return fmt.Sprintf("once value %q (kept %v, lease %v; %s)", o.name, o.ttl, o.opts.Lease, locking.RunsOn(o.c, "GETFRESH"))
}

func (o *OnceValue[T]) backend() fresh.Backend { return fresh.On(o.c, false) }

// key returns the key of a result.
func (o *OnceValue[T]) key(key string) string { return "{" + o.name + ":" + key + "}" }

// resultFlag is the first byte of each result, so that no result is empty.
const resultFlag = "r"

func (o *OnceValue[T]) decode(body string) (v T, err error) {
	if len(body) == 0 || body[:1] != resultFlag {
		return v, fmt.Errorf("%w: the key holds a value of another program; it must hold the result of a OnceValue", conn.ErrValue)
	}
	return o.opts.Codec.Decode([]byte(body[1:]))
}

func (o *OnceValue[T]) wrap(doing string, err error) error {
	return fmt.Errorf("lock: once value %q: %s: %w", o.name, doing, err)
}
