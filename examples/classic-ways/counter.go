package main

import (
	"context"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/limit"
)

// counter is the limiter of INCR, and EXPIRE after the first. A client that dies between the two leaves a counter that
// never ends, and its user stays refused.
var counter = classic{
	title: "a limiter by INCR and EXPIRE: the client dies between the two",
	right: "0",
	rows: []row{
		{"counters that stay for ever", func(ctx context.Context, b *bench) (int64, error) {
			return b.deaths(ctx, func(ctx context.Context, c *ebb.Conn) error {
				n, err := c.Incr(ctx, b.key("ann"))
				if err == nil && n == 1 {
					_, err = c.Do(ctx, "EXPIRE", b.key("ann"), 60)
				}
				return err
			})
		}},
		{"limit.Allow", func(ctx context.Context, b *bench) (int64, error) {
			return b.deaths(ctx, func(ctx context.Context, c *ebb.Conn) error {
				l, err := newLimit(c, b.key("logins"), time.Minute)
				if err == nil {
					_, err = l.Allow(ctx, "ann")
				}
				return err
			})
		}},
	},
}

// quota is the limit of all limiters here, in a period.
const quota = 5

// newLimit returns a limiter that allows exactly quota requests in any period.
func newLimit(c *ebb.Conn, name string, period time.Duration) (*limit.Limiter, error) {
	return limit.New(c, name, limit.Per(quota, period), limit.FailClosed,
		limit.Options{Algorithm: limit.SlidingLog, Timeout: 10 * time.Second})
}
