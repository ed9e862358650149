package transcript

import (
	"bufio"
	"errors"
	"io"
	"net"
	"time"

	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// Server is a Target on the network. It runs in real time, so Advance sleeps. The caller
// closes it.
type Server struct {
	Addr     string
	Patience time.Duration // how long Next waits

	conns map[int]*link
}

type link struct {
	net.Conn
	r    *bufio.Reader
	gone bool
}

// NewServer returns a Target for the server at an address.
func NewServer(addr string) *Server {
	return &Server{Addr: addr, Patience: 10 * time.Second, conns: map[int]*link{}}
}

// Close ends the connections.
func (s *Server) Close() {
	for _, c := range s.conns {
		_ = c.Close()
	}
}

// Send implements Target.
func (s *Server) Send(n int, args []string) error {
	c := s.conns[n]
	if c == nil {
		tcp, err := net.DialTimeout("tcp", s.Addr, 5*time.Second)
		if err != nil {
			return err
		}
		c = &link{Conn: tcp, r: bufio.NewReaderSize(tcp, 1<<16)}
		s.conns[n] = c
	}
	if _, err := c.Write(wire.AppendCommand(nil, args...)); err != nil {
		c.gone = true
	}
	return nil
}

// arrivals is the connection on which Arrive sends its PING.
const arrivals = -1

// Arrive implements Arriver: a server answers a later PING after it has run the earlier
// requests.
func (s *Server) Arrive() error {
	for range 2 {
		if err := s.Send(arrivals, []string{"PING"}); err != nil {
			return err
		}
		s.Next(arrivals)
	}
	return nil
}

// Next implements Target.
func (s *Server) Next(n int) (resp.Value, bool) {
	c := s.conns[n]
	if c == nil {
		return resp.Value{}, false
	}
	if c.gone {
		return Closed, true
	}
	_ = c.SetReadDeadline(time.Now().Add(s.Patience))
	v, err := wire.ReadValue(c.r)
	switch {
	case err == nil:
		return v, true
	case errors.Is(err, io.EOF):
		c.gone = true
		return Closed, true
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return resp.Value{}, false
	}
	c.gone = true
	return Closed, true
}

// Advance implements Target.
func (s *Server) Advance(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
	return nil
}
