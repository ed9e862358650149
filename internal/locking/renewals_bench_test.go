package locking

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkLanes adds a lease to a random lane and removes it, as goroutines do that lock and release at the same time.
func BenchmarkLanes(b *testing.B) {
	for _, n := range []int{1, 4, lanes, 64} {
		b.Run(fmt.Sprintf("lanes=%d", n), func(b *testing.B) {
			all := make([]lane, n)
			for i := range all {
				all[i].after = time.Hour
			}
			b.SetParallelism(8)
			var goroutines atomic.Uint64
			b.RunParallel(func(pb *testing.PB) {
				l, random := &Lease{requested: Now()}, rand.New(rand.NewPCG(1, goroutines.Add(1)))
				for pb.Next() {
					at := &all[random.IntN(n)]
					at.add(l)
					at.remove(l)
				}
			})
			for i := range all {
				all[i].idle()
			}
		})
	}
}
