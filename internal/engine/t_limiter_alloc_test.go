//go:build !race

package engine

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/limiter"
)

func TestLimitersAllocateNothing(t *testing.T) {
	clock := clock.NewManual(epoch)
	db := Open(Options{Clock: clock})
	defer db.Close()
	tx := db.NewTx()
	for algo := range limiter.Algos {
		key := []byte("limiter " + algo.String())
		o := TakeOptions{Algo: algo, Limit: 100, Period: 1_000_000, Cost: 1}
		take := func() {
			tx.LockKey(0, key)
			if _, err := tx.Take(key, o); err != nil {
				t.Fatal(err)
			}
			tx.Unlock()
		}
		take()
		for name, f := range map[string]func(){
			"allowed": func() { clock.Advance(20 * time.Millisecond); take() },
			"refused": func() { take(); take() },
		} {
			for range 300 {
				f()
			}
			if n := testing.AllocsPerRun(500, f); n > 0 {
				t.Errorf("%v, %s: a take allocates %v times", algo, name, n)
			}
		}
	}
}

func BenchmarkTake(b *testing.B) {
	for algo := range limiter.Algos {
		b.Run(algo.String(), func(b *testing.B) {
			clock := clock.NewManual(epoch)
			db := Open(Options{Clock: clock})
			defer db.Close()
			tx, key := db.NewTx(), []byte("limiter")
			o := TakeOptions{Algo: algo, Limit: 100_000, Period: 1_000_000, Cost: 1}
			b.ReportAllocs()
			for b.Loop() {
				clock.NotBefore(clock.Micros() + 15)
				tx.LockKey(0, key)
				if t, err := tx.Take(key, o); err != nil || !t.Allowed && algo == limiter.GCRA {
					b.Fatal(t, err)
				}
				tx.Unlock()
			}
		})
	}
}
