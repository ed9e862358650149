package ebbtest

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/memnet"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/transport"
)

// network holds the listeners and connections of clients of the protocol.
type network struct {
	mu   sync.Mutex // guards what follows
	addr string
	mem  *memnet.Listener
}

// Addr serves the engine on a port of 127.0.0.1, and returns "127.0.0.1:port" for clients
// of the Redis protocol. In a bubble it fails the test: a bubble's time does not advance
// while a goroutine waits for a socket. Use Dial there.
func (b *Backend) Addr() string {
	b.t.Helper()
	b.net.mu.Lock()
	defer b.net.mu.Unlock()
	if b.Clock.manual == nil {
		b.t.Fatal("ebbtest: Addr needs the network, which a synctest bubble cannot wait for: give Dial to the client instead")
	}
	if b.net.addr == "" {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.t.Fatalf("ebbtest: %v", err)
		}
		b.net.addr = ln.Addr().String()
		b.serve(ln)
	}
	return b.net.addr
}

// Dial connects to the engine within the process. It has the form of a client
// library's option, and ignores network and address:
//
//	redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", Dialer: b.Dial})
//
// Within a synctest bubble the client needs an address without a host name, as here:
// go-redis resolves its default, localhost, and a process that resolves names in two
// bubbles crashes.
func (b *Backend) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	b.net.mu.Lock()
	if b.net.mem == nil {
		b.net.mem = memnet.Listen("ebbtest")
		b.serve(b.net.mem)
	}
	ln := b.net.mem
	b.net.mu.Unlock()
	if b.faults.isDown() {
		return nil, &net.OpError{Op: "dial", Net: "mem", Addr: ln.Addr(), Err: syscall.ECONNREFUSED}
	}
	return ln.DialContext(ctx, network, addr)
}

// serve serves until the test ends.
func (b *Backend) serve(ln net.Listener) {
	b.serves.Go(func() {
		if err := transport.ServeHost(b.ctx, &listener{ln, &b.faults}, host{b}); err != nil {
			b.t.Errorf("ebbtest: serve: %v", err)
		}
	})
}

// listener accepts connections that can be cut and slowed down. A stopped
// backend's port stays its own, so that no other program gets it meanwhile: a new
// connection to it is dropped at once.
type listener struct {
	net.Listener
	f *faults
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &connection{Conn: nc, f: l.f, gone: make(chan struct{})}
		if l.f.enter(c) {
			return c, nil
		}
		nc.Close()
	}
}

// connection is a client's connection.
type connection struct {
	net.Conn
	f    *faults
	once sync.Once
	gone chan struct{} // closed by Close
}

// Read waits as long as SetLatency says when something has come.
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if d := c.f.delay(); d > 0 && n > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-c.gone:
		}
	}
	c.hang()
	return n, err
}

// Write waits while the backend hangs.
func (c *connection) Write(p []byte) (int, error) {
	c.hang()
	return c.Conn.Write(p)
}

// hang waits while the backend hangs.
func (c *connection) hang() {
	if hung := c.f.goesOn(); hung != nil {
		select {
		case <-hung:
		case <-c.gone:
		}
	}
}

func (c *connection) Close() error {
	c.once.Do(func() { close(c.gone) })
	c.f.leave(c)
	return c.Conn.Close()
}

// host admits clients, whose requests go through the faults.
type host struct{ b *Backend }

// engine is the embedded engine behind the faults, which each Backend has.
func (h host) engine() transport.Host {
	d, _ := conn.Find[interface{ Host() transport.Host }](h.b.Data.c)
	return d.Host()
}

func (h host) NewSession(c reactor.Conn) reactor.Session {
	inner := h.engine().NewSession(c)
	if inner == nil {
		return nil
	}
	s := &session{Session: inner, f: &h.b.faults}
	s.f.begin(s)
	return s
}

func (h host) Attach(stop func()) (detach func(), err error) {
	return h.engine().Attach(stop)
}
