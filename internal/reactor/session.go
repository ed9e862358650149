// Package reactor moves bytes between sockets and sessions with epoll loops.
//
//	listener ──accept──▶ loop 0 ──deals──▶ loop 0..n-1, the one with the fewest connections
//
//	one loop, one batch:
//
//	epoll_wait ─▶ per ready connection: one read ─▶ Session.Serve ─▶ shared output
//	     ▲        woken connections:   TakePushes, Serve if parked ─▶ shared output
//	     │        flush: one write per connection that has output
//	     │        Settle hook: common work, such as one fsync; the woken, flush
//	     └─────── Idle hook: deadlines to reclaim, and the time of its next call
//
// A loop owns one read buffer and one output buffer for all its connections. A
// connection owns an input buffer only while it holds a part of a request, and
// an output buffer only while its socket is full.
//
// Invariants: a session's methods run on its connection's loop and nowhere
// else; a descriptor is read, written and closed on its loop only, until a
// hijacker takes its connection, which a loop may then still read (Taken); a loop
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

// Session runs the requests of a connection. The transport calls its methods one at a
// time: on the connection's loop, or under the connection's lock where a transport has no
// loops. They must not block.
//
// A session may also implement PeerWatcher, UnsentWatcher, Sharer,
// OutputLimiter and IdleChecker.
type Session interface {
	// Serve runs the complete requests at the start of in and appends their replies to out.
	// It must not change the bytes that out has already, which belong to other connections.
	// It returns the number of bytes of in that it consumed, the extended out, and a
	// verdict. in is valid during the call only. The next call's in begins with the bytes
	// that were not consumed.
	Serve(in, out []byte) (consumed int, out2 []byte, v Verdict)

	// Want returns the least length in bytes of the pending request, counted from the first
	// unconsumed byte, or 0 if it is not known. The transport uses it for the size of the
	// buffer, which still grows only as bytes arrive.
	Want() int

	// TakePushes appends the messages that other goroutines queued for this connection. The
	// transport calls it after Wake, before it resumes a parked session.
	TakePushes(out []byte) []byte

	// Closed is the last call, once, after the connection has ended. err is the reason: nil
	// after the verdict Close or Kill(nil), io.EOF when the peer has closed, ErrShutdown,
	// ErrOutputLimit, ErrIdle, the error given to Kill, or an error of the system.
	Closed(err error)
}

// Verdict tells the transport how to continue after Serve.
type Verdict uint8

const (
	// Continue: every complete request was served; call again when there is more input.
	Continue Verdict = iota
	// Park: a command runs elsewhere; call Serve again, with the unconsumed input, after
	// Wake. Until then the transport does not read the connection.
	Park
	// Yield: the session has used its turn. The transport writes the output, serves other
	// connections, and calls Serve again with the unconsumed input. A session yields when
	// its output of one call becomes large.
	Yield
	// Close: the transport writes the output and then closes the connection, or hands it
	// over as Hijacker says.
	Close
)

// PeerWatcher is implemented by sessions that must know, while parked, that the peer has
// ended its side of the connection (it may still read). The transport calls PeerClosed at
// most once. The connection ends after the session was resumed and its output written; one
// that broke in both directions is Closed at once instead.
type PeerWatcher interface{ PeerClosed() }

// UnsentWatcher is implemented by sessions that must know that the end of their output was
// not sent. The transport calls Unsent just before Closed.
type UnsentWatcher interface{ Unsent() }

// Sharer is implemented by sessions that can pass large parts of their output without a
// copy. A transport that supports this calls Share once, before the first Serve, and then
// TakeShared after every Serve and TakePushes.
type Sharer interface {
	Share()
	// TakeShared returns the pieces that belong between the bytes that were just appended,
	// in order of At. The slice is valid until the session's next method is called.
	TakeShared() []Piece
}

// Piece is output that is not copied. Bytes must not change until Done. The transport
// calls Done once, when the bytes are sent or will never be sent.
type Piece struct {
	At    int // its position: before out2[At]
	Bytes []byte
	Uses  *atomic.Int32 // counts the readers of Bytes; nil: they have no other owner
}

// Done releases the bytes: the transport no longer needs them.
func (p *Piece) Done() {
	if p.Uses != nil {
		p.Uses.Add(-1)
		p.Uses = nil
	}
	p.Bytes = nil
}

// OutputLimiter is implemented by sessions with an output limit. The transport calls it
// whenever the socket did not accept all output. If it returns true, the transport closes
// the connection at once with ErrOutputLimit.
type OutputLimiter interface{ OutputExceeded(pending int) bool }

// IdleChecker is implemented by sessions that time out. The transport calls it about once
// a second, with the time in Unix milliseconds. If it returns true, the transport closes
// the connection with ErrIdle.
type IdleChecker interface{ IdleCheck(now int64) bool }

// Conn is the session's handle on its connection. Its methods may be called from any
// goroutine, even after the connection has ended.
type Conn interface {
	// Wake makes the loop call TakePushes and resume a parked session, soon. Several
	// Wakes before that count as one. It costs one atomic operation when the connection
	// is already woken, and a system call only when the loop sleeps.
	Wake()
	// Kill closes the connection: with an error at once, with nil after
	// TakePushes was called once more and all output was written.
	Kill(err error)
	// RemoteAddr returns the peer's address as host:port, or the socket's path and ":0".
	RemoteAddr() string
	// LocalAddr returns the server's address of the connection, in the same form.
	LocalAddr() string
	// Network returns "tcp", "tls", "unix" or what the listener calls itself.
	Network() string
	// FD returns the descriptor's number for display, or -1.
	FD() int
	// Loop returns the number of the loop that serves the connection, or -1.
	Loop() int
	// Buffered returns the bytes of partial input and of unsent output that the connection
	// held a moment ago.
	Buffered() (input, output int)
}

// Hijacker is implemented by connections that can leave their transport, for a protocol
// that does not consist of requests and replies. The session calls Hijack in Serve, which
// then returns Close.
//
// After it has written the session's output, the transport releases the connection and
// calls run, on a goroutine for which it waits when it shuts down. run reads and writes nc
// as it likes, and may block; buffered is input that was read and not consumed, and
// belongs to run. When run returns, the transport closes the connection and then calls
// Session.Closed, with the error given to Kill if that ended it. Meanwhile it calls no
// other method of the session; Kill and the end of the server close nc. If it cannot write
// the output, it does not call run.
type Hijacker interface {
	Hijack(run func(nc net.Conn, buffered []byte))
}

// Taken is implemented by the connection of a hijacker that comes from an event loop. On other transports a hijacker
// reads and writes by goroutines of its own.
type Taken interface {
	net.Conn
	// TryWrite writes the bytes that the socket accepts at once, perhaps none, and does not wait.
	TryWrite(b []byte) (n int, err error)
	// Attend makes the loop of the connection read it. The loop passes all that arrives to take, which must not block;
	// b is valid during the call only. The loop wakes the sessions that take wakes in the same batch. end is the last
	// call, once: after take has returned false, with nil, or when the connection has ended, with the error, which is
	// net.ErrClosed after Close. The caller must no longer call Read. Attend reports false, and calls neither, if the
	// connection or the loop has ended.
	Attend(take func(b []byte) (ok bool), end func(err error)) bool
}

// Reasons given to Session.Closed.
var (
	ErrShutdown    = errors.New("the server is shutting down")
	ErrOutputLimit = errors.New("the client does not read: output limit exceeded")
	ErrIdle        = errors.New("the client was idle for too long")
	ErrStalled     = errors.New("the client does not read: no progress while closing")
)

// Gate counts connections and refuses those beyond a maximum. Several transports may share
// one gate. The zero value admits every connection.
type Gate struct {
	max     atomic.Int64
	count   atomic.Int64
	refused atomic.Int64
}

// SetMax sets the maximum; 0 means no limit. Admitted connections stay.
func (g *Gate) SetMax(n int) { g.max.Store(int64(n)) }

// Count returns the number of admitted connections.
func (g *Gate) Count() int { return int(g.count.Load()) }

// Enter admits one connection and reports whether it is below the maximum.
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
