// Package ebbtest gives tests a backend on virtual time, in one line:
//
//	func TestSessionExpires(t *testing.T) {
//		b := ebbtest.Run(t)
//		b.SetTTL(ctx, "session:1", "ann", 30*time.Minute)
//		b.Clock.Advance(30*time.Minute + time.Millisecond)
//		_, err := b.Get(ctx, "session:1") // ebb.ErrNil
//	}
//
// The engine is embedded, private and empty, and ends with the test. Its time
// depends on where Run is called:
//
//	in an ordinary test            a clock that stands still until Clock.Advance
//	in a testing/synctest bubble   the bubble's time: time.Sleep in the test, its
//	                               timers and the engine's deadlines share one clock, and
//	                               Clock.Advance sleeps
//
// Clients of the Redis protocol reach the same engine by Addr, over a real
// port, or by Dial, which works in bubbles too.
//
// A test reads the stored data through Backend.Data, without contexts and errors:
//
//	if got := b.Data.Get("session:1"); got != "ann" { ... }
//
// A test can make the backend fail:
//
//	b.SetError("LOADING not yet")      every command gets this error
//	b.SetLatency(100*time.Millisecond) every command takes that much longer
//	b.Stop(), b.Start(), b.Restart()   it refuses connections; it returns without its scripts
//	b.Hang(), b.GoOn()                 it accepts requests and does not reply; it continues
//	b.Intercept(func(cmd []string) error { ... })
//
// Start reading at Run.
package ebbtest

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/embed"
)

// Backend is an embedded engine for one test. Pass its Conn to a function that takes an
// *ebb.Conn.
type Backend struct {
	*conn.Conn
	// Clock is the engine's time.
	Clock *Clock
	// Data reads what the engine has stored.
	Data *Data

	t      testing.TB
	ctx    context.Context // ends with the test
	cancel context.CancelFunc
	serves sync.WaitGroup
	net    network
	faults faults
}

// lastBreath is the time, on the bubble's clock, that a bubble continues after its backend
// has ended; it costs no real time. go-redis has a goroutine that ends up to 50 ms after
// the last client was closed, and a bubble must not end before its goroutines.
const lastBreath = 200 * time.Millisecond

// Run returns a backend that ends with the test. The end also closes what the test has
// opened on it, such as subscriptions.
func Run(t testing.TB) *Backend {
	t.Helper()
	b := &Backend{t: t, Clock: newClock()}
	b.faults.sessions = map[*session]struct{}{}
	b.faults.quiet.L = &b.faults.mu
	b.ctx, b.cancel = context.WithCancel(context.Background())
	c, err := embed.Open(b.ctx, "mem://", embed.Options{Clock: b.Clock.of()})
	if err != nil {
		b.cancel()
		t.Fatalf("ebbtest: %v", err)
	}
	b.Conn, b.Data = conn.New(&driver{c, &b.faults}), &Data{t: t, c: c}
	t.Cleanup(func() {
		b.cancel()
		b.serves.Wait()
		if err := b.Conn.Close(); err != nil {
			t.Errorf("ebbtest: close: %v", err)
		}
		if b.Clock.manual == nil {
			b.Clock.Advance(lastBreath)
		}
	})
	return b
}

// Clock is a Backend's time.
type Clock struct {
	manual *clock.Manual // nil: the bubble's
	system *clock.System
}

// bubbleEnds distinguishes a bubble's clock from a machine's: a clock before bubbleEnds
// belongs to a bubble. The clock of a bubble begins in 2000; a machine's clock is later.
var bubbleEnds = time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)

// newClock returns the bubble's clock if the test runs in one, else a manual clock. A
// manual clock starts at the machine's time, so that absolute deadlines from time.Now make
// sense.
func newClock() *Clock {
	system := clock.NewSystem()
	now := time.UnixMicro(system.Micros())
	if now.Before(bubbleEnds) {
		return &Clock{system: system}
	}
	return &Clock{manual: clock.NewManual(now.Truncate(time.Millisecond))}
}

func (c *Clock) of() clock.Clock {
	if c.manual != nil {
		return c.manual
	}
	return c.system
}

// Now returns the engine's time.
func (c *Clock) Now() time.Time { return time.UnixMicro(c.of().Micros()) }

// Advance moves the clock by d, and stops at each deadline before that. When it returns,
// expired data is removed and its events are sent. A key with a TTL of d still exists
// after Advance(d): it expires when the clock is later than its deadline, at Advance(d +
// time.Millisecond).
func (c *Clock) Advance(d time.Duration) {
	if c.manual != nil {
		c.manual.Advance(d)
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
	synctest.Wait()
}
