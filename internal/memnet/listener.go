package memnet

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// backlog is the number of connections that wait for Accept before Dial waits too.
const backlog = 128

// Listener accepts the connections that its own Dial makes. Only code that has the
// Listener can connect to it; there is no table of names.
type Listener struct {
	addr    Addr
	queue   chan *Conn
	done    chan struct{}
	close   sync.Once
	dialled atomic.Int64
}

var _ net.Listener = (*Listener)(nil)

// Listen returns a listener. Addr and the connections show the name.
func Listen(name string) *Listener {
	return &Listener{addr: Addr(name), queue: make(chan *Conn, backlog), done: make(chan struct{})}
}

// Accept waits for a connection. After Close it returns net.ErrClosed in a
// *net.OpError.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
		return nil, l.opError("accept", net.ErrClosed)
	default:
	}
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, l.opError("accept", net.ErrClosed)
	}
}

// Close stops accepting and closes the connections that were not accepted. Accepted
// connections stay open.
func (l *Listener) Close() error {
	err := l.opError("close", net.ErrClosed)
	l.close.Do(func() {
		close(l.done)
		l.drain()
		err = nil
	})
	return err
}

// Addr returns the listener's name.
func (l *Listener) Addr() net.Addr { return l.addr }

// Dial connects. Like TCP it does not wait for Accept, up to a backlog. After
// Close it returns syscall.ECONNREFUSED in a *net.OpError.
func (l *Listener) Dial() (net.Conn, error) { return l.DialContext(context.Background(), "", "") }

// DialContext connects as Dial does, with a context. It has the form of a net.Dialer's
// method and of a client library's option, and ignores network and address.
func (l *Listener) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, l.opError("dial", err)
	}
	select {
	case <-l.done:
		return nil, l.opError("dial", syscall.ECONNREFUSED)
	default:
	}
	name := Addr(fmt.Sprintf("%s-client-%d", l.addr, l.dialled.Add(1)))
	client, server := pipe(DefaultBuffer, name, l.addr)
	select {
	case l.queue <- server:
	case <-l.done:
		return nil, l.opError("dial", syscall.ECONNREFUSED)
	case <-ctx.Done():
		return nil, l.opError("dial", ctx.Err())
	}
	select {
	case <-l.done:
		l.drain() // Close may have checked before the connection was queued
	default:
	}
	return client, nil
}

// drain closes the queued connections, after done.
func (l *Listener) drain() {
	for {
		select {
		case c := <-l.queue:
			c.Close()
		default:
			return
		}
	}
}

func (l *Listener) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: "mem", Addr: l.addr, Err: err}
}
