package locking

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/wake"
)

// waiter is one call of Acquire that waits.
type waiter struct {
	o        *Object
	acquirer Acquirer
	owner    string
	ctx      context.Context // ends a little later than wait
	began    Instant
	wait     time.Duration // 0: as long as ctx

	place         *Place // for wake-ups; nil: none yet
	lastErr       error  // of the last request, if the backend did not reply
	endedByServer bool   // the backend ended the wait itself
}

// run sends requests until one is granted, and returns the instant before the last of them, of which less than a quarter of the lease
// has passed. It fails with ErrTaken when the wait is over.
func (w *waiter) run() (token int64, sent Instant, err error) {
	queued, inLine := w.acquirer.(Queued)
	for {
		if inLine {
			token, sent, err = w.waitInLine(queued)
		} else {
			token, sent, err = w.waitByPolling()
		}
		if err != nil || sent.Elapsed() < w.o.TTL/4 {
			return token, sent, err
		}
		// The reply or the wait took long: the lease must count from now.
		if sent, err = w.confirmLease(token); err == nil {
			return token, sent, nil
		}
		if !errors.Is(err, ErrLost) {
			w.releaseCounted(token)
			return 0, sent, err
		}
		w.lastErr = err
	}
}

// releaseCounted releases what the waiter was granted and cannot confirm, if the backend counts. Otherwise abandon does it.
func (w *waiter) releaseCounted(token int64) {
	if _, counts := w.acquirer.(Counting); counts {
		w.o.TakeBack(w.ctx, func(ctx context.Context) error { _, err := w.acquirer.Release(ctx, w.owner, token); return err })
	}
}

// confirmLease renews a granted lease until the backend replies. A second acquisition would count twice in Redisson's locks.
func (w *waiter) confirmLease(token int64) (sent Instant, err error) {
	within := w.o.TTL / 3
	for n := 0; ; n++ {
		sent = Now()
		ctx, cancel := context.WithTimeout(w.ctx, within)
		err = w.acquirer.Renew(ctx, w.owner, token)
		if kit.Overdue(w.ctx, ctx, err) {
			err = kit.NoReply(within)
		}
		cancel()
		switch {
		case err == nil || errors.Is(err, ErrLost):
			return sent, err
		case w.ctx.Err() != nil || !conn.Temporary(err):
			return sent, w.withLastError(err)
		}
		if err = w.pause(n, err); err != nil {
			return sent, err
		}
	}
}

// remaining returns the rest of the wait; over: the wait has ended.
func (w *waiter) remaining() (d time.Duration, over bool) {
	if w.wait == 0 {
		return 0, false
	}
	d = w.wait - w.began.Elapsed()
	return d, d <= 0
}

// withLastError adds the last error of the backend to err.
func (w *waiter) withLastError(err error) error {
	if w.lastErr == nil {
		return err
	}
	return fmt.Errorf("%w; before that: %w", err, w.lastErr)
}

// timeoutError returns the error of a wait that is over: ErrTaken if the last request had a reply.
func (w *waiter) timeoutError() error {
	if w.lastErr != nil {
		return fmt.Errorf("no reply within %v: %w", w.wait, w.lastErr)
	}
	return fmt.Errorf("%w, for %v now", ErrTaken, w.wait)
}

// pause sleeps after a failed request.
func (w *waiter) pause(n int, err error) error {
	w.lastErr = err
	w.o.Logger.Warn("lock: no answer, trying again", "object", w.o.What, "name", w.o.Name, "error", err)
	if kit.Sleep(w.ctx, kit.Backoff(MinPause, MaxPause, n)) != nil {
		return w.withLastError(w.ctx.Err())
	}
	return nil
}

// waitInLine waits in the line that the backend keeps. After a lost connection the caller starts again at the end of the line, unless
// the backend has granted its request meanwhile.
func (w *waiter) waitInLine(queued Queued) (int64, Instant, error) {
	if !w.o.Conn.Capabilities().Embedded { // a request that is granted at once needs no connection of its own
		sent := Now()
		r, err := w.acquirer.Try(w.ctx, w.owner, false)
		if err == nil && r.Granted || err != nil && (w.ctx.Err() != nil || !conn.Temporary(err)) {
			return r.Token, sent, err
		}
	}
	for n := 0; ; n++ {
		d, over := w.remaining()
		if over && n > 0 {
			return 0, Instant{}, w.timeoutError()
		}
		if w.wait > 0 {
			d = max(d, 1) // 0 is a wait without an end
		}
		sent := Now()
		r, err := queued.Wait(w.ctx, w.owner, d)
		switch {
		case err == nil && r.Granted:
			return r.Token, sent, nil
		case err == nil:
			w.lastErr, w.endedByServer = nil, true
			if _, over := w.remaining(); !over {
				err = errors.New("the server ended the wait early")
				if err = w.pause(n, err); err != nil {
					return 0, sent, err
				}
				w.lastErr = nil
			}
		case w.ctx.Err() != nil || !conn.Temporary(err):
			return 0, sent, w.withLastError(err)
		default:
			w.endedByServer = false
			if err := w.pause(n, err); err != nil {
				return 0, sent, err
			}
		}
	}
}

// waitByPolling sends a request, and sends it again after each wake-up, when the lease of another owner ends, and at least every
// second.
func (w *waiter) waitByPolling() (int64, Instant, error) {
	failed := 0
	_, plain := w.acquirer.(NoLine)
	if plain && w.o.Wakeups.Find() != nil && w.join() == nil {
		// Other calls of this process wait already: this one queues behind them, because one at a time sends requests.
		d := MaxPause / 2
		if w.wait > 0 {
			d = min(d, w.wait)
		}
		if err := w.sleep(d); err != nil {
			return 0, Instant{}, err
		}
	}
	for n := 0; ; n++ {
		sent := Now()
		r, err := w.acquirer.Try(w.ctx, w.owner, w.place != nil || !plain)
		pause := kit.Backoff(MaxPause, MaxPause, 0)
		switch {
		case err == nil && r.Granted:
			return r.Token, sent, nil
		case err == nil:
			w.lastErr, failed = nil, 0
			if r.RetryAfter > 0 {
				pause = min(pause, r.RetryAfter)
			}
		case w.ctx.Err() != nil || !conn.Temporary(err) || !w.acquirer.Repeatable() && !CertainlyNotRun(err):
			return 0, sent, w.withLastError(err)
		default:
			w.o.Logger.Warn("lock: no answer, trying again", "object", w.o.What, "name", w.o.Name, "error", err)
			w.lastErr = err
			pause = kit.Backoff(MinPause, MaxPause, failed)
			failed++
		}
		if d, over := w.remaining(); over {
			return 0, sent, w.timeoutError()
		} else if w.wait > 0 {
			pause = min(pause, d)
		}
		if w.place != nil && w.place.Settle() {
			continue // another owner released the lock meanwhile
		}
		if err == nil && w.place == nil {
			if err = w.join(); err == nil {
				continue // a message may have come before
			}
			// Without a subscription the caller polls more often.
			pause = min(pause, kit.Backoff(MinPause, MaxPause/4, n))
		}
		if err := w.sleep(pause); err != nil {
			return 0, sent, w.withLastError(err)
		}
	}
}

// sleep waits for d, or for a wake-up.
func (w *waiter) sleep(d time.Duration) error {
	var woken <-chan struct{}
	if w.place != nil {
		woken = w.place.C
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-woken:
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
	return nil
}

// join subscribes to wake-ups.
func (w *waiter) join() (err error) {
	w.place, err = Join(w.ctx, w.o.Wakeups, w.owner)
	return err
}

// leave ends the subscription. A waiter that leaves without the lock wakes another one.
func (w *waiter) leave(err error) {
	if w.place != nil {
		w.place.Leave(err != nil)
		w.place = nil
	}
}

// Place is the place of a call among the waiters of a channel in this process.
type Place struct {
	*wake.Waiter
	d *wake.Dispatcher
}

// Join subscribes to the channel, or returns the error of that. The caller calls Leave.
func Join(ctx context.Context, ch wake.Channel, owner string) (*Place, error) {
	d := ch.Open()
	if err := d.Ready(ctx); err != nil {
		d.Close()
		return nil, err
	}
	return &Place{d.Join(owner), d}, nil
}

// Leave gives up the place. pass: another call of this process is to poll in its stead.
func (p *Place) Leave(pass bool) {
	p.Waiter.Leave(pass)
	p.d.Close()
}
