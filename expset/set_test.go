package expset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/expiries"
	"github.com/ebbdb/ebb/internal/layouts"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/expirytest"
)

func TestMain(m *testing.M) { backends.Main(m) }

// way is an implementation of a set.
type way int

const (
	asItIs   way = iota
	scripts      // even on ebb
	redisson     // Redisson's layout
)

// each runs a test on each kind of backend, with each implementation that the kind supports.
func each(t *testing.T, test func(t *testing.T, b *backends.Backend, w way)) {
	t.Helper()
	on(t, backends.Each, test)
}

// virtually runs a test as each does, in virtual time alone.
func virtually(t *testing.T, test func(t *testing.T, b *backends.Backend, w way)) {
	t.Helper()
	on(t, backends.Virtual, test)
}

func on(t *testing.T, kinds backends.On, test func(t *testing.T, b *backends.Backend, w way)) {
	t.Helper()
	for w, name := range []string{"as-it-is", "scripts", "redisson"} {
		kinds := kinds
		if way(w) == scripts {
			kinds = backends.Virtual // other kinds use scripts anyway, or kind ebb-scripts covers this
		}
		t.Run(name, func(t *testing.T) {
			kinds(t, func(t *testing.T, b *backends.Backend) {
				test(t, b, way(w))
			})
		})
	}
}

// newRedisson makes a set as redisson.NewSetCache does.
func newRedisson[T comparable](c *ebb.Conn, name string, opts ...Options[T]) (*Set[T], error) {
	o := opts[0]
	o.Layout = (*Layout)(layouts.SetCache)
	return New(c, name, o)
}

func open[T comparable](t *testing.T, c *ebb.Conn, name string, w way, o Options[T]) *Set[T] {
	t.Helper()
	create := New[T]
	if w == redisson {
		create = newRedisson[T]
	}
	s, err := create(c, name, o)
	if err != nil {
		t.Fatal(err)
	}
	s.scripts = w == scripts
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// did fails the test unless a call returned n.
func did(t *testing.T, n int64) func(int64, error) {
	return func(got int64, err error) {
		t.Helper()
		if got != n || err != nil {
			t.Errorf("%d %v, want %d", got, err, n)
		}
	}
}

func has(t *testing.T, ctx context.Context, s *Set[string], want ...string) {
	t.Helper()
	all, err := s.Members(ctx)
	slices.Sort(all)
	if err != nil || !slices.Equal(all, want) {
		t.Errorf("Members: %v %v, want %v", all, err, want)
	}
	var some []string
	for m, err := range s.All(ctx) {
		must(t, err)
		some = append(some, m)
	}
	slices.Sort(some)
	if some = slices.Compact(some); !slices.Equal(some, want) {
		t.Errorf("All: %v, want %v", some, want)
	}
	did(t, int64(len(want)))(s.Len(ctx))
	for _, m := range want {
		if ok, err := s.Contains(ctx, m); !ok || err != nil {
			t.Error(m, ok, err)
		}
	}
}

func TestMembersExpireOneByOne(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, w way) {
		ctx := b.Context()
		s := open(t, b.Conn, b.Name("s"), w, Options[string]{})
		did(t, 2)(s.Add(ctx, time.Minute, "short", "shorter", "short"))
		did(t, 1)(s.Add(ctx, time.Hour, "long"))
		did(t, 1)(s.Add(ctx, 0, "ever"))
		has(t, ctx, s, "ever", "long", "short", "shorter")
		did(t, 0)(s.Add(ctx, time.Hour, "short"))
		did(t, 0)(s.Add(ctx, 20*time.Millisecond, "shorter"))
		_, err := s.AddNX(ctx, 20*time.Millisecond, "shorter", "ever") // existing members keep their time
		must(t, err)
		b.Pass(50 * time.Millisecond)
		has(t, ctx, s, "ever", "long", "short")
		all, err := s.ContainsMany(ctx, "shorter", "ever", "nothing")
		if err != nil || !slices.Equal(all, []bool{false, true, false}) {
			t.Error(all, err)
		}
		did(t, 2)(s.Remove(ctx, "long", "shorter", "ever", "nothing"))
		has(t, ctx, s, "short")
		must(t, s.Clear(ctx))
		has(t, ctx, s)
	})
}

func TestAMemberLivesToTheMillisecond(t *testing.T) {
	virtually(t, func(t *testing.T, b *backends.Backend, w way) {
		ctx, last := b.Context(), 30*time.Minute
		if w == redisson {
			last -= time.Millisecond
		}
		s := open(t, b.Conn, "s", w, Options[string]{})
		did(t, 1)(s.Add(ctx, 30*time.Minute, "m"))
		b.Pass(last)
		has(t, ctx, s, "m")
		b.Pass(time.Millisecond)
		has(t, ctx, s)
		if ok, err := s.Contains(ctx, "m"); ok || err != nil {
			t.Error(ok, err)
		}
	})
}

func TestDeadlinesAreReadAndChanged(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, w way) {
		ctx := b.Context()
		s := open(t, b.Conn, b.Name("s"), w, Options[string]{})
		ttl := func(least, most time.Duration) {
			t.Helper()
			if d, ok, err := s.TTL(ctx, "m"); !ok || err != nil || d < least || d > most {
				t.Errorf("TTL: %v %v %v, want %v to %v", d, ok, err, least, most)
			}
		}
		late := func(want bool) func(bool, error) {
			return func(got bool, err error) {
				t.Helper()
				if got != want || err != nil {
					t.Error(got, err)
				}
			}
		}
		did(t, 1)(s.Add(ctx, time.Hour, "m"))
		ttl(time.Hour-time.Minute, time.Hour)
		late(true)(s.Expire(ctx, "m", 2*time.Hour))
		ttl(2*time.Hour-time.Minute, 2*time.Hour)
		late(true)(s.Persist(ctx, "m"))
		ttl(ebb.Forever, ebb.Forever)
		late(false)(s.Persist(ctx, "m"))
		late(false)(s.Expire(ctx, "nothing", time.Hour))
		if _, ok, err := s.TTL(ctx, "nothing"); ok || err != nil {
			t.Error(ok, err)
		}
		if _, err := s.Expire(ctx, "m", 0); !errors.Is(err, ebb.ErrArgument) {
			t.Error(err)
		}
	})
}

func TestAFullSetRefuses(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, w way) {
		ctx := b.Context()
		s := open(t, b.Conn, b.Name("s"), w, Options[string]{MaxLen: 3})
		did(t, 1)(s.Add(ctx, time.Hour, "a"))
		if _, err := s.Add(ctx, time.Hour, "b", "c", "d"); !errors.Is(err, ErrFull) {
			t.Error(err)
		}
		did(t, 2)(s.Add(ctx, time.Hour, "a", "b", "c")) // an existing member takes no space
		if _, err := s.Add(ctx, time.Hour, "d"); !errors.Is(err, ErrFull) {
			t.Error(err)
		}
		did(t, 0)(s.Add(ctx, 20*time.Millisecond, "a"))
		b.Pass(50 * time.Millisecond)
		did(t, 1)(s.Add(ctx, time.Hour, "d")) // expired members take no space
		has(t, ctx, s, "b", "c", "d")
	})
}

func TestManyTogetherNeverPassTheLimit(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, w way) {
		ctx := b.Context()
		const most, callers, tries = 10, 8, 10
		s := open(t, b.Conn, b.Name("s"), w, Options[string]{MaxLen: most})
		var added atomic.Int64
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for j := range tries {
					n, err := s.Add(ctx, time.Hour, fmt.Sprintf("%d-%d", i, j))
					if err != nil && !errors.Is(err, ErrFull) {
						t.Error(err)
					}
					added.Add(n)
					if n, err := s.Len(ctx); n > most || err != nil {
						t.Error(n, err)
					}
				}
			})
		}
		wg.Wait()
		if added.Load() != most {
			t.Errorf("%d added, want %d", added.Load(), most)
		}
	})
}

func TestALargeSetIsIteratedWhole(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, w way) {
		ctx := b.Context()
		const n = 1500
		s := open(t, b.Conn, b.Name("s"), w, Options[int]{})
		var all []int
		for i := range n {
			all = append(all, i)
		}
		did(t, n)(s.Add(ctx, time.Hour, all...))
		seen := map[int]bool{}
		for m, err := range s.All(ctx) {
			must(t, err)
			seen[m] = true
		}
		if len(seen) != n {
			t.Error(len(seen))
		}
		for range s.All(ctx) {
			break
		}
	})
}

func TestWhatMakesNoSenseIsRefused(t *testing.T) {
	c, err := ebb.Open(t.Context(), "mem://")
	must(t, err)
	defer c.Close()
	for _, o := range []Options[int]{{MaxLen: -1}, {Jitter: 101}, {MaxEvents: -1}} {
		if _, err := New(c, "s", o); !errors.Is(err, ebb.ErrArgument) {
			t.Error(err)
		}
	}
	if _, err := NewFamily[int](c, ""); !errors.Is(err, ebb.ErrArgument) {
		t.Error(err)
	}
	f, err := NewFamily[int](c, "f")
	must(t, err)
	for _, name := range []string{"", ":expired"} {
		if _, err := f.Set(name).Add(t.Context(), 0, 1); !errors.Is(err, ebb.ErrArgument) {
			t.Error(err)
		}
	}
	if err := f.OnExpired(t.Context(), "l", nil); !errors.Is(err, ErrNoEvents) {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Set("a").Add(ended, 0, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// listen runs a listener until the function that it returns is called.
func listen(t *testing.T, on func(context.Context, string, func(context.Context, Expired[string]) error, ...ListenOptions) error,
	fn func(ctx context.Context, e Expired[string]) error, o ListenOptions) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- on(ctx, "l", fn, o) }()
	return sync.OnceFunc(func() {
		t.Helper()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the listener ended with %v", err)
		}
	})
}

// heard keeps the events that a listener received.
type heard struct {
	mu  sync.Mutex
	all []string
	ids map[string]bool
}

func (h *heard) add(_ context.Context, e Expired[string]) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, e.Set+"/"+e.Member)
	if h.ids == nil {
		h.ids = map[string]bool{}
	}
	h.ids[e.ID] = true
	return e.Err
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

// events reports whether n expirations were received, each perhaps more than once: after a crash the
// acknowledgement may be lost.
func (h *heard) events(n int) func() bool {
	return func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.ids) == n
	}
}

func TestListenersHearEachExpiryOnce(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, w way) {
		if w == redisson {
			return
		}
		ctx := b.Context()
		s := open(t, b.Conn, b.Name("s"), w, Options[string]{Events: true})
		var h heard
		stop := listen(t, s.OnExpired, h.add, ListenOptions{})
		defer stop()
		did(t, 1)(s.Add(ctx, time.Minute, "b"))
		did(t, 1)(s.Add(ctx, 30*time.Millisecond, "a"))
		did(t, 1)(s.Remove(ctx, "b"))
		b.Until("it is heard", h.is("/a"))
		did(t, 1)(s.Add(ctx, 10*time.Millisecond, "a")) // the member may expire and be added again
		if b.Fault() {
			b.Until("the backend is there again", func() bool { return b.Ping(ctx) == nil })
		}
		b.Until("it is heard again", h.events(2))
		stop()
	})
}

func TestAFamilySharesItsEvents(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, w way) {
		if w == redisson {
			return
		}
		ctx, name := b.Context(), b.Name("orders")
		family := func() *Family[string] {
			f, err := NewFamily(b.Open(), name, Options[string]{MaxLen: 2, Events: true})
			must(t, err)
			f.scripts = w == scripts
			return f
		}
		f := family()
		did(t, 2)(f.Set("ann").Add(ctx, time.Hour, "o-1", "o-2"))
		did(t, 1)(f.Set("bob").Add(ctx, 60*time.Millisecond, "o-1"))
		if _, err := f.Set("ann").Add(ctx, time.Hour, "o-3"); !errors.Is(err, ErrFull) {
			t.Error(err)
		}
		did(t, 1)(f.Set("bob").Add(ctx, time.Hour, "o-2"))
		did(t, 1)(f.Set("ann").Remove(ctx, "o-2"))
		did(t, 0)(f.Set("ann").Add(ctx, 10*time.Millisecond, "o-1"))
		if err := f.Set("ann").OnExpired(ctx, "l", nil); !errors.Is(err, ebb.ErrArgument) {
			t.Error(err)
		}
		var h heard
		stop := listen(t, family().OnExpired, h.add, ListenOptions{})
		defer stop()
		b.Until("all are heard", h.is("ann/o-1", "bob/o-1"))
		has(t, ctx, f.Set("ann"))
		has(t, ctx, f.Set("bob"), "o-2")
	})
}

func TestAnExpiryIsHeardInTime(t *testing.T) {
	virtually(t, func(t *testing.T, b *backends.Backend, w way) {
		if w == redisson {
			return
		}
		ctx := b.Context()
		f, err := NewFamily(b.Conn, "orders", Options[string]{Events: true})
		must(t, err)
		f.scripts = w == scripts
		var late atomic.Int64
		late.Store(-1)
		stop := listen(t, f.OnExpired, func(_ context.Context, e Expired[string]) error {
			late.Store(int64(time.Since(e.Deadline)))
			return nil
		}, ListenOptions{})
		defer stop()
		did(t, 1)(f.Set("ann").Add(ctx, 5*time.Minute, "o-1"))
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

func TestNothingIsLeftWithoutASweeper(t *testing.T) {
	virtually(t, func(t *testing.T, b *backends.Backend, w way) {
		if w == redisson {
			return
		}
		ctx := b.Context()
		f, err := NewFamily[string](b.Conn, "f")
		must(t, err)
		f.scripts = w == scripts
		did(t, 1)(f.Set("a").Add(ctx, time.Minute, "x"))
		did(t, 1)(f.Set("b").Add(ctx, time.Hour, "x"))
		b.Pass(time.Hour + 2*time.Millisecond)
		if n, err := b.Exists(ctx, "{f}:a", "{f}:b"); n != 0 || err != nil {
			t.Error(n, err)
		}
		b.Pass(expiries.Keep) // the index of a family is kept for that time
		if n, err := b.DBSize(ctx); n != 0 || err != nil {
			keys, _ := b.Do(ctx, "KEYS", "*")
			t.Error(keys, err)
		}
	})
}

func TestWatchRemovesTheDeadInTime(t *testing.T) {
	virtually(t, func(t *testing.T, b *backends.Backend, w way) {
		if w == asItIs {
			return
		}
		ctx, cancel := context.WithCancel(b.Context())
		s := open(t, b.Conn, "s", w, Options[string]{})
		did(t, 1)(s.Add(ctx, time.Minute, "a"))
		did(t, 1)(s.Add(ctx, 0, "b"))
		done := make(chan error)
		go func() { done <- s.Watch(ctx) }()
		b.Pass(time.Minute + time.Second)
		if n, err := b.Do(ctx, "ZCARD", "s"); n.Int != 1 || err != nil {
			t.Error(n, err)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestOfRemovalAndExpiryOneWins(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, w way) {
		if w == redisson {
			return
		}
		ctx := b.Context()
		s := open(t, b.Conn, b.Name("s"), w, Options[string]{Events: true})
		const n = 60
		var h heard
		stop := listen(t, s.OnExpired, h.add, ListenOptions{})
		defer stop()
		for i := range n { // they expire one after the other
			did(t, 1)(s.Add(ctx, time.Duration(20+i)*time.Millisecond, fmt.Sprint(i)))
		}
		var paid atomic.Int64
		var wg sync.WaitGroup
		for i := range n { // and are removed all the while, from both ends
			wg.Go(func() {
				b.Pass(time.Duration(i) * time.Millisecond)
				got, err := s.Remove(ctx, fmt.Sprint((i*7)%n), fmt.Sprint(i))
				if err != nil {
					t.Error(err)
				}
				paid.Add(got)
			})
		}
		wg.Wait()
		b.Until("each is paid or expired", func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			return int(paid.Load())+len(h.all) >= n
		})
		stop()
		if slices.Sort(h.all); int(paid.Load())+len(h.all) != n || len(slices.Compact(h.all)) != n-int(paid.Load()) {
			t.Errorf("%d paid and %d expired of %d", paid.Load(), len(h.all), n)
		}
	})
}

func TestEachCallEndsWithItsContext(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, w way) {
		s := open(t, b.Conn, b.Name("s"), w, Options[string]{Events: w != redisson})
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		calls := map[string]func() error{
			"add":      func() error { _, err := s.Add(ctx, time.Hour, "m"); return err },
			"remove":   func() error { _, err := s.Remove(ctx, "m"); return err },
			"contains": func() error { _, err := s.Contains(ctx, "m"); return err },
			"members":  func() error { _, err := s.Members(ctx); return err },
			"len":      func() error { _, err := s.Len(ctx); return err },
			"ttl":      func() error { _, _, err := s.TTL(ctx, "m"); return err },
			"expire":   func() error { _, err := s.Expire(ctx, "m", time.Hour); return err },
			"persist":  func() error { _, err := s.Persist(ctx, "m"); return err },
			"clear":    func() error { return s.Clear(ctx) },
			"watch":    func() error { return s.Watch(ctx) },
			"all": func() error {
				for _, err := range s.All(ctx) {
					return err
				}
				return nil
			},
		}
		if w != redisson {
			calls["listen"] = func() error {
				return s.OnExpired(ctx, "l", func(context.Context, Expired[string]) error { return nil })
			}
		}
		for name, call := range calls {
			if err := call(); !errors.Is(err, context.Canceled) {
				t.Error(name, err)
			}
		}
	})
}

func TestClearKeepsTheRuleAndDeleteGivesItBack(t *testing.T) {
	expirytest.CountRules(t, func(c *ebb.Conn, name string) expirytest.Ruled {
		s, err := New(c, name, Options[string]{Events: true})
		must(t, err)
		add := func(ctx context.Context) error {
			_, err := s.Add(ctx, time.Hour, "k")
			return err
		}
		return expirytest.Ruled{Add: add, Clear: s.Clear, Delete: s.Delete}
	})
}
