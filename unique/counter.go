package unique

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

const (
	// maxAdd is the number of items of one call.
	maxAdd = 1000
	// maxBuckets bounds the buckets of a window: CountLast unites them in one
	// call, which costs about 30 µs for each full one.
	maxBuckets = 256
	// maxAhead is the number of buckets behind the expected present one that a call names. One is enough except for the first call, and
	// for buckets as short as a call takes: the number doubles with each attempt.
	maxAhead = 4096
)

// Options configures a counter. The zero value counts without an end and without a Window.
// Programs that share a counter must use the same Window and Bucket.
type Options struct {
	// Window is the longest time that CountLast can cover; 0: CountLast is not available.
	Window time.Duration
	// Bucket is the step of CountLast: a count covers up to one bucket more than requested. A
	// window has up to 256 buckets of up to 12 KiB each. In whole ms; default: a 60th of the
	// window.
	Bucket time.Duration
	// TTL is the time for which the counter lives after the last Add; 0: no end.
	TTL time.Duration
	// Logger gets a description at debug level at the first use; nil: no log.
	Logger *slog.Logger
}

// Counter counts different items. Its methods are safe for concurrent use.
type Counter struct {
	c    *conn.Conn
	name string
	o    Options

	once sync.Once    // the line in the log
	now  atomic.Int64 // number of the present bucket, as it was when last asked
}

// New returns the counter of that name, which is its key. It sends nothing to the backend.
// Errors: ebb.ErrArgument.
func New(c *conn.Conn, name string, opts ...Options) (*Counter, error) {
	name, o, err := kit.Make(c, "unique", name, opts)
	if err != nil {
		return nil, err
	}
	if o.Window > 0 && o.Bucket == 0 {
		o.Bucket = max((o.Window / 60).Truncate(time.Millisecond), time.Millisecond)
	}
	switch {
	case o.Window < 0 || o.Bucket < 0 || o.TTL < 0:
		return nil, kit.Argument("unique", name, "Window is %v, Bucket %v and TTL %v; none of them may be negative", o.Window, o.Bucket, o.TTL)
	case o.Window == 0 && o.Bucket > 0:
		return nil, kit.Argument("unique", name, "Bucket is %v, but there is no Window; only a Window has buckets", o.Bucket)
	case o.Window > 0 && (o.Bucket%time.Millisecond != 0 || o.Bucket > o.Window || o.Window/o.Bucket > maxBuckets):
		return nil, kit.Argument("unique", name, "Bucket is %v; it must be whole ms, and go from 1 to %d times into the Window of %v",
			o.Bucket, maxBuckets, o.Window)
	}
	return &Counter{c: c, name: name, o: o}, nil
}

// addScript adds items to the counter KEYS[1] and to the present bucket, whose
// number is that of ms since 1970 divided by the bucket's, and which the caller
// expects among KEYS[2] and the following. If it is not, nothing is done. Arguments: 1 TTL, ms, 0: none
// 2 bucket, ms  3 the number of KEYS[2]  4 how long buckets live, ms  5.. items. It
// returns the number of the present bucket.
var addScript = conn.NewScript(`
local t = redis.call('TIME')
local now = math.floor((t[1] * 1000 + math.floor(t[2] / 1000)) / tonumber(ARGV[2]))
local at = now - tonumber(ARGV[3])
if at < 0 or at > #KEYS - 2 then return now end
local bucket = KEYS[2 + at]
local items = {}
for i = 5, #ARGV do items[#items + 1] = ARGV[i] end
redis.call('PFADD', KEYS[1], unpack(items))
if ARGV[1] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
redis.call('PFADD', bucket, unpack(items))
if redis.call('PTTL', bucket) < 0 then redis.call('PEXPIRE', bucket, ARGV[4]) end
return now
`)

// lastScript unites n of the buckets KEYS, up to the present one, which the caller
// expects to be KEYS[n] or later. Arguments: 1 bucket, ms  2 the number of KEYS[n]
// 3 n. It returns {number of the present bucket, count}, or nothing is counted.
var lastScript = conn.NewScript(`
local t = redis.call('TIME')
local now = math.floor((t[1] * 1000 + math.floor(t[2] / 1000)) / tonumber(ARGV[1]))
local at = now - tonumber(ARGV[2])
local n = tonumber(ARGV[3])
if at < 0 or at > #KEYS - n then return {now, -1} end
local keys = {}
for i = 1, n do keys[i] = KEYS[i + at] end
return {now, redis.call('PFCOUNT', unpack(keys))}
`)

// Add counts items. Adding an item again changes only the time at which it was last added.
// It costs O(n) for n items, in calls of a thousand.
func (u *Counter) Add(ctx context.Context, items ...string) error {
	u.log(ctx)
	for len(items) > 0 {
		n := min(len(items), maxAdd)
		if err := u.add(ctx, items[:n]); err != nil {
			return u.failed("add", err)
		}
		items = items[n:]
	}
	return nil
}

func (u *Counter) add(ctx context.Context, items []string) error {
	if u.o.Window == 0 {
		return u.addPlain(ctx, items)
	}
	ttl := kit.Millis(u.o.Window) + 2*kit.Millis(u.o.Bucket)
	for ahead := int64(1); ; ahead = min(2*ahead, maxAhead) {
		guess := u.now.Load()
		args := []any{kit.Millis(u.o.TTL), kit.Millis(u.o.Bucket), guess, ttl}
		for _, i := range items {
			args = append(args, i)
		}
		keys := u.buckets([]string{u.name}, guess, guess+ahead)
		r, err := u.c.Script(ctx, addScript, keys, args...)
		if err != nil {
			return err
		}
		if u.met(guess, ahead, r.Int) {
			return nil
		}
	}
}

// met stores the number of the present bucket, and reports whether the call had named it.
func (u *Counter) met(guess, ahead, now int64) bool {
	u.now.Store(now)
	return guess <= now && now <= guess+ahead
}

// buckets appends the keys of buckets.
func (u *Counter) buckets(keys []string, from, to int64) []string {
	for i := from; i <= to; i++ {
		keys = append(keys, kit.Key(u.name, "u:"+strconv.FormatInt(i, 10)))
	}
	return keys
}

func (u *Counter) addPlain(ctx context.Context, items []string) error {
	args := append(make([]any, 0, 2+len(items)), "PFADD", u.name)
	for _, i := range items {
		args = append(args, i)
	}
	if u.o.TTL == 0 {
		_, err := u.c.Do(ctx, args...)
		return err
	}
	var b conn.Batch
	b.Do(args...)
	b.Do("PEXPIRE", u.name, kit.Millis(u.o.TTL))
	r, err := u.c.Tx(ctx, &b)
	if err != nil {
		return err
	}
	return errors.Join(r[0].Err(), r[1].Err())
}

// Count returns the approximate number of different items that were added. O(1).
func (u *Counter) Count(ctx context.Context) (int64, error) {
	r, err := u.c.Do(ctx, "PFCOUNT", u.name)
	if err != nil {
		return 0, u.failed("count", err)
	}
	return r.AsInt()
}

// CountLast returns the approximate number of different items that were added in the last d,
// and in up to one Bucket before that. It costs O(d/Bucket). If d is longer than the Window, it
// returns ebb.ErrArgument.
func (u *Counter) CountLast(ctx context.Context, d time.Duration) (int64, error) {
	if d <= 0 || d > u.o.Window {
		return 0, u.failed("count", fmt.Errorf("%w: the last %v: a span from above 0 to the Window, %v", conn.ErrArgument, d, u.o.Window))
	}
	n := int64((d-1)/u.o.Bucket) + 2 // the present one is not over
	for ahead := int64(1); ; ahead = min(2*ahead, maxAhead) {
		guess := u.now.Load()
		keys := u.buckets(nil, guess-n+1, guess+ahead)
		r, err := u.c.Script(ctx, lastScript, keys, kit.Millis(u.o.Bucket), guess, n)
		if err != nil {
			return 0, u.failed("count", err)
		}
		if len(r.Elems) != 2 {
			return 0, u.failed("count", fmt.Errorf("%w: the reply has %d parts, want 2", conn.ErrValue, len(r.Elems)))
		}
		if u.met(guess, ahead, r.Elems[0].Int) {
			return r.Elems[1].AsInt()
		}
	}
}

// Merge adds the items of other counters, without their windows. In a cluster the others may be
// in other slots, and they may use other connections: Merge then copies them first, one by one.
// It does not change them.
func (u *Counter) Merge(ctx context.Context, others ...*Counter) error {
	args := []any{"PFMERGE", u.name}
	elsewhere := false
	for _, o := range others {
		if o == nil {
			return u.failed("merge", fmt.Errorf("%w: one of the others is nil; each must be a counter", conn.ErrArgument))
		}
		args = append(args, o.name)
		elsewhere = elsewhere || o.c != u.c
	}
	var err error
	if !elsewhere {
		_, err = u.c.Do(ctx, args...)
	}
	if elsewhere || code(err) == "CROSSSLOT" {
		err = u.mergeCopies(ctx, others)
	}
	if err != nil {
		return u.failed("merge", err)
	}
	if u.o.TTL > 0 {
		if _, err := u.c.Expire(ctx, u.name, u.o.TTL); err != nil {
			return u.failed("merge", err)
		}
	}
	return nil
}

// mergeCopies merges the others one by one, by a copy in our slot.
func (u *Counter) mergeCopies(ctx context.Context, others []*Counter) error {
	for _, o := range others {
		data, err := o.c.Get(ctx, o.name)
		if errors.Is(err, conn.ErrNil) {
			continue
		}
		if err != nil {
			return err
		}
		copied := kit.Key(u.name, "copy:"+kit.ID())
		var b conn.Batch
		b.Do("SET", copied, data, "PX", time.Minute.Milliseconds())
		b.Do("PFMERGE", u.name, copied)
		b.Do("DEL", copied)
		r, err := u.c.Tx(ctx, &b)
		if err != nil {
			return err
		}
		for _, v := range r {
			if v.Err() != nil {
				return v.Err()
			}
		}
	}
	return nil
}

// code returns the first word of an error reply.
func code(err error) string {
	if r, ok := errors.AsType[conn.ReplyError](err); ok {
		return r.Code()
	}
	return ""
}

// Delete removes the counter with the buckets of its Window. Two requests with a Window,
// else one.
func (u *Counter) Delete(ctx context.Context) error {
	keys := []string{u.name}
	if u.o.Window > 0 {
		v, err := u.c.Script(ctx, bucketScript, keys, kit.Millis(u.o.Bucket))
		if err != nil {
			return u.failed("delete", err)
		}
		back := int64(u.o.Window/u.o.Bucket) + 4 // buckets live two longer than the window
		keys = u.buckets(keys, v.Int-back, v.Int+1)
	}
	if _, err := u.c.Del(ctx, keys...); err != nil {
		return u.failed("delete", err)
	}
	return nil
}

// bucketScript returns the number of the present bucket, of ARGV[1] ms, of KEYS[1].
var bucketScript = conn.NewScript(`
local t = redis.call('TIME')
return math.floor((t[1] * 1000 + math.floor(t[2] / 1000)) / tonumber(ARGV[1]))
`)

// String describes the counter.
func (u *Counter) String() string {
	if u.o.Window == 0 {
		return fmt.Sprintf("unique %q (PFADD)", u.name)
	}
	return fmt.Sprintf("unique %q (the last %v in buckets of %v; a Lua script on PFADD and PFCOUNT)", u.name, u.o.Window, u.o.Bucket)
}

func (u *Counter) log(ctx context.Context) {
	if u.o.Logger == nil {
		return
	}
	u.once.Do(func() { u.o.Logger.DebugContext(ctx, u.String(), "backend", u.c.String()) })
}

func (u *Counter) failed(doing string, err error) error {
	return fmt.Errorf("unique %q: %s: %w", u.name, doing, err)
}
