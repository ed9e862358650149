package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/limit"
)

// redissonExpire and redissonSetRate are two traps of Redisson's RRateLimiter, whose data is a hash with the rate, a number
// of free permits, and a sorted set of grants.
var (
	redissonExpire = classic{
		title: "Redisson's trySetRate, expire, tryAcquire: expire comes before the keys of the permits exist",
		right: "0",
		rows:  []row{{"keys that stay for ever", leftByRedisson}, {"limit.Redisson, with the same layout", leftByOurs}},
	}
	redissonSetRate = classic{
		title: fmt.Sprintf("Redisson's setRate at each start of a program: it forgets the grants, %d in an hour", most),
		right: fmt.Sprint(most),
		rows:  []row{{"allowed in the hour, with one restart", allowedByRedisson}, {"limit.SetRate", allowedByLimit}},
	}
)

const hour = time.Hour

// leftByRedisson sends what the methods of Redisson send, in short.
func leftByRedisson(ctx context.Context, b *bench) (int64, error) {
	config, value, permits := b.key("api"), "{"+b.key("api")+"}:value", "{"+b.key("api")+"}:permits"
	now, err := b.now(ctx)
	if err != nil {
		return 0, err
	}
	for _, step := range [][][]any{
		{{"HSETNX", config, "rate", most}, {"HSETNX", config, "interval", hour.Milliseconds()}, {"HSETNX", config, "type", 0}}, // trySetRate
		{{"PEXPIRE", config, hour.Milliseconds()}, {"PEXPIRE", value, hour.Milliseconds()}, {"PEXPIRE", permits, hour.Milliseconds()}},
		{{"ZADD", permits, now, "a grant"}, {"SET", value, most}, {"DECRBY", value, 1}}, // tryAcquire
	} {
		if _, err := b.tx(ctx, 0, step...); err != nil {
			return 0, err
		}
	}
	return b.withoutTTL(ctx)
}

// redisson returns a limiter in Redisson's layout, with a rate.
func (b *bench) redisson(ctx context.Context) (*limit.RedissonLimiter, error) {
	l, err := limit.Redisson(b.c, b.key("api"))
	if err == nil {
		_, err = l.TrySetRate(ctx, limit.RedissonRate{Rate: most, Interval: hour})
	}
	return l, err
}

func leftByOurs(ctx context.Context, b *bench) (int64, error) {
	l, err := b.redisson(ctx)
	if err == nil {
		_, err = l.Expire(ctx, hour)
	}
	if err == nil {
		_, err = l.TryAcquire(ctx, 1, 0)
	}
	if err != nil {
		return 0, err
	}
	return b.withoutTTL(ctx)
}

// allowedByRedisson uses package limit's limiter in Redisson's layout, whose SetRate does what Redisson's setRate does.
func allowedByRedisson(ctx context.Context, b *bench) (int64, error) {
	l, err := b.redisson(ctx)
	if err != nil {
		return 0, err
	}
	call := func() (bool, error) { return l.TryAcquire(ctx, 1, 0) }
	before, err := burst(call)
	if err == nil {
		err = l.SetRate(ctx, limit.RedissonRate{Rate: most, Interval: hour})
	}
	after, err2 := burst(call)
	return before + after, errors.Join(err, err2)
}

func allowedByLimit(ctx context.Context, b *bench) (int64, error) {
	l, err := newLimit(b.c, b.key("api"), hour)
	if err != nil {
		return 0, err
	}
	call := func() (bool, error) {
		r, err := l.Allow(ctx, "")
		return r.Allowed, err
	}
	before, err := burst(call)
	if err == nil {
		err = l.SetRate(limit.Per(most, hour), 0)
	}
	after, err2 := burst(call)
	return before + after, errors.Join(err, err2)
}
