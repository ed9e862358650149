package redisson

import (
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

// What follows was worked out by a program of its own, in another language, from
// the published algorithm of HighwayHash (checked by its vectors: 128 bits of the
// empty text under the key 00 01 .. 1f are 0fed268f9d8ffec7 33565e767f093e6f) and
// from Redisson's formulas: 100 values at 0.03 are 729 bits, 5 for each value.
var javaPlaces = map[string][]int64{
	"ann": {640, 601, 567, 528, 439},
	"bob": {225, 443, 668, 157, 437},
	"a longer value, of more than thirty-two bytes": {374, 173, 547, 346, 46},
	"": {386, 57, 498, 169, 610},
}

const javaBitmap = "00000000000200000000000000000000000000040004000000000000400000000000000000000000" +
	"0000002000000200000000000000051000000000000000000000800010000100000000400000000080000008"

func bloomFilter(t *testing.T, c *ebb.Conn, name string) *BloomFilter[string] {
	t.Helper()
	f, err := NewBloomFilter[string](c, name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestTheBytesOfABloomFilterAreRedissons(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx, name := b.Context(), b.Name("seen")
		f := bloomFilter(t, b.Conn, name)
		if _, err := f.Add(ctx, "ann"); !errors.Is(err, ErrConfig) {
			t.Error(err)
		}
		if yes, err := f.TryInit(ctx, 100, 0.03); !yes || err != nil {
			t.Fatal(yes, err)
		}
		if yes, err := f.TryInit(ctx, 5, 0.5); yes || err != nil {
			t.Error("a second time:", yes, err)
		}
		fields, err := b.Do(ctx, "HMGET", "{"+name+"}:config", "size", "hashIterations", "expectedInsertions", "falseProbability")
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := fields.AsStrings(); !slices.Equal(got, []string{"729", "5", "100", "0.03"}) {
			t.Error(got)
		}
		for v := range javaPlaces {
			if v == "" {
				continue
			}
			if yes, err := f.Add(ctx, v); !yes || err != nil {
				t.Error(v, yes, err)
			}
		}
		if raw, err := b.Get(ctx, name); hex.EncodeToString([]byte(raw)) != javaBitmap || err != nil {
			t.Errorf("%x %v", raw, err)
		}
		if n, err := f.Count(ctx); n != 3 || err != nil {
			t.Error(n, err)
		}
		if yes, err := f.Add(ctx, "ann"); yes || err != nil {
			t.Error("again:", yes, err)
		}
		if all, err := f.ContainsMany(ctx, "ann", "bob", "cat", ""); !slices.Equal(all, []bool{true, true, false, false}) || err != nil {
			t.Error(all, err)
		}
		if err := f.Delete(ctx); err != nil {
			t.Error(err)
		}
		if n, err := b.Exists(ctx, name, "{"+name+"}:config"); n != 0 || err != nil {
			t.Error(n, err)
		}
	})
}

// The Java side is plain commands of another client.
func TestABloomFilterIsSharedWithJava(t *testing.T) {
	// The other client needs one server.
	backends.Except(t, []string{"mem", "file", "sentinel", "cluster"}, func(t *testing.T, b *backends.Backend) {
		opt, err := redis.ParseURL(b.URL())
		if err != nil {
			t.Fatal(err)
		}
		java := redis.NewClient(opt)
		defer java.Close()
		ctx, name := b.Context(), b.Name("shared")
		if err := java.HSet(ctx, "{"+name+"}:config", "size", 729, "hashIterations", 5, "expectedInsertions", 100, "falseProbability",
			"0.03").Err(); err != nil {
			t.Fatal(err)
		}
		for _, at := range javaPlaces["ann"] {
			if err := java.SetBit(ctx, name, at, 1).Err(); err != nil {
				t.Fatal(err)
			}
		}
		f := bloomFilter(t, b.Conn, name)
		want := BloomFilterConfig{Size: 729, HashIterations: 5, ExpectedInsertions: 100, FalseProbability: 0.03}
		if cfg, err := f.Config(ctx); cfg != want || err != nil {
			t.Error(cfg, err)
		}
		if yes, err := f.TryInit(ctx, 100, 0.03); yes || err != nil {
			t.Error(yes, err)
		}
		if yes, err := f.Contains(ctx, "ann"); !yes || err != nil {
			t.Error(yes, err)
		}
		if yes, err := f.Add(ctx, "ann"); yes || err != nil {
			t.Error(yes, err)
		}
		if yes, err := f.Add(ctx, "bob"); !yes || err != nil {
			t.Error(yes, err)
		}
		for _, at := range javaPlaces["bob"] {
			if bit, err := java.GetBit(ctx, name, at).Result(); bit != 1 || err != nil {
				t.Error(at, bit, err)
			}
		}
	})
}

func TestTheSizesOfBloomFiltersAreRedissons(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		for _, c := range []BloomFilterConfig{{9585, 7, 1000, 0.01}, {19170116, 13, 1_000_000, 0.0001}, {14, 1, 10, 0.5}} {
			f := bloomFilter(t, b.Conn, b.Name("size"))
			if _, err := f.TryInit(ctx, c.ExpectedInsertions, c.FalseProbability); err != nil {
				t.Fatal(err)
			}
			if got, err := f.Config(ctx); got != c || err != nil {
				t.Error(got, err)
			}
			if err := f.Delete(ctx); err != nil {
				t.Error(err)
			}
		}
		f := bloomFilter(t, b.Conn, b.Name("size"))
		for _, bad := range []struct {
			n int64
			p float64
		}{{0, 0.1}, {5, 0}, {5, 1}, {1 << 40, 0.01}} {
			if _, err := f.TryInit(ctx, bad.n, bad.p); !errors.Is(err, ebb.ErrArgument) {
				t.Error(bad, err)
			}
		}
	})
}

func TestNumbersAreWrittenAsJavaDoes(t *testing.T) {
	for p, want := range map[float64]string{0.03: "0.03", 0.001: "0.001", 0.0001: "1.0E-4", 0.00025: "2.5E-4", 0.5: "0.5", 1e-9: "1.0E-9"} {
		if got := javaDouble(p); got != want {
			t.Error(got, want)
		}
	}
}
