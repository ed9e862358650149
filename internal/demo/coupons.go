package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/conn"
)

const (
	coupons = 50_000 // of each minute
	batch   = 500    // written together
)

// coupons writes 50,000 keys in the first forty seconds of each minute, which all expire at
// the next full minute of the server's clock.
func (s *shop) coupons(ctx context.Context) error {
	for {
		now, err := s.now(ctx)
		if err != nil {
			return err
		}
		end := now.Truncate(time.Minute).Add(time.Minute)
		n := coupons
		if left := end.Sub(now); left < 40*time.Second { // the shop has just opened
			n = int(coupons * left / (40 * time.Second))
		}
		if err := s.issue(ctx, n, end); err != nil {
			return err
		}
		if now, err = s.now(ctx); err != nil {
			return err
		}
		if !s.pause(ctx, max(0, end.Sub(now))) {
			return ctx.Err()
		}
	}
}

// issue writes n coupons that expire at end.
func (s *shop) issue(ctx context.Context, n int, end time.Time) error {
	for from := 0; from < n; from += batch {
		var b conn.Batch
		for i := from; i < min(from+batch, n); i++ {
			b.Do("SET", fmt.Sprintf("coupon:%s:%05d", end.UTC().Format("1504"), i), "5 %", "PXAT", end.UnixMilli())
		}
		if _, err := s.c.Pipeline(ctx, &b); err != nil {
			return err
		}
		if !s.pause(ctx, 35*time.Second*batch/coupons) {
			return ctx.Err()
		}
	}
	return nil
}

// now returns the time of the server.
func (s *shop) now(ctx context.Context) (time.Time, error) {
	v, err := s.c.Do(ctx, "TIME")
	if err != nil {
		return time.Time{}, err
	}
	var parts [2]int64
	for i, e := range v.Elems {
		if parts[i], err = e.AsInt(); err != nil {
			return time.Time{}, fmt.Errorf("TIME: %w", err)
		}
	}
	return time.Unix(parts[0], parts[1]*1000), nil
}
