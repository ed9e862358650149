package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/exampletest"
)

func TestMain(m *testing.M) { backends.Main(m) }

func TestExample(t *testing.T) {
	exampletest.Run(t, run, "package cache: one refresher, the others get the stale value",
		"by hand: GET, SET NX, and a new attempt", "expiries")
}

// TestOneLoadForEachExpiryAndNoReaderWaits measures in virtual time, in which nothing but loads and pauses takes time.
func TestOneLoadForEachExpiryAndNoReaderWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		f, err := measure(t.Context(), b.Conn, withCache)
		if err != nil {
			t.Fatal(err)
		}
		if f.loads != f.expiries || f.expiries < 4 || f.p99 != 0 {
			t.Errorf("package cache: %+v, want one load for each expiry, and a p99 of 0", f)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		f, err := measure(t.Context(), b.Conn, byHand)
		if err != nil {
			t.Fatal(err)
		}
		if f.loads < f.expiries || f.expiries < 4 || f.p99 < 10*time.Millisecond {
			t.Errorf("by hand: %+v, want readers that wait", f)
		}
	})
}
