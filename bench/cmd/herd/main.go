// Command herd measures what readers of one expiring key see, and how often it is loaded: with package
// cache, with GET and SET NX by hand, and with a flight in each process.
//
//	go run ./cmd/herd -url redis://127.0.0.1:6379
//
// Readers are spread over programs with a connection of their own. Each reads, pauses for a random time, and
// reads again. A line of the result has the loads for each period of the key, and percentiles of the reads.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/cache"
)

var (
	url      = flag.String("url", "mem://", "the backend; mem:// is one engine for all programs")
	programs = flag.Int("programs", 8, "programs")
	readers  = flag.Int("readers", 1000, "readers in all programs")
	loading  = flag.Duration("load", 50*time.Millisecond, "the time of a load")
	period   = flag.Duration("fresh", 500*time.Millisecond, "the time for which a value is fresh")
	pause    = flag.Duration("pause", 40*time.Millisecond, "the mean pause of a reader")
	only     = flag.String("only", "", "measure the ways alone whose names contain this")
	during   = flag.Duration("for", 10*time.Second, "the time for which each way is measured")
)

// reader reads the key once for one program.
type reader func(ctx context.Context) error

// way is a way to read through a cache.
type way struct {
	name string
	open func(c *ebb.Conn, key string, load func(context.Context) (string, error)) (reader, func(), error)
}

var ways = []way{
	{"cache, stale meanwhile", func(c *ebb.Conn, key string, load func(context.Context) (string, error)) (reader, func(), error) {
		return cached(c, key, 10**period, load)
	}},
	{"cache, gone meanwhile", func(c *ebb.Conn, key string, load func(context.Context) (string, error)) (reader, func(), error) {
		return cached(c, key, *period+time.Millisecond, load)
	}},
	{"GET, SET NX, retry in 10 ms", byHand},
	{"GET, a flight in each program", flights},
}

func cached(c *ebb.Conn, key string, ttl time.Duration, load func(context.Context) (string, error)) (reader, func(), error) {
	x, err := cache.New(c, key, cache.Options[string, string]{Fresh: *period, TTL: ttl})
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) error {
		_, err := x.Get(ctx, "k", func(ctx context.Context, _ string) (string, error) { return load(ctx) })
		return err
	}, x.Close, nil
}

func byHand(c *ebb.Conn, key string, load func(context.Context) (string, error)) (reader, func(), error) {
	return func(ctx context.Context) error {
		for {
			if _, err := c.Get(ctx, key); !errors.Is(err, ebb.ErrNil) {
				return err
			}
			mine, err := c.SetNX(ctx, key+":lock", "1", 5*time.Second)
			if err != nil {
				return err
			}
			if !mine {
				sleep(ctx, 10*time.Millisecond)
				continue
			}
			v, err := load(ctx)
			if err == nil {
				err = c.SetTTL(ctx, key, v, *period)
			}
			_, failed := c.Del(ctx, key+":lock")
			return errors.Join(err, failed)
		}
	}, func() {}, nil
}

func flights(c *ebb.Conn, key string, load func(context.Context) (string, error)) (reader, func(), error) {
	type flight struct {
		done chan struct{}
		err  error
	}
	var mu sync.Mutex
	var now *flight
	return func(ctx context.Context) error {
		if _, err := c.Get(ctx, key); !errors.Is(err, ebb.ErrNil) {
			return err
		}
		mu.Lock()
		f := now
		if f != nil {
			mu.Unlock()
			<-f.done
			return f.err
		}
		f = &flight{done: make(chan struct{})}
		now = f
		mu.Unlock()
		v, err := load(ctx)
		if err == nil {
			err = c.SetTTL(ctx, key, v, *period)
		}
		mu.Lock()
		f.err, now = err, nil
		mu.Unlock()
		close(f.done)
		return err
	}, func() {}, nil
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "herd:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx := context.Background()
	var conns []*ebb.Conn
	for len(conns) < *programs {
		if *url == "mem://" && len(conns) > 0 {
			conns = append(conns, conns[0])
			continue
		}
		c, err := ebb.Open(ctx, *url)
		if err != nil {
			return err
		}
		defer c.Close()
		conns = append(conns, c)
	}
	fmt.Printf("%d readers in %d programs, a load of %v, fresh for %v, on %s\n", *readers, *programs, *loading, *period, *url)
	fmt.Printf("%-31s %8s %8s %12s %9s %9s %9s %9s\n", "", "reads", "loads", "loads/period", "p50", "p99", "p99.9", "most")
	for i, w := range ways {
		if !strings.Contains(w.name, *only) {
			continue
		}
		if err := measure(ctx, conns, w, fmt.Sprintf("bench:herd:%d:%d", os.Getpid(), i)); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

// warmup is the time before the measurement.
const warmup = 2 * time.Second

// measure lets the readers read for a while.
func measure(ctx context.Context, conns []*ebb.Conn, w way, key string) error {
	var loads atomic.Int64
	var warm, ended atomic.Bool
	load := func(ctx context.Context) (string, error) {
		loads.Add(1)
		sleep(ctx, *loading)
		return "a value of some length, as pages have", nil
	}
	var reads []reader
	for _, c := range conns {
		read, end, err := w.open(c, key, load)
		if err != nil {
			return err
		}
		defer end()
		reads = append(reads, read)
	}
	times, errs := make([][]time.Duration, *readers), make([]error, *readers)
	var all sync.WaitGroup
	for i := range *readers {
		all.Go(func() {
			sleep(ctx, rand.N(2**pause))
			for !ended.Load() {
				at := time.Now()
				if err := reads[i%len(reads)](ctx); err != nil {
					errs[i] = err
					return
				}
				if warm.Load() {
					times[i] = append(times[i], time.Since(at))
				}
				sleep(ctx, rand.N(2**pause))
			}
		})
	}
	sleep(ctx, warmup) // connections are opened, and scripts loaded
	warm.Store(true)
	began, before := time.Now(), loads.Load()
	sleep(ctx, *during)
	loaded, took := loads.Load()-before, time.Since(began)
	ended.Store(true)
	all.Wait()
	// A period is the time in which a value is fresh, and that of its load.
	periods := float64(took) / float64(*period+*loading)
	sorted := slices.Concat(times...)
	slices.Sort(sorted)
	at := func(share float64) time.Duration {
		return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))].Round(10 * time.Microsecond)
	}
	fmt.Printf("%-31s %8d %8d %12.2f %9v %9v %9v %9v\n", w.name, len(sorted), loaded, float64(loaded)/periods, at(0.5), at(0.99), at(0.999), at(1))
	return errors.Join(errs...)
}
