package rueidisebb

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/remote"
)

// hangupTime is the time for which a connection that rueidis has closed waits for the server to close it too.
const hangupTime = remote.HangupTime

// hangups are the connections that rueidis has closed and the server has not. rueidis closes a connection to end a command that
// waits. The server may read that command later than a command that takes back what it did, which travels on another
// connection. So a closed connection tells the server only that no more commands come: a server closes it after it has read the
// commands that came before.
type hangups struct {
	mu        sync.Mutex // guards what follows
	open      map[*hangupConn]struct{}
	searches  []*search      // see identify
	finishing sync.WaitGroup // one for each open

	searching atomic.Int32 // the number of searches; nothing looks at the bytes that are written while it is 0
}

// hangupConn is a connection whose Close waits for the server, in the background.
type hangupConn struct {
	net.Conn
	all    *hangups
	addr   string // for which it was opened
	closed atomic.Bool
	done   chan struct{} // closed when the server has closed the connection, or hangupTime is over
}

// dial sets the option that opens connections to one whose connections hang up.
func (p *hangups) dial(o *rueidis.ClientOption) {
	before, older := o.DialCtxFn, o.DialFn
	o.DialCtxFn = func(ctx context.Context, addr string, dialer *net.Dialer, secure *tls.Config) (nc net.Conn, err error) {
		switch {
		case before != nil:
			nc, err = before(ctx, addr, dialer, secure)
		case older != nil:
			nc, err = older(addr, dialer, secure)
		case secure != nil:
			nc, err = (&tls.Dialer{NetDialer: dialer, Config: secure}).DialContext(ctx, "tcp", addr)
		default:
			nc, err = dialer.DialContext(ctx, "tcp", addr)
		}
		if _, half := nc.(interface{ CloseWrite() error }); err != nil || !half {
			return nc, err
		}
		return &hangupConn{Conn: nc, all: p, addr: addr, done: make(chan struct{})}, nil
	}
}

// Read implements net.Conn.
func (c *hangupConn) Read(b []byte) (int, error) {
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Read(b)
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	return n, err
}

// Write implements net.Conn.
func (c *hangupConn) Write(b []byte) (int, error) {
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	if c.all.searching.Load() > 0 {
		c.all.match(c, b)
	}
	return c.Conn.Write(b)
}

// SetDeadline implements net.Conn.
func (c *hangupConn) SetDeadline(t time.Time) error {
	if c.closed.Load() {
		return net.ErrClosed
	}
	return c.Conn.SetDeadline(t)
}

// CloseWrite tells the server that no more commands come.
func (c *hangupConn) CloseWrite() error { return c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// Close implements net.Conn.
func (c *hangupConn) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	_ = c.Conn.SetReadDeadline(time.Unix(1, 0)) // ends the Read that is under way
	c.all.mu.Lock()
	if c.all.open == nil {
		c.all.open = map[*hangupConn]struct{}{}
	}
	c.all.open[c] = struct{}{}
	c.all.finishing.Go(c.finish)
	c.all.mu.Unlock()
	return nil
}

// finish closes the connection after the server has closed it, or after hangupTime.
func (c *hangupConn) finish() {
	_ = c.Conn.SetDeadline(time.Now().Add(hangupTime))
	if c.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, c.Conn)
	}
	_ = c.Conn.Close()
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	close(c.done)
}

// awaitClosed waits until the server has closed each connection that was closed before, or until ctx ends.
func (p *hangups) awaitClosed(ctx context.Context) (v conn.Value, ok bool) {
	p.mu.Lock()
	var all []chan struct{}
	for c := range p.open {
		all = append(all, c.done)
	}
	p.mu.Unlock()
	for _, done := range all {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	return v, false
}
