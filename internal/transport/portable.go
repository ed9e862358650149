package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/reactor"
)

const (
	// smallInput is the size of the first read buffer, enough for one or two requests. A
	// pipeline that fills it gets a buffer of twice the size, up to largeInput, even if no
	// request needs that.
	smallInput = 4 << 10
	largeInput = 64 << 10
	// keepOutput is the largest output buffer kept for the next write.
	keepOutput = 64 << 10

	handshakeTime = 10 * time.Second
	acceptPause   = 100 * time.Millisecond // when accept fails for want of descriptors
	maxStalled    = 30                     // sweeps: half a minute without progress ends a closing connection
)

// portableConn is a connection without an event loop. One goroutine reads and serves, one
// writes, and a short-lived one handles each burst of Wakes; they take mu to use the
// session. Reading never waits for writing, so a client may send a long pipeline before it
// reads the first reply.
type portableConn struct {
	s       *Server
	nc      net.Conn // bytes that are read and written
	raw     net.Conn // the connection under nc's TLS, which is closed to end it at once
	network string

	kick   chan struct{} // cap 1: the writer has work
	resume chan struct{} // cap 1: the reader has work

	woken  atomic.Bool
	wakers sync.WaitGroup
	wakeMu sync.Mutex // guards gone, killed and reason
	gone   bool
	killed bool
	reason error

	held, pending atomic.Int64 // for Buffered

	mu      sync.Mutex // held while the session runs; guards what follows
	session Session    // nil until the handshake is over
	watcher PeerWatcher
	limiter OutputLimiter
	checker IdleChecker
	sharer  reactor.Sharer
	in      []byte // in[r:w] is unconsumed; only the reader moves it
	r, w    int
	queue   []reactor.Piece // output before out
	queued  int             // bytes in queue
	out     []byte          // not yet passed to Write
	spare   []byte          // the second buffer of out
	writing int             // bytes in Write
	parked  bool
	yielded bool
	closing bool // end when the output is written
	ended   bool // the connection no longer reads, serves or writes
	broken  bool // the output could not be written
	cause   error
	stalled int
	hijack  func(nc net.Conn, buffered []byte) // nil: close at the end of closing
}

// Start serves ln in the background, on the portable transport, until it or the server is
// closed.
func (s *Server) Start(ln net.Listener) {
	s.wg.Go(func() {
		if err := s.acceptAll(ln); err != nil {
			s.opt.Logger.Error("a listener failed", "address", ln.Addr().String(), "error", err)
		}
	})
}

// Serve accepts connections from ln until ctx ends, the server is shut down or ln fails,
// and then closes ln. It returns an error in the last case only. The connections stay open
// until the server ends.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	if tcp, ok := ln.(*net.TCPListener); ok && s.fast != nil {
		stop, err := s.fast.add(tcp, "tcp")
		if err != nil {
			return err
		}
		defer stop()
		select {
		case <-ctx.Done():
		case <-s.ctx.Done():
		}
		return nil
	}
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	err := s.acceptAll(ln)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (s *Server) acceptAll(ln net.Listener) error {
	defer ln.Close()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.listeners[ln] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.listeners, ln)
		s.mu.Unlock()
	}()
	for {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			s.accept(nc)
		case s.ctx.Err() != nil || errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF):
			return nil
		case temporary(err):
			s.opt.Logger.Warn("cannot accept a connection", "error", err)
			pause := time.NewTimer(acceptPause)
			select {
			case <-pause.C:
			case <-s.ctx.Done():
			}
			pause.Stop()
		default:
			return err
		}
	}
}

// accept starts a connection, or refuses it. The caller is counted in s.wg.
func (s *Server) accept(nc net.Conn) {
	c := &portableConn{s: s, nc: nc, raw: nc, network: nc.RemoteAddr().Network(),
		kick: make(chan struct{}, 1), resume: make(chan struct{}, 1)}
	if t, ok := nc.(*tls.Conn); ok {
		c.raw, c.network = t.NetConn(), "tls"
	}
	if !s.gate.Enter() {
		if len(s.opt.Refusal) > 0 && c.network != "tls" {
			_ = nc.SetWriteDeadline(time.Now().Add(acceptPause))
			_, _ = nc.Write(s.opt.Refusal)
		}
		_ = c.raw.Close()
		return
	}
	s.mu.Lock()
	idle, closed := s.keepAlive, s.closed
	if !closed {
		s.conns[c] = struct{}{}
	}
	s.mu.Unlock()
	if closed {
		_ = c.raw.Close()
		s.gate.Leave()
		return
	}
	if t, ok := c.raw.(*net.TCPConn); ok {
		_ = t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: idle > 0, Idle: idle, Interval: idle / 3, Count: 3})
	}
	s.wg.Go(c.run)
}

// snapshot returns the connections. A goroutine that locks a connection must not hold
// s.mu, because sessions may call the server.
func (s *Server) snapshot() []*portableConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*portableConn, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	return all
}

// run is the connection's main goroutine. It reads and serves, and at the end waits for
// the other goroutines.
func (c *portableConn) run() {
	if c.open() {
		var writer sync.WaitGroup
		writer.Go(c.write)
		c.read()
		writer.Wait()
		c.handOver()
	}
	c.wakeMu.Lock()
	c.gone = true
	c.wakeMu.Unlock()
	c.wakers.Wait()
	_ = c.raw.Close()

	c.s.mu.Lock()
	delete(c.s.conns, c)
	c.s.mu.Unlock()
	c.s.gate.Leave()
	c.mu.Lock()
	session, cause, unsent := c.session, c.cause, c.broken || c.queued+len(c.out) > 0
	for i := range c.queue {
		c.queue[i].Done()
	}
	c.queue = nil
	c.mu.Unlock()
	if session != nil {
		if w, ok := session.(UnsentWatcher); ok && unsent {
			w.Unsent()
		}
		session.Closed(cause)
	}
}

// open does the TLS handshake, if the listener has TLS, and creates the session.
func (c *portableConn) open() bool {
	if t, ok := c.nc.(*tls.Conn); ok {
		ctx, cancel := context.WithTimeout(c.s.ctx, handshakeTime)
		err := t.HandshakeContext(ctx)
		cancel()
		if err != nil {
			c.s.opt.Logger.Debug("TLS handshake failed", "client", c.RemoteAddr(), "error", err)
			return false
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	session := c.s.opt.NewSession(c)
	if session == nil {
		return false
	}
	c.session = session
	c.watcher, _ = session.(PeerWatcher)
	c.limiter, _ = session.(OutputLimiter)
	c.checker, _ = session.(IdleChecker)
	if c.sharer, _ = session.(reactor.Sharer); c.sharer != nil {
		c.sharer.Share()
	}
	return true
}

// read reads and serves until the connection ends.
func (c *portableConn) read() {
	for {
		space := c.nextSpace()
		if space == nil {
			return
		}
		n, err := c.nc.Read(space)
		c.mu.Lock()
		c.w += n
		if n > 0 && c.mayServe() {
			c.serve()
		}
		c.held.Store(int64(c.w - c.r))
		c.mu.Unlock()
		if err != nil {
			c.endOfInput(err)
			return
		}
	}
}

// handOver runs the hijacker, if there is one and the output is written. The writer and
// the reader have ended.
func (c *portableConn) handOver() {
	c.mu.Lock()
	run, buffered := c.hijack, c.in[c.r:c.w]
	c.wakeMu.Lock()
	if c.killed || c.cause != nil || c.s.ctx.Err() != nil {
		run = nil
	}
	c.wakeMu.Unlock()
	c.held.Store(0)
	c.mu.Unlock()
	if run == nil {
		return
	}
	_ = c.nc.SetReadDeadline(time.Time{}) // removes the deadline that ended the reader
	run(c.nc, buffered)
	_ = c.nc.Close()
}

// nextSpace waits until the reader may read, and returns the buffer to read into; nil at
// the end. The reader reads a little ahead on a parked connection, so that it notices when
// the peer closes.
func (c *portableConn) nextSpace() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.ended && !c.closing &&
		(c.yielded || c.unsent() >= c.s.opt.HighWater || c.parked && c.w-c.r >= largeInput) {
		c.waitResume()
	}
	if c.ended || c.hijack != nil {
		return nil
	}
	if c.closing { // the reader continues only to notice the end
		c.r, c.w = 0, 0
	}
	kept := c.w - c.r
	switch {
	case kept == 0 && c.w == len(c.in) && len(c.in) < largeInput:
		c.in = make([]byte, max(smallInput, 2*len(c.in)))
		c.r, c.w = 0, 0
	case kept == 0 && len(c.in) > largeInput:
		c.in = make([]byte, smallInput) // replaces the buffer of a large request
		c.r, c.w = 0, 0
	case kept <= len(c.in)/2 && c.w > len(c.in)/2:
		c.w = copy(c.in, c.in[c.r:c.w])
		c.r = 0
	case c.w == len(c.in):
		// The buffer is twice as large as the input that has arrived, and not larger than the
		// announced length: an announcement alone costs no memory.
		size := max(2*kept, smallInput)
		if want := c.session.Want(); want > kept {
			size = min(size, want)
		}
		in := make([]byte, size)
		c.w = copy(in, c.in[c.r:c.w])
		c.r, c.in = 0, in
	}
	return c.in[c.w:]
}

// waitResume releases mu until the state has changed.
func (c *portableConn) waitResume() {
	c.mu.Unlock()
	<-c.resume
	c.mu.Lock()
}

// endOfInput ends the reader. The connection still replies to the requests before the end,
// because the peer may still read.
func (c *portableConn) endOfInput(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hijack != nil {
		return // the reader will notice the end itself
	}
	if !errors.Is(err, io.EOF) && !c.closing {
		c.fail(err)
	}
	if !c.ended && c.parked && c.watcher != nil {
		c.watcher.PeerClosed()
	}
	for !c.ended && !c.closing && (c.parked || c.yielded) {
		c.waitResume()
	}
	c.finish(io.EOF)
}

func (c *portableConn) mayServe() bool { return !c.parked && !c.closing && !c.ended }

func (c *portableConn) unsent() int { return c.queued + len(c.out) + c.writing }

// serve calls the session until it needs more input or there is too much output. The
// caller holds mu; serve releases it while the session yields.
func (c *portableConn) serve() {
	for {
		c.serveOnce()
		if !c.yielded {
			return
		}
		c.mu.Unlock() // the writer's turn
		c.mu.Lock()
		if !c.yielded || !c.mayServe() || c.unsent() >= c.s.opt.HighWater {
			return
		}
	}
}

func (c *portableConn) serveOnce() {
	n, out, v := c.session.Serve(c.in[c.r:c.w], c.out)
	c.r += n
	c.out = out
	c.insertPieces()
	c.yielded = v == reactor.Yield && c.r < c.w
	c.parked = v == reactor.Park
	c.wrote()
	if v == reactor.Close {
		c.finish(nil)
	}
}

// insertPieces inserts the session's pieces at their positions in the output.
func (c *portableConn) insertPieces() {
	if c.sharer == nil {
		return
	}
	base := 0
	for _, p := range c.sharer.TakeShared() {
		if n := p.At - base; n > 0 {
			rest := c.out[n:]
			c.queue = append(c.queue, reactor.Piece{Bytes: c.out[:n]})
			c.queued += n
			c.out = append([]byte(nil), rest...)
		}
		base = p.At
		c.queue = append(c.queue, p)
		c.queued += len(p.Bytes)
	}
}

// wrote passes new output to the writer, or ends the connection if it is too much. The
// caller holds mu.
func (c *portableConn) wrote() {
	n := c.unsent()
	c.pending.Store(int64(n))
	if c.writing > 0 && c.limiter != nil && c.limiter.OutputExceeded(n) {
		c.fail(ErrOutputLimit)
	}
	if c.queued+len(c.out) > 0 {
		signal(c.kick)
	}
}

// write writes until the connection ends, and resumes a session that yielded
// when there was too much output.
func (c *portableConn) write() {
	for range c.kick {
		c.mu.Lock()
		for !c.ended && c.queued+len(c.out) > 0 {
			c.writeOnce()
			if c.yielded && c.mayServe() && c.unsent() < c.s.opt.HighWater {
				c.serve()
			}
		}
		if c.closing {
			c.ended = true
		}
		ended, leaves := c.ended, c.hijack != nil
		c.mu.Unlock()
		signal(c.resume)
		switch {
		case ended && leaves:
			_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // ends the reader
			return
		case ended:
			_ = c.nc.Close() // after fail it is closed already; else a graceful close
			return
		}
	}
}

// writeSize is the most bytes that one Write gets. Bytes count as unsent until their Write
// has ended.
const writeSize = 256 << 10

// writeOnce writes the present output, or the piece before it. It releases mu meanwhile.
func (c *portableConn) writeOnce() {
	var p reactor.Piece
	b := c.out
	if len(c.queue) > 0 {
		p, c.queue = c.queue[0], c.queue[1:]
		b = p.Bytes
		c.queued -= len(b)
	} else {
		c.out, c.spare = c.spare[:0], nil
	}
	c.writing = len(b)
	for rest := b; len(rest) > 0 && !c.ended; {
		c.mu.Unlock()
		n, err := c.nc.Write(rest[:min(len(rest), writeSize)])
		c.mu.Lock()
		rest = rest[n:]
		c.writing = len(rest)
		c.stalled = 0
		c.pending.Store(int64(c.unsent()))
		if err != nil {
			c.broken = true
			c.fail(err)
		}
	}
	c.broken = c.broken || c.writing > 0
	c.writing = 0
	if p.Bytes == nil && cap(b) <= keepOutput {
		c.spare = b
	}
	p.Done()
	signal(c.resume)
}

// finish ends the connection with cause after the output is written. The caller holds mu.
func (c *portableConn) finish(cause error) {
	if c.ended || c.closing {
		return
	}
	c.closing, c.cause, c.stalled = true, cause, 0
	signal(c.kick)
	signal(c.resume)
}

// fail ends the connection now. The caller holds mu.
func (c *portableConn) fail(cause error) {
	if c.ended {
		if c.hijack != nil { // the hijacker reads and writes
			if c.cause == nil {
				c.cause = cause
			}
			_ = c.raw.Close()
		}
		return
	}
	c.ended, c.cause = true, cause
	_ = c.raw.Close()
	signal(c.kick)
	signal(c.resume)
}

// signal leaves a token in a channel of capacity 1.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// onWake handles a burst of Wakes.
func (c *portableConn) onWake() {
	defer c.wakers.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.woken.Store(false) // must be before it reads the waker's data
	c.wakeMu.Lock()
	killed, reason := c.killed, c.reason
	c.wakeMu.Unlock()
	if killed && (reason != nil || c.hijack != nil && c.ended) && c.session != nil {
		c.fail(reason)
		return
	}
	if c.ended || c.session == nil {
		return
	}
	if c.closing {
		return
	}
	c.out = c.session.TakePushes(c.out)
	c.insertPieces()
	c.wrote()
	switch {
	case c.ended:
	case killed:
		c.finish(nil)
	case c.parked:
		c.parked = false
		c.serve()
		c.held.Store(int64(c.w - c.r))
	}
	signal(c.resume)
}

// idleCheck calls the session's IdleCheck; the sweep calls it. A session that is busy is
// not idle.
func (c *portableConn) idleCheck(now int64) {
	if !c.mu.TryLock() {
		return
	}
	defer c.mu.Unlock()
	switch {
	case c.ended || c.session == nil:
	case c.closing:
		if c.stalled++; c.stalled > maxStalled {
			c.fail(ErrStalled)
		}
	case c.checker != nil && c.checker.IdleCheck(now):
		c.fail(ErrIdle)
	}
}

// shutdown ends the connection after it has written the unsent output.
func (c *portableConn) shutdown() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unsent() == 0 {
		c.fail(ErrShutdown)
	} else {
		c.finish(ErrShutdown)
	}
}

// abandon ends the connection now and reports whether output was lost.
func (c *portableConn) abandon() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	lost := !c.ended && c.unsent() > 0
	c.fail(ErrShutdown)
	return lost
}

// Hijack implements reactor.Hijacker. The session calls it with mu held.
func (c *portableConn) Hijack(run func(nc net.Conn, buffered []byte)) { c.hijack = run }

func (c *portableConn) Wake() {
	if c.woken.Load() || !c.woken.CompareAndSwap(false, true) {
		return
	}
	c.wakeMu.Lock()
	defer c.wakeMu.Unlock()
	if !c.gone {
		c.wakers.Add(1)
		go c.onWake()
	}
}

func (c *portableConn) Kill(err error) {
	c.wakeMu.Lock()
	if !c.killed || c.reason == nil {
		c.killed, c.reason = true, err // an error has priority over a graceful end
	}
	c.wakeMu.Unlock()
	c.Wake()
}

func (c *portableConn) RemoteAddr() string { return c.show(c.nc.RemoteAddr()) }
func (c *portableConn) LocalAddr() string  { return c.show(c.nc.LocalAddr()) }
func (c *portableConn) Network() string    { return c.network }
func (c *portableConn) FD() int            { return -1 }
func (c *portableConn) Loop() int          { return -1 }

func (c *portableConn) Buffered() (input, output int) {
	return int(c.held.Load()), int(c.pending.Load())
}

// show returns the text of an address, in the form of the event loops.
func (c *portableConn) show(a net.Addr) string {
	if c.network == "unix" {
		return c.nc.LocalAddr().String() + ":0"
	}
	return a.String()
}
