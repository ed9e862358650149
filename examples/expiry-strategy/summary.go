package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb"
)

// summary prints how late the events were, and the server's own counters.
func (p *program) summary(ctx context.Context, before map[string]string) error {
	p.mu.Lock()
	late, answer := p.late, p.answer
	p.mu.Unlock()
	fmt.Fprintf(p.w, "\nevents: %d of %d, late by %s\n", len(late), len(p.dues), spread(late))
	fmt.Fprintf(p.w, "answers to others meanwhile: %d, in %s\n", len(answer), spread(answer))

	if p.c.Capabilities().Native && len(late) != len(p.dues) {
		return fmt.Errorf("ebb sent %d of %d expired events", len(late), len(p.dues))
	}

	after, err := info(ctx, p.c)
	if err != nil {
		return err
	}
	fmt.Fprintln(p.w, "\nINFO says, since the beginning:")
	for _, f := range []string{"expired_keys", "expired_subkeys", "expired_time_cap_reached_count", "expire_cycle_cpu_milliseconds"} {
		if _, ok := after[f]; ok {
			fmt.Fprintf(p.w, "  %-32s %d\n", f, number(after[f])-number(before[f]))
		}
	}
	fmt.Fprintf(p.w, "  %-32s %s\n", "expired_stale_perc", after["expired_stale_perc"])
	fmt.Fprintf(p.w, "  %-32s %s\n", "db0", after["db0"])

	left, err := p.look(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.w, "\nstill in memory, and removed by an access: %d\n", left)
	if !p.c.Capabilities().Native {
		return nil
	}
	v, err := p.c.Do(ctx, "EXPIRY", "LAG")
	if err != nil {
		return err
	}
	fmt.Fprintln(p.w, "EXPIRY LAG, in us:")
	for _, level := range []string{"key", "field"} {
		l, _ := v.Get(level)
		fmt.Fprintf(p.w, "  %-6s", level)
		for _, f := range []string{"count", "p50-us", "p99-us", "max-us"} {
			n, _ := l.Get(f)
			fmt.Fprintf(p.w, "  %s %s", strings.TrimSuffix(f, "-us"), n)
		}
		fmt.Fprintln(p.w)
	}
	return nil
}

// look reads all keys whose deadline has passed, and returns how many of them the server
// still stored.
func (p *program) look(ctx context.Context) (int64, error) {
	before, err := info(ctx, p.c)
	if err != nil {
		return 0, err
	}
	var b ebb.Batch
	ask := func(kind string, n int, due func(i int) time.Duration) error {
		for i := range n {
			b.Do("EXISTS", fmt.Sprintf("%s:%d:%d", kind, due(i).Milliseconds(), i))
			if b.Len() == 1000 || i == n-1 {
				if _, err := p.c.Pipeline(ctx, &b); err != nil {
					return err
				}
				b.Reset()
			}
		}
		return nil
	}
	if err := ask("storm", storm, func(int) time.Duration { return p.stormAt() }); err != nil {
		return 0, err
	}
	if err := ask("drip", drip, p.dripAt); err != nil {
		return 0, err
	}
	after, err := info(ctx, p.c)
	return number(after["expired_keys"]) - number(before["expired_keys"]), err
}

// clean deletes the keys that have not expired.
func (p *program) clean(ctx context.Context) error {
	var b ebb.Batch
	for i := range others {
		b.Do("UNLINK", fmt.Sprintf("other:%d", i))
		if b.Len() == 1000 {
			if _, err := p.c.Pipeline(ctx, &b); err != nil {
				return err
			}
			b.Reset()
		}
	}
	b.Do("UNLINK", "visits")
	_, err := p.c.Pipeline(ctx, &b)
	return err
}

// spread describes the distribution of some durations.
func spread(d []time.Duration) string {
	if len(d) == 0 {
		return "nothing"
	}
	d = slices.Sorted(slices.Values(d))
	at := func(q float64) time.Duration { return d[int(q*float64(len(d)-1))].Round(time.Microsecond) }
	return fmt.Sprintf("p50 %v, p99 %v, at most %v", at(.5), at(.99), at(1))
}

// info reads the fields of INFO that have one value.
func info(ctx context.Context, c *ebb.Conn) (map[string]string, error) {
	all := map[string]string{}
	for _, section := range []string{"stats", "keyspace"} {
		v, err := c.Do(ctx, "INFO", section)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(v.String()) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				all[name] = value
			}
		}
	}
	return all, nil
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}
