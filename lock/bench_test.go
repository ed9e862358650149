package lock_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/lock"
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

// BenchmarkOnceValue reads a kept result, and does work, on an embedded engine.
func BenchmarkOnceValue(b *testing.B) {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	must(b, err)
	defer c.Close()
	o, err := lock.NewOnceValue[string](c, "once", time.Minute)
	must(b, err)
	work := func(context.Context) (string, error) { return "result", nil }
	b.Run("done", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := o.Do(ctx, "done", work); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("did", func(b *testing.B) {
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			if _, what, err := o.Do(ctx, strconv.Itoa(n), work); err != nil || what != lock.Did {
				b.Fatal(what, err)
			}
		}
	})
}

// BenchmarkLockApart acquires and releases locks of an embedded engine from many goroutines, each of which has its own lock.
func BenchmarkLockApart(b *testing.B) {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	must(b, err)
	defer c.Close()
	var n atomic.Int64
	b.SetParallelism(8)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		name := "lock" + strconv.FormatInt(n.Add(1), 10)
		for pb.Next() {
			lease, err := lock.Acquire(ctx, c, name, time.Minute)
			if err == nil {
				err = lease.Release(ctx)
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
}
