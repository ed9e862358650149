package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/lock"
)

func TestThereIsOneLeaderAndAllKnowIt(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		candidate := func(id string) *lock.Leader {
			e, err := lock.NewLeader(b.Open(), b.Name("office"), id, lock.Options{TTL: 15 * time.Second})
			must(t, err)
			return e
		}
		a, z := candidate("a:1"), candidate("z")
		watching, stop := context.WithCancel(ctx)
		var seen []string
		var mu sync.Mutex
		var wg sync.WaitGroup
		wg.Go(func() {
			for r, err := range candidate("observer").Observe(watching) {
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				seen = append(seen, r.ID)
				mu.Unlock()
			}
		})
		saw := func(id string) {
			t.Helper()
			b.Until("it is seen that "+id+" leads", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(seen) > 0 && seen[len(seen)-1] == id
			})
		}
		saw("")
		first, err := a.Campaign(ctx)
		must(t, err)
		saw("a:1")
		if r, err := z.Current(ctx); r != (lock.Reign{ID: "a:1", Token: first.Token()}) || err != nil {
			t.Error(r, err)
		}
		var second *lock.Lease
		wg.Go(func() {
			if second, err = z.Campaign(ctx); err != nil {
				t.Error(err)
			}
			stop()
		})
		b.Pass(5 * time.Millisecond)
		must(t, first.Release(ctx))
		wg.Wait()
		if second.Token() <= first.Token() {
			t.Errorf("reign %d after %d", second.Token(), first.Token())
		}
		must(t, second.Release(ctx))
		failed := errors.New("failed")
		if err := a.Lead(ctx, func(ctx context.Context, token int64) error { return failed }); !errors.Is(err, failed) {
			t.Error(err)
		}
		if r, err := z.Current(ctx); r != (lock.Reign{}) || err != nil {
			t.Error(r, err)
		}
	})
}

func TestALeaderThatLosesItsOfficeCampaignsAgain(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		e, err := lock.NewLeader(b.Conn, b.Name("office"), "a", lock.Options{TTL: short})
		must(t, err)
		var tokens []int64
		must(t, e.Lead(ctx, func(office context.Context, token int64) error {
			tokens = append(tokens, token)
			if len(tokens) >= 3 {
				return nil
			}
			if _, err := b.Del(ctx, b.Name("office")); err != nil {
				t.Error(err)
			}
			<-office.Done()
			return office.Err()
		}))
		if len(tokens) < 3 || tokens[0] >= tokens[1] || tokens[1] >= tokens[2] {
			t.Error(tokens)
		}
	})
}
