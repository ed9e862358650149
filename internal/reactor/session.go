// Package reactor moves bytes between sockets and sessions with epoll loops.
//
//	listener ──accept──▶ loop 0 ──deals──▶ loop 0..n-1, the one with the fewest connections
//
//	one loop, one batch:
//
//	epoll_wait ─▶ per ready connection: one read ─▶ Session.Serve ─▶ shared output
//	     ▲        woken connections:   TakePushes, Serve if parked ─▶ shared output
//	     │        flush: one write per connection that has output
//	     │        Settle hook: what they wait for together; the woken, flush
//	     └─────── Idle hook: deadlines to reclaim, and when it wants to be called again
//
// A loop owns one read buffer and one output buffer for all its connections. A
// connection owns an input buffer only while it holds a part of a request, and
// an output buffer only while its socket is full.
//
// Invariants: a session's methods run on its connection's loop and nowhere
// else; a descriptor is read, written and closed on its loop only; a loop
// never sleeps while its queue of woken connections holds one; a connection
// whose socket may hold unread bytes (edge-triggered) has readable set.
//
// This file holds the interfaces and builds on every system; the loops need Linux. Start
// reading at loop.run.
package reactor

import (
	"errors"
	"net"
	"sync/atomic"
)

// Session is what a connection runs. Its methods are called one at a time: on
// the connection's loop, or under the connection's lock where a transport has
// no loops. They must not block.
//
// A session may also implement PeerWatcher, UnsentWatcher, Sharer,
// OutputLimiter and IdleChecker.
type Session interface {
	// Serve runs the complete requests at the start of in and appends their
	// replies to out, whose present bytes belong to others and stay as they
	// are. It returns how much of in it consumed, the grown out, and what is
	// to happen next. in is valid during the call only; what was not consumed
	// comes again at the start of the next call's in.
	Serve(in, out []byte) (consumed int, out2 []byte, v Verdict)

	// Want is how many bytes, counted from the first unconsumed one, the
	// pending request needs as far as known, or 0. It sizes the buffer, which
	// still grows only as bytes arrive.
	Want() int

	// TakePushes appends the messages that other goroutines queued for this
	// connection. It is called after Wake, before a parked session is resumed.
	TakePushes(out []byte) []byte

	// Closed is called once, last, when the connection is gone. err says why:
	// nil after the verdict Close or Kill(nil), io.EOF when the peer left,
	// ErrShutdown, ErrOutputLimit, ErrIdle, the error given to Kill, or what
	// the system said.
	Closed(err error)
}

// Verdict is what Serve asks for.
type Verdict uint8

const (
	// Continue: every complete request was served; call again when there is more input.
	Continue Verdict = iota
	// Park: a command runs elsewhere; call Serve again, with the unconsumed
	// input, after Wake. Until then the connection is not read.
	Park
	// Yield: enough for one turn; write, let the others have theirs, and call
	// Serve again with the unconsumed input. A session yields when its output
	// of one call becomes large.
	Yield
	// Close: write out, then close, or hand over as Hijacker says.
	Close
)

// PeerWatcher is implemented by sessions that want to know, while parked, that
// the peer will send no more (it may still read). It is called at most once.
// The connection ends after the session was resumed and its output written; one
// that broke in both directions is Closed at once instead.
type PeerWatcher interface{ PeerClosed() }

// UnsentWatcher is implemented by sessions that want to know that the last of what
// they wrote was not sent. It is called just before Closed.
type UnsentWatcher interface{ Unsent() }

// Sharer is implemented by sessions that can hand out large parts of their output
// without a copy. A transport that can take them calls Share once, before the first
// Serve, and then TakeShared after every Serve and TakePushes.
type Sharer interface {
	Share()
	// TakeShared returns what belongs between the bytes that were just appended, in
	// order of At. The slice is valid until the session's next method is called.
	TakeShared() []Piece
}

// Piece is output that is not copied. Bytes do not change until Done, which the
// transport calls once: when they are sent, or never will be.
type Piece struct {
	At    int // where it belongs: before out2[At]
	Bytes []byte
	Uses  *atomic.Int32 // counts the readers of Bytes; nil: they have no other owner
}

// Done says that the transport needs the bytes no more.
func (p *Piece) Done() {
	if p.Uses != nil {
		p.Uses.Add(-1)
		p.Uses = nil
	}
	p.Bytes = nil
}

// OutputLimiter is implemented by sessions with an output limit. The transport asks it
// whenever the socket did not take all output; true closes the connection at once with
// ErrOutputLimit.
type OutputLimiter interface{ OutputExceeded(pending int) bool }

// IdleChecker is implemented by sessions that time out. The transport asks it about once
// a second, with the time in Unix milliseconds; true closes the connection with ErrIdle.
type IdleChecker interface{ IdleCheck(now int64) bool }

// Conn is the session's handle on its connection. Its methods may be called
// from any goroutine, also after the connection is gone.
type Conn interface {
	// Wake makes the loop call TakePushes and resume a parked session, soon. Several
	// Wakes before that count as one. It costs one atomic operation when the connection
	// is already woken, and a system call only when the loop sleeps.
	Wake()
	// Kill closes the connection: with an error at once, with nil after
	// TakePushes was called once more and all output was written.
	Kill(err error)
	// RemoteAddr is the peer as host:port, or the socket's path and ":0".
	RemoteAddr() string
	// LocalAddr is our side, in the same form.
	LocalAddr() string
	// Network is "tcp", "tls", "unix" or what the listener calls itself.
	Network() string
	// FD is the descriptor's number for display, or -1.
	FD() int
	// Loop is the number of the loop that serves the connection, or -1.
	Loop() int
	// Buffered is how many bytes of partial input and of unsent output the
	// connection holds, a moment ago.
	Buffered() (input, output int)
}

// Hijacker is implemented by connections that can leave their transport, for a
// protocol that is no longer requests and replies. The session calls Hijack in
// Serve, which then returns Close.
//
// Once the session's output is written the transport lets go of the connection
// and calls run, on a goroutine that it waits for when it shuts down. run reads
// and writes nc as it likes, and may block; buffered is input that was read and
// not consumed, and belongs to run. When run returns the connection is closed
// and then Session.Closed called, with the error given to Kill if that ended it.
// Meanwhile no other method of the session is called; Kill and the end of the
// server close nc. If the output cannot be written run is not called.
type Hijacker interface {
	Hijack(run func(nc net.Conn, buffered []byte))
}

// Reasons given to Session.Closed.
var (
	ErrShutdown    = errors.New("the server is shutting down")
	ErrOutputLimit = errors.New("the client does not read: output limit exceeded")
	ErrIdle        = errors.New("the client was idle for too long")
	ErrStalled     = errors.New("the client does not read: no progress while closing")
)

// Gate counts connections and refuses those beyond a maximum. One gate may
// stand before several transports. The zero value admits every connection.
type Gate struct {
	max     atomic.Int64
	count   atomic.Int64
	refused atomic.Int64
}

// SetMax sets the maximum; 0 means no limit. Admitted connections stay.
func (g *Gate) SetMax(n int) { g.max.Store(int64(n)) }

// Count returns the number of admitted connections.
func (g *Gate) Count() int { return int(g.count.Load()) }

// Enter admits one connection and reports whether the gate had room for it.
func (g *Gate) Enter() bool {
	n := g.count.Add(1)
	if m := g.max.Load(); m > 0 && n > m {
		g.count.Add(-1)
		g.refused.Add(1)
		return false
	}
	return true
}

// Refused returns the number of connections that the gate refused.
func (g *Gate) Refused() int64 { return g.refused.Load() }

// Leave undoes one successful Enter.
func (g *Gate) Leave() { g.count.Add(-1) }
