package locking

import (
	"context"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/conn"
)

// Acquirer is one way to request a lock or permits under a lease from a backend. An owner is unique for each call of Acquire, so a
// request may be repeated: the same owner gets what it has.
type Acquirer interface {
	// Try sends one request, to which the backend replies at once. queue: a backend with a line adds the owner to it.
	Try(ctx context.Context, owner string, queue bool) (Reply, error)
	// Renew renews the lease for its full length, or fails with ErrLost.
	Renew(ctx context.Context, owner string, token int64) error
	// Release releases the lease, and reports whether it was the owner's.
	Release(ctx context.Context, owner string, token int64) (bool, error)
	// Abandon removes the owner from the line, and releases what it has got meanwhile.
	Abandon(ctx context.Context, owner string) error
	// Repeatable reports whether a request may be sent twice.
	Repeatable() bool
}

// Queued is an Acquirer of a backend that keeps the line itself.
type Queued interface {
	// Wait sends a request that waits in the line for at most timeout; 0: until the context ends.
	Wait(ctx context.Context, owner string, timeout time.Duration) (Reply, error)
}

// Counting is an Acquirer of a backend that counts how often an owner has acquired the lock. The count does not show which
// requests it counts, so a request without a reply is not repeated. It is taken back if its reply comes late.
type Counting interface {
	// Read returns the reply to a request.
	Read(v conn.Value) (Reply, error)
}

// Direct is an Acquirer of an embedded engine, which can serve a request by a direct call. ok is false if the call has done nothing;
// the request is sent then.
type Direct interface {
	Acquirer
	// AcquireDirect requests the lease. waits: the call does nothing rather than be refused.
	AcquireDirect(owner string, waits bool) (token int64, granted, ok bool)
	// ReleaseDirect releases the lease, and reports whether it was the owner's.
	ReleaseDirect(owner string, token int64) (was, ok bool)
}

// Maker is the Direct of a lease whose Object is made only when something needs it. The lease keeps the first that Make returns.
type Maker interface {
	Direct
	Make() *Object
}

// NoLine is an Acquirer of a backend that keeps no line and no list of waiters: a waiter subscribes to wake-ups before it asks for
// one, and a release in this process needs no message.
type NoLine interface{ NoLine() }

// Reply is the result of a request.
type Reply struct {
	Granted    bool
	Token      int64
	RetryAfter time.Duration // if not granted: the time after which a request may succeed without a wake-up; 0: unknown
}

// Integer returns the integer of a Value, or the first one of an array; ok: it is not null.
func Integer(v conn.Value, err error) (n int64, ok bool, _ error) {
	if err != nil || v.IsNull() {
		return 0, false, err
	}
	if len(v.Elems) > 0 {
		v = v.Elems[0]
	}
	n, err = v.AsInt()
	return n, err == nil, err
}

// ScriptReply returns the reply of a script: a token, and milliseconds until a retry.
func ScriptReply(v conn.Value, err error) (r Reply, _ error) {
	if err != nil {
		return r, err
	}
	if len(v.Elems) != 2 {
		return r, fmt.Errorf("%w: a script returned %s", conn.ErrValue, v)
	}
	if r.Token, err = v.Elems[0].AsInt(); err != nil {
		return r, err
	}
	ms, err := v.Elems[1].AsInt()
	r.Granted, r.RetryAfter = r.Token != 0, time.Duration(ms)*time.Millisecond
	return r, err
}

// Renewed returns the error of a renewal by the reply to it.
func Renewed(n int64, _ bool, err error) error {
	switch {
	case isLost(err):
		return fmt.Errorf("%w: %w", ErrLost, err)
	case err != nil || n != 0:
		return err
	}
	return ErrLost
}

// Boolean returns whether a reply is not 0.
func Boolean(n int64, _ bool, err error) (bool, error) { return n != 0 && err == nil, err }
