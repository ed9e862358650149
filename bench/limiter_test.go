// Package bench compares the embedded engine with libraries that do a part of its
// work in process: go test -bench . ./...
package bench

import (
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/engine"
	"golang.org/x/time/rate"
)

// perSecond is a limit that is never reached here: the allowed path, which writes,
// is what costs.
const perSecond = 1 << 40

func limiterTx(b *testing.B) *engine.Tx {
	db := engine.Open(engine.Options{})
	b.Cleanup(db.Close)
	return db.NewTx()
}

func take(b *testing.B, tx *engine.Tx, key []byte, algo engine.Algo) {
	tx.LockKey(0, key)
	t, err := tx.Take(key, engine.TakeOptions{Algo: algo, Limit: perSecond, Period: 1_000_000, Cost: 1})
	tx.Unlock()
	if err != nil || !t.Allowed {
		b.Fatal(t, err)
	}
}

// One limiter that everybody asks.
func BenchmarkHotKeyTake(b *testing.B) {
	for algo := range engine.Algos {
		if algo == engine.Log {
			continue // its limit is at most a million
		}
		b.Run(algo.String(), func(b *testing.B) {
			tx, key := limiterTx(b), []byte("hot")
			b.ReportAllocs()
			for b.Loop() {
				take(b, tx, key, algo)
			}
		})
	}
}

// golang.org/x/time/rate's single limiter, which has no keys.
func BenchmarkHotKeyTimeRate(b *testing.B) {
	l := rate.NewLimiter(perSecond, perSecond)
	b.ReportAllocs()
	for b.Loop() {
		if !l.Allow() {
			b.Fatal("refused")
		}
	}
}

// A million limiters, asked at random.
func BenchmarkMillionKeysTake(b *testing.B) {
	const n = 1 << 20
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "limit:%09d", i)
	}
	tx := limiterTx(b)
	for _, k := range keys {
		take(b, tx, k, engine.GCRA)
	}
	b.ReportAllocs()
	i := uint32(0)
	for b.Loop() {
		i = i*1664525 + 1013904223
		take(b, tx, keys[i>>12], engine.GCRA)
	}
}
