package server

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/ebbdb/ebb/command"
	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/resp"
)

// lockServer is a server on a unix socket, with two loops or without any.
type lockServer struct {
	t    *testing.T
	db   *engine.DB
	path string
}

func newLockServer(t *testing.T, portable bool) *lockServer {
	s := &lockServer{t: t, path: filepath.Join(t.TempDir(), "s")}
	hooks := &command.Hooks{}
	s.db = engine.Open(engine.Options{Hooks: hooks})
	svc, err := command.NewService(command.Options{DB: s.db, Loops: 2}, hooks)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := Listen(Options{NewSession: func(c Conn) Session { return svc.NewSession(c) }, Unix: s.path, Loops: 2, Portable: portable})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		srv.Close()
		svc.Close()
		s.db.Close()
	})
	return s
}

type lockClient struct {
	s    *lockServer
	conn net.Conn
	r    *bufio.Reader
}

func (s *lockServer) dial() *lockClient {
	c, err := net.Dial("unix", s.path)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return &lockClient{s, c, bufio.NewReader(c)}
}

func (c *lockClient) send(words ...string) *lockClient {
	if _, err := c.conn.Write(resp.AppendCommand(nil, words...)); err != nil {
		c.s.t.Error(err)
	}
	return c
}

func (c *lockClient) read() resp.Value {
	v, err := resp.ReadValue(c.r)
	if err != nil {
		c.s.t.Error(err)
	}
	return v
}

// waiters waits until so many stand in line.
func (s *lockServer) waiters(n int64) {
	for s.db.Waiters() != n {
		runtime.Gosched()
	}
}

// Whoever stands in line dies, one way or another, and those who live are served
// in their order, each with a greater token.
func TestALockPassesTheDeadBy(t *testing.T) {
	for _, portable := range []bool{false, true} {
		t.Run(fmt.Sprint("portable ", portable), func(t *testing.T) {
			s := newLockServer(t, portable)
			admin := s.dial()
			last := admin.send("LOCK.ACQUIRE", "k", "first", "60000").read().Int
			owner := "first"
			const clients = 40
			line := make([]*lockClient, clients)
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
						t.Error("it was not unblocked")
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
