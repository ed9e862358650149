// Command funnel shows a leaky bucket, first with redis-cell's command CL.THROTTLE and
// then with an object of package limit.
package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/example"
	"github.com/ebbdb/ebb/limit"
)

func main() { example.Main(run) }

// patience is the time limit of a decision. It is long, because this program must not
// treat a slow backend as one that is down.
const patience = 10 * time.Second

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	if err := throttle(ctx, c, w); err != nil {
		return err
	}
	if err := object(ctx, c, w); err != nil {
		return err
	}
	return drips(ctx, c, w)
}

// throttle calls CL.THROTTLE as a program for redis-cell does: a funnel that holds 15 + 1,
// and leaks 30 in 60 seconds.
func throttle(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	fmt.Fprintln(w, "CL.THROTTLE reply:ann 15 30 60 1")
	if !c.Capabilities().Native {
		fmt.Fprintf(w, "  %s does not have it: see the object\n\n", c.Capabilities().Server)
		return nil
	}
	defer func() { _, _ = c.Do(ctx, "RL.RESET", "reply:ann") }()
	granted, shown := 0, false
	for range 20 {
		v, err := c.Do(ctx, "CL.THROTTLE", "reply:ann", 15, 30, 60, 1)
		if err != nil {
			return err
		}
		if v.Elems[0].Int == 0 {
			granted++
		} else if shown {
			continue
		}
		if n := v.Elems[2].Int; n != 15 && n > 0 {
			continue // the program prints the first request, the last allowed one and the first refused one
		}
		shown = v.Elems[0].Int != 0
		fmt.Fprintf(w, "  %-8s capacity %d, %2d left, again in %2d s, empty in %2d s\n",
			map[int64]string{0: "allowed", 1: "limited"}[v.Elems[0].Int],
			v.Elems[1].Int, v.Elems[2].Int, v.Elems[3].Int, v.Elems[4].Int)
	}
	fmt.Fprintf(w, "  asked with a max_burst of 15, and %d of 20 were allowed at once: the burst is max_burst + 1\n\n", granted)
	return nil
}

// object shows the same funnel on any backend.
func object(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	funnel, err := limit.New(c, "funnel", limit.PerMinute(30), limit.FailOpen, limit.Options{Burst: 16, Timeout: patience})
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "the same as an object")
	for i := range 17 {
		r, err := funnel.Allow(ctx, "ann")
		if err != nil {
			return err
		}
		if i > 0 && i < 15 {
			continue
		}
		fmt.Fprintf(w, "  %-8s capacity %d, %2d left, again in %2.0f s, empty in %2.0f s\n",
			map[bool]string{true: "allowed", false: "limited"}[r.Allowed],
			r.Limit, r.Remaining, r.RetryAfter.Seconds(), r.ResetAfter.Seconds())
	}
	fmt.Fprintln(w)
	return funnel.Reset(ctx, "ann")
}

// drips shows that requests leave a funnel at an even rate, even if they all arrive at
// once. A mail server takes one letter every 100 ms, and five letters are ready at once.
func drips(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	smtp, err := limit.New(c, "smtp", limit.PerSecond(10), limit.FailOpen, limit.Options{Burst: 1, Timeout: patience})
	if err != nil {
		return err
	}
	var turns []string
	start := time.Now() // taken before the first turn, so that a delay of this program does not matter
	for range 5 {
		r, err := smtp.Reserve(ctx, "")
		if err != nil {
			return err
		}
		turns = append(turns, r.Delay().Round(50*time.Millisecond).String())
	}
	fmt.Fprintf(w, "five letters at once, one every 100ms: their turns are in %s\n", strings.Join(turns, ", "))
	if err := smtp.Wait(ctx, ""); err != nil {
		return err
	}
	fmt.Fprintf(w, "a sixth waits for its own: %v\n", time.Since(start) > 450*time.Millisecond)
	return smtp.Reset(ctx, "")
}
