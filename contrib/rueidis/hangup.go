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

// partingTime is the time for which a connection that rueidis has closed waits for the server to close it too.
const partingTime = remote.HangupTime

// partings are the connections that rueidis has closed and the server has not. rueidis closes a connection to end a command that
// waits. The server may read that command later than a command that takes back what it did, which travels on another
// connection. So a closed connection tells the server only that no more commands come: a server closes it after it has read the
// commands that came before.
type partings struct {
	mu    sync.Mutex // guards what follows
	open  map[*parting]struct{}
	names []*naming      // see name
	going sync.WaitGroup // one for each open

	naming atomic.Int32 // the number of names; nothing looks at what is written while it is 0
}

// parting is a connection whose Close waits for the server, in the background.
type parting struct {
	net.Conn
	all    *partings
	addr   string // for which it was opened
	closed atomic.Bool
	gone   chan struct{} // closed when the server has closed the connection, or partingTime is over
}

// dial sets the option that opens connections to one whose connections part.
func (p *partings) dial(o *rueidis.ClientOption) {
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
		return &parting{Conn: nc, all: p, addr: addr, gone: make(chan struct{})}, nil
	}
}

// Read implements net.Conn.
func (c *parting) Read(b []byte) (int, error) {
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
func (c *parting) Write(b []byte) (int, error) {
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	if c.all.naming.Load() > 0 {
		c.all.see(c, b)
	}
	return c.Conn.Write(b)
}

// SetDeadline implements net.Conn.
func (c *parting) SetDeadline(t time.Time) error {
	if c.closed.Load() {
		return net.ErrClosed
	}
	return c.Conn.SetDeadline(t)
}

// CloseWrite tells the server that no more commands come.
func (c *parting) CloseWrite() error { return c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// Close implements net.Conn.
func (c *parting) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	_ = c.Conn.SetReadDeadline(time.Unix(1, 0)) // ends the Read that is under way
	c.all.mu.Lock()
	if c.all.open == nil {
		c.all.open = map[*parting]struct{}{}
	}
	c.all.open[c] = struct{}{}
	c.all.going.Go(c.finish)
	c.all.mu.Unlock()
	return nil
}

// finish closes the connection after the server has closed it, or after partingTime.
func (c *parting) finish() {
	_ = c.Conn.SetDeadline(time.Now().Add(partingTime))
	if c.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, c.Conn)
	}
	_ = c.Conn.Close()
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	close(c.gone)
}

// settle waits until the server has closed each connection that was closed before, or until ctx ends.
func (p *partings) settle(ctx context.Context) (v conn.Value, ok bool) {
	p.mu.Lock()
	var gone []chan struct{}
	for c := range p.open {
		gone = append(gone, c.gone)
	}
	p.mu.Unlock()
	for _, g := range gone {
		select {
		case <-g:
		case <-ctx.Done():
		}
	}
	return v, false
}
