package locking_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/embed"
	"github.com/ebbdb/ebb/internal/locking"
	"github.com/ebbdb/ebb/lock"
)

// The leases of an embedded engine share a few timers for each length. Those that are released before their first renewal leave
// the list, and the others are renewed until their release.
func TestLeasesOfOneLengthShareTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		c, err := embed.Open(ctx, "mem://")
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(err)
		defer func() { must(c.Close()) }()
		lengths := []time.Duration{900 * time.Millisecond, 3 * time.Second}
		var held []*lock.Lease
		for n := range 60 {
			lease, err := lock.Acquire(ctx, c, fmt.Sprint("lock", n), lengths[n%2])
			must(err)
			if !(*locking.Lease)(lease).Listed() {
				t.Fatal("the call was not direct")
			}
			if n%3 == 0 {
				must(lease.Release(ctx))
			} else {
				held = append(held, lease)
			}
			time.Sleep(7 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		for _, lease := range held {
			if !lease.Valid() {
				t.Errorf("%v is lost", lease)
			}
			must(lease.Release(ctx))
			must(lease.Release(ctx)) // again
		}
		last, err := lock.Acquire(ctx, c, "lock0", lengths[1])
		must(err)
		must(last.Release(ctx))
		time.Sleep(10 * time.Second)
		for _, ttl := range lengths {
			if !locking.ListIsIdle(c, ttl) {
				t.Errorf("%v: something is left in the list, or its timer runs", ttl)
			}
		}
	})
}

// A lease of lock.Acquire that is released at once needs no object. What needs one makes it, with the same name and length.
func TestTheObjectOfALeaseIsMadeOnlyIfSomethingNeedsIt(t *testing.T) {
	ctx := context.Background()
	c, err := embed.Open(ctx, "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	lease, err := lock.Acquire(ctx, c, "l", 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	l := (*locking.Lease)(lease)
	if err := lease.Release(ctx); err != nil || l.Made() {
		t.Errorf("%v; made: %v", err, l.Made())
	}
	if o := l.Object(); o.Conn != c || o.Name != "l" || o.TTL != 3*time.Second || o != l.Object() {
		t.Errorf("%+v", o)
	}
	if text, want := lease.String(), fmt.Sprintf("lease of lock %q, token %d", "l", lease.Token()); text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}

// A program that computes the lengths of its leases does not keep a list for each of them.
func TestTheListsOfLeasesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		c, err := embed.Open(ctx, "mem://")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		held, release := context.WithCancel(ctx)
		defer release()
		var last *lock.Lease
		for n := range locking.MaxLists + 1 {
			if last, err = lock.Acquire(held, c, fmt.Sprint("lock", n), time.Second+time.Duration(n)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		if !last.Valid() || (*locking.Lease)(last).Listed() {
			t.Error("the last lease is in a list, or lost")
		}
	})
}

// slowGrant is an Acquirer whose direct request takes as long as a pause of the process.
type slowGrant struct {
	locking.Direct
	pause            time.Duration
	renewed, release atomic.Int64
	err              error // of renewals
}

func (s *slowGrant) AcquireDirect(string, bool) (token int64, granted, ok bool) {
	time.Sleep(s.pause)
	return 7, true, true
}

func (s *slowGrant) Renew(context.Context, string, int64) error {
	s.renewed.Add(1)
	return s.err
}

func (s *slowGrant) Release(context.Context, string, int64) (bool, error) {
	s.release.Add(1)
	return true, nil
}

// A lease counts from before its request. If that took long, it is renewed before the caller gets it, and given back if that fails.
func TestALeaseWhoseDirectRequestTookLongIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		c, err := embed.Open(ctx, "mem://")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		o := &locking.Object{Conn: c, Label: "lock", What: "lock", Name: "l", TTL: 8 * time.Second}
		for _, x := range []struct {
			pause             time.Duration
			err               error
			granted           bool
			renewals, release int64
		}{
			{time.Second, nil, true, 0, 0},
			{2 * time.Second, nil, true, 1, 0},
			{20 * time.Second, locking.ErrLost, false, 1, 0},
			{2 * time.Second, context.DeadlineExceeded, false, 1, 1},
		} {
			var l locking.Lease
			acq := &slowGrant{pause: x.pause, err: x.err}
			granted, _ := l.AcquireDirect(ctx, o, acq, "", true)
			if granted != x.granted || acq.renewed.Load() != x.renewals || acq.release.Load() != x.release {
				t.Errorf("%+v: granted %v, %d renewals, %d releases", x, granted, acq.renewed.Load(), acq.release.Load())
			}
			if !granted {
				continue
			}
			if until := time.Until(l.Until()); until < 5*time.Second {
				t.Errorf("%+v: the lease is certain for %v", x, until)
			}
			acq.renewed.Store(0)
			time.Sleep(o.TTL/3 - min(x.pause, 1500*time.Millisecond) + time.Millisecond)
			synctest.Wait()
			if x.pause == time.Second && acq.renewed.Load() != 1 {
				t.Errorf("%+v: %d renewals at a third of the lease", x, acq.renewed.Load())
			}
			l.Stop(context.Canceled)
		}
		time.Sleep(time.Minute)
	})
}

// A timer that a bubble has made must not be reset outside of it: that ends the process.
func TestLeasesOutsideOfABubbleAfterOneInIt(t *testing.T) {
	ctx := context.Background()
	c, err := embed.Open(ctx, "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	use := func(t *testing.T) {
		l, err := lock.Acquire(ctx, c, "l", 3*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(ctx); err != nil {
			t.Error(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		use(t)
		time.Sleep(10 * time.Second) // the timer finds nothing
	})
	use(t)
}

func TestCloseStopsTheTimersOfLeases(t *testing.T) {
	ctx := context.Background()
	c, err := embed.Open(ctx, "mem://")
	if err != nil {
		t.Fatal(err)
	}
	l, err := lock.Acquire(ctx, c, "l", 24*time.Hour)
	if err == nil {
		err = l.Release(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	if locking.ListIsIdle(c, 24*time.Hour) {
		t.Error("the timer of the list does not run: the test tests nothing")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if !locking.ListIsIdle(c, 24*time.Hour) {
		t.Error("the timer runs on")
	}
}
