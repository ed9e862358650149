package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/expmap"
)

const (
	sessions = 10     // fields that expire in the trial of the sweep
	stored   = 10_000 // sessions in the trial of memory
)

// sweep is the hash whose fields a timer removes: a sorted set has their deadlines. Between two sweeps readers get expired fields.
var sweep = classic{
	title: fmt.Sprintf("the same, swept by a timer: %d fields have expired, and the next sweep comes later", sessions),
	right: "0",
	rows:  []row{{"expired fields that a reader gets", staleInHash}, {"expmap.Len", staleInMap}},
}

// sweepMemory compares the memory of that hash with that of one string for each session.
var sweepMemory = classic{
	title: "TTL of hash fields by a sorted set of deadlines: bytes of memory for a session of 100 bytes",
	rows: []row{
		{"the hash and the sorted set", bytesOfHash},
		{"a string with a TTL for each", bytesOfStrings},
		{"expmap.SetMany", bytesOfMap},
	},
}

// hash is a hash with the sorted set of its deadlines.
type hash struct {
	b                *bench
	fields, deadline string
}

func (b *bench) hash() hash { return hash{b, b.key("sessions"), b.key("deadlines")} }

func (h hash) set(batch *ebb.Batch, field string, value any, deadline int64) {
	batch.Do("HSET", h.fields, field, value)
	batch.Do("ZADD", h.deadline, deadline, field)
}

// sweep removes the fields whose deadline has passed. A timer calls it.
func (h hash) sweep(ctx context.Context, now int64) error {
	v, err := h.b.c.Do(ctx, "ZRANGEBYSCORE", h.deadline, "-inf", fmt.Sprint("(", now))
	if err != nil {
		return err
	}
	over, err := v.AsStrings()
	if err != nil || len(over) == 0 {
		return err
	}
	if _, err := h.b.c.HDel(ctx, h.fields, over...); err != nil {
		return err
	}
	_, err = h.b.c.ZRem(ctx, h.deadline, over...)
	return err
}

func staleInHash(ctx context.Context, b *bench) (int64, error) {
	h := b.hash()
	now, err := b.now(ctx)
	if err != nil {
		return 0, err
	}
	var batch ebb.Batch
	deadline := now + brief.Milliseconds()
	for i := range sessions {
		h.set(&batch, fmt.Sprint("s-", i), "ann", deadline)
	}
	if _, err := b.c.Tx(ctx, &batch); err != nil {
		return 0, err
	}
	if err := h.sweep(ctx, now); err != nil { // the timer: too early
		return 0, err
	}
	if now, err = b.sleepUntil(ctx, deadline+1); err != nil {
		return 0, err
	}
	stale, err := b.c.HLen(ctx, h.fields)
	if err != nil {
		return 0, err
	}
	if err := h.sweep(ctx, now); err != nil { // the timer again
		return 0, err
	}
	if n, err := b.c.HLen(ctx, h.fields); err != nil || n != 0 {
		return 0, fmt.Errorf("the sweep left %d fields: %w", n, err)
	}
	return stale, nil
}

func staleInMap(ctx context.Context, b *bench) (int64, error) {
	m, err := expmap.New[string, string](b.c, b.key("sessions"))
	if err != nil {
		return 0, err
	}
	entries := map[string]string{}
	for i := range sessions {
		entries[fmt.Sprint("s-", i)] = "ann"
	}
	if err := m.SetMany(ctx, entries, brief); err != nil {
		return 0, err
	}
	now, err := b.now(ctx)
	if err != nil {
		return 0, err
	}
	if _, err := b.sleepUntil(ctx, now+brief.Milliseconds()+1); err != nil {
		return 0, err
	}
	return m.Len(ctx)
}

// used returns the memory that the server uses, once it has freed deleted keys.
func (b *bench) used(ctx context.Context) (bytes int64, err error) {
	err = until(ctx, "the server frees memory in the background", func() (bool, error) {
		v, err := b.c.Do(ctx, "INFO", "memory")
		if err != nil {
			return false, err
		}
		field := func(name string) int64 {
			_, rest, _ := strings.Cut(v.String(), "\r\n"+name+":")
			text, _, _ := strings.Cut(rest, "\r\n")
			var n int64
			if n, err = strconv.ParseInt(text, 10, 64); err != nil {
				err = fmt.Errorf("INFO memory: %s: %w", name, err)
			}
			return n
		}
		pending := field("lazyfree_pending_objects")
		if err == nil {
			bytes = field("used_memory")
		}
		return pending == 0, err
	})
	return bytes, err
}

// bytesEach stores sessions, a hundred in a request, and returns the memory for each.
func (b *bench) bytesEach(ctx context.Context, store func(from, to int) error) (int64, error) {
	before, err := b.used(ctx)
	if err != nil {
		return 0, err
	}
	for from := 0; from < stored; from += 100 {
		if err := store(from, from+100); err != nil {
			return 0, err
		}
	}
	after, err := b.used(ctx)
	return (after - before) / stored, err
}

var session = strings.Repeat("s", 100)

func bytesOfHash(ctx context.Context, b *bench) (int64, error) {
	now, err := b.now(ctx)
	if err != nil {
		return 0, err
	}
	h := b.hash()
	return b.bytesEach(ctx, func(from, to int) error {
		var batch ebb.Batch
		for i := from; i < to; i++ {
			h.set(&batch, fmt.Sprint("session-", i), session, now+3600_000)
		}
		_, err := b.c.Pipeline(ctx, &batch)
		return err
	})
}

func bytesOfStrings(ctx context.Context, b *bench) (int64, error) {
	return b.bytesEach(ctx, func(from, to int) error {
		var batch ebb.Batch
		for i := from; i < to; i++ {
			batch.Do("SET", b.key(fmt.Sprint("session-", i)), session, "EX", 3600)
		}
		_, err := b.c.Pipeline(ctx, &batch)
		return err
	})
}

func bytesOfMap(ctx context.Context, b *bench) (int64, error) {
	m, err := expmap.New[string, string](b.c, b.key("sessions"))
	if err != nil {
		return 0, err
	}
	return b.bytesEach(ctx, func(from, to int) error {
		entries := map[string]string{}
		for i := from; i < to; i++ {
			entries[fmt.Sprint("session-", i)] = session
		}
		return m.SetMany(ctx, entries, time.Hour)
	})
}
