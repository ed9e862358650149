package ebbtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/ebbdb/ebb/conn"
)

var (
	// ErrCut, returned by an interceptor, loses the connection before the command
	// is run.
	ErrCut = errors.New("ebbtest: the connection was cut before the command")
	// ErrLost, returned by an interceptor, runs the command and loses the connection before
	// its reply: this is the worst fault that a network has.
	ErrLost = errors.New("ebbtest: the connection was cut before the reply")
)

// faults are the faults that a test has set on a Backend.
type faults struct {
	mu        sync.Mutex // guards what follows
	reply     string
	latency   time.Duration
	intercept func(cmd []string) error
	down      bool
	hung      chan struct{}                   // closed by GoOn; nil unless hung
	started   chan struct{}                   // closed by Start; nil unless down
	calls     map[int]context.CancelCauseFunc // of the calls that wait in the engine
	next      int
	conns     map[*connection]struct{}
	sessions  map[*session]struct{}
	quiet     sync.Cond // on mu: a session has ended
}

// SetError makes the backend reply to every command with an error, such as "LOADING come
// back later", until SetError is called with "". The backend runs no command meanwhile.
// Data does not see the fault.
func (b *Backend) SetError(text string) {
	b.faults.mu.Lock()
	defer b.faults.mu.Unlock()
	b.faults.reply = text
}

// SetLatency makes every command wait for d before it runs; 0 ends that. The wait uses the
// timers of the test: in a bubble it costs no real time; outside of a bubble it is real
// time, and does not depend on Clock.
func (b *Backend) SetLatency(d time.Duration) {
	b.faults.mu.Lock()
	defer b.faults.mu.Unlock()
	b.faults.latency = d
}

// Intercept makes the backend call fn before each command, with the words that the client
// sent. If fn returns nil, the command runs. An ebb.ReplyError becomes its reply. ErrLost
// runs the command and cuts the connection. Any other error, such as ErrCut, cuts the
// connection at once. The backend calls fn from several goroutines, also for the first
// commands of a client library on a new connection. A nil fn ends the interception.
func (b *Backend) Intercept(fn func(cmd []string) error) {
	b.faults.mu.Lock()
	defer b.faults.mu.Unlock()
	b.faults.intercept = fn
}

// Stop makes the backend behave as a server that is killed. It cuts the connections,
// waiting calls get an error, and until Start it refuses connections; commands of the Conn
// fail with ebb.ErrUnavailable. The backend keeps its data, as a server does that syncs
// every write, and keys and items expire meanwhile. When Stop returns, no call waits in
// the engine. Stop must not be called from an interceptor, which can return ErrCut
// instead.
func (b *Backend) Stop() {
	f := &b.faults
	f.mu.Lock()
	if f.down {
		f.mu.Unlock()
		return
	}
	f.down, f.started = true, make(chan struct{})
	for _, cancel := range f.calls {
		cancel(errStopped)
	}
	conns, sessions := f.conns, maps.Clone(f.sessions)
	f.conns = nil
	f.mu.Unlock()
	for c := range conns {
		_ = c.Close()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range sessions {
		for f.has(s) {
			f.quiet.Wait()
		}
	}
}

// Start starts a stopped backend again, at the same address, without the scripts that it
// had cached.
func (b *Backend) Start() {
	b.t.Helper()
	f := &b.faults
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.down {
		return
	}
	if _, err := b.Data.c.Do(context.Background(), "SCRIPT", "FLUSH"); err != nil {
		b.t.Errorf("ebbtest: start: %v", err)
	}
	f.down = false
	close(f.started)
}

// Restart calls Stop and then Start.
func (b *Backend) Restart() {
	b.t.Helper()
	b.Stop()
	b.Start()
}

// Hang makes the backend stop replying, as a process does that is suspended or a machine
// that swaps. Connections stay open, and the backend accepts new ones. It keeps the
// requests and runs them after GoOn, also those whose caller has given up. A command of
// the Conn waits until GoOn or until its context ends; in the second case it does not run.
// Time continues, and keys and items expire. Data does not see the fault.
func (b *Backend) Hang() {
	b.faults.mu.Lock()
	defer b.faults.mu.Unlock()
	if b.faults.hung == nil {
		b.faults.hung = make(chan struct{})
	}
}

// GoOn ends Hang.
func (b *Backend) GoOn() {
	b.faults.mu.Lock()
	defer b.faults.mu.Unlock()
	if b.faults.hung != nil {
		close(b.faults.hung)
		b.faults.hung = nil
	}
}

// goesOn returns a channel that GoOn closes; nil if the backend does not hang.
func (f *faults) goesOn() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hung
}

// wait waits while the backend hangs.
func (f *faults) wait(ctx context.Context) error {
	hung := f.goesOn()
	if hung == nil {
		return nil
	}
	select {
	case <-hung:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

// ended returns the error of a command whose context has ended, or whose backend has
// stopped.
func ended(ctx context.Context) error { return fmt.Errorf("ebbtest: %w", ctx.Err()) }

// has reports whether a session is open. The caller holds mu.
func (f *faults) has(s *session) bool {
	_, ok := f.sessions[s]
	return ok
}

// begin registers a session, and end removes it.
func (f *faults) begin(s *session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sessions[s] = struct{}{}
}

func (f *faults) end(s *session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sessions, s)
	f.quiet.Broadcast()
}

// decide applies the faults to a command that came over the network.
func (f *faults) decide(cmd []string) error {
	f.mu.Lock()
	reply, fn := f.reply, f.intercept
	f.mu.Unlock()
	if reply != "" {
		return conn.ReplyError(reply)
	}
	if fn != nil {
		return fn(cmd)
	}
	return nil
}

func (f *faults) delay() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.latency
}

// any reports whether a fault is set that concerns commands.
func (f *faults) any() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reply != "" || f.intercept != nil
}

// up returns a channel that is closed when the backend is started.
func (f *faults) up() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return f.started
	}
	there := make(chan struct{})
	close(there)
	return there
}

func (f *faults) isDown() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.down
}

// enter registers a connection, and reports whether the backend accepts it.
func (f *faults) enter(c *connection) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return false
	}
	if f.conns == nil {
		f.conns = map[*connection]struct{}{}
	}
	f.conns[c] = struct{}{}
	return true
}

func (f *faults) leave(c *connection) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, c)
}

// whileUp returns a context that Stop ends too, until the caller calls end. It returns an
// error if the backend is stopped.
func (f *faults) whileUp(ctx context.Context) (up context.Context, end func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return nil, nil, away("stopped")
	}
	up, cancel := context.WithCancelCause(ctx)
	if f.calls == nil {
		f.calls = map[int]context.CancelCauseFunc{}
	}
	id := f.next
	f.next++
	f.calls[id] = cancel
	return up, func() {
		f.mu.Lock()
		delete(f.calls, id)
		f.mu.Unlock()
		cancel(nil)
	}, nil
}

var errStopped = errors.New("ebbtest: the test has stopped the backend")

// away returns the error of a backend that is stopped.
func away(why string) error { return fmt.Errorf("ebbtest: %w: %s", conn.ErrUnavailable, why) }
