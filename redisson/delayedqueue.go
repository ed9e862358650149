package redisson

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/queue"
)

// DelayedQueue is Redisson's RDelayedQueue with the RBlockingQueue that it feeds:
//
//	redisson_delay_queue_timeout:{name}  zset, by due ms \  of the same items:
//	redisson_delay_queue:{name}          list            /  8, 8 random bytes, length, payload
//	name                                 list of the payloads that are due
//	redisson_delay_queue_channel:{name}  messages about a new first item
//
// Each call moves due jobs from the first two keys to the third; Go and Java programs do that
// for each other. The consumer that takes a value has it for good: the layout has no leases, no
// retries and no dead letters, and the values that a crashed consumer had taken are lost.
// Removing a delayed value costs O(n). Use package queue if no Java program takes part.
//
// The methods are safe for concurrent use. The queue holds no resource and need not be closed.
type DelayedQueue[T any] struct {
	c                                     *conn.Conn
	name, delayedKey, timeoutKey, channel string
	codec                                 conn.Codec[T]
	log                                   *slog.Logger
}

// DelayedQueueOptions configures a DelayedQueue. The zero value works.
type DelayedQueueOptions[T any] struct {
	// Codec encodes values as the Java programs do. For strings the default, ebb.CodecOf, equals
	// StringCodec.
	Codec conn.Codec[T]
	// Logger gets the errors that no call returns. nil: no log.
	Logger *slog.Logger
}

// NewDelayedQueue returns the queue whose RBlockingQueue has that name. It sends nothing to the
// backend. Errors: ebb.ErrArgument.
func NewDelayedQueue[T any](c *conn.Conn, name string, opts ...DelayedQueueOptions[T]) (*DelayedQueue[T], error) {
	name, o, err := kit.Make(c, "redisson: delayed queue", name, opts)
	if err != nil {
		return nil, err
	}
	if o.Codec, err = kit.Codec(o.Codec, "Codec"); err != nil {
		return nil, fmt.Errorf("redisson: delayed queue %q: %w", name, err)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &DelayedQueue[T]{c: c, name: name, codec: o.Codec, log: o.Logger,
		delayedKey: kit.Prefixed("redisson_delay_queue", name),
		timeoutKey: kit.Prefixed("redisson_delay_queue_timeout", name),
		channel:    kit.Prefixed("redisson_delay_queue_channel", name)}, nil
}

// String describes the queue.
func (s *DelayedQueue[T]) String() string {
	caps := s.c.Capabilities()
	return fmt.Sprintf("queue %q (Redisson's layout; Lua scripts on %s %s)", s.name, caps.Server, caps.Version)
}

// The times of a waiting consumer, which package queue has too.
const (
	// pollInterval is the longest pause of a waiting consumer: messages are lost when a master is replaced.
	pollInterval = 5 * time.Second
	// minRetryPause and maxRetryPause bound the pauses of a consumer that cannot reach the backend.
	minRetryPause, maxRetryPause = 10 * time.Millisecond, 2 * time.Second
)

// maxTransfer is the number of items that a call moves; each costs a search in the list.
const maxTransfer = "100"

// delayedPrelude moves due values to the target: KEYS the target, the list, the zset; ARGV the channel.
const delayedPrelude = `
local target, waiting, deadlines = KEYS[1], KEYS[2], KEYS[3]
local call = redis.call
local clock = call('TIME')
local us = clock[1] * 1000000 + clock[2]
local now = math.floor(us / 1000)
local function int(n) return string.format('%.0f', n) end
local due = call('ZRANGEBYSCORE', deadlines, '-inf', int(now), 'LIMIT', 0, ` + maxTransfer + `)
for _, item in ipairs(due) do
  call('RPUSH', target, string.sub(item, string.byte(item, 1) + 10))
  call('ZREM', deadlines, item)
  call('LREM', waiting, 1, item)
end
-- untilDue returns the us until a value falls due, -1 if there is none.
local function untilDue()
  local x = call('ZRANGE', deadlines, 0, 0, 'WITHSCORES')
  if not x[1] then return -1 end
  return math.max(x[2] * 1000 - us, 0)
end
`

var (
	// delayedPush adds a value: ARGV channel, item, delay, payload. Without a delay the value goes behind the due ones.
	delayedPush = conn.NewScript(delayedPrelude + `
local item, delay = ARGV[2], tonumber(ARGV[3])
if delay == 0 and untilDue() ~= 0 then
  call('RPUSH', target, ARGV[4])
  return 1
end
call('ZADD', deadlines, int(now + delay), item)
call('RPUSH', waiting, item)
if call('ZRANGE', deadlines, 0, 0)[1] == item then redis.pcall('PUBLISH', ARGV[1], int(now + delay)) end
return 1
`)
	// delayedTransfer replies with untilDue.
	delayedTransfer = conn.NewScript(delayedPrelude + `return untilDue()`)
	// delayedPop replies with the first payload, or null.
	delayedPop = conn.NewScript(delayedPrelude + `return call('LPOP', target)`)
	// delayedRemove removes an item: ARGV channel, item.
	delayedRemove = conn.NewScript(delayedPrelude + `
call('LREM', waiting, 1, ARGV[2])
return call('ZREM', deadlines, ARGV[2])
`)
)

func (s *DelayedQueue[T]) script(ctx context.Context, script *conn.Script, args ...any) (conn.Value, error) {
	v, err := s.c.Script(ctx, script, []string{s.name, s.delayedKey, s.timeoutKey}, append([]any{s.channel}, args...)...)
	return v, s.failed(err)
}

func (s *DelayedQueue[T]) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("redisson: delayed queue %q: %w", s.name, err)
}

// itemOf returns the item of a payload, as Redisson makes it.
func itemOf(payload []byte) []byte {
	b := make([]byte, 1+8+8, 1+8+8+len(payload))
	b[0] = 8
	_, _ = rand.Read(b[1:9]) // it never fails
	binary.LittleEndian.PutUint64(b[9:], uint64(len(payload)))
	return append(b, payload...)
}

// payloadOf returns the payload of an item.
func payloadOf(item string) (string, bool) {
	if item == "" || len(item) < 1+int(item[0])+8 {
		return "", false
	}
	rest := item[1+int(item[0]):]
	payload := rest[8:]
	return payload, binary.LittleEndian.Uint64([]byte(rest[:8])) == uint64(len(payload))
}

// Push adds a value that falls due after delay.
func (s *DelayedQueue[T]) Push(ctx context.Context, v T, delay time.Duration) error {
	if delay < 0 {
		return s.failed(fmt.Errorf("push: %w: the delay is %v, which is negative", conn.ErrArgument, delay))
	}
	payload, err := s.codec.Encode(v)
	if err != nil {
		return s.failed(err)
	}
	_, err = s.script(ctx, delayedPush, itemOf(payload), kit.Millis(delay), payload)
	return err
}

// TryPop takes the first value that is due, or returns queue.ErrEmpty. It waits for the reply even if
// the context ends meanwhile, because the value would be lost otherwise.
func (s *DelayedQueue[T]) TryPop(ctx context.Context) (v T, err error) {
	if ctx.Err() != nil {
		return v, s.failed(fmt.Errorf("pop: %w", ctx.Err()))
	}
	whole := context.WithoutCancel(ctx)
	patient, cancel := context.WithTimeout(whole, kit.ReplyMargin)
	defer cancel()
	reply, err := s.script(patient, delayedPop)
	if kit.Overdue(whole, patient, err) && !errors.Is(err, conn.ErrNotReplicated) {
		err = s.failed(kit.NoReply(kit.ReplyMargin))
	}
	if err != nil && !errors.Is(err, conn.ErrNotReplicated) { // the value is taken all the same
		return v, err
	}
	if reply.IsNull() {
		return v, queue.ErrEmpty
	}
	payload := reply.String()
	if v, err = s.codec.Decode([]byte(payload)); err != nil {
		s.log.Error("a value was taken and cannot be read", "queue", s.name, "value", payload, "error", err)
	}
	return v, s.failed(err)
}

// Pop waits for a value, until the context ends, and takes it. If the backend does not reply,
// Pop waits until it does. A client that adds to the list wakes it. If the codec cannot decode
// a value, Pop takes it nevertheless and logs it.
func (s *DelayedQueue[T]) Pop(ctx context.Context) (v T, err error) {
	for tries := 0; ; {
		v, err = s.TryPop(ctx)
		if errors.Is(err, queue.ErrEmpty) {
			if err = s.await(ctx); err == nil {
				tries = 0
				continue
			}
		}
		if ctx.Err() != nil && err != nil {
			return v, s.failed(fmt.Errorf("pop: %w", ctx.Err()))
		}
		if !conn.Temporary(err) {
			return v, err
		}
		s.log.Warn("cannot reach the queue", "queue", s.name, "error", err)
		_ = kit.Sleep(ctx, kit.Backoff(minRetryPause, maxRetryPause, tries))
		tries++
	}
}

// await returns when there may be a value. BLMOVE from the list to itself waits for a value and takes none, so that none is lost if the
// context ends meanwhile.
func (s *DelayedQueue[T]) await(ctx context.Context) error {
	patient, cancel := context.WithTimeout(ctx, kit.BlockTime+kit.ReplyMargin)
	var transfer sync.WaitGroup
	transfer.Go(func() { _ = s.Transfer(patient) })
	_, err := s.c.Block(patient, "BLMOVE", s.name, s.name, "LEFT", "LEFT", kit.BlockTime.Seconds())
	if kit.Overdue(ctx, patient, err) {
		err = kit.NoReply(kit.BlockTime + kit.ReplyMargin)
	}
	cancel()
	transfer.Wait()
	return s.failed(err)
}

// Transfer moves values that fall due to the list that consumers read, until the context ends.
// Pop does the same while it waits; a program needs Transfer if its consumers read the list by
// other means. If the backend does not reply, Transfer waits until it does. It returns the
// context's error, or an error that a retry cannot fix.
func (s *DelayedQueue[T]) Transfer(ctx context.Context) error {
	for tries := 0; ; tries++ {
		err := s.transfer(ctx)
		if ctx.Err() != nil {
			return s.failed(fmt.Errorf("transfer: %w", ctx.Err()))
		}
		if kit.Ended(ctx, err) {
			return err
		}
		if !conn.Temporary(err) && !errors.Is(err, conn.ErrInterrupted) {
			return err
		}
		_ = kit.Sleep(ctx, kit.Backoff(minRetryPause, maxRetryPause, tries))
	}
}

// transfer does the work of Transfer until an error.
func (s *DelayedQueue[T]) transfer(ctx context.Context) error {
	sub, err := s.c.Subscribe(ctx, s.channel)
	if err != nil {
		return s.failed(err)
	}
	defer func() { _ = sub.Close() }()
	for {
		v, err := s.script(ctx, delayedTransfer)
		if err != nil {
			return err
		}
		wait := pollInterval
		if v.Int >= 0 {
			wait = min(wait, time.Duration(v.Int)*time.Microsecond)
		}
		until, cancel := context.WithTimeout(ctx, wait)
		_, err = sub.Next(until)
		over := until.Err() != nil
		cancel()
		if err != nil && !over {
			return s.failed(err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// Remove removes a delayed value, the first with equal encoding, and reports whether there was
// one. O(n).
func (s *DelayedQueue[T]) Remove(ctx context.Context, v T) (bool, error) {
	payload, err := s.codec.Encode(v)
	if err != nil {
		return false, s.failed(err)
	}
	const page = 100
	for from := 0; ; from += page {
		items, err := s.c.Do(ctx, "LRANGE", s.delayedKey, from, from+page-1)
		if err != nil {
			return false, s.failed(err)
		}
		if len(items.Elems) == 0 {
			return false, nil
		}
		for _, e := range items.Elems {
			if p, ok := payloadOf(e.Str); !ok || p != string(payload) {
				continue
			}
			n, err := s.script(ctx, delayedRemove, e.Str)
			if err != nil || n.Int == 1 {
				return err == nil, err
			}
		}
	}
}

// Delete removes the queue with its delayed and its ready values.
func (s *DelayedQueue[T]) Delete(ctx context.Context) error {
	_, err := s.c.Del(ctx, s.name, s.delayedKey, s.timeoutKey)
	return s.failed(err)
}

// Len returns the number of delayed values and of ready values.
func (s *DelayedQueue[T]) Len(ctx context.Context) (delayed, ready int64, err error) {
	if _, err := s.script(ctx, delayedTransfer); err != nil {
		return 0, 0, err
	}
	var b conn.Batch
	b.Do("ZCARD", s.timeoutKey)
	b.Do("LLEN", s.name)
	replies, err := s.c.Pipeline(ctx, &b)
	if err != nil {
		return 0, 0, s.failed(err)
	}
	return replies[0].Int, replies[1].Int, s.failed(errors.Join(replies[0].Err(), replies[1].Err()))
}
