package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/testing/leaks"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// patience bounds every wait in these tests; nothing depends on its length.
var patience = tier.Patience

// hub has the state that the toy sessions of one test share.
type hub struct {
	t       *testing.T
	release chan struct{} // PARK ends when it can be received from
	workers sync.WaitGroup
	opened  chan *toy
	closed  chan error
	left    chan struct{} // PeerClosed
	limit   int           // of unsent output; 0: none
	idle    bool          // what IdleCheck answers
	turn    int           // output after which Serve yields; 0: never
	taken   func(s *toy, nc net.Conn, buffered []byte)
	served  atomic.Int64
}

func newHub(t *testing.T) *hub {
	return &hub{t: t, release: make(chan struct{}, 1000), opened: make(chan *toy, 10000),
		closed: make(chan error, 10000), left: make(chan struct{}, 100)}
}

// toy is a session of a line protocol:
//
//	ECHO x -> x    BIG n -> n times 'b'    $n + n bytes + CRLF -> :sum of the bytes
//	LEND n -> n times 'l', as a piece of its own
//	PARK -> DONE, when the hub releases it    QUIT -> BYE, and the end
//	LEAVE -> LEFT, and the hub's taken function has the connection
type toy struct {
	h       *hub
	conn    Conn
	waiting bool
	done    atomic.Bool
	want    int
	calls   atomic.Int32 // to see that calls do not overlap
	ends    atomic.Int32

	pieces []reactor.Piece
	uses   atomic.Int32 // of what it has lent

	mu     sync.Mutex
	pushes []byte
}

func (h *hub) session(c Conn) Session {
	s := &toy{h: h, conn: c}
	h.opened <- s
	return s
}

func (s *toy) enter() func() {
	if s.calls.Add(1) != 1 {
		s.h.t.Error("two calls of one session at a time")
	}
	return func() { s.calls.Add(-1) }
}

func (s *toy) Serve(in, out []byte) (int, []byte, Verdict) {
	defer s.enter()()
	done, first := 0, len(out)
	for {
		if s.waiting {
			if !s.done.Load() {
				return done, out, Park
			}
			s.waiting = false
			s.done.Store(false)
			out = append(out, "DONE\r\n"...)
		}
		s.want = 0
		i := bytes.IndexByte(in[done:], '\n')
		if i < 0 {
			return done, out, Continue
		}
		line := strings.TrimRight(string(in[done:done+i]), "\r")
		size := i + 1
		verb, arg, _ := strings.Cut(line, " ")
		n, _ := strconv.Atoi(strings.TrimPrefix(line, "$"))
		switch {
		case verb == "ECHO":
			out = append(append(out, arg...), "\r\n"...)
		case verb == "BIG":
			n, _ := strconv.Atoi(arg)
			out = append(append(out, bytes.Repeat([]byte{'b'}, n)...), "\r\n"...)
		case verb == "LEND":
			n, _ := strconv.Atoi(arg)
			s.uses.Add(1)
			s.pieces = append(s.pieces, reactor.Piece{At: len(out), Bytes: bytes.Repeat([]byte{'l'}, n), Uses: &s.uses})
			out = append(out, "\r\n"...)
		case verb == "PARK":
			s.waiting = true
			s.h.workers.Go(func() {
				<-s.h.release
				s.done.Store(true)
				s.conn.Wake()
			})
		case verb == "QUIT":
			return done + size, append(out, "BYE\r\n"...), reactor.Close
		case verb == "LEAVE":
			s.conn.(Hijacker).Hijack(func(nc net.Conn, buffered []byte) { s.h.taken(s, nc, buffered) })
			return done + size, append(out, "LEFT\r\n"...), reactor.Close
		case line[0] == '$':
			if size += n + 2; len(in)-done < size {
				s.want = size
				return done, out, Continue
			}
			sum := 0
			for _, b := range in[done+size-n-2 : done+size-2] {
				sum += int(b)
			}
			out = fmt.Appendf(out, ":%d\r\n", sum)
		}
		s.h.served.Add(1)
		done += size
		if t := s.h.turn; t > 0 && len(out)-first >= t {
			return done, out, Yield
		}
	}
}

func (s *toy) Want() int { return s.want }

func (s *toy) push(b string) {
	s.mu.Lock()
	s.pushes = append(s.pushes, b...)
	s.mu.Unlock()
	s.conn.Wake()
}

// unsent is the number of bytes that the reader has not taken yet.
func (s *toy) unsent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pushes)
}

func (s *toy) TakePushes(out []byte) []byte {
	defer s.enter()()
	s.mu.Lock()
	defer s.mu.Unlock()
	out = append(out, s.pushes...)
	s.pushes = s.pushes[:0]
	return out
}

func (s *toy) Share() {}

func (s *toy) TakeShared() []reactor.Piece {
	p := s.pieces
	s.pieces = nil
	return p
}

func (s *toy) Closed(err error) {
	defer s.enter()()
	if s.ends.Add(1) != 1 {
		s.h.t.Error("Closed was called twice")
	}
	s.h.closed <- err
}

func (s *toy) PeerClosed() { s.h.left <- struct{}{} }

func (s *toy) OutputExceeded(pending int) bool { return s.h.limit > 0 && pending > s.h.limit }

func (s *toy) IdleCheck(int64) bool { return s.h.idle }

// pipes is a listener of in-memory connections without any buffer.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { c, _ := net.Pipe(); return c.LocalAddr() }

// place is a running server and how to reach it.
type place struct {
	*Server
	h    *hub
	dial func() net.Conn
	t    *testing.T
}

// everywhere runs a test over every transport, with a hub of its own each.
func everywhere(t *testing.T, set func(*hub, *Options), test func(t *testing.T, p *place)) {
	over(t, append(sockets, "memory"), set, test)
}

// sockets are the transports that the system keeps: they buffer, and have two ends.
var sockets = []string{"loops", "one loop", "unix", "portable"}

// over runs a test over some transports.
func over(t *testing.T, names []string, set func(*hub, *Options), test func(t *testing.T, p *place)) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			o := Options{NewSession: h.session, Loops: 2, Portable: name == "portable" || name == "memory"}
			network := "tcp"
			switch name {
			case "one loop":
				o.Loops = 1
				fallthrough
			case "loops", "portable":
				o.Addrs = []string{"127.0.0.1:0"}
			case "unix":
				o.Unix, network = realserver.Socket(t), "unix"
			}
			if set != nil {
				set(h, &o)
			}
			s, err := Listen(o)
			if err != nil {
				t.Fatal(err)
			}
			p := &place{Server: s, h: h, t: t}
			p.dial = func() net.Conn {
				c, err := net.DialTimeout(network, s.Addrs()[0].String(), patience)
				if err != nil {
					t.Fatal(err)
				}
				return p.tidy(c)
			}
			if name == "memory" {
				ln := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
				s.Start(ln)
				p.dial = func() net.Conn {
					a, b := net.Pipe()
					ln.conns <- a
					return p.tidy(b)
				}
			}
			t.Cleanup(func() {
				s.Close()
				close(h.release)
				h.workers.Wait()
			})
			test(t, p)
		})
	}
}

func (p *place) tidy(c net.Conn) net.Conn {
	p.t.Cleanup(func() { _ = c.Close() })
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	p.t.Cleanup(cancel)
	if d, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(d)
	}
	return c
}

// client is a connection with its session's end.
func (p *place) client() (net.Conn, *bufio.Reader, *toy) {
	p.t.Helper()
	c := p.dial()
	return c, bufio.NewReader(c), receive(p.t, p.h.opened)
}

func receive[T any](t *testing.T, ch <-chan T) (v T) {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v = <-ch:
	case <-timer.C:
		t.Fatal("nothing came")
	}
	return v
}

func send(t *testing.T, c io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatalf("writing %.20q: %v", text, err)
	}
}

func expect(t *testing.T, r *bufio.Reader, lines ...string) {
	t.Helper()
	for _, want := range lines {
		got, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("waiting for %q: %v", want, err)
		}
		if got = strings.TrimRight(got, "\r\n"); got != want {
			t.Fatalf("got %.40q, want %.40q", got, want)
		}
	}
}

func expectEnd(t *testing.T, r io.Reader) {
	t.Helper()
	rest, err := io.ReadAll(r)
	var timeout net.Error
	if len(rest) > 0 || errors.As(err, &timeout) && timeout.Timeout() {
		t.Fatalf("got %.40q, %v; want the end", rest, err)
	}
}
