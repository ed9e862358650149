// Command sliding-window allows a limited number of log-ins in any window of time. It does
// so with a sorted set, as many programs do, and with package limit.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/example"
	"github.com/ebbdb/ebb/limit"
)

func main() { example.Main(run) }

const (
	quota  = 3
	window = 250 * time.Millisecond
	// patience is the time limit of a decision. It is long, because this program must not
	// treat a slow backend as one that is down.
	patience = 10 * time.Second
)

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	defer func() { _, _ = c.Do(ctx, "DEL", "logins:ann") }()
	fmt.Fprintf(w, "at most %d log-ins in any %v; one is tried every %v\n\n", quota, window, window/10)

	byHand, err := attempts(ctx, func() (bool, error) { return onASortedSet(ctx, c, "logins:ann") })
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "a sorted set by hand   %s\n", byHand)

	for _, a := range []limit.Algorithm{limit.SlidingLog, limit.SlidingWindow, limit.FixedWindow} {
		l, err := limit.New(c, "logins-"+strings.ReplaceAll(a.String(), " ", "-"), limit.Per(quota, window), limit.FailClosed,
			limit.Options{Algorithm: a, Timeout: patience})
		if err != nil {
			return err
		}
		if err := toTheWindow(ctx, c); err != nil {
			return err
		}
		row, err := attempts(ctx, func() (bool, error) {
			r, err := l.Allow(ctx, "ann")
			return r.Allowed, err
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "limit, %-15v %s\n", a, row)
	}

	if err := listing(ctx, c, w); err != nil {
		return err
	}

	exact, err := limit.New(c, "codes", limit.Per(quota, window), limit.FailClosed,
		limit.Options{Algorithm: limit.SlidingLog, Timeout: patience})
	if err != nil {
		return err
	}
	start := time.Now() // taken before the window begins, so that a delay of this program does not matter
	r, err := exact.AllowAtMost(ctx, "ann", 5)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "5 codes are wanted, %d may be sent now; another in %v\n", r.Taken, window)
	if err := exact.Wait(ctx, "ann"); err != nil {
		return err
	}
	late := time.Since(start) - window
	fmt.Fprintf(w, "waited for it: %v\n", late > -window/10 && late < 10*window)
	return exact.Reset(ctx, "ann")
}

// onASortedSet stores each log-in with its time as the score. It removes the log-ins that
// have left the window, and counts the rest. A transaction does both, so that two programs
// do not get the same count. A program that exceeds the limit removes its own log-in
// again.
func onASortedSet(ctx context.Context, c *ebb.Conn, key string) (bool, error) {
	now := time.Now().UnixMicro() // every program's clock must be right
	member := fmt.Sprint(now)
	var b ebb.Batch
	b.Do("ZREMRANGEBYSCORE", key, "-inf", now-window.Microseconds())
	b.Do("ZADD", key, now, member)
	b.Do("ZCARD", key)
	b.Do("PEXPIRE", key, window.Milliseconds())
	replies, err := c.Tx(ctx, &b)
	if err != nil {
		return false, err
	}
	if replies[2].Int <= quota {
		return true, nil
	}
	_, err = c.Do(ctx, "ZREM", key, member)
	return false, err
}

// listing measures a sliding window that many articles print: ZADD with the millisecond as
// member and score, and then ZCARD. Two calls in one millisecond are one member, so a
// burst is allowed. Refused calls stay in the set, so a caller that continues to call
// stays refused. listing compares it with SlidingLog under the same calls.
func listing(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	const quota, window, key = 5, 200 * time.Millisecond, "logins:listing"
	defer func() { _, _ = c.Do(context.WithoutCancel(ctx), "DEL", key) }()
	exact, err := limit.New(c, "logins-exact", limit.Per(quota, window), limit.FailClosed,
		limit.Options{Algorithm: limit.SlidingLog, Timeout: patience})
	if err != nil {
		return err
	}
	classic := func() (bool, error) {
		now := time.Now().UnixMilli()
		var b ebb.Batch
		b.Do("ZADD", key, now, now)
		b.Do("ZREMRANGEBYSCORE", key, "-inf", now-window.Milliseconds())
		b.Do("ZCARD", key)
		b.Do("PEXPIRE", key, window.Milliseconds())
		replies, err := c.Tx(ctx, &b)
		return err == nil && replies[2].Int <= quota, err
	}
	toolkit := func() (bool, error) {
		r, err := exact.Allow(ctx, "ann")
		return r.Allowed, err
	}
	fmt.Fprintf(w, "\n%d in any %v         20 calls at once   30 calls in 3 windows\n", quota, window)
	for _, way := range []struct {
		name string
		call func() (bool, error)
	}{{"ZADD of the ms, ZCARD", classic}, {"limit, sliding log", toolkit}} {
		burst, err := together(20, way.call)
		if err != nil {
			return err
		}
		if _, err := c.Do(ctx, "DEL", key); err != nil {
			return err
		}
		if err := exact.Reset(ctx, "ann"); err != nil {
			return err
		}
		steady := 0
		for range 30 {
			ok, err := way.call()
			if err != nil {
				return err
			}
			if ok {
				steady++
			}
			if err := example.Sleep(ctx, window/10); err != nil {
				return err
			}
		}
		fmt.Fprintf(w, "  %-22s   %2d, %2d are due       %2d, %2d are due\n", way.name, burst, quota, steady, 3*quota)
	}
	fmt.Fprintln(w)
	return exact.Reset(ctx, "ann")
}

// together makes n calls at the same time, and returns how many were allowed.
func together(n int, call func() (bool, error)) (int, error) {
	var wg sync.WaitGroup
	allowed, errs := make([]bool, n), make([]error, n)
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			allowed[i], errs[i] = call()
		})
	}
	close(start)
	wg.Wait()
	sum := 0
	for _, ok := range allowed {
		if ok {
			sum++
		}
	}
	return sum, errors.Join(errs...)
}

// toTheWindow waits for the beginning of an aligned window, by the server's clock, so
// that the rows below each other can be compared.
func toTheWindow(ctx context.Context, c *ebb.Conn) error {
	v, err := c.Do(ctx, "TIME")
	if err != nil {
		return err
	}
	s, _ := v.Elems[0].AsInt()
	us, _ := v.Elems[1].AsInt()
	now := time.Duration(s)*time.Second + time.Duration(us)*time.Microsecond
	time.Sleep(window - now%window)
	return nil
}

// attempts tries to log in for two windows, and returns a picture of the results.
func attempts(ctx context.Context, login func() (bool, error)) (string, error) {
	var row strings.Builder
	for i := range 20 {
		if i == 10 {
			row.WriteByte('|')
		}
		ok, err := login()
		if err != nil {
			return "", err
		}
		if ok {
			row.WriteByte('#')
		} else {
			row.WriteByte('.')
		}
		select {
		case <-time.After(window / 10):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return row.String(), nil
}
