package wheel

import (
	"math/rand/v2"
	"testing"
)

const million = 1_000_000

// filled returns a wheel of a million entries with deadlines spread over an hour.
func filled() *Wheel {
	r := make(records, million+1)
	w, rng := New(start, r), rand.New(rand.NewPCG(1, 2))
	for ref := uint32(1); ref <= million; ref++ {
		w.Add(ref, start+rng.Int64N(hour))
	}
	return w
}

// BenchmarkReset moves a random one of a million deadlines: a Remove and an Add.
func BenchmarkReset(b *testing.B) {
	w := filled()
	rng := rand.New(rand.NewPCG(3, 4))
	for b.Loop() {
		x := rng.Uint64()
		ref := 1 + uint32(x>>32)%million
		w.Remove(ref)
		w.Add(ref, start+int64(x&0xffffffff)%hour)
	}
}

// BenchmarkAddRemove does so where memory is warm: it counts instructions.
func BenchmarkAddRemove(b *testing.B) {
	w := New(start, make(records, 2))
	for i := int64(0); b.Loop(); i++ {
		w.Add(1, start+i*977&0xffffff)
		w.Remove(1)
	}
}

// BenchmarkAdvance follows time in steps of 10 ms over an hour in which a million
// deadlines of entries pass. An operation is an entry, from Add through its cascades to fire.
func BenchmarkAdvance(b *testing.B) {
	w := filled()
	rng, now := rand.New(rand.NewPCG(5, 6)), start
	b.ResetTimer()
	for n := 0; n < b.N; {
		now += 10
		n += w.Advance(now, million, func(ref uint32) { w.Add(ref, now+rng.Int64N(hour)) })
	}

}

// BenchmarkNext calls Next of a wheel with entries in three levels.
func BenchmarkNext(b *testing.B) {
	w := filled()
	w.Sync(start, million)
	for b.Loop() {
		w.Next()
	}
}

// BenchmarkCascade lowers a slot of a million entries that share a deadline; an
// operation is an entry.
func BenchmarkCascade(b *testing.B) {
	r := make(records, million+1)
	for n := 0; n < b.N; {
		b.StopTimer()
		w := New(0, r)
		for ref := uint32(1); ref <= million; ref++ {
			w.Add(ref, 1000)
		}
		b.StartTimer()
		n += w.Sync(700, million)
	}
}

// BenchmarkPass lets time pass over a million entries that share a deadline.
func BenchmarkPass(b *testing.B) {
	r := make(records, million+1)
	w := New(start, r)
	for ref := uint32(1); ref <= million; ref++ {
		w.Add(ref, start+hour)
	}
	saved := *w
	for b.Loop() {
		*w = saved
		w.Sync(start+day, million)
	}
}

// BenchmarkResolver compares the interface with a func field.
func BenchmarkResolver(b *testing.B) {
	r := make(records, 1024)
	b.Run("func", func(b *testing.B) {
		s := &struct{ entry func(uint32) *Entry }{r.Entry}
		for i := uint32(0); b.Loop(); i++ {
			s.entry(i&1023).next++
		}
	})
	b.Run("interface", func(b *testing.B) {
		s := &struct{ Resolver }{&r}
		for i := uint32(0); b.Loop(); i++ {
			s.Entry(i&1023).next++
		}
	})
}
