package reactor

import (
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// takenConn is the connection that a hijacker gets from an event loop. The Go runtime does not poll its socket: it
// would wake a thread for all that arrives, although a loop attends to the connection. So Read and Write wait in the
// kernel, and occupy a thread meanwhile; hijacked connections are few.
type takenConn struct {
	c    *conn
	fd   int
	tag  int32 // of the events of Attend; the loop's own
	take func(b []byte) (ok bool)
	end  func(err error)

	mu     sync.Mutex // guards what follows
	users  int        // the calls that use fd, and the loop that attends to it
	closed bool       // the last user closes fd
}

// enter keeps fd open until leave.
func (t *takenConn) enter() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return net.ErrClosed
	}
	t.users++
	return nil
}

func (t *takenConn) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users--; t.users == 0 && t.closed {
		_ = unix.Close(t.fd)
	}
}

// Close implements net.Conn. It wakes the users, whose calls fail, and does not wait for them.
func (t *takenConn) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return net.ErrClosed
	case t.users == 0:
		_ = unix.Close(t.fd)
	default:
		_ = unix.Shutdown(t.fd, unix.SHUT_RDWR)
	}
	t.closed = true
	return nil
}

// failed returns the error of a call that failed, which is net.ErrClosed after Close.
func (t *takenConn) failed(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return net.ErrClosed
	}
	return err
}

// TryWrite implements Taken.
func (t *takenConn) TryWrite(b []byte) (n int, err error) {
	if err := t.enter(); err != nil || len(b) == 0 {
		return 0, err
	}
	defer t.leave()
	return t.send(b)
}

// send writes the bytes that the socket accepts now.
func (t *takenConn) send(b []byte) (n int, err error) {
	n, errno := sysSend(t.fd, b)
	for errno == unix.EINTR {
		n, errno = sysSend(t.fd, b)
	}
	switch errno {
	case 0:
		return n, nil
	case unix.EAGAIN:
		return 0, nil
	}
	return 0, t.failed(os.NewSyscallError("write", errno))
}

// Write implements net.Conn.
func (t *takenConn) Write(b []byte) (n int, err error) {
	if err := t.enter(); err != nil {
		return 0, err
	}
	defer t.leave()
	for n < len(b) {
		k, err := t.send(b[n:])
		if n += k; err != nil {
			return n, err
		}
		if k == 0 {
			t.await(unix.POLLOUT)
		}
	}
	return n, nil
}

// Read implements net.Conn.
func (t *takenConn) Read(b []byte) (n int, err error) {
	if err := t.enter(); err != nil || len(b) == 0 {
		return 0, err
	}
	defer t.leave()
	for {
		n, errno := sysRecv(t.fd, b)
		switch {
		case errno == unix.EINTR:
		case errno == unix.EAGAIN:
			t.await(unix.POLLIN)
		case errno != 0:
			return 0, t.failed(os.NewSyscallError("read", errno))
		case n == 0:
			return 0, t.failed(io.EOF)
		default:
			return n, nil
		}
	}
}

// await waits until the socket is ready for what events says, or has ended.
func (t *takenConn) await(events int16) {
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(t.fd), Events: events}}, -1)
}

// LocalAddr implements net.Conn.
func (t *takenConn) LocalAddr() net.Addr { return takenAddr{t.c.local, t.c.network} }

// RemoteAddr implements net.Conn.
func (t *takenConn) RemoteAddr() net.Addr { return takenAddr{t.c.remote, t.c.network} }

// takenAddr is an address of a takenConn.
type takenAddr struct {
	endpoint
	network string
}

// Network implements net.Addr.
func (a takenAddr) Network() string { return a.network }

// SetDeadline implements net.Conn. There are no deadlines.
func (t *takenConn) SetDeadline(time.Time) error { return os.ErrNoDeadline }

// SetReadDeadline implements net.Conn.
func (t *takenConn) SetReadDeadline(time.Time) error { return os.ErrNoDeadline }

// SetWriteDeadline implements net.Conn.
func (t *takenConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// Attend implements Taken.
func (t *takenConn) Attend(take func(b []byte) (ok bool), end func(err error)) bool {
	if t.enter() != nil {
		return false
	}
	t.take, t.end = take, end
	if !t.c.loop.enqueueTaken(t) {
		t.leave()
		return false
	}
	return true
}

// enqueueTaken makes the loop attend to t. It reports false if the loop has ended.
func (l *loop) enqueueTaken(t *takenConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.deaf {
		return false
	}
	l.awaiting = append(l.awaiting, t)
	l.queued.Store(true)
	l.ring()
	return true
}

// attend registers t with the loop.
func (l *loop) attend(t *takenConn) {
	t.tag = l.nextTag()
	if err := l.poller.ctl(unix.EPOLL_CTL_ADD, t.fd, interest, t.tag); err != nil {
		l.finishTaken(t, err)
		return
	}
	if l.attended == nil {
		l.attended = make(map[int]*takenConn)
	}
	l.attended[t.fd] = t
}

// manyReads is the number of reads of an attended connection after which the other connections have their turn.
const manyReads = 4

// receive reads an attended connection until it is empty. ended: the peer has ended its side.
func (l *loop) receive(t *takenConn, ended bool) {
	for range manyReads {
		n, errno := sysRecv(t.fd, l.rbuf)
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN:
			return
		case errno != 0:
			l.dismiss(t, os.NewSyscallError("read", errno))
			return
		case n == 0:
			l.dismiss(t, io.EOF)
			return
		case !t.take(l.rbuf[:n]):
			l.dismiss(t, nil)
			return
		case n < len(l.rbuf) && !ended: // later bytes cause a new event
			return
		}
	}
	_ = l.poller.ctl(unix.EPOLL_CTL_MOD, t.fd, interest, t.tag) // the kernel reports again what the socket still holds
}

// dismiss ends the attendance to t.
func (l *loop) dismiss(t *takenConn, err error) {
	delete(l.attended, t.fd)
	_ = l.poller.ctl(unix.EPOLL_CTL_DEL, t.fd, 0, 0)
	l.finishTaken(t, err)
}

func (l *loop) finishTaken(t *takenConn, err error) {
	if err != nil {
		err = t.failed(err)
	}
	t.end(err)
	t.leave()
}

// dismissAll ends the attendance to all connections, and accepts no further ones.
func (l *loop) dismissAll() {
	l.mu.Lock()
	l.deaf = true
	awaiting := l.awaiting
	l.awaiting = nil
	l.mu.Unlock()
	for _, t := range awaiting {
		l.finishTaken(t, ErrShutdown)
	}
	for _, t := range l.attended {
		l.dismiss(t, ErrShutdown)
	}
}

// Own returns a connection whose reads and writes wait in the kernel, instead of nc, which it closes. A read then wakes one
// thread when bytes arrive, where the Go runtime's poller wakes two; but the connection occupies a thread, and has no
// deadlines. It returns nc itself if nc is not a TCP connection, or the system does not support that.
func Own(nc net.Conn) net.Conn {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nc
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nc
	}
	var fd int
	var dupErr error
	if err := raw.Control(func(own uintptr) { fd, dupErr = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 3) }); err != nil || dupErr != nil {
		return nc
	}
	c := &conn{network: "tcp"}
	if a, ok := tcp.LocalAddr().(*net.TCPAddr); ok {
		c.local.addr = a.AddrPort()
	}
	if a, ok := tcp.RemoteAddr().(*net.TCPAddr); ok {
		c.remote.addr = a.AddrPort()
	}
	_ = tcp.Close() // ends its registration with the runtime's poller
	return &takenConn{c: c, fd: fd}
}
