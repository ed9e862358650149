package conn

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"time"
	"unsafe"

	"github.com/ebbdb/ebb/internal/direct"
)

// Forever is the result of TTL for a key without a deadline.
const Forever time.Duration = -1

// SetOptions configures Set. The zero value sets a value without a deadline.
type SetOptions struct {
	TTL     time.Duration // the time for which the value lives; 0: no deadline
	At      time.Time     // the deadline, by the backend's clock; zero: see TTL
	KeepTTL bool          // keep the deadline of the previous value
	NX      bool          // only if the key does not exist
	XX      bool          // only if the key exists
	Fresh   time.Duration // with TTL: GETFRESH calls the value stale after it; 0: never. ebb only
	Token   int64         // only if GETFRESH gave this token for the key. ebb only
}

// Get returns a string, or ErrNil if there is no such key.
func (c *Conn) Get(ctx context.Context, key string) (string, error) {
	if d := direct.Of(c); d != nil && ctx.Err() == nil {
		switch val, state := d.Get(key); state {
		case direct.Done:
			return val, nil
		case direct.Absent:
			return "", ErrNil
		}
	}
	return text(c.Do(ctx, "GET", key))
}

// AppendGet appends a string to dst, as Get returns it. If there is no such key, it returns dst and ErrNil. On an embedded engine
// it allocates nothing if dst has room.
func (c *Conn) AppendGet(ctx context.Context, dst []byte, key string) ([]byte, error) {
	if d := direct.Of(c); d != nil && ctx.Err() == nil {
		switch val, state := d.AppendGet(dst, key); state {
		case direct.Done:
			return val, nil
		case direct.Absent:
			return dst, ErrNil
		}
	}
	val, err := text(c.Do(ctx, "GET", key))
	return append(dst, val...), err
}

// Set sets a string, and replaces a value of any type. It returns ErrNotSet if the condition in
// the options does not hold.
func (c *Conn) Set(ctx context.Context, key string, value any, opts ...SetOptions) error {
	o, err := setOptions("Set", opts)
	if err != nil {
		return err
	}
	if text, ok := plainText(value); ok {
		if done, err := c.setDirect(ctx, key, text, &o); done {
			return err
		}
	}
	return c.set(ctx, key, value, &o)
}

// SetText is Set for a string. On an embedded engine it allocates nothing, whereas Set and SetTTL allocate
// the interface value, unless the string is a constant.
func (c *Conn) SetText(ctx context.Context, key, value string, opts ...SetOptions) error {
	o, err := setOptions("SetText", opts)
	if err != nil {
		return err
	}
	if done, err := c.setDirect(ctx, key, value, &o); done {
		return err
	}
	return c.set(ctx, key, value, &o)
}

// setOptions returns the options that a method was called with.
func setOptions(method string, opts []SetOptions) (o SetOptions, err error) {
	switch len(opts) {
	case 0:
		return o, nil
	case 1:
		return opts[0], nil
	}
	return o, fmt.Errorf("%w: %s got %d values of SetOptions; it takes one, or none for the defaults", ErrArgument, method, len(opts))
}

// set sends SET.
func (c *Conn) set(ctx context.Context, key string, value any, o *SetOptions) error {
	args := append(make([]any, 0, 7), "SET", key, value)
	if o.TTL != 0 {
		args = append(args, "PX", millis(o.TTL))
	}
	if !o.At.IsZero() {
		args = append(args, "PXAT", o.At.UnixMilli())
	}
	if o.KeepTTL {
		args = append(args, "KEEPTTL")
	}
	if o.NX {
		args = append(args, "NX")
	}
	if o.XX {
		args = append(args, "XX")
	}
	if o.Fresh != 0 {
		args = append(args, "FRESH", millis(o.Fresh))
	}
	if o.Token != 0 {
		args = append(args, "IFTOKEN", o.Token)
	}
	v, err := c.Do(ctx, args...)
	if err == nil && v.IsNull() {
		return ErrNotSet
	}
	return err
}

// setDirect sets a string by a direct call. done is true if it has set the string, or if the condition did
// not hold. For invalid options it does nothing, because the command reports the error.
func (c *Conn) setDirect(ctx context.Context, key, value string, o *SetOptions) (done bool, _ error) {
	d := direct.Of(c)
	if d == nil || o.Fresh != 0 || o.Token != 0 || o.NX && o.XX || ctx.Err() != nil {
		return false, nil
	}
	s := direct.SetOptions{TTL: millis(o.TTL), KeepTTL: o.KeepTTL, NX: o.NX, XX: o.XX}
	deadlines := 0
	if o.TTL != 0 {
		deadlines++
	}
	if !o.At.IsZero() {
		s.At = o.At.UnixMilli()
		deadlines++
	}
	if o.KeepTTL {
		deadlines++
	}
	if deadlines > 1 || o.TTL < 0 || !o.At.IsZero() && (s.At <= 0 || s.At > mostMillis) {
		return false, nil
	}
	return setState(d, key, value, s)
}

// setState is setDirect for valid options.
func setState(d direct.Calls, key, value string, o direct.SetOptions) (done bool, _ error) {
	switch d.Set(key, value, o) {
	case direct.Done:
		return true, nil
	case direct.Absent:
		return true, ErrNotSet
	}
	return false, nil
}

// plainText returns a string, or bytes as a string for a call that does not retain it; ok is false for
// another type.
func plainText(value any) (text string, ok bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case []byte:
		return unsafe.String(unsafe.SliceData(v), len(v)), true
	}
	return "", false
}

// SetTTL sets a string that lives for ttl, which must be positive; a part of a
// millisecond counts as a whole one.
func (c *Conn) SetTTL(ctx context.Context, key string, value any, ttl time.Duration) error {
	if d := direct.Of(c); d != nil && ttl > 0 && ctx.Err() == nil {
		if text, ok := plainText(value); ok {
			if done, err := setState(d, key, text, direct.SetOptions{TTL: millis(ttl)}); done {
				return err
			}
		}
	}
	return none(c.Do(ctx, "SET", key, value, "PX", millis(ttl)))
}

// SetNX sets a string that lives for ttl, or without a deadline if ttl is 0, unless the key
// exists. It reports whether it did.
func (c *Conn) SetNX(ctx context.Context, key string, value any, ttl time.Duration) (bool, error) {
	switch err := c.Set(ctx, key, value, SetOptions{TTL: ttl, NX: true}); err {
	case nil:
		return true, nil
	case ErrNotSet:
		return false, nil
	default:
		return false, err
	}
}

// GetDel returns a string and deletes it. It returns ErrNil if there is no such key.
func (c *Conn) GetDel(ctx context.Context, key string) (string, error) {
	return text(c.Do(ctx, "GETDEL", key))
}

// GetEx returns a string and sets its remaining time; with ttl 0 it removes the deadline. It
// returns ErrNil if the key does not exist.
func (c *Conn) GetEx(ctx context.Context, key string, ttl time.Duration) (string, error) {
	if ttl == 0 {
		return text(c.Do(ctx, "GETEX", key, "PERSIST"))
	}
	return text(c.Do(ctx, "GETEX", key, "PX", millis(ttl)))
}

// MGet returns the strings of keys, in order; IsNull where there is none.
func (c *Conn) MGet(ctx context.Context, keys ...string) ([]Value, error) {
	v, err := c.Do(ctx, withKeys("MGET", keys)...)
	return v.Elems, err
}

// MSet sets strings in one atomic step. pairs are key, value, key, value.
func (c *Conn) MSet(ctx context.Context, pairs ...any) error {
	return none(c.Do(ctx, append([]any{"MSET"}, pairs...)...))
}

// Append appends to a string and returns its new length in bytes.
func (c *Conn) Append(ctx context.Context, key string, value any) (int64, error) {
	return number(c.Do(ctx, "APPEND", key, value))
}

// Incr adds 1 to an integer, which starts at 0, and returns the sum. The key's deadline stays.
func (c *Conn) Incr(ctx context.Context, key string) (int64, error) {
	return number(c.Do(ctx, "INCR", key))
}

// IncrBy adds n, which may be negative, to an integer and returns the sum.
func (c *Conn) IncrBy(ctx context.Context, key string, n int64) (int64, error) {
	return number(c.Do(ctx, "INCRBY", key, n))
}

// IncrByFloat adds f to a number and returns the sum.
func (c *Conn) IncrByFloat(ctx context.Context, key string, f float64) (float64, error) {
	v, err := c.Do(ctx, "INCRBYFLOAT", key, f)
	if err != nil {
		return 0, err
	}
	return v.AsFloat()
}

// Del deletes keys and returns the number of keys that existed.
func (c *Conn) Del(ctx context.Context, keys ...string) (int64, error) {
	return number(c.Do(ctx, withKeys("DEL", keys)...))
}

// Exists returns the number of keys that exist. A key that is named twice counts twice.
func (c *Conn) Exists(ctx context.Context, keys ...string) (int64, error) {
	return number(c.Do(ctx, withKeys("EXISTS", keys)...))
}

// Type returns the type of a key, such as "string" or "hash"; "none" if there is no such key.
func (c *Conn) Type(ctx context.Context, key string) (string, error) {
	return text(c.Do(ctx, "TYPE", key))
}

// Rename renames a key and keeps its deadline. It replaces a key that has the new name.
func (c *Conn) Rename(ctx context.Context, from, to string) error {
	return none(c.Do(ctx, "RENAME", from, to))
}

// Expire sets the remaining time of a key, and reports whether the key exists. A ttl of 0 or
// less deletes the key.
func (c *Conn) Expire(ctx context.Context, key string, ttl time.Duration) (bool, error) {
	return parseBool(c.Do(ctx, "PEXPIRE", key, millis(ttl)))
}

// ExpireAt sets the deadline of a key, by the backend's clock, and reports whether the key
// exists.
func (c *Conn) ExpireAt(ctx context.Context, key string, t time.Time) (bool, error) {
	return parseBool(c.Do(ctx, "PEXPIREAT", key, t.UnixMilli()))
}

// Persist removes a key's deadline, and reports whether the key had one.
func (c *Conn) Persist(ctx context.Context, key string) (bool, error) {
	return parseBool(c.Do(ctx, "PERSIST", key))
}

// TTL returns the remaining time of a key, to the millisecond: Forever without a deadline, and
// ErrNil if the key does not exist.
func (c *Conn) TTL(ctx context.Context, key string) (time.Duration, error) {
	return lifetime(number(c.Do(ctx, "PTTL", key)))
}

// lifetime converts a reply of PTTL and similar commands: -2 if the key does not exist, -1 for no deadline,
// otherwise milliseconds.
func lifetime(ms int64, err error) (time.Duration, error) {
	switch {
	case err != nil:
		return 0, err
	case ms == -2:
		return 0, ErrNil
	case ms == -1:
		return Forever, nil
	}
	return time.Duration(min(ms, mostMillis)) * time.Millisecond, nil
}

// mostMillis is the greatest number of ms that fits into a time.Duration: 292 years.
const mostMillis = math.MaxInt64 / int64(time.Millisecond)

// scanCount is the number of keys or elements that one call of SCAN, HSCAN, SSCAN or ZSCAN visits: some 20 us of work,
// against a round trip of 50 us or more.
const scanCount = 200

// Scan yields the keys that match a pattern, all keys if it is "" or "*". A key that
// exists from beginning to end is yielded; a key that is added or removed meanwhile may
// be, and a key may be yielded twice. The iteration ends with the first error.
func (c *Conn) Scan(ctx context.Context, pattern string) iter.Seq2[string, error] {
	return scan(ctx, c, []any{"SCAN"}, pattern, 1, func(of []Value) (string, error) { return of[0].Str, nil })
}

// scan yields the result of a command of the SCAN family. Each element is n values of the reply, which read
// turns into one.
func scan[T any](ctx context.Context, c *Conn, command []any, pattern string, n int, read func(of []Value) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		pattern = cmp.Or(pattern, "*")
		var none T
		for cursor := "0"; ; {
			args := append(append(make([]any, 0, len(command)+5), command...), cursor, "MATCH", pattern, "COUNT", scanCount)
			v, err := c.Do(ctx, args...)
			if err == nil && (len(v.Elems) != 2 || len(v.Elems[1].Elems)%n != 0) {
				err = fmt.Errorf("ebb: %s replied %s", command[0], v)
			}
			if err != nil {
				yield(none, err)
				return
			}
			for of := v.Elems[1].Elems; len(of) > 0; of = of[n:] {
				one, err := read(of[:n])
				if !yield(one, err) || err != nil {
					return
				}
			}
			if cursor = v.Elems[0].String(); cursor == "0" {
				return
			}
		}
	}
}

// DBSize returns the number of keys in the database.
func (c *Conn) DBSize(ctx context.Context) (int64, error) { return number(c.Do(ctx, "DBSIZE")) }

// Publish sends a message to a channel and returns the number of subscribers that received it.
func (c *Conn) Publish(ctx context.Context, channel string, payload any) (int64, error) {
	return number(c.Do(ctx, "PUBLISH", channel, payload))
}

// Ping returns nil if the backend replies.
func (c *Conn) Ping(ctx context.Context) error { return none(c.Do(ctx, "PING")) }

// withKeys returns a command with keys as its arguments.
func withKeys(name string, keys []string) []any { return withTexts(keys, name) }

// withTexts returns a command: first, which is its name and maybe its key, and then the texts.
func withTexts(texts []string, first ...any) []any {
	args := append(make([]any, 0, len(first)+len(texts)), first...)
	for _, t := range texts {
		args = append(args, t)
	}
	return args
}

func none(_ Value, err error) error { return err }

func text(v Value, err error) (string, error) {
	switch {
	case err != nil:
		return "", err
	case v.IsNull():
		return "", ErrNil
	}
	return v.AsString()
}

func number(v Value, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return v.AsInt()
}

func parseBool(v Value, err error) (bool, error) {
	n, err := number(v, err)
	return n != 0, err
}

// texts reads a reply of strings; null is an empty list.
func texts(v Value, err error) ([]string, error) {
	if err != nil || v.IsNull() {
		return nil, err
	}
	return v.AsStrings()
}

// onlyInt reads an array of one integer. For a key that does not exist Redis replies an empty array, or null,
// in place of -2.
func onlyInt(v Value, err error) (int64, error) {
	switch {
	case err != nil:
		return 0, err
	case len(v.Elems) == 0:
		return -2, nil
	}
	return v.Elems[0].AsInt()
}

// firstError returns the error of a transaction, or of the first of its commands that failed.
func firstError(replies []Value, err error) error {
	for i := 0; err == nil && i < len(replies); i++ {
		err = replies[i].Err()
	}
	return err
}

// millis converts a duration to whole milliseconds, rounded up, so that nothing lives shorter than the caller
// wants.
func millis(d time.Duration) int64 {
	if d <= 0 {
		return int64(d / time.Millisecond)
	}
	return int64((d-1)/time.Millisecond) + 1
}
