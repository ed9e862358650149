// Package draw returns the seed of a random test, and the rounds of its campaigns.
package draw

import (
	"flag"
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

// Seed returns the seed of a test. This is given, the value of a flag, if it is not 0.
// Otherwise it is the number in EBB_SEED, which .ci/test sets, so that a change gets the
// same draws on every machine. Without both it is a new number each time, so that
// campaigns find new failures. The test's log shows the seed.
func Seed(t testing.TB, given uint64) uint64 {
	t.Helper()
	s := given
	if s == 0 {
		s = fixed(t)
	}
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("seed %d", s)
	return s
}

// fixed returns the number in EBB_SEED, or 0.
func fixed(t interface{ Fatalf(string, ...any) }) uint64 {
	text := os.Getenv("EBB_SEED")
	if text == "" {
		return 0
	}
	s, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("EBB_SEED: %q is not a number", text)
	}
	return s
}

// Rand returns a source of numbers with the seed of Seed. It may be used concurrently.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(&locked{pcg: rand.NewPCG(Seed(t, 0), 0)})
}

// locked is a rand.Source for several goroutines. A rand.Rand has no other state.
type locked struct {
	mu  sync.Mutex // guards pcg
	pcg *rand.PCG
}

func (l *locked) Uint64() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pcg.Uint64()
}

// Below returns a duration from 0 up to, but not including, limit.
func Below(r *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(limit)))
}

// seeded guards the flag that Check sets.
var seeded sync.Once

// Check is rapid.Check with the seed that EBB_SEED names, unless the flag -rapid.seed
// names another one.
func Check(t rapid.TB, property func(*rapid.T)) {
	t.Helper()
	if s := fixed(t); s != 0 {
		seeded.Do(func() {
			if f := flag.Lookup("rapid.seed"); f.Value.String() == "0" {
				_ = f.Value.Set(strconv.FormatUint(s, 10))
			}
		})
	}
	rapid.Check(t, property)
}

// Rounds yields the numbers of the rounds of a random test, from 0 on: full of them, or a tenth of that, and one at least,
// with -short. So a slow machine draws what a fast one draws. A campaign names a time: if given, the value of a flag, is not
// 0, Rounds yields at least one number and ends when that time is over.
func Rounds(given time.Duration, full int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if tier.Short() {
			full = max(full/10, 1)
		}
		began := time.Now()
		for n := 0; n == 0 || given == 0 && n < full || given != 0 && time.Since(began) < given; n++ {
			if !yield(n) {
				return
			}
		}
	}
}
