package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb"
)

// load fills the server.
func load(ctx context.Context, c *ebb.Conn) error {
	if _, err := c.Do(ctx, "FLUSHALL"); err != nil {
		return err
	}
	// OBJECT FREQ answers under an LFU policy alone. Nothing is evicted without maxmemory.
	if _, err := c.Do(ctx, "CONFIG", "SET", "maxmemory-policy", "allkeys-lfu"); err != nil {
		return err
	}
	var b ebb.Batch
	flush := func(least int) error {
		if b.Len() < least {
			return nil
		}
		all, err := c.Pipeline(ctx, &b)
		b.Reset()
		for _, v := range all {
			err = errors.Join(err, v.Err())
		}
		return err
	}
	for i := range *keys {
		add(&b, i)
		if err := flush(1000); err != nil {
			return err
		}
	}
	for i := range jobs {
		b.Do("DQ.ADD", "{big}", fmt.Sprint("job:", i), "a payload of some length, as jobs have", "DELAY", max(0, i-leased)*100)
		if err := flush(1000); err != nil {
			return err
		}
	}
	for range leased {
		b.Do("DQ.POP", "{big}", "LEASE", 3_600_000)
	}
	return flush(1)
}

// add adds the i-th key: of each thousand ten limiters, of which one denies, ten hashes, a lock, and now and then a semaphore or a queue.
func add(b *ebb.Batch, i int) {
	switch n := i % 1000; {
	case n < 9:
		b.Do("RL.TAKE", fmt.Sprint("limit:", i), 100, 3_600_000)
	case n == 9:
		for range 3 {
			b.Do("RL.TAKE", fmt.Sprint("limit:", i), 1, 3_600_000)
		}
	case n < 20:
		b.Do("HSETEX", fmt.Sprint("hash:", i), "EX", 60+i%80_000, "FIELDS", 2, "a", 1, "b", 2)
	case n == 20:
		b.Do("LOCK.ACQUIRE", fmt.Sprint("lock:", i), "worker", 3_600_000)
	case n == 21 && i%10_000 < 1000:
		b.Do("SEM.ACQUIRE", fmt.Sprint("sem:", i), "worker", 3, 3_600_000)
	case n == 22 && i%10_000 < 1000:
		b.Do("DQ.ADD", fmt.Sprint("queue:", i), "job", "payload", "DELAY", 3_600_000)
	default:
		b.Do("SET", fmt.Sprintf("key:%012d", i), "a value of some length", "EX", 60+i%86_000)
	}
}
