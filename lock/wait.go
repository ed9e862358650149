package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/wake"
)

// waiter is one call of Acquire.
type waiter struct {
	o     *object
	cl    claim
	owner string
	ctx   context.Context // ends a little after wait
	began mark
	wait  time.Duration // 0: as long as ctx

	place  *place // for wake-ups; nil: none yet
	last   error  // why the backend did not answer, the last time
	served bool   // the backend ended the wait itself
}

// run sends requests until one is granted, and returns the instant before that request; the lease
// is certain for a good while longer. It fails with ErrTaken when the wait is over.
func (w *waiter) run() (token int64, sent mark, err error) {
	st, stands := w.cl.(stander)
	for {
		if stands {
			token, sent, err = w.stands(st)
		} else {
			token, sent, err = w.asks()
		}
		if err != nil || sent.passed() < w.o.opts.TTL/4 {
			return token, sent, err
		}
		// The answer was long on its way, or the wait was: have the lease counted
		// from now.
		if sent, err = w.prove(token); err == nil {
			return token, sent, nil
		}
		if !errors.Is(err, ErrLost) {
			return 0, sent, err
		}
		w.last = err
	}
}

// prove renews what was granted, until there is an answer: a second request would
// hold it twice, where an acquirer counts.
func (w *waiter) prove(token int64) (sent mark, err error) {
	within := w.o.opts.TTL / 3
	for n := 0; ; n++ {
		sent = now()
		ctx, cancel := context.WithTimeout(w.ctx, within)
		err = w.cl.renew(ctx, w.owner, token)
		if kit.Overdue(w.ctx, ctx, err) {
			err = fmt.Errorf("%w: no answer within %v", conn.ErrUnavailable, within)
		}
		cancel()
		switch {
		case err == nil || errors.Is(err, ErrLost):
			return sent, err
		case w.ctx.Err() != nil || !conn.Temporary(err):
			return sent, w.why(err)
		}
		if err = w.pause(n, err); err != nil {
			return sent, err
		}
	}
}

// remaining returns what is left of the wait; over: nothing is.
func (w *waiter) remaining() (d time.Duration, over bool) {
	if w.wait == 0 {
		return 0, false
	}
	d = w.wait - w.began.passed()
	return d, d <= 0
}

// why adds what was in the way before err.
func (w *waiter) why(err error) error {
	if w.last == nil {
		return err
	}
	return fmt.Errorf("%w; before that: %w", err, w.last)
}

// timeUp is the error of a wait that is over: what is wanted is taken, if the last
// question had an answer.
func (w *waiter) timeUp() error {
	if w.last != nil {
		return fmt.Errorf("no answer within %v: %w", w.wait, w.last)
	}
	return fmt.Errorf("%w, for %v now", ErrTaken, w.wait)
}

// pause sleeps after a failed request.
func (w *waiter) pause(n int, err error) error {
	w.last = err
	w.o.opts.Logger.Warn("lock: no answer, trying again", "object", w.o.what, "name", w.o.name, "error", err)
	if kit.Sleep(w.ctx, kit.Backoff(firstPause, mostPause, n)) != nil {
		return w.why(w.ctx.Err())
	}
	return nil
}

// stands waits in the line that the backend keeps; after a lost connection at its
// end again, or the owner was granted what it wants meanwhile.
func (w *waiter) stands(st stander) (int64, mark, error) {
	if !w.o.c.Capabilities().Embedded { // what is free needs no connection of its own
		sent := now()
		a, err := w.cl.ask(w.ctx, w.owner, false)
		if err == nil && a.granted || err != nil && (w.ctx.Err() != nil || !conn.Temporary(err)) {
			return a.token, sent, err
		}
	}
	for n := 0; ; n++ {
		d, over := w.remaining()
		if over && n > 0 {
			return 0, mark{}, w.timeUp()
		}
		if w.wait > 0 {
			d = max(d, 1) // 0 would be without end
		}
		sent := now()
		a, err := st.stand(w.ctx, w.owner, d)
		switch {
		case err == nil && a.granted:
			return a.token, sent, nil
		case err == nil:
			w.last, w.served = nil, true
			if _, over := w.remaining(); !over {
				err = errors.New("the server ended the wait early")
				if err = w.pause(n, err); err != nil {
					return 0, sent, err
				}
				w.last = nil
			}
		case w.ctx.Err() != nil || !conn.Temporary(err):
			return 0, sent, w.why(err)
		default:
			w.served = false
			if err := w.pause(n, err); err != nil {
				return 0, sent, err
			}
		}
	}
}

// asks sends a request, and sends it again at each wake-up, when the lease of another owner ends,
// and at least every second.
func (w *waiter) asks() (int64, mark, error) {
	failed := 0
	_, plain := w.cl.(scriptLock) // which keeps no line: the waiter subscribes first, and then registers
	if plain && w.o.wakeups.Find() != nil && w.join() == nil {
		// Other callers wait here already: this one queues behind them. One at a time asks.
		d := mostPause / 2
		if w.wait > 0 {
			d = min(d, w.wait)
		}
		if err := w.sleep(d); err != nil {
			return 0, mark{}, err
		}
	}
	for n := 0; ; n++ {
		sent := now()
		a, err := w.cl.ask(w.ctx, w.owner, w.place != nil || !plain)
		pause := kit.Backoff(mostPause, mostPause, 0)
		switch {
		case err == nil && a.granted:
			return a.token, sent, nil
		case err == nil:
			w.last, failed = nil, 0
			if a.again > 0 {
				pause = min(pause, a.again)
			}
		case w.ctx.Err() != nil || !conn.Temporary(err) || !w.cl.repeatable() && !unheard(err):
			return 0, sent, w.why(err)
		default:
			w.o.opts.Logger.Warn("lock: no answer, trying again", "object", w.o.what, "name", w.o.name, "error", err)
			w.last = err
			pause = kit.Backoff(firstPause, mostPause, failed)
			failed++
		}
		if d, over := w.remaining(); over {
			return 0, sent, w.timeUp()
		} else if w.wait > 0 {
			pause = min(pause, d)
		}
		if w.place != nil && w.place.Settle() {
			continue // something was released meanwhile
		}
		if err == nil && w.place == nil {
			if err = w.join(); err == nil {
				continue // what was said before is not heard
			}
			// Without channels it goes by asking more often.
			pause = min(pause, kit.Backoff(firstPause, mostPause/4, n))
		}
		if err := w.sleep(pause); err != nil {
			return 0, sent, w.why(err)
		}
	}
}

// sleep ends when the waiter is woken.
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
	w.place, err = join(w.ctx, w.o.wakeups, w.owner)
	return err
}

// leave ends that; a waiter that leaves without the lock lets another one try.
func (w *waiter) leave(err error) {
	if w.place != nil {
		w.place.leave(err != nil)
		w.place = nil
	}
}

// place is the place of a call among those of this process that a channel wakes.
type place struct {
	*wake.Waiter
	d *wake.Dispatcher
}

// join returns a place when the channel is subscribed to, or the error of that. The caller calls leave.
func join(ctx context.Context, ch wake.Channel, owner string) (*place, error) {
	d := ch.Open()
	if err := d.Ready(ctx); err != nil {
		d.Close()
		return nil, err
	}
	return &place{d.Join(owner), d}, nil
}

// leave gives up the place. pass: another call of this process is to look in its stead.
func (p *place) leave(pass bool) {
	p.Leave(pass)
	p.d.Close()
}
