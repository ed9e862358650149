package limit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// Down selects what a limiter does while its backend does not reply: FailOpen, FailClosed, or
// Local(share). There is no default.
type Down struct {
	mode  downMode
	share float64
}

type downMode uint8

const (
	downOpen downMode = iota + 1
	downClosed
	downLocal
)

var (
	// FailOpen allows every request while the backend does not reply. Use it for limits that may be exceeded
	// without harm.
	FailOpen = Down{mode: downOpen}
	// FailClosed denies every request while the backend does not reply, and returns an error. Use
	// it for limits that protect money or the law.
	FailClosed = Down{mode: downClosed}
)

// Local returns a Down with which each process limits by itself, with GCRA, to a share of the
// rate and of the burst. The share is above 0 and at most 1; with n processes use about 1/n. In
// an outage of length t each process allows at most share x (burst + t x rate), in addition to
// what the backend allowed before.
func Local(share float64) Down { return Down{downLocal, share} }

// String returns a text such as "FailOpen" or "Local(0.25)".
func (d Down) String() string {
	switch d.mode {
	case downOpen:
		return "FailOpen"
	case downClosed:
		return "FailClosed"
	case downLocal:
		return fmt.Sprintf("Local(%v)", d.share)
	}
	return "no choice"
}

func (d Down) check() error {
	switch {
	case d.mode == 0:
		return argument("down is not set; it must be FailOpen, FailClosed or Local(share)")
	case d.mode == downLocal && !(d.share > 0 && d.share <= 1):
		return argument("down is %v; the share must be above 0 and at most 1", d)
	}
	return nil
}

// errTimeout is the cause with which the context of a request ends after Options.Timeout.
var errTimeout = errors.New("no reply")

// unavailable is the error of a backend that does not reply, or that cannot decide now.
type unavailable struct{ err error }

func (e *unavailable) Error() string {
	return fmt.Sprintf("%v: %v", conn.ErrUnavailable, e.err)
}
func (e *unavailable) Unwrap() []error { return []error{conn.ErrUnavailable, e.err} }

func isUnavailable(err error) bool {
	var a *unavailable
	return errors.As(err, &a)
}

// classify tells the breaker the result of a request. If err shows that the backend is unavailable, classify opens the breaker and
// returns an *unavailable. It returns any other error, with the context's if that has ended.
func (l *Limiter) classify(ctx context.Context, err error) error {
	if err == nil {
		if l.breaker.succeeded() {
			l.opt.Logger.Info("limit: the backend answers again", "limiter", l.name)
		}
		return nil
	}
	cause := outage(ctx, err, l.opt.Timeout)
	if cause == nil {
		l.breaker.inconclusive()
		if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
			err = fmt.Errorf("%w: %w", ended, err) // both ended at the same moment
		}
		return err
	}
	a := &unavailable{cause}
	if l.breaker.failed(a) {
		l.opt.Logger.Warn("limit: the backend does not answer, "+l.policy(), "limiter", l.name, "error", cause)
	}
	return a
}

// deadlineSlack is the time before the caller's deadline in which a timeout may come from that deadline: client libraries notice
// a deadline some ms early.
const deadlineSlack = 10 * time.Millisecond

// outage returns the reason why the backend is unavailable. It returns nil if err does not show that: the
// backend replied, or the caller's context ended first. The end of Options.Timeout is not the end of the
// caller's context.
func outage(ctx context.Context, err error, timeout time.Duration) error {
	slow := errors.Is(err, context.DeadlineExceeded)
	if d, ok := ctx.Deadline(); ctx.Err() != nil || slow && ok && time.Until(d) <= deadlineSlack || errors.Is(err, conn.ErrClosed) {
		return nil // it may be the caller's own deadline, if its timer is late or the client library early
	}
	var refused conn.ReplyError
	switch {
	case errors.As(err, &refused):
		if !conn.Temporary(refused) {
			return nil
		}
		if slow { // the last of several tries
			return fmt.Errorf("%w within %v (Options.Timeout), but: %w", errTimeout, timeout, refused)
		}
		return err
	case slow:
		return fmt.Errorf("%w within %v (Options.Timeout)", errTimeout, timeout)
	case errors.Is(err, conn.ErrUnavailable):
		return err
	}
	return nil
}

// policy describes Down for the log.
func (l *Limiter) policy() string {
	switch l.down.mode {
	case downOpen:
		return "everything is allowed"
	case downLocal:
		return "this process limits by itself"
	}
	return "nothing is allowed"
}

// decideLocally applies the Down policy. cause is the reason why the backend is unavailable.
func (l *Limiter) decideLocally(p *plan, bucket, key string, n int64, m mode, cause error) (Result, error) {
	switch l.down.mode {
	case downOpen:
		r := Result{Allowed: true, Limit: p.burst, Remaining: p.burst, Down: true}
		if m != modePeek {
			r.Taken = n
		}
		return r, nil
	case downLocal:
		return l.local.take(p, l.down.share, bucket, n, m), nil
	}
	return Result{Limit: p.burst, Down: true, RetryAfter: l.breaker.retryAfter()}, l.failed("take from", key, cause)
}

// firstProbe is the first pause of a breaker between a failure and the next probe.
const firstProbe = 100 * time.Millisecond

// The states of a breaker.
const (
	closed   = iota // all requests go to the backend
	open            // none does, until probeAt
	halfOpen        // one request probes the backend
)

// breaker is a circuit breaker: after a failure of the backend the limiter decides without waiting for an error at every call.
// One call at a time then probes the backend, with growing pauses. The zero value is closed; the caller calls start.
type breaker struct {
	state atomic.Int32 // written under mu

	mu       sync.Mutex // guards the fields below
	maxPause time.Duration
	failures int
	probeAt  time.Duration // by the clock
	err      error         // of the last failure
	clock    stopwatch
}

func (c *breaker) start(maxPause time.Duration) { c.maxPause, c.clock = maxPause, startWatch() }

// isClosed costs one atomic load.
func (c *breaker) isClosed() bool { return c.state.Load() == closed }

// allow reports whether the caller may send a request to the backend. The caller then calls succeeded, failed
// or inconclusive.
func (c *breaker) allow() bool {
	if c.isClosed() {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.isClosed():
		return true
	case c.state.Load() == halfOpen || c.clock.elapsed() < c.probeAt:
		return false
	}
	c.state.Store(halfOpen)
	return true
}

// succeeded closes the breaker, and reports whether it was open before.
func (c *breaker) succeeded() bool {
	if c.isClosed() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures, c.err = 0, nil
	return c.state.Swap(closed) != closed
}

// failed opens the breaker, and reports whether it was closed.
func (c *breaker) failed(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Load() == open {
		return false // the request was sent before another one failed
	}
	c.probeAt = c.clock.elapsed() + kit.Backoff(min(firstProbe, c.maxPause), c.maxPause, c.failures)
	c.failures++
	c.err = err
	return c.state.Swap(open) == closed
}

// inconclusive ends a probe whose result shows nothing about the backend: the next call probes.
func (c *breaker) inconclusive() {
	if c.isClosed() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.CompareAndSwap(halfOpen, open)
}

// lastError returns the error of the last failure.
func (c *breaker) lastError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return &unavailable{errTimeout} // the breaker has closed since the caller looked
	}
	return c.err
}

// retryAfter returns the time until the next probe.
func (c *breaker) retryAfter() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.probeAt-c.clock.elapsed(), time.Millisecond)
}
