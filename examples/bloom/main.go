// Command bloom shows how a crawler remembers the addresses that it has seen, with one or
// two bytes for each.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/bloom"
	"github.com/ebbdb/ebb/internal/example"
)

func main() { example.Main(run) }

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	defer forgetAll(context.WithoutCancel(ctx), c)
	for _, part := range []func(context.Context, *ebb.Conn, io.Writer) error{crawl, grow, full, forget} {
		if err := part(ctx, c, w); err != nil {
			return err
		}
	}
	return nil
}

// forgetAll deletes the filters.
func forgetAll(ctx context.Context, c *ebb.Conn) {
	for _, name := range []string{"crawl", "grow", "full", "forget"} {
		_, _ = filter(ctx, c, name, bloom.Options[string]{})
	}
}

func pages(from, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("https://example.org/%d", from+i)
	}
	return all
}

// filter makes an empty filter.
func filter(ctx context.Context, c *ebb.Conn, name string, o bloom.Options[string]) (*bloom.Filter[string], error) {
	f, err := bloom.New(c, "example:bloom:"+name, o)
	if err != nil {
		return nil, err
	}
	return f, f.Delete(ctx)
}

func count(all []bool) (n int) {
	for _, yes := range all {
		if yes {
			n++
		}
	}
	return n
}

// measure adds pages, and prints how many of them the filter misses and how many others it
// finds by mistake.
func measure(ctx context.Context, w io.Writer, f *bloom.Filter[string], n int) error {
	if _, err := f.AddMany(ctx, pages(0, n)...); err != nil {
		return err
	}
	in, err := f.ContainsMany(ctx, pages(0, n)...)
	if err != nil {
		return err
	}
	const others = 3000
	out, err := f.ContainsMany(ctx, pages(1_000_000, others)...)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "  %d added: %d missed; of %d others %.2f %% found by mistake\n", n, n-count(in), others, 100*float64(count(out))/others)
	return nil
}

func crawl(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	f, err := filter(ctx, c, "crawl", bloom.Options[string]{Capacity: 2000, Error: 0.01, Fixed: true})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s\n", f)
	isNew, err := f.AddMany(ctx, "https://example.com/", "https://example.net/", "https://example.com/")
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "  new: %v\n", isNew)
	if err := f.Delete(ctx); err != nil {
		return err
	}
	return measure(ctx, w, f, 1950)
}

// grow shows a filter that begins much too small.
func grow(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	f, err := filter(ctx, c, "grow", bloom.Options[string]{Capacity: 100, Error: 0.01})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s\n", f)
	return measure(ctx, w, f, 2000)
}

// full shows a filter that does not grow.
func full(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	f, err := filter(ctx, c, "full", bloom.Options[string]{Capacity: 100, Error: 0.0001, Fixed: true})
	if err != nil {
		return err
	}
	_, err = f.AddMany(ctx, pages(0, 101)...)
	if !errors.Is(err, bloom.ErrFull) {
		return fmt.Errorf("101 in a filter of 100: %w", err)
	}
	n, err := f.Count(ctx)
	fmt.Fprintf(w, "a fixed filter of 100 is full with %d\n", n)
	return err
}

// forget shows a filter by time: a reader that got the newsletter lately does not get it
// again.
func forget(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	f, err := filter(ctx, c, "forget", bloom.Options[string]{Capacity: 100, Error: 0.0001, Window: 800 * time.Millisecond, Generations: 4})
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "a filter that forgets after 0.8 s, in steps of 0.2 s")
	for range 2 {
		isNew, err := f.Add(ctx, "ann")
		if err != nil {
			return err
		}
		found, err := f.Contains(ctx, "ann")
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "  ann is new: %v, and found: %v; after 1.1 s", isNew, found)
		if err := example.Sleep(ctx, 1100*time.Millisecond); err != nil {
			return err
		}
		if found, err = f.Contains(ctx, "ann"); err != nil {
			return err
		}
		fmt.Fprintf(w, ": %v\n", found)
	}
	return nil
}
