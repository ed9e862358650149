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
	// FailOpen allows every request while the backend does not reply. Use it for limits that are a
	// courtesy.
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

// errSlow is the cause of the end of a question that Options.Timeout ended.
var errSlow = errors.New("no answer")

// errAway is a backend that does not answer, or that cannot decide now.
type errAway struct{ err error }

func (e *errAway) Error() string {
	return fmt.Sprintf("%v: %v", conn.ErrUnavailable, e.err)
}
func (e *errAway) Unwrap() []error { return []error{conn.ErrUnavailable, e.err} }

func isAway(err error) bool {
	var a *errAway
	return errors.As(err, &a)
}

// judge checks the error of a request. If it shows that the backend is away, judge returns an
// errAway, and from then on the limiter sends requests only now and then.
func (l *Limiter) judge(ctx context.Context, err error) error {
	if err == nil {
		if l.away.back() {
			l.opt.Logger.Info("limit: the backend answers again", "limiter", l.name)
		}
		return nil
	}
	cause := awayCause(ctx, err, l.opt.Timeout)
	if cause == nil {
		l.away.undecided()
		if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
			err = fmt.Errorf("%w: %w", ended, err) // both came at the same moment
		}
		return err
	}
	a := &errAway{cause}
	if l.away.gone(a) {
		l.opt.Logger.Warn("limit: the backend does not answer, "+l.meanwhile(), "limiter", l.name, "error", cause)
	}
	return a
}

// nearly is how near the caller's deadline an answer that does not come may be for its
// sake: client libraries notice a deadline some ms early.
const nearly = 10 * time.Millisecond

// awayCause returns why a backend is away, nil if it is not, or if that cannot be
// known because the caller was in a hurry. The end of the time that the limiter has set
// itself is not the end of the caller's context, and does not look like it.
func awayCause(ctx context.Context, err error, timeout time.Duration) error {
	slow := errors.Is(err, context.DeadlineExceeded)
	if d, ok := ctx.Deadline(); ctx.Err() != nil || slow && ok && time.Until(d) <= nearly || errors.Is(err, conn.ErrClosed) {
		return nil // maybe the caller's own deadline, whose timer is late, or the client's early
	}
	var refused conn.ReplyError
	switch {
	case errors.As(err, &refused):
		if !conn.Temporary(refused) {
			return nil
		}
		if slow { // the last of several tries
			return fmt.Errorf("%w within %v (Options.Timeout), but: %w", errSlow, timeout, refused)
		}
		return err
	case slow:
		return fmt.Errorf("%w within %v (Options.Timeout)", errSlow, timeout)
	case errors.Is(err, conn.ErrUnavailable):
		return err
	}
	return nil
}

func (l *Limiter) meanwhile() string {
	switch l.down.mode {
	case downOpen:
		return "everything is allowed"
	case downLocal:
		return "this process limits by itself"
	}
	return "nothing is allowed"
}

// aside decides without the backend.
func (l *Limiter) aside(p *plan, bucket, key string, n int64, m mode, cause error) (Result, error) {
	switch l.down.mode {
	case downOpen:
		r := Result{Allowed: true, Limit: p.most, Remaining: p.most, Down: true}
		if m != modePeek {
			r.Taken = n
		}
		return r, nil
	case downLocal:
		return l.local.take(p, l.down.share, bucket, n, m), nil
	}
	return Result{Limit: p.most, Down: true, RetryAfter: l.away.rest()}, l.failed("take from", key, cause)
}

// firstProbe is how long a backend that has failed once is left alone.
const firstProbe = 100 * time.Millisecond

// circuit remembers that a backend is away, so that not every call waits for an error. One call
// at a time then probes the backend, at growing intervals.
type circuit struct {
	open atomic.Bool // it is away; the rest is looked at only then

	mu      sync.Mutex // guards what follows
	every   time.Duration
	fails   int
	next    time.Duration // by the clock
	probing bool
	err     error
	clock   stopwatch
}

func (c *circuit) start(every time.Duration) { c.every, c.clock = every, startWatch() }

// ask reports whether the caller should send a request to the backend. The caller then calls
// back, gone or undecided.
func (c *circuit) ask() bool {
	if !c.open.Load() {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.probing || c.clock.elapsed() < c.next {
		return false
	}
	c.probing = true
	return true
}

// back notes that the backend has answered, and reports whether that is news.
func (c *circuit) back() bool {
	if !c.open.Load() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	news := c.open.Swap(false)
	c.fails, c.probing, c.err = 0, false, nil
	return news
}

// gone notes that it has not, and reports whether that is news.
func (c *circuit) gone(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open.Load() && !c.probing {
		return false // one of those that were under way
	}
	c.next = c.clock.elapsed() + kit.Backoff(min(firstProbe, c.every), c.every, c.fails)
	c.fails++
	c.probing, c.err = false, err
	return !c.open.Swap(true)
}

// undecided notes that the result of a request shows nothing about the backend.
func (c *circuit) undecided() {
	if !c.open.Load() {
		return
	}
	c.mu.Lock()
	c.probing = false
	c.mu.Unlock()
}

// cause is why the backend is away.
func (c *circuit) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return &errAway{errSlow} // it has just come back
	}
	return c.err
}

// rest is how long it is left alone.
func (c *circuit) rest() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.next-c.clock.elapsed(), time.Millisecond)
}
