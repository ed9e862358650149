package lock

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// acquirer is one way to request a lock or permits under a lease from a backend. An owner is unique for each call of Acquire, so a
// request may be repeated: the same owner gets what it has.
type acquirer interface {
	// try sends one request, to which the backend replies at once. queue: a backend with a line adds the owner to it.
	try(ctx context.Context, owner string, queue bool) (reply, error)
	// renew renews the lease for its full length, or fails with ErrLost.
	renew(ctx context.Context, owner string, token int64) error
	// release releases the lease, and reports whether it was the owner's.
	release(ctx context.Context, owner string, token int64) (bool, error)
	// abandon removes the owner from the line, and releases what it has got meanwhile.
	abandon(ctx context.Context, owner string) error
	// repeatable reports whether a request may be sent twice.
	repeatable() bool
}

// queuedAcquirer is an acquirer of a backend that keeps the line itself.
type queuedAcquirer interface {
	// wait sends a request that waits in the line for at most timeout; 0: until the context ends.
	wait(ctx context.Context, owner string, timeout time.Duration) (reply, error)
}

// countingAcquirer is an acquirer of a backend that counts how often an owner has acquired the lock. The count does not show which
// requests it counts, so a request without a reply is not repeated. It is taken back if its reply comes late.
type countingAcquirer interface {
	// read returns the reply to a request.
	read(v conn.Value) (reply, error)
}

// reply is the result of a request.
type reply struct {
	granted    bool
	token      int64
	retryAfter time.Duration // if not granted: the time after which a request may succeed without a wake-up; 0: unknown
}

// nativeLock uses the commands LOCK.* of ebb.
type nativeLock struct {
	o      *object
	shared bool
}

func (n nativeLock) acquire(ctx context.Context, owner, lease string) (reply, error) {
	if n.shared {
		return grantedReply(firstInt(n.o.c.Ints(ctx, "LOCK.ACQUIRE", n.o.name, owner, lease, "SHARED")))
	}
	return grantedReply(firstInt(n.o.c.Ints(ctx, "LOCK.ACQUIRE", n.o.name, owner, lease)))
}

func (n nativeLock) try(ctx context.Context, owner string, _ bool) (reply, error) {
	return n.acquire(ctx, owner, n.o.ttl)
}

func (n nativeLock) wait(ctx context.Context, owner string, wait time.Duration) (reply, error) {
	args := []any{"LOCK.ACQUIRE", n.o.name, owner, n.o.ttl, "WAIT", kit.Millis(wait)}
	if n.shared {
		args = append(args, "SHARED")
	}
	return grantedReply(integer(n.o.c.Block(ctx, args...)))
}

func (n nativeLock) renew(ctx context.Context, owner string, token int64) error {
	return renewed(firstInt(n.o.c.Ints(ctx, "LOCK.RENEW", n.o.name, owner, strconv.FormatInt(token, 10), n.o.ttl)))
}

func (n nativeLock) release(ctx context.Context, owner string, token int64) (bool, error) {
	return boolean(firstInt(n.o.c.Ints(ctx, "LOCK.RELEASE", n.o.name, owner, strconv.FormatInt(token, 10))))
}

// abandon requests the shortest lease, which replaces the lease of the owner, if there is one, and releases it. A repeat only
// looks: in most cases nothing is left, and the lock may be free or another owner's.
func (n nativeLock) abandon(ctx context.Context, owner string) error {
	if kit.Repeated(ctx) {
		return n.discard(ctx, owner)
	}
	r, err := n.acquire(ctx, owner, "1")
	if err == nil && r.granted {
		_, err = n.release(ctx, owner, r.token)
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

// nativeSem uses the commands SEM.* of ebb.
type nativeSem struct {
	c        *conn.Conn
	name     string
	ttl      int64 // ms
	limit, n int64
}

func (n nativeSem) try(ctx context.Context, owner string, _ bool) (reply, error) {
	return grantedReply(integer(n.c.Do(ctx, "SEM.ACQUIRE", n.name, owner, n.limit, n.ttl, "COUNT", n.n)))
}

func (n nativeSem) wait(ctx context.Context, owner string, wait time.Duration) (reply, error) {
	return grantedReply(integer(n.c.Block(ctx, "SEM.ACQUIRE", n.name, owner, n.limit, n.ttl, "COUNT", n.n, "WAIT", kit.Millis(wait))))
}

func (n nativeSem) renew(ctx context.Context, owner string, _ int64) error {
	return renewed(integer(n.c.Do(ctx, "SEM.RENEW", n.name, owner, n.ttl)))
}

func (n nativeSem) release(ctx context.Context, owner string, _ int64) (bool, error) {
	return boolean(integer(n.c.Do(ctx, "SEM.RELEASE", n.name, owner)))
}

func (n nativeSem) abandon(ctx context.Context, owner string) error {
	_, err := n.release(ctx, owner, 0)
	return err
}

func (nativeSem) repeatable() bool { return true }

// firstInt returns the integer of a reply; ok: the reply is not null.
func firstInt(got conn.Ints, err error) (n int64, ok bool, _ error) { return got.At[0], got.N > 0, err }

// integer returns the integer of a Value, as firstInt does.
func integer(v conn.Value, err error) (n int64, ok bool, _ error) {
	return firstInt(conn.IntsOf(v, err))
}

// grantedReply returns the reply of a command: a token, or null if it was not granted.
func grantedReply(token int64, ok bool, err error) (reply, error) {
	return reply{granted: ok && err == nil, token: token}, err
}

// scriptReply returns the reply of a script of this package: a token, and milliseconds until a retry.
func scriptReply(v conn.Value, err error) (r reply, _ error) {
	if err != nil {
		return r, err
	}
	if len(v.Elems) != 2 {
		return r, fmt.Errorf("%w: a script returned %s", conn.ErrValue, v)
	}
	if r.token, err = v.Elems[0].AsInt(); err != nil {
		return r, err
	}
	ms, err := v.Elems[1].AsInt()
	r.granted, r.retryAfter = r.token != 0, time.Duration(ms)*time.Millisecond
	return r, err
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

func boolean(n int64, _ bool, err error) (bool, error) { return n != 0 && err == nil, err }
