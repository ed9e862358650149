package reactor

import (
	"io"

	"golang.org/x/sys/unix"
)

// interest are the events for which a connection is registered. With edge-triggered events
// the kernel does not check every socket again at the next poll. A connection that the
// loop does not read now (parked, or with too much unsent) stays registered and is not
// reported again.
const interest = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET

// event handles one event of the poller.
func (l *loop) event(ev *unix.EpollEvent) {
	if ev.Pad <= wakeTag {
		if ev.Pad < wakeTag {
			l.accept(int(ev.Fd), ev.Pad)
		}
		return
	}
	var c *conn
	if int(ev.Fd) < len(l.conns) {
		c = l.conns[ev.Fd]
	}
	if c == nil || c.tag != ev.Pad {
		if t := l.attended[int(ev.Fd)]; t != nil && t.tag == ev.Pad {
			l.receive(t, ev.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0)
		}
		return // or closed earlier in this batch
	}
	if ev.Events&(unix.EPOLLHUP|unix.EPOLLERR) != 0 && (c.parked || c.closing) {
		l.close(c, l.socketError(c))
		return
	}
	if ev.Events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		c.readable = true
	}
	if ev.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		c.hungUp = true
		l.tell(c)
	}
	if ev.Events&unix.EPOLLOUT != 0 {
		l.writeRest(c)
	}
	if c.mayRead() && !c.again {
		l.read(c)
	}
}

// tell calls PeerClosed of a parked session whose peer has ended its side.
func (l *loop) tell(c *conn) {
	if c.hungUp && c.parked && !c.told && c.watcher != nil {
		c.told = true
		c.watcher.PeerClosed()
	}
}

// socketError returns the error of a connection that the kernel reported as broken.
func (l *loop) socketError(c *conn) error {
	if code, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR); err == nil && code != 0 {
		return unix.Errno(code)
	}
	return io.EOF
}

// read reads the socket once and serves the bytes.
func (l *loop) read(c *conn) {
	buf, kept := c.readSpace()
	n, errno := sysRecv(c.fd, buf[kept:])
	for errno == unix.EINTR {
		n, errno = sysRecv(c.fd, buf[kept:])
	}
	switch {
	case errno == unix.EAGAIN:
		c.readable = false
		return
	case errno != 0:
		l.close(c, errno)
		return
	case n == 0: // the peer may still read: write the replies to its requests
		l.finish(c, io.EOF)
		return
	}
	// A short read emptied the socket, and later bytes cause a new event. Only the end of
	// the stream may be there already, and hungUp says so.
	c.readable = c.hungUp || n == len(buf)-kept
	l.serve(c, buf[:kept+n])
	l.takeTurn(c)
}

// serve calls Serve with in, which is the loop's read buffer or starts at c.in[c.r], and
// acts on the verdict.
func (l *loop) serve(c *conn, in []byte) {
	out := l.outputOf(c)
	if c.closed {
		return
	}
	var consumed int
	var v Verdict
	consumed, *out, v = c.session.Serve(in, *out)
	c.keep(in, consumed)
	c.yielded = false
	switch v {
	case Park:
		c.parked = true
		l.tell(c)
	case Yield:
		c.yielded = c.in != nil
	}
	l.took(c)
	if v == Close {
		l.finish(c, nil)
	}
}

// push appends the session's queued messages.
func (l *loop) push(c *conn) {
	out := l.outputOf(c)
	if c.closed {
		return
	}
	*out = c.session.TakePushes(*out)
	l.took(c)
}

// took accounts for the bytes that the session appended to outputOf's buffer, and for the
// pieces between them.
func (l *loop) took(c *conn) {
	if c.sharer != nil {
		if pieces := c.sharer.TakeShared(); len(pieces) > 0 {
			l.insertPieces(c, pieces)
			return
		}
	}
	l.wrote(c)
}

// insertPieces moves c's output from the loop's buffer to its own, inserts the pieces, and
// writes what the socket accepts.
func (l *loop) insertPieces(c *conn, pieces []Piece) {
	base, fresh := 0, c.out == nil
	if fresh {
		base = c.outStart
		b := l.out[c.outStart:] // the last range there
		c.out, c.sent = append(l.pool.get(len(b))[:0], b...), 0
		l.out, c.outEnd = l.out[:c.outStart], c.outStart
	}
	for _, p := range pieces {
		l.seal(c, p.At-base)
		base = p.At
		c.queue = append(c.queue, p)
		c.queued += len(p.Bytes)
	}
	if fresh {
		if !l.writeOwn(c) || c.out == nil {
			return
		}
		l.await(c, true)
	}
	l.check(c)
}

// seal moves the first n bytes of c's own output to its queue, without copying them.
func (l *loop) seal(c *conn, n int) {
	if n == 0 {
		return
	}
	rest := c.out[n:]
	c.queue = append(c.queue, Piece{At: pooled, Bytes: c.out[:n]})
	c.queued += n
	c.out = append(l.pool.get(len(rest))[:0], rest...)
}

// pooled marks pieces whose memory belongs to the pool.
const pooled = -1

// unqueue releases the first piece, which is sent.
func (l *loop) unqueue(c *conn) {
	p := &c.queue[0]
	c.queued -= len(p.Bytes)
	if p.At == pooled {
		l.pool.put(p.Bytes)
	}
	p.Done()
	c.queue, c.sent = c.queue[1:], 0
	if len(c.queue) == 0 {
		c.queue = nil
	}
}

// outputOf returns the buffer to append c's output to: its own when the socket
// is full, else the loop's. Output there is one range per connection; when it
// cannot be continued it is written first, which may close c.
func (l *loop) outputOf(c *conn) *[]byte {
	if c.dirty && c.outEnd != len(l.out) {
		l.write(c)
	}
	if c.out != nil {
		switch {
		case len(c.out) >= sealSize: // the buffer grows no more, and is sent piece by piece
			l.seal(c, len(c.out))
		case len(c.queue) == 0 && c.sent > len(c.out)/2:
			c.out = c.out[:copy(c.out, c.out[c.sent:])]
			c.sent = 0
		}
		return &c.out
	}
	if !c.dirty {
		c.outStart, c.outEnd = len(l.out), len(l.out)
	}
	return &l.out
}

// wrote accounts for the bytes that were appended to outputOf's buffer.
func (l *loop) wrote(c *conn) {
	if c.out != nil {
		l.check(c)
		return
	}
	c.outEnd = len(l.out)
	if c.outEnd > c.outStart {
		l.mark(c)
		if len(l.out) >= flushSize {
			l.flush()
		}
	}
}

func (l *loop) mark(c *conn) {
	if !c.dirty {
		c.dirty = true
		l.dirty = append(l.dirty, c)
	}
}

// finish closes c with cause once its output is written.
func (l *loop) finish(c *conn, cause error) {
	if c.closed || c.closing {
		return
	}
	c.closing, c.cause, c.stalled = true, cause, 0
	if c.out == nil && !c.dirty {
		c.outStart, c.outEnd = len(l.out), len(l.out)
		l.mark(c)
	}
}

// flush writes the loop's output, once per connection.
func (l *loop) flush() {
	if len(l.dirty) == 0 {
		return
	}
	for i := 0; i < len(l.dirty); i++ {
		if c := l.dirty[i]; c.dirty {
			l.write(c)
		}
		l.dirty[i] = nil
	}
	l.dirty = l.dirty[:0]
	if cap(l.out) > keepOutput {
		l.out = make([]byte, 0, flushSize+readSize)
	}
	l.out = l.out[:0]
}

// write writes c's range of the loop's output. The bytes that the socket does not accept
// become c's own output.
func (l *loop) write(c *conn) {
	c.dirty = false
	if c.out != nil {
		return // the output became c's own meanwhile
	}
	b := l.out[c.outStart:c.outEnd]
	if len(b) > 0 {
		n, errno := sysSend(c.fd, b)
		for errno == unix.EINTR {
			n, errno = sysSend(c.fd, b)
		}
		switch {
		case errno == unix.EAGAIN:
			n = 0
		case errno != 0:
			c.broken = true
			l.close(c, errno)
			return
		}
		if n < len(b) {
			c.out = append(l.pool.get(len(b) - n)[:0], b[n:]...)
			c.sent = 0
			l.await(c, true)
			l.check(c)
			return
		}
	}
	if c.closing {
		l.close(c, c.cause)
	}
}

// writeRest writes c's own output when the socket accepts bytes again.
func (l *loop) writeRest(c *conn) {
	if c.out == nil || !l.writeOwn(c) {
		return
	}
	c.pending.Store(int64(c.unsent()))
	l.takeTurn(c)
}

// writeOwn writes c's own output and reports whether c is still open.
func (l *loop) writeOwn(c *conn) bool {
	for c.unsent() > 0 {
		b := c.out
		if len(c.queue) > 0 {
			b = c.queue[0].Bytes
		}
		b = b[c.sent:]
		n, errno := sysSend(c.fd, b)
		if errno == unix.EINTR {
			continue
		}
		if errno == unix.EAGAIN {
			break
		}
		if errno != 0 {
			c.broken = true
			l.close(c, errno)
			return false
		}
		c.sent += n
		c.stalled = 0
		if n < len(b) {
			break
		}
		if len(c.queue) > 0 {
			l.unqueue(c)
		}
	}
	if c.unsent() == 0 {
		l.pool.put(c.out)
		c.out, c.sent = nil, 0
		if c.awaits {
			l.await(c, false)
		}
		if c.closing {
			l.close(c, c.cause)
			return false
		}
	}
	return true
}

// await registers c for the event that its socket accepts bytes, or ends that. The kernel
// reports all ready events again after the change, so no event is lost.
func (l *loop) await(c *conn, room bool) {
	events := uint32(interest)
	if c.awaits = room; room {
		events |= unix.EPOLLOUT
	}
	_ = l.poller.ctl(unix.EPOLL_CTL_MOD, c.fd, events, c.tag)
}

// check asks the session whether c has too much unsent output.
func (l *loop) check(c *conn) {
	c.pending.Store(int64(c.unsent()))
	if c.limiter != nil && c.limiter.OutputExceeded(c.unsent()) {
		l.close(c, ErrOutputLimit)
	}
}

// close ends c now. Closing the descriptor ends its registration.
func (l *loop) close(c *conn, err error) {
	if c.closed {
		return
	}
	if c.hijack != nil && err == nil && c.unsent() == 0 && l.handOver(c) {
		return
	}
	unsent := c.broken || c.unsent() > 0 || c.dirty && c.outEnd > c.outStart
	l.forget(c)
	l.r.cfg.Gate.Leave()
	if unsent {
		if w, ok := c.session.(UnsentWatcher); ok {
			w.Unsent()
		}
	}
	c.session.Closed(err)
}

// forget closes c's descriptor and takes back the loop's buffers.
func (l *loop) forget(c *conn) {
	c.closed, c.dirty = true, false
	l.conns[c.fd] = nil
	_ = unix.Close(c.fd)
	l.pool.put(c.in)
	l.pool.put(c.out)
	for len(c.queue) > 0 {
		l.unqueue(c)
	}
	c.in, c.r, c.w, c.out, c.sent = nil, 0, 0, nil, 0
	c.held.Store(0)
	c.pending.Store(0)
	l.count.Add(-1)
}
