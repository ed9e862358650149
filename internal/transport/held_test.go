package transport

import (
	"io"
	"net"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// A client that connects to a listener that is held waits, and is served when it is let in.
func TestHeldListenersKeepWhatIsSent(t *testing.T) {
	for _, portable := range []bool{false, true} {
		h := newHub(t)
		s, err := New(Options{NewSession: h.session, Portable: portable, Unix: realserver.Socket(t), Addrs: []string{"127.0.0.1:0"}, Loops: 1})
		if err != nil {
			t.Fatal(err)
		}
		s.Hold()
		if err := s.ListenAll(); err != nil {
			t.Fatal(err)
		}
		var conns []net.Conn
		for _, a := range s.Addrs() {
			c, err := net.Dial(a.Network(), a.String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Write([]byte("QUIT\r\n")); err != nil {
				t.Error(err)
			}
			conns = append(conns, c)
		}
		if len(h.opened) != 0 {
			t.Error("a client is in before it is let in")
		}
		if err := s.LetIn(); err != nil {
			t.Fatal(err)
		}
		for _, c := range conns {
			if said, err := io.ReadAll(c); string(said) != "BYE\r\n" {
				t.Errorf("%q, %v", said, err)
			}
		}
		s.Close()
	}
}

// The end of a server frees what it holds, too.
func TestHeldListenersEndWithTheServer(t *testing.T) {
	s, err := New(Options{NewSession: newHub(t).session, Addrs: []string{"127.0.0.1:0"}, Loops: 1})
	if err != nil {
		t.Fatal(err)
	}
	s.Hold()
	if err := s.ListenAll(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	ln, err := ListenTCP(s.Addrs()[0].String(), "--port")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
}
