package routing

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// A server that hangs keeps its connections open and says nothing; the system that it
// runs on answers for it, so TCP notices nothing. A command that waits is silent too.
// What tells them apart:
//
//	it says how long it waits       then comes the reply, or within the read timeout
//	it waits until something comes  another connection asks meanwhile, now and then
//
// A client without a read timeout waits.

// CheckInterval is how often, while a command waits without end, the server is asked
// whether it is there. Two answers in a row that do not come, within the read timeout
// each, end the wait: a shorter pause is not an outage.
const CheckInterval = 5 * time.Second

// ErrUnresponsive ends the context of a call that waits for a server that says nothing.
var ErrUnresponsive = errors.New("the server says nothing")

// Liveness is how long one call waits for a server.
type Liveness struct {
	// Own is how long the command says that it waits; 0: it waits without end.
	Own time.Duration
	// ReadTimeout is the client's read timeout; 0: it has none.
	ReadTimeout time.Duration
	// First is when Ping is called for the first time; 0: after CheckInterval.
	First time.Duration
	// Ping asks, over another connection, whether the server is there: nil, an error of
	// one that has not answered before ctx ended, or one that wraps ErrUnresponsive if the
	// client leads to another server by now, which ends the wait at once.
	Ping func(ctx context.Context) error
}

// Bound returns a context that ends, with ErrUnresponsive in its cause, when the server is
// silent for longer than the limits allow. end waits until the liveness check has ended.
func (p Liveness) Bound(ctx context.Context) (_ context.Context, end func()) {
	switch {
	case p.ReadTimeout <= 0:
		return ctx, func() {}
	case p.Own > 0:
		return context.WithTimeoutCause(ctx, p.Own+p.ReadTimeout, fmt.Errorf("%w: no reply %v after its own wait of %v", ErrUnresponsive, p.ReadTimeout, p.Own))
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

// check asks until there is no answer twice in a row, or another server's, which is the
// error, or the context ends.
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

// LivenessError returns why Bound's context has ended, nil if that was not the server's
// silence but the caller's context, ctx, or if it has not. err is what the call that
// used bounded came to.
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

// late is by how much a client library's clock may be ahead: go-redis looks at the time
// every 50 ms.
const late = 100 * time.Millisecond

// OwnWait is how long a command of n words says that it waits; 0: it waits without end,
// or does not say.
func OwnWait(n int, word func(i int) string) time.Duration {
	if c := Of(n, word); c != nil {
		return c.OwnWait(n, word)
	}
	return 0
}

// OwnWait is how long a request of n words says that it waits; 0: it waits without end,
// or not at all, or does not say.
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

// after is where the value of an option stands; -1 if it is not given. What precedes
// options may look like one: a key, a name. The last that fits is meant, but for keys at
// the end, behind STREAMS.
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
