package redissontest

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/internal/kit"
)

// java is a program with Redisson, as its documentation and its keys describe it,
// written with plain commands between WATCH and EXEC on a client of its own: nothing
// of the toolkit is in it.
type java struct {
	t  testing.TB
	c  *redis.Client
	id string
}

func newJava(t testing.TB, url string) *java {
	opt, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	j := &java{t: t, c: redis.NewClient(opt), id: kit.UUID()}
	t.Cleanup(func() { _ = j.c.Close() })
	return j
}

// atomically runs fn on a connection that watches keys, until no other client interferes.
func (j *java) atomically(ctx context.Context, fn func(tx *redis.Tx) error, keys ...string) error {
	for {
		err := j.c.Watch(ctx, fn, keys...)
		if !errors.Is(err, redis.TxFailedErr) {
			return err
		}
	}
}

// permit is a member of the log: the byte 16, 16 random bytes, uint32 little endian.
func permit(n uint32) string {
	var b [21]byte
	b[0] = 16
	_, _ = rand.Read(b[1:17])
	binary.LittleEndian.PutUint32(b[17:], n)
	return string(b[:])
}

// permits returns the number of permits that a member stands for.
func (j *java) permits(member string) int64 {
	if len(member) != 21 || member[0] != 16 {
		j.t.Errorf("a member of the log: %q", member)
		return 0
	}
	return int64(binary.LittleEndian.Uint32([]byte(member[17:])))
}

// tryAcquire takes one permit of the limiter, by this machine's clock, as Redisson does.
func (j *java) tryAcquire(ctx context.Context, name string) (ok bool, err error) {
	value, log := "{"+name+"}:value", "{"+name+"}:permits"
	err = j.atomically(ctx, func(tx *redis.Tx) error {
		ok = false
		settings, err := tx.HMGet(ctx, name, "rate", "interval", "type").Result()
		if err != nil || settings[0] == nil {
			return errors.Join(err, fmt.Errorf("the limiter is not initialised: %v", settings))
		}
		rate, _ := strconv.ParseInt(settings[0].(string), 10, 64)
		interval, _ := strconv.ParseInt(settings[1].(string), 10, 64)
		now := time.Now().UnixMilli()
		free, err := tx.Get(ctx, value).Int64()
		first := errors.Is(err, redis.Nil)
		if err != nil && !first {
			return err
		}
		over := strconv.FormatInt(now-interval, 10)
		var back, left int64
		if first {
			free = rate
		} else {
			members, err := tx.ZRangeWithScores(ctx, log, 0, -1).Result()
			if err != nil {
				return err
			}
			for _, m := range members {
				if int64(m.Score) <= now-interval {
					back += j.permits(m.Member.(string))
				} else {
					left += j.permits(m.Member.(string))
				}
			}
			if free += back; free > rate {
				free = rate - left
			}
		}
		_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			if back > 0 {
				p.ZRemRangeByScore(ctx, log, "-inf", over)
			}
			if ok = free >= 1; ok {
				p.ZAdd(ctx, log, redis.Z{Score: float64(now), Member: permit(1)})
				free--
			}
			p.Set(ctx, value, free, 0)
			return nil
		})
		return err
	}, name, value, log)
	return ok && err == nil, err
}

// lock takes the lock for a thread, and reports whether it did.
func (j *java) lock(ctx context.Context, name string, thread int) (ok bool, err error) {
	holder := fmt.Sprintf("%s:%d", j.id, thread)
	err = j.atomically(ctx, func(tx *redis.Tx) error {
		n, err := tx.Exists(ctx, name).Result()
		if ok = n == 0; err != nil || !ok {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.HIncrBy(ctx, name, holder, 1)
			p.PExpire(ctx, name, 30*time.Second)
			return nil
		})
		return err
	}, name)
	return ok && err == nil, err
}

// unlock releases it, and notifies the waiters.
func (j *java) unlock(ctx context.Context, name string, thread int) error {
	holder := fmt.Sprintf("%s:%d", j.id, thread)
	return j.atomically(ctx, func(tx *redis.Tx) error {
		if n, err := tx.HGet(ctx, name, holder).Int(); n != 1 || err != nil {
			return fmt.Errorf("the lock is held %d times by %s: %w", n, holder, err)
		}
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Del(ctx, name)
			p.Publish(ctx, "redisson_lock__channel:{"+name+"}", "0")
			return nil
		})
		return err
	}, name)
}
