package lock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/lock"
)

func TestAllGoOnWhenTheLatchIsAtZero(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		fresh(t, b, b.Name("k"))
		l, err := lock.NewLatch(b.Conn, b.Name("k"))
		must(t, err)
		must(t, l.Wait(ctx)) // without a Set the count is zero
		if ok, err := l.Set(ctx, 2); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if ok, err := l.Set(ctx, 5); ok || err != nil {
			t.Fatal(ok, err)
		}
		var through atomic.Int32
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := l.Wait(ctx); err != nil {
					t.Error(err)
				}
				through.Add(1)
			})
		}
		if n, err := l.CountDown(ctx); n != 1 || err != nil {
			t.Error(n, err)
		}
		b.Pass(5 * time.Millisecond)
		if n := through.Load(); n != 0 {
			t.Errorf("%d went on at 1", n)
		}
		if n, err := l.CountDown(ctx); n != 0 || err != nil {
			t.Error(n, err)
		}
		wg.Wait()
		if n, err := l.CountDown(ctx); n != 0 || err != nil {
			t.Error(n, err)
		}
		giving, cancel := context.WithCancel(ctx)
		_, err = l.Set(ctx, 1)
		must(t, err)
		wg.Go(func() {
			if err := l.Wait(giving); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		b.Pass(2 * time.Millisecond)
		cancel()
		wg.Wait()
	})
}
