package session

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/resp"
)

// connection is the part of a session that turns bytes into requests and replies into bytes. It knows neither commands nor users. An
// embedded session uses its out, and has no conn.
type connection struct {
	svc   *Service
	conn  reactor.Conn // nil for an embedded session
	stats *loopStats   // the statistics of its loop, or of all other goroutines; never changes
	loop  bool         // the session runs on its network loop now, and must not block; stats says on which

	closing bool // the connection closes after the replies so far are written
	// cutOff means that the connection was killed, and the last replies are dropped.
	cutOff bool
	// shares means that the transport takes pieces. mayHold means that the output may be held until
	// it is synced, and so must be in one piece.
	shares, mayHold bool
	wrote           bool // the batch has written

	parser   resp.Parser
	out      resp.Writer
	turn     int                    // the approximate bytes of output of one call of Serve
	pieces   []reactor.Piece        // of the output since TakeShared
	lent     int                    // bytes in them that settle has not counted yet
	bulky    int                    // bytes of large buffers that were allocated since memory was last released
	mark     int64                  // up to where in the stream the batch has written or read
	held     heldReplies            // output that waits for a sync
	takeOver func(net.Conn, []byte) // takes the connection over when it closes: see HandOver

	softSince atomic.Int64 // us: since when the soft output limit is exceeded
	counted   atomic.Int64 // its memory when it was last counted: see overMemory
	proto     atomic.Int32 // a copy of out.Proto, for other goroutines
	peerGone  atomic.Bool  // the client has stopped sending
	evicted   atomic.Bool  // its connection must close, because clients take up too much
	// closingUnsent means that the connection will be closed without its replies: other commands
	// give nothing to a command that waits.
	closingUnsent atomic.Bool

	queued atomic.Bool // queue is not empty
	mu     sync.Mutex  // guards the fields below
	queue  []byte      // encoded pushes
	gone   bool
}
