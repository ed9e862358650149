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
		rows:  []row{{"keys that stay for ever", leftByRedisson}, {"limit.Allow", leftByLimit}},
	}
	redissonSetRate = classic{
		title: fmt.Sprintf("Redisson's setRate at each start of a program: it forgets the grants, %d in an hour", quota),
		right: fmt.Sprint(quota),
		rows:  []row{{"allowed in the hour, with one restart", allowedByRedisson}, {"limit.SetRate", allowedByLimit}},
	}
)

const hour = time.Hour

// rate returns the names of the hash with the rate, of the number of free permits and of the sorted set of grants.
func (b *bench) rate() (config, value, permits string) {
	name := b.key("api")
	return name, "{" + name + "}:value", "{" + name + "}:permits"
}

// leftByRedisson sends what the methods of Redisson send, in short.
func leftByRedisson(ctx context.Context, b *bench) (int64, error) {
	config, value, permits := b.rate()
	now, err := b.now(ctx)
	if err != nil {
		return 0, err
	}
	for _, step := range [][][]any{
		{{"HSETNX", config, "rate", quota}, {"HSETNX", config, "interval", hour.Milliseconds()}, {"HSETNX", config, "type", 0}}, // trySetRate
		{{"PEXPIRE", config, hour.Milliseconds()}, {"PEXPIRE", value, hour.Milliseconds()}, {"PEXPIRE", permits, hour.Milliseconds()}},
		{{"ZADD", permits, now, "a grant"}, {"SET", value, quota}, {"DECRBY", value, 1}}, // tryAcquire
	} {
		if _, err := b.tx(ctx, 0, step...); err != nil {
			return 0, err
		}
	}
	return b.withoutTTL(ctx)
}

func leftByLimit(ctx context.Context, b *bench) (int64, error) {
	l, err := newLimit(b.c, b.key("api"), hour)
	if err == nil {
		_, err = l.Allow(ctx, "")
	}
	if err != nil {
		return 0, err
	}
	return b.withoutTTL(ctx)
}

// allowedByRedisson sends what setRate and tryAcquire send, in short: setRate removes the free permits and the grants.
func allowedByRedisson(ctx context.Context, b *bench) (int64, error) {
	config, value, permits := b.rate()
	setRate := func() error {
		_, err := b.tx(ctx, 0, []any{"HSET", config, "rate", quota, "interval", hour.Milliseconds(), "type", 0}, []any{"DEL", value, permits})
		return err
	}
	grant := 0
	tryAcquire := func() (bool, error) {
		if _, err := b.c.Do(ctx, "SETNX", value, quota); err != nil {
			return false, err
		}
		free, err := b.number(ctx, "GET", value)
		if err != nil || free < 1 {
			return false, err
		}
		grant++
		now, err := b.now(ctx)
		if err != nil {
			return false, err
		}
		_, err = b.tx(ctx, 0, []any{"ZADD", permits, now, grant}, []any{"DECRBY", value, 1})
		return err == nil, err
	}
	var allowed int64
	for range 2 { // starts of the program
		if err := setRate(); err != nil {
			return 0, err
		}
		n, err := burst(tryAcquire)
		if err != nil {
			return 0, err
		}
		allowed += n
	}
	return allowed, nil
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
		err = l.SetRate(limit.Per(quota, hour), 0)
	}
	after, err2 := burst(call)
	return before + after, errors.Join(err, err2)
}
