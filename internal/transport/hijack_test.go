package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/certtest"
)

// echoing owns a connection that was hijacked in these tests: it sends
// back the bytes that were left over, and then those that come.
func echoing(_ *toy, nc net.Conn, buffered []byte) {
	if len(buffered) > 0 { // a net.Pipe would wait until a reader reads nothing
		_, _ = nc.Write(buffered)
	}
	_, _ = io.Copy(nc, nc)
}

func TestAHijackedConnectionGetsItsOutputThenWhatWasLeftOver(t *testing.T) {
	everywhere(t, func(h *hub, _ *Options) { h.taken = echoing }, func(t *testing.T, p *place) {
		c, r, _ := p.client()
		send(t, c, "ECHO a\r\nLEAVE\r\nleft\r\nover\r\n")
		expect(t, r, "a", "LEFT", "left", "over")
		for range 3 {
			send(t, c, "ECHO x\r\n")
			expect(t, r, "ECHO x") // as it is: the session is out of it
		}
		if n := p.Clients(); n != 1 {
			t.Errorf("%d clients, want 1", n)
		}
		_ = c.Close()
		if err := receive(t, p.h.closed); err != nil {
			t.Errorf("closed with %v", err)
		}
	})
}

func TestAHijackedConnectionMayHaveBeenParked(t *testing.T) {
	everywhere(t, func(h *hub, _ *Options) { h.taken = echoing }, func(t *testing.T, p *place) {
		c, r, _ := p.client()
		send(t, c, "PARK\r\nLEAVE\r\nleft\r\n")
		p.h.release <- struct{}{}
		expect(t, r, "DONE", "LEFT", "left")
		send(t, c, "x\r\n")
		expect(t, r, "x")
	})
}

func TestASlowReaderGetsEverythingBeforeItIsHijacked(t *testing.T) {
	everywhere(t, func(h *hub, _ *Options) { h.taken = echoing }, func(t *testing.T, p *place) {
		c, r, _ := p.client()
		send(t, c, "BIG 9000000\r\nLEAVE\r\n")
		expect(t, r, strings.Repeat("b", 9000000), "LEFT")
		send(t, c, "x\r\n")
		expect(t, r, "x")
	})
}

func TestKillEndsAHijackedConnection(t *testing.T) {
	for _, reason := range []error{nil, io.ErrUnexpectedEOF} {
		everywhere(t, func(h *hub, _ *Options) { h.taken = echoing }, func(t *testing.T, p *place) {
			c, r, s := p.client()
			send(t, c, "LEAVE\r\nx\r\n")
			expect(t, r, "LEFT", "x")
			s.conn.Kill(reason)
			if err := receive(t, p.h.closed); !errors.Is(err, reason) {
				t.Errorf("closed with %v, want %v", err, reason)
			}
			expectEnd(t, r)
		})
	}
}

func TestTheServersEndIsTheEndOfHijackedConnections(t *testing.T) {
	everywhere(t, func(h *hub, _ *Options) { h.taken = echoing }, func(t *testing.T, p *place) {
		c, r, _ := p.client()
		send(t, c, "LEAVE\r\nx\r\n")
		expect(t, r, "LEFT", "x")
		if err := p.Shutdown(t.Context()); err != nil { // waits for the goroutine
			t.Error(err)
		}
		if err := receive(t, p.h.closed); err != ErrShutdown {
			t.Errorf("closed with %v", err)
		}
		expectEnd(t, r)
	})
}

func TestAConnectionThatIsGoneIsNotHijacked(t *testing.T) {
	everywhere(t, func(h *hub, _ *Options) {
		h.taken = func(_ *toy, nc net.Conn, _ []byte) {
			if _, err := io.Copy(io.Discard, nc); err == nil {
				return // it was hijacked before it went
			}
		}
	}, func(t *testing.T, p *place) {
		for range 50 {
			c, _, _ := p.client()
			send(t, c, "LEAVE\r\n")
			_ = c.Close()
		}
		for range 50 {
			_ = receive(t, p.h.closed)
		}
	})
}

func TestTLSConnectionsCanBeHijacked(t *testing.T) {
	h := newHub(t)
	h.taken = echoing
	cert, key := certtest.Make(t, "one.test")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Listen(Options{NewSession: h.session, TLSAddrs: []string{"127.0.0.1:0"},
		TLS: &tls.Config{Certificates: []tls.Certificate{pair}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	c, err := d.DialContext(ctx, "tcp", s.Addrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := bufio.NewReader(c)
	send(t, c, "ECHO a\r\nPARK\r\nLEAVE\r\nleft\r\n")
	expect(t, r, "a")
	h.release <- struct{}{}
	expect(t, r, "DONE", "LEFT", "left")
	send(t, c, strings.Repeat("x", 100000)+"\r\n")
	expect(t, r, strings.Repeat("x", 100000))
}
