package conn

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/ebbdb/ebb/internal/direct"
)

// HGet returns the value of a field, or ErrNil if there is no such field or key. O(1).
func (c *Conn) HGet(ctx context.Context, key, field string) (string, error) {
	if d := direct.Of(c); d != nil && ctx.Err() == nil {
		switch val, state := d.HGet(key, field); state {
		case direct.Done:
			return val, nil
		case direct.Absent:
			return "", ErrNil
		}
	}
	return text(c.Do(ctx, "HGET", key, field))
}

// HMGet returns the values of fields, in order; IsNull where there is none. O(n) for n
// fields.
func (c *Conn) HMGet(ctx context.Context, key string, fields ...string) ([]Value, error) {
	v, err := c.Do(ctx, withTexts(fields, "HMGET", key)...)
	return v.Elems, err
}

// HGetAll returns all fields and their values; an empty map if there is no such key. It
// costs O(n) for n fields, at the backend too: read a large hash with HScan.
func (c *Conn) HGetAll(ctx context.Context, key string) (map[string]string, error) {
	v, err := c.Do(ctx, "HGETALL", key)
	if err != nil {
		return nil, err
	}
	all := make(map[string]string, len(v.Elems)/2)
	for field, value := range v.Pairs {
		all[field.String()] = value.String()
	}
	return all, nil
}

// HSet sets fields: field, value, field, value. It returns the number of new fields. A field that had a
// deadline has none afterwards. O(n) for n fields.
func (c *Conn) HSet(ctx context.Context, key string, pairs ...any) (int64, error) {
	return number(c.Do(ctx, append([]any{"HSET", key}, pairs...)...))
}

// HSetTTL sets one field that lives for ttl, which must be positive; a part of a millisecond
// counts as a whole one. It does not change other fields or the deadline of the key. Redis
// before 7.4 and Valkey before 9 have no deadlines of fields (Capabilities.HashFieldTTL): there
// HSetTTL returns errors.ErrUnsupported and does nothing. O(1).
func (c *Conn) HSetTTL(ctx context.Context, key, field string, value any, ttl time.Duration) error {
	if ttl <= 0 {
		return fmt.Errorf("%w: HSetTTL: the ttl is %v; it must be positive", ErrArgument, ttl)
	}
	if d := direct.Of(c); d != nil && ctx.Err() == nil {
		if val, ok := plainText(value); ok && d.HSet(key, field, val, direct.FieldOptions{TTL: millis(ttl)}) == direct.Done {
			return nil
		}
	}
	caps, err := c.fieldTTL(ctx, "HSetTTL")
	if err != nil {
		return err
	}
	if caps.Native {
		return none(c.Do(ctx, "HSETEX", key, "PX", millis(ttl), "FIELDS", 1, field, value))
	}
	var b Batch // an older server may have HPEXPIRE without HSETEX
	b.Do("HSET", key, field, value)
	b.Do("HPEXPIRE", key, millis(ttl), "FIELDS", 1, field)
	return firstError(c.Tx(ctx, &b))
}

// HExpire sets the remaining time of a field, and reports whether the field exists. A ttl of 0
// or less deletes the field. On servers without deadlines of fields it returns
// errors.ErrUnsupported; see HSetTTL. O(1).
func (c *Conn) HExpire(ctx context.Context, key, field string, ttl time.Duration) (bool, error) {
	if _, err := c.fieldTTL(ctx, "HExpire"); err != nil {
		return false, err
	}
	n, err := onlyInt(c.Do(ctx, "HPEXPIRE", key, max(millis(ttl), 0), "FIELDS", 1, field))
	return n > 0, err
}

// HTTL returns the remaining time of a field, to the millisecond: Forever without a deadline,
// and ErrNil if the field does not exist. On servers without deadlines of fields it returns
// errors.ErrUnsupported; see HSetTTL. O(1).
func (c *Conn) HTTL(ctx context.Context, key, field string) (time.Duration, error) {
	if _, err := c.fieldTTL(ctx, "HTTL"); err != nil {
		return 0, err
	}
	return lifetime(onlyInt(c.Do(ctx, "HPTTL", key, "FIELDS", 1, field)))
}

// HDel deletes fields, and returns the number of fields that existed. A hash without fields is deleted. O(n)
// for n fields.
func (c *Conn) HDel(ctx context.Context, key string, fields ...string) (int64, error) {
	return number(c.Do(ctx, withTexts(fields, "HDEL", key)...))
}

// HExists reports whether there is such a field. O(1).
func (c *Conn) HExists(ctx context.Context, key, field string) (bool, error) {
	return parseBool(c.Do(ctx, "HEXISTS", key, field))
}

// HLen returns the number of fields; 0 if there is no such key. O(1).
func (c *Conn) HLen(ctx context.Context, key string) (int64, error) {
	return number(c.Do(ctx, "HLEN", key))
}

// HIncrBy adds n, which may be negative, to a field that holds an integer and starts at 0, and returns the
// sum. The field's deadline stays. O(1).
func (c *Conn) HIncrBy(ctx context.Context, key, field string, n int64) (int64, error) {
	return number(c.Do(ctx, "HINCRBY", key, field, n))
}

// fieldTTL returns the capabilities, and errors.ErrUnsupported if the backend has no deadlines of hash
// fields.
func (c *Conn) fieldTTL(ctx context.Context, method string) (Capabilities, error) {
	caps, err := c.known(ctx)
	if err == nil && !caps.HashFieldTTL {
		err = fmt.Errorf("ebb: %s: %s %s has no deadlines of hash fields; ebb, Redis 7.4 and Valkey 9 have them: %w",
			method, caps.Server, caps.Version, errors.ErrUnsupported)
	}
	return caps, err
}

// known returns the capabilities, or the error of a backend that has not answered yet.
func (c *Conn) known(ctx context.Context) (Capabilities, error) {
	caps := c.Capabilities()
	if caps.Server == "" { // the server of a wrapped client: see Capabilities.Server
		if err := c.Ping(ctx); err != nil {
			return caps, err
		}
		caps = c.Capabilities()
	}
	return caps, nil
}

// HashField is a field of a hash and its value.
type HashField struct {
	Field, Value string
}

// HScan yields the fields of a hash whose names match a pattern, all fields if it is "" or
// "*", with their values; none if there is no such key. A field that exists from beginning
// to end is yielded; a field that is added or removed meanwhile may be, and a field may be
// yielded twice. The iteration ends with the first error. Each round trip reads some 200
// fields; the whole costs O(n) for n fields.
func (c *Conn) HScan(ctx context.Context, key, pattern string) iter.Seq2[HashField, error] {
	return scan(ctx, c, []any{"HSCAN", key}, pattern, 2, func(of []Value) (HashField, error) { return HashField{of[0].Str, of[1].Str}, nil })
}
