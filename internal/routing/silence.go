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
// A client without a read timeout is taken at its word, and waits.

// LookAfter is how often, while a command waits without end, the server is asked
// whether it is there. Two answers in a row that do not come, within the read timeout
// each, end the wait: a pause of a second or two is none of our business.
const LookAfter = 5 * time.Second

// ErrSilent ends the context of a call that waits for a server that says nothing.
var ErrSilent = errors.New("the server says nothing")

// Patience is how long one call waits for a server.
type Patience struct {
	// Own is how long the command says that it waits; 0: it waits without end.
	Own time.Duration
	// Reply is the client's read timeout; 0: it has none.
	Reply time.Duration
	// First is when Ask is called for the first time; 0: after LookAfter.
	First time.Duration
	// Ask asks, over another connection, whether the server is there: nil, an error of
	// one that has not answered before ctx ended, or one that wraps ErrSilent if the
	// client leads to another server by now, which ends the wait at once.
	Ask func(ctx context.Context) error
}

// Bound returns a context that ends, with ErrSilent in its cause, when the server is
// silent for longer than the patience lasts. end waits until nobody asks any more.
func (p Patience) Bound(ctx context.Context) (_ context.Context, end func()) {
	switch {
	case p.Reply <= 0:
		return ctx, func() {}
	case p.Own > 0:
		return context.WithTimeoutCause(ctx, p.Own+p.Reply, fmt.Errorf("%w: no reply %v after its own wait of %v", ErrSilent, p.Reply, p.Own))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		if err := p.look(ctx); err != nil {
			cancel(err)
		}
	})
	return ctx, func() { cancel(nil); looking.Wait() }
}

// look asks until there is no answer twice in a row, or another server's, which is the
// error, or the context ends.
func (p Patience) look(ctx context.Context) error {
	first := p.First
	if first <= 0 {
		first = LookAfter
	}
	pause := time.NewTimer(first)
	defer pause.Stop()
	for missed := 0; ; {
		select {
		case <-pause.C:
			pause.Reset(LookAfter)
		case <-ctx.Done():
			return nil
		}
		within, cancel := context.WithTimeout(ctx, p.Reply)
		err := p.Ask(within)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrSilent):
			return err
		case err == nil:
			missed = 0
		default:
			if missed++; missed == 2 {
				return fmt.Errorf("%w, also not to PING: %v", ErrSilent, err) //nolint:errorlint // a context's end is not the caller's
			}
		}
	}
}

// Silenced returns why Bound's context has ended, nil if that was not the server's
// silence but the caller's context, ctx, or if it has not. err is what the call that
// used bounded came to.
func Silenced(ctx, bounded context.Context, err error) error {
	if d, ok := ctx.Deadline(); err == nil || ctx.Err() != nil || ok && time.Until(d) <= 0 {
		return nil
	}
	if d, ok := bounded.Deadline(); ok && time.Until(d) <= late && errors.Is(err, context.DeadlineExceeded) {
		<-bounded.Done() // its deadline has passed, and its timer is late
	}
	if cause := context.Cause(bounded); errors.Is(cause, ErrSilent) {
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
