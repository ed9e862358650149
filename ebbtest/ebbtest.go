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
//	in a test as such              a clock that stands still until Clock.Advance
//	in a testing/synctest bubble   the bubble's time: time.Sleep in the test, its
//	                               timers and our deadlines go by one clock, and
//	                               Clock.Advance sleeps
//
// Clients of the Redis protocol reach the same engine by Addr, over a real
// port, or by Dial, which works in bubbles too.
//
// What is stored is looked at through Backend.Data, without contexts and errors:
//
//	if got := b.Data.Get("session:1"); got != "ann" { ... }
//
// And the backend fails when it is told to:
//
//	b.SetError("LOADING not yet")      every command is answered so
//	b.SetLatency(100*time.Millisecond) every command takes that much longer
//	b.Stop(), b.Start(), b.Restart()   it is away; it comes back without its scripts
//	b.Hang(), b.GoOn()                 it is there and says nothing; it goes on
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

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/embed"
	"github.com/ebbdb/ebb/engine"
)

// Backend is an embedded engine for one test. What takes an *ebb.Conn takes
// its Conn.
type Backend struct {
	*conn.Conn
	// Clock is the engine's time.
	Clock *Clock
	// Data is what is stored.
	Data *Data

	t      testing.TB
	ctx    context.Context // ends with the test
	cancel context.CancelFunc
	serves sync.WaitGroup
	net    network
	faults faults
}

// lastBreath is how long a bubble lives on after its backend, in its own time,
// which costs none: go-redis has a goroutine that notices up to 50 ms after the
// last client was closed, and a bubble must not end before its goroutines.
const lastBreath = 200 * time.Millisecond

// Run returns a backend that ends with the test. Whatever the test itself
// started on it, such as subscriptions, is closed then.
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
	manual *engine.ManualClock // nil: the bubble's
	system *engine.SystemClock
}

// bubbleEnds is the end of the years in which a clock that shows them is taken
// for a bubble's. Bubbles begin in 2000; a machine's clock is later.
var bubbleEnds = time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)

// newClock returns the bubble's clock if we are in one. A manual clock starts
// at the machine's time, so that absolute deadlines from time.Now make sense.
func newClock() *Clock {
	system := engine.NewSystemClock()
	now := time.UnixMicro(system.Micros())
	if now.Before(bubbleEnds) {
		return &Clock{system: system}
	}
	return &Clock{manual: engine.NewManualClock(now.Truncate(time.Millisecond))}
}

func (c *Clock) of() engine.Clock {
	if c.manual != nil {
		return c.manual
	}
	return c.system
}

// Now returns the engine's time.
func (c *Clock) Now() time.Time { return time.UnixMicro(c.of().Micros()) }

// Advance lets d pass, stopping at each deadline on the way. When it returns,
// what has expired is gone and its events are sent. What lives for d is still
// there at its last millisecond: a deadline has passed when it is in the past.
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
