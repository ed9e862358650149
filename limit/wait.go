package limit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// Waiting in a line. On ebb the server keeps the line: RL.WAIT. On other servers a script keeps it: a waiter polls when its turn
// may have come, and at least every refresh, which renews its lease in the line. The script skips a waiter whose lease is over.
// The server determines the turns, by its own clock.

// refresh is the longest time between two requests of a waiter: long enough for thousands of waiters, and short enough that the
// others do not wait long for one that has died.
const refresh = 500 * time.Millisecond

// replyTime is the time that the reply of RL.WAIT has to arrive after the deadline, which the server observes
// itself. A client that did not wait for the reply would close the connection.
const replyTime = 50 * time.Millisecond

// notQueued is the reply of the script to a ticket whose turn comes after its deadline.
const notQueued = 3

// minPause and maxPause bound the pauses of a waiter that is not the first in line although the bucket has enough: the waiters
// before it are a little late, or have died. Each pause is twice the one before.
const (
	minPause = time.Millisecond
	maxPause = 32 * time.Millisecond
)

// Wait takes one request of a key, and waits until the limit allows it. The limiter serves the waiting calls
// of all processes in FIFO order. Wait returns nil when it has taken the request. When the context ends, the
// call leaves the queue and returns the context's error. If the context's deadline is before the call's turn,
// Wait returns ErrLate with context.DeadlineExceeded: at once if the call is the first in the queue,
// otherwise at the deadline. A reply that is under way at the deadline still counts, even if it arrives up to
// half a second later.
//
// Other errors are those of Allow. If the connection is lost while Wait waits, Down decides:
// FailOpen returns nil, FailClosed an error, and Local waits in this process. If the context
// ends at the instant of the turn, the request may be lost.
func (l *Limiter) Wait(ctx context.Context, key string) error { return l.WaitN(ctx, key, 1) }

// WaitN does the work of Wait for n requests at once. No later call overtakes a call that waits
// for many. Further errors: ErrTooMuch for more than Burst, ebb.ErrArgument.
func (l *Limiter) WaitN(ctx context.Context, key string, n int64) error {
	p := l.plan.Load()
	err := l.check(p, "wait for", key, n, modeTake)
	if err != nil {
		return err
	}
	if err = ctx.Err(); err != nil {
		return l.failed("wait for", key, err)
	}
	bucket := l.bucket(key)
	switch {
	case !l.breaker.allow():
		err = l.breaker.lastError()
	case l.native():
		err = l.waitNative(ctx, p, bucket, n)
	default:
		err = l.waitInLine(ctx, p, bucket, n)
	}
	if isUnavailable(err) {
		err = l.waitLocally(ctx, p, bucket, n, err)
	}
	if err != nil {
		return l.failed("wait for", key, err)
	}
	return nil
}

// errorLate returns the error for a turn that comes after the context's deadline.
func errorLate(turn time.Duration) error {
	return fmt.Errorf("%w: in %v, after the context's deadline: %w", ErrLate, turn, context.DeadlineExceeded)
}

// lateAtDeadline returns the error of a waiter whose wait ended with err: at the context's deadline it is also ErrLate.
func lateAtDeadline(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrLate, err)
	}
	return err
}

// untilDeadline returns the time until the deadline of a context, -1 if it has none.
func untilDeadline(ctx context.Context) time.Duration {
	d, ok := ctx.Deadline()
	if !ok {
		return -1
	}
	return max(0, time.Until(d))
}

// waitNative first sends RL.TAKE, which Options.Timeout bounds and which is mostly enough, and then RL.WAIT.
func (l *Limiter) waitNative(ctx context.Context, p *plan, bucket string, n int64) error {
	r, err := l.send(ctx, p, bucket, n, modeTake)
	if err = l.classify(ctx, err); err != nil || r.Allowed {
		return err
	}
	for {
		ms := int64(0)
		if d := untilDeadline(ctx); d >= 0 {
			ms = max(1, kit.Millis(d))
		}
		args := append(append([]any{"RL.WAIT", bucket}, p.native[:2]...), ms)
		args = append(append(args, p.native[2:]...), "COST", n)
		whole, cancel := kit.ExtendDeadline(ctx, replyTime)
		v, err := l.c.Block(whole, args...)
		cancel()
		if refused, ok := errors.AsType[conn.ReplyError](err); ok && refused.Code() == "UNBLOCKED" {
			continue // the server's role has changed, or another client woke it
		}
		if err = l.classify(ctx, err); err != nil {
			return lateAtDeadline(err)
		}
		r, err := parseResult(v)
		if err == nil && !r.Allowed {
			err = errorLate(r.RetryAfter)
		}
		return err
	}
}

// waitInLine waits for the caller's turn in the line that the script keeps.
func (l *Limiter) waitInLine(ctx context.Context, p *plan, bucket string, n int64) (err error) {
	ticket, turn, out := kit.ID(), "", false
	defer func() {
		// Leave the line even if the first request had no reply: the backend may have run it.
		if err != nil && !out {
			l.leaveLine(ctx, bucket, ticket, n, err)
		}
	}()
	lease, behind := 2*refresh+l.opt.Timeout, minPause
	for {
		within := int64(-1)
		if d := untilDeadline(ctx); d >= 0 {
			within = d.Microseconds()
		}
		out = false
		v, err := l.pollLine(ctx, p, bucket, append(p.script[:4:4], n, ticket, turn, lease.Microseconds(), within))
		if err != nil && ctx.Err() != nil { // the turn is often near the deadline
			if late, ok := kit.Late(ctx, err); ok && late.Err() == nil {
				v, err = late, nil
			}
		}
		if err = l.classify(ctx, err); err != nil {
			if turn != "" {
				err = lateAtDeadline(err)
			}
			return err
		}
		r, err := parseResult(v)
		switch {
		case err != nil || r.Allowed:
			return err
		case len(v.Elems) < 7:
			out = true // the script has removed the ticket
			return errorLate(r.RetryAfter)
		}
		turn, out = v.Elems[6].String(), v.Elems[0].Int == notQueued
		pause := min(r.RetryAfter, refresh)
		switch {
		case out: // earlier calls may give up, so this one polls, more and more often
			pause = max(minPause, min(untilDeadline(ctx)/2, refresh))
			behind = minPause
		case pause == 0:
			pause, behind = behind, min(2*behind, maxPause)
		default:
			behind = minPause
		}
		if err := kit.Sleep(ctx, pause); err != nil {
			return lateAtDeadline(err)
		}
	}
}

// pollLine runs the waiting script once.
func (l *Limiter) pollLine(ctx context.Context, p *plan, bucket string, args []any) (conn.Value, error) {
	l.logFirstUse()
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	return l.c.Script(ctx, byAlgorithm[p.algo].wait, keys(bucket), args...)
}

// leaveLine removes a ticket from the line, so that the waiters behind it do not wait for the end of its
// lease.
func (l *Limiter) leaveLine(ctx context.Context, bucket, ticket string, n int64, failed error) {
	if !l.breaker.isClosed() {
		return
	}
	err := kit.ReleaseBriefly(ctx, failed, conn.Temporary, func(ctx context.Context) error {
		_, err := l.c.Script(ctx, leaveScript, keys(bucket)[1:], fmt.Sprintf("%s:%d", ticket, n))
		return err
	})
	if err != nil {
		l.opt.Logger.Debug("limit: a ticket stays in line until its lease ends", "limiter", l.name, "error", err)
	}
}

// waitLocally applies the Down policy to a call that waits.
func (l *Limiter) waitLocally(ctx context.Context, p *plan, bucket string, n int64, cause error) error {
	switch l.down.mode {
	case downOpen:
		return nil
	case downLocal:
	default:
		return cause
	}
	wait, cancel, ok := l.local.reserve(p, l.down.share, bucket, n, untilDeadline(ctx))
	if !ok {
		return errorLate(wait)
	}
	if err := kit.Sleep(ctx, wait); err != nil {
		cancel()
		return err
	}
	return nil
}
