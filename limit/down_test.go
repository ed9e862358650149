package limit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

// inBubble runs a test in virtual time, with a connection on which faults happen.
func inBubble(t *testing.T, test func(t *testing.T, b *ebbtest.Backend, c *ebb.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		// By the address of the machine: go-redis 9.23 looks up the name of the default one, outside of the bubble.
		// Connections that lie idle while the time goes on may be to a backend that was stopped meanwhile: go-redis cannot test them.
		client := redis.NewClient(&redis.Options{
			Addr: "127.0.0.1:6379", Dialer: b.Dial, ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1, ConnMaxIdleTime: probe,
		})
		c := ebb.Wrap(client)
		test(t, b, c)
		if err := errors.Join(c.Close(), client.Close()); err != nil {
			t.Error(err)
		}
	})
}

func TestWithoutABackendDownDecides(t *testing.T) {
	inBubble(t, func(t *testing.T, b *ebbtest.Backend, c *ebb.Conn) {
		ctx := t.Context()
		var logged bytes.Buffer
		o := Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))}
		var l [3]*Limiter
		for i, d := range []Down{FailOpen, FailClosed, Local(0.5)} {
			var err error
			if l[i], err = New(c, "api", PerMinute(60), d, o); err != nil {
				t.Fatal(err)
			}
		}
		b.Stop()
		for range 100 {
			if r, err := l[0].Allow(ctx, "ann"); !r.Allowed || !r.Down || r.Local || err != nil {
				t.Fatalf("%+v %v", r, err)
			}
			if r, err := l[1].Allow(ctx, "ann"); r.Allowed || !r.Down || !errors.Is(err, ebb.ErrUnavailable) {
				t.Fatalf("%+v %v", r, err)
			}
		}
		granted := 0
		for range 100 {
			r, err := l[2].Allow(ctx, "ann")
			if err != nil || !r.Local || !r.Down || r.Limit != 30 {
				t.Fatalf("%+v %v", r, err)
			}
			if r.Allowed {
				granted++
			} else if r.RetryAfter != 2*time.Second {
				t.Fatalf("%+v", r)
			}
		}
		if granted != 30 {
			t.Errorf("%d granted by this process alone, want half of 60", granted)
		}
		if s := logged.String(); strings.Count(s, "does not answer") != 3 || !strings.Contains(s, "this process limits by itself") {
			t.Error(s)
		}

		b.Clock.Advance(10 * time.Second)
		for range 100 {
			if r, err := l[2].Allow(ctx, "ann"); err != nil {
				t.Fatal(err)
			} else if r.Allowed {
				granted++
			}
		}
		if granted != 35 {
			t.Errorf("%d granted in 10 s", granted)
		}

		b.Start()
		b.Clock.Advance(probe)
		for i := range l { // a Conn that guesses the capabilities refuses the first calls
			_, _ = l[i].Allow(ctx, "bob")
		}
		b.Clock.Advance(probe)
		for i := range l {
			if r, err := l[i].Allow(ctx, "bob"); !r.Allowed || r.Down || r.Local || err != nil {
				t.Errorf("the backend is there again: %+v %v", r, err)
			}
		}
		if s := logged.String(); strings.Count(s, "answers again") != 3 {
			t.Error(s)
		}
	})
}

func TestABackendThatIsAwayIsAskedNowAndThen(t *testing.T) {
	inBubble(t, func(t *testing.T, b *ebbtest.Backend, c *ebb.Conn) {
		l, err := New(c, "api", PerMinute(60), FailOpen)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Allow(t.Context(), "ann"); err != nil {
			t.Fatal(err)
		}
		asked := 0 // includes the connection's own attempts
		b.Intercept(func(cmd []string) error {
			if cmd[0] == "RL.TAKE" {
				asked++
			}
			return ebb.ReplyError("LOADING come back later")
		})
		for range 60_000 { // one request per millisecond, for a minute
			if r, err := l.Allow(t.Context(), "ann"); !r.Allowed || err != nil {
				t.Fatal(r, err)
			}
			b.Clock.Advance(time.Millisecond)
		}
		if asked < 60 || asked > 2000 {
			t.Errorf("asked %d times in a minute", asked)
		}
		b.Intercept(nil)
		b.Clock.Advance(probe)
		if r, err := l.Allow(t.Context(), "ann"); r.Down || err != nil {
			t.Errorf("%+v %v", r, err)
		}
	})
}

func TestASlowBackendIsBoundedByTheTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, b *ebbtest.Backend, c *ebb.Conn) {
		l, err := New(c, "api", PerMinute(60), Local(1), Options{Timeout: 300 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := l.Allow(t.Context(), "ann"); !r.Allowed || r.Down || err != nil {
			t.Fatalf("%+v %v", r, err)
		}
		b.SetLatency(time.Hour)
		for i := range 3 {
			took := spent(func() {
				if r, err := l.Allow(t.Context(), "ann"); !r.Allowed || !r.Local || err != nil {
					t.Errorf("%+v %v", r, err)
				}
			})
			if want := max(0, 300*time.Millisecond*time.Duration(1-i)); took < want || took > want+50*time.Millisecond {
				t.Errorf("decision %d took %v", i, took)
			}
		}
		// A caller with a shorter deadline gets its own error, which says nothing about the backend.
		b.Clock.Advance(probe)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := l.Allow(ctx, "ann"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		b.SetLatency(0)
		b.Stop() // ends the calls that still wait
		b.Start()
		b.Clock.Advance(2 * probe)
		if r, err := l.Allow(t.Context(), "bob"); r.Local || err != nil {
			t.Errorf("%+v %v", r, err)
		}
	})
}

func TestTheTimeoutIsNotTheCallersDeadline(t *testing.T) {
	silent := func(b *ebbtest.Backend) { b.SetLatency(time.Hour) }
	loading := func(b *ebbtest.Backend) {
		b.Intercept(func([]string) error { return ebb.ReplyError("LOADING come back later") })
	}
	for what, trouble := range map[string]func(*ebbtest.Backend){"silent": silent, "loading": loading} {
		for _, scripts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, scripts: %v", what, scripts), func(t *testing.T) {
				inBubble(t, func(t *testing.T, b *ebbtest.Backend, c *ebb.Conn) {
					for doing, call := range map[string]func(l *Limiter, r *Reservation) error{
						"allow":   func(l *Limiter, _ *Reservation) error { _, err := l.Allow(t.Context(), "ann"); return err },
						"wait":    func(l *Limiter, _ *Reservation) error { return l.Wait(t.Context(), "ann") },
						"reserve": func(l *Limiter, _ *Reservation) error { _, err := l.Reserve(t.Context(), "ann"); return err },
						"cancel":  func(_ *Limiter, r *Reservation) error { return r.Cancel(t.Context()) },
						"all": func(l *Limiter, _ *Reservation) error {
							_, _, err := AllowAll(t.Context(), l.Request("ann"))
							return err
						},
					} {
						l, err := New(c, "api", PerMinute(60), FailClosed, Options{Timeout: 100 * time.Millisecond})
						if err != nil {
							t.Fatal(err)
						}
						l.scriptsOnly = scripts
						r, err := l.Reserve(t.Context(), "ann")
						if err != nil {
							t.Fatal(err)
						}
						trouble(b)
						err = call(l, r)
						if !errors.Is(err, ebb.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) ||
							!strings.Contains(err.Error(), "no reply within 100ms "+
								"(Options.Timeout)") {
							t.Errorf("%s: %v", doing, err)
						}
						b.SetLatency(0)
						b.Intercept(nil)
						if what == "silent" {
							b.Stop() // ends the calls that still wait
							b.Start()
						}
						b.Clock.Advance(2 * probe)
					}
				})
			})
		}
	}
}

func TestWithoutABackendWaitersAreLimitedToo(t *testing.T) {
	inBubble(t, func(t *testing.T, b *ebbtest.Backend, c *ebb.Conn) {
		ctx := t.Context()
		for _, scripts := range []bool{false, true} {
			open, _ := New(c, "api", PerSecond(10), FailOpen)
			closed, _ := New(c, "api", PerSecond(10), FailClosed)
			local, _ := New(c, "api", PerSecond(10), Local(0.1))
			for _, l := range []*Limiter{open, closed, local} {
				l.scriptsOnly = scripts
			}
			b.Stop()
			if err := open.Wait(ctx, "ann"); err != nil {
				t.Error(err)
			}
			if err := closed.Wait(ctx, "ann"); !errors.Is(err, ebb.ErrUnavailable) {
				t.Error(err)
			}
			took := spent(func() {
				for range 4 {
					if err := local.Wait(ctx, "ann"); err != nil {
						t.Error(err)
					}
				}
			})
			if took < 3*time.Second || took > 6*time.Second { // some of them probe the backend
				t.Errorf("4 at a tenth of 10 per second in %v", took)
			}
			short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			if err := local.Wait(short, "ann"); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			cancel()
			if r, err := local.Reserve(ctx, "ann"); err != nil || !r.Local || r.Delay() <= 0 || r.Delay() > time.Second {
				t.Error(r, err)
			} else if err := r.Cancel(ctx); err != nil {
				t.Error(err)
			}
			ok, r, err := AllowAll(ctx, open.Request("{x}1"), local.Request("{x}2"))
			if !ok || !r[0].Allowed || !r[1].Local || err != nil {
				t.Errorf("%v %+v %v", ok, r, err)
			}
			if ok, _, err := AllowAll(ctx, open.Request("{x}1"), closed.Request("{x}2")); ok || !errors.Is(err, ebb.ErrUnavailable) {
				t.Error(ok, err)
			}
			b.Start()
			b.Clock.Advance(10 * probe)
		}
	})
}

func TestAWaiterHearsThatItsBackendIsGone(t *testing.T) {
	inBubble(t, func(t *testing.T, b *ebbtest.Backend, c *ebb.Conn) {
		for _, scripts := range []bool{false, true} {
			l, _ := New(c, fmt.Sprint("api", scripts), PerHour(1), FailClosed)
			l.scriptsOnly = scripts
			if r, err := l.Allow(t.Context(), "ann"); !r.Allowed || err != nil {
				t.Fatal(r, err)
			}
			done := make(chan error, 1)
			go func() { done <- l.Wait(t.Context(), "ann") }()
			b.Clock.Advance(time.Second)
			b.Stop()
			if err := <-done; !errors.Is(err, ebb.ErrUnavailable) {
				t.Error(err)
			}
			b.Start()
			_, _ = c.Do(t.Context(), "PING") // the client notices that its connection was cut
		}
	})
}

// A server that was killed and started again has its data, but no scripts.
func TestALimitHoldsOverARestart(t *testing.T) {
	eachPath(t, func(t *testing.T, b *backends.Backend, scripts bool) {
		for _, a := range all {
			l := newLimiter(t, b.Conn, b.Name("api")+algorithms[a].name, seldom(3), Options{Algorithm: a})
			l.scriptsOnly = scripts
			granted := 0
			for i := range 6 {
				if i == 2 && a == GCRA && !b.Fault() {
					return
				}
				b.Until("it is decided", func() bool {
					r, err := l.Allow(b.Context(), "ann")
					if err == nil && r.Allowed {
						granted++
					}
					return err == nil
				})
			}
			if granted != 3 {
				t.Errorf("%v: %d granted", a, granted)
			}
		}
	})
}

// Clients whose clocks differ by hours share one limit: they send no instants.
func TestTheClientsClockDoesNotCount(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		for _, a := range all {
			for _, program := range []*ebb.Script{byAlgorithm[a].take, byAlgorithm[a].wait} {
				if !strings.Contains(program.Text(), "redis.call('TIME')") {
					t.Errorf("%v: where is the server's time?", a)
				}
			}
			p := newLimiter(t, b.Conn, "x", PerHour(7), Options{Algorithm: a}).plan.Load()
			for _, arg := range append(p.native, p.script...) {
				if n, ok := arg.(int64); ok && n > time.Hour.Microseconds() {
					t.Errorf("%v: %d is not a span of this limit", a, n)
				}
			}
		}
	})
}

func TestWhatTheProcessAllowsByItselfCanBeGivenBack(t *testing.T) {
	virtual(t, func(t *testing.T, b *ebbtest.Backend, scripts bool) {
		ctx := t.Context()
		l, err := New(b.Conn, "api", PerHour(1), Local(1), Options{Probe: 24 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		l.scriptsOnly = scripts
		kept, err := l.Reserve(ctx, "ann")
		if err != nil {
			t.Fatal(err)
		}
		b.Stop()
		if err := kept.Cancel(ctx); !errors.Is(err, ebb.ErrUnavailable) {
			t.Error(err)
		}
		var r [3]*Reservation
		for i := range r {
			if r[i], err = l.Reserve(ctx, "bob"); err != nil || !r[i].Local {
				t.Fatal(r[i], err)
			}
		}
		for _, i := range []int{1, 2} { // another request was built upon the first of these
			if err := r[i].Cancel(ctx); err != nil {
				t.Error(err)
			}
		}
		if x, err := l.Reserve(ctx, "bob"); err != nil || x.Delay() != 2*time.Hour {
			t.Error(x.Delay(), err)
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if r, err := l.Allow(ended, "ann"); r.Allowed || !errors.Is(err, context.Canceled) {
			t.Error(r, err)
		}
		_ = l.Reset(ctx, "bob") // the backend's bucket stays; ours is full
		if r, err := l.Allow(ctx, "bob"); err != nil || !r.Allowed {
			t.Error(r, err)
		}
	})
}
