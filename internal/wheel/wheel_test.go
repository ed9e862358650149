package wheel

import (
	"fmt"
	"slices"
	"testing"
	"unsafe"
)

// records is the memory of a test: reference n is records[n].
type records []Entry

func (r records) Entry(ref uint32) *Entry { return &r[ref] }

const (
	second = int64(1000)
	hour   = 3600 * second
	day    = 24 * hour
	year   = 365 * day

	start = int64(1_700_000_000_123) // an instant of no particular shape
)

// run advances w to now in one go and returns what fired.
func run(t *testing.T, w *Wheel, now int64) (fired []uint32) {
	t.Helper()
	for {
		n := w.Advance(now, 100, func(ref uint32) { fired = append(fired, ref) })
		if err := w.Check(); err != nil {
			t.Fatal(err)
		}
		if next, ok := w.Next(); n < 100 && (!ok || next > now) {
			return fired
		}
	}
}

func TestEntryIs16BytesWithoutPointers(t *testing.T) {
	if size := unsafe.Sizeof(Entry{}); size != 16 {
		t.Fatalf("Entry has %d bytes", size)
	}
	for _, d := range []int64{0, 1, 1<<32 - 1, 1 << 32, start, MaxDeadline} {
		var e Entry
		if e.setDeadline(d); e.Deadline() != d {
			t.Errorf("deadline %d reads %d", d, e.Deadline())
		}
	}
	for l := range levels {
		for i := range ringSize {
			var e Entry
			e.setHome(l, i)
			if hl, hi := e.home(); hl != l || hi != i || !e.Linked() || e.slot == late {
				t.Fatalf("home (%d, %d) reads (%d, %d)", l, i, hl, hi)
			}
		}
	}
}

func TestEntryFiresOneMillisecondAfterItsDeadline(t *testing.T) {
	for _, ttl := range []int64{0, 1, 100, 255, 256, 257, 511, 512, 65535, 65536, 70000, hour, day, 60 * day, year, 40 * year, 300 * year} {
		t.Run(fmt.Sprint(ttl), func(t *testing.T) {
			w := New(start, make(records, 2))
			w.Add(1, start+ttl)
			if fired := run(t, w, start+ttl); fired != nil {
				t.Fatalf("fired %v at its deadline", fired)
			}
			if n := w.Due(start + ttl); n != 0 {
				t.Fatalf("%d due at the deadline", n)
			}
			if n := w.Due(start + ttl + 1); n != 1 {
				t.Fatalf("%d due after the deadline", n)
			}
			if next, _ := w.Next(); next != start+ttl+1 {
				t.Fatalf("Next is %d ms off", next-start-ttl-1)
			}
			if fired := run(t, w, start+ttl+1); !slices.Equal(fired, []uint32{1}) {
				t.Fatalf("fired %v after its deadline", fired)
			}
		})
	}
}

func TestTimerFollowingNextWakesFewTimesAndIsNeverLate(t *testing.T) {
	for _, ttl := range []int64{3, 300, 90 * second, 5 * hour, 90 * day, 50 * year} {
		w := New(start, make(records, 2))
		w.Add(1, start+ttl)
		wakes, fired := 0, 0
		var now int64
		for fired == 0 {
			var ok bool
			if now, ok = w.Next(); !ok || wakes > levels {
				t.Fatalf("ttl %d: after %d wakes Next is %d, %v", ttl, wakes, now, ok)
			}
			fired = w.Advance(now, 10, func(uint32) {})
			wakes++
		}
		if now != start+ttl+1 {
			t.Errorf("ttl %d: fired %d ms late", ttl, now-start-ttl-1)
		}
	}
}

func TestEntriesFireInOrderOfDeadlineWhenTimeIsFollowed(t *testing.T) {
	const n = 1000
	r := make(records, n+1)
	w := New(start, r)
	for ref := uint32(1); ref <= n; ref++ {
		w.Add(ref, start+int64(ref)*7919%(10*second))
	}
	last, fired := int64(0), 0
	for now := start; now <= start+11*second; now += 50 {
		w.Advance(now, 2*n, func(ref uint32) {
			if d := r[ref].Deadline(); d < last || d >= now {
				t.Fatalf("deadline %d at %d, after %d", d-start, now-start, last-start)
			}
			last = r[ref].Deadline()
			fired++
		})
	}
	if fired != n || w.Len() != 0 {
		t.Fatalf("fired %d, %d left", fired, w.Len())
	}
}

func TestEntriesOfOneMillisecondFireInTheOrderTheyWereAdded(t *testing.T) {
	for _, ttl := range []int64{10, 400, hour} {
		w := New(start, make(records, 100))
		var want []uint32
		for ref := uint32(1); ref < 100; ref++ {
			w.Add(ref, start+ttl)
			want = append(want, ref)
		}
		if fired := run(t, w, start+ttl+1); !slices.Equal(fired, want) {
			t.Errorf("ttl %d: %v", ttl, fired)
		}
	}
}

func TestCascadeIsSlicedAndDueStaysExact(t *testing.T) {
	const n = 10_000
	w := New(start, make(records, n+1))
	deadline := start + 10*second
	for ref := uint32(1); ref <= n; ref++ {
		w.Add(ref, deadline)
	}
	for now := start; now < deadline+1000; now++ {
		if moved := w.Sync(now, 20); moved > 20 {
			t.Fatalf("moved %d of a budget of 20", moved)
		}
		want := 0
		if now > deadline {
			want = n
		}
		if now%100 == 0 || now == deadline || now == deadline+1 {
			if due := w.Due(now); due != want {
				t.Fatalf("%d due %d ms after the deadline, want %d", due, now-deadline, want)
			}
		}
	}
	if err := w.Check(); err != nil {
		t.Fatal(err)
	}
}

func TestTimeWaitsForASlotThatIsNotEmptiedAndThenPassesItWhole(t *testing.T) {
	const n = 1000
	r := make(records, n+1)
	w := New(0, r)
	for ref := uint32(1); ref <= n; ref++ {
		w.Add(ref, 1024+int64(ref%256))
	}
	if moved := w.Sync(1100, 10); moved != 10 || w.Time() != 1024 {
		t.Fatalf("moved %d, time is %d", moved, w.Time())
	}
	want := 0
	for ref := range r[1:] {
		if r[1+ref].Deadline() < 1200 {
			want++
		}
	}
	if due := w.Due(1200); due != want {
		t.Fatalf("%d due at 1200, want %d", due, want)
	}
	if err := w.Check(); err != nil {
		t.Fatal(err)
	}
	if moved := w.Sync(1280, 0); moved != 0 || w.Time() != 1280 || w.Due(1280) != n {
		t.Fatalf("moved %d, time is %d, %d due", moved, w.Time(), w.Due(1280))
	}
}

func TestSlotsThatBeginTogetherArePassedCoarsestFirst(t *testing.T) {
	w := New(0, make(records, 11))
	for ref := uint32(1); ref <= 9; ref++ {
		w.Add(ref, 1024+int64(ref)) // level 1
	}
	w.Sync(800, 0)
	w.Add(10, 1024) // level 0, as the slot of the others is next but not lowered
	if moved := w.Sync(1100, 1); moved != 1 || w.Time() != 1024 {
		t.Fatalf("moved %d, time is %d", moved, w.Time())
	}
	if err := w.Check(); err != nil {
		t.Fatal(err)
	}
	if n := w.Due(1030); n != 6 {
		t.Fatalf("%d due at 1030", n)
	}
}

func TestDueBeyondTheRingCountsNoSlotTwice(t *testing.T) {
	w := New(0, make(records, 4))
	w.Add(1, 100)
	w.Add(2, 100*256)
	w.Add(3, 100*65536)
	for l := range 3 {
		for _, slots := range []int64{0, 255, 256, 511, 512, 513, 1024} {
			now, want := (100+slots)<<(l*levelBits)+1, 0
			for ref := range 3 {
				if int64(100)<<(ref*levelBits) < now {
					want++
				}
			}
			if n := w.Due(now); n != want {
				t.Errorf("%d due %d slots on in level %d, want %d", n, slots, l, want)
			}
		}
	}
}

func TestCascadeBeginsOneSlotAheadAndDueFinishesIt(t *testing.T) {
	w := New(0, make(records, 10))
	for ref := uint32(1); ref < 10; ref++ {
		w.Add(ref, 1024+100)
	}
	if next, _ := w.Next(); next != 1024-256 {
		t.Fatalf("Next is %d", next)
	}
	w.Sync(1024-256, 3)
	if next, ok := w.NextCascade(); !ok || next != w.Time() {
		t.Fatalf("NextCascade is %d, %v", next, ok)
	}
	if n := w.Due(1024 + 50); n != 0 {
		t.Fatalf("%d due", n)
	}
	if next, ok := w.NextCascade(); ok {
		t.Fatalf("NextCascade is %d after Due", next)
	}
	if next, _ := w.Next(); next != 1024+101 {
		t.Fatalf("Next is %d", next)
	}
}

func TestWholeSlotFallsDueWithoutBeingMoved(t *testing.T) {
	const n = 1000
	w := New(start, make(records, n+1))
	for ref := uint32(1); ref <= n; ref++ {
		w.Add(ref, start+day)
	}
	if moved := w.Sync(start+3*day, 1<<30); moved != 0 {
		t.Fatalf("moved %d", moved)
	}
	if w.Due(start+3*day) != n {
		t.Fatalf("%d due", w.Due(start+3*day))
	}
	if err := w.Check(); err != nil {
		t.Fatal(err)
	}
}

func TestFireMayChangeTheWheel(t *testing.T) {
	const n = 50
	w := New(start, make(records, n+1))
	for ref := uint32(1); ref <= n; ref++ {
		w.Add(ref, start+5)
	}
	var fired []uint32
	for w.Advance(start+10, 3, func(ref uint32) {
		fired = append(fired, ref)
		switch {
		case ref == 1:
			w.Remove(2) // next in the slot
			w.Remove(n) // last in the slot
		case ref == 3:
			w.Add(2, start+6)  // past: due at once, behind the others
			w.Add(1, start+20) // future
		}
		if err := w.Check(); err != nil {
			t.Fatal(err)
		}
	}) > 0 {
	}
	if len(fired) != n-1 || fired[1] != 3 || fired[len(fired)-1] != 2 {
		t.Fatalf("fired %v", fired)
	}
	if next, ok := w.Next(); !ok || next != start+21 || w.Len() != 1 {
		t.Fatalf("Next is %d, %v, Len %d", next-start, ok, w.Len())
	}
}

func TestLookIntoTheFutureFiresNothingEarly(t *testing.T) {
	w := New(start, make(records, 4))
	w.Add(1, start+300)
	w.Add(2, start+2*day)
	w.Add(3, start+2*year)
	if n := w.Due(start + year); n != 2 {
		t.Fatalf("%d due in a year", n)
	}
	if fired := run(t, w, start+299); fired != nil {
		t.Fatalf("fired %v", fired)
	}
}

func TestTimeThatGoesBackIsIgnored(t *testing.T) {
	w := New(start, make(records, 2))
	w.Sync(start+100, 10)
	w.Add(1, start+50)
	if n := w.Due(start); n != 1 {
		t.Fatalf("%d due", n)
	}
	if fired := run(t, w, start-day); len(fired) != 1 || w.Time() != start+100 {
		t.Fatalf("fired %v, time moved by %d", fired, w.Time()-start-100)
	}
}

func TestDeadlinesOutOfRangeAreClamped(t *testing.T) {
	r := make(records, 3)
	w := New(-5, r)
	w.Add(1, -1)
	w.Add(2, 1<<62)
	if r[1].Deadline() != 0 || r[2].Deadline() != MaxDeadline {
		t.Fatalf("deadlines %d, %d", r[1].Deadline(), r[2].Deadline())
	}
	if fired := run(t, w, 1); !slices.Equal(fired, []uint32{1}) {
		t.Fatalf("fired %v", fired)
	}
	if fired := run(t, w, 1<<62); !slices.Equal(fired, []uint32{2}) {
		t.Fatalf("fired %v", fired)
	}
	w.Add(1, 1<<62) // time is beyond what an entry can hold
	if fired := run(t, w, 1<<62); !slices.Equal(fired, []uint32{1}) {
		t.Fatalf("fired %v", fired)
	}
}

func TestRemoveOfAStrangerPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	New(start, make(records, 2)).Remove(1)
}

func TestForecastIsExactNearbyAndAddsUpFarAway(t *testing.T) {
	const n = 2560
	w := New(start, make(records, n+1))
	for ref := uint32(1); ref <= n/2; ref++ {
		w.Add(ref, start+int64(ref)%256)
	}
	for ref := uint32(n/2 + 1); ref <= n; ref++ {
		w.Add(ref, start+day+int64(ref-n/2)*day/n)
	}
	bounds := []int64{start + 64, start + 128, start + second, start + day + day/4, start + 3*day}
	counts := make([]int, len(bounds))
	w.Forecast(start, bounds, counts)
	if !slices.Equal(counts[:3], []int{64 * 5, 64 * 5, 128 * 5}) {
		t.Errorf("the first second: %v", counts)
	}
	if counts[3]+counts[4] != n/2 || counts[3] < n/8 || counts[3] > 3*n/8 {
		t.Errorf("far away: %v", counts[3:])
	}
}

func TestNoMethodAllocates(t *testing.T) {
	const n = 1000
	r := make(records, n+1)
	w := New(start, r)
	now, sink := start, 0
	bounds, counts := []int64{start + day}, make([]int, 1)
	fire := func(ref uint32) { sink += int(ref) }
	allocs := testing.AllocsPerRun(100, func() {
		for ref := uint32(1); ref <= n; ref++ {
			w.Add(ref, now+int64(ref)*int64(ref)*977)
		}
		for ref := uint32(1); ref <= n; ref += 7 {
			w.Remove(ref)
		}
		w.Forecast(now, bounds, counts)
		sink += w.Due(now+hour) + w.Due(now+100)
		for w.Len() > 0 {
			now, _ = w.Next()
			w.Advance(now, 50, fire)
		}
	})
	if allocs != 0 {
		t.Fatalf("%v allocations per run", allocs)
	}
}
