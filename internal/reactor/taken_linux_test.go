package reactor

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

// leaver leaves its loop with the first bytes.
type leaver struct {
	conn   Conn
	run    func(nc Taken, buffered []byte)
	closed chan error
}

func (s *leaver) Serve(_, out []byte) (int, []byte, Verdict) {
	s.conn.(Hijacker).Hijack(func(nc net.Conn, buffered []byte) { s.run(nc.(Taken), buffered) })
	return 0, out, Close
}
func (s *leaver) Want() int                    { return 0 }
func (s *leaver) TakePushes(out []byte) []byte { return out }
func (s *leaver) Closed(err error)             { s.closed <- err }

// leaving connects to a reactor and leaves the loop with a byte. run is the hijacker.
func leaving(t *testing.T, run func(nc Taken, buffered []byte)) (*Reactor, *leaver, net.Conn) {
	t.Helper()
	opened := make(chan *leaver, 1)
	r, addr := started(t, Config{Loops: 1, NewSession: func(c Conn) Session {
		s := &leaver{conn: c, run: run, closed: make(chan error, 1)}
		opened <- s
		return s
	}})
	c := dial(t, addr)
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	return r, <-opened, c
}

// attended runs a connection to which its loop attends.
type attended struct {
	nc  chan Taken
	got chan []byte
	end chan error
}

func (a *attended) run(nc Taken, buffered []byte) {
	a.got <- buffered[1:]
	end := make(chan error, 1)
	take := func(b []byte) bool {
		a.got <- bytes.Clone(b)
		return !bytes.Contains(b, []byte("enough"))
	}
	if !nc.Attend(take, func(err error) { end <- err }) {
		end <- errors.New("the loop does not attend")
	}
	a.nc <- nc
	a.end <- <-end
}

func attending(t *testing.T) (*attended, *Reactor, *leaver, net.Conn) {
	t.Helper()
	a := &attended{make(chan Taken, 1), make(chan []byte, 1000), make(chan error, 1)}
	r, s, c := leaving(t, a.run)
	return a, r, s, c
}

// receives expects that the loop passes on bytes.
func (a *attended) receives(t *testing.T, want []byte) {
	t.Helper()
	var got []byte
	for len(got) < len(want) {
		select {
		case b := <-a.got:
			got = append(got, b...)
		case <-time.After(tier.Patience):
			t.Fatalf("%d bytes arrive, want %d", len(got), len(want))
		}
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%.40q arrives, want %.40q", got, want)
	}
}

func (a *attended) ends(t *testing.T, want error) {
	t.Helper()
	if err := <-a.end; !errors.Is(err, want) {
		t.Errorf("it ends with %v, want %v", err, want)
	}
}

func TestALoopAttendsToAHijackedConnection(t *testing.T) {
	a, _, s, c := attending(t)
	_, _ = c.Write([]byte("one"))
	a.receives(t, []byte("one"))
	large := bytes.Repeat([]byte("0123456789"), 1<<16) // more than the reads of one turn
	go func() { _, _ = c.Write(large) }()
	a.receives(t, large)
	if n, err := (<-a.nc).Write([]byte("back")); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	b := make([]byte, 4)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "back" {
		t.Fatalf("%q, %v", b, err)
	}
	_ = c.Close()
	a.ends(t, io.EOF)
	if err := <-s.closed; err != nil {
		t.Error(err)
	}
}

func TestTheAttendanceEndsWithTheConnection(t *testing.T) {
	for name, end := range map[string]struct {
		do   func(r *Reactor, s *leaver, nc Taken, c net.Conn)
		want error
	}{
		"Close":    {func(_ *Reactor, _ *leaver, nc Taken, _ net.Conn) { _ = nc.Close() }, net.ErrClosed},
		"Kill":     {func(_ *Reactor, s *leaver, _ Taken, _ net.Conn) { s.conn.Kill(io.ErrNoProgress) }, net.ErrClosed},
		"shutdown": {func(r *Reactor, _ *leaver, _ Taken, _ net.Conn) { _ = r.Shutdown(t.Context()) }, net.ErrClosed},
		"refusal":  {func(_ *Reactor, _ *leaver, _ Taken, c net.Conn) { _, _ = c.Write([]byte("enough")) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a, r, s, c := attending(t)
			_, _ = c.Write([]byte("one"))
			a.receives(t, []byte("one"))
			nc := <-a.nc
			end.do(r, s, nc, c)
			a.ends(t, end.want)
			<-s.closed
			if _, err := nc.TryWrite([]byte("x")); !errors.Is(err, net.ErrClosed) {
				t.Errorf("a write after the end: %v", err)
			}
			if nc.Attend(nil, nil) {
				t.Error("a loop attends to a closed connection")
			}
			if _, err := io.ReadAll(c); err != nil {
				t.Errorf("the other side reads %v", err)
			}
		})
	}
}

func TestAWriteThatDoesNotWaitSendsWhatTheSocketAccepts(t *testing.T) {
	sent, read := make(chan []byte, 1), make(chan struct{})
	_, s, c := leaving(t, func(nc Taken, _ []byte) {
		part, all := bytes.Repeat([]byte("0123456789abcdef"), 1<<16), []byte(nil)
		for n, err := 1, error(nil); n > 0; {
			rest := part[len(all)%len(part):]
			if n, err = nc.TryWrite(rest); err != nil {
				t.Error(err)
			}
			all = append(all, rest[:n]...)
		}
		part = part[len(all)%len(part):]
		close(read)
		if n, err := nc.Write(part); n != len(part) || err != nil { // waits
			t.Errorf("%d of %d bytes: %v", n, len(part), err)
		}
		sent <- append(all, part...)
	})
	<-read
	got, err := io.ReadAll(c)
	if want := <-sent; err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes arrive, want %d: %v", len(got), len(want), err)
	}
	<-s.closed
}

func TestAReadOfAHijackedConnectionEndsWithClose(t *testing.T) {
	taken, reads := make(chan struct{}), make(chan struct{})
	_, s, c := leaving(t, func(nc Taken, buffered []byte) {
		close(taken)
		b := make([]byte, 8)
		if n, err := nc.Read(b); err != nil || string(buffered) != "x" || string(b[:n]) != "yz" {
			t.Errorf("%q, %q, %v", buffered, b[:n], err)
		}
		close(reads)
		if n, err := nc.Read(b); n != 0 || !errors.Is(err, net.ErrClosed) {
			t.Errorf("%d, %v", n, err)
		}
	})
	<-taken
	_, _ = c.Write([]byte("yz"))
	<-reads
	s.conn.Kill(io.ErrNoProgress)
	if err := <-s.closed; !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
}

func TestAConnectionThatWaitsInTheKernelBehavesAsBefore(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c := dial(t, ln.Addr().String())
	other, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	local, remote := c.LocalAddr().String(), c.RemoteAddr().String()
	nc := Own(c)
	if nc.LocalAddr().String() != local || nc.RemoteAddr().String() != remote {
		t.Errorf("the addresses are %v and %v, want %s and %s", nc.LocalAddr(), nc.RemoteAddr(), local, remote)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the runtime still has the socket: %v", err)
	}
	go func() { _, _ = io.Copy(other, other) }()
	large := bytes.Repeat([]byte("0123456789"), 1<<18)
	got, read := make([]byte, len(large)), make(chan error)
	go func() {
		_, err := io.ReadFull(nc, got)
		read <- err
		_, err = nc.Read(make([]byte, 1))
		read <- err
	}()
	if n, err := nc.Write(large); n != len(large) || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := <-read; err != nil || !bytes.Equal(got, large) {
		t.Errorf("other bytes come back: %v", err)
	}
	if err := nc.Close(); err != nil {
		t.Error(err)
	}
	if err := <-read; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the read ends with %v", err)
	}
	if err := nc.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a second Close: %v", err)
	}
}
