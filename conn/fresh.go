package conn

import (
	"context"
	"fmt"
	"time"
)

// These are the commands of ebb on values with two deadlines. Package cache uses them, and does the same by
// scripts on other servers.

// FreshOptions configures GetFresh. The zero value only reads.
type FreshOptions struct {
	Lease time.Duration // the caller can load a new value, and needs that long at most; up to an hour
	Token int64         // renew the lease with this token instead of asking for one
	// Owner names the request. An owner that has the lease gets it again, so a request whose reply was lost can be sent once
	// more; and UnleaseOwner gives it up. Up to 256 bytes; it goes with Lease, and not with Token.
	Owner string
	Wait  time.Duration // wait that long for a missing value that another client loads; below 0: until ctx ends
}

// Fresh is the reply of GetFresh.
type Fresh struct {
	// State is "fresh", "stale", "refresh" (the caller is to load a new value) or "absent".
	State string
	Value string
	Found bool  // there is a value
	Token int64 // for SetOptions.Token, with "refresh"
	// For is the time until a fresh value is stale, or a stale one gone; the caller's lease with "refresh";
	// and what is left of another client's lease with "absent". Forever: it has no end, or no other client
	// has a lease.
	For time.Duration
}

// GetFresh returns a string and its state, and may elect the caller to load a new value. Only ebb has the
// command.
func (c *Conn) GetFresh(ctx context.Context, key string, opts ...FreshOptions) (f Fresh, err error) {
	var o FreshOptions
	switch len(opts) {
	case 0:
	case 1:
		o = opts[0]
	default:
		return f, fmt.Errorf("%w: GetFresh got %d values of FreshOptions; it takes one, or none for the defaults", ErrArgument, len(opts))
	}
	args := append(make([]any, 0, 10), "GETFRESH", key)
	if o.Lease != 0 {
		args = append(args, "LEASE", millis(o.Lease))
	}
	if o.Token != 0 {
		args = append(args, "TOKEN", o.Token)
	}
	if o.Owner != "" {
		args = append(args, "OWNER", o.Owner)
	}
	do := c.Do
	if o.Wait != 0 {
		args, do = append(args, "WAIT", max(0, millis(o.Wait))), c.Block
	}
	return freshOf(do(ctx, args...))
}

// freshOf reads the reply of GETFRESH.
func freshOf(v Value, err error) (f Fresh, _ error) {
	if err == nil && len(v.Elems) != 4 {
		err = fmt.Errorf("%w: GETFRESH replied with %v; it should reply with four elements", ErrValue, v)
	}
	if err != nil {
		return f, err
	}
	f.State, f.Value, f.Found, f.Token = v.Elems[0].Str, v.Elems[1].Str, !v.Elems[1].IsNull(), v.Elems[2].Int
	if f.For = Forever; v.Elems[3].Int >= 0 {
		f.For = time.Duration(v.Elems[3].Int) * time.Millisecond
	}
	return f, nil
}

// Stale makes the values of keys stale, and returns how many are. Only ebb has the command.
func (c *Conn) Stale(ctx context.Context, keys ...string) (int64, error) {
	return number(c.Do(ctx, withKeys("STALE", keys)...))
}

// Unlease gives up the loading of a value, and reports whether the token was the key's. Only ebb has the
// command.
func (c *Conn) Unlease(ctx context.Context, key string, token int64) (bool, error) {
	return parseBool(c.Do(ctx, "UNLEASE", key, token))
}

// UnleaseOwner gives up the loading of a value as Unlease does, by the owner of the lease: see FreshOptions.Owner. It reports
// whether the owner had one. Only ebb has the command.
func (c *Conn) UnleaseOwner(ctx context.Context, key, owner string) (bool, error) {
	return parseBool(c.Do(ctx, "UNLEASE", key, "OWNER", owner))
}
