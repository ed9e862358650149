package goredis_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/drivertest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

func TestCallsThatGoTogetherHaveTheirOwnAnswers(t *testing.T) {
	c := open(t, "redis://"+realserver.Start(t, "redis-server"))
	ctx := testContext(t)
	must(t, c.Set(ctx, "text", "no number"))
	var workers sync.WaitGroup
	for w := range 64 {
		workers.Go(func() {
			key := "own:" + strconv.Itoa(w)
			for n := range 50 {
				if v, err := c.Incr(ctx, key); v != int64(n+1) || err != nil {
					t.Errorf("%s: %d, %v, want %d", key, v, err, n+1)
				}
				var refused ebb.ReplyError
				if _, err := c.Incr(ctx, "text"); !errors.As(err, &refused) {
					t.Errorf("INCR of a text: %v", err)
				}
				if _, err := c.Get(ctx, "none:"+key); !errors.Is(err, ebb.ErrNil) {
					t.Errorf("GET of nothing: %v", err)
				}
			}
		})
	}
	workers.Wait()
}

func TestACallThatWaitsDelaysNoOtherCall(t *testing.T) {
	const waiting = 32
	c := open(t, "redis://"+realserver.Start(t, "redis-server")+"?pool_size=48&read_timeout=60s")
	ctx := testContext(t)
	var waiters, others sync.WaitGroup
	for range waiting {
		waiters.Go(func() {
			if _, err := c.Do(ctx, "BLPOP", "jobs", 0); err != nil {
				t.Error(err)
			}
		})
	}
	for range 64 {
		others.Go(func() {
			for range 20 {
				if _, err := c.Incr(ctx, "n"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	others.Wait()
	for range waiting {
		_, err := c.Do(ctx, "RPUSH", "jobs", "job")
		must(t, err)
	}
	waiters.Wait()
}

// held returns a Conn with one in-flight slot, in which a call waits for its reply; release ends
// that call, whose connection is lost.
func held(t *testing.T) (c, direct *ebb.Conn, release func()) {
	addr := realserver.Start(t, "redis-server")
	p := drivertest.NewProxy(t, addr)
	c, direct = open(t, "redis://"+p.Addr()+"?pool_size=1&read_timeout=60s"), open(t, "redis://"+addr)
	ctx := testContext(t)
	p.Hang.Store(true)
	var calls sync.WaitGroup
	calls.Go(func() { _, _ = c.Incr(ctx, "held") })
	for v := ""; v != "1"; {
		var err error
		if v, err = direct.Get(ctx, "held"); err != nil && !errors.Is(err, ebb.ErrNil) {
			t.Fatal(err)
		}
	}
	return c, direct, func() {
		p.Hang.Store(false)
		p.Cut()
		calls.Wait()
	}
}

func TestACallThatWaitsForOthersEndsWithItsContext(t *testing.T) {
	c, direct, release := held(t)
	ctx := testContext(t)
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	_, err := c.Incr(short, "late")
	wantErr(t, "its deadline", context.DeadlineExceeded)(nil, err)
	gone, cancel := context.WithCancel(ctx)
	defer time.AfterFunc(20*time.Millisecond, cancel).Stop()
	_, err = c.Incr(gone, "late")
	wantErr(t, "its cancellation", context.Canceled)(nil, err)
	release()
	check(t, "the next call", int64(1))(c.Incr(ctx, "next"))
	_, err = direct.Get(ctx, "late")
	wantErr(t, "a command that was not sent", ebb.ErrNil)(nil, err)
}

func TestAWaiterIsServedWhenOthersFail(t *testing.T) {
	c, _, release := held(t)
	ctx := testContext(t)
	var calls sync.WaitGroup
	for range 10 {
		calls.Go(func() {
			if _, err := c.Incr(ctx, "n"); err != nil {
				t.Error(err)
			}
		})
	}
	release()
	calls.Wait()
	check(t, "each has run once", "10")(c.Get(ctx, "n"))
}
