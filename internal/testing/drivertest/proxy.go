package drivertest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy forwards connections to a server, and passes the end of one side on to the other. One request can fall into a trap.
type Proxy struct {
	Delay atomic.Int64 // before each piece that is forwarded to the client, in ns
	Hang  atomic.Bool  // nothing more is forwarded to the client

	to   string
	ln   net.Listener
	trap atomic.Pointer[Trap]
	all  sync.WaitGroup

	mu    sync.Mutex // guards what follows
	conns []net.Conn
}

// TrapKind says what becomes of a request.
type TrapKind int

// These are the kinds.
const (
	// Overtake keeps the request until Pass. When the client ends its side, the proxy closes the connection to it at once, as
	// proxies do that do not pass half-closes on: the end says nothing about the request.
	Overtake TrapKind = iota
	// LateReply keeps the reply until the client has ended its side.
	LateReply
	// LoseReply closes the connection in place of the reply.
	LoseReply
)

// Trap is the proxy's treatment of one request.
type Trap struct {
	Caught chan struct{} // closed when the request is kept, or its reply has come

	kind   TrapKind
	word   []byte
	ended  chan struct{} // closed when the client has ended its side
	passed chan struct{} // closed by Pass
	served chan struct{} // closed when the server has replied
}

// NewProxy starts a proxy, which ends with the test.
func NewProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	Must(t, err)
	p := &Proxy{to: to, ln: ln}
	p.all.Go(p.accept)
	t.Cleanup(func() {
		_ = ln.Close()
		p.Cut()
		p.all.Wait()
	})
	return p
}

// Addr returns the address at which the proxy listens.
func (p *Proxy) Addr() string { return p.ln.Addr().String() }

// Cut closes all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

// Trap sets a trap for the next request that has the word in it. It replaces one that has caught nothing.
func (p *Proxy) Trap(kind TrapKind, word string) *Trap {
	t := &Trap{kind: kind, word: []byte(word)}
	t.Caught, t.ended, t.passed, t.served = make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	p.trap.Store(t)
	return t
}

// Pass lets a request go that the trap has kept, and waits for the server's reply, which no client gets.
func (t *Trap) Pass() {
	close(t.passed)
	<-t.served
}

func (p *Proxy) accept() {
	for {
		c, err := p.ln.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = c.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, c, s)
		p.mu.Unlock()
		w := &wire{p: p, c: c.(*net.TCPConn), s: s.(*net.TCPConn)}
		p.all.Go(w.requests)
		p.all.Go(w.replies)
	}
}

// wire is one connection.
type wire struct {
	p    *Proxy
	c, s *net.TCPConn
	trap atomic.Pointer[Trap] // into which a request has fallen
}

func (w *wire) requests() {
	buf := make([]byte, 64<<10)
	for {
		n, err := w.c.Read(buf)
		if t := w.p.trap.Load(); t != nil && bytes.Contains(buf[:n], t.word) && w.p.trap.CompareAndSwap(t, nil) {
			w.trap.Store(t)
			if t.kind == Overtake {
				w.keep(t, buf[:n])
				return
			}
		}
		if n > 0 {
			_, _ = w.s.Write(buf[:n])
		}
		if err != nil {
			w.end(err)
			return
		}
	}
}

// end passes the end of the client's side on.
func (w *wire) end(err error) {
	if t := w.trap.Load(); t != nil && t.kind == LateReply {
		close(t.ended)
	}
	if errors.Is(err, io.EOF) {
		_ = w.s.CloseWrite()
	} else {
		_ = w.s.Close()
	}
}

// keep keeps a request.
func (w *wire) keep(t *Trap, request []byte) {
	close(t.Caught)
	_, _ = io.Copy(io.Discard, w.c)
	_ = w.c.Close()
	<-t.passed
	_, _ = w.s.Write(request)
	<-t.served
	_ = w.s.Close()
}

func (w *wire) replies() {
	defer w.c.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := w.s.Read(buf)
		if t := w.trap.Load(); t != nil {
			w.trap.Store(nil)
			switch t.kind {
			case Overtake:
				close(t.served)
				return
			case LateReply:
				w.trap.Store(t)
				close(t.Caught)
				<-t.ended
				w.trap.Store(nil)
			case LoseReply:
				_ = w.s.Close()
				_ = w.c.Close()
				close(t.Caught)
				return
			}
		}
		if d := w.p.Delay.Load(); d > 0 {
			<-time.After(time.Duration(d))
		}
		if n > 0 && !w.p.Hang.Load() {
			_, _ = w.c.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}
