package topk

import (
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

func TestCountsAreWithinTheirErrors(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		s, seed, period := new(Sketch), maphash.MakeSeed(), int64(1)
		s.Age(period)
		weights, hits := map[string]float64{}, map[string]float64{} // halved exactly
		ages := 0.0
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				n := rapid.Int64Range(1, 3).Draw(t, "periods")
				period += n
				ages++
				s.Age(period)
				for k := range weights {
					weights[k] /= math.Pow(2, float64(n))
				}
				for k := range hits {
					hits[k] /= math.Pow(2, float64(n))
				}
			case 1:
				key := fmt.Sprint(rapid.IntRange(0, 300).Draw(t, "key"))
				s.Drop(maphash.String(seed, key))
				delete(weights, key) // from now on it is a new key
				delete(hits, key)
			case 2:
				digit := rapid.IntRange(0, 9).Draw(t, "digit")
				ends := func(key []byte) bool { return int(key[len(key)-1]-'0') == digit }
				s.DropFunc(ends)
				for _, of := range []map[string]float64{weights, hits} {
					maps.DeleteFunc(of, func(key string, _ float64) bool { return ends([]byte(key)) })
				}
				s.Each(func(r Row) {
					if ends(r.Key) {
						t.Fatalf("%s is left", r.Key)
					}
				})
			default:
				from, n := rapid.IntRange(0, 300).Draw(t, "from"), rapid.IntRange(1, 200).Draw(t, "n")
				for i := range n {
					key, w := fmt.Sprint((from+i*i)%400), uint64(1+i%3)
					s.Add(maphash.String(seed, key), []byte(key), w, period)
					s.Hit(maphash.String(seed, key))
					weights[key] += float64(w)
				}
			}
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
		}
		has, lowest := map[string]bool{}, math.Inf(1)
		s.Each(func(r Row) {
			has[string(r.Key)] = true
			lowest = min(lowest, float64(r.Count))
			// A halving rounds by less than 1.
			if w := weights[string(r.Key)]; w > float64(r.Count)+ages || w < float64(r.Count)-float64(r.Error)-ages {
				t.Fatalf("%s: %d with an error of %d, its weight is %v", r.Key, r.Count, r.Error, w)
			}
		})
		if s.Len() < Size {
			lowest = 0
		}
		for k, w := range weights {
			if !has[k] && w > max(lowest, float64(s.floor))+ages {
				t.Fatalf("%s of weight %v has no entry; the lowest count is %v, the floor %d", k, w, lowest, s.floor)
			}
		}
	})
}

func TestTheMostFrequentOfAMillionKeysAreFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, 1.1, 1, 1_000_000-1)
	s, seed := new(Sketch), maphash.MakeSeed()
	const n = 300_000
	weights := map[uint64]uint64{}
	for range n {
		k := zipf.Uint64()
		weights[k]++
		key := fmt.Append(nil, k)
		s.Add(maphash.Bytes(seed, key), key, 1, 0)
	}
	has := map[string]bool{}
	s.Each(func(r Row) {
		var k uint64
		_, _ = fmt.Sscan(string(r.Key), &k)
		has[string(r.Key)] = true
		if w := weights[k]; w > r.Count || w+r.Error < r.Count || r.Error > n/Size {
			t.Errorf("%d: %d with an error of %d, its weight is %d", k, r.Count, r.Error, w)
		}
	})
	for k, w := range weights {
		if w > n/Size && !has[fmt.Sprint(k)] {
			t.Errorf("%d of weight %d is missing", k, w)
		}
	}
}

func TestALongKeyIsNotCounted(t *testing.T) {
	s := new(Sketch)
	s.Add(1, make([]byte, MaxKey+1), 1, 0)
	s.Add(2, make([]byte, MaxKey), 1, 0)
	if s.Len() != 1 {
		t.Errorf("%d entries, want 1", s.Len())
	}
}

func BenchmarkAdd(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, 1.1, 1, 1_000_000-1)
	seed := maphash.MakeSeed()
	keys, hashes := make([][]byte, 1<<16), make([]uint64, 1<<16)
	for i := range keys {
		keys[i] = fmt.Append(nil, "limit:", zipf.Uint64())
		hashes[i] = maphash.Bytes(seed, keys[i])
	}
	s, i := new(Sketch), 0
	b.ReportAllocs()
	for b.Loop() {
		s.Add(hashes[i&0xffff], keys[i&0xffff], 1, 0)
		i++
	}
}
