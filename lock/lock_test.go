package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/lock"
)

func TestMain(m *testing.M) { backends.Main(m) }

// short is a lease that a test can wait for, and that a busy machine can still renew.
const short = 300 * time.Millisecond

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newLock(t testing.TB, c *ebb.Conn, name string, ttl time.Duration) *lock.Lock {
	t.Helper()
	l, err := lock.New(c, name, lock.Options{TTL: ttl})
	must(t, err)
	return l
}

// acquirer has the methods of locks of all kinds.
type acquirer interface {
	TryAcquire(ctx context.Context) (*lock.Lease, error)
	Acquire(ctx context.Context, wait time.Duration) (*lock.Lease, error)
	fmt.Stringer
}

// exclusive are the kinds of locks that have one holder.
var exclusive = map[string]func(t testing.TB, c *ebb.Conn, name string, ttl time.Duration) acquirer{
	"lock": func(t testing.TB, c *ebb.Conn, name string, ttl time.Duration) acquirer {
		return newLock(t, c, name, ttl)
	},
	"fair": func(t testing.TB, c *ebb.Conn, name string, ttl time.Duration) acquirer {
		l, err := lock.NewFair(c, name, lock.Options{TTL: ttl})
		must(t, err)
		return l
	},
	"rw": func(t testing.TB, c *ebb.Conn, name string, ttl time.Duration) acquirer {
		l, err := lock.NewRW(c, name, lock.Options{TTL: ttl})
		must(t, err)
		return l
	},
	"semaphore": func(t testing.TB, c *ebb.Conn, name string, ttl time.Duration) acquirer {
		s, err := lock.NewSemaphore(c, name, 1, lock.Options{TTL: ttl})
		must(t, err)
		return firstInt{s}
	},
}

// firstInt makes a semaphore a lock.
type firstInt struct{ *lock.Semaphore }

func (o firstInt) TryAcquire(ctx context.Context) (*lock.Lease, error) {
	return o.Semaphore.TryAcquire(ctx, 1)
}

func (o firstInt) Acquire(ctx context.Context, wait time.Duration) (*lock.Lease, error) {
	return o.Semaphore.Acquire(ctx, 1, wait)
}

// eachExclusive runs a test with each kind of lock on each kind of backend; make
// returns the same lock on another connection.
func eachExclusive(t *testing.T, ttl time.Duration, test func(t *testing.T, b *backends.Backend, make func() acquirer)) {
	for name, build := range exclusive {
		t.Run(name, func(t *testing.T) {
			backends.Each(t, func(t *testing.T, b *backends.Backend) {
				test(t, b, func() acquirer { return build(t, b.Open(), b.Name("k"), ttl) })
			})
		})
	}
}

func TestALockHasOneHolder(t *testing.T) {
	eachExclusive(t, time.Minute, func(t *testing.T, b *backends.Backend, make func() acquirer) {
		ctx := b.Context()
		mine, theirs := make(), make()
		first, err := mine.TryAcquire(ctx)
		must(t, err)
		if _, err := theirs.TryAcquire(ctx); !errors.Is(err, lock.ErrTaken) {
			t.Fatalf("taken: %v", err)
		}
		if _, err := mine.TryAcquire(ctx); !errors.Is(err, lock.ErrTaken) {
			t.Fatalf("taken by ourselves: %v", err)
		}
		must(t, first.Renew(ctx))
		must(t, first.Release(ctx))
		second, err := theirs.TryAcquire(ctx)
		must(t, err)
		if second.Token() <= first.Token() {
			t.Errorf("token %d after %d", second.Token(), first.Token())
		}
		must(t, second.Release(ctx))
	})
}

func TestTokensGrowWhileManyContend(t *testing.T) {
	eachExclusive(t, 10*time.Second, func(t *testing.T, b *backends.Backend, make func() acquirer) {
		ctx := b.Context()
		var holders, rounds atomic.Int32
		var last int64 // guarded by the lock itself, as the race detector sees
		var wg sync.WaitGroup
		for range 3 {
			l := make()
			for range 3 {
				wg.Go(func() {
					for range 4 {
						lease, err := l.Acquire(ctx, 0)
						if err != nil {
							t.Error(err)
							return
						}
						if holders.Add(1) != 1 {
							t.Error("two holders")
						}
						if lease.Token() <= last {
							t.Errorf("token %d after %d", lease.Token(), last)
						}
						last = lease.Token()
						rounds.Add(1)
						holders.Add(-1)
						if err := lease.Release(ctx); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		if n := rounds.Load(); n != 36 {
			t.Errorf("%d rounds", n)
		}
	})
}

// together runs a test with all kinds of locks at once, on each kind of backend.
func together(t *testing.T, test func(t *testing.T, b *backends.Backend, make func(kind string, ttl time.Duration) acquirer)) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		test(t, b, func(kind string, ttl time.Duration) acquirer {
			return exclusive[kind](t, b.Open(), b.Name(kind), ttl)
		})
	})
}

func TestALeaseThatIsOverGoesToAWaiter(t *testing.T) {
	together(t, func(t *testing.T, b *backends.Backend, make func(kind string, ttl time.Duration) acquirer) {
		ctx := b.Context()
		var wg sync.WaitGroup
		for kind := range exclusive {
			mine, theirs := make(kind, short), make(kind, time.Minute)
			wg.Go(func() {
				dying, cancel := context.WithCancel(ctx)
				first, err := mine.TryAcquire(dying)
				cancel() // the holder no longer renews it
				if err != nil {
					t.Error(kind, err)
					return
				}
				second, err := theirs.Acquire(ctx, 0)
				if err != nil {
					t.Error(kind, err)
					return
				}
				if second.Token() <= first.Token() {
					t.Errorf("%s: token %d after %d", kind, second.Token(), first.Token())
				}
				if err := first.Release(ctx); !errors.Is(err, lock.ErrLost) {
					t.Errorf("%s: release of a lease that is over: %v", kind, err)
				}
				if err := errors.Join(second.Renew(ctx), second.Release(ctx)); err != nil {
					t.Error(kind, err)
				}
			})
		}
		wg.Wait()
	})
}

func TestALeaseIsRenewedWhileItIsHeld(t *testing.T) {
	const ttl = 4500 * time.Millisecond // two renewals may come late
	together(t, func(t *testing.T, b *backends.Backend, make func(kind string, ttl time.Duration) acquirer) {
		ctx := b.Context()
		leases, left := map[string]*lock.Lease{}, map[string]time.Duration{}
		for kind := range exclusive {
			lease, err := make(kind, ttl).TryAcquire(ctx)
			must(t, err)
			leases[kind] = lease
			left[kind], err = b.TTL(ctx, b.Name(kind))
			must(t, err)
		}
		if b.Virtual() {
			for range 100 {
				b.Pass(ttl / 5)
				for kind := range exclusive {
					if _, err := make(kind, ttl).TryAcquire(ctx); !errors.Is(err, lock.ErrTaken) {
						t.Fatal(kind, err)
					}
				}
			}
		} else {
			renewed := map[string]bool{}
			b.Until("the leases get longer again", func() bool {
				for kind := range exclusive {
					now, err := b.TTL(ctx, b.Name(kind))
					must(t, err)
					renewed[kind] = renewed[kind] || now > left[kind]
					left[kind] = now
				}
				return renewed["lock"] && renewed["fair"] && renewed["rw"] && renewed["semaphore"]
			})
		}
		for kind, lease := range leases {
			if lease.Context().Err() != nil {
				t.Errorf("%s: %v", kind, context.Cause(lease.Context()))
			}
			must(t, lease.Release(ctx))
			if lease.Context().Err() == nil {
				t.Error("the context outlives the lease")
			}
		}
	})
}

func TestAReleaseMayBeRepeated(t *testing.T) {
	eachExclusive(t, time.Minute, func(t *testing.T, b *backends.Backend, make func() acquirer) {
		ctx, l := b.Context(), make()
		first, err := l.TryAcquire(ctx)
		must(t, err)
		must(t, first.Release(ctx))
		second, err := l.TryAcquire(ctx)
		must(t, err)
		must(t, first.Release(ctx)) // it does not affect the second lease
		must(t, second.Renew(ctx))
		gone, cancel := context.WithCancel(ctx)
		cancel()
		must(t, second.Release(gone)) // like a deferred call at a shutdown
		third, err := l.TryAcquire(ctx)
		must(t, err)
		must(t, third.Release(ctx))
	})
}

func TestAWaitEndsWithItsTime(t *testing.T) {
	eachExclusive(t, time.Minute, func(t *testing.T, b *backends.Backend, make func() acquirer) {
		ctx := b.Context()
		l := make()
		held, err := l.TryAcquire(ctx)
		must(t, err)
		began := time.Now()
		if _, err = make().Acquire(ctx, 40*time.Millisecond); !errors.Is(err, lock.ErrTaken) {
			t.Errorf("after the wait: %v", err)
		}
		if d := time.Since(began); d < 40*time.Millisecond || b.Virtual() && d != 40*time.Millisecond {
			t.Errorf("a wait of 40 ms took %v", d)
		}
		must(t, held.Release(ctx))
		again, err := l.TryAcquire(ctx) // the line is empty
		must(t, err)
		must(t, again.Release(ctx))
	})
}

func TestACancelledWaitLeavesTheLine(t *testing.T) {
	eachExclusive(t, time.Minute, func(t *testing.T, b *backends.Backend, make func() acquirer) {
		ctx := b.Context()
		l, other := make(), make()
		held, err := l.TryAcquire(ctx)
		must(t, err)
		for _, after := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond} {
			giving, cancel := context.WithCancel(ctx)
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := other.Acquire(giving, 0); !errors.Is(err, context.Canceled) {
					t.Errorf("cancelled after %v: %v", after, err)
				}
			})
			b.Pass(after)
			cancel()
			wg.Wait()
		}
		must(t, held.Release(ctx))
		// The server may notice a moment later that a connection is gone.
		b.Until("the lock is free", func() bool {
			again, err := l.TryAcquire(ctx)
			if err == nil {
				must(t, again.Release(ctx))
			}
			return err == nil
		})
	})
}

func TestWaitersAreServedInOrder(t *testing.T) {
	for _, kind := range []string{"fair", "rw", "semaphore"} {
		t.Run(kind, func(t *testing.T) {
			backends.Each(t, func(t *testing.T, b *backends.Backend) {
				ctx := b.Context()
				l := exclusive[kind](t, b.Conn, b.Name("k"), 20*time.Second)
				held, err := l.TryAcquire(ctx)
				must(t, err)
				var mu sync.Mutex
				var served []int
				var wg sync.WaitGroup
				for i := range 5 {
					wg.Go(func() {
						lease, err := l.Acquire(ctx, 0)
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						served = append(served, i)
						mu.Unlock()
						if err := lease.Release(ctx); err != nil {
							t.Error(err)
						}
					})
					b.Until("it is in line", func() bool { return inLine(t, b, b.Name("k")) == i+1 })
				}
				must(t, held.Release(ctx))
				wg.Wait()
				if fmt.Sprint(served) != "[0 1 2 3 4]" {
					t.Errorf("served %v", served)
				}
			})
		})
	}
}

// inLine counts the waiters.
func inLine(t testing.TB, b *backends.Backend, name string) int {
	t.Helper()
	if !b.Native() {
		v, err := b.Do(b.Context(), "ZCARD", "{"+name+"}:line")
		must(t, err)
		return int(v.Int)
	}
	info := "LOCK.INFO"
	if v, err := b.Do(b.Context(), "TYPE", name); err == nil && strings.HasPrefix(v.Str, "sem") {
		info = "SEM.INFO"
	}
	v, err := b.Do(b.Context(), info, name)
	must(t, err)
	for k, x := range v.Pairs {
		if k.Str == "line" {
			return len(x.Elems)
		}
	}
	return 0
}

func TestReadersShareAndWritersDoNot(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		l, err := lock.NewRW(b.Conn, b.Name("k"), lock.Options{TTL: 20 * time.Second})
		must(t, err)
		first, err := l.TryShare(ctx)
		must(t, err)
		second, err := l.Share(ctx, time.Second)
		must(t, err)
		if _, err := l.TryAcquire(ctx); !errors.Is(err, lock.ErrTaken) {
			t.Errorf("alone beside readers: %v", err)
		}
		// A writer in line lets no more readers in.
		var writer, third *lock.Lease
		var wg sync.WaitGroup
		wg.Go(func() { writer, err = l.Acquire(ctx, 0) })
		b.Until("the writer is in line", func() bool { return inLine(t, b, b.Name("k")) == 1 })
		if _, err := l.TryShare(ctx); !errors.Is(err, lock.ErrTaken) {
			t.Errorf("past a writer: %v", err)
		}
		var wg2 sync.WaitGroup
		var err2 error
		wg2.Go(func() { third, err2 = l.Share(ctx, 0) })
		b.Until("the reader is in line", func() bool { return inLine(t, b, b.Name("k")) == 2 })
		must(t, first.Release(ctx))
		must(t, second.Release(ctx))
		wg.Wait()
		must(t, err)
		if writer.Token() <= second.Token() {
			t.Error("tokens of readers and writers do not grow")
		}
		if _, err := l.TryShare(ctx); !errors.Is(err, lock.ErrTaken) {
			t.Errorf("shared beside a writer: %v", err)
		}
		must(t, writer.Release(ctx))
		wg2.Wait()
		must(t, err2)
		must(t, third.Release(ctx))
	})
}

func TestPermitsAreNeverMoreThanTheLimit(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s, err := lock.NewSemaphore(b.Conn, b.Name("k"), 5, lock.Options{TTL: 20 * time.Second})
		must(t, err)
		var out atomic.Int64
		var wg sync.WaitGroup
		for i := range 8 {
			n := int64(1 + i%4)
			wg.Go(func() {
				for range 3 {
					lease, err := s.Acquire(ctx, n, 0)
					if err != nil {
						t.Error(err)
						return
					}
					if got := out.Add(n); got > 5 {
						t.Errorf("%d permits are out", got)
					}
					_ = kit.Sleep(ctx, time.Millisecond)
					out.Add(-n)
					if err := lease.Release(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for _, n := range []int64{0, -1, 6} {
			if _, err := s.TryAcquire(ctx, n); !errors.Is(err, ebb.ErrArgument) {
				t.Errorf("%d permits of 5: %v", n, err)
			}
		}
	})
}

func TestTheContextEndsBeforeTheLeaseWhenTheBackendIsGone(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		c := b.Open()
		if b.Virtual() {
			return // the backend is a part of the program there
		}
		lease, err := newLock(t, c, b.Name("k"), short).TryAcquire(ctx)
		must(t, err)
		must(t, c.Close())
		<-lease.Context().Done()
		if cause := context.Cause(lease.Context()); !errors.Is(cause, lock.ErrLost) {
			t.Errorf("cause: %v", cause)
		}
		if err := lease.Release(ctx); err == nil {
			t.Error("released without a backend")
		}
	})
}

func TestALostLeaseIsTold(t *testing.T) {
	together(t, func(t *testing.T, b *backends.Backend, make func(kind string, ttl time.Duration) acquirer) {
		ctx := b.Context()
		var leases []*lock.Lease
		for kind := range exclusive {
			lease, err := make(kind, short).TryAcquire(ctx)
			must(t, err)
			leases = append(leases, lease)
		}
		for kind := range exclusive {
			if _, err := b.Del(ctx, b.Name(kind)); err != nil {
				t.Fatal(err)
			}
			if !b.Native() {
				_, err := b.Del(ctx, "{"+b.Name(kind)+"}:held")
				must(t, err)
			}
		}
		for _, lease := range leases {
			<-lease.Context().Done()
			if cause := context.Cause(lease.Context()); !errors.Is(cause, lock.ErrLost) {
				t.Errorf("cause: %v", cause)
			}
			if err := lease.Renew(ctx); !errors.Is(err, lock.ErrLost) {
				t.Errorf("renew: %v", err)
			}
			if err := lease.Release(ctx); !errors.Is(err, lock.ErrLost) {
				t.Errorf("release: %v", err)
			}
		}
	})
}

func TestBadArgumentsAreRefused(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		for what, err := range map[string]error{
			"no name":         second(lock.New(b.Conn, "")),
			"a TTL too short": second(lock.New(b.Conn, "k", lock.Options{TTL: time.Millisecond})),
			"no permits":      second(lock.NewSemaphore(b.Conn, "k", 0)),
			"a negative wait": second(newLock(t, b.Conn, "k", 0).Acquire(b.Context(), -1)),
		} {
			if !errors.Is(err, ebb.ErrArgument) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// fresh deletes the keys that an earlier run of the test left on a server that still runs.
func fresh(t testing.TB, b *backends.Backend, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if _, err := b.Del(b.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestAnObjectSaysHowItRuns(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		want := "; LOCK.ACQUIRE of ebb)"
		if !b.Native() {
			want = "; a Lua script on "
		}
		if s := newLock(t, b.Conn, "report", 0).String(); !strings.HasPrefix(s, `lock "report" (lease 30s, renewed every 10s`) || !strings.Contains(s, want) {
			t.Error(s)
		}
	})
}
