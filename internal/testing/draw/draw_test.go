package draw

import (
	"flag"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

func TestTheSameSeedDrawsTheSame(t *testing.T) {
	seed := flag.Lookup("rapid.seed").Value
	before := seed.String()
	t.Cleanup(func() { _ = seed.Set(before) })
	t.Setenv("EBB_SEED", "7")
	draws := func() (all []int) {
		Check(t, func(t *rapid.T) { all = append(all, rapid.Int().Draw(t, "n")) })
		return all
	}
	first, again := draws(), draws()
	for i := range first {
		if first[i] != again[i] {
			t.Fatalf("draw %d is %d, and %d the next time", i, first[i], again[i])
		}
	}
	if Seed(t, 0) != 7 || Seed(t, 8) != 8 {
		t.Error("EBB_SEED gives way to a flag alone")
	}
	if Rand(t).Uint64() != Rand(t).Uint64() {
		t.Error("two sources with one seed differ")
	}
}

func TestARandomTestHasANumberOfRoundsOrATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count := func(given time.Duration, full int) (n int) {
			for round := range Rounds(given, full) {
				if round != n {
					t.Errorf("round %d has the number %d", n, round)
				}
				n++
				time.Sleep(time.Second)
			}
			return n
		}
		want := 30
		if tier.Short() {
			want = 3
		}
		if got := count(0, 30); got != want {
			t.Errorf("%d rounds, want %d", got, want)
		}
		if got := count(0, 3); got < 1 {
			t.Error("no round")
		}
		if got := count(10*time.Second, 1); got != 10 {
			t.Errorf("%d rounds of a second in a campaign of ten", got)
		}
		if got := count(time.Nanosecond, 1); got != 1 {
			t.Errorf("%d rounds in a short campaign", got)
		}
	})
}
