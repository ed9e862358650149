// Command bloom-filter has a Bloom filter that Java programs with Redisson can open too.
package main

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/example"
	"github.com/ebbdb/ebb/redisson"
)

func main() { example.Main(run) }

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	if err := shared(ctx, c, w); err != nil {
		return err
	}
	return fill(ctx, c, w)
}

func pages(from, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("https://example.org/%d", from+i)
	}
	return all
}

func count(all []bool) (n int) {
	for _, yes := range all {
		if yes {
			n++
		}
	}
	return n
}

// shared shows a filter that Java programs with Redisson can open too.
func shared(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	f, err := redisson.NewBloomFilter[string](c, "example:bloom-filter:shared")
	if err != nil {
		return err
	}
	if err := f.Delete(ctx); err != nil {
		return err
	}
	if _, err := f.TryInit(ctx, 1000, 0.01); err != nil {
		return err
	}
	isNew, err := f.AddMany(ctx, pages(0, 500)...)
	if err != nil {
		return err
	}
	cfg, err := f.Config(ctx)
	if err != nil {
		return err
	}
	n, err := f.Count(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "a filter for 1000 values at 1 %%: %d bits, %d for each value; %d were new, the estimate is %d\n",
		cfg.Size, cfg.HashIterations, count(isNew), n)
	return f.Delete(ctx)
}

// fill shows how the rate of mistakes follows from the share of bits that are set: a value is found
// by mistake if all bits that it chooses are set, so the rate is that share to the power of their
// number. The bitmap of Redisson's layout can be read on every backend.
func fill(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	const name, expected, others = "example:bloom-filter:fill", 2000, 4000
	f, err := redisson.NewBloomFilter[string](c, name)
	if err != nil {
		return err
	}
	if err := f.Delete(ctx); err != nil {
		return err
	}
	if _, err := f.TryInit(ctx, expected, 0.01); err != nil {
		return err
	}
	cfg, err := f.Config(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "a filter for %d values at 1 %%: %d bits, of which a value sets %d\n", expected, cfg.Size, cfg.HashIterations)
	done := 0
	for _, n := range []int{500, 1000, 2000, 4000} {
		if _, err := f.AddMany(ctx, pages(done, n-done)...); err != nil {
			return err
		}
		done = n
		set, err := c.Do(ctx, "BITCOUNT", name)
		if err != nil {
			return err
		}
		found, err := f.ContainsMany(ctx, pages(1_000_000, others)...)
		if err != nil {
			return err
		}
		share := float64(set.Int) / float64(cfg.Size)
		fmt.Fprintf(w, "  %4d values: %4.1f %% of the bits are set, %.1f %% to the power of %d is %5.2f %%; found by mistake: %5.2f %%\n",
			n, 100*share, 100*share, cfg.HashIterations, 100*math.Pow(share, float64(cfg.HashIterations)), 100*float64(count(found))/others)
	}
	return f.Delete(ctx)
}
