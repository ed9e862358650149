// Package wires holds the connections of one program, which a test can cut as a
// partitioned network does: sent bytes vanish in both directions, and neither side gets
// an error.
//
// Start reading at Wires.Connect.
package wires

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"
)

// Wires holds the connections of one program. The caller sets Dial and Within before the
// first connection. The methods are safe for concurrent use.
type Wires struct {
	// Dial makes a connection.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Within is the time after which an attempt to connect over a cut network fails.
	Within time.Duration

	mu    sync.Mutex // guards what follows
	torn  chan struct{}
	where []string // that is cut off; none: everything
	all   map[*wire]struct{}
	dead  []net.Conn // whose end the server has not received
}

// Connect is ebb.Options.Dial.
func (w *Wires) Connect(ctx context.Context, network, addr string) (net.Conn, error) {
	for torn := w.tornTo(addr); torn != nil; torn = w.tornTo(addr) {
		select {
		case <-torn:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(w.Within): // as a net.Dialer with a timeout
			return nil, &net.OpError{Op: "dial", Net: network, Err: context.DeadlineExceeded}
		}
	}
	nc, err := w.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &wire{Conn: nc, of: w, addr: addr, lost: w.isTorn(addr)}
	if w.all == nil {
		w.all = map[*wire]struct{}{}
	}
	w.all[c] = struct{}{}
	return c, nil
}

// isTorn reports whether an address is cut off. The caller holds mu.
func (w *Wires) isTorn(addr string) bool {
	return w.torn != nil && (len(w.where) == 0 || slices.Contains(w.where, addr))
}

// tornTo returns a channel that closes when the path to an address works again; nil if it
// works.
func (w *Wires) tornTo(addr string) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.isTorn(addr) {
		return nil
	}
	return w.torn
}

// Cut cuts the existing connections to some addresses, or to all, for good, and prevents
// new ones until Join. It does nothing if some are cut already.
func (w *Wires) Cut(addrs ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.torn != nil {
		return
	}
	w.torn, w.where = make(chan struct{}), addrs
	for c := range w.all {
		if w.isTorn(c.addr) {
			c.mu.Lock()
			c.lost = true
			c.mu.Unlock()
		}
	}
}

// Join allows new connections again.
func (w *Wires) Join() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.torn != nil {
		close(w.torn)
		w.torn = nil
	}
}

// Close closes the lost connections, so that the server sees their end.
func (w *Wires) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, nc := range w.dead {
		_ = nc.Close()
	}
	w.dead = nil
}

// wire is a connection from which no byte and no error arrives once it is lost.
type wire struct {
	net.Conn
	of   *Wires
	addr string

	mu     sync.Mutex // guards what follows
	lost   bool
	closed bool
}

// Read drops bytes that arrive after the connection is lost, and waits until its deadline
// or Close.
func (c *wire) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		c.mu.Lock()
		lost, closed := c.lost, c.closed
		c.mu.Unlock()
		switch {
		case closed && lost:
			return 0, &net.OpError{Op: "read", Net: "wire", Err: net.ErrClosed}
		case !lost || err != nil:
			return n, err
		}
	}
}

// Write drops the bytes of a lost wire.
func (c *wire) Write(p []byte) (int, error) {
	c.mu.Lock()
	lost, closed := c.lost, c.closed
	c.mu.Unlock()
	switch {
	case !lost:
		return c.Conn.Write(p)
	case closed:
		return 0, &net.OpError{Op: "write", Net: "wire", Err: net.ErrClosed}
	}
	return len(p), nil
}

// Close of a lost connection does not reach the other end.
func (c *wire) Close() error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	delete(c.of.all, c)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.lost {
		return c.Conn.Close()
	}
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	c.of.dead = append(c.of.dead, c.Conn)
	return c.Conn.SetReadDeadline(time.Unix(1, 0)) // ends a Read that waits
}

// The deadlines that go-redis sets come from a clock of its own, which is the machine's
// even where a bubble is in another year.

// SetDeadline implements net.Conn.
func (c *wire) SetDeadline(t time.Time) error { return c.deadline(c.Conn.SetDeadline, t) }

// SetReadDeadline implements net.Conn.
func (c *wire) SetReadDeadline(t time.Time) error { return c.deadline(c.Conn.SetReadDeadline, t) }

// SetWriteDeadline implements net.Conn.
func (c *wire) SetWriteDeadline(t time.Time) error { return c.deadline(c.Conn.SetWriteDeadline, t) }

// deadline sets a deadline, but not after Close, which ends reads by a deadline of its
// own.
func (c *wire) deadline(set func(time.Time) error, t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	return set(here(t))
}

// here returns the bubble's time for a time of the machine. It treats a time that is more
// than a year ahead as a time of the machine.
func here(t time.Time) time.Time {
	if t.IsZero() || time.Until(t) < 365*24*time.Hour {
		return t
	}
	return time.Now().Add(t.Sub(machineTime()))
}
