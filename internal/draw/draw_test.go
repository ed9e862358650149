package draw

import (
	"flag"
	"testing"
	"time"

	"pgregory.net/rapid"
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

func TestACampaignLastsAsLongAsItsFlagSays(t *testing.T) {
	if d := Time(time.Hour, time.Minute); d != time.Hour {
		t.Errorf("with a flag of an hour, a campaign lasts %v", d)
	}
	want := time.Minute
	if testing.Short() {
		want = short
	}
	if d := Time(0, time.Minute); d != want {
		t.Errorf("without a flag, a campaign lasts %v, want %v", d, want)
	}
}
