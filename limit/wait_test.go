package limit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

// spent returns the time that f takes.
func spent(f func()) time.Duration {
	w := startWatch()
	f()
	return w.elapsed()
}

// virtual runs a test in virtual time, by the commands and by scripts.
func virtual(t *testing.T, test func(t *testing.T, b *ebbtest.Backend, scripts bool)) {
	for name, scripts := range map[string]bool{"commands": false, "scripts": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, ebbtest.Run(t), scripts) })
		})
	}
}

func TestAWaiterIsServedAtItsInstant(t *testing.T) {
	virtual(t, func(t *testing.T, b *ebbtest.Backend, scripts bool) {
		l := newLimiter(t, b.Conn, "api", PerSecond(2), Options{Burst: 1})
		l.scriptsOnly = scripts
		for i := range 5 {
			took := spent(func() {
				if err := l.Wait(t.Context(), "ann"); err != nil {
					t.Fatal(err)
				}
			})
			want := 500 * time.Millisecond
			if i == 0 {
				want = 0
			}
			if took < want || took > want+2*time.Millisecond {
				t.Errorf("turn %d after %v", i, took)
			}
		}
	})
}

func TestWaitersAreServedInTheirOrder(t *testing.T) {
	virtual(t, func(t *testing.T, b *ebbtest.Backend, scripts bool) {
		for _, a := range all {
			l := newLimiter(t, b.Conn, "api"+algorithms[a].name, PerSecond(4), Options{Algorithm: a})
			l.scriptsOnly = scripts
			if r, err := l.AllowN(t.Context(), "ann", 4); !r.Allowed || err != nil {
				t.Fatal(r, err)
			}
			var mu sync.Mutex
			var order []int
			var wg sync.WaitGroup
			for i := range 9 {
				wg.Go(func() {
					n := int64(1)
					if i == 2 {
						n = 4 // large requests do not starve
					}
					if err := l.WaitN(t.Context(), "ann", n); err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					order = append(order, i)
				})
				b.Clock.Advance(time.Millisecond)
			}
			if r, err := l.Allow(t.Context(), "ann"); r.Allowed || r.RetryAfter <= 0 || err != nil {
				t.Errorf("%v: it overtook: %+v %v", a, r, err)
			}
			took := spent(wg.Wait)
			// Calls that become possible at the same instant may return in any order.
			if at := slices.Index(order, 2); at < 2 || slices.Index(order, 8) < at || took > 10*time.Second {
				t.Errorf("%v: %v in %v", a, order, took)
			}
			if a == GCRA && !slices.IsSorted(order) {
				t.Errorf("%v: %v", a, order)
			}
		}
	})
}

func TestNoMoreIsGivenToWaitersThanToOthers(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		l := newLimiter(t, b.Conn, b.Name("api"), Per(10, 200*time.Millisecond), Options{Burst: 2})
		m := newLimiter(t, b.Open(), b.Name("api"), Per(10, 200*time.Millisecond), Options{Burst: 2})
		took := spent(func() {
			var wg sync.WaitGroup
			for range 5 {
				for _, l := range []*Limiter{l, m} {
					wg.Go(func() {
						if err := l.Wait(b.Context(), "ann"); err != nil {
							t.Error(err)
						}
					})
				}
			}
			wg.Wait()
		})
		if took < 8*20*time.Millisecond-2*time.Millisecond {
			t.Errorf("10 in %v", took)
		}
	})
}

func TestAWaiterBehindOthersAtItsDeadlineIsLate(t *testing.T) {
	eachPath(t, func(t *testing.T, b *backends.Backend, scripts bool) {
		l := newLimiter(t, b.Conn, b.Name("api"), PerHour(1))
		l.scriptsOnly = scripts
		if r, err := l.Allow(b.Context(), "ann"); !r.Allowed || err != nil {
			t.Fatal(r, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- l.Wait(ctx, "ann") }() // waits for ever, in front of the next call
		b.Pass(20 * time.Millisecond)
		short, stop := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer stop()
		if err := l.Wait(short, "ann"); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrLate) {
			t.Error(err)
		}
		if !l.native() {
			v, err := b.Do(b.Context(), "ZCARD", kit.Key(l.bucket("ann"), "line"))
			if err != nil || v.Int != 1 {
				t.Errorf("in line: %s, %v, want the waiter", v, err)
			}
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || errors.Is(err, ErrLate) {
			t.Error(err)
		}
	})
}

func TestAWaiterStopsWithItsContext(t *testing.T) {
	eachPath(t, func(t *testing.T, b *backends.Backend, scripts bool) {
		l := newLimiter(t, b.Conn, b.Name("api"), PerHour(1))
		l.scriptsOnly = scripts
		if r, err := l.Allow(b.Context(), "ann"); !r.Allowed || err != nil {
			t.Fatal(r, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- l.Wait(ctx, "ann") }()
		b.Pass(20 * time.Millisecond)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		took := spent(func() {
			if err := l.Wait(ctx, "ann"); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrLate) {
				t.Error(err)
			}
		})
		if took > calm { // it is the first in line, so it is known at once
			t.Errorf("told after %v", took)
		}
		if err := l.Reset(b.Context(), "ann"); err != nil {
			t.Error(err)
		}
		b.Until("the line is empty", func() bool {
			r, err := l.Allow(b.Context(), "ann")
			return r.Allowed && err == nil
		})
	})
}

func TestADeadWaiterHoldsUpTheLineForItsLeaseAtMost(t *testing.T) {
	virtual(t, func(t *testing.T, b *ebbtest.Backend, scripts bool) {
		l := newLimiter(t, b.Conn, "api", PerSecond(1))
		l.opt.Timeout = time.Second
		l.scriptsOnly = true
		if r, err := l.Allow(t.Context(), "ann"); !r.Allowed || err != nil {
			t.Fatal(r, err)
		}
		// A waiter sends one request, and no other.
		p := l.plan.Load()
		v, err := l.pollLine(t.Context(), p, l.bucket("ann"), append(p.script[:4:4], 1, "dead", "", 2_000_000, -1))
		if err != nil || v.Elems[0].Int != 2 {
			t.Fatal(v, err)
		}
		took := spent(func() {
			if err := l.Wait(t.Context(), "ann"); err != nil {
				t.Error(err)
			}
		})
		if took < 2*time.Second || took > 2*time.Second+refresh+10*time.Millisecond {
			t.Errorf("served after %v", took)
		}
	})
}

func TestReservationsAreKeptAndGivenBack(t *testing.T) {
	virtual(t, func(t *testing.T, b *ebbtest.Backend, scripts bool) {
		l := newLimiter(t, b.Conn, "smtp", PerSecond(1))
		l.scriptsOnly = scripts
		ctx := t.Context()
		var all []*Reservation
		for i := range 4 {
			r, err := l.Reserve(ctx, "")
			if err != nil || r.Delay() != time.Duration(i)*time.Second {
				t.Fatal(i, err, r.Delay())
			}
			all = append(all, r)
		}
		if _, err := l.ReserveN(ctx, "", 1, time.Second); !errors.Is(err, ErrLate) {
			t.Error(err)
		}
		for range 2 {
			if err := all[2].Cancel(ctx); err != nil {
				t.Error(err)
			}
		}
		b.Clock.Advance(500 * time.Millisecond)
		if d := all[1].Delay(); d != 500*time.Millisecond {
			t.Error(d)
		}
		if r, err := l.Reserve(ctx, ""); err != nil || r.Delay() != 1500*time.Millisecond {
			t.Error("the place that was given back is not taken again:", err, r.Delay())
		}
		w := newLimiter(t, b.Conn, "other", PerSecond(1), Options{Algorithm: SlidingLog})
		if _, err := w.Reserve(ctx, ""); err == nil {
			t.Error("a log has reserved")
		}
	})
}

func TestReservationsAreGivenBackToWaiters(t *testing.T) {
	virtual(t, func(t *testing.T, b *ebbtest.Backend, scripts bool) {
		l := newLimiter(t, b.Conn, "api", PerSecond(1), Options{Burst: 1})
		l.scriptsOnly = scripts
		var all []*Reservation
		for range 6 {
			r, err := l.Reserve(t.Context(), "ann")
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
		var waiter sync.WaitGroup
		took := spent(func() {
			waiter.Go(func() {
				if err := l.Wait(t.Context(), "ann"); err != nil {
					t.Error(err)
				}
			})
			b.Clock.Advance(100 * time.Millisecond)
			for _, r := range all[1:] {
				if err := r.Cancel(t.Context()); err != nil {
					t.Error(err)
				}
			}
			// A caller that comes now waits behind the others.
			if r, err := l.Allow(t.Context(), "ann"); err != nil || r.Allowed {
				t.Error(r, err)
			}
			waiter.Wait()
		})
		if took > 1100*time.Millisecond {
			t.Errorf("served after %v", took)
		}
	})
}

func TestAWaiterThatLeavesBeforeTheFirstAnswerLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		l := newLimiter(t, b.Conn, "api", PerHour(1))
		l.scriptsOnly = true
		if _, err := l.Allow(t.Context(), "ann"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		b.Intercept(func(cmd []string) error {
			if cmd[0] == "EVAL" && len(cmd) > 9 && ctx.Err() == nil {
				cancel()
				return ebbtest.ErrLost
			}
			return nil
		})
		if err := l.Wait(ctx, "ann"); err == nil || ctx.Err() == nil {
			t.Error(err)
		}
		b.Intercept(nil)
		if v, err := b.Conn.Do(t.Context(), "EXISTS", kit.Key("api:ann", "line")); err != nil || v.Int != 0 {
			t.Error("the line is not empty:", v, err)
		}
	})
}

func TestSeveralLimitsAreTakenFromTogetherOrNotAtAll(t *testing.T) {
	eachPath(t, func(t *testing.T, b *backends.Backend, scripts bool) {
		ctx := b.Context()
		minute := newLimiter(t, b.Conn, b.Name("minute"), PerMinute(3))
		day := newLimiter(t, b.Conn, b.Name("day"), PerDay(5))
		log := newLimiter(t, b.Conn, b.Name("log"), PerHour(4), Options{Algorithm: SlidingLog})
		for _, l := range []*Limiter{minute, day, log} {
			l.scriptsOnly = scripts
		}
		const key = "{ann}"
		for i := range 4 {
			ok, r, err := AllowAll(ctx, minute.Request(key), day.Request(key))
			if err != nil || ok != (i < 3) || len(r) != 2 || r[0].Allowed != (i < 3) || !r[1].Allowed {
				t.Errorf("%d: %v %+v %v", i, ok, r, err)
			}
		}
		if r, err := day.Peek(ctx, key); r.Remaining != 2 || err != nil {
			t.Errorf("a refused request has taken permits: %+v %v", r, err)
		}
		ok, r, err := AllowAll(ctx, day.RequestN(key, 2), log.RequestN(key, 4))
		if !ok || err != nil || r[0].Remaining != 0 || r[1].Remaining != 0 || r[1].Taken != 4 {
			t.Errorf("%v %+v %v", ok, r, err)
		}
		ok, r, err = AllowAll(ctx, day.Request("{ann}2"), log.Request(key))
		if ok || err != nil || !r[0].Allowed || r[1].Allowed || r[0].Remaining != 5 || r[1].RetryAfter <= 0 {
			t.Errorf("%v %+v %v", ok, r, err)
		}
		if _, _, err := AllowAll(ctx, day.Request(key), day.Request(key)); err == nil {
			t.Error("the same twice")
		}
	})
}

func TestTheLogIsExactOverAnyPeriod(t *testing.T) {
	virtual(t, func(t *testing.T, b *ebbtest.Backend, scripts bool) {
		const n, period = 50, time.Second
		l := newLimiter(t, b.Conn, "log", Per(n, period), Options{Algorithm: SlidingLog})
		l.scriptsOnly = scripts
		var grants []time.Duration
		w := startWatch()
		for i := range 3000 {
			r, err := l.Allow(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			if r.Allowed {
				grants = append(grants, w.elapsed())
			}
			b.Clock.Advance(time.Duration(i%7) * 613 * time.Microsecond)
		}
		for i := n; i < len(grants); i++ {
			if d := grants[i] - grants[i-n]; d < period {
				t.Fatalf("%d grants within %v", n+1, d)
			}
		}
		if want := int(w.elapsed()/period) * n; len(grants) < want {
			t.Errorf("%d grants in %v", len(grants), w.elapsed())
		}
	})
}

func TestWhatIsOwedToAFarGreaterRateIsToldAsATime(t *testing.T) {
	virtual(t, func(t *testing.T, b *ebbtest.Backend, scripts bool) {
		for i, next := range []Rate{Per(13, 90*24*time.Hour), Per(1, 90*24*time.Hour)} { // the whole script, and then the fast one
			l := newLimiter(t, b.Conn, fmt.Sprint("api", i), Per(50_000_000, 24*time.Hour))
			l.scriptsOnly = scripts
			for range 2 { // the second one's turn is tomorrow
				if _, err := l.ReserveN(t.Context(), "ann", 50_000_000, -1); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.SetRate(next, 0); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				r, err := l.Allow(t.Context(), "ann")
				if err != nil || r.Allowed || r.RetryAfter < 200*365*24*time.Hour || r.ResetAfter < 200*365*24*time.Hour {
					t.Errorf("%v: %+v, %v", next, r, err)
				}
			}
		}
	})
}

// While the demand exceeds the rate, the waiting calls get the whole rate, however short their deadlines are
// in comparison with the line.
func TestWaitersWithDeadlinesGetTheWholeRate(t *testing.T) {
	const (
		rate  = 200
		calls = 50 // a line of a quarter of a second
		lasts = 2 * time.Second
	)
	for _, lines := range []float64{0.3, 0.4, 1, 3} {
		virtual(t, func(t *testing.T, b *ebbtest.Backend, scripts bool) {
			l := newLimiter(t, b.Conn, "api", PerSecond(rate), Options{Burst: calls})
			l.scriptsOnly = scripts
			deadline := time.Duration(lines * float64(calls*time.Second/rate))
			got := waitInALoop(t, l, calls, deadline, lasts, func() { time.Sleep(time.Millisecond) })
			if most := int64(rate*lasts/time.Second) + calls; got < most*9/10 || got > most {
				t.Errorf("deadlines of %v: %d grants, want %d to %d", deadline, got, most*9/10, most)
			}
		})
	}
}

// The same by the system's clock: on a busy machine of two cores, servers gave 98 to 102 % in the first
// round. One of several rounds is enough. Virtual time would stand still while a caller asks again and again.
func TestWaitersWithDeadlinesGetTheWholeRateOfAServer(t *testing.T) {
	const rate, burst, lasts, rounds = 200, 50, time.Second, 5
	const most = int64(rate*lasts/time.Second) + burst
	eachPathExcept(t, []string{"mem"}, func(t *testing.T, b *backends.Backend, scripts bool) {
		l := newLimiter(t, b.Conn, b.Name("api"), PerSecond(rate), Options{Burst: burst})
		l.scriptsOnly = scripts
		var got []int64
		for range rounds {
			if err := l.Reset(b.Context(), "ann"); err != nil {
				t.Fatal(err)
			}
			got = append(got, waitInALoop(t, l, 50, 100*time.Millisecond, lasts, runtime.Gosched))
			if got[len(got)-1] >= most*9/10 {
				break
			}
		}
		t.Logf("grants: %v of %d", got, most)
		if slices.Max(got) < most*9/10 {
			t.Errorf("%v grants in a second, want %d to %d", got, most*9/10, most)
		}
		if r, err := l.Allow(b.Context(), "other"); !r.Allowed || err != nil {
			t.Error(r, err)
		}
	})
}

// waitInALoop makes calls that wait with a deadline, again and again, and returns the number of grants. A
// caller that learns at once that its turn is too late pauses before it asks again: otherwise virtual time
// would not advance.
func waitInALoop(t *testing.T, l *Limiter, calls int, deadline, lasts time.Duration, pause func()) int64 {
	var grants atomic.Int64
	var all sync.WaitGroup
	whole, end := context.WithTimeout(t.Context(), lasts)
	defer end()
	for range calls {
		all.Go(func() {
			for whole.Err() == nil {
				ctx, cancel := context.WithTimeout(whole, deadline)
				err := l.Wait(ctx, "ann")
				if ctx.Err() == nil && errors.Is(err, ErrLate) {
					pause()
				}
				cancel()
				switch {
				case err == nil:
					grants.Add(1)
				case !errors.Is(err, context.DeadlineExceeded):
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return grants.Load()
}

// A call whose turn comes after its deadline keeps no other call waiting.
func TestAHopelessWaiterDoesNotHoldUpOthers(t *testing.T) {
	virtual(t, func(t *testing.T, b *ebbtest.Backend, _ bool) {
		l := newLimiter(t, b.Conn, "api", PerSecond(10), Options{Burst: 10})
		l.scriptsOnly = true
		if r, err := l.AllowN(t.Context(), "ann", 10); !r.Allowed || err != nil {
			t.Fatal(r, err)
		}
		first, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() {
			if err := l.Wait(first, "ann"); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		all.Go(func() { // its turn is at 200 ms
			if err := l.Wait(first, "ann"); !errors.Is(err, ErrLate) {
				t.Error("the second:", err)
			}
		})
		synctest.Wait()
		time.Sleep(110 * time.Millisecond)
		synctest.Wait()
		if v, err := b.Do(t.Context(), "EXISTS", kit.Key(l.bucket("ann"), "line")); err != nil || v.Int != 0 {
			t.Errorf("there is a line of %v, %v", v, err)
		}
		time.Sleep(110 * time.Millisecond)
		if r, err := l.Allow(t.Context(), "ann"); !r.Allowed || err != nil {
			t.Error("Allow:", r, err)
		}
		all.Wait()
	})
}
