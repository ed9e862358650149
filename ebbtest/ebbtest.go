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
// Start reading at Run.
package ebbtest

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/memnet"
	"github.com/ebbdb/ebb/server"
)

// Backend is an embedded engine for one test. What takes an *ebb.Conn takes
// its Conn.
type Backend struct {
	*ebb.Conn
	// Clock is the engine's time.
	Clock *Clock

	t      testing.TB
	ctx    context.Context // ends with the test
	cancel context.CancelFunc
	serves sync.WaitGroup

	mu   sync.Mutex // guards what follows
	addr string
	mem  *memnet.Listener
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
	b.ctx, b.cancel = context.WithCancel(context.Background())
	c, err := ebb.Open(b.ctx, "mem://", ebb.Options{Clock: b.Clock.of()})
	if err != nil {
		b.cancel()
		t.Fatalf("ebbtest: %v", err)
	}
	b.Conn = c
	t.Cleanup(func() {
		b.cancel()
		b.serves.Wait()
		if err := c.Close(); err != nil {
			t.Errorf("ebbtest: close: %v", err)
		}
		if b.Clock.manual == nil {
			b.Clock.Advance(lastBreath)
		}
	})
	return b
}

// Addr serves the engine on a port of 127.0.0.1, and returns "127.0.0.1:port"
// for clients of the Redis protocol. In a bubble it fails the test: sockets are
// outside of it, so its time would stand still while one is waited for. Use
// Dial there.
func (b *Backend) Addr() string {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Clock.manual == nil {
		b.t.Fatal("ebbtest: Addr needs the network, which a synctest bubble cannot wait for: give Dial to the client instead")
	}
	if b.addr == "" {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.t.Fatalf("ebbtest: %v", err)
		}
		b.addr = ln.Addr().String()
		b.serve(ln)
	}
	return b.addr
}

// Dial connects to the engine within the process. It has the form of a client
// library's option, and ignores network and address:
//
//	redis.NewClient(&redis.Options{Dialer: b.Dial})
func (b *Backend) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	b.mu.Lock()
	if b.mem == nil {
		b.mem = memnet.Listen("ebbtest")
		b.serve(b.mem)
	}
	ln := b.mem
	b.mu.Unlock()
	return ln.DialContext(ctx, network, addr)
}

// serve serves until the test ends.
func (b *Backend) serve(ln net.Listener) {
	b.serves.Go(func() {
		if err := server.Serve(b.ctx, ln, b.Engine()); err != nil {
			b.t.Errorf("ebbtest: serve: %v", err)
		}
	})
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
