package reactor

import (
	"bytes"
	"net"

	"golang.org/x/sys/unix"
)

// handOver removes c, whose output is written, from the loop and gives it to its hijacker.
// If it reports false, the caller closes c.
func (l *loop) handOver(c *conn) bool {
	_ = l.poller.ctl(unix.EPOLL_CTL_DEL, c.fd, 0, 0) // otherwise the duplicate of the descriptor would keep it registered
	fd, err := unix.FcntlInt(uintptr(c.fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		l.r.cfg.Logger.Warn("cannot hand a connection over", "client", c.RemoteAddr(), "error", err)
		return false
	}
	nc := &takenConn{c: c, fd: fd}
	buffered := bytes.Clone(c.in[c.r:c.w])
	if !l.r.take(c, nc) {
		_ = nc.Close()
		return false
	}
	l.forget(c)
	l.r.wg.Go(func() { l.r.runTaken(c, nc, buffered) })
	return true
}

// take registers c as hijacked, with nc. It reports false if c must end.
func (r *Reactor) take(c *conn, nc net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killed {
		return false
	}
	c.taken = nc
	r.taken[c] = struct{}{}
	return true
}

// runTaken runs c's hijacker, and then ends c.
func (r *Reactor) runTaken(c *conn, nc net.Conn, buffered []byte) {
	c.hijack(nc, buffered)
	_ = nc.Close()
	r.mu.Lock()
	delete(r.taken, c)
	r.mu.Unlock()
	r.cfg.Gate.Leave()
	_, reason := c.killedBy()
	c.session.Closed(reason)
}

// endTaken closes the hijacked connections. The caller holds r.mu.
func (r *Reactor) endTaken() {
	for c := range r.taken {
		c.mu.Lock()
		if !c.killed {
			c.killed, c.reason = true, ErrShutdown
		}
		_ = c.taken.Close()
		c.mu.Unlock()
	}
}
