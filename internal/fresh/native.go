package fresh

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// onEbb is the layout of ebb's own commands.
type onEbb struct{ c *conn.Conn }

func (b onEbb) Look(ctx context.Context, key string, lease time.Duration, tries int) (Entry, error) {
	return b.get(ctx, request{key: key, lease: lease}, tries)
}

// awaitFor is the time that one command waits; the next begins behind the waiters that came meanwhile.
const awaitFor = 10 * time.Second

func (b onEbb) Await(ctx context.Context, key string, lease time.Duration, _ int) (Entry, error) {
	return b.get(ctx, request{key: key, lease: lease, wait: awaitFor}, 1)
}

// request is one GETFRESH.
type request struct {
	key   string
	lease time.Duration // the caller can load a new value, and needs that long at most; 0: it only reads
	token string        // renews the lease with this token
	owner string        // an owner that has the lease gets it again
	wait  time.Duration // for a value that another client loads
}

// reply is the reply to GETFRESH.
type reply struct {
	state string // "fresh", "stale", "refresh" (the caller is to load a new value) or "absent"
	value string
	found bool  // there is a value
	token int64 // with "refresh"
	// left is the time until a fresh value is stale, or a stale one gone; the caller's lease with "refresh"; and the rest
	// of another client's lease with "absent". conn.Forever: it has no end, or no other client has a lease.
	left time.Duration
}

// send sends a request.
func (b onEbb) send(ctx context.Context, q request) (r reply, err error) {
	args := append(make([]any, 0, 10), "GETFRESH", q.key)
	if q.lease > 0 {
		args = append(args, "LEASE", kit.Millis(q.lease))
	}
	if q.token != "" {
		args = append(args, "TOKEN", q.token)
	}
	if q.owner != "" {
		args = append(args, "OWNER", q.owner)
	}
	do := b.c.Do
	if q.wait != 0 {
		args, do = append(args, "WAIT", kit.Millis(q.wait)), b.c.Block
	}
	v, err := do(ctx, args...)
	if err == nil && len(v.Elems) != 4 {
		err = fmt.Errorf("%w: GETFRESH replied with %v; it should reply with four elements", conn.ErrValue, v)
	}
	if err != nil {
		return r, err
	}
	r = reply{state: v.Elems[0].Str, value: v.Elems[1].Str, found: !v.Elems[1].IsNull(), token: v.Elems[2].Int, left: conn.Forever}
	if ms := v.Elems[3].Int; ms >= 0 {
		r.left = time.Duration(ms) * time.Millisecond
	}
	return r, nil
}

// get requests the value under an owner's name that is new, so that it can repeat the request, and give back a lease that it got
// without a reply. It needs no name for an embedded engine, which gives no lease to a client that gets no reply.
func (b onEbb) get(ctx context.Context, q request, tries int) (Entry, error) {
	if q.lease > 0 && !b.c.Capabilities().Embedded {
		q.owner = kit.ID()
	}
	var r reply
	maybe := false
	err := repeat(ctx, tries, func() (err error) {
		r, err = b.send(ctx, q)
		maybe = maybe || unsure(ctx, err)
		return err
	})
	if err != nil {
		if q.owner != "" && maybe {
			_ = kit.ReleaseBriefly(ctx, err, conn.Temporary, func(ctx context.Context) error {
				_, err := b.c.Do(ctx, "UNLEASE", q.key, "OWNER", q.owner)
				return err
			})
		}
		return Entry{}, err
	}
	e := Entry{Body: r.value}
	switch r.state {
	case "fresh":
		e.State, e.Left = Fresh, r.left
	case "stale":
		e.State = Stale
	case "refresh":
		e.Token = strconv.FormatInt(r.token, 10)
		if r.found {
			e.State = Stale
		}
	default:
		e.Wait, e.Held = r.left, r.left != conn.Forever
	}
	return e, nil
}

func (b onEbb) Renew(ctx context.Context, key, token string, lease time.Duration) (bool, error) {
	r, err := b.send(ctx, request{key: key, lease: lease, token: token})
	return r.state == "refresh", err
}

func (b onEbb) Release(ctx context.Context, key, token string) error {
	_, err := b.c.Do(ctx, "UNLEASE", key, token)
	return err
}

func (b onEbb) Set(ctx context.Context, key, body, token string, span, ttl time.Duration) (bool, error) {
	o := conn.SetOptions{TTL: ttl, Fresh: span}
	if token != "" {
		o.Token, _ = strconv.ParseInt(token, 10, 64) // get made it of a number
	}
	err := b.c.Set(ctx, key, body, o)
	if errors.Is(err, conn.ErrNotSet) {
		return false, nil
	}
	return err == nil, err
}

func (b onEbb) Stale(ctx context.Context, keys []string) error {
	var batch conn.Batch
	for _, key := range keys {
		batch.Do("STALE", key)
	}
	return all(b.c.Pipeline(ctx, &batch))
}

func (b onEbb) Remove(ctx context.Context, keys []string) error {
	var batch conn.Batch
	for _, key := range keys {
		batch.Do("DEL", key)
	}
	return all(b.c.Pipeline(ctx, &batch))
}

func (b onEbb) Discard(ctx context.Context, key, body string) error {
	_, err := b.c.Do(ctx, "DELEX", key, "IFEQ", body)
	return err
}
