package main

import (
	"context"
	"fmt"
	"time"
)

// burstInZset and steadyInZset are two traps of the sliding window in many articles: ZADD of the millisecond under the
// millisecond, removal of what has left the window, and ZCARD. Calls of one millisecond are one member, and refused
// calls count.
var (
	burstInZset = classic{
		title: "a sliding window by ZADD of the millisecond: 20 calls come in one millisecond",
		right: fmt.Sprint(quota),
		rows: []row{
			{"allowed", func(ctx context.Context, b *bench) (int64, error) {
				now, err := b.now(ctx)
				if err != nil {
					return 0, err
				}
				return burst(func() (bool, error) { return b.inZset(ctx, now, time.Second) })
			}},
			{"limit.Allow, sliding log", func(ctx context.Context, b *bench) (int64, error) {
				l, err := newLimit(b.c, b.key("logins"), time.Minute)
				if err != nil {
					return 0, err
				}
				return burst(func() (bool, error) {
					r, err := l.Allow(ctx, "ann")
					return r.Allowed, err
				})
			}},
		},
	}
	steadyInZset = classic{
		title: "the same: a caller tries 30 times in 3 windows, steadily",
		right: fmt.Sprint(3 * quota),
		rows: []row{
			{"allowed", func(ctx context.Context, b *bench) (int64, error) {
				return inTime(func(period time.Duration) (int64, bool, error) {
					return b.steadily(ctx, period, func(now int64) (bool, error) { return b.inZset(ctx, now, period) })
				})
			}},
			{"limit.Allow, sliding log", func(ctx context.Context, b *bench) (int64, error) {
				return inTime(func(period time.Duration) (int64, bool, error) {
					l, err := newLimit(b.c, b.key(fmt.Sprint("logins-", period)), period)
					if err != nil {
						return 0, false, err
					}
					return b.steadily(ctx, period, func(int64) (bool, error) {
						r, err := l.Allow(ctx, "ann")
						return r.Allowed, err
					})
				})
			}},
		},
	}
)

// inZset is one call of the classic sliding window, at the millisecond now of the client.
func (b *bench) inZset(ctx context.Context, now int64, period time.Duration) (bool, error) {
	key, window := b.key(fmt.Sprint("ann:", period)), period.Milliseconds()
	n, err := b.tx(ctx, 2,
		[]any{"ZADD", key, now, now},
		[]any{"ZREMRANGEBYSCORE", key, "-inf", now - window},
		[]any{"ZCARD", key},
		[]any{"PEXPIRE", key, window})
	return n <= quota, err
}

// burst calls 20 times, and returns the number of allowed calls.
func burst(call func() (bool, error)) (allowed int64, err error) {
	for range 20 {
		ok, err := call()
		if err != nil {
			return 0, err
		}
		if ok {
			allowed++
		}
	}
	return allowed, nil
}

// steadily calls ten times in each of three periods, and returns the number of allowed calls. It reports whether
// all calls came at their time.
func (b *bench) steadily(ctx context.Context, period time.Duration, call func(now int64) (bool, error)) (allowed int64,
	inTime bool, err error) {
	start, err := b.now(ctx)
	if err != nil {
		return 0, false, err
	}
	inTime = true
	pace := period.Milliseconds() / 10
	for i := range int64(30) {
		now, err := b.sleepUntil(ctx, start+i*pace)
		if err != nil {
			return 0, false, err
		}
		ok, err := call(now)
		if err != nil {
			return 0, false, err
		}
		if ok {
			allowed++
		}
		end, err := b.now(ctx)
		if err != nil {
			return 0, false, err
		}
		inTime = inTime && end < start+(i+2)*pace
	}
	return allowed, inTime, nil
}
