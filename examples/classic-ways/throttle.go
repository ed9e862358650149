package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/limit"
)

// throttle is CL.THROTTLE of redis-cell. Its second argument is not the burst, as many articles say, but one less.
var throttle = classic{
	title: fmt.Sprintf("CL.THROTTLE ann %d ...: max_burst is taken for the burst", quota),
	right: fmt.Sprint(quota),
	rows: []row{
		{"allowed at once", func(ctx context.Context, b *bench) (int64, error) {
			n, err := burst(func() (bool, error) {
				v, err := b.c.Do(ctx, "CL.THROTTLE", b.key("ann"), quota, quota, 3600)
				if err != nil {
					return false, err
				}
				limited, err := v.Elems[0].AsInt()
				return limited == 0, err
			})
			if unknown(err) {
				return missing, nil // without the module redis-cell
			}
			return n, err
		}},
		{fmt.Sprintf("limit.Options{Burst: %d}", quota), func(ctx context.Context, b *bench) (int64, error) {
			l, err := limit.New(b.c, b.key("logins"), limit.Per(quota, time.Hour), limit.FailClosed,
				limit.Options{Burst: quota, Timeout: 10 * time.Second})
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
