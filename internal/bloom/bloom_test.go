package bloom

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/testing/chunktest"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

func memory() *chunktest.Memory { return new(chunktest.Memory) }

func item(n uint64) Hash {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	return HashOf(b[:])
}

func newFilter(t testing.TB, cfg Config) *Filter {
	t.Helper()
	f, err := New(memory(), cfg)
	if err != nil {
		t.Fatal(cfg, err)
	}
	return f
}

// fill adds n different items, or stops where the filter is full, and returns the
// number of the next one.
func fill(t testing.TB, f *Filter, next uint64, n int64) uint64 {
	t.Helper()
	for range n {
		if _, err := f.Add(item(next), 0); err != nil {
			t.Fatal(err)
		}
		next++
	}
	return next
}

// falsely returns the share of items found that were never added.
func falsely(f *Filter, from uint64, samples int) float64 {
	hits := 0
	for i := range samples {
		if f.Has(item(from+uint64(i)), 0) {
			hits++
		}
	}
	return float64(hits) / float64(samples)
}

// atMost fails if a measured rate is above the one asked for by more than chance
// explains: four standard deviations.
func atMost(t *testing.T, what string, rate, asked float64, samples int) {
	t.Helper()
	if limit := asked + 4*math.Sqrt(asked/float64(samples)); rate > limit {
		t.Errorf("%s: %.3g of the items that were not added are found, not more than %.3g", what, rate, asked)
	}
}

func TestTheRateIsTheOneAskedForAtCapacity(t *testing.T) {
	for _, p := range []float64{0.5, 0.1, 0.01, 0.001, 0.0001} {
		for _, n := range []int64{10, 100, 1000, 100_000, 1_000_000} {
			if n > 100_000 && tier.Short() {
				continue
			}
			samples, filters := 2_000_000, 1
			if tier.Short() {
				samples /= 10
			}
			if n <= 1000 {
				filters = int(20_000 / n) // a small filter is good or bad by chance
			}
			sum, next := 0.0, uint64(n)<<32
			for range filters {
				f := newFilter(t, Config{Error: p, Capacity: n})
				for f.gens[0].latest < n {
					next = fill(t, f, next, n-f.gens[0].latest)
				}
				sum += falsely(f, 1<<60+next, samples/filters)
			}
			t.Logf("asked for %g, %d items: %.3g", p, n, sum/float64(filters))
			atMost(t, fmt.Sprintf("capacity %d", n), sum/float64(filters), p, samples)
		}
	}
}

func TestTheRateHoldsWhileTheFilterGrows(t *testing.T) {
	samples := 1_000_000
	if tier.Short() {
		samples /= 10
	}
	for _, p := range []float64{0.1, 0.01, 0.001, 0.0001} {
		for _, expansion := range []int64{1, 2, 4} {
			f := newFilter(t, Config{Error: p, Capacity: 200, Expansion: expansion})
			next := uint64(0)
			for f.Layers(0) < 6 || f.Len(0) < f.Capacity() {
				next = fill(t, f, next, 1)
			}
			rate := falsely(f, 1<<60, samples)
			t.Logf("asked for %g, expansion %d, %d items in %d layers: %.3g", p, expansion, f.Len(0), f.Layers(0), rate)
			atMost(t, fmt.Sprintf("expansion %d", expansion), rate, p, samples)
		}
	}
}

func TestTheRateHoldsForAllGenerationsTogether(t *testing.T) {
	f := newFilter(t, Config{Error: 0.01, Capacity: 40_000, Expansion: 2, Window: 1000, Generations: 4})
	next := uint64(0)
	for now := int64(0); now < 1250; now += 250 {
		for range 10_000 {
			if _, err := f.Add(item(next), now); err != nil {
				t.Fatal(err)
			}
			next++
		}
	}
	hits := 0
	for i := range 1_000_000 {
		if f.Has(item(1<<60+uint64(i)), 1249) {
			hits++
		}
	}
	if len(f.gens) != 5 {
		t.Errorf("%d generations", len(f.gens))
	}
	atMost(t, "5 generations", float64(hits)/1e6, 0.01, 1_000_000)
}

func TestMemoryIsNearTheTheoreticalMinimum(t *testing.T) {
	for _, p := range []float64{0.1, 0.01, 0.0001, 1e-9} {
		var l layer
		l.shape(10_000_000, p)
		best := -math.Log(p) / (math.Ln2 * math.Ln2) / 8 * 1e7
		if ratio := float64(l.bytes()) / best; ratio > 1.06 {
			t.Errorf("rate %g: %.3f times the bits that are needed", p, ratio)
		}
	}
}

func TestHashesAreTheSameEverywhere(t *testing.T) {
	if h := HashOf([]byte("item")); h != (Hash{0xbdd18088ab0530c, 0x9ee69e6cc606f43c}) {
		t.Errorf("%#x %#x", h.hi, h.lo)
	}
}

func TestReservingAllocatesNoBits(t *testing.T) {
	for _, cfg := range []Config{
		{Error: 0.01, Capacity: MaxCapacity, Expansion: 2},
		{Error: 0.01, Capacity: 1 << 28, Window: 1000, Generations: 4},
	} {
		m := memory()
		f, err := New(m, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if m.Held()+m.Taken() != 0 || f.Size() > 2<<20 {
			t.Errorf("%d bytes of bits, %d in all", m.Held()+m.Taken(), f.Size())
		}
	}
	for _, cfg := range []Config{
		{Error: 1e-12, Capacity: MaxCapacity, Expansion: 2},
		{Error: 1e-6, Capacity: MaxCapacity, Window: 1000, Generations: 64},
	} {
		if _, err := New(memory(), cfg); err != ErrTooLarge {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	for _, cfg := range []Config{
		{Error: 0, Capacity: 1}, {Error: 1, Capacity: 1}, {Error: math.NaN(), Capacity: 1}, {Error: 0.1}, {Error: 0.1, Capacity: MaxCapacity + 1},
		{Error: 0.1, Capacity: 1, Expansion: -1}, {Error: 0.1, Capacity: 1, Window: 5}, {Error: 0.1, Capacity: 1, Generations: 1},
		{Error: 0.1, Capacity: 1, Window: 5, Generations: 6},
	} {
		if _, err := New(memory(), cfg); err != ErrConfig {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestAFullFilterTakesNothingNew(t *testing.T) {
	f := newFilter(t, Config{Error: 0.01, Capacity: 3})
	fill(t, f, 0, 3)
	if _, err := f.Add(item(99), 0); err != ErrFull {
		t.Error(err)
	}
	if r, err := f.Add(item(2), 0); r != Present || err != nil {
		t.Error(r, err)
	}
}

func TestAFilterThatCannotGrowSaysSo(t *testing.T) {
	f := newFilter(t, Config{Error: 0.01, Capacity: 1, Expansion: 1})
	for i := uint64(0); ; i++ {
		if _, err := f.Add(item(i), 0); err == ErrTooLarge {
			break
		} else if err != nil || i > 1000 {
			t.Fatal(err, i)
		}
	}
	if f.Layers(0) != maxLayers {
		t.Error(f.Layers(0))
	}
}

func TestGenerationsBeginWhereTheFormulaSays(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		c := Config{Window: rapid.Int64Range(1, 5000).Draw(t, "window")}
		c.Generations = rapid.Int64Range(1, min(c.Window, MaxGenerations)).Draw(t, "generations")
		ms := rapid.Int64Range(-1<<46, 1<<46).Draw(t, "ms")
		n := c.number(ms)
		if c.begins(n) > ms || c.begins(n+1) <= ms {
			t.Fatalf("%d is said to be in %d, which is from %d to %d", ms, n, c.begins(n), c.begins(n+1))
		}
		if c.begins(n+c.Generations) != c.begins(n)+c.Window {
			t.Fatal("a window is not as many generations")
		}
		if d := c.begins(n+1) - c.begins(n); d < c.Window/c.Generations || d > (c.Window+c.Generations-1)/c.Generations {
			t.Fatalf("generation %d lasts %d ms", n, d)
		}
	})
}

// A filter against a map: no false negative, ever, ageing within its bounds, and
// dumps and clones that are the same filter.
func TestFiltersForgetNothingTooEarlyNorTooLate(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		x := newCompared(t)
		t.Repeat(map[string]func(*rapid.T){
			"":       x.look,
			"add":    x.add,
			"pass":   func(t *rapid.T) { x.now += rapid.Int64Range(0, max(x.cfg.Window/2, 1)).Draw(t, "ms") },
			"rotate": x.rotate,
			"dump": func(t *rapid.T) {
				x.same(t, "dump", func() (*Filter, error) { return Restore(x.m, x.f.AppendDump(nil)) })
			},
			"clone":    func(t *rapid.T) { x.same(t, "clone", x.f.Clone) },
			"scandump": func(t *rapid.T) { x.same(t, "scandump", x.inChunks) },
		})
		if x.f.FreeAll(math.MaxInt); x.m.Held()+x.m.Taken() != 0 {
			t.Fatalf("%d bytes are left", x.m.Held()+x.m.Taken())
		}
	})
}

// compared is a filter beside its model.
type compared struct {
	cfg   Config
	m     *chunktest.Memory
	f     *Filter
	now   int64            // ms
	added map[uint64]int64 // items below items, by when they were added last
}

// items is the number of different items that are added.
const items = 60

func newCompared(t *rapid.T) *compared {
	cfg := Config{Error: rapid.SampledFrom([]float64{1e-9, 1e-7}).Draw(t, "rate"), Capacity: rapid.Int64Range(1, 30).Draw(t, "capacity"),
		Expansion: rapid.Int64Range(0, 3).Draw(t, "expansion")}
	if rapid.Bool().Draw(t, "ages") {
		cfg.Window = rapid.Int64Range(1, 300).Draw(t, "window")
		cfg.Generations = rapid.Int64Range(1, min(cfg.Window, 8)).Draw(t, "generations")
	}
	m := memory()
	f, err := New(m, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &compared{cfg: cfg, m: m, f: f, now: 1_700_000_000_000, added: map[uint64]int64{}}
}

// lives reports whether an item must be found, and whether it may be.
func (x *compared) lives(n uint64) (surely, maybe bool) {
	at, ok := x.added[n]
	if x.cfg.Window == 0 {
		return ok, ok
	}
	step := (x.cfg.Window + x.cfg.Generations - 1) / x.cfg.Generations
	return ok && x.now-at <= x.cfg.Window, ok && x.now-at <= x.cfg.Window+step
}

func (x *compared) look(t *rapid.T) {
	for n := uint64(0); n < items; n++ {
		surely, maybe := x.lives(n)
		if has := x.f.Has(item(n), x.now); surely && !has || has && !maybe {
			t.Fatalf("item %d, added at %d, is found at %d: %v", n, x.added[n], x.now, has)
		}
	}
	if err := x.f.Check(); err != nil {
		t.Fatal(err)
	}
	if d := x.f.AppendDump(nil); len(d) > x.f.DumpSize() {
		t.Fatalf("%d bytes, %d were said", len(d), x.f.DumpSize())
	}
}

func (x *compared) add(t *rapid.T) {
	n := rapid.Uint64Range(0, items-1).Draw(t, "item")
	surely, maybe := x.lives(n)
	living := x.f.Len(x.now)
	if dead := x.f.Rotate(x.now); dead != nil {
		dead.FreeAll(math.MaxInt)
	}
	switch r, err := x.f.Add(item(n), x.now); {
	case err == ErrFull:
		if surely || living < x.cfg.Capacity || x.cfg.Expansion != 0 {
			t.Fatal("full")
		}
	case err != nil && err != ErrTooLarge:
		t.Fatal(err)
	case err == nil:
		if surely && r == Added || !maybe && r != Added {
			t.Fatalf("adding %d: %d", n, r)
		}
		if got := x.f.Len(x.now); r == Added && got != living+1 || r != Added && got != living {
			t.Fatalf("%d items, then %d", living, got)
		}
		x.added[n] = x.now
	}
}

func (x *compared) rotate(t *rapid.T) {
	due := x.f.NextDue()
	dead := x.f.Rotate(x.now)
	if (dead != nil) != (due != 0 && x.now > due) {
		t.Fatalf("due at %d, rotated at %d: %v", due, x.now, dead != nil)
	}
	if dead != nil {
		for dead.FreeAll(1) == 1 {
		}
	}
}

// same continues with a copy, which must be the same filter.
func (x *compared) same(t *rapid.T, name string, copied func() (*Filter, error)) {
	g, err := copied()
	if err != nil || !bytes.Equal(g.AppendDump(nil), x.f.AppendDump(nil)) || g.Size() != x.f.Size() {
		t.Fatalf("%s: another filter, %v", name, err)
	}
	x.f.FreeAll(math.MaxInt)
	x.f = g
}

// inChunks copies the filter as BF.SCANDUMP and BF.LOADCHUNK do.
func (x *compared) inChunks() (*Filter, error) {
	b, at := x.f.Chunk(nil, 0)
	g, err := Restore(x.m, b)
	for err == nil {
		if b, at = x.f.Chunk(nil, at); at == 0 {
			break
		}
		err = g.Load(b)
	}
	return g, err
}

func TestLargeFiltersGoInChunks(t *testing.T) {
	m := memory()
	f, err := New(m, Config{Error: 0.001, Capacity: 2_000_000, Expansion: 2})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, f, 0, 300_000)
	b, at := f.Chunk(nil, 0)
	g, err := Restore(m, b)
	if err != nil {
		t.Fatal(err)
	}
	chunks := 0
	for {
		if b, at = f.Chunk(b[:0], at); at == 0 {
			break
		}
		if chunks++; len(b) > chunkBytes+pieceBytes+16 {
			t.Errorf("a chunk of %d bytes", len(b))
		}
		if err := g.Load(b); err != nil {
			t.Fatal(err)
		}
	}
	if chunks < 4 || !bytes.Equal(f.AppendDump(nil), g.AppendDump(nil)) {
		t.Error(chunks, "chunks")
	}
}

func FuzzRestore(f *testing.F) {
	for _, cfg := range []Config{{Error: 0.01, Capacity: 5, Expansion: 2}, {Error: 0.1, Capacity: 4, Window: 100, Generations: 3}} {
		x := newFilter(f, cfg)
		for i := range uint64(12) {
			x.Add(item(i), int64(i)*20)
		}
		f.Add(x.AppendDump(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := memory()
		x, err := Restore(m, b)
		if err != nil {
			if m.Held()+m.Taken() != 0 {
				t.Fatal("memory is lost")
			}
			return
		}
		if err := x.Check(); err != nil {
			t.Fatal(err)
		}
		x.Rotate(1000)
		x.Add(item(1), 1000)
		x.Has(item(2), 5000)
		if err := x.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkHas(b *testing.B) {
	for _, n := range []int64{1000, 10_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := newFilter(b, Config{Error: 0.01, Capacity: n, Expansion: 2})
			fill(b, f, 0, n)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				f.Has(item(uint64(i)%uint64(2*n)), 0)
			}
		})
	}
}
