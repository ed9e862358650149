package lock

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/locking"
	"github.com/ebbdb/ebb/internal/wake"
)

// Leader is a candidate in the election of a leader: one of several candidates leads at a time.
// It is a lock that stores its holder's name.
type Leader struct {
	lock    *Lock
	id      string
	changes string // the channel on which candidates publish changes
}

// Reign is a leader and its fencing token. The zero value means that there is no leader.
type Reign struct {
	ID    string
	Token int64
}

// NewLeader returns a candidate of the election of that name. Other programs see id, for
// instance a host or an address. After a leader has died, there is no leader for up to
// Options.TTL. NewLeader sends nothing to the backend. Errors: ebb.ErrArgument.
func NewLeader(c *conn.Conn, name, id string, opts ...Options) (*Leader, error) {
	name, o, err := kit.Make(c, "lock: leader", name, opts)
	if err != nil {
		return nil, err
	}
	if id == "" {
		return nil, kit.Argument("lock: leader", name, "the id of the candidate is empty; it must have at least one character")
	}
	o.Owner = id
	l := &Lock{}
	if err := l.setup(c, "lock: leader", name, o); err != nil {
		return nil, err
	}
	return &Leader{lock: l, id: id, changes: kit.Key(name, "reign")}, nil
}

// Campaign waits until this candidate leads, or the context ends. The lease's Context ends when
// the candidate no longer leads; Release resigns. To lead again afterwards, the candidate must
// campaign again. ctx also bounds the leadership: see Lease.
func (e *Leader) Campaign(ctx context.Context) (*Lease, error) {
	lease, err := e.lock.Acquire(ctx, 0)
	if err != nil {
		return nil, err
	}
	lease.lease().AfterRelease(func(ctx context.Context) { e.announce(ctx, "") })
	e.announce(ctx, e.id)
	return lease, nil
}

// announce publishes the new leader to observers, which would otherwise notice it at their next poll.
func (e *Leader) announce(ctx context.Context, id string) {
	if _, err := e.lock.c.Publish(ctx, e.changes, id); err != nil {
		e.lock.opts.Logger.Warn("lock: observers were not notified", "name", e.lock.name, "error", err)
	}
}

// Lead campaigns, and calls fn while this candidate leads. fn gets a context that ends when the
// candidate no longer leads, and the token. If the leadership is lost, Lead campaigns again
// once fn has returned. If fn returns while the candidate leads, or panics, Lead resigns; it
// returns fn's error. When ctx ends, Lead ends, with the context's error in the chain of its
// own.
func (e *Leader) Lead(ctx context.Context, fn func(ctx context.Context, token int64) error) error {
	if err := kit.Callable(fn != nil, "fn"); err != nil {
		return e.lock.wrap("lead", err)
	}
	for {
		lease, err := e.Campaign(ctx)
		if err != nil {
			return err
		}
		err, lost, released := e.leadOnce(ctx, lease, fn)
		switch {
		case ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case !lost && err != nil:
			return err
		case !lost:
			if errors.Is(released, ErrLost) {
				released = nil // fn had returned
			}
			return released
		}
	}
}

// leadOnce calls fn for one leadership, and resigns, even if fn panics: otherwise the lease would be renewed for as long as ctx lives.
func (e *Leader) leadOnce(ctx context.Context, lease *Lease, fn func(ctx context.Context, token int64) error) (
	err error, lost bool, released error) {
	leadCtx, end := lease.Context(), context.AfterFunc(ctx, func() { _ = lease.lease().Stop(context.Cause(ctx)) })
	defer func() {
		end()
		lost = errors.Is(context.Cause(leadCtx), ErrLost)
		released = lease.Release(ctx)
	}()
	return fn(leadCtx, lease.Token()), false, nil
}

// Current returns the leader, or the zero Reign if there is none.
func (e *Leader) Current(ctx context.Context) (Reign, error) {
	var r Reign
	if e.lock.c.Capabilities().Native {
		v, err := e.lock.c.Do(ctx, "LOCK.INFO", e.lock.name)
		if err != nil {
			return r, e.lock.wrap("look at", err)
		}
		for key, x := range v.Pairs {
			if key.Str == "holders" && len(x.Elems) > 0 && len(x.Elems[0].Elems) > 1 {
				r.ID, r.Token = x.Elems[0].Elems[0].Str, x.Elems[0].Elems[1].Int
			}
		}
	} else {
		v, err := e.lock.c.Do(ctx, "MGET", e.lock.name, e.lock.keys.fence)
		if err != nil {
			return r, e.lock.wrap("look at", err)
		}
		if len(v.Elems) == 2 && !v.Elems[0].IsNull() {
			r.ID = v.Elems[0].Str
			r.Token, _ = v.Elems[1].AsInt()
		}
	}
	if i := strings.LastIndexByte(r.ID, ':'); i > 0 {
		r.ID = r.ID[:i] // without the random part of the owner
	}
	return r, nil
}

// Observe yields the leader, at first and after each change that it sees, until the context
// ends. Messages report elections and resignations, and Observe also polls every third of TTL,
// so it may miss a shorter leadership. If the backend does not reply, Observe tries again. It
// yields any other error, and ends.
func (e *Leader) Observe(ctx context.Context) iter.Seq2[Reign, error] {
	return func(yield func(Reign, error) bool) {
		changes := wake.Channel{Conn: e.lock.c, Name: e.changes, Wakes: wake.All}
		var p *locking.Place
		var changed <-chan struct{}
		defer func() {
			if p != nil {
				p.Leave(false)
			}
		}()
		var last Reign
		for known := false; ctx.Err() == nil; {
			if p == nil { // without a subscription, Observe polls
				if p, _ = locking.Join(ctx, changes, ""); p != nil {
					changed = p.C
				}
			}
			r, err := e.Current(ctx)
			switch {
			case kit.Ended(ctx, err):
				return
			case err != nil && !conn.Temporary(err):
				yield(Reign{}, err)
				return
			case err == nil && (!known || r != last):
				if !yield(r, nil) {
					return
				}
				last, known = r, true
			}
			t := time.NewTimer(e.lock.opts.TTL / 3)
			select {
			case <-t.C:
			case <-changed:
			case <-ctx.Done():
			}
			t.Stop()
		}
	}
}

// String describes the election.
func (e *Leader) String() string { return e.lock.String() + " as " + strconv.Quote(e.id) }
