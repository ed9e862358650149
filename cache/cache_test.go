package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

func TestMain(m *testing.M) { backends.Main(m) }

// each runs a test on each kind of backend, and on ebb with scripts too.
func each(t *testing.T, o Options[string, string], test func(t *testing.T, b *backends.Backend, x *Cache[string, string])) {
	t.Helper()
	on(t, backends.Each, o, test)
}

// virtually runs a test as each does, in virtual time alone.
func virtually(t *testing.T, o Options[string, string], test func(t *testing.T, b *backends.Backend, x *Cache[string, string])) {
	t.Helper()
	on(t, backends.Virtual, o, test)
}

func on(t *testing.T, kinds backends.On, o Options[string, string],
	test func(t *testing.T, b *backends.Backend, x *Cache[string, string])) {
	t.Helper()
	for _, scripts := range []bool{false, true} {
		kinds := kinds
		if scripts {
			kinds = backends.Virtual // other kinds use scripts anyway, or kind ebb-scripts covers this
		}
		t.Run(map[bool]string{false: "as-it-is", true: "scripts"}[scripts], func(t *testing.T) {
			kinds(t, func(t *testing.T, b *backends.Backend) {
				x := open(t, b.Conn, b.Name("page"), o)
				x.scripts = scripts
				defer x.Close()
				test(t, b, x)
			})
		})
	}
}

func open(t *testing.T, c *conn.Conn, name string, o Options[string, string]) *Cache[string, string] {
	t.Helper()
	x, err := New(c, name, o)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// second returns the cache of the same name in another program.
func second(t *testing.T, x *Cache[string, string]) *Cache[string, string] {
	y := open(t, x.c, x.name, x.o)
	y.scripts = x.scripts
	return y
}

// loads returns a loader that returns the value and counts its calls.
func loads(value string, calls *atomic.Int64) Loader[string, string] {
	return func(context.Context, string) (string, error) {
		calls.Add(1)
		return value, nil
	}
}

func want(t *testing.T, x *Cache[string, string], value string, load Loader[string, string]) {
	t.Helper()
	v, err := x.Get(context.Background(), "k", load)
	if err != nil || v != value {
		t.Fatalf("Get returned %q, %v, want %q", v, err, value)
	}
}

func wantState(t *testing.T, x *Cache[string, string], value string, s State) {
	t.Helper()
	v, got, err := x.Look(context.Background(), "k")
	if err != nil || v != value || got != s {
		t.Fatalf("Look returned %q, %v, %v, want %q, %v", v, got, err, value, s)
	}
}

var short = Options[string, string]{Fresh: 50 * time.Millisecond, TTL: 10 * time.Second, Lease: 5 * time.Second}

func TestAValueIsLoadedOnceAndStaleWhileTheNextIsLoaded(t *testing.T) {
	each(t, short, func(t *testing.T, b *backends.Backend, x *Cache[string, string]) {
		var first, next atomic.Int64
		want(t, x, "one", loads("one", &first))
		want(t, x, "one", loads("one", &first))
		wantState(t, x, "one", Fresh)
		b.Pass(60 * time.Millisecond)
		wantState(t, x, "one", Stale)
		begun, end := make(chan struct{}), make(chan struct{})
		slow := func(context.Context, string) (string, error) {
			next.Add(1)
			close(begun)
			<-end
			return "two", nil
		}
		want(t, x, "one", slow)
		<-begun
		y := second(t, x)
		for range 5 {
			want(t, x, "one", slow)
			want(t, y, "one", slow)
		}
		close(end)
		x.work.Wait()
		wantState(t, y, "two", Fresh)
		if first.Load() != 1 || next.Load() != 1 {
			t.Errorf("the loaders were called %d and %d times", first.Load(), next.Load())
		}
		if f := x.Figures(); f.Loads != 2 || f.Stale != 6 || f.Fresh != 1 {
			t.Errorf("the figures are %+v", f)
		}
	})
}

func TestAMissingValueIsLoadedOnceByAllPrograms(t *testing.T) {
	each(t, short, func(t *testing.T, _ *backends.Backend, x *Cache[string, string]) {
		y := second(t, x)
		defer y.Close()
		var calls atomic.Int64
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				v, err := []*Cache[string, string]{x, y}[i%2].Get(context.Background(), "k", func(ctx context.Context, _ string) (string, error) {
					calls.Add(1)
					return "v", pause(ctx, 20*time.Millisecond)
				})
				if err != nil || v != "v" {
					t.Errorf("Get returned %q, %v", v, err)
				}
			})
		}
		all.Wait()
		if calls.Load() != 1 {
			t.Errorf("%d loads", calls.Load())
		}
	})
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestALoadThatBeganBeforeAnInvalidationStoresNothing(t *testing.T) {
	for name, invalidate := range map[string]func(x *Cache[string, string]) error{
		"Delete": func(x *Cache[string, string]) error { return x.Delete(context.Background(), "k") },
		"Stale":  func(x *Cache[string, string]) error { return x.Stale(context.Background(), "k") },
		"Set":    func(x *Cache[string, string]) error { return x.Set(context.Background(), "k", "new") },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, short, func(t *testing.T, _ *backends.Backend, x *Cache[string, string]) {
				want(t, x, "old", func(context.Context, string) (string, error) { return "old", invalidate(x) })
				v, _, err := x.Look(context.Background(), "k")
				if err != nil || v == "old" {
					t.Errorf("after %s the loader has stored %q, %v", name, v, err)
				}
				if x.Figures().Lost != 1 {
					t.Errorf("the figures are %+v", x.Figures())
				}
			})
		})
	}
}

// In TestACallGetsNoValueFromBeforeAnInvalidation a call begins after a Delete. The load of its own program
// began before the Delete and still runs, while another program loads the new value.
func TestACallGetsNoValueFromBeforeAnInvalidation(t *testing.T) {
	for _, absent := range []bool{false, true} {
		t.Run(map[bool]string{false: "value", true: "absence"}[absent], func(t *testing.T) {
			each(t, short, func(t *testing.T, b *backends.Backend, x *Cache[string, string]) {
				y := second(t, x)
				defer y.Close()
				slow := func(value string) (load Loader[string, string], begun, end chan struct{}) {
					begun, end = make(chan struct{}), make(chan struct{})
					return func(context.Context, string) (string, error) {
						close(begun)
						<-end
						if absent && value == "old" {
							return "", ErrAbsent
						}
						return value, nil
					}, begun, end
				}
				type result struct {
					value string
					err   error
				}
				get := func(x *Cache[string, string], load Loader[string, string]) chan result {
					got := make(chan result, 1)
					go func() {
						v, err := x.Get(b.Context(), "k", load)
						got <- result{v, err}
					}()
					return got
				}
				old, oldBegun, oldEnd := slow("old")
				first := get(x, old)
				<-oldBegun
				if err := x.Delete(b.Context(), "k"); err != nil {
					t.Fatal(err)
				}
				next, nextBegun, nextEnd := slow("new")
				other := get(y, next)
				<-nextBegun
				late := get(x, loads("not elected", new(atomic.Int64)))
				b.Until("the late call waits", func() bool { return x.Figures().Waited > 0 })
				close(oldEnd)
				if r := <-first; !absent && r.value != "old" || absent && !errors.Is(r.err, ErrAbsent) {
					t.Errorf("the call from before the Delete returned %q, %v", r.value, r.err)
				}
				close(nextEnd)
				for _, got := range []chan result{other, late} {
					if r := <-got; r.value != "new" || r.err != nil {
						t.Errorf("a call from after the Delete returned %q, %v, want %q", r.value, r.err, "new")
					}
				}
			})
		})
	}
}

func TestAFailedLoadIsNotStoredAndTheNextCallLoads(t *testing.T) {
	each(t, short, func(t *testing.T, _ *backends.Backend, x *Cache[string, string]) {
		bad := errors.New("no database")
		if _, err := x.Get(context.Background(), "k", func(context.Context, string) (string, error) { return "", bad }); !errors.Is(err, bad) {
			t.Fatal(err)
		}
		func() {
			defer func() { _ = recover() }()
			_, _ = x.Get(context.Background(), "k", func(context.Context, string) (string, error) { panic("load") })
			t.Error("the panic did not reach the caller")
		}()
		var calls atomic.Int64
		want(t, second(t, x), "v", loads("v", &calls))
	})
}

func TestAbsenceIsRemembered(t *testing.T) {
	o := short
	o.AbsentTTL = 100 * time.Millisecond
	each(t, o, func(t *testing.T, b *backends.Backend, x *Cache[string, string]) {
		var calls atomic.Int64
		none := func(context.Context, string) (string, error) {
			calls.Add(1)
			return "", fmt.Errorf("row 7: %w", ErrAbsent)
		}
		for range 3 {
			if _, err := x.Get(context.Background(), "k", none); err != ErrAbsent {
				t.Fatal(err)
			}
		}
		if calls.Load() != 1 {
			t.Errorf("%d loads", calls.Load())
		}
		b.Pass(150 * time.Millisecond)
		want(t, x, "v", loads("v", &calls))
	})
}

func TestALongLoadKeepsItsLeaseAndADeadOneLosesIt(t *testing.T) {
	o := short
	o.Lease = time.Second
	virtually(t, o, func(t *testing.T, b *backends.Backend, x *Cache[string, string]) {
		var calls atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			want(t, x, "v", func(ctx context.Context, _ string) (string, error) {
				calls.Add(1)
				return "v", pause(ctx, 5*time.Second)
			})
		}()
		b.Pass(10 * time.Millisecond)
		want(t, second(t, x), "v", loads("w", &calls))
		<-done
		if calls.Load() != 1 {
			t.Errorf("%d loads", calls.Load())
		}
		// A program that was elected and then died.
		if err := x.Delete(context.Background(), "k"); err != nil {
			t.Fatal(err)
		}
		if l, err := x.backend().Look(context.Background(), "{"+x.name+":k}", time.Second, 1); err != nil || l.Token == "" {
			t.Fatal(l, err)
		}
		began := time.Now()
		want(t, second(t, x), "w", loads("w", &calls))
		if d := time.Since(began); d < 900*time.Millisecond || d > 1100*time.Millisecond {
			t.Errorf("the next program was elected after %v", d)
		}
	})
}

func TestALoadWhoseCallerHasLeftIsStored(t *testing.T) {
	o := Options[string, string]{Fresh: time.Hour, TTL: 2 * time.Hour, Lease: 5 * time.Second}
	each(t, o, func(t *testing.T, b *backends.Backend, x *Cache[string, string]) {
		ctx, leave := context.WithCancel(b.Context())
		defer leave()
		v, err := x.Get(ctx, "k", func(ctx context.Context, _ string) (string, error) {
			leave()
			if b.Virtual() { // in real time it would take long; the lease is renewed meanwhile
				return "v", pause(context.WithoutCancel(ctx), 3*o.Lease)
			}
			return "v", nil
		})
		if v != "v" || err != nil {
			t.Errorf("Get returned %q, %v", v, err)
		}
		wantState(t, second(t, x), "v", Fresh)
		if f := x.Figures(); f.Loads != 1 || f.Lost != 0 {
			t.Errorf("the figures are %+v", f)
		}
	})
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	each(t, short, func(t *testing.T, _ *backends.Backend, x *Cache[string, string]) {
		begun, end := make(chan struct{}), make(chan struct{})
		var loader sync.WaitGroup
		loader.Go(func() {
			want(t, x, "v", func(context.Context, string) (string, error) {
				close(begun)
				<-end
				return "v", nil
			})
		})
		<-begun
		for _, y := range []*Cache[string, string]{x, second(t, x)} {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
			if _, err := y.Get(ctx, "k", loads("w", new(atomic.Int64))); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Get returned %v", err)
			}
			cancel()
		}
		close(end)
		loader.Wait()
	})
}

func TestCloseEndsLoadsInTheBackground(t *testing.T) {
	each(t, short, func(t *testing.T, b *backends.Backend, x *Cache[string, string]) {
		want(t, x, "one", loads("one", new(atomic.Int64)))
		b.Pass(60 * time.Millisecond)
		begun := make(chan struct{})
		want(t, x, "one", func(ctx context.Context, _ string) (string, error) {
			close(begun)
			<-ctx.Done()
			return "", ctx.Err()
		})
		<-begun
		x.Close()
		want(t, second(t, x), "one", loads("two", new(atomic.Int64)))
	})
}

func TestAloneLoadsWithoutTheBackend(t *testing.T) {
	for _, alone := range []bool{false, true} {
		o := short
		o.Alone = alone
		backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
			x := open(t, conn.New(away{b.Driver()}), b.Name("page"), o)
			defer x.Close()
			v, err := x.Get(context.Background(), "k", loads("v", new(atomic.Int64)))
			if alone && (err != nil || v != "v" || x.Figures().Alone != 1) || !alone && !errors.Is(err, conn.ErrUnavailable) {
				t.Errorf("Alone %v: Get returned %q, %v", alone, v, err)
			}
		})
	}
}

// hanging is a driver whose server does not answer for a while: each request fails after 3 s.
type hanging struct {
	conn.Driver
	hangs *atomic.Bool
	asked *atomic.Int64
}

func (h hanging) Do(ctx context.Context, args []any) (conn.Value, error) {
	if !h.hangs.Load() {
		return h.Driver.Do(ctx, args)
	}
	h.asked.Add(1)
	if err := pause(ctx, 3*time.Second); err != nil {
		return conn.Value{}, err
	}
	return conn.Value{}, fmt.Errorf("%w: no reply", conn.ErrUnavailable)
}

func TestAloneWaitsOnceForABackendThatHangs(t *testing.T) {
	o := short
	o.Alone = true
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		h := hanging{b.Driver(), new(atomic.Bool), new(atomic.Int64)}
		x := open(t, conn.New(h), b.Name("page"), o)
		defer x.Close()
		took := func(limit time.Duration, load Loader[string, string]) {
			t.Helper()
			began := time.Now()
			want(t, x, "v", load)
			if d := time.Since(began); d > limit {
				t.Errorf("Get took %v, want at most %v", d, limit)
			}
		}
		// A value is returned even if it cannot be stored.
		took(keepWithin, func(context.Context, string) (string, error) { h.hangs.Store(true); return "v", nil })
		b.Pass(4 * time.Second)
		asked := h.asked.Load()
		for range 20 { // meanwhile the probe of the backend hangs, and no call does
			took(0, loads("v", new(atomic.Int64)))
			b.Pass(time.Second)
		}
		if n := h.asked.Load() - asked; n > 20 {
			t.Errorf("the backend got %d requests", n)
		}
		h.hangs.Store(false)
		b.Pass(lookPause + 3*time.Second)
		b.Pass(time.Minute)
		var calls atomic.Int64
		took(0, loads("v", &calls))
		took(0, loads("v", &calls))
		if calls.Load() != 1 {
			t.Errorf("with the backend: %d loads", calls.Load())
		}
		h.hangs.Store(true)
		took(3*time.Second, loads("v", new(atomic.Int64)))
		took(0, loads("v", new(atomic.Int64)))
	})
}

func TestAloneLoadsWhenTheBackendGoesWhileItWaits(t *testing.T) {
	o := short
	o.Alone = true
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		h := hanging{b.Driver(), new(atomic.Bool), new(atomic.Int64)}
		x, y := open(t, conn.New(h), b.Name("page"), o), open(t, b.Conn, b.Name("page"), o)
		x.scripts, y.scripts = true, true // with scripts they poll
		defer x.Close()
		defer y.Close()
		begun, end := make(chan struct{}), make(chan struct{})
		var loading sync.WaitGroup
		loading.Go(func() {
			_, _ = y.Get(b.Context(), "k", func(context.Context, string) (string, error) { close(begun); <-end; return "y", nil })
		})
		defer loading.Wait()
		<-begun
		time.AfterFunc(time.Second, func() { h.hangs.Store(true) })
		defer close(end)
		want(t, x, "x", loads("x", new(atomic.Int64)))
	})
}

// away is a driver whose server does not answer.
type away struct{ conn.Driver }

func (away) Do(context.Context, []any) (conn.Value, error) {
	return conn.Value{}, fmt.Errorf("%w: gone", conn.ErrUnavailable)
}

func TestOptionsAreChecked(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		for _, o := range []Options[string, string]{{Fresh: -1}, {Fresh: time.Minute, TTL: time.Minute}, {Jitter: 101},
			{Lease: 2 * time.Hour}, {AbsentTTL: -1}} {
			if _, err := New(b.Conn, "x", o); !errors.Is(err, conn.ErrArgument) {
				t.Errorf("%+v: %v", o, err)
			}
		}
		if _, err := New(b.Conn, "", short); !errors.Is(err, conn.ErrArgument) {
			t.Error(err)
		}
	})
}

// The first use of a cache is logged, and the line describes the cache.
func TestTheFirstUseIsLogged(t *testing.T) {
	var log strings.Builder
	o := Options[string, string]{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	virtually(t, o, func(t *testing.T, _ *backends.Backend, x *Cache[string, string]) {
		log.Reset()
		for range 2 {
			if _, err := x.Get(t.Context(), "k", func(context.Context, string) (string, error) { return "v", nil }); err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(log.String(), "first use"); n != 1 || !strings.Contains(log.String(), x.name) {
			t.Errorf("%d lines: %s", n, log.String())
		}
	})
}

// withoutReplicas makes the backend refuse writes until the test ends.
func withoutReplicas(t *testing.T, b *backends.Backend) {
	t.Helper()
	set := func(n int) {
		if _, err := b.Do(context.Background(), "CONFIG", "SET", "min-replicas-to-write", n); err != nil {
			t.Fatal(err)
		}
	}
	set(100)
	t.Cleanup(func() { set(0) })
}

// single runs a test on the kinds whose backend is one server.
func single(t *testing.T, test func(t *testing.T, b *backends.Backend)) {
	t.Helper()
	backends.Except(t, []string{"sentinel", "cluster"}, test)
}

func TestWhereTheBackendElectsNoProgramGetFailsAtOnce(t *testing.T) {
	test := func(t *testing.T, alone bool) {
		o := short
		o.Alone = alone
		on(t, single, o, func(t *testing.T, b *backends.Backend, x *Cache[string, string]) {
			withoutReplicas(t, b)
			var calls atomic.Int64
			v, err := x.Get(b.Context(), "k", loads("v", &calls))
			var refused conn.ReplyError
			switch {
			case alone && (v != "v" || err != nil || calls.Load() != 1):
				t.Errorf("with Alone: %q, %v after %d loads", v, err, calls.Load())
			case !alone && (!errors.As(err, &refused) || refused.Code() != "NOREPLICAS" || calls.Load() != 0):
				t.Errorf("%q, %v after %d loads; want NOREPLICAS", v, err, calls.Load())
			}
		})
	}
	t.Run("alone", func(t *testing.T) { test(t, true) })
	t.Run("together", func(t *testing.T) { test(t, false) })
}

func TestAValueThatCannotBeReadIsLoadedAnew(t *testing.T) {
	each(t, short, func(t *testing.T, b *backends.Backend, x *Cache[string, string]) {
		ctx := b.Context()
		key, err := x.key("k")
		if err != nil {
			t.Fatal(err)
		}
		numbers, err := New(x.c, x.name, Options[string, int]{Codec: conn.JSON[int]()})
		if err != nil {
			t.Fatal(err)
		}
		numbers.scripts = x.scripts
		defer numbers.Close()
		foreign := func(value string) func() error {
			return func() error { return x.c.Set(ctx, key, value) }
		}
		old := func() error { return x.Set(ctx, "k", "text") }
		stale := func() error { return errors.Join(x.Set(ctx, "k", "text"), x.Stale(ctx, "k")) }
		for i, store := range []func() error{foreign(""), foreign("x"), foreign("another program's value"), old, stale} {
			if err := store(); err != nil {
				t.Fatal(err)
			}
			calls := 0
			for range 2 {
				n, err := numbers.Get(ctx, "k", func(context.Context, string) (int, error) { calls++; return i, nil })
				if err != nil || n != i || calls != 1 {
					t.Errorf("case %d: Get returned %d, %v after %d loads", i, n, err, calls)
				}
			}
		}
	})
}

func TestAStaleValueGoesWhenItsLoaderReturnsErrAbsent(t *testing.T) {
	each(t, short, func(t *testing.T, b *backends.Backend, x *Cache[string, string]) {
		want(t, x, "v", loads("v", new(atomic.Int64)))
		b.Pass(60 * time.Millisecond)
		absent := func(context.Context, string) (string, error) { return "", ErrAbsent }
		want(t, x, "v", absent)
		x.work.Wait()
		if _, s, err := x.Look(b.Context(), "k"); s != Absent || err != nil {
			t.Errorf("the value is %v, %v", s, err)
		}
		if _, err := x.Get(b.Context(), "k", absent); err != ErrAbsent {
			t.Errorf("Get returned %v", err)
		}
		// A value that is stored while the loader runs stays.
		want(t, x, "w", loads("w", new(atomic.Int64)))
		b.Pass(60 * time.Millisecond)
		want(t, x, "w", func(ctx context.Context, k string) (string, error) {
			return "", errors.Join(x.Set(ctx, k, "new"), ErrAbsent)
		})
		x.work.Wait()
		if v, _, err := x.Look(b.Context(), "k"); v != "new" || err != nil {
			t.Errorf("the value is %q, %v", v, err)
		}
	})
}
