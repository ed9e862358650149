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
	// ErrLost, returned by an interceptor, runs the command and loses the
	// connection before its reply: the worst that a network does.
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

// SetError has every command answered with an error, such as "LOADING come back
// later", until it is called with "". Nothing is run meanwhile. Data sees no faults.
func (b *Backend) SetError(text string) {
	b.faults.mu.Lock()
	defer b.faults.mu.Unlock()
	b.faults.reply = text
}

// SetLatency has every command wait for d before it is run; 0 for no longer. It is
// the time of the test's timers: in a bubble it costs none, outside of one it is
// real, whatever Clock shows.
func (b *Backend) SetLatency(d time.Duration) {
	b.faults.mu.Lock()
	defer b.faults.mu.Unlock()
	b.faults.latency = d
}

// Intercept has fn asked before each command, with its words as they were sent.
// nil runs the command; an ebb.ReplyError is its answer; ErrLost runs it and cuts
// the connection; with any other error, as ErrCut, the connection is cut at once. fn
// is called from several goroutines, and sees the commands with which client
// libraries begin a connection, too. A nil fn ends it.
func (b *Backend) Intercept(fn func(cmd []string) error) {
	b.faults.mu.Lock()
	defer b.faults.mu.Unlock()
	b.faults.intercept = fn
}

// Stop takes the backend away, as a server that is killed: connections are cut,
// waiting calls get an error, and until Start it refuses connections; commands of the Conn
// fail with ebb.ErrUnavailable. Data are kept, as by a server that syncs all it
// writes, and what has a deadline expires. When it returns no call waits in the engine
// any more. It must not be called from an interceptor, which has ErrCut.
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

// Start brings a stopped backend back, at the same address, without the scripts
// that it had cached.
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

// Restart is Stop and Start.
func (b *Backend) Restart() {
	b.t.Helper()
	b.Stop()
	b.Start()
}

// Hang has the backend say nothing, as a process that is stopped and a machine that
// swaps: connections stay open, and new ones are made; what is sent is kept, and run
// after GoOn, also if its caller has given up. A command of the Conn waits for GoOn
// or the end of its context, and is not run then. Time goes on, and what has a deadline
// expires. Data sees no faults.
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

// goesOn returns a channel that is closed once the backend does not hang; nil if it does
// not.
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

// ended is the error of a command whose context, or the backend, ended meanwhile.
func ended(ctx context.Context) error { return fmt.Errorf("ebbtest: %w", ctx.Err()) }

// has reports whether a session is there. The caller holds mu.
func (f *faults) has(s *session) bool {
	_, ok := f.sessions[s]
	return ok
}

// begin notes a session, and end forgets it.
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

// decide says what becomes of a command that came over the network.
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

// any reports whether commands must be asked about.
func (f *faults) any() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reply != "" || f.intercept != nil
}

// up returns a channel that is closed once the backend is there.
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

// enter notes a connection, and reports whether it may come in.
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

// whileUp returns a context that Stop ends, too, until end is called; an error if the
// backend is not there.
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

var errStopped = errors.New("ebbtest: stopped")

// away is the error of a backend that is not there.
func away(why string) error { return fmt.Errorf("ebbtest: %w: %s", conn.ErrUnavailable, why) }
