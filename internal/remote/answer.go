package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/routing"
)

// Answer is what came of a command that was sent once. A command that has certainly not
// run may be sent again: it was never written, or its reply says so.
type Answer struct {
	V   conn.Value
	Err error // there was no reply: wraps ErrUnavailable, ErrClosed or the context's error
	Ran bool  // the command may have run, or has
	// Stray: the command was to use a connection that another call opened and gave up, so
	// that another try may help although the server's address does not change.
	Stray bool
	// Ints is in place of V, where the caller wants integers and they came; nil: V has the reply.
	Ints *conn.Ints
}

// Of is the answer of a reply.
func Of(v conn.Value) Answer { return Answer{V: v, Ran: !routing.Untouched(v)} }

// Together is what came of a batch: it ran if any of it may have.
func Together(answers []Answer) Answer {
	for _, a := range answers {
		if a.Ran {
			return a
		}
	}
	return answers[0]
}

// Policy decides which commands a driver sends again. The zero value of Follows is that of
// a single server.
type Policy struct {
	// Name begins the errors.
	Name string
	// Follows: the address changes, by Sentinel or in a cluster. A server that does not
	// answer, or is a replica, is worth another try.
	Follows bool
	// Closed ends the pauses when the driver closes; nil: nothing does.
	Closed <-chan struct{}
}

// Persist sends a command until there is an answer that counts, or it was tried enough:
// see routing.Retry. The error says why there is no reply; doing names the command in it.
func (p *Policy) Persist(ctx context.Context, doing string, try func() Answer) (conn.Value, error) {
	return p.Insist(ctx, doing, try(), try)
}

// Insist is Persist after the first try.
func (p *Policy) Insist(ctx context.Context, doing string, a Answer, try func() Answer) (conn.Value, error) {
	if a.Ran && a.Err == nil {
		return a.V, nil
	}
	r := routing.Retry{Closed: p.Closed}
	defer r.Stop()
	r.Next(ctx) // that was a
	for p.Again(ctx, a) && r.Next(ctx) {
		a = try()
	}
	return p.Result(ctx, doing, a)
}

// Again reports whether another try does no harm, and may help.
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

// Result is what a call returns of its last answer. A reply which says that the command
// was not run is an error. If the context ended while the command was to be sent again,
// the error says that first.
func (p *Policy) Result(ctx context.Context, doing string, a Answer) (conn.Value, error) {
	err := a.Err
	if err == nil && routing.Untouched(a.V) {
		err = p.Refusal(doing, a.V)
	}
	if c := ctx.Err(); err != nil && c != nil && !a.Ran && !errors.Is(err, c) && !errors.Is(err, conn.ErrClosed) {
		err = fmt.Errorf("%s: %s: %w, after: %w", p.Name, doing, c, err)
	}
	return a.V, err
}

// Refusal is the error of a command that a server has not run for a reason that passes,
// and did not for as long as the driver tried.
func (p *Policy) Refusal(doing string, v conn.Value) error {
	return fmt.Errorf("%s: %s: %w: %w", p.Name, doing, conn.ErrUnavailable, v.Err())
}

// OneSlot returns the first of some keys, all of which must be in its slot; what has them.
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
