package drivertest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
)

// Tally increments a key, and counts the acknowledged calls and the calls that may have
// run. Only the test's goroutine calls its methods.
type Tally struct {
	t            testing.TB
	c            *ebb.Conn
	key          string
	done, unsure atomic.Int64
	all          sync.WaitGroup
	stop         chan struct{}
	end          func()
}

// NewTally returns a Tally that has not begun, for a key that does not exist. The caller
// defers Stop.
func NewTally(t testing.TB, c *ebb.Conn, key string) *Tally {
	n := &Tally{t: t, c: c, key: key, stop: make(chan struct{})}
	n.end = sync.OnceFunc(func() { close(n.stop); n.all.Wait() })
	return n
}

// Start runs workers that increment the key again and again. Their errors must be of the
// documented kinds.
func (n *Tally) Start(workers int) {
	for range workers {
		n.all.Go(func() {
			for !n.Over() {
				n.add()
			}
		})
	}
}

// Add adds k to the key, before there are faults.
func (n *Tally) Add(k int) {
	n.t.Helper()
	for range k {
		n.add()
	}
	if n.Unsure() != 0 {
		n.t.Fatalf("%s: %d calls have failed", n.key, n.Unsure())
	}
}

// Go runs a function next to the workers. It must return when Over reports true.
func (n *Tally) Go(run func()) { n.all.Go(run) }

// Over reports whether Stop was called.
func (n *Tally) Over() bool {
	select {
	case <-n.stop:
		return true
	default:
		return false
	}
}

func (n *Tally) add() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err := n.c.Incr(ctx, n.key)
	var refused ebb.ReplyError
	switch {
	case err == nil:
		n.done.Add(1)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, ebb.ErrUnavailable):
		if !errors.As(err, &refused) { // a refused call has not run
			n.unsure.Add(1)
		}
	default:
		n.t.Errorf("an error of no promised kind: %v", err)
	}
}

// More waits until k more calls are acknowledged.
func (n *Tally) More(k int64) {
	n.t.Helper()
	before := n.done.Load()
	Until(n.t, "calls go on", func() bool { return n.done.Load() >= before+k })
}

// Unsure returns the number of calls that may or may not have run.
func (n *Tally) Unsure() int64 { return n.unsure.Load() }

// Stop ends the counting.
func (n *Tally) Stop() { n.end() }

// Verify ends the counting and compares: nothing was lost, nothing ran twice.
func (n *Tally) Verify() {
	n.t.Helper()
	n.Stop()
	var sum int64
	Until(n.t, "the key can be read", func() bool {
		v, err := n.c.Do(context.Background(), "GET", n.key)
		if err != nil {
			return false
		}
		sum, err = v.AsInt()
		return err == nil
	})
	done, unsure := n.done.Load(), n.unsure.Load()
	n.t.Logf("%s: %d counted, %d acknowledged, %d unsure", n.key, sum, done, unsure)
	if sum < done || sum > done+unsure {
		n.t.Errorf("%s: %d, which is not between %d and %d", n.key, sum, done, done+unsure)
	}
}
