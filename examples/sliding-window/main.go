// Command sliding-window allows at most so many log-ins in any window of time: on a
// sorted set as one finds it in many programs, and with package limit.
package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/examples/internal/example"
	"github.com/ebbdb/ebb/limit"
)

func main() { example.Main(run) }

const (
	most   = 3
	window = 250 * time.Millisecond
	// patience is how long a decision may take: no backend that is slow is taken for
	// one that is down.
	patience = 10 * time.Second
)

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	defer func() { _, _ = c.Do(ctx, "DEL", "logins:ann") }()
	fmt.Fprintf(w, "at most %d log-ins in any %v; one is tried every %v\n\n", most, window, window/10)

	byHand, err := attempts(ctx, func() (bool, error) { return onASortedSet(ctx, c, "logins:ann") })
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "a sorted set by hand   %s\n", byHand)

	for _, a := range []limit.Algorithm{limit.SlidingLog, limit.SlidingWindow, limit.FixedWindow} {
		l, err := limit.New(c, "logins-"+strings.ReplaceAll(a.String(), " ", "-"), limit.Per(most, window), limit.FailClosed, limit.Options{Algorithm: a, Timeout: patience})
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

	exact, err := limit.New(c, "codes", limit.Per(most, window), limit.FailClosed, limit.Options{Algorithm: limit.SlidingLog, Timeout: patience})
	if err != nil {
		return err
	}
	start := time.Now() // before the window begins, wherever this program is held up
	r, err := exact.AllowAtMost(ctx, "ann", 5)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n5 codes are wanted, %d may be sent now; another in %v\n", r.Taken, window)
	if err := exact.Wait(ctx, "ann"); err != nil {
		return err
	}
	late := time.Since(start) - window
	fmt.Fprintf(w, "waited for it: %v\n", late > -window/10 && late < 10*window)
	return exact.Reset(ctx, "ann")
}

// onASortedSet keeps each log-in under its time: what has left the window is removed,
// and what remains is counted. In a transaction, so that two do not count the same; the
// one that was too many takes itself out again.
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
	if replies[2].Int <= most {
		return true, nil
	}
	_, err = c.Do(ctx, "ZREM", key, member)
	return false, err
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

// attempts tries for two windows, and draws what came of it.
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
