package limit

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

func TestMain(m *testing.M) { backends.Main(m) }

// calm is a timeout for tests in which a slow machine must not look like a dead backend.
const calm = 15 * time.Second

func newLimiter(t *testing.T, c *ebb.Conn, name string, rate Rate, opts ...Options) *Limiter {
	t.Helper()
	o := Options{Timeout: calm}
	if len(opts) > 0 {
		o = opts[0]
		o.Timeout = calm
	}
	l, err := New(c, name, rate, FailClosed, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// eachPath runs a test on each backend, and on the embedded engine a second time with scripts.
func eachPath(t *testing.T, test func(t *testing.T, b *backends.Backend, scripts bool)) {
	eachPathExcept(t, nil, test)
}

// eachPathExcept runs a test as eachPath does, without some kinds of backend.
func eachPathExcept(t *testing.T, kinds []string, test func(t *testing.T, b *backends.Backend, scripts bool)) {
	backends.Except(t, kinds, func(t *testing.T, b *backends.Backend) { test(t, b, false) })
	t.Run("scripts", func(t *testing.T) {
		backends.Except(t, kinds, func(t *testing.T, b *backends.Backend) {
			if b.Native() {
				test(t, b, true)
			}
		})
	})
}

var all = []Algorithm{GCRA, SlidingWindow, SlidingLog, FixedWindow}

// seldom allows n in a period so long that no window ends while a test runs: a window of an hour ends on the
// hour, which may be in the middle of a test.
func seldom(n int64) Rate { return Per(n, 90*24*time.Hour) }

func TestALimitIsAllowedAndNoMore(t *testing.T) {
	eachPath(t, func(t *testing.T, b *backends.Backend, scripts bool) {
		for _, a := range all {
			l := newLimiter(t, b.Conn, b.Name("api"), seldom(5), Options{Algorithm: a})
			l.scriptsOnly = scripts
			for i := range 7 {
				r, err := l.Allow(b.Context(), "ann")
				if err != nil {
					t.Fatal(a, err)
				}
				if r.Allowed != (i < 5) || r.Limit != 5 || r.Remaining != max(0, int64(4-i)) {
					t.Errorf("%v, %d: %+v", a, i, r)
				}
				if (r.RetryAfter > 0) == r.Allowed || r.ResetAfter <= 0 || r.ResetAfter > 2*l.Rate().Period {
					t.Errorf("%v, %d: %+v", a, i, r)
				}
			}
			if r, err := l.Allow(b.Context(), "bob"); !r.Allowed || err != nil {
				t.Errorf("%v: another key: %+v %v", a, r, err)
			}
			if r, err := l.Peek(b.Context(), "bob"); !r.Allowed || r.Remaining != 4 || err != nil {
				t.Errorf("%v: a peek: %+v %v", a, r, err)
			}
			if err := l.Reset(b.Context(), "ann"); err != nil {
				t.Error(err)
			}
			if r, err := l.AllowN(b.Context(), "ann", 5); !r.Allowed || r.Taken != 5 || err != nil {
				t.Errorf("%v: after a reset: %+v %v", a, r, err)
			}
			if err := l.Reset(b.Context(), "ann", "bob"); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestWithoutKeysResetAndDeleteMeanTheEmptyKey(t *testing.T) {
	eachPath(t, func(t *testing.T, b *backends.Backend, scripts bool) {
		l := newLimiter(t, b.Conn, b.Name("api"), seldom(5))
		l.scriptsOnly = scripts
		for name, end := range map[string]func(context.Context, ...string) error{"reset": l.Reset, "delete": l.Delete} {
			for _, key := range []string{"", "ann"} {
				if r, err := l.AllowN(b.Context(), key, 5); !r.Allowed || err != nil {
					t.Errorf("%s: %q at first: %+v %v", name, key, r, err)
				}
			}
			if err := end(b.Context()); err != nil {
				t.Error(name, err)
			}
			if r, err := l.Peek(b.Context(), ""); r.Remaining != 5 || err != nil {
				t.Errorf("%s: the empty key: %+v %v", name, r, err)
			}
			if r, err := l.Peek(b.Context(), "ann"); r.Allowed || err != nil {
				t.Errorf("%s: another key: %+v %v", name, r, err)
			}
			if err := end(b.Context(), "", "ann"); err != nil {
				t.Error(name, err)
			}
		}
	})
}

func TestAtMostTakesWhatThereIs(t *testing.T) {
	eachPath(t, func(t *testing.T, b *backends.Backend, scripts bool) {
		for _, a := range all {
			l := newLimiter(t, b.Conn, b.Name("api"), seldom(5), Options{Algorithm: a})
			l.scriptsOnly = scripts
			for _, c := range []struct{ n, want int64 }{{3, 3}, {3, 2}, {3, 0}, {1, 0}, {100, 0}} {
				r, err := l.AllowAtMost(b.Context(), "ann", c.n)
				if err != nil || r.Taken != c.want || r.Allowed != (c.want > 0) || (r.RetryAfter > 0) == r.Allowed {
					t.Errorf("%v: %d: %+v %v", a, c.n, r, err)
				}
			}
			if err := l.Reset(b.Context(), "ann"); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestMoreThanTheBurstIsAnError(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		l := newLimiter(t, b.Conn, b.Name("api"), PerMinute(60), Options{Burst: 10})
		ctx := b.Context()
		_, err := l.AllowN(ctx, "ann", 11)
		if !errors.Is(err, ErrTooMuch) || !strings.Contains(err.Error(), "11, of at most 10") {
			t.Error(err)
		}
		if err := l.WaitN(ctx, "ann", 11); !errors.Is(err, ErrTooMuch) {
			t.Error(err)
		}
		if _, err := l.ReserveN(ctx, "ann", 11, -1); !errors.Is(err, ErrTooMuch) {
			t.Error(err)
		}
		if _, err := l.AllowN(ctx, "ann", 0); !errors.Is(err, ebb.ErrArgument) {
			t.Error(err)
		}
	})
}

func TestClientsShareARateOrHaveTheirOwn(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		for _, own := range []bool{false, true} {
			name := b.Name("api")
			granted := 0
			for range 3 {
				l := newLimiter(t, b.Open(), name, PerHour(2), Options{PerClient: own})
				for range 4 {
					if r, err := l.Allow(b.Context(), "ann"); err != nil {
						t.Fatal(err)
					} else if r.Allowed {
						granted++
					}
				}
			}
			if want := map[bool]int{false: 2, true: 6}[own]; granted != want {
				t.Errorf("per client %v: %d granted, want %d", own, granted, want)
			}
		}
	})
}

func TestConcurrentCallersGetTheLimitTogether(t *testing.T) {
	eachPath(t, func(t *testing.T, b *backends.Backend, scripts bool) {
		for _, a := range all {
			var granted atomic.Int64
			var wg sync.WaitGroup
			name, ctx := b.Name("api")+algorithms[a].name, b.Context()
			for range 4 {
				l := newLimiter(t, b.Open(), name, seldom(20), Options{Algorithm: a})
				l.scriptsOnly = scripts
				wg.Go(func() {
					for range 10 {
						r, err := l.AllowN(ctx, "", 1)
						if err != nil {
							t.Error(err)
						}
						granted.Add(r.Taken)
					}
				})
			}
			wg.Wait()
			if granted.Load() != 20 {
				t.Errorf("%v: %d granted", a, granted.Load())
			}
		}
	})
}

func TestALimiterLeavesNothingBehind(t *testing.T) {
	eachPath(t, func(t *testing.T, b *backends.Backend, scripts bool) {
		for _, a := range all {
			l := newLimiter(t, b.Conn, b.Name("api")+algorithms[a].name, Per(2, 20*time.Millisecond), Options{Algorithm: a})
			l.scriptsOnly = scripts
			if r, err := l.Allow(b.Context(), "ann"); !r.Allowed || err != nil {
				t.Fatal(r, err)
			}
			b.Until("the key is gone", func() bool {
				n, err := b.Exists(b.Context(), keys(l.bucket("ann"))...)
				return n == 0 && err == nil
			})
		}
	})
}

func TestBadOptionsSayWhatWouldBeRight(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		for want, make := range map[string]func() (*Limiter, error){
			"down is not set":    func() (*Limiter, error) { return New(b.Conn, "api", PerSecond(1), Down{}) },
			"the share must be":  func() (*Limiter, error) { return New(b.Conn, "api", PerSecond(1), Local(1.5)) },
			"the name is empty":  func() (*Limiter, error) { return New(b.Conn, "", PerSecond(1), FailOpen) },
			"at least 1 in":      func() (*Limiter, error) { return New(b.Conn, "api", PerSecond(0), FailOpen) },
			"whole milliseconds": func() (*Limiter, error) { return New(b.Conn, "api", Per(1, time.Microsecond), FailOpen) },
			"only GCRA has one": func() (*Limiter, error) {
				return New(b.Conn, "api", PerSecond(1), FailOpen, Options{Algorithm: FixedWindow, Burst: 2})
			},
			"at most 1000000": func() (*Limiter, error) {
				return New(b.Conn, "api", PerSecond(1e7), FailOpen, Options{Algorithm: SlidingLog})
			},
			"cannot count it exactly": func() (*Limiter, error) { return New(b.Conn, "api", PerSecond(1e9+7), FailOpen) },
			"it must be GCRA":         func() (*Limiter, error) { return New(b.Conn, "api", PerSecond(1), FailOpen, Options{Algorithm: 9}) },
			"only PerClient uses":     func() (*Limiter, error) { return New(b.Conn, "api", PerSecond(1), FailOpen, Options{Client: "x"}) },
		} {
			if _, err := make(); !errors.Is(err, ebb.ErrArgument) || !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in: %v", want, err)
			}
		}
		if _, err := New(b.Conn, "bytes", PerSecond(1e9), FailOpen); err != nil {
			t.Errorf("a gigabyte per second: %v", err)
		}
	})
}

func TestAnEndedContextDecidesNothing(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		l, err := New(b.Conn, b.Name("api"), PerHour(1), FailOpen, Options{Timeout: calm})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		if r, err := l.Allow(ctx, "ann"); r.Allowed || !errors.Is(err, context.Canceled) {
			t.Error(r, err)
		}
		if err := l.Wait(ctx, "ann"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if r, err := l.Allow(b.Context(), "ann"); !r.Allowed || r.Down || err != nil {
			t.Errorf("it was taken all the same: %+v %v", r, err)
		}
	})
}

func TestAnotherAlgorithmsKeyIsAnError(t *testing.T) {
	eachPath(t, func(t *testing.T, b *backends.Backend, scripts bool) {
		for _, a := range all {
			for _, other := range all {
				name := b.Name("api") + algorithms[a].name + algorithms[other].name
				l := newLimiter(t, b.Conn, name, PerHour(5), Options{Algorithm: a})
				m := newLimiter(t, b.Conn, name, PerHour(5), Options{Algorithm: other})
				l.scriptsOnly, m.scriptsOnly = scripts, scripts
				if _, err := l.Allow(b.Context(), ""); err != nil {
					t.Fatal(err)
				}
				_, err := m.Allow(b.Context(), "")
				var refused ebb.ReplyError
				if a != other && (!errors.As(err, &refused) || refused.Code() != "WRONGTYPE") || a == other && err != nil {
					t.Errorf("%v after %v: %v", other, a, err)
				}
			}
		}
	})
}

func TestAForeignCounterIsNoLimiter(t *testing.T) {
	eachPath(t, func(t *testing.T, b *backends.Backend, scripts bool) {
		l := newLimiter(t, b.Conn, b.Name("api"), PerHour(5))
		l.scriptsOnly = scripts
		if err := b.Set(b.Context(), l.bucket("ann"), 7); err != nil {
			t.Fatal(err)
		}
		var refused ebb.ReplyError
		if _, err := l.Allow(b.Context(), "ann"); !errors.As(err, &refused) || refused.Code() != "WRONGTYPE" {
			t.Error(err)
		}
		if got, err := b.Get(b.Context(), l.bucket("ann")); got != "7" || err != nil {
			t.Error(got, err)
		}
	})
}

// A sorted set of another program, whose member "#" is not a sum.
func TestAnImpossibleSumIsNoSlidingLog(t *testing.T) {
	eachPath(t, func(t *testing.T, b *backends.Backend, scripts bool) {
		for _, score := range []string{"inf", "-inf", "5", "-9007199254740993", "-1e300"} {
			l := newLimiter(t, b.Conn, b.Name("api"+score), PerHour(5), Options{Algorithm: SlidingLog})
			l.scriptsOnly = scripts
			if _, err := b.Do(b.Context(), "ZADD", l.bucket("ann"), score, "#"); err != nil {
				t.Fatal(err)
			}
			var refused ebb.ReplyError
			if r, err := l.Allow(b.Context(), "ann"); !errors.As(err, &refused) || refused.Code() != "WRONGTYPE" {
				t.Errorf("a score of %s: %+v, %v", score, r, err)
			}
			if r, err := l.Peek(b.Context(), "ann"); err == nil {
				t.Errorf("a score of %s: Peek: %+v", score, r)
			}
		}
	})
}

func TestALimiterSaysHowItRuns(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		l := newLimiter(t, b.Conn, "api", PerMinute(5), Options{Burst: 10, PerClient: true})
		how := "a Lua script on"
		if b.Native() {
			how = "RL.TAKE of ebb"
		}
		if s := l.String(); !strings.HasPrefix(s, `limiter "api" (5 per 1m0s, gcra, burst 10 for each client; `+how) {
			t.Error(s)
		}
	})
}

func TestHalfAHashTagIsNoWayOutOfTheSlot(t *testing.T) {
	l := &Limiter{name: "api"}
	for key, want := range map[string]string{"": "api", "ann": "api:ann", "{ann}": "api:{ann}", "a{": "api:a%7B",
		"}{": "api:%7D%7B", "{}x": "api:%7B%7Dx",
		"x%": "api:x%"} {
		if got := l.bucket(key); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
}

func BenchmarkAllow(b *testing.B) {
	c, err := ebb.Open(b.Context(), "mem://")
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	l, err := New(c, "api", PerSecond(1000), FailClosed)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Allow(b.Context(), "ann"); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAtMostMayBeAsMuchAsOneLikes(t *testing.T) {
	eachPath(t, func(t *testing.T, b *backends.Backend, scripts bool) {
		l := newLimiter(t, b.Conn, b.Name("api"), PerHour(5))
		l.scriptsOnly = scripts
		if r, err := l.AllowAtMost(b.Context(), "ann", math.MaxInt64); err != nil || r.Taken != 5 || r.Remaining != 0 {
			t.Error(r, err)
		}
	})
}

func TestAProcessByItselfAllowsItsShareAndNoMore(t *testing.T) {
	for _, r := range []Rate{PerSecond(3), PerMinute(7), PerHour(1_000_003), Per(11, 13*time.Millisecond), PerSecond(1e6)} {
		for _, share := range []float64{1, 0.3, 1.0 / 3, 0.07} {
			synctest.Test(t, func(t *testing.T) {
				p, err := newPlan(r, GCRA, 0)
				if err != nil {
					t.Fatal(err)
				}
				var l local
				most := max(1, int64(float64(r.N)*share))
				few := min(most, 10_000)
				got := int64(0)
				for range few - 1 {
					got += l.take(p, share, "ann", 1, modeTake).Taken
				}
				rest := l.take(p, share, "ann", most-few+1, modeTake)
				if got += rest.Taken; got != most || rest.Limit != most || rest.Remaining != 0 {
					t.Errorf("%v, a share of %v: %d, want %d, %+v", r, share, got, most, rest)
				}
				if again := l.take(p, share, "ann", 1, modeTake); again.Allowed || again.RetryAfter <= 0 {
					t.Errorf("%v, a share of %v: more is allowed", r, share)
				}
			})
		}
	}
}
