package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ebbdb/ebb/lock"
)

// unlock is the lock that its holder deletes by name. A holder that was stalled for longer than its TTL deletes the
// lock of the next one, and a third gets it.
var unlock = classic{
	title: "DEL of a lock without a look at its owner: the holder had stalled beyond its TTL",
	right: "1",
	rows:  []row{{"holders at once", holdersByName}, {"lock.Lease.Release", holdersByLease}},
}

const stall = 100 * time.Millisecond // the TTL of the first holder, which stalls for longer

func holdersByName(ctx context.Context, b *bench) (int64, error) {
	key := b.key("report")
	take := func(ttl time.Duration) (int64, error) {
		v, err := b.c.Do(ctx, "SET", key, "locked", "NX", "PX", ttl.Milliseconds())
		if err != nil || v.IsNull() {
			return 0, err
		}
		return 1, nil
	}
	first, err := take(stall)
	if err == nil {
		err = b.gone(ctx, key)
	}
	if err != nil || first != 1 {
		return 0, fmt.Errorf("the first holder got %d locks: %w", first, err)
	}
	second, err := take(time.Minute)
	if err != nil {
		return 0, err
	}
	if _, err := b.c.Del(ctx, key); err != nil { // the first has finished
		return 0, err
	}
	third, err := take(time.Minute)
	return second + third, err
}

func holdersByLease(ctx context.Context, b *bench) (int64, error) {
	slow := b.newProcess(math.MaxInt64, func() {})
	its, err := lock.New(slow.conn, b.key("report"), lock.Options{TTL: stall})
	if err != nil {
		return 0, err
	}
	others, err := lock.New(b.c, b.key("report"))
	if err != nil {
		return 0, err
	}
	first, err := its.TryAcquire(ctx)
	if err != nil {
		return 0, err
	}
	slow.stalled.Store(true)
	second, err := others.Acquire(ctx, 20*time.Second)
	if err != nil {
		return 0, err
	}
	holders := int64(1)
	slow.stalled.Store(false)
	if err := first.Release(ctx); !errors.Is(err, lock.ErrLost) {
		return 0, fmt.Errorf("the stalled holder released its lock: %w", err)
	}
	third, err := others.TryAcquire(ctx)
	switch {
	case err == nil:
		holders++
		err = third.Release(ctx)
	case errors.Is(err, lock.ErrTaken):
		err = nil
	}
	return holders, errors.Join(err, second.Release(ctx))
}
