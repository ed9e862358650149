package hotkeys

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

const second = 1_000_000

// tracker returns a Tracker, and a function that says whether it samples.
func tracker() (*Tracker, func() bool) {
	on := false
	return New(func(now bool) { on = now }), func() bool { return on }
}

func access(key string) []Access { return []Access{{Key: []byte(key)}} }

func TestTheLastWindowCounts(t *testing.T) {
	k, on := tracker()
	if _, err := k.Last(10, 1); !errors.Is(err, ErrOff) || on() || k.Sample() != 0 {
		t.Fatal("a new Tracker samples")
	}
	now := int64(1_000 * second)
	k.Configure(Config{Keys: 2, Span: 10 * second, Percent: 100}, now)
	if !on() {
		t.Fatal("it does not sample")
	}
	for i := range 100 {
		k.Note(k.Sample(), now, access("a"), 0, 0)
		if i%2 == 0 {
			k.Note(k.Sample(), now, access("b"), 0, 0)
		}
		if i%10 == 0 {
			k.Note(k.Sample(), now, []Access{{DB: 1, Key: []byte("a")}}, 0, 0)
		}
	}
	if w, err := k.Last(10, now+9*second); err != nil || len(w.Keys) != 0 {
		t.Fatal("the live window is shown", w, err)
	}
	w, err := k.Last(10, now+10*second)
	if got := fmt.Sprintf("%s %v %v", w.Keys[0].Key, w.Keys[0].QPS, w.Total); err != nil || got != "a 10 16" ||
		len(w.Keys) != 3 || w.Keys[2].DB != 1 {
		t.Fatal(got, w, err)
	}
	if w, _ := k.Last(1, now+11*second); len(w.Keys) != 1 {
		t.Fatal("more keys than asked for", w)
	}
	if w, _ := k.Last(10, now+20*second); len(w.Keys) != 0 {
		t.Fatal("an idle window has keys", w)
	}
	k.Configure(Config{Span: 10 * second, Percent: 100}, now)
	if on() || k.live != nil {
		t.Fatal("it samples although it is off")
	}
}

func TestAViewerSwitchesTheWindowsOnForAWhile(t *testing.T) {
	k, on := tracker()
	k.Configure(Config{Span: second, Percent: 100}, 1)
	k.Watch(5*second, 1)
	if !on() {
		t.Fatal("it does not sample")
	}
	k.Note(k.Sample(), 2, access("a"), 0, 0)
	if w, err := k.Last(10, 2*second); err != nil || len(w.Keys) != 1 {
		t.Fatal(w, err)
	}
	k.Note(k.Sample(), 5*second+1, access("a"), 0, 0)
	if on() || k.Sample() != 0 {
		t.Fatal("it samples although no viewer looks")
	}
}

func TestACollectionAddsUp(t *testing.T) {
	k, on := tracker()
	odd := func(key []byte) bool { return key[0]&1 == 1 }
	if err := k.Start(Options{CPU: true, Net: true, Keys: 5, Ratio: 1, Span: 60 * second, Counts: odd}, second); err != nil {
		t.Fatal(err)
	}
	if err := k.Start(Options{}, 2*second); !errors.Is(err, ErrActive) {
		t.Fatal(err)
	}
	if err := k.Reset(2 * second); !errors.Is(err, ErrActive) {
		t.Fatal(err)
	}
	k.Note(k.Sample(), 2*second, access("a"), 30, 100)
	k.Note(k.Sample(), 2*second, access("c"), 50, 10)
	k.Note(k.Sample(), 2*second, access("b"), 7, 7) // is counted in the sums alone
	r, ok := k.Report(3 * second)
	got := fmt.Sprintf("%v %d %d %d %s %s", r.Active, r.Took, r.Micros, r.Bytes, keys(r.ByCPU), keys(r.ByBytes))
	if want := "true 2000000 87 117 c=50 a=30  a=100 c=10 "; !ok || got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	if r, _ = k.Report(100 * second); r.Active || r.Took != 60*second || on() {
		t.Fatal("it did not stop by itself", r)
	}
	if k.Stop(100 * second) {
		t.Fatal("it stopped twice")
	}
	if err := k.Reset(100 * second); err != nil {
		t.Fatal(err)
	}
	if _, ok := k.Report(100 * second); ok {
		t.Fatal("Reset forgot nothing")
	}
}

func keys(all []Cost) (s string) {
	for _, c := range all {
		s += fmt.Sprintf("%s=%d ", c.Key, c.Sum)
	}
	return s
}

// TestTheErrorBoundHolds samples two percent of a Zipf load, as the server does, and compares the
// estimates with the truth: within the bound of the sketch and five standard deviations of the sample.
func TestTheErrorBoundHolds(t *testing.T) {
	tier.Sequential(t)
	k, _ := tracker()
	k.Configure(Config{Keys: MaxKeys, Span: second, Percent: 2}, 0)
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 1, 999_999)
	const calls = 1_000_000
	truth := map[string]int{}
	for range calls {
		key := fmt.Sprint(zipf.Uint64())
		truth[key]++
		if w := k.Sample(); w != 0 {
			k.Note(w, 1, access(key), 0, 0)
		}
	}
	w, err := k.Last(MaxKeys, second)
	if err != nil || len(w.Keys) != MaxKeys {
		t.Fatal(len(w.Keys), err)
	}
	for _, h := range w.Keys {
		n := float64(truth[string(h.Key)])
		noise := 5*math.Sqrt(n*50) + 5*50
		if h.QPS > n+noise || h.QPS+h.Error < n-noise {
			t.Errorf("key %s: %.0f calls at least, %.0f at most, truth %.0f", h.Key, h.QPS, h.QPS+h.Error, n)
		}
	}
	for i, want := range []string{"0", "1", "2"} { // the hottest keys are first, with small errors
		if h := w.Keys[i]; string(h.Key) != want || h.Error > h.QPS/10 {
			t.Errorf("key %d is %s, %.0f + %.0f, want %s", i, h.Key, h.QPS, h.Error, want)
		}
	}
	if w.Total < 0.9*calls || w.Total > 1.1*calls {
		t.Errorf("%.0f calls, want about %d", w.Total, calls)
	}
}

func BenchmarkNote(b *testing.B) {
	k, _ := tracker()
	k.Configure(Config{Keys: 16, Span: 1 << 60, Percent: 100}, 0)
	all := make([][]Access, 4096)
	for i := range all {
		all[i] = access(fmt.Sprint("key:", i))
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		k.Note(forCalls, 1, all[i&4095], 0, 0)
		i++
	}
}

func BenchmarkSample(b *testing.B) {
	k, _ := tracker()
	k.Configure(Config{Keys: 16, Span: 1 << 60, Percent: 2}, 0)
	for b.Loop() {
		k.Sample()
	}
}
