// Command herd measures what readers of expiring keys see, and how often these are loaded: with package
// cache, with GET and SET NX by hand, and with a flight in each process.
//
//	go run ./cmd/herd -url redis://127.0.0.1:6379
//	go run ./cmd/herd -keys 1000 -readers 200 -load 100ms -fresh 1s -invalidate 100ms
//
// Readers are spread over programs with a connection of their own. Each reads a key, those with low numbers more often
// (Zipf), pauses for a random time, and reads again. With -invalidate a writer changes the source of such a key and removes
// the key. A line of the result has the loads for each expiry or removal of a key that a reader met, the percentiles of the
// reads, and the number of reads that returned a value from before a removal that had returned when they began.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/cache"
)

var (
	url      = flag.String("url", "mem://", "the backend; mem:// is one engine for all programs")
	keys     = flag.Int("keys", 1, "keys")
	removals = flag.Duration("invalidate", 0, "the pause between two changes of the source; 0: no changes")
	programs = flag.Int("programs", 8, "programs")
	readers  = flag.Int("readers", 1000, "readers in all programs")
	loading  = flag.Duration("load", 50*time.Millisecond, "the time of a load")
	period   = flag.Duration("fresh", 500*time.Millisecond, "the time for which a value is fresh")
	pause    = flag.Duration("pause", 40*time.Millisecond, "the mean pause of a reader")
	only     = flag.String("only", "", "measure the ways alone whose names contain this")
	during   = flag.Duration("for", 10*time.Second, "the time for which each way is measured")
)

// loader loads the value of a key from the source.
type loader func(ctx context.Context, key string) (string, error)

// reader is the cache of one program.
type reader struct {
	read   func(ctx context.Context, key string) (string, error)
	remove func(ctx context.Context, key string) error
	end    func()
}

// way is a way to read through a cache.
type way struct {
	name string
	open func(c *ebb.Conn, name string, load loader) (reader, error)
}

var ways = []way{
	{"cache, stale meanwhile", func(c *ebb.Conn, name string, load loader) (reader, error) { return cached(c, name, 10**period, load) }},
	{"cache, gone meanwhile", func(c *ebb.Conn, name string, load loader) (reader, error) {
		return cached(c, name, *period+time.Millisecond, load)
	}},
	{"GET, SET NX, retry in 10 ms", byHand},
	{"GET, a flight in each program", flights},
}

func cached(c *ebb.Conn, name string, ttl time.Duration, load loader) (reader, error) {
	x, err := cache.New(c, name, cache.Options[string, string]{Fresh: *period, TTL: ttl})
	if err != nil {
		return reader{}, err
	}
	return reader{
		read: func(ctx context.Context, key string) (string, error) {
			return x.Get(ctx, key, cache.Loader[string, string](load))
		},
		remove: func(ctx context.Context, key string) error { return x.Delete(ctx, key) },
		end:    x.Close,
	}, nil
}

// plain returns a reader of the keys as they are.
func plain(c *ebb.Conn, name string, read func(ctx context.Context, key string) (string, error)) reader {
	return reader{
		read: func(ctx context.Context, key string) (string, error) { return read(ctx, name+":"+key) },
		remove: func(ctx context.Context, key string) error {
			_, err := c.Del(ctx, name+":"+key)
			return err
		},
		end: func() {},
	}
}

func byHand(c *ebb.Conn, name string, load loader) (reader, error) {
	return plain(c, name, func(ctx context.Context, key string) (string, error) {
		for {
			if v, err := c.Get(ctx, key); !errors.Is(err, ebb.ErrNil) {
				return v, err
			}
			mine, err := c.SetNX(ctx, key+":lock", "1", 5*time.Second)
			if err != nil {
				return "", err
			}
			if !mine {
				sleep(ctx, 10*time.Millisecond)
				continue
			}
			v, err := load(ctx, strings.TrimPrefix(key, name+":"))
			if err == nil {
				err = c.SetTTL(ctx, key, v, *period)
			}
			_, failed := c.Del(ctx, key+":lock")
			return v, errors.Join(err, failed)
		}
	}), nil
}

func flights(c *ebb.Conn, name string, load loader) (reader, error) {
	type flight struct {
		done  chan struct{}
		value string
		err   error
	}
	var mu sync.Mutex
	now := map[string]*flight{}
	return plain(c, name, func(ctx context.Context, key string) (string, error) {
		if v, err := c.Get(ctx, key); !errors.Is(err, ebb.ErrNil) {
			return v, err
		}
		mu.Lock()
		f := now[key]
		if f != nil {
			mu.Unlock()
			<-f.done
			return f.value, f.err
		}
		f = &flight{done: make(chan struct{})}
		now[key] = f
		mu.Unlock()
		f.value, f.err = load(ctx, strings.TrimPrefix(key, name+":"))
		if f.err == nil {
			f.err = c.SetTTL(ctx, key, f.value, *period)
		}
		mu.Lock()
		delete(now, key)
		mu.Unlock()
		close(f.done)
		return f.value, f.err
	}), nil
}

// source has the values that are cached: the numbers of their versions, with a text behind them.
type source struct {
	rows            []row
	warm            atomic.Bool // the measurement has begun
	loads, expiries atomic.Int64
}

// row is the value of a key, with what happens to its copy in the cache.
type row struct {
	mu      sync.Mutex
	version int64
	removed int64 // a read that begins now must not return an earlier version
	// An expiry is seen when a load begins although the one before has ended, and its value is no longer fresh or was removed.
	// The loads that follow while there is a fresh value, or while the first load runs, belong to the same expiry.
	expiry   int64
	measured bool      // it was seen after the warm-up
	ended    time.Time // the first load of the expiry; zero while it runs
	stale    bool      // a removal has begun or ended since the first load began
}

// begin notes that a load of the row begins, and returns its version and the expiry to which the load belongs.
func (s *source) begin(r *row) (version, expiry int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Fresh begins later than the load ends, and programs have no common clock: nine tenths.
	over := !r.ended.IsZero() && time.Since(r.ended) >= *period*9/10
	if r.expiry == 0 || r.stale || over {
		r.expiry++
		r.ended, r.stale, r.measured = time.Time{}, false, s.warm.Load()
		if r.measured {
			s.expiries.Add(1)
		}
	}
	if r.measured {
		s.loads.Add(1)
	}
	return r.version, r.expiry
}

// load is a loader.
func (s *source) load(ctx context.Context, key string) (string, error) {
	i, err := strconv.Atoi(key)
	if err != nil {
		return "", err
	}
	r := &s.rows[i]
	version, expiry := s.begin(r)
	sleep(ctx, *loading)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.expiry == expiry && r.ended.IsZero() {
		r.ended = time.Now()
	}
	return strconv.FormatInt(version, 10) + " is the version of a value of some length, as pages have", nil
}

// change changes a row, and removes it from the cache.
func (s *source) change(ctx context.Context, i int, by *reader) error {
	r := &s.rows[i]
	r.mu.Lock()
	r.version++
	version := r.version
	r.stale = true
	r.mu.Unlock()
	err := by.remove(ctx, strconv.Itoa(i))
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.removed = version
	}
	r.stale = true
	return err
}

// read reads a row through a cache, and reports whether the value is older than a removal that had returned before.
func (s *source) read(ctx context.Context, i int, by *reader) (old bool, err error) {
	r := &s.rows[i]
	r.mu.Lock()
	least := r.removed
	r.mu.Unlock()
	v, err := by.read(ctx, strconv.Itoa(i))
	if err != nil {
		return false, err
	}
	number, _, _ := strings.Cut(v, " ")
	version, err := strconv.ParseInt(number, 10, 64)
	return version < least, err
}

// skew is the exponent of Zipf's law for the keys.
const skew = 1.1

// drawer returns a function that draws keys.
func drawer(seed uint64) func() int {
	z := rand.NewZipf(rand.New(rand.NewPCG(seed, 0)), skew, 1, uint64(*keys-1))
	return func() int { return int(z.Uint64()) }
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
	fmt.Printf("%d readers in %d programs, %d keys, a load of %v, fresh for %v, a change each %v, on %s\n", *readers, *programs, *keys,
		*loading, *period, *removals, *url)
	fmt.Printf("%-31s %8s %8s %8s %12s %9s %9s %9s %9s %6s\n",
		"", "reads", "expiries", "loads", "loads/expiry", "p50", "p99", "p99.9", "most", "old")
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
func measure(ctx context.Context, conns []*ebb.Conn, w way, name string) error {
	s := &source{rows: make([]row, *keys)}
	var by []reader
	for _, c := range conns {
		r, err := w.open(c, name, s.load)
		if err != nil {
			return err
		}
		defer r.end() // which may be called twice
		by = append(by, r)
	}
	var ended atomic.Bool
	var old atomic.Int64
	times, errs := make([][]time.Duration, *readers), make([]error, *readers+1)
	var all sync.WaitGroup
	for i := range *readers {
		all.Go(func() {
			next := drawer(uint64(i))
			sleep(ctx, rand.N(2**pause))
			for !ended.Load() {
				at, warm := time.Now(), s.warm.Load()
				early, err := s.read(ctx, next(), &by[i%len(by)])
				if err != nil {
					errs[i] = err
					return
				}
				if warm {
					times[i] = append(times[i], time.Since(at))
					if early {
						old.Add(1)
					}
				}
				sleep(ctx, rand.N(2**pause))
			}
		})
	}
	if *removals > 0 {
		all.Go(func() {
			next := drawer(uint64(*readers))
			for n := 0; !ended.Load() && errs[*readers] == nil; n++ {
				errs[*readers] = s.change(ctx, next(), &by[n%len(by)])
				sleep(ctx, *removals)
			}
		})
	}
	sleep(ctx, warmup) // connections are opened, and scripts loaded
	s.warm.Store(true)
	sleep(ctx, *during)
	ended.Store(true)
	all.Wait()
	for _, r := range by {
		r.end() // loads in the background
	}
	s.print(w.name, slices.Concat(times...), old.Load())
	return errors.Join(errs...)
}

// print prints the line of a way.
func (s *source) print(name string, times []time.Duration, old int64) {
	slices.Sort(times)
	at := func(share float64) time.Duration {
		if len(times) == 0 {
			return 0
		}
		return times[min(len(times)-1, int(share*float64(len(times))))].Round(10 * time.Microsecond)
	}
	expiries, loads := s.expiries.Load(), s.loads.Load()
	fmt.Printf("%-31s %8d %8d %8d %12.2f %9v %9v %9v %9v %6d\n", name, len(times), expiries, loads, float64(loads)/float64(max(expiries, 1)),
		at(0.5), at(0.99), at(0.999), at(1), old)
}
