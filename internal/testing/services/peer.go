package services

import (
	"io"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/wire"
)

// Peer is a connection that a test plays by hand: the test does what a network loop would do.
type Peer struct {
	Session *session.Session
	Killed  atomic.Bool   // the session has closed it
	Woken   chan struct{} // has an element if the session has asked for its turn
	addr    string
	network string
}

// Connect returns a client that has connected from an address.
func Connect(s *session.Service, network, addr string) *Peer {
	p := &Peer{network: network, addr: addr, Woken: make(chan struct{}, 1)}
	p.Session = s.NewSession(p)
	return p
}

// Dial is Connect for a client that leaves at the end of the test.
func Dial(t testing.TB, s *session.Service, network, addr string) *Peer {
	t.Helper()
	p := Connect(s, network, addr)
	t.Cleanup(func() { p.Session.Closed(io.EOF) })
	return p
}

// onLoop is a peer of the first network loop.
type onLoop struct{ *Peer }

// Loop implements reactor.Conn.
func (onLoop) Loop() int { return 0 }

// ConnectOnLoop returns a client of the first network loop.
func ConnectOnLoop(s *session.Service) *Peer {
	p := &Peer{network: "tcp", addr: "127.0.0.1:1", Woken: make(chan struct{}, 1)}
	p.Session = s.NewSession(onLoop{p})
	return p
}

// Waiting returns a client that has sent a request which waits.
func Waiting(t testing.TB, s *session.Service, words ...string) *Peer {
	t.Helper()
	p := Connect(s, "tcp", "127.0.0.1:1")
	if _, out, v := p.Session.Serve(Request(words...), nil); v != reactor.Park || len(out) > 0 {
		t.Fatalf("%q: %q, %v", words, out, v)
	}
	return p
}

// Request returns the bytes of a request.
func Request(words ...string) []byte { return wire.AppendCommand(nil, words...) }

// Wake implements reactor.Conn, as do the methods up to Buffered.
func (p *Peer) Wake() {
	select {
	case p.Woken <- struct{}{}:
	default:
	}
}

func (p *Peer) Kill(error)                 { p.Killed.Store(true); p.Wake() }
func (p *Peer) RemoteAddr() string         { return p.addr }
func (p *Peer) LocalAddr() string          { return "10.0.0.1:6379" }
func (p *Peer) Network() string            { return p.network }
func (p *Peer) FD() int                    { return -1 }
func (p *Peer) Loop() int                  { return -1 }
func (p *Peer) Buffered() (input, out int) { return 0, 0 }

// Send sends a request and returns the bytes of its reply; see Raw.
func (p *Peer) Send(words ...string) string { return p.Raw(Request(words...)) }

// Raw sends bytes and returns what the session writes for them. It waits while the session is parked.
func (p *Peer) Raw(in []byte) string {
	n, out, v := p.Session.Serve(in, nil)
	for v == reactor.Park && !p.Killed.Load() {
		<-p.Woken
		in = in[n:]
		out = p.Session.TakePushes(out)
		n, out, v = p.Session.Serve(in, out)
	}
	if v == reactor.Close {
		p.Killed.Store(true)
	}
	return string(p.Session.TakePushes(out))
}

// Reply returns what a woken connection gets.
func (p *Peer) Reply() (string, reactor.Verdict) {
	_, out, v := p.Session.Serve(nil, nil)
	return string(out), v
}

// Step runs what Serve and TakePushes do after a wake.
func (p *Peer) Step(in []byte) (string, reactor.Verdict) {
	out := p.Session.TakePushes(nil)
	_, out, v := p.Session.Serve(in, out)
	return string(out), v
}

// Wait waits until the session asks for its turn.
func (p *Peer) Wait() { <-p.Woken }

// Held fails the test unless a peer that has just been given a request gets no reply.
func (p *Peer) Held(t testing.TB, in []byte) {
	t.Helper()
	if out, v := p.Step(in); out != "" || v != reactor.Park {
		t.Fatalf("%q gets %q, %v before its members have it", in, out, v)
	}
}

// Gets fails the test unless a peer, once it is woken, gets a reply.
func (p *Peer) Gets(t testing.TB, want string) {
	t.Helper()
	p.Wait()
	if out, v := p.Step(nil); out != want || v != reactor.Continue {
		t.Fatalf("%q, %v, want %q", out, v, want)
	}
}

// Unsynced is the error of a request whose outcome is unknown, because its server has lost its group.
const Unsynced = "-UNSYNCED what came of the last commands is not certain\r\n"

// Loses fails the test unless a peer, once it is woken, gets Unsynced in place of its reply, and is closed.
func (p *Peer) Loses(t testing.TB) {
	t.Helper()
	p.Wait()
	if out, v := p.Step(nil); out != Unsynced || v != reactor.Close {
		t.Fatalf("%q, %v, want %q", out, v, Unsynced)
	}
}

// Exchange sends a request on a session's connection and returns the bytes of its reply.
func Exchange(s *session.Session, args ...string) string {
	_, out, _ := s.Serve(Request(args...), nil)
	return string(out)
}

// Quiet is a connection of the first network loop that discards all notifications.
type Quiet struct{}

func (Quiet) Wake()                   {}
func (Quiet) Kill(error)              {}
func (Quiet) RemoteAddr() string      { return "127.0.0.1:1" }
func (Quiet) LocalAddr() string       { return "127.0.0.1:2" }
func (Quiet) Network() string         { return "tcp" }
func (Quiet) FD() int                 { return 3 }
func (Quiet) Loop() int               { return 0 }
func (Quiet) Buffered() (in, out int) { return 0, 0 }

// ServeAll serves requests in a session, appends the replies to out, and returns it.
func ServeAll(b testing.TB, s *session.Session, in string, out []byte) []byte {
	for rest := []byte(in); len(rest) > 0; {
		used, more, v := s.Serve(rest, out)
		if v == reactor.Park { // another goroutine's turn
			runtime.Gosched()
		} else if used == 0 {
			b.Fatalf("%q stays", rest)
		}
		out, rest = more, rest[used:]
	}
	return out
}
