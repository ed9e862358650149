package routing

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// all counts the tries of one call, and how long they take.
func all(ctx context.Context, r *Retry, each time.Duration) (n int, took time.Duration) {
	begin := time.Now()
	for r.Next(ctx) {
		n++
		time.Sleep(each)
	}
	return n, time.Since(begin)
}

func TestItIsTriedForAWhileAndNoLonger(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	closed := make(chan struct{})
	close(closed)
	for _, c := range []struct {
		name string
		ctx  context.Context
		r    Retry
		each time.Duration
		n    int
		took time.Duration
	}{
		{"quick tries", context.Background(), Retry{}, 0, 8, 380 * time.Millisecond},
		{"slow ones", context.Background(), Retry{}, 400 * time.Millisecond, 4, 1628 * time.Millisecond},
		{"the context has ended", ended, Retry{}, 0, 1, 0},
		{"the driver is closed", context.Background(), Retry{Closed: closed}, 0, 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			defer c.r.Stop()
			if n, took := all(c.ctx, &c.r, c.each); n != c.n || took.Round(time.Millisecond) != c.took {
				t.Errorf("%s: %d tries in %v, want %d in %v", c.name, n, took, c.n, c.took)
			}
		})
	}
}
