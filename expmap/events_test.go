package expmap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/expiries"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/expirytest"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// eachWithEvents runs test with each backend and each layout that keeps events.
func eachWithEvents(t *testing.T, test func(t *testing.T, b *backends.Backend, lay mode)) {
	t.Helper()
	withEvents(t, each, test)
}

// virtuallyWithEvents runs a test as eachWithEvents does, in virtual time alone.
func virtuallyWithEvents(t *testing.T, test func(t *testing.T, b *backends.Backend, lay mode)) {
	t.Helper()
	withEvents(t, virtually, test)
}

func withEvents(t *testing.T, each func(*testing.T, func(*testing.T, *backends.Backend, mode)),
	test func(t *testing.T, b *backends.Backend, lay mode)) {
	t.Helper()
	each(t, func(t *testing.T, b *backends.Backend, lay mode) {
		if lay == modeAuto || lay == modeZset {
			test(t, b, lay)
		}
	})
}

// heard keeps the events that a listener received.
type heard struct {
	mu  sync.Mutex
	all []string
}

func (h *heard) add(e Expired[string, int]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, fmt.Sprintf("%s=%d", e.Key, e.Value))
}

func (h *heard) is(want ...string) func() bool {
	return func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		got := slices.Clone(h.all)
		slices.Sort(got)
		return slices.Equal(got, want)
	}
}

// listen runs a listener until the function that it returns is called.
func listen(t *testing.T, m *Map[string, int], name string, fn func(ctx context.Context, e Expired[string, int]) error,
	o ListenOptions) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.OnExpired(ctx, name, fn, o) }()
	return sync.OnceFunc(func() {
		t.Helper()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the listener ended with %v", err)
		}
	})
}

// atLeast checks events that may be delivered more than once.
func (h *heard) atLeast(want ...string) func() bool {
	return func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		got := slices.Sorted(slices.Values(h.all))
		return slices.Equal(slices.Compact(got), want)
	}
}

func TestListenersHearEachExpiryOnce(t *testing.T) {
	eachWithEvents(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		m := open(t, b.Conn, b.Name("m[*]"), lay, Options[string, int]{Events: true})
		var billing, audit heard
		hear := func(h *heard) func(context.Context, Expired[string, int]) error {
			return func(_ context.Context, e Expired[string, int]) error {
				if e.Err != nil || !e.HasValue || e.FiredAt.Before(e.Deadline) || e.ID == "" {
					t.Errorf("%+v", e)
				}
				h.add(e)
				return nil
			}
		}
		stop := listen(t, m, "billing", hear(&billing), ListenOptions{})
		defer stop()
		must(t, m.Set(ctx, "a", 1, 20*time.Millisecond))
		must(t, m.Set(ctx, "b", 2, 40*time.Millisecond))
		must(t, m.Set(ctx, "deleted", 3, time.Minute))
		must(t, m.Set(ctx, "longer", 4, time.Minute))
		if n, err := m.Remove(ctx, "deleted"); n != 1 || err != nil {
			t.Error(n, err)
		}
		must(t, m.Set(ctx, "longer", 5, time.Hour))
		b.Until("both expiries are heard", billing.is("a=1", "b=2"))
		stop2 := listen(t, m, "audit", hear(&audit), ListenOptions{}) // events from before its first call are kept
		b.Until("another listener hears the same", audit.is("a=1", "b=2"))
		stop2()
		if b.Virtual() {
			b.Pass(2 * time.Minute)
		}
		if !billing.is("a=1", "b=2")() {
			t.Error(billing.all)
		}
	})
}

func TestAnExpiryIsHeardInTime(t *testing.T) {
	virtuallyWithEvents(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		m := open(t, b.Conn, "m", lay, Options[string, int]{Events: true})
		var late atomic.Int64
		late.Store(-1)
		stop := listen(t, m, "l", func(_ context.Context, e Expired[string, int]) error {
			late.Store(int64(time.Since(e.Deadline)))
			return nil
		}, ListenOptions{})
		defer stop()
		must(t, m.Set(ctx, "k", 1, 5*time.Minute))
		b.Pass(5 * time.Minute)
		if late.Load() >= 0 {
			t.Error("too early")
		}
		b.Pass(2 * time.Millisecond)
		if d := time.Duration(late.Load()); d < 0 || d > 2*time.Millisecond {
			t.Errorf("heard %v after the deadline", d)
		}
	})
}

func TestAnExpiryWaitsForItsListener(t *testing.T) {
	eachWithEvents(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		name := b.Name("m")
		m := open(t, b.Conn, name, lay, Options[string, int]{Events: true})
		must(t, m.Set(ctx, "a", 1, 10*time.Millisecond))
		b.Pass(30 * time.Millisecond)
		must(t, m.Set(ctx, "b", 2, time.Hour)) // another caller reads it
		if b.Fault() {
			b.Until("the backend is there again", func() bool { return b.Ping(ctx) == nil })
		}
		var h heard
		again := open(t, b.Open(), name, lay, Options[string, int]{Events: true})
		stop := listen(t, again, "l", func(_ context.Context, e Expired[string, int]) error { h.add(e); return nil }, ListenOptions{})
		b.Until("it is heard later", h.is("a=1"))
		stop()
	})
}

func TestAnExpiryThatWasNotDealtWithComesAgain(t *testing.T) {
	eachWithEvents(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		m := open(t, b.Conn, b.Name("m"), lay, Options[string, int]{Events: true})
		must(t, m.Set(ctx, "a", 1, time.Millisecond))
		taken := make(chan struct{}, 100)
		stop := listen(t, m, "l", func(ctx context.Context, e Expired[string, int]) error {
			taken <- struct{}{}
			<-ctx.Done() // the consumer dies before it acknowledges the event
			return ctx.Err()
		}, ListenOptions{Consumer: "worker-1"})
		<-taken
		stop()
		var h heard
		failed := false
		stop = listen(t, m, "l", func(_ context.Context, e Expired[string, int]) error {
			if !failed {
				failed = true
				return errors.New("not now")
			}
			h.add(e)
			return nil
		}, ListenOptions{Consumer: "worker-1", ClaimAfter: 50 * time.Millisecond})
		b.Until("it comes back, and again after the error", h.atLeast("a=1"))
		stop()

		must(t, m.Set(ctx, "b", 2, time.Millisecond))
		stop = listen(t, m, "l", func(ctx context.Context, e Expired[string, int]) error {
			taken <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}, ListenOptions{})
		<-taken
		stop()
		var other heard
		stop = listen(t, m, "l", func(_ context.Context, e Expired[string, int]) error { other.add(e); return nil },
			ListenOptions{ClaimAfter: 50 * time.Millisecond})
		b.Until("another listener gets it", other.atLeast("b=2"))
		stop()
	})
}

func TestAListenerOutlivesACrash(t *testing.T) {
	eachWithEvents(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		m := open(t, b.Conn, b.Name("m"), lay, Options[string, int]{Events: true})
		var h heard
		stop := listen(t, m, "l", func(_ context.Context, e Expired[string, int]) error { h.add(e); return nil }, ListenOptions{})
		defer stop()
		must(t, m.Set(ctx, "a", 1, 10*time.Millisecond))
		b.Until("it is heard", h.is("a=1"))
		must(t, m.Set(ctx, "b", 2, 30*time.Millisecond))
		if b.Fault() {
			b.Until("the backend is there again", func() bool { return b.Ping(ctx) == nil })
		}
		b.Until("the other one as well", h.atLeast("a=1", "b=2"))
	})
}

func TestIdleEntriesTellTheirValues(t *testing.T) {
	eachWithEvents(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		m := open(t, b.Conn, b.Name("m"), lay, Options[string, int]{Events: true, IdleTTL: 20 * time.Millisecond})
		must(t, m.Set(ctx, "a", 1, time.Hour))
		var h heard
		stop := listen(t, m, "l", func(_ context.Context, e Expired[string, int]) error { h.add(e); return nil }, ListenOptions{})
		defer stop()
		b.Until("it is heard", h.is("a=1"))
	})
}

func TestManyExpiriesAreSweptInPortions(t *testing.T) {
	virtuallyWithEvents(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		m := open(t, b.Conn, "m", lay, Options[string, int]{Events: true})
		n := 2500 // more than one scan finds
		if tier.Short() {
			n = 1100 // more than one sweep removes
		}
		for i := range n {
			must(t, m.Set(ctx, fmt.Sprint(i), i, time.Minute))
		}
		var count atomic.Int64
		stop := listen(t, m, "l", func(context.Context, Expired[string, int]) error { count.Add(1); return nil }, ListenOptions{})
		defer stop()
		b.Pass(time.Minute + time.Second)
		if count.Load() != int64(n) {
			t.Error(count.Load())
		}
		has(t, ctx, m, map[string]int{})
		if left, err := b.Do(ctx, "EXISTS", "m", "{m}:due", "{m}:next"); err != nil || left.Int != 0 {
			t.Error("left over:", left, err)
		}
	})
}

func TestNothingIsLeftWithoutASweeper(t *testing.T) {
	virtually(t, func(t *testing.T, b *backends.Backend, lay mode) {
		if lay == modeLayout {
			return // Redisson's keys never expire: Java's own sweeper removes expired entries
		}
		ctx := b.Context()
		m := open(t, b.Conn, "m", lay, Options[string, int]{})
		must(t, m.Set(ctx, "a", 1, time.Minute))
		must(t, m.Set(ctx, "b", 1, time.Hour))
		b.Pass(time.Hour + 2*time.Millisecond)
		if n, err := b.DBSize(ctx); n != 0 || err != nil {
			keys, _ := b.Do(ctx, "KEYS", "*")
			t.Error(keys, err)
		}
		if lay != modeZset {
			return
		}
		kept := open(t, b.Conn, "kept", lay, Options[string, int]{Events: true})
		must(t, kept.Set(ctx, "a", 1, time.Minute))
		for _, key := range []string{"kept", "{kept}:due"} {
			if d, err := b.TTL(ctx, key); d != expiries.Keep+time.Minute+time.Millisecond || err != nil {
				t.Error(key, d, err)
			}
		}
		must(t, kept.Set(ctx, "b", 1, 0)) // an entry without a deadline keeps the whole map
		if d, err := b.TTL(ctx, "kept"); d != ebb.Forever || err != nil {
			t.Error(d, err)
		}
	})
}

func TestWatchRemovesTheDeadInTime(t *testing.T) {
	virtually(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx, cancel := context.WithCancel(b.Context())
		m := open(t, b.Conn, "m", lay, Options[string, int]{})
		must(t, m.Set(ctx, "a", 1, time.Minute))
		must(t, m.Set(ctx, "b", 1, 0))
		done := make(chan error)
		go func() { done <- m.Watch(ctx) }()
		b.Pass(time.Minute + time.Second)
		if n, err := b.Do(ctx, "HLEN", "m"); n.Int != 1 || err != nil {
			t.Error(n, err)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestAListenerSaysWhatIsWrong(t *testing.T) {
	eachWithEvents(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx := b.Context()
		m := open(t, b.Conn, b.Name("m"), lay, Options[string, int]{Events: true})
		must(t, b.Set(ctx, m.feed.Stream, "no stream"))
		err := m.OnExpired(ctx, "l", func(context.Context, Expired[string, int]) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Error(err)
		}
	})
}

func TestAFamilySharesItsEvents(t *testing.T) {
	eachWithEvents(t, func(t *testing.T, b *backends.Backend, lay mode) {
		ctx, name := b.Context(), b.Name("carts")
		family := func() *Family[string, int] {
			f, err := NewFamily(b.Open(), name, Options[string, int]{MaxLen: 2, Events: true})
			must(t, err)
			if lay == modeZset {
				f.force = lay
			}
			return f
		}
		f := family()
		must(t, f.Map("bob").Set(ctx, "tea", 2, time.Hour))
		must(t, f.Map("bob").Set(ctx, "milk", 3, time.Hour))
		if err := f.Map("bob").Set(ctx, "rice", 4, time.Hour); !errors.Is(err, ErrFull) {
			t.Error(err)
		}
		if err := f.Map(":x").Set(ctx, "tea", 1, 0); !errors.Is(err, ebb.ErrArgument) {
			t.Error(err)
		}
		if err := f.Map("ann").OnExpired(ctx, "l", nil); !errors.Is(err, ebb.ErrArgument) {
			t.Error(err)
		}
		must(t, f.Map("ann").Set(ctx, "tea", 1, 10*time.Millisecond))
		must(t, f.Map("bob").Set(ctx, "tea", 2, 15*time.Millisecond))
		var mu sync.Mutex
		var all []string
		listening, stop := context.WithCancel(ctx)
		done := make(chan error)
		go func() {
			done <- family().OnExpired(listening, "l", func(_ context.Context, e Expired[string, int]) error {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, fmt.Sprint(e.Map, "/", e.Key, "=", e.Value))
				return nil
			})
		}()
		b.Until("both are heard", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Equal(slices.Sorted(slices.Values(all)), []string{"ann/tea=1", "bob/tea=2"})
		})
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		has(t, ctx, f.Map("ann"), map[string]int{})
		has(t, ctx, f.Map("bob"), map[string]int{"milk": 3})
	})
}

func TestAMapMovesWithItsSlot(t *testing.T) {
	backends.Asked(t, []string{"cluster"}, func(t *testing.T, b *backends.Backend) {
		ctx, cluster := b.Context(), b.Cluster()
		m := open(t, b.Conn, b.Name("m"), modeAuto, Options[string, int]{Events: true})
		const n = 200
		var h heard
		stop := listen(t, m, "l", func(_ context.Context, e Expired[string, int]) error { h.add(e); return nil }, ListenOptions{})
		defer stop()
		moving := make(chan error, 1)
		slot := cluster.Slot(m.key)
		to := cluster.Masters()[0]
		if to == cluster.Master(slot) {
			to = cluster.Masters()[1]
		}
		go func() { moving <- cluster.MoveSlot(slot, to) }()
		for i := range n {
			ttl := 20 * time.Millisecond
			if i%2 == 0 {
				ttl = time.Hour
			}
			b.Until("it is written", func() bool { return m.Set(ctx, fmt.Sprint(i), i, ttl) == nil })
		}
		must(t, <-moving)
		b.Until("half of them are heard of", func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			return len(slices.Compact(slices.Sorted(slices.Values(h.all)))) == n/2
		})
		b.Until("the others are there", func() bool {
			got, err := m.Len(ctx)
			return got == n/2 && err == nil
		})
	})
}

func TestClearKeepsTheRuleAndDeleteGivesItBack(t *testing.T) {
	expirytest.CountRules(t, func(c *ebb.Conn, name string) expirytest.Ruled {
		m, err := New(c, name, Options[string, string]{Events: true})
		must(t, err)
		add := func(ctx context.Context) error { return m.Set(ctx, "k", "v", time.Hour) }
		return expirytest.Ruled{Add: add, Clear: m.Clear, Delete: m.Delete}
	})
}
