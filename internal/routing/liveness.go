package routing

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// A server that hangs keeps its connections open and sends nothing. Its operating system
// still acknowledges packets, so TCP does not detect it. A server on which a command waits
// is silent too. The liveness check distinguishes the two:
//
//	the command has a timeout       the reply must come then, or within the read timeout after it
//	the command has no timeout      another connection sends PING meanwhile
//
// For a client without a read timeout there is no check.

// CheckInterval is the time between two PINGs while a command waits without a timeout. If
// two PINGs in a row get no reply within the read timeout each, the wait ends: a shorter
// pause is not an outage.
const CheckInterval = 5 * time.Second

// ErrUnresponsive ends the context of a call whose server does not reply.
var ErrUnresponsive = errors.New("the server says nothing")

// Liveness holds the limits of the liveness check of one call.
type Liveness struct {
	// Own is the command's own timeout; 0: it waits without end.
	Own time.Duration
	// ReadTimeout is the client's read timeout; 0: it has none.
	ReadTimeout time.Duration
	// First is the time before the first Ping; 0: CheckInterval.
	First time.Duration
	// Ping sends PING over another connection. It returns nil after a reply, an error if
	// there was none before ctx ended, or an error that wraps ErrUnresponsive if the client
	// now leads to another server. The last one ends the wait at once.
	Ping func(ctx context.Context) error
}

// Bound returns a context that ends, with ErrUnresponsive in its cause, when the server is
// silent for longer than the limits allow. end waits until the liveness check has ended.
func (p Liveness) Bound(ctx context.Context) (_ context.Context, end func()) {
	switch {
	case p.ReadTimeout <= 0:
		return ctx, func() {}
	case p.Own > 0:
		return context.WithTimeoutCause(ctx, p.Own+p.ReadTimeout,
			fmt.Errorf("%w: no reply %v after its own wait of %v", ErrUnresponsive, p.ReadTimeout, p.Own))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		if err := p.check(ctx); err != nil {
			cancel(err)
		}
	})
	return ctx, func() { cancel(nil); looking.Wait() }
}

// check calls Ping until it fails twice in a row or reports another server, and then
// returns that error. It returns nil when the context ends.
func (p Liveness) check(ctx context.Context) error {
	first := p.First
	if first <= 0 {
		first = CheckInterval
	}
	pause := time.NewTimer(first)
	defer pause.Stop()
	for missed := 0; ; {
		select {
		case <-pause.C:
			pause.Reset(CheckInterval)
		case <-ctx.Done():
			return nil
		}
		within, cancel := context.WithTimeout(ctx, p.ReadTimeout)
		err := p.Ping(within)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrUnresponsive):
			return err
		case err == nil:
			missed = 0
		default:
			if missed++; missed == 2 {
				return fmt.Errorf("%w, also not to PING: %v", ErrUnresponsive, err) //nolint:errorlint // a context's end is not the caller's
			}
		}
	}
}

// LivenessError returns the error of the liveness check that has ended Bound's context. It
// returns nil if the caller's context, ctx, has ended, or neither. err is the error of the
// call that used bounded.
func LivenessError(ctx, bounded context.Context, err error) error {
	if d, ok := ctx.Deadline(); err == nil || ctx.Err() != nil || ok && time.Until(d) <= 0 {
		return nil
	}
	if d, ok := bounded.Deadline(); ok && time.Until(d) <= late && errors.Is(err, context.DeadlineExceeded) {
		<-bounded.Done() // its deadline has passed, and its timer is late
	}
	if cause := context.Cause(bounded); errors.Is(cause, ErrUnresponsive) {
		return cause
	}
	return nil
}

// late is the time by which a client library's clock may be ahead: go-redis reads the time
// every 50 ms.
const late = 100 * time.Millisecond

// OwnWait returns the timeout in a request of n words; 0: it waits without end, or has no
// timeout.
func OwnWait(n int, word func(i int) string) time.Duration {
	if c := Of(n, word); c != nil {
		return c.OwnWait(n, word)
	}
	return 0
}

// OwnWait returns the timeout in a request of n words; 0: it waits without end, does not
// wait, or has no timeout.
func (c *Command) OwnWait(n int, word func(i int) string) time.Duration {
	at := c.Wait.At
	switch {
	case c.Wait.Unit == 0:
		return 0
	case c.Wait.Keyword != "":
		at = after(n, word, c.Wait.Keyword)
	case at < 0:
		at += n
	}
	if at < 1 || at >= n {
		return 0
	}
	x, err := strconv.ParseFloat(word(at), 64)
	if err != nil || x < 0 || x > float64(1<<53) {
		return 0
	}
	return time.Duration(min(x*float64(c.Wait.Unit), float64(1<<60)))
}

// after returns the position of an option's value; -1 if the option is not given. A key or
// a name before the options may look like the option, so after returns the last one that
// fits. It does not look at the keys after STREAMS.
func after(n int, word func(i int) string, option string) (at int) {
	at = -1
	for i := 1; i < n-1; i++ {
		switch w := word(i); {
		case equalFold(w, option):
			at = i + 1
		case equalFold(w, "STREAMS") && at > 0:
			return at
		}
	}
	return at
}
