package locking_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/embed"
	"github.com/ebbdb/ebb/internal/locking"
	"github.com/ebbdb/ebb/lock"
)

// The leases of an embedded engine share a timer for each length. Those that are released before their first renewal leave
// the list, and the others are renewed until their release.
func TestLeasesOfOneLengthShareATimer(t *testing.T) {
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
