package conn

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// SAdd adds members to a set, and returns the number of new members. The deadlines of existing members stay.
// O(n) for n members.
func (c *Conn) SAdd(ctx context.Context, key string, members ...any) (int64, error) {
	return number(c.Do(ctx, append([]any{"SADD", key}, members...)...))
}

// SAddTTL adds a member that lives for ttl, which must be positive; a part of a millisecond
// counts as a whole one. A member that exists gets the new deadline. It reports whether the
// member is new. Only ebb has deadlines of members (Capabilities.Native): other servers return
// errors.ErrUnsupported and do nothing. Package expset has such sets on every backend. O(1).
func (c *Conn) SAddTTL(ctx context.Context, key string, member any, ttl time.Duration) (bool, error) {
	if ttl <= 0 {
		return false, fmt.Errorf("%w: SAddTTL: the ttl is %v; it must be positive", ErrArgument, ttl)
	}
	if err := c.memberTTL(ctx, "SAddTTL"); err != nil {
		return false, err
	}
	return parseBool(c.Do(ctx, "SADDEX", key, "PX", millis(ttl), "MEMBERS", 1, member))
}

// SExpire sets the remaining time of a member, and reports whether the member exists. A ttl of 0 or less
// removes the member. On servers other than ebb it returns errors.ErrUnsupported; see SAddTTL. O(1).
func (c *Conn) SExpire(ctx context.Context, key string, member any, ttl time.Duration) (bool, error) {
	if err := c.memberTTL(ctx, "SExpire"); err != nil {
		return false, err
	}
	n, err := onlyInt(c.Do(ctx, "SPEXPIRE", key, max(millis(ttl), 0), "MEMBERS", 1, member))
	return n > 0, err
}

// STTL returns the remaining time of a member, to the millisecond: Forever without a deadline, and ErrNil if
// the member does not exist. On servers other than ebb it returns errors.ErrUnsupported; see SAddTTL. O(1).
func (c *Conn) STTL(ctx context.Context, key string, member any) (time.Duration, error) {
	if err := c.memberTTL(ctx, "STTL"); err != nil {
		return 0, err
	}
	return lifetime(onlyInt(c.Do(ctx, "SPTTL", key, "MEMBERS", 1, member)))
}

// SRem removes members, and returns the number of members that existed. A set without members is deleted.
// O(n) for n members.
func (c *Conn) SRem(ctx context.Context, key string, members ...any) (int64, error) {
	return number(c.Do(ctx, append([]any{"SREM", key}, members...)...))
}

// SMembers returns all members, in no particular order; none if there is no such key. It
// costs O(n) for n members, at the backend too: read a large set with SScan.
func (c *Conn) SMembers(ctx context.Context, key string) ([]string, error) {
	return texts(c.Do(ctx, "SMEMBERS", key))
}

// SIsMember reports whether a set has a member. O(1).
func (c *Conn) SIsMember(ctx context.Context, key string, member any) (bool, error) {
	return parseBool(c.Do(ctx, "SISMEMBER", key, member))
}

// SCard returns the number of members of a set; 0 if there is no such key. O(1).
func (c *Conn) SCard(ctx context.Context, key string) (int64, error) {
	return number(c.Do(ctx, "SCARD", key))
}

// memberTTL returns errors.ErrUnsupported if the backend has no deadlines of members.
func (c *Conn) memberTTL(ctx context.Context, method string) error {
	caps, err := c.known(ctx)
	if err == nil && !caps.Native {
		err = fmt.Errorf("ebb: %s: %s %s has no deadlines of members; ebb and the sets of package expset have them: %w",
			method, caps.Server, caps.Version, errors.ErrUnsupported)
	}
	return err
}

// SScan yields the members of a set that match a pattern, all members if it is "" or "*";
// none if there is no such key. A member that is in the set from beginning to end is
// yielded; a member that is added or removed meanwhile may be, and a member may be yielded
// twice. The iteration ends with the first error. Each round trip reads some 200 members;
// the whole costs O(n) for n members.
func (c *Conn) SScan(ctx context.Context, key, pattern string) iter.Seq2[string, error] {
	return scan(ctx, c, []any{"SSCAN", key}, pattern, 1, func(of []Value) (string, error) { return of[0].Str, nil })
}
