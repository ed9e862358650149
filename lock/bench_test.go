package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
)

// BenchmarkLock acquires and releases locks of an embedded engine.
func BenchmarkLock(b *testing.B) {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	must(b, err)
	defer c.Close()
	b.Run("free", func(b *testing.B) {
		l := newLock(b, c, "free", time.Minute)
		b.ReportAllocs()
		for b.Loop() {
			lease, err := l.TryAcquire(ctx)
			must(b, err)
			must(b, lease.Release(ctx))
		}
	})
	b.Run("contended", func(b *testing.B) {
		l := newLock(b, c, "contended", time.Minute)
		b.SetParallelism(8)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				lease, err := l.Acquire(ctx, 0)
				if err == nil {
					err = lease.Release(ctx)
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}
