// Command hash-field-ttl gives each field of a hash a deadline of its own, in five ways:
// with the commands that servers have today, with a companion sorted set and a sweeper,
// with a delay queue that deletes the field, with expmap, which chooses, and with the
// deadline beside the value.
package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/expmap"
	"github.com/ebbdb/ebb/internal/example"
)

func main() { example.Main(run) }

// The story has three codes to sign in with. Two expire soon, one later.
const (
	moment = 300 * time.Millisecond
	longer = time.Hour
)

var codes = []struct {
	user, code string
	ttl        time.Duration
}{{"ann", "1111", moment}, {"bob", "2222", longer}, {"eve", "3333", moment}}

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	for _, way := range []func(context.Context, *ebb.Conn, io.Writer) error{native, companion, delayQueue, toolkit, beside, memory} {
		if err := way(ctx, c, w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	return nil
}

// native uses HPEXPIRE: ebb has it, Redis from 7.4 on, Valkey from 9 on.
func native(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	fmt.Fprintln(w, "1. HPEXPIRE: the server itself lets fields die")
	if !c.Capabilities().HashFieldTTL {
		fmt.Fprintln(w, "   this server cannot: its hashes live and die as a whole")
		return nil
	}
	const key = "codes:native"
	defer func() { _, _ = c.Del(ctx, key) }()
	for _, x := range codes {
		var b ebb.Batch
		b.Do("HSET", key, x.user, x.code)
		b.Do("HPEXPIRE", key, x.ttl.Milliseconds(), "FIELDS", 1, x.user)
		if _, err := c.Tx(ctx, &b); err != nil {
			return err
		}
	}
	return beforeAndAfter(ctx, w, func() ([]string, error) { return fields(ctx, c, key) })
}

// companion keeps the deadlines in a sorted set. A reader must look there too, because
// the sweeper may be late. A step that changes both keys is a script.
func companion(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	fmt.Fprintln(w, "2. A companion sorted set of deadlines, and a sweeper")
	const key, due = "{codes}", "{codes}:due"
	defer func() { _, _ = c.Del(ctx, key, due) }()
	for _, x := range codes {
		if _, err := c.Script(ctx, setScript, []string{key, due}, x.user, x.code, x.ttl.Milliseconds()); err != nil {
			return err
		}
	}
	err := beforeAndAfter(ctx, w, func() ([]string, error) {
		v, err := c.Script(ctx, livingScript, []string{key, due})
		if err != nil {
			return nil, err
		}
		return v.AsStrings()
	})
	if err != nil {
		return err
	}
	before, err := c.Do(ctx, "HLEN", key)
	if err != nil {
		return err
	}
	swept, err := c.Script(ctx, sweepScript, []string{key, due}, 100)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "   until then the dead were in memory: HLEN %s; the sweeper removed %s\n", before, swept)
	return nil
}

// now is the server's time in ms, in each script: clients' clocks differ.
const now = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`

var (
	setScript = ebb.NewScript(now + `
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[1])`)
	livingScript = ebb.NewScript(now + `return redis.call('ZRANGEBYSCORE', KEYS[2], now, '+inf')`)
	// sweepScript removes a limited number of expired fields, because all other clients wait
	// while a script runs.
	sweepScript = ebb.NewScript(now + `
local dead = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '(' .. now, 'LIMIT', 0, ARGV[1])
if #dead == 0 then return 0 end
redis.call('HDEL', KEYS[1], unpack(dead))
return redis.call('ZREM', KEYS[2], unpack(dead))`)
)

// delayQueue puts a job in a queue for each field. The job is due at the field's deadline,
// and a worker then deletes the field. A field that is written again gets a second, later
// job. So a job has the number of its write, and the worker deletes the field only if that
// write was the last.
func delayQueue(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	fmt.Fprintln(w, "3. A delay queue that deletes the field")
	const key, queue = "{codes2}", "{codes2}:jobs"
	defer func() { _, _ = c.Del(ctx, key, queue) }()
	for i, x := range codes {
		if _, err := c.Script(ctx, enqueueScript, []string{key, queue}, x.user, x.code, x.ttl.Milliseconds(), i); err != nil {
			return err
		}
	}
	// Ann asks for another code, which lives longer. The job of the first one is void.
	if _, err := c.Script(ctx, enqueueScript, []string{key, queue}, "ann", "4444", longer.Milliseconds(), len(codes)); err != nil {
		return err
	}
	work, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- worker(work, c, key, queue) }()
	err := beforeAndAfter(ctx, w, func() ([]string, error) { return fields(ctx, c, key) })
	stop()
	if failed := <-done; err == nil {
		err = failed
	}
	fmt.Fprintln(w, "   (ann was written again meanwhile; without the worker nothing would die)")
	return err
}

// A value is "<writing>:<code>", a job "<writing>:<field>".
var (
	enqueueScript = ebb.NewScript(now + `
redis.call('HSET', KEYS[1], ARGV[1], ARGV[4] .. ':' .. ARGV[2])
return redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[4] .. ':' .. ARGV[1])`)
	workScript = ebb.NewScript(now + `
for _, job in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '(' .. now, 'LIMIT', 0, 100)) do
  local writing, field = string.match(job, '^(%d+):(.*)$')
  local value = redis.call('HGET', KEYS[1], field)
  if value and string.match(value, '^%d+') == writing then redis.call('HDEL', KEYS[1], field) end
  redis.call('ZREM', KEYS[2], job)
end
return 0`)
)

// worker runs the due jobs every few milliseconds, until the context ends.
func worker(ctx context.Context, c *ebb.Conn, key, queue string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if _, err := c.Script(ctx, workScript, []string{key, queue}); err != nil && ctx.Err() == nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// toolkit uses expmap, which chooses the first way if the server supports it, else the
// second.
func toolkit(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	m, err := expmap.New[string, string](c, "codes:toolkit")
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "4. expmap: %s\n", m)
	for _, x := range codes {
		if err := m.Set(ctx, x.user, x.code, x.ttl); err != nil {
			return err
		}
	}
	err = beforeAndAfter(ctx, w, func() ([]string, error) {
		var all []string
		for user, err := range m.Keys(ctx) {
			if err != nil {
				return nil, err
			}
			all = append(all, user)
		}
		return all, nil
	})
	if err != nil {
		return err
	}
	return m.Clear(ctx)
}

// beside stores the deadline in the value, before the code: "<ms since 1970>:<code>". One
// field then says by itself until when it holds, in any tool. A reader compares, and a sweep
// has to look at every field.
func beside(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	fmt.Fprintln(w, "5. The deadline beside the value: <ms since 1970>:<code>")
	const key = "codes:beside"
	defer func() { _, _ = c.Del(ctx, key) }()
	for _, x := range codes {
		if _, err := c.Script(ctx, besideScript, []string{key}, x.user, x.code, x.ttl.Milliseconds()); err != nil {
			return err
		}
	}
	value, err := c.Do(ctx, "HGET", key, "ann")
	if err != nil {
		return err
	}
	due, code, _ := strings.Cut(value.Str, ":")
	ms, err := strconv.ParseInt(due, 10, 64)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "   HGET ann is %s, and its first part is the time %s\n", value.Str, time.UnixMilli(ms).UTC().Format("15:04:05.000"))
	err = beforeAndAfter(ctx, w, func() ([]string, error) {
		v, err := c.Script(ctx, validScript, []string{key})
		if err != nil {
			return nil, err
		}
		return v.AsStrings()
	})
	if err != nil {
		return err
	}
	swept, err := c.Script(ctx, tidyScript, []string{key})
	fmt.Fprintf(w, "   until then a plain HGET showed the code %s that was over; the sweep removed %s\n", code, swept)
	return err
}

var (
	besideScript = ebb.NewScript(now + `return redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now + ARGV[3]) .. ':' .. ARGV[2])`)
	// split calls fn(field) for each field that is over, or that is not.
	split = now + `
local function each(over, fn)
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    if (tonumber(string.match(all[i + 1], '^%d+')) < now) == over then fn(all[i]) end
  end
end
local out = {}
`
	validScript = ebb.NewScript(split + `each(false, function(f) table.insert(out, f) end) return out`)
	tidyScript  = ebb.NewScript(split + `each(true, function(f) table.insert(out, f) redis.call('HDEL', KEYS[1], f) end) return #out`)
)

// memory measures the bytes of a code in each layout, by the server's own used_memory: in
// hashes of 20 codes, and in one hash for all codes.
func memory(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	fmt.Fprintf(w, "6. Memory for a code, of %d          in hashes of 20   in one hash\n", codeCount)
	all := []layout{aString, aPair, aField}
	if !c.Capabilities().HashFieldTTL {
		all = all[:2]
	}
	for _, l := range all {
		small, err := l.cost(ctx, c, 20)
		if err != nil {
			return err
		}
		large, err := l.cost(ctx, c, codeCount)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "   %-35s  %6d bytes  %6d bytes\n", l.name, small, large)
	}
	return nil
}

const codeCount = 20_000

// layout is a way to store codes that expire.
type layout struct {
	name string
	// set writes the code of a user into the hash of that number.
	set func(b *ebb.Batch, hash int, user string)
	// keys returns the keys to which set writes.
	keys func(hash int, user string) []string
}

var (
	aString = layout{"strings, each with a TTL",
		func(b *ebb.Batch, _ int, user string) { b.Do("SET", "cost:"+user, "1234", "PX", longer.Milliseconds()) },
		func(_ int, user string) []string { return []string{"cost:" + user} }}
	aPair = layout{"a hash and its companion sorted set",
		func(b *ebb.Batch, h int, user string) {
			b.Do("HSET", fmt.Sprintf("{cost:%d}", h), user, "1234")
			b.Do("ZADD", fmt.Sprintf("{cost:%d}:due", h), 1_800_000_000_000, user)
		},
		func(h int, _ string) []string {
			return []string{fmt.Sprintf("{cost:%d}", h), fmt.Sprintf("{cost:%d}:due", h)}
		}}
	aField = layout{"a hash, fields with deadlines",
		func(b *ebb.Batch, h int, user string) {
			b.Do("HSET", fmt.Sprintf("{cost:%d}", h), user, "1234")
			b.Do("HPEXPIRE", fmt.Sprintf("{cost:%d}", h), longer.Milliseconds(), "FIELDS", 1, user)
		},
		func(h int, _ string) []string { return []string{fmt.Sprintf("{cost:%d}", h)} }}
)

// cost writes all codes, each of them in one hash, returns the bytes per code, and deletes
// them.
func (l layout) cost(ctx context.Context, c *ebb.Conn, each int) (int64, error) {
	before, err := used(ctx, c)
	if err != nil {
		return 0, err
	}
	err = l.batches(ctx, c, func(b *ebb.Batch, i int) { l.set(b, i/each, user(i)) })
	if err != nil {
		return 0, err
	}
	after, err := used(ctx, c)
	if err != nil {
		return 0, err
	}
	err = l.batches(ctx, c, func(b *ebb.Batch, i int) {
		for _, key := range l.keys(i/each, user(i)) {
			b.Do("DEL", key)
		}
	})
	return (after - before) / codeCount, err
}

func user(i int) string { return fmt.Sprintf("user:%06d", i) }

// batches runs the commands that add returns for each code, a thousand codes in a
// pipeline.
func (l layout) batches(ctx context.Context, c *ebb.Conn, add func(b *ebb.Batch, i int)) error {
	for i := 0; i < codeCount; {
		var b ebb.Batch
		for end := i + 1000; i < end; i++ {
			add(&b, i)
		}
		if _, err := c.Pipeline(ctx, &b); err != nil {
			return err
		}
	}
	return nil
}

// used returns the memory of the server's data, in bytes.
func used(ctx context.Context, c *ebb.Conn) (int64, error) {
	v, err := c.Do(ctx, "INFO", "memory")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(v.String(), "used_memory:")
	n, _, _ := strings.Cut(rest, "\r\n")
	return strconv.ParseInt(n, 10, 64)
}

// beforeAndAfter prints the codes that exist before and after the first deadline.
func beforeAndAfter(ctx context.Context, w io.Writer, living func() ([]string, error)) error {
	for _, when := range []string{"at once", "later"} {
		if when == "later" {
			if err := example.Sleep(ctx, moment+100*time.Millisecond); err != nil {
				return err
			}
		}
		users, err := living()
		if err != nil {
			return err
		}
		slices.Sort(users)
		fmt.Fprintf(w, "   %-8s %s\n", when, strings.Join(users, " "))
	}
	return nil
}

func fields(ctx context.Context, c *ebb.Conn, key string) ([]string, error) {
	v, err := c.Do(ctx, "HKEYS", key)
	if err != nil {
		return nil, err
	}
	return v.AsStrings()
}
