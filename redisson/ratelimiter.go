package redisson

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/limit"
)

// RateLimiter is Redisson's RRateLimiter:
//
//	name                 a hash: rate, interval (ms), type (0 overall, 1 per client), keepAliveTime (ms)
//	{name}:value         the number of free permits
//	{name}:permits       a sorted set of grants, scored by ms; member: byte 16, 16 random bytes, uint32 permits;
//	                     in Redisson 3.13.3 to 3.16.3: 4 random bytes, uint32 permits
//	{name}:value:<id>    the number of free permits of one client, with type 1
//	{name}:permits:<id>  the grants of one client, with type 1
//
// Java programs with either version of the layout can share the limiter, but not both versions
// at once, which Redisson does not support either. The limiter detects the version and rewrites
// entries of the other one. Counters of Redisson 3.13.2 and older have no log of grants; the
// limiter refuses them with ebb.ErrValue.
//
// The algorithm is a sliding log, whose size grows with the rate. New programs should use
// package limit. RateLimiter uses the server's clock, while Redisson uses the clock of each
// client. The methods are safe for concurrent use.
type RateLimiter struct {
	c      *conn.Conn
	name   string
	client string
	opt    RateLimiterOptions
}

// RateLimiterOptions configures a RateLimiter. The zero value works.
type RateLimiterOptions struct {
	// Client is the client's id, for PerClient. "": a random UUID, as in Redisson, which has one
	// for each process.
	Client string
	// OldJava says that the Java programs use Redisson 3.13.3 to 3.16.3. The limiter detects that
	// by itself as soon as a Java program has taken a permit, and cannot know it before.
	OldJava bool
	// Fair serves waiting calls of Acquire and TryAcquire in FIFO order, among the programs that
	// set it. Java clients do not take part in the order. While calls wait, the queue is two more
	// keys, "{name}:ebb-line" and "{name}:ebb-heard".
	Fair bool
}

// refresh is the longest time between two requests of a waiter in the line, and minPause the shortest.
const refresh, minPause = 500 * time.Millisecond, time.Millisecond

// RateType selects whether clients share a rate or have one each.
type RateType int64

// The types of a rate.
const (
	Overall   RateType = 0 // one rate for all clients together
	PerClient RateType = 1 // a rate for each client
)

// Rate is the rate that TrySetRate and SetRate store.
type Rate struct {
	Type      RateType
	Rate      int64         // permits in an interval
	Interval  time.Duration // whole milliseconds
	KeepAlive time.Duration // time from the last use to the limiter's expiration; 0: it does not expire
}

// NewRateLimiter returns the limiter of that name. It sends nothing to the backend. Errors:
// ebb.ErrArgument.
func NewRateLimiter(c *conn.Conn, name string, opts ...RateLimiterOptions) (*RateLimiter, error) {
	name, o, err := kit.Make(c, "redisson: rate limiter", name, opts)
	if err != nil {
		return nil, err
	}
	if o.Client == "" {
		o.Client = kit.UUID()
	}
	return &RateLimiter{c: c, name: name, client: o.Client, opt: o}, nil
}

// String describes the limiter.
func (l *RateLimiter) String() string {
	caps := l.c.Capabilities()
	fair := ""
	if l.opt.Fair {
		fair = ", with a line"
	}
	return fmt.Sprintf("limiter %q (Redisson's layout%s; a Lua script on %s)", l.name, fair,
		strings.TrimRight(caps.Server+" "+caps.Version, " "))
}

// keys returns the five keys of Redisson and the two of the line.
func (l *RateLimiter) keys() []string {
	value, permits := kit.Key(l.name, "value"), kit.Key(l.name, "permits")
	return []string{l.name, value, permits, value + ":" + l.client, permits + ":" + l.client,
		kit.Key(l.name, "ebb-line"), kit.Key(l.name, "ebb-heard")}
}

func (l *RateLimiter) failed(doing string, err error) error {
	var refused conn.ReplyError
	if errors.As(err, &refused) {
		switch {
		case strings.Contains(string(refused), "EBBNORATE"):
			err = ErrNoRate
		case strings.Contains(string(refused), "EBBOLD"):
			err = fmt.Errorf("%w: the free permits have no log, as with Redisson 3.13.2 and older: this limiter needs 3.13.3 or newer",
				conn.ErrValue)
		case strings.Contains(string(refused), "EBBTOOMUCH"):
			err = fmt.Errorf("%w: more permits than the rate", limit.ErrTooMuch)
		}
	}
	return fmt.Errorf("redisson: rate limiter %q: %s: %w", l.name, doing, err)
}

// argument returns an error about an argument, with ebb.ErrArgument in its chain.
func argument(format string, args ...any) error {
	return fmt.Errorf("%w: %s", conn.ErrArgument, fmt.Sprintf(format, args...))
}

func (r Rate) check() error {
	switch {
	case r.Type != Overall && r.Type != PerClient:
		return argument("Type is %d; it must be Overall or PerClient", r.Type)
	case r.Rate < 1 || r.Rate > 1<<32-1:
		return argument("Rate is %d; it must be from 1 to %d", r.Rate, uint32(1<<32-1))
	case r.Interval < time.Millisecond || r.Interval%time.Millisecond != 0:
		return argument("Interval is %v; it must be a positive number of whole milliseconds", r.Interval)
	case r.KeepAlive < 0:
		return argument("KeepAlive is %v; it must be positive, or 0 for ever", r.KeepAlive)
	}
	return nil
}

// TrySetRate sets the rate if none is set, and reports whether it did.
func (l *RateLimiter) TrySetRate(ctx context.Context, r Rate) (bool, error) {
	v, err := l.set(ctx, rateTrySet, r)
	return v.Int == 1, err
}

// SetRate sets the rate, and removes all grants.
func (l *RateLimiter) SetRate(ctx context.Context, r Rate) error {
	_, err := l.set(ctx, rateSet, r)
	return err
}

func (l *RateLimiter) set(ctx context.Context, s *conn.Script, r Rate) (conn.Value, error) {
	err := r.check()
	var v conn.Value
	if err == nil {
		v, err = l.c.Script(ctx, s, l.keys()[:5], r.Rate, r.Interval.Milliseconds(), int64(r.Type), kit.Millis(r.KeepAlive))
	}
	if err != nil {
		return v, l.failed("set the rate", err)
	}
	return v, nil
}

// Rate returns the rate that was set. Errors: ErrNoRate.
func (l *RateLimiter) Rate(ctx context.Context) (r Rate, err error) {
	v, err := l.c.Do(ctx, "HMGET", l.name, "rate", "interval", "type", "keepAliveTime")
	if err == nil && (len(v.Elems) != 4 || v.Elems[0].IsNull() || v.Elems[1].IsNull() || v.Elems[2].IsNull()) {
		err = ErrNoRate
	}
	if err != nil {
		return r, l.failed("read the rate", err)
	}
	var n [4]int64
	for i, e := range v.Elems {
		if e.IsNull() {
			continue // keepAliveTime, of older versions
		}
		if n[i], err = e.AsInt(); err != nil {
			return r, l.failed("read the rate", fmt.Errorf("%w: %w", conn.ErrValue, err))
		}
	}
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	return Rate{Rate: n[0], Interval: ms(n[1]), Type: RateType(n[2]), KeepAlive: ms(n[3])}, nil
}

// TryAcquire takes permits, and waits up to timeout for them: 0 does not wait, a negative
// timeout has no bound. It returns false as soon as it knows that the permits come too late.
// Redisson's tryAcquire(permits, timeout) first sleeps for the timeout; Acquire with a context
// with that deadline does the same. Errors: ErrNoRate before a rate was set; limit.ErrTooMuch for
// more permits than the rate; the context's.
func (l *RateLimiter) TryAcquire(ctx context.Context, permits int64, timeout time.Duration) (bool, error) {
	ok, err := l.acquire(ctx, permits, timeout)
	if err != nil {
		return false, l.failed(fmt.Sprintf("acquire %d", permits), err)
	}
	return ok, nil
}

// Acquire takes permits, and waits until it has them or the context ends. Errors: those of
// TryAcquire.
func (l *RateLimiter) Acquire(ctx context.Context, permits int64) error {
	_, err := l.TryAcquire(ctx, permits, -1)
	return err
}

func (l *RateLimiter) acquire(ctx context.Context, permits int64, timeout time.Duration) (ok bool, err error) {
	switch {
	case permits < 1:
		return false, argument("permits is %d; it must be at least 1", permits)
	case ctx.Err() != nil:
		return false, ctx.Err()
	}
	since, turn, ticket := time.Now(), "", fmt.Sprintf("%s:%d", kit.ID(), permits)
	defer func() {
		if !ok && (turn != "" || err != nil && l.opt.Fair) {
			l.leave(ctx, ticket, err)
		}
	}()
	for {
		left := int64(-1)
		if timeout >= 0 {
			left = kit.Millis(max(0, timeout-time.Since(since)))
		}
		var random [16]byte
		_, _ = rand.Read(random[:])
		v, err := l.c.Script(ctx, rateAcquire, l.keys(),
			permits, random[:], ticket, turn, (4 * refresh).Microseconds(), left, l.opt.Fair, l.opt.OldJava)
		if err != nil {
			l.revoke(ctx, permits, random, err)
			return false, err
		}
		if len(v.Elems) < 3 {
			return false, fmt.Errorf("%w: the reply is %s", conn.ErrValue, v)
		}
		switch v.Elems[0].Int {
		case 1:
			return true, nil
		case 0:
			return false, nil
		}
		pause := time.Duration(v.Elems[1].Int) * time.Millisecond
		if l.opt.Fair {
			turn = v.Elems[2].String()
			pause = min(pause, refresh)
		}
		if timeout >= 0 {
			pause = min(pause, max(0, timeout-time.Since(since)))
		}
		if err := kit.Sleep(ctx, max(minPause, pause)); err != nil {
			return false, err
		}
	}
}

// revoke gives back the permits that a failed request may have taken: its random bytes are in the log of grants.
func (l *RateLimiter) revoke(ctx context.Context, permits int64, random [16]byte, failed error) {
	var refused conn.ReplyError
	if errors.As(failed, &refused) {
		return
	}
	_ = kit.ReleaseBriefly(ctx, failed, conn.Temporary, func(ctx context.Context) error { // if it fails, the grant leaves the interval
		_, err := l.c.Script(ctx, rateRevoke, l.keys()[:5], permits, random[:])
		return err
	})
}

func (l *RateLimiter) leave(ctx context.Context, ticket string, failed error) {
	_ = kit.ReleaseBriefly(ctx, failed, conn.Temporary, func(ctx context.Context) error { // if it fails, the ticket expires
		_, err := l.c.Script(ctx, leaveScript, l.keys()[5:], ticket)
		return err
	})
}

// AvailablePermits returns the number of free permits. Errors: ErrNoRate.
func (l *RateLimiter) AvailablePermits(ctx context.Context) (int64, error) {
	v, err := l.c.Script(ctx, rateAvailable, l.keys()[:5])
	if err == nil {
		var n int64
		if n, err = v.AsInt(); err == nil {
			return n, nil
		}
	}
	return 0, l.failed("count the free permits", err)
}

// Expire sets the time after which the limiter and its grants expire, and reports whether the
// limiter exists.
func (l *RateLimiter) Expire(ctx context.Context, ttl time.Duration) (bool, error) {
	if ttl <= 0 {
		return false, l.failed("expire", argument("the time to live is %v; it must be positive", ttl))
	}
	return l.every(ctx, "expire", "PEXPIRE", kit.Millis(ttl))
}

// ClearExpire removes the deadline of the limiter, and reports whether it had one.
func (l *RateLimiter) ClearExpire(ctx context.Context) (bool, error) {
	return l.every(ctx, "clear the expiry", "PERSIST")
}

// Delete removes the limiter: its rate, its grants, and its queue. Unless the limiter's rate is
// Overall, Delete searches all keys of the backend for the grants of single clients, O(keys).
func (l *RateLimiter) Delete(ctx context.Context) error {
	r, err := l.Rate(ctx)
	if err != nil && !errors.Is(err, ErrNoRate) && !errors.Is(err, conn.ErrValue) {
		return err
	}
	overall := err == nil && r.Type == Overall
	_, err = l.c.Del(ctx, l.keys()...)
	if err == nil && !overall {
		err = kit.Sweep(ctx, l.c, []string{kit.Key(l.name, "value:"), kit.Key(l.name, "permits:")})
	}
	if err != nil {
		return l.failed("delete", err)
	}
	return nil
}

// every runs a command on all keys, and returns the result for the first.
func (l *RateLimiter) every(ctx context.Context, doing, command string, arg ...any) (bool, error) {
	v, err := l.c.Script(ctx, rateEvery, l.keys()[:5], append([]any{command}, arg...)...)
	if err != nil {
		return false, l.failed(doing, err)
	}
	return v.Int == 1, nil
}
