package reactor

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// acceptBatch is the number of connections that a loop accepts before it serves the open
	// ones again.
	acceptBatch = 64
	// acceptPause is the pause of a listener after accept failed because descriptors or
	// memory ran out. Clients wait in the backlog meanwhile.
	acceptPause = 100 * time.Millisecond
)

// accept accepts the waiting connections of the listener with that tag and distributes
// them to the loops.
func (l *loop) accept(fd int, tag int32) {
	l.r.mu.Lock()
	ln := l.r.listeners[fd]
	l.r.mu.Unlock()
	if ln == nil || ln.tag != tag {
		return
	}
	for range acceptBatch {
		c, err := l.acceptOne(ln)
		switch {
		case err == nil:
			l.deal(c)
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNABORTED):
		default:
			return
		}
	}
}

// acceptOne accepts one connection. An error other than an interruption ends the batch. An
// error that would repeat at once also pauses the listener.
func (l *loop) acceptOne(ln *Listener) (*conn, error) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.closed {
		return nil, unix.EBADF
	}
	fd, sa, err := unix.Accept4(ln.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	switch {
	case err == nil:
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNABORTED):
		return nil, err
	default:
		l.pause(ln, err)
		return nil, err
	}
	c := &conn{fd: fd, network: ln.network, remote: endpointOf(sa)}
	if sa, err := unix.Getsockname(fd); err == nil {
		c.local = endpointOf(sa)
	}
	if ln.network == "unix" {
		c.remote = c.local // the peer has no name of its own
	}
	return c, nil
}

// pause stops polling ln for acceptPause. The caller holds ln.mu.
func (l *loop) pause(ln *Listener, err error) {
	if outOfDescriptors(err) {
		l.r.cfg.Logger.Warn("cannot accept a connection; raise the limit of open files", "error", err)
	} else {
		l.r.cfg.Logger.Warn("cannot accept a connection", "error", err)
	}
	_ = l.poller.ctl(unix.EPOLL_CTL_MOD, ln.fd, 0, ln.tag)
	if len(l.paused) == 0 {
		l.resumeAt = time.Now().Add(acceptPause)
	}
	l.paused = append(l.paused, ln)
}

func (l *loop) resumeListeners() {
	for _, ln := range l.paused {
		ln.mu.Lock()
		if !ln.closed {
			_ = l.poller.ctl(unix.EPOLL_CTL_MOD, ln.fd, unix.EPOLLIN, ln.tag)
		}
		ln.mu.Unlock()
	}
	clear(l.paused)
	l.paused = l.paused[:0]
}

// deal gives c to a loop, or refuses it.
func (l *loop) deal(c *conn) {
	if !l.r.cfg.Gate.Enter() {
		if len(l.r.cfg.Refusal) > 0 {
			_, _ = sysSend(c.fd, l.r.cfg.Refusal)
		}
		_ = unix.Close(c.fd)
		return
	}
	l.dealt++
	c.loop = l.r.pick(l.dealt)
	c.loop.count.Add(1)
	if c.loop == l {
		l.admit(c)
		return
	}
	c.woken.Store(true)
	if !c.loop.enqueue(c) {
		c.loop.turnAway(c)
	}
}

// nextTag returns the tag of a new connection.
func (l *loop) nextTag() int32 {
	if l.lastTag++; l.lastTag <= wakeTag {
		l.lastTag = wakeTag + 1 // the tags have wrapped around
	}
	return l.lastTag
}

// admit registers c with its loop and creates its session.
func (l *loop) admit(c *conn) {
	if l.stopping.Load() {
		l.turnAway(c)
		return
	}
	c.tag = l.nextTag()
	if err := l.poller.ctl(unix.EPOLL_CTL_ADD, c.fd, interest, c.tag); err != nil {
		l.r.cfg.Logger.Warn("cannot poll a connection", "error", err)
		l.turnAway(c)
		return
	}
	s := l.r.cfg.NewSession(c)
	if s == nil {
		l.turnAway(c)
		return
	}
	c.session = s
	c.watcher, _ = s.(PeerWatcher)
	c.limiter, _ = s.(OutputLimiter)
	c.checker, _ = s.(IdleChecker)
	if c.sharer, _ = s.(Sharer); c.sharer != nil {
		c.sharer.Share()
	}
	for c.fd >= len(l.conns) {
		l.conns = append(l.conns, nil)
	}
	l.conns[c.fd] = c
}

// turnAway closes a refused connection, which has no session.
func (l *loop) turnAway(c *conn) {
	c.closed = true
	_ = unix.Close(c.fd)
	l.count.Add(-1)
	l.r.cfg.Gate.Leave()
}
