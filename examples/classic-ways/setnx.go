package main

import (
	"context"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/lock"
)

// setnx is the lock of two commands. A client that dies between them leaves a lock that never ends.
var setnx = classic{
	title: "a lock by SETNX and EXPIRE: the client dies between the two",
	right: "0",
	rows: []row{
		{"locks that stay for ever", func(ctx context.Context, b *bench) (int64, error) {
			return b.deaths(ctx, func(ctx context.Context, c *ebb.Conn) error {
				v, err := c.Do(ctx, "SETNX", b.key("report"), "worker-1")
				if err == nil && v.Int == 1 {
					_, err = c.Do(ctx, "EXPIRE", b.key("report"), 30)
				}
				return err
			})
		}},
		{"lock.TryAcquire", func(ctx context.Context, b *bench) (int64, error) {
			return b.deaths(ctx, func(ctx context.Context, c *ebb.Conn) error {
				l, err := lock.New(c, b.key("report"))
				if err == nil {
					_, err = l.TryAcquire(ctx) // the lease ends with the process
				}
				return err
			})
		}},
	},
}
