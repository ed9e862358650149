package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/internal/example"
)

// border is the limiter with a counter for each minute. A caller that comes at the end of one and at the beginning of the next
// gets twice the limit in a moment.
var border = classic{
	title: "a counter for each window: the caller comes around the border of two windows",
	right: fmt.Sprint(quota),
	rows: []row{
		{"allowed within one window's time", func(ctx context.Context, b *bench) (int64, error) {
			return inTime(func(period time.Duration) (int64, bool, error) {
				return b.aroundTheBorder(ctx, period, func() (bool, error) {
					now, err := b.now(ctx)
					if err != nil {
						return false, err
					}
					key := b.key(fmt.Sprint("ann:", now/period.Milliseconds()))
					n, err := b.tx(ctx, 0, []any{"INCR", key}, []any{"PEXPIRE", key, 2 * period.Milliseconds()})
					return n <= quota, err
				})
			})
		}},
		{"limit.Allow, sliding log", func(ctx context.Context, b *bench) (int64, error) {
			return inTime(func(period time.Duration) (int64, bool, error) {
				l, err := newLimit(b.c, b.key(fmt.Sprint("logins-", period)), period)
				if err != nil {
					return 0, false, err
				}
				return b.aroundTheBorder(ctx, period, func() (bool, error) {
					r, err := l.Allow(ctx, "ann")
					return r.Allowed, err
				})
			})
		}},
	},
}

// aroundTheBorder calls most times just before the border of two windows, and most times just after it. It returns the number of allowed
// calls, and reports whether all came at their time.
func (b *bench) aroundTheBorder(ctx context.Context, period time.Duration, call func() (bool, error)) (allowed int64, ok bool, err error) {
	window := period.Milliseconds()
	now, err := b.now(ctx)
	if err != nil {
		return 0, false, err
	}
	next := now - now%window + window // the border
	if next-now < window/5 {
		next += window
	}
	calls := func(at int64) (first, last int64, err error) {
		if first, err = b.sleepUntil(ctx, at); err != nil {
			return 0, 0, err
		}
		for range quota {
			ok, err := call()
			if err != nil {
				return 0, 0, err
			}
			if ok {
				allowed++
			}
		}
		last, err = b.now(ctx)
		return first, last, err
	}
	first, before, err := calls(next - window/5)
	if err != nil {
		return 0, false, err
	}
	after, last, err := calls(next)
	return allowed, before < next && after >= next && last-first < window, err
}

// sleepUntil sleeps until an instant of the server's clock in ms, and returns the instant at which it ends.
func (b *bench) sleepUntil(ctx context.Context, at int64) (now int64, err error) {
	for {
		if now, err = b.now(ctx); err != nil || now >= at {
			return now, err
		}
		if err := example.Sleep(ctx, time.Duration(at-now)*time.Millisecond); err != nil {
			return now, err
		}
	}
}
