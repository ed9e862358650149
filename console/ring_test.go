package console

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/ebbdb/ebb/embed"
)

// series is the answer of GET api/samples.
type series struct {
	Now, Step int64
	At        []int64
	Ops       []*float64
	P99       []*float64
	Keys      []float64
	Expired   map[string][]float64
}

func TestSamplesOfTenSecondsAreTakenWithoutAViewer(t *testing.T) {
	b := newBench(t, Options{})
	for i := range 400 { // more than an hour
		b.admin("SET", "k", "v")
		if i%2 == 0 {
			b.admin("SET", text64(int64(i)), "v", "PX", "1")
		}
		b.clock.Advance(longStep)
		b.hub.tick()
	}
	var s series
	b.get("api/samples?span=1h", &s)
	if s.Step != 10_000 || len(s.At) != longKept || len(s.Ops) != longKept || s.Now != b.now() || s.At[longKept-1] != b.now() {
		t.Fatalf("%d points each %d ms", len(s.At), s.Step)
	}
	for i := range s.At {
		if i > 0 && s.At[i]-s.At[i-1] != 10_000 || s.Keys[i] < 1 || s.Ops[i] == nil || *s.Ops[i] < 0.1 || *s.Ops[i] > 0.3 {
			t.Fatalf("point %d: at %d, %v keys, %v ops/s", i, s.At[i], s.Keys[i], *s.Ops[i])
		}
	}
	b.get("api/samples", &s)
	if s.Step != 1000 || len(s.At) != 90 {
		t.Errorf("%d points each %d ms for a quarter of an hour", len(s.At), s.Step)
	}
	if status, _ := b.ask("GET", "api/samples?span=1d", ""); status != 400 {
		t.Errorf("%d", status)
	}
}

func TestSamplesHaveTheRatesOfLimitersAndQueues(t *testing.T) {
	b := newBench(t, Options{})
	b.hub.tick()
	for i := range 40 {
		b.admin("RL.TAKE", "api", "30", "3600000")
		b.admin("DQ.ADD", "mail", text64(int64(i)), "hello")
	}
	for _, job := range b.admin("DQ.POP", "mail", "COUNT", "20", "LEASE", "60000").Elems[:10] {
		b.admin("DQ.ACK", "mail", job.Elems[0].Str, text64(job.Elems[3].Int))
	}
	b.clock.Advance(longStep)
	b.hub.tick()
	var s map[string]json.RawMessage
	b.get("api/samples", &s)
	for name, want := range map[string]string{"allowed": "3]", "denied": "1]", "jobsAdded": "4]", "jobsDelivered": "2]", "jobsAcked": "1]"} {
		if got := string(s[name]); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s, want %s at the end", name, got, want)
		}
	}
}

// The list of keys shows a TTL for a lock and for a semaphore: that of the last lease.
func TestSamplesCountLocksAmongTheKeysWithATTL(t *testing.T) {
	b := newBench(t, Options{})
	b.hub.tick()
	b.admin("SET", "short", "v", "PX", "600000")
	b.admin("SET", "kept", "v")
	b.admin("LOCK.ACQUIRE", "lock", "ann", "600000")
	b.admin("SEM.ACQUIRE", "pool", "ann", "3", "600000")
	b.clock.Advance(longStep)
	b.hub.tick()
	var s map[string]json.RawMessage
	b.get("api/samples", &s)
	if got := string(s["keysTTL"]); !strings.HasSuffix(got, "3]") {
		t.Errorf("with a TTL: %s, want 3 at the end", got)
	}
}

func TestAViewerGetsSecondsAndWhatWasBeforeThem(t *testing.T) {
	b := newBench(t, Options{})
	for range 60 {
		b.clock.Advance(longStep)
		b.hub.tick()
	}
	f := newFeed(func() {})
	b.hub.join(f)
	for range 60 {
		b.admin("SET", "k", "v")
		b.second()
		<-f.beats
	}
	b.hub.leave(f)
	b.clock.Advance(longStep)
	b.hub.tick()
	var s series
	b.get("api/samples?span=15m", &s)
	if len(s.At) != 60+60+1 || !slices.IsSorted(s.At) {
		t.Fatalf("%d points: %v", len(s.At), s.At)
	}
	for i := 1; i < len(s.At); i++ {
		if d := s.At[i] - s.At[i-1]; d != 1000 && d != 10_000 {
			t.Errorf("point %d comes %d ms behind the one before", i, d)
		}
	}
	var long series
	b.get("api/samples?span=1h", &long)
	if ops := *long.Ops[65]; len(long.At) != 67 || ops != 1 { // the mean of ten seconds
		t.Errorf("%d points, %v ops/s", len(long.At), ops)
	}
	for range 91 { // a quarter of an hour after the last viewer, the series by the second is dropped
		b.clock.Advance(longStep)
		b.hub.tick()
	}
	if b.hub.short.points != nil {
		t.Error("the samples of seconds are kept")
	}
}

func TestTheSamplesTakeLessThanHalfAMegabyte(t *testing.T) {
	if n := unsafe.Sizeof(point{}) * (shortKept + longKept); n > 200_000 {
		t.Errorf("%d bytes", n)
	}
	r := newRing(3)
	for i := range 5 {
		r.add(point{at: int64(i + 1)})
	}
	all := r.since(0)
	if len(all) != 3 || all[0].at != 3 || all[2].at != 5 || r.last() != 5 || len(r.since(4)) != 1 || cap(r.points) != 3 {
		t.Errorf("%+v", all)
	}
	s := &sample{At: 7, Ops: 1234567.25, Mem: 3, Expired: map[string]float64{"lease": 2}}
	var x series
	if err := json.Unmarshal(seriesJSON(9, []point{pointOf(s)}, time.Second), &x); err != nil || x.At[0] != 7 || *x.Ops[0] != 1234570 || x.P99[0] != nil ||
		x.Expired["lease"][0] != 2 || x.Now != 9 {
		t.Errorf("%v %+v", err, x)
	}
}

// BenchmarkASample measures the cost of a sample: without a viewer there is one every ten seconds.
func BenchmarkASample(b *testing.B) {
	over, err := embed.Open(b.Context(), "mem://")
	if err != nil {
		b.Fatal(err)
	}
	c, err := build(embed.Of(over), Options{})
	if err != nil {
		b.Fatal(err)
	}
	c.hub.tick()
	s := c.svc.NewSession(nil)
	for i := range 200_000 {
		s.Do([]byte("SET"), []byte("k"+strconv.Itoa(i)), []byte("v"), []byte("PX"), []byte(strconv.Itoa(1_000_000+17*i)))
	}
	b.ReportAllocs()
	for b.Loop() {
		c.hub.tick()
	}
	s.Closed(nil)
	if err := errors.Join(c.Close(), over.Close()); err != nil {
		b.Fatal(err)
	}
}

// The goroutine that New starts takes samples, and ends with Close: synctest reports a goroutine that is
// left.
func TestSamplesAreTakenUntilClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over, err := embed.Open(t.Context(), "mem://")
		if err != nil {
			t.Fatal(err)
		}
		c, err := New(embed.Of(over), Options{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(65 * time.Second)
		synctest.Wait()
		count := func() (long, short int) {
			c.hub.mu.Lock()
			defer c.hub.mu.Unlock()
			return len(c.hub.long.points), len(c.hub.short.points)
		}
		if long, short := count(); long != 6 || short != 0 {
			t.Errorf("%d samples of ten seconds and %d of one, after 65 s", long, short)
		}
		f := newFeed(func() {})
		c.hub.join(f)
		synctest.Wait()
		c.hub.leave(f)
		c.hub.join(f) // just after a sample: the stream waits for the next second
		time.Sleep(10*time.Second + 500*time.Millisecond)
		synctest.Wait()
		if long, short := count(); long != 7 || short < 10 || short > 11 || len(f.beats) != short {
			t.Errorf("%d samples of ten seconds and %d of one, after 10 s with a viewer", long, short)
		}
		c.hub.leave(f)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(65 * time.Second)
		if long, _ := count(); long != 7 {
			t.Errorf("%d samples of ten seconds, 65 s after Close", long)
		}
		if err := over.Close(); err != nil {
			t.Error(err)
		}
	})
}
