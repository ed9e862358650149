package session

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/wire"
)

// connection is the part of a session that turns bytes into requests and replies into bytes. It knows neither
// commands nor users. An embedded session uses its out, and has no conn.
type connection struct {
	host  connectionHost
	log   *oplog.Log   // the log for which replies wait
	conn  reactor.Conn // nil for an embedded session
	stats *loopStats   // the statistics of its loop, or of all other goroutines; never changes
	loop  bool         // the session runs on its network loop now, and must not block; stats identifies the loop

	closing bool // the connection closes after the replies so far are written
	// cutOff means that the connection was killed, and the last replies are dropped.
	cutOff bool
	// shares means that the transport accepts pieces. mayHold means that the output may be held until it may be
	// sent, and so must be in one piece.
	shares, mayHold bool
	did             engine.Did  // the work of the batch's transactions
	foreign         bool        // the batch has messages of transactions of other sessions; guarded by mu
	holds           oplog.Holds // the state of the log before the batch, or the parked command, began

	parser   wire.Parser
	out      wire.Writer
	turn     int                    // the approximate number of bytes of output of one call of Serve
	pieces   []reactor.Piece        // of the output since TakeShared
	lent     int                    // bytes of the pieces that settle has not counted yet
	bulky    int                    // bytes of large buffers that were allocated since memory was last released
	mark     int64                  // the position in the stream up to which the batch has written or read
	held     heldReplies            // output that waits until it may be sent
	takeOver func(net.Conn, []byte) // takes the connection over when it closes: see HandOver

	softSince atomic.Int64 // us: the instant from which the soft output limit has been exceeded
	counted   atomic.Int64 // its memory when it was last counted: see overMemory
	proto     atomic.Int32 // a copy of out.Proto, for other goroutines
	peerGone  atomic.Bool  // the client has stopped sending
	evicted   atomic.Bool  // its connection must close, because clients take up too much
	// closingUnsent means that the connection will be closed without sending its replies: other commands must
	// not serve a waiting command of it.
	closingUnsent atomic.Bool

	queued atomic.Bool // queue is not empty
	mu     sync.Mutex  // guards the fields below
	queue  []byte      // encoded pushes
	tells  bool        // the queue has a message that reveals data
	told   oplog.Holds // the state of the log when the first of these messages arrived
	gone   bool
}

// connectionHost has the methods of a service that a connection needs.
type connectionHost interface {
	// countProtocolError counts a request that is not RESP.
	countProtocolError()
	// noteGrowth records that messages of n bytes wait for a client, and closes connections if clients use too
	// much memory.
	noteGrowth(n int64)
	// scheduleRelease makes the collector return the memory of large buffers.
	scheduleRelease()
	// beginBarrier returns a barrier, and wakes conn when the barrier is passed.
	beginBarrier(conn reactor.Conn) *barrier
	// leased reports whether the server has the lease of its group.
	leased() bool
	// unsyncedAfter returns the time, in us, for which a reply waits for a group.
	unsyncedAfter() int64
	// holding counts the replies of all connections that wait for a group.
	holding() *heldBytes
	// now returns the time in us.
	now() int64
}

// newConnection returns the connection of a session; conn is nil for an embedded one.
func (s *Service) newConnection(conn reactor.Conn) connection {
	return connection{host: s, log: s.DB.Log(), conn: conn, stats: s.stats[len(s.stats)-1]}
}

// Conn returns the client's connection, nil for an embedded session.
func (c *connection) Conn() reactor.Conn { return c.conn }

// SetProto switches to RESP2 or RESP3, from the next reply on.
func (c *connection) SetProto(n int) {
	c.out.Proto = n
	c.proto.Store(int32(n))
}

// RESP3 reports whether the client has chosen RESP3. Any goroutine may call it.
func (c *connection) RESP3() bool { return c.proto.Load() == 3 }

// Want implements reactor.Session.
func (c *connection) Want() int { return c.parser.Want() }

// takeQueue appends the queued messages. The owner of the session calls it. A command in the background calls
// it too, so that the messages precede its reply.
func (c *connection) takeQueue(out []byte) []byte {
	c.mu.Lock()
	c.queued.Store(false)
	out = append(out, c.queue...)
	if c.tells {
		c.tells, c.foreign, c.holds = false, true, c.holds.Older(c.told)
	}
	if cap(c.queue) > 1<<16 {
		c.queue = nil
	}
	c.queue = c.queue[:0]
	c.mu.Unlock()
	return out
}

func (c *connection) protocolError(err error) {
	c.out.Error("ERR " + err.Error())
	c.closing = true
	c.host.countProtocolError()
}

// countProtocolError implements connectionHost.
func (s *Service) countProtocolError() { s.admin.Totals.ProtocolErrors.Add(1) }

// CloseAfterReply closes the connection after the replies so far are sent.
func (c *connection) CloseAfterReply() { c.closing = true }

// HandOver removes the connection from its transport after the replies so far are sent, and calls run with it
// and with the input that was already read. The client's subscriptions end. The connection must be a
// reactor.Hijacker.
func (c *Session) HandOver(run func(nc net.Conn, buffered []byte)) {
	c.takeOver = run
	c.closing = true // for the transport
	c.svc.pubsub.Leave(c)
}

// closeUnsent closes the connection without sending its replies. Until its loop has done so, other commands
// do not serve a waiting command of it. Any goroutine may call it, with any locks held.
func (c *connection) closeUnsent(err error) {
	c.closingUnsent.Store(true)
	c.conn.Kill(err)
}

// cut ends the connection now, and drops unsent output.
func (c *connection) cut(why error) {
	c.closing, c.cutOff = true, true
	c.conn.Kill(why)
}

// localAddr returns the server's end of the connection, as CLIENT LIST shows it.
func (c *connection) localAddr() string {
	if c.conn == nil {
		return embeddedAddr
	}
	return c.conn.LocalAddr()
}

// outBytes returns the bytes of output that the session has not sent.
func (c *connection) outBytes() int { return len(c.out.Buf) + pieceBytes(c.pieces) }
