package reactor

import (
	"net"
	"sync"
	"sync/atomic"
)

// conn is one connection. Only its loop uses the fields that have no other note.
type conn struct {
	loop    *loop
	session Session
	watcher PeerWatcher // the session, if it implements this interface; the same holds for the next fields
	limiter OutputLimiter
	checker IdleChecker
	sharer  Sharer
	fd      int
	tag     int32 // distinguishes this connection's events from those of the fd's former owner

	// The fields below are the state of the connection in its loop.
	readable bool // the socket may hold unread bytes or the end of the stream
	parked   bool // the session waits for Wake
	yielded  bool // the session left complete requests in the input
	closing  bool // close with cause once the output is written
	hungUp   bool // the peer has ended its side
	told     bool // PeerClosed was called
	again    bool // in loop.turn
	dirty    bool // has output in the loop's shared buffer at [outStart, outEnd)
	closed   bool
	awaits   bool                               // the poller reports when the socket accepts more bytes
	broken   bool                               // its output could not be written
	stalled  uint8                              // sweeps without progress while closing
	cause    error                              // why closing
	hijack   func(nc net.Conn, buffered []byte) // nil: close at the end of closing

	outStart, outEnd int

	// in[r:w] is unconsumed input; in is nil when there is none. Unsent output is in queue
	// and then in out, without its first sent bytes; out is nil when it is empty.
	in     []byte
	r, w   int
	queue  []Piece
	queued int // bytes in queue
	out    []byte
	sent   int

	network       string
	remote, local endpoint

	// Any goroutine may use the fields below.
	woken   atomic.Bool // in the loop's queue
	held    atomic.Int64
	pending atomic.Int64

	mu     sync.Mutex // guards what follows
	killed bool
	reason error
	taken  net.Conn // the hijacked connection; nil: the loop still has it
}

func (c *conn) RemoteAddr() string { return c.remote.String() }
func (c *conn) LocalAddr() string  { return c.local.String() }
func (c *conn) Network() string    { return c.network }
func (c *conn) FD() int            { return c.fd }
func (c *conn) Loop() int          { return c.loop.id }

func (c *conn) Buffered() (input, output int) {
	return int(c.held.Load()), int(c.pending.Load())
}

// Hijack implements Hijacker.
func (c *conn) Hijack(run func(nc net.Conn, buffered []byte)) { c.hijack = run }

func (c *conn) Wake() {
	if !c.woken.Load() && c.woken.CompareAndSwap(false, true) {
		_ = c.loop.enqueue(c)
	}
}

func (c *conn) Kill(err error) {
	c.mu.Lock()
	if !c.killed || c.reason == nil {
		c.killed, c.reason = true, err // an error has priority over a graceful end
	}
	taken := c.taken
	c.mu.Unlock()
	if taken != nil {
		_ = taken.Close()
		return
	}
	c.Wake()
}

func (c *conn) killedBy() (killed bool, reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.killed, c.reason
}

// unsent returns the number of bytes that the socket has not accepted yet.
func (c *conn) unsent() int { return c.queued + len(c.out) - c.sent }

// mayRead reports whether the loop should read the connection's socket now.
func (c *conn) mayRead() bool {
	return c.readable && !c.yielded && !c.closed && c.mayServe()
}

// mayServe reports whether the loop may call Serve now.
func (c *conn) mayServe() bool {
	return !c.parked && !c.closing && c.unsent() < c.loop.highWater
}

// Input buffering. Small partial requests are copied to the front of the
// loop's read buffer and completed there; a request that outgrows
// directRead bytes is read into the connection's own buffer.
const (
	directRead = readSize / 4
	maxRead    = 256 << 10 // the most that one read takes; other connections would wait for the copy of a larger one
)

// readSpace returns a buffer whose first kept bytes are the unconsumed input; the bytes
// after them are free.
func (c *conn) readSpace() (buf []byte, kept int) {
	kept = c.w - c.r
	if kept < directRead {
		copy(c.loop.rbuf, c.in[c.r:c.w])
		return c.loop.rbuf, kept
	}
	if c.r > 0 && c.w == len(c.in) {
		c.w = copy(c.in, c.in[c.r:c.w])
		c.r = 0
	}
	if c.w == len(c.in) {
		// The buffer is twice as large as the input that has arrived, and not larger than the
		// announced length: an announcement alone costs no memory.
		size := 2 * kept
		if want := c.session.Want(); want > kept {
			size = min(size, want)
		}
		c.moveInput(c.loop.pool.get(size))
	}
	return c.in[c.r:min(len(c.in), c.w+maxRead)], kept
}

// moveInput makes to the input buffer and copies the input to it.
func (c *conn) moveInput(to []byte) {
	c.w = copy(to, c.in[c.r:c.w])
	c.r = 0
	c.loop.pool.put(c.in)
	c.in = to
}

// keep stores buf[consumed:] as the unconsumed input. buf is the loop's read
// buffer or starts at in[r].
func (c *conn) keep(buf []byte, consumed int) {
	rest := buf[consumed:]
	switch {
	case len(rest) == 0:
		if c.in != nil {
			c.loop.pool.put(c.in)
			c.in, c.r, c.w = nil, 0, 0
		}
	case c.in != nil && &buf[0] != &c.loop.rbuf[0]:
		c.r += consumed
		c.w = c.r + len(rest)
	default:
		if len(c.in) < len(rest) {
			if c.in != nil {
				c.loop.pool.put(c.in)
			}
			size := len(rest)
			if want := c.session.Want(); want > size {
				size = min(2*size, want)
			}
			c.in = c.loop.pool.get(size)
		}
		c.r, c.w = 0, copy(c.in, rest)
	}
	if n := int64(c.w - c.r); n != c.held.Load() {
		c.held.Store(n)
	}
}
