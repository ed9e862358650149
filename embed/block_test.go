package embed_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/embedded"
)

// waitHere waits until as many commands wait on an engine in this process.
func waitHere(t *testing.T, c *ebb.Conn, n int64) {
	t.Helper()
	for embedded.Of(c).DB().Waiters() != n {
		_, err := c.Do(testContext(t), "PING")
		must(t, err)
	}
}

func TestAnEmbeddedWaitEndsWithItsContext(t *testing.T) {
	c := open(t, "mem://")
	for range 3 {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			_, err := c.Do(ctx, "BLPOP", "queue", 0)
			done <- err
		}()
		waitHere(t, c, 1)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the wait ended with %v", err)
		}
		waitHere(t, c, 0)
	}
	ctx := testContext(t)
	_, err := c.Do(ctx, "RPUSH", "queue", "job")
	must(t, err)
	v, err := c.Block(ctx, "BLPOP", "queue", 0)
	must(t, err)
	if got, _ := v.AsStrings(); len(got) != 2 || got[1] != "job" {
		t.Errorf("BLPOP: %v", v)
	}
}

func TestClosingAnEmbeddedConnEndsItsWaits(t *testing.T) {
	c, err := ebb.Open(testContext(t), "mem://")
	must(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := c.Block(context.Background(), "BLMOVE", "a", "b", "LEFT", "LEFT", 0)
		done <- err
	}()
	waitHere(t, c, 1)
	must(t, c.Close())
	if err := <-done; !errors.Is(err, ebb.ErrClosed) {
		t.Errorf("the wait ended with %v", err)
	}
}

// impatient is a context that ends when it is first waited for.
type impatient struct {
	context.Context
	asked atomic.Bool
}

func (c *impatient) Done() <-chan struct{} {
	c.asked.Store(true)
	over := make(chan struct{})
	close(over)
	return over
}

func (c *impatient) Err() error {
	if c.asked.Load() {
		return context.Canceled
	}
	return nil
}

func TestATransactionThatIsNotKnownToBeOnDiskIsNoConflict(t *testing.T) {
	c := open(t, "file://"+t.TempDir()+"?fsync=always")
	var b ebb.Batch
	b.Do("INCR", "k")
	for range 20 {
		if _, err := c.Tx(&impatient{Context: context.Background()}, &b); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("it has run: %v", err)
		}
	}
	if n, err := c.Get(testContext(t), "k"); n != "20" || err != nil {
		t.Errorf("all have run: %q, %v", n, err)
	}
}
