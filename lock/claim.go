package lock

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// claim is an acquirer: how an owner requests something under a lease from a backend. An owner is
// unique for each call of Acquire, so a request may be repeated: the same owner gets what it has.
type claim interface {
	// ask sends one request, which gets its reply at once. A backend with a line remembers
	// the waiter.
	ask(ctx context.Context, owner string, waits bool) (answer, error)
	// renew gives the lease its full length again, or fails with ErrLost.
	renew(ctx context.Context, owner string, token int64) error
	// release releases the lease, and reports whether it was the owner's.
	release(ctx context.Context, owner string, token int64) (bool, error)
	// forget removes the owner from the line, and releases what it got meanwhile.
	forget(ctx context.Context, owner string) error
	// repeatable reports whether a request may be sent twice.
	repeatable() bool
}

// stander is a queued acquirer: the backend itself keeps the line.
type stander interface {
	// stand sends a request that waits in the line for at most wait; 0: until the context ends.
	stand(ctx context.Context, owner string, wait time.Duration) (answer, error)
}

// answer is the result of a request.
type answer struct {
	granted bool
	token   int64
	again   time.Duration // not granted: when it may be granted without a message; 0: unknown
}

// nativeLock is LOCK.* of ebb.
type nativeLock struct {
	o      *object
	shared bool
}

func (n nativeLock) acquire(ctx context.Context, owner, lease string) (answer, error) {
	if n.shared {
		return granted(one(n.o.c.Ints(ctx, "LOCK.ACQUIRE", n.o.name, owner, lease, "SHARED")))
	}
	return granted(one(n.o.c.Ints(ctx, "LOCK.ACQUIRE", n.o.name, owner, lease)))
}

func (n nativeLock) ask(ctx context.Context, owner string, _ bool) (answer, error) {
	return n.acquire(ctx, owner, n.o.ttl)
}

func (n nativeLock) stand(ctx context.Context, owner string, wait time.Duration) (answer, error) {
	args := []any{"LOCK.ACQUIRE", n.o.name, owner, n.o.ttl, "WAIT", kit.Millis(wait)}
	if n.shared {
		args = append(args, "SHARED")
	}
	return granted(number(n.o.c.Block(ctx, args...)))
}

func (n nativeLock) renew(ctx context.Context, owner string, token int64) error {
	return renewed(one(n.o.c.Ints(ctx, "LOCK.RENEW", n.o.name, owner, strconv.FormatInt(token, 10), n.o.ttl)))
}

func (n nativeLock) release(ctx context.Context, owner string, token int64) (bool, error) {
	return truth(one(n.o.c.Ints(ctx, "LOCK.RELEASE", n.o.name, owner, strconv.FormatInt(token, 10))))
}

// forget requests the shortest lease. It replaces the lease that the owner has, if any, and ends
// at once. Some time later it only looks: nothing is left, in most cases, and the lock may be free or another owner's.
func (n nativeLock) forget(ctx context.Context, owner string) error {
	if kit.Repeated(ctx) {
		return n.discard(ctx, owner)
	}
	a, err := n.acquire(ctx, owner, "1")
	if err == nil && a.granted {
		_, err = n.release(ctx, owner, a.token)
	}
	return err
}

// discard releases what the owner has, by the token that the backend knows.
func (n nativeLock) discard(ctx context.Context, owner string) error {
	v, err := n.o.c.Do(ctx, "LOCK.INFO", n.o.name)
	if err != nil {
		return err
	}
	holders, _ := v.Get("holders")
	for _, h := range holders.Elems {
		if len(h.Elems) == 3 && h.Elems[0].String() == owner {
			_, err = n.release(ctx, owner, h.Elems[1].Int)
		}
	}
	return err
}

func (nativeLock) repeatable() bool { return true }

// nativeSem is SEM.* of ebb.
type nativeSem struct {
	c        *conn.Conn
	name     string
	ttl      int64 // ms
	limit, n int64
}

func (n nativeSem) ask(ctx context.Context, owner string, _ bool) (answer, error) {
	return granted(number(n.c.Do(ctx, "SEM.ACQUIRE", n.name, owner, n.limit, n.ttl, "COUNT", n.n)))
}

func (n nativeSem) stand(ctx context.Context, owner string, wait time.Duration) (answer, error) {
	return granted(number(n.c.Block(ctx, "SEM.ACQUIRE", n.name, owner, n.limit, n.ttl, "COUNT", n.n, "WAIT", kit.Millis(wait))))
}

func (n nativeSem) renew(ctx context.Context, owner string, _ int64) error {
	return renewed(number(n.c.Do(ctx, "SEM.RENEW", n.name, owner, n.ttl)))
}

func (n nativeSem) release(ctx context.Context, owner string, _ int64) (bool, error) {
	return truth(number(n.c.Do(ctx, "SEM.RELEASE", n.name, owner)))
}

func (n nativeSem) forget(ctx context.Context, owner string) error {
	_, err := n.release(ctx, owner, 0)
	return err
}

func (nativeSem) repeatable() bool { return true }

// one is a reply that is an integer, or null, which is not ok.
func one(got conn.Ints, err error) (n int64, ok bool, _ error) { return got.At[0], got.N > 0, err }

// number is one of a Value.
func number(v conn.Value, err error) (n int64, ok bool, _ error) { return one(conn.IntsOf(v, err)) }

// granted returns the answer for the reply of a script: a token, or nil.
func granted(token int64, ok bool, err error) (answer, error) {
	return answer{granted: ok && err == nil, token: token}, err
}

// scripted reads what the scripts of this package return: token and milliseconds.
func scripted(v conn.Value, err error) (a answer, _ error) {
	if err != nil {
		return a, err
	}
	if len(v.Elems) != 2 {
		return a, fmt.Errorf("%w: a script returned %s", conn.ErrValue, v)
	}
	if a.token, err = v.Elems[0].AsInt(); err != nil {
		return a, err
	}
	ms, err := v.Elems[1].AsInt()
	a.granted, a.again = a.token != 0, time.Duration(ms)*time.Millisecond
	return a, err
}

func renewed(n int64, _ bool, err error) error {
	switch {
	case isLost(err):
		return fmt.Errorf("%w: %w", ErrLost, err)
	case err != nil || n != 0:
		return err
	}
	return ErrLost
}

func truth(n int64, _ bool, err error) (bool, error) { return n != 0 && err == nil, err }
