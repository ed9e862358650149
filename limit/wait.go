package limit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// Waiting in a line. On ebb the line is the server's: RL.WAIT. On other servers it is
// kept by the script: a waiter asks again when its turn may have come, and at least
// every refresh, so that the line knows that it lives. The script skips a waiter that sent no
// request during its lease. The server gives the turns, at instants of its own clock.

// refresh is the longest time between two requests of a waiter: long enough for thousands of
// them, and short enough that the line does not wait long for one that has died.
const refresh = 500 * time.Millisecond

// replyTime is the time that RL.WAIT's reply has after the deadline, which the server observes itself. A client that did not wait
// for it would close the connection.
const replyTime = 50 * time.Millisecond

// notInLine is the answer of the script to a ticket whose turn comes after its deadline.
const notInLine = 3

// least and most are the pauses of a waiter that is not the first in line although there is
// enough: the waiters before it are a little late, or gone. The pause doubles from one to the other.
const (
	least = time.Millisecond
	most  = 32 * time.Millisecond
)

// Wait takes one request of a key, and waits until the limit allows it. The limiter serves the
// waiting calls of all processes in FIFO order. Wait returns nil when it has taken the request.
// When the context ends, the call leaves the queue and returns the context's error. If the
// deadline of the context is before the turn, Wait returns ErrLate with
// context.DeadlineExceeded: at once if the call is the first in the queue, else at the
// deadline. An answer that is under way at the deadline still counts, also if it comes up to half a
// second later.
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
	case !l.away.ask():
		err = l.away.cause()
	case l.native():
		err = l.waitNative(ctx, p, bucket, n)
	default:
		err = l.waitInLine(ctx, p, bucket, n)
	}
	if isAway(err) {
		err = l.waitAside(ctx, p, bucket, n, err)
	}
	if err != nil {
		return l.failed("wait for", key, err)
	}
	return nil
}

// late is the error of a turn that is known to come after the context's deadline.
func late(turn time.Duration) error {
	return fmt.Errorf("%w: in %v, after the context's deadline: %w", ErrLate, turn, context.DeadlineExceeded)
}

// stood returns the error of a waiter whose wait ended without its turn, because of err: at the
// context's deadline the turn had not come.
func stood(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrLate, err)
	}
	return err
}

// patience is how long a context lasts, -1 for ever.
func patience(ctx context.Context) time.Duration {
	d, ok := ctx.Deadline()
	if !ok {
		return -1
	}
	return max(0, time.Until(d))
}

// waitNative first sends a take, which Options.Timeout bounds and which is mostly enough.
func (l *Limiter) waitNative(ctx context.Context, p *plan, bucket string, n int64) error {
	r, err := l.ask(ctx, p, bucket, n, modeTake)
	if err = l.judge(ctx, err); err != nil || r.Allowed {
		return err
	}
	for {
		ms := int64(0)
		if d := patience(ctx); d >= 0 {
			ms = max(1, kit.Millis(d))
		}
		args := append(append([]any{"RL.WAIT", bucket}, p.native[:2]...), ms)
		args = append(append(args, p.native[2:]...), "COST", n)
		whole, cancel := kit.Outlast(ctx, replyTime)
		v, err := l.c.Block(whole, args...)
		cancel()
		var refused conn.ReplyError
		if errors.As(err, &refused) && refused.Code() == "UNBLOCKED" {
			continue // the server's role has changed, or another client woke it
		}
		if err = l.judge(ctx, err); err != nil {
			return stood(err)
		}
		r, err := result(v)
		if err == nil && !r.Allowed {
			err = late(r.RetryAfter)
		}
		return err
	}
}

// waitInLine stands in a script's line.
func (l *Limiter) waitInLine(ctx context.Context, p *plan, bucket string, n int64) (err error) {
	ticket, turn, out := kit.ID(), "", false
	defer func() {
		// Also when the first question had no answer: it may have been heard.
		if err != nil && !out {
			l.leave(ctx, bucket, ticket, n, err)
		}
	}()
	lease, behind := 2*refresh+l.opt.Timeout, least
	for {
		within := int64(-1)
		if d := patience(ctx); d >= 0 {
			within = d.Microseconds()
		}
		out = false
		v, err := l.askInLine(ctx, p, bucket, append(p.script[:4:4], n, ticket, turn, lease.Microseconds(), within))
		if err != nil && ctx.Err() != nil { // the turn is often near the deadline
			if late, ok := kit.Late(ctx, err); ok && late.Err() == nil {
				v, err = late, nil
			}
		}
		if err = l.judge(ctx, err); err != nil {
			if turn != "" {
				err = stood(err)
			}
			return err
		}
		r, err := result(v)
		switch {
		case err != nil || r.Allowed:
			return err
		case len(v.Elems) < 7:
			out = true // the script has taken the ticket out
			return late(r.RetryAfter)
		}
		turn, out = v.Elems[6].String(), v.Elems[0].Int == notInLine
		pause := min(r.RetryAfter, refresh)
		switch {
		case out: // the calls before this one may give up: it asks again, more and more often
			pause = max(least, min(patience(ctx)/2, refresh))
			behind = least
		case pause == 0:
			pause, behind = behind, min(2*behind, most)
		default:
			behind = least
		}
		if err := kit.Sleep(ctx, pause); err != nil {
			return stood(err)
		}
	}
}

func (l *Limiter) askInLine(ctx context.Context, p *plan, bucket string, args []any) (conn.Value, error) {
	l.said.Do(func() { l.opt.Logger.Debug("limit: first use", "limiter", l.String()) })
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	return l.c.Script(ctx, byAlgorithm[p.algo].wait, keys(bucket), args...)
}

// leave takes a ticket out of the line, so that those behind it need not find out.
func (l *Limiter) leave(ctx context.Context, bucket, ticket string, n int64, failed error) {
	if l.away.open.Load() {
		return
	}
	err := kit.Courtesy(ctx, failed, conn.Temporary, func(ctx context.Context) error {
		_, err := l.c.Script(ctx, leaveScript, keys(bucket)[1:], fmt.Sprintf("%s:%d", ticket, n))
		return err
	})
	if err != nil {
		l.opt.Logger.Debug("limit: a ticket stays in line until its lease ends", "limiter", l.name, "error", err)
	}
}

// waitAside waits without the backend.
func (l *Limiter) waitAside(ctx context.Context, p *plan, bucket string, n int64, cause error) error {
	switch l.down.mode {
	case downOpen:
		return nil
	case downLocal:
	default:
		return cause
	}
	wait, cancel, ok := l.local.reserve(p, l.down.share, bucket, n, patience(ctx))
	if !ok {
		return late(wait)
	}
	if err := kit.Sleep(ctx, wait); err != nil {
		cancel()
		return err
	}
	return nil
}
