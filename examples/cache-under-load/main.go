// Command cache-under-load reads one expiring value from many goroutines in three programs, with package
// cache and with GET and SET NX by hand, and prints how often the value is loaded and how long the reads take.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/cache"
	"github.com/ebbdb/ebb/internal/example"
)

func main() { example.Main(run) }

const (
	programs = 3
	readers  = 20                     // of each program
	slow     = 40 * time.Millisecond  // the time of a load
	fresh    = 200 * time.Millisecond // how long a value is fresh
	pause    = 40 * time.Millisecond  // at most, between two reads
	during   = 1200 * time.Millisecond
)

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	for _, way := range []struct {
		name string
		open func(c *ebb.Conn, o *origin) (reader, func(), error)
	}{
		{"package cache: one refresher, the others get the stale value", withCache},
		{"by hand: GET, SET NX, and a new attempt after 10 ms", byHand},
	} {
		f, err := measure(ctx, c, way.open)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "  %s\n    %d reads, %d loads in %d expiries: %.1f for each; p50 %v, p99 %v\n", way.name, f.reads, f.loads, f.expiries,
			float64(f.loads)/float64(f.expiries), f.p50.Round(10*time.Microsecond), f.p99.Round(10*time.Microsecond))
	}
	return nil
}

// figures are the result of one way.
type figures struct {
	reads, loads, expiries int
	p50, p99               time.Duration
}

// origin is the slow source of the value, such as a database. It counts loads, and the expiries that were
// the reason of them.
type origin struct {
	mu       sync.Mutex // guards what follows
	loads    int
	expiries int
	loading  bool
	until    time.Time // the value is fresh until then
}

func (o *origin) load(ctx context.Context) (string, error) {
	o.begin()
	err := example.Sleep(ctx, slow)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.loading, o.until = false, time.Now().Add(fresh)
	return "<h1>home</h1>", err
}

func (o *origin) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.loads++
	if !o.loading && !time.Now().Before(o.until) {
		o.expiries++
	}
	o.loading = true
}

// reader reads the value once.
type reader func(ctx context.Context) error

// withCache reads with package cache: GETFRESH on ebb, scripts elsewhere.
func withCache(c *ebb.Conn, o *origin) (reader, func(), error) {
	pages, err := cache.New[string, string](c, "page", cache.Options[string, string]{Fresh: fresh, TTL: 10 * fresh})
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) error {
		_, err := pages.Get(ctx, "home", func(ctx context.Context, _ string) (string, error) { return o.load(ctx) })
		return err
	}, pages.Close, nil
}

// byHand reads in the usual way: the program that sets a lock loads, the others come again.
func byHand(c *ebb.Conn, o *origin) (reader, func(), error) {
	read := func(ctx context.Context) error {
		for {
			if _, err := c.Get(ctx, "home"); !errors.Is(err, ebb.ErrNil) {
				return err
			}
			mine, err := c.SetNX(ctx, "home:lock", "1", 5*time.Second)
			if err != nil {
				return err
			}
			if !mine {
				if err := example.Sleep(ctx, 10*time.Millisecond); err != nil {
					return err
				}
				continue
			}
			v, err := o.load(ctx)
			if err == nil {
				err = c.SetTTL(ctx, "home", v, fresh)
			}
			_, failed := c.Del(ctx, "home:lock")
			return errors.Join(err, failed)
		}
	}
	return read, func() {}, nil
}

// measure lets all readers read for a while, and deletes the keys.
func measure(ctx context.Context, c *ebb.Conn, open func(*ebb.Conn, *origin) (reader, func(), error)) (f figures, err error) {
	o := &origin{}
	var all sync.WaitGroup
	took, errs := make([][]time.Duration, programs*readers), make([]error, programs*readers)
	var end time.Time
	var closes []func()
	for p := range programs {
		read, closeProgram, err := open(c, o)
		if err != nil {
			return f, err
		}
		closes = append(closes, closeProgram)
		if p == 0 { // the value is there when the readers begin
			if err := read(ctx); err != nil {
				return f, err
			}
			end = time.Now().Add(during)
		}
		for i := p * readers; i < (p+1)*readers; i++ {
			all.Go(func() {
				for time.Now().Before(end) && errs[i] == nil {
					at := time.Now()
					errs[i] = read(ctx)
					took[i] = append(took[i], time.Since(at))
					_ = example.Sleep(ctx, rand.N(pause))
				}
			})
		}
	}
	all.Wait()
	for _, closeProgram := range closes {
		closeProgram()
	}
	sorted := slices.Sorted(slices.Values(slices.Concat(took...)))
	f = figures{len(sorted), o.loads, o.expiries, sorted[len(sorted)/2], sorted[len(sorted)*99/100]}
	_, failed := c.Del(context.WithoutCancel(ctx), "home", "home:lock", "{page:home}", "{page:home}:load")
	return f, errors.Join(append(errs, failed)...)
}
