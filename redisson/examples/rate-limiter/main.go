// Command rate-limiter shares one rate limiter with Java programs, in the layout of
// Redisson.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/example"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/redisson"
)

func main() { example.Main(run) }

// interval is short, so that the program ends soon.
const interval = 400 * time.Millisecond

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	for _, part := range []func(context.Context, *ebb.Conn, io.Writer) error{overall, perClient, lifetime, traps, line} {
		if err := part(ctx, c, w); err != nil {
			return err
		}
	}
	return nil
}

// overall shows a limit that all programs share: a parcel service accepts three requests
// in an interval from all of a shop's programs together.
func overall(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	labels, err := redisson.NewRateLimiter(c, "labels")
	if err != nil {
		return err
	}
	if _, err := labels.TryAcquire(ctx, 1, 0); !errors.Is(err, redisson.ErrNoRate) {
		return fmt.Errorf("without a rate: %v", err)
	}
	fmt.Fprintln(w, "no rate yet:       an error says so")
	rate := redisson.Rate{Type: redisson.Overall, Rate: 3, Interval: interval}
	for range 2 {
		set, err := labels.TrySetRate(ctx, rate)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "trySetRate:        %v\n", set)
	}
	if _, err := labels.TryAcquire(ctx, 4, 0); !errors.Is(err, limit.ErrTooMuch) {
		return fmt.Errorf("more than the rate: %v", err)
	}
	fmt.Fprintln(w, "4 of a rate of 3:  an error says that it can never be")
	for range 4 {
		ok, err := labels.TryAcquire(ctx, 1, 0)
		if err != nil {
			return err
		}
		free, err := labels.AvailablePermits(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "tryAcquire(1):     %-5v  %d free\n", ok, free)
	}
	ok, err := labels.TryAcquire(ctx, 1, interval/8)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "waiting briefly:   %v, known at once\n", ok)
	if ok, err = labels.TryAcquire(ctx, 2, 10*interval); err != nil {
		return err
	}
	fmt.Fprintf(w, "waiting longer:    %v\n", ok)
	kinds := make([]string, 3)
	for i, key := range []string{"labels", "{labels}:value", "{labels}:permits"} {
		v, err := c.Do(ctx, "TYPE", key)
		if err != nil {
			return err
		}
		kinds[i] = key + " is a " + v.String()
	}
	fmt.Fprintf(w, "what Java finds:   %s, %s, %s\n\n", kinds[0], kinds[1], kinds[2])
	err = labels.Delete(ctx)
	return err
}

// perClient shows a rate per program: each of two programs has a rate of its own.
func perClient(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	for _, client := range []string{"billing", "shipping"} {
		l, err := redisson.NewRateLimiter(c, "mail", redisson.RateLimiterOptions{Client: client})
		if err != nil {
			return err
		}
		if _, err := l.TrySetRate(ctx, redisson.Rate{Type: redisson.PerClient, Rate: 2, Interval: time.Minute}); err != nil {
			return err
		}
		granted := 0
		for range 5 {
			ok, err := l.TryAcquire(ctx, 1, 0)
			if err != nil {
				return err
			}
			if ok {
				granted++
			}
		}
		fmt.Fprintf(w, "per client:        %s got %d of 5\n", client, granted)
		if err := l.Delete(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	return nil
}

// lifetime shows a limiter that expires, and then one that does not.
func lifetime(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	sale, err := redisson.NewRateLimiter(c, "sale")
	if err != nil {
		return err
	}
	if err := sale.SetRate(ctx, redisson.Rate{Rate: 100, Interval: time.Second}); err != nil {
		return err
	}
	expires, err := sale.Expire(ctx, time.Hour)
	if err != nil {
		return err
	}
	cleared, err := sale.ClearExpire(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "expire:            %v\nclearExpire:       %v\n\n", expires, cleared)
	err = sale.Delete(ctx)
	return err
}

// traps are two properties of Redisson's limiter that surprise its users, as measured here.
func traps(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	l, err := redisson.NewRateLimiter(c, "trap")
	if err != nil {
		return err
	}
	rate := redisson.Rate{Rate: 3, Interval: time.Hour}
	if err := l.SetRate(ctx, rate); err != nil {
		return err
	}
	granted := 0
	take := func() error {
		for {
			ok, err := l.TryAcquire(ctx, 1, 0)
			if err != nil || !ok {
				return err
			}
			granted++
		}
	}
	if err := take(); err != nil {
		return err
	}
	if err := l.SetRate(ctx, rate); err != nil {
		return err
	}
	if err := take(); err != nil {
		return err
	}
	fmt.Fprintf(w, "setRate again:     %d permits granted within an hour, where the rate is %d\n", granted, rate.Rate)
	if err := l.Delete(ctx); err != nil {
		return err
	}

	// EXPIRE before the first permit concerns the one key that exists. The commands of older
	// versions of Redisson's tryAcquire leave the two others without a TTL; ours give it to them.
	java := func() error {
		var b ebb.Batch
		b.Do("SET", "{trap}:value", rate.Rate)
		b.Do("ZADD", "{trap}:permits", 1, "a permit")
		b.Do("DECRBY", "{trap}:value", 1)
		_, err := c.Pipeline(ctx, &b)
		return err
	}
	ours := func() error {
		_, err := l.TryAcquire(ctx, 1, 0)
		return err
	}
	for _, way := range []struct {
		name string
		take func() error
	}{{"expire, then Java:", java}, {"expire, then Go:", ours}} {
		if err := l.SetRate(ctx, rate); err != nil {
			return err
		}
		if _, err := l.Expire(ctx, time.Hour); err != nil {
			return err
		}
		if err := way.take(); err != nil {
			return err
		}
		forever := 0
		for _, key := range []string{"trap", "{trap}:value", "{trap}:permits"} {
			ttl, err := c.TTL(ctx, key)
			if err != nil {
				return err
			}
			if ttl == ebb.Forever {
				forever++
			}
		}
		fmt.Fprintf(w, "%-18s %d of 3 keys stay for ever\n", way.name, forever)
		if err := l.Delete(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	return nil
}

// line shows a large request and small ones that wait. With a line they are served in
// their order; without one the large request would starve.
func line(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	l, err := redisson.NewRateLimiter(c, "uploads", redisson.RateLimiterOptions{Fair: true})
	if err != nil {
		return err
	}
	if err := l.SetRate(ctx, redisson.Rate{Rate: 3, Interval: interval}); err != nil {
		return err
	}
	if err := l.Acquire(ctx, 3); err != nil {
		return err
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	for _, permits := range []int64{3, 1, 1} {
		wg.Go(func() {
			err := l.Acquire(ctx, permits)
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
			fmt.Fprintf(w, "in line:           %d served\n", permits)
		})
		time.Sleep(interval / 10)
	}
	wg.Wait()
	err = l.Delete(ctx)
	return errors.Join(failed, err)
}
