package instance

import (
	"bufio"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"testing"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/transport"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// lineServer is a server on a TCP socket, with two loops or none, for clients that wait in lines.
type lineServer struct {
	t    *testing.T
	db   *engine.DB
	addr string
}

// newLineServer starts a server. With a nil clock it uses the system clock.
func newLineServer(t *testing.T, portable bool, clock clock.Clock) *lineServer {
	s := &lineServer{t: t}
	hooks := &session.Hooks{}
	s.db = engine.Open(engine.Options{Hooks: hooks, Clock: clock})
	svc, err := session.NewService(session.Options{DB: s.db, Table: servercmd.Table, Loops: 2}, hooks)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := transport.Listen(transport.Options{NewSession: func(c transport.Conn) transport.Session { return svc.NewSession(c) },
		Addrs: []string{"127.0.0.1:0"}, Loops: 2, Portable: portable})
	if err != nil {
		t.Fatal(err)
	}
	s.addr = srv.Addrs()[0].String()
	t.Cleanup(func() {
		srv.Close()
		svc.Close()
		s.db.Close()
	})
	return s
}

type lineClient struct {
	s    *lineServer
	conn net.Conn
	r    *bufio.Reader
}

func (s *lineServer) dial() *lineClient {
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return &lineClient{s, c, bufio.NewReader(c)}
}

func (c *lineClient) send(words ...string) *lineClient {
	if _, err := c.conn.Write(wire.AppendCommand(nil, words...)); err != nil {
		c.s.t.Error(err)
	}
	return c
}

func (c *lineClient) read() resp.Value {
	v, err := wire.ReadValue(c.r)
	if err != nil {
		c.s.t.Error(err)
	}
	return v
}

// waiters waits until n clients wait in line.
func (s *lineServer) waiters(n int64) {
	for s.db.Waiters() != n {
		runtime.Gosched()
	}
}

// Clients in a lock's line end in several ways. The others are served in order, each with a greater token.
func TestALockPassesTheDeadBy(t *testing.T) {
	for _, portable := range []bool{false, true} {
		t.Run(fmt.Sprint("portable ", portable), func(t *testing.T) {
			s := newLineServer(t, portable, nil)
			admin := s.dial()
			last := admin.send("LOCK.ACQUIRE", "k", "first", "60000").read().Int
			owner := "first"
			const clients = 40
			line := make([]*lineClient, clients)
			ids := make([]int64, clients)
			for i := range line {
				line[i] = s.dial()
				ids[i] = line[i].send("CLIENT", "ID").read().Int
				line[i].send("LOCK.ACQUIRE", "k", fmt.Sprint("c", i), "60000", "WAIT", "0")
				s.waiters(int64(i + 1))
			}
			if v := admin.send("LOCK.INFO", "k").read(); len(v.Elems[5].Elems) != clients || v.Elems[5].Elems[7].Elems[2].Int != ids[7] {
				t.Errorf("the line: %v", v)
			}
			left := int64(clients)
			for i := range line {
				switch i % 4 {
				case 1:
					line[i].conn.Close()
				case 2:
					admin.send("CLIENT", "KILL", "ID", strconv.FormatInt(ids[i], 10)).read()
				case 3:
					if v := admin.send("CLIENT", "UNBLOCK", strconv.FormatInt(ids[i], 10)).read(); v.Int != 1 || !line[i].read().IsNull() {
						t.Error("the client was not unblocked")
					}
				default:
					continue
				}
				left--
				s.waiters(left)
			}
			for i := 0; i < clients; i += 4 {
				if v := admin.send("LOCK.RELEASE", "k", owner, strconv.FormatInt(last, 10)).read(); v.Int != 1 {
					t.Fatalf("%s did not hold it", owner)
				}
				token := line[i].read().Int
				if token <= last {
					t.Errorf("client %d gets %d after %d", i, token, last)
				}
				owner, last = fmt.Sprint("c", i), token
			}
		})
	}
}
