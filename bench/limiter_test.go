// Package bench compares the embedded engine with libraries that do a part of its
// work in process: go test -bench . ./...
package bench

import (
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/limiter"
	"golang.org/x/time/rate"
)

// perSecond is a limit that is never reached here: the allowed path, which writes,
// is what costs.
const perSecond = 1 << 40

// hot returns the rate of the one limiter: gcra a million a second in the long run, so
// that it is in debt all the time, as a limiter that is used is.
func hot(algo limiter.Algo) engine.TakeOptions {
	if algo == limiter.GCRA {
		return engine.TakeOptions{Limit: 1_000_000, Period: 1_000_000, Burst: perSecond, Cost: 1}
	}
	return engine.TakeOptions{Algo: algo, Limit: perSecond, Period: 1_000_000, Cost: 1}
}

// cold is the rate of each of a million limiters, one in two seconds: the debt of a grant lasts longer
// than it takes to ask all the others, so that none goes and comes again.
var cold = engine.TakeOptions{Limit: 600, Period: 1_200_000_000, Cost: 1}

func limiterTx(b *testing.B) *engine.Tx {
	db := engine.Open(engine.Options{})
	b.Cleanup(db.Close)
	return db.NewTx()
}

func take(b *testing.B, tx *engine.Tx, key []byte, o engine.TakeOptions) {
	tx.LockKey(0, key)
	t, err := tx.Take(key, o)
	tx.Unlock()
	if err != nil || !t.Allowed {
		b.Fatal(t, err)
	}
}

// All goroutines use one limiter.
func BenchmarkHotKeyTake(b *testing.B) {
	for algo := range limiter.Algos {
		if algo == limiter.Log {
			continue // its limit is at most a million
		}
		b.Run(algo.String(), func(b *testing.B) {
			tx, key, o := limiterTx(b), []byte("hot"), hot(algo)
			b.ReportAllocs()
			for b.Loop() {
				take(b, tx, key, o)
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

// A million limiters, used at random.
func BenchmarkMillionKeysTake(b *testing.B) {
	const n = 1 << 20
	key := []byte("limit:0000000")
	number := func(i uint32) []byte {
		for p := len(key) - 1; p >= 6; p-- {
			key[p] = '0' + byte(i%10)
			i /= 10
		}
		return key
	}
	tx := limiterTx(b)
	for i := range uint32(n) {
		take(b, tx, number(i), cold)
	}
	b.ReportAllocs()
	i := uint32(0)
	for b.Loop() {
		i = i*1664525 + 1013904223
		take(b, tx, number(i>>12), cold)
	}
}

// A million of golang.org/x/time/rate's limiters in a Go map under a mutex: what is
// commonly written in process, without expiry.
func BenchmarkMillionKeysTimeRate(b *testing.B) {
	const n = 1 << 20
	var mu sync.Mutex
	limiters := make(map[string]*rate.Limiter, n)
	key := []byte("limit:0000000")
	number := func(i uint32) []byte {
		for p := len(key) - 1; p >= 6; p-- {
			key[p] = '0' + byte(i%10)
			i /= 10
		}
		return key
	}
	for i := range uint32(n) {
		limiters[string(number(i))] = rate.NewLimiter(0.5, 600)
	}
	b.ReportAllocs()
	i := uint32(0)
	for b.Loop() {
		i = i*1664525 + 1013904223
		mu.Lock()
		l := limiters[string(number(i>>12))]
		mu.Unlock()
		if !l.Allow() {
			b.Fatal("refused")
		}
	}
}
