// Command unique-visitors counts the visitors of a site, over all time and over the last
// seconds, in a few KiB.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/example"
	"github.com/ebbdb/ebb/unique"
)

func main() { example.Main(run) }

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	clean := func() error {
		var all []error
		for _, name := range []string{"example:site", "example:shop", "example:all", "example:live"} {
			u, err := unique.New(c, name, window(name))
			if err == nil {
				err = u.Delete(context.WithoutCancel(ctx))
			}
			all = append(all, err)
		}
		return errors.Join(all...)
	}
	if err := clean(); err != nil { // in case the program ran before
		return err
	}
	defer func() { _ = clean() }()
	if err := howExact(ctx, c, w); err != nil {
		return err
	}
	if err := inside(ctx, c, w); err != nil {
		return err
	}
	if err := together(ctx, c, w); err != nil {
		return err
	}
	return lately(ctx, c, w)
}

// window returns the options of a counter over the last moments.
func window(name string) unique.Options {
	if name == "example:live" {
		return unique.Options{Window: 2 * time.Second, Bucket: 100 * time.Millisecond, TTL: time.Minute}
	}
	return unique.Options{TTL: time.Hour}
}

func people(from, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("visitor-%d", from+i)
	}
	return all
}

// howExact compares the estimate with the exact count.
func howExact(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	site, err := unique.New(c, "example:site", unique.Options{TTL: time.Hour})
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "different visitors, and what the counter says (expected error: 0.81 %)")
	done := 0
	for _, n := range []int{10, 100, 1000, 10_000, 100_000} {
		if err := site.Add(ctx, people(done, n-done)...); err != nil {
			return err
		}
		if err := site.Add(ctx, people(0, n/10)...); err != nil { // some come again
			return err
		}
		done = n
		got, err := site.Count(ctx)
		if err != nil {
			return err
		}
		bytes, err := c.Do(ctx, "STRLEN", "example:site")
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "  %6d  %6d  %+.2f %%  in %d bytes\n", n, got, 100*(float64(got)/float64(n)-1), bytes.Int)
	}
	return nil
}

// inside shows the registers of a counter, of which there are 16384. An item's hash
// chooses one, which keeps the longest run of zeros that it has seen; so its size does not
// grow with the number of items.
func inside(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	const name = "example:registers"
	defer func() { _, _ = c.Del(context.WithoutCancel(ctx), name) }()
	fmt.Fprintln(w, "registers of a counter, by PFDEBUG GETREG")
	counter, err := unique.New(c, name, unique.Options{TTL: time.Hour})
	if err != nil {
		return err
	}
	done := 0
	for _, n := range []int{1000, 10_000, 100_000} {
		if err := counter.Add(ctx, people(done, n-done)...); err != nil {
			return err
		}
		done = n
		v, err := c.Do(ctx, "PFDEBUG", "GETREG", name)
		if err != nil {
			return err
		}
		set, largest, sum := 0, int64(0), int64(0)
		for _, e := range v.Elems {
			r, err := e.AsInt()
			if err != nil {
				return err
			}
			if r > 0 {
				set++
			}
			largest, sum = max(largest, r), sum+r
		}
		fmt.Fprintf(w, "  %6d visitors: %5d of %d are set, %.1f on average, %d at most\n", n, set, len(v.Elems),
			float64(sum)/float64(len(v.Elems)), largest)
	}

	const counters, each = 40, 5000
	var square, worst float64
	for i := range counters {
		if _, err := c.Del(ctx, name); err != nil {
			return err
		}
		if err := counter.Add(ctx, people(1_000_000*(i+1), each)...); err != nil {
			return err
		}
		n, err := counter.Count(ctx)
		if err != nil {
			return err
		}
		off := float64(n)/each - 1
		square, worst = square+off*off, max(worst, math.Abs(off))
	}
	fmt.Fprintf(w, "%d counters of %d visitors each: a standard error of %.2f %%, the worst is off by %.2f %%\n", counters, each,
		100*math.Sqrt(square/counters), 100*worst)
	return nil
}

// together unites two counters: a visitor in both counts once.
func together(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	shop, err := unique.New(c, "example:shop", unique.Options{TTL: time.Hour})
	if err != nil {
		return err
	}
	if err := shop.Add(ctx, people(90_000, 20_000)...); err != nil {
		return err
	}
	site, err := unique.New(c, "example:site", unique.Options{TTL: time.Hour})
	if err != nil {
		return err
	}
	all, err := unique.New(c, "example:all", unique.Options{TTL: time.Hour})
	if err != nil {
		return err
	}
	if err := all.Merge(ctx, site, shop); err != nil {
		return err
	}
	n, err := all.Count(ctx)
	fmt.Fprintf(w, "100000 on the site and 20000 in the shop, 10000 of them in both, are about 110000: %d\n", n)
	return err
}

// lately counts the visitors of the last moments.
func lately(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	live, err := unique.New(c, "example:live", window("example:live"))
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "the visitors of the last half second, while 100 come and the next 100 after them")
	for round := range 4 {
		if round < 2 {
			if err := live.Add(ctx, people(100*round, 100)...); err != nil {
				return err
			}
		}
		n, err := live.CountLast(ctx, 500*time.Millisecond)
		if err != nil {
			return err
		}
		all, err := live.Count(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "  after %.1f s: %3d lately, %3d in all\n", 0.4*float64(round), n, all)
		if err := example.Sleep(ctx, 400*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
