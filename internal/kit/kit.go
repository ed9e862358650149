// Package kit holds the code that the packages of the toolkit share: names of helper
// keys, ids of owners, waits and retries, and the rules that every object follows: which
// names are valid, when a loop ends, how an object releases a lease.
//
// Start reading at Key, then rules.go.
package kit

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	mrand "math/rand/v2"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
)

// Key names a helper key of the object name, in the same hash slot: "{orders}:due", or
// "shop:{orders}:due" if the name has a tag of its own.
func Key(name, suffix string) string {
	if strings.Contains(name, "{") {
		return name + ":" + suffix
	}
	return "{" + name + "}:" + suffix
}

// Prefixed names a helper key with a prefix, as Redisson does for some keys:
// "prefix:{orders}".
func Prefixed(prefix, name string) string {
	if strings.Contains(name, "{") {
		return prefix + ":" + name
	}
	return prefix + ":{" + name + "}"
}

// ID returns 128 random bits as 32 hexadecimal digits: an owner, a job.
func ID() string {
	var b [16]byte
	var text [2 * len(b)]byte
	_, _ = rand.Read(b[:]) // Read never fails
	hex.Encode(text[:], b[:])
	return string(text[:])
}

// UUID returns a random UUID (RFC 9562, version 4) in its usual form.
func UUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// Number returns the integer of a reply.
func Number(v conn.Value, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return v.AsInt()
}

// Millis converts a duration to whole milliseconds. It rounds up, so that no item lives
// shorter than requested.
func Millis(d time.Duration) int64 {
	if d <= 0 {
		return int64(d / time.Millisecond)
	}
	return int64((d-1)/time.Millisecond) + 1
}

// Sleep waits for d, or until the context ends, whose error it returns then.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// BlockTime is the time for which a command waits at a server: half the time after which networks forget idle connections.
// ReplyMargin is the time after that for which a call waits for the reply. Without one the connection counts as dead.
const (
	BlockTime   = 20 * time.Second
	ReplyMargin = 10 * time.Second
)

// NoReply returns the error of a call that had no reply in time.
func NoReply(within time.Duration) error {
	return fmt.Errorf("%w: no reply within %v", conn.ErrUnavailable, within.Round(time.Millisecond))
}

// Overdue reports whether err, of a call with bounded, comes from bounded's own deadline
// and not from ctx, the caller's context. Client libraries notice a deadline some ms
// before or after its context ends.
func Overdue(ctx, bounded context.Context, err error) bool {
	if err == nil || ctx.Err() != nil || bounded.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	ours, bound := bounded.Deadline()
	theirs, ok := ctx.Deadline()
	return bound && (!ok || ours.Before(theirs))
}

// Backoff returns the pause before attempt n (0, 1, ...): a random part, at least
// half, of first x 2^n, which is capped at limit.
func Backoff(first, limit time.Duration, n int) time.Duration {
	d := limit
	if n < bits.LeadingZeros64(uint64(first))-1 {
		d = min(first<<n, limit)
	}
	return d/2 + mrand.N(d/2+1)
}
