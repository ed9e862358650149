package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/conn/driverutil"
	"github.com/ebbdb/ebb/internal/routing"
)

// Answer is the result of a command that was sent once. The driver may send a command
// again if it has certainly not run: it was never written, or its reply says so.
type Answer struct {
	V   conn.Value
	Err error // there was no reply: wraps ErrUnavailable, ErrClosed or the context's error
	Ran bool  // the command has run or may have run
	// Stray: the command waited for a connection that another call opened and gave up.
	// Another try may succeed, even if the server's address does not change.
	Stray bool
}

// Of returns the Answer for a reply.
func Of(v conn.Value) Answer { return Answer{V: v, Ran: !routing.Untouched(v)} }

// Together returns the Answer of a batch. Ran is true if one of its commands may have run.
func Together(answers []Answer) Answer {
	for _, a := range answers {
		if a.Ran {
			return a
		}
	}
	return answers[0]
}

// Policy decides which commands a driver sends again.
type Policy struct {
	// Name begins the errors.
	Name string
	// Follows: the server's address can change, by Sentinel or in a cluster. So the driver
	// tries again if a server does not answer or is a replica. false: a single server.
	Follows bool
	// Closed ends the pauses when the driver closes; nil: nothing does.
	Closed <-chan struct{}
	// Later repeats what takes back the effects of calls without an answer; nil: nothing does.
	Later *Later
}

// Persist calls try until its answer is final, or until routing.Retry allows no further
// try. The error says why there is no reply; doing names the command in it.
func (p *Policy) Persist(ctx context.Context, doing string, try func() Answer) (conn.Value, error) {
	return p.Insist(ctx, doing, try(), try)
}

// Insist continues as Persist does after the first try, whose answer is a.
func (p *Policy) Insist(ctx context.Context, doing string, a Answer, try func() Answer) (conn.Value, error) {
	if a.Ran && a.Err == nil {
		return a.V, nil
	}
	r := routing.Retry{Closed: p.Closed}
	defer r.Stop()
	r.Next(ctx) // a was the first try
	for p.Again(ctx, a) && r.Next(ctx) {
		a = try()
	}
	return p.Result(ctx, doing, a)
}

// Again reports whether another try is safe and may succeed.
func (p *Policy) Again(ctx context.Context, a Answer) bool {
	select {
	case <-p.Closed: // a nil channel never comes
		return false
	default:
	}
	switch {
	case a.Ran || ctx.Err() != nil:
		return false
	case a.Err == nil: // a single server that is a replica stays one
		return routing.Untouched(a.V) && (p.Follows || !strings.HasPrefix(a.V.Str, "READONLY"))
	}
	return a.Stray || p.Follows && errors.Is(a.Err, conn.ErrUnavailable)
}

// Result returns the reply or the error of a call, from its last answer. A reply that says
// that the command did not run becomes an error. If the context ended before another try,
// the error says that first.
func (p *Policy) Result(ctx context.Context, doing string, a Answer) (conn.Value, error) {
	err := a.Err
	if err == nil && routing.Untouched(a.V) {
		err = p.Refusal(doing, a.V)
	}
	if c := ctx.Err(); err != nil && c != nil && !a.Ran && !errors.Is(err, c) && !errors.Is(err, conn.ErrClosed) {
		err = fmt.Errorf("%s: %s: %w, after: %w", p.Name, doing, c, err)
	}
	return a.V, p.NoReply(ctx, a, err)
}

// NoReply returns err, the error of a call with this last answer. If the command may have run without a reply, it is that of
// driverutil.NoReply.
func (p *Policy) NoReply(ctx context.Context, a Answer, err error) error {
	if p.Later == nil || a.Err == nil || !a.Ran || !conn.Temporary(err) && (ctx.Err() == nil || !errors.Is(err, ctx.Err())) {
		return err
	}
	return driverutil.NoReply(err, p.Later.Run)
}

// Refusal returns the error of a command that the server refused for a temporary reason at
// every try.
func (p *Policy) Refusal(doing string, v conn.Value) error {
	return fmt.Errorf("%s: %s: %w: %w", p.Name, doing, conn.ErrUnavailable, v.Err())
}

// OneSlot returns the first of the keys, and an error if they are not all in one slot.
// what names the operation in the error.
func OneSlot(what string, keys func(yield func(string) bool)) (first string, err error) {
	if first, err = routing.OneSlot(what, keys); err != nil {
		return "", fmt.Errorf("%w: %w", conn.ErrArgument, err)
	}
	return first, nil
}

// LastDeadline returns the latest of some contexts' deadlines; ok is false if one of them
// has none.
func LastDeadline(ctxs func(yield func(context.Context) bool)) (last time.Time, ok bool) {
	for ctx := range ctxs {
		at, has := ctx.Deadline()
		if !has {
			return time.Time{}, false
		}
		if at.After(last) {
			last = at
		}
	}
	return last, true
}
