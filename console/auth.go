package console

import (
	"net/http"
	"sync"

	"github.com/ebbdb/ebb/internal/session"
)

// identity is a user of the server as whom a viewer runs commands.
type identity interface {
	// name is the user's name.
	name() string
	// valid reports whether the user still exists, is on, and has the password that it was let in by.
	valid() bool
	// may reports whether the user may run a command, and says why not. It logs nothing.
	may(argv [][]byte) (ok bool, why string)
	// session returns a session of the user. from is the address of the HTTP client.
	session(from string) *session.Session
}

// viewer is one user at one address: what the requests of a browser share.
type viewer struct {
	c    *Console
	id   identity
	addr string // of the HTTP client, ip:port

	mu       sync.Mutex // guards what follows
	idle     []*slot
	lent     int // sessions that calls hold
	requests int // under way
	streams  int
	gone     bool
}

// slot is a session, and the database that it has selected.
type slot struct {
	*session.Session
	db int
}

func (v *viewer) may(argv [][]byte) (ok bool, why string) { return v.id.may(argv) }

// borrow returns a session that belongs to the caller until giveBack.
func (v *viewer) borrow() (*slot, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lent++
	if n := len(v.idle); n > 0 {
		s := v.idle[n-1]
		v.idle = v.idle[:n-1]
		return s, nil
	}
	s := v.id.session(v.addr)
	s.LeaveOn(v.c.closing.Done())
	s.Unnoticed()
	if err := s.Do([]byte("HELLO"), []byte("3")).Err(); err != nil {
		s.Closed(nil)
		v.lent--
		return nil, err
	}
	return &slot{Session: s}, nil
}

// giveBack ends what borrow began.
func (v *viewer) giveBack(s *slot) {
	v.mu.Lock()
	v.lent--
	keep := !v.gone && len(v.idle) < keepSessions
	if keep {
		v.idle = append(v.idle, s)
	}
	v.mu.Unlock()
	if !keep {
		s.Closed(nil)
	}
}

// leave ends the sessions of the viewer: those that are idle now, and the others as they come back.
func (v *viewer) leave() {
	v.mu.Lock()
	idle := v.idle
	v.idle, v.gone = nil, true
	v.mu.Unlock()
	for _, s := range idle {
		s.Closed(nil)
	}
}

// standard is the default user of a server that needs no password.
type standard struct{ svc *session.Service }

func (s standard) name() string                    { return "default" }
func (s standard) valid() bool                     { return true }
func (s standard) may([][]byte) (bool, string)     { return true, "" }
func (s standard) session(string) *session.Session { return s.svc.NewSession(nil) }

// viewerOf returns the viewer of a request.
func (c *Console) viewerOf(r *http.Request) (*viewer, error) {
	host := hostOf(r.RemoteAddr)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosing
	}
	v := c.viewers[host]
	if v == nil {
		v = &viewer{c: c, id: standard{c.svc}, addr: r.RemoteAddr}
		c.viewers[host] = v
	}
	return v, nil
}
