// Package fresh keeps values with an elected loader at a backend: what packages cache and lock
// share.
//
//	Look ─▶ Fresh            the value
//	     ─▶ Stale or Absent  with a Token: the caller is the one that makes the next value,
//	                         under a lease; without one another program is, or none was elected
//
// Invariants: a key has at most one valid token; Set with a token stores only while the token
// is valid; and every other change through this package ends the token.
//
// On ebb a value is a string with FRESH, and Look is GETFRESH. On other servers it is a string with a
// head of 16 bytes (version, fresh deadline in ms), the lease is the key "<key>:load", and each
// operation is one script in the server's time.
//
// Start reading at Backend.
package fresh

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// State says how old a value is.
type State int

// These are the states.
const (
	Absent State = iota // there is no value
	Fresh               // the value is fresh
	Stale               // the value is stale
)

// Entry is the state of a key on the backend.
type Entry struct {
	State State
	Body  string        // the value, without a State of Absent; "" if it is not one of this package
	Token string        // of a caller that was elected
	Left  time.Duration // until a fresh value is stale; conn.Forever: never
	Wait  time.Duration // the rest of another program's lease
	Held  bool          // another program has a lease
}

// Backend is one of the two layouts. A body is never empty. A key has a hash tag that its other keys share.
type Backend interface {
	// Look reads an entry. With a lease above 0 the caller can be elected. After temporary errors it sends the
	// request again, up to tries in all.
	Look(ctx context.Context, key string, lease time.Duration, tries int) (Entry, error)
	// Await is Look for a missing entry that another program makes: it returns after a change, or a while. n is
	// the number of calls before.
	Await(ctx context.Context, key string, lease time.Duration, n int) (Entry, error)
	// Renew renews a lease, and reports whether the token was still the key's.
	Renew(ctx context.Context, key, token string, lease time.Duration) (bool, error)
	// Release gives a lease up.
	Release(ctx context.Context, key, token string) error
	// Set stores an entry, which is fresh for a span and gone after ttl; a span of 0: fresh until it is gone. With a
	// token it does so only if the token is still the key's, and reports that.
	Set(ctx context.Context, key, body, token string, span, ttl time.Duration) (bool, error)
	// Stale makes entries stale.
	Stale(ctx context.Context, keys []string) error
	// Remove removes entries and ends their leases.
	Remove(ctx context.Context, keys []string) error
	// Discard removes an entry, and ends its lease, if its body is still that one.
	Discard(ctx context.Context, key, body string) error
}

// On returns the layout of a backend: that of ebb's own commands where it has them, unless scripts is set.
func On(c *conn.Conn, scripts bool) Backend {
	if c.Capabilities().Native && !scripts {
		return onEbb{c}
	}
	return byScript{c}
}

// The pauses between two tries of a request.
const firstPause, lastPause = 5 * time.Millisecond, 100 * time.Millisecond

// repeat calls fn until it is answered, up to tries times.
func repeat(ctx context.Context, tries int, fn func() error) error {
	for n := 0; ; n++ {
		err := fn()
		if err == nil || !conn.Temporary(err) || n+1 >= tries || kit.Sleep(ctx, kit.Backoff(firstPause, lastPause, n)) != nil {
			return err
		}
	}
}

// unsure reports whether a request that failed may have elected the caller. One that found no server has not.
func unsure(ctx context.Context, err error) bool {
	var op *net.OpError
	return err != nil && (ctx.Err() != nil || conn.Temporary(err)) && !(errors.As(err, &op) && op.Op == "dial")
}

func all(replies []conn.Value, err error) error {
	for _, v := range replies {
		if err == nil {
			err = v.Err()
		}
	}
	return err
}
