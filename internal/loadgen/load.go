package loadgen

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// loadBatch is the number of items that are in flight per connection while loading:
// enough to keep the server busy, few enough for it to answer others between.
const loadBatch = 200

// load sends n items over two connections. add appends the requests of item i
// and returns how many; part says which connection sends it.
func load(ctx context.Context, t Target, n int, line statusLine, what string, add func(c *client, part, i int) int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	const parts = 2
	var wg sync.WaitGroup
	var loaded atomic.Int64
	for part := range parts {
		share := n / parts
		if part == 0 {
			share = n - share*(parts-1)
		}
		wg.Go(func() {
			err := loadPart(ctx, t, share, &loaded, func(c *client, i int) int { return add(c, part, i) })
			if err != nil {
				cancel(err)
			}
		})
	}
	done := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		line.watch(done, func() string {
			return fmt.Sprintf("loading: %s of %s %s", thousands(float64(loaded.Load())), thousands(float64(n)), what)
		})
	})
	wg.Wait()
	close(done)
	shown.Wait()
	return context.Cause(ctx)
}

func loadPart(ctx context.Context, t Target, n int, loaded *atomic.Int64, add func(c *client, i int) int) error {
	c, err := t.client(ctx)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	defer c.closeWith(ctx)()
	for i := 0; i < n; {
		batch, replies := min(loadBatch, n-i), 0
		for j := range batch {
			replies += add(c, i+j)
		}
		if err := c.flush(); err != nil {
			return err
		}
		if err := c.skip(replies); err != nil {
			return err
		}
		loaded.Add(int64(batch))
		i += batch
	}
	return nil
}

// watch renews the line until done, ten times a second.
func (s statusLine) watch(done <-chan struct{}, text func() string) {
	if s.w == nil {
		return
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	defer s.clear()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			s.set("%s", text())
		}
	}
}

// wait sleeps until t, renewing the line; it returns early if ctx ends.
func (s statusLine) wait(ctx context.Context, t time.Time, what string) error {
	defer s.clear()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	over := time.NewTimer(time.Until(t))
	defer over.Stop()
	for {
		select {
		case <-over.C:
			return nil
		case <-tick.C:
			s.set("%s: %.1f s", what, time.Until(t).Seconds())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
