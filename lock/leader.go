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
)

// Leader elects one of several candidates for as long as it lives: it is a lock whose
// holder is known by name.
type Leader struct {
	lock *Lock
	id   string
	news string // the channel of changes
}

// Reign is the leader and its token. The zero value says that there is no leader.
type Reign struct {
	ID    string
	Token int64
}

// NewLeader returns a candidate for the office of that name. id is what other programs see of
// it: a host, an address. Options.TTL is how long there is no leader after a leader has died.
// It does not touch the network, and fails with ebb.ErrArgument.
func NewLeader(c *conn.Conn, name, id string, opts ...Options) (*Leader, error) {
	o, err := kit.Make(c, "lock: leader", name, opts)
	if err != nil {
		return nil, err
	}
	if id == "" {
		return nil, kit.Argument("lock: leader", name, "the id of the candidate is empty; it must have at least one character")
	}
	o.Owner = id
	l := &Lock{}
	if err := l.setup(c, "leader", name, o); err != nil {
		return nil, err
	}
	return &Leader{lock: l, id: id, news: kit.Key(name, "reign")}, nil
}

// Campaign waits until this candidate leads, or the context ends. The lease's Context
// ends with the office; Release resigns. An elected candidate has to campaign again
// after that. ctx is the life of the office as well: see Lease.
func (e *Leader) Campaign(ctx context.Context) (*Lease, error) {
	lease, err := e.lock.Acquire(ctx, 0)
	if err != nil {
		return nil, err
	}
	lease.after = func(ctx context.Context) { e.tell(ctx, "") }
	e.tell(ctx, e.id)
	return lease, nil
}

// tell informs observers, who would else learn it a little later.
func (e *Leader) tell(ctx context.Context, who string) {
	if _, err := e.lock.c.Publish(ctx, e.news, who); err != nil {
		e.lock.opts.Logger.Warn("lock: observers were not told", "name", e.lock.name, "error", err)
	}
}

// Lead campaigns, and calls fn while this candidate leads, with a context that ends
// with the office, and its token. If the office is lost, it campaigns again once fn has
// returned. When fn returns otherwise, or panics, it resigns; it returns fn's error. It
// ends with ctx, whose error is in the chain of its own then.
func (e *Leader) Lead(ctx context.Context, fn func(ctx context.Context, token int64) error) error {
	if err := kit.Callable(fn != nil, "fn"); err != nil {
		return e.lock.wrap("lead", err)
	}
	for {
		lease, err := e.Campaign(ctx)
		if err != nil {
			return err
		}
		err, lost, released := e.reign(ctx, lease, fn)
		switch {
		case ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case !lost && err != nil:
			return err
		case !lost:
			if errors.Is(released, ErrLost) {
				released = nil // fn had come to its end
			}
			return released
		}
	}
}

// reign calls fn for one time in office, and resigns, also if fn panics: else the lease
// would be renewed for as long as ctx lives.
func (e *Leader) reign(ctx context.Context, lease *Lease, fn func(ctx context.Context, token int64) error) (err error, lost bool, released error) {
	within, end := lease.Context(), context.AfterFunc(ctx, func() { _ = lease.stop(context.Cause(ctx)) })
	defer func() {
		end()
		lost = errors.Is(context.Cause(within), ErrLost)
		released = lease.Release(ctx)
	}()
	return fn(within, lease.Token()), false, nil
}

// Current returns the present leader, or the zero Reign if there is none.
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
		r.ID = r.ID[:i] // without what makes an owner unique
	}
	return r, nil
}

// Observe yields the leader, at first and after each change that it sees, until the
// context ends. It hears of elections and resignations, and looks every third of TTL
// besides; a reign that is shorter may be missed. A backend that does not answer is
// asked again; any other error is yielded, and is the end.
func (e *Leader) Observe(ctx context.Context) iter.Seq2[Reign, error] {
	return func(yield func(Reign, error) bool) {
		ch, id := channel{c: e.lock.c, name: e.news, does: wakesAll}, kit.ID()
		var h *hub
		var news <-chan struct{}
		defer func() {
			if h != nil {
				h.leave(id, false)
			}
		}()
		var last Reign
		for known := false; ctx.Err() == nil; {
			if h == nil {
				h, news, _ = ch.join(ctx, id) // without it, looking has to do
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
			case <-news:
			case <-ctx.Done():
			}
			t.Stop()
		}
	}
}

// String says how the election runs.
func (e *Leader) String() string { return e.lock.String() + " as " + strconv.Quote(e.id) }
