// Package memnet is a network inside the process: buffered connections and a listener for
// tests and for embedded clients, that behave as TCP on a loopback interface does, as far
// as tests check it (half-close, deadlines, back-pressure, data after a close).
//
//	a.Write ──> [ half: up to 64 KiB ] ──> b.Read
//	a.Read  <── [ half: up to 64 KiB ] <── b.Write
//
// Calls block on channels and timers only, so a testing/synctest bubble sees a waiting
// reader as idle and advances its clock. The package starts no goroutine.
//
// Invariants: a reader gets a half's bytes in the order in which they were written, each
// once; every change of a half wakes all goroutines that wait on it.
//
// Start reading at half.
package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// DefaultBuffer is the capacity of one direction of a Pipe, in bytes: as much as a pipe of
// Linux, less than a socket, so that a slow reader shows early.
const DefaultBuffer = 64 << 10

// Conn is one end of a connection. All methods may be called from several goroutines at
// once. Errors are *net.OpError. They wrap net.ErrClosed after Close,
// os.ErrDeadlineExceeded after a deadline, and syscall.EPIPE for a write after the peer's
// Close.
type Conn struct {
	in, out       *half
	local, remote Addr
}

var _ net.Conn = (*Conn)(nil)

// Addr is the name of an end.
type Addr string

// Network returns "mem".
func (a Addr) Network() string { return "mem" }

// String returns the name.
func (a Addr) String() string { return string(a) }

// Pipe returns the two ends of a connection.
func Pipe() (a, b *Conn) { return PipeSize(DefaultBuffer) }

// PipeSize returns a connection as Pipe does, with a buffer of size bytes in each
// direction; a Write waits while its direction is full. size is at least 1.
func PipeSize(size int) (a, b *Conn) { return pipe(size, "pipe-a", "pipe-b") }

func pipe(size int, a, b Addr) (*Conn, *Conn) {
	ab, ba := &half{limit: max(size, 1)}, &half{limit: max(size, 1)}
	return &Conn{in: ba, out: ab, local: a, remote: b},
		&Conn{in: ab, out: ba, local: b, remote: a}
}

// Read reads the available bytes, at least one, and waits if there are none. After the
// peer's Close or CloseWrite it returns the remaining bytes, then io.EOF.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	if err != nil && err != io.EOF {
		err = c.opError("read", err)
	}
	return n, err
}

// Write writes all of p, and waits while the buffer is full, unless an error stops it.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	if err != nil {
		err = c.opError("write", err)
	}
	return n, err
}

// CloseWrite ends this direction: the peer reads the remaining bytes, then io.EOF.
func (c *Conn) CloseWrite() error {
	c.out.closeWrite(syscall.EPIPE)
	return nil
}

// Close ends both directions and wakes the calls that wait on them. The peer can still
// read the bytes that were written. A second Close is an error, as on a socket.
func (c *Conn) Close() error {
	first := c.in.closeRead()
	c.out.closeWrite(net.ErrClosed)
	if !first {
		return c.opError("close", net.ErrClosed)
	}
	return nil
}

// LocalAddr returns this end's name.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the peer's name.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets both deadlines; the zero time means none.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline limits Reads, also those that wait already.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if !c.in.setDeadline(&c.in.reader, t) {
		return c.opError("set", net.ErrClosed)
	}
	return nil
}

// SetWriteDeadline limits Writes, also those that wait already.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if !c.out.setDeadline(&c.out.writer, t) {
		return c.opError("set", net.ErrClosed)
	}
	return nil
}

func (c *Conn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: "mem", Source: c.local, Addr: c.remote, Err: err}
}

// half is one direction of a connection.
type half struct {
	limit int

	mu      sync.Mutex
	changed chan struct{} // closed at the next change; nil while no call waits
	buf     []byte        // written and not read: buf[off:]
	off     int
	reader  side
	writer  side
}

// side is the state of the reading or the writing end of a half.
type side struct {
	closed   error // the error of its calls; nil while open
	deadline time.Time
	timer    *time.Timer // wakes the half at the deadline
}

// stop returns the reason for which a call of this side must not wait any longer.
func (s *side) stop() error {
	if s.closed != nil {
		return s.closed
	}
	if !s.deadline.IsZero() && !time.Now().Before(s.deadline) {
		return os.ErrDeadlineExceeded
	}
	return nil
}

func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		if err := h.reader.stop(); err != nil {
			return 0, err
		}
		if len(p) == 0 {
			return 0, nil
		}
		if n := copy(p, h.buf[h.off:]); n > 0 {
			h.take(n)
			return n, nil
		}
		if h.writer.closed != nil {
			return 0, io.EOF
		}
		h.wait()
	}
}

// take drops the first n bytes.
func (h *half) take(n int) {
	h.off += n
	if h.off == len(h.buf) {
		h.buf, h.off = h.buf[:0], 0
	}
	h.wake()
}

func (h *half) write(p []byte) (n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		if err := h.writer.stop(); err != nil {
			return n, err
		}
		if h.reader.closed != nil {
			return n, syscall.EPIPE
		}
		if room := h.limit - (len(h.buf) - h.off); room > 0 && n < len(p) {
			k := min(room, len(p)-n)
			h.put(p[n : n+k])
			n += k
		}
		if n == len(p) {
			return n, nil
		}
		h.wait()
	}
}

// put appends b. When the slice is full, it moves the unread bytes to the front.
func (h *half) put(b []byte) {
	if h.off > 0 && len(h.buf)+len(b) > cap(h.buf) {
		h.buf, h.off = h.buf[:copy(h.buf, h.buf[h.off:])], 0
	}
	h.buf = append(h.buf, b...)
	h.wake()
}

// wait releases the lock until the half changes.
func (h *half) wait() {
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	changed := h.changed
	h.mu.Unlock()
	<-changed
	h.mu.Lock()
}

// wake wakes all goroutines in wait. The caller holds the lock.
func (h *half) wake() {
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

func (h *half) closeWrite(reason error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writer.close(reason)
	h.wake()
}

// closeRead drops the unread bytes, and reports whether the side was open.
func (h *half) closeRead() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reader.closed != nil {
		return false
	}
	h.reader.close(net.ErrClosed)
	h.buf, h.off = nil, 0
	h.wake()
	return true
}

// close stores the reason. net.ErrClosed replaces EPIPE, because Close may follow
// CloseWrite.
func (s *side) close(reason error) {
	if s.closed != net.ErrClosed {
		s.closed = reason
	}
	if s.timer != nil {
		s.timer.Stop()
	}
}

// setDeadline reports whether s is still open. A timer of an earlier deadline that has
// fired already only wakes waiting calls, which then check the new deadline.
func (h *half) setDeadline(s *side, t time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed == net.ErrClosed {
		return false
	}
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	s.deadline = t
	if d := time.Until(t); !t.IsZero() && d > 0 {
		s.timer = time.AfterFunc(d, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.wake()
		})
	}
	h.wake()
	return true
}
